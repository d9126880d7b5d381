r"""Mean, deviation, energy and constancy of columns: measured in one place for every container.

The moments of a column are those of the samples with a positive weight. They are kept as shifted sums, so that an offset of
many deviations costs no digits: the mean is ``origin + offset``, where the origin is close to the values and the offset is a
mean of differences from it. Moments of blocks of samples merge (Chan, Golub and LeVeque 1983).

A column varies if :math:`\max - \min > 4 \epsilon \max |x|` with the :math:`\epsilon` of float64: a rule about the values
alone, whatever their number is and wherever they are stored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from l20fs.design.tiles import tiles
from l20fs.typing import Array

#: Values of a column that differ by at most this share of the largest one are equal but for rounding.
CONSTANT_SHARE = 4.0 * float(np.finfo(np.float64).eps)

#: An offset below this share of the range of a column is rounding: products with equal columns may differ by as much.
NEGLIGIBLE_SHARE = 1e-9

#: A feature whose mean is at most so many deviations from 0 may be centred after a product instead of before it: that
#: costs less than one digit.
MODEST = 8.0

#: Columns with values between 2**-400 and 2**400 are measured as they are: neither their squares nor those of their rounding
#: vanish or overflow.
SAFE_EXPONENT = 400

#: The unit of a column of zeros, which gives way to any other: as small as one can be divided by.
LEAST_UNIT = 2.0**-1000


class Moments(NamedTuple):
    """Moments of columns, one entry per column.

    ``weight`` is the total weight of the samples. ``squares`` are those of the centred values in a ``unit``, a power of two
    that is 1 unless squares would vanish or overflow. ``low`` and ``high`` are the extremes of the column; for a sparse
    column with zeros and other values, zero and one of the others, which decide as well whether it varies.
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
        """The mean, rounded to float64."""
        return self.origin + self.offset

    @property
    def rest(self) -> Array:
        """The part of the mean that its rounding leaves out; 0 where it does not matter."""
        left = (self.origin - self.mean) + self.offset
        return np.where(np.abs(left) > NEGLIGIBLE_SHARE * (self.high - self.low), left, 0.0)

    @property
    def varies(self) -> Array:
        """Mask of the columns that are not constant."""
        return is_varying(self.low, self.high)

    @property
    def length(self) -> Array:
        """The norm of the centred column; 0 if it is constant."""
        with np.errstate(over="ignore", invalid="ignore"):  # refused by those who need it
            return np.where(self.varies, self.unit * np.sqrt(self.squares), 0.0)

    @property
    def deviation(self) -> Array:
        """The standard deviation; 0 if the column is constant."""
        return self.length / np.sqrt(self.weight)


def is_varying(low: Array, high: Array) -> Array:
    """Say which columns with these extremes vary.

    Examples
    --------
    >>> is_varying(np.array([1e8, 1e8, 0.0]), np.array([1e8 * (1 + 4e-16), 1e8 + 3e-7, 0.0]))
    array([False,  True, False])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return high - low > CONSTANT_SHARE * np.maximum(np.abs(low), np.abs(high))


def varying_columns(X: Array) -> Array:
    """Say which columns of a dense array vary.

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
    found = centre(copy)
    copy *= found.unit
    return copy


def standardised(X: Array) -> Array:
    """Return a copy of a dense array with mean 0 and deviation 1 in every column; a constant one becomes zero.

    Examples
    --------
    >>> standardised(np.array([[1.0, 5.0], [2.0, 5.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    copy = np.array(X, dtype=np.float64)
    found = centre(copy)
    copy /= np.where(found.varies, found.deviation / found.unit, np.inf)
    return copy


def centre(part: Any, weights: Any = None, xp: Any = np) -> Moments:
    """Centre the columns of a float64 array in place and return their moments, as arrays of the same library.

    Afterwards ``part`` holds ``root(weight) * (x - mean) / unit``.

    Parameters
    ----------
    part : array of shape (n_samples, n_columns)
    weights : array of shape (n_samples,), optional
        1 by default.
    xp : module
        The namespace of both arrays: NumPy, or that of a library with the array API.

    Examples
    --------
    >>> part = np.array([[1e15 + 1], [1e15 + 2]])
    >>> found = centre(part)
    >>> part[:, 0].tolist(), found.deviation.tolist()
    ([-0.5, 0.5], [0.5])
    """
    n_samples, n_columns = part.shape
    total, low, high = float(n_samples), xp.min(part, axis=0), xp.max(part, axis=0)
    n_missing = n_infinite = xp.zeros(n_columns, dtype=xp.int64)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused when all is known
        if xp is np and not np.isfinite(high - low).all():
            n_missing, n_infinite = np.isnan(part).sum(axis=0), np.isinf(part).sum(axis=0)
        if weights is not None:
            total = float(xp.sum(weights))
            low, high = _counted_extremes(part, weights, xp)
        peak = xp.maximum(xp.abs(low), xp.abs(high))
        peak = xp.where(low <= high, peak, xp.zeros_like(peak))  # where no sample counts there is nothing
        unit = powers_of_two(peak) if xp is np else xp.ones_like(peak)
        is_extreme = (unit != 1.0) & (unit != LEAST_UNIT)
        if xp.any(is_extreme):
            part /= xp.where(is_extreme, unit, xp.ones_like(unit))
        mean = _mean(part, weights, total, xp)
        part -= mean
        # The mean is rounded, and a sum of n terms by n times as much: what is left of it matters where it is far away.
        is_far = n_samples * CONSTANT_SHARE * peak > NEGLIGIBLE_SHARE * (high - low)
        rest = xp.zeros_like(mean)
        if xp.any(is_far):
            rest = xp.where(is_far, _mean(part, weights, total, xp), rest)
            part -= rest
        if weights is not None:
            part *= xp.sqrt(weights)[:, None]
        squares = np.einsum("ij,ij->j", part, part) if xp is np else xp.sum(part * part, axis=0)
        if xp.any(is_extreme):
            own_unit = xp.where(is_extreme, unit, xp.ones_like(unit))
            mean, rest = mean * own_unit, rest * own_unit
    return Moments(xp.asarray(total), mean, rest, squares, unit, low, high, n_missing, n_infinite)


def _mean(part: Any, weights: Any, total: float, xp: Any) -> Any:
    if weights is None:
        return xp.mean(part, axis=0)
    return xp.matmul((weights / total if total else weights)[None, :], part)[0, :]


def _counted_extremes(part: Any, weights: Any, xp: Any) -> tuple[Any, Any]:
    """Return the extremes over the samples with a positive weight; infinite where there is none."""
    is_out = (weights == 0.0)[:, None]
    if not xp.any(is_out):
        return xp.min(part, axis=0), xp.max(part, axis=0)
    nothing = xp.full_like(part, np.inf)
    return xp.min(xp.where(is_out, nothing, part), axis=0), xp.max(xp.where(is_out, -nothing, part), axis=0)


def measure(block: Any, weights: Array | None = None) -> Moments:
    """Return the moments of the columns of an array or a sparse matrix, which stays as it is.

    Examples
    --------
    >>> measure(np.array([[1.0], [3.0], [8.0]])).squares
    array([26.])
    """
    if sp.issparse(block):
        return measure_entries(*entries(block), block.shape, None if weights is None else weights.astype(np.float64))
    parts: dict[int, Moments] = {}  # by their first column
    for rows, columns in tiles(block.shape):
        found = centre(block[rows, columns].astype(np.float64), None if weights is None else weights[rows])
        before = parts.get(columns.start)
        parts[columns.start] = found if before is None else merge(before, found)
    return side_by_side(list(parts.values()))


def entries(block: Any) -> tuple[Array, Array, Array]:
    """Return the stored entries of a sparse block: values of its own in float64, and the sample and the column of each."""
    block = block if block.format in ("csr", "csc") else block.tocsr()
    if not block.has_canonical_format:
        block = block.copy()
        block.sum_duplicates()
    lines = np.repeat(np.arange(len(block.indptr) - 1), np.diff(block.indptr))
    values = block.data.astype(np.float64)
    return (values, lines, block.indices) if block.format == "csr" else (values, block.indices, lines)


def measure_entries(
    values: Array, samples: Array, columns: Array, shape: tuple[int, ...], weights: Array | None = None
) -> Moments:
    """Return the moments of the columns of a sparse matrix from its entries; ``values`` are used up."""
    n_samples, n_columns = shape
    own = None if weights is None else weights[samples]

    def sums(of: Array | None) -> Array:
        return np.bincount(columns, of, minlength=n_columns).astype(np.float64, copy=False)

    n_missing = n_infinite = np.zeros(n_columns, dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(values.sum()):
            n_missing = np.bincount(columns[np.isnan(values)], minlength=n_columns)
            n_infinite = np.bincount(columns[np.isinf(values)], minlength=n_columns)
        total = float(n_samples) if weights is None else float(weights.sum())
        n_stored = sums(None if own is None else own != 0.0)
        n_zeros = (n_samples if weights is None else int(np.count_nonzero(weights))) - n_stored
        is_full = n_zeros == 0
        weight_of_zeros = n_zeros if own is None else _weight_of_zeros(total, sums(own), n_zeros, weights)
        low, high, peak = _sparse_extremes(values, columns, is_full, own)
        unit = powers_of_two(peak)
        is_extreme = (unit != 1.0) & (unit != LEAST_UNIT)
        own_unit = np.where(is_extreme, unit, 1.0)
        if is_extreme.any():
            values /= own_unit[columns]
        mean = sums(values if own is None else values * own) / (total or 1.0)
        values -= mean[columns]
        rest = (sums(values if own is None else values * own) - weight_of_zeros * mean) / (total or 1.0)
        values *= values
        squares = sums(values if own is None else values * own) + weight_of_zeros * mean * mean
        squares = np.maximum(squares - total * rest * rest, 0.0)
    origin, offset = mean * own_unit, rest * own_unit
    return Moments(np.array(total), origin, offset, squares, unit, low, high, n_missing, n_infinite)


def _weight_of_zeros(total: float, stored: Array, n_zeros: Array, weights: Any) -> Array:
    """Return the weight of the samples that are not stored, from that of the others.

    A difference of sums is rounding where next to nothing is left, and must then neither be negative nor appear from
    nowhere: the number of samples is exact.
    """
    least = n_zeros * weights.min(where=weights > 0.0, initial=np.inf)
    return np.where(n_zeros > 0, np.maximum(total - stored, least), 0.0)


def _sparse_extremes(values: Array, columns: Array, is_full: Array, own: Array | None) -> tuple[Array, Array, Array]:
    """Return low, high and the largest absolute value of sparse columns; see :class:`Moments` for those with zeros."""
    if own is not None:
        values, columns = values[own != 0.0], columns[own != 0.0]
    witness = np.zeros(len(is_full))
    is_other = values != 0.0
    witness[columns[is_other]] = values[is_other]
    low, high = np.minimum(witness, 0.0), np.maximum(witness, 0.0)
    if is_full.any():
        low[is_full], high[is_full] = np.inf, -np.inf
        is_in = is_full[columns]
        np.minimum.at(low, columns[is_in], values[is_in])
        np.maximum.at(high, columns[is_in], values[is_in])
    peak = np.zeros(len(is_full))
    sizes = np.abs(values[is_other])
    if 2.0**-SAFE_EXPONENT < sizes.min(initial=1.0) and sizes.max(initial=1.0) < 2.0**SAFE_EXPONENT:
        return low, high, np.abs(witness)
    np.maximum.at(peak, columns[is_other], sizes)
    return low, high, peak


def merge(left: Any, right: Any) -> Moments:
    """Return the moments of the samples of both.

    Examples
    --------
    >>> one, two = np.array([[1.0], [3.0]]), np.array([[8.0]])
    >>> merge(measure(one), measure(two)).squares, np.var([1.0, 3.0, 8.0]) * 3
    (array([26.]), np.float64(26.0))
    """
    left, right = Moments(*left), Moments(*right)
    if not left.weight:  # nothing was measured there
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
    """Return the moments of columns next to each other."""
    of_columns = zip(*(part[1:] for part in parts), strict=True)
    return Moments(parts[0].weight, *map(np.concatenate, of_columns))


def powers_of_two(sizes: Array) -> Array:
    """Return units for columns with values up to these sizes.

    Examples
    --------
    >>> powers_of_two(np.array([0.3, 2.0**500, 2.0**-500])) == [1.0, 2.0**500, 2.0**-500]
    array([ True,  True,  True])
    """
    exponents = np.frexp(sizes)[1] - 1
    is_fair = (np.abs(exponents) < SAFE_EXPONENT) | ~np.isfinite(sizes)
    units = np.where(is_fair, 1.0, np.ldexp(1.0, exponents))
    return np.where(sizes > 0.0, np.maximum(units, 2.0 * LEAST_UNIT), LEAST_UNIT)
