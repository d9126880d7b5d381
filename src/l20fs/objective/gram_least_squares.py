"""Least squares by the Gram matrix of features in blocks, without vectors over the samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from l20fs.design import GramDesign, Likely
from l20fs.objective.gradients import HostGradient
from l20fs.objective.least_squares import LeastSquares
from l20fs.typing import Array

#: A column is linearly dependent if its residual on the others has less than this fraction of its energy.
DEPENDENT = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-8}


class Seen:
    """Vectors over the samples, one per target, represented by their products with all features and their norms.

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
    """Least squares whose vectors over the samples are represented as :class:`Seen`; ``targets`` are ``Y~' X~``."""

    design: GramDesign

    def __init__(self, X: Any, Y: Array, **options: Any) -> None:
        super().__init__(X, Y, **options)
        self.targets = self.design.products_with(self.targets)

    def residual(self, rows: Array, values: Array) -> Any:
        start = Seen(-self.targets, 2.0 * self.null_loss, np.arange(0), np.zeros((self.n_targets, 0)))
        if len(rows):
            start += self.image(rows, values)
        return start

    def image(self, rows: Array, values: Array, likely: Likely | None = None) -> Any:
        products = self.design.push(rows, values, likely=likely)
        return Seen(products, max(0.0, float(np.vdot(products[:, rows], values))), rows, values)

    def value(self, residual: Any, values: Array) -> float:
        return 0.5 * residual.squared_length + 0.5 * self.ridge * float(np.vdot(values, values))

    def curvature(self, image: Any, values: Array) -> float:
        return float(image.squared_length) + self.ridge * float(np.vdot(values, values))

    def gradient(self, residual: Any, rows: Array, values: Array) -> HostGradient:
        """Return the gradient of f, without a pass."""
        products = np.array(residual.products if isinstance(residual, Seen) else residual)
        products[:, rows] += self.ridge * values
        return HostGradient(products)

    def products_among(self, rows: Array, vectors: Array) -> tuple[Array, Array]:
        """Return ``vectors' X~`` and ``X~' X~`` of a few features; takes a pass for the vectors."""
        return self.design.products_with(vectors.T)[:, rows], self.design.inner(rows)

    def normal_equations(self, rows: Array) -> tuple[Array, Array]:
        return self.targets[:, rows], self.design.inner(rows)

    def _factor(self, rows: Array, ridge: float) -> tuple[Array, Array]:
        gram = self.design.inner(rows)
        return _triangle(gram + ridge * np.eye(len(rows)), self.targets[:, rows].T, DEPENDENT[self.dtype])


def _triangle(gram: Array, targets: Array, share: float) -> tuple[Array, Array]:
    """Return R and B with ``R' R = gram`` and ``R' B = targets``; a linearly dependent row is zero.

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
