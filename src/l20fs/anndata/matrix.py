"""Matrix for a fit: raw counts normalised, batches centred, in memory or by block; sums over groups of cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.blocks import FileBlocks, as_blocks, extents, format_bytes, is_dask, memory_limit
from l20fs.blocks.passes import as_plain_block, dense_entries
from l20fs.blocks.sources import recut_dense
from l20fs.typing import Array

#: Number of values per step of the check for raw counts; the first step recognises log-normalised data.
VALUES_AT_ONCE = 1 << 18

#: Number of values (cells times genes) to read at once from a file of which only some genes are needed.
READ_AT_ONCE = 1 << 23

#: A gene is constant within the batches if this share of its squares is within them, or less: what rounding leaves.
FLAT = 1e-12

#: Cells from which the means of their batches are subtracted at once, so that no second block is made of them.
CELLS_AT_ONCE = 256

#: Function of a block and of the cells and genes in it.
Change = Callable[[Any, slice, slice], Any]


def load(stored: Any, candidates: Array) -> Any:
    """Load the columns of the candidate genes; from a file, a few cells at a time. A Dask array stays lazy."""
    if is_dask(stored):
        return stored if candidates.all() else stored[:, np.flatnonzero(candidates)]
    if sp.issparse(stored) or isinstance(stored, np.ndarray):
        X = stored if sp.issparse(stored) else np.asarray(stored)
        return X if candidates.all() else X[:, candidates]
    if candidates.all():
        return stored.to_memory() if hasattr(stored, "to_memory") else np.asarray(stored)
    if getattr(stored, "format", None) == "csc":
        return stored[:, candidates]
    n_cells = max(1, READ_AT_ONCE // len(candidates))
    parts = [stored[start : start + n_cells][:, candidates] for start in range(0, stored.shape[0], n_cells)]
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def largest_count(stored: Any) -> float | None:
    """Return the largest value if the matrix holds counts, whole numbers from 0; None if it does not.

    Of a Dask array only the first block is checked.
    """
    largest = 0.0
    for values in _pieces(stored):
        if not (np.all(values >= 0) and np.all(values == np.floor(values))):
            return None
        largest = max(largest, float(values.max(initial=0)))
    return largest


def _pieces(stored: Any) -> Iterator[Array]:
    """Yield the stored values in small pieces."""
    values = stored.blocks[0, 0].compute() if is_dask(stored) else stored
    if sp.issparse(values):
        values = values.data
    elif hasattr(values, "group"):  # sparse, in a file
        values = values.group["data"]
    step = max(1, VALUES_AT_ONCE // max(1, values[:1].size))
    return (np.asarray(values[start : start + step]) for start in range(0, len(values), step))


@dataclass(frozen=True, eq=False)
class Normalise:
    """Multiply each cell by its factor and take log1p; sparse values stay sparse."""

    factors: Array
    dtype: np.dtype[Any]

    def __call__(self, block: Any, cells: slice = slice(None), genes: slice = slice(None)) -> Any:
        factors = self.factors[cells].astype(self.dtype)
        if not sp.issparse(block):
            return np.log1p(block * factors[:, np.newaxis])
        block = as_plain_block(block).astype(self.dtype)  # a copy of the values
        of_value = np.repeat(factors, np.diff(block.indptr)) if block.format == "csr" else factors[block.indices]
        block.data = np.log1p(block.data * of_value)
        return block


@dataclass(frozen=True, eq=False)
class Centre:
    """Subtract from each cell the means of its batch; the result is dense.

    A gene that is constant within every batch becomes zero, and not what rounding leaves of it.
    """

    codes: Array
    means: Array
    varies: Array

    def __call__(self, block: Any, cells: slice = slice(None), genes: slice = slice(None)) -> Any:
        values = (block.toarray() if sp.issparse(block) else np.array(block)).astype(self.means.dtype, copy=False)
        means, codes = self.means[:, genes], self.codes[cells]
        for start in range(0, len(codes), CELLS_AT_ONCE):
            some = slice(start, start + CELLS_AT_ONCE)
            values[some] -= means[codes[some]]
        values[:, ~self.varies[genes]] = 0.0
        return values


def normaliser(stored: Any, place: str = "X", max_memory: Any = None) -> tuple[float, Normalise]:
    """Return the median total of the cells, to which they are scaled, and the change that does it, as scanpy does."""
    blocks = as_blocks(stored, max_memory)
    parts: list[tuple[Any, ...]] = [()] * len(extents(blocks))
    totals = np.concatenate(blocks.each(_totals, parts)) if blocks.axis == 0 else blocks.total(_totals, parts)
    if (totals < 0.0).any():
        raise ValueError(
            f"{place} has negative values, and log1p=True is for counts. Name a layer with counts, or leave it out."
        )
    median = float(np.median(totals[totals > 0.0])) if (totals > 0.0).any() else 1.0
    dtype = np.dtype(np.float64 if stored.dtype == np.float64 else np.float32)
    return median, Normalise(median / np.where(totals > 0.0, totals, median), dtype)


def _totals(block: Any) -> Array:
    return np.asarray(block.sum(axis=1, dtype=np.float64)).ravel()


def by_block(X: Any, change: Change, dtype: Any, *, is_sparse: bool, max_memory: Any = None) -> Any:
    """Return a matrix in blocks, which a change is applied to as they are read; a Dask array stays one."""
    if is_dask(X):
        meta = sp.csr_matrix((0, 0), dtype=dtype) if is_sparse else np.empty((0, 0), dtype=dtype)
        return X.map_blocks(_change_chunk, change=change, dtype=dtype, meta=meta)
    blocks = as_blocks(X, max_memory)
    assert isinstance(blocks, FileBlocks)
    if blocks.is_sparse and not is_sparse:
        blocks = recut_dense(blocks, memory_limit(max_memory))

    def read(span: slice) -> Any:
        where = (span, slice(None)) if blocks.axis == 0 else (slice(None), span)
        return change(blocks.load(span), *where)

    return replace(blocks, dtype=np.dtype(dtype), is_sparse=is_sparse, load=read)


def _change_chunk(chunk: Any, change: Change, block_info: Any = None) -> Any:
    rows, columns = block_info[0]["array-location"]
    return change(as_plain_block(chunk), slice(*rows), slice(*columns))


def is_sparse_matrix(X: Any) -> bool:
    """Return whether a matrix is sparse, in memory, in a file or in the blocks of a Dask array."""
    if is_dask(X):
        return bool(as_blocks(X).is_sparse)
    return X.is_sparse if isinstance(X, FileBlocks) else sp.issparse(X) or hasattr(X, "group")


def batch_centre(X: Any, codes: Array, sizes: Array, max_memory: Any) -> Centre:
    """Measure the means of the batches, of which ``sizes`` are the numbers of cells."""
    *sums, squares = group_sums(X, codes, len(sizes), max_memory=max_memory)
    means = np.array(sums) / sizes[:, np.newaxis]
    of_means = sizes @ np.square(means)
    dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
    return Centre(codes, means.astype(dtype), squares - of_means > FLAT * squares)


def centred(X: Any, change: Centre, *, in_memory: bool, max_memory: Any) -> Any:
    """Return X without the means of the batches, dense: an array in memory, or blocks that are made as they are read."""
    dtype = change.means.dtype
    if isinstance(X, np.ndarray):
        return change(X)
    if not in_memory:
        return by_block(X, change, dtype, is_sparse=False, max_memory=max_memory)
    needed, limit = X.shape[0] * X.shape[1] * dtype.itemsize, memory_limit(max_memory)
    if needed > limit:
        raise ValueError(
            f"batch_key with these options needs a dense copy of X of {format_bytes(needed)}, above {format_bytes(limit)}. "
            "Restrict the genes with mask_var, for example 'highly_variable', or give a number as n_genes."
        )
    if sp.issparse(X):
        return change(X)
    blocks = as_blocks(by_block(X, change, dtype, is_sparse=False, max_memory=max_memory), max_memory)
    return dense_entries(blocks, np.arange(X.shape[0]), np.arange(X.shape[1]))


def group_sums(X: Any, codes: Array, n_groups: int, columns: Array | None = None, *, max_memory: Any = None) -> Array:
    """Return the sums of X over the cells of each group, and in a last row the sums of the squares over all cells.

    Parameters
    ----------
    X : array, sparse matrix, stored matrix, blocks or Dask array of shape (n_cells, n_genes)
    codes : array of shape (n_cells,)
        Group of each cell, from 0.
    n_groups : int
    columns : array, optional
        Genes, in increasing order; None: all.
    max_memory : int, str or None
        See :class:`~l20fs.L20Selector`.

    Examples
    --------
    >>> group_sums(np.array([[1.0, 2.0], [3.0, 0.0], [5.0, 5.0]]), np.array([0, 0, 1]), 2)
    array([[ 4.,  2.],
           [ 5.,  5.],
           [35., 29.]])
    """
    blocks = as_blocks(X, max_memory)
    columns = np.arange(X.shape[1]) if columns is None else columns
    spans = extents(blocks)
    if blocks.axis == 0:
        return np.asarray(blocks.total(_sums, [(codes[span], n_groups, columns) for span in spans]))
    local = [columns[(columns >= span.start) & (columns < span.stop)] - span.start for span in spans]
    return np.hstack(blocks.each(_sums, [(codes, n_groups, part) for part in local]))


def _sums(block: Any, codes: Array, n_groups: int, columns: Array) -> Array:
    chosen = block if len(columns) == block.shape[1] else block[:, columns]
    one_hot = sp.csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))), shape=(n_groups, len(codes)))
    values = chosen.astype(np.float64)
    sums, squares = one_hot @ values, values.multiply(values) if sp.issparse(values) else np.square(values)
    return np.vstack([sums.toarray() if sp.issparse(sums) else sums, np.asarray(squares.sum(axis=0)).reshape(1, -1)])
