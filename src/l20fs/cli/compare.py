"""``l20fs compare``: comparison of methods on the same splits of a table."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from rich.box import SIMPLE_HEAD

from l20fs.cli.folder import check_output, versions, write_results
from l20fs.cli.options import DataOptions, check_scoring, data_options, scoring_option
from l20fs.cli.output import Table, bar, note, show, show_json, show_tables, tell_results
from l20fs.cli.parameter_types import FEATURES, JOBS, SEED, Count
from l20fs.typing import Scale

if TYPE_CHECKING:
    import pandas as pd

    from l20fs.compare.methods import Method
    from l20fs.compare.runner import Dataset, Settings


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
    from l20fs.compare.runner import Dataset, make_settings, run
    from l20fs.compare.summary import comparison_curves, comparison_table, find_answer, remarks
    from l20fs.report.comparison import comparison_page
    from l20fs.report.delimited import write_frame
    from l20fs.tables import DataError

    options = DataOptions(**reading)
    for_labels = options.task != "regression"
    chosen = parse_methods(methods, for_labels=for_labels)
    check_scoring(scoring, options.task)
    wanted_sizes = () if sizes is None else parse_sizes(sizes)
    check_output(folder, "compare", force=force)
    samples = load(data, options)
    if sp.issparse(samples.X):
        raise DataError(
            "The table is sparse, and most of the methods need a dense one. Export the features of interest as a dense "
            "table, or use `l20fs select`, which keeps it sparse."
        )
    task: Any = "classification" if for_labels else "regression"
    dataset = Dataset(samples.title, samples.X, samples.y, task, samples.unprepared, samples.groups, nuisances_of(samples))
    settings = make_settings(dataset, chosen, sizes=wanted_sizes, n_splits=n_splits, scale=scale, scoring=scoring, seed=seed)
    beware = list(remarks(dataset, settings))
    for remark in beware:
        note(remark)
    with bar("comparison") as on_progress:
        rows = run(settings, dataset, n_jobs=n_jobs, on_progress=on_progress)
    table, curves = comparison_table(rows, dataset), comparison_curves(rows, dataset)
    answer = find_answer(table)
    sentences = described(settings, dataset)
    page = comparison_page(
        table, curves, title=dataset.name, answer=answer, n_splits=n_splits, sentences=sentences, warnings=beware
    )
    frames = {"rows.csv": rows.drop(columns="selected"), "comparison.csv": table, "curves.csv": curves}
    files = {name: write_frame(frame, ",", "") for name, frame in frames.items()}
    written = write_results(folder, "compare", files | {"report.html": page}, record(settings, dataset, samples.sha256))
    if as_json:
        show_json(
            {
                "data": dataset.name,
                "answer": answer,
                "scoring": settings.scoring,
                "n_splits": n_splits,
                "seed": seed,
                "methods": json.loads(table.to_json(orient="records")),
            }
        )
    else:
        show_tables(*shown(table))
        show(answer)
    tell_results(folder, written, open_page=open_page)


def record(settings: Settings, data: Dataset, sha256: str) -> dict[str, Any]:
    """Return everything that a comparison depends on, for run.json."""
    return {
        "input": {"name": data.name, "sha256": sha256, "n_samples": data.X.shape[0], "n_features": data.X.shape[1]},
        "methods": {method.label: method.grid for method in settings.methods},
        "sizes": settings.sizes,
        "n_splits": settings.n_splits,
        "inner_folds": settings.inner_folds,
        "scale": settings.scale,
        "scoring": settings.scoring,
        "seed": settings.seed,
        "versions": versions(),
    }


def described(settings: Settings, data: Dataset) -> list[str]:
    """Describe the samples, the splits, chance and the scaling."""
    import numpy as np

    from l20fs.compare.runner import scale_rule
    from l20fs.report.sentences import how_it_was_scaled

    metric, chance = settings.metric, data.targets.chance(settings.metric)
    shown_chance = f"{100.0 * chance:.2f} %" if metric.is_share else f"{chance:.4g}"
    kinds = (
        f"{len(np.unique(data.y))} classes" if data.has_labels else f"numbers from {data.y.min():.4g} to {data.y.max():.4g}"
    )
    part = f"two thirds of {'every class' if data.has_labels else 'the samples'}"
    if data.groups is not None:
        part = f"two thirds of the {len(np.unique(data.groups))} groups, which stay together,"
    train = data.split(0, settings.seed).train
    used = scale_rule(data.X[train], data.y[train], data.task, settings.scale or "none")
    return [
        f"{data.X.shape[0]} samples, {data.X.shape[1]} features, {kinds}. {part[0].upper()}{part[1:]} select and train, the "
        "rest test.",
        f"Without any feature, by the same prediction for all samples, the {metric.title} would be {shown_chance}.",
        f"All methods get the same values, scaled by the training samples of every split. {how_it_was_scaled('auto', used)}"
        if settings.scale == "auto"
        else how_it_was_scaled(str(settings.scale), used),
    ]


def parse_methods(text: str | None, *, for_labels: bool) -> tuple[Method, ...]:
    """Return the requested methods; names are separated by commas, except for the one that is part of a name."""
    from l20fs.compare.methods import choose_methods, known_methods

    names = None
    if text is not None:
        with_comma = [re.escape(name) for name in known_methods() if "," in name]
        found = re.findall(rf"\s*({'|'.join([*with_comma, '[^,]+'])})", text, re.IGNORECASE)
        names = [name.strip() for name in found if name.strip()]
        if not names:
            raise click.UsageError(f"--methods {text!r} names none. Name one or more, separated by commas, or leave it out.")
    try:
        return choose_methods(names, for_labels=for_labels)
    except ValueError as error:
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


def shown(table: pd.DataFrame) -> list[Table]:
    """Return a table for the terminal for each classifier."""
    from l20fs.compare.evaluators import TITLES
    from l20fs.compare.summary import score_text
    from l20fs.evaluation.metrics import metric_of
    from l20fs.report.comparison import short_number

    metric, tables = metric_of(table), []
    for classifier, rows in table.groupby("classifier", sort=False):
        drawn = Table(title=TITLES[str(classifier)], box=SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0))
        for name in ("method", metric.title_with_unit, "p", "features", "parameters", "stability", "seconds"):
            is_text = name in ("method", "parameters")
            drawn.add_column(name, justify="left" if is_text else "right", no_wrap=name != "parameters", overflow="fold")
        for row in rows.to_dict("records"):
            settings = json.loads(row["parameters"])
            drawn.add_row(
                row["method"],
                score_text(row[metric.name], row["standard_error"], metric),
                short_number(row["p_value"]),
                f"{row['n_features']:g}",
                ", ".join(f"{name}={value if isinstance(value, str) else f'{value:g}'}" for name, value in settings.items()),
                short_number(row["stability"]),
                short_number(row["seconds"]),
            )
        tables.append(drawn)
    return tables
