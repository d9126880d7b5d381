"""Nearest neighbours of all samples, and sums of differences between them, feature by feature."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from l20fs.inputs.devices import Place
from l20fs.methods import _columns
from l20fs.methods._columns import Columns, as_columns
from l20fs.typing import Array

#: Distances held in memory at a time: 32 MB of float64.
DISTANCES_AT_A_TIME = 2**22
#: Differences held in memory at a time: 1 MB, which fits into the cache of a processor.
DIFFERENCES_AT_A_TIME = 2**17
#: Distances that agree to this many bits, 12 decimal digits, are tied.
DISTANCE_BITS = 40


def distances_by_row(X: Any, metric: str) -> Iterator[tuple[Array, Array]]:
    """Yield blocks of sample indices with their distances to all samples; the distance to itself is infinite.

    Distances are rounded to ``DISTANCE_BITS``, so that rounding errors do not decide between equal distances. Those of
    samples with missing values are :class:`ObservedDistances`, whatever the metric.
    """
    columns = as_columns(X)
    n_samples = columns.shape[0]
    n_rows = max(1, DISTANCES_AT_A_TIME // n_samples)
    is_seen = observed(columns)
    distances_of = partial(distances_from, columns, metric) if is_seen is None else ObservedDistances(columns, is_seen)
    for start in range(0, n_samples, n_rows):
        mantissa, exponent = np.frexp(distances_of(slice(start, min(start + n_rows, n_samples))))
        np.rint(np.ldexp(mantissa, DISTANCE_BITS, out=mantissa), out=mantissa)
        distances = np.ldexp(mantissa, exponent - DISTANCE_BITS, out=mantissa)
        rows = np.arange(start, start + len(distances))
        distances[rows - start, rows] = np.inf
        yield rows, distances


def distances_from(columns: Columns, metric: str, rows: slice) -> Array:
    """Return the distances of some samples to all samples, on the host."""
    if columns.place.is_host:
        ((_, X),) = columns.parts()
        return cdist(X[rows], X, metric)
    xp, total = columns.xp, 0.0
    for _, part in columns.parts():
        # Differences of several samples at once where features are few; the Gram matrix would lose digits.
        step, blocks = max(1, _columns.PART_ELEMENTS // max(1, part.shape[0] * part.shape[1])), []
        for start in range(rows.start, rows.stop, step):
            differences = part[start : min(start + step, rows.stop), None, :] - part[None, :, :]
            blocks.append(xp.sum(xp.abs(differences) if metric == "cityblock" else differences * differences, axis=2))
        total = total + xp.concat(blocks, axis=0)
    return columns.place.fetch(total if metric == "cityblock" else xp.sqrt(total))


def observed(X: Any) -> Array | None:
    """Return the mask of the values that are not missing; None if all are there, as they are on a device.

    Examples
    --------
    >>> observed(np.array([[1.0, np.nan], [2.0, 3.0]]))
    array([[ True, False],
           [ True,  True]])
    """
    columns = as_columns(X)
    if not columns.place.is_host:
        return None
    is_seen = ~np.isnan(columns.on_host())
    return None if is_seen.all() else is_seen


class ObservedDistances:
    """Manhattan distances of samples with missing values: the mean over the features that both have, times all features.

    Samples without a common feature are farther apart than all others.

    Examples
    --------
    >>> X = np.array([[0.0, 0.5], [1.0, np.nan], [np.nan, 1.0]])
    >>> ObservedDistances(X, ~np.isnan(X))(slice(0, 2))
    array([[0., 2., 1.],
           [2., 0., 4.]])
    """

    def __init__(self, X: Any, is_seen: Array) -> None:
        self._filled = np.where(is_seen, as_columns(X).on_host(), 0.0)
        self._is_seen = is_seen.astype(np.float64)

    def __call__(self, rows: slice) -> Array:
        """Return the distances of some samples to all samples."""
        filled, is_seen, n_features = self._filled, self._is_seen, self._filled.shape[1]
        total = cdist(filled[rows], filled, "cityblock")
        # less the values that the other sample misses, which were compared with 0
        total -= filled[rows] @ (1.0 - is_seen).T + (1.0 - is_seen[rows]) @ filled.T
        n_shared = is_seen[rows] @ is_seen.T
        mean = np.maximum(total, 0.0) / np.maximum(n_shared, 1.0)
        return np.where(n_shared > 0.0, mean, 2.0) * n_features


def nearest(distances: Array, k: int) -> Array:
    """Return a mask of the k smallest distances of each row; ties go to the higher index.

    Examples
    --------
    >>> nearest(np.array([[1.0, 2.0, 0.0, 2.0, 2.0]]), 3)
    array([[ True, False,  True, False,  True]])
    """
    kth = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    is_closer, is_tied = distances < kth, distances == kth
    n_open = k - is_closer.sum(axis=1, keepdims=True)
    n_tied_from_here = np.cumsum(is_tied[:, ::-1], axis=1)[:, ::-1]
    return is_closer | (is_tied & (n_tied_from_here <= n_open))


def weighted_differences(X: Any, weights: sp.csr_array) -> Array:
    """Return the sum of ``weights[i, m] * |X[i] - X[m]|`` over all pairs, for every feature, on the host.

    A pair of which one value is missing adds nothing.

    Examples
    --------
    >>> weighted_differences(np.array([[0.0, 5.0], [2.0, 2.0]]), sp.csr_array([[0.0, 10.0], [1.0, 0.0]]))
    array([22., 33.])
    """
    # The difference is symmetric and most neighbours are mutual, so adding both weights halves the work.
    pairs = sp.triu(weights + weights.T, k=1, format="csr")
    most = max(1, int(np.diff(pairs.indptr).max()))
    columns = as_columns(X)
    return columns.place.fetch(
        columns.joined(
            [sum_differences(strip, pairs) for _, strip in columns.strips(width=max(64, DIFFERENCES_AT_A_TIME // most))]
        )
    )


def sum_differences(strip: Any, pairs: sp.csr_array) -> Any:
    """Return the weighted sum of the differences of all pairs, for each column of a strip of X, where it is."""
    place = Place(strip)
    total = place.xp.zeros_like(strip[0, :])
    if place.is_host:  # sample by sample, in the cache of a processor
        has_missing = np.isnan(strip).any()
        for i, (begin, end) in enumerate(zip(pairs.indptr[:-1], pairs.indptr[1:], strict=True)):
            differences = strip[pairs.indices[begin:end]]
            differences -= strip[i]
            np.abs(differences, out=differences)
            if has_missing:
                np.nan_to_num(differences, copy=False)
            total += pairs.data[begin:end] @ differences
        return total
    listed, step = pairs.tocoo(), max(1, _columns.PART_ELEMENTS // strip.shape[1])
    for start in range(0, listed.nnz, step):
        first, second, shares = (place.send(of[start : start + step]) for of in (listed.row, listed.col, listed.data))
        ends = (place.xp.take(strip, samples, axis=0) for samples in (first, second))
        total = total + shares @ place.xp.abs(next(ends) - next(ends))
    return total


def mean_differences(X: Array, weights: sp.csr_array, codes: Array) -> Array:
    """Return the weighted sum of differences with means over the neighbours whose value is there, for every feature.

    The weights of a sample i and its neighbours of one class add up to g. Of these neighbours, those whose value is not
    missing share g in proportion to their weights, feature by feature; without any, or if the value of i is missing, the
    class adds nothing to the feature.

    Examples
    --------
    >>> X, weights = np.array([[0.0], [1.0], [np.nan]]), sp.csr_array([[0.0, 0.5, 0.5], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> mean_differences(X, weights, np.array([0, 1, 1]))
    array([1.])
    """
    total = np.zeros(X.shape[1])
    for i, (begin, end) in enumerate(zip(weights.indptr[:-1], weights.indptr[1:], strict=True)):
        near, shares = weights.indices[begin:end], weights.data[begin:end]
        differences = np.abs(X[near] - X[i])
        is_seen = ~np.isnan(differences)
        differences[~is_seen] = 0.0
        for label in np.unique(codes[near]):
            of_class = codes[near] == label
            seen = shares[of_class] @ is_seen[of_class]
            found = shares[of_class] @ differences[of_class] * shares[of_class].sum()
            total += np.divide(found, seen, out=np.zeros_like(total), where=seen != 0.0)
    return total
