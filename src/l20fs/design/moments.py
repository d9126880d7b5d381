r"""Moments of columns: mean, deviation, energy and constancy, one measurement for every container.

The moments of a column are those of the samples with a positive weight. They are stored as shifted sums, so that a mean of
many deviations costs no digits: the mean is ``origin + offset``, where the origin is close to the values and the offset is a
mean of differences from it. Moments of blocks of samples can be merged (Chan, Golub and LeVeque 1983).

A column varies if :math:`\max - \min > 4 \epsilon \max |x|` with the :math:`\epsilon` of float64, and above ``LEAST_RANGE``.
This depends on the values alone, not on their number, order or container.

Without an intercept nothing is subtracted, and the moments are those about zero (:attr:`Moments.about_zero`): the mean is 0,
the deviation is the root mean square, and a column varies unless it is zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from l20fs.design.tiles import tiles
from l20fs.typing import Array

#: Values of a column that differ by at most this fraction of the largest one are equal up to rounding.
CONSTANT_SHARE = 4.0 * float(np.finfo(np.float64).eps)

#: Values of a column that differ by less are equal: below, float64 has fewer digits, and weights of the column overflow.
LEAST_RANGE = 1e-305

#: An offset below this fraction of the range of a column is rounding: products with equal columns may differ by as much.
NEGLIGIBLE_SHARE = 1e-9

#: A feature whose mean is at most this many deviations from 0 may be centred after a product instead of before it: this
#: costs less than one digit.
MODEST = 8.0

#: Columns with values between 2**-400 and 2**400 are measured without a unit: neither their squares nor those of their
#: rounding errors underflow or overflow.
SAFE_EXPONENT = 400

#: Deviations whose squares neither underflow nor overflow.
TINY, HUGE = 2.0**-SAFE_EXPONENT, 2.0**SAFE_EXPONENT

#: Contiguous lengths from which on NumPy reduces at full speed.
FOLDED_WIDTH = 512

#: The unit of a column of zeros, smaller than any other when units are merged: the smallest number with a finite inverse.
LEAST_UNIT = 2.0**-1000


class Moments(NamedTuple):
    """Moments of columns, one entry per column.

    ``weight`` is the total weight of the samples. ``squares`` is the sum of squares of the centred values in a ``unit``, a
    power of two that is 1 unless squares would underflow or overflow. ``low`` and ``high`` are the extremes of the column;
    of one that clearly varies, its mean less and plus its deviation, which decide as well.
    """

    weight: Array
    origin: Array
    offset: Array
    squares: Array
    unit: Array
    low: Array
    high: Array
    n_missing: Array
    n_infinite: Array

    @property
    def mean(self) -> Array:
        """Mean, rounded to float64."""
        return self.origin + self.offset

    @property
    def rest(self) -> Array:
        """Rounding error of the mean; 0 where it does not matter."""
        left = (self.origin - self.mean) + self.offset
        return np.where(np.abs(left) > NEGLIGIBLE_SHARE * (self.high - self.low), left, 0.0)

    @property
    def varies(self) -> Array:
        """Mask of the columns that are not constant."""
        return is_varying(self.low, self.high)

    @property
    def length(self) -> Array:
        """Norm of the centred column; 0 if it is constant."""
        with np.errstate(over="ignore", invalid="ignore"):  # raised as an error by the users of the moments
            return np.where(self.varies, self.unit * np.sqrt(self.squares), 0.0)

    @property
    def deviation(self) -> Array:
        """Standard deviation; 0 if the column is constant."""
        return self.length / np.sqrt(self.weight)

    @property
    def about_zero(self) -> Moments:
        """Moments about zero instead of the mean, as if every sample came with either sign.

        Examples
        --------
        >>> found = measure(np.array([[3.0, 0.0], [3.0, 0.0]])).about_zero
        >>> found.mean.tolist(), found.squares.tolist(), found.varies.tolist()
        ([0.0, 0.0], [18.0, 0.0], [True, False])
        """
        nothing = np.zeros_like(self.origin)
        with np.errstate(over="ignore", invalid="ignore"):  # refused when all is known
            squares = self.squares + self.weight * np.square(self.mean / self.unit)
            peak = np.maximum(np.abs(self.low), np.abs(self.high))
        return self._replace(origin=nothing, offset=nothing, squares=squares, low=-peak, high=peak)


def is_varying(low: Array, high: Array) -> Array:
    """Return a mask of the columns that vary, from their extremes.

    Examples
    --------
    >>> is_varying(np.array([1e8, 1e8, 0.0]), np.array([1e8 * (1 + 4e-16), 1e8 + 3e-7, 0.0]))
    array([False,  True, False])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return high - low > np.maximum(CONSTANT_SHARE * np.maximum(np.abs(low), np.abs(high)), LEAST_RANGE)


def varying_columns(X: Array) -> Array:
    """Return a mask of the columns of a dense array that vary.

    Examples
    --------
    >>> varying_columns(np.array([[1.0, 2.0], [1.0, 3.0]]))
    array([False,  True])
    """
    return is_varying(X.min(axis=0), X.max(axis=0))


def centred(X: Array) -> Array:
    """Return a centred float64 copy of a dense array.

    Examples
    --------
    >>> centred(np.array([[1.0], [2.0]]))[:, 0].tolist()
    [-0.5, 0.5]
    """
    copy = np.array(X, dtype=np.float64)
    found = centre(copy, X)
    copy *= found.unit
    return copy


def centre(part: Array, raw: Any, weights: Array | None = None) -> Moments:
    """Centre the columns of a float64 array in place and return their moments.

    Afterwards ``part`` holds ``root(weight) * (x - mean) / unit``. Columns that may be constant, far from zero or extreme
    are measured by :func:`centre_exactly`.

    Parameters
    ----------
    part : array of shape (n_samples, n_columns)
        A copy of ``raw``.
    raw : array of shape (n_samples, n_columns)
        The values, of any dtype; they stay as they are.
    weights : array of shape (n_samples,), optional
        1 by default.

    Examples
    --------
    >>> raw = np.array([[1e15 + 1], [1e15 + 2]])
    >>> part = raw.copy()
    >>> found = centre(part, raw)
    >>> part[:, 0].tolist(), found.deviation.tolist()
    ([-0.5, 0.5], [0.5])
    """
    n_samples, n_columns = part.shape
    total = float(n_samples) if weights is None else float(np.sum(weights))
    with np.errstate(over="ignore", invalid="ignore"):  # such columns are measured exactly
        mean = _mean(part, weights, total, np)
        part -= mean
        if weights is not None:
            part *= np.sqrt(weights)[:, None]
        squares = np.einsum("ij,ij->j", part, part)
        deviation = np.sqrt(squares / (total or 1.0))
        # The mean is rounded, and a sum of n terms by n times as much: the error matters for means far from zero.
        share = n_samples * CONSTANT_SHARE / NEGLIGIBLE_SHARE
        is_plain = (deviation > np.maximum(share * np.abs(mean), TINY)) & (deviation < HUGE)
        low, high = mean - deviation, mean + deviation
    nothing, zeros = np.zeros(n_columns), np.zeros(n_columns, dtype=np.int64)
    unit = np.ones(n_columns)
    found = Moments(np.asarray(total), mean, nothing, squares, unit, low, high, zeros, zeros)
    if is_plain.all():
        return found
    odd = np.flatnonzero(~is_plain)
    own = np.array(raw[:, odd], dtype=np.float64, order="C")
    exact = centre_exactly(own, weights)
    part[:, odd] = own
    found = found._replace(n_infinite=zeros.copy())
    for values, measured in zip(found[1:], exact[1:], strict=True):
        values[odd] = measured
    return found


def weigh(part: Array, weights: Array | None = None) -> Moments:
    """Apply sample weights to the columns of a float64 array in place and return their moments about zero.

    Afterwards ``part`` holds ``root(weight) * x / unit``: :func:`centre` without an intercept.

    Examples
    --------
    >>> part = np.array([[3.0], [4.0]])
    >>> weigh(part, np.array([1.0, 4.0])).squares.tolist(), part[:, 0].tolist()
    ([73.0], [3.0, 8.0])
    """
    found = measure(part, weights).about_zero
    if np.any(found.unit != 1.0):
        part /= np.where(found.unit == LEAST_UNIT, 1.0, found.unit)
    if weights is not None:
        part *= np.sqrt(weights)[:, None]
    return found


def centre_exactly(part: Any, weights: Any = None, xp: Any = np) -> Moments:
    """Centre the columns of a float64 array in place and return their moments, as arrays of the same library.

    Afterwards ``part`` holds ``root(weight) * (x - mean) / unit``.

    Parameters
    ----------
    part : array of shape (n_samples, n_columns)
        The values.
    weights : array of shape (n_samples,), optional
        1 by default.
    xp : module
        The namespace of both arrays: NumPy, or that of a library with the array API.
    """
    n_samples, n_columns = part.shape
    total = float(n_samples) if weights is None else float(xp.sum(weights))
    low, high = _extremes(part, xp)
    n_missing = n_infinite = xp.zeros(n_columns, dtype=xp.int64)
    with np.errstate(over="ignore", invalid="ignore"):  # non-finite results are an error when all blocks are merged
        if xp is np and not np.isfinite(high - low).all():
            n_missing, n_infinite = np.isnan(part).sum(axis=0), np.isinf(part).sum(axis=0)
        if weights is not None and xp.any(weights == 0.0):
            low, high = _counted_extremes(part, weights, xp)
        unit, own_unit = _units(low, high) if xp is np else (xp.ones_like(low), None)
        if own_unit is not None:
            part /= own_unit
        mean = _mean(part, weights, total, xp)
        part -= mean
        # The mean is rounded, and a sum of n terms by n times as much: the error matters for means far from zero.
        is_far = xp.maximum(xp.abs(low), xp.abs(high)) * (n_samples * CONSTANT_SHARE / NEGLIGIBLE_SHARE) > high - low
        rest = xp.zeros_like(mean)
        if xp.any(is_far):
            rest = xp.where(is_far, _mean(part, weights, total, xp), rest)
            part -= rest
        if weights is not None:
            part *= xp.sqrt(weights)[:, None]
        squares = np.einsum("ij,ij->j", part, part) if xp is np else xp.sum(part * part, axis=0)
        if own_unit is not None:
            mean, rest = mean * own_unit, rest * own_unit
    return Moments(xp.asarray(total), mean, rest, squares, unit, low, high, n_missing, n_infinite)


def _mean(part: Any, weights: Any, total: float, xp: Any) -> Any:
    if weights is None:
        return _down(np.add, part) / total if xp is np else xp.mean(part, axis=0)
    return xp.matmul((weights / total if total else weights)[None, :], part)[0, :]


def _extremes(part: Any, xp: Any) -> tuple[Any, Any]:
    if xp is np:
        return _down(np.minimum, part), _down(np.maximum, part)
    return xp.min(part, axis=0), xp.max(part, axis=0)


def _down(operation: np.ufunc, part: Array) -> Array:
    """Reduce an array along its samples; a narrow one in several columns at once, which takes fewer steps."""
    n_samples, width = part.shape
    fold = FOLDED_WIDTH // max(1, width)
    if fold < 2 or not part.flags.c_contiguous or n_samples < 2 * fold:
        return operation.reduce(part, axis=0)
    n_folded = n_samples // fold * fold
    folded = operation.reduce(part[:n_folded].reshape(-1, fold * width), axis=0).reshape(fold, width)
    return operation.reduce(np.vstack([folded, part[n_folded:]]), axis=0)


def _counted_extremes(part: Any, weights: Any, xp: Any) -> tuple[Any, Any]:
    """Return the extremes over the samples with a positive weight; infinite where there is none."""
    is_out, nothing = (weights == 0.0)[:, None], xp.full_like(part, np.inf)
    return xp.min(xp.where(is_out, nothing, part), axis=0), xp.max(xp.where(is_out, -nothing, part), axis=0)


def measure(block: Any, weights: Array | None = None) -> Moments:
    """Return the moments of the columns of an array or a sparse matrix, which is not changed.

    Examples
    --------
    >>> measure(np.array([[1.0], [3.0], [8.0]])).squares
    array([26.])
    """
    if sp.issparse(block):
        return measure_stored(canonical_columns(block), weights)
    parts: dict[int, Moments] = {}  # by their first column
    for rows, columns in tiles(block.shape):
        raw = block[rows, columns]
        found = centre(raw.astype(np.float64), raw, None if weights is None else weights[rows])
        before = parts.get(columns.start)
        parts[columns.start] = found if before is None else merge(before, found)
    return side_by_side(list(parts.values()))


def canonical_columns(block: Any) -> Any:
    """Return a sparse matrix in CSC form without duplicates; the same object if it is already."""
    if block.format == "csc" and block.has_canonical_format:
        return block
    columns = block.tocsc(copy=block.format == "csc")
    columns.sum_duplicates()
    return columns


def measure_stored(block: Any, weights: Array | None = None) -> Moments:
    """Return the moments of the columns of a sparse matrix in canonical CSC form."""
    n_samples, n_columns = block.shape
    total = float(n_samples) if weights is None else float(weights.sum())
    n_counted = n_samples if weights is None else int(np.count_nonzero(weights))
    counts, values = np.diff(block.indptr), block.data.astype(np.float64)
    own = None if weights is None else weights[block.indices].astype(np.float64)
    if own is not None and n_counted < n_samples:  # remove the samples of weight 0
        is_in = own > 0.0
        counts = _reduce(np.add, is_in.astype(np.intp), counts).astype(np.intp)
        values, own = values[is_in], own[is_in]

    def weighted_sums(of: Array) -> Array:
        return _reduce(np.add, of if own is None else of * own, counts)

    n_missing = n_infinite = np.zeros(n_columns, dtype=np.int64)
    n_zeros = n_counted - counts
    with np.errstate(over="ignore", invalid="ignore"):  # refused when all is known
        if not np.isfinite(values.sum()):
            n_missing, n_infinite = (
                _reduce(np.add, is_odd(values).astype(np.int64), counts).astype(np.int64) for is_odd in (np.isnan, np.isinf)
            )
        low, high = _reduce(np.minimum, values, counts), _reduce(np.maximum, values, counts)
        low, high = np.where(n_zeros, np.minimum(low, 0.0), low), np.where(n_zeros, np.maximum(high, 0.0), high)
        if not n_counted:
            low, high = np.full(n_columns, np.inf), np.full(n_columns, -np.inf)
        unit, own_unit = _units(low, high)
        if own_unit is not None:
            values /= np.repeat(own_unit, counts)
        weight_of_zeros = n_zeros if own is None else _weight_of_zeros(_reduce(np.add, own, counts), n_zeros, weights)
        mean = weighted_sums(values) / (total or 1.0)
        values -= np.repeat(mean, counts)
        rest = (weighted_sums(values) - weight_of_zeros * mean) / (total or 1.0)
        values *= values
        squares = weighted_sums(values) + weight_of_zeros * mean * mean
        squares = np.maximum(squares - total * rest * rest, 0.0)
        if own_unit is not None:
            mean, rest = mean * own_unit, rest * own_unit
    return Moments(np.array(total), mean, rest, squares, unit, low, high, n_missing, n_infinite)


def _reduce(operation: np.ufunc, values: Array, counts: Array) -> Array:
    """Reduce consecutive segments of the given lengths; 0 for an empty one."""
    result = np.zeros(len(counts))
    # reduceat gives an empty segment one value of the next one, so it gets the non-empty segments only; they are adjacent.
    is_filled = counts > 0
    starts = np.cumsum(counts) - counts
    if is_filled.any():
        result[is_filled] = operation.reduceat(values, starts[is_filled])
    return result


def _weight_of_zeros(stored: Array, n_zeros: Array, weights: Any) -> Array:
    """Return the total weight of the samples without a stored value.

    The difference of two nearly equal sums is a rounding error, which must be neither negative nor positive without such
    samples: the number of samples is exact and decides.
    """
    total = float(weights.sum())
    least = n_zeros * weights.min(where=weights > 0.0, initial=total)
    return np.where(n_zeros > 0, np.maximum(total - stored, least), 0.0)


def _units(low: Array, high: Array) -> tuple[Array, Array | None]:
    """Return the units of columns with these extremes, and their divisors, None if all are 1."""
    peak = np.maximum(np.abs(low), np.abs(high))
    if 2.0**-SAFE_EXPONENT < peak.min(initial=1.0) and peak.max(initial=1.0) < 2.0**SAFE_EXPONENT:
        return np.ones(len(peak)), None
    unit = powers_of_two(np.where(low <= high, peak, 0.0))  # without samples the extremes are infinite
    divisor = np.where(unit == LEAST_UNIT, 1.0, unit)
    return unit, divisor if np.any(divisor != 1.0) else None


def merge(left: Any, right: Any) -> Moments:
    """Merge the moments of two sets of samples.

    Examples
    --------
    >>> one, two = np.array([[1.0], [3.0]]), np.array([[8.0]])
    >>> merge(measure(one), measure(two)).squares, np.var([1.0, 3.0, 8.0]) * 3
    (array([26.]), np.float64(26.0))
    """
    left, right = Moments(*left), Moments(*right)
    if not left.weight:  # no samples
        left = left._replace(origin=right.origin)
    weight = left.weight + right.weight
    share = right.weight / weight if weight else right.weight
    unit = np.maximum(left.unit, right.unit)
    with np.errstate(over="ignore", invalid="ignore"):  # refused when all is known
        way = (right.origin - left.origin) + (right.offset - left.offset)
        offset = left.offset + way * share
        way /= unit
        squares = left.squares * (left.unit / unit) ** 2 + right.squares * (right.unit / unit) ** 2
        squares += way * way * (left.weight * share)
    low, high = np.minimum(left.low, right.low), np.maximum(left.high, right.high)
    n_missing, n_infinite = left.n_missing + right.n_missing, left.n_infinite + right.n_infinite
    return Moments(weight, left.origin, offset, squares, unit, low, high, n_missing, n_infinite)


def side_by_side(parts: list[Moments]) -> Moments:
    """Concatenate the moments of adjacent columns."""
    of_columns = zip(*(part[1:] for part in parts), strict=True)
    return Moments(parts[0].weight, *map(np.concatenate, of_columns))


def powers_of_two(sizes: Array, safe_exponent: int = SAFE_EXPONENT) -> Array:
    """Return units for columns with values up to these sizes; 1 between the inverse of 2**safe_exponent and that.

    Examples
    --------
    >>> powers_of_two(np.array([0.3, 2.0**500, 2.0**-500])) == [1.0, 2.0**500, 2.0**-500]
    array([ True,  True,  True])
    """
    exponents = np.frexp(sizes)[1] - 1
    is_fair = (np.abs(exponents) < safe_exponent) | ~np.isfinite(sizes)
    units = np.where(is_fair, 1.0, np.ldexp(1.0, exponents))
    return np.where(sizes > 0.0, np.maximum(units, 2.0 * LEAST_UNIT), LEAST_UNIT)
