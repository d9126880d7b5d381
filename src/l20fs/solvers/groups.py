r"""Active set of groups: several rows that enter, leave and are exchanged together.

With the products c of its members with the residual and the matrix Q of what the basis leaves of them, with mu, a group
lowers h by

.. math:: \tfrac12 \mathrm{tr}\bigl(c_g Q_g^{-1} c_g'\bigr),

which is what its members gain one after the other. The small blocks :math:`Q_g` are kept, and every row of the active set
changes them by :math:`v_g v_g'`. Members that depend on others, when there is no ridge, are passed over and have no weight.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from l20fs.design.driver import Walk
from l20fs.design.matrix import squared_columns
from l20fs.objective.problem import Problem
from l20fs.objective.prox import squared_row_norms
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers.active_set import SMALL_SHARE, ActiveSet, Choice, Exchange, best_of
from l20fs.typing import Array

#: Members of which less than this share is left beside others count as dependent.
LEAST_SHARE = 1e-14


def make_active_set(problem: Problem, penalty: RowPenalty | None = None) -> ActiveSet:
    """Return an empty active set of the units of a penalty; begin with :meth:`~ActiveSet.start`."""
    return (GroupActiveSet if penalty is not None and penalty.has_groups else ActiveSet)(problem, penalty)


class GroupActiveSet(ActiveSet):
    """Active set whose units are groups of rows.

    Examples
    --------
    >>> from l20fs.design import finish
    >>> from l20fs.objective.problem import make_problem
    >>> penalty = RowPenalty.of_groups([0, 1, 0], factors=np.ones(3))
    >>> active = GroupActiveSet(make_problem(np.eye(4)[:, :3], np.eye(4)), penalty)
    >>> finish(active.start([0]))
    >>> active.units, active.rows, round(active.loss, 6)
    ([0], [0, 2], 0.5)
    """

    def __init__(self, problem: Problem, penalty: RowPenalty | None = None) -> None:
        super().__init__(problem, penalty)
        self._units: list[int] = []
        self._ends = [0]
        self._alone = self.place.fetch(self.energies)
        self._blocks = [GroupBlocks(problem, members) for members in _by_size(self.penalty)]

    @property
    def units(self) -> list[int]:
        return self._units

    def n_rows_at(self, n_units: int) -> int:
        return self._ends[n_units]

    def gains(self) -> Any:
        n_rows, n_targets = len(self.rows), self.problem.n_targets
        found = self._gains_without(np.empty((0, n_rows)), np.empty((0, n_targets)))
        return self.place.send(found)

    def _gains_without(self, turns: Array, targets: Array) -> Array:
        """Return what each unit would gain if directions of the basis, with these targets, had left the active set."""
        place, gains = self.place, np.zeros(self.penalty.n_units)
        images, products = place.fetch(place.send(turns) @ self.images), place.fetch(self.products)
        needed = place.fetch(self._needed)
        for blocks in self._blocks:
            own, left = products[:, blocks.members], images[:, blocks.members]
            own = own + np.tensordot(targets, left, axes=(0, 0))
            gains[blocks.units(self.penalty)] = blocks.gains(own, left, needed[blocks.members])
        return gains

    # ------------------------------------------------------------------------------------------- growth and removal

    def start(self, units: Any = ()) -> Walk[None]:
        yield from self._add_units(self.penalty.included.tolist())
        # What is included and depends on others comes with every selection and changes nothing.
        sizes = np.diff(self._ends)
        self._units = [unit for unit, size in zip(self._units, sizes, strict=True) if size]
        self._ends = [0, *np.cumsum(sizes[sizes > 0]).tolist()]
        self.n_fixed = len(self)
        yield from self._add_units([int(unit) for unit in units if self.penalty.costs[unit] > 0.0])

    def grow(self, n_units: int, least: float = 0.0) -> Walk[int]:
        if self.loss <= self._negligible and not self.is_filling:  # what is left is rounding
            return 0
        while True:
            best, merit = best_of(self._admitted(self.merits()), self.problem.tie, self.place)
            if float(merit) <= (0.0 if self.is_filling else least):
                return 0
            panel, n_rows = self.panel, len(self.rows)
            yield from self._add_units([int(best)])
            if len(self.rows) > n_rows:
                break
            self._units.pop()  # its members depend on others, and are not chosen again
            self._ends.pop()
        if self.admission is not None:
            self.admission.follow(int(best), panel)
        return 1

    def _add_units(self, units: list[int]) -> Walk[None]:
        """Add the members of units, as far as they are independent."""
        first = len(self.rows)
        rows = self.penalty.rows_of(np.array(units, dtype=np.intp))
        yield from self._add_rows(rows)
        self._needed = self.place.put(self._needed, rows, np.full(len(rows), np.inf))
        entered = self.penalty.unit_of[self.rows[first:]]
        counts = [int(np.count_nonzero(entered == unit)) for unit in units]
        self._ends.extend((first + np.cumsum(counts, dtype=np.intp)).tolist())
        self._units.extend(units)

    def _accept(self, choice: Choice, directions: Array, targets: Array, images: Any) -> Walk[None]:
        yield from super()._accept(choice, directions, targets, images)
        self._follow(self.place.fetch(images), -1.0)
        if self._may_be_close:
            yield from self._measure_groups()

    def _follow(self, images: Array, sign: float) -> None:
        for blocks in self._blocks:
            blocks.change(images, sign)

    def _measure_groups(self) -> Walk[None]:
        """Measure the blocks again that have lost digits."""
        for blocks in self._blocks:
            for number in blocks.small(self.place.fetch(self._needed), SMALL_SHARE[self.problem.dtype]):
                _, square = yield from self._left_of(blocks.members[number])
                blocks.set(number, square)

    def remove(self, position: int) -> Walk[None]:
        first, end = self._ends[position : position + 2]
        for row_position in reversed(range(first, end)):
            self._remove_row(row_position)
        del self._units[position]
        self._ends = [*self._ends[: position + 1], *(each - (end - first) for each in self._ends[position + 2 :])]
        self._open_all_but(self.penalty.rows_of(np.array(self.panel, dtype=np.intp)))
        if self._is_rounded() or len(self._passed_over(self.place.fetch(self.energies))):
            yield from self._rebuild()

    def _remove_row(self, position: int) -> None:
        super()._remove_row(position)
        self._follow(self.place.fetch(self._images[len(self.rows), :])[None], 1.0)

    def _passed_over(self, energies: Array) -> Array:
        """Return the members of selected units that have no weight, and would be independent with these energies."""
        members = [self.penalty.members[unit] for unit in self._units[self.n_fixed :]]
        rows = np.setdiff1d(np.concatenate([np.empty(0, dtype=np.intp), *members]), self.rows)
        needed = np.maximum(self.place.fetch(self._least), LEAST_SHARE * self._alone)
        return rows[energies[rows] > needed[rows]]

    # ----------------------------------------------------------------------------------------------------- exchange

    def best_exchange(self, alpha: float = 0.0) -> Walk[Exchange]:
        removable = range(self.n_fixed, len(self))
        decreases = np.full((len(removable), self.penalty.n_units), -math.inf)
        worth = np.zeros(len(removable))
        for number, position in enumerate(removable):
            gains, worth[number] = yield from self._gains_for(position)
            # What brings nothing is no exchange, however cheap it is.
            decreases[number] = np.where(gains > self._negligible, gains - worth[number], -math.inf)
        if not self.penalty.is_even:
            decreases += alpha * (self.unit_costs[self.n_fixed :, None] - self.penalty.prices)
        if (allowed := self._allowed_exchanges()) is not None:
            decreases[~allowed] = -math.inf
        highest = float(decreases.max(initial=-math.inf))
        if highest == -math.inf:
            return Exchange(-1, -1, highest)
        slack = self.problem.tie * (abs(highest) + float(worth.max()))
        position, unit = self._first_pair(decreases >= highest - slack)
        return Exchange(self.n_fixed + position, unit, float(decreases[position, unit]))

    def _gains_for(self, position: int) -> Walk[tuple[Array, float]]:
        """Return what each unit would gain without the one at a position, and what that one is worth."""
        span = slice(*self._ends[position : position + 2])
        turns = np.linalg.qr(self.combos[:, span])[0].T
        targets = turns @ self.targets
        energies = self.place.fetch(self.energies + squared_columns(self.place.send(turns) @ self.images, self.place.xp))
        back = self._passed_over(energies)
        if (self.penalty.unit_of[back] != self._units[position]).any():  # members of other units come back
            own = self._units[position]
            others = yield from self._with_units([unit for unit in self._units[self.n_fixed :] if unit != own])
            gains = self.place.fetch(others.gains())
            gains[own] = 0.0
            return gains, float(others.loss - self.loss)
        return self._gains_without(turns, targets), 0.5 * float(squared_row_norms(targets).sum())

    def _may_gain(self) -> Any:
        is_open = np.bincount(self.penalty.unit_of, weights=self.place.fetch(self._needed) < np.inf) > 0.0
        return self.place.send(is_open)


class GroupBlocks:
    """Matrices ``Q_g`` of all groups of one size, with mu on their diagonals.

    Parameters
    ----------
    problem : Problem
    members : array of shape (n_groups, size)
    """

    def __init__(self, problem: Problem, members: Array) -> None:
        self.members = members
        self._values = _inner_products(problem, members) + problem.ridge * np.eye(members.shape[1])
        self._measured = np.einsum("gii->gi", self._values).copy()

    def units(self, penalty: RowPenalty) -> Array:
        """Return the unit of each group."""
        return penalty.unit_of[self.members[:, 0]]

    def change(self, images: Array, sign: float) -> None:
        """Follow rows that enter (-1) or leave (1), with these images."""
        own = images[:, self.members]
        self._values += sign * np.einsum("kgi,kgj->gij", own, own)
        self._measured = np.maximum(self._measured, np.einsum("gii->gi", self._values))

    def small(self, needed: Array, share: float) -> Array:
        """Return the groups with members that may enter and of which only a small share of what was measured is left."""
        energies = np.einsum("gii->gi", self._values)
        return np.flatnonzero(((energies <= share * self._measured) & (needed[self.members] < np.inf)).any(axis=1))

    def set(self, number: int, values: Array) -> None:
        """Set the matrix of a group to what was measured."""
        self._values[number] = values
        self._measured[number] = np.diagonal(values)

    def gains(self, products: Array, left: Array, needed: Array) -> Array:
        """Return the gain of each group from its products, (n_targets, n_groups, size).

        The members are orthogonalised one after the other, in all groups at once; ``left`` are the images of directions
        that have left the active set, (n_left, n_groups, size).
        """
        values = self._values + np.einsum("lgi,lgj->gij", left, left)
        needed = np.maximum(needed, LEAST_SHARE * np.einsum("gii->gi", values))
        gains = np.zeros(len(self.members))
        for place in range(self.members.shape[1]):
            energies = values[:, place, place]
            scale = np.sqrt(np.divide(1.0, energies, out=np.zeros_like(energies), where=energies > needed[:, place]))
            targets = products[:, :, place] * scale
            gains += 0.5 * np.einsum("ij,ij->j", targets, targets)
            lines = values[:, place, place + 1 :] * scale[:, None]
            values[:, place + 1 :, place + 1 :] -= lines[:, :, None] * lines[:, None, :]
            products[:, :, place + 1 :] -= targets[:, :, None] * lines
        return gains


def _by_size(penalty: RowPenalty) -> list[Array]:
    """Return the members of all units of the same size as one array, for every size."""
    sizes = np.array([len(members) for members in penalty.members])
    return [np.array([penalty.members[unit] for unit in np.flatnonzero(sizes == size)]) for size in np.unique(sizes)]


def _inner_products(problem: Problem, members: Array) -> Array:
    """Return ``X_g' X_g`` of all groups, (n_groups, size, size)."""
    design, (n_groups, size) = problem.design, members.shape
    if size == 1:
        return design.column_energy[members][:, :, None].copy()
    values = np.empty((n_groups, size, size))
    step = max(1, design.matrix.n_columns_at_once // size)
    for first in range(0, n_groups, step):
        rows = members[first : first + step]
        lines = design.columns(rows.ravel()).reshape(*rows.shape, -1)
        values[first : first + step] = lines @ lines.mT
    return values
