"""Kernels on one block of X, whose results are summed or concatenated.

A block is an array or a SciPy sparse matrix as stored: neither centred nor scaled. ``columns`` holds the means and units of
its columns, ``weights`` those of its samples (None: all 1), and ``vectors`` are vectors over its samples, stacked as rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from l20fs.design.tiles import BLOCK_ELEMENTS, THIN, strips, tiles
from l20fs.typing import Array

#: Stored values of a sparse matrix that are copied at a time.
GATHERED = 1 << 21


class Columns(NamedTuple):
    """Means and units of the columns of a block.

    ``rest`` is the rounding error of the mean; it matters for columns that are ``far`` from zero, which are centred before
    they are multiplied. The unit of a constant column is infinite, so that its rounding errors are divided to zero.
    """

    mean: Array
    rest: Array
    scale: Array
    far: Array

    @property
    def uncentred(self) -> Columns:
        """Units of the columns, with means of zero."""
        nothing = np.zeros_like(self.mean)
        return self._replace(mean=nothing, rest=nothing)

    def centre(self, part: Array, places: Array | slice) -> Array:
        """Return some of the columns, centred."""
        rest = self.rest[places]
        centred = part - self.mean[places]
        return centred - rest if rest.any() else centred


def sample_energies(block: Any, columns: Columns, weights: Array | None) -> Array:
    """Return ``min(1, w_i) ||x_i||^2`` of the centred and scaled samples, over the columns of this block."""
    mean, _, scale, _ = columns
    if sp.issparse(block):
        values, samples, places = _entries(block)
        shift = mean / scale
        # A full column has no zeros: its mean must not be added and subtracted again, which would lose digits.
        counts = np.bincount(places, minlength=len(shift))
        of_zeros = np.where(counts < block.shape[0], shift * shift, 0.0)
        values /= scale[places]
        values -= shift[places]
        values *= values
        values -= of_zeros[places]
        energies = np.bincount(samples, values, minlength=block.shape[0]) + of_zeros.sum()
    else:
        energies = np.zeros(block.shape[0])
        for rows, own in tiles(block.shape):
            part = columns.centre(block[rows, own], own) / scale[own]
            energies[rows] += np.einsum("ij,ij->i", part, part)
    return energies if weights is None else energies * np.minimum(weights, 1.0)


def largest_sample_energy(block: Any, columns: Columns, weights: Array | None) -> Array:
    """Return the largest energy of the samples of this block."""
    return np.array(sample_energies(block, columns, weights).max())


def products(block: Any, columns: Columns, vectors: Array) -> Array:
    """Return ``vectors @ (X - 1 mean') / scale``, in float64; the product itself is in float32 if both factors are."""
    mean, _, scale, far = columns
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
    """Yield the columns with large means as rows, centred, for some samples at a time; they have few zeros, if any."""
    far = columns.far
    picked = block[:, far] if sp.issparse(block) else block
    for strip in strips(block.shape[0], len(far)):
        part = picked[strip].toarray() if sp.issparse(block) else picked[strip][:, far]
        yield strip, columns.centre(part, far).T


def raw_products(block: Any, vectors: Array) -> Array:
    """Return ``vectors @ X`` of a block without centring."""
    if sp.issparse(block):
        return np.ascontiguousarray((block.T @ np.ascontiguousarray(vectors.T)).T)
    if block.dtype == vectors.dtype:
        return vectors @ block
    raw = np.zeros((len(vectors), block.shape[1]))
    for rows, columns in tiles(block.shape):
        raw[:, columns] += vectors[:, rows] @ block[rows, columns].astype(np.float64)
    return raw


def group_sums(block: Any, group_of: Array, n_groups: int, masks: Array) -> tuple[Array, Array]:
    """Return sums of the samples of each group under several masks, (n_groups, n_masks, n_columns), and their numbers."""
    sums, counts = np.zeros((n_groups, len(masks), block.shape[1])), np.zeros((n_groups, len(masks)))
    for group in range(n_groups):
        samples = np.flatnonzero(group_of == group)
        if len(samples):
            own = masks[:, samples].astype(np.float64)
            sums[group], counts[group] = raw_products(block[samples], own), own.sum(axis=1)
    return sums, counts


def centred_columns(block: Any, columns: Columns, places: Array) -> Array:
    """Return a few columns of a block as rows, centred and scaled, in float64."""
    picked = block[:, places]
    lines = picked.toarray() if sp.issparse(picked) else picked
    return np.ascontiguousarray((columns.centre(lines, places) / columns.scale[places]).T)


def stored_columns(block: Any, places: Array) -> Any:
    """Return a few columns of a block in stored form: an array, or the three arrays of a CSC matrix."""
    picked = block[:, places]
    if not sp.issparse(picked):
        return np.ascontiguousarray(picked)
    picked = picked.tocsc()
    return picked.data, picked.indices, picked.indptr


def remaining_squares(block: Any, columns: Columns, root: Array | None, basis: Array, shares: Array, places: Array) -> Array:
    """Return the sums of squares of a few columns without their ``shares`` of the basis, over the samples of this block."""
    squares = np.empty(len(places))
    step = max(1, BLOCK_ELEMENTS // max(1, block.shape[0]))
    for start in range(0, len(places), step):
        part = slice(start, start + step)
        lines = centred_columns(block, columns, places[part])
        lines = (lines if root is None else lines * root) - shares[:, part].T @ basis
        squares[part] = np.einsum("ij,ij->i", lines, lines)
    return squares


def gram_lines(block: Any, columns: Columns, weights: Array | None, rows: Array, is_plain: bool) -> Array:
    """Return the products of the features ``rows`` with all features over the samples of this block."""
    weights = np.ones((block.shape[0], 1)) if weights is None else weights[:, np.newaxis]
    return gram_lines_of(block, columns, weights, (rows,), is_plain)[0]


def gram_lines_of(
    block: Any, columns: Columns, weights: Array, rows: tuple[Array, ...], is_plain: bool
) -> tuple[Array, ...]:
    """Return the products of features with all features for each column of weights of the samples, many of which may be 0.

    With ``is_plain`` these features are not centred, in all blocks alike: what is missing is their mean times the sum of
    each column, which is zero over all samples by which the columns are centred. Of columns with many zeros only the other
    samples are multiplied.
    """
    found = tuple(np.empty((len(own), block.shape[1])) for own in rows)
    wanted = np.unique(np.concatenate(rows))
    is_thin = np.zeros(len(wanted), dtype=bool)
    if is_plain and sp.issparse(block) and block.format == "csr":
        picked = block[:, wanted].tocsc()
        is_thin = THIN * np.diff(picked.indptr) < block.shape[0]
        if is_thin.any():
            _add_thin(found, block, columns, weights, rows, wanted[is_thin], picked[:, is_thin])
    for lines, own, features in zip(found, weights.T, rows, strict=True):
        left = ~is_thin[np.searchsorted(wanted, features)]
        if left.any():
            counted = np.flatnonzero(own)
            part = block if len(counted) == len(own) else block[counted]
            taken = centred_columns(part, columns.uncentred if is_plain else columns, features[left])
            lines[left] = products(part, columns, taken * own[counted])
    return found


def _add_thin(
    found: tuple[Array, ...],
    block: Any,
    columns: Columns,
    weights: Array,
    rows: tuple[Array, ...],
    wanted: Array,
    picked: Any,
) -> None:
    """Set the products of features with many zeros, of their stored values alone."""
    mean, _, scale, _ = columns
    places = [dict(zip(own.tolist(), range(len(own)), strict=True)) for own in rows]
    for number, feature in enumerate(wanted.tolist()):
        stored = slice(picked.indptr[number], picked.indptr[number + 1])
        samples, values = picked.indices[stored], picked.data[stored].astype(np.float64) / scale[feature]
        users = [user for user, own in enumerate(places) if feature in own]
        lines = weights[np.ix_(samples, users)].T * values
        sums = add_samples(block, samples, lines)
        sums -= np.outer(lines.sum(axis=1), mean)
        sums /= scale
        for user, line in zip(users, sums, strict=True):
            found[user][places[user][feature]] = line


def weighted_sums(block: Any, columns: Columns, weights: Array) -> tuple[Array, Array]:
    """Return ``weights @ Z`` and ``weights @ Z**2`` of the centred and scaled columns Z of a block."""
    mean, _, scale, far = columns
    total = weights.sum(axis=1)[:, np.newaxis]
    if not sp.issparse(block):
        sums, squares = np.zeros((2, len(weights), block.shape[1]))
        for rows, own in tiles(block.shape):
            part = columns.centre(block[rows, own], own) / scale[own]
            sums[:, own] += weights[:, rows] @ part
            squares[:, own] += weights[:, rows] @ np.square(part, out=part)
        return sums, squares
    values = block.astype(np.float64)
    raw = raw_products(values, weights)
    sums = raw - total * mean
    values.data *= values.data
    squares = raw_products(values, weights) - mean * (2.0 * raw - total * mean)
    if len(far):
        sums[:, far] = squares[:, far] = 0.0
        for strip, lines in _far_lines(block, columns):
            sums[:, far] += weights[:, strip] @ lines.T
            squares[:, far] += weights[:, strip] @ np.square(lines.T)
    return sums / scale, squares / np.square(scale)


def add_samples(block: Any, samples: Array, lines: Array) -> Array:
    """Return ``lines @ X[samples]`` of a CSR matrix, in float64, a part of the samples at a time."""
    total = np.zeros((len(lines), block.shape[1]))
    step = max(1, GATHERED * block.shape[0] // max(1, block.nnz))
    for start in range(0, len(samples), step):
        part, values = block[samples[start : start + step]], lines[:, start : start + step]
        if len(lines) == 1:
            each = np.repeat(values[0], np.diff(part.indptr))
            total[0] += np.bincount(part.indices, each * part.data, minlength=block.shape[1])
        else:
            total += raw_products(part, values)
    return total


def twice(block: Any, columns: Columns, weights: Array | None, values: Array) -> Array:
    """Return ``values @ X~' X~`` over the samples of this block."""
    lines = images(block, columns, values)
    return products(block, columns, lines if weights is None else lines * weights)


def images(block: Any, columns: Columns, values: Array) -> Array:
    """Return ``values @ X~'`` over the columns of this block."""
    mean, _, scale, far = columns
    scaled = values / scale
    if sp.issparse(block):
        of_far = scaled[:, far]
        scaled[:, far] = 0.0
        lines = np.ascontiguousarray((block @ np.ascontiguousarray(scaled.T)).T) - (scaled @ mean)[:, np.newaxis]
        for strip, part in _far_lines(block, columns):
            lines[:, strip] += of_far @ part
        return lines
    lines = np.zeros((len(values), block.shape[0]))
    for rows, own in tiles(block.shape):
        lines[:, rows] += scaled[:, own] @ columns.centre(block[rows, own], own).T
    return lines


def outer_products(block: Any, columns: Columns, root: Array | None, precision: str) -> Array:
    """Return ``X~ X~'`` over the columns of this block, (n_samples, n_samples); products are in the given precision."""
    width = max(1, 8 * BLOCK_ELEMENTS // block.shape[0])  # the result is read once per step, and may be long
    found = np.zeros((block.shape[0], block.shape[0]))
    block = block.tocsc() if sp.issparse(block) else block
    for start in range(0, block.shape[1], width):
        lines = centred_columns(block, columns, np.arange(start, min(start + width, block.shape[1])))
        lines = (lines if root is None else lines * root).astype(precision, copy=False)
        found += lines.T @ lines
    return found


def long_columns(block: Any, columns: Columns, vectors: Array, threshold: float) -> tuple[Array, Array]:
    """Return the columns whose products with the vectors have a norm above ``threshold``, and their squared norms."""
    squares = squared_lengths(block, columns, vectors)
    places = np.flatnonzero(squares > threshold * threshold)
    return places, squares[places]


def squared_lengths(block: Any, columns: Columns, vectors: Array) -> Array:
    """Return the squared norm of the products of each column with the vectors."""
    found = products(block, columns, vectors)
    return np.einsum("ij,ij->j", found, found)


def _entries(block: Any) -> tuple[Array, Array, Array]:
    """Return the stored values of a sparse block in float64, with the sample and the column of each."""
    block = block if block.format in ("csr", "csc") else block.tocsr()
    if not block.has_canonical_format:
        block = block.copy()
        block.sum_duplicates()
    lines = np.repeat(np.arange(len(block.indptr) - 1), np.diff(block.indptr))
    values = block.data.astype(np.float64)
    return (values, lines, block.indices) if block.format == "csr" else (values, block.indices, lines)
