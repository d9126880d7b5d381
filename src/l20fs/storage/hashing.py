"""Hashes of parameters and data."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import scipy.sparse as sp

#: Parameters of estimators that have no effect on the result.
WITHOUT_EFFECT = frozenset({"callback", "verbose", "n_jobs", "max_memory"})

#: Bytes hashed at a time: no copy of the whole data is made.
BLOCK = 2**24


def describe(value: Any, name: str) -> Any:
    """Describe a parameter or data by JSON values, with digests of arrays; ``name`` is for the error.

    Values that lead to different results, if only by their type, have different descriptions. Estimators are described by
    their class and those of their parameters that have an effect on the result.

    Examples
    --------
    >>> describe({"ridge": np.float64(0.5), "ks": (1, 2)}, "settings")
    {'ridge': 0.5, 'ks': [1, 2]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [describe(part, f"{name}[{i}]") for i, part in enumerate(value)]
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: describe(part, key) for key, part in value.items()}
        return [[describe(key, name), describe(part, f"{name}[{key!r}]")] for key, part in value.items()]
    if isinstance(value, np.ndarray) or sp.issparse(value):
        return {"digest": digest(value)}
    if hasattr(value, "get_params") and not isinstance(value, type):
        parameters = {key: part for key, part in value.get_params(deep=False).items() if key not in WITHOUT_EFFECT}
        return [f"{type(value).__module__}.{type(value).__qualname__}", describe(parameters, name)]
    raise TypeError(
        f"{name} is a {type(value).__name__}, which cannot be compared with that of a later run. "
        "Use a number, a string, an array or an estimator instead."
    )


def digest(data: Any) -> str:
    """Return a hash of the type, the shape and every value of an array or a sparse matrix.

    Examples
    --------
    >>> digest(np.eye(2)) == digest(np.asfortranarray(np.eye(2))), digest(np.eye(2)) == digest(np.eye(2, dtype=int))
    (True, False)
    """
    if sp.issparse(data):
        parts = [data.data, data.indices, data.indptr]
        return hash_of(data.format, data.shape, [digest(part) for part in parts])
    if data.dtype == object:
        return hash_of("object", [f"{type(cell).__name__} {cell}" for cell in data.flat])
    state = hashlib.sha256(f"{data.dtype.str} {data.shape}".encode())
    rows = np.atleast_1d(data)
    n_rows = max(1, BLOCK * len(rows) // max(1, rows.nbytes))
    for start in range(0, len(rows), n_rows):
        state.update(rows[start : start + n_rows].tobytes())
    return state.hexdigest()


def hash_of(*parts: Any) -> str:
    """Return the SHA-256 of JSON values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
