"""What may come in as X in blocks."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from l20fs.large.blocks import Blocks, FileBlocks
from l20fs.large.memory import bytes_of
from l20fs.large.sources import array_blocks, recut, stored_blocks

Array = NDArray[Any]

#: Arrays and sparse matrices that are in a file.
STORED = (("zarr", "Array"), ("h5py", "Dataset"), ("anndata.abc", "CSRDataset"), ("anndata.abc", "CSCDataset"))

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
    # What has not been imported cannot have made X.
    kinds = [getattr(sys.modules.get(module), name, None) for module, name in STORED]
    return isinstance(X, tuple(kind for kind in kinds if kind is not None))


def refuse_blocks(X: Any, estimator: Any) -> None:
    """Refuse a matrix in blocks where it is needed in memory."""
    if isinstance(X, Blocks):
        name = type(estimator).__name__
        raise TypeError(f"X comes in blocks, and {name} needs it in memory. Load it, or use L20Selector.")


def as_blocks(X: Any, max_memory: Any = None) -> Blocks:
    """Cut X into blocks; arrays in memory are taken as well."""
    if is_dask(X):
        from l20fs.large.cluster import dask_blocks

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
    return X[:, columns] if is_dask(X) else file_blocks(X).columns(columns)
