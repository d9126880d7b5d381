r"""Active set: the selected rows, and the exact change that one row more or less would bring.

For a set S of rows let

.. math:: h(S) = \min_{\mathrm{supp}\,W \subseteq S} \tfrac12 \|\tilde X W - \tilde Y\|_F^2 + \tfrac\mu2 \|W\|_F^2

The columns :math:`(\tilde x_j; \sqrt\mu e_j)` of the selected rows span a space with an orthonormal basis u. All that is
kept is as long as X has features, wherever X is:

=============  ==========================  =====================================================================
``products``   c (n_targets, n_features)   products of the columns with the residual of the targets
``energies``   r (n_features,)             squared norm of what the basis leaves of each column, with mu
``images``     P (n_rows, n_features)      products of the columns with the basis
=============  ==========================  =====================================================================

beside the small ``combos`` K (n_rows, n_rows), the basis as combinations of the selected columns, and ``targets`` T
(n_rows, n_targets), the coordinates of the targets. A row j lowers h by :math:`\tfrac12 \|c_j\|^2 / r_j`. To add a row is
to ask for the products v of all columns with its direction; :math:`c - t v'` and :math:`r - v^2` follow. To remove a row is
to reflect P, T and K so that it becomes the last, which asks for nothing.

Several rows enter at a time. They are chosen among the rows of the highest merits, from products among these alone, and one
request brings the images of all of them, which show for each whether it was the best of all rows. From the first that was
not, the choices are dropped: the result is that of one request per row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from l20fs.design import BLOCK_ELEMENTS
from l20fs.design.driver import AmongRequest, Fetch, GramRequest, Walk
from l20fs.design.matrix import squared_columns
from l20fs.objective.panel_completion import Admission
from l20fs.objective.problem import Problem
from l20fs.objective.prox import order_descending, squared_row_norms
from l20fs.objective.row_penalty import RowPenalty
from l20fs.typing import Array

#: What brings less than this share of h at W = 0 brings nothing but rounding.
NEGLIGIBLE = 1e-14

#: Where no more than this share of h at W = 0 is left, columns of which little is left can bring nothing but rounding.
ALL_EXPLAINED = 1e-12

#: A residual energy that fell below this share of what was measured last has lost digits, and is measured again.
SMALL_SHARE = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-3}

#: Rows of which less is left than this share are combined before they are multiplied: raw products lose digits.
CLEAR_SHARE = 1e-2

#: Products of a new direction with the basis that are larger than this are taken out of it.
CLEAN = 1e-13

#: Rounding error of a sum of columns, as a share of their lengths.
ROUNDING = 16.0 * float(np.finfo(np.float64).eps)

#: Where it is a larger share of the basis, divided by LEAST_NORM, this is made again after a removal.
MOST_ROUNDING = 1e-7

#: A direction whose norm is that far from 1 belongs to a row that depends on others.
LEAST_NORM = 0.1

#: From how many rows the next ones are chosen, and how many at a time, at first and at most.
N_CANDIDATES, FIRST_AHEAD, MOST_AHEAD = 96, 8, 16

#: On a device more of both pays.
N_CANDIDATES_THERE, MOST_AHEAD_THERE = 256, 20

#: In blocks, where candidates take a pass, and are kept as long as the best row is among them. Products of sparse columns
#: with each other cost more than those with all features.
N_CANDIDATES_IN_BLOCKS, N_CANDIDATES_IN_SPARSE_BLOCKS = 512, 128

#: Where gains fell below this share within a round, their rounding errors may decide: the round ends.
ROUND_SHARE = 1e-5

#: From how many rows the best exchange is searched first.
FEWEST_CANDIDATES = 256

#: Error of a product with X, as a share of the norms: a bound of one, well above rounding.
BLUR = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-4}

NO_ROWS: Array = np.empty(0, dtype=np.intp)


class Exchange(NamedTuple):
    """Take the unit at ``position`` out of the active set, put ``unit`` in, and h + alpha * cost falls by ``decrease``."""

    position: int
    unit: int
    decrease: float


class Local(NamedTuple):
    """State at some rows, on the host."""

    images: Array
    products: Array
    sides: Array
    energies: Array
    needed: Array


class Choice(NamedTuple):
    """Rows that are to enter: what is left of their columns is ``lower`` times directions, and ``local`` the state there."""

    rows: list[int]
    lower: Array
    local: Local


NO_CHOICE = Choice([], np.empty((0, 0)), Local(*(np.empty((0, 0)) for _ in range(5))))


class ActiveSet:
    """Active set of rows that grows, shrinks and exchanges units.

    Every row is a unit of its own here; :class:`~l20fs.solvers.groups.GroupActiveSet` has groups. What changes it is a walk
    (:mod:`l20fs.design.driver`); begin with :meth:`start`, which adds what is included.

    Attributes
    ----------
    rows, units : list of int
        The selected rows and units, in the order of entry.
    n_fixed : int
        How many units at the beginning are included, and may not be removed.
    losses : list of float
        h after each row; after a removal only the last is.
    admission : Admission or None
        Which units may enter under the rules of the penalty; None: all.
    """

    def __init__(self, problem: Problem, penalty: RowPenalty | None = None) -> None:
        design, place, xp = problem.design, problem.design.place, problem.design.place.xp
        self.problem, self.place = problem, place
        self.penalty = penalty or RowPenalty.plain(problem.n_features)
        self.admission: Admission | None = None
        self.n_fixed = 0
        self.rows: list[int] = []
        self.losses = [problem.null_loss]
        self.combos, self.targets = np.zeros((0, 0)), np.zeros((0, problem.n_targets))
        self._sides = np.zeros((problem.n_targets, 0))  # products of the selected columns with the targets
        self._images: Any = None
        self.products = problem.target_products
        self.energies = self._measured = design.energy + problem.ridge
        is_open = design.measured.varies
        if not self.penalty.is_plain:
            is_open = place.send(self.penalty.may_enter(design.varies))
        self._least = xp.where(is_open, design.least_energy, xp.full_like(self.energies, np.inf))
        self._needed = xp.asarray(self._least, copy=True)  # infinite for the selected rows, too
        self._may_be_close = problem.ridge <= SMALL_SHARE[problem.dtype] * design.largest_energy
        self._negligible = NEGLIGIBLE * problem.null_loss
        self._most_ahead = MOST_AHEAD if place.is_host else MOST_AHEAD_THERE
        self._ahead = MOST_AHEAD if design.matrix.is_in_blocks else FIRST_AHEAD
        self._candidates: tuple[Array, Array] = NO_ROWS, np.empty((0, 0))

    # ----------------------------------------------------------------------------------------------- what is selected

    def __len__(self) -> int:
        return len(self.units)

    @property
    def units(self) -> list[int]:
        return self.rows

    @property
    def size(self) -> int:
        """Number of selected units, including those that are included but dependent."""
        return len(self) + len(self.penalty.included) - self.n_fixed

    @property
    def panel(self) -> list[int]:
        """Selected units, with those that are included but dependent."""
        return [*self.penalty.included.tolist(), *self.units[self.n_fixed :]]

    @property
    def unit_costs(self) -> Array:
        """Cost of each selected unit."""
        return self.penalty.costs[self.units]

    @property
    def cost(self) -> float:
        """Total cost of the selected units."""
        return float(self.unit_costs.sum())

    @property
    def loss(self) -> float:
        """h of the present rows."""
        return self.losses[-1]

    def n_rows_at(self, n_units: int) -> int:
        """Return the number of rows of the first ``n_units`` units."""
        return n_units

    def objective(self, alpha: float) -> float:
        """Return h + alpha * cost."""
        return self.loss + alpha * self.cost

    def objective_at(self, n_units: int, alpha: float) -> float:
        """Return h + alpha * cost of the first ``n_units`` units, where none was removed."""
        return self.losses[self.n_rows_at(n_units)] + alpha * float(self.unit_costs[:n_units].sum())

    def weights(self, size: int | None = None) -> Array:
        """Return the weights of the first ``size`` rows that minimise h on them, (n_targets, size)."""
        size = len(self.rows) if size is None else size
        return self.targets[:size].T @ self.combos[:size, :size]

    def weight_norms(self, first: int) -> Array:
        """Return the norms of the weights of all rows, for the first ``first + 1`` rows, ``first + 2`` and so on."""
        # One row more adds to the weights its line of combinations times its target.
        steps = self.targets[first:, :, None] * self.combos[first:, None, :]
        steps[0, :, :first] += self.weights(first)
        weights = np.cumsum(steps, axis=0)
        return np.sqrt(np.einsum("ijk,ijk->ki", weights, weights))

    @property
    def images(self) -> Any:
        """Products of all columns with the basis."""
        if self._images is None:
            return self.place.xp.zeros((0, self.problem.n_features), dtype=self.energies.dtype, device=self.place.device)
        return self._images[: len(self.rows), :]

    # -------------------------------------------------------------------------------------------------------- merits

    def gains(self) -> Any:
        """Return the decrease of h by each unit, where X is; 0 if it is selected, excluded, constant or dependent."""
        return self._gains_of(squared_columns(self.products, self.place.xp), self.energies, self._needed)

    def _gains_of(self, squares: Any, energies: Any, needed: Any) -> Any:
        xp = self.place.xp
        return 0.5 * squares / xp.where(energies > needed, energies, np.inf)

    def merits(self) -> Any:
        """Return the gain per cost of each unit: the lambda below which it pays; where X is."""
        return self._per_cost(self.gains())

    def _per_cost(self, gains: Any, units: Array | slice = slice(None)) -> Any:
        if self.penalty.is_even:
            return gains
        return self.place.send(self.penalty.shared_out(self.place.fetch(gains), least=self._negligible, units=units))

    def best_merit(self) -> float:
        """Return the highest merit of a unit that may enter."""
        return float(self.place.xp.max(self._admitted(self.merits())))

    def leading(self, n_units: int) -> tuple[Array, Array]:
        """Return the units with the highest merits, best first, and their merits."""
        merits = self.place.fetch(self.merits())
        units = order_descending(merits, rtol=self.problem.tie)[:n_units]
        return units, merits[units]

    def closeness(self) -> Any:
        """Return a number per unit that orders the unselected ones: its merit, now or without any selected unit."""
        xp, merits = self.place.xp, self.merits()
        if self.penalty.is_even and self.loss <= ALL_EXPLAINED * self.problem.null_loss:
            merits = xp.zeros_like(merits)  # rounding
        is_idle = (merits == 0.0) & self._may_gain()
        if bool(xp.any(is_idle)):
            # Others explain these units altogether; they come last, in the order of what each would bring alone.
            alone = xp.where(is_idle, self._merits_alone(), xp.zeros_like(merits))
            smallest = float(xp.min(xp.where(merits > 0.0, merits, xp.full_like(merits, np.inf))))
            merits = merits + alone * (0.5 * smallest / (float(xp.max(alone)) or 1.0) if smallest < np.inf else 1.0)
        return merits

    def _may_gain(self) -> Any:
        """Return a mask of the units that may gain: neither selected nor excluded nor constant."""
        return self._needed < np.inf

    def _merits_alone(self) -> Any:
        """Return the merits with no unit selected."""
        return type(self)(self.problem, self.penalty).merits()

    def _admitted(self, merits: Any) -> Any:
        """Return merits, with 0 for units that may not enter under the rules."""
        if self.admission is None:
            return merits
        xp = self.place.xp
        return xp.where(self.place.send(self.admission.mask(self.panel)), merits, xp.zeros_like(merits))

    @property
    def is_filling(self) -> bool:
        """Whether the lower limits of the rules are not met yet."""
        return self.admission is not None and not self.admission.rules.is_filled(self.panel)

    # -------------------------------------------------------------------------------------------------------- growth

    def start(self, units: Iterable[int] = ()) -> Walk[None]:
        """Add the included units, as far as they are independent, and the given ones."""
        yield from self._add_units(self.penalty.included.tolist())
        self.n_fixed = len(self)
        yield from self._add_units([int(unit) for unit in units if self.penalty.costs[unit] > 0.0])

    def add(self, unit: int) -> Walk[None]:
        """Add a unit."""
        if self.admission is not None:
            self.admission.follow(unit, self.panel)
        yield from self._add_units([unit])

    def grow(self, n_units: int, least: float = 0.0) -> Walk[int]:
        """Add up to ``n_units`` units by highest merit, while it is above ``least``; return their number.

        Fewer than asked for may be added in one call, and 0 only if there is nothing to gain.
        """
        if self.loss <= self._negligible and not self.is_filling:  # what is left is rounding
            return 0
        is_free = self.admission is None or self.admission.is_open(self.panel)
        least = 0.0 if self.is_filling else least  # what a lower limit asks for has no price
        while True:
            choice = yield from self._foresee(min(self._ahead, n_units) if is_free else 1, least)
            if not choice.rows:
                return 0
            panel, n_added = self.panel, (yield from self._enter(choice, are_checked=True))
            if n_added:
                break
        if self.admission is not None:
            self.admission.follow(choice.rows[0], panel)
        is_right = n_added == len(choice.rows)
        self._ahead = min(2 * self._ahead, self._most_ahead) if is_right else max(1, self._ahead // 2)
        return n_added

    def _foresee(self, n_rows: int, least: float) -> Walk[Choice]:
        """Choose the next rows among those with the highest merits."""
        place, tie = self.place, self.problem.tie
        merits = self._admitted(self.merits())
        if n_rows == 1:
            best, merit = yield Fetch(place, best_of(merits, tie, place))
            if float(merit) <= least:
                return NO_CHOICE
            return (yield from self._chosen(np.array([int(best)], dtype=np.intp), np.zeros((1, 1)), 1, first_open))
        candidates, gram = yield from self._among_best(merits)

        def next_best(products: Array, energies: Array, needed: Array) -> int | None:
            here = self._candidate_merits(products, energies, needed, candidates)
            best = int((here >= here.max() * (1.0 - tie)).argmax())
            return best if here[best] > least else None

        return (yield from self._chosen(candidates, gram, n_rows, next_best))

    def _among_best(self, merits: Any) -> Walk[tuple[Array, Array]]:
        """Return the rows with the highest merits, and their products with each other; in blocks some that were read."""
        place, design = self.place, self.problem.design
        if not design.matrix.is_in_blocks:
            candidates = place.largest(merits, N_CANDIDATES if place.is_host else N_CANDIDATES_THERE)
            return candidates, (yield AmongRequest(design, candidates))
        if int(merits.argmax()) not in self._candidates[0]:
            is_dense = design.matrix.prefers_directions
            candidates = place.largest(merits, N_CANDIDATES_IN_BLOCKS if is_dense else N_CANDIDATES_IN_SPARSE_BLOCKS)
            self._candidates = candidates, (yield AmongRequest(design, candidates))
        return self._candidates

    def _chosen(self, rows: Array, gram: Array, n_rows: int, choose: Callable[..., int | None]) -> Walk[Choice]:
        """Choose rows one after the other, by the state that those before them leave at ``rows``."""
        local = yield from self._at(rows)
        products, energies, needed = local.products.copy(), local.energies.copy(), local.needed.copy()
        chosen: list[int] = []
        lines = np.empty((n_rows, len(rows)))  # of the triangle of what is left
        while len(chosen) < n_rows and (best := choose(products, energies, needed)) is not None:
            line, corner = lines[len(chosen)], math.sqrt(energies[best])
            known = local.images[:, best] @ local.images + lines[: len(chosen), best] @ lines[: len(chosen)]
            np.divide(gram[best] - known, corner, out=line)
            products -= (products[:, best] / corner)[:, None] * line
            energies -= line * line
            needed[best] = np.inf
            line[best] = corner
            chosen.append(best)
        if not chosen:
            return NO_CHOICE
        lower = np.tril(lines[: len(chosen), chosen].T)
        return Choice(rows[chosen].tolist(), lower, Local(*(values[..., chosen] for values in local)))

    def _candidate_merits(self, products: Array, energies: Array, needed: Array, candidates: Array) -> Array:
        gains = 0.5 * np.einsum("ij,ij->j", products, products) / np.where(energies > needed, energies, np.inf)
        if self.penalty.is_even:
            return gains
        return self.penalty.shared_out(gains, least=self._negligible, units=candidates)

    def _at(self, rows: Array) -> Walk[Local]:
        """Return the state at some rows."""
        if self.place.is_host:
            images, products, sides = self.images[:, rows], self.products[:, rows], self.problem.target_products[:, rows]
            return Local(images, products, sides, self.energies[rows], self._needed[rows])
        place, xp, there = self.place, self.place.xp, self.place.send(rows)
        own = xp.stack([self.energies, self._needed])
        stacked = [self.images, self.products, self.problem.target_products, own]
        (found,) = yield Fetch(place, (xp.concat([place.take(each, there, axis=1) for each in stacked]),))
        ends = np.cumsum([each.shape[0] for each in stacked[:-1]])
        images, products, sides, (energies, needed) = np.split(found, ends)
        return Local(images, products, sides, energies, needed)

    def _add_units(self, units: list[int]) -> Walk[None]:
        yield from self._add_rows(np.array(units, dtype=np.intp))

    def _add_rows(self, rows: Array) -> Walk[None]:
        """Add given rows, as far as they are independent; by one request, unless rounding hides what is left of one."""
        while len(rows):
            one = np.zeros((1, 1))  # of one row nothing but its energy matters, which is known
            gram = one if len(rows) == 1 else (yield AmongRequest(self.problem.design, rows, None, exactly=True))
            known = self.place.fetch(self.energies)[rows]
            choice = yield from self._chosen(rows, gram, len(rows), self._first_known(known))
            if not choice.rows:
                break
            yield from self._enter(choice, are_checked=False)
            rows = rows[~np.isin(rows, self.rows)]

    def _first_known(self, known: Array) -> Callable[..., int | None]:
        """Return a function that chooses the first independent row, up to one that has lost its digits since ``known``."""
        small = SMALL_SHARE[self.problem.dtype] * known

        def choose(products: Array, energies: Array, needed: Array) -> int | None:
            is_next = (known > needed) & ((energies > needed) | (energies <= small))
            first = int(is_next.argmax())
            return first if is_next[first] and energies[first] > small[first] else None

        return choose

    def _enter(self, choice: Choice, *, are_checked: bool) -> Walk[int]:
        """Add chosen rows, or the first of them as far as each is the best of all; return their number."""
        directions, images = yield from self._directions(choice)
        if not len(directions):
            return 0
        targets = directions @ np.hstack([self._sides, choice.local.sides])[:, : directions.shape[1]].T
        n_right = len(directions)
        if are_checked and n_right > 1:
            n_right = yield from self._n_right(choice.rows[:n_right], targets, images)
        yield from self._accept(choice, directions[:n_right], targets[:n_right], images[:n_right, :])
        return n_right

    def _directions(self, choice: Choice) -> Walk[tuple[Array, Any]]:
        """Return orthonormal directions of what is left of chosen columns, as combinations, and their images.

        The combinations are of the selected columns and the chosen ones. Directions are made from the state, which rounding
        has touched; what their images show of the basis in them is taken out, once.
        """
        design, place, ridge = self.problem.design, self.place, self.problem.ridge
        n_before, n_new = len(self.rows), len(choice.rows)
        rows = np.array([*self.rows, *choice.rows], dtype=np.intp)
        inverse = np.linalg.inv(choice.lower)
        combos = inverse @ np.hstack([-choice.local.images.T @ self.combos, np.eye(n_new)])
        corners = np.square(np.diagonal(choice.lower))
        is_clear = bool((corners > CLEAR_SHARE * choice.local.energies).all())
        if design.matrix.prefers_directions or not is_clear or (n_before and not self._are_clear(choice)):
            images = yield GramRequest(design, rows, combos)
        else:
            raw = yield GramRequest(design, rows[n_before:])
            images = place.send(inverse) @ (raw - place.send(choice.local.images.T) @ self.images if n_before else raw)
        if place.is_host and self.problem.dtype == np.float64:
            inner = images[:, rows]
        else:
            inner = yield AmongRequest(design, rows, combos, exactly=True)
        inner = inner + ridge * combos
        common = inner[:, :n_before] @ self.combos.T
        square = inner @ combos.T - common @ common.T
        if n_before and np.abs(common).max() > CLEAN:
            combos[:, :n_before] -= common @ self.combos
            images -= place.send(common) @ self.images
        are_exact = self._are_exact(rows, combos, 1.0)
        n_good = n_independent(square, are_exact)
        if not n_good:
            row, energy = choice.rows[0], max(0.0, float(square[0, 0]) * float(corners[0])) if are_exact[0] else 0.0
            self._set_energy(row, energy)
            if energy <= choice.local.needed[0]:  # else it was not known well, and is chosen again
                self._needed[row] = np.inf
            return np.zeros((0, 0)), None
        combos, images, square = combos[:n_good, : n_before + n_good], images[:n_good, :], square[:n_good, :n_good]
        turn = np.linalg.inv(np.linalg.cholesky(square))
        if np.abs(turn - np.eye(len(turn))).max() > CLEAN:
            combos, images = turn @ combos, place.send(turn) @ images
        return combos, images

    def _are_clear(self, choice: Choice) -> bool:
        """Return whether enough is left of chosen columns for raw products to be exact."""
        explained = np.square(choice.local.images).sum(axis=0)
        return bool((choice.local.energies > CLEAR_SHARE * (explained + choice.local.energies)).all())

    def _n_right(self, rows: list[int], targets: Array, images: Any) -> Walk[int]:
        """Return how many of the rows that look ahead has chosen are the best of all when their turn comes."""
        place, xp, tie = self.place, self.place.xp, self.problem.tie
        squares, energies, needed = squared_columns(self.products, xp), self.energies, xp.asarray(self._needed, copy=True)
        slopes = place.send(targets) @ self.products - place.send(np.tril(targets @ targets.T, -1)) @ images
        lengths = squared_row_norms(targets)
        first = 0.5 * lengths[0]
        flags = []
        for number, row in enumerate(rows):
            if number:
                gains = self._gains_of(squares, energies, needed)
                best, _ = best_of(self._per_cost(gains), tie, place)
                is_right = best == row
                if self._may_be_close:
                    is_right = is_right & ~xp.any((energies <= self._small_energies) & self._is_clear(needed))
                if place.is_host and not is_right:
                    return number
                flags.append(is_right)
            if number == len(rows) - 1 or 0.5 * lengths[number] < ROUND_SHARE * first:
                rows = rows[: number + 1]
                break
            image = images[number, :]
            squares = squares - image * (2.0 * slopes[number, :] - float(lengths[number]) * image)
            energies = energies - image * image
            needed[row] = np.inf
        if place.is_host:
            return len(rows)
        (found,) = yield Fetch(place, (xp.stack(flags),))
        return len(rows) if found.all() else int(found.argmin()) + 1

    @property
    def _small_energies(self) -> Any:
        return SMALL_SHARE[self.problem.dtype] * self._measured

    def _is_clear(self, needed: Any) -> Any:
        """Return a mask of the rows that may enter and are not known to be dependent."""
        return (needed < np.inf) & (self._measured > self._least)

    def _accept(self, choice: Choice, directions: Array, targets: Array, images: Any) -> Walk[None]:
        """Let rows with these directions enter."""
        place, xp = self.place, self.place.xp
        n_before, n_new = len(self.rows), len(directions)
        size = n_before + n_new
        self._reserve(size)
        self._images[n_before:size, :] = images
        combos = np.zeros((size, size))
        combos[:n_before, :n_before], combos[n_before:] = self.combos, directions[:, :size]
        self.combos, self.targets = combos, np.vstack([self.targets, targets])
        self._sides = np.hstack([self._sides, choice.local.sides[:, :n_new]])
        self.rows.extend(choice.rows[:n_new])
        for row in choice.rows[:n_new]:
            self._needed[row] = np.inf
        falls = 0.5 * np.cumsum(squared_row_norms(targets))
        self.losses.extend(np.maximum(0.0, self.loss - falls).tolist())
        self.products = self.products - place.send(targets.T) @ images
        self.energies = self.energies - squared_columns(images, xp)
        if self._may_be_close:
            yield from self._measure_small()

    def _reserve(self, size: int) -> None:
        xp, n_features = self.place.xp, self.problem.n_features
        if self._images is None or size > self._images.shape[0]:
            more = xp.empty((max(64, 2 * size), n_features), dtype=self.energies.dtype, device=self.place.device)
            if self._images is not None:
                more[: self._images.shape[0], :] = self._images
            self._images = more

    def _measure_small(self) -> Walk[None]:
        """Measure the residual energies again that have lost digits, and the products with the residual there."""
        if self.penalty.is_even and self.loss <= ALL_EXPLAINED * self.problem.null_loss:
            return
        is_small = (self.energies <= self._small_energies) & self._is_clear(self._needed)
        if not self.place.is_host:
            (found,) = yield Fetch(self.place, (is_small,))
            is_small = found
        small = np.flatnonzero(is_small)
        step = max(1, BLOCK_ELEMENTS // max(1, len(self.rows)))
        for start in range(0, len(small), step):
            yield from self._measure(small[start : start + step])

    def _measure(self, rows: Array) -> Walk[None]:
        combos, square = yield from self._left_of(rows)
        local = yield from self._at(rows)
        products, energies = combos @ np.hstack([self._sides, local.sides]).T, np.diagonal(square)
        there = self.place.send(rows)
        self.energies, self._measured = (self.place.put(each, rows, energies) for each in (self.energies, self._measured))
        self.products = self._with_columns(self.products, rows, there, products.T)

    def _left_of(self, rows: Array) -> Walk[tuple[Array, Array]]:
        """Return what the basis leaves of some columns, as combinations of the selected ones and these, and its products."""
        design, n_rows = self.problem.design, len(self.rows)
        local = yield from self._at(rows)
        combos = np.hstack([-local.images.T @ self.combos, np.eye(len(rows))])
        every = np.concatenate([np.array(self.rows, dtype=np.intp), rows])
        inner = (yield AmongRequest(design, every, combos, exactly=True)) + self.problem.ridge * combos
        common = inner[:, :n_rows] @ self.combos.T
        square = inner @ combos.T - common @ common.T
        combos[:, :n_rows] -= common @ self.combos
        is_left = self._are_exact(every, combos, np.sqrt(np.maximum(np.diagonal(square), 0.0)))
        return combos, square * np.outer(is_left, is_left)

    def _are_exact(self, rows: Array, combos: Array, lengths: Array | float) -> Array:
        """Return whether combinations of columns are more than rounding, which large ones leave of nearly equal columns."""
        rounding = ROUNDING * (np.abs(combos) @ np.sqrt(self.problem.design.column_energy[rows]))
        return rounding < LEAST_NORM * lengths

    def _with_columns(self, values: Any, rows: Array, there: Any, columns: Array) -> Any:
        if self.place.is_host:
            values = values.copy()
            values[:, rows] = columns
            return values
        return self.place.xp.stack([self.place.put(values[i, :], rows, columns[i]) for i in range(values.shape[0])])

    def _set_energy(self, row: int, energy: float) -> None:
        rows = np.array([row])
        known = (self.energies, self._measured)
        self.energies, self._measured = (self.place.put(each, rows, np.array([energy])) for each in known)

    # ----------------------------------------------------------------------------------------- removal and exchange

    def remove(self, position: int) -> Walk[None]:
        """Remove the unit at a position of ``units``."""
        self._remove_row(position)
        if self._is_rounded():
            yield from self._rebuild()

    def _is_rounded(self) -> bool:
        """Return whether the basis has lost so many digits that it is better made again."""
        return not self._are_exact(np.array(self.rows, dtype=np.intp), self.combos, MOST_ROUNDING).all()

    def _rebuild(self) -> Walk[None]:
        """Begin again with the present units."""
        other = yield from self._with_units(self.units[self.n_fixed :])
        vars(self).update(vars(other) | {"admission": self.admission})

    def _with_units(self, units: list[int]) -> Walk[ActiveSet]:
        other = type(self)(self.problem, self.penalty)
        yield from other.start(units)
        return other

    def _remove_row(self, position: int) -> None:
        """Turn the basis so that its last vector is the one that leaves with a row, and drop it."""
        place, size = self.place, len(self.rows)
        leaving = self.combos[:, position] / np.linalg.norm(self.combos[:, position])
        mirror = leaving.copy()
        mirror[-1] += 1.0 if leaving[-1] >= 0.0 else -1.0
        mirror /= np.linalg.norm(mirror)
        images = self.images
        images -= place.send(2.0 * mirror)[:, None] * (place.send(mirror)[None, :] @ images)
        self.targets = self.targets - 2.0 * np.outer(mirror, mirror @ self.targets)
        combos = self.combos - 2.0 * np.outer(mirror, mirror @ self.combos)
        image, target = images[size - 1, :], self.targets[-1]
        self.products = self.products + place.send(target)[:, None] * image[None, :]
        self.energies = self.energies + image * image
        self._measured = place.xp.maximum(self._measured, self.energies)
        del self.rows[position]
        self._open_all_but(self.rows)
        self.combos, self.targets = np.delete(combos[:-1], position, axis=1), self.targets[:-1]
        self._sides = np.delete(self._sides, position, axis=1)
        loss = self.loss + 0.5 * float(target @ target)
        # The basis was turned: what its vectors bring one after the other is no longer what the rows brought.
        self.losses = [math.nan] * (size - 1) + [loss]

    def _open_all_but(self, rows: Array | list[int]) -> None:
        """Let rows enter again that depended on the one that has left."""
        selected = np.array(rows, dtype=np.intp)
        self._needed = self.place.put(self._least, selected, np.full(len(selected), np.inf))

    def exits(self) -> tuple[Array, Array]:
        """Return the direction that leaves the basis with each selected row (in coordinates), and its target.

        It is the line of the space that is orthogonal to all other columns: a column of the combinations, normalised.
        """
        turns = self.combos.T / np.linalg.norm(self.combos, axis=0)[:, None]
        return turns, turns @ self.targets

    def best_exchange(self, alpha: float = 0.0) -> Walk[Exchange]:
        """Search all pairs of a selected and another unit for the exchange that lowers h + alpha * cost most.

        Without row i, with the exit u and its target b, row j would gain
        :math:`\\tfrac12 \\|c_j + p_j b\\|^2 / (r_j + p_j^2)` with :math:`p_j = u' x_j`, and i was worth
        :math:`\\tfrac12 \\|b\\|^2`. Of equal pairs the one with the lowest j counts, then that with the highest i.
        """
        turns, targets = (exits[self.n_fixed :] for exits in self.exits())
        best = Exchange(-1, -1, -math.inf)
        if not len(turns):
            return best
        worth = squared_row_norms(targets)
        candidates = self._exchange_candidates(turns, targets, alpha)
        step = max(256, BLOCK_ELEMENTS // len(turns)) if self.place.is_host else 64 * BLOCK_ELEMENTS // len(turns)
        for start in range(0, len(candidates), step):
            rows = candidates[start : start + step]
            gains = self._exchange_gains(turns, targets, rows, alpha)
            (highest,) = yield Fetch(self.place, (self.place.xp.max(gains),))
            highest = float(highest)
            slack = self.problem.tie * (abs(highest) + float(worth.max()))
            if 0.5 * (highest - slack) <= best.decrease:
                continue
            position, place = self._first_pair(self.place.fetch(gains >= highest - slack))
            best = Exchange(self.n_fixed + position, int(rows[place]), 0.5 * float(gains[position, place]))
        return best

    def _exchange_gains(self, turns: Array, targets: Array, rows: Array, alpha: float) -> Any:
        """Return twice the decrease by every exchange for some of the rows, (n_removable, n_rows), where X is."""
        place, xp = self.place, self.place.xp
        there = place.send(rows)
        is_all = len(rows) == self.problem.n_features
        images, products = (each if is_all else place.take(each, there, axis=1) for each in (self.images, self.products))
        energies, needed = (each if is_all else place.take(each, there) for each in (self.energies, self._needed))
        images, sent = place.send(turns) @ images, place.send(targets)
        lengths = place.send(squared_row_norms(targets))[:, None]
        squares = images * images
        above = images * (sent @ products) * 2.0 + squared_columns(products, xp)[None, :] + squares * lengths
        squares = squares + energies[None, :]
        gains = above / xp.where(squares > needed[None, :], squares, np.inf)
        if not self.penalty.is_even:
            # What brings nothing is no exchange, however cheap it is.
            costs = self.unit_costs[self.n_fixed :, None] - self.penalty.prices[rows]
            gains = xp.where(gains <= 2.0 * self._negligible, -np.inf, gains) + place.send(2.0 * alpha * costs)
        gains = gains - lengths
        allowed = self._allowed_exchanges()
        return gains if allowed is None else xp.where(place.send(allowed[:, rows]), gains, -np.inf)

    def _exchange_candidates(self, turns: Array, targets: Array, alpha: float) -> Array:
        """Return the rows that may be in the best exchange, ascending; all of them where it is not worth a look.

        An exchange for row j lowers h by more than g, in the notation of :meth:`best_exchange`, only if
        :math:`\\|c_j\\|^2 + 2 p_j c_j' b - r_j \\|b\\|^2 > 2 g (r_j + p_j^2)`. All of this is known but p, whose square is
        at most the energy of :math:`x_j` that the selected rows explain. So the rows that would bring most beside all others
        are searched first, and those that cannot reach the best of them need no product.
        """
        n_features, worth = self.problem.n_features, squared_row_norms(targets)
        all_rows = np.arange(n_features)
        if not self.place.is_host or not self.penalty.is_even or n_features <= 4 * FEWEST_CANDIDATES:
            return all_rows
        squares, energies = squared_columns(self.products, np), np.maximum(self.energies, 0.0)
        alone = squares / np.where(energies > self._needed, energies, np.inf)
        first = np.sort(np.argpartition(-alone, FEWEST_CANDIDATES)[:FEWEST_CANDIDATES])
        lowest = float(self._exchange_gains(turns, targets, first, alpha).max())
        if lowest == -math.inf:
            return all_rows
        lowest -= 4.0 * self.problem.tie * (abs(lowest) + float(worth.max()))  # ties count, and are known up to rounding
        blur = BLUR[self.problem.dtype] * np.square(self.problem.design.pull_norms())
        reach = np.maximum(self.problem.design.column_energy + self.problem.ridge - energies, 0.0) + blur
        needed = (
            lowest * (energies if lowest >= 0.0 else energies + reach) - squares - blur * (float(worth.max()) + abs(lowest))
        )
        # Whatever the angle of c and b, at first: the worst b is as long as this, or as the shortest or longest there is.
        lengths, longest = np.sqrt(squares * reach), np.sqrt(worth)
        worst = np.divide(lengths, energies, out=np.full_like(energies, np.inf), where=energies > 0.0)
        worst = np.clip(worst, longest.min(), longest.max())
        rows = np.flatnonzero(worst * (2.0 * lengths - energies * worst) >= needed)
        step, found = max(256, BLOCK_ELEMENTS // len(targets)), [NO_ROWS]
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            bounds = np.abs(targets @ self.products[:, part])
            bounds *= 2.0 * np.sqrt(reach[part])
            bounds -= np.outer(worth, energies[part])
            found.append(part[bounds.max(axis=0) >= needed[part]])
        return np.concatenate(found)

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


def first_open(products: Array, energies: Array, needed: Array) -> int | None:
    """Return the place of the first row with enough energy; None if there is none."""
    places = np.flatnonzero(energies > needed)
    return int(places[0]) if len(places) else None


def best_of(merits: Any, tie: float, place: Any) -> tuple[Any, Any]:
    """Return the first of those whose merit is the highest up to rounding errors, and the highest merit."""
    highest = merits.max() if place.is_host else place.xp.max(merits)
    return place.first(merits >= highest * (1.0 - tie)), highest


def n_independent(square: Array, are_exact: Array) -> int:
    """Return how many of the first vectors with these products are clearly independent; their norms should be 1."""
    n_exact = len(square) if are_exact.all() else int(are_exact.argmin())
    for n_good in range(n_exact, 0, -1):
        try:
            corners = np.diagonal(np.linalg.cholesky(square[:n_good, :n_good]))
        except np.linalg.LinAlgError:
            continue
        if corners.min() > LEAST_NORM:
            return n_good
    return 0
