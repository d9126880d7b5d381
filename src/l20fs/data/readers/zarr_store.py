"""Reader of zarr stores (.zarr) with an AnnData object or a single matrix."""

from __future__ import annotations

import numpy as np

from l20fs.data.readers.arrays import Arrays, contents_of
from l20fs.data.readers.h5ad import Store, read_anndata
from l20fs.data.readers.hdf5_layout import LayoutError
from l20fs.data.readers.table import Contents, DataError, Request, UnknownColumnError, first_line, require
from l20fs.data.readers.zarr_layout import check_store, open_store


def read_zarr(request: Request) -> Contents:
    """Read a zarr store, after a check of all its files: nothing in it is unpickled, and nothing outside is read."""
    require("zarr", "zarr", request)
    try:
        layout = check_store(request.file)
        stored = open_store(layout)
        store = Store(stored, layout, request)
        return read_anndata(store) if hasattr(stored, "keys") else _read_array(store)
    except (DataError, UnknownColumnError):
        raise
    except LayoutError as error:
        raise DataError(f"{request.name}: {error}") from error
    except Exception as error:  # of zarr, its codecs and anndata, whose errors are of many kinds
        raise DataError(f"{request.name}: not a whole zarr store ({first_line(error)}). Copy it again.") from error


def _read_array(store: Store) -> Contents:
    request = store.request
    if request.expects_labels:
        raise DataError(f"{request.name}: a zarr array has no labels. Give a file with them (--labels FILE).")
    if request.layer is not None:
        raise DataError(f"{request.name}: layer {request.layer!r} is for AnnData; this is a single array. Leave it out.")
    return contents_of(Arrays(store.matrix("", lambda stored: np.asarray(stored[:]))), request)
