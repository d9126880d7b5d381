"""Comparison of methods on the same splits of one data set, for ``l20fs compare``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import pandas as pd

from l20fs.data.readers import DataError
from l20fs.design import Scale
from l20fs.experiments import figures, outcomes
from l20fs.experiments.agreement import agreement_by_size, agreement_of_choices
from l20fs.experiments.cells import Dataset, inner_folds
from l20fs.experiments.figure_parts import figure_writers
from l20fs.experiments.plan import Plan, PlanError, Variant, load_plan
from l20fs.experiments.protocol import paper_split
from l20fs.experiments.runner import RunProgress, run, selections
from l20fs.experiments.tables import CLASSIFIER_NAMES, csv_writer, seconds
from l20fs.experiments.verdict import in_short, verdict
from l20fs.methods import discover
from l20fs.report.comparison import comparison_page
from l20fs.report.document import Cell, Table
from l20fs.report.formats import table_writers, text_writer, write_markdown
from l20fs.storage.files import write_together
from l20fs.text import closest_hint, counted, joined

#: Default methods: fast ones of different kinds, which take minutes for 100 samples with 5000 features.
DEFAULT_METHODS = ("Baseline", "L20Selector", "RFS", "mRMR", "ReliefF", "FisherScore")

#: A class with fewer samples is entirely in the training part.
FEWEST_TESTED = 3


class Comparison(NamedTuple):
    """Result of a comparison: the displayed table, and all files."""

    table: Table
    files: list[Path]


# ----------------------------------------------------------------------------------------------------------------- plan


def choose_variants(names: Sequence[str]) -> tuple[Variant, ...]:
    """Return methods by name, each with its grid: those of ``plans/compare.toml``, any other with its defaults.

    Parameters
    ----------
    names : sequence of str
        Names, case-insensitive; ``["all"]`` stands for every method that uses labels.

    Examples
    --------
    >>> [(variant.label, dict(variant.choice)) for variant in choose_variants(["mrmr", "L20Selector"])][:2]
    [('mRMR', {}), ('L20Selector', {'ridge': 'auto'})]
    """
    known = _known()
    if [name.lower() for name in names] == ["all"]:
        return tuple(variant for entry in known.values() for variant in entry if _is_supervised(variant))
    chosen: dict[str, tuple[Variant, ...]] = {}
    for name in names:
        if name.lower() not in known:
            labels = [entry[0].label for entry in known.values()]
            raise PlanError(f"the method {name!r} is unknown. {closest_hint(name, labels)}")
        chosen[name.lower()] = known[name.lower()]
    return tuple(variant for entry in chosen.values() for variant in entry)


def _known() -> dict[str, tuple[Variant, ...]]:
    """Return the variants of every method by lower-case label; those with grids first."""
    plan = load_plan("compare")
    found = {label.lower(): tuple(each for each in plan.variants if each.label == label) for label in plan.labels}
    return found | {name.lower(): (Variant(name, name, {}, {}),) for name in discover() if name.lower() not in found}


def _is_supervised(variant: Variant) -> bool:
    return variant.selector().about.supervised


def split_names(text: str) -> list[str]:
    """Split names at commas, except for the one that is part of a name.

    Examples
    --------
    >>> split_names("RFS, l2,0-FS,mRMR")
    ['RFS', 'l2,0-FS', 'mRMR']
    """
    with_comma = [re.escape(name) for name in _known() if "," in name]
    found = re.findall(rf"\s*({'|'.join([*with_comma, '[^,]+'])})", text, re.IGNORECASE)
    return [name.strip() for name in found if name.strip()]


def comparison_plan(
    data: Dataset,
    variants: tuple[Variant, ...],
    *,
    sizes: Sequence[int] | None = None,
    n_splits: int | None = None,
    scale: Scale | None = None,
    seed: int = 0,
) -> Plan:
    """Return a plan for one data set, or raise an error for data that cannot be compared.

    ``sizes``, ``n_splits`` and ``scale`` default to those of ``plans/compare.toml``; of its sizes only those up to the
    number of features are used.
    """
    plan = load_plan("compare")
    n_features = data.X.shape[1]
    too_large = [size for size in sizes or () if size > n_features]
    if too_large:
        raise DataError(f"sizes: {too_large[0]} is above the {n_features} features of the data. Use smaller sizes.")
    _refuse_untestable(data.y)
    return replace(
        plan,
        datasets=(data.name,),
        variants=variants,
        sizes=tuple(sorted(set(sizes))) if sizes else _sizes_within(plan.sizes, n_features),
        n_splits=plan.n_splits if n_splits is None else n_splits,
        scale=plan.scale if scale is None else scale,
        seed=seed,
    )


def _sizes_within(sizes: tuple[int, ...], n_features: int) -> tuple[int, ...]:
    """Return the sizes that the data have, or all features if they have none of them."""
    return tuple(size for size in sizes if size <= n_features) or (n_features,)


def _refuse_untestable(y: np.ndarray) -> None:
    """Raise an error if fewer than two classes have test samples: any accuracy would be meaningless."""
    labels, counts = np.unique(y, return_counts=True)
    if len(labels) < 2:
        raise DataError(f"All samples are of class {str(labels[0])!r}. A comparison needs two classes or more.")
    if np.count_nonzero(counts >= FEWEST_TESTED) < 2:
        listed = joined([f"{str(label)!r} {count}" for label, count in zip(labels[:5], counts[:5], strict=True)])
        raise DataError(
            f"Samples per class: {listed}{', ...' if len(labels) > 5 else ''}. At least two classes need {FEWEST_TESTED} or "
            "more, to have a test sample. Add samples, or merge rare classes."
        )


def remarks(data: Dataset, plan: Plan) -> Iterator[str]:
    """Yield notes on the splits: classes that are never tested, and fewer inner folds than planned."""
    labels, counts = np.unique(data.y, return_counts=True)
    rare = [f"{str(label)!r} ({count})" for label, count in zip(labels, counts, strict=True) if count < FEWEST_TESTED]
    if rare:
        yield (
            f"Never tested, since all their samples are needed for training (fewer than {FEWEST_TESTED}): "
            f"{'class' if len(rare) == 1 else 'classes'} {joined(rare)}."
        )
    n_folds = len(inner_folds(data.y, 0, plan.inner_folds, plan.seed))
    if n_folds < plan.inner_folds:
        train = paper_split(data.y, 0, plan.seed).train
        labels, counts = np.unique(data.y[train], return_counts=True)
        rarest = np.flatnonzero(counts == counts[counts > 1].min())[0]
        yield (
            f"{n_folds} inner folds instead of {plan.inner_folds}: class {str(labels[rarest])!r} has {counts[rarest]} "
            "training samples only."
        )


# -------------------------------------------------------------------------------------------------------------- the run


def compare(
    plan: Plan,
    data: Dataset,
    folder: Path,
    *,
    n_jobs: int | None = None,
    on_progress: Callable[[RunProgress], object] | None = None,
) -> Comparison:
    """Compute the missing cells of a plan, and write tables, figures and sentences.

    All files are computed from the cells in ``folder/cells``: a second call computes no cells and writes the same files. All
    files of a run are renamed together, so that two runs never mix.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = run(plan, [data], folder / "cells", n_jobs=n_jobs, on_progress=on_progress)
    selected = selections(plan, [data], folder / "cells")
    frame = comparison_frame(rows, selected, data.X.shape[1])
    by_size = agreement_by_size(rows, selected, data.X.shape[1])
    table = comparison_table(frame, plan)
    said = verdict(rows, frame, plan, data, [*remarks(data, plan)], [*_left_out(plan)])
    writers: dict[Path, Callable[[BinaryIO], object]] = {
        folder / "rows.csv": csv_writer(rows),
        folder / "comparison.csv": csv_writer(frame),
        **table_writers(folder, "comparison", table),
        folder / "stability.csv": csv_writer(by_size),
        **figure_writers(figures.stability(by_size), folder, "stability"),
        **figure_writers(figures.time(outcomes.fit_times(rows)), folder, "time"),
        folder / "summary.md": text_writer(write_markdown(said)),
        folder / "report.html": text_writer(comparison_html(rows, frame, plan, data)),
    }
    curves = outcomes.curves(rows, "honest")
    for classifier in plan.classifiers:
        figure = figures.curves(curves, classifier)
        writers |= figure_writers(figure, folder, f"curves-{CLASSIFIER_NAMES[classifier]}")
    write_together(writers)
    return Comparison(table, list(writers))


def comparison_html(rows: pd.DataFrame, frame: pd.DataFrame, plan: Plan, data: Dataset) -> str:
    """Return the HTML page of the comparison."""
    n_samples, n_features = data.X.shape
    shown = {"classifier": lambda table: table.classifier.map(CLASSIFIER_NAMES)}
    return comparison_page(
        frame.assign(**shown),
        outcomes.honest_curves(rows).assign(**shown),
        title=data.name,
        sentences=[
            *in_short(rows, frame, plan, data),
            f"{counted(n_samples, 'sample')}, {counted(n_features, 'feature')}, "
            f"{counted(len(np.unique(data.y)), 'class')}; {counted(plan.n_splits, 'random split')}, the same for "
            "all methods: two thirds of every class to select and to train on, the rest to test.",
            "Settings and numbers of features were chosen by cross-validation inside the training samples. The test samples "
            "were used once, for the accuracy.",
            "The splits share samples, so that their errors say less than they seem to; the test behind “by chance” knows "
            "that. summary.md has its numbers.",
            "This says how well the features tell these classes apart in samples like these. It does not say that they "
            "cause anything, nor how they do in samples from another laboratory.",
        ],
        warnings=[*remarks(data, plan)],
    )


def _left_out(plan: Plan) -> Iterator[str]:
    """Yield the supervised methods that are not in a plan."""
    for entry in _known().values():
        if _is_supervised(entry[0]) and entry[0].label not in plan.labels:
            yield entry[0].label


# -------------------------------------------------------------------------------------------------------------- results


def comparison_frame(rows: pd.DataFrame, selected: pd.DataFrame, n_features: int) -> pd.DataFrame:
    """Return one row per classifier and method, the best first; ties go to fewer features."""
    times = outcomes.fit_times(rows)[["dataset", "method", "seconds"]]
    frame = outcomes.honest(rows).merge(agreement_of_choices(rows, selected, n_features), on=outcomes.CASE)
    frame = frame.merge(times, on=["dataset", "method"]).rename(
        columns={"choice": "parameters", "lower": "stability_lower", "upper": "stability_upper"}
    )
    place = {name: number for number, name in enumerate(frame.classifier.unique())}
    frame = frame.assign(_place=frame.classifier.map(place), _accuracy=-frame.accuracy)
    frame = frame.sort_values(["_place", "_accuracy", "n_features"], kind="stable")
    columns = ["method", "classifier", "accuracy", "standard_error", "n_features", "parameters"]
    return frame[[*columns, "stability", "stability_lower", "stability_upper", "seconds"]].reset_index(drop=True)


def comparison_table(frame: pd.DataFrame, plan: Plan) -> Table:
    """Format :func:`comparison_frame` as a table; the best two of each classifier are marked."""
    rows = []
    for _, group in frame.groupby("classifier", sort=False, observed=True):
        levels = sorted({round(value, 2) for value in group.accuracy}, reverse=True)
        rows += [_table_row(row, levels.index(round(row.accuracy, 2)) + 1) for row in group.itertuples()]
    caption = (
        f"Accuracy in % on test parts that nothing was chosen for, mean of {counted(plan.n_splits, 'split')} ± standard "
        "error. Parameters and number of features are chosen by cross-validation inside every training part: the median of "
        "the numbers and the most frequent parameters are shown. Stability: how much the features selected in the splits "
        "agree (1: always the same, 0: as by chance) ± half of a 95 % interval. Seconds: one fit."
    )
    header = ("classifier", "method", "accuracy", "features", "parameters", "stability", "seconds")
    return Table(caption, header, tuple(rows), (False, False, True, True, False, True, True))


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _table_row(row: pd.Series, rank: int) -> tuple[Cell, ...]:
    reach = row.stability_upper - row.stability
    return (
        Cell(CLASSIFIER_NAMES[row.classifier]),
        Cell(row.method),
        Cell(f"{row.accuracy:.2f}", f"± {row.standard_error:.2f}", rank),
        Cell(f"{row.n_features:g}"),
        Cell(", ".join(f"{name}={_text(value)}" for name, value in json.loads(row.parameters).items())),
        Cell("") if math.isnan(row.stability) else Cell(f"{row.stability:.2f}", f"± {reach:.2f}"),
        Cell(seconds(row.seconds)),
    )
