"""``l20fs validate``: a panel, or a list of features from elsewhere, judged on labelled samples."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from l20fs.cli.folder import check_output, write_results
from l20fs.cli.options import data_options
from l20fs.cli.output import (
    Table,
    note,
    open_in_browser,
    show,
    show_json,
    show_tables,
)
from l20fs.cli.parameter_types import FEATURES, SEED

if TYPE_CHECKING:
    from l20fs.cli.validate_steps import Judgement, ValidateOptions
    from l20fs.report import validation


@click.command()
@click.argument("panel", type=click.Path(path_type=Path, exists=True))
@click.argument("data")
@click.argument("test", required=False)
@data_options
@click.option("-k", "n_features", type=FEATURES, help="Features of the panel to use.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder for the result files and the page.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the folds.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON instead of tables.")
@click.option("--force", is_flag=True, help="Replace the results in the output folder.")
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
def validate(panel: Path, data: str, test: str | None, **given: Any) -> None:
    """Judge PANEL on the labelled samples of DATA, which must be others than those it was made from.

    PANEL is a panel.json, or the folder that `l20fs select -o` wrote. It may also be a text file with one feature per line,
    a list from elsewhere: then DATA are the samples to learn the weights from, by cross-validation, and TEST is another
    cohort.

    \b
    Examples:
      l20fs validate results/panel.json cohort.csv --target type --groups hospital -o validation
      l20fs validate genes.txt tumours.tsv --target type -o validation
      l20fs validate genes.txt tumours.tsv cohort.tsv --target type --open -o validation
    """
    from l20fs.cli.incoming import refuse_twice
    from l20fs.cli.validate_steps import ValidateOptions, judge_list, judge_panel

    options = ValidateOptions(**given)
    is_list = not is_panel(panel)
    check_combination(options, is_list=is_list, test=test)
    refuse_twice(panel, data, test, options.labels)
    if options.output is not None:
        check_output(options.output, "validate", force=options.force)
    found = judge_list(panel, data, test, options) if is_list else judge_panel(panel, data, options)
    finish(found, options)


def check_combination(options: ValidateOptions, *, is_list: bool, test: str | None) -> None:
    """Raise an error for contradictory arguments."""
    if not is_list and test is not None:
        raise click.UsageError(f"{test!r}: a panel is judged on one table. Give TEST with a list of features only.")
    if not is_list and options.is_log:
        raise click.UsageError("--log: a panel knows whether it takes logarithms. Leave the option out.")
    if not is_list and options.adjust_for is not None:
        raise click.UsageError("--adjust-for: a panel predicts from its features alone. Leave the option out.")
    if is_list and options.n_features is not None:
        raise click.UsageError(f"-k {options.n_features} is for a panel; a list is judged as a whole. Leave the option out.")
    if test is not None and options.labels is not None:
        raise click.UsageError("--labels with a second table: give the labels in a column of both (--target COLUMN).")
    if options.open_page and options.output is None:
        raise click.UsageError("--open needs a folder. Add -o DIR.")


def is_panel(place: Path) -> bool:
    """Return whether a file is a panel, or a folder with one, and not a list of names."""
    if place.is_dir() or place.suffix.lower() == ".json":
        return True
    from l20fs.cli.incoming import as_file

    with open(as_file(place), "rb") as stream:
        return stream.read(100).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


# ---------------------------------------------------------------------------------------------------------------- results


def finish(found: Judgement, options: ValidateOptions) -> None:
    """Print the result, and write the files if there is a folder."""
    import pandas as pd

    from l20fs.cli.validate_content import as_json, scores_frame, scores_table
    from l20fs.report.delimited import write_frame
    from l20fs.report.validation import validation_page

    for text in found.warnings:
        note(f"warning: {text}")
    stored = found.run | {
        "answers": found.answers,
        "warnings": [*found.warnings, *found.notes],
        "parts": {name: as_json(part) for name, part in found.parts.items()},
        "list": as_json(found.report),
    }
    if options.as_json:
        show_json(stored)
    else:
        show_tables(*(terminal_table(name, scores_table(part)) for name, part in found.parts.items()))
        for text in found.answers:
            show(text)
    if options.output is None:
        note("Nothing was written; add -o DIR to keep the results and a page.")
        return
    page = validation_page(
        found.sections,
        title=found.title,
        answer=found.answers[0],
        further=found.answers[1:],
        facts=found.facts,
        sentences=found.sentences,
        warnings=[*found.warnings, *found.notes],
    )
    frames = [scores_frame(part, name) for name, part in found.parts.items()]
    files = {"validation.tsv": write_frame(pd.concat(frames))}
    if found.predictions is not None:
        files["predictions.tsv"] = write_frame(found.predictions)
    files["validation.json"] = json.dumps(stored, indent=2, ensure_ascii=False) + "\n"
    files["validation.html"] = page
    names = write_results(options.output, "validate", files, found.run)
    note(f"Results are in {options.output}{os.sep}: {', '.join(names)}")
    note(f"Look at {options.output / 'validation.html'}")
    if options.open_page:
        open_in_browser(options.output / "validation.html")


def terminal_table(name: str, table: validation.Table) -> Table:
    """Return a table of the page for the terminal."""
    shown = Table(title=name)
    for label, is_number in zip(table.header, table.is_number, strict=True):
        shown.add_column(label, justify="right" if is_number else "left")
    for row in table.rows:
        shown.add_row(*row)
    return shown
