r"""An active set of groups: several rows that enter, leave and are exchanged together.

With :math:`Q_g = X_g' M_S X_g` and :math:`C_g = X_g' M_S \tilde Y`, group g lowers h by

.. math:: \tfrac12 \mathrm{tr}\bigl(C_g' (\mu I + Q_g)^{-1} C_g\bigr),

which is what its members gain one after the other. The small blocks :math:`Q_g` are kept, and every change of the active set
changes them by :math:`p_g p_g'`. Members without room (dependent on others, when there is no ridge) are passed over and
have no weight.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from l20fs.design import BLOCK_ELEMENTS
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers.active_sets.close_columns import CloseColumns, CloseGroup, measure_columns, measure_group
from l20fs.solvers.active_sets.rows import NO_ROWS, Exchange, RowActiveSet
from l20fs.typing import Array


class GroupActiveSet(RowActiveSet):
    """An active set whose units are groups of rows.

    Examples
    --------
    >>> penalty = RowPenalty.of_groups([0, 1, 0], factors=np.ones(3))
    >>> active = GroupActiveSet(LeastSquares(np.eye(4)[:, :3], np.eye(4)), [0], penalty)
    >>> active.units, active.rows, round(active.loss, 6)
    ([0], [0, 2], 0.5)
    """

    def _start_from(self, units: list[int]) -> None:
        self._blocks = [self._make_blocks(members) for members in _by_size(self.penalty)]
        self._close_groups: dict[int, CloseGroup] = {}  # of the present rows
        self._units: list[int] = []
        self._ends = [0]
        self._ahead = 1
        self._alone = self.merits()
        included = self.penalty.included.tolist()
        self._add_units(included)
        # What is included and has no room is no part of the active set: it comes with every selection and changes nothing.
        sizes = np.diff(self._ends)
        self._units = [unit for unit, size in zip(included, sizes, strict=True) if size]
        self._ends = [0, *np.cumsum(sizes[sizes > 0]).tolist()]
        self.n_fixed = len(self)
        self._add_units([unit for unit in units if self.penalty.costs[unit] > 0.0])

    def _make_blocks(self, members: Array) -> GroupBlocks:
        return GroupBlocks(self.problem, members)

    def _add_units(self, units: list[int]) -> None:
        """Add the members of some units, as far as they are independent, in one pass over X."""
        first = self.basis.size
        rows = [row for unit in units for row in self.penalty.members[unit].tolist()]
        self._add_rows(rows, if_room=True)
        self._set_room(rows, np.inf)
        entered = self.penalty.unit_of[self.rows[first:]]
        self._ends.extend((first + np.cumsum([np.count_nonzero(entered == unit) for unit in units], dtype=np.intp)).tolist())
        self._units.extend(units)

    @property
    def units(self) -> list[int]:
        return self._units

    def n_rows_at(self, n_units: int) -> int:
        return self._ends[n_units]

    def _span(self, position: int) -> slice:
        """Return the positions of the rows of a unit in the basis."""
        return slice(self._ends[position], self._ends[position + 1])

    def gains(self) -> Any:
        n_rows, n_targets = self.basis.size, self.problem.n_targets
        return self._gains_without(np.empty((0, n_rows)), np.empty((0, self.problem.n_features)), np.empty((0, n_targets)))

    def _gains_without(self, turns: Array, images: Any, targets: Array) -> Any:
        """Return what each unit would gain if lines with these images and targets had left the active set."""
        gains = np.zeros(self.penalty.n_units)
        for blocks in self._blocks:
            members = blocks.members
            units = self.penalty.unit_of[members[:, 0]]
            products = self.products[:, members] + np.tensordot(targets, images[:, members], axes=(0, 0))
            gains[units], is_clear = blocks.gains(products, images, self.problem.ridge, self._needed_room)
            if self._may_be_close:
                for unit in units[~is_clear]:
                    gains[unit] = self._close_group(unit).gain(turns, targets)
        return gains

    def _gains_anew(self, position: int) -> tuple[Any, float]:
        """Return what each unit would gain without one on which members of others depend, and what that one is worth."""
        units = [unit for unit in self._units[self.n_fixed :] if unit != self._units[position]]
        others = type(self)(self.problem, units, self.penalty)
        gains = others.gains()
        gains[self._units[position]] = 0.0
        return gains, float(others.loss - self.loss)

    def _close_group(self, unit: int) -> CloseGroup:
        """Measure what is left of the columns of a unit: rounding may have eaten it in the blocks."""
        if unit not in self._close_groups:
            members = self.penalty.members[unit]
            members = members[self._at(self._needed_room, members) < np.inf]
            smallest_room = self._smallest_room[members]
            self._close_groups[unit] = measure_group(self.problem, self.basis, self.residual, members, smallest_room)
        return self._close_groups[unit]

    def add(self, unit: int) -> None:
        if self.admission is not None:
            self.admission.follow(unit, self.panel)
        self._add_units([unit])

    def remove(self, position: int) -> None:
        span, unit = self._span(position), self._units[position]
        for row_position in reversed(range(span.start, span.stop)):
            self._remove_row(row_position)
        del self._units[position]
        self._ends = [*self._ends[: position + 1], *(end - (span.stop - span.start) for end in self._ends[position + 2 :])]
        members = self.penalty.members[unit]
        self._set_room(members, self._smallest_room[members])
        if self._is_incomplete():
            self._build(self._units, self._pull(self.problem.targets))

    def _passed_over(self) -> Array:
        """Return the members of selected units that depend on others and have no weight."""
        members = [self.penalty.members[unit] for unit in self._units[self.n_fixed :]]
        rows = np.setdiff1d(np.concatenate(members) if members else NO_ROWS, self.rows)
        return rows[self._smallest_room[rows] < np.inf]

    def _is_incomplete(self) -> bool:
        """Return whether dependent members have become independent after a removal."""
        rows = self._passed_over()
        if (self.problem.ridge + self._at(self.energies, rows) > self._clear_room[rows]).any():
            return True
        rows = rows if self._may_be_close else NO_ROWS
        measured = measure_columns(self.problem, self.basis, self.residual, rows)
        return bool((measured.room > self._smallest_room[rows]).any())

    def best_exchange(self, alpha: float = 0.0) -> Exchange:
        removable = range(self.n_fixed, len(self))
        if not removable:
            return Exchange(-1, -1, -math.inf)
        decreases = np.empty((len(removable), self.penalty.n_units))
        worth = np.empty(len(removable))
        passed_over = self._measure_passed_over()
        for number, position in enumerate(removable):
            gains, worth[number] = self._gains_for(position, passed_over)
            # What brings nothing is no exchange, however cheap it is.
            decreases[number] = np.where(gains > self._negligible, gains - worth[number], -np.inf)
        if not self.penalty.is_even:
            decreases += alpha * (self.unit_costs[self.n_fixed :, None] - self.penalty.prices)
        if (allowed := self._allowed_exchanges()) is not None:
            decreases[~allowed] = -np.inf
        highest = float(decreases.max())
        if highest == -math.inf:
            return Exchange(-1, -1, highest)
        slack = self.problem.tie * (abs(highest) + float(worth.max()))
        position, unit = self._first_pair(decreases >= highest - slack)
        return Exchange(self.n_fixed + position, unit, float(decreases[position, unit]))

    def _measure_passed_over(self) -> CloseColumns:
        rows = self._passed_over() if self._may_be_close else NO_ROWS
        return measure_columns(self.problem, self.basis, self.residual, rows)

    def _gains_for(self, position: int, passed_over: CloseColumns) -> tuple[Any, float]:
        """Return what each unit would gain without the one at a position, and what that one is worth."""
        turns, targets = self.basis.exit_of(self._span(position))
        room = passed_over.room + np.square(passed_over.coordinates @ turns.T).sum(axis=1)
        comes_back = room > self._smallest_room[passed_over.rows]
        if (comes_back & (self.penalty.unit_of[passed_over.rows] != self._units[position])).any():
            return self._gains_anew(position)
        images = self.basis.images_of(self.basis.prepare(turns), slice(None))
        return self._gains_without(turns, images, targets), 0.5 * float(np.vdot(targets, targets))

    def _may_gain(self) -> Array:
        return np.bincount(self.penalty.unit_of, weights=self._needed_room < np.inf) > 0.0

    def _merits_alone(self) -> Any:
        return self._alone

    def _change(self, direction: Any, target: Array, image: Any, sign: float) -> None:
        super()._change(direction, target, image, sign)
        self._close_groups = {}
        for blocks in self._blocks:
            blocks.change(image, sign)


class GroupBlocks:
    """Matrices ``Q_g`` of all groups of one size.

    Parameters
    ----------
    problem : LeastSquares
    members : array of shape (n_groups, size)
    """

    def __init__(self, problem: LeastSquares, members: Array) -> None:
        self.members = members
        self._values = _inner_products(problem, members)

    def change(self, image: Array, sign: float) -> None:
        """Follow a change of rank one of the active set."""
        parts = image[self.members].astype(np.float64, copy=False)
        self._values += sign * parts[:, :, None] * parts[:, None, :]

    def gains(self, products: Array, images: Array, ridge: float, needed_room: Array) -> tuple[Array, Array]:
        """Return the gain of each group from its products, (n_targets, n_groups, size), and whether it is exact.

        It is not where little is left of a member that has no weight. The members are orthogonalised one after the other,
        in all groups at once; ``images`` are those of lines that have left the active set.
        """
        left = images[:, self.members].astype(np.float64, copy=False)
        values = self._values + np.einsum("lgi,lgj->gij", left, left)
        gains, is_clear = np.zeros(len(self.members)), np.full(len(self.members), True)
        for place in range(self.members.shape[1]):
            room = values[:, place, place] + ridge
            needed = needed_room[self.members[:, place]]
            has_room = room > needed
            is_clear &= has_room | (needed == np.inf)
            scale = np.sqrt(np.divide(1.0, room, out=np.zeros_like(room), where=has_room))
            targets = products[:, :, place] * scale
            gains += 0.5 * np.einsum("ij,ij->j", targets, targets)
            lines = values[:, place, place + 1 :] * scale[:, None]
            values[:, place + 1 :, place + 1 :] -= lines[:, :, None] * lines[:, None, :]
            products[:, :, place + 1 :] -= targets[:, :, None] * lines
        return gains, is_clear


def _by_size(penalty: RowPenalty) -> list[Array]:
    """Return the members of all units of the same size as one array, for every size."""
    sizes = np.array([len(members) for members in penalty.members])
    return [np.array([penalty.members[unit] for unit in np.flatnonzero(sizes == size)]) for size in np.unique(sizes)]


def _inner_products(problem: LeastSquares, members: Array) -> Array:
    """Return ``X_g' X_g`` of all groups, (n_groups, size, size); the samples are read in blocks."""
    design, (n_groups, size) = problem.design, members.shape
    if size == 1:
        return design.column_energy[members][:, :, None].copy()
    values = np.zeros((n_groups, size, size))
    n_samples = max(1, min(design.n_samples, BLOCK_ELEMENTS // size))
    step = max(1, BLOCK_ELEMENTS // (size * n_samples))
    for first in range(0, n_groups, step):
        rows = members[first : first + step]
        for start in range(0, design.n_samples, n_samples):
            part = design.take(rows.ravel(), slice(start, start + n_samples)).astype(np.float64, copy=False)
            lines = part.T.reshape(*rows.shape, -1)
            values[first : first + step] += lines @ lines.mT
    return values
