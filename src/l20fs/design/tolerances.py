"""Numerical tolerances, and checks for values whose squares underflow or overflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from l20fs.typing import Array

if TYPE_CHECKING:
    from l20fs.design.base import Design


def equality_tolerance(dtype: np.dtype[Any]) -> float:
    """Return the relative tolerance of ties: the rounding error of products with two equal columns."""
    return 1e-9 if dtype == np.float64 else 5e-7


def safe_limit(dtype: np.dtype[Any]) -> float:
    """Return the size up to which products of squares stay finite, and above whose inverse they do not underflow."""
    return float(np.finfo(dtype).max) ** 0.25


def refuse_huge_values(deviations: Array, dtype: np.dtype[Any]) -> None:
    """Raise an error for deviations whose squares overflow."""
    largest = float(deviations.max(initial=0.0))
    if not largest < safe_limit(dtype):
        raise ValueError(
            f"A feature of X has the deviation {largest:.3g}; above {safe_limit(dtype):.1g} the squares overflow in "
            f"{np.dtype(dtype).name}. Divide X by a constant, or use scale='zscore'."
        )


def refuse_overflow(peak: Array) -> None:
    if not np.isfinite(peak).all():
        raise ValueError("X has values so large that their sum or difference overflows float64. Divide X by a constant.")


def refuse_vanishing_values(design: Design) -> None:
    limit = 1.0 / safe_limit(design.dtype)
    if float(np.sqrt(design.column_energy.max())) < limit:
        raise ValueError(
            f"The largest deviation of a feature of X is {design.largest_deviation:.3g}; below {limit:.1g} the "
            f"squares underflow in {np.dtype(design.dtype).name}. Multiply X by a constant, or use scale='zscore'."
        )


def refuse_extreme_total(total: float, dtype: np.dtype[Any]) -> None:
    limit = safe_limit(dtype) ** 2
    if not 1.0 / limit < total < limit:
        raise ValueError(
            f"sample_weight adds up to {total:.3g}; outside {1.0 / limit:.1g} to {limit:.1g} squares underflow or overflow "
            f"in {np.dtype(dtype).name}. Divide sample_weight by its mean."
        )


def refuse_extreme_targets(targets: Array, energy: float, design: Design) -> None:
    """Raise an error for centred targets whose squares, alone or times those of X, underflow or overflow.

    The squared gradient of a feature is at most ``energy``, the sum of the squared targets, times the energy of the feature.
    A range of ``1 / eps`` is kept free at both ends.
    """
    largest = float(design.column_energy.max())
    for product, dtype in ((energy, np.dtype(np.float64)), (energy * largest, np.dtype(design.dtype))):
        info = np.finfo(dtype)
        if float(info.tiny) / float(info.eps) < product < float(info.max) * float(info.eps):
            continue
        event, remedy = ("underflow", "Multiply") if product < 1.0 else ("overflow", "Divide")
        raise ValueError(
            f"y differs from its mean by at most {float(np.abs(targets).max()):.3g}; the squares of its products with X "
            f"{event} in {dtype.name}. {remedy} y by a constant, such as its standard deviation."
        )
