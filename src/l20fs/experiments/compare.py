"""Comparison of methods on the same splits of one data set, for ``l20fs compare``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.validation import has_fit_parameter

from l20fs.data.readers import DataError
from l20fs.design import Scale
from l20fs.evaluation.metrics import find_metric, metric_of
from l20fs.experiments import outcomes
from l20fs.experiments.agreement import agreement_by_size, agreement_of_choices
from l20fs.experiments.candidates import left_out
from l20fs.experiments.cells import Dataset
from l20fs.experiments.plan import Plan, Variant, load_plan
from l20fs.experiments.protocol import CLASSIFIERS, REGRESSORS
from l20fs.experiments.runner import RunProgress, compute_all, rows_of, selections_of
from l20fs.experiments.tables import CLASSIFIER_NAMES, LEAST_ERROR, score_with_error, seconds, write_csv
from l20fs.experiments.verdict import describe_targets, headline, in_short, verdict
from l20fs.report.comparison import comparison_page
from l20fs.report.document import Cell, Table
from l20fs.report.formats import table_files, write_markdown
from l20fs.storage.results import versions
from l20fs.text import counted, joined, listed

#: A class with fewer samples is entirely in the training part.
FEWEST_TESTED = 3

#: Fewest samples with numbers: each of five folds of two thirds of them has two test samples.
FEWEST_NUMBERS = 15

#: Fewest groups: one to test, and two for the folds of the others.
FEWEST_GROUPS = 3


class Comparison(NamedTuple):
    """Result of a comparison: the answer in one sentence, the displayed table, its rows for programs, and the
    texts of all files, the page last.
    """

    answer: str
    table: Table
    methods: list[dict[str, Any]]
    files: dict[str, str]


# ----------------------------------------------------------------------------------------------------------------- plan


def comparison_plan(
    data: Dataset,
    variants: tuple[Variant, ...],
    *,
    sizes: Sequence[int] | None = None,
    n_splits: int | None = None,
    scale: Scale | None = None,
    scoring: str = "auto",
    seed: int = 0,
) -> Plan:
    """Return a plan for one data set, or raise an error for data that cannot be compared.

    ``sizes``, ``n_splits`` and ``scale`` default to those of ``plans/compare.toml``; of its sizes only those up to the
    number of features are used. ``scoring`` is the name of a metric, or ``"auto"`` for that of such targets.
    """
    plan = load_plan("compare")
    n_features = data.X.shape[1]
    too_large = [size for size in sizes or () if size > n_features]
    if too_large:
        raise DataError(f"sizes: {too_large[0]} is above the {n_features} features of the data. Use smaller sizes.")
    _refuse_untestable(data)
    if data.groups is not None:
        _refuse_confined(data, plan.n_splits if n_splits is None else n_splits, plan.inner_folds, seed)
    metric = data.targets.metric if scoring == "auto" else find_metric(scoring)
    if metric.is_for_labels != data.has_labels:
        raise ValueError(f"scoring={scoring!r} does not go with a {data.task}. Use 'auto', or another metric.")
    return replace(
        plan,
        datasets=(data.name,),
        variants=variants,
        sizes=tuple(sorted(set(sizes))) if sizes else _sizes_within(plan.sizes, n_features),
        n_splits=plan.n_splits if n_splits is None else n_splits,
        classifiers=tuple(CLASSIFIERS if data.has_labels else REGRESSORS),
        scale=plan.scale if scale is None else scale,
        scoring=metric.name,
        seed=seed,
    )


def _sizes_within(sizes: tuple[int, ...], n_features: int) -> tuple[int, ...]:
    """Return the sizes that the data have, or all features if they have none of them."""
    return tuple(size for size in sizes if size <= n_features) or (n_features,)


def _refuse_untestable(data: Dataset) -> None:
    """Raise an error if fewer than two classes have test samples, or numbers are too few: scores would be meaningless."""
    labels, counts = np.unique(data.y, return_counts=True)
    if not data.has_labels:
        if len(data.y) < FEWEST_NUMBERS:
            raise DataError(f"There are {counted(len(data.y), 'sample')}. A comparison by numbers needs {FEWEST_NUMBERS}.")
        if len(labels) < 3:
            raise DataError(
                f"The target has {counted(len(labels), 'different number')}. A regression needs 3 or more: leave --task "
                "regression out if they are classes."
            )
        return
    if len(labels) < 2:
        raise DataError(f"All samples are of class {str(labels[0])!r}. A comparison needs two classes or more.")
    if np.count_nonzero(counts >= FEWEST_TESTED) < 2:
        listed = joined([f"{str(label)!r} {count}" for label, count in zip(labels[:5], counts[:5], strict=True)])
        raise DataError(
            f"Samples per class: {listed}{', ...' if len(labels) > 5 else ''}. At least two classes need {FEWEST_TESTED} or "
            "more, to have a test sample. Add samples, or merge rare classes."
        )


def _refuse_confined(data: Dataset, n_splits: int, n_folds: int, seed: int) -> None:
    """Raise an error if there are too few groups, or they leave a split or its folds without two classes to learn."""
    assert data.groups is not None
    n_groups = len(np.unique(data.groups))
    if n_groups < FEWEST_GROUPS:
        raise DataError(
            f"There are {counted(n_groups, 'group')}. A comparison needs {FEWEST_GROUPS} or more: leave --groups out."
        )
    for number in range(n_splits):
        train, test = data.split(number, seed)
        is_learned = not data.has_labels or len(np.unique(data.y[train])) > 1
        if not is_learned or not len(test) or not data.inner_folds(number, n_folds, seed):
            raise DataError(
                f"Classes are confined to groups: with groups kept together, split {number} leaves nothing to learn or to "
                "test. Add groups with samples of several classes, or leave --groups out."
            )


def remarks(data: Dataset, plan: Plan) -> Iterator[str]:
    """Yield notes: missing values, groups, classes that are never tested, fewer inner folds, probabilities of zero."""
    gaps = np.isnan(data.X if data.unprepared is None else data.unprepared.X).any(axis=0)
    if gaps.any():
        yield (
            f"{counted(int(gaps.sum()), 'feature')} with missing values, which were filled in by what the training "
            "samples of every split say."
        )
    if data.nuisances is not None:
        able = [variant.label for variant in plan.variants if has_fit_parameter(variant.selector(), "adjust_for")]
        yield f"Adjusted for nuisances (--adjust-for): {listed(dict.fromkeys(able))}; other methods cannot."
    if data.groups is None:
        yield from _remarks_on_classes(data, plan)
    else:
        yield f"Samples of a group are on the same side of every split; there are {len(np.unique(data.groups))} groups."
    if plan.scoring == "log_loss":
        yield (
            "KNN: a class that has none of the five votes has the probability 0, which costs 36 if it is the right one. "
            "Look at softmax for the log loss."
        )


def _remarks_on_classes(data: Dataset, plan: Plan) -> Iterator[str]:
    labels, counts = np.unique(data.strata, return_counts=True)
    rare = [f"{str(label)!r} ({count})" for label, count in zip(labels, counts, strict=True) if count < FEWEST_TESTED]
    if rare:
        yield (
            f"Never tested, since all their samples are needed for training (fewer than {FEWEST_TESTED}): "
            f"{'class' if len(rare) == 1 else 'classes'} {joined(rare)}."
        )
    n_folds = len(data.inner_folds(0, plan.inner_folds, plan.seed))
    if n_folds < plan.inner_folds:
        train = data.split(0, plan.seed).train
        labels, counts = np.unique(data.strata[train], return_counts=True)
        rarest = np.flatnonzero(counts == counts[counts > 1].min())[0]
        yield (
            f"{n_folds} inner folds instead of {plan.inner_folds}: class {str(labels[rarest])!r} has {counts[rarest]} "
            "training samples only."
        )


# -------------------------------------------------------------------------------------------------------------- the run


def compare(
    plan: Plan,
    data: Dataset,
    *,
    n_jobs: int | None = None,
    on_progress: Callable[[RunProgress], object] = lambda progress: None,
) -> Comparison:
    """Compute the cells of a plan, and make the tables, the sentences and the page."""
    results = compute_all(plan, [data], n_jobs=n_jobs, on_progress=on_progress)
    rows, selected = rows_of(results, plan.scoring), selections_of(results)
    frame = comparison_frame(rows, selected, data.X.shape[1])
    table = comparison_table(frame, plan)
    said = verdict(rows, frame, plan, data, [*remarks(data, plan)], [*left_out(plan)])
    files = {
        "rows.csv": write_csv(rows),
        "comparison.csv": write_csv(frame),
        **table_files("comparison", table),
        "stability.csv": write_csv(agreement_by_size(rows, selected, data.X.shape[1])),
        "summary.md": write_markdown(said),
        "report.html": comparison_html(rows, frame, plan, data),
    }
    return Comparison(headline(rows, frame, plan, data), table, records_of(frame), files)


def describe_run(plan: Plan, data: Dataset, sha256: str) -> dict[str, Any]:
    """Return everything that a comparison depends on, for run.json."""
    return {
        "input": {"name": data.name, "sha256": sha256, "n_samples": data.X.shape[0], "n_features": data.X.shape[1]},
        "methods": list(plan.labels),
        "sizes": list(plan.sizes),
        "n_splits": plan.n_splits,
        "inner_folds": plan.inner_folds,
        "scale": plan.scale,
        "scoring": plan.metric.name,
        "seed": plan.seed,
        "versions": versions(),
    }


def comparison_html(rows: pd.DataFrame, frame: pd.DataFrame, plan: Plan, data: Dataset) -> str:
    """Return the HTML page of the comparison."""
    n_samples, n_features = data.X.shape
    shown = {"classifier": lambda table: table.classifier.map(CLASSIFIER_NAMES)}
    return comparison_page(
        frame.assign(**shown),
        outcomes.honest_curves(rows).assign(**shown),
        title=data.name,
        answer=headline(rows, frame, plan, data),
        sentences=[
            *in_short(rows, frame, plan, data),
            f"{counted(n_samples, 'sample')}, {counted(n_features, 'feature')}, {describe_targets(data)}; "
            f"{counted(plan.n_splits, 'random split')}, the same for all methods: {_described_split(data)} to select and to "
            "train on, the rest to test.",
            "Settings and numbers of features were chosen by cross-validation inside the training samples. The test samples "
            f"were used once, for the {plan.metric.title}.",
            "The splits share samples, so that their errors say less than they seem to; the test behind “by chance” knows "
            "that. summary.md has its numbers.",
            f"This says how well the features {'tell these classes apart' if data.has_labels else 'predict these numbers'} "
            "in samples like these. It does not say that they cause anything, nor how they do in samples from another "
            "laboratory.",
        ],
        warnings=[*remarks(data, plan)],
    )


def _described_split(data: Dataset) -> str:
    if data.groups is not None:
        return f"about two thirds of the samples, with the {counted(len(np.unique(data.groups)), 'group')} kept together,"
    return f"two thirds of {'every class' if data.has_labels else 'the samples'}"


# -------------------------------------------------------------------------------------------------------------- results


def comparison_frame(rows: pd.DataFrame, selected: pd.DataFrame, n_features: int) -> pd.DataFrame:
    """Return one row per classifier and method, the best first; ties go to fewer features."""
    times = outcomes.fit_times(rows)[["dataset", "method", "seconds"]]
    frame = outcomes.honest(rows).merge(agreement_of_choices(rows, selected, n_features), on=outcomes.CASE)
    frame = frame.merge(times, on=["dataset", "method"]).rename(
        columns={"choice": "parameters", "lower": "stability_lower", "upper": "stability_upper"}
    )
    place = {name: number for number, name in enumerate(frame.classifier.unique())}
    metric = metric_of(rows)
    frame = frame.assign(_place=frame.classifier.map(place), _score=-metric.sign * frame[metric.name])
    frame = frame.sort_values(["_place", "_score", "n_features"], kind="stable")
    columns = ["method", "classifier", metric.name, "standard_error", "n_features", "parameters"]
    return frame[[*columns, "stability", "stability_lower", "stability_upper", "seconds"]].reset_index(drop=True)


def records_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return :func:`comparison_frame` for JSON, which knows no NaN."""
    return [
        {str(name): None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
        | {"parameters": json.loads(row["parameters"])}
        for row in frame.to_dict("records")
    ]


def comparison_table(frame: pd.DataFrame, plan: Plan) -> Table:
    """Format :func:`comparison_frame` as a table; the best two of each classifier are marked."""
    rows, metric = [], plan.metric
    for _, group in frame.groupby("classifier", sort=False, observed=True):
        errors = zip(group[metric.name], group.standard_error, strict=True)
        shown = [score_with_error(score, error, metric).partition(" ± ") for score, error in errors]
        levels = list(dict.fromkeys(score for score, *_ in shown))  # the best is first
        for row, (score, sign, error) in zip(group.itertuples(), shown, strict=True):
            rows.append(_table_row(row, Cell(score, f"{sign}{error}".strip(), levels.index(score) + 1)))
    unit = " in %" if metric.is_share else "" if metric.sign > 0 else ", where less is better,"
    caption = (
        f"{metric.heading}{unit} on test parts that nothing was chosen for, mean of {counted(plan.n_splits, 'split')} ± "
        "standard error. Parameters and number of features are chosen by cross-validation inside every training part: the "
        "median of the numbers and the most frequent parameters are shown. Stability: how much the features selected in the "
        "splits agree (1: always the same, 0: as by chance) ± half of a 95 % interval. Seconds: one fit."
    )
    judge = "classifier" if metric.is_for_labels else "regressor"
    header = (judge, "method", metric.title, "features", "parameters", "stability", "seconds")
    return Table(caption, header, tuple(rows), (False, False, True, True, False, True, True))


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _table_row(row: Any, score: Cell) -> tuple[Cell, ...]:
    reach = row.stability_upper - row.stability
    within = f"± {reach:.2f}" if reach >= LEAST_ERROR else ""
    return (
        Cell(CLASSIFIER_NAMES[row.classifier]),
        Cell(row.method),
        score,
        Cell(f"{row.n_features:g}"),
        Cell(", ".join(f"{name}={_text(value)}" for name, value in json.loads(row.parameters).items())),
        Cell("") if math.isnan(row.stability) else Cell(f"{row.stability:.2f}", within),
        Cell(seconds(row.seconds)),
    )
