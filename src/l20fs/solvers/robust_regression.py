r"""Robust regression on a few columns: the minimum of a sum of residual norms, with a duality gap.

.. math:: P(W, b) = \sum_i a_i \rho_\delta(\|e_i\|) + \tfrac\mu2 \|W\|_F^2, \quad e_i = W' x_i + b - y_i, \qquad
          \rho_\delta(r) = \begin{cases} r & r \ge \delta \\ (r^2 / \delta + \delta) / 2 & r < \delta \end{cases}

is convex and differentiable. Reweighting alone, the minimum of
:math:`\tfrac12 \sum_i \omega_i \|e_i\|^2 + \tfrac\mu2 \|W\|_F^2` for :math:`\omega_i = a_i / \max(r_i, \delta)` at the
present lengths r, never raises P but crawls where samples are met exactly. So the steps are those of Newton, for the weights
and for dual variables t together (Chan, Golub and Mulet 1999), with the matrices

.. math:: H_i = \omega_i \bigl(I - \tfrac12 (t_i u_i' + u_i t_i')\bigr), \qquad \|t_i\| \le 1, \qquad
          u_i = e_i / r_i \text{ if } r_i > \delta, \text{ else } 0.

They are those of reweighting for t = 0, where the search begins, and the second derivatives for t = u: a length does not
bend along the error. A sample that is to be met exactly keeps its t within the ball, and so its curvature, before its error
is small. Conjugate gradients, preconditioned by the matrix of reweighting, solve for the step, and a line search follows. On
the way delta is larger, in proportion to the gap that is left.

The weighted errors :math:`t_i = \omega_i e_i` after a reweighting, divided by :math:`\max(1, \max_i \|t_i\| / a_i)`, are a
feasible point of the dual problem, the maximum of

.. math:: D(t) = -\sum_i \langle t_i, y_i \rangle + \tfrac\delta2 \sum_i (a_i - \|t_i\|^2 / a_i) - \tfrac1{2\mu} \|X' t\|_F^2
          \quad \text{for} \quad \|t_i\| \le a_i, \; \sum_i t_i = 0 \quad (X' t = 0 \text{ if } \mu = 0),

so that P - D bounds the distance to the minimum: it tells when to stop, and which columns cannot be the best. That is told
for many sets of columns at once by a few steps of reweighting.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from l20fs.typing import Array

#: The gap between P and D, relative to P, at which a minimum counts as found.
TOLERANCE = 1e-7

#: Newton steps, and steps of conjugate gradients in each of them, at most.
MAX_STEPS, MAX_CONJUGATE_STEPS = 100, 30

#: On the way delta is this share of the gap between P and D, per sample.
SMOOTHING = 0.05

#: Steps of reweighting that bound many minima, at most, and their first delta as a share of the mean length.
BOUND_STEPS, FIRST_SMOOTHING = 20, 0.5

#: This share of the curvature of reweighting is left along an error, so that the matrix of a step is regular.
LEAST_BEND = 1e-8

#: Conjugate gradients and the line search go on until this share of the residual, or of the slope, is left.
CONJUGATE_SHARE, SLOPE_SHARE = 1e-2, 0.2

#: A column with a smaller share of its squared norm outside the span of the others counts as dependent.
LEAST_REMAINDER = 1e-10


class Span(NamedTuple):
    r"""Orthonormal basis of some columns :math:`(x_j; \sqrt\mu e_j)`.

    Attributes
    ----------
    rows : list of int
        Features of the columns, without dependent ones.
    upper, lower : arrays of shape (n_samples, size) and (n_rows, size)
        The basis vectors: the part of the samples and that of the ridge.
    triangle : array of shape (size, size)
        The columns are the basis times this upper triangle.
    """

    rows: list[int]
    upper: Array
    lower: Array
    triangle: Array

    @classmethod
    def free(cls, basis: Array) -> Span:
        """Return the span of orthonormal columns without a ridge term, such as that of the intercept."""
        size = basis.shape[1]
        return cls([], basis, np.empty((0, size)), np.eye(size))

    def extended(self, rows: Array, columns: Array, ridge: float) -> Span:
        """Return the span with further columns, as far as they are independent."""
        span = self
        for row, column in zip(rows.tolist(), columns.T, strict=True):
            span = span._extended(row, column, ridge)
        return span

    def _extended(self, row: int, column: Array, ridge: float) -> Span:
        size, n_lower = self.upper.shape[1], len(self.lower)
        upper, lower, coordinates = column, np.zeros(n_lower), np.zeros(size)
        for _ in range(2):  # once more, for what rounding has left
            found = upper @ self.upper + lower @ self.lower
            upper, lower, coordinates = upper - self.upper @ found, lower - self.lower @ found, coordinates + found
        squared = float(upper @ upper + lower @ lower) + ridge
        if squared <= LEAST_REMAINDER * float(column @ column):
            return self
        corner = np.sqrt(squared)
        below = np.zeros((n_lower + 1, size + 1))
        below[:-1, :-1], below[:-1, -1], below[-1, -1] = self.lower, lower / corner, np.sqrt(ridge) / corner
        triangle = np.zeros((size + 1, size + 1))
        triangle[:-1, :-1], triangle[:-1, -1], triangle[-1, -1] = self.triangle, coordinates, corner
        return Span([*self.rows, row], np.column_stack([self.upper, upper / corner]), below, triangle)

    def weights(self, coordinates: Array) -> Array:
        """Return the weights of the rows, (n_rows, n_targets), without the intercept."""
        weights = solve_triangular(self.triangle, coordinates)
        return weights[len(weights) - len(self.rows) :]


class Stack(NamedTuple):
    """Bases of many spans, (n_spans, n_samples, size) and (n_spans, size, size).

    Those of smaller size are filled up with vectors of the ridge alone, whose coordinates are 0 at every minimum.
    """

    upper: Array
    lower: Array

    @classmethod
    def of(cls, spans: Sequence[Span]) -> Stack:
        size = max(len(span.triangle) for span in spans)
        upper = np.zeros((len(spans), len(spans[0].upper), size))
        lower = np.tile(np.eye(size), (len(spans), 1, 1))
        for number, span in enumerate(spans):
            own = len(span.triangle)
            upper[number, :, :own] = span.upper
            lower[number, :own, :own] = 0.0
            lower[number, : len(span.lower), :own] = span.lower
        return cls(upper, lower)


class Fit(NamedTuple):
    """Minimum of P on a span.

    Attributes
    ----------
    span : Span
        The columns.
    coordinates : array of shape (size, n_targets)
        Weights in terms of the basis.
    lengths : array of shape (n_samples,)
        Norm of the error of each sample.
    value : float
        P.
    bound : float
        D, a lower bound on the minimum.
    """

    span: Span
    coordinates: Array
    lengths: Array
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """Distance to the minimum at most, relative to the value."""
        return (self.value - self.bound) / self.value

    @property
    def converged(self) -> bool:
        """Whether the gap is within the tolerance."""
        return self.gap <= TOLERANCE


class RobustRegression:
    """Minimise P on given columns, for the factors ``a = unit * root**2``.

    As in a design, columns and targets are multiplied by the roots of the sample weights.

    Parameters
    ----------
    targets : array of shape (n_samples, n_targets)
    root : array of shape (n_samples,)
        Square roots of the sample weights, all positive.
    unit : float
        Factor of the lengths.
    delta : float
        Length below which errors count as squares.

    Examples
    --------
    >>> regression = RobustRegression(np.array([[0.0], [1.0], [9.0]]), np.ones(3), unit=1.0, delta=1e-6)
    >>> round(regression.minimise(Span.free(np.full((3, 1), 3**-0.5))).value, 3)  # the median is 1
    9.0
    """

    def __init__(self, targets: Array, root: Array, unit: float, delta: float) -> None:
        self.targets, self.root, self.unit, self.delta = targets, root, unit, delta
        self.weights = unit * root * root

    def value(self, lengths: Array, lifted: Array) -> Any:
        """Return P from the lengths of the errors and from the weights of the columns times the root of mu."""
        rounded = np.where(lengths >= self.delta, lengths, (lengths * lengths / self.delta + self.delta) / 2.0)
        return rounded @ self.weights + 0.5 * _squared_norms(lifted)

    def lengths(self, errors: Array) -> Array:
        """Return the norm of the error of each sample, without its weight."""
        return np.asarray(np.sqrt(_squared_row_norms(errors)) / self.root)

    def omega(self, lengths: Array, floor: Any = 0.0) -> Array:
        """Return the factors of the squares that touch P at given lengths, or at those above a floor."""
        return np.asarray(self.unit / np.maximum(lengths, np.maximum(floor, self.delta)))

    def minimise(
        self, span: Span, lengths: Array | None = None, *, cutoff: float = np.inf, tolerance: float = TOLERANCE
    ) -> Fit:
        """Return the minimum on a span, starting from the reweighting by ``lengths``.

        The search ends early where the minimum is certainly not below ``cutoff``.
        """
        point = self._start(span, self.lengths(self.targets) if lengths is None else lengths, self.delta)
        bound, duals = point.bound(), np.zeros_like(self.targets)
        for _ in range(MAX_STEPS):
            gap = point.value - bound
            if gap <= tolerance * point.value or bound >= cutoff:
                break
            point = _Point(self, span, point.coordinates, max(self.delta, SMOOTHING * gap / float(self.weights.sum())))
            step = point.newton_step(duals)
            point, duals = point.search(step), point.next_duals(step, duals)
            bound = max(bound, point.bound())
        return Fit(span, point.coordinates, point.lengths, float(point.value), float(bound))

    def bounds(self, spans: Sequence[Span], lengths: Array, cutoffs: Array) -> Array:
        """Return lower bounds on the minima on some spans, starting from the reweighting by ``lengths``, a row for each.

        They rise until each is at least its cutoff, or for a few steps.
        """
        total = self.weights.sum()
        floors = FIRST_SMOOTHING * (lengths @ self.weights) / total
        point, bounds = self._start(Stack.of(spans), lengths, floors[:, None]), np.full(len(spans), -np.inf)
        for _ in range(BOUND_STEPS):
            bounds = np.maximum(bounds, point.bound())
            if (bounds >= cutoffs).all():
                break
            floors = SMOOTHING * (point.value - bounds) / total
            point = _Point(self, point.span, point.coordinates + point.reweighting, floors[:, None])
        return bounds

    def _start(self, span: Span | Stack, lengths: Array, floor: Any) -> _Point:
        omega = self.omega(lengths, floor)[..., None]
        return _Point(self, span, _inverse(span, omega) @ (span.upper.mT @ (omega * self.targets)), floor)


class _Point:
    """Weights, in terms of the basis of a span, with errors, P, and what a step needs for a delta of at least ``floor``.

    For a stack of spans, all but the Newton step is there for each.
    """

    def __init__(self, regression: RobustRegression, span: Span | Stack, coordinates: Array, floor: Any) -> None:
        self.regression, self.span, self.coordinates, self.floor = regression, span, coordinates, floor
        self.errors = span.upper @ coordinates - regression.targets
        self.lifted = span.lower @ coordinates
        self.lengths = regression.lengths(self.errors)
        self.value = regression.value(self.lengths, self.lifted)
        self.omega = regression.omega(self.lengths, floor)
        self.gradient = span.upper.mT @ (self.omega[..., None] * self.errors) + span.lower.mT @ self.lifted

    @cached_property
    def inverse(self) -> Array:
        """The inverse of the matrix of reweighting."""
        return _inverse(self.span, self.omega[..., None])

    @cached_property
    def reweighting(self) -> Array:
        """The step of reweighting."""
        return -self.inverse @ self.gradient

    @cached_property
    def units(self) -> Array:
        """The errors divided by their norms; 0 for the short ones, which count as squares."""
        is_long = self.lengths > self.floor
        return self.errors / np.where(is_long, self.lengths * self.regression.root, np.inf)[:, None]

    def bound(self) -> Any:
        """Return D at the errors after a step of reweighting."""
        regression, span, reweighting = self.regression, self.span, self.reweighting
        errors = self.errors + span.upper @ reweighting
        lifted = self.lifted + span.lower @ reweighting
        shares = self.omega * regression.lengths(errors) / regression.unit  # of each dual variable in its bound
        linear = -np.einsum("...i,...ij,ij->...", self.omega, errors, regression.targets)
        bent = regression.delta * (shares * shares) @ regression.weights + _squared_norms(lifted)
        # The best that is feasible; without any errors it does not matter.
        best = np.maximum(0.0, linear / np.maximum(bent, np.finfo(np.float64).tiny))
        shrink = np.minimum(1.0 / np.maximum(1.0, shares.max(axis=-1)), best)
        return 0.5 * regression.delta * regression.weights.sum() + shrink * linear - 0.5 * shrink * shrink * bent

    def next_duals(self, step: Array, duals: Array) -> Array:
        """Return the dual variables after a Newton step, none of them longer than 1."""
        images = self.span.upper @ step
        along = np.einsum("ij,ij->i", self.units, images)[:, None]
        factors = self.omega / (self.regression.unit * self.regression.root)
        duals = factors[:, None] * (self.errors + images - along * duals)
        return duals / np.maximum(1.0, np.sqrt(_squared_row_norms(duals)))[:, None]

    def newton_step(self, duals: Array) -> Array:
        """Solve for the Newton step by preconditioned conjugate gradients, from the step of reweighting."""
        step = self.reweighting
        if self.errors.shape[1] == 1:  # the matrix is that of other weights
            bent = self.omega * (1.0 - (1.0 - LEAST_BEND) * (self.units * duals)[:, 0])
            return -_inverse(self.span, bent[:, None]) @ self.gradient
        rest = -self.gradient - self._bend(step, duals)
        direction = preconditioned = self.inverse @ rest
        squared = float(np.vdot(rest, preconditioned))
        enough = -CONJUGATE_SHARE * float(np.vdot(self.gradient, step))
        for _ in range(MAX_CONJUGATE_STEPS):
            if squared <= enough:
                break
            image = self._bend(direction, duals)
            length = squared / float(np.vdot(direction, image))
            step, rest = step + length * direction, rest - length * image
            preconditioned = self.inverse @ rest
            before, squared = squared, float(np.vdot(rest, preconditioned))
            direction = preconditioned + (squared / before) * direction
        return step

    def _bend(self, step: Array, duals: Array) -> Array:
        """Multiply by the matrix of the Newton step."""
        span, image = self.span, self.span.upper @ step
        along, across = np.einsum("ij,ij->i", self.units, image), np.einsum("ij,ij->i", duals, image)
        image -= 0.5 * (1.0 - LEAST_BEND) * (along[:, None] * duals + across[:, None] * self.units)
        return span.upper.T @ (self.omega[:, None] * image) + span.lower.T @ (span.lower @ step)

    def search(self, step: Array) -> _Point:
        """Return a point along a step where the slope is small."""
        images, lifts = self.span.upper @ step, self.span.lower @ step
        flat = SLOPE_SHARE * abs(first := float(np.vdot(self.gradient, step)))
        low, low_slope, high, high_slope, length = 0.0, first, np.inf, np.inf, 1.0
        for _ in range(30):
            slope = self._slope(length, images, lifts)
            if abs(slope) <= flat:
                break
            if slope < 0.0:
                low, low_slope = length, slope
            else:
                high, high_slope = length, slope
            share = low_slope / (low_slope - high_slope)
            length = 2.0 * length if high == np.inf else low + (high - low) * min(max(share, 0.1), 0.9)
        return _Point(self.regression, self.span, self.coordinates + length * step, self.floor)

    def _slope(self, length: float, images: Array, lifts: Array) -> float:
        errors = self.errors + length * images
        omega = self.regression.omega(self.regression.lengths(errors), self.floor)
        return float(np.einsum("i,ij,ij->", omega, errors, images)) + float(np.vdot(self.lifted + length * lifts, lifts))


def _inverse(span: Span | Stack, omega: Array) -> Array:
    """Return the inverse of the matrix of weighted least squares; in an orthonormal basis it is well conditioned."""
    return np.asarray(np.linalg.inv((span.upper * omega).mT @ span.upper + span.lower.mT @ span.lower))


def _squared_row_norms(values: Array) -> Array:
    return np.asarray(np.einsum("...ij,...ij->...i", values, values))


def _squared_norms(values: Array) -> Any:
    return np.einsum("...ij,...ij->...", values, values)
