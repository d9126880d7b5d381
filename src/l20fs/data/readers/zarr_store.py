"""Reader of zarr stores (.zarr) with an AnnData object or a single matrix."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from l20fs.blocks.sources import refuse_pickled
from l20fs.data.readers.arrays import Arrays, contents_of
from l20fs.data.readers.h5ad import read_anndata
from l20fs.data.readers.in_blocks import left_in_file
from l20fs.data.readers.limits import check_memory, stays_in_file
from l20fs.data.readers.table import Contents, DataError, Request, UnknownColumnError, first_line, require


def read_zarr(request: Request) -> Contents:
    """Read a zarr store; nothing in it is unpickled."""
    zarr = require("zarr", "zarr", request)
    try:
        refuse_pickled(request.file)
        stored = zarr.open(request.file, mode="r")
        if hasattr(stored, "keys"):
            return read_anndata(stored, request, partial(zarr.open, mode="r"))
        return _read_array(stored, request)
    except (DataError, UnknownColumnError):
        raise
    except Exception as error:  # of zarr, its codecs and anndata, whose errors are of many kinds
        raise DataError(f"{request.name}: not a whole zarr store ({first_line(error)}). Copy it again.") from error


def _read_array(stored: Any, request: Request) -> Contents:
    if request.expects_labels:
        raise DataError(f"{request.name}: a zarr array has no labels. Give a file with them (--labels FILE).")
    if request.layer is not None:
        raise DataError(f"{request.name}: layer {request.layer!r} is for AnnData; this is a single array. Leave it out.")
    needed = 3 * math.prod(stored.shape) * np.dtype(stored.dtype).itemsize
    n_missing = stored.nchunks - stored.nchunks_initialized
    note = f"{request.name}: {n_missing} of {stored.nchunks} chunks are not there and count as {stored.fill_value}."
    if stays_in_file(needed, request):
        contents = contents_of(Arrays(left_in_file(stored, request)), request)
    else:
        check_memory(needed, request)
        contents = contents_of(Arrays(np.asarray(stored[:])), request)
    return replace(contents, notes=(*contents.notes, note)) if n_missing else contents
