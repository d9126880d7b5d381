"""Row operators: thresholding, shrinking and ordering of the rows of a matrix.

A row is one feature, a column one class. Every function returns new arrays and does not change its input.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from l20fs.inputs.devices import namespace_of
from l20fs.typing import Array


def is_heavy(squared_norms: Array, threshold: float) -> Array:
    """Return a mask of the rows that survive the hard threshold, with norm strictly above ``threshold``.

    On a tie both 0 and the row are minimisers; 0 is returned, so that the support is the smaller one.

    Examples
    --------
    >>> is_heavy(np.array([25.0, 0.05, 1.0]), threshold=1.0)
    array([ True, False, False])
    """
    return squared_norms > threshold * threshold


def keep_best_rows(V: Array, k: int) -> Array:
    """Keep the ``k`` rows of ``V`` with the largest norms, zero the rest; ties go to the lower index.

    This is the projection on ``{W : ||W||_{2,0} <= k}``.

    Examples
    --------
    >>> keep_best_rows(np.array([[1.0], [-3.0], [3.0]]), k=1)
    array([[ 0.],
           [-3.],
           [ 0.]])
    """
    if k >= len(V) or k < 1:
        return V.copy() if k >= 1 else np.zeros_like(V)
    norms = squared_row_norms(V)
    smallest_kept = np.partition(norms, len(V) - k)[len(V) - k]
    best = norms > smallest_kept
    best[np.flatnonzero(norms == smallest_kept)[: k - int(np.count_nonzero(best))]] = True
    return np.where(best[:, None], V, 0)


def shrink_rows(V: Array, amount: float) -> Array:
    """Shrink the norm of every row of ``V`` by ``amount``, at most to zero (block soft threshold).

    This is the proximal map of ``amount * ||W||_{2,1}``: ``max(0, 1 - amount / ||v||) v``.

    Examples
    --------
    >>> shrink_rows(np.array([[3.0, 4.0], [0.3, 0.4]]), amount=1.0)
    array([[2.4, 3.2],
           [0. , 0. ]])
    """
    norms = np.sqrt(squared_row_norms(V))
    # A row that is no longer than the amount becomes zero; the floor only keeps 0 / 0 out of the division.
    factor = 1.0 - amount / np.maximum(norms, max(amount, np.finfo(V.dtype).tiny))
    return V * factor[:, None].astype(V.dtype, copy=False)


def squared_row_norms(V: Array) -> Array:
    """Return the squared Euclidean norm of every row of ``V``, an array of NumPy or of another library."""
    return np.einsum("ij,ij->i", V, V) if isinstance(V, np.ndarray) else namespace_of(V).sum(V * V, axis=1)


def order_descending(values: Any, *, rtol: float = 1e-9) -> Any:
    """Return the indices that sort ``values`` from large to small; equal values keep the lower index first.

    Values closer than ``rtol`` times the larger count as equal: a matrix product may round two identical
    columns differently, and their order must not depend on that. ``-inf`` and NaN come last.

    Examples
    --------
    >>> order_descending(np.array([1.0, 3.0, 3.0 + 1e-12, np.nan]))
    array([1, 2, 0, 3])
    """
    xp = namespace_of(values)
    clean = xp.where(xp.isnan(values), xp.full_like(values, -np.inf), values)
    order = xp.argsort(-clean)  # the fast sort: ties are put in order below
    ranked = xp.take(clean, order)
    sizes = xp.abs(ranked)
    with np.errstate(invalid="ignore"):  # -inf minus -inf: NaN compares as "not a drop", hence a tie
        is_drop = ranked[:-1] - ranked[1:] > rtol * xp.maximum(sizes[:-1], sizes[1:])
    is_drop = is_drop | (xp.isfinite(ranked[:-1]) & ~xp.isfinite(ranked[1:]))
    if xp is not np:  # where sorting takes less time than a look at who is tied
        groups = xp.cumulative_sum(xp.astype(is_drop, xp.int64), include_initial=True)
        return xp.sort(groups * order.shape[0] + order) % order.shape[0]
    starts_group = np.ones(len(order), dtype=bool)
    starts_group[1:] = is_drop
    is_tied = ~starts_group
    is_tied[:-1] |= ~is_drop
    # Only the tied are sorted again, by group and index in one number.
    order[is_tied] = np.sort(np.cumsum(starts_group[is_tied]) * len(order) + order[is_tied]) % max(1, len(order))
    return order
