"""Zarr stores (.zarr): AnnData objects as in an h5ad file, or a single matrix as in a .npy file."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from l20fs.data.readers.arrays import Arrays, contents_of, refuse_no_labels
from l20fs.data.readers.h5ad import read_anndata
from l20fs.data.readers.limits import check_memory, memory_for, stays_in_file
from l20fs.data.readers.table import Contents, DataError, Request, UnknownColumnError, first_line, require
from l20fs.large import as_blocks
from l20fs.large.sources import refuse_pickled


def read_zarr(request: Request) -> Contents:
    """Read a store; nothing in it is unpickled."""
    zarr = require("zarr", "zarr", request)
    try:
        refuse_pickled(request.file)
        stored = zarr.open(request.file, mode="r")
        return read_anndata(stored, request) if hasattr(stored, "keys") else _read_array(stored, request)
    except (DataError, UnknownColumnError):
        raise
    except Exception as error:  # of zarr, its codecs and anndata, whose errors are of many kinds
        raise DataError(f"{request.name}: not a whole zarr store ({first_line(error)}). Copy it again.") from error


def _read_array(stored: Any, request: Request) -> Contents:
    refuse_no_labels("zarr", request)
    needed = 3 * math.prod(stored.shape) * np.dtype(stored.dtype).itemsize
    if stays_in_file(needed, request):
        return contents_of(Arrays(as_blocks(stored, memory_for(request))), request)
    check_memory(needed, request)
    return contents_of(Arrays(np.asarray(stored[:])), request)
