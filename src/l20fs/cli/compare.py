"""``l20fs compare``: comparison of methods on the same splits of a table."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from rich.box import SIMPLE_HEAD

from l20fs.cli.folder import check_output
from l20fs.cli.options import DataOptions, check_scoring, data_options, scoring_option
from l20fs.cli.output import Table, cell_bars, note, show, show_json, show_tables, tell_results
from l20fs.cli.parameter_types import FEATURES, JOBS, SEED, Count
from l20fs.typing import Scale

if TYPE_CHECKING:
    from l20fs.experiments.compare import Comparison
    from l20fs.experiments.plan import Plan, Variant
    from l20fs.report import document


@click.command()
@click.argument("data")
@data_options
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for the result files and page.",
)
@click.option(
    "--methods",
    help="Methods separated by commas (l2,0-FS is the paper's), or all.  [default: a quick handful]",
)
@scoring_option
@click.option("--sizes", help="Numbers of features, separated by commas.  [default: 5,10,20,50,100]")
@click.option(
    "--splits",
    "n_splits",
    type=Count(2, 10_000, "100 splits tell methods apart if any number does"),
    default=10,
    show_default=True,
    help="Random splits.",
)
@click.option(
    "--scale",
    type=click.Choice(get_args(Scale)),
    default="auto",
    show_default=True,
    help="Scaling of the features for all methods, by the training samples: divided by the deviation (zscore), by the "
    "deviation plus the median deviation (moderated), or by nothing; auto: moderated if the features share a unit, else "
    "zscore.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the splits.")
@click.option("--n-jobs", type=JOBS, default=2, show_default=True, help="Fits at the same time.")
@click.option("--force", is_flag=True, help="Replace the results in the output folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON instead of tables.")
@click.option("--open", "open_page", is_flag=True, help="Open the report page in the browser.")
def compare(
    data: str,
    folder: Path,
    methods: str | None,
    sizes: str | None,
    n_splits: int,
    scoring: str,
    scale: Scale,
    seed: int,
    n_jobs: int,
    force: bool,
    as_json: bool,
    open_page: bool,
    **reading: Any,
) -> None:
    """Compare methods on DATA: a table with one sample per row (CSV, TSV, ...), or `srbct`, the built-in set.

    Every method gets the same random splits. What it selects, how many features and with which parameters is decided on
    the training samples alone; accuracy, or another metric (--scoring), is that on the test samples.

    \b
    Examples:
      l20fs compare srbct -o out
      l20fs compare tumours.tsv --target type -o out --methods L20Selector,RFS,mRMR --sizes 10,20,50
      l20fs compare tumours.tsv --target type -o out --methods all --n-jobs 8
      l20fs compare tumours.tsv --target type -o out --scoring roc_auc
      l20fs compare blood.tsv --target age --task regression -o out
    """
    import scipy.sparse as sp

    from l20fs.cli.load import load, nuisances_of
    from l20fs.data.readers import DataError
    from l20fs.experiments import compare as comparison
    from l20fs.experiments.cells import Dataset
    from l20fs.storage.results import write_results

    options = DataOptions(**reading)
    for_labels = options.task != "regression"
    variants = wanted_variants(methods, for_labels=for_labels)
    check_scoring(scoring, options.task)
    wanted_sizes = None if sizes is None else parse_sizes(sizes)
    check_output(folder, "compare", force=force)
    samples = load(data, options)
    if sp.issparse(samples.X):
        raise DataError(
            "The table is sparse, and most of the methods need a dense one. Export the features of interest as a dense "
            "table, or use `l20fs select`, which keeps it sparse."
        )
    task: Any = "classification" if for_labels else "regression"
    dataset = Dataset(samples.title, samples.X, samples.y, task, samples.unprepared, samples.groups, nuisances_of(samples))
    plan = comparison.comparison_plan(
        dataset, variants, sizes=wanted_sizes, n_splits=n_splits, scale=scale, scoring=scoring, seed=seed
    )
    for remark in comparison.remarks(dataset, plan):
        note(remark)
    with cell_bars() as on_progress:
        found = comparison.compare(plan, dataset, n_jobs=n_jobs, on_progress=partial(on_progress, "comparison"))
    names = write_results(folder, "compare", found.files, comparison.describe_run(plan, dataset, samples.sha256))
    if as_json:
        show_json(summary(found, dataset.name, plan))
    else:
        show_tables(*shown(found.table))
        show(found.answer)
        note(found.table.caption)
    tell_results(folder, names, open_page=open_page)


def summary(found: Comparison, name: str, plan: Plan) -> dict[str, Any]:
    """Return the result for programs: the answer, and a record per classifier and method."""
    return {
        "data": name,
        "answer": found.answer,
        "scoring": plan.metric.name,
        "n_splits": plan.n_splits,
        "seed": plan.seed,
        "methods": found.methods,
    }


def wanted_variants(methods: str | None, *, for_labels: bool) -> tuple[Variant, ...]:
    """Return the requested methods."""
    from l20fs.experiments.candidates import choose_variants, split_names
    from l20fs.experiments.plan import PlanError

    names = None if methods is None else split_names(methods)
    if names is not None and not names:
        raise click.UsageError(f"--methods {methods!r} names none. Name one or more, separated by commas, or leave it out.")
    try:
        return choose_variants(names, for_labels=for_labels)
    except PlanError as error:
        raise click.UsageError(f"--methods: {error}") from error


def parse_sizes(text: str) -> list[int]:
    """Parse numbers of features.

    Examples
    --------
    >>> parse_sizes("10, 20,50")
    [10, 20, 50]
    """
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        if not re.fullmatch(r"0*[1-9][0-9]{0,8}", part) or int(part) > FEATURES.most:
            raise click.UsageError(
                f"--sizes: {part!r} is not a number of features. Use whole numbers from 1 to {FEATURES.most}, such as 10,20."
            )
    return [int(part) for part in parts]


def shown(table: document.Table) -> list[Table]:
    """Split a table by classifier into tables narrow enough for a terminal."""
    tables: dict[str, Table] = {}
    for first, *rest in table.rows:
        if first.text not in tables:
            tables[first.text] = Table(title=first.text, box=SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0))
            for name, is_number in zip(table.header[1:], table.is_number[1:], strict=True):
                tables[first.text].add_column(
                    name, justify="right" if is_number else "left", no_wrap=name != "parameters", overflow="fold"
                )
        tables[first.text].add_row(*(f"{cell.text} {cell.detail}".strip() for cell in rest))
    return list(tables.values())
