"""New samples as a panel takes them: an array of its columns, or anything with named columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from l20fs.inputs.sparse_structure import refuse_broken_sparse
from l20fs.prediction.panel_file import PanelError
from l20fs.text import closest_hint, listed
from l20fs.typing import Array


def column_names(X: Any) -> dict[str, Any] | None:
    """Return the columns of a mapping or a table by the text of their names; None for an array, which has no names.

    Examples
    --------
    >>> column_names({"TP53": [1.0], 7157: [2.0]}), column_names(np.eye(2))
    ({'TP53': 'TP53', '7157': 7157}, None)
    """
    names = X if isinstance(X, Mapping) else getattr(X, "columns", None)
    return None if names is None else {str(name): name for name in names}


def read_columns(X: Any, features: Sequence[str], *, keep_missing: bool = False) -> Array:
    """Return the values of the features as they are given, (n_samples, n_features), NaN where one is missing.

    Parameters
    ----------
    X : array of shape (n_samples, n_features), mapping of names to columns, or table with columns
    features : sequence of str
    keep_missing : bool
        Whether features that a named X lacks are NaN for all samples, and not refused.
    """
    names = column_names(X)
    values = _of_array(X, features) if names is None else _of_names(X, names, features, keep_missing=keep_missing)
    _refuse(np.isinf(values), values, features, ". Give finite numbers, and NaN for a missing value.")
    return values


def transformed(values: Array, features: Sequence[str], transform: str) -> Array:
    """Return the values of the features after the transformation of a panel, "none" or "log1p"."""
    if transform == "none":
        return values
    why = ", but the panel takes log(1 + x), and was trained on values from 0. Give raw values, not logarithms."
    _refuse(values < 0.0, values, features, why)
    return np.log1p(values)


def _refuse(is_wrong: Array, values: Array, features: Sequence[str], why: str) -> None:
    if is_wrong.any():
        sample, place = np.argwhere(is_wrong)[0]
        raise PanelError(f"Feature {features[place]!r} of sample {sample} is {values[sample, place]:g}{why}")


def in_patterns(is_there: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the samples with the same values there, and the mask of these values; samples without any come first.

    Examples
    --------
    >>> [(samples.tolist(), there.tolist()) for samples, there in in_patterns(np.array([[True], [False], [True]]))]
    [([1], [False]), ([0, 2], [True])]
    """
    if is_there.all():
        yield np.arange(len(is_there)), np.ones(is_there.shape[1], dtype=bool)
        return
    patterns, pattern_of = np.unique(is_there, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        yield np.flatnonzero(pattern_of.ravel() == number), pattern


def _of_array(X: Any, features: Sequence[str]) -> Array:
    refuse_broken_sparse(X, "X")
    values = _as_numbers(X.toarray() if hasattr(X, "toarray") else X, "X")
    if values.ndim != 2 or values.shape[1] != len(features):
        raise PanelError(
            f"X has the shape {values.shape}, but the panel takes one row per sample and {len(features)} columns: "
            f"{listed(features)}, in this order. Give these, or a table with the names of the columns."
        )
    return values


def _of_names(X: Any, names: dict[str, Any], features: Sequence[str], *, keep_missing: bool) -> Array:
    columns = {name: _as_numbers(X[names[name]], f"Feature {name!r}") for name in features if name in names}
    absent = [name for name in features if name not in names]
    if not columns or (absent and not keep_missing):
        hint = closest_hint(absent[0], names) if names else "It has no column."
        raise PanelError(
            f"X lacks {len(absent)} of the {len(features)} features of the panel: {listed(absent)}. {hint} Give them, or "
            "use panel.adapted(X), which takes substitutes."
        )
    first, n_samples = next((name, column.size) for name, column in columns.items())
    for name, column in columns.items():
        if column.shape != (n_samples,):
            raise PanelError(
                f"Feature {name!r} has the shape {column.shape}, and {first!r} has {n_samples} values. Give one number per "
                "sample, and each name once."
            )
    missing = np.full(n_samples, np.nan)
    return np.column_stack([columns.get(name, missing) for name in features])


def _as_numbers(values: Any, what: str) -> Array:
    """Return values as float64; texts are refused, even those of numbers."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    found = np.asarray(values)
    kind = found.dtype.kind
    texts = [] if kind in "biuf" else [value for value in found.flat if isinstance(value, str | bytes | complex)]
    if kind in "biufO" and not texts:
        with suppress(TypeError, ValueError):
            return found.astype(np.float64)
    shown = f", such as {str(texts[0])[:40]!r}" if texts else ""
    raise PanelError(f"{what} holds what is no number{shown}. Give numbers, and NaN for a missing value.")
