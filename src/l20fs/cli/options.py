"""Options that several commands share: the records that hold them, and their declarations for click."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, get_args

import click

from l20fs.cli.parameter_types import (
    LIMIT,
    SOLVERS,
    Bytes,
    Columns,
    Costs,
    Count,
    Groups,
    MethodName,
    Names,
    Ridge,
    Scoring,
    Sets,
    TextValue,
)
from l20fs.defaults import DEFAULT_CLASS_WEIGHT, DEFAULT_RIDGE, DEFAULT_SCALE, DEFAULT_SOLVER
from l20fs.evaluation.choice import SizeRule
from l20fs.evaluation.metrics import IMBALANCE, METRICS
from l20fs.typing import Decimal, Duplicates, Join, Missing, Scale, Task

#: Options that say how a file is read, as parameters of :func:`~l20fs.data.readers.read_table`.
READING = (
    *("labels", "groups", "adjust_for", "samples_in", "layer", "sheet", "max_memory", "labels_sheet", "encoding"),
    *("decimal", "skip_rows", "na", "ignore", "features", "duplicates", "missing", "join", "strict"),
)

#: Options that most users need, in the order of the help.
COMMON = (
    *("target", "n_features", "auto", "output", "open_page", "labels", "groups", "adjust_for", "task", "is_log", "ignore"),
    "stability",
)

#: Options that only the methods of L20Selector take.
OWN_OPTIONS = (
    *("adjust_for", "scale", "class_weight", "include", "exclude", "feature_groups"),
    *("min_per_class", "max_per_class", "budget", "costs", "exclusive", "sets"),
)

#: Methods that can select panels under constraints.
CONSTRAINED = ("forward", "swap")

#: Options that say what a panel must have.
CONSTRAINTS = ("min_per_class", "max_per_class", "budget", "exclusive", "sets")


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """Options for reading a table, declared by :data:`reading_options`."""

    samples_in: str | None = None
    layer: str | None = None
    sheet: str | None = None
    max_memory: int | None = None
    encoding: str | None = None
    decimal: str | None = None
    skip_rows: int | None = None
    na: list[str] | None = None
    ignore: list[str] | None = None
    duplicates: str | None = None
    strict: bool = False

    def given(self) -> dict[str, Any]:
        """Return the options that say how a file is read, as far as they are given."""
        return {name: value for name in READING if (value := getattr(self, name, None)) not in (None, False)}


@dataclass(frozen=True, kw_only=True)
class DataOptions(ReadingOptions):
    """Options for reading the samples, declared by :data:`data_options`."""

    target: str | None = None
    task: Task = "auto"
    labels: Path | None = None
    groups: str | None = None
    adjust_for: list[str] | None = None
    features: list[str] | None = None
    missing: str | None = None
    labels_sheet: str | None = None
    join: str | None = None
    is_log: bool = False


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Options for the selector, declared by :data:`model_options`."""

    method: str = DEFAULT_SOLVER
    ridge: float | str = DEFAULT_RIDGE
    scale: str | None = None
    class_weight: str | None = None
    include: list[str] | None = None
    exclude: list[str] | None = None
    feature_groups: dict[str, list[str]] | None = None
    min_per_class: int | None = None
    max_per_class: int | None = None
    budget: float | None = None
    costs: dict[str, float] | None = None
    exclusive: list[list[str]] | None = None
    sets: dict[str, list[str]] | None = None

    def completed(self) -> Self:
        """Refuse options that the method does not take, and fill in the defaults of those not given."""
        if self.method not in SOLVERS:
            given = [name for name in OWN_OPTIONS if getattr(self, name, None) is not None]
            if given:
                raise click.UsageError(
                    f"{flag(given[0])} does not go with --method {self.method}. Use one of {', '.join(SOLVERS)}, or leave "
                    "the option out."
                )
            return self
        given = [name for name in CONSTRAINTS if getattr(self, name) is not None]
        if given and self.method not in CONSTRAINED:
            able = ", ".join(CONSTRAINED)
            raise click.UsageError(f"{flag(given[0])} does not go with --method {self.method}. Use one of {able}.")
        return replace(
            self,
            scale=self.scale or DEFAULT_SCALE,
            class_weight=self.class_weight or DEFAULT_CLASS_WEIGHT,
        )


@dataclass(frozen=True, kw_only=True)
class SelectOptions(DataOptions, ModelOptions):
    """All options of ``l20fs select``."""

    n_features: int | None = None
    auto: SizeRule | None = None
    max_features: int | None = None
    nested: bool = False
    scoring: str = "auto"
    stability: int | None = None
    atlas: float | str | None = None
    output: Path | None = None
    n_jobs: int = 1
    seed: int = 0
    as_json: bool = False
    force: bool = False
    open_page: bool = False


def check_scoring(scoring: str, task: Task) -> None:
    """Refuse a metric that does not go with the task, before any file is read."""
    if scoring == "auto":
        return
    is_for_labels = task != "regression"
    if METRICS[scoring].is_for_labels != is_for_labels:
        others = [name for name, metric in METRICS.items() if metric.is_for_labels == is_for_labels]
        kind, other_way = ("numbers", "--task regression") if is_for_labels else ("labels", "no --task regression")
        raise click.UsageError(
            f"--scoring {scoring} is for {kind}. Use one of {', '.join(others)}, or {other_way} if the target holds {kind}."
        )


def flag(name: str) -> str:
    """Return the option that sets a field.

    Examples
    --------
    >>> flag("feature_groups")
    '--feature-groups'
    """
    return f"--{name.replace('_', '-')}"


class CommonFirst(click.Command):
    """Command whose help begins with the options that most users need."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return sorted(super().get_params(ctx), key=lambda param: COMMON.index(param.name) if param.name in COMMON else 99)


def together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Combine several options into one decorator, in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


#: Options that say how a file is read, with or without labels.
reading_options = together(
    click.option(
        "--samples-in",
        type=click.Choice(["rows", "columns"]),
        help="Where a table has its samples.  [default: rows, unless --target or --labels names columns]",
    ),
    click.option("--layer", type=TextValue(), help="Layer of an h5ad file."),
    click.option("--sheet", type=TextValue(), help="Sheet of an Excel file."),
    click.option(
        "--max-memory",
        type=Bytes(),
        help="Memory to use, for example 4G: h5ad, zarr and npy files that need more are read in blocks, others refused."
        "  [default: what is free]",
    ),
    click.option("--encoding", type=TextValue(), help="Encoding of a text file.  [default: detected]"),
    click.option("--decimal", type=click.Choice(get_args(Decimal)), help="Decimal mark.  [default: detected]"),
    click.option(
        "--skip-rows",
        type=Count(0, 10**6, "no table has as many lines above its header"),
        help="Lines above the header of a table.  [default: detected]",
    ),
    click.option("--na", type=Names(), help="Texts that stand for a missing value, besides the usual ones: with commas."),
    click.option(
        "--ignore",
        type=Names(),
        help="Columns to leave out: names or patterns (batch,plate*) with commas, or @FILE.  [default: columns of text]",
    ),
    click.option(
        "--duplicates",
        type=click.Choice(get_args(Duplicates)),
        help="What to do with features of the same name.  [default: number]",
    ),
    click.option("--strict", is_flag=True, help="Refuse a file instead of guessing how it is to be read."),
)

data_options = together(
    click.option(
        "--target",
        type=TextValue(),
        help="Column with the class labels, or the numbers to predict (not needed for srbct, nor with a file that has its "
        "own).",
    ),
    click.option(
        "--task",
        type=click.Choice(get_args(Task)),
        default="auto",
        show_default=True,
        help="Whether the target holds class labels or numbers; auto: labels.",
    ),
    click.option(
        "--labels",
        type=click.Path(path_type=Path, dir_okay=False, exists=True, allow_dash=True),
        help="File with the class labels (CSV, Excel, Parquet), if they are not in the table: names of the samples and "
        "labels in columns, or a label in each line.",
    ),
    click.option(
        "--groups",
        type=TextValue(),
        help="Column with the donor, patient or batch: samples that share it are tested together.",
    ),
    click.option(
        "--adjust-for",
        type=Names(),
        help="Columns with nuisances, such as batch,plate,age:number: what they explain is taken out of features and "
        "target. Numbers with a fraction, or named so, are numbers; all others are labels.",
    ),
    click.option("--labels-sheet", type=TextValue(), help="Sheet of the labels, if these are in an Excel file."),
    click.option(
        "--join",
        type=click.Choice(get_args(Join)),
        help="Match samples and labels by exact names, use those in both (inner), or match also names that differ in case, "
        "blanks, punctuation or an ending of all (near).  [default: detected]",
    ),
    click.option(
        "--features", type=Names(), help="Columns to read as features: names or patterns (ENSG*) with commas, or @FILE."
    ),
    click.option(
        "--missing",
        type=click.Choice(get_args(Missing)),
        help="Missing values: refuse them, drop their features, or fill them in by the median of the feature or the nearest "
        "samples, of the training samples alone.  [default: median]",
    ),
    reading_options,
    click.option("--log", "is_log", is_flag=True, help="Take log(1 + x) of all values, for raw counts."),
)

scoring_option = click.option(
    "--scoring",
    type=Scoring(),
    default="auto",
    show_default=True,
    help=f"What is scored in cross-validation: {', '.join(METRICS)}; auto: accuracy, balanced_accuracy if a class has at "
    f"least {IMBALANCE:g} times as many samples as another, r2 for numbers.",
)

model_options = together(
    click.option(
        "--method",
        type=MethodName(),
        default=DEFAULT_SOLVER,
        show_default=True,
        help=f"{', '.join(SOLVERS)} (L20Selector), or any method of l20fs.methods that looks at the labels.",
    ),
    click.option(
        "--ridge",
        type=Ridge(),
        default=DEFAULT_RIDGE,
        show_default=True,
        help="Strength of the ridge term, relative to the mean squared norm of a centred feature; auto: by the number of "
        "features per sample.",
    ),
    click.option(
        "--scale",
        type=click.Choice(get_args(Scale)),
        help="Divide each feature by its deviation (zscore), by its deviation plus the median deviation (moderated), or by "
        "nothing, before they compete; auto: moderated if the features share a unit, else zscore."
        f"  [default: {DEFAULT_SCALE}]",
    ),
    click.option(
        "--class-weight",
        type=click.Choice(["balanced", "none"]),
        help="Let a rare class count as much as a common one, or each sample as much as any other."
        f"  [default: {DEFAULT_CLASS_WEIGHT}]",
    ),
    click.option("--include", type=Names(), help="Features that are always selected: names with commas, or @FILE."),
    click.option("--exclude", type=Names(), help="Features that are never selected: names with commas, or @FILE."),
    click.option(
        "--feature-groups", type=Groups(), help="File with a feature, a tab and its group (a pathway) in each line."
    ),
    click.option(
        "--min-per-class",
        type=LIMIT,
        help="Features of each class in a panel at least: those whose mean is highest there; with --sets, of each set.",
    ),
    click.option("--max-per-class", type=LIMIT, help="Features of each class, or set, in a panel at most."),
    click.option(
        "--budget", type=click.FloatRange(min=0, min_open=True), help="What the features of a panel may cost together."
    ),
    click.option("--costs", type=Costs(), help="File with a feature, a tab and its cost in each line.  [default: 1 each]"),
    click.option(
        "--exclusive",
        type=Columns("features of which at most one is selected, with tabs,"),
        help="File with features in each line of which at most one is selected.",
    ),
    click.option(
        "--sets",
        type=Sets(),
        help="File with the sets that --min-per-class and --max-per-class mean: GMT, or a set and a feature in each line.",
    ),
)
