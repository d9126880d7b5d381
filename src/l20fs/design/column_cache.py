"""Cache of columns fetched in batches from an out-of-core matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from l20fs.blocks import format_bytes
from l20fs.typing import Array

#: Columns are fetched in multiples of this number: a pass for so many costs little more than for one. Fits that share their
#: passes fetch more, since each waits for the passes of all.
AT_ONCE, AT_ONCE_SHARED = 16, 32


class ColumnCache:
    """Cache of columns of a matrix, or of rows of its Gram matrix, within a memory limit.

    Parameters
    ----------
    n_lines, length : int
        Number and length of the columns.
    budget : int
        Size of the cache in bytes.
    fetch : callable
        Called with an array of features; returns their columns, stacked as rows, in float64. Takes a pass over X.
    all_at_once : bool
        Whether the first request fetches all columns.
    at_once : int
        Columns are fetched in multiples of this number.

    Examples
    --------
    >>> lines = ColumnCache(3, 3, 2**10, lambda rows: np.eye(3)[rows])
    >>> lines.combined(np.array([0, 2]), np.array([[5.0, 7.0]]))
    array([[5., 0., 7.]])
    """

    def __init__(
        self,
        n_lines: int,
        length: int,
        budget: int,
        fetch: Callable[[Array], Array],
        *,
        all_at_once: bool = False,
        at_once: int = AT_ONCE,
    ) -> None:
        self.n_lines, self.length, self.budget = n_lines, length, budget
        self._fetch, self._at_once = fetch, at_once
        self._all_at_once = all_at_once and n_lines <= self.most
        self._batches: dict[int, Array] = {}  # by number: the older, the lower
        self._batch_of = np.full(n_lines, -1)
        self._place = np.zeros(n_lines, dtype=np.intp)
        self._n_fetched = 0

    @property
    def most(self) -> int:
        """Maximum number of columns in the cache."""
        return max(1, self.budget // (8 * self.length))

    @property
    def n_held(self) -> int:
        """Number of columns in the cache."""
        return sum(len(lines) for lines in self._batches.values())

    def gathered(self, rows: Array, likely: Callable[[], Array] | None = None) -> Array:
        """Return columns stacked as rows.

        ``likely`` returns a number per feature: those with the largest numbers are fetched together with the missing ones.
        """
        self._provide(rows, likely)
        found = np.empty((len(rows), self.length))
        for batch, is_in in self._by_batch(rows):
            found[is_in] = self._batches[batch][self._place[rows[is_in]]]
        return found

    def combined(self, rows: Array, values: Array, likely: Callable[[], Array] | None = None) -> Array:
        """Return ``values @ columns`` of the features ``rows``, (n_values, length)."""
        self._provide(rows, likely)
        found = np.zeros((len(values), self.length))
        for batch, is_in in self._by_batch(rows):
            lines, places = self._batches[batch], self._place[rows[is_in]]
            if 2 * len(places) < len(lines):
                found += values[:, is_in] @ lines[places]
            else:  # a product with the whole batch is cheaper than a copy of most of it
                weights = np.zeros((len(values), len(lines)))
                weights[:, places] = values[:, is_in]
                found += weights @ lines
        return found

    def _by_batch(self, rows: Array) -> list[tuple[int, Array]]:
        batch_of = self._batch_of[rows]
        return [(int(batch), batch_of == batch) for batch in np.unique(batch_of)]

    def _provide(self, rows: Array, likely: Callable[[], Array] | None) -> None:
        """Fetch the missing columns, together with those likely to be needed next."""
        missing = rows[self._batch_of[rows] < 0]
        if not len(missing):
            return
        if len(rows) > self.most:
            raise MemoryError(
                f"{len(rows)} features take {format_bytes(8.0 * len(rows) * self.length)} besides the blocks of X, but the "
                f"cache may take {format_bytes(self.budget)}. Select fewer features, or raise max_memory."
            )
        wanted = np.arange(self.n_lines) if self._all_at_once else np.append(missing, self._next(rows, len(missing), likely))
        self._make_room(rows, len(wanted))
        self._batches[self._n_fetched] = self._fetch(wanted)
        self._batch_of[wanted] = self._n_fetched
        self._place[wanted] = np.arange(len(wanted))
        self._n_fetched += 1

    def _next(self, rows: Array, n_missing: int, likely: Callable[[], Array] | None) -> Array:
        """Return the likeliest features that are not cached, to fill up the batch."""
        n_more = min(-n_missing % self._at_once, self.n_lines, self.most - len(rows))
        if likely is None or n_more <= 0:
            return np.empty(0, dtype=np.intp)
        ranks = np.where(self._batch_of < 0, likely(), 0.0)
        ranks[rows] = 0.0
        best = np.sort(np.argpartition(-ranks, n_more - 1)[:n_more])
        return best[ranks[best] > 0.0]

    def _make_room(self, rows: Array, n_new: int) -> None:
        """Evict the oldest columns that are not needed: whole batches first, then parts of the others."""
        needed = np.bincount(self._batch_of[rows] + 1, minlength=self._n_fetched + 1)[1:] > 0
        for batch in sorted(self._batches, key=lambda batch: (needed[batch], batch)):
            if self.n_held + n_new <= self.most:
                return
            self._shrink(batch, rows[self._batch_of[rows] == batch])

    def _shrink(self, batch: int, rows: Array) -> None:
        """Keep only the columns of some features of a batch."""
        lines = self._batches.pop(batch)
        self._batch_of[self._batch_of == batch] = -1
        if len(rows):
            self._batches[batch] = lines[self._place[rows]]
            self._batch_of[rows] = batch
            self._place[rows] = np.arange(len(rows))
