"""Reader of h5ad files, which loads only the requested matrix, names and labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.blocks import hdf5_trial
from l20fs.data.readers.frames import has_classes
from l20fs.data.readers.in_blocks import left_in_file
from l20fs.data.readers.limits import check_memory, stays_in_file
from l20fs.data.readers.table import (
    Contents,
    DataError,
    Matrix,
    Request,
    UnknownColumnError,
    find,
    first_line,
    require,
)
from l20fs.text import listed

#: Encoding of tables since anndata 0.8, in which single columns can be read.
BY_COLUMN = "0.2.0"


def read_h5ad(request: Request) -> Contents:
    """Read ``X`` or a layer, the names of genes and cells, and the labels in a column of ``obs``."""
    h5py = require("h5py", "h5ad", request)
    trial = hdf5_trial.start_trial(request.file)
    require("anndata.io", "h5ad", request)  # meanwhile
    try:
        hdf5_trial.finish_trial(trial, request.file)
        with h5py.File(request.file, "r") as stored:
            return read_anndata(stored, request, h5py.File)
    except (DataError, UnknownColumnError):
        raise
    except hdf5_trial.UnsafeFileError as error:
        raise DataError(str(error)) from error
    except Exception as error:  # of HDF5 and anndata, whose errors are of many kinds
        raise DataError(f"{request.name}: not a whole h5ad file ({first_line(error)}). Copy it again.") from error


def read_anndata(stored: Any, request: Request, open_again: Callable[[Any], Any]) -> Contents:
    """Read from an open HDF5 or zarr store; ``open_again`` opens it for blocks that are read later."""
    read = require("anndata.io", "h5ad", request).read_elem
    if "obs" not in stored or "var" not in stored:
        raise DataError(
            f"{request.name}: holds {listed(stored)}, but is no AnnData file. Write it with adata.write_h5ad() or "
            "adata.write_zarr()."
        )
    cells, obs = _columns(stored["obs"], read, _wanted(stored["obs"], read, request))
    genes, _ = _columns(stored["var"], read, [])
    key = _key(stored, request)
    X = _matrix(stored[key], key, read, request, open_again)
    if X.shape != (len(cells), len(genes)):
        raise DataError(
            f"{request.name}: the matrix has shape {X.shape}, for {len(cells)} cells and {len(genes)} genes. Write it again."
        )
    target = request.table_target or ""
    return Contents(X, genes, cells, obs.get(target), obs.get(request.groups or ""), target)


def _wanted(obs: Any, read: Any, request: Request) -> list[str]:
    """Return the columns of ``obs`` to read, with labels and groups, unless a separate file has them."""
    if request.lacks_labels:
        if request.task == "regression":
            raise UnknownColumnError(
                f"{request.name}: which column of obs has the numbers to predict? Name it (--target COLUMN)."
            )
        table = read(obs)
        few = [name for name in table.columns if has_classes(table[name])]
        raise UnknownColumnError(
            f"{request.name}: which column of obs has the labels? Name it (--target COLUMN). Columns that could be the "
            f"labels: {listed(few)}."
        )
    names = _column_names(obs, read)
    in_file = {request.table_target, request.groups if request.labels is None else None} - {None}
    for name in in_file:
        find(str(name), names, "column of obs", request)
    return [name for name in names if name in in_file or name == request.groups]


def _column_names(group: Any, read: Any) -> list[str]:
    if group.attrs.get("encoding-version") == BY_COLUMN:
        return [str(name) for name in group.attrs["column-order"]]
    return [str(name) for name in read(group).columns]


def _columns(group: Any, read: Any, names: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the row names of a table and the requested columns as text; tables of older files are read entirely."""
    if group.attrs.get("encoding-version") == BY_COLUMN:
        index, columns = read(group[group.attrs["_index"]]), {name: read(group[name]) for name in names}
    else:
        table = read(group)
        index, columns = table.index, {name: table[name] for name in names}
    return [str(name) for name in index.tolist()], {name: _texts(column) for name, column in columns.items()}


def _texts(column: Any) -> list[str]:
    """Return a column as text; missing values are empty."""
    import pandas as pd  # comes with anndata

    return ["" if missing else str(value) for value, missing in zip(column.tolist(), pd.isna(column), strict=True)]


def _key(stored: Any, request: Request) -> str:
    """Return the key of the matrix in the store."""
    layers = list(stored["layers"]) if "layers" in stored else []
    if request.layer is not None:
        find(request.layer, layers, "layer", request)
        return f"layers/{request.layer}"
    if "X" not in stored:
        raise DataError(f"{request.name}: has no X. Name a layer (--layer): {listed(layers)}.")
    return "X"


def _matrix(element: Any, key: str, read: Any, request: Request, open_again: Callable[[Any], Any]) -> Matrix:
    """Load the matrix, or return blocks that stay in the file if it is too large."""
    needed = _memory(element)
    if stays_in_file(needed, request):
        return left_in_file(open_again(request.file)[key], request)
    check_memory(needed, request)
    return _checked(read(element))


def _memory(element: Any) -> int:
    """Return the memory in bytes for a matrix as it is stored and as floating-point numbers."""
    is_sparse = hasattr(element, "keys")
    parts = [element[name] for name in ("data", "indices", "indptr")] if is_sparse else [element]
    return 2 * sum(8 * math.prod(part.shape) for part in parts)


def _checked(X: Any) -> Matrix:
    """Return a dense, CSR or CSC matrix of floating-point numbers, after a check of its indices."""
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    if not sp.issparse(X):
        return np.asarray(X)
    X = sp.csc_array(X) if X.format == "csc" else sp.csr_array(X)
    X.check_format(full_check=True)
    return X
