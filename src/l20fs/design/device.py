"""Dense feature matrix of another array library, on its device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from l20fs.design.adjustment import LEAST_LEFT
from l20fs.design.base import Columns, ColumnSummary, Design, Likely, Pull
from l20fs.design.column_scale import divisors_of, leading_places
from l20fs.design.meeting import computed_once
from l20fs.design.moments import Moments, centre_exactly, is_varying, powers_of_two
from l20fs.design.parts import CLEAR_SHARE
from l20fs.design.sample_weights import SampleWeights
from l20fs.design.tolerances import refuse_huge_values, refuse_overflow, safe_limit
from l20fs.inputs.devices import Place, working_dtype
from l20fs.typing import Array, Scale

#: Number of elements of a temporary copy of a part of X: large enough for few calls, small compared with device memory.
PART_ELEMENTS = 1 << 26

#: Elements of X from which products take so long that a way of their own is worth the seconds that its first call takes.
LEAST_ELEMENTS = 1 << 30

#: Numbers of lines for which the product is faster with X turned, from which they are and up to which.
TURNED_LINES = (17, 32)

#: Number of elements of one that stays close to the processors of a device while it is read again.
NEAR_ELEMENTS = 1 << 23

#: A feature whose deviation is below this fraction of its mean is measured again, in float64 and without cancellation.
SMALL_SHARE = {np.dtype(np.float32): 1e-2, np.dtype(np.float64): 1e-6}


class Lengths(NamedTuple):
    """Norms of columns in a few numbers: how many are unknown (below 0) or above 0, the largest, and a few in order."""

    n_unknown: int
    n_varying: int
    largest: float
    ordered: Array

    @classmethod
    def of(cls, place: Place, lengths: Any) -> list[Lengths]:
        """Describe lines of norms on a device, all of them by two small transfers."""
        xp = place.xp
        ones, nothing = xp.ones_like(lengths), xp.zeros_like(lengths)
        counts = [xp.sum(xp.where(are, ones, nothing), axis=1) for are in (lengths < 0.0, lengths > 0.0)]
        n_unknown, n_varying, largest = place.fetch(xp.stack([*counts, xp.max(lengths, axis=1)]))
        n_varying = n_varying.astype(np.int64)
        places = np.array([leading_places(max(1, number)) for number in n_varying])
        ordered = values_at(place, lengths, places + (lengths.shape[1] - np.maximum(n_varying, 1))[:, None])
        found = zip(n_unknown.astype(int).tolist(), n_varying.tolist(), largest.tolist(), ordered, strict=True)
        return [cls(*numbers) for numbers in found]


class DeviceDesign(Design):
    """Dense X of an array API library, which stays on its device.

    X~ is ``(base - root shift') / scale``. The base is X itself, unless samples have weights or a feature has a mean larger
    than its deviation, with which products would lose digits, or there are nuisances: then it is a centred copy, without
    what nuisances explain. The shift is subtracted implicitly, as for a sparse X: residuals are orthogonal to the square
    roots of the weights. The samples stay the first axis: products are as fast in this orientation as in the other, and a
    transposed copy would cost more than it saves.

    The operations of a design return NumPy arrays. For results over all features :meth:`products` and :meth:`lines` return
    arrays of the library of X.
    """

    location = "device"

    def __init__(self, X: Any, scale: Scale | Array, sample_weights: SampleWeights) -> None:
        self.place = Place(X)
        self.n_samples, self.n_features = X.shape
        self.n_stored = 0  # lazy bounds, computed on the host, would cost more than the products they save
        self.dtype, self.array_dtype = working_dtype(X), X.dtype
        self.sample_weights = sample_weights
        self._weights = None if sample_weights.values is None else self.place.send(sample_weights.values)
        self._root = None if sample_weights.root is None else self.place.send(sample_weights.root)
        self._unit = float(np.sqrt(sample_weights.total))  # the norm of a feature of deviation 1
        explained: Any = 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # raised as an error below
            shift, length = self._centre(X)
            if sample_weights.basis is not None:
                shift, length, explained = self._adjust(X, sample_weights.basis, shift, length)
        lengths = Lengths.of(self.place, length[None, :])[0]
        self._refuse_overflow(lengths.largest)
        inverse, xp = self._scale_there(scale, length, length, explained, lengths), self.place.xp
        # The remaining correction of the base, and its factors.
        self._units = xp.stack([xp.where(length > 0.0, shift, xp.zeros_like(shift)), inverse])
        self._inverse = xp.astype(inverse, self.array_dtype)
        self._multiply: Any = None
        if self.place.is_cuda and self.n_samples * self.n_features >= LEAST_ELEMENTS:
            from l20fs.design.half_precision import half_product  # loads Triton

            self._multiply = half_product(self._base, length / float(np.sqrt(self.n_samples)), self._inverse)

    def _scale_there(self, scale: Scale | Array, length: Any, norms: Any, explained: Any, lengths: Lengths) -> Any:
        """Choose the scale by the norms of the columns and keep what follows on the device; return the factors.

        ``norms`` are those of the columns as they are multiplied, ``explained`` the energies that nuisances explain.
        """
        xp, place, total, n_varying = self.place.xp, self.place, self.sample_weights.total, lengths.n_varying
        scale = scale if isinstance(scale, str) else place.send(scale)
        deviation, varies = length / self._unit, length > 0.0
        ones, nothing = xp.ones_like(length), xp.zeros_like(length)
        self.scale_rule, divisors = divisors_of(
            scale, deviation, varies, lambda _: lengths.ordered / self._unit, n_varying=n_varying
        )
        inverse = xp.where(varies, ones / divisors, nothing)
        energy = total * xp.where(varies, ones, nothing) if self.scale_rule == "zscore" else xp.square(length / divisors)
        known = [xp.max(deviation / divisors), xp.max(energy), xp.sum(energy)]
        known += [xp.min(xp.where(varies, divisors, ones * np.inf)), xp.max(divisors)]
        self.largest_deviation, largest, together, smallest, largest_scale = place.fetch(xp.stack(known)).tolist()
        refuse_overflow(np.array(largest_scale))
        if self.scale_rule != "zscore":
            refuse_huge_values(np.array([self.largest_deviation]), self.dtype)
        self.summary = ColumnSummary(n_varying, largest, together / max(1, n_varying), smallest)
        if not isinstance(explained, float):
            explained = xp.where(explained > 0.0, explained, nothing) * xp.square(inverse)
        self._there = Columns(xp, self._mean, divisors, varies, energy, explained, norms * inverse)
        return inverse

    @property
    def columns(self) -> Columns:
        return self._there

    # What follows is needed in memory at the end of a fit, if at all.

    @computed_once
    def _here(self) -> Array:
        """Means, divisors, energies and whether they vary of the features, in one transfer."""
        xp, (mean, scale, varies, energy) = self.place.xp, self._there[1:5]
        return self.place.fetch(xp.stack([mean, scale, energy, xp.astype(varies, xp.float64)]))

    @computed_once
    def mean(self) -> Array:
        """Means of the features."""
        return self._here[0].copy()

    @computed_once
    def scale(self) -> Array:
        """Divisors of the features."""
        return self._here[1].copy()

    @computed_once
    def column_energy(self) -> Array:
        """Squared norms of the columns of X~."""
        return self._here[2]

    @computed_once
    def varies(self) -> Array:
        """Mask of the features that vary."""
        return self._here[3] > 0.0

    @computed_once
    def explained_energy(self) -> Array | float:
        """Squared norms of what nuisances explain."""
        explained = self._there.explained
        return explained if isinstance(explained, float) else self.place.fetch(explained)

    def pull_norms(self) -> Array:
        """Return the norm of each feature as used by :meth:`products`, which subtracts nothing."""
        return self.place.fetch(self._there.norms)

    @computed_once
    def centre(self) -> Any:
        """Means from which those of parts of the samples differ little, on the device."""
        return self.place.xp.where(self._there.varies, self._moved, self._mean)

    def _centre(self, X: Any) -> tuple[Any, Any]:
        """Set the base and the means; return the remaining correction of the base, and the norms of the features.

        Without an intercept the means and the correction are zero.
        """
        xp, has_weights = self.place.xp, self._root is not None
        self._base: Any = X
        self._moved: Any = None
        if has_weights:
            self._base, self._moved = self._centred(X, self._weighted_means(X))
        shift, length = self._measure(self._base)
        self._moved = xp.zeros_like(shift) if self._moved is None else self._moved
        is_small = ~(length > (SMALL_SHARE[self.dtype] * self._unit) * xp.abs(self._moved + shift))
        is_far = self._unit * xp.abs(shift) > length
        has_small, has_far = self.place.fetch(xp.stack([xp.any(is_small), xp.any(is_far)]))
        if has_small:
            rows = np.flatnonzero(self.place.fetch(is_small))
            exact = self._measure_exactly(X, rows)
            shift, length = self._with_exact(rows, exact, shift, length)
            has_far = bool(xp.any((self._unit * xp.abs(shift) > length) & (length > 0.0)))
        if has_far and not has_weights:
            self._base, self._moved = self._centred(X, shift)
            shift, length = self._measure(self._base)
            if has_small:
                shift, length = self._with_exact(rows, exact, shift, length)
        self._mean = self._moved + shift
        return shift, length

    def _with_exact(self, rows: Array, exact: Array, shift: Any, length: Any) -> tuple[Any, Any]:
        """Return the corrections and the norms with those of some features, from their exact means and norms."""
        origin, offset, exact_length = exact
        shift_here, length_here = (self.place.fetch(vector).copy() for vector in (shift, length))
        moved = self.place.fetch(self.place.take(self._moved, self.place.send(rows)))
        shift_here[rows], length_here[rows] = (origin - moved) + offset, exact_length
        return self.place.send(shift_here), self.place.send(length_here)

    @computed_once
    def origin(self) -> Array:
        """Values of the features that are 0 in what :meth:`products` multiplies."""
        return self.place.fetch(self._moved)

    @property
    def values(self) -> Any:
        """X as it is multiplied, before it is divided by the scale."""
        return self._base

    def _adjust(self, X: Any, basis: Array, shift: Any, before: Any) -> tuple[Any, Any, Any]:
        """Project nuisances out of a centred copy.

        Returns its correction, which is zero, the norms that are left, and the squared norms of what was taken away.
        """
        xp, sent, lengths = self.place.xp, self.place.send(basis), []
        root = xp.ones_like(sent[0, :]) if self._root is None else self._root
        step, base = max(1, PART_ELEMENTS // self.n_samples), xp.empty_like(X)
        for start in range(0, self.n_features, step):
            block = slice(start, min(start + step, self.n_features))
            part = xp.astype(self._base[:, block], xp.float64) - root[:, None] * shift[block]
            for _ in range(2):  # once more, for what rounding has left
                part -= sent.T @ (sent @ part)
            lengths.append(xp.linalg.vector_norm(part, axis=0))
            base[:, block] = xp.astype(part, X.dtype)
        self._base, length, nothing = base, xp.concat(lengths), xp.zeros_like(before)
        length = xp.where(length > self._least_left(before), length, nothing)
        explained = xp.where(length > 0.0, xp.square(before) - xp.square(length), nothing)
        return nothing, length, explained

    def _least_left(self, before: Any) -> Any:
        """Return the norms that nuisances must leave of columns for these to vary, from their norms before."""
        xp = self.place.xp
        stored = xp.sqrt(xp.square(before) + self.sample_weights.total * xp.square(self._mean))
        return LEAST_LEFT * float(np.finfo(self.dtype).eps) * stored

    def _refuse_overflow(self, largest: float) -> None:
        """Raise an error for features so large that their products, which are scaled afterwards, may overflow."""
        limit = safe_limit(self.dtype) ** 2
        if not largest < limit:
            raise ValueError(
                f"A feature of X has a deviation above {limit / self._unit:.1g}; on a device the sums of such values may "
                f"overflow in {self.dtype.name}. Divide X by a constant."
            )

    def _weighted_means(self, X: Any) -> Any:
        xp = self.place.xp
        if not self.sample_weights.fit_intercept:
            return xp.zeros(self.n_features, dtype=xp.float64, device=self.place.device)
        share = np.asarray(self.sample_weights.share)[None, :]
        return xp.matmul(self.place.send(share, X.dtype), X)[0, :]

    def _centred(self, X: Any, mean: Any) -> tuple[Any, Any]:
        """Return a centred copy, with sample weights applied if there are any, and the subtracted means."""
        xp = self.place.xp
        mean = xp.astype(mean, X.dtype)
        copy = X - mean
        if self._root is not None:
            copy *= xp.astype(self._root, X.dtype)[:, None]
        return copy, xp.astype(mean, xp.float64)

    def _measure(self, base: Any) -> tuple[Any, Any]:
        """Return the remaining means of the features, and their norms after centring, on the device."""
        xp, total = self.place.xp, self.sample_weights.total
        lengths = xp.astype(xp.linalg.vector_norm(base, axis=0), xp.float64)
        if not self.sample_weights.fit_intercept:
            return xp.zeros_like(lengths), lengths
        if self._root is None:
            sums = xp.sum(base, axis=0)
        else:
            sums = xp.matmul(xp.astype(self._root, base.dtype)[None, :], base)[0, :]
        shift = xp.astype(sums, xp.float64) / total
        squares = lengths * lengths - total * shift * shift
        # For rounding errors; infinite values are an error later.
        return shift, xp.sqrt(xp.where(squares < 0.0, xp.zeros_like(squares), squares))

    def _measure_exactly(self, X: Any, features: Array) -> Array:
        """Return the two parts of the means and the norms of some features in float64; the norm of a constant one is 0."""
        found = np.zeros((3, len(features)))
        step = max(1, PART_ELEMENTS // self.n_samples)
        for start in range(0, len(features), step):
            block = slice(start, start + step)
            found[:, block] = self._measure_part(X, features[block])
        return found

    def _measure_part(self, X: Any, features: Array) -> Array:
        xp, place = self.place.xp, self.place
        part = self._columns(X, place.send(features))
        low, high = (place.fetch(extremes(part, axis=0)).astype(np.float64) for extremes in (xp.min, xp.max))
        nothing = np.zeros(len(features))
        peak = np.maximum(np.abs(low), np.abs(high))
        if not (is_varying(low, high) if self.sample_weights.fit_intercept else peak).any():  # as a rule: zero features
            return np.array([low, nothing, nothing])
        unit = powers_of_two(peak)
        part = xp.astype(part, xp.float64) / place.send(unit)
        found = Moments(*map(place.fetch, centre_exactly(part, self._weights, xp)))
        found = found if self.sample_weights.fit_intercept else found.about_zero
        return np.array([found.origin, found.offset, found.length]) * unit

    def _columns(self, X: Any, features: Any) -> Any:
        """Return the values of some features, an array on the device."""
        return self.place.take(X, features, 1)

    def measure_parts(self, weights: Array) -> Any:
        """Measure the features for lines of weights of the samples: (n_lines, 3, n_features) on the device, in units of X.

        These are the means less :attr:`origin`, the norms of the centred columns, -1 where cancellation made them inexact,
        and the norms of what :meth:`products` multiplies. The design itself has no sample weights.
        """
        xp, place = self.place.xp, self.place
        lines, scale, found = place.send(weights, self.array_dtype), place.send(self.scale), []
        totals = place.send(weights.sum(axis=1))[:, None]
        step = self.n_features if self._multiply is not None else max(1, PART_ELEMENTS // self.n_samples)
        for start in range(0, self.n_features, step):
            block = slice(start, min(start + step, self.n_features))
            sums, squares = (xp.astype(part, xp.float64) for part in self._sums(lines, block))
            mean = sums / totals if self.sample_weights.fit_intercept else xp.zeros_like(sums)
            left = squares - totals * mean * mean
            is_clear = left >= CLEAR_SHARE[self.dtype] * squares  # all values are 0, or they differ clearly
            norms = xp.where(is_clear, xp.sqrt(xp.abs(left)) * scale[block], xp.full_like(left, -1.0))
            found.append(xp.stack([mean * scale[block], norms, xp.sqrt(squares) * scale[block]], axis=1))
        return found[0] if len(found) == 1 else xp.concat(found, axis=2)

    def _sums(self, lines: Any, block: slice) -> tuple[Any, Any]:
        """Return the products of lines with what :meth:`products` multiplies of some features, and with its squares."""
        if self._multiply is not None:
            return self._multiply(lines), self._multiply(lines, squared=True)
        part = self._base[:, block] * self._inverse[block]
        sums = lines @ part
        part *= part
        return sums, lines @ part

    def products(self, residual: Any) -> Any:
        """Return ``R @ X~`` on the device, (n_rows, n_features), for a residual on the device; one pass over X."""
        if self._multiply is not None:
            return self._multiply(residual)
        xp, (fewest, most) = self.place.xp, TURNED_LINES
        residual = xp.astype(residual, self.array_dtype, copy=False)
        # Of the ways to write this product, the faster one on the devices that were measured.
        if fewest <= residual.shape[0] <= most:
            return xp.matmul(self._base.T, residual.T).T * self._inverse
        return xp.matmul(residual, self._base) * self._inverse

    def lines(self, rows: Any, dtype: Any) -> Any:
        """Return the features ``rows``, an array on the device, as rows of X~ on the device."""
        xp = self.place.xp
        columns = xp.astype(self.place.take(self._base, rows, 1), dtype, copy=False)
        units = xp.astype(self.place.take(self._units, rows, 1), dtype, copy=False)
        shift, inverse = units[0, :], units[1, :]
        if self._root is None:
            return ((columns - shift) * inverse).T
        return ((columns - xp.astype(self._root, dtype)[:, None] * shift) * inverse).T

    def _lines(self, rows: Array) -> Any:
        return self.lines(self.place.send(rows), self.array_dtype)

    def pull(self, residual: Array, rows: Array | None = None, *, likely: Likely | None = None) -> Array:
        if rows is not None:
            return self.pull_among(rows)(residual)
        return self.place.fetch(self.products(self.place.send(residual, self.array_dtype)))

    def pull_exactly(self, residual: Array) -> Array:
        return self.place.fetch(self.place.xp.concat(list(self._exact_products(residual)), axis=1))

    def squared_lengths_exactly(self, residual: Array) -> Array:
        xp = self.place.xp
        return self.place.fetch(xp.concat([xp.sum(part * part, axis=0) for part in self._exact_products(residual)]))

    def _exact_products(self, residual: Array) -> Iterator[Any]:
        """Yield the products of a residual with adjacent features on the device, in float64."""
        xp, sent = self.place.xp, self.place.send(residual)
        root = xp.ones_like(sent[0, :]) if self._root is None else self._root
        beyond = xp.sum(sent * root, axis=1)[:, None]  # zero up to rounding, as products rely on
        step = max(1, PART_ELEMENTS // self.n_samples)
        for start in range(0, self.n_features, step):
            block = slice(start, min(start + step, self.n_features))
            part = xp.astype(self._base[:, block], xp.float64, copy=False)
            yield (xp.matmul(part.T, sent.T).T - beyond * self._units[0, block]) * self._units[1, block]

    def pull_among(self, rows: Array | slice) -> Pull:
        rows = np.arange(self.n_features)[rows] if isinstance(rows, slice) else rows
        lines = self._lines(rows)
        return lambda residual: self.place.fetch(self.place.send(residual, self.array_dtype) @ lines.T)

    def push(self, rows: Array, values: Array, *, likely: Likely | None = None) -> Array:
        image: Any = 0.0
        step = max(64, PART_ELEMENTS // self.n_samples)
        for start in range(0, max(1, len(rows)), step):
            chosen = self.place.send(rows[start : start + step])
            factors = self.place.take(self._units[1, :], chosen)
            part = self.place.xp.astype(self.place.send(values[:, start : start + step]) * factors, self.array_dtype)
            image = image + part @ self.place.take(self._base, chosen, 1).T
        # As for a sparse X: the sum is then zero to the last digit, on which products rely. This removes the rest of the
        # means as well.
        return self.sample_weights.centred(self.place.fetch(image))

    def take(self, rows: Array, samples: slice) -> Array:
        start, stop, _ = samples.indices(self.n_samples)
        return self.place.fetch(self.lines(self.place.send(rows), self.place.xp.float64)[:, start:stop]).T

    def column(self, row: int, *, likely: Likely | None = None) -> Array:
        return self.take(np.array([row]), slice(None))[:, 0]

    def triangle(self, rows: Array, targets: Array, ridge: float) -> Array:
        """Return the triangle of a QR factorisation of the features ``rows`` with the ridge term, and the targets."""
        xp, place = self.place.xp, self.place
        columns = xp.concat([self.lines(place.send(rows), xp.float64), place.send(targets)]).T
        ridge_rows = np.sqrt(ridge) * np.eye(len(rows) if ridge else 0, len(rows) + len(targets))
        return place.fetch(xp.linalg.qr(xp.concat([place.send(ridge_rows), columns])).R)

    @computed_once
    def max_sample_energy(self) -> float:  # takes a pass over X, hence only on demand
        """Largest ``min(1, w_i) ||x_i||^2``."""
        xp, values = self.place.xp, self.sample_weights.values
        shift = self._units[0, :] * self._units[1, :]
        crossed = self._base @ xp.astype(shift * self._units[1, :], self.array_dtype)
        if self._root is not None:
            crossed = crossed * xp.astype(self._root, self.array_dtype)
        lengths, step = [], max(1, NEAR_ELEMENTS // self.n_features)
        for start in range(0, self.n_samples, step):
            part = self._base[start : min(start + step, self.n_samples), :] * self._inverse
            lengths.append(xp.linalg.vector_norm(part, axis=1))
        energies = xp.square(xp.astype(xp.concat(lengths), xp.float64)) - 2.0 * xp.astype(crossed, xp.float64)
        counts = np.ones(self.n_samples) if values is None else values
        energies = self.place.fetch(energies) + float(xp.sum(shift * shift)) * counts
        return float((energies / np.maximum(counts, 1.0)).max())


def values_at(place: Place, lines: Any, places: Array) -> Array:
    """Return the values that sorting puts at some places of each line, (n_lines, n_places).

    Examples
    --------
    >>> values_at(Place(np.empty(0)), np.array([[3.0, 1.0, 2.0]]), np.array([[0, 2]]))
    array([[1., 3.]])
    """
    n_lines, n_values = lines.shape
    chosen = (places + n_values * np.arange(n_lines)[:, None]).ravel()
    flat = place.xp.reshape(place.xp.sort(lines, axis=1), (n_lines * n_values,))
    return place.fetch(place.take(flat, place.send(chosen))).reshape(n_lines, -1)
