"""Sentences, tables and sections of a validation, for the terminal, the page and the files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from l20fs.cli.feature_list import ALIKE, ListReport
from l20fs.evaluation.metrics import METRICS
from l20fs.evaluation.quoted_score import Estimate
from l20fs.evaluation.validation import Validation, difference
from l20fs.report.confusion import MOST_CLASSES
from l20fs.report.validation import Confusion, Point, Section, Table, point_chart
from l20fs.text import counted, listed, percent, with_interval

#: Points that the picture of numbers shows.
MOST_POINTS = 300

NO_DEVICE = "This is no medical device: a number here must not decide about a patient."


def estimate_text(estimate: Estimate | None, *, is_share: bool = True) -> str:
    """Write a value with its 95 % interval.

    Examples
    --------
    >>> estimate_text(Estimate(1.0, 0.942, 1.0)), estimate_text(Estimate(0.25, 0.1, 0.5), is_share=False)
    ('100 % (94 to 100 %)', '0.25 (0.10 to 0.50)')
    >>> estimate_text(None)
    'not defined'
    """
    return "not defined" if estimate is None else with_interval(*estimate, is_share=is_share)


def score_text(name: str, estimate: Estimate | None) -> str:
    """Write a score with its name."""
    return f"{METRICS[name].title} {estimate_text(estimate, is_share=METRICS[name].is_share)}"


def answer(found: Validation, where: str) -> str:
    """Return the main score in one sentence."""
    name, score = found.main
    return f"{_upper(score_text(name, score))} in {counted(found.n_samples, 'sample')} of {where}."


def comparison(found: Validation, promised: tuple[str, Estimate] | None) -> str | None:
    """Say whether the panel holds what it promised, by the interval of the difference; None if nothing was promised."""
    if promised is None:
        return None
    name, before = promised
    new = found.scores.get(name)
    if new is None:
        return None
    metric = METRICS[name]
    change = difference(new, before)
    texts = [estimate_text(each, is_share=metric.is_share) for each in (new, before)]
    said = f"{metric.title} is {texts[0]} here, and {texts[1]} was promised"
    worse, better = (change.upper < 0.0, change.lower > 0.0) if metric.sign > 0 else (change.lower > 0.0, change.upper < 0.0)
    if worse:
        return f"The panel is worse than promised: {said}."
    if better:
        return f"The panel is better than promised: {said}."
    loss = -change.lower if metric.sign > 0 else change.upper
    at_most = f"{100.0 * loss:.0f} points" if metric.is_share else f"{loss:.2g}"
    seen = f"as far as {counted(found.n_samples, 'sample')} can tell"
    return f"The panel holds {seen}: {said}. It may be worse by up to {at_most}."


def warnings_of(found: Validation) -> list[str]:
    """Return what the reader should beware of."""
    texts = []
    if found.unknown:
        n = sum(found.unknown.values())
        named = ", ".join(f"{name!r} ({count})" for name, count in found.unknown.items())
        share = found.scores["accuracy"]
        right = 0.0 if share is None else share.value * found.n_samples / (found.n_samples + n)
        texts.append(
            f"{counted(n, 'sample')} of classes that the panel does not know, {named}: they cannot be predicted right, and "
            f"are left out of all scores. Counted as errors, the accuracy is {percent(right)}."
        )
    absent = [each.name for each in found.rates if not each.n_samples]
    if absent:
        texts.append(f"No samples of {listed(absent)}: nothing is known about them here.")
    slope = found.calibration_slope
    if slope is not None and slope.upper < 1.0:
        shown = estimate_text(slope, is_share=False)
        texts.append(f"The probabilities are too certain in these samples: the calibration slope is {shown}.")
    return texts


def sections_of(found: Validation, numbers: tuple[Sequence[float], Sequence[float]] | None = None) -> list[Section]:
    """Return the sections of the page; ``numbers`` are measured and predicted ones."""
    hint = "In brackets the 95 % interval: what the score may be in all such samples. It knows chance alone, no bias."
    if found.confusion is not None:
        hint += " A calibration slope below 1: the probabilities are too certain; above 1: not certain enough."
    sections = [Section("Scores", hint, (scores_table(found),))]
    if found.confusion is not None:
        truth = [*found.classes, *(found.unknown or {})]
        counts: list[list[int]] = found.confusion.tolist()
        sections.append(
            Section(
                "Which classes are mixed up?",
                "Rows: the true class. Columns: what it was taken for. Blue: told right. Red: mixed up."
                if len(found.classes) <= MOST_CLASSES
                else f"The most frequent confusions; with {len(found.classes)} classes the table of all would be too large.",
                confusion=Confusion(truth, found.classes, counts),
            )
        )
        sections.append(
            Section(
                "Class by class",
                "Sensitivity, or recall: what share of the samples of the class is found. Specificity: what share of all "
                "others is not taken for it. Expected: the sum of its probabilities, which should be near the number of its "
                "samples.",
                (rates_table(found),),
            )
        )
        sections.append(
            Section(
                "Can the probabilities be trusted?",
                "Each point: samples whose predicted class has about the same probability, and what share of them is told "
                "right. On the dashed line both agree; below it the panel is too sure. The bars are 95 % intervals.",
                (bins_table(found),),
                picture=reliability_chart(found),
            )
        )
    if numbers is not None:
        sections.append(
            Section("Predicted against measured", "On the dashed line both agree.", picture=numbers_chart(*numbers))
        )
    if found.batches:
        hint = "A group that is clearly worse than the others was measured in another way, or has other patients."
        sections.append(Section("Group by group", hint, (batches_table(found),)))
    return sections


def list_sections(report: ListReport) -> list[Section]:
    """Return the sections on a list of features from elsewhere."""
    close = [pair for pair in report.pairs if abs(pair.correlation) >= ALIKE]
    loss = Table(
        ("list", "share not explained"),
        tuple(
            (name, percent(value))
            for name, value in (
                ("this list", report.loss),
                (f"found by l20fs, {counted(len(report.found), 'feature')}", report.loss_found),
                ("no list of this size is below", report.lower_bound),
            )
        ),
        (False, True),
    )
    members = Table(
        ("feature", "loss rises without it by", "variance inflation"),
        tuple(
            (each.name, percent(_rise(each.loss_without, report.loss)), _number(each.inflation))
            for each in sorted(report.members, key=lambda each: each.loss_without)
        ),
        (False, True, True),
    )
    pairs = Table(
        ("feature", "and", "correlation"),
        tuple((pair.first, pair.second, f"{pair.correlation:.2f}") for pair in report.pairs),
        (False, False, True),
    )
    return [
        Section("How far from the best list of this size?", distance_text(report), (loss,)),
        Section(
            "Which features could be left out?",
            "The first ones add least to the others. A variance inflation above 10: the others know it nearly as well.",
            (members,),
        ),
        Section(
            "Which features are alike?", f"{counted(len(close), 'pair')} with a correlation of {ALIKE} or more.", (pairs,)
        ),
    ]


def distance_text(report: ListReport) -> str:
    """Say how far the loss of a list is from that of the best possible one."""
    size = counted(len(report.members), "feature")
    at_most = (
        f"at most {percent(report.distance)} above that of the best possible {size}"
        if math.isfinite(report.distance)
        else f"not comparable: no bound is known for the best possible {size}"
    )
    gain = _rise(report.loss, report.loss_found)
    found = (
        f"l20fs finds {size} with a loss lower by {percent(1.0 - report.loss_found / report.loss)}"
        if gain > 1e-9 and report.loss > 0.0
        else "l20fs finds none that is better"
    )
    return f"The loss of this list in the training table is {at_most}; {found}."


def _rise(value: float, base: float) -> float:
    return value / base - 1.0 if base > 0.0 else 0.0


# ----------------------------------------------------------------------------------------------------------------- tables


def scores_table(found: Validation) -> Table:
    """Return all scores with intervals."""
    rows = [
        (METRICS[name].title, estimate_text(each, is_share=METRICS[name].is_share)) for name, each in found.scores.items()
    ]
    if found.bias is not None:
        rows.append(("bias: predicted less measured", estimate_text(found.bias, is_share=False)))
    if found.calibration_error is not None:
        rows.append(("calibration error", percent(found.calibration_error)))
    if found.confusion is not None:
        rows.append(("calibration slope", estimate_text(found.calibration_slope, is_share=False)))
    return Table(("score", "value"), tuple(rows), (False, True))


def rates_table(found: Validation) -> Table:
    """Return sensitivity and specificity of each class."""
    rows = tuple(
        (
            each.name,
            str(each.n_samples),
            "" if each.n_expected is None else f"{each.n_expected:.1f}",
            estimate_text(each.sensitivity),
            estimate_text(each.specificity),
        )
        for each in found.rates
    )
    return Table(("class", "samples", "expected", "sensitivity", "specificity"), rows, (False, True, True, True, True))


def bins_table(found: Validation) -> Table:
    """Return the reliability of the probabilities."""
    rows = tuple((percent(each.probability), estimate_text(each.right), str(each.n_samples)) for each in found.bins)
    return Table(("mean probability", "told right", "samples"), rows, (True, True, True))


def batches_table(found: Validation) -> Table:
    """Return the main score in each group."""
    name, _ = found.main
    rows = tuple(
        (each.name, str(each.n_samples), estimate_text(each.score, is_share=METRICS[name].is_share))
        for each in found.batches
    )
    return Table(("group", "samples", METRICS[name].title), rows, (False, True, True))


def reliability_chart(found: Validation) -> str:
    """Draw the share that is right against the probability."""
    points = [
        Point(each.probability, each.right.value, counted(each.n_samples, "sample"), (each.right.lower, each.right.upper))
        for each in found.bins
    ]
    return point_chart(
        points,
        label="Share told right against the probability of the predicted class",
        names=("probability of the predicted class", "told right"),
        span=(0.0, 1.0),
        percent=True,
    )


def numbers_chart(measured: Sequence[float], predicted: Sequence[float]) -> str:
    """Draw predicted against measured numbers, of at most 300 samples."""
    step = max(1, math.ceil(len(measured) / MOST_POINTS))
    points = [Point(float(a), float(b)) for a, b in zip(measured[::step], predicted[::step], strict=True)]
    ends = [value for point in points for value in (point.x, point.y)] or [0.0]
    low, high = min(ends), max(ends)
    return point_chart(
        points,
        label="Predicted against measured numbers",
        names=("measured", "predicted"),
        span=(low, high if high > low else low + 1.0),
    )


# ------------------------------------------------------------------------------------------------------------------ files


def scores_frame(found: Validation, part: str) -> pd.DataFrame:
    """Return all numbers with intervals as one long table: part, what, name, value, lower, upper, n_samples."""
    n = found.n_samples
    rows: list[tuple[Any, ...]] = [("score", name, each, n) for name, each in found.scores.items()]
    rows += [("bias", "", found.bias, n)] if found.bias is not None else []
    rows += [("calibration slope", "", found.calibration_slope, n)] if found.confusion is not None else []
    rows += [("sensitivity", each.name, each.sensitivity, each.n_samples) for each in found.rates]
    rows += [("specificity", each.name, each.specificity, n - each.n_samples) for each in found.rates]
    rows += [("reliability", f"{each.probability:.4g}", each.right, each.n_samples) for each in found.bins]
    rows += [("group", each.name, each.score, each.n_samples) for each in found.batches]
    columns = ["part", "what", "name", "value", "lower", "upper", "n_samples"]
    return pd.DataFrame(
        [(part, what, name, *(each or (math.nan,) * 3), size) for what, name, each, size in rows], columns=columns
    )


def as_json(value: Any) -> Any:
    """Return a record for JSON: NaN and infinity are None.

    Examples
    --------
    >>> as_json({"a": Estimate(0.5, 0.1, float("nan")), "b": np.array([1])})
    {'a': {'value': 0.5, 'lower': 0.1, 'upper': None}, 'b': [1]}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif hasattr(value, "__dataclass_fields__"):
        value = {name: getattr(value, name) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {str(name): as_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _number(value: float | None) -> str:
    return "not defined" if value is None else "infinite" if math.isinf(value) else f"{value:.2f}"
