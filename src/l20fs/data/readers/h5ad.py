"""Reader of h5ad files, which loads only the requested matrix, names and labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.data.readers import trials
from l20fs.data.readers.frames import has_classes
from l20fs.data.readers.hdf5_layout import FileLayout, LayoutError
from l20fs.data.readers.in_blocks import left_in_file
from l20fs.data.readers.limits import check_memory, memory_for, stays_in_file
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
from l20fs.data.readers.zarr_layout import StoreLayout, describe_missing, refuse_lost_chunks
from l20fs.text import listed

#: Group of a table with the categories of its columns, in files before anndata 0.8.
CATEGORIES = "__categories"

#: Share of the memory limit (1 / 8) for a chunk that is decompressed.
SHARE_OF_CHUNK = 8


@dataclass
class Store:
    """Open HDF5 file or zarr store, in which every element is checked before it is read."""

    stored: Any
    layout: FileLayout | StoreLayout
    request: Request
    #: Bytes of what has been read.
    held: int = field(default=0, init=False)

    @cached_property
    def _most(self) -> int:
        most = memory_for(self.request)
        return 2**62 if most is None else most

    def load(self, path: str) -> Any:
        """Read an element other than the matrix."""
        arrays = self.layout.below(path)
        needed = sum(array.memory(self._most) for array in arrays)
        check_memory(self.held + needed, self.request)
        self.held += needed
        self._check_chunks(arrays, is_matrix=False)
        return self.read(self.stored[path])

    def read(self, element: Any) -> Any:
        """Read an element that was checked; anndata warns of each one that is older than 0.8."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*written without encoding metadata")
            return require("anndata.io", "h5ad", self.request).read_elem(element)

    def names(self, path: str) -> list[str]:
        """Return the names of the elements of a group, none if it is not there."""
        if path not in self.stored:
            return []
        self.layout.check_path(path)
        return list(self.stored[path])

    def matrix(self, path: str, read: Callable[[Any], Any]) -> Matrix:
        """Read the matrix, or return blocks that stay in the file if it is too large."""
        arrays = self.layout.below(path)
        element = self.stored[path] if path else self.stored
        dtype = np.dtype(element["data"].dtype if hasattr(element, "keys") else element.dtype)
        if dtype.kind not in "biuf":
            raise DataError(f"{self.request.name}: the values are {dtype}. They must be real numbers.")
        self._check_chunks(arrays, is_matrix=True)
        refuse_lost_chunks(arrays, element)
        needed = 2 * sum(array.memory(self._most) for array in arrays)
        if stays_in_file(needed, self.request):
            return left_in_file(path, self.request)
        check_memory(self.held + needed, self.request)
        return read(element)

    def _check_chunks(self, arrays: Any, *, is_matrix: bool) -> None:
        """Refuse chunks that inflate, and names that were never written; tell which other chunks are missing."""
        for array in arrays:
            array.check_chunks(self._most // SHARE_OF_CHUNK)
            if array.n_missing and (array.is_text or not (is_matrix or array.may_omit)):
                raise DataError(
                    f"{self.request.name}: {array.name!r}: {array.n_missing} of {array.n_chunks} chunks were never written, "
                    "so that names or labels would be empty. Copy it again."
                )
        # A mask that is not there says that nothing is missing.
        missing = describe_missing([array for array in arrays if not (array.may_omit and array.name.endswith("/mask"))])
        if missing:
            self.request.guess(None, None, missing)


def read_h5ad(request: Request) -> Contents:
    """Read ``X`` or a layer, the names of genes and cells, and the labels in a column of ``obs``."""
    h5py = require("h5py", "h5ad", request)
    trial = trials.start_trial(request.file)
    try:
        require("anndata.io", "h5ad", request)  # meanwhile
    except BaseException:
        trials.stop_trial(trial)
        raise
    try:
        trials.finish_trial(trial, request.file)
        with h5py.File(request.file, "r") as stored:
            return read_anndata(Store(stored, FileLayout(stored), request))
    except (DataError, UnknownColumnError):
        raise
    except LayoutError as error:
        raise DataError(f"{request.name}: {error}") from error
    except Exception as error:  # of HDF5 and anndata, whose errors are of many kinds
        raise DataError(f"{request.name}: not a whole h5ad file ({first_line(error)}). Copy it again.") from error


def read_anndata(store: Store) -> Contents:
    """Read an AnnData object from an open HDF5 or zarr store."""
    stored, request = store.stored, store.request
    if "obs" not in stored or "var" not in stored:
        raise DataError(
            f"{request.name}: holds {listed(stored)}, but is no AnnData file. Write it with adata.write_h5ad() or "
            "adata.write_zarr()."
        )
    obs, var = Table(store, "obs"), Table(store, "var")
    wanted = _wanted(obs, request)
    cells, genes = obs.names(), var.names()
    columns = {name: _texts(obs.column(name)) for name in wanted}
    key = _key(store)
    store.layout.below(key)
    shape = _shape(stored[key])
    if shape != (len(cells), len(genes)):
        raise DataError(
            f"{request.name}: the matrix has shape {shape}, for {len(cells)} cells and {len(genes)} genes. Write it again."
        )
    X = store.matrix(key, lambda element: _checked(store.read(element)))
    target = request.table_target or ""
    beside = {name: columns[name] for name in request.beside if name in columns}
    return Contents(X, genes, cells, columns.get(target), beside, target)


class Table:
    """Table of a store, ``obs`` or ``var``, of which single columns are read."""

    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path = store, path
        store.layout.check_path(path)
        self._group = store.stored[path]
        if not hasattr(self._group, "keys"):
            raise LayoutError(f"{path!r} is a table of anndata before 0.7. Read it with anndata, and write it again.")
        self._index = str(self._group.attrs["_index"])
        if "/" in self._index or self._index not in self._group:
            raise LayoutError(
                f"the names of {path!r} are said to be in {self._index!r}, which is not there. Write it again."
            )

    @property
    def columns(self) -> list[str]:
        """Sorted names of the columns, as the table has them and not as it says."""
        return [name for name in sorted(self._group) if name not in (self._index, CATEGORIES)]

    def names(self) -> list[str]:
        """Read the names of the rows."""
        return [str(name) for name in self._store.load(f"{self._path}/{self._index}").tolist()]

    def column(self, name: str) -> Any:
        """Read a column; in old files, its categories are elsewhere in the table."""
        values = self._store.load(f"{self._path}/{name}")
        if "categories" not in self._group[name].attrs:
            return values
        import pandas as pd  # comes with anndata

        return pd.Categorical.from_codes(values, self._store.load(f"{self._path}/{CATEGORIES}/{name}"))


def _wanted(obs: Table, request: Request) -> list[str]:
    """Return the columns of ``obs`` to read, with labels and groups, unless a separate file has them."""
    names = obs.columns
    if request.lacks_labels:
        if request.task == "regression":
            raise UnknownColumnError(
                f"{request.name}: which column of obs has the numbers to predict? Name it (--target COLUMN)."
            )
        import pandas as pd  # comes with anndata

        few = [name for name in names if has_classes(pd.Series(obs.column(name)))]
        raise UnknownColumnError(
            f"{request.name}: which column of obs has the labels? Name it (--target COLUMN). Columns that could be the "
            f"labels: {listed(few)}."
        )
    in_file = {request.table_target, *(request.beside if request.labels is None else [])} - {None}
    for name in in_file:
        find(str(name), names, "column of obs", request)
    return [name for name in names if name in in_file or name in request.beside]


def _texts(column: Any) -> list[str]:
    """Return a column as text; missing values are empty."""
    import pandas as pd  # comes with anndata

    return ["" if missing else str(value) for value, missing in zip(column.tolist(), pd.isna(column), strict=True)]


def _key(store: Store) -> str:
    """Return the key of the matrix in the store."""
    stored, request = store.stored, store.request
    layers = store.names("layers")
    if request.layer is not None:
        find(request.layer, layers, "layer", request)
        return f"layers/{request.layer}"
    if "X" not in stored:
        raise DataError(f"{request.name}: has no X. Name a layer (--layer): {listed(layers)}.")
    return "X"


def _shape(element: Any) -> tuple[int, ...]:
    """Return the shape of a stored matrix, which is an attribute if it is sparse."""
    if hasattr(element, "shape"):
        return tuple(map(int, element.shape))
    return tuple(map(int, element.attrs["shape" if "shape" in element.attrs else "h5sparse_shape"]))


def _checked(X: Any) -> Matrix:
    """Return a dense, CSR or CSC matrix of floating-point numbers, after a check of its indices."""
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    if not sp.issparse(X):
        return np.asarray(X)
    X = sp.csc_array(X) if X.format == "csc" else sp.csr_array(X)
    X.check_format(full_check=True)
    return X
