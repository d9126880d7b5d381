"""Cells of samples that several fits to shared blocks use or leave out as a whole, such as the folds of a cross-validation.

What is a sum over samples is computed for each cell once: the moments of the columns, in the first pass, and rows of Gram
matrices, which are kept. That of a fit is the sum over its cells.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from l20fs.blocks import Blocks, extents
from l20fs.blocks.jobs import Job, run
from l20fs.design.blocked import BlockedMatrix
from l20fs.design.moments import Moments, measure, merge, side_by_side
from l20fs.typing import Array


class Cells:
    """Cells of samples.

    Parameters
    ----------
    cell_of : array of shape (n_samples,)
        Cell of each sample.
    weights : array of shape (n_samples,)
        Weight of each sample in the fits that use it.
    """

    def __init__(self, cell_of: Array, weights: Array) -> None:
        self.cell_of, self.weights = cell_of, weights
        self._first = np.unique(cell_of, return_index=True)[1]

    @classmethod
    def of(cls, weights: list[Array]) -> Cells | None:
        """Return the cells of the samples of some fits; None if there are more cells with samples than fits."""
        is_in = np.stack(weights) > 0.0
        patterns, cell_of = np.unique(np.packbits(is_in, axis=0).T, axis=0, return_inverse=True)
        if np.count_nonzero(patterns.any(axis=1)) > max(2, len(weights)):
            return None
        found = cls(cell_of.ravel(), np.max(weights, axis=0))
        return found if all(found.uses(vector) is not None for vector in weights) else None

    @classmethod
    def of_all(cls, n_samples: int) -> Cells:
        """Return one cell of all samples."""
        return cls(np.zeros(n_samples, dtype=np.intp), np.ones(n_samples))

    def __len__(self) -> int:
        return len(self._first)

    def uses(self, weights: Array) -> Array | None:
        """Return 1 for each cell that a fit uses, and 0 for the others; None if it uses a part of one, or other weights."""
        used = (weights[self._first] > 0.0).astype(np.float64)
        return used if np.array_equal(weights, used[self.cell_of] * self.weights) else None

    @property
    def has_weights(self) -> bool:
        """Whether some samples count more than others."""
        return bool(((self.weights != 0.0) & (self.weights != 1.0)).any())

    def of_each(self) -> list[Array]:
        """Return the weights of the samples of each cell."""
        return [np.where(self.cell_of == cell, self.weights, 0.0) for cell in range(len(self))]


class CellMoments:
    """Moments of the columns in each cell; takes a pass.

    Parameters
    ----------
    blocks : Blocks
    cells : Cells
    """

    def __init__(self, blocks: Blocks, cells: Cells) -> None:
        self.cells = cells
        spans = extents(blocks) if blocks.axis == 0 else [slice(None)] * len(extents(blocks))
        weights = [cells.weights[span] if cells.has_weights else None for span in spans]
        own = [(cells.cell_of[span], len(cells), given) for span, given in zip(spans, weights, strict=True)]
        if blocks.axis == 0:
            found = run(blocks, [Job(measure_cells, own, merge_each)])[0]
        else:
            parts = run(blocks, [Job(measure_cells, own)])[0]
            found = [side_by_side([Moments(*part) for part in of_cell]) for of_cell in zip(*parts, strict=True)]
        moments = [Moments(*each) for each in found]
        #: Moments of all samples, which count once.
        self.whole = reduce(merge, moments[: len(cells)])
        self._of_cells = moments[-len(cells) :]

    def of(self, weights: Array) -> Moments | None:
        """Return the moments of the samples of a fit; None if it does not use whole cells."""
        uses = self.cells.uses(weights)
        if uses is None or not uses.any():
            return None
        return reduce(merge, [self._of_cells[cell] for cell in np.flatnonzero(uses)])


def measure_cells(block: Any, cell_of: Array, n_cells: int, weights: Array | None) -> tuple[Any, ...]:
    """Return the moments of the samples of each cell in a block, None where there is none, and those with weights."""
    parts = [np.flatnonzero(cell_of == cell) for cell in range(n_cells)]
    blocks = [block[own] if len(own) else None for own in parts]
    found = [None if part is None else measure(part) for part in blocks]
    if weights is not None:
        found += [None if part is None else measure(part, weights[own]) for own, part in zip(parts, blocks, strict=True)]
    return tuple(found)


def merge_each(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    """Merge the moments of each cell."""
    return tuple(b if a is None else a if b is None else merge(a, b) for a, b in zip(left, right, strict=True))


class CellLines:
    """Rows of the Gram matrices of cells, which are kept.

    Parameters
    ----------
    base : BlockedMatrix
        Matrix of all samples.
    cells : Cells
    budget : int
        Bytes that the rows may take.
    """

    def __init__(self, base: BlockedMatrix, cells: Cells, budget: int) -> None:
        self.base, self.cells, self.budget = base, cells, budget
        self._placed = base.place_weights(cells.of_each())
        self._lines: dict[int, Array] = {}

    def fetching(self, rows: Array) -> tuple[dict[int, Array], Job | None]:
        """Return rows of the Gram matrices of all cells, (n_cells, n_features) for each feature, and a job for the others.

        The job returns them in the same form. None: nothing is missing.
        """
        missing = np.array([row for row in rows.tolist() if row not in self._lines], dtype=np.intp)
        held = {row: self._lines[row] for row in rows.tolist() if row in self._lines}
        if not len(missing):
            return held, None

        def keep(lines: tuple[Array, ...]) -> dict[int, Array]:
            found = {row: np.stack([of_cell[place] for of_cell in lines]) for place, row in enumerate(missing.tolist())}
            self._keep(held | found)
            return found

        return held, self.base.gram_job([missing] * len(self.cells), self._placed)._replace(finish=keep)

    def _keep(self, fetched: dict[int, Array]) -> None:
        """Keep rows, the latest ones within the memory limit."""
        self._lines |= fetched
        most = max(1, self.budget // (8 * len(self.cells) * self.base.n_features))
        for row in list(self._lines)[: max(0, len(self._lines) - most)]:
            del self._lines[row]
