"""Numerical tolerances, and errors for values whose squares underflow or overflow.

**What is left of a column.** Centring takes the mean out of a column, nuisances what they explain, the selected rows what
they share with it. The squared length that is left, its *residual energy*, is a difference: it is known up to eps times what
it is a difference of, and the column itself is known up to eps times its values as stored. From that follow four rules:

1. A column whose deviation is at most 4 eps of its size is constant (``CONSTANT_SHARE``): it may be one number, rounded.
2. Where a difference leaves less than ``SMALL_SHARE`` of the sum of squares, half of the digits or more are gone, and the
   column is measured again from its values; an active set does so where its updates leave a small share.
3. A column of which no more than ``LEAST_LEFT`` eps of its length as stored is left depends on the others: it may be a
   combination of them that was rounded when X was stored. In any case a quarter of its energy is enough to be independent.
4. What is left is computed to 1e-10 of the length: a smaller share than its square counts as nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from l20fs.typing import Array

if TYPE_CHECKING:
    from l20fs.design.standardised import Design

CONSTANT_SHARE, SMALL_SHARE, LEAST_LEFT = 4.0 * float(np.finfo(np.float64).eps), 1e-4, 16.0

#: A column with a smaller deviation is constant: its squares have no digits left.
LEAST_DEVIATION = 1e-145


def equality_tolerance(dtype: np.dtype[Any]) -> float:
    """Return the relative tolerance of ties: the rounding error of products with two equal columns."""
    return 1e-9 if dtype == np.float64 else 5e-7


def safe_limit(dtype: np.dtype[Any]) -> float:
    """Return the size up to which products of squares stay finite, and above whose inverse they do not underflow."""
    return float(np.finfo(dtype).max) ** 0.25


def refuse_nothing_to_select(design: Design) -> None:
    """Raise an error for an X of which all features are constant."""
    if design.n_varying:
        return
    weights = design.sample_weights
    counted = "" if weights.values is None else f" over the {weights.n_counted} samples with a positive weight"
    are, other = ("constant", "varies") if weights.fit_intercept else ("zero", "is not zero")
    if weights.basis is not None:
        are, other = f"{are}, or explained by adjust_for altogether", f"{other} within what adjust_for leaves"
    raise ValueError(
        f"All {design.n_features} features of X are {are}{counted}, so there is nothing to select. "
        f"Give at least one feature that {other}, by more than {LEAST_DEVIATION:g}, and check that X has the shape "
        "(n_samples, n_features)."
    )


def refuse_huge_values(deviation: float, dtype: np.dtype[Any]) -> None:
    """Raise an error for a deviation whose square overflows."""
    if not deviation < safe_limit(dtype):
        raise ValueError(
            f"A feature of X has the deviation {deviation:.3g}; above {safe_limit(dtype):.1g} the squares overflow in "
            f"{np.dtype(dtype).name}. Divide X by a constant, or use scale='zscore'."
        )


def refuse_overflow(peak: Any, dtype: Any = np.float64) -> None:
    """Raise an error for sums of squares that are not finite, or whose roots are no numbers of a dtype."""
    if not np.sqrt(float(peak)) < np.finfo(dtype).max:
        name = np.dtype(dtype).name
        raise ValueError(f"X has values so large that their sum or square overflows {name}. Divide X by a constant.")


def refuse_vanishing_values(design: Design) -> None:
    """Raise an error for deviations whose squares underflow."""
    limit = 1.0 / safe_limit(design.dtype)
    if float(np.sqrt(design.largest_energy)) < limit:
        raise ValueError(
            f"The largest deviation of a feature of X is {design.largest_deviation:.3g}; below {limit:.1g} the "
            f"squares underflow in {np.dtype(design.dtype).name}. Multiply X by a constant, or use scale='zscore'."
        )


def refuse_extreme_total(total: float, dtype: np.dtype[Any]) -> None:
    """Raise an error for sample weights whose sum is out of range."""
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
    for product, dtype in ((energy, np.dtype(np.float64)), (energy * design.largest_energy, np.dtype(design.dtype))):
        info = np.finfo(dtype)
        if float(info.tiny) / float(info.eps) < product < float(info.max) * float(info.eps):
            continue
        event = "underflow" if product < 1.0 else "overflow"
        raise ValueError(
            f"y differs from its mean by at most {float(np.abs(targets).max()):.3g}; the squares of its products with X "
            f"{event} in {dtype.name}. Divide y by a constant, such as its standard deviation."
        )
