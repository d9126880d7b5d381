"""Centre and divisor of each column of a design, and the rules that choose the divisors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from l20fs.design.moments import Moments, centre, powers_of_two
from l20fs.design.tolerances import refuse_huge_values, refuse_overflow
from l20fs.inputs.devices import namespace_of
from l20fs.typing import Array, Scale

#: ``scale="auto"`` is ``"moderated"`` if the 95th percentile of the deviations is at most this many times the 5th: features
#: in one unit. docs/defaults.md has the measurements.
COMPARABLE_RATIO = 50.0

#: Returns the deviations that sorting those of the features that vary would put at some places.
Ordered = Callable[[list[int]], Array]

#: Columns of float32 with deviations between 2**-30 and 2**30 are stored without a unit: their digits do not underflow.
SAFE_EXPONENT_SINGLE = 30


class ColumnScale(NamedTuple):
    """Mean, scale and energy of the columns of X~, which are ``(x - mean - rest) / scale``.

    ``rest`` is the rounding error of the mean. ``energy`` is the squared norm of a column of X~, 0 if it is constant,
    ``deviation`` the standard deviation of the column of X, and ``rule`` the rule that chose the scale; ``"given"`` for an
    array.
    """

    mean: Array
    rest: Array
    scale: Array
    varies: Array
    energy: Array
    deviation: Array
    rule: str

    @classmethod
    def of(cls, found: Moments, scale: Scale | Array, dtype: np.dtype[Any]) -> ColumnScale:
        """Scale columns by their moments; raise an error for values that are too large."""
        refuse_overflow(found.length)
        rest = found.rest if found.offset.any() else found.offset
        return cls.of_lengths(found.length, found.varies, found.weight, scale, dtype, mean=found.mean, rest=rest)

    @classmethod
    def of_lengths(
        cls,
        length: Array,
        varies: Array,
        weight: Any,
        scale: Scale | Array,
        dtype: np.dtype[Any],
        *,
        mean: Array,
        rest: Array,
        ordered: Ordered | None = None,
    ) -> ColumnScale:
        """Scale columns by the norms of the centred columns; raise an error if their squares would overflow."""
        deviation = length / np.sqrt(weight)
        rule, divisors = divisors_of(scale, deviation, varies, ordered)
        if rule == "zscore":
            return cls(mean, rest, divisors, varies, varies * weight, deviation, rule)
        refuse_overflow(divisors)
        with np.errstate(over="ignore"):
            refuse_huge_values(deviation / divisors, dtype)
            return cls(mean, rest, divisors, varies, np.square(length / divisors), deviation, rule)

    def factors(self, units: Array) -> Array | None:
        """Return the factors of centred columns stored in these units, 0 for a constant one; None if all are 1."""
        if self.varies.all() and np.array_equal(self.scale, units):
            return None
        return np.where(self.varies, units / self.scale, 0.0)


def checked_scale(scale: Scale | Array, n_features: int) -> Scale | Array:
    """Return a rule, or one divisor per feature in float64; raise an error for anything else."""
    if isinstance(scale, str) and scale in ("auto", "moderated", "zscore", "none"):
        return scale
    if np.ndim(scale) != 1:
        raise ValueError(
            f"scale={scale!r} is unknown. Use 'auto', 'moderated' (divided by the deviation plus the median deviation), "
            "'zscore' (by the deviation), 'none' (as given) or an array with one divisor per feature."
        )
    divisors = np.array(scale, dtype=np.float64)
    if len(divisors) != n_features:
        raise ValueError(f"scale has {len(divisors)} deviations for {n_features} features. Give one per feature.")
    bad = np.flatnonzero(~((divisors > 0.0) & np.isfinite(divisors)))
    if len(bad):
        raise ValueError(
            f"scale[{bad[0]}]={divisors[bad[0]]:g} is not valid: features are divided by it. "
            "Use finite numbers above 0, for example 1 for a constant feature."
        )
    return divisors


def ordered_here(values: Array, places: list[int]) -> Array:
    """Return the values that sorting would put at some places.

    Examples
    --------
    >>> ordered_here(np.array([3.0, 1.0, 2.0]), [0, 2])
    array([1., 3.])
    """
    return np.partition(values, places)[places]


def leading_places(n_values: int) -> list[int]:
    """Return the places of the 5th percentile, of the two values in the middle and of the 95th percentile.

    Examples
    --------
    >>> leading_places(42)
    [2, 20, 21, 39]
    """
    last = n_values - 1
    return [math.floor(0.05 * last), last // 2, (last + 1) // 2, math.ceil(0.95 * last)]


def divisors_of(
    scale: Scale | Array, deviation: Any, varies: Any, ordered: Ordered | None = None, n_varying: int | None = None
) -> tuple[str, Any]:
    """Return the rule that was used, and the divisor of each feature; of NumPy, or of the library of the deviations.

    ``"zscore"``: its deviation. ``"moderated"``: its deviation plus the median of the deviations of the features that vary,
    so that features which hardly vary are not blown up (Tusher, Tibshirani and Chu 2001). ``"auto"``: ``"moderated"`` if the
    deviations are comparable, else ``"zscore"``: the 95th percentile is at most ``COMPARABLE_RATIO`` times the 5th, both of
    which are deviations themselves, of up to 20 the smallest and the largest. ``"none"``: 1.

    Examples
    --------
    >>> divisors_of("auto", np.array([1.0, 2.0, 4.0, 0.0]), np.array([True, True, True, False]))
    ('moderated', array([3., 4., 6., 2.]))
    >>> divisors_of("auto", np.array([1.0, 2000.0, 0.0]), np.array([True, True, False]))
    ('zscore', array([1.e+00, 2.e+03, 1.e+00]))
    """
    if not isinstance(scale, str):
        return "given", scale
    xp = namespace_of(deviation)
    if scale == "none":
        return scale, xp.ones_like(deviation)
    n_varying = int(np.count_nonzero(varies)) if n_varying is None else n_varying
    if scale == "zscore" or not n_varying:
        return "moderated" if scale == "auto" else scale, xp.where(varies, deviation, xp.ones_like(deviation))
    if ordered is None:
        ordered = partial(ordered_here, deviation if n_varying == len(deviation) else deviation[varies])
    low, *middle, high = ordered(leading_places(n_varying)).tolist()
    if scale == "auto" and not high / COMPARABLE_RATIO <= low:
        return "zscore", xp.where(varies, deviation, xp.ones_like(deviation))
    with np.errstate(over="ignore"):  # raised as an error by the caller
        return "moderated", deviation + 0.5 * sum(middle)


def storage_units(found: Moments, dtype: np.dtype[Any]) -> Array:
    """Return powers of two in which centred columns can be stored in ``dtype`` without underflow or overflow."""
    if dtype == np.float64:
        return found.unit
    return np.where(found.varies, powers_of_two(found.deviation, SAFE_EXPONENT_SINGLE), 1.0)


def scaled(X: Array, scale: Scale | Array, weights: Array | None = None) -> Array:
    """Return a centred copy of a dense array in float64, divided by the rule ``scale``; a constant column becomes zero.

    Means and deviations are those of the samples by their ``weights``, numbers above 0.

    Examples
    --------
    >>> scaled(np.array([[1.0, 5.0], [2.0, 5.0]]), "zscore").tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    copy = np.array(X, dtype=np.float64)
    found = centre(copy, X, weights)
    columns = ColumnScale.of(found, scale, copy.dtype)
    factors = columns.factors(found.unit)
    if factors is not None:
        copy *= factors
    if weights is not None:
        copy /= np.sqrt(weights)[:, None]
    return copy
