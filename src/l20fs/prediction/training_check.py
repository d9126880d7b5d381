"""Comparison of new samples with those that a panel was trained on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from l20fs.prediction.discriminant import ClassScatter
from l20fs.prediction.panel_file import Columns
from l20fs.prediction.samples import transformed
from l20fs.text import MOST, counted, listed
from l20fs.typing import Array

#: A value is outside the training range if it exceeds the minimum or maximum by more than this share of their difference.
MARGIN = 0.1
#: Share of the training samples that are nearer to their own class than the limit.
QUANTILE = 0.99
#: The deviation within the classes counts as this share of the whole deviation at least, if a feature separates them fully.
LEAST_SPREAD = 0.01


@dataclass(frozen=True, eq=False)
class TrainingCheck:
    """Values and distances of samples that lie outside the training data.

    Attributes
    ----------
    missing : list of lists of str
        The features of the panel that each sample has no value of.
    outside : list of lists of (str, float)
        The features of each sample with values beyond the training range by more than a tenth of it, with these values,
        as they were given.
    distance : array of shape (n_samples,)
        Mean squared distance to the nearest class mean, in deviations within the classes (for numbers, to the mean in
        whole deviations), over the features that are there; NaN if none is.
    limit : float or None
        Distance that one of a hundred training samples exceeded; None if there were too few samples to say.
    ranges : dict of str to (float, float)
        Smallest and largest value of each feature in training, as they were given.
    """

    missing: list[list[str]]
    outside: list[list[tuple[str, float]]]
    distance: Array
    limit: float | None
    ranges: dict[str, tuple[float, float]]

    def __len__(self) -> int:
        return len(self.missing)

    @property
    def is_far(self) -> Array:
        """Mask of the samples that are farther from all classes than the limit."""
        return np.zeros(len(self), dtype=bool) if self.limit is None else np.asarray(self.distance > self.limit)

    @property
    def is_unusual(self) -> Array:
        """Mask of the samples with anything to tell."""
        return np.array([note != "" for note in self.notes()], dtype=bool)

    def notes(self, far: str = "far from all classes") -> list[str]:
        """Return one line per sample, empty if nothing is outside the training data.

        Examples
        --------
        >>> check = TrainingCheck([["MYC"]], [[("TP53", 9.5)]], np.array([8.0]), 2.0, {"TP53": (1.0, 8.0)})
        >>> check.notes()
        ["1 feature missing ('MYC'); 1 value outside the training range: TP53 9.5 (training 1 to 8); far from all classes"]
        """
        lines = []
        for missing, outside, is_far in zip(self.missing, self.outside, self.is_far, strict=True):
            parts = [f"{counted(len(missing), 'feature')} missing ({listed(missing)})"] if missing else []
            if outside:
                ranges = [self.ranges[name] for name, _ in outside[:MOST]]
                shown = ", ".join(
                    f"{name} {value:.4g} (training {low:.4g} to {high:.4g})"
                    for (name, value), (low, high) in zip(outside, ranges, strict=False)
                )
                more = f" and {len(outside) - MOST} more" if len(outside) > MOST else ""
                parts.append(f"{counted(len(outside), 'value')} outside the training range: {shown}{more}")
            lines.append("; ".join([*parts, far] if is_far else parts))
        return lines


def check_samples(
    given: Array,
    features: Sequence[str],
    transform: str,
    columns: Columns,
    scatter: ClassScatter | None,
    limit: float | None,
) -> TrainingCheck:
    """Compare samples, (n_samples, n_features) with NaN, with the measures of the first of the columns in training."""
    n, values = len(features), transformed(given, features, transform)
    minimum, maximum = (np.array(ends[:n], dtype=np.float64) for ends in (columns.minimum, columns.maximum))
    # A constant feature has no range: rounding must not put its own value outside.
    margin = np.maximum(MARGIN * maximum - MARGIN * minimum, 1e-9 * np.maximum(np.abs(minimum), np.abs(maximum)))
    is_outside = (values < minimum - margin) | (values > maximum + margin)
    centres, spread = centres_of(columns, scatter)
    centres = centres if scatter is None else centres[scatter.shares > 0.0]
    ends = np.column_stack([minimum, maximum])
    ends = np.expm1(ends) if transform == "log1p" else ends
    names = np.array(features, dtype=object)
    return TrainingCheck(
        missing=[names[is_gone].tolist() for is_gone in np.isnan(values)],
        outside=[
            list(zip(names[is_out].tolist(), sample[is_out].tolist(), strict=True))
            for is_out, sample in zip(is_outside, given, strict=True)
        ],
        distance=nearest(values, centres[:, :n], spread[:n]),
        limit=limit,
        ranges=dict(zip(features, map(tuple, ends.tolist()), strict=True)),
    )


def nearest(values: Array, centres: Array, spread: Array) -> Array:
    """Return the mean squared distance of each sample to the nearest centre, over the features that it has.

    Examples
    --------
    >>> nearest(np.array([[1.0, np.nan], [4.0, 2.0]]), np.array([[0.0, 0.0], [4.0, 0.0]]), np.array([1.0, 2.0]))
    array([1. , 0.5])
    """
    used = spread > 0.0
    values, centres, spread = values[:, used], centres[:, used], spread[used]
    n_there = np.count_nonzero(~np.isnan(values), axis=1)
    with np.errstate(over="ignore"):  # an infinite distance is far
        sums = [np.nansum(np.square((values - centre) / spread), axis=1) for centre in centres]
    return np.where(n_there > 0, np.min(sums, axis=0) / np.maximum(n_there, 1), np.nan)


def centres_of(columns: Columns, scatter: ClassScatter | None) -> tuple[Array, Array]:
    """Return the means that samples are compared with, (n_classes, n_columns), and a deviation per column, in units of X.

    They are those of the classes, and without classes the mean and deviation of all samples.
    """
    mean, deviation, divisor = (np.array(each, float) for each in (columns.mean, columns.deviation, columns.divisor))
    if scatter is None:
        return mean[None], deviation
    within = np.sqrt(np.maximum(np.diagonal(scatter.within), 0.0)) * divisor
    return scatter.means * divisor + mean * scatter.fit_intercept, np.maximum(within, LEAST_SPREAD * deviation)


def farthest_by_size(
    columns: Iterable[Array], codes: Array, centres: Array, sizes: Array, weights: Array, spread: Array, ends: Sequence[int]
) -> list[float | None]:
    """Return the 99 % quantile of the distance of training samples to their own class without them, for ascending sizes.

    ``columns`` are the values of the features, one by one. Leaving sample i out of the mean of its class multiplies its
    distance by ``size / (size - weight)``. Samples that are alone in their class are left out.
    """
    own = sizes[codes]
    usable = (weights > 0.0) & (own - weights > 1e-9 * own)
    if not usable.any():
        return [None] * len(ends)
    factor = own[usable] / (own - weights)[usable]
    sums, n_used = np.zeros(len(factor)), 0
    found: list[float | None] = []
    for place, values in enumerate(columns):
        if spread[place] > 0.0:
            sums += np.square((values[usable] - centres[codes[usable], place]) * factor / spread[place])
            n_used += 1
        if place + 1 in ends:
            found.append(float(np.quantile(sums / n_used, QUANTILE)) if n_used else None)
    return found
