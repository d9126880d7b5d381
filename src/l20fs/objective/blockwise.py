"""Least squares on a matrix in blocks: no block is ever all here, and a pass is made only where there is no other way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from l20fs.blocks import Blocks
from l20fs.design import ColumnDesign, GramDesign
from l20fs.objective.least_squares import Gradient, LeastSquares, largest_outside, may_be_heavy
from l20fs.objective.row_penalty import RowPenalty
from l20fs.typing import Array

#: Features are sent back from a lower threshold than is asked for, so that the next lambda, if nothing moves, needs no pass.
LOWERED = 0.9

#: What is left of a column that others explain is rounding: the share of its energy below which that is so.
DEPENDENT = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-8}


def make_problem(X: Any, Y: Array, **options: Any) -> LeastSquares:
    """Return the problem on an array, a sparse matrix or a matrix in blocks; the arguments are those of LeastSquares.

    Examples
    --------
    >>> from l20fs.blocks import as_blocks
    >>> problem = make_problem(as_blocks(np.eye(3)), np.eye(3))
    >>> type(problem).__name__, round(problem.null_loss, 6)
    ('GramLeastSquares', 1.0)
    """
    if not isinstance(X, Blocks):
        return LeastSquares(X, Y, **options)
    kind = ColumnLeastSquares if X.has_short_columns else GramLeastSquares
    return kind(X, Y, **options)


class Seen:
    """Vectors over the samples, one per target, seen through X: their products with all features, and their lengths.

    An image ``X~ D`` also has the ``rows`` and ``values`` of D, so that it can be added to a residual.
    """

    def __init__(self, products: Array, squared_length: float, rows: Array, values: Array) -> None:
        self.products, self.squared_length, self.rows, self.values = products, squared_length, rows, values

    def __iadd__(self, image: Seen) -> Seen:
        along = float(np.vdot(self.products[:, image.rows], image.values))
        self.squared_length = max(0.0, self.squared_length + 2.0 * along + image.squared_length)
        self.products += image.products
        return self


class GramLeastSquares(LeastSquares):
    """Least squares whose vectors over the samples are only ever :class:`Seen`; ``targets`` are ``Y~' X~``."""

    design: GramDesign

    def __init__(self, X: Any, Y: Array, **options: Any) -> None:
        super().__init__(X, Y, **options)
        self.targets = self.design.products_with(self.targets)

    def foresee(self, rank: Callable[[], Array] | None) -> None:
        self.design.lines.rank = rank

    def residual(self, rows: Array, values: Array) -> Any:
        start = Seen(-self.targets, 2.0 * self.null_loss, np.arange(0), np.zeros((self.n_targets, 0)))
        if len(rows):
            start += self.image(rows, values)
        return start

    def image(self, rows: Array, values: Array) -> Any:
        products = self.design.push(rows, values)
        return Seen(products, max(0.0, float(np.vdot(products[:, rows], values))), rows, values)

    def value(self, residual: Any, values: Array) -> float:
        return 0.5 * residual.squared_length + 0.5 * self.ridge * float(np.vdot(values, values))

    def curvature(self, image: Any, values: Array) -> float:
        return float(image.squared_length) + self.ridge * float(np.vdot(values, values))

    def gradient(self, residual: Any, rows: Array, values: Array) -> Gradient:
        """Return the gradient of f; no pass is made."""
        products = np.array(residual.products if isinstance(residual, Seen) else residual)
        products[:, rows] += self.ridge * values
        gradient = Gradient.of(products)
        self.foresee(lambda: gradient.squared_norms)
        return gradient

    def products_among(self, rows: Array, vectors: Array) -> tuple[Array, Array]:
        """Return ``vectors' X~`` and ``X~' X~`` of a few features: a pass for the vectors."""
        return self.design.products_with(vectors.T)[:, rows], self.design.inner(rows)

    def _factor(self, rows: Array, ridge: float) -> tuple[Array, Array]:
        gram = self.design.inner(rows)
        return _triangle(gram + ridge * np.eye(len(rows)), self.targets[:, rows].T, DEPENDENT[self.dtype])


class ColumnLeastSquares(LeastSquares):
    """Least squares on blocks of columns: residuals are here, and features are compared with a threshold where they are."""

    design: ColumnDesign

    def foresee(self, rank: Callable[[], Array] | None) -> None:
        self.design.lines.rank = rank

    def gradient(self, residual: Array, rows: Array, values: Array) -> Any:
        """Return the gradient of f, of which a pass brings only those features that are asked for."""
        gradient = RemoteGradient(self, residual, rows, values)
        self.foresee(gradient.known_squares)
        return gradient


class RemoteGradient:
    """The gradient at one point, like :class:`~l20fs.objective.least_squares.Gradient`, of features in blocks elsewhere.

    The residual must stay as it is for as long as the gradient there is in use.
    """

    def __init__(self, problem: ColumnLeastSquares, residual: Array, rows: Array, values: Array) -> None:
        self._problem = problem
        self._residual, self._rows, self._values = residual, rows, values
        self._floor = np.inf
        self._found, self._squares = np.arange(0), np.zeros(0)
        self._all: Array | None = None

    def above(self, threshold: float, penalty: RowPenalty | None = None) -> Array:
        """Return a mask of the features whose gradient may be longer than ``threshold``; it may miss some with weights."""
        if penalty is not None and not penalty.is_plain:
            return may_be_heavy(self.squared_norms, threshold, penalty)
        if self._all is None and threshold < self._floor:
            self._floor = LOWERED * threshold
            self._found, self._squares = self._problem.design.matrix.long_columns(self._residual, self._floor)
        mask = np.zeros(self._problem.n_features, dtype=bool)
        if self._all is not None:
            return may_be_heavy(self._all, threshold)
        mask[self._found[may_be_heavy(self._squares, threshold)]] = True
        return mask

    def touched(self, threshold: float, penalty: RowPenalty, is_active: Array) -> Array:
        """Return the features with weights and those whose gradient may be longer than ``threshold``, ascending."""
        return np.flatnonzero(self.above(threshold, penalty) | is_active)

    def largest_outside(self, is_active: Array, penalty: RowPenalty) -> float:
        """Return the largest squared norm per cost of a unit without weights."""
        return largest_outside(self.squared_norms, is_active, penalty)

    def at(self, rows: Array) -> Array:
        """Return the gradient of a few features, (n_targets, n_rows), from their columns, which are kept here."""
        gradient = self._problem.design.pull(self._residual, rows)
        if self._problem.ridge:
            place = np.searchsorted(rows, self._rows)
            is_in = np.isin(self._rows, rows)
            gradient[:, place[is_in]] += self._problem.ridge * self._values[:, is_in]
        return gradient

    @property
    def squared_norms(self) -> Array:
        """The squared norm of the gradient of every feature: a pass, and one number per feature back."""
        if self._all is None:
            self._all = self._problem.design.matrix.squared_lengths(self._residual)
            if len(self._rows):
                own = self.at(self._rows)
                self._all[self._rows] = np.einsum("ij,ij->j", own, own)
        return self._all

    def known_squares(self) -> Array:
        """Return the squared norms that are known without a pass; 0 for other features."""
        if self._all is not None:
            return self._all
        squares = np.zeros(self._problem.n_features)
        squares[self._found] = self._squares
        return squares


def _triangle(gram: Array, targets: Array, share: float) -> tuple[Array, Array]:
    """Return R and B with ``R' R = gram`` and ``R' B = targets``; a row that depends on those before it is zero.

    Examples
    --------
    >>> _triangle(np.array([[4.0, 4.0], [4.0, 4.0]]), np.array([[2.0], [2.0]]), 1e-12)
    (array([[2., 2.],
           [0., 0.]]), array([[1.],
           [0.]]))
    """
    rest, targets = gram.copy(), targets.copy()
    triangle, sides = np.zeros_like(gram), np.zeros_like(targets)
    for i, energy in enumerate(np.diagonal(gram)):
        if rest[i, i] > share * energy:
            triangle[i, i:] = rest[i, i:] / np.sqrt(rest[i, i])
            sides[i] = targets[i] / triangle[i, i]
            rest[i:, i:] -= np.outer(triangle[i, i:], triangle[i, i:])
            targets[i:] -= np.outer(triangle[i, i:], sides[i])
    return triangle, sides
