"""Encoding of nuisances: known columns, such as batch, plate or age, that a selection is adjusted for."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.inputs.devices import as_numpy
from l20fs.inputs.frames import collected
from l20fs.inputs.targets import Targets
from l20fs.inputs.validation import refuse_foreign_array, refuse_odd_tensor
from l20fs.typing import Array


def with_nuisances(targets: Targets, adjust_for: Any) -> Targets:
    """Return the targets with the nuisances of each sample, if there are any."""
    return targets if adjust_for is None else targets._replace(nuisances=encode_nuisances(adjust_for, len(targets.Y)))


def encode_nuisances(adjust_for: Any, n_samples: int) -> Array:
    """Encode the columns that a selection is adjusted for, (n_samples, n_nuisances): labels one-hot, numbers as they are.

    Columns of floats are numbers. All others, also whole numbers, are labels.

    Parameters
    ----------
    adjust_for : array, Series or list of shape (n_samples,) or (n_samples, n_columns), or DataFrame
        The columns.
    n_samples : int
        Number of samples.

    Examples
    --------
    >>> encode_nuisances(["a", "b", "a"], 3).tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    >>> encode_nuisances(np.array([0.5, 1.0, -2.0]), 3).T.tolist()
    [[0.25, 0.5, -1.0]]
    """
    refuse_odd_tensor(adjust_for, "adjust_for")
    adjust_for = as_numpy(collected(adjust_for))
    refuse_foreign_array(adjust_for, "adjust_for")
    if sp.issparse(adjust_for):
        raise TypeError("adjust_for is a sparse matrix. Give a dense one, adjust_for.toarray(), or the labels themselves.")
    encoded = []
    for name, values, is_label in _columns(adjust_for):
        if values.shape != (n_samples,):
            raise ValueError(
                f"{name} has shape {values.shape} for {n_samples} samples. Give one label or number per sample and column."
            )
        encoded.append(_encode_labels(name, values) if is_label else _encode_numbers(name, values))
    return np.hstack(encoded) if encoded else np.empty((n_samples, 0))


def _columns(adjust_for: Any) -> Iterator[tuple[str, Array, bool]]:
    """Yield the name of each column, its values, and whether they are labels."""
    if hasattr(adjust_for, "columns"):
        for name in adjust_for.columns:
            yield f"adjust_for[{name!r}]", *_read(f"adjust_for[{name!r}]", adjust_for[name])
        return
    if isinstance(adjust_for, list | tuple):
        adjust_for = np.array(adjust_for, dtype=object)
    if np.ndim(adjust_for) != 2:
        yield "adjust_for", *_read("adjust_for", adjust_for)
        return
    values = np.asarray(adjust_for)
    for place in range(values.shape[1]):
        name = f"column {place} of adjust_for"
        yield name, *_read(name, values[:, place])


def _read(name: str, column: Any) -> tuple[Array, bool]:
    """Return the values of a column, floats if they are numbers, and whether they are labels."""
    is_category = str(getattr(column, "dtype", "")).lower().startswith(("categor", "enum"))
    values = np.asarray(column)
    if values.ndim == 1:
        is_missing = _missing(values)
        if is_missing.any():
            raise ValueError(
                f"{name} has {np.count_nonzero(is_missing)} missing values. Drop these samples, or give the missing ones a "
                "label or number of their own, such as 'unknown'."
            )
    if is_category or values.dtype.kind not in "fO":
        return values, True
    if values.dtype.kind == "O":
        if all(isinstance(value, numbers.Integral | np.bool_) for value in values.flat):
            return np.array(values.tolist()), True
        if not all(isinstance(value, numbers.Real) for value in values.flat):
            return values, True
    return values.astype(np.float64), False


def _missing(values: Array) -> Array:
    """Return a mask of the missing values: None, NaN, NaT and NA."""
    if values.dtype.kind == "O":
        return np.array([value is None or str(value) in ("<NA>", "NaT") or value != value for value in values], dtype=bool)
    return values != values


def _encode_labels(name: str, values: Array) -> Array:
    """Return a column per label."""
    values = values.astype(str) if values.dtype.kind == "O" else values
    levels, codes = np.unique(values, return_inverse=True)
    sizes, way_out = np.bincount(codes), f"Give floats, as by {name}.astype(float), to adjust for the numbers themselves"
    if len(levels) > 2 and 2 * len(levels) > len(values):
        way_out = way_out if values.dtype.kind in "iu" else "Give labels that samples share, such as the batch"
        raise ValueError(
            f"{name} has {len(levels)} labels for {len(values)} samples, which leaves next to nothing to explain. {way_out}."
        )
    n_small = np.count_nonzero(sizes <= 2)
    if len(levels) > 2 and 2 * n_small > len(levels) and values.dtype.kind in "iu":
        warnings.warn(
            f"{name} holds whole numbers, which are taken for {len(levels)} labels, {n_small} of them with one or two "
            f"samples. {way_out}.",
            UserWarning,
            stacklevel=7,  # the caller of fit
        )
    return np.eye(len(levels))[codes]


def _encode_numbers(name: str, values: Array) -> Array:
    """Return a column of numbers, at most 1 in size."""
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has {np.count_nonzero(~np.isfinite(values))} infinite values. Give finite numbers.")
    return values[:, np.newaxis] / (np.abs(values).max(initial=0.0) or 1.0)
