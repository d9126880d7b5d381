"""Matrices in blocks: files larger than memory, and Dask arrays.

:func:`open_large` opens a file without reading it; the result is an X for ``L20Selector.fit``:

>>> import tempfile
>>> import numpy as np
>>> folder = tempfile.TemporaryDirectory()
>>> np.save(f"{folder.name}/x.npy", np.eye(6))
>>> X = open_large(f"{folder.name}/x.npy", max_memory="1G")
>>> X.shape, X.dtype, X.axis
((6, 6), dtype('float64'), 0)
>>> del X; folder.cleanup()

This package runs functions on blocks, wherever they are stored; the functions are in :mod:`l20fs.design`.
"""

from l20fs.blocks.inputs import (
    array_of_frame,
    as_blocks,
    columns_of,
    comes_in_blocks,
    is_blocks,
    is_dask,
    is_dask_frame,
    is_stored,
    refuse_blocks,
)
from l20fs.blocks.memory import format_bytes, memory_limit, parse_bytes
from l20fs.blocks.passes import Blocks, FileBlocks, extents
from l20fs.blocks.sources import open_large

__all__ = [
    "Blocks",
    "FileBlocks",
    "array_of_frame",
    "as_blocks",
    "columns_of",
    "comes_in_blocks",
    "extents",
    "format_bytes",
    "is_blocks",
    "is_dask",
    "is_dask_frame",
    "is_stored",
    "memory_limit",
    "open_large",
    "parse_bytes",
    "refuse_blocks",
]
