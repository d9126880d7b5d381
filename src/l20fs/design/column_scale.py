"""Centre and scale of each column of a design."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from l20fs.design.moments import Moments
from l20fs.design.tolerances import refuse_huge_values, refuse_overflow
from l20fs.typing import Array


class ColumnScale(NamedTuple):
    """Mean, scale and energy of the columns of X~, which are ``(x - mean - rest) / scale``.

    ``rest`` is the rounding error of the mean. ``energy`` is the squared norm of a column of X~, 0 if it is constant, and
    ``deviation`` the standard deviation of the column of X.
    """

    mean: Array
    rest: Array
    scale: Array
    varies: Array
    energy: Array
    deviation: Array

    @classmethod
    def of(cls, found: Moments, deviations: Array | None, dtype: np.dtype[Any]) -> ColumnScale:
        """Scale columns by the given deviations or by their own; raise an error if their squares would overflow."""
        varies, length, mean = found.varies, found.length, found.mean
        deviation = length / np.sqrt(found.weight)
        refuse_overflow(deviation)
        rest = found.rest if found.offset.any() else found.offset
        if deviations is None:
            return cls(mean, rest, np.where(varies, deviation, 1.0), varies, varies * found.weight, deviation)
        with np.errstate(over="ignore"):
            refuse_huge_values(deviation / deviations, dtype)
            return cls(mean, rest, deviations, varies, np.square(length / deviations), deviation)

    @classmethod
    def side_by_side(cls, parts: list[ColumnScale]) -> ColumnScale:
        """Concatenate the scales of adjacent columns."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


def scale_factors(found: Moments, deviations: Array | None) -> Array | None:
    """Return the factors that scale the columns, 0 for a constant one; None if all are 1."""
    varies = found.varies
    if deviations is None:
        squares = np.where(varies, found.squares, np.inf)
        return np.sqrt(found.weight / squares)
    if np.array_equal(deviations, found.unit) and varies.all():
        return None
    return np.where(varies, found.unit / deviations, 0.0)
