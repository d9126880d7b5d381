"""Base of objects that are parameters themselves and have parameters: solvers, constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator


class ParameterObject(BaseEstimator):
    """Object with ``get_params`` and ``set_params``, equal to those of its class with equal parameters."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return _is_equal(self.get_params(deep=False), other.get_params(deep=False))

    def __hash__(self) -> int:
        return hash(type(self))  # parameters can be set


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_equal(value, other[key]) for key, value in one.items())
    if hasattr(one, "__array__") or hasattr(other, "__array__"):  # arrays, and columns of tables
        return type(one) is type(other) and np.array_equal(one, other)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        pairs = zip(one, other, strict=False)
        return type(one) is type(other) and len(one) == len(other) and all(_is_equal(*pair) for pair in pairs)
    return bool(one == other)
