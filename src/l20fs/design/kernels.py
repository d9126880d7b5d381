"""What is done to one block of X, wherever it is; the results of blocks are summed or put side by side.

A block is an array or a SciPy sparse matrix as it was stored: neither centred nor scaled. ``columns`` describes its columns,
``weights`` its samples (None: each counts once), and ``vectors`` are lines along its samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from l20fs.design.tiles import BLOCK_ELEMENTS
from l20fs.storage.hashing import digest
from l20fs.typing import Array

#: A feature whose mean is at most so many deviations from 0 may be centred after a product instead of before it: that
#: costs less than one digit.
MODEST = 8.0

#: Columns with values between 2**-400 and 2**400 are measured as they are: neither their squares nor those of their rounding
#: vanish or overflow.
SAFE_EXPONENT = 400

#: The unit of a column of zeros, which gives way to any other: as small as one can be divided by.
LEAST_UNIT = 2.0**-1000


#: Samples of a strip at least, and columns of a block at most that is not cut along them, too.
LEAST_STRIP, WIDE = 64, 1 << 14


class Columns(NamedTuple):
    """Means and units of the columns of a block.

    The unit of a constant column is infinite: in it, all that rounding leaves of the column is zero. ``far`` are those that
    must be centred before they are multiplied.
    """

    mean: Array
    scale: Array
    far: Array


class Moments(NamedTuple):
    """What one pass measures of each column: weight, mean and centred squares of its samples, and what is not finite.

    The squares are those of deviations in a ``unit``: a power of two, 1 unless a column is so small or large that its
    squares would vanish or overflow.
    """

    weight: Array
    mean: Array
    squares: Array
    unit: Array
    n_missing: Array
    n_infinite: Array

    @property
    def length(self) -> Array:
        """The root of the centred squares."""
        return self.unit * np.sqrt(self.squares)


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
    unit = np.maximum(left.unit, right.unit)
    with np.errstate(over="ignore", invalid="ignore"):  # refused when all is known
        way = right.mean - left.mean
        mean = left.mean + way * share
        way /= unit
        squares = left.squares * (left.unit / unit) ** 2 + right.squares * (right.unit / unit) ** 2
        squares += way * way * (left.weight * share)
    return Moments(weight, mean, squares, unit, left.n_missing + right.n_missing, left.n_infinite + right.n_infinite)


def moments(block: Any, weights: Array | None) -> Moments:
    """Measure the columns of a block."""
    if sp.issparse(block):
        return _in_units(block if block.format in ("csr", "csc") else block.tocsr(), weights)
    parts: dict[int, Moments] = {}  # by their first column
    for rows, columns in _tiles(block.shape):
        measured = _in_units(block[rows, columns], None if weights is None else weights[rows])
        before = parts.get(columns.start)
        parts[columns.start] = measured if before is None else merged(before, measured)
    return side_by_side(list(parts.values()))


def side_by_side(parts: list[Moments]) -> Moments:
    """Return the moments of columns next to each other."""
    of_columns = zip(*(part[1:] for part in parts), strict=True)
    return Moments(parts[0].weight, *map(np.concatenate, of_columns))


def _in_units(part: Any, weights: Array | None) -> Moments:
    """Measure columns, and those whose squares vanish or overflow once more, in units of their own."""
    measure = _sparse_moments if sp.issparse(part) else _dense_moments
    found = measure(part, weights)
    limit = 4.0**SAFE_EXPONENT
    is_fair = (found.squares > 1.0 / limit) & (found.squares < limit)
    odd = np.flatnonzero(~is_fair & np.isfinite(found.mean))
    if not len(odd):
        return found
    part = part[:, odd].astype(np.float64, copy=False)
    found.unit[odd] = unit = _powers_of_two(_peaks(part))
    # As a rule they are constant here, and there is nothing to measure again.
    is_extreme = (unit != 1.0) & (unit != LEAST_UNIT)
    if is_extreme.any():
        odd, unit = odd[is_extreme], unit[is_extreme]
        part = part[:, is_extreme]
        again = measure(part @ sp.diags_array(1.0 / unit) if sp.issparse(part) else part / unit, weights)
        found.mean[odd], found.squares[odd] = again.mean * unit, again.squares
    return found


def _powers_of_two(sizes: Array) -> Array:
    """Return units for columns with values up to these sizes.

    Examples
    --------
    >>> _powers_of_two(np.array([0.3, 2.0**500, 2.0**-500])) == [1.0, 2.0**500, 2.0**-500]
    array([ True,  True,  True])
    """
    exponents = np.frexp(sizes)[1] - 1
    is_fair = (np.abs(exponents) < SAFE_EXPONENT) | ~np.isfinite(sizes)
    units = np.where(is_fair, 1.0, np.ldexp(1.0, exponents))
    return np.where(sizes > 0.0, np.maximum(units, 2.0 * LEAST_UNIT), LEAST_UNIT)


def _peaks(part: Any) -> Array:
    """Return the largest absolute value of each column."""
    if not sp.issparse(part):
        return np.maximum(part.max(axis=0), -part.min(axis=0))
    values, _, columns = _entries(part)
    peaks = np.zeros(part.shape[1])
    np.maximum.at(peaks, columns, np.abs(values))
    return peaks


def _dense_moments(part: Array, weights: Array | None) -> Moments:
    part = part.astype(np.float64)  # a copy of its own
    total = float(len(part)) if weights is None else float(weights.sum())
    n_missing, n_infinite = _not_finite(part)
    with np.errstate(over="ignore", invalid="ignore"):
        if weights is None:
            mean = part.mean(axis=0)
            part -= mean
            left = part.mean(axis=0)
            squares = np.einsum("ij,ij->j", part, part)
        else:
            share = weights / total if total else weights
            mean = share @ part
            part -= mean
            left = share @ part
            squares = np.einsum("i,ij,ij->j", weights, part, part)
        mean, squares = _corrected(mean, squares, left, total)
    return Moments(np.array(total), mean, squares, np.ones(len(mean)), n_missing, n_infinite)


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
        # In a column that is full as far as samples count, a difference of sums would leave a trace of zeros.
        n_counted = n_samples if weights is None else np.count_nonzero(weights)
        is_full = sums(None if own is None else own != 0.0) == n_counted
        weight_of_zeros = np.where(is_full, 0.0, np.maximum(total - sums(own), 0.0))
        left = (sums(values if own is None else values * own) - weight_of_zeros * mean) / (total or 1.0)
        values *= values
        squares = sums(values if own is None else values * own) + weight_of_zeros * mean * mean
        mean, squares = _corrected(mean, squares, left, total)
    return Moments(np.array(total), mean, squares, np.ones(len(mean)), n_missing, n_infinite)


def _corrected(mean: Array, squares: Array, left: Array, total: float) -> tuple[Array, Array]:
    """Take away what the rounding of a long sum has ``left`` in the deviations: those of a constant column are then zero."""
    return mean + left, np.maximum(squares - total * left * left, 0.0)


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
        energies = np.zeros(block.shape[0])
        for rows, own in _tiles(block.shape):
            part = (block[rows, own] - mean[own]) / scale[own]
            energies[rows] += np.einsum("ij,ij->i", part, part)
    return energies if weights is None else energies * np.minimum(weights, 1.0)


def largest_sample_energy(block: Any, columns: Columns, weights: Array | None) -> Array:
    """Return the largest of the energies of the samples of this block."""
    return np.array(sample_energies(block, columns, weights).max())


def products(block: Any, columns: Columns, vectors: Array) -> Array:
    """Return ``vectors @ (X - 1 mean') / scale``, in float64; where both are float32 they are multiplied as such."""
    mean, scale, far = columns
    raw = raw_products(block, vectors)
    if len(far):
        raw[:, far] = 0.0
        for strip, lines in _far_lines(block, columns):
            raw[:, far] += vectors[:, strip] @ lines.T
    raw = raw.astype(np.float64, copy=False)
    missing = np.outer(vectors.sum(axis=1, dtype=np.float64), mean)
    missing[:, far] = 0.0
    raw -= missing
    raw /= scale
    return raw


def _far_lines(block: Any, columns: Columns) -> Iterator[tuple[slice, Array]]:
    """Return the far columns as lines, centred, of some samples at a time; they have few zeros, if any."""
    mean, _, far = columns
    picked = block[:, far] if sp.issparse(block) else block
    for strip in _strips(block.shape[0], len(far)):
        part = picked[strip].toarray() if sp.issparse(block) else picked[strip][:, far]
        yield strip, (part - mean[far]).T


def raw_products(block: Any, vectors: Array) -> Array:
    """Return ``vectors @ X`` of a block as it is stored."""
    if sp.issparse(block):
        return np.ascontiguousarray((block.T @ np.ascontiguousarray(vectors.T)).T)
    if block.dtype == vectors.dtype:
        return vectors @ block
    raw = np.zeros((len(vectors), block.shape[1]))
    for rows, columns in _tiles(block.shape):
        raw[:, columns] += vectors[:, rows] @ block[rows, columns].astype(np.float64)
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
    mean, scale, far = columns
    scaled = values / scale
    if sp.issparse(block):
        of_far = scaled[:, far]
        scaled[:, far] = 0.0
        lines = np.ascontiguousarray((block @ np.ascontiguousarray(scaled.T)).T) - (scaled @ mean)[:, np.newaxis]
        for strip, part in _far_lines(block, columns):
            lines[:, strip] += of_far @ part
        return lines
    lines = np.zeros((len(values), block.shape[0]))
    for rows, own in _tiles(block.shape):
        lines[:, rows] += scaled[:, own] @ (block[rows, own] - mean[own]).T
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


def _strips(n_samples: int, width: int) -> Iterator[slice]:
    """Cut the samples of a block so that a copy of a part stays close to the processor; few enough to be worth a call."""
    step = max(LEAST_STRIP, BLOCK_ELEMENTS // max(1, width))
    return (slice(start, min(start + step, n_samples)) for start in range(0, n_samples, step))


def _tiles(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
    """Cut a block into strips of its samples, and one that is too wide for that along its columns before."""
    width = shape[1] if shape[1] <= WIDE else BLOCK_ELEMENTS // LEAST_STRIP
    for start in range(0, shape[1], max(1, width)):
        columns = slice(start, min(start + width, shape[1]))
        yield from ((rows, columns) for rows in _strips(shape[0], columns.stop - start))
