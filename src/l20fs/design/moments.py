"""Means, deviations and extremes of columns in memory, for what needs them without a problem."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from l20fs.design.tolerances import CONSTANT_SHARE
from l20fs.typing import Array

#: A column whose values differ by no more than this is constant.
LEAST_RANGE = 1e-305

#: Values that are copied at a time.
PART_ELEMENTS = 1 << 20


class Moments(NamedTuple):
    """Mean, standard deviation and extremes of each column; the deviation of a constant one is 0."""

    mean: Array
    deviation: Array
    low: Array
    high: Array

    @property
    def varies(self) -> Array:
        """Mask of the columns that are not constant."""
        return is_varying(self.low, self.high)


def is_varying(low: Array, high: Array) -> Array:
    """Return a mask of the columns that vary, from their extremes.

    Examples
    --------
    >>> is_varying(np.array([1e8, 1e8, 0.0]), np.array([1e8 * (1 + 4e-16), 1e8 + 3e-7, 0.0]))
    array([False,  True, False])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return high - low > np.maximum(CONSTANT_SHARE * np.maximum(np.abs(low), np.abs(high)), LEAST_RANGE)


def centre(values: Any, weights: Any, xp: Any) -> Any:
    """Subtract their weighted mean from the columns of a matrix in place, and return it; equal values become zero exactly.

    They are shifted by the first row of the largest weight before: neither a sum nor a difference loses digits of a column
    far from zero, nor to a sample that does not count.

    Examples
    --------
    >>> values = np.array([[1e15 + 1.0], [1e15 + 2.0]])
    >>> centre(values, None, np) - 1e15, values.tolist()
    (array([1.5]), [[-0.5], [0.5]])
    """
    first = xp.asarray(values[0 if weights is None else int(xp.argmax(weights)), :], copy=True)
    values -= first[None, :]
    mean = xp.mean(values, axis=0) if weights is None else (weights / xp.sum(weights)) @ values
    values -= mean[None, :]
    return first + mean


def centred(X: Array, weights: Array | None = None) -> Array:
    """Return a centred float64 copy of a dense array.

    Examples
    --------
    >>> centred(np.array([[1.0], [2.0]]))[:, 0].tolist()
    [-0.5, 0.5]
    """
    values = np.array(X, dtype=np.float64)
    centre(values, weights, np)
    return values


def measure(X: Any, weights: Array | None = None) -> Moments:
    """Return the moments of the columns of a dense array or a sparse matrix.

    Examples
    --------
    >>> found = measure(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> found.mean.tolist(), found.deviation.tolist(), found.varies.tolist()
    ([2.0, 5.0], [1.0, 0.0], [True, False])
    >>> measure(sp.csr_array([[0.0, 2.0], [4.0, 2.0]])).deviation.tolist()
    [2.0, 0.0]
    """
    if weights is not None and not weights.all():
        X, weights = X[weights > 0.0], weights[weights > 0.0]
    if sp.issparse(X):
        return _measure_stored(X, weights)
    parts = []
    step = max(1, PART_ELEMENTS // max(1, X.shape[0]))
    for start in range(0, X.shape[1], step):
        raw = np.asarray(X[:, start : start + step], dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            part = raw.copy()
            mean = centre(part, weights, np)
            squares = np.einsum("ij,ij->j", part, part) if weights is None else weights @ (part * part)
        parts.append((mean, squares, raw.min(axis=0), raw.max(axis=0)))
    mean, squares, low, high = (np.concatenate(each) for each in zip(*parts, strict=True))
    return _moments(mean, squares, low, high, X.shape[0] if weights is None else float(weights.sum()))


def _measure_stored(X: Any, weights: Array | None) -> Moments:
    stored = X.tocsc()
    if not stored.has_canonical_format:
        stored = stored.copy()
        stored.sum_duplicates()
    n_samples, n_columns = stored.shape
    counts = np.diff(stored.indptr)
    column, values = np.repeat(np.arange(n_columns), counts), stored.data.astype(np.float64)
    own = np.ones(len(values)) if weights is None else weights[stored.indices]
    total = float(n_samples) if weights is None else float(weights.sum())
    of_zeros = np.where(counts < n_samples, total - np.bincount(column, own, n_columns), 0.0)
    mean = np.bincount(column, own * values, n_columns) / total
    squares = np.bincount(column, own * np.square(values - mean[column]), n_columns) + of_zeros * mean * mean
    low, high = (np.where(counts < n_samples, 0.0, start) for start in (np.inf, -np.inf))
    np.minimum.at(low, column, values)
    np.maximum.at(high, column, values)
    return _moments(mean, squares, low, high, total)


def _moments(mean: Array, squares: Array, low: Array, high: Array, total: float) -> Moments:
    return Moments(mean, np.where(is_varying(low, high), np.sqrt(squares / total), 0.0), low, high)
