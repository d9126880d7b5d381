"""What may come in as X in blocks."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from l20fs.blocks.memory import bytes_of
from l20fs.blocks.passes import Blocks, FileBlocks, plain
from l20fs.blocks.sources import array_blocks, recut, stored_blocks
from l20fs.typing import Array

#: Arrays and sparse matrices that are in a file, by module and class: what they are, and how they are loaded.
STORED = {
    ("zarr", "Array"): ("a zarr array", "X[:]"),
    ("h5py", "Dataset"): ("an h5py data set", "X[:]"),
    ("anndata.abc", "CSRDataset"): ("a sparse matrix in a file", "X.to_memory()"),
    ("anndata.abc", "CSCDataset"): ("a sparse matrix in a file", "X.to_memory()"),
}

#: A memory map of which a fit in memory would take more than this share of what it may is read in blocks.
IN_MEMORY_SHARE = 0.25


def is_dask(X: Any) -> bool:
    """Say whether this is a Dask array; a data frame is none."""
    dask_array = sys.modules.get("dask.array")
    return dask_array is not None and isinstance(X, dask_array.Array)


def comes_in_blocks(X: Any, max_memory: Any = None) -> bool:
    """Say whether X is to be read in blocks: Dask arrays and stored arrays are, and memory maps that are too large.

    Examples
    --------
    >>> comes_in_blocks(np.eye(3))
    False
    """
    if isinstance(X, np.memmap):
        return X.nbytes > IN_MEMORY_SHARE * bytes_of(max_memory)
    return isinstance(X, FileBlocks) or is_dask(X) or is_stored(X)


def is_stored(X: Any) -> bool:
    """Say whether this is an array of a zarr or HDF5 file, or the matrix of an AnnData object that a file backs."""
    return _described(X) is not None


def _described(X: Any) -> tuple[str, str] | None:
    """Return what a stored array is, and what loads it into memory; None for anything else."""
    for (module, name), described in STORED.items():
        kind = getattr(sys.modules.get(module), name, None)  # what has not been imported cannot have made X
        if kind is not None and isinstance(X, kind):
            return described
    return None


def refuse_blocks(X: Any, user: str, *, instead: str = ", or use L20Selector") -> None:
    """Refuse a matrix in blocks where it is needed in memory; a Dask array is refused with those of other libraries."""
    if isinstance(X, Blocks):
        raise TypeError(f"X comes in blocks, and {user} needs it in memory. Load it{instead}.")
    stored = _described(X)
    if stored is not None:
        raise TypeError(f"X is {stored[0]}, and {user} needs it in memory. Load it, with {stored[1]}{instead}.")


def as_blocks(X: Any, max_memory: Any = None) -> Blocks:
    """Cut X into blocks; arrays in memory are taken as well."""
    if is_dask(X):
        from l20fs.blocks.dask import dask_blocks

        return dask_blocks(X, bytes_of(max_memory))
    return file_blocks(X, max_memory)


def file_blocks(X: Any, max_memory: Any = None) -> FileBlocks:
    """Cut what this process reads by itself."""
    if isinstance(X, FileBlocks):
        return X if max_memory is None else recut(X, bytes_of(max_memory))
    memory = bytes_of(max_memory)
    return stored_blocks(X, memory) if is_stored(X) else array_blocks(X, memory)


def columns_of(X: Any, columns: Array) -> Any:
    """Return a few columns: lazily of a Dask array, else in memory and sparse if X is."""
    return X.map_blocks(plain, dtype=X.dtype)[:, columns] if is_dask(X) else file_blocks(X).columns(columns)
