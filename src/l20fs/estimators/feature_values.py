"""Values of features, or of groups of features, in the samples: class means, correlations with a target, levels.

A *unit* is what is selected at once: a feature, or a group of features.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from l20fs.design.column_scale import scaled
from l20fs.evaluation.engine import dense_columns
from l20fs.evaluation.levels import class_level, trend
from l20fs.inputs.targets import Targets
from l20fs.typing import Array

#: Values of columns that are made dense at a time.
MOST_VALUES = 2**22


def unit_values(X: Any, units: Sequence[Array], *, standardised: bool = True) -> Iterator[Array]:
    """Yield the values of each unit in all samples: z-scores, of a group their mean, or those of a feature as they are.

    A missing value stays one, also in the mean of a group.
    """
    n_samples = X.shape[0]
    for batch in _batches(units, max(1, MOST_VALUES // n_samples)):
        columns = dense_columns(X, np.concatenate(batch)).astype(np.float64, copy=False)
        if standardised:
            columns = _standardised(columns)
        for part in np.split(columns, np.cumsum([len(members) for members in batch])[:-1], axis=1):
            yield part.mean(axis=1)


def _standardised(columns: Array) -> Array:
    """Return z-scores; missing values stay missing, and the others are those without them."""
    is_known = np.isfinite(columns)
    if is_known.all():
        return scaled(columns, "zscore")
    z = np.full(columns.shape, np.nan)
    for place, known in enumerate(is_known.T):
        if known.any():
            z[known, place] = scaled(columns[known, place, None], "zscore")[:, 0]
    return z


def class_means(X: Any, units: Sequence[Array], codes: Array) -> list[list[float]]:
    """Return the mean z-score of each unit in each class, that of a group as the mean over its features.

    The mean of a class without a known value is 0, that of all samples.
    """
    n_classes = int(codes.max()) + 1
    rows = []
    for values in unit_values(X, units):
        is_known = np.isfinite(values)
        sizes = np.bincount(codes[is_known], minlength=n_classes)
        sums = np.bincount(codes[is_known], weights=values[is_known], minlength=n_classes)
        rows.append((sums / np.maximum(sizes, 1)).tolist())
    return rows


def target_correlations(X: Any, units: Sequence[Array], numbers: Array) -> list[float]:
    """Return the correlation of each unit with the numbers of the samples; 0 where one of both is constant."""
    found = []
    for values in unit_values(X, units):
        is_known = np.isfinite(values)
        if not is_known.any():
            found.append(0.0)
            continue
        first, second = (scaled(part[is_known, None], "zscore")[:, 0] for part in (values, numbers))
        found.append(float(np.mean(first * second)))
    return found


def levels(X: Any, units: Sequence[Array], targets: Targets, names: Sequence[str]) -> list[str]:
    """Write where each unit is high or low: in which class, or of several targets with which one it varies most.

    Examples
    --------
    >>> from l20fs.inputs.targets import encode_targets
    >>> X, y = np.array([[0.0, 3.0], [1.0, 2.0], [2.0, 2.0]]), np.array(["a", "b", "b"])
    >>> levels(X, [np.array([0]), np.array([1])], encode_targets(y), ["a", "b"])
    ['high in b', 'high in a']
    """
    if targets.codes is not None:
        sizes = np.bincount(targets.codes).tolist()
        return [class_level(means, sizes).text(names) for means in class_means(X, units, targets.codes)]
    of_targets = np.array([target_correlations(X, units, numbers) for numbers in targets.Y.T])
    strongest = np.abs(of_targets).argmax(axis=0)
    return [trend(of_targets[place, unit], names[place]) for unit, place in enumerate(strongest)]


def _batches(units: Sequence[Array], most: int) -> Iterator[list[Array]]:
    """Cut the units into runs of at most ``most`` features, or of one unit: a run is read at once."""
    batch: list[Array] = []
    for members in units:
        if batch and sum(map(len, batch)) + len(members) > most:
            yield batch
            batch = []
        batch.append(members)
    if batch:
        yield batch
