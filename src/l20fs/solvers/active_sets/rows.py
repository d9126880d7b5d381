r"""Active set of rows, with the gains of adding and exchanging units.

For a set S of rows let

.. math:: h(S) = \min_{\mathrm{supp}\,W \subseteq S} \tfrac12 \|\tilde X W - \tilde Y\|_F^2 + \tfrac\mu2 \|W\|_F^2
          = \tfrac12 \mathrm{tr}(\tilde Y' M_S \tilde Y), \qquad M_S = (I + \tilde X_S \tilde X_S' / \mu)^{-1}.

With :math:`q_j = x_j' M_S x_j` and :math:`c_j = x_j' M_S \tilde Y`, another row j lowers h by
:math:`\tfrac12 \|c_j\|^2 / (\mu + q_j)`. The columns :math:`(x_j; \sqrt\mu e_j)`, orthogonalised one after the other, give
vectors u with :math:`M_S = I - \sum_t u_t u_t'`, so that one row more (upper sign) or less is a change of rank one,

.. math:: p = \tilde X' u, \quad q \mp p^2, \quad c \mp p\, b', \quad h \mp \tfrac12 \|b\|^2, \qquad b = \tilde Y' u,

and costs one pass over X, for p. With :math:`\mu = 0` the same holds and :math:`M_S` is a projection.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from l20fs.design import BLOCK_ELEMENTS, clear_rooms, smallest_rooms
from l20fs.inputs.devices import namespace_of
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.panel_completion import Admission
from l20fs.objective.prox import order_descending, squared_row_norms
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers.active_sets.basis import Basis, Triangle, make_basis
from l20fs.solvers.active_sets.close_columns import NO_COLUMNS, CloseColumns, measure_columns
from l20fs.typing import Array

#: Changes of rank one after which the products with the residual are computed anew, so that rounding cannot pile up.
REFRESH_EVERY = 50

#: What brings less than this share of f at W = 0 brings nothing but rounding.
NEGLIGIBLE = 1e-14

#: Up to this size X stays close to the processor, and looking ahead costs more than the passes it saves.
SMALL_BYTES = 1 << 22

#: From how many rows the next ones are chosen ahead: one in so many, but at least so many.
CANDIDATE_SHARE, FEWEST_CANDIDATES = 32, 256

#: Error of a product with X, as a share of the norms: a bound of one, well above rounding.
BLUR = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-4}

#: How many rows are chosen before one looks whether that was right, at first and at most.
FIRST_AHEAD, MOST_AHEAD = 8, 32

#: Where no more than this share of f at W = 0 is left, columns of which little is left can bring nothing but rounding.
ALL_EXPLAINED = 1e-12

NO_ROWS: Array = np.empty(0, dtype=np.intp)

#: How many rows one call adds at most where nothing is chosen ahead.
MOST_AT_ONCE = 64


class Exchange(NamedTuple):
    """Take the unit at ``position`` out of the active set, put ``unit`` in, and h + alpha * cost falls by ``decrease``."""

    position: int
    unit: int
    decrease: float


class ActiveSet(ABC):
    """Active set that grows by the unit of highest merit, for :func:`~l20fs.solvers.forward`.

    Attributes
    ----------
    losses : list of float
        h after each row: ``losses[k]`` belongs to ``rows[:k]``.
    n_fixed : int
        How many units at the beginning may not be removed.
    admission : Admission or None
        Which units may enter under the rules of the penalty; None: all.
    """

    basis: Triangle

    def __init__(self, problem: LeastSquares, penalty: RowPenalty | None) -> None:
        self.problem = problem
        self.penalty = penalty or RowPenalty.plain(problem.n_features)
        self.losses = [problem.null_loss]
        self.n_fixed = 0
        self.admission: Admission | None = None

    def __len__(self) -> int:
        return len(self.units)

    @property
    def size(self) -> int:
        """Number of selected units, including those that are included but dependent."""
        return len(self) + len(self.penalty.included) - self.n_fixed

    @property
    def units(self) -> list[int]:
        return self.rows

    @property
    def rows(self) -> list[int]:
        return self.basis.rows

    @property
    def unit_costs(self) -> Array:
        """Cost of each selected unit."""
        return self.penalty.costs[self.units]

    @property
    def cost(self) -> float:
        """Total cost of the selected units."""
        return float(self.unit_costs.sum())

    def n_rows_at(self, n_units: int) -> int:
        """Return the number of rows of the first ``n_units`` units."""
        return n_units

    def objective(self, alpha: float) -> float:
        """Return h + alpha * cost."""
        return self.objective_at(len(self), alpha)

    def objective_at(self, n_units: int, alpha: float) -> float:
        """Return h + alpha * cost of the first ``n_units`` units."""
        return self.losses[self.n_rows_at(n_units)] + alpha * float(self.unit_costs[:n_units].sum())

    @property
    def loss(self) -> float:
        """h of the present rows."""
        return self.losses[-1]

    @property
    def weights(self) -> Array:
        """The weights that minimise h, (n_targets, n_rows), in the order of ``rows``."""
        return self.basis.weights(self.basis.size)

    @abstractmethod
    def grow(self, n_units: int, least: float = 0.0) -> int:
        """Add up to ``n_units`` units by highest merit, while it is above ``least``; return their number.

        Fewer than asked for may be added in one call, and 0 only if there is nothing to gain.
        """

    @abstractmethod
    def merits(self) -> Any:
        """Return the gain per cost of each unit: the lambda below which it pays; of NumPy, or of the library of X."""

    def best_merit(self) -> float:
        """Return the highest merit of a unit that may enter."""
        return float(self._admitted(self.merits()).max())

    def _admitted(self, values: Any) -> Any:
        """Return values of the units, with 0 for those that may not enter under the rules."""
        return values if self.admission is None else np.where(self.admission.mask(self.panel), values, 0.0)

    @property
    def panel(self) -> list[int]:
        """Selected units, with those that are included but dependent."""
        return [*self.penalty.included.tolist(), *self.units[self.n_fixed :]]

    @property
    def is_filling(self) -> bool:
        """Whether the lower limits of the rules are not met yet."""
        return self.admission is not None and not self.admission.rules.is_filled(self.panel)

    def closeness(self) -> Any:
        """Return a number per unit that orders the unselected ones: its merit, now or without any selected unit.

        As the merits, it is an array of NumPy, or of the library of X.
        """
        merits = self.merits()
        xp = namespace_of(merits)
        is_idle = (merits == 0.0) & self._may_gain()
        if bool(xp.any(is_idle)):
            # Others explain these units altogether; they come last, in the order of what each would bring alone.
            alone = xp.where(is_idle, self._merits_alone(), xp.zeros_like(merits))
            smallest = float(xp.min(xp.where(merits > 0.0, merits, xp.full_like(merits, np.inf))))
            merits = merits + alone * (0.5 * smallest / (float(xp.max(alone)) or 1.0) if smallest < np.inf else 1.0)
        return merits

    @abstractmethod
    def _may_gain(self) -> Any:
        """Return a mask of the units that may gain: neither selected nor excluded nor constant."""

    @abstractmethod
    def _merits_alone(self) -> Any:
        """Return the merits with no unit selected."""


class RowActiveSet(ActiveSet):
    """Active set that grows, shrinks and exchanges units, with up-to-date gains of every change.

    Every row is a unit of its own here; :class:`~l20fs.solvers.active_sets.groups.GroupActiveSet` has groups. What is
    included is there from the start, comes first and stays.

    Attributes
    ----------
    rows : list of int
        The selected rows, in the order of the basis.
    units : list of int
        The selected units, in the same order.
    n_fixed : int
        How many units at the beginning may not be removed.
    losses : list of float
        h after each of them: ``losses[k]`` belongs to ``rows[:k]``.
    residual : array of shape (n_targets, n_samples)
        ``Y~ - X~ W`` with the weights that minimise h.

    Examples
    --------
    >>> active = RowActiveSet(LeastSquares(np.eye(4)[:, :3], np.eye(4)))
    >>> active.add(1)
    >>> active.rows, round(active.loss, 6)
    ([1], 1.0)
    """

    def __init__(self, problem: LeastSquares, units: Iterable[int] = (), penalty: RowPenalty | None = None) -> None:
        super().__init__(problem, penalty)
        self._build(units, problem.target_products)

    @property
    def _pull(self) -> Callable[[Any], Any]:
        """Product of all features with some lines, where X is: one pass over X."""
        return self.problem.design.pull

    def _build(self, units: Iterable[int], products: Any) -> None:
        """Begin with the given units and what is included; ``products`` are those of the targets."""
        problem, design = self.problem, self.problem.design
        self.losses, self.n_fixed = [problem.null_loss], 0
        may_enter = self.penalty.may_enter(design.varies)
        self._smallest_room = np.where(may_enter, smallest_rooms(design), np.inf)
        self._clear_room = np.where(may_enter, clear_rooms(design), np.inf)
        self._may_be_close = design.vectors == "samples" and problem.ridge <= float(
            self._clear_room[may_enter].max(initial=-np.inf)
        )
        self._close: CloseColumns | None = None  # of the present rows
        self._n_changes = 0
        self._lay_out(products)
        # With the Gram matrix at hand, or on its way, there is no pass to be spared; on a device passes are short.
        is_near = (
            design.vectors == "features"
            or design.location == "device"
            or (design.n_features * design.n_samples * problem.dtype.itemsize <= SMALL_BYTES)
        )
        self._ahead = 1 if is_near else FIRST_AHEAD
        self._start_from([int(unit) for unit in units])

    def _lay_out(self, products: Any) -> None:
        """Make the basis, and what is as long as X has samples or features, where X is."""
        self.basis: Basis = make_basis(self.problem)
        self.residual: Any = self.problem.targets.copy()
        self.products: Any = np.array(products, dtype=np.float64)
        self.energies: Any = self.problem.design.column_energy.copy()
        self._work = np.empty_like(self.products)
        self._needed_room: Any = self._clear_room.copy()  # infinite for the selected rows
        self._is_dependent: Any = np.zeros(self.problem.n_features, dtype=bool)

    def _start_from(self, units: list[int]) -> None:
        """Add the included units, as far as they are independent, and the given ones."""
        included = self.penalty.included
        if len(included):
            self._add_rows(included.tolist(), if_room=True)
            self.n_fixed = len(self)
        self._add_rows([unit for unit in units if self.penalty.costs[unit] > 0.0])

    def _add_rows(self, rows: list[int], *, if_room: bool = False) -> None:
        """Add given rows, as far as they are independent, in one pass over X."""
        residual, first = self.residual, self.basis.size
        directions = []
        for row in rows:
            if if_room and not self._has_room(row):
                continue
            direction, target = self._extend(row)
            self.residual = self._moved(direction, -target)
            directions.append(direction)
        self.residual = residual
        if directions:
            lines = self._stacked(directions)
            images = self.basis.newest_images(lines)
            images = self._pull(lines) if images is None else images
            for number, direction in enumerate(directions):
                self._apply(first + number, direction, self.basis.targets[first + number], images[number, :])

    def _stacked(self, directions: list[Any]) -> Any:
        return np.array(directions)

    def _moved(self, direction: Any, target: Array) -> Any:
        """Return the residual with a direction times a target added."""
        return self.residual + target[:, None] * direction

    def gains(self) -> Any:
        """Return the decrease of h by each unit; 0 if it is selected, excluded, constant or dependent.

        As the merits, it is an array of NumPy, or of the library of an X on a device.
        """
        gains = gains_of(self.products, self.energies, self.problem.ridge, self._needed_room)
        close = self._close_columns()
        if len(close.rows):
            gains[close.rows] = close.gains(self._smallest_room)
        return gains

    def _close_rows(self) -> Array:
        """Return the rows that may enter, are not known to be dependent, and of whose columns little is left."""
        is_explained = self.penalty.is_even and self.loss <= ALL_EXPLAINED * self.problem.null_loss
        if not self._may_be_close or is_explained:
            return NO_ROWS
        room = self.energies + self.problem.ridge if self.problem.ridge else self.energies
        rows = np.flatnonzero(room <= self._needed_room)
        return rows[(self._needed_room[rows] < np.inf) & ~self._is_dependent[rows]]

    def _close_columns(self) -> CloseColumns:
        """Measure what is left of the columns of the close rows: rounding may have eaten it in the energies."""
        if self._close is None:
            rows = self._close_rows()
            if not len(rows):
                self._close = NO_COLUMNS
                return NO_COLUMNS
            self._close = measure_columns(self.problem, self.basis, self.residual, rows)
            # One row more leaves them dependent: they are not measured again before one has left.
            self._mark_dependent(rows[self._close.room <= self._smallest_room[rows]])
        return self._close

    def _at(self, vector: Any, rows: Array) -> Array:
        """Return a few of the numbers over all features."""
        return np.asarray(vector[rows])

    def _set_room(self, rows: Any, room: Any) -> None:
        self._needed_room[rows] = room

    def _mark_dependent(self, rows: Array) -> None:
        self._is_dependent[rows] = True

    def merits(self) -> Any:
        return self._per_cost(self.gains())

    def leading(self, n_units: int) -> tuple[Array, Array]:
        """Return the units with the highest merits, best first, and their merits."""
        merits = self.merits()
        units = order_descending(merits, rtol=self.problem.tie)[:n_units]
        return units, merits[units]

    def _best(self, values: Any) -> tuple[int, float]:
        """Return the first of the units with the highest of some values, up to rounding errors, and its value."""
        unit = best_of(values, self.problem.tie)
        return unit, float(values[unit])

    def _per_cost(self, gains: Any, units: Array | slice = slice(None)) -> Any:
        return gains if self.penalty.is_even else self.penalty.shared_out(gains, least=self._negligible, units=units)

    @property
    def _negligible(self) -> float:
        return NEGLIGIBLE * self.problem.null_loss

    def _may_gain(self) -> Any:
        return self._needed_room < np.inf

    def _merits_alone(self) -> Any:
        return self._per_cost(type(self)(self.problem).gains())

    def add(self, unit: int) -> None:
        """Add a unit: one pass over X."""
        if self.admission is not None:
            self.admission.follow(unit, self.panel)
        direction, target = self._extend(unit)
        images = self.basis.newest_images(direction[None, :])
        images = self._pull(direction[None, :]) if images is None else images
        self._apply(self.basis.size - 1, direction, target, images[0, :])

    def remove(self, position: int) -> None:
        """Remove the unit at a position of ``units``: one pass over X, or none if its images are stored."""
        self._remove_row(position)

    def _remove_row(self, position: int) -> None:
        row = self.rows[position]
        direction, target, image = self.basis.drop(position)
        self._needed_room[row] = float(self._clear_room[row])
        self._is_dependent[:] = False
        self._change(direction, target, image, sign=1.0)
        # The basis was turned, so what the rows bring one after the other is no longer what they brought when they came.
        brought = squared_row_norms(self.basis.targets)
        self.losses = [self.problem.null_loss, *(self.problem.null_loss - 0.5 * np.cumsum(brought)).tolist()]

    def grow(self, n_units: int, least: float = 0.0) -> int:
        is_free = self.admission is None or self.admission.is_open(self.panel)
        if self._ahead > 1 and n_units > 1 and is_free and not len(self._close_rows()):
            return self._grow_ahead(n_units, least)
        for n_added in range(min(n_units, MOST_AT_ONCE if is_free else 1)):
            merits = self._admitted(self.merits())
            unit, merit = self._best(merits)
            if merit <= (0.0 if self.is_filling else least):  # what a lower limit asks for has no price
                return n_added
            if self.loss <= self._negligible and not self.is_filling:  # what is left is rounding
                return n_added
            self.add(unit)
        return n_added + 1

    def _grow_ahead(self, n_rows: int, least: float) -> int:
        """Choose several rows at once, then verify the choice.

        A pass over X for every row would be spent waiting for memory. So the next rows are first chosen from the few
        hundred with the highest merit at present; one pass then gives the images of all of them, and shows for each choice
        whether it was the best of all. From the first that was not, the choices are taken back. The result is that of one
        pass per row.
        """
        size = len(self)
        merits = self.merits()
        if merits.max() <= least:
            return 0
        directions = self._look_ahead(merits, min(self._ahead, n_rows), least)
        images = self.basis.newest_images(directions)
        self._settle(directions, self.problem.design.pull(directions) if images is None else images)
        n_right = len(self) - size
        self._ahead = min(2 * self._ahead, MOST_AHEAD) if n_right == len(directions) else max(2, self._ahead // 2)
        return n_right

    def best_exchange(self, alpha: float = 0.0) -> Exchange:
        """Search all pairs of a selected and another unit for the exchange that lowers h + alpha * cost most.

        This takes one pass over X, or over the rows that may be in that exchange.

        Without row i, with u its exit, row j would gain :math:`\\tfrac12 \\|c_j + p_j b\\|^2 / (\\mu + q_j + p_j^2)`, and i
        was worth :math:`\\tfrac12 \\|b\\|^2`. Of equal pairs the one with the lowest j counts, then that with the highest i.
        """
        turns, targets = (exits[self.n_fixed :] for exits in self.basis.exits())
        best = Exchange(-1, -1, -math.inf)
        if not len(turns):
            return best
        worth = squared_row_norms(targets)
        costs_left = self.unit_costs[self.n_fixed :, None]
        self._is_dependent[:] = False  # on all rows, but perhaps not on all but one
        close = measure_columns(self.problem, self.basis, self.residual, self._close_rows())
        allowed = self._allowed_exchanges()
        leaving = self.basis.prepare(turns)

        def gains_of_exchange(rows: Array | slice) -> Array:
            """Return twice the decrease by every exchange for some of the rows, (n_removable, n_rows)."""
            gains = gains_without(
                self.basis.images_of(leaving, rows),
                targets,
                self.products[:, rows],
                self.problem.ridge + self.energies[rows],
                self._needed_room[rows],
            )
            if len(close.rows):
                places = np.arange(self.problem.n_features)[rows]
                here = np.flatnonzero(np.isin(close.rows, places))
                gains[:, np.searchsorted(places, close.rows[here])] = gains_without(
                    turns @ close.coordinates[here].T,
                    targets,
                    close.products[:, here],
                    close.room[here],
                    self._smallest_room[close.rows[here]],
                )
            if not self.penalty.is_even:
                # What brings nothing is no exchange, however cheap it is.
                gains[gains <= 2.0 * self._negligible] = -np.inf
                gains += 2.0 * alpha * (costs_left - self.penalty.prices[rows])
            gains -= worth[:, None]
            if allowed is not None:
                gains[~allowed[:, rows]] = -np.inf
            return gains

        candidates = self._exchange_candidates(gains_of_exchange, targets, close.rows)
        step = max(256, BLOCK_ELEMENTS // max(1, len(self)))
        for start in range(0, self.problem.n_features, step):
            block = slice(start, min(start + step, self.problem.n_features))
            rows = candidates[slice(*np.searchsorted(candidates, (block.start, block.stop)))]
            if not len(rows):
                continue
            gains = gains_of_exchange(block if len(rows) == block.stop - block.start else rows)
            highest = float(gains.max())
            slack = self.problem.tie * (abs(highest) + float(worth.max()))
            if 0.5 * (highest - slack) <= best.decrease:
                continue
            position, place = self._first_pair(gains >= highest - slack)
            best = Exchange(self.n_fixed + position, int(rows[place]), 0.5 * float(gains[position, place]))
        return best

    def _exchange_candidates(self, gains_of_exchange: Callable[[Array], Array], targets: Array, close: Array) -> Array:
        """Return the rows that may be in the best exchange, ascending; all of them where it is not worth a look.

        An exchange for row j lowers h by more than g, in the notation of :meth:`best_exchange`, only if
        :math:`\\|c_j\\|^2 + 2 p_j c_j' b - (\\mu + q_j) \\|b\\|^2 > 2 g (\\mu + q_j + p_j^2)`. All of this is known but p,
        whose square is at most the energy of :math:`x_j` that the selected rows explain. So the rows that would bring most
        beside all others are judged first, and those that cannot reach the best of them need no product with X.
        """
        design, worth, n_features = self.problem.design, squared_row_norms(targets), self.problem.n_features
        all_rows = np.arange(n_features)
        if design.location != "memory" or not self.penalty.is_even or n_features <= 2 * FEWEST_CANDIDATES:
            return all_rows
        squares = np.einsum("ij,ij->j", self.products, self.products)
        room = np.maximum(self.problem.ridge + self.energies, 0.0)
        alone = np.divide(squares, room, out=np.zeros_like(room), where=room > self._needed_room)
        first = np.sort(np.argpartition(-alone, FEWEST_CANDIDATES)[:FEWEST_CANDIDATES])
        lowest = float(gains_of_exchange(first).max())
        if lowest == -math.inf:
            return all_rows
        lowest -= 4.0 * self.problem.tie * (abs(lowest) + float(worth.max()))  # ties count, and are known up to rounding
        blur = BLUR[self.problem.dtype] * np.square(design.pull_norms())
        reach = np.maximum(design.column_energy - self.energies, 0.0) + blur
        needed = lowest * (room if lowest >= 0.0 else room + reach) - squares - blur * (float(worth.max()) + abs(lowest))
        # Whatever the angle of c and b, at first: the worst b is as long as this, or as the shortest or longest there is.
        lengths, longest = np.sqrt(squares * reach), np.sqrt(worth)
        worst = np.divide(lengths, room, out=np.full_like(room, np.inf), where=room > 0.0)
        worst = np.clip(worst, longest.min(), longest.max())
        rows = np.flatnonzero(worst * (2.0 * lengths - room * worst) >= needed)
        step, found = max(256, BLOCK_ELEMENTS // len(targets)), [close]
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            bounds = np.abs(targets @ self.products[:, part])
            bounds *= 2.0 * np.sqrt(reach[part])
            bounds -= np.outer(worth, room[part])
            found.append(part[bounds.max(axis=0) >= needed[part]])
        return np.unique(np.concatenate(found))

    def _allowed_exchanges(self) -> Array | None:
        """Return a mask of the exchanges under the rules, (n_removable, n_units); None if there are no rules."""
        rules = self.penalty.rules
        return None if rules is None else rules.exchanges(self.panel, self.units[self.n_fixed :])

    def _first_pair(self, is_best: Array) -> tuple[int, int]:
        """Return the first of tied pairs: the lowest added unit, then the highest removed one."""
        positions, others = np.nonzero(is_best)
        other = int(others.min())
        position = max(positions[others == other], key=lambda equal: self.units[self.n_fixed + equal])
        return int(position), other

    def _has_room(self, row: int) -> bool:
        """Return whether a row may enter and is independent of those that are selected."""
        room = self.basis.remainder(row, self._column(row, alone=True)).room
        return bool(self._needed_room[row] < np.inf and room > self._smallest_room[row])

    def _column(self, row: int, *, alone: bool = False) -> Any:
        """Return the column of a row, where the basis is; others that are likely to follow may be fetched with it."""
        likely = None if alone else lambda: self.merits()[self.penalty.unit_of]
        return self.problem.design.column(row, likely=likely)

    def _extend(self, row: int) -> tuple[Any, Array]:
        """Append a row to the basis; return its direction u and its target b."""
        direction, target = self.basis.extend(row, self._column(row), self.residual)
        self.losses.append(max(0.0, self.loss - 0.5 * float(target @ target)))
        self._needed_room[row] = np.inf
        return direction, target

    def _apply(self, position: int, direction: Any, target: Array, image: Any) -> None:
        """Apply a direction of the basis to the gains."""
        self.basis.store_image(position, image)
        self._change(direction, target, image, sign=-1.0)

    def _change(self, direction: Any, target: Array, image: Any, sign: float) -> None:
        """Apply the rank-one change of a direction: -1 for an added row, +1 for a removed one."""
        self.residual = self._moved(direction, sign * target)
        self._n_changes += 1
        self._close = None
        self._follow(image, target, sign)

    def _follow(self, image: Any, target: Array, sign: float) -> None:
        """Change products and energies of all features."""
        signed = (sign * target)[:, None]
        if self._n_changes % REFRESH_EVERY:
            self.products += np.multiply(signed, image, out=self._work)
        else:
            self.products = _in_float64(self.problem.design.pull(self.residual))
        square = np.multiply(image, image, out=self._work[0])
        if sign > 0.0:
            self.energies += square
        else:
            self.energies -= square

    def _look_ahead(self, merits: Array, n_rows: int, least: float) -> Array:
        """Choose the next rows from those with the highest merit now; return their directions."""
        n_candidates = min(len(merits), max(FEWEST_CANDIDATES, len(merits) // CANDIDATE_SHARE))
        candidates = np.sort(np.argpartition(-merits, n_candidates - 1)[:n_candidates])
        pull = self.problem.design.pull_among(candidates)
        products, energies = self.products[:, candidates], self.energies[candidates]
        residual, needed_room = self.residual, self._needed_room[candidates]
        directions: list[Array] = []
        while len(directions) < n_rows:
            gains = gains_of(products, energies, self.problem.ridge, needed_room)
            merits = self._per_cost(gains, candidates)
            best = best_of(merits, self.problem.tie)
            if merits[best] <= least:
                break
            direction, target = self._extend(int(candidates[best]))
            directions.append(direction)
            image = pull(direction[None])[0]
            products -= target[:, None] * image
            energies -= image * image
            needed_room[best] = np.inf
            self.residual = self._moved(direction, -target)
        self.residual = residual
        return np.array(directions)

    def _settle(self, directions: Array, images: Array) -> None:
        """Accept the rows chosen by looking ahead, as far as each was the best of all."""
        first = len(self) - len(directions)
        for number, (direction, image) in enumerate(zip(directions, images, strict=True)):
            row = self.rows[first + number]
            if number:
                self._needed_room[row] = self._clear_room[row]
                # Columns of which little is left are measured when the basis has no rows but those that were accepted.
                self._close = NO_COLUMNS
                if len(self._close_rows()) or best_of(self.merits(), self.problem.tie) != row:
                    self._close = None
                    self._cut(first + number)
                    return
                self._needed_room[row] = np.inf
            self._apply(first + number, direction, self.basis.targets[first + number], image)

    def _cut(self, size: int) -> None:
        """Remove the rows from ``size`` on that are in the basis but not yet applied."""
        for row in self.rows[size:]:
            self._needed_room[row] = self._clear_room[row]
        del self.losses[size + 1 :]
        self.basis.cut(size)


def gains_of(products: Array, energies: Array, ridge: float, needed_room: Array) -> Array:
    """Return the decrease of h by each row, 0 for dependent rows."""
    room = ridge + energies
    squares = np.einsum("ij,ij->j", products, products)
    squares *= 0.5
    return np.divide(squares, room, out=np.zeros(len(room)), where=room > needed_room)


def gains_without(images: Array, targets: Array, products: Array, room: Array, needed_room: Array) -> Array:
    """Return twice the decrease of h by each feature, (n_lines, n_features), if one line had left the basis.

    ``images`` are the products of the features with the lines, ``targets`` those of the residual.
    """
    squares = images * images
    above = images * (targets @ products)
    above *= 2.0
    above += np.einsum("ij,ij->j", products, products)
    above += squares * squared_row_norms(targets)[:, None]
    squares += room
    return np.divide(above, squares, out=np.zeros_like(above), where=squares > needed_room)


def best_of(gains: Array, tie: float) -> int:
    """Return the first of those whose gain is the largest up to rounding errors.

    Examples
    --------
    >>> best_of(np.array([1.0, 3.0, 3.0 + 1e-12]), tie=1e-9)
    1
    """
    return int((gains >= gains.max() * (1.0 - tie)).argmax())


def _in_float64(values: Array) -> Array:
    return values.astype(np.float64, copy=False)
