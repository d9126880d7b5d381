r"""X~ of one problem: the columns of X, weighted, centred, scaled and adjusted.

.. math:: \tilde x_j = \sqrt w \, (x_j - m_j) / s_j

with the sample weights w and the weighted mean m, so that ordinary least squares on X~ is weighted least squares on X, and a
sample of weight 2 is equivalent to the sample twice. Without an intercept m is 0. With nuisances N, such as the batch of
each sample, X~ is projected onto the complement of :math:`\sqrt w N`
(:class:`~l20fs.design.sample_weights.SampleWeights`): one of two vectors that are multiplied is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from l20fs.design.column_scale import divisors_of
from l20fs.design.driver import Request, Walk
from l20fs.design.matrix import BLOCK_ELEMENTS, Lines, Matrix
from l20fs.design.sample_weights import SampleWeights
from l20fs.design.tolerances import (
    CONSTANT_SHARE,
    LEAST_DEVIATION,
    LEAST_LEFT,
    SMALL_SHARE,
    refuse_huge_values,
    refuse_overflow,
)
from l20fs.inputs.devices import Place
from l20fs.typing import Array, Scale


class Measured(NamedTuple):
    """Columns of one problem before they are scaled; vectors over the features, where X is.

    ``samples`` are those of the problem among all of X (None: all), and ``weights`` their weights over all of X, where X
    is. ``offset`` is the weighted mean of V, ``energy`` the squared norm of what is left of a centred column,
    0 if it is constant, ``explained`` what nuisances took of it, and ``shares`` their products with the columns,
    (n_nuisances, n_features).
    """

    matrix: Matrix
    sample_weights: SampleWeights
    samples: Array | None
    weights: Any
    offset: Any
    energy: Any
    varies: Any
    explained: Any
    shares: Any

    @property
    def deviation(self) -> Any:
        xp = self.matrix.place.xp
        return xp.sqrt(self.energy / self.sample_weights.total)

    def spread(self, lines: Array) -> Any:
        """Return lines over the samples of the problem as lines over all samples of X, 0 elsewhere, where X is."""
        return self.matrix.place.send(spread(lines, self.samples, self.matrix.n_samples))

    def among(self, lines: Array) -> Array:
        """Return lines over all samples of X at those of the problem."""
        return lines if self.samples is None else lines[..., self.samples]


def spread(lines: Array, samples: Array | None, n_samples: int) -> Array:
    """Return lines over some samples as lines over all, 0 elsewhere; those of a sample that is there twice are added.

    Examples
    --------
    >>> spread(np.array([[1.0, 2.0, 4.0]]), np.array([2, 0, 2]), 3)
    array([[2., 0., 5.]])
    """
    if samples is None:
        return lines
    found = np.zeros((*lines.shape[:-1], n_samples))
    np.add.at(found.T, samples, lines.T)
    return found


def measure(
    matrix: Matrix, sample_weights: SampleWeights, samples: Array | None = None, vectors: Array | None = None
) -> Walk[tuple[Measured, Any]]:
    """Measure the columns of one problem, and multiply those of V with vectors over its samples: by one pass over X."""
    xp, total = matrix.place.xp, sample_weights.total
    values = sample_weights.values
    if samples is not None:
        values = spread(np.ones(len(samples)) if values is None else values, samples, matrix.n_samples)
    weights = matrix.put(values)
    lines = [each for each in (sample_weights.basis, vectors) if each is not None]
    asked = [Request(matrix, "moments", weights)]
    for each in lines:
        there = matrix.place.send(spread(sample_weights.times_root(each), samples, matrix.n_samples))
        asked.append(Request(matrix, "exact_products", there))
    (sums, squares), *products = yield asked
    with np.errstate(over="ignore", invalid="ignore"):  # raised as an error below
        offset, energy = xp.zeros_like(squares), squares
        if matrix.has_intercept and sums is not None:
            offset = sums / total
            offset, energy = _measured_again(matrix, values, offset, squares - total * offset * offset, squares)
        refuse_overflow(total * xp.max(energy), matrix.dtype)  # of products with lines whose squares add up to the total
        mean = matrix.shift_there + offset
        size = CONSTANT_SHARE * mean if matrix.has_intercept else xp.zeros_like(energy)
        least = total * (xp.square(size) + LEAST_DEVIATION**2)
    varies = energy > least
    nothing = xp.zeros_like(energy)
    found = Measured(matrix, sample_weights, samples, weights, offset, xp.where(varies, energy, nothing), varies, 0.0, None)
    if sample_weights.basis is not None:
        found = _adjusted(found, mean, products[0])
    return found, products[-1] if vectors is not None else None


def _measured_again(matrix: Matrix, weights: Array | None, offset: Any, energy: Any, squares: Any) -> tuple[Any, Any]:
    """Return means and energies of which those that cancellation has made uncertain are measured from the columns.

    It happens to a column that is constant, or nearly so, among the samples of a problem, but not among all.
    """
    place = matrix.place
    weights = np.ones(matrix.n_samples) if weights is None else weights
    small = np.flatnonzero(place.fetch((squares > 0.0) & (energy <= SMALL_SHARE * squares)))
    for rows in matrix.some_at_a_time(small):
        columns = matrix.columns(rows)
        first = columns[:, int(weights.argmax())]
        columns = columns - first[:, None]
        means = columns @ weights / weights.sum()
        columns -= means[:, None]
        offset = place.put(offset, rows, first + means)
        energy = place.put(energy, rows, np.square(columns) @ weights)
    return offset, energy


def _adjusted(found: Measured, mean: Any, shares: Any) -> Measured:
    """Subtract what nuisances explain of the columns; those that they explain altogether are constant."""
    matrix, weights, place = found.matrix, found.sample_weights, found.matrix.place
    xp = place.xp
    assert weights.basis is not None
    shares = xp.where(found.varies, shares, xp.zeros_like(shares))
    left = found.energy - xp.sum(shares * shares, axis=0)
    small = np.flatnonzero(place.fetch(found.varies & (left <= SMALL_SHARE * found.energy)))
    for rows in matrix.some_at_a_time(small):
        there = place.send(rows)
        offsets = place.fetch(place.take(found.offset, there))
        part = weights.times_root(found.among(matrix.columns(rows)) - offsets[:, None])
        for _ in range(2):  # once more, for what rounding has left
            part = part - (part @ weights.basis.T) @ weights.basis
        left = place.put(left, rows, np.einsum("ij,ij->i", part, part))
    stored = xp.sqrt(found.energy + weights.total * xp.square(mean))
    is_left = found.varies & (xp.sqrt(xp.maximum(left, xp.zeros_like(left))) > LEAST_LEFT * _eps(matrix) * stored)
    nothing = xp.zeros_like(left)
    return found._replace(
        energy=xp.where(is_left, left, nothing),
        varies=is_left,
        explained=xp.where(is_left, found.energy - left, nothing),
        shares=xp.where(is_left, shares, xp.zeros_like(shares)),
    )


def _eps(matrix: Matrix) -> float:
    return float(np.finfo(matrix.dtype).eps)


class Design:
    """X~ of one problem.

    Vectors over the features are where X is; ``mean``, ``scale``, ``varies`` and ``column_energy`` are on the host.

    Parameters
    ----------
    measured : Measured
        The columns before they are scaled.
    scale : {"auto", "moderated", "zscore", "none"} or array of shape (n_features,)
        Rule for the divisor of each feature (:func:`~l20fs.design.column_scale.divisors_of`), or the divisors.

    Attributes
    ----------
    energy : array of shape (n_features,)
        Squared norm of each column of X~, 0 if it is constant.
    factor : array of shape (n_features,)
        What the centred columns are multiplied by, 0 if they are constant.
    shares : array of shape (n_nuisances, n_features), or None
        Products of the nuisances with the columns.
    scale_rule : {"moderated", "zscore", "none", "given"}
    """

    def __init__(self, measured: Measured, scale: Scale | Array) -> None:
        self.measured = measured
        self.matrix, self.sample_weights, self.weights = measured.matrix, measured.sample_weights, measured.weights
        self.place: Place = self.matrix.place
        self.dtype = self.matrix.dtype
        self.n_features = self.matrix.n_features
        self.n_samples = self.matrix.n_samples if measured.samples is None else len(measured.samples)
        xp, varies = self.place.xp, measured.varies
        given = scale if isinstance(scale, str) else self.place.send(scale)
        self.scale_rule, divisors = divisors_of(given, measured.deviation, varies)
        if self.scale_rule != "zscore":
            refuse_overflow(xp.max(divisors))
        nothing, ones = xp.zeros_like(measured.energy), xp.ones_like(measured.energy)
        self.scale_there = divisors
        with np.errstate(over="ignore", under="ignore"):
            self.factor = xp.where(varies, ones / divisors, nothing)
            if self.scale_rule == "zscore" and measured.shares is None:
                self.energy = xp.where(varies, ones * self.sample_weights.total, nothing)
            else:
                self.energy = measured.energy * self.factor * self.factor
            self.explained = measured.explained * self.factor * self.factor
        self.shares = None if measured.shares is None else measured.shares * self.factor
        n_varying, largest, total, deviation = self._summary()
        #: Number of features that vary, the largest energy and the mean energy of one.
        self.n_varying, self.largest_energy = int(n_varying), largest
        self.mean_energy = total / n_varying if n_varying else 0.0
        #: Largest deviation of a feature, in units of the scale.
        self.largest_deviation = deviation
        if self.scale_rule != "zscore":
            refuse_huge_values(deviation, self.dtype)

    def _summary(self) -> list[float]:
        xp, energy = self.place.xp, self.energy
        count = xp.sum(xp.astype(self.measured.varies, xp.float64))
        deviation = xp.sqrt(xp.max(self.measured.energy * self.factor * self.factor) / self.sample_weights.total)
        numbers = [count, xp.max(energy), xp.sum(energy), deviation]
        return [float(each) for each in self.place.fetch(xp.stack(numbers))]

    @cached_property
    def least_energy(self) -> Any:
        """Squared norm that must be left of each column for it to count as independent of others, where X is.

        A column of which less than 16 units in the last place of its values is left, before they are centred, may be a
        linear combination of the others that was rounded when X was stored; what is left is computed to 1e-10 of the length
        of the column. Half of the length of a column that varies is enough in any case.
        """
        xp, energy = self.place.xp, self.energy
        rounded = self.stored_energy * (LEAST_LEFT * float(np.finfo(self.dtype).eps)) ** 2
        return xp.maximum(xp.minimum(rounded, 0.25 * energy), 1e-20 * energy)

    @property
    def stored_energy(self) -> Any:
        """Squared norms of the columns before they are centred, in units of their scale, where X is; 0 for constant ones."""
        mean = self.matrix.shift_there + self.measured.offset
        return self.energy + self.explained + self.sample_weights.total * self.place.xp.square(mean * self.factor)

    # ------------------------------------------------------------------------------------------------- on the host

    @cached_property
    def offset(self) -> Array:
        """Weighted mean of V."""
        return self.place.fetch(self.measured.offset)

    @cached_property
    def mean(self) -> Array:
        """Weighted mean of X; 0 without an intercept."""
        return self.matrix.shift + self.offset

    @cached_property
    def scale(self) -> Array:
        """Divisor of each feature."""
        return self.place.fetch(self.scale_there)

    @cached_property
    def varies(self) -> Array:
        """Mask of the features that are not constant."""
        return self.place.fetch(self.measured.varies)

    @cached_property
    def column_energy(self) -> Array:
        """Squared norm of each column of X~."""
        return self.place.fetch(self.energy)

    @cached_property
    def explained_energy(self) -> Any:
        """Squared norms of the parts of the columns that nuisances explain."""
        return self.explained if isinstance(self.explained, float) else self.place.fetch(self.explained)

    def pull_norms(self) -> Array:
        """Return an upper bound of the norm of each column as it is multiplied, before nuisances are subtracted."""
        squares = self.sample_weights.total * np.square(self.offset / self.scale)
        return np.sqrt(self.column_energy + self.explained_energy + squares)

    # ---------------------------------------------------------------------------------------------------- products

    def lines(self, rows: Array, combos: Array | None) -> Lines:
        """Return what a container needs to know of combinations of the weighted features ``rows``."""
        place, there = self.place, self.place.send(rows)
        offsets, factors = (place.take(each, there) for each in (self.measured.offset, self.factor))
        return Lines(rows, combos, offsets, factors, self.weights)

    def adjusted_lines(self, rows: Array, combos: Array | None) -> Any:
        """Return such combinations where V is, without what nuisances explain."""
        columns = self._columns(rows)
        return self._put(columns if combos is None else combos @ columns)

    def scaled(self, products: Any) -> Any:
        """Return products of V with lines as products of X~ with them; the memory of the former is used."""
        return np.multiply(products, self.factor, out=products) if self.place.is_host else products * self.factor

    def adjusted_among(self, rows: Array, combos: Array | None) -> Array:
        """Return the products of the features ``rows`` of X~ with combinations of themselves, on the host."""
        columns = self.columns(rows)
        return np.asarray((columns if combos is None else combos @ columns) @ columns.T)

    def _put(self, vectors: Array) -> Any:
        """Return vectors over the samples, projected onto the range of X~, as lines that are multiplied with V."""
        weights = self.sample_weights
        for _ in range(1 if weights.basis is None else 2):  # once more, for what rounding has left
            vectors = weights.centred(vectors)
        return self.measured.spread(weights.times_root(vectors))

    def pull(self, residual: Array, *, exactly: bool = False) -> Array:
        """Return the products of all features with vectors over the samples, (n_lines, n_features), on the host.

        In float64 if they are wanted ``exactly``, whatever the dtype of X.
        """
        lines = self._put(np.asarray(residual, dtype=np.float64))
        (found,) = (self.matrix.exact_products if exactly else self.matrix.products)([lines])
        return self.place.fetch(self.scaled(found))

    def columns(self, rows: Array) -> Array:
        """Return a few columns of X~ as rows, (n_rows, n_samples), in float64."""
        return self.sample_weights.adjusted(self._columns(rows))

    def _columns(self, rows: Array) -> Array:
        """Return columns of X~ before nuisances are subtracted."""
        there = self.place.send(rows)
        offsets, factors = (self.place.fetch(self.place.take(each, there)) for each in (self.measured.offset, self.factor))
        lines = (self.measured.among(self.matrix.columns(rows)) - offsets[:, None]) * factors[:, None]
        return self.sample_weights.times_root(lines)

    def sample_blocks(self, rows: Array) -> Iterator[tuple[slice, Array]]:
        """Yield the columns of a few features, some samples at a time."""
        lines = self.columns(rows)
        step = max(1, BLOCK_ELEMENTS // max(1, len(rows)))
        for start in range(0, self.n_samples, step):
            samples = slice(start, min(start + step, self.n_samples))
            yield samples, lines[:, samples].T

    def push(self, rows: Array, values: Array) -> Array:
        """Return ``values @ X~[:, rows]'``, the predictions of weights of a few features."""
        return np.asarray(values @ self.columns(rows)) if len(rows) else np.zeros((len(values), self.n_samples))

    @cached_property
    def max_sample_energy(self) -> float:
        """Largest ``min(1, w_i) ||x_i||^2``: at most the largest squared norm of a sample of X~.

        A sample of weight 2 counts as two samples, not as one of larger norm.
        """
        weights = self.sample_weights
        energy = self.measured.among(self.matrix.squared_norms(self.measured.offset, self.factor))
        if weights.values is not None:
            energy = energy * weights.values
        if weights.basis is not None:
            shares = self.place.fetch(self.shares)
            images = self._images(shares)
            energy = energy + np.einsum("ij,ij->j", weights.basis, (shares @ shares.T) @ weights.basis - 2.0 * images)
        return float((energy if weights.values is None else energy / np.maximum(weights.values, 1.0)).max())

    def _images(self, values: Array) -> Array:
        """Return ``values @ X~'`` for values of all features, before nuisances are subtracted."""
        scaled = values * self.place.fetch(self.factor)
        found = self.measured.among(self.matrix.images(scaled)) - (scaled @ self.offset)[:, None]
        return self.sample_weights.times_root(found)

    def twice(self, lines: Array) -> Array:
        """Return ``lines @ X~ X~'`` for vectors over the samples."""
        return self.sample_weights.adjusted(self._images(self.pull(lines)))
