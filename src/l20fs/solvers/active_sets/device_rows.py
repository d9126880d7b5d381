r"""Active sets beside an X on a device, for additions and exchanges of rows and of groups.

They are those of :mod:`~l20fs.solvers.active_sets.rows` and :mod:`~l20fs.solvers.active_sets.groups`. All that is as long as
X has samples or features is an array of the library of X and stays there; only matrices of the size of the panel, and the
unit that was found, come to the host. Exchanges are judged for some lines and some features at a time, so that the memory
does not grow with the number of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from l20fs.design.meeting import computed_once
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.prox import order_descending, squared_row_norms
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers.active_sets.basis import SampleBasis
from l20fs.solvers.active_sets.close_columns import CloseColumns, measure_columns
from l20fs.solvers.active_sets.device import FIRST_PLACES, LINES_PER_PASS, PART_ELEMENTS
from l20fs.solvers.active_sets.groups import GroupActiveSet, GroupBlocks
from l20fs.solvers.active_sets.rows import (
    ALL_EXPLAINED,
    NO_ROWS,
    REFRESH_EVERY,
    Exchange,
    RowActiveSet,
    gains_without,
)
from l20fs.typing import Array

#: Up to so many numbers of a long vector are changed one by one; more by a mask.
FEW = 32

#: So many times the leading units are fetched, so that equal ones are put in order on the host.
MORE_THAN_LEADING = 4


class TurningBasis(SampleBasis):
    """Orthonormal basis on the device from which rows may leave; coordinates, triangle and targets are on the host."""

    block_elements = PART_ELEMENTS

    def __init__(self, problem: LeastSquares) -> None:
        super().__init__(problem)
        self._design: Any = problem.design
        self._place = self._design.place
        self._lines: Any = self._place.send(self._lines)

    def columns(self, rows: Array) -> Any:
        return self._design.lines(self._place.send(rows), self._place.xp.float64)

    def _squares(self, vectors: Any) -> Any:
        return self._place.fetch(self._place.xp.sum(vectors * vectors, axis=-1))

    def _inner(self, residual: Any, vectors: Any) -> Array:
        return self._place.fetch(residual @ (vectors if vectors.ndim == 1 else vectors.T))

    def _copy(self, vectors: Any) -> Any:
        return self._place.xp.asarray(vectors, copy=True)

    def _analyse(self, vectors: Any, exactly: bool) -> Array:
        return self._place.fetch(self.lines @ vectors if vectors.ndim == 1 else vectors @ self.lines.T)

    def _synthesise(self, coordinates: Array, exactly: bool) -> Any:
        return self._combined(coordinates)

    def _combined(self, turns: Array) -> Any:
        return self._place.send(turns) @ self.lines

    def images_of(self, prepared: Any, rows: Array | slice) -> Any:
        images = self._design.products(prepared)
        return images[:, rows] if isinstance(rows, slice) else self._place.take(images, self._place.send(rows), axis=1)

    def _make_room(self) -> None:
        n_before, n_samples = self._lines.shape
        if self.size < n_before:
            return
        xp, n_places = self._place.xp, max(FIRST_PLACES, 2 * self.size)
        lines = xp.zeros((n_places, n_samples), dtype=xp.float64, device=self._place.device)
        lines[:n_before, :] = self._lines
        self._lines = lines
        self._inverse = np.pad(self._inverse, (0, n_places - n_before))
        self._targets = np.vstack([self._targets, np.empty((n_places - n_before, self._targets.shape[1]))])


class DeviceUnits(RowActiveSet):
    """Base of the active sets of rows and of groups beside an X on a device."""

    basis: TurningBasis

    def __init__(self, problem: LeastSquares, units: Iterable[int] = (), penalty: RowPenalty | None = None) -> None:
        self._design: Any = problem.design
        self._place = self._design.place
        super().__init__(problem, units, penalty)

    def _lay_out(self, products: Any) -> None:
        xp, place, design = self._place.xp, self._place, self._design
        self.basis = TurningBasis(self.problem)
        self.residual = place.send(self.problem.targets)
        self.products = xp.astype(products, xp.float64, copy=True)
        self.energies = place.send(design.column_energy)
        self._needed_room = place.send(self._clear_room)
        self._is_dependent = xp.zeros(design.n_features, dtype=xp.bool, device=place.device)
        if not self.penalty.is_even:
            self._costs, self._prices = place.send(self.penalty.costs), place.send(self.penalty.prices)

    def _column(self, row: int, *, alone: bool = False) -> Any:
        return self.basis.columns(np.array([row]))[0, :]

    @property
    def _pull(self) -> Callable[[Any], Any]:
        return self._pull_there

    def _pull_there(self, lines: Any) -> Any:
        """Return products in float64; lines of the host are sent."""
        lines = self._place.send(lines) if isinstance(lines, np.ndarray) else lines
        return self._place.xp.astype(self._design.products(lines), self._place.xp.float64)

    def _stacked(self, directions: list[Any]) -> Any:
        return self._place.xp.stack(directions)

    def _moved(self, direction: Any, target: Array) -> Any:
        return self.residual + self._place.send(target)[:, None] * direction[None, :]

    def _follow(self, image: Any, target: Array, sign: float) -> None:
        xp = self._place.xp
        image = xp.astype(image, xp.float64, copy=False)
        if self._n_changes % REFRESH_EVERY:
            self.products += self._place.send(sign * target)[:, None] * image[None, :]
        else:
            self.products = self._pull_there(self.residual)
        self.energies += sign * (image * image)

    def _at(self, vector: Any, rows: Array) -> Array:
        return self._place.fetch(self._place.xp.take(vector, self._place.send(rows)))

    def _with(self, vector: Any, rows: Array, values: Any) -> Any:
        """Return a long vector with other numbers at some rows."""
        if len(rows) <= FEW:
            for row, value in zip(rows, np.broadcast_to(values, len(rows)).tolist(), strict=True):
                vector[int(row)] = value
            return vector
        mask, others = np.zeros(vector.shape[0], dtype=bool), np.zeros(vector.shape[0], np.asarray(values).dtype)
        mask[rows], others[rows] = True, values
        return self._place.xp.where(self._place.send(mask), self._place.send(others), vector)

    def _set_room(self, rows: Any, room: Any) -> None:
        self._needed_room = self._with(self._needed_room, rows, room)

    def _mark_dependent(self, rows: Array) -> None:
        self._is_dependent = self._with(self._is_dependent, rows, True)

    def _close_rows(self) -> Array:
        is_explained = self.penalty.is_even and self.loss <= ALL_EXPLAINED * self.problem.null_loss
        if not self._may_be_close or is_explained:
            return NO_ROWS
        is_near = (self.problem.ridge + self.energies <= self._needed_room) & (self._needed_room < np.inf)
        return self._place.fetch(self._place.xp.nonzero(is_near & ~self._is_dependent)[0])

    def _per_cost(self, gains: Any, units: Array | slice = slice(None)) -> Any:
        if self.penalty.is_even:
            return gains
        xp, costs = self._place.xp, self._costs
        # Nothing divided by infinity is nothing.
        return gains / xp.where((gains > self._negligible) & (costs > 0.0), costs, xp.full_like(costs, np.inf))

    def _admitted(self, values: Any) -> Any:
        if self.admission is None:
            return values
        may_enter = self._place.send(self.admission.mask(self.panel))
        return self._place.xp.where(may_enter, values, self._place.xp.zeros_like(values))

    def best_merit(self) -> float:
        return float(self._place.xp.max(self._admitted(self.merits())))

    def leading(self, n_units: int) -> tuple[Array, Array]:
        xp, merits = self._place.xp, self.merits()
        n_near = min(MORE_THAN_LEADING * n_units, merits.shape[0])  # of equal merits the lowest unit comes first
        units = xp.sort(xp.argsort(merits, descending=True)[:n_near])
        merits_here = self._place.fetch(xp.take(merits, units))
        order = order_descending(merits_here, rtol=self.problem.tie)[:n_units]
        return self._place.fetch(units)[order], merits_here[order]

    def _best(self, values: Any) -> tuple[int, float]:
        return self._first(values, self._place.xp.max(values) * (1.0 - self.problem.tie))

    def _first(self, values: Any, limit: Any) -> tuple[int, float]:
        """Return the first of some values that is not below a limit, and the value."""
        xp = self._place.xp
        first = xp.argmax(xp.astype(values >= limit, xp.uint8), keepdims=True)
        return int(first[0]), float(xp.take(values, first)[0])

    def _parts(self, n_lines: int) -> list[slice]:
        """Return blocks of features for which a matrix with some lines has a bounded size."""
        n_features, step = self._design.n_features, max(1, PART_ELEMENTS // max(1, n_lines))
        return [slice(start, min(start + step, n_features)) for start in range(0, n_features, step)]


class DeviceRows(DeviceUnits):
    """Active set of rows beside an X on a device.

    Examples
    --------
    >>> import array_api_strict
    >>> active = DeviceRows(LeastSquares(array_api_strict.asarray(np.diag([1.0, 2.0, 3.0, 4.0])[:, :3]), np.eye(4)), [0, 1])
    >>> active.best_exchange().unit
    2
    """

    def gains(self) -> Any:
        gains = gains_there(self._place.xp, self.products, self.problem.ridge + self.energies, self._needed_room)
        close = self._close_columns()
        return self._with(gains, close.rows, close.gains(self._smallest_room)) if len(close.rows) else gains

    def _may_gain(self) -> Any:
        return self._needed_room < np.inf

    def best_exchange(self, alpha: float = 0.0) -> Exchange:
        xp = self._place.xp
        turns, targets = (exits[self.n_fixed :] for exits in self.basis.exits())
        if not len(turns):
            return Exchange(-1, -1, -math.inf)
        self._is_dependent[:] = False  # on all rows, but perhaps not on all but one
        close = measure_columns(self.problem, self.basis, self.residual, self._close_rows())
        allowed = self._allowed_exchanges()
        leaving, best = self.basis.prepare(turns), None
        for start in range(0, len(turns), LINES_PER_PASS):
            some = slice(start, min(start + LINES_PER_PASS, len(turns)))
            found = self._best_without(leaving[some, :], targets[some], some, alpha, allowed)
            best = found if best is None else xp.maximum(best, found)
        if len(close.rows):
            values = self._values(self._close_gains(turns, targets, close), targets, close.rows, alpha, allowed)
            best = self._with(best, close.rows, values.max(axis=0))
        highest = float(xp.max(best))
        if highest == -math.inf:
            return Exchange(-1, -1, highest)
        slack = self.problem.tie * (abs(highest) + float(squared_row_norms(targets).max()))
        unit, _ = self._first(best, highest - slack)
        values = self._values(self._gains_of_one(unit, leaving, turns, targets, close), targets, [unit], alpha, allowed)
        position, _ = self._first_pair(values >= values.max() - slack)
        return Exchange(self.n_fixed + position, unit, 0.5 * float(values[position, 0]))

    def _best_without(self, leaving: Any, targets: Array, some: slice, alpha: float, allowed: Array | None) -> Any:
        """Return twice the largest decrease of the objective by each unit that takes the place of one of some rows."""
        xp, place, found = self._place.xp, self._place, []
        pulled = self._design.products(leaving)
        worth, targets_there = place.send(squared_row_norms(targets)[:, None]), place.send(targets)
        for part in self._parts(len(targets)):
            images = xp.astype(pulled[:, part], xp.float64)
            room, needed_room = self.problem.ridge + self.energies[part], self._needed_room[part]
            values = gains_without_there(xp, images, targets_there, worth, self.products[:, part], room, needed_room)
            if not self.penalty.is_even:
                costs_left = place.send(self.unit_costs[self.n_fixed :][some, None])
                nothing = xp.full_like(values, -np.inf)
                values = xp.where(values > 2.0 * self._negligible, values, nothing)
                values += 2.0 * float(alpha) * (costs_left - self._prices[part])
            values -= worth
            if allowed is not None:
                values = xp.where(place.send(allowed[some, part]), values, xp.full_like(values, -np.inf))
            found.append(xp.max(values, axis=0))
        return xp.concat(found)

    def _values(self, gains: Array, targets: Array, units: Any, alpha: float, allowed: Array | None) -> Array:
        """Return twice the decrease of the objective by exchanges for a few units, from twice their gains, on the host."""
        if not self.penalty.is_even:
            gains = np.where(gains <= 2.0 * self._negligible, -np.inf, gains)
            gains += 2.0 * alpha * (self.unit_costs[self.n_fixed :, None] - self.penalty.prices[units])
        values = gains - squared_row_norms(targets)[:, None]
        return values if allowed is None else np.where(allowed[:, units], values, -np.inf)

    def _close_gains(self, turns: Array, targets: Array, close: CloseColumns) -> Array:
        """Return twice the gains of the close columns without each of the rows."""
        images, smallest_room = turns @ close.coordinates.T, self._smallest_room[close.rows]
        return gains_without(images, targets, close.products, close.room, smallest_room)

    def _gains_of_one(self, unit: int, leaving: Any, turns: Array, targets: Array, close: CloseColumns) -> Array:
        """Return twice the gains of a unit without each of the rows, (n_lines, 1)."""
        if unit in close.rows:
            here = close.rows == unit
            only = CloseColumns(close.rows[here], close.room[here], close.products[:, here], close.coordinates[here])
            return self._close_gains(turns, targets, only)
        row = np.array([unit])
        images = self._place.fetch(leaving @ self.basis.columns(row).T)
        products = self._place.fetch(self.products[:, unit : unit + 1])
        room, needed_room = self.problem.ridge + self._at(self.energies, row), self._at(self._needed_room, row)
        return gains_without(images, targets, products, room, needed_room)


class DeviceGroups(DeviceUnits, GroupActiveSet):
    """Active set of groups beside an X on a device.

    Examples
    --------
    >>> import array_api_strict
    >>> penalty = RowPenalty.of_groups([0, 1, 0], factors=np.ones(3))
    >>> problem = LeastSquares(array_api_strict.asarray(np.eye(4)[:, :3]), np.eye(4))
    >>> active = DeviceGroups(problem, [0], penalty)
    >>> active.units, active.rows, round(active.loss, 6)
    ([0], [0, 2], 0.5)
    """

    _blocks: list[Any]

    def _make_blocks(self, members: Array) -> GroupBlocks:
        return DeviceGroupBlocks(self.problem, members)

    def gains(self) -> Any:
        return self._gains_without(np.empty((0, self.basis.size)), None, np.empty((0, self.problem.n_targets)))

    def _gains_without(self, turns: Array, images: Any, targets: Array) -> Any:
        xp, place = self._place.xp, self._place
        found, close = [], [NO_ROWS]
        targets_there = place.send(targets.T)
        for blocks in self._blocks:
            products, left = blocks.part_of(self.products), None
            if images is not None:
                left = blocks.part_of(images)
                moved = targets_there @ xp.reshape(left, (left.shape[0], -1))
                products = products + xp.reshape(moved, products.shape)
            gains, is_clear = blocks.gains(products, left, self.problem.ridge, self._needed_room)
            found.append(gains)
            if self._may_be_close:
                close.append(self.penalty.unit_of[blocks.members[place.fetch(xp.nonzero(~is_clear)[0]), 0]])
        gains = xp.take(xp.concat(found), self._places)
        measured = np.concatenate(close)
        if not len(measured):
            return gains
        return self._with(gains, measured, [self._close_group(unit).gain(turns, targets) for unit in measured.tolist()])

    @computed_once
    def _places(self) -> Any:
        """Return the place of each unit among those of all blocks."""
        units = [self.penalty.unit_of[blocks.members[:, 0]] for blocks in self._blocks]
        return self._place.send(np.argsort(np.concatenate(units)))

    def _may_gain(self) -> Any:
        may_gain = self._place.fetch(self._needed_room) < np.inf
        return self._place.send(np.bincount(self.penalty.unit_of, weights=may_gain) > 0.0)

    def best_exchange(self, alpha: float = 0.0) -> Exchange:
        xp, place = self._place.xp, self._place
        # The unit with the highest number first: of equal pairs it counts.
        removable = sorted(range(self.n_fixed, len(self)), key=lambda position: -self._units[position])
        if not removable:
            return Exchange(-1, -1, -math.inf)
        most = max(0.5 * float(np.square(self.basis.exit_of(self._span(position))[1]).sum()) for position in removable)
        allowed, passed_over = self._allowed_exchanges(), self._measure_passed_over()
        best = xp.full(self.penalty.n_units, -np.inf, dtype=xp.float64, device=place.device)
        who = xp.zeros(self.penalty.n_units, dtype=xp.int64, device=place.device)
        for position in removable:
            gains, worth = self._gains_for(position, passed_over)
            # What brings nothing is no exchange, however cheap it is.
            values = xp.where(gains > self._negligible, gains - worth, xp.full_like(gains, -np.inf))
            if not self.penalty.is_even:
                values = values + float(alpha) * (float(self.unit_costs[position]) - self._prices)
            if allowed is not None:
                values = xp.where(place.send(allowed[position - self.n_fixed]), values, xp.full_like(values, -np.inf))
            is_first = best == -np.inf
            before = xp.where(is_first, xp.zeros_like(best), best)
            is_better = is_first | (values > before + self.problem.tie * (xp.abs(before) + most))
            best = xp.where(is_better, values, best)
            who = xp.where(is_better, xp.full_like(who, position), who)
        highest = float(xp.max(best))
        if highest == -math.inf:
            return Exchange(-1, -1, highest)
        unit, decrease = self._first(best, highest - self.problem.tie * (abs(highest) + most))
        return Exchange(int(who[unit]), unit, decrease)


class DeviceGroupBlocks(GroupBlocks):
    """Matrices ``Q_g`` of all groups of one size, on the device."""

    def __init__(self, problem: LeastSquares, members: Array) -> None:
        self.members = members
        self._design: Any = problem.design
        self._place = self._design.place
        self._rows = self._place.send(members.ravel())
        self._values: Any = self._inner_products()

    def _inner_products(self) -> Any:
        xp, (n_groups, size) = self._place.xp, self.members.shape
        step, found = max(1, PART_ELEMENTS // (size * self._design.n_samples)), []
        for first in range(0, n_groups, step):
            rows = self._rows[first * size : min(first + step, n_groups) * size]
            lines = xp.reshape(self._design.lines(rows, xp.float64), (-1, size, self._design.n_samples))
            found.append(lines @ lines.mT)
        return xp.concat(found)

    def part_of(self, vectors: Any) -> Any:
        """Return what long vectors have at the members, (n_vectors, n_groups, size)."""
        xp = self._place.xp
        taken = xp.astype(xp.take(vectors, self._rows, axis=1), xp.float64, copy=False)
        return xp.reshape(taken, (vectors.shape[0], *self.members.shape))

    def change(self, image: Any, sign: float) -> None:
        parts = self.part_of(image[None, :])[0, :, :]
        self._values += sign * (parts[:, :, None] * parts[:, None, :])

    def gains(self, products: Any, images: Any, ridge: float, needed_room: Any) -> tuple[Any, Any]:
        xp = self._place.xp
        values = xp.asarray(self._values, copy=True)
        if images is not None:
            left = xp.permute_dims(images, (1, 2, 0))
            values += left @ left.mT
        needed_rooms = self.part_of(needed_room[None, :])[0, :, :]
        gains = xp.zeros_like(values[:, 0, 0])
        is_clear = gains == 0.0
        for place in range(self.members.shape[1]):
            room, needed = values[:, place, place] + ridge, needed_rooms[:, place]
            has_room = room > needed
            is_clear = is_clear & (has_room | (needed == np.inf))
            corner = xp.sqrt(xp.where(has_room, room, xp.full_like(room, np.inf)))
            targets = products[:, :, place] / corner
            gains += 0.5 * xp.sum(targets * targets, axis=0)
            lines = values[:, place, place + 1 :] / corner[:, None]
            values[:, place + 1 :, place + 1 :] -= lines[:, :, None] * lines[:, None, :]
            products[:, :, place + 1 :] -= targets[:, :, None] * lines
        return gains, is_clear


def gains_there(xp: Any, products: Any, room: Any, needed_room: Any) -> Any:
    """Return the decrease of h by each row, 0 for dependent rows, as :func:`~l20fs.solvers.active_sets.rows.gains_of`."""
    squares = xp.sum(products * products, axis=0)
    # Nothing divided by infinity is nothing.
    return squares / xp.where(room > needed_room, 2.0 * room, xp.full_like(room, np.inf))


def gains_without_there(xp: Any, images: Any, targets: Any, lengths: Any, products: Any, room: Any, needed_room: Any) -> Any:
    """Return twice the decrease of h by each feature if one line had left the basis.

    It is :func:`~l20fs.solvers.active_sets.rows.gains_without` by the array API; ``lengths`` are the squared norms of the
    targets.
    """
    squares = images * images
    above = 2.0 * (images * (targets @ products))
    above += xp.sum(products * products, axis=0)[None, :]
    above += squares * lengths
    squares += room[None, :]
    return above / xp.where(squares > needed_room[None, :], squares, xp.full_like(squares, np.inf))
