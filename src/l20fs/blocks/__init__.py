"""Matrices that come in blocks: files larger than memory, and Dask arrays.

A reader that meets a large file returns what :func:`open_large` gives it and passes it to ``L20Selector.fit`` as X:

>>> import tempfile
>>> import numpy as np
>>> folder = tempfile.TemporaryDirectory()
>>> np.save(f"{folder.name}/x.npy", np.eye(6))
>>> X = open_large(f"{folder.name}/x.npy", max_memory="1G")
>>> X.shape, X.dtype, X.axis
((6, 6), dtype('float64'), 0)
>>> del X; folder.cleanup()

What is here knows where the blocks are and how to run a function on each of them; what is computed is said in
:mod:`l20fs.design`.
"""

from l20fs.blocks.inputs import as_blocks, columns_of, comes_in_blocks, is_dask, is_stored, refuse_blocks
from l20fs.blocks.memory import bytes_of, shown
from l20fs.blocks.pass_cache import Journal
from l20fs.blocks.passes import Blocks, FileBlocks, extents
from l20fs.blocks.sources import open_large

__all__ = [
    "Blocks",
    "FileBlocks",
    "Journal",
    "as_blocks",
    "bytes_of",
    "columns_of",
    "comes_in_blocks",
    "extents",
    "is_dask",
    "is_stored",
    "open_large",
    "refuse_blocks",
    "shown",
]
