r"""Columns that are nearly linear combinations of the selected ones, measured in float64.

The energies :math:`q_j = \|x_j\|^2 - \sum_t p_{jt}^2` of an active set are differences: for a column that the selected ones
explain up to a share s, their relative error is :math:`\varepsilon / s` with the :math:`\varepsilon` of products with X.
For these few columns the remainder itself is computed, and orthogonalised again as long as it shrinks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from l20fs.inputs.devices import as_numpy
from l20fs.objective.least_squares import LeastSquares
from l20fs.solvers.active_sets.basis import Basis
from l20fs.typing import Array


class CloseColumns(NamedTuple):
    """Remainders of the columns of some rows.

    Attributes
    ----------
    rows : array of shape (n_rows,)
    room : array of shape (n_rows,)
        Squared norms of the remainders, with the ridge.
    products : array of shape (n_targets, n_rows)
        Their products with the residual.
    coordinates : array of shape (n_rows, n_lines)
        Products of the columns with the lines of the basis.
    """

    rows: Array
    room: Array
    products: Array
    coordinates: Array

    def gains(self, smallest_room: Array) -> Array:
        """Return the decrease of h by each of the rows; 0 if it is dependent."""
        squares = 0.5 * np.einsum("ij,ij->j", self.products, self.products)
        has_room = self.room > smallest_room[self.rows]
        return np.divide(squares, self.room, out=np.zeros_like(squares), where=has_room)


NO_COLUMNS = CloseColumns(np.empty(0, dtype=np.intp), np.empty(0), np.empty((0, 0)), np.empty((0, 0)))


class CloseGroup(NamedTuple):
    """Remainders of the columns of a group, in coordinates of their own space.

    Attributes
    ----------
    lines : array of shape (n_members, n_members)
        The remainders.
    targets : array of shape (n_targets, n_members)
        The residual.
    coordinates : array of shape (n_members, n_lines)
        Products of the columns with the lines of the basis.
    smallest_room : array of shape (n_members,)
        Squared norm above which what is left of a member is independent of the others.
    """

    lines: Array
    targets: Array
    coordinates: Array
    smallest_room: Array

    def gain(self, turns: Array, targets: Array) -> float:
        """Return the decrease of h by the group if the lines ``turns``, with these targets, had left the basis.

        The members are orthogonalised one after the other; those that are dependent are passed over.
        """
        lines = np.hstack([self.lines, self.coordinates @ turns.T])
        residual = np.hstack([self.targets, targets.T])
        basis = np.empty((0, lines.shape[1]))
        for line, smallest_room in zip(lines, self.smallest_room, strict=True):
            for _ in range(3):  # what is left may be 1e-10 of the line
                line = line - (basis @ line) @ basis
            room = float(line @ line)
            if room > smallest_room:
                basis = np.vstack([basis, line / np.sqrt(room)])
        gained = residual @ basis.T
        return 0.5 * float(np.vdot(gained, gained))


def measure_group(problem: LeastSquares, basis: Basis, residual: Any, members: Array, smallest_room: Array) -> CloseGroup:
    """Measure what the rows of a basis leave of the columns of a group, in float64 whatever the dtype of X."""
    found, root = basis.remainders(basis.columns(members)), np.sqrt(problem.ridge)
    below = root * np.eye(len(members) if problem.ridge else 0, len(members)).T
    lines = np.hstack([as_numpy(found.rest), found.lifted, below])
    weights = basis.weights(basis.size)
    whole_residual = np.hstack([as_numpy(residual), -root * weights, np.zeros((problem.n_targets, below.shape[1]))])
    # As orthogonal coordinates of the remainders: their number is that of the members, not that of the samples.
    directions, triangle = np.linalg.qr(lines.T)
    return CloseGroup(triangle.T, whole_residual @ directions, found.coordinates, smallest_room)


def measure_columns(problem: LeastSquares, basis: Basis, residual: Any, rows: Array) -> CloseColumns:
    """Measure what the rows of a basis leave of some columns, in float64 whatever the dtype of X."""
    room, products = np.empty(len(rows)), np.empty((problem.n_targets, len(rows)))
    coordinates = np.empty((len(rows), basis.size))
    step = max(1, basis.block_elements // problem.design.n_samples)
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        found = basis.remainders(basis.columns(rows[part]))
        room[part], products[:, part] = found.room, basis.products(residual, found)
        coordinates[part] = found.coordinates
    return CloseColumns(rows, room, products, coordinates)
