r"""Active sets that know the loss of every panel one change away when its worst unit fails.

With :math:`r(S) = \max_{i \in S} h(S \setminus i)`, a panel that takes unit j in for l has

.. math:: r(S - l + j) = \max\bigl(h(S \setminus l), \; \max_{i \in S \setminus l} h(S \setminus \{l, i\} + j)\bigr),

where the first is the loss when j itself fails. What leaves with l and i is spanned by two lines of the basis, so that the
products of X with the basis, which one search for an exchange needs anyway, give all of these losses. An addition is the
same with no l. A unit fails as a whole; those that are included fail like others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from l20fs.design import BLOCK_ELEMENTS
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.prox import squared_row_norms
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers.active_sets.close_columns import measure_columns
from l20fs.solvers.active_sets.groups import GroupActiveSet
from l20fs.solvers.active_sets.rows import RowActiveSet, gains_of, gains_without
from l20fs.typing import Array


class Changes(NamedTuple):
    """Panels one change away: of every line of ``positions`` one unit leaves, and each of some ``units`` enters.

    ``positions`` is -1 where none leaves. ``worst`` and ``losses`` have shape (n_positions, n_units): r and h of the
    panel, infinite where the unit cannot enter.
    """

    positions: Array
    units: Array
    worst: Array
    losses: Array


class _Leaving(NamedTuple):
    """Lines that leave the basis with some rows, and one more line for each other row that may fail then."""

    turns: Array
    targets: Array
    loss: float
    others: Array
    other_turns: Array
    other_targets: Array
    other_losses: Array


class FailureRows(RowActiveSet):
    """Active set of rows that may fail.

    Examples
    --------
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

    def changes(self, *, exchange: bool) -> Iterator[Changes]:
        """Yield the panels that an exchange, or an addition, leads to, some units at a time, in one pass over X."""
        k = len(self)
        positions = np.arange(self.n_fixed, k) if exchange else np.array([-1])
        leaving = [self._leave(position) for position in (range(k) if exchange else (-1,))]
        for block, lines, products, room, needed_room in self._in_blocks(exchange):
            worst, losses = np.empty((2, len(leaving), products.shape[1]))
            worst[:] = np.array([left.loss for left in leaving])[:, None]
            for number, left in enumerate(leaving):
                images = left.turns @ lines
                there, space = products + left.targets.T @ images, room + np.einsum("ij,ij->j", images, images)
                losses[number] = left.loss - gains_of(there, space, 0.0, needed_room)
                losses[number, space <= needed_room] = np.inf
                images = left.other_turns @ lines
                after = left.other_losses[:, None] - 0.5 * gains_without(
                    images, left.other_targets, there, space, needed_room
                )
                np.maximum(worst[number], after.max(axis=0, initial=0.0), out=worst[number])
                if exchange:  # of a pair that is missing either may be the one that was exchanged
                    np.maximum(worst[left.others], after, out=after)
                    worst[left.others] = after
            worst[losses == np.inf] = np.inf
            first = self.n_fixed if exchange else 0
            yield Changes(positions, np.arange(block.start, block.stop), worst[first:], losses[first:])

    def _in_blocks(self, exchange: bool) -> Iterator[tuple[slice, Array, Array, Array, Array]]:
        """Yield some features with their products with the basis and the residual, their room, and that which they need."""
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
            yield block, lines, products, room, needed_room

    def _leave(self, position: int) -> _Leaving:
        """Return the lines that leave with the row at a position, and those of each row after it."""
        turns, targets = self.basis.exit_of(slice(position, position + 1) if position >= 0 else slice(0))
        loss = self.loss + 0.5 * float(np.vdot(targets, targets))
        others = np.arange(position + 1, len(self))
        more = self.basis.exits()[0][others]
        for _ in range(2):  # nearly parallel, where two columns are nearly equal
            more = more - (more @ turns.T) @ turns
            more /= np.sqrt(squared_row_norms(more))[:, None]
        more_targets = more @ self.basis.targets
        return _Leaving(turns, targets, loss, others, more, more_targets, loss + 0.5 * squared_row_norms(more_targets))


class FailureGroups(GroupActiveSet, FailureRows):
    """Active set of groups that may fail, each as a whole."""

    def changes(self, *, exchange: bool) -> Iterator[Changes]:
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
        spans = [self._span(position) for position in positions]
        rows = np.array([row for span in spans for row in range(span.start, span.stop)], dtype=np.intp)
        turns, targets = self.basis.exit_of(rows)
        return self.loss + 0.5 * float(np.vdot(targets, targets)), self._gains_without(turns, turns @ lines, targets)


def make_failure_set(problem: LeastSquares, units: Iterable[int] = (), penalty: RowPenalty | None = None) -> FailureRows:
    """Return an active set of the given units, and of all that is included, whose units may fail.

    Examples
    --------
    >>> make_failure_set(LeastSquares(np.eye(4)[:, :3], np.eye(4)), [1]).worst_loss()
    1.5
    """
    kind = FailureGroups if penalty is not None and penalty.has_groups else FailureRows
    return kind(problem, units, penalty)
