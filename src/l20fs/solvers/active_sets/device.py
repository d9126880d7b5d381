r"""A set of rows that grows beside an X on a device: the same choices as those of an active set, many at a time.

Everything that is as long as X has features stays on the device. A batch of rows costs one pass over X and a handful of
small transfers:

1. The next rows are foreseen on the host, from the inner products of the candidates with the highest merit.
2. Their columns are orthogonalised together, in float64.
3. One pass gives the images of all directions, and the products with the residual anew, so that no rounding piles up.
4. With these, the merits after each row of the batch are known for all features at once: with
   :math:`c_t = c_0 - \sum_{s<t} b_s p_s` the squared norms of the products fall by
   :math:`p_t (2 b_t' c_t - \|b_t\|^2 p_t)` from one row to the next. From the first row on that was not the best of all, the
   batch is taken back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg.lapack import dtrtri

from l20fs.design import Rooms
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.prox import squared_row_norms
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers.active_sets.basis import Triangle
from l20fs.solvers.active_sets.rows import ALL_EXPLAINED, ActiveSet, best_of
from l20fs.typing import Array

#: From how many features with the highest merit the next rows are foreseen, for each of these rows and at least.
CANDIDATES_PER_ROW, FEWEST_CANDIDATES = 8, 256

#: A foreseen row has to gain this share of what the best of all others gains: below, one of them is likely to be better.
OUTSIDE_SHARE = 0.9

#: Lines that one pass over X multiplies at first, and at most, directions and residuals: fewer take hardly less time, and
#: more are not cheaper by the line. With many targets so many rows are foreseen at least.
FIRST_LINES, LINES_PER_PASS, FEWEST_AHEAD = 64, 128, 32

#: From a batch that was right all through to the next one, and from one that was not.
LONGER, SHORTER = 4, 2

#: Elements of what is made for a batch of rows and a part of the features: six such arrays are there at a time.
PART_ELEMENTS = 1 << 25

#: A feature whose gain is as close to that of a row as so many ties may be better than it: it is looked at in float64. These
#: are few, unless the batch went astray.
RIVALRY, MOST_RIVALS = 200.0, 4096

#: Rows for which the lines of a basis have places at first.
FIRST_PLACES = 128


class DeviceBasis(Triangle):
    """Orthonormal basis of the selected columns on the device, with its triangle on the host.

    A line is as long as X has samples, and with a ridge as long again as there are places for rows: the columns are
    :math:`(x_j; \\sqrt\\mu e_j)`.
    """

    def __init__(self, problem: LeastSquares) -> None:
        super().__init__(problem)
        design: Any = problem.design
        self._design, self._place = design, design.place
        self._lines = self._place.send(np.zeros((0, design.n_samples)))
        self._y = self._place.send(problem.targets)

    @property
    def directions(self) -> Any:
        """The lines in the space of samples."""
        return self._lines[: self.size, : self._design.n_samples]

    def extend(self, rows: Array, needed_room: Array) -> Any:
        """Orthogonalise the columns of some rows and append them up to the first dependent one; return their directions."""
        xp, place, k, n_samples = self._place.xp, self._place, self.size, self._design.n_samples
        self._make_places(k + len(rows))
        rest, coordinates = self._without_lines(self._columns(rows))
        first = place.fetch(xp.concat([rest @ rest.T, coordinates], axis=1))
        gram, coordinates_here = first[:, : len(rows)], first[:, len(rows) :]
        turn = inverse_triangle(leading_triangle(gram, needed_room))
        n_rows = len(turn)
        rest = place.send(turn) @ rest[:n_rows, :]
        # Once more: what the inner products of nearly dependent columns lose is still in there.
        second = place.fetch(xp.concat([rest @ rest.T, rest[:, :n_samples] @ self._y.T], axis=1))
        turn_again = inverse_triangle(np.linalg.cholesky(second[:, :n_rows]))
        rest, turn = place.send(turn_again) @ rest, turn_again @ turn
        size = k + n_rows
        self._lines[k:size, :] = rest
        self._inverse[:k, k:size] = -(self.inverse @ coordinates_here[:n_rows].T) @ turn.T
        self._inverse[k:size, k:size] = turn.T
        self._targets[k:size] = turn_again @ second[:, n_rows:]
        self.rows.extend(rows[:n_rows].tolist())
        return rest[:, :n_samples]

    def measure(self, rows: Array, residual: Any) -> tuple[Array, Array]:
        """Return the squared norms of the remainders of some columns, with the ridge, and their products with a residual."""
        xp, place, n_samples, ridge = self._place.xp, self._place, self._design.n_samples, self.problem.ridge
        room, products = np.empty(len(rows)), np.empty((self.problem.n_targets, len(rows)))
        below = -math.sqrt(ridge) * self.weights(self.size) if ridge else np.empty((self.problem.n_targets, 0))
        whole_residual = xp.concat([residual, place.send(below)], axis=1)
        step = max(1, PART_ELEMENTS // self._lines.shape[1])
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            columns = self._design.lines(place.send(rows[part]), xp.float64)
            n_below = self._lines.shape[1] - n_samples
            no_ridge = xp.zeros((columns.shape[0], n_below), dtype=xp.float64, device=place.device)
            rest, _ = self._without_lines(xp.concat([columns, no_ridge], axis=1))
            room[part] = place.fetch(xp.sum(rest * rest, axis=1)) + ridge
            products[:, part] = place.fetch(whole_residual @ rest[:, : whole_residual.shape[1]].T)
        return room, products

    def _columns(self, rows: Array) -> Any:
        """Return the columns of some rows, extended for the ridge."""
        place = self._place
        columns = self._design.lines(place.send(rows), place.xp.float64)
        if not self.problem.ridge:
            return columns
        n_places = self._lines.shape[0]
        below = np.sqrt(self.problem.ridge) * np.eye(len(rows), n_places, k=self.size)
        return place.xp.concat([columns, place.send(below)], axis=1)

    def _without_lines(self, rest: Any) -> tuple[Any, Any]:
        """Project some columns on the complement of the basis; return the remainders and the coordinates."""
        lines = self._lines[: self.size, :]
        found = rest @ lines.T
        rest = rest - found @ lines
        again = rest @ lines.T  # rounding of the large part that was taken away is in the first
        return rest - again @ lines, found + again

    def _make_places(self, size: int) -> None:
        n_before = self._lines.shape[0]
        if size <= n_before:
            return
        place, n_places = self._place, max(FIRST_PLACES, 2 * size)
        length = self._design.n_samples + (n_places if self.problem.ridge else 0)
        lines = place.xp.zeros((n_places, length), dtype=place.xp.float64, device=place.device)
        lines[:n_before, : self._lines.shape[1]] = self._lines
        self._lines = lines
        self._inverse = np.pad(self._inverse, (0, n_places - n_before))
        self._targets = np.vstack([self._targets, np.empty((n_places - n_before, self._targets.shape[1]))])


class DeviceActiveSet(ActiveSet):
    """Active set that grows on a device.

    Parameters
    ----------
    problem : LeastSquares
    penalty : RowPenalty, optional
        A plain one.

    Examples
    --------
    >>> import array_api_strict
    >>> problem = LeastSquares(array_api_strict.asarray(np.diag([1.0, 2.0, 3.0, 4.0])[:, :3]), np.eye(4))
    >>> active = DeviceActiveSet(problem)
    >>> active.grow(2), len(active.rows)
    (2, 2)
    """

    basis: DeviceBasis

    def __init__(self, problem: LeastSquares, penalty: RowPenalty | None = None) -> None:
        design: Any = problem.design
        super().__init__(problem, penalty)
        self._design, self._place = design, design.place
        self.basis = DeviceBasis(problem)
        self._residual = self._place.send(problem.targets)
        self._products = problem.target_products
        xp, self._energies, varies = self._place.xp, design.columns.energy, design.columns.varies
        smallest, clear = Rooms.of(design)
        self._may_be_close = problem.ridge <= float(xp.max(clear))
        never = xp.full_like(clear, np.inf)  # for constant columns
        self._smallest_room, self._clear_room = xp.where(varies, smallest, never), xp.where(varies, clear, never)
        self._needed_room = self._clear_room  # infinite for the selected and the dependent rows
        self._has_close = False
        first, most = (max(FEWEST_AHEAD, n_lines - problem.n_targets) for n_lines in (FIRST_LINES, LINES_PER_PASS))
        self._ahead, self._most_ahead = first, most
        self._gains = self._gains_now()

    def merits(self) -> Any:
        return self._gains

    def best_merit(self) -> float:
        return float(self._place.xp.max(self._gains))

    def _may_gain(self) -> Any:
        rows = self._place.send(np.array(self.rows, dtype=np.int64))
        return self._place.replaced(self._smallest_room, rows, np.inf) < np.inf

    def _merits_alone(self) -> Any:
        return DeviceActiveSet(self.problem).merits()

    def grow(self, n_units: int, least: float = 0.0) -> int:
        foreseen, clear_room = self._look_ahead(1 if self._has_close else min(self._ahead, n_units), least)
        if not len(foreseen):
            return 0
        size = len(self)
        directions = self.basis.extend(foreseen, clear_room)
        n_right = self._settle(foreseen[: directions.shape[0]], directions, least)
        self.basis.cut(size + n_right)
        is_right = n_right == len(foreseen)
        self._ahead = min(LONGER * self._ahead, self._most_ahead) if is_right else max(2, self._ahead // SHORTER)
        for target in self.basis.targets[size:]:
            self.losses.append(max(0.0, self.loss - 0.5 * float(target @ target)))
        self._gains = self._gains_now()
        return n_right

    def _gains_now(self) -> Any:
        xp = self._place.xp
        squares = xp.sum(self._products * self._products, axis=0, dtype=xp.float64)
        room = self.problem.ridge + self._energies
        self._has_close = False
        if self._may_be_close and self.loss > ALL_EXPLAINED * self.problem.null_loss:
            is_close = self._is_close(room, self._needed_room)
            if bool(self._place.xp.any(is_close)):
                gains = self._gain(squares, room, self._needed_room)
                return self._with_close(gains, np.flatnonzero(self._place.fetch(is_close)))
        return self._gain(squares, room, self._needed_room)

    @staticmethod
    def _is_close(room: Any, needed_room: Any) -> Any:
        """Return whether so little is left of columns that may enter that rounding may have eaten it."""
        return (room <= needed_room) & (needed_room < np.inf)

    def _with_close(self, gains: Any, rows: Array) -> Any:
        """Return the gains with those of the close rows, measured in float64."""
        room, products = self.basis.measure(rows, self._residual)
        has_room = room > self._place.fetch(self._place.take(self._smallest_room, self._place.send(rows)))
        gains_here, needed_here = self._place.fetch(gains).copy(), self._place.fetch(self._needed_room).copy()
        squares = 0.5 * np.einsum("ij,ij->j", products, products)
        gains_here[rows] = np.divide(squares, room, out=np.zeros_like(room), where=has_room)
        needed_here[rows[~has_room]] = np.inf  # and so they stay
        self._needed_room, self._has_close = self._place.send(needed_here), bool(has_room.any())
        return self._place.send(gains_here)

    def _gain(self, squares: Any, room: Any, needed_room: Any) -> Any:
        xp = self._place.xp
        # Nothing divided by infinity is nothing.
        return squares / xp.where(room > needed_room, 2.0 * room, xp.full_like(room, np.inf))

    def _look_ahead(self, n_rows: int, least: float) -> tuple[Array, Array]:
        """Return up to ``n_rows`` rows, the best of all and those likely to follow, and their clear room."""
        xp, place, design = self._place.xp, self._place, self._design
        n_candidates = min(max(FEWEST_CANDIDATES, CANDIDATES_PER_ROW * n_rows), design.n_features)
        candidates = xp.sort(xp.argsort(self._gains, descending=True)[:n_candidates])
        lines = design.lines(candidates, design.array_dtype)
        images = lines @ xp.astype(self.basis.directions, design.array_dtype).T
        gram = place.fetch(lines @ lines.T - images @ images.T)
        vectors = [place.take(vector, candidates) for vector in (self._gains, self._energies, self._clear_room)]
        vectors.append(xp.astype(candidates, xp.float64))
        products_there = xp.astype(place.take(self._products, candidates, 1), xp.float64, copy=False)
        table = xp.concat([products_there, xp.stack(vectors)])
        *products, gains, energies, clear_room, rows = place.fetch(table)
        first = best_of(gains, self.problem.tie)
        if gains[first] <= least:
            return np.arange(0), np.empty(0)
        outside = 0.0 if n_candidates == design.n_features else float(gains.min())
        room, may_gain = energies + self.problem.ridge, gains > 0.0
        positions = foresee(first, gram, np.array(products), room, n_rows, may_gain, outside, self.loss)
        return rows[positions].astype(np.intp), clear_room[positions]

    def _settle(self, rows: Array, directions: Any, least: float) -> int:
        """Accept the foreseen rows, as far as each was the best of all; return their number."""
        xp, place, n_rows = self._place.xp, self._place, len(rows)
        targets = self.basis.targets[self.basis.size - n_rows :]
        signed, rows_there = place.send(targets.T), place.send(rows)
        needed_room = place.replaced(self._needed_room, rows_there, np.inf)
        pulled = self._design.products(xp.concat([directions, self._residual]))
        n_right = n_rows if n_rows == 1 else self._n_right(rows, pulled, targets, needed_room, least)
        if n_right < n_rows:
            signed, directions = signed[:, :n_right], directions[:n_right, :]
            needed_room = place.replaced(self._needed_room, rows_there[:n_right], np.inf)
        images, self._needed_room = pulled[:n_right, :], needed_room
        self._products = pulled[n_rows:, :] - xp.astype(signed, pulled.dtype, copy=False) @ images
        self._residual = self._residual - signed @ directions
        taken = [xp.sum(xp.square(images[:, part]), axis=0, dtype=xp.float64) for part in self._parts(n_right)]
        self._energies = self._energies - xp.concat(taken)
        return n_right

    def _parts(self, n_rows: int) -> list[slice]:
        n_features, step = self._design.n_features, max(1, PART_ELEMENTS // n_rows)
        return [slice(start, min(start + step, n_features)) for start in range(0, n_features, step)]

    def _n_right(self, rows: Array, pulled: Any, targets: Array, needed_room: Any, least: float) -> int:
        """Return the number of leading rows that are each the best of all."""
        xp, place, n_rows, ridge = self._place.xp, self._place, len(rows), self.problem.ridge
        n_judged, rivals = n_rows, self._rivals(pulled, targets, n_rows, needed_room)
        while len(rivals) > MOST_RIVALS and n_judged > 2:  # the batch went astray: its beginning is judged
            n_judged = (n_judged + 1) // 2
            rivals = self._rivals(pulled, targets, n_judged, needed_room)
        rows, targets = rows[:n_judged], targets[:n_judged]
        both = np.concatenate([rows, rivals])
        both_there = place.send(both)
        lines = xp.astype(place.take(pulled, both_there, 1), xp.float64, copy=False)
        vectors = xp.stack([place.take(vector, both_there) for vector in (self._energies, self._clear_room)])
        *lines_here, energies, clear_room = place.fetch(xp.concat([lines, vectors]))
        images, products = np.array(lines_here[:n_judged]), np.array(lines_here[n_rows:])
        squares, room = follow(targets, images, products, ridge + energies)
        is_clear = room > clear_room
        gains = np.divide(0.5 * squares, room, out=np.zeros_like(room), where=is_clear)
        others = gains[:, n_judged:].T
        n_right = n_leading(
            rows, gains[:, :n_judged], others, np.broadcast_to(rivals[:, None], others.shape), self.problem.tie, least
        )
        # From where on little is left of a column, it is measured first.
        is_close = ~is_clear
        is_close[:, :n_judged] &= ~np.tri(n_judged, dtype=bool)
        is_close_then = is_close.any(axis=1)
        return min(n_right, 1 + int(is_close_then.argmax())) if self._may_be_close and is_close_then.any() else n_right

    def _rivals(self, pulled: Any, targets: Array, n_judged: int, needed_room: Any) -> Array:
        """Return the features that come close to one of the first rows of a batch when it enters.

        A row brings half the squared norm of its target. The gains of others are not computed for all of them: it is enough
        to know which come close to that, or of which so little is left that they have to be measured.
        """
        xp, ridge = self._place.xp, self.problem.ridge
        contest = Contest(targets, n_judged, 1.0 - RIVALRY * self.problem.tie, partial(self._place.send, dtype=pulled.dtype))
        found = []
        for part in self._parts(n_judged):
            room, needed = ridge + self._energies[part], needed_room[part]
            is_rival, least_room = contest.of(xp, pulled[:, part], xp.astype(room, pulled.dtype, copy=False))
            if self._may_be_close:
                is_rival = is_rival | (xp.astype(least_room, xp.float64) <= needed)
            found.append(is_rival & (needed < np.inf))
        return self._place.fetch(xp.nonzero(xp.concat(found))[0])


class Contest:
    """Comparison of all features with the rows of a batch while these enter one by one, without divisions.

    Everything is in units of the largest target, so that it stays as small or large as squares of X in the precision of X.

    Parameters
    ----------
    targets : array of shape (n_rows, n_targets)
    n_judged : int
        Number of leading rows that are compared.
    share : float
        Share of the gain of a row that makes a rival.
    send : callable
        Copies an array to the device.
    """

    def __init__(self, targets: Array, n_judged: int, share: float, send: Callable[[Array], Any]) -> None:
        n_rows, n_met = len(targets), n_judged - 1  # the first row has been compared already
        lengths = squared_row_norms(targets)
        unit = math.sqrt(float(lengths.max())) or 1.0
        met, lengths = targets[:n_met] / unit, lengths / unit**2
        falls = np.zeros((n_met, n_rows + targets.shape[1]))
        falls[:, :n_met] = -2.0 * np.tril(met @ met.T, -1) - np.diag(lengths[:n_met])
        falls[:, n_rows:] = (2.0 / unit) * met
        # A product with ones below the diagonal is a cumulative sum.
        together = send(np.hstack([falls, np.tri(n_met), share * lengths[1:n_judged, None]]))
        width = falls.shape[1]
        self._falls, self._ones, self._enough = together[:, :width], together[:, width:-1], together[:, -1:]
        self._n_rows, self._n_met, self._inverse_unit = n_rows, n_met, 1.0 / unit

    def of(self, xp: Any, lines: Any, room: Any) -> tuple[Any, Any]:
        """Return whether features are rivals, and the room that is left of them before the last row."""
        images, products = lines[: self._n_met, :], self._inverse_unit * lines[self._n_rows :, :]
        fallen = self._ones @ (images * (self._falls @ lines))
        left = room - self._ones @ (images * images)
        is_rival = xp.any(xp.sum(products * products, axis=0) - fallen >= self._enough * left, axis=0)
        return is_rival, left[-1, :]


def follow(targets: Array, images: Array, products: Array, room: Array) -> tuple[Array, Array]:
    """Return the squared norms of products and the room after each row of a batch, (n_rows, n_features).

    Examples
    --------
    >>> squares, room = follow(np.array([[2.0]]), np.array([[0.5]]), np.array([[3.0]]), np.array([4.0]))
    >>> squares, room  # 3 - 0.5 * 2, and 4 - 0.5 ** 2
    (array([[4.]]), array([[3.75]]))
    """
    overlaps = targets @ targets.T
    # b_t' c_t: the products that each direction meets are those that the ones before it leave.
    met = targets @ products - np.tril(overlaps, -1) @ images
    falls = images * (2.0 * met - np.diagonal(overlaps)[:, None] * images)
    return squared_row_norms(products.T) - falls.cumsum(axis=0), room - np.square(images).cumsum(axis=0)


def n_leading(rows: Array, gains: Array, highest: Array, first: Array, tie: float, least: float) -> int:
    """Return the number of leading rows that are each the best of all when they enter.

    Parameters
    ----------
    rows : array of shape (n_rows,)
    gains : array of shape (n_rows, n_rows)
        Line t has those of the rows after the rows 0 to t have entered.
    highest, first : arrays of shape (n_parts, n_rows)
        The highest gain of all other features of a part, and which of them is the first to have it.
    tie : float
        Gains closer than this share are equal: the lowest feature counts.
    least : float
        What a row has to gain.

    Examples
    --------
    >>> gains, others = np.array([[0.0, 3.0], [0.0, 0.0]]), np.array([[2.0, 1.0]])
    >>> n_leading(np.array([4, 7]), gains, others, np.array([[5, 5]]), tie=1e-9, least=0.0)
    2
    >>> n_leading(np.array([4, 7]), gains, 2 * others, np.array([[5, 5]]), tie=1e-9, least=0.0)
    1
    """
    n_features = np.inf  # beyond all of them
    own = np.where(np.tri(len(rows), dtype=bool).T[1:], gains[:-1], -np.inf)
    others, first = highest[:, :-1], first[:, :-1]
    enough = np.maximum(own.max(axis=1), others.max(axis=0, initial=-np.inf)) * (1.0 - tie)
    lowest_own = np.where(own >= enough[:, None], rows, n_features).min(axis=1)
    lowest_other = np.where(others >= enough, first, n_features).min(axis=0, initial=n_features)
    is_wrong = (np.minimum(lowest_own, lowest_other) != rows[1:]) | (np.diagonal(own, 1) <= least)
    return 1 + int(is_wrong.argmax()) if is_wrong.any() else len(rows)


def foresee(
    first: int,
    gram: Array,
    products: Array,
    room: Array,
    n_rows: int,
    may_gain: Array,
    outside: float = 0.0,
    loss: float = 1.0,
) -> list[int]:
    """Choose rows greedily among candidates by their gains, from their inner products alone.

    Only the first choice has to be right. The others are looked at again when their images are known. They end where a
    feature that is no candidate is likely to be better: its gain falls with the loss, as a rule.

    Parameters
    ----------
    first : int
    gram : array of shape (n_candidates, n_candidates)
        Inner products of what the selected rows leave of the candidates.
    products : array of shape (n_targets, n_candidates)
    room : array of shape (n_candidates,)
        The squared lengths of what is left, and the ridge.
    n_rows : int
    may_gain : mask of shape (n_candidates,)
    outside : float
        Highest gain of the features that are no candidates.
    loss : float
        h before the first row.

    Examples
    --------
    >>> foresee(0, np.eye(3), np.array([[3.0, 1.0, 2.0]]), np.ones(3), 3, np.full(3, True))
    [0, 2, 1]
    >>> foresee(0, np.eye(3), np.array([[3.0, 1.0, 2.0]]), np.ones(3), 3, np.full(3, True), outside=0.9, loss=20.0)
    [0, 2]
    >>> foresee(0, np.eye(3), np.array([[3.0, 0.0, 0.0]]), np.ones(3), 3, np.full(3, True))
    [0]
    """
    n_rows, n_targets = min(n_rows, int(np.count_nonzero(may_gain))), len(products)
    lines = np.empty((n_targets + n_rows, len(room)), dtype=gram.dtype)
    factors = np.zeros((2, len(lines)), dtype=gram.dtype)
    lines[:n_targets], targets, squares = products, np.empty((n_rows, n_targets)), np.einsum("ij,ij->j", products, products)
    room = np.where(may_gain, room, np.inf)
    least_room, gains = 1e-6 * room, np.empty(len(room))
    chosen, best, floor = [first], first, 2.0 * OUTSIDE_SHARE * outside / (loss or 1.0)
    while len(chosen) < n_rows:
        n_before, corner = len(chosen) - 1, math.sqrt(room[best])
        n_lines, before = n_targets + n_before, targets[:n_before]
        images_there = lines[n_targets:n_lines, best]
        target = targets[n_before] = (lines[:n_targets, best] - images_there @ before) / corner
        length = float(target @ target)
        loss -= 0.5 * length
        # One product gives the image of the row, and the products of all candidates that its direction meets.
        factors[0, n_targets:n_lines], factors[1, n_targets:n_lines] = images_there, before @ -target
        factors[1, :n_targets] = target
        known, met = factors[:, :n_lines] @ lines[:n_lines]
        image = np.subtract(gram[best], known, out=lines[n_lines])
        image /= corner
        squares -= image * (2.0 * met - length * image)
        room -= image * image
        room[best] = np.inf  # it is in
        np.maximum(room, least_room, out=room)  # what is left of others may be rounding
        np.divide(squares, room, out=gains)
        best = int(gains.argmax())
        if gains[best] <= 0.0 or gains[best] < floor * loss:  # what is chosen gains nothing any more
            break
        chosen.append(best)
    return chosen


def leading_triangle(gram: Array, needed_room: Array) -> Array:
    """Factor the inner products of as many leading rows as are independent, but at least one.

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


def inverse_triangle(triangle: Array) -> Array:
    """Return the inverse of a lower triangle.

    Examples
    --------
    >>> inverse_triangle(np.array([[2.0, 0.0], [1.0, 1.0]]))
    array([[ 0.5,  0. ],
           [-0.5,  1. ]])
    """
    return np.ascontiguousarray(dtrtri(triangle, lower=1)[0])
