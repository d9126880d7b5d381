"""Numerical tolerances, and checks for values whose squares underflow or overflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from l20fs.inputs.devices import as_numpy
from l20fs.typing import Array

if TYPE_CHECKING:
    from l20fs.design.base import Design


#: Weights of features, in units of y per unit of X, above which their sums may overflow.
LARGEST_WEIGHT = 1e303

EVERY = slice(None)


def equality_tolerance(dtype: np.dtype[Any]) -> float:
    """Return the relative tolerance of ties: the rounding error of products with two equal columns."""
    return 1e-9 if dtype == np.float64 else 5e-7


class Rooms(NamedTuple):
    """Squared norms that must be left of each column; like :attr:`Design.columns` of NumPy or on the device of X.

    ``smallest``: for it to count as independent of others. A column whose remainder is shorter than 16 units in the last
    place of its values, before they are centred, may be a linear combination of the others that was rounded when X was
    stored; the remainder itself is computed to 1e-10 of the length of the column. Half of the length of a column that varies
    is enough in any case. Where only inner products of columns are known, they determine it to 1e-5.

    ``clear``: for the remainder to be known well from products in the precision of X. It is then exact to about 1e-3 in
    float32 and 1e-9 in float64. Below, it has to be measured.
    """

    smallest: Any
    clear: Any

    @classmethod
    def of(cls, design: Design) -> Rooms:
        """Return the rooms of the columns of a design."""
        columns = design.columns
        xp, energy = columns.xp, columns.energy
        if design.vectors == "features":
            smallest = np.maximum(1e-10 * energy, 1e-14 * columns.explained)
            return cls(smallest, smallest)
        rounded = stored_energy(design) * (16.0 * float(np.finfo(design.dtype).eps)) ** 2
        smallest = xp.maximum(xp.minimum(rounded, 0.25 * energy), 1e-20 * energy)
        share = 1e-6 if design.dtype == np.float64 else 1e-3
        return cls(smallest, xp.maximum(xp.sqrt(energy) * columns.norms * share, smallest))


def smallest_rooms(design: Design) -> Array:
    """Return the smallest rooms of :class:`Rooms` in memory."""
    return as_numpy(Rooms.of(design).smallest)


def clear_rooms(design: Design) -> Array:
    """Return the clear rooms of :class:`Rooms` in memory."""
    return as_numpy(Rooms.of(design).clear)


def stored_energy(design: Design) -> Any:
    """Return the squared norms of the columns before they are centred, in units of their scale; 0 for constant ones."""
    xp, mean, scale, varies, energy, explained, _ = design.columns
    mean = xp.where(varies, mean, xp.zeros_like(mean)) / scale
    return energy + explained + design.sample_weights.total * xp.square(mean)


def storage_errors(design: Design, rows: Array | slice = EVERY) -> Array:
    """Return upper bounds on the norms of the rounding errors of the columns ``rows`` of X~ as they are stored.

    Centring, scaling and sample weights round each value three times at most, in the precision of X; a mean is exact to a
    few units in the last place of float64.
    """
    stored = np.sqrt(as_numpy(stored_energy(design))[rows])
    eps = float(np.finfo(design.dtype).eps)
    return 1.5 * eps * design.pull_norms()[rows] + 8.0 * float(np.finfo(np.float64).eps) * stored


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
    if float(np.sqrt(design.summary.largest_energy)) < limit:
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
    largest = design.summary.largest_energy
    for product, dtype in ((energy, np.dtype(np.float64)), (energy * largest, np.dtype(design.dtype))):
        info = np.finfo(dtype)
        if float(info.tiny) / float(info.eps) < product < float(info.max) * float(info.eps):
            continue
        event = "underflow" if product < 1.0 else "overflow"
        raise ValueError(
            f"y differs from its mean by at most {float(np.abs(targets).max()):.3g}; the squares of its products with X "
            f"{event} in {dtype.name}. Divide y by a constant, such as its standard deviation."
        )
    smallest = min(1.0, design.summary.smallest_scale)
    if not float(np.abs(targets).max()) < LARGEST_WEIGHT * smallest:
        raise ValueError(
            f"y differs from its mean by up to {float(np.abs(targets).max()):.3g}, and a feature of X has the deviation "
            f"{smallest:.3g}; weights above {LARGEST_WEIGHT:g} overflow. Divide y, or multiply X, by a constant."
        )
