"""What is done to one block of X, wherever it is; the results of blocks are summed or put side by side.

A block is an array or a SciPy sparse matrix as it was stored: neither centred nor scaled. ``columns`` describes its columns,
``weights`` its samples (None: each counts once), and ``vectors`` are lines along its samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from l20fs.checkpoint import digest
from l20fs.design.blocks import BLOCK_ELEMENTS

Array = NDArray[Any]

#: A feature whose mean is at most so many deviations from 0 may be centred after a product instead of before it: that
#: costs less than one digit.
MODEST = 8.0


class Columns(NamedTuple):
    """Means and units of the columns of a block. ``far`` are those that must be centred before they are multiplied."""

    mean: Array
    scale: Array
    far: Array


class Moments(NamedTuple):
    """What one pass measures of each column: weight, mean and centred squares of its samples, and what is not finite."""

    weight: Array
    mean: Array
    squares: Array
    n_missing: Array
    n_infinite: Array


def merged(left: Any, right: Any) -> Moments:
    """Return the moments of the samples of both (Chan, Golub and LeVeque 1983).

    Examples
    --------
    >>> one, two = np.array([[1.0], [3.0]]), np.array([[8.0]])
    >>> merged(moments(one, None), moments(two, None)).squares, np.var([1.0, 3.0, 8.0]) * 3
    (array([26.]), np.float64(26.0))
    """
    left, right = Moments(*left), Moments(*right)
    weight = left.weight + right.weight
    share = right.weight / weight if weight else right.weight
    with np.errstate(over="ignore", invalid="ignore"):  # refused when all is known
        way = right.mean - left.mean
        mean = left.mean + way * share
        squares = left.squares + right.squares + way * way * (left.weight * share)
    return Moments(weight, mean, squares, left.n_missing + right.n_missing, left.n_infinite + right.n_infinite)


def moments(block: Any, weights: Array | None) -> Moments:
    """Measure the columns of a block."""
    if sp.issparse(block):
        return _sparse_moments(block, weights)
    found: Moments | None = None
    for strip in _strips(block.shape):
        part = block[strip].astype(np.float64)
        own = None if weights is None else weights[strip]
        measured = _dense_moments(part, own)
        found = measured if found is None else merged(found, measured)
    assert found is not None
    return found


def _dense_moments(part: Array, weights: Array | None) -> Moments:
    total = float(len(part)) if weights is None else float(weights.sum())
    n_missing, n_infinite = _not_finite(part)
    with np.errstate(over="ignore", invalid="ignore"):
        if weights is None:
            mean = part.mean(axis=0)
            part -= mean
            squares = np.einsum("ij,ij->j", part, part)
        else:
            share = weights / total if total else weights
            mean = share @ part
            part -= mean
            squares = np.einsum("i,ij,ij->j", weights, part, part)
    return Moments(np.array(total), mean, squares, n_missing, n_infinite)


def _sparse_moments(block: Any, weights: Array | None) -> Moments:
    values, samples, columns = _entries(block)
    n_samples, n_features = block.shape

    def sums(of: Array | None) -> Array:
        return np.bincount(columns, of, minlength=n_features).astype(np.float64, copy=False)

    n_missing, n_infinite = np.zeros(n_features, dtype=np.int64), np.zeros(n_features, dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(values.sum()):
            n_missing = np.bincount(columns[np.isnan(values)], minlength=n_features)
            n_infinite = np.bincount(columns[np.isinf(values)], minlength=n_features)
        own = None if weights is None else weights[samples]
        total = float(n_samples) if weights is None else float(weights.sum())
        mean = sums(values if own is None else values * own) / (total or 1.0)
        values -= mean[columns]
        values *= values
        squares = sums(values if own is None else values * own)
        squares += np.maximum(total - sums(own), 0.0) * mean * mean
    return Moments(np.array(total), mean, squares, n_missing, n_infinite)


def _not_finite(part: Array) -> tuple[Array, Array]:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(part.sum()):  # NaN and inf survive a sum
            return np.zeros(part.shape[1], dtype=np.int64), np.zeros(part.shape[1], dtype=np.int64)
    return np.isnan(part).sum(axis=0), np.isinf(part).sum(axis=0)


def sample_energies(block: Any, columns: Columns, weights: Array | None) -> Array:
    """Return ``min(1, w_i) ||x_i||^2`` of the centred and scaled samples, over the columns of this block."""
    mean, scale, _ = columns
    if sp.issparse(block):
        values, samples, places = _entries(block)
        shift = mean / scale
        # A full column has no zeros, and its mean, however large, must not come in and go out again.
        counts = np.bincount(places, minlength=len(shift))
        of_zeros = np.where(counts < block.shape[0], shift * shift, 0.0)
        values /= scale[places]
        values -= shift[places]
        values *= values
        values -= of_zeros[places]
        energies = np.bincount(samples, values, minlength=block.shape[0]) + of_zeros.sum()
    else:
        energies = np.empty(block.shape[0])
        for strip in _strips(block.shape):
            part = (block[strip] - mean) / scale
            energies[strip] = np.einsum("ij,ij->i", part, part)
    return energies if weights is None else energies * np.minimum(weights, 1.0)


def largest_sample_energy(block: Any, columns: Columns, weights: Array | None) -> Array:
    """Return the largest of the energies of the samples of this block."""
    return np.array(sample_energies(block, columns, weights).max())


def products(block: Any, columns: Columns, vectors: Array) -> Array:
    """Return ``vectors @ (X - 1 mean') / scale``, in float64; where both are float32 they are multiplied as such."""
    mean, scale, far = columns
    if sp.issparse(block):
        raw = np.ascontiguousarray((block.T @ np.ascontiguousarray(vectors.T)).T)
    else:
        raw = raw_products(block, vectors)
        if len(far):
            raw[:, far] = 0.0
            for strip in _strips((block.shape[0], len(far))):
                raw[:, far] += vectors[:, strip] @ (block[strip][:, far] - mean[far])
    raw = raw.astype(np.float64, copy=False)
    missing = np.outer(vectors.sum(axis=1, dtype=np.float64), mean)
    if not sp.issparse(block):
        missing[:, far] = 0.0
    raw -= missing
    raw /= scale
    return raw


def raw_products(block: Any, vectors: Array) -> Array:
    """Return ``vectors @ X`` of a block as it is stored."""
    if sp.issparse(block):
        return np.ascontiguousarray((block.T @ np.ascontiguousarray(vectors.T)).T)
    if block.dtype == vectors.dtype:
        return vectors @ block
    raw = np.zeros((len(vectors), block.shape[1]))
    for strip in _strips(block.shape):
        raw += vectors[:, strip] @ block[strip].astype(np.float64)
    return raw


def hashed(block: Any) -> Array:
    """Return the hash of a block, of every value of it."""
    return np.frombuffer(bytes.fromhex(digest(block)), dtype=np.uint8)


def centred_columns(block: Any, columns: Columns, places: Array) -> Array:
    """Return a few columns of a block as lines, centred and scaled, in float64."""
    picked = block[:, places]
    lines = picked.toarray() if sp.issparse(picked) else picked
    return np.ascontiguousarray(((lines - columns.mean[places]) / columns.scale[places]).T)


def stored_columns(block: Any, places: Array) -> Any:
    """Return a few columns of a block as they are stored: an array, or the three arrays of a CSC matrix."""
    picked = block[:, places]
    if not sp.issparse(picked):
        return np.ascontiguousarray(picked)
    picked = picked.tocsc()
    return picked.data, picked.indices, picked.indptr


def gram_lines(block: Any, columns: Columns, weights: Array | None, rows: Array) -> Array:
    """Return the products of the features ``rows`` with all features over the samples of this block."""
    lines = centred_columns(block, columns, rows)
    return products(block, columns, lines if weights is None else lines * weights)


def twice(block: Any, columns: Columns, weights: Array | None, values: Array) -> Array:
    """Return ``values @ X~' X~`` over the samples of this block."""
    lines = images(block, columns, values)
    return products(block, columns, lines if weights is None else lines * weights)


def images(block: Any, columns: Columns, values: Array) -> Array:
    """Return ``values @ X~'`` over the columns of this block."""
    mean, scale, _ = columns
    scaled = values / scale
    if sp.issparse(block):
        return np.ascontiguousarray((block @ np.ascontiguousarray(scaled.T)).T) - (scaled @ mean)[:, np.newaxis]
    lines = np.empty((len(values), block.shape[0]))
    for strip in _strips(block.shape):
        lines[:, strip] = scaled @ (block[strip] - mean).T
    return lines


def outer_products(block: Any, columns: Columns, root: Array | None) -> Array:
    """Return ``X~ X~'`` over the columns of this block, (n_samples, n_samples)."""
    width = max(1, BLOCK_ELEMENTS // block.shape[0])
    found = np.zeros((block.shape[0], block.shape[0]))
    block = block.tocsc() if sp.issparse(block) else block
    for start in range(0, block.shape[1], width):
        lines = centred_columns(block, columns, np.arange(start, min(start + width, block.shape[1])))
        lines = lines if root is None else lines * root
        found += lines.T @ lines
    return found


def long_columns(block: Any, columns: Columns, vectors: Array, threshold: float) -> tuple[Array, Array]:
    """Return which columns have products with the vectors that are longer than ``threshold``, and their squares."""
    squares = squared_lengths(block, columns, vectors)
    places = np.flatnonzero(squares > threshold * threshold)
    return places, squares[places]


def squared_lengths(block: Any, columns: Columns, vectors: Array) -> Array:
    """Return the squared length of the products of each column with the vectors."""
    found = products(block, columns, vectors)
    return np.einsum("ij,ij->j", found, found)


def _entries(block: Any) -> tuple[Array, Array, Array]:
    """Return what a sparse block stores: values of its own in float64, and the sample and the column of each."""
    block = block if block.format in ("csr", "csc") else block.tocsr()
    if not block.has_canonical_format:
        block = block.copy()
        block.sum_duplicates()
    lines = np.repeat(np.arange(len(block.indptr) - 1), np.diff(block.indptr))
    values = block.data.astype(np.float64)
    return (values, lines, block.indices) if block.format == "csr" else (values, block.indices, lines)


def _strips(shape: tuple[int, ...]) -> Iterator[slice]:
    """Cut the samples of a block so that a copy of a part stays close to the processor; few enough to be worth a call."""
    step = max(64, BLOCK_ELEMENTS // max(1, shape[1]))
    return (slice(start, min(start + step, shape[0])) for start in range(0, shape[0], step))
