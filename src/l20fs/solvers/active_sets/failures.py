r"""Active sets that know the loss of every panel one change away when its worst unit fails.

With :math:`r(S) = \max_{i \in S} h(S \setminus i)`, a panel that takes unit j in for l has

.. math:: r(S - l + j) = \max\bigl(h(S \setminus l), \; \max_{i \in S \setminus l} h(S \setminus \{l, i\} + j)\bigr),

where the first is the loss when j itself fails. What leaves with l and i is spanned by two lines of the basis, so that the
products of X with the basis, which one search for an exchange needs anyway, give all of these losses. An addition is the
same with no l. A unit fails as a whole; those that are included fail like others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from l20fs.design import BLOCK_ELEMENTS
from l20fs.objective.prox import squared_row_norms
from l20fs.solvers.active_sets.close_columns import measure_columns
from l20fs.solvers.active_sets.groups import GroupActiveSet
from l20fs.solvers.active_sets.rows import RowActiveSet, gains_of, gains_without
from l20fs.typing import Array


class Changes(NamedTuple):
    """Panels one change away: of every line of ``positions`` one unit leaves, and each of some ``units`` enters.

    ``positions`` is -1 where none leaves. ``worst`` and ``losses`` have shape (n_positions, n_units): r and h of the
    panel. r is infinite where the unit cannot enter, or where it is too large to be of interest.
    """

    positions: Array
    units: Array
    worst: Array
    losses: Array


class Leaving(NamedTuple):
    """Lines that leave the basis with a row, and one more for each other row that fails then, that of the worst first."""

    turns: Array
    targets: Array
    loss: float
    more_turns: Array
    more_targets: Array
    more_losses: Array


class _Features(NamedTuple):
    """Products of some features with the basis and with the residual, their room, and the room that each needs."""

    lines: Array
    products: Array
    room: Array
    needed_room: Array

    def at(self, places: Array) -> _Features:
        """Return some of the features."""
        return _Features(*(values[..., places] for values in self))


class FailureRows(RowActiveSet):
    """Active set of rows that may fail.

    Examples
    --------
    >>> from l20fs.objective.least_squares import LeastSquares
    >>> active = FailureRows(LeastSquares(np.eye(4)[:, :3], np.eye(4)), [1, 2])
    >>> active.failure_losses().round(6)
    array([1., 1.])
    """

    def failure_losses(self) -> Array:
        """Return h without each of the selected units."""
        return self.loss + self.removal_losses()

    def worst_loss(self) -> float:
        """Return the largest of them; h if there are none."""
        return float(self.failure_losses().max(initial=self.loss))

    def changes(self, *, exchange: bool, most: float = math.inf) -> Iterator[Changes]:
        """Yield the panels that an exchange, or an addition, leads to, some units at a time, in one pass over X.

        Those with an r above ``most``, or above that of a panel before, may be left out. Most are, by the failure that costs
        most: the others are judged for the few units that help against it.
        """
        positions = np.arange(self.n_fixed, len(self)) if exchange else np.array([-1])
        leaving = [self._leave(int(position)) for position in positions]
        slack = self.problem.tie * self.problem.null_loss
        for block, (lines, products, room, needed_room) in self._in_blocks(exchange):
            worst, losses = np.full((2, len(leaving), products.shape[1]), math.inf)
            for number, left in enumerate(leaving):
                if left.loss > most:
                    continue
                images = left.turns @ lines
                part = _Features(lines, products + left.targets.T @ images, room + _squares(images), needed_room)
                places = np.arange(products.shape[1])
                found = np.where(part.room > needed_room, left.loss, math.inf)
                for batch in batches(len(left.more_losses)):
                    gains = gains_without(left.more_turns[batch] @ part.lines, left.more_targets[batch], *part[1:])
                    found = np.maximum(found, (left.more_losses[batch, None] - 0.5 * gains).max(axis=0, initial=0.0))
                    kept = np.flatnonzero(found <= most)
                    if len(kept) < len(found):
                        places, found, part = places[kept], found[kept], part.at(kept)
                losses[number, places] = left.loss - gains_of(part.products, part.room, 0.0, part.needed_room)
                worst[number, places] = found
                most = min(most, float(found.min(initial=math.inf)) + slack)
            yield Changes(positions, np.arange(block.start, block.stop), worst, losses)

    def _in_blocks(self, exchange: bool) -> Iterator[tuple[slice, _Features]]:
        """Yield all features, some at a time."""
        if exchange:
            self._is_dependent[:] = False  # on all rows, but perhaps not on all but one
            close = measure_columns(self.problem, self.basis, self.residual, self._close_rows())
        else:
            close = self._close_columns()
        k = len(self)
        prepared = self.basis.prepare(np.eye(k))
        step = max(256, BLOCK_ELEMENTS // max(1, k))
        for start in range(0, self.problem.n_features, step):
            block = slice(start, min(start + step, self.problem.n_features))
            lines = self.basis.images_of(prepared, block) if k else np.empty((0, block.stop - start))
            products, room = self.products[:, block], self.problem.ridge + self.energies[block]
            needed_room = self._needed_room[block]
            are_here = (close.rows >= start) & (close.rows < block.stop)
            if are_here.any():
                places = close.rows[are_here] - start
                lines, products, needed_room = lines.astype(np.float64), products.copy(), needed_room.copy()
                lines[:, places] = close.coordinates[are_here].T
                products[:, places], room[places] = close.products[:, are_here], close.room[are_here]
                needed_room[places] = self._smallest_room[close.rows[are_here]]
            yield block, _Features(lines, products, room, needed_room)

    def _leave(self, position: int) -> Leaving:
        """Return the lines that leave with the row at a position (none for -1), and those of every other row."""
        turns, targets = self.basis.exit_of(slice(position, position + 1) if position >= 0 else slice(0))
        loss = self.loss + 0.5 * float(np.vdot(targets, targets))
        more = np.delete(self.basis.exits()[0], [position] if position >= 0 else [], axis=0)
        for _ in range(2):  # nearly parallel, where two columns are nearly equal
            more = more - (more @ turns.T) @ turns
            more /= np.sqrt(squared_row_norms(more))[:, None]
        more_targets = more @ self.basis.targets
        losses = loss + 0.5 * squared_row_norms(more_targets)
        order = np.argsort(-losses, kind="stable")
        return Leaving(turns, targets, loss, more[order], more_targets[order], losses[order])


def _squares(images: Array) -> Array:
    """Return the squared norm of each column."""
    return np.einsum("ij,ij->j", images, images)


def batches(n: int) -> Iterator[slice]:
    """Yield 1, 4, 16, ... of n things at a time."""
    start, size = 0, 1
    while start < n:
        yield slice(start, min(start + size, n))
        start, size = start + size, 4 * size


class FailureGroups(GroupActiveSet, FailureRows):
    """Active set of groups that may fail, each as a whole."""

    def changes(self, *, exchange: bool, most: float = math.inf) -> Iterator[Changes]:
        k, n_rows = len(self), self.basis.size
        leaving = range(k) if exchange else (-1,)
        every = slice(0, self.problem.n_features)
        lines = self.basis.images_of(self.basis.prepare(np.eye(n_rows)), every) if n_rows else np.empty((0, every.stop))
        worst, losses = np.empty((2, len(leaving), self.penalty.n_units))
        for number, position in enumerate(leaving):
            base, gains = self._loss_without(lines, [position] if exchange else [])
            losses[number] = np.where(gains > self._negligible, base - gains, np.inf)
            worst[number] = base
        for number, position in enumerate(leaving):
            for other in range(position + 1, k):
                base, gains = self._loss_without(lines, [position, other] if exchange else [other])
                for place in (number, other) if exchange else (number,):
                    np.maximum(worst[place], base - gains, out=worst[place])
        worst[losses == np.inf] = np.inf
        first = self.n_fixed if exchange else 0
        positions = np.arange(first, k) if exchange else np.array([-1])
        yield Changes(positions, np.arange(self.penalty.n_units), worst[first:], losses[first:])

    def _loss_without(self, lines: Array, positions: list[int]) -> tuple[float, Array]:
        """Return h without the units at some positions, and what each other unit would gain then."""
        turns, targets = self._exits(positions)
        return self.loss + 0.5 * float(np.vdot(targets, targets)), self._gains_without(turns, turns @ lines, targets)

    def _exits(self, positions: list[int]) -> tuple[Array, Array]:
        """Return the lines that leave the basis with the units at some positions, and their targets."""
        spans = [self._span(position) for position in positions]
        return self.basis.exit_of(np.array([row for span in spans for row in range(span.start, span.stop)], dtype=np.intp))
