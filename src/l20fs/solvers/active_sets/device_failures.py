"""Active sets beside an X on a device that know the loss of every panel one change away when its worst unit fails.

The losses are those of :mod:`~l20fs.solvers.active_sets.failures`. They are compared where X is, and only the few changes
that may be the best ones come to the host.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from l20fs.solvers.active_sets.close_columns import CloseColumns, measure_columns
from l20fs.solvers.active_sets.device_rows import DeviceGroups, DeviceRows, gains_there, gains_without_there
from l20fs.solvers.active_sets.failures import Changes, FailureGroups, FailureRows, Leaving, batches
from l20fs.solvers.active_sets.rows import NO_ROWS
from l20fs.typing import Array


class _Part(NamedTuple):
    """Some features on the device: images of the basis, products, room and needed room, and their places."""

    lines: Any
    products: Any
    room: Any
    needed_room: Any
    places: Any

    def at(self, xp: Any, chosen: Any) -> _Part:
        """Return some of the features."""
        return _Part(*(xp.take(values, chosen, axis=-1) for values in self))


class DeviceFailureRows(DeviceRows, FailureRows):
    """Active set of rows that may fail, beside an X on a device.

    Examples
    --------
    >>> import array_api_strict
    >>> from l20fs.objective.least_squares import LeastSquares
    >>> problem = LeastSquares(array_api_strict.asarray(np.eye(4)[:, :3]), np.eye(4))
    >>> DeviceFailureRows(problem, [1, 2]).failure_losses().round(6)
    array([1., 1.])
    """

    def changes(self, *, exchange: bool, most: float = math.inf) -> Iterator[Changes]:
        xp, place = self._place.xp, self._place
        positions = np.arange(self.n_fixed, len(self)) if exchange else np.array([-1])
        leaving = [self._leave(int(position)) for position in positions]
        slack = self.problem.tie * self.problem.null_loss
        if exchange:
            self._is_dependent[:] = False  # on all rows, but perhaps not on all but one
            close = measure_columns(self.problem, self.basis, self.residual, self._close_rows())
        else:
            close = self._close_columns()
        pulled = self._design.products(self.basis.lines) if len(self) else None
        for block in self._parts(max(1, len(self))):
            part, rows = self._part(block, pulled, close)
            found: list[tuple[Any, Any, Any] | None] = []
            for left in leaving:
                judged = self._judge(part, left, most) if left.loss <= most else None
                if judged is not None:
                    most = min(most, self._lowest(judged[1]) + slack)
                found.append(judged)
            few = [None if one is None else self._few(one, most) for one in found]
            least = min((self._lowest(one[2]) for one in few if one is not None), default=math.inf)
            triples = [None if one is None else self._few(one, least + slack, by=2) for one in few]
            here = [np.empty((3, 0)) if one is None else place.fetch(_stacked(xp, one)) for one in triples]
            yield _changes(positions, here, lambda places, b=block, r=rows: _units(places, b, r))

    def _part(self, block: slice, pulled: Any, close: CloseColumns) -> tuple[_Part, Array]:
        """Return a block of the features, with what is close among them measured and put behind; and which these are."""
        xp, place, n_here = self._place.xp, self._place, block.stop - block.start
        if pulled is None:
            lines = xp.zeros((0, n_here), dtype=xp.float64, device=place.device)
        else:
            lines = xp.astype(pulled[:, block], xp.float64)
        needed_room = xp.asarray(self._needed_room[block], copy=True)
        places = xp.arange(n_here, dtype=xp.float64, device=place.device)
        part = _Part(lines, self.products[:, block], self.problem.ridge + self.energies[block], needed_room, places)
        are_here = (close.rows >= block.start) & (close.rows < block.stop)
        if not are_here.any():
            return part, NO_ROWS
        rows = close.rows[are_here]
        part = part._replace(needed_room=self._with(needed_room, rows - block.start, np.inf))
        measured = (
            close.coordinates[are_here].T,
            close.products[:, are_here],
            close.room[are_here],
            self._smallest_room[rows],
            n_here + np.arange(len(rows), dtype=np.float64),
        )
        return _Part(*(xp.concat([one, place.send(two)], axis=-1) for one, two in zip(part, measured, strict=True))), rows

    def _judge(self, part: _Part, left: Leaving, most: float) -> tuple[Any, Any, Any]:
        """Return the places of features, r and h after they enter; some with an r above ``most`` are left out."""
        xp, send = self._place.xp, self._place.send
        images = send(left.turns) @ part.lines
        room = part.room + xp.sum(images * images, axis=0)
        part = part._replace(products=part.products + send(left.targets.T) @ images, room=room)
        worst = xp.where(room > part.needed_room, xp.full_like(room, float(left.loss)), xp.full_like(room, np.inf))
        for batch in batches(len(left.more_losses)):
            targets, losses = left.more_targets[batch], left.more_losses[batch, None]
            lengths = np.einsum("ij,ij->i", targets, targets)[:, None]
            gains = gains_without_there(
                xp, send(left.more_turns[batch]) @ part.lines, send(targets), send(lengths), *part[1:4]
            )
            worst = xp.maximum(worst, xp.max(send(losses) - 0.5 * gains, axis=0))
            kept = xp.nonzero(worst <= float(most))[0]
            if kept.shape[0] < worst.shape[0]:
                part, worst = part.at(xp, kept), xp.take(worst, kept)
        return part.places, worst, float(left.loss) - gains_there(xp, part.products, part.room, part.needed_room)

    def _lowest(self, values: Any) -> float:
        return float(self._place.xp.min(values)) if values.shape[0] else math.inf

    def _few(self, found: tuple[Any, Any, Any], most: float, by: int = 1) -> tuple[Any, Any, Any]:
        """Return those of some changes with an r, or an h, of at most ``most``."""
        xp = self._place.xp
        chosen = xp.nonzero(found[by] <= float(most))[0]
        places, worst, losses = (xp.take(values, chosen) for values in found)
        return places, worst, losses


class DeviceFailureGroups(DeviceGroups, FailureGroups):
    """Active set of groups that may fail, each as a whole, beside an X on a device."""

    def changes(self, *, exchange: bool, most: float = math.inf) -> Iterator[Changes]:
        xp, place, k = self._place.xp, self._place, len(self)
        leaving = list(range(k)) if exchange else [-1]
        lines = self._design.products(self.basis.lines) if self.basis.size else None
        losses, worst = [], []
        for position in leaving:
            base, gains = self._loss_without(lines, [position] if exchange else [])
            losses.append(xp.where(gains > self._negligible, base - gains, xp.full_like(gains, np.inf)))
            worst.append(xp.full_like(gains, base))
        for number, position in enumerate(leaving):
            for other in range(position + 1, k):
                base, gains = self._loss_without(lines, [position, other] if exchange else [other])
                for line in (number, other) if exchange else (number,):
                    worst[line] = xp.maximum(worst[line], base - gains)
        first = self.n_fixed if exchange else 0
        slack = self.problem.tie * self.problem.null_loss
        found = []
        for loss, line in zip(losses[first:], worst[first:], strict=True):
            line = xp.where(loss == np.inf, xp.full_like(line, np.inf), line)
            most = min(most, float(xp.min(line)) + slack)
            found.append((line, loss))
        least = min(float(xp.min(xp.where(line <= most, loss, xp.full_like(loss, np.inf)))) for line, loss in found)
        here = []
        for line, loss in found:
            chosen = xp.nonzero((line <= most) & (loss <= least + slack))[0]
            triple = (xp.astype(chosen, xp.float64), xp.take(line, chosen), xp.take(loss, chosen))
            here.append(place.fetch(_stacked(xp, triple)))
        positions = np.arange(first, k) if exchange else np.array([-1])
        yield _changes(positions, here, lambda places: places)

    def _loss_without(self, lines: Any, positions: list[int]) -> tuple[float, Any]:
        turns, targets = self._exits(positions)
        images = None if lines is None or not len(turns) else self._place.send(turns, lines.dtype) @ lines
        base = float(self.loss + 0.5 * float(np.vdot(targets, targets)))
        return base, self._gains_without(turns, images, targets)


def _stacked(xp: Any, triple: tuple[Any, Any, Any]) -> Any:
    return xp.stack(list(triple))


def _units(places: Array, block: slice, rows: Array) -> Array:
    """Return the features at places of a part, of which some rows come behind."""
    n_here = block.stop - block.start
    behind = np.concatenate([rows, [0]])[np.clip(places - n_here, 0, len(rows))]
    return np.where(places < n_here, block.start + places, behind)


def _changes(positions: Array, here: list[Array], units_of: Any) -> Changes:
    """Return changes on the host from places, r and h of each line."""
    units = [units_of(found[0].astype(np.intp)) for found in here]
    every = np.unique(np.concatenate([NO_ROWS, *units]))
    worst, losses = np.full((2, len(positions), len(every)), math.inf)
    for number, (found, own) in enumerate(zip(here, units, strict=True)):
        places = np.searchsorted(every, own)
        worst[number, places], losses[number, places] = found[1], found[2]
    return Changes(positions, every, worst, losses)
