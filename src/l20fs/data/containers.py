"""Labelled values from .npz, .mat, .csv and .tsv files. Nothing is unpickled; damaged files give a :class:`DataError`."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from l20fs.data.matlab import read_variables
from l20fs.data.readers import DataError, UnknownColumnError, read_table

Array = NDArray[Any]

#: What values and labels are called in files of arrays, by custom; upper and lower case are the same.
VALUES, LABELS = ("x", "fea", "data"), ("y", "gnd", "label", "labels")

#: The most bytes that a compressed file may grow to.
MOST_BYTES = 2**31


@dataclass(frozen=True, eq=False)
class LabelledArrays:
    """What a file holds: a matrix of finite numbers, a label for each row, and names where it has them.

    ``y`` are whole numbers or texts. ``class_names``, if any, are those of the numbers in ``y``, smallest first.
    """

    X: Array
    y: Array
    class_names: list[str] | None = None
    feature_names: list[str] | None = None


def read_labelled(file: Path, target: str | None = None) -> LabelledArrays:
    """Read a file by its ending; ``target`` is the column of the labels in a table."""
    ending = file.name.lower().removesuffix(".gz").rpartition(".")[2]
    if ending in ("csv", "tsv", "txt", "pkl", "pickle", "joblib", "rds"):  # those that can run code are refused there
        if target is None:
            raise UnknownColumnError(f"{file.name}: a table has its labels in a column. Name it (--target COLUMN).")
        table = read_table(file, target)
        return checked(table.X, table.y, file, feature_names=table.feature_names)
    if ending not in ("npz", "mat"):
        raise DataError(f"{file.name}: files ending in .{ending} are not read here. Use .mat, .npz, .csv or .tsv.")
    if target is not None:
        raise DataError(
            f"{file.name}: {target!r} names a column, but .{ending} files hold their labels as a variable. Leave it out."
        )
    return read_npz(file) if ending == "npz" else read_mat(file)


def read_npz(file: Path) -> LabelledArrays:
    """Read the arrays X and y of an .npz file, with ``class_names`` and ``feature_names`` where it has them."""
    with open(file, "rb") as stream:
        try:
            X, y, class_names, feature_names = _load_npz(stream, file)
        except DataError:
            raise
        except Exception as error:  # a damaged archive fails in a dozen ways, in zipfile, zlib, struct and numpy
            raise DataError(
                f"{file.name}: not a whole .npz file of plain arrays ({_first_line(error)}). Copy it again."
            ) from error
    return checked(X, y, file, _texts(class_names, "class_names", file), _texts(feature_names, "feature_names", file))


def _load_npz(stream: BinaryIO, file: Path) -> tuple[Array, Array, Array | None, Array | None]:
    with np.load(stream, allow_pickle=False) as stored:
        size = sum(entry.file_size for entry in stored.zip.infolist())  # no entry is read beyond what it states
        if size > MOST_BYTES:
            raise DataError(f"{file.name}: its arrays have {size} bytes. At most {MOST_BYTES} are read.")
        values, labels = find_variables(stored.files, file)
        return stored[values], stored[labels], stored.get("class_names"), stored.get("feature_names")


def read_mat(file: Path) -> LabelledArrays:
    """Read the variables X and Y (or fea and gnd, data and label) of a MATLAB file, version 5 to 7.2."""
    content = file.read_bytes()
    try:
        variables = read_variables(content)
        values, labels = (variables[name].array(MOST_BYTES) for name in find_variables(variables, file))
    except DataError:
        raise
    except (ValueError, struct.error, zlib.error) as error:
        raise DataError(f"{file.name}: not a MATLAB file that can be read ({_first_line(error)}).") from error
    return checked(values, labels, file)


def find_variables(names: Iterable[str], file: Path) -> tuple[str, str]:
    """Return which of the variables of a file are the values and the labels."""
    names = list(names)
    by_lower = {name.lower(): name for name in reversed(names)}
    found = []
    for what, known in (("values", VALUES), ("labels", LABELS)):
        present = [by_lower[name] for name in known if name in by_lower]
        if not present:
            held = ", ".join(map(repr, names[:5])) or "nothing"
            raise DataError(f"{file.name}: holds {held}, but no {what}. Call them {' or '.join(known)}.")
        found.append(present[0])
    return found[0], found[1]


def checked(
    X: Array, y: Array, file: Path, class_names: list[str] | None = None, feature_names: list[str] | None = None
) -> LabelledArrays:
    """Return values and labels that can be used, or say what is wrong with them."""
    if X.ndim != 2 or X.dtype.kind not in "biuf" or not X.size:
        raise DataError(
            f"{file.name}: the values are {X.dtype} of shape {X.shape}. They must be numbers, one sample per row."
        )
    if y.size != max(y.shape, default=0):
        raise DataError(f"{file.name}: the labels have the shape {y.shape}. Give one label per sample.")
    if y.size != len(X):
        turned = " It looks transposed: samples must be in rows." if y.size == X.shape[1] else ""
        raise DataError(f"{file.name}: {len(X)} samples, but {y.size} labels.{turned}")
    if X.dtype not in (np.float32, np.float64):
        with np.errstate(over="ignore"):  # found below
            X = X.astype(np.float64)
    if not np.isfinite(X).all():
        raise DataError(f"{file.name}: {int((~np.isfinite(X)).sum())} values are missing or infinite. Fill them in.")
    labels = _checked_labels(y.reshape(-1), file)
    n_classes = len(np.unique(labels))
    if n_classes < 2:
        raise DataError(f"{file.name}: one class only, {str(labels[0])!r}. Two or more are needed.")
    if feature_names is not None and len(feature_names) != X.shape[1]:
        raise DataError(f"{file.name}: {X.shape[1]} features, but {len(feature_names)} feature_names. Give one for each.")
    if labels.dtype.kind == "U" or class_names is None:
        return LabelledArrays(X, labels, None, feature_names)
    if len(class_names) != n_classes or len(set(class_names)) != n_classes:
        raise DataError(f"{file.name}: {n_classes} classes, but the class_names are {class_names[:10]}. Give one for each.")
    return LabelledArrays(X, labels, class_names, feature_names)


def _checked_labels(y: Array, file: Path) -> Array:
    if y.dtype.kind == "U":
        labels = np.char.strip(y)
        if (labels == "").any():
            raise DataError(f"{file.name}: {int((labels == '').sum())} samples have no label. Fill them in or drop them.")
        return labels
    with np.errstate(over="ignore"):
        whole = y.astype(np.float64) if y.dtype.kind in "biuf" else np.array([np.nan])
    if not (np.abs(whole) < 2**53).all() or (whole != np.trunc(whole)).any():
        raise DataError(f"{file.name}: the labels are {y.dtype}, not all of them whole numbers. Use whole numbers or texts.")
    return whole.astype(np.int64)


def _texts(names: Array | None, what: str, file: Path) -> list[str] | None:
    if names is None:
        return None
    if names.ndim != 1 or names.dtype.kind != "U":
        raise DataError(f"{file.name}: {what} are {names.dtype} of shape {names.shape}. They must be a list of texts.")
    return [str(name) for name in names]


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
