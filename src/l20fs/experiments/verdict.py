"""Sentences about a comparison of methods on one data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pandas as pd

from l20fs.evaluation.metrics import metric_of
from l20fs.experiments.cells import Dataset, column_scale
from l20fs.experiments.outcomes import honest_choices, total_fit_seconds
from l20fs.experiments.plan import Plan
from l20fs.experiments.protocol import majority_share
from l20fs.experiments.statistics import LEVEL, tests_of_best
from l20fs.experiments.tables import CLASSIFIER_NAMES, frame_table, score_text, score_with_error, seconds
from l20fs.report.document import Block, Heading, Paragraph
from l20fs.report.sentences import how_it_was_scaled
from l20fs.text import counted, joined

#: The test behind all statements, in words.
TEST = f"corrected resampled t-test with Holm's correction, level {LEVEL:g}"


def verdict(
    rows: pd.DataFrame, frame: pd.DataFrame, plan: Plan, data: Dataset, remarks: list[str], left_out: list[str]
) -> list[Block]:
    """Return sentences on the best method: its lead, significance, stability and time.

    Parameters
    ----------
    rows : DataFrame
        Row table of one data set.
    frame : DataFrame
        Result of :func:`~l20fs.experiments.compare.comparison_frame`.
    plan : Plan
    data : Dataset
    remarks : list of str
        Remarks on the splits.
    left_out : list of str
        Methods that were not run.
    """
    blocks: list[Block] = [Heading(f"{counted(len(plan.labels), 'method')} on {' '.join(data.name.split())}", level=1)]
    blocks += map(Paragraph, [headline(rows, frame, plan, data), *_setting(plan, data), *remarks])
    for classifier in plan.classifiers:
        here = frame[frame.classifier == classifier]
        tests = tests_of_best(here.method, honest_choices(rows[rows.classifier == classifier]), len(data.y))
        blocks.append(Heading(CLASSIFIER_NAMES[classifier]))
        blocks += map(Paragraph, [*_best(here), *_chance(tests)])
        blocks += _table_of(tests, "points" if plan.metric.is_share else f"the {plan.metric.title}")
        blocks += map(Paragraph, _stability(here))
    blocks += [Heading("Time"), *map(Paragraph, _time(rows, frame))]
    return [*blocks, Heading("What was not run"), *map(Paragraph, _not_run(plan, left_out))]


def _setting(plan: Plan, data: Dataset) -> Iterator[str]:
    n_samples, n_features = data.X.shape
    split = data.split(0, plan.seed)  # every split has as many of each class, unless groups stay together
    together = "" if data.groups is None else f" in the first; {counted(len(np.unique(data.groups)), 'group')} stay together"
    yield (
        f"{n_samples} samples, {n_features} features, {describe_targets(data)}. "
        f"{counted(plan.n_splits, 'random split')}: {len(split.train)} samples for training, {len(split.test)} for "
        f"testing{together}. Features, their number and all parameters are chosen on training samples alone. "
        f"{_without(plan, data)}"
    )
    yield describe_scaling(plan, data)


def describe_targets(data: Dataset) -> str:
    """Return the number of classes, or the range of the numbers, in words."""
    if data.has_labels:
        return f"{len(np.unique(data.y))} classes"
    return f"numbers from {data.y.min():.4g} to {data.y.max():.4g}"


def _without(plan: Plan, data: Dataset) -> str:
    """Return the score that needs no feature in words."""
    metric = plan.metric
    if metric.name == "accuracy":
        largest = 100.0 * majority_share(data.y, data.split(0, plan.seed))
        return f"To name the largest class always would be right for {largest:.2f} % of the test samples."
    chance = data.targets.chance(metric)
    shown = f"{score_text(100.0 * chance, metric)} %" if metric.is_share else score_text(chance, metric)
    return f"Without any feature, by the same prediction for all samples, the {metric.title} would be {shown}."


def describe_scaling(plan: Plan, data: Dataset) -> str:
    """Name the scaling that all methods got, and its reason."""
    if plan.scale is None:
        return "Every method scales the features by itself."
    trains = [data.split(number, plan.seed).train for number in range(plan.n_splits)]
    counts = Counter(column_scale(data, train, plan.scale).rule for train in trains)
    (used, _), *others = counts.most_common()
    text = f"All methods get the same values. {how_it_was_scaled(plan.scale, used)}"
    if plan.scale != "none":
        text += " The deviations are those of the training samples."
    return text + "".join(f" In {number} of {plan.n_splits} splits it is {other!r}." for other, number in others)


def _best(here: pd.DataFrame) -> Iterator[str]:
    """Name the best method or methods, and the distance of the next."""
    metric = metric_of(here)
    scores = here[metric.name]
    top, first = scores.iloc[0], here[scores == scores.iloc[0]]
    best = f"{'highest' if metric.sign > 0 else 'lowest'} {metric.title}"
    unit, points, away = (" %", " points", "below") if metric.is_share else ("", "", "below" if metric.sign > 0 else "above")
    sizes = joined([f"{row.method} ({row.n_features:g} features)" for row in first.itertuples()])
    if len(first) > 1:
        text = f"{sizes} share the {best}, {score_text(top, metric)}{unit}."
    else:
        text = f"{sizes} has the {best}, {score_with_error(top, first.standard_error.iloc[0], metric)}{unit}."
    if len(first) < len(here):
        second = here.iloc[len(first)]
        difference = score_text(abs(top - second[metric.name]), metric, 2)
        text += f" The next is {second.method}, {difference}{points} {away}."
    yield text


def headline(rows: pd.DataFrame, frame: pd.DataFrame, plan: Plan, data: Dataset) -> str:
    """Return the result in one sentence: the best method of all, if the test tells it apart from the others."""
    metric, scores = plan.metric, plan.metric.sign * frame[plan.metric.name]
    if scores.isna().all():
        return "No method has a result yet."
    best = frame.loc[scores.idxmax()]
    here = frame[frame.classifier == best.classifier]
    unit = " %" if metric.is_share else ""
    score = f"{score_with_error(best[metric.name], best.standard_error, metric)}{unit}"
    reached = f"{score} with {best.n_features:g} features, judged by {CLASSIFIER_NAMES[best.classifier]}"
    tests = tests_of_best(here.method, honest_choices(rows[rows.classifier == best.classifier]), len(data.y))
    if tests.empty:
        return f"{best.method}: {metric.title} {reached}."
    same = tests.against[tests.difference == 0].tolist()
    unclear = tests.against[(tests.difference > 0) & ~(tests.p_holm < LEVEL)].tolist()
    extreme = "highest" if metric.sign > 0 else "lowest"
    if not same and not unclear:
        others = "the other method" if len(tests) == 1 else f"all {len(tests)} other methods"
        return f"{best.method} is best: its mean {metric.title} ({reached}) is better than that of {others} ({TEST})."
    share = f"{_few([best.method, *same])} {'share' if same else 'has'} the {extreme} mean {metric.title} ({reached})"
    pronoun = "them" if same else "it"
    rest = f", but {_few(unclear)} cannot be told apart from {pronoun} ({TEST})" if unclear else ""
    return f"No method is clearly best: {share}{rest}."


def _few(names: list[str]) -> str:
    """Join up to three names, or the first two and the number of the others."""
    return joined(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"


def in_short(rows: pd.DataFrame, frame: pd.DataFrame, plan: Plan, data: Dataset) -> Iterator[str]:
    """Yield the best method of each classifier and its significance, in one or two sentences."""
    for classifier in plan.classifiers:
        here = frame[frame.classifier == classifier]
        tests = tests_of_best(here.method, honest_choices(rows[rows.classifier == classifier]), len(data.y))
        yield f"{CLASSIFIER_NAMES[classifier]}: {' '.join([*_best(here), *_chance(tests)])}"


def _chance(tests: pd.DataFrame) -> Iterator[str]:
    """Describe which differences from the best are not significant."""
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


def _table_of(tests: pd.DataFrame, unit: str) -> Iterator[Block]:
    if tests.empty:
        return
    caption = (
        f"{tests.method.iloc[0]} and each of the others: difference in {unit}, in how many splits it is better, equal and "
        "worse, and the "
        "p-value of the corrected resampled t-test of Nadeau and Bengio. The splits overlap, so that a plain t-test would "
        "be too sure. Holm: for all pairs of methods, since the best was not known beforehand."
    )
    columns = ["against", "difference", "better", "equal", "worse", "p_value", "p_holm"]
    names = {"against": "compared with", "p_value": "p", "p_holm": "p (Holm)"}
    yield frame_table(tests[columns], caption, names, decimals=3)


def _stability(here: pd.DataFrame) -> Iterator[str]:
    """Describe the stability of the selections, the most stable first."""
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
    total = total_fit_seconds(rows)
    yield (
        f"One fit on a training part: {joined(found)}. All fits, those of the inner folds too, took {seconds(total)} s. "
        "Fits that run side by side slow each other down."
    )


def _not_run(plan: Plan, left_out: list[str]) -> Iterator[str]:
    kind = "labels" if plan.metric.is_for_labels else "numbers"
    yield f"Methods of this package that use {kind}: {joined(left_out) if left_out else 'all were run'}."
    counts = Counter(variant.label for variant in plan.variants)
    tried = [f"{label} {count}" for label, count in counts.items() if count > 1]
    outside = f"outside the grids (settings tried: {joined(tried)}) and " if tried else ""
    sizes = joined([str(size) for size in plan.sizes])
    yield f"Numbers of features other than {sizes}, and parameters {outside}other than the defaults."
