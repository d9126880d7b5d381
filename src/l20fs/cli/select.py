"""``l20fs select``: selection of features from a table, and a report."""

from __future__ import annotations

import platform
import warnings
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from l20fs.cli import options
from l20fs.cli.options import INPUT, Names, NumberOfFeatures, SectionedCommand, add_options, option
from l20fs.cli.results import check_folder, write_results
from l20fs.cli.terminal import note, noted_warnings, show, show_files
from l20fs.text import counted

if TYPE_CHECKING:
    from l20fs.report.selection import Selection
    from l20fs.tables import Samples
    from l20fs.tables.settings import Settings

NUMBER, PANEL = "Number of features", "Panel"

#: The files of the results, the page last.
FILES = ("features.tsv", "results.xlsx", "panel.json", "report.html")

#: Options that say where results go, and not what they are.
WITHOUT_EFFECT = ("output", "open_page", "force")

#: Names of features in a line.
MOST_NAMES = 10


@click.command(cls=SectionedCommand, context_settings={"max_content_width": 100})
@click.argument("data")
@add_options(
    options.target,
    options.labels,
    options.groups,
    option("--adjust-for", section=INPUT, type=Names(), metavar="COLUMNS", help="Covariates (batch, age) to regress out."),
    option("--ignore", section=INPUT, type=Names(), metavar="COLUMNS", help="Columns or patterns to leave out."),
    option(
        "--task",
        section=INPUT,
        type=click.Choice(["classification", "regression"]),
        metavar="KIND",
        help="classification or regression.  [default: by the target]",
    ),
    options.log1p,
    option(
        "-k",
        "k",
        section=NUMBER,
        type=NumberOfFeatures("auto", "best"),
        metavar="N|auto|best",
        default="auto",
        show_default=True,
        help="How many: N, few, or the best.",
    ),
    options.scoring(NUMBER),
    option(
        "--stability", section=NUMBER, type=click.IntRange(2, 100_000), metavar="N", help="Also select on N random halves."
    ),
    option("--include", section=PANEL, type=Names(), metavar="NAMES", help="Always select these: a,b or @FILE."),
    option("--exclude", section=PANEL, type=Names(), metavar="NAMES", help="Never select these."),
    option("--alternatives", section=PANEL, is_flag=True, help="Also find all near-optimal panels."),
    options.output("l20fs-results"),
    options.open_page,
    options.force,
    options.config,
)
def select(
    data: str, output: Path, open_page: bool, force: bool, config: tuple[Settings, dict[str, Any]], **given: Any
) -> None:
    """Select features from DATA: a table (CSV, Excel, h5ad, ...), or demo.

    \b
    l20fs select demo --open
    l20fs select tumours.csv --target type
    """
    from l20fs.cli.samples import load_samples

    settings, of_settings = config
    check_folder(output, FILES, force=force)
    reading = {name: given[name] for name in ("target", "labels", "groups", "adjust_for", "ignore", "task", "log1p")}
    with noted_warnings() as beware:
        samples = load_samples(data, settings, **reading)
        show_samples(samples)
        found = run(samples, settings, **{name: given[name] for name in given if name not in reading or name == "log1p"})
    run_options = {name: value for name, value in given.items() if value not in (None, False)}
    record = {
        "options": {name: str(value) if isinstance(value, Path) else value for name, value in run_options.items()},
        "settings": of_settings,
    }
    found = describe(found, samples, record, beware)
    names = write_results(output, files_of(found), FILES)
    for line in lines_of(found):
        show(line)
    show_files(output, names, "report.html", is_to_open=open_page)


def show_samples(samples: Samples) -> None:
    """Print what was read."""
    import numpy as np

    n_samples, n_features = samples.X.shape
    what = f"numbers to predict: {samples.target_name}"
    if samples.task == "classification":
        labels, sizes = np.unique(samples.y, return_counts=True)
        shown = ", ".join(f"{label} {size}" for label, size in list(zip(labels, sizes, strict=True))[:8])
        what = f"{counted(len(labels), 'class')} ({shown}{', ...' if len(labels) > 8 else ''})"
    note(f"{samples.title}: {counted(n_samples, 'sample')}, {counted(n_features, 'feature')}, {what}")


def run(
    samples: Samples,
    settings: Settings,
    *,
    k: int | str,
    scoring: str | None = None,
    stability: int | None = None,
    include: list[str] | None = None,
    exclude: list[str] | None = None,
    alternatives: bool = False,
    log1p: bool = False,
) -> Selection:
    """Fit the search, and what else is asked for."""
    from sklearn.base import clone

    from l20fs import StabilitySelector
    from l20fs.cli.samples import covariates_of
    from l20fs.cli.search import make_search
    from l20fs.inputs.names import NamedColumns
    from l20fs.inspection import near_optimal_panels
    from l20fs.prediction.panel_file import PanelError
    from l20fs.report.selection import Selection

    X = NamedColumns(samples.X, samples.feature_names)
    before = X if samples.preprocess is None else samples.X_before
    covariates: dict[str, Any] = {"adjust_for": covariates_of(samples)}
    search = make_search(samples, settings, k, scoring=scoring, include=include, exclude=exclude)
    search.fit(before, samples.y, groups=samples.groups, **covariates)
    resampled = panels = None
    if stability is not None:
        selector = clone(search.selector).set_params(n_features_to_select=search.n_features_)
        resampled = StabilitySelector(
            selector, n_resamples=stability, random_state=settings.search.seed, n_jobs=settings.run.n_jobs
        ).fit(X, samples.y, groups=samples.groups, **covariates)
    if alternatives:
        panels = near_optimal_panels(search.model_, X, samples.y, search.n_features_, **covariates)
    about: dict[str, Any] = {"target_names": samples.target_name or "target", "transform": "log1p" if log1p else "none"}
    try:
        panel = search.to_panel(before, samples.y, **covariates, **about)
    except PanelError as error:
        panel = None
        warnings.warn(f"panel.json is not written: {error}", UserWarning, stacklevel=1)
    return Selection(
        search,
        samples.X,
        samples.y,
        title=samples.title,
        target=samples.target_name or "target",
        metric=scoring or ("r2" if samples.task == "regression" else "accuracy"),
        groups=samples.groups,
        stability=resampled,
        alternatives=panels,
        panel=panel,
        missing=samples.missing,
    )


def describe(found: Selection, samples: Samples, record: dict[str, Any], beware: list[str]) -> Selection:
    """Add what the run was made from to its page and panel."""
    packages = {name: version(name) for name in ("l20fs", "numpy", "scikit-learn")}
    about = {**record, "versions": {"python": platform.python_version(), **packages}}
    score = {"metric": found.metric, **found.score._asdict()}
    known: dict[str, Any] = {"data_sha256": samples.sha256, "provenance": {**record, "title": samples.title, "score": score}}
    return replace(
        found,
        panel=found.panel and replace(found.panel, **known),
        name_of_groups=record["options"].get("groups", ""),
        notes=[*samples.notes, *beware],
        run={**about, "input": {"file": samples.title, "SHA-256": samples.sha256}},
    )


def files_of(found: Selection) -> dict[str, Any]:
    """Return the files of the results."""
    from l20fs.report.workbook import write_workbook

    sheets = found.sheets()
    panel = {} if found.panel is None else {"panel.json": found.panel.to_json()}
    return {
        "features.tsv": found.features.to_csv(sep="\t", index=False, float_format="%.10g", lineterminator="\n"),
        "results.xlsx": lambda stream: write_workbook(stream, sheets),
        **panel,
        "report.html": found.page(),
    }


def lines_of(found: Selection) -> list[str]:
    """Return the lines on the terminal."""
    from l20fs.report.page import estimate_text, value_text

    is_share = found.measure.is_share
    guess = f"{found.chance_name} alone: {value_text(found.chance, is_share)}"
    number = f"{found.k} of {found.n_features} features" if not found.has_groups else f"{found.k} groups of features"
    score = f"{found.measure.title} {estimate_text(found.score, is_share=is_share)}; {guess}"
    names = found.features["feature"].tolist()
    lines = [f"{number}: {score}", ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")]
    if not found.predicts:
        lines.insert(0, "Nothing predicts better than guessing.")
    if found.stability is not None:
        lines.append(f"Stability of the selection: {found.stability.stability_:.2f} (1: always the same features)")
    if found.alternatives is not None:
        lines.append(f"{found.alternatives.n_panels} near-optimal panels")
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]
