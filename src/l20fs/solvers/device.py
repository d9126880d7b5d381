r"""A set of rows that grows beside an X on a device: the same choices as those of a panel, many at a time.

Everything that is as long as X has features stays on the device. A batch of rows costs one pass over X and a handful of small
transfers:

1. The next rows are foreseen on the host, from the inner products of the candidates with the highest merit.
2. Their columns are orthogonalised together, in float64.
3. One pass gives the images of all directions, and the products with the residual anew, so that no rounding piles up.
4. With these, the merits after each row of the batch are known for all features at once: with
   :math:`c_t = c_0 - \sum_{s<t} b_s p_s` the squared norms of the products fall by
   :math:`p_t (2 b_t' c_t - \|b_t\|^2 p_t)` from one row to the next. From the first row on that was not the best of all, the
   batch is taken back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from l20fs.design import ArrayDesign
from l20fs.problem import LeastSquares
from l20fs.solvers.basis import Triangle
from l20fs.solvers.panel import RowSet, best_of, gains_of, smallest_rooms

Array = NDArray[Any]

#: From how many features with the highest merit the next rows are foreseen, and how many elements these may have.
CANDIDATES, CANDIDATE_ELEMENTS = 1024, 1 << 28

#: How many rows are foreseen at first.
FIRST_AHEAD = 16

#: Lines that one pass over X multiplies at most, directions and residuals: more are not cheaper by the line.
LINES_PER_PASS = 64


class DeviceBasis(Triangle):
    """The orthonormal lines of the selected columns on the device, and their triangle on the host."""

    def __init__(self, problem: LeastSquares, design: ArrayDesign) -> None:
        super().__init__(problem)
        self._design, self._place = design, design.place
        self._lines = self._place.send(np.zeros((0, design.n_samples)))
        self._y = self._place.send(problem.targets)

    @property
    def lines(self) -> Any:
        return self._lines[: self.size, :]

    def extend(self, rows: Array, needed_room: Array) -> Any:
        """Orthogonalise the columns of some rows and append them, up to the first without room; return their directions."""
        place, k = self._place, self.size
        rest = self._design.lines(place.send(rows), place.xp.float64)
        rest, lifted, coordinates = self._without_lines(rest)
        # The rows of what a column adds below the lines, for the ridge: those of the selected rows, then their own.
        lifted = np.hstack([lifted, np.sqrt(self.problem.ridge) * np.eye(len(rows))])
        inverse = np.eye(len(rows))
        for _ in range(2):  # once more: what the inner products of nearly dependent columns lose is in the first triangle
            gram = place.fetch(rest @ rest.T) + lifted @ lifted.T
            step = np.linalg.inv(leading_triangle(gram, needed_room))
            n_rows = len(step)
            rest, lifted = place.send(step) @ rest[:n_rows, :], step @ lifted[:n_rows]
            inverse, needed_room = step @ inverse[:n_rows, :n_rows], np.zeros(n_rows)
        self._append(rows[:n_rows], rest, inverse.T, -(self.inverse @ coordinates[:n_rows].T) @ inverse.T)
        self._targets[k : self.size] = place.fetch(rest @ self._y.T)
        return rest

    def _without_lines(self, rest: Any) -> tuple[Any, Array, Array]:
        """Take the lines out of some columns; return what is left, what is left below for the ridge, and the coordinates."""
        place, inverse, root = self._place, self.inverse, np.sqrt(self.problem.ridge)
        lifted = coordinates = np.zeros((rest.shape[0], self.size))
        for _ in range(2 if self.size else 0):  # once more: rounding of the large part that was taken away is in the first
            found = place.fetch(rest @ self.lines.T) + root * (lifted @ inverse)
            lifted = lifted - root * (found @ inverse.T)
            rest = rest - place.send(found) @ self.lines
            coordinates = coordinates + found
        return rest, lifted, coordinates

    def _append(self, rows: Array, lines: Any, corner: Array, above: Array) -> None:
        k, size, place = self.size, self.size + len(rows), self._place
        if size > self._lines.shape[0]:
            more = max(size, 128)
            self._lines = place.xp.concat([self._lines, place.send(np.zeros((more, self._lines.shape[1])))])
            self._inverse = np.pad(self._inverse, (0, more))
            self._targets = np.vstack([self._targets, np.empty((more, self._targets.shape[1]))])
        self._lines[k:size, :] = lines
        self._inverse[:size, k:size] = np.vstack([above, corner])
        self._inverse[k:size, :k] = 0.0
        self.rows.extend(rows.tolist())


class DevicePanel(RowSet):
    """A set of rows that grows beside an X on a device.

    Parameters
    ----------
    problem : LeastSquares
    design : ArrayDesign
        That of the problem.

    Examples
    --------
    >>> import array_api_strict
    >>> problem = LeastSquares(array_api_strict.asarray(np.diag([1.0, 2.0, 3.0, 4.0])[:, :3]), np.eye(4))
    >>> panel = DevicePanel(problem, problem.design)
    >>> panel.grow(2), len(panel.rows)
    (2, 2)
    """

    basis: DeviceBasis

    def __init__(self, problem: LeastSquares, design: ArrayDesign) -> None:
        super().__init__(problem, None)
        self._design, self._place = design, design.place
        self.basis = DeviceBasis(problem, design)
        self._residual = self._place.send(problem.targets)
        self._products = self._place.xp.astype(design.products(self._residual), self._place.xp.float64)
        self._energies = self._place.send(design.column_energy)
        self._smallest_room = smallest_rooms(problem, design.varies)
        self._smallest_room_there = self._place.send(self._smallest_room)
        self._is_selected = np.zeros(design.n_features, dtype=bool)
        self._most_ahead = max(FIRST_AHEAD, LINES_PER_PASS - problem.n_targets)
        self._ahead = FIRST_AHEAD
        self._gains = self._gains_now()

    def merits(self) -> Array:
        return self._place.fetch(self._gains)

    def best_merit(self) -> float:
        return float(self._place.xp.max(self._gains))

    def _may_gain(self) -> Array:
        return ~self._is_selected & (self._smallest_room < np.inf)

    def _merits_alone(self) -> Array:
        return DevicePanel(self.problem, self._design).merits()

    def grow(self, n_units: int, least: float = 0.0) -> int:
        foreseen = self._look_ahead(min(self._ahead, n_units), least)
        if not len(foreseen):
            return 0
        size = len(self)
        directions = self.basis.extend(foreseen, self._smallest_room[foreseen])
        n_right = self._settle(foreseen[: directions.shape[0]], directions, least)
        self.basis.cut(size + n_right)
        is_right = n_right == len(foreseen)
        self._ahead = min(2 * self._ahead, self._most_ahead) if is_right else max(2, self._ahead // 2)
        for target in self.basis.targets[size:]:
            self.losses.append(max(0.0, self.loss - 0.5 * float(target @ target)))
        return n_right

    def _needed_room(self, is_barred: Array) -> Any:
        xp, there = self._place.xp, self._smallest_room_there
        return xp.where(self._place.send(is_barred), xp.full_like(there, np.inf), there)

    def _gains_now(self) -> Any:
        xp = self._place.xp
        squares = xp.sum(self._products * self._products, axis=0)
        return self._gain(squares, self.problem.ridge + self._energies, self._needed_room(self._is_selected))

    def _gain(self, squares: Any, room: Any, needed_room: Any) -> Any:
        xp = self._place.xp
        has_room = room > needed_room
        return xp.where(has_room, 0.5 * squares, xp.zeros_like(squares)) / xp.where(has_room, room, xp.ones_like(room))

    def _look_ahead(self, n_rows: int, least: float) -> Array:
        """Return up to ``n_rows`` rows, of which the first is the best of all and the others are likely to follow."""
        xp, place, design = self._place.xp, self._place, self._design
        n_candidates = max(2 * n_rows, min(CANDIDATES, CANDIDATE_ELEMENTS // design.n_samples))
        n_candidates = min(n_candidates, design.n_features)
        candidates = xp.sort(xp.argsort(self._gains, descending=True)[:n_candidates])
        lines = design.lines(candidates, design.array_dtype)
        images = lines @ xp.astype(self.basis.lines, design.array_dtype).T
        gram = place.fetch(lines @ lines.T - images @ images.T).astype(np.float64)
        of_features = [self._energies, self._needed_room(self._is_selected)]
        table = xp.concat([self._products, *(vector[None, :] for vector in of_features)])
        table = xp.concat([xp.take(table, candidates, axis=1), xp.astype(candidates, xp.float64)[None, :]])
        *products, energies, needed_room, rows = place.fetch(table)
        positions = foresee(gram, np.array(products), energies, needed_room, self.problem, n_rows, least)
        return rows[positions].astype(np.intp)

    def _settle(self, rows: Array, directions: Any, least: float) -> int:
        """Take over the rows that were foreseen, as far as each was the best of all; return how many."""
        xp, place, n_rows = self._place.xp, self._place, len(rows)
        targets = self.basis.targets[self.basis.size - n_rows :]
        pulled = xp.astype(self._design.products(xp.concat([directions, self._residual])), xp.float64)
        images, self._products = pulled[:n_rows, :], pulled[n_rows:, :]
        n_right = self._n_right(rows, images, targets, least) if n_rows > 1 else 1
        images, signed = images[:n_right, :], place.send(targets[:n_right].T)
        self._products = self._products - signed @ images
        self._energies = self._energies - xp.sum(images * images, axis=0)
        self._residual = self._residual - signed @ directions[:n_right, :]
        self._is_selected[rows[:n_right]] = True
        self._gains = self._gains_now()
        return n_right

    def _n_right(self, rows: Array, images: Any, targets: Array, least: float) -> int:
        """Return how many of the rows, one after the other, are the best of all."""
        xp, place, tie = self._place.xp, self._place, self.problem.tie
        products = self._products
        there, overlaps = place.send(targets), targets @ targets.T
        # b_t' c_t, for all features: the products that each direction meets are those that the ones before it leave.
        met = there @ products - place.send(np.tril(overlaps, -1)) @ images
        falls = images * (2.0 * met - place.send(np.diagonal(overlaps)[:, None]) * images)
        squares = xp.sum(products * products, axis=0) - xp.cumulative_sum(falls, axis=0)
        room = self.problem.ridge + self._energies - xp.cumulative_sum(images * images, axis=0)
        is_barred = self._is_selected.copy()
        is_barred[rows] = True
        gains = self._gain(squares, room, self._needed_room(is_barred))
        highest = xp.max(gains, axis=1)
        first = xp.argmax(xp.astype(gains >= (highest * (1.0 - tie))[:, None], xp.uint8), axis=1)
        rows_there = place.send(rows)
        summary = [xp.take(squares, rows_there, axis=1), xp.take(room, rows_there, axis=1)]
        summary += [highest[:, None], xp.astype(first, xp.float64)[:, None]]
        return _n_leading(rows, place.fetch(xp.concat(summary, axis=1)), self._smallest_room[rows], tie, least)


def _n_leading(rows: Array, summary: Array, needed_room: Array, tie: float, least: float) -> int:
    """Return how many rows are each the best of all that are left when its turn comes.

    Line t of the summary belongs to the state after rows 0 to t. It has the squared norm and the room of each of the rows,
    then the highest gain of all others and which of them is the first to have it.
    """
    n_rows = len(rows)
    own = np.zeros((n_rows, n_rows))
    squares, room, (highest, first) = summary[:, :n_rows], summary[:, n_rows:-2], summary[:, -2:].T
    np.divide(0.5 * squares, room, out=own, where=room > needed_room)
    for turn in range(1, n_rows):
        gains = own[turn - 1, turn:]
        enough = max(float(highest[turn - 1]), float(gains.max())) * (1.0 - tie)
        rivals = rows[turn:][gains >= enough].tolist() + ([first[turn - 1]] if highest[turn - 1] >= enough else [])
        if gains[0] <= least or min(rivals) != rows[turn]:
            return turn
    return n_rows


def foresee(
    gram: Array, products: Array, energies: Array, needed_room: Array, problem: LeastSquares, n_rows: int, least: float
) -> list[int]:
    """Choose rows one after the other among candidates by what they gain, from their inner products alone.

    Parameters
    ----------
    gram : array of shape (n_candidates, n_candidates)
        Inner products of what the selected rows leave of the candidates.
    products : array of shape (n_targets, n_candidates)
    energies, needed_room : arrays of shape (n_candidates,)
    problem : LeastSquares
    n_rows : int
    least : float
        Rows that gain no more than that are not chosen.
    """
    products, energies, needed_room = products.copy(), energies.copy(), needed_room.copy()
    images = np.empty((n_rows, len(energies)))
    chosen: list[int] = []
    while len(chosen) < n_rows:
        gains = gains_of(products, energies, problem.ridge, needed_room)
        best = best_of(gains, problem.tie)
        if gains[best] <= least:
            break
        n_before, corner = len(chosen), np.sqrt(energies[best] + problem.ridge)
        image = images[n_before]
        image[:] = (gram[best] - images[:n_before, best] @ images[:n_before]) / corner
        products -= (products[:, best] / corner)[:, None] * image
        energies -= image * image
        needed_room[best] = np.inf
        chosen.append(best)
    return chosen


def leading_triangle(gram: Array, needed_room: Array) -> Array:
    """Factor the inner products of as many first rows as have room beside those before them, but of one at least.

    Examples
    --------
    >>> leading_triangle(np.array([[4.0, 4.0], [4.0, 4.0]]), np.full(2, 1e-6))
    array([[2.]])
    """
    for size in range(len(gram), 1, -1):
        try:
            triangle = np.linalg.cholesky(gram[:size, :size])
        except np.linalg.LinAlgError:
            continue
        if (np.square(np.diagonal(triangle)) > needed_room[:size]).all():
            return triangle
    return np.sqrt(gram[:1, :1])
