"""Labelled matrices from .npz, .mat, .csv and .tsv files, for import as data sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from l20fs.data.readers import DataError, UnknownColumnError, read_table
from l20fs.data.readers.arrays import Arrays, load_mat, load_npz
from l20fs.data.readers.digest import read_file
from l20fs.data.readers.table import Request
from l20fs.typing import Array


@dataclass(frozen=True, eq=False)
class LabelledArrays:
    """Content of a file: a matrix of finite numbers, a label for each sample, and names if there are any.

    ``y`` holds integers or text. ``class_names``, if any, belong to the integers in ``y`` in ascending order.
    """

    X: Array
    y: Array
    class_names: list[str] | None = None
    feature_names: list[str] | None = None


def read_labelled(file: Path, target: str | None = None) -> LabelledArrays:
    """Read a file according to its extension; ``target`` is the column with the labels of a table."""
    ending = file.name.lower().removesuffix(".gz").rpartition(".")[2]
    if ending in ("csv", "tsv", "txt", "pkl", "pickle", "joblib", "rds"):  # read_table refuses those that can run code
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
    """Read the arrays X and y of an .npz file, and ``class_names`` and ``feature_names`` if there are any."""
    return _checked_arrays(load_npz(read_file(Request(file)), Request(file)), file)


def read_mat(file: Path) -> LabelledArrays:
    """Read the variables X and Y (or fea and gnd, data and label) of a MATLAB file."""
    return _checked_arrays(load_mat(read_file(Request(file)), Request(file)), file)


def _checked_arrays(found: Arrays, file: Path) -> LabelledArrays:
    assert found.y is not None  # missing labels are an error, unless there is a separate file of labels
    return checked(found.X, found.y, file, found.class_names, found.feature_names)


def checked(
    X: Array, y: Array, file: Path, class_names: list[str] | None = None, feature_names: list[str] | None = None
) -> LabelledArrays:
    """Return validated values and labels, or raise a :class:`DataError`."""
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
