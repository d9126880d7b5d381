"""Parsers of binary files, run by :mod:`~l20fs.tables.gate` as a program of its own: it imports nothing of this package.

A parser gets what is asked for and returns plain arrays and texts: the cells of a table, or a matrix with its names.
Whatever a file makes the library behind it do happens in this process, which has limits and nothing to lose.
"""

from __future__ import annotations

import gzip
import importlib
import json
import math
import os
import re
import stat
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np

#: What a parser returns: texts and numbers for JSON, and arrays by name.
Reply = tuple[dict[str, Any], dict[str, Any]]
Asked = dict[str, Any]

#: Names of values and labels in files of arrays, without regard to case, and arrays of names.
VALUES, LABELS, NAMES = (
    ("x", "fea", "data"),
    ("y", "gnd", "label", "labels"),
    ("feature_names", "sample_names", "class_names"),
)

#: Codecs of zarr that turn bytes into bytes or texts; others may run code, and pickle does.
CODECS = {
    "blosc",
    "zlib",
    "gzip",
    "zstd",
    "lz4",
    "lzma",
    "bz2",
    "shuffle",
    "bitshuffle",
    "delta",
    "fixedscaleoffset",
    "crc32c",
}
CODECS |= {"bytes", "endian", "transpose", "sharding_indexed", "vlen-utf8", "vlen-bytes", "adler32", "crc32", "packbits"}

#: Largest file of metadata of a zarr store, and rows of a sheet by which it is chosen.
MOST_METADATA, FIRST_ROWS = 2**24, 50


class RefusedError(Exception):
    """File that must not or cannot be read, with the reason and the way out."""


class UnknownNameError(Exception):
    """Name that is not there: what it is a name of, the name, and those that are there."""


# Tables of cells


def parse_excel(asked: Asked) -> Reply:
    """Return the cells of the sheet that is named, or has what is asked for, or looks like a table."""
    from python_calamine import CalamineWorkbook

    with open(asked["file"], "rb") as stream:
        workbook = CalamineWorkbook.from_filelike(stream)
        names = list(workbook.sheet_names)
        sheet = asked["sheet"]
        if sheet is not None and sheet not in names:
            raise UnknownNameError("sheet", sheet, names)
        if sheet is None:
            heads = {name: workbook.get_sheet_by_name(name).to_python(nrows=FIRST_ROWS) for name in names}
            sheet = choose_sheet(heads, asked)
        found = workbook.get_sheet_by_name(sheet)
        rows = found.to_python(skip_empty_area=True)
    reply, arrays = cells(rows, len(rows[0]) if rows else 0)
    return reply | {"sheets": names, "sheet": sheet, "above": (found.start or (0, 0))[0]}, arrays


def choose_sheet(heads: dict[str, list[list[Any]]], asked: Asked) -> str:
    """Return the first sheet that has all wanted names, or one of some names, or rows of numbers, or anything."""
    filled = {name: rows for name, rows in heads.items() if any(cell != "" for row in rows for cell in row)}
    for name, rows in filled.items():
        present = {text_of(cell) for row in rows for cell in row}
        if (asked["wanted"] and present.issuperset(asked["wanted"])) or not present.isdisjoint(asked["any_of"]):
            return name
    for name, rows in filled.items():
        body = [cell for row in rows[1:] for cell in row[1:] if cell != ""]
        if body and 2 * sum(isinstance(cell, int | float) or is_number(cell) for cell in body) >= len(body):
            return name
    return next(iter(filled or heads), "")


def is_number(cell: Any) -> bool:
    """Return whether a text of a sheet looks like a number."""
    return re.fullmatch(r"\s*[<>]?[+-]?[.,]?\d[\d.,]{0,40}(e[+-]?\d+)?\s*%?\s*", str(cell), re.IGNORECASE) is not None


def cells(rows: Sequence[Sequence[Any]], n_columns: int) -> Reply:
    """Return the numbers of rows, and the places and texts of all other cells that are not empty."""
    values = np.full((len(rows), n_columns), np.nan)
    places: list[tuple[int, int]] = []
    texts: list[str] = []
    for i, row in enumerate(rows):
        numbers = [cell if isinstance(cell, int | float) and not isinstance(cell, bool) else math.nan for cell in row]
        values[i, : len(numbers)] = numbers
        for j, cell in enumerate(row):
            if cell != "" and (not isinstance(cell, int | float) or isinstance(cell, bool)):
                places.append((i, j))
                texts.append(str(cell))
    return {"texts": texts}, {"values": values, "places": np.array(places, dtype=np.int64).reshape(-1, 2)}


def text_of(value: Any) -> str:
    """Return a value as a text: whole numbers without a decimal point, nothing for a missing one."""
    if value is None or value != value:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8")
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def parse_parquet(asked: Asked) -> Reply:
    """Return the columns of a table, with the index of pandas first; lists and structs are left out as texts."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    with ParquetFile(asked["file"]) as stored:
        fields = list(stored.schema_arrow)
        about = json.loads((stored.schema_arrow.metadata or {}).get(b"pandas", b"{}"))
        nested = {j for j, field in enumerate(fields) if pa.types.is_nested(field.type)}
        plain = [field.name for j, field in enumerate(fields) if j not in nested]
        table = stored.read(plain if nested else None, use_threads=False).combine_chunks()
        n_rows = stored.metadata.num_rows
    place = {j: new for new, j in enumerate(j for j in range(len(fields)) if j not in nested)}
    numeric = [j for j, field in enumerate(fields) if pa.types.is_floating(field.type) or pa.types.is_integer(field.type)]
    are_short = [pa.types.is_float32(fields[j].type) for j in numeric]
    values = np.full((len(fields), n_rows), np.nan, dtype=np.float32 if are_short and all(are_short) else np.float64)
    if numeric and n_rows:
        [batch] = table.select([place[j] for j in numeric]).to_batches()
        found = batch.to_tensor(null_to_nan=True, row_major=False).to_numpy().T
        values[numeric] = found
    places, texts = [], []
    for j in sorted(set(range(len(fields))).difference(numeric)):
        column, kind = None if j in nested else table.column(place[j]), fields[j].type
        if column is not None and (pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
            values[j] = column.cast(pa.int8() if pa.types.is_boolean(kind) else pa.float64()).to_numpy()
            continue
        found = ["..."] * n_rows if column is None else column.to_pylist()
        kept = [i for i, value in enumerate(found) if value is not None]
        places += [(i, j) for i in kept]
        texts += [text_of(found[i]) for i in kept]
    index = [name for name in about.get("index_columns", []) if isinstance(name, str)][:1]
    order = sorted(range(len(fields)), key=lambda j: fields[j].name not in index)
    reply = {"header": [field.name for field in fields], "order": order, "texts": texts, "has_index": bool(index)}
    return reply, {"columns": values, "places": np.array(places, dtype=np.int64).reshape(-1, 2)}


# Matrices with names


def matrix(X: Any, features: Any = None, samples: Any = None, **more: Any) -> Reply:
    """Return a matrix with samples in rows, dense or sparse, and its names."""
    reply = {"features": features, "samples": samples, **more}
    if not hasattr(X, "indptr"):
        return reply, {"X": real(np.asarray(X), "the values")}
    reply |= {"format": X.format, "shape": [int(size) for size in X.shape]}
    real(X.data, "the values")
    return reply, {"data": X.data, "indices": X.indices, "indptr": X.indptr}


def real(values: Any, what: str) -> Any:
    """Return an array of real numbers, or raise an error for any other."""
    if values.dtype.kind not in "biuf":
        raise RefusedError(f"{what} are {values.dtype}. They must be real numbers.")
    return values


def texts_of(values: Any) -> list[str]:
    """Return a list of texts, also of numbers."""
    return [text_of(value).strip() for value in np.asarray(values).reshape(-1).tolist()]


def parse_npy(asked: Asked) -> Reply:
    """Return the matrix of a .npy file."""
    return matrix(np.load(asked["file"], allow_pickle=False))


def parse_npz(asked: Asked) -> Reply:
    """Return the arrays that are named by custom, or a sparse matrix as scipy.sparse.save_npz writes it."""
    with np.load(asked["file"], allow_pickle=False) as stored:
        if {"indices", "indptr", "format", "shape", "data"} <= set(stored.files):
            reply = {"format": text_of(stored["format"].item()), "shape": stored["shape"].tolist(), "no_labels": True}
            return reply, {"data": real(stored["data"], "the values")} | {
                name: stored[name] for name in ("indices", "indptr")
            }
        return arrays(stored.files, stored.__getitem__, asked)


def parse_mat(asked: Asked) -> Reply:
    """Return the variables of a MATLAB file that are named by custom."""
    from scipy.io import loadmat, whosmat

    kinds = {name: kind for name, _, kind in whosmat(asked["file"])}

    def load(name: str) -> Any:
        if kinds[name] in ("struct", "object", "function", "opaque", "unknown"):
            raise RefusedError(f"{name} is a {kinds[name]}. It must be a matrix of numbers, or for labels of texts.")
        found = loadmat(asked["file"], variable_names=[name])[name]
        if kinds[name] == "cell":
            return np.array([text_of(cell.item() if isinstance(cell, np.ndarray) else cell) for cell in found.reshape(-1)])
        return found

    return arrays(list(kinds), load, asked)


def arrays(names: Sequence[str], load: Callable[[str], Any], asked: Asked) -> Reply:
    """Return values, labels, and what else is asked for about the samples, of arrays by name."""
    by_lower = {name.lower(): name for name in reversed(names)}
    found = [by_lower[name] for name in VALUES if name in by_lower]
    if not found:
        raise RefusedError(f"holds {', '.join(map(repr, names[:5])) or 'nothing'}, but no values. Call them X, fea or data.")
    target = asked["target"]
    if asked["expects_labels"] and target is None:
        labels = [by_lower[name] for name in LABELS if name in by_lower]
        if not labels:
            raise RefusedError(f"holds {', '.join(map(repr, names[:5]))}, but no labels. Call them y, gnd or labels.")
        target = labels[0]
    about = {}
    for name in [*([target] if asked["expects_labels"] else []), *asked["about"]]:
        if name in names:
            about[name] = load(name)
        elif name == target or asked["expects_labels"]:
            raise UnknownNameError("variable", name, list(names))
    others = {name: texts_of(load(name)) for name in NAMES if name in names}
    columns = {name: texts_of(values) for name, values in about.items() if np.prod(values.shape) == max(values.shape)}
    for name in set(about) - set(columns):
        raise RefusedError(f"{name} has the shape {about[name].shape}. Give one label per sample.")
    classes = others.get("class_names")
    if classes is not None and target in about and about[target].dtype.kind in "biu":
        codes, places = np.unique(about[target], return_inverse=True)
        if len(classes) != len(codes):
            raise RefusedError(f"{len(codes)} classes, but {len(classes)} class_names. Give one for each.")
        columns[target] = [classes[place] for place in places.reshape(-1).tolist()]
    X = load(found[0])
    if X.ndim != 2:
        raise RefusedError(f"the values have the shape {X.shape}. They must be a matrix with one sample per row.")
    X = X.tocsc() if hasattr(X, "tocsc") else X
    names_of = {"features": others.get("feature_names"), "samples": others.get("sample_names")}
    return matrix(X, **names_of, about=columns, target=target)


def parse_tenx(asked: Asked) -> Reply:
    """Return a Matrix Market file with genes in rows, and the names of genes and cells that belong to it."""
    from scipy.io import mmread

    stored = mmread(asked["file"], spmatrix=False)
    X = stored.T.tocsr() if hasattr(stored, "tocsr") else stored.T
    if hasattr(stored, "nnz") and X.nnz != stored.nnz:
        raise RefusedError(f"{stored.nnz - X.nnz} entries stand for the same value. Write each value once.")
    genes = [line.split("\t") for line in lines(asked["features"])]
    cells = None if asked["barcodes"] is None else [line.split("\t")[0] for line in lines(asked["barcodes"])]
    for role, names, stated in (("features", genes, X.shape[1]), ("barcodes", cells, X.shape[0])):
        if names is not None and len(names) != stated:
            raise RefusedError(
                f"the matrix states {stated} {role}, but {os.path.basename(asked[role])} has {len(names)} lines."
            )
    symbols = [row[1] if len(row) > 1 else row[0] for row in genes]
    return matrix(X, symbols, cells, identifiers=[row[0] for row in genes])


def lines(file: str) -> list[str]:
    """Return the lines of a text, which may be packed by gzip."""
    with open(file, "rb") as stream:
        is_packed = stream.read(2) == b"\x1f\x8b"
    with gzip.open(file, "rb") if is_packed else open(file, "rb") as stream:
        return stream.read().decode("utf-8-sig").splitlines()


# HDF5 and zarr


def parse_hdf5(asked: Asked) -> Reply:
    """Return the matrix of an h5ad file, or of a .h5 file of 10x Genomics."""
    import h5py

    with h5py.File(asked["file"], "r") as stored:
        if "obs" in stored and "var" in stored:
            return anndata(Store(stored), asked)
        groups = [name for name in stored if isinstance(stored.get(name, getlink=True), h5py.HardLink)]
        for name in groups:
            if hasattr(stored[name], "keys") and {"data", "indices", "indptr", "shape", "barcodes"} <= set(stored[name]):
                return tenx_hdf5(Store(stored), name)
        raise RefusedError(
            f"holds {', '.join(map(repr, list(stored)[:5])) or 'nothing'}, but is neither an AnnData file nor one of 10x "
            "Genomics. Write it with adata.write_h5ad()."
        )


def parse_zarr(asked: Asked) -> Reply:
    """Return the matrix of a zarr store of AnnData, or a zarr array."""
    check_store(asked["file"])
    import zarr

    stored: Any = zarr.open(asked["file"], mode="r")
    if not hasattr(stored, "keys"):
        store = Store({"": stored})
        return store.large(stored, asked, []) or matrix(store.read(""))
    if "obs" not in stored or "var" not in stored:
        raise RefusedError(f"holds {', '.join(map(repr, list(stored)[:5])) or 'nothing'}, but is no AnnData store.")
    return anndata(Store(stored), asked)


def check_store(folder: str) -> None:
    """Refuse links, pipes and codecs that may run code, before anything of a zarr store is opened."""
    for place, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = os.path.join(place, name)
            shown, mode = os.path.relpath(path, folder), os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                raise RefusedError(
                    f"{shown!r} is a link. Values are read from the store itself only; copy what it points to."
                )
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise RefusedError(f"{shown!r} is no regular file. Copy the store again.")
            if name in (".zarray", ".zattrs", ".zgroup", ".zmetadata", "zarr.json"):
                if os.path.getsize(path) > MOST_METADATA:
                    raise RefusedError(f"{shown!r} is too large for metadata. Copy the store again.")
                try:
                    with open(path, encoding="utf-8") as stream:
                        check_codecs(json.load(stream), os.path.dirname(shown))
                except (ValueError, RecursionError) as error:
                    raise RefusedError(f"{shown!r} is not JSON as zarr writes it. Copy the store again.") from error


def check_codecs(described: Any, name: str) -> None:
    """Refuse unknown codecs and objects anywhere in the metadata of a store."""
    if isinstance(described, list):
        for each in described:
            check_codecs(each, name)
    if not isinstance(described, dict):
        return
    codecs = [described.get("compressor"), *(described.get("filters") or []), *(described.get("codecs") or [])]
    ids = [str(codec.get("id", codec.get("name"))) for codec in codecs if isinstance(codec, dict)]
    for each in ids:
        if each.removeprefix("numcodecs.") not in CODECS:
            raise RefusedError(f"{name!r} has the codec {each!r}, which may run code. Write it with another.")
    if described.get("dtype") == "|O" and "vlen-utf8" not in ids:
        raise RefusedError(f"{name!r} holds objects, which can run code. Write it again as numbers or texts.")
    for key, each in described.items():
        check_codecs(each, key.rpartition("/")[0] or name if "/" in str(key) else name)


class Store:
    """Open HDF5 file or zarr group, every element of which is checked before it is read."""

    def __init__(self, stored: Any) -> None:
        self.stored = stored

    def element(self, path: str) -> Any:
        """Return an element that is in the file itself."""
        found = self.stored
        for name in path.split("/"):
            if name not in found:
                raise RefusedError(f"{path!r} is not there. Write the file again.")
            link = found.get(name, getlink=True) if hasattr(found, "get") and hasattr(found, "id") else None
            if link is not None and type(link).__name__ != "HardLink":
                raise RefusedError(f"{path!r} is a link. Values are read from the file itself only; copy them into it.")
            found = found[name]
        return found

    def read(self, path: str, *, may_omit: bool = False) -> Any:
        """Return a whole array; ``may_omit``: zarr leaves out an array of zeros, such as the codes of one category."""
        array = self.element(path)
        if not hasattr(array, "dtype"):
            raise RefusedError(f"{path!r} is a group, where an array should be. Write the file again.")
        if getattr(array, "external", None) or getattr(array, "is_virtual", False):
            raise RefusedError(f"{path!r} has its values in another file. Copy them into this one.")
        n_chunks, n_missing = chunks(array)
        if n_missing and not (may_omit and n_missing == n_chunks):
            raise RefusedError(
                f"{path!r}: {n_missing} of {n_chunks} chunks are missing, and would be read as zeros. Copy the file again; "
                "if zarr left out chunks of zeros, write it with write_empty_chunks."
            )
        if array.dtype.kind == "O" and hasattr(array, "asstr"):
            return array.asstr()[()]
        values = array[()]
        return values

    def texts(self, path: str) -> list[str]:
        """Return an array as texts."""
        values = self.read(path)
        if values.dtype.kind not in "biufOSUT":
            raise RefusedError(f"{path!r} holds {values.dtype}, where names should be. Write the file again.")
        found = [value.decode() if isinstance(value, bytes) else value for value in values.reshape(-1).tolist()]
        if any(not isinstance(value, str | int | float) for value in found):
            raise RefusedError(f"{path!r} holds objects, where names should be. Write the file again.")
        return ["" if value != value else str(value) for value in found]

    def large(self, element: Any, asked: Asked, shape: Sequence[int]) -> Reply | None:
        """Return a reply without values if they do not fit into memory and may stay in the file."""
        array = element["data"] if hasattr(element, "keys") else element
        size = math.prod(array.shape) * (array.dtype.itemsize + (8 if hasattr(element, "keys") else 0))
        if not asked["may_stay"] or asked["most"] is None or 4 * size <= asked["most"]:
            return None
        real(array, "the values")
        return {"large": True, "shape": [int(n) for n in (shape or array.shape)], "features": None, "samples": None}, {}


def chunks(array: Any) -> tuple[int, int]:
    """Return the number of chunks of an array, and how many of them were never written."""
    if hasattr(array, "nchunks_initialized"):
        return array.nchunks, array.nchunks - array.nchunks_initialized
    if array.size and array.chunks is None:
        return 1, int(array.id.get_storage_size() == 0)
    if array.chunks is None or not array.size:
        return 0, 0
    n_chunks = math.prod(-(-size // chunk) for size, chunk in zip(array.shape, array.chunks, strict=True))
    return n_chunks, n_chunks - array.id.get_num_chunks()


def tenx_hdf5(store: Store, group: str) -> Reply:
    """Return the matrix of a .h5 file of 10x Genomics, with a cell in each column."""
    n_genes, n_cells = (int(size) for size in store.read(f"{group}/shape"))
    inner = store.element(group)
    names, ids = ("features/name", "features/id") if "features" in inner else ("gene_names", "genes")
    arrays = {name: store.read(f"{group}/{name}") for name in ("data", "indices", "indptr")}
    real(arrays["data"], "the values")
    reply = {"features": store.texts(f"{group}/{names}"), "samples": store.texts(f"{group}/barcodes"), "kind": "10x"}
    return reply | {"identifiers": store.texts(f"{group}/{ids}"), "format": "csr", "shape": [n_cells, n_genes]}, arrays


def anndata(store: Store, asked: Asked) -> Reply:
    """Return X or a layer, the names, and the columns of obs that are asked for."""
    obs, var = Frame(store, "obs"), Frame(store, "var")
    reply: dict[str, Any] = {"features": var.names(), "samples": obs.names(), "columns": obs.columns()}
    reply["about"] = {name: obs.texts(name) for name in asked["about"] if name in reply["columns"]}
    if asked["suggest"]:
        found = {name: len(set(obs.texts(name))) for name in reply["columns"][:1000]}
        n_samples = len(reply["samples"])
        return reply | {"suggested": [name for name, n in found.items() if 2 <= n <= min(20, n_samples // 2)]}, {}
    layers = list(store.element("layers")) if "layers" in store.stored else []
    if asked["layer"] is not None and asked["layer"] not in layers:
        raise UnknownNameError("layer", asked["layer"], layers)
    if asked["layer"] is None and "X" not in store.stored:
        raise RefusedError(f"has no X. Name a layer, input.layer: {', '.join(map(repr, layers[:5])) or 'there is none'}.")
    path = "X" if asked["layer"] is None else f"layers/{asked['layer']}"
    element = store.element(path)
    if not hasattr(element, "keys"):
        return combined(reply, store.large(element, asked, ()) or matrix(store.read(path)))
    about = element.attrs
    kind = text_of(about["encoding-type"] if "encoding-type" in about else about["h5sparse_format"])[:3]
    shape = [int(size) for size in (about["shape"] if "shape" in about else about["h5sparse_shape"])]
    if kind not in ("csr", "csc"):
        raise RefusedError(f"{path!r} is a {kind}. It must be a matrix, dense or sparse by rows or columns.")
    for name in ("data", "indices", "indptr"):
        if not hasattr(store.element(f"{path}/{name}"), "dtype"):
            raise RefusedError(f"{path}/{name} is no array. Write the file again.")
    large = store.large(element, asked, shape)
    if large is not None:
        return combined(reply, large)
    arrays = {name: store.read(f"{path}/{name}") for name in ("data", "indices", "indptr")}
    real(arrays["data"], "the values")
    return reply | {"format": kind, "shape": shape}, arrays


def combined(names: dict[str, Any], reply: Reply) -> Reply:
    """Return a reply with the names of samples and features."""
    return reply[0] | names, reply[1]


class Frame:
    """Table of an AnnData file, of which single columns are read; before anndata 0.7 it was an array of records."""

    def __init__(self, store: Store, path: str) -> None:
        self.store, self.path, self.group = store, path, store.element(path)
        self.records = self.group[()] if hasattr(self.group, "dtype") else None
        if self.records is not None:
            names = self.records.dtype.names
            if not names:
                raise RefusedError(f"{path!r} is no table. Write the file again with anndata.")
            self.index = "index" if "index" in names else names[0]
        else:
            self.index = str(self.group.attrs["_index"])
            if "/" in self.index:
                raise RefusedError(f"{path!r} has its names in {self.index!r}, outside of the table. Write the file again.")

    def names(self) -> list[str]:
        """Return the names of the rows."""
        if self.records is not None:
            return [text_of(value) for value in self.records[self.index].tolist()]
        return self.store.texts(f"{self.path}/{self.index}")

    def columns(self) -> list[str]:
        """Return the sorted names of the columns."""
        names = self.group if self.records is None else self.records.dtype.names
        return sorted(name for name in names if name not in (self.index, "__categories"))

    def texts(self, name: str) -> list[str]:
        """Return a column as texts, empty where a value is missing."""
        store, path = self.store, f"{self.path}/{name}"
        if self.records is not None:
            values, categories = self.records[name], f"uns/{name}_categories"
            if values.dtype.kind in "iu" and "uns" in store.stored and f"{name}_categories" in store.element("uns"):
                return coded(values, store.texts(categories))
            return [text_of(value) for value in values.tolist()]
        element = store.element(path)
        if hasattr(element, "keys") and "codes" in element:
            return coded(store.read(f"{path}/codes", may_omit=True), store.texts(f"{path}/categories"))
        if hasattr(element, "keys") and "values" in element:
            is_missing = store.read(f"{path}/mask", may_omit=True) if "mask" in element else None
            texts = store.texts(f"{path}/values")
            return (
                texts
                if is_missing is None
                else ["" if gone else text for text, gone in zip(texts, is_missing.tolist(), strict=True)]
            )
        if hasattr(element, "keys"):
            return []
        if "categories" in element.attrs:  # a reference into this table, in files of anndata 0.7
            return coded(store.read(path, may_omit=True), store.texts(f"{self.path}/__categories/{name}"))
        return (
            store.texts(path)
            if element.dtype.kind in "OSUT"
            else ["" if value != value else str(value) for value in store.read(path, may_omit=True).tolist()]
        )


def coded(codes: Any, categories: Sequence[str]) -> list[str]:
    """Return the category of each code, nothing for codes below 0."""
    return [categories[code] if code >= 0 else "" for code in codes.tolist()]


# The program

#: Parser of each kind of file, and the modules that are loaded before the limits hold.
PARSERS: dict[str, tuple[Callable[[Asked], Reply], Sequence[str]]] = {
    "Excel": (parse_excel, ("python_calamine",)),
    "Parquet": (parse_parquet, ("pyarrow", "pyarrow.parquet")),
    "npy": (parse_npy, ()),
    "npz": (parse_npz, ()),
    "MATLAB": (parse_mat, ("scipy.io",)),
    "10x": (parse_tenx, ("scipy.io",)),
    "HDF5": (parse_hdf5, ("h5py",)),
    "zarr": (parse_zarr, ("zarr",)),
}


def limit(memory: int | None, seconds: int) -> None:
    """Let the system end this process when it takes too much time, and refuse it more memory, and any file to write."""
    with suppress(ImportError, ValueError, OSError):  # not on every system
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        if memory is not None:
            with open("/proc/self/statm", encoding="ascii") as stream:
                most = int(stream.read().split()[0]) * resource.getpagesize() + memory
            resource.setrlimit(resource.RLIMIT_AS, (most, most))


def parse(asked: Asked) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a file holds, or what is wrong with it."""
    read, modules = PARSERS[asked["kind"]]
    try:
        for module in modules:
            importlib.import_module(module)
    except ModuleNotFoundError as error:
        return {"lacks": (error.name or "").partition(".")[0]}, {}
    limit(asked["memory"], asked["seconds"])
    try:
        reply, arrays = read(asked)
        return reply, {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    except RefusedError as error:
        return {"refused": str(error)}, {}
    except UnknownNameError as error:
        return {"unknown": error.args}, {}
    except MemoryError:
        return {"memory": True}, {}
    except Exception as error:  # of the libraries, whose errors are of many kinds
        text = (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        is_memory = "alloc" in text.lower() or "memory" in text.lower()
        return ({"memory": True} if is_memory else {"damaged": text}), {}


def send(stream: BinaryIO, reply: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write the length of a JSON text, the text, and the bytes of the arrays that it describes."""
    described = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    head = json.dumps(reply | {"arrays": described}).encode()
    stream.write(struct.pack("<Q", len(head)))
    stream.write(head)
    for array in arrays.values():
        stream.write(memoryview(array.reshape(-1)).cast("B") if array.size else b"")
    stream.flush()


def main() -> None:
    """Parse one file and send what it holds to standard output, where nothing else is written."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    asked = json.loads(sys.stdin.buffer.read())
    try:
        send(replies, *parse(asked))
    except MemoryError:
        send(replies, {"memory": True}, {})


if __name__ == "__main__":
    main()
