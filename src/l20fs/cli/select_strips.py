"""Values of single samples for the page of ``l20fs select``: few enough for a file, and without the names of the samples."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from l20fs.cli.select_findings import Findings
from l20fs.estimators.feature_values import unit_values
from l20fs.report.measures import (
    LARGEST,
    MOST_OF_A_CLASS,
    MOST_POINTS,
    MOST_STRIP_CLASSES,
    MOST_STRIP_VALUES,
    Strips,
)
from l20fs.typing import Array

#: Fewest values of a class, and of a regression: rather than less, the page has fewer features.
FEWEST_OF_A_CLASS, FEWEST_POINTS = 8, 100


def strips_of(findings: Findings, units: list[Array]) -> Strips | None:
    """Return the values of as many units as the page has room for; None if there is nothing to show."""
    if not units or len(findings.targets) > MOST_STRIP_CLASSES:
        return None
    found = _of_numbers(findings, units) if findings.is_regression else _of_classes(findings, units)
    return found if found.values else None


def _of_classes(findings: Findings, units: list[Array]) -> Strips:
    codes, sizes = findings.classes.codes, findings.classes.sizes
    most = _between(FEWEST_OF_A_CLASS, MOST_STRIP_VALUES // (len(units) * len(sizes)), MOST_OF_A_CLASS)
    room = MOST_STRIP_VALUES // sum(min(size, most) for size in sizes)
    values, medians = [], []
    for each in _values(findings, units[:room]):
        digits = _digits(each)
        parts = [np.sort(part[np.isfinite(part)]) for part in (each[codes == code] for code in range(len(sizes)))]
        values.append([[_rounded(value, digits) for value in _thinned(part, most).tolist()] for part in parts])
        medians.append([_rounded(float(np.median(part)), digits) if len(part) else None for part in parts])
    return Strips(values, medians, [], _unit(findings))


def _of_numbers(findings: Findings, units: list[Array]) -> Strips:
    truth = findings.targets.truth
    most = _between(FEWEST_POINTS, MOST_STRIP_VALUES // len(units), MOST_POINTS)
    shown = slice(None, None, -(-len(truth) // most))
    room = MOST_STRIP_VALUES // len(truth[shown])
    values = [
        [[_rounded(value, _digits(each)) for value in each[shown].tolist()]] for each in _values(findings, units[:room])
    ]
    targets = [float(f"{number:.6g}") for number in truth[shown].tolist()]
    return Strips(values, [[] for _ in values], targets, _unit(findings))


def _values(findings: Findings, units: list[Array]) -> Iterator[Array]:
    """Yield the values of the units up to the first one that is too large for a picture."""
    samples = findings.samples
    X = samples.X if findings.has_groups else samples.X_before  # few samples have values of all features of a group
    for values in unit_values(X, units, standardised=findings.has_groups):
        if np.abs(values[np.isfinite(values)]).max(initial=0.0) > LARGEST:
            return
        yield values


def _unit(findings: Findings) -> str:
    if findings.has_groups:
        filled = ", missing values filled in" if findings.samples.missing else ""
        return f"standard deviations from the mean, mean of the features of the group{filled}"
    return "log(1 + value)" if findings.options.is_log else ""


def _thinned(values: Array, most: int) -> Array:
    """Return sorted values at evenly spaced ranks, the smallest and the largest among them.

    Examples
    --------
    >>> _thinned(np.arange(10), 4).tolist(), _thinned(np.arange(2), 4).tolist()
    ([0, 3, 6, 9], [0, 1])
    """
    if len(values) <= most:
        return values
    return values[np.linspace(0, len(values) - 1, most).round().astype(int)]


def _digits(values: Array) -> int:
    """Return the decimals of which a picture of 1000 dots shows the last."""
    known = values[np.isfinite(values)]
    width = float(np.ptp(known)) if len(known) else 0.0
    return 3 - math.floor(math.log10(width or 1.0))


def _rounded(value: float, digits: int) -> float | None:
    return round(value, digits) + 0.0 if math.isfinite(value) else None


def _between(least: int, number: int, most: int) -> int:
    return max(least, min(number, most))
