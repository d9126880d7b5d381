"""Kinds of X that are read in blocks, and their conversion to :class:`~l20fs.blocks.passes.Blocks`."""

from __future__ import annotations

import sys
from typing import Any, TypeGuard

import numpy as np
import scipy.sparse as sp

from l20fs.blocks.memory import memory_limit
from l20fs.blocks.passes import Blocks, FileBlocks, as_plain_block
from l20fs.blocks.sources import array_blocks, check_whole, memory_blocks, recut, stored_blocks
from l20fs.typing import Array

#: Arrays and sparse matrices in a file, by module and class: a description, and the call that loads them.
STORED = {
    ("zarr", "Array"): ("a zarr array", "X[:]"),
    ("h5py", "Dataset"): ("an h5py data set", "X[:]"),
    ("anndata.abc", "CSRDataset"): ("a sparse matrix in a file", "X.to_memory()"),
    ("anndata.abc", "CSCDataset"): ("a sparse matrix in a file", "X.to_memory()"),
}

#: A memory map is read in blocks if it is larger than this share of the memory limit.
IN_MEMORY_SHARE = 0.25


def is_blocks(X: Any) -> TypeGuard[Blocks]:
    """Return whether X is already split into blocks.

    Examples
    --------
    >>> is_blocks(np.eye(3)), is_blocks(as_blocks(np.eye(3)))
    (False, True)
    """
    return isinstance(X, Blocks)


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask array; a Dask data frame is not."""
    dask_array = sys.modules.get("dask.array")
    return dask_array is not None and isinstance(X, dask_array.Array)


def is_dask_frame(X: Any) -> bool:
    """Return whether X is a Dask data frame."""
    frames = sys.modules.get("dask.dataframe")
    return frames is not None and isinstance(X, frames.DataFrame)


def array_of_frame(X: Any) -> Any:
    """Return the values of a Dask data frame of numbers as a Dask array, one chunk of known length per partition."""
    from l20fs.blocks.dask import frame_array

    return frame_array(X)


def comes_in_blocks(X: Any, max_memory: Any = None) -> bool:
    """Return whether X is to be read in blocks: a Dask array, a stored array or a large memory map.

    Examples
    --------
    >>> comes_in_blocks(np.eye(3))
    False
    """
    if isinstance(X, np.memmap):
        return X.nbytes > IN_MEMORY_SHARE * memory_limit(max_memory)
    return isinstance(X, Blocks) or is_dask(X) or is_stored(X)


def is_stored(X: Any) -> bool:
    """Return whether X is an array of a zarr or HDF5 file, or the matrix of a backed AnnData object."""
    return _describe_stored(X) is not None


def _describe_stored(X: Any) -> tuple[str, str] | None:
    """Return a description of a stored array and the call that loads it; None for anything else."""
    for (module, name), description in STORED.items():
        kind = getattr(sys.modules.get(module), name, None)  # a module that is not imported cannot have made X
        if kind is not None and isinstance(X, kind):
            return description
    return None


def refuse_blocks(X: Any, user: str, *, instead: str = ", or use L20Selector") -> None:
    """Raise an error for a matrix in blocks if ``user`` needs it in memory."""
    if is_blocks(X):
        raise TypeError(f"X comes in blocks, and {user} needs it in memory. Load it{instead}.")
    stored = _describe_stored(X)
    if stored is not None:
        raise TypeError(f"X is {stored[0]}, and {user} needs it in memory. Load it, with {stored[1]}{instead}.")


def as_blocks(X: Any, max_memory: Any = None) -> Blocks:
    """Split X into blocks; an array or a sparse matrix in memory is accepted as well."""
    if is_dask(X):
        from l20fs.blocks.dask import dask_blocks

        return dask_blocks(X, memory_limit(max_memory))
    if isinstance(X, Blocks) and not isinstance(X, FileBlocks):
        return X
    if is_stored(X):
        check_whole(X)
    return file_blocks(X, max_memory)


def file_blocks(X: Any, max_memory: Any = None) -> FileBlocks:
    """Split an X that this process reads itself."""
    if isinstance(X, FileBlocks):
        return X if max_memory is None else recut(X, memory_limit(max_memory))
    memory = memory_limit(max_memory)
    if sp.issparse(X):
        return memory_blocks(X, memory)
    return stored_blocks(X, memory) if is_stored(X) else array_blocks(X, memory)


def columns_of(X: Any, columns: Array) -> Any:
    """Return a few columns of X: lazily of a Dask array, else in memory, sparse if X is sparse."""
    return X.map_blocks(as_plain_block, dtype=X.dtype)[:, columns] if is_dask(X) else as_blocks(X).columns(columns)
