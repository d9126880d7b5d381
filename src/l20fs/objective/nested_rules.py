r"""Least squares and linear rules on the first columns of a ranking, for many numbers of columns at once.

With the triangle R of the columns X of a ranking and the right-hand sides B, the weights on the first k columns solve
:math:`R_k W_k = B_k` with the leading block of R, whose inverse is the leading block of :math:`R^{-1}`. So for any lines Z,
samples or class means, :math:`Z_k W_k = \sum_{j \le k} q_j b_j'` with :math:`Q = Z R^{-1}`: one product, and then a sum that
grows from one number of columns to the next. Where columns depend on those before them R has no inverse, and each number of
columns is solved by itself, with the weights of least norm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from l20fs.design import BLOCK_ELEMENTS
from l20fs.prediction.discriminant import ClassScatter
from l20fs.prediction.linear_rule import LinearRule, decide
from l20fs.typing import Array

#: Values of rules above this number are in single precision: those of many samples, classes and numbers of features.
MANY_VALUES = 2**22

#: Values of rules that are computed at a time.
STEP_ELEMENTS = 4 * BLOCK_ELEMENTS

#: Condition number up to which the columns of a triangle are clearly independent.
MOST_CONDITION = 1e8


class NestedSquares(NamedTuple):
    """Least squares on the first columns of a triangle, for several numbers of columns.

    Attributes
    ----------
    inverse : array of shape (n_clear, n_clear)
        Inverse of the leading block of the triangle in which columns are clearly independent.
    sides : array of shape (rank, n_targets)
        Right-hand sides of the triangle; ``rank`` is at least ``n_clear``.
    ends : array of int of shape (n_ends,)
        Numbers of columns, ascending.
    others : dict of arrays of shape (end, n_targets)
        Weights for those of ``ends`` that are above ``n_clear``.

    Examples
    --------
    >>> nested = NestedSquares.of(np.array([[2.0, 2.0], [0.0, 1.0]]), np.array([[4.0], [1.0]]), np.array([0, 1, 2]))
    >>> [nested.weights(end).ravel().tolist() for end in nested.ends]
    [[], [2.0], [1.0, 1.0]]
    >>> nested.products(np.array([[10.0, 1.0]])).ravel().tolist()
    [0.0, 20.0, 11.0]
    """

    inverse: Array
    sides: Array
    ends: Array
    others: dict[int, Array]

    @classmethod
    def of(cls, triangle: Array, sides: Array, ends: Array) -> NestedSquares:
        """Solve for the first ``ends[0]``, ``ends[1]``, ... columns of a triangle (rank, n_columns)."""
        n_columns = int(max(ends, default=0))
        inverse = _inverse(triangle[:n_columns, :n_columns])
        others = {
            end: np.linalg.lstsq(triangle[:, :end], sides, rcond=None)[0] for end in map(int, ends) if end > len(inverse)
        }
        return cls(inverse, sides, np.asarray(ends), others)

    def weights(self, end: int) -> Array:
        """Return the weights for one of the ends, (end, n_targets)."""
        return self.others[end] if end in self.others else self.inverse[:end, :end] @ self.sides[:end]

    def products(self, lines: Array) -> Array:
        """Return ``lines[:, :end] @ weights(end)`` for all ends, (n_ends, n_lines, n_targets)."""
        basis = lines[:, : len(self.inverse)] @ self.inverse
        found, total, done = self._empty(len(lines)), np.zeros((len(lines), self.sides.shape[1])), 0
        for place, end in enumerate(map(int, self.ends)):
            if end in self.others:
                found[place] = lines[:, :end] @ self.others[end]
                continue
            if end > done:
                total += basis[:, done:end] @ self.sides[done:end]
            found[place], done = total, end
        return found

    def scatters(self, matrix: Array) -> Array:
        """Return ``weights(end).T @ matrix[:end, :end] @ weights(end)`` of a symmetric matrix for all ends.

        The shape is (n_ends, n_targets, n_targets).
        """
        n_clear, n_targets = len(self.inverse), self.sides.shape[1]
        turned = np.tril(self.inverse.T @ matrix[:n_clear, :n_clear] @ self.inverse)
        turned[np.diag_indices(n_clear)] *= 0.5
        so_far = turned @ self.sides[:n_clear]  # each column with those before it, and half of it with itself
        found, half, done = self._empty(n_targets), np.zeros((n_targets, n_targets)), 0
        for place, end in enumerate(map(int, self.ends)):
            if end in self.others:
                weights = self.others[end]
                found[place] = 0.5 * (weights.T @ matrix[:end, :end] @ weights)
                continue
            if end > done:
                half += self.sides[done:end].T @ so_far[done:end]
            found[place], done = half, end
        return found + found.swapaxes(1, 2)

    def _empty(self, n_lines: int) -> Array:
        return np.empty((len(self.ends), n_lines, self.sides.shape[1]))


class PlainSquares(NamedTuple):
    """Triangle and right-hand sides of least squares without a ridge term, and the mean energy of a feature.

    Examples
    --------
    >>> plain = PlainSquares(np.array([[2.0]]), np.array([[4.0]]), mean_energy=6.0)
    >>> triangle, sides = plain.with_ridge(2.0)
    >>> (sides / triangle).round(6)  # 2 * 4 / (4 + 12)
    array([[0.5]])
    """

    triangle: Array
    sides: Array
    mean_energy: float

    def with_ridge(self, ridge: float) -> tuple[Array, Array]:
        """Return triangle and right-hand sides with a ridge term of a strength relative to the mean energy."""
        if not ridge:
            return self.triangle, self.sides
        n_rows, n_targets = self.triangle.shape[1], self.sides.shape[1]
        below = np.sqrt(ridge * self.mean_energy) * np.eye(n_rows, n_rows + n_targets)
        found = np.asarray(np.linalg.qr(np.vstack([np.hstack([self.triangle, self.sides]), below]), mode="r"))
        return found[:n_rows, :n_rows], found[:n_rows, n_rows:]


def _inverse(triangle: Array) -> Array:
    """Return the inverse of the largest leading block of a triangle in which columns are clearly independent."""
    corners = np.abs(np.diagonal(triangle))
    is_clear = (corners > 0.0) & (corners * MOST_CONDITION >= np.maximum.accumulate(corners))
    n_clear = len(corners) if is_clear.all() else int(is_clear.argmin())
    triangle = triangle[:n_clear, :n_clear]
    if not n_clear:
        return np.empty((0, 0))
    inverse: Array = lapack.dtrtri(triangle)[0]
    with np.errstate(over="ignore"):
        squares = [np.cumsum(np.square(each).sum(axis=0)) for each in (triangle, inverse)]
        n_clear = int(np.searchsorted(squares[0] * squares[1], MOST_CONDITION**2, side="right"))
    return inverse[:n_clear, :n_clear]


@dataclass(frozen=True, eq=False)
class NestedRules:
    """Linear rules on the first features of a ranking, for several numbers of features.

    Attributes
    ----------
    rows : array of shape (n_rows,)
        The features of the largest rule, best first.
    squares : NestedSquares
        Least squares on their columns, less ``mean`` and divided by ``scale``, arrays of shape (n_rows,).
    intercept : array of shape (n_targets,)
        Intercept of least squares on these columns.
    scatter : ClassScatter or None
        For the discriminant analysis that makes class scores of predictions; None for numbers.
    """

    rows: Array
    squares: NestedSquares
    mean: Array
    scale: Array
    intercept: Array
    scatter: ClassScatter | None = None

    def apply(self, columns: Any) -> Array:
        """Return the values of all rules for samples, (n_samples, n_ends, n_values), from their columns ``X[:, rows]``.

        More than :data:`MANY_VALUES` are returned in single precision.
        """
        shape = (len(columns), len(self.squares.ends), self._axes[0].shape[2] if self._axes else self.squares.sides.shape[1])
        found = np.empty(shape, np.float32 if np.prod(shape) > MANY_VALUES else None)
        for some, values in self._by_parts(columns):
            found[some] = values.swapaxes(0, 1)
        return found

    def labels(self, columns: Any) -> Array:
        """Return the class that each rule decides for, (n_samples, n_ends); values are kept of a few samples at a time."""
        found = np.empty((len(columns), len(self.squares.ends)), dtype=np.int32)
        for some, values in self._by_parts(columns):
            found[some] = decide(values).T
        return found

    @cached_property
    def _axes(self) -> tuple[Array, Array] | None:
        """Axes and intercepts of the discriminant analysis; None for numbers."""
        return None if self.scatter is None else nested_axes(self.squares, self.scatter)

    def _by_parts(self, columns: Any) -> Iterator[tuple[slice, Array]]:
        """Yield the values of all rules, (n_ends, n_some, n_values), for some samples at a time."""
        step = max(1, STEP_ELEMENTS // max(1, len(self.squares.ends) * self.squares.sides.shape[1]))
        for start in range(0, len(columns), step):
            some = slice(start, start + step)
            values = self.squares.products((columns[some] - self.mean) / self.scale)
            yield some, values + self.intercept if self._axes is None else values @ self._axes[0] + self._axes[1][:, None, :]

    def __iter__(self) -> Iterator[LinearRule]:
        for end in map(int, self.squares.ends):
            weights, intercept = self.squares.weights(end), self.intercept
            if self.scatter is not None:
                weights, intercept = self.scatter.discriminant(weights)
            weights = weights / self.scale[:end, None]
            yield LinearRule(self.rows[:end], weights, intercept - self.mean[:end] @ weights)


def nested_axes(squares: NestedSquares, scatter: ClassScatter) -> tuple[Array, Array]:
    """Return the axes and intercepts of the discriminant analysis of predictions on each number of columns.

    The shapes are (n_ends, n_targets, n_scores) and (n_ends, n_scores), see :meth:`ClassScatter.axes`.
    """
    return scatter.axes_of(squares.products(scatter.means), squares.scatters(scatter.within))
