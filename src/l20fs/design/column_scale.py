"""Centre and scale of each column of a design."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from l20fs.design.moments import Moments
from l20fs.design.tolerances import refuse_huge_values, refuse_overflow
from l20fs.typing import Array


class ColumnScale(NamedTuple):
    """Mean, scale and energy of the columns of X~, which are ``(x - mean - rest) / scale``.

    ``rest`` is what the rounding of the mean leaves out. ``energy`` is the squared norm of a column of X~, 0 if it is
    constant, and ``deviation`` the deviation of the values of X.
    """

    mean: Array
    rest: Array
    scale: Array
    varies: Array
    energy: Array
    deviation: Array

    @classmethod
    def of(cls, found: Moments, deviations: Array | None, dtype: np.dtype[Any]) -> ColumnScale:
        """Scale columns by the given deviations, or by their own; refuse those whose squares would overflow."""
        varies, deviation = found.varies, found.deviation
        with np.errstate(invalid="ignore"):
            refuse_overflow(deviation)
        rest = np.where(varies, found.rest, 0.0)
        if deviations is None:
            energy = np.where(varies, found.weight, 0.0)
            return cls(found.mean, rest, np.where(varies, deviation, 1.0), varies, energy, deviation)
        with np.errstate(over="ignore"):
            relative, length = deviation / deviations, found.length / deviations
        refuse_huge_values(relative, dtype)
        return cls(found.mean, rest, deviations, varies, np.square(length), deviation)

    @classmethod
    def side_by_side(cls, parts: list[ColumnScale]) -> ColumnScale:
        """Return the scales of columns next to each other."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))
