"""What a comparison of methods on one data set shows, in plain words. Nothing is said that the rows do not show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pandas as pd

from l20fs.experiments.cells import Dataset
from l20fs.experiments.outcomes import fits, honest_choices
from l20fs.experiments.plan import Plan
from l20fs.experiments.protocol import accuracy, paper_split
from l20fs.experiments.statistics import LEVEL, paired_tests
from l20fs.experiments.tables import CLASSIFIER_NAMES, escape_markdown, frame_table, seconds, to_markdown
from l20fs.text import counted, joined


def verdict(
    rows: pd.DataFrame, frame: pd.DataFrame, plan: Plan, data: Dataset, remarks: list[str], left_out: list[str]
) -> str:
    """Say in Markdown which method is best, by how much, whether that may be chance, how stable and how quick it is.

    Parameters
    ----------
    rows : DataFrame
        A row table of one data set.
    frame : DataFrame
        What :func:`~l20fs.experiments.compare.comparison_frame` makes of it.
    plan : Plan
    data : Dataset
    remarks : list of str
        What is to be known of the splits.
    left_out : list of str
        Methods that were not run.
    """
    title = f"# {counted(len(plan.labels), 'method')} on {escape_markdown(data.name)}"
    parts = [title, *_setting(plan, data), *map(escape_markdown, remarks)]
    for classifier in plan.classifiers:
        here = frame[frame.classifier == classifier]
        chosen = honest_choices(rows[rows.classifier == classifier])
        tests = tests_of_best(here, chosen, len(data.y))
        parts += [f"## {CLASSIFIER_NAMES[classifier]}", *_best(here), *_chance(tests), *_table_of(tests), *_stability(here)]
    parts += ["## Time", *_time(rows, frame), "## What was not run", *_not_run(plan, left_out)]
    return "\n\n".join(parts) + "\n"


def _setting(plan: Plan, data: Dataset) -> Iterator[str]:
    n_samples, n_features = data.X.shape
    split = paper_split(data.y, 0, plan.seed)  # every split has as many of each class
    largest = 100.0 * accuracy("knn", data.X, data.y, split, np.empty(0, dtype=int))
    scale = "scaled to mean 0 and deviation 1 on the training samples" if plan.scale == "zscore" else "taken as they are"
    yield (
        f"{n_samples} samples, {n_features} features ({scale}), {len(np.unique(data.y))} classes. "
        f"{counted(plan.n_splits, 'random split')}: {len(split.train)} samples for training, {len(split.test)} for "
        "testing. Features, their number and all parameters are chosen on training samples alone. To name the largest class "
        f"always would be right for {largest:.2f} % of the test samples."
    )


def _best(here: pd.DataFrame) -> Iterator[str]:
    """Name the first, or all that are first, and how far the next one is."""
    top = here.accuracy.iloc[0]
    first = here[here.accuracy == top]
    sizes = joined([f"{row.method} ({row.n_features:g} features)" for row in first.itertuples()])
    if len(first) > 1:
        text = f"{sizes} share the highest accuracy, {top:.2f} %."
    else:
        text = f"{sizes} has the highest accuracy, {top:.2f} ± {first.standard_error.iloc[0]:.2f} %."
    if len(first) < len(here):
        second = here.iloc[len(first)]
        text += f" The next is {second.method}, {top - second.accuracy:.2f} points below."
    yield text


def in_short(rows: pd.DataFrame, frame: pd.DataFrame, plan: Plan, data: Dataset) -> Iterator[str]:
    """Yield for each classifier which method is first, and whether that may be chance, in a sentence or two."""
    for classifier in plan.classifiers:
        here = frame[frame.classifier == classifier]
        tests = tests_of_best(here, honest_choices(rows[rows.classifier == classifier]), len(data.y))
        yield f"{CLASSIFIER_NAMES[classifier]}: {' '.join([*_best(here), *_chance(tests)])}"


def tests_of_best(here: pd.DataFrame, chosen: pd.DataFrame, n_samples: int) -> pd.DataFrame:
    """Compare the first method with each of the others, over the splits; nothing where there is one method only."""
    if len(here) < 2:
        return pd.DataFrame()
    scores = 100.0 * chosen.pivot(index="split", columns="method", values="accuracy")[list(here.method)]
    n_test = int(chosen.n_test.iloc[0])
    tests = paired_tests(scores, n_test / (n_samples - n_test))
    return tests[tests.method == here.method.iloc[0]]  # in the order of the table, so that the best is never second


def _chance(tests: pd.DataFrame) -> Iterator[str]:
    """Say which differences from the best may be chance."""
    if tests.empty:
        return
    best, differs = str(tests.method.iloc[0]), tests[tests.difference > 0]
    clear = differs.against[differs.p_holm < LEVEL].tolist()
    unclear = differs.against[differs.p_holm >= LEVEL].tolist()
    unknown = differs.against[differs.p_holm.isna()].tolist()
    if clear:
        yield f"Hardly by chance (p below {LEVEL:g}): {best} is better than {joined(clear)}."
    if unclear:
        yield f"May be chance (p of {LEVEL:g} or more): that {best} is better than {joined(unclear)}."
    if unknown:
        yield f"Not known: {best} is better than {joined(unknown)} by the same number in every split, which no test judges."


def _table_of(tests: pd.DataFrame) -> Iterator[str]:
    if tests.empty:
        return
    caption = (
        f"{tests.method.iloc[0]} and each of the others: difference in points, in how many splits it is better, equal and "
        "worse, and the "
        "p-value of the corrected resampled t-test of Nadeau and Bengio. The splits overlap, so that a plain t-test would "
        "be too sure. Holm: for all pairs of methods, since the best was not known beforehand."
    )
    columns = ["against", "difference", "better", "equal", "worse", "p_value", "p_holm"]
    names = {"against": "compared with", "p_value": "p", "p_holm": "p (Holm)"}
    yield to_markdown(frame_table(tests[columns], caption, names, decimals=3)).rstrip()


def _stability(here: pd.DataFrame) -> Iterator[str]:
    """Say how much the selections agree, the most stable first."""
    known = here[here.stability.notna()].sort_values("stability", ascending=False, kind="stable")
    if len(known):
        found = [
            f"{row.method} {row.stability:.2f} ({row.stability_lower:.2f} to {row.stability_upper:.2f})"
            for row in known.itertuples()
        ]
        yield (
            f"Agreement of the features selected in the splits, with 95 % intervals: {joined(found)}. The training parts "
            "share samples, so that selections from other samples would agree less."
        )


def _time(rows: pd.DataFrame, frame: pd.DataFrame) -> Iterator[str]:
    times = frame.drop_duplicates("method").sort_values("seconds", kind="stable")
    found = [f"{row.method} {seconds(row.seconds)} s" for row in times.itertuples()]
    total = (
        fits(rows).fit_seconds.sum()
        + rows[rows.fold.notna()].drop_duplicates(["method", "choice", "split", "fold"]).fit_seconds.sum()
    )
    yield (
        f"One fit on a training part: {joined(found)}. All fits, those of the inner folds too, took {seconds(total)} s. "
        "Fits that run side by side slow each other down."
    )


def _not_run(plan: Plan, left_out: list[str]) -> Iterator[str]:
    yield f"Methods of this package that use labels: {joined(left_out) if left_out else 'all were run'}."
    counts = Counter(variant.label for variant in plan.variants)
    tried = [f"{label} {count}" for label, count in counts.items() if count > 1]
    outside = f"outside the grids (settings tried: {joined(tried)}) and " if tried else ""
    sizes = joined([str(size) for size in plan.sizes])
    yield f"Numbers of features other than {sizes}, and parameters {outside}other than the defaults."
