"""AnnData files (.h5ad): of the matrix, the names and the labels only what is needed is loaded; sparse stays sparse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.data.readers.limits import check_memory
from l20fs.data.readers.table import (
    Contents,
    DataError,
    Matrix,
    Request,
    UnknownColumnError,
    find,
    first_line,
    listed,
    require,
)


def read_h5ad(request: Request) -> Contents:
    """Read ``X`` or a layer, the names of genes and cells, and labels from a column of ``obs``."""
    h5py, io = require("h5py", "h5ad", request), require("anndata.io", "h5ad", request)
    try:
        with h5py.File(request.file, "r") as stored:
            if "obs" not in stored or "var" not in stored:
                raise DataError(
                    f"{request.name}: an HDF5 file that holds {listed(stored)}, but is no AnnData file. Write it with "
                    "adata.write_h5ad()."
                )
            obs, genes = io.read_elem(stored["obs"]), _names(io.read_elem(stored["var"]))
            y, groups = _labels(obs, request)
            element = _element(stored, request)
            check_memory(_memory(element), request)
            X = _checked(io.read_elem(element))
    except (DataError, UnknownColumnError):
        raise
    except Exception as error:  # of HDF5 and anndata, whose errors are of many kinds
        raise DataError(f"{request.name}: not a whole h5ad file ({first_line(error)}). Copy it again.") from error
    if X.shape != (len(obs), len(genes)):
        raise DataError(f"{request.name}: the matrix has shape {X.shape}, for {len(obs)} cells and {len(genes)} genes.")
    return Contents(X, genes, _names(obs), y, groups, request.table_target or "")


def _names(frame: Any) -> list[str]:
    return [str(name) for name in frame.index]


def _element(stored: Any, request: Request) -> Any:
    """Return the matrix in the file, not yet loaded."""
    if request.layer is not None:
        layers = list(stored.get("layers", ()))
        return stored["layers"][layers[find(request.layer, layers, "layer", request)]]
    if "X" not in stored:
        raise DataError(f"{request.name}: has no X. Name a layer (--layer): {listed(stored.get('layers', ()))}.")
    return stored["X"]


def _memory(element: Any) -> int:
    """Return the bytes that a matrix takes, twice: as it is stored, and as floating-point numbers."""
    parts = (
        [element[name] for name in ("data", "indices", "indptr") if name in element]
        if hasattr(element, "keys")
        else [element]
    )
    return 2 * sum(8 * math.prod(part.shape) for part in parts)


def _checked(X: Any) -> Matrix:
    """Return a matrix of floating-point numbers, dense, CSR or CSC; the indices of a damaged one are refused."""
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    if not sp.issparse(X):
        return np.asarray(X)
    X = sp.csc_array(X) if X.format == "csc" else sp.csr_array(X)
    X.check_format(full_check=True)
    return X


def _labels(obs: Any, request: Request) -> tuple[list[str] | None, list[str] | None]:
    if request.labels is None and request.target is None:
        few = [name for name in obs.columns if 2 <= obs[name].nunique() <= max(20, 0)]
        raise UnknownColumnError(
            f"{request.name}: which column of obs has the labels? Name it (--target COLUMN). Columns that could be the "
            f"labels: {listed(few)}."
        )
    columns = [str(name) for name in obs.columns]
    target, groups = request.table_target, request.groups
    y = None if target is None else _texts(obs.iloc[:, find(target, columns, "column of obs", request)])
    if groups is None or (request.labels is not None and groups not in columns):
        return y, None
    return y, _texts(obs.iloc[:, find(groups, columns, "column of obs", request)])


def _texts(column: Any) -> list[str]:
    """Return a column as text; what is missing is empty."""
    missing = column.isna()
    return ["" if empty else str(value) for value, empty in zip(column.tolist(), missing.tolist(), strict=True)]
