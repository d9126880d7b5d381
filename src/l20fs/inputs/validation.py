"""Validation of X, y and parameters, with errors that name the way out."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from typing import Any

import array_api_compat as xpc
import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_X_y, validate_data

from l20fs.inputs.devices import as_numpy, is_device_array, is_stored
from l20fs.inputs.frames import collected, collected_targets
from l20fs.inputs.sparse_structure import refuse_broken_sparse
from l20fs.text import quoted
from l20fs.typing import Array

#: The sizes of parameters that are not 0: neither their squares nor those of their inverses underflow or overflow.
LEAST_NUMBER, LARGEST_NUMBER = 1e-100, 1e100

#: The largest count, which compiled code can hold as well.
LARGEST_COUNT = 10**9

_TO_NUMPY = {
    "torch": "{}.cpu().numpy()",
    "cupy": "cupy.asnumpy({})",
    "jax": "numpy.asarray({})",
    "array_api_strict": "numpy.asarray({})",
    "dask": "{}.compute()",
    "stored": "{0}.to_memory() or {0}[:]",
}


def validate_input(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    supervised: bool,
    accept_sparse: bool,
    dtypes: list[type[Any]],
    reset: bool = True,
    allow_missing: bool = False,
) -> tuple[Any, Array]:
    """Validate X and y as scikit-learn does, but without silent conversions; record names and sizes.

    With ``reset=False`` nothing is recorded, and X must have the names and the number of features of the fit.
    """
    X, y = collected(X), collected_targets(y)
    refuse_foreign_array(X, "X")
    refuse_foreign_array(y, "y")
    refuse_non_numbers(X)
    refuse_repeated_names(X)
    if supervised:
        refuse_odd_targets(y)
    try:
        with np.errstate(invalid="ignore"):  # infinite targets, which it refuses
            checked = validate_data(
                estimator,
                X,
                **({"y": y, "multi_output": True} if supervised else {}),
                reset=reset,
                accept_sparse=["csc", "csr"] if accept_sparse else False,
                dtype=dtypes,
                ensure_all_finite=False,
                ensure_min_samples=2,
            )
    except (ValueError, TypeError) as error:
        name_texts(error, X)
        raise
    X_checked, y_checked = checked if supervised else (checked, np.empty(0))
    names = getattr(estimator, "feature_names_in_", None)
    refuse_non_finite(X_checked, names, type(estimator).__name__, allow_missing=allow_missing)
    return X_checked, y_checked


def name_texts(error: Exception, X: Any) -> None:
    """Raise an error about texts in X again with the names of their columns; scikit-learn's other messages are clear."""
    if any(part in str(error) for part in ("could not convert", "Cannot convert", "argument must be a string")):
        raise type(error)(_not_numbers(str(error), _object_columns(X))) from error


def validate_device_input(estimator: Any, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, Array]:
    """Validate an X of torch or CuPy on its device, and y, which is copied to the host."""
    refuse_odd_tensor(X, "X")
    refuse_odd_tensor(y, "y")
    xp = xpc.array_namespace(X)
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions; expected 2, (n_samples, n_features). Use X.reshape(...).")
    if X.dtype not in (xp.float32, xp.float64):
        how = "X.float()" if xpc.is_torch_array(X) else "X.astype('float32')"
        raise TypeError(f"X has the type {X.dtype}; on a device it must be float32 or float64. Convert it first: {how}.")
    X = X.detach() if xpc.is_torch_array(X) else X
    if min(X.shape) < 1 or X.shape[0] < 2:
        raise ValueError(f"X has the shape {tuple(X.shape)}. Give at least 2 samples and 1 feature.")
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    y = as_numpy(collected_targets(y))
    refuse_foreign_array(y, "y")
    refuse_odd_targets(y)
    y = check_X_y(np.zeros((X.shape[0], 1)), y, multi_output=True, estimator=estimator)[1]
    with np.errstate(over="ignore", invalid="ignore"):  # for libraries based on NumPy
        is_finite = bool(xp.isfinite(xp.sum(X)))
    if not is_finite:
        n_missing, n_infinite = int(xp.count_nonzero(xp.isnan(X))), int(xp.count_nonzero(xp.isinf(X)))
        if n_missing or n_infinite:
            kind = f"{n_missing} missing values (NaN)" if n_missing else f"{n_infinite} infinite values (inf)"
            raise ValueError(f"X has {kind}. Replace them, or drop these samples or features, first.")
    return X, y


def validate_beside_blocks(estimator: Any, X: Any, y: Any) -> Array:
    """Validate a Dask array as far as possible without reading it, and y; a Dask y is computed."""
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} axes. Give a matrix of two axes, samples and features.")
    if any(np.isnan(size) for chunks in X.chunks for size in chunks):
        raise ValueError("X has chunks of unknown size. Call X.compute_chunk_sizes() first.")
    if X.dtype.kind not in "biuf":
        raise ValueError(_not_numbers(f"{X.dtype}", []))
    y = y.compute() if hasattr(y, "__dask_graph__") else collected_targets(y)
    refuse_foreign_array(y, "y")
    refuse_odd_targets(y)
    checked: Array = validate_data(estimator, "no_validation", y=y, multi_output=True)
    if len(checked) != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} samples, but y has {len(checked)}. Give one label or target per sample.")
    if X.shape[0] < 2 or X.shape[1] < 1:
        raise ValueError(f"X has {X.shape[0]} samples and {X.shape[1]} features. Give at least 2 samples and 1 feature.")
    estimator.n_features_in_ = int(X.shape[1])
    return checked


def refuse_other_width(estimator: Any, X: Any) -> None:
    """Raise an error if X is not a matrix, or has another number of features than the fit."""
    if len(X.shape) != 2:
        raise ValueError(f"X has the shape {tuple(X.shape)}. Give a matrix of two axes, samples and features.")
    if X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} features "
            "as input."
        )


def refuse_odd_targets(y: Any) -> None:
    """Raise an error for targets for which scikit-learn's message would mislead."""
    if sp.issparse(y):
        raise ValueError("y is sparse; labels and targets must be dense. Use y.toarray().")
    if hasattr(y, "isna"):  # pandas
        n_missing = int(np.sum(np.asarray(y.isna())))
        if n_missing:
            raise ValueError(f"y has {n_missing} missing values (NaN). Drop these samples, or label them.")
    array: Any = np.asarray(y if y is not None else [])
    if array.dtype.kind in "Mm":
        raise ValueError("y holds dates or times. Give labels, or numbers such as the days since the first one.")
    if array.ndim == 2 and array.shape[1] > 1 and array.dtype.kind in "OUS":
        raise ValueError("y has several columns that are not numbers. Give one column of labels, or numbers.")


def refuse_repeated_names(X: Any) -> None:
    """Raise an error for duplicate column names, with which a selection would be ambiguous."""
    names = [str(name) for name, _ in _columns(X)]
    if len(set(names)) < len(names):
        repeated = [name for name, count in Counter(names).items() if count > 1]
        raise ValueError(
            f"X has {len(repeated)} column names more than once: {quoted(repeated)}. Give every column a unique name."
        )


def refuse_foreign_array(value: Any, name: str, user: str = "this selector") -> None:
    """Raise an error for arrays of other libraries instead of copying them silently from a GPU or a cluster.

    Masked arrays are an error as well: a conversion would use the values under the mask; and so are sparse matrices whose
    indices contradict their shape.
    """
    refuse_masked(value, name)
    refuse_broken_sparse(value, name)
    for library, is_foreign in (
        ("torch", xpc.is_torch_array),
        ("cupy", xpc.is_cupy_array),
        ("jax", xpc.is_jax_array),
        ("array_api_strict", is_device_array),  # the other array API libraries
        ("dask", lambda value: hasattr(value, "__dask_graph__")),  # arrays and data frames
        ("stored", is_stored),
    ):
        if is_foreign(value):
            raise TypeError(
                f"{name} is a {library} array, which {user} does not support. Convert it first, for example "
                f"with {_TO_NUMPY[library].format(name)}."
            )


def refuse_odd_tensor(value: Any, name: str) -> None:
    """Raise an error for torch tensors that are not plain dense arrays."""
    if not xpc.is_torch_array(value):
        return
    if value.device.type == "meta":
        raise ValueError(f"{name} is on the device 'meta', where tensors have no values. Put the values on another device.")
    if str(value.layout) != "torch.strided":
        raise TypeError(f"{name} is a tensor of the layout {value.layout}; it must be dense. Use {name}.to_dense().")


def refuse_masked(value: Any, name: str) -> None:
    """Raise an error for masked arrays."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        n_masked = np.ma.count_masked(value)
        raise ValueError(f"{name} has {n_masked} masked values. Fill them in first, for example with {name}.filled(0.0).")


def refuse_non_numbers(X: Any) -> None:
    """Raise an error for text, categories and dates, which would be converted silently."""
    columns = _columns(X)
    refused = [f"{name}" for name, dtype in columns if not _may_hold_numbers(dtype)]
    if refused:
        raise ValueError(_not_numbers("text, categories or dates", refused))
    dtype = getattr(X, "dtype", None)
    if columns or dtype is None or sp.issparse(X):
        return
    array = np.asarray(X)
    first = array.flat[0] if array.size else ""
    if array.dtype == object:
        first = next((cell for cell in array.flat if isinstance(cell, np.datetime64 | np.timedelta64)), None)
        is_refused = first is not None
    else:
        is_refused = array.dtype.kind in "MmUS"
    if is_refused:
        raise ValueError(_not_numbers(f"{array.dtype.name}, for example {first!r}", []))


def refuse_non_finite(X: Any, names: Array | None, selector: str, *, allow_missing: bool = False) -> None:
    """Raise an error for NaN, unless missing values are allowed, and infinity that names their number and position."""
    values: Array = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):  # one pass without a temporary; NaN and inf survive a sum
            return

    def per_column(bad: Array) -> Array:
        return np.bincount(sp.coo_array(X).col[bad], minlength=X.shape[1]) if sp.issparse(X) else bad.sum(axis=0)

    impute = f"Impute them first, for example with make_pipeline(SimpleImputer(), {selector}())."
    n_missing = np.zeros(X.shape[1]) if allow_missing else per_column(np.isnan(values))
    refuse_counted(n_missing, per_column(np.isinf(values)), names, impute)


def refuse_counted(n_missing: Array, n_infinite: Array, names: Array | None, fix: str) -> None:
    """Raise an error for counted NaN, with ``fix`` as the way out, or for counted infinite values."""
    counts, kind = n_missing, "missing values (NaN)"
    if not counts.any():
        counts, kind, fix = n_infinite, "infinite values (inf)", "Replace or drop them first."
    if not counts.any():  # finite values whose sum overflows
        return
    columns = np.flatnonzero(counts)
    labels = [str(names[j]) if names is not None else f"column {j}" for j in columns[:5]]
    raise ValueError(f"X has {int(counts.sum())} {kind}, first in {quoted(labels)}. {fix}")


def check_number(
    name: str,
    value: Any,
    *,
    minimum: float,
    strict: bool = True,
    below: float = math.inf,
    most: float | None = None,
    whole: bool = False,
) -> None:
    """Raise an error for a parameter that is not a number in its range, or of a size that makes no sense.

    A number that is not 0 lies between ``LEAST_NUMBER`` and ``most``, by default ``LARGEST_NUMBER``; a count is at most
    ``most``, by default ``LARGEST_COUNT``.

    Examples
    --------
    >>> check_number("alpha", 5e-324, minimum=0.0)
    Traceback (most recent call last):
    ...
    ValueError: alpha=5e-324 is not valid. Use a number above 0, from 1e-100 to 1e+100.
    """
    kind = numbers.Integral if whole else numbers.Real
    is_number = isinstance(value, kind) and not isinstance(value, bool | np.bool_)
    most = (LARGEST_COUNT if whole else LARGEST_NUMBER) if most is None else most
    value = value.item() if isinstance(value, np.number) else value  # float32 does not hold the limits
    has_sense = is_number and (value == 0 or ((whole or LEAST_NUMBER <= abs(value)) and value <= most))
    if not has_sense or not (minimum < value if strict else minimum <= value) or not value < below:
        rule = f"{'above' if strict else 'at least'} {minimum:g}" + ("" if below == math.inf else f" and below {below:g}")
        if is_number and not has_sense:
            rule += f" and at most {most:g}" if whole or minimum >= LEAST_NUMBER else f", from {LEAST_NUMBER:g} to {most:g}"
        raise ValueError(f"{name}={value!r} is not valid. Use a {'whole ' if whole else ''}number {rule}.")


def check_flag(name: str, value: Any) -> None:
    """Raise an error for a parameter that is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={value!r} is not valid. Use True or False.")


def check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    """Raise an error for a parameter that is not one of the choices."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}={value!r} is unknown. Use {quoted(list(allowed), 'or')}.")


def _columns(X: Any) -> list[tuple[Any, Any]]:
    """Return the columns of a pandas or polars frame with their dtypes; nothing for other containers."""
    return list(zip(X.columns, X.dtypes, strict=True)) if hasattr(X, "columns") and hasattr(X, "dtypes") else []


def _may_hold_numbers(dtype: Any) -> bool:
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    # In pandas, categories, strings and periods are object types with names of their own; plain objects may be numbers.
    return dtype.kind not in "Mm" and (dtype.kind != "O" or str(dtype) == "object")


def _object_columns(X: Any) -> list[str]:
    return [str(name) for name, dtype in _columns(X) if getattr(dtype, "kind", "O") == "O"]


def _not_numbers(found: str, columns: list[str]) -> str:
    where = f" Columns that are not numbers: {quoted(columns)}." if columns else ""
    return (
        f"X must hold numbers only ({found}).{where} Encode categories first, for example with "
        "make_column_transformer((OneHotEncoder(), [...]), remainder='passthrough'), turn dates into numbers, or drop "
        "these columns."
    )
