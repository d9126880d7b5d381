"""Options that several commands share, in titled sections of the help, and the types of their values."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from l20fs.evaluation.metrics import METRICS, find_metric
from l20fs.tables.errors import SettingError
from l20fs.tables.settings import Settings, read_settings
from l20fs.text import printable

#: Other names of metrics, as people write them.
ALIASES = {"auc": "roc_auc", "acc": "accuracy", "bacc": "balanced_accuracy", "f1": "f1_macro", "mse": "rmse"}

#: Largest list of names.
MOST_BYTES = 2**24


class SectionedCommand(click.Command):
    """Command whose help has its options in titled sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        for title, group in groupby(options, key=lambda option: getattr(option, "section", "Other")):
            with formatter.section(title):
                formatter.write_dl([record for each in group if (record := each.get_help_record(ctx))])


class SectionedOption(click.Option):
    """Option of a section of the help."""

    def __init__(self, *names: Any, section: str = "Other", **options: Any) -> None:
        super().__init__(*names, **options)
        self.section = section

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return defaults alone: ranges are said where a value is refused."""
        return {name: value for name, value in super().get_help_extra(ctx).items() if name != "range"}


class Text(click.ParamType[str]):
    """Name in a file, decoded as UTF-8 in any locale."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return os.fsencode(value).decode("utf-8", errors="backslashreplace")


class Names(Text):
    """Comma-separated names, or ``@FILE`` with one per line."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, list):
            return value
        parts = read_lines(value[1:]) if value.startswith("@") else super().convert(value, param, ctx).split(",")
        names = [name for part in parts if (name := part.strip())]
        if not names:
            self.fail(f"{value!r} names nothing. Give names separated by commas, or @FILE with one per line.", param, ctx)
        return names


class NumberOfFeatures(click.ParamType[Any]):
    """A positive whole number, or one of some words."""

    name = "number"

    def __init__(self, *words: str) -> None:
        self.words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        if value in self.words:
            return str(value)
        digits = str(value)
        if not (digits.isascii() and digits.isdigit() and 1 <= int(digits[:10]) < 10**9):
            allowed = " or ".join([*self.words, "a whole number from 1 on"])
            self.fail(f"{printable(digits, 20)!r} is not valid. Use {allowed}.", param, ctx)
        return int(digits)


class Scoring(click.ParamType[str]):
    """Metric by its name, that of scikit-learn, or a common short one."""

    name = "metric"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return find_metric(ALIASES.get(value, value)).name
        except ValueError:
            self.fail(f"{value!r} is unknown. Use one of {', '.join(METRICS)}.", param, ctx)


def read_lines(file: str | Path) -> list[str]:
    """Return the lines of a small text file."""
    try:
        with open(file, "rb") as stream:
            content = stream.read(MOST_BYTES + 1)
        text = content.decode("utf-8-sig")
    except (OSError, ValueError) as error:  # UnicodeDecodeError among them
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise click.UsageError(f"{str(file)!r} cannot be read ({reason}). Give a text file.") from error
    if len(content) > MOST_BYTES:
        raise click.UsageError(f"{file}: larger than {MOST_BYTES} bytes, as no such file is. Name another one.")
    return text.splitlines()


class Config(click.ParamType[Any]):
    """``KEY=VALUE``, a TOML file, or the panel.json of an earlier run."""

    name = "config"


def use_config(ctx: click.Context, param: click.Parameter, items: tuple[str, ...]) -> tuple[Settings, dict[str, Any]]:
    """Read all settings; options of an earlier run become defaults, unless they are given."""
    read: list[str] = []
    for item in items:
        if item.endswith(".json") and "=" not in item:
            run = _run_of_panel(item)
            ctx.default_map = {**(ctx.default_map or {}), **run.get("options", {})}
            read += [
                f"{key}={','.join(value) if isinstance(value, list) else value}" for key, value in run["settings"].items()
            ]
    try:
        return read_settings(read + [item for item in items if "=" in item or not item.endswith(".json")])
    except SettingError as error:
        raise click.UsageError(f"--config: {error}") from error


def _run_of_panel(file: str) -> dict[str, Any]:
    """Return the options and settings of the run that wrote a panel."""
    try:
        run = json.loads(Path(file).read_bytes())["provenance"]
        if isinstance(run["settings"], dict) and isinstance(run["options"], dict):
            return dict(run)
    except OSError as error:
        raise click.UsageError(f"--config {file}: cannot be read ({error.strerror}).") from error
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise click.UsageError(f"--config {file}: not a panel of `l20fs select`. Give its panel.json, a TOML file or KEY=VALUE.")


def add_options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Combine options into one decorator, in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def option(*names: str, section: str = "Other", **settings: Any) -> Callable[[Any], Any]:
    """Declare an option of a section."""
    return click.option(*names, cls=SectionedOption, section=section, **settings)


INPUT, OUTPUT = "Input", "Output"
target = option("--target", section=INPUT, type=Text(), metavar="COLUMN", help="Column of the classes or numbers.")
labels = option(
    "--labels",
    section=INPUT,
    type=click.Path(path_type=Path, exists=True),
    metavar="FILE",
    help="Table with the target, joined by names.",
)
groups = option(
    "--groups", section=INPUT, type=Text(), metavar="COLUMN", help="Donors or batches, whose samples stay together."
)
log1p = option("--log1p", section=INPUT, is_flag=True, help="Take log(1 + x) of all values: for counts.")
open_page = option("--open", "open_page", section=OUTPUT, is_flag=True, help="Open the report in the browser.")
force = option("--force", section=OUTPUT, is_flag=True, help="Overwrite earlier results.")
config = option(
    "--config",
    multiple=True,
    is_eager=True,
    type=Config(),
    callback=use_config,
    metavar="FILE|KEY=VALUE",
    help="Any other setting, such as model.solver=swap; a TOML file; panel.json: repeat a run.",
)


def output(default: str) -> Callable[[Any], Any]:
    """Declare the folder of the results."""
    return option(
        "-o",
        "output",
        section=OUTPUT,
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        default=default,
        show_default=True,
        help="Folder of the results.",
    )


def scoring(section: str) -> Callable[[Any], Any]:
    """Declare the metric."""
    return option(
        "--scoring", section=section, type=Scoring(), metavar="METRIC", help="Such as balanced_accuracy, roc_auc or r2."
    )
