"""Designs of some of the samples of a matrix in blocks that several fits share: one pass serves all of them.

A fit sees its samples as blocks of their own (:class:`PartBlocks`), whose kernels wait for those of the other fits and run
on the same read of a block. What takes most of the time is computed for all fits at once instead (:class:`PartMatrix`), from
columns centred and scaled by all samples, of which those of a part differ by a shift and a factor:

- products with vectors over the samples, stacked;
- rows of Gram matrices. The samples fall into cells that every fit uses or leaves out as a whole, such as the folds of a
  cross-validation; the rows of a fit are the sums of those of its cells, each sample is multiplied once, and they are kept
  for the next fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add
from typing import Any, NamedTuple

import numpy as np

from l20fs.blocks import Blocks, extents
from l20fs.blocks.passes import Combine, Kernel
from l20fs.design.base import Design
from l20fs.design.blocked import BlockedMatrix
from l20fs.design.column_cache import AT_ONCE_SHARED
from l20fs.design.moments import Moments, measure, merge, side_by_side
from l20fs.design.parts import LINES_PER_FIT, Part, SharedSamples, moments_of_sums
from l20fs.design.sample_weights import SampleWeights
from l20fs.storage.hashing import digest
from l20fs.typing import Array, Scale

#: Share of the memory for blocks that rows of Gram matrices may take which are kept for the next fit.
SHARE_FOR_CELLS = 0.5


class SharedBlocks(SharedSamples):
    """Shared matrix in blocks, in a file or on a cluster."""

    at_once = 2

    def __init__(self, blocks: Blocks, choose: Callable[[BlockedMatrix], Design]) -> None:
        super().__init__(blocks)
        self._choose = choose
        self.cells: Cells | None = None
        self._expected: list[Array] = []
        self._sums: dict[tuple[Any, str], tuple[Array, Array]] = {}

    @property
    def n_at_once(self) -> int:
        return max(1, self.X.budget // 2 // (8 * LINES_PER_FIT * self.shape[1]))

    @property
    def budget_per_fit(self) -> int:
        """Bytes that each of the present fits may hold."""
        return self.X.budget // (2 * max(1, self.meeting.n_members))

    def expect(self, parts: Sequence[Array]) -> None:
        self._expected = []
        for rows in parts:
            mask = np.zeros(self.shape[0])
            mask[rows] = 1.0
            self._expected.append(mask)

    def _make_base(self, fit_intercept: bool) -> BlockedMatrix:
        return BlockedMatrix(self.X, "zscore", SampleWeights(self.shape[0], fit_intercept=fit_intercept))

    def design(self, part: Part, scale: Scale | Array, sample_weights: SampleWeights) -> Design:
        return self._choose(PartMatrix(part, scale, sample_weights))

    def values(self, rows: Array, columns: Array | None) -> Any:
        blocks = PartBlocks(self, rows)
        return blocks if columns is None else blocks.columns(columns)

    def sums(self, base: BlockedMatrix, weights: list[Array]) -> list[tuple[Array, Array]]:
        """Return the sums, and the sums of squares, of the columns of a base for each vector of weights."""
        keys = [(base, digest(vector)) for vector in weights]
        everything = (base, digest(np.ones(base.n_samples)))
        self._sums.setdefault(everything, (np.zeros(base.n_features), base.columns.energy))
        missing = {key: vector for key, vector in zip(keys, weights, strict=True) if key not in self._sums}
        if missing:
            found = base.weighted_sums(np.stack(list(missing.values())))
            self._sums |= dict(zip(missing, zip(*found, strict=True), strict=True))
        return [self._sums[key] for key in keys]

    def gram_lines(self, base: BlockedMatrix, asked: list[tuple[Array, Array]]) -> list[Array]:
        """Return rows of the Gram matrix of a base for each pair of features and weights of the samples."""
        if self.cells is None or self.cells.base is not base:
            expected = [*self._expected, *(weights for _, weights in asked)]
            self.cells = Cells.of(base, expected, int(SHARE_FOR_CELLS * self.X.budget))
        uses = [self.cells.uses(weights) if self.cells is not None else None for _, weights in asked]
        of_cells = [rows for (rows, _), used in zip(asked, uses, strict=True) if used is not None]
        alone = [pair for pair, used in zip(asked, uses, strict=True) if used is None]
        fetched = self.cells.fetch(np.unique(np.concatenate(of_cells))) if self.cells is not None and of_cells else {}
        placed = base.place_weights([weights for _, weights in alone]) if alone else []
        own = iter(base.gram_lines_of([rows for rows, _ in alone], placed) if alone else ())
        return [
            next(own) if used is None else np.stack([used @ fetched[row] for row in rows.tolist()])
            for (rows, _), used in zip(asked, uses, strict=True)
        ]


class Cells:
    """Cells of samples that every fit uses or leaves out as a whole, and the rows of their Gram matrices.

    Parameters
    ----------
    base : BlockedMatrix
        Matrix of all samples.
    cell_of : array of shape (n_samples,)
        Cell of each sample.
    weights : array of shape (n_samples,)
        Weight of each sample in the fits that use it.
    budget : int
        Bytes that the rows may take.
    """

    def __init__(self, base: BlockedMatrix, cell_of: Array, weights: Array, budget: int) -> None:
        self.base, self.cell_of, self.weights, self.budget = base, cell_of, weights, budget
        self._first = np.unique(cell_of, return_index=True)[1]
        self._placed = base.place_weights([np.where(cell_of == cell, weights, 0.0) for cell in range(len(self._first))])
        self._lines: dict[int, Array] = {}

    @classmethod
    def of(cls, base: BlockedMatrix, weights: list[Array], budget: int) -> Cells | None:
        """Return the cells of the samples of some fits; None if there are more cells with samples than fits."""
        is_in = np.stack(weights) > 0.0
        patterns, cell_of = np.unique(np.packbits(is_in, axis=0).T, axis=0, return_inverse=True)
        if np.count_nonzero(patterns.any(axis=1)) > max(2, len(weights)):
            return None
        found = cls(base, cell_of.ravel(), np.max(weights, axis=0), budget)
        return found if all(found.uses(vector) is not None for vector in weights) else None

    def uses(self, weights: Array) -> Array | None:
        """Return 1 for each cell that a fit uses, and 0 for the others; None if it uses a part of one, or other weights."""
        used = (weights[self._first] > 0.0).astype(np.float64)
        return used if np.array_equal(weights, used[self.cell_of] * self.weights) else None

    def fetch(self, rows: Array) -> dict[int, Array]:
        """Return the rows of the Gram matrices of all cells, (n_cells, n_features) for each feature."""
        missing = np.array([row for row in rows.tolist() if row not in self._lines], dtype=np.intp)
        fetched = {row: self._lines[row] for row in rows.tolist() if row in self._lines}
        if len(missing):
            lines = self.base.gram_lines_of([missing] * len(self._first), self._placed)
            fetched |= {row: np.stack([of_cell[place] for of_cell in lines]) for place, row in enumerate(missing.tolist())}
            self._keep(fetched)
        return fetched

    def _keep(self, fetched: dict[int, Array]) -> None:
        """Keep rows, the latest ones within the memory limit."""
        self._lines |= fetched
        most = max(1, self.budget // (8 * len(self._first) * self.base.n_features))
        for row in list(self._lines)[: max(0, len(self._lines) - most)]:
            del self._lines[row]


class Passing(NamedTuple):
    """Ask for a pass over the samples of a part: a kernel on its blocks, whose results are combined, or are a list."""

    base: SharedBlocks
    blocks: PartBlocks
    kernel: Kernel
    own: Sequence[tuple[Any, ...]]
    which: Sequence[int]
    combine: Combine | None

    @staticmethod
    def answer(requests: list[Passing]) -> list[Any]:
        """Run all kernels in one pass, or in two where some results are combined and others are not."""
        found: list[Any] = [None] * len(requests)
        for is_list in (False, True):
            numbers = [number for number, request in enumerate(requests) if (request.combine is None) == is_list]
            if numbers:
                results = _pass([requests[number] for number in numbers], is_list=is_list)
                for number, result in zip(numbers, results, strict=True):
                    found[number] = result
        return found


def _pass(requests: list[Passing], *, is_list: bool) -> list[Any]:
    """Run the kernels of several requests on each block as it is read."""
    blocks = requests[0].base.X
    jobs: list[list[Any]] = [[None] * len(requests) for _ in extents(blocks)]
    own: list[list[Any]] = [[] for _ in jobs]
    for number, request in enumerate(requests):
        for place in request.which:
            home, given = request.blocks.homes[place], request.own[place]
            jobs[home][number] = (request.kernel, len(given))
            own[home] += [request.blocks.local[place], *given]
    arguments = [(work, *given) for work, given in zip(jobs, own, strict=True)]
    if not is_list:
        return list(blocks.total(several, arguments, Combined([request.combine for request in requests])))
    which = [home for home, work in enumerate(jobs) if any(work)]
    by_home = dict(zip(which, blocks.each(several, arguments, which), strict=True))
    return [
        [by_home[request.blocks.homes[place]][number] for place in request.which] for number, request in enumerate(requests)
    ]


def several(block: Any, jobs: list[tuple[Kernel, int] | None], *arguments: Any) -> tuple[Any, ...]:
    """Run several kernels, each on some samples of a block and with its number of arguments; None where there is none."""
    results: list[Any] = []
    start = 0
    for job in jobs:
        if job is None:
            results.append(None)
            continue
        kernel, n_arguments = job
        samples, given = arguments[start], arguments[start + 1 : start + 1 + n_arguments]
        results.append(kernel(block if samples is None else block[samples], *given))
        start += 1 + n_arguments
    return tuple(results)


class Combined:
    """Combination of the results of several kernels, each by a function of its own."""

    __name__ = "combined"

    def __init__(self, combines: list[Any]) -> None:
        self.combines = combines

    def __call__(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        together = zip(self.combines, left, right, strict=True)
        return tuple(a if b is None else b if a is None else combine(a, b) for combine, a, b in together)


class PartBlocks(Blocks):
    """Some samples of shared blocks, in increasing order, whose passes are those of all fits."""

    def __init__(self, shared: SharedBlocks, rows: Array) -> None:
        if np.any(np.diff(rows) <= 0):
            raise ValueError(
                "Samples of a matrix in blocks must be indexed in increasing order, each of them once. Sort the indices; "
                "what is to count twice has the sample_weight 2."
            )
        whole = shared.X
        self._shared = shared
        self.shape, self.dtype, self.axis = (len(rows), whole.shape[1]), whole.dtype, whole.axis
        self.is_sparse, self.traffic = whole.is_sparse, whole.traffic
        self.budget = shared.budget_per_fit
        self.name = whole.name if len(rows) == whole.shape[0] else f"{len(rows)} samples of {whole.name}"
        if self.axis == 1:
            self.edges, self.homes = whole.edges, list(range(len(whole.edges) - 1))
            is_all = len(rows) == whole.shape[0]
            self.local = [None if is_all else whole.keep(rows)] * len(self.homes)
            return
        ends = np.searchsorted(rows, whole.edges)
        self.homes = np.flatnonzero(np.diff(ends)).tolist()
        self.edges = np.unique(ends)
        own = [rows[ends[home] : ends[home + 1]] - whole.edges[home] for home in self.homes]
        sizes = np.diff(whole.edges)
        self.local = [None if len(r) == sizes[h] else whole.keep(r) for h, r in zip(self.homes, own, strict=True)]

    def keep(self, value: Any) -> Any:
        return self._shared.X.keep(value)

    def send(self, value: Any) -> Any:
        return self._shared.X.send(value)

    def each(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], which: Sequence[int] | None = None) -> list[Any]:
        which = range(len(own)) if which is None else which
        return self._shared.meeting.ask(Passing(self._shared, self, kernel, own, which, None)) if len(which) else []

    def total(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], combine: Combine = add) -> Any:
        return self._shared.meeting.ask(Passing(self._shared, self, kernel, own, range(len(own)), combine))


class Products(NamedTuple):
    """Ask for ``vectors @ Z`` of the columns from ``start`` to ``stop`` of a base Z, of vectors over all samples."""

    base: BlockedMatrix
    vectors: Array
    start: int
    stop: int

    @staticmethod
    def answer(requests: list[Products]) -> list[Array]:
        """Return the products of all vectors, stacked in one."""
        start, stop = min(request.start for request in requests), max(request.stop for request in requests)
        products = requests[0].base.multiply(np.concatenate([request.vectors for request in requests]), start, stop)
        ends = np.cumsum([len(request.vectors) for request in requests])
        parts = np.split(products, ends[:-1])
        return [part[:, own.start - start : own.stop - start] for part, own in zip(parts, requests, strict=True)]


class Sums(NamedTuple):
    """Ask for the weighted sums and sums of squares of the columns of a base."""

    base: BlockedMatrix
    shared: SharedBlocks
    weights: Array

    @staticmethod
    def answer(requests: list[Sums]) -> list[tuple[Array, Array]]:
        """Return the sums of all weights, from one pass."""
        return requests[0].shared.sums(requests[0].base, [request.weights for request in requests])


class GramLines(NamedTuple):
    """Ask for rows of the Gram matrix of a base, with weights of the samples."""

    base: BlockedMatrix
    shared: SharedBlocks
    rows: Array
    weights: Array

    @staticmethod
    def answer(requests: list[GramLines]) -> list[Array]:
        """Return the rows of all fits, from one pass."""
        asked = [(request.rows, request.weights) for request in requests]
        return requests[0].shared.gram_lines(requests[0].base, asked)


class PartMatrix(BlockedMatrix):
    """Centred and scaled matrix of some samples of shared blocks, by the base matrix of all samples."""

    at_once = AT_ONCE_SHARED

    def __init__(self, part: Part, scale: Scale | Array, sample_weights: SampleWeights) -> None:
        assert isinstance(part.shared, SharedBlocks)
        self._shared, self._rows = part.shared, part.rows
        self._base = part.shared.base(sample_weights.fit_intercept)
        self._spread_weights = np.zeros(self._base.n_samples)
        self._spread_weights[part.rows] = 1.0 if sample_weights.values is None else sample_weights.values
        super().__init__(PartBlocks(part.shared, part.rows), scale, sample_weights)

    def _moments(self) -> Moments:
        base, weights = self._base, self.sample_weights
        sums, squares = self._shared.meeting.ask(Sums(base, self._shared, self._spread_weights))
        found, is_clear = moments_of_sums(sums, squares, weights, base)
        unclear = np.flatnonzero(~is_clear)
        if len(unclear):
            exact = self._exact_moments(unclear)
            exact = exact if weights.fit_intercept else exact.about_zero
            for values, measured in zip(found[1:], exact[1:], strict=True):
                values[unclear] = measured
        return found

    def _exact_moments(self, columns: Array) -> Moments:
        """Measure a few columns; takes a pass."""
        if self.blocks.axis == 0:
            return Moments(*self.blocks.total(measure_columns, [(own, columns) for own in self._weights], merge))
        which, places, _ = self.located(columns)
        own = self.spread(which, [(self._weights[number], places[number]) for number in which])
        return side_by_side([Moments(*part) for part in self.blocks.each(measure_columns, own, which)])

    def multiply(self, vectors: Array, start: int = 0, stop: int | None = None) -> Array:
        base, own = self._base, slice(start, self.n_features if stop is None else stop)
        lines = np.zeros((len(vectors), base.n_samples), dtype=vectors.dtype)
        lines[:, self._rows] = vectors
        products = self._shared.meeting.ask(Products(base, lines, own.start, own.stop))
        factor, shift = self._steps
        products *= factor[own]
        products -= np.outer(vectors.sum(axis=1, dtype=np.float64), (shift * factor)[own])
        return products

    @property
    def _steps(self) -> tuple[Array, Array]:
        """Factor, and shift before it, from columns of the base to those of this matrix; the factor is 0 if constant."""
        base, own = self._base, self.column_values
        shift = ((own.mean - base.mean) + (own.rest - base.rest)) / base.scale
        return base.scale / own.scale, shift

    def gram_lines(self, rows: Array) -> Array:
        if self.blocks.axis == 1:
            return super().gram_lines(rows)
        lines = self._shared.meeting.ask(GramLines(self._base, self._shared, rows, self._spread_weights))
        factor, shift = self._steps
        lines -= np.outer(self.sample_weights.total * shift[rows], shift)
        lines *= factor
        lines *= factor[rows, np.newaxis]
        return lines if self.sample_weights.basis is None else lines - self._shares[:, rows].T @ self._shares

    def long_columns(self, residual: Array, threshold: float) -> tuple[Array, Array]:
        squares = self.squared_lengths(residual)
        rows = np.flatnonzero(squares > threshold * threshold)
        return rows, squares[rows]

    def squared_lengths(self, residual: Array) -> Array:
        found = self.products(residual)
        return np.einsum("ij,ij->j", found, found)


def measure_columns(block: Any, weights: Array | None, places: Array) -> Moments:
    """Return the moments of a few columns of a block."""
    return measure(block[:, places], weights)
