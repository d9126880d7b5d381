"""Orthogonal basis of the selected columns, in the space of samples or of features, whichever is smaller.

The columns :math:`(x_j; \\sqrt\\mu e_j)` of the selected rows are orthonormal lines u times a triangle T, as in a QR
factorisation. T is kept as its inverse, which the weights need; the second part of the lines is
:math:`\\sqrt\\mu T^{-1}` and needs no room of its own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from l20fs.design import BLOCK_ELEMENTS
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.prox import squared_row_norms
from l20fs.typing import Array

#: Remainder of a column, as a share of its squared norm, that is nothing but rounding in float64.
NOTHING = 1e-28

#: Inflation of a variance by one column up to which products with columns in float32 are exact enough for their basis, and
#: those with a combination of columns lose no digits to speak of.
LARGEST_INFLATION = 10.0


def make_basis(problem: LeastSquares) -> Basis:
    """Choose the basis with the shorter vectors."""
    design = problem.design
    if design.vectors == "features":
        return GramBasis(problem)
    return SampleBasis(problem) if design.n_samples <= design.n_features else FeatureBasis(problem)


class Remainders(NamedTuple):
    """Remainders of a column, or of some columns, one per row.

    ``rest`` are vectors of length n_samples orthogonal to the basis, ``lifted`` their parts under the ridge, ``coordinates``
    those of what was taken away, and ``room`` the squared norms with all that belongs to the ridge.
    """

    rest: Array
    lifted: Array
    coordinates: Array
    room: Any


class Triangle:
    """Inverse of the triangle T, and the targets ``b = Y~' u`` of the basis vectors."""

    def __init__(self, problem: LeastSquares) -> None:
        self.problem = problem
        self.rows: list[int] = []
        self._inverse = np.zeros((0, 0))
        self._targets = np.empty((0, problem.n_targets))

    @property
    def size(self) -> int:
        return len(self.rows)

    @property
    def inverse(self) -> Array:
        """The inverse of the triangle."""
        return self._inverse[: self.size, : self.size]

    @property
    def targets(self) -> Array:
        return self._targets[: self.size]

    def weights(self, size: int) -> Array:
        """Return the weights that minimise h on the first ``size`` rows, (n_targets, size)."""
        return (self._inverse[:size, :size] @ self._targets[:size]).T

    def cut(self, size: int) -> None:
        """Remove the basis vectors from ``size`` on."""
        del self.rows[size:]


class Basis(Triangle, ABC):
    """Triangle and basis vectors, in the order of the rows."""

    #: Elements of columns that are orthogonalised at a time.
    block_elements = BLOCK_ELEMENTS

    def __init__(self, problem: LeastSquares, width: int) -> None:
        super().__init__(problem)
        self._lines = np.empty((0, width))

    @property
    def lines(self) -> Any:
        return self._lines[: self.size, :]

    def columns(self, rows: Array) -> Any:
        """Return some columns of X~ as rows, in float64, where the lines are."""
        return self.problem.design.take(rows, slice(None)).T.astype(np.float64)

    def _squares(self, vectors: Any) -> Any:
        """Return the squared norm of a vector, or of each row."""
        return vectors @ vectors if vectors.ndim == 1 else squared_row_norms(vectors)

    def _inner(self, residual: Any, vectors: Any) -> Array:
        """Return the products of a residual with a vector, or vectors, of length n_samples."""
        return residual @ vectors.T

    def _copy(self, vectors: Any) -> Any:
        return vectors.copy()

    def remainders(self, columns: Any, *, exactly: bool = True) -> Remainders:
        """Orthogonalise a column, or columns stacked as rows, in float64; or in the precision of X if that is enough."""
        inverse, ridge = self.inverse, self.problem.ridge
        root = math.sqrt(ridge)
        rest, lifted, coordinates = self._copy(columns), *np.zeros((2, *columns.shape[:-1], self.size))
        squared = first = self._squares(rest) + ridge
        while True:
            before = squared
            found = self._analyse(rest, exactly)
            if root:
                found += root * (lifted @ inverse)
                lifted -= root * (found @ inverse.T)
            rest -= self._synthesise(found, exactly)
            coordinates += found
            squared = self._squares(rest) + (Basis._squares(self, lifted) + ridge if root else 0.0)
            # Where little is left, rounding of the large part that was taken away is in it, too: once more.
            is_settled = (squared >= 0.01 * before) | (squared <= NOTHING * first)
            if is_settled.all() if is_settled.ndim else is_settled:
                return Remainders(rest, lifted, coordinates, squared)

    def remainder(self, row: int, column: Array) -> Remainders:
        """Orthogonalise the column of a row that enters."""
        return self.remainders(column, exactly=self._needs_float64())

    def _needs_float64(self) -> bool:
        """Return whether the precision of X is too low for the basis; vectors that are stored are in float64."""
        return False

    def products(self, residual: Array, found: Remainders) -> Array:
        """Return the products of the residual, and of its part under the ridge, with some remainders."""
        products = self._inner(residual, found.rest)
        if self.problem.ridge:
            products -= math.sqrt(self.problem.ridge) * (self.weights(self.size) @ found.lifted.T)
        return products

    def extend(self, row: int, column: Array, residual: Array) -> tuple[Array, Array]:
        """Orthogonalise the column of a row and append it; return its direction, of length n_samples, and its target."""
        found = self.remainder(row, column)
        k, inverse, corner = self.size, self.inverse, math.sqrt(found.room)
        target = self._product(residual, row, column, found) / corner
        direction = found.rest
        direction /= corner
        self._make_room()
        self._inverse[:k, k] = (inverse @ found.coordinates) / -corner
        self._inverse[k, k] = 1.0 / corner
        self._targets[k] = target
        self.rows.append(row)
        self._keep_direction(direction)
        return direction, target

    def _product(self, residual: Array, row: int, column: Array, found: Remainders) -> Array:
        """Return the products of a residual with the column of a row, to which those with its remainder are equal."""
        is_close = found.room <= 0.01 * self.problem.design.column_energy[row]
        return self.products(residual, found) if is_close else self._inner(residual, column)

    def newest_images(self, directions: Array) -> Array | None:
        """Return the products of all features with the last basis vectors, if they are known without a pass over X."""
        return None

    def exits(self) -> tuple[Array, Array]:
        """Return the direction that leaves the basis with each selected row (in coordinates), and its target.

        It is the line of the space that is orthogonal to all other columns: a row of the inverse triangle, normalised.
        """
        turns = self.inverse / np.sqrt(squared_row_norms(self.inverse))[:, None]
        return turns, turns @ self.targets

    def exit_of(self, span: slice) -> tuple[Array, Array]:
        """Return the directions that leave the basis with several selected rows (in coordinates), and their targets."""
        turns = np.linalg.qr(self.inverse[span].T)[0].T
        return turns, turns @ self.targets

    def drop(self, position: int) -> tuple[Array, Array, Array]:
        """Remove a row and rotate the basis to span the others; return direction, target and image of the removed one."""
        turns, targets = self.exits()
        leaving = turns[position]
        direction = self._synthesise(leaving, self._needs_float64())
        image = self.images_of(self.prepare(leaving[None]), slice(None))[0, :]
        rotation, triangle = np.linalg.qr(np.delete(np.linalg.inv(self.inverse), position, axis=1))
        lines_left, targets_left = self._combined(rotation.T), rotation.T @ self.targets
        del self.rows[position]
        self._lines[: self.size, :], self.targets[:] = lines_left, targets_left
        self.inverse[:] = np.linalg.inv(triangle)
        return direction, targets[position], image

    def _combined(self, turns: Array) -> Any:
        """Return combinations of the lines."""
        return turns @ self.lines

    def _make_room(self) -> None:
        if self.size < len(self._lines):
            return
        more = max(64, self.size)
        self._lines = np.vstack([self._lines, np.empty((more, self._lines.shape[1]))])
        self._targets = np.vstack([self._targets, np.empty((more, self._targets.shape[1]))])
        self._inverse = np.pad(self._inverse, (0, more))

    @abstractmethod
    def _analyse(self, vectors: Array, exactly: bool) -> Array:
        """Return the products of the lines with a vector or vectors of length n_samples, in float64 or in that of X."""

    @abstractmethod
    def _synthesise(self, coordinates: Array, exactly: bool) -> Array:
        """Return the vector, or vectors, of length n_samples with these coordinates, in float64 or in the precision of X."""

    @abstractmethod
    def prepare(self, turns: Array) -> Array:
        """Convert coordinates to the argument of :meth:`images_of`."""

    @abstractmethod
    def images_of(self, prepared: Array, rows: Array | slice) -> Array:
        """Return the products of some features with the vectors that were prepared."""

    @abstractmethod
    def store_image(self, position: int, image: Array) -> None:
        """Store the products of all features with a basis vector."""

    @abstractmethod
    def _keep_direction(self, direction: Array) -> None:
        """Store the last basis vector."""


class SampleBasis(Basis):
    """Basis vectors of length n_samples: the dual form, for more features than samples."""

    def __init__(self, problem: LeastSquares) -> None:
        super().__init__(problem, problem.design.n_samples)

    def _analyse(self, vectors: Array, exactly: bool) -> Array:
        return vectors @ self.lines.T

    def _synthesise(self, coordinates: Array, exactly: bool) -> Array:
        return coordinates @ self.lines

    def prepare(self, turns: Array) -> Any:
        return self._combined(turns)

    def images_of(self, prepared: Array, rows: Array | slice) -> Array:
        return self.problem.design.pull_among(rows)(prepared)

    def store_image(self, position: int, image: Array) -> None:
        pass  # as long as a feature list: made again when it is needed

    def _keep_direction(self, direction: Any) -> None:
        self._lines[self.size - 1, :] = direction


class FeatureBasis(Basis):
    """Images of the basis vectors, of length n_features: the primal form, for more samples than features.

    A vector of length n_samples is made from the selected columns when one is needed, and none is kept; the images of all
    features are, so that an exchange of rows is judged without a pass over X.
    """

    def __init__(self, problem: LeastSquares) -> None:
        super().__init__(problem, problem.design.n_features)
        self._is_delicate = False  # nearly dependent columns in float32

    def _needs_float64(self) -> bool:
        return self._is_delicate

    def remainder(self, row: int, column: Array) -> Remainders:
        found = super().remainder(row, column)
        if self._is_delicate or self.problem.dtype == np.float64:
            return found
        # The energy of the column over that of what the others leave of it: by its root errors of products grow.
        self._is_delicate = bool(self.problem.design.column_energy[row] > LARGEST_INFLATION * found.room)
        return super().remainder(row, column) if self._is_delicate else found

    def _analyse(self, vectors: Array, exactly: bool) -> Array:
        if not self.size:
            return np.zeros((*vectors.shape[:-1], 0))
        rows = np.array(self.rows, dtype=np.intp)
        if exactly and self.problem.dtype != np.float64:
            blocks = self.problem.design.sample_blocks(rows)
            products = np.sum([vectors[..., samples] @ columns for samples, columns in blocks], axis=0)
        else:
            pull = self.problem.design.pull_among(rows)
            products = pull(vectors[None])[0] if vectors.ndim == 1 else pull(vectors)
        return products @ self.inverse

    def _synthesise(self, coordinates: Array, exactly: bool) -> Array:
        rows, weights = np.array(self.rows, dtype=np.intp), coordinates @ self.inverse.T
        if not (exactly and self.problem.dtype != np.float64):
            return self.problem.image(rows, weights[None])[0] if weights.ndim == 1 else self.problem.image(rows, weights)
        vectors = np.empty((*weights.shape[:-1], self.problem.design.n_samples))
        for samples, columns in self.problem.design.sample_blocks(rows):
            vectors[..., samples] = weights @ columns.T
        return vectors

    def newest_images(self, directions: Array) -> Array | None:
        """Combine lines of the Gram matrix where zeros of X make them cheap (:meth:`Design.gram_lines`).

        A vector is a combination of selected columns; where their parts largely cancel, so do digits of the products, and
        the vector itself is multiplied.
        """
        design, first = self.problem.design, self.size - len(directions)
        rows = np.array(self.rows, dtype=np.intp)
        inflation = design.column_energy[rows] @ np.square(self.inverse[:, first:])
        is_clear = inflation <= LARGEST_INFLATION
        lines = design.gram_lines(rows[first:]) if is_clear.any() else None
        if lines is None:
            return None
        images = self.inverse[first:, first:].T @ lines
        if first:
            # What the earlier columns add, by the images of the earlier vectors: their own lines are not kept.
            earlier = solve_triangular(self.inverse[:first, :first], self.inverse[:first, first:])
            images += earlier.T @ self.lines[:first]
        if not is_clear.all():
            images[~is_clear] = design.pull(directions[~is_clear])
        return images

    def prepare(self, turns: Array) -> Array:
        return turns

    def images_of(self, prepared: Array, rows: Array | slice) -> Array:
        return prepared @ self.lines[:, rows]

    def store_image(self, position: int, image: Array) -> None:
        self._lines[position] = image

    def _keep_direction(self, direction: Array) -> None:
        pass  # made again from the columns when it is needed


class GramBasis(FeatureBasis):
    """Basis vectors represented by their images: a vector over the samples is given by its products with all
    features (see :mod:`l20fs.design.gram`)."""

    def remainder(self, row: int, column: Array) -> Remainders:
        # Its part under the ridge is orthogonal to those of all other columns. To orthogonalise once more would bring
        # nothing: what rounding has left out of the images is not in them.
        coordinates = self.lines[:, row].copy()
        rest = column - coordinates @ self.lines
        return Remainders(rest, np.zeros(self.size), coordinates, float(rest[row]) + self.problem.ridge)

    def _product(self, residual: Array, row: int, column: Array, found: Remainders) -> Array:
        return residual[:, row]

    def _needs_float64(self) -> bool:
        return False  # the Gram matrix is in float64

    def _analyse(self, vectors: Array, exactly: bool) -> Array:
        return vectors[..., self.rows] @ self.inverse

    def _synthesise(self, coordinates: Array, exactly: bool) -> Array:
        return coordinates @ self.lines

    def _keep_direction(self, direction: Array) -> None:
        self._lines[self.size - 1] = direction

    def store_image(self, position: int, image: Array) -> None:
        pass  # it is what stands for the direction, and is here
