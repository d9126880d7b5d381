"""Readers of arrays: .npy, .npz and .mat. Nothing is unpickled; damaged files raise a :class:`DataError`."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.data.matlab import Variable, read_variables
from l20fs.data.readers.in_blocks import left_in_file
from l20fs.data.readers.limits import check_memory, memory_for, most_unpacked
from l20fs.data.readers.npy import Archive, check_header
from l20fs.data.readers.svmlight import label_texts, numbered_names
from l20fs.data.readers.table import Contents, DataError, Request, UnknownColumnError, find, first_line
from l20fs.text import listed
from l20fs.typing import Array

#: Conventional names of values and labels, without regard to case.
VALUES, LABELS = ("x", "fea", "data"), ("y", "gnd", "label", "labels")

#: Arrays with names.
NAMES = ("class_names", "feature_names", "sample_names")

#: Memory that reading a .npy file takes, in bytes per byte of the file.
NPY_MEMORY = 3

#: Arrays in a file written by scipy.sparse.save_npz.
SPARSE = {"indices", "indptr", "format", "shape", "data"}


@dataclass(frozen=True, eq=False)
class Arrays:
    """Unvalidated content of a file of arrays; labels and names are optional."""

    X: Array | sp.csr_array | sp.csc_array
    y: Array | None = None
    class_names: list[str] | None = None
    feature_names: list[str] | None = None
    sample_names: list[str] | None = None
    beside: Mapping[str, Array] = field(default_factory=dict)
    target_name: str = ""


def read_arrays(content: bytes, request: Request) -> Contents:
    """Read .npy, .npz or .mat; the labels are the variable ``target``, or one with a conventional name."""
    load = load_npy if content[:6] == b"\x93NUMPY" else load_mat if content[:2] != b"PK" else load_npz
    return contents_of(load(content, request), request)


def contents_of(found: Arrays, request: Request) -> Contents:
    """Validate arrays, and transpose them if samples are in columns."""
    is_turned = request.samples_in == "columns" or _is_turned(found, request)
    X = found.X.T if is_turned else found.X
    if len(X.shape) != 2 or X.dtype.kind not in "biuf" or not math.prod(X.shape):
        raise DataError(
            f"{request.name}: the values are {X.dtype} of shape {X.shape}. They must be numbers, one sample per row."
        )
    features = found.feature_names or numbered_names(X, request)
    if len(features) != X.shape[1]:
        raise DataError(f"{request.name}: {X.shape[1]} features, but {len(features)} feature_names. Give one for each.")
    return Contents(
        X=X,
        feature_names=features,
        sample_names=found.sample_names,
        y=None if found.y is None else _label_list(found.y, found.class_names, X, request),
        beside={name: _label_list(each, None, X, replace(request, task="auto")) for name, each in found.beside.items()},
        target_name=found.target_name,
        is_turned=is_turned,
    )


def _is_turned(found: Arrays, request: Request) -> bool:
    """Return whether there are as many labels as columns, and not as rows."""
    if request.samples_in is not None or found.y is None or found.X.ndim != 2:
        return False
    if found.y.size == found.X.shape[0] or found.y.size != found.X.shape[1]:
        return False
    request.guess(
        "samples_in", "columns", f"there are as many labels as columns ({found.y.size}), so samples are in columns"
    )
    return True


def map_npy(request: Request) -> Contents:
    """Return the matrix of a .npy file as blocks that stay in the file."""
    _refuse_no_labels(request)
    try:
        mapped = np.load(request.file, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a damaged header fails in many ways
        raise _damaged("npy", error, request) from error
    contents, X = contents_of(Arrays(mapped), request), left_in_file("X", request)
    return replace(contents, X=X.T if contents.is_turned else X)


def _refuse_no_labels(request: Request) -> None:
    if request.expects_labels:
        raise DataError(f"{request.name}: a .npy file has no labels. Give a file with them (--labels FILE).")


def load_npy(content: bytes, request: Request) -> Arrays:
    """Load the matrix of a .npy file, which has no labels."""
    check_memory(NPY_MEMORY * len(content), request)
    _refuse_no_labels(request)
    try:
        check_header(io.BytesIO(content), len(content), "it", request)
        return Arrays(np.load(io.BytesIO(content), allow_pickle=False))
    except (DataError, MemoryError):
        raise
    except Exception as error:  # a damaged header fails in many ways
        raise _damaged("npy", error, request) from error


def load_npz(content: bytes, request: Request) -> Arrays:
    """Load the arrays X and y, and ``class_names``, ``feature_names`` and ``sample_names`` if there are any."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as entries:
            stored = Archive(entries, request, len(content))
            if set(stored) >= SPARSE:
                return Arrays(_sparse(stored, request))
            values, labels, beside = find_variables(stored, request)
            names = {name: _texts(stored[name], name, request) for name in NAMES if name in stored}
            return Arrays(
                stored[values],
                None if labels is None else stored[labels],
                beside={name: stored[name] for name in beside},
                target_name=labels or "",
                **names,
            )
    except (DataError, UnknownColumnError, MemoryError):
        raise
    except Exception as error:  # a damaged archive fails in a dozen ways, in zipfile, zlib, struct and numpy
        raise _damaged("npz", error, request) from error


def load_mat(content: bytes, request: Request) -> Arrays:
    """Load the variables X and Y (or fea and gnd, data and label) of a MATLAB file."""
    if content.startswith(b"MATLAB 7.3"):
        raise DataError(f"{request.name}: a MATLAB 7.3 file (HDF5). Save it with -v7, or as CSV.")
    try:
        return _arrays_of(read_variables(content), len(content), request)
    except (DataError, UnknownColumnError, MemoryError):
        raise
    except Exception as error:  # of struct and zlib, whose errors are of many kinds
        raise DataError(f"{request.name}: not a MATLAB file that can be read ({first_line(error)}).") from error


def _arrays_of(variables: Mapping[str, Variable], n_bytes: int, request: Request) -> Arrays:
    """Read the variables that are needed, after a check of the memory that the values take."""
    values, labels, beside = find_variables(variables, request)
    most = min(most_unpacked(n_bytes), memory_for(request) or 2**62)
    needed = sum(variables[name].memory for name in (values, labels, *beside) if name is not None)
    check_memory(3 * min(most_unpacked(n_bytes), needed), request)
    X, y = (None if name is None else variables[name].array(most) for name in (values, labels))
    of_samples = {name: variables[name].array(most) for name in beside}
    return Arrays(X, y, beside=of_samples, target_name=labels or "")


def find_variables(names: Iterable[str], request: Request) -> tuple[str, str | None, list[str]]:
    """Return the names of the variables with the values, the labels, and what else is said about the samples."""
    names, labels = list(names), None
    if request.expects_labels:
        labels = _by_custom(names, LABELS, "labels", request) if request.target is None else request.target
        find(labels, names, "variable", request)
    beside = [name for name in request.beside if request.labels is None or name in names]
    for name in beside:
        find(name, names, "variable", request)
    return _by_custom(names, VALUES, "values", request), labels, beside


def _by_custom(names: list[str], known: tuple[str, ...], what: str, request: Request) -> str:
    by_lower = {name.lower(): name for name in reversed(names)}
    present = [by_lower[name] for name in known if name in by_lower]
    if not present:
        raise DataError(f"{request.name}: holds {listed(names)}, but no {what}. Call them {' or '.join(known)}.")
    return present[0]


def _sparse(stored: Mapping[str, Array], request: Request) -> sp.csr_array | sp.csc_array:
    """Return the matrix written by scipy.sparse.save_npz, after a check of its indices."""
    if request.expects_labels:
        raise DataError(f"{request.name}: a sparse .npz file has no labels. Give a file with them (--labels FILE).")
    kind = stored["format"].item()
    make = {b"csr": sp.csr_array, b"csc": sp.csc_array}.get(kind.encode() if isinstance(kind, str) else kind)
    if make is None:
        raise DataError(f"{request.name}: a sparse matrix of the format {kind!r}. Save it as CSR or CSC.")
    X = make((stored["data"], stored["indices"], stored["indptr"]), shape=tuple(stored["shape"].tolist()))
    X.check_format(full_check=True)
    return X


def _label_list(labels: Array, class_names: list[str] | None, X: Any, request: Request) -> list[str]:
    """Return one text per sample."""
    if labels.size != max(labels.shape, default=0):
        raise DataError(f"{request.name}: the labels have the shape {labels.shape}. Give one label per sample.")
    if labels.size != X.shape[0]:
        turned = " It looks transposed: say so (--samples-in columns)." if labels.size == X.shape[1] else ""
        raise DataError(f"{request.name}: {X.shape[0]} samples, but {labels.size} labels.{turned}")
    labels = labels.reshape(-1)
    if labels.dtype.kind == "U":
        return [label.strip() for label in labels.tolist()]
    if request.task == "regression" and labels.dtype.kind in "biuf":
        return label_texts(labels)
    if labels.dtype.kind not in "biuf" or not np.isfinite(labels).all():
        raise DataError(f"{request.name}: the labels are {labels.dtype}, or some are missing. Use whole numbers or texts.")
    if class_names is None:
        return label_texts(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(class_names) != len(classes) or len(set(class_names)) != len(classes):
        raise DataError(
            f"{request.name}: {len(classes)} classes, but the class_names are {class_names[:10]}. Give one for each."
        )
    return [class_names[code] for code in codes.tolist()]


def _texts(names: Array, what: str, request: Request) -> list[str]:
    if names.ndim != 1 or names.dtype.kind != "U":
        raise DataError(f"{request.name}: {what} are {names.dtype} of shape {names.shape}. They must be a list of texts.")
    return [str(name) for name in names]


def _damaged(ending: str, error: Exception, request: Request) -> DataError:
    return DataError(f"{request.name}: not a whole .{ending} file of plain arrays ({first_line(error)}). Copy it again.")
