"""Matrix for a fit: raw counts normalised, batches centred, in memory or by block; sums over groups of cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import get_config

from l20fs.design import stored_matrix
from l20fs.inputs.devices import is_dask
from l20fs.typing import Array

#: Number of values per step of the check for raw counts; the first step recognises log-normalised data.
VALUES_AT_ONCE = 1 << 18

#: Number of values (cells times genes) to read at once from a file of which only some genes are needed.
READ_AT_ONCE = 1 << 23

#: A matrix that takes more than so many times scikit-learn's working memory (4 GB by default) is read in blocks.
MANY = 4

#: A gene is constant within the batches if this share of its squares is within them, or less: what rounding leaves.
FLAT = 1e-12

#: Cells from which the means of their batches are subtracted at once, so that no second block is made of them.
CELLS_AT_ONCE = 256

#: Function of a matrix, or of a block and of the cells and genes in it.
Change = Callable[..., Any]


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
        block = (block if block.format in ("csr", "csc") else block.tocsr()).astype(self.dtype)  # a copy of the values
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


def normaliser(stored: Any, place: str = "X") -> tuple[float, Normalise]:
    """Return the median total of the cells, to which they are scaled, and the change that does it, as scanpy does."""
    (totals,) = stored_matrix(stored).images(np.ones((1, stored.shape[1])))
    if (totals < 0.0).any():
        raise ValueError(
            f"{place} has negative values, and normalize=True is for counts. Name a layer with counts, or leave it out."
        )
    median = float(np.median(totals[totals > 0.0])) if (totals > 0.0).any() else 1.0
    dtype = np.dtype(np.float64 if stored.dtype == np.float64 else np.float32)
    return median, Normalise(median / np.where(totals > 0.0, totals, median), dtype)


def changed(X: Any, change: Change, dtype: Any, *, is_sparse: bool) -> Any:
    """Return a matrix with a change applied to it; a Dask array stays one, and is changed as its blocks are read."""
    if not is_dask(X):
        return change(X)
    meta = sp.csr_matrix((0, 0), dtype=dtype) if is_sparse else np.empty((0, 0), dtype=dtype)
    return X.map_blocks(_change_chunk, change=change, dtype=dtype, meta=meta)


def _change_chunk(chunk: Any, change: Change, block_info: Any = None) -> Any:
    rows, columns = block_info[0]["array-location"]
    return change(chunk, slice(*rows), slice(*columns))


def is_sparse_matrix(X: Any) -> bool:
    """Return whether a matrix is sparse, in memory, in a file or in the blocks of a Dask array."""
    return sp.issparse(X._meta) if is_dask(X) else sp.issparse(X) or hasattr(X, "group")


def is_large(X: Any, *, as_dense: bool = False) -> bool:
    """Return whether a matrix does not fit scikit-learn's working memory many times over."""
    n_values = X.group["data"].shape[0] if hasattr(X, "group") and not as_dense else math.prod(X.shape)
    return n_values * X.dtype.itemsize > MANY * get_config()["working_memory"] * 2**20


def batch_centre(X: Any, codes: Array, sizes: Array) -> Centre:
    """Measure the means of the batches, of which ``sizes`` are the numbers of cells."""
    *sums, squares = group_sums(X, codes, len(sizes))
    means = np.array(sums) / sizes[:, np.newaxis]
    of_means = sizes @ np.square(means)
    dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
    return Centre(codes, means.astype(dtype), squares - of_means > FLAT * squares)


def centred(X: Any, change: Centre) -> Any:
    """Return X without the means of the batches, dense; of a large sparse matrix a Dask array that is made as it is read."""
    if sp.issparse(X) and is_large(X, as_dense=True):
        X = in_blocks(X)
    return changed(X, change, change.means.dtype, is_sparse=False)


def in_blocks(X: Any) -> Any:
    """Return a sparse matrix in memory as a Dask array, with blocks of cells that fit when they are dense."""
    try:
        from dask.array import from_array
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "batch_key on a sparse matrix of this size needs dask: pip install 'l20fs[dask]'."
        ) from None
    return from_array(X.tocsr(), chunks=(max(1, READ_AT_ONCE // X.shape[1]), -1), asarray=False)


def group_sums(X: Any, codes: Array, n_groups: int, columns: Array | None = None) -> Array:
    """Return the sums of X over the cells of each group, and in a last row the sums of the squares over all cells.

    Parameters
    ----------
    X : array, sparse matrix or Dask array of shape (n_cells, n_genes)
    codes : array of shape (n_cells,)
        Group of each cell, from 0.
    n_groups : int
    columns : array, optional
        Genes, in increasing order; None: all.

    Examples
    --------
    >>> group_sums(np.array([[1.0, 2.0], [3.0, 0.0], [5.0, 5.0]]), np.array([0, 0, 1]), 2)
    array([[ 4.,  2.],
           [ 5.,  5.],
           [35., 29.]])
    """
    members = list((codes == np.arange(n_groups)[:, np.newaxis]).astype(np.float64))
    found = stored_matrix(X if columns is None else X[:, columns]).moments(members)
    return np.vstack([*(sums for sums, _ in found), np.sum([squares for _, squares in found], axis=0)])
