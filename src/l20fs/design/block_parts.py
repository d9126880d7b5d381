"""Designs of some of the samples of a matrix in blocks that several fits share: one pass serves all of them.

A fit sees its samples as blocks of their own (:class:`PartBlocks`), whose kernels wait for those of the other fits and run
on the same read of a block. What takes most of the time is computed for all fits at once instead (:class:`PartMatrix`), from
columns centred and scaled by all samples, of which those of a part differ by a shift and a factor:

- products with vectors over the samples, stacked;
- moments of columns, and rows of Gram matrices. The samples fall into cells that every fit uses or leaves out as a whole,
  such as the folds of a cross-validation (:mod:`l20fs.design.cells`); those of a fit are the sums of those of its cells,
  each sample is multiplied once, and rows are kept for the next fit.

What fits ask for at the same time, of whatever kind, is computed in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from l20fs.blocks import Blocks, extents
from l20fs.blocks.jobs import Job, run
from l20fs.blocks.passes import Combine, Kernel, add_up
from l20fs.design.base import Design
from l20fs.design.blocked import BlockedMatrix
from l20fs.design.cells import CellLines, CellMoments, Cells
from l20fs.design.column_cache import AT_ONCE_SHARED
from l20fs.design.grouped_lines import GroupedLines
from l20fs.design.moments import Moments, measure, merge, side_by_side
from l20fs.design.parts import LINES_PER_FIT, Part, SharedSamples, held_among, moments_of_sums
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
        self._expected: list[Array] = []
        self._moments: CellMoments | None = None
        self._lines: CellLines | None = None
        self._sums: dict[tuple[Any, str], tuple[Array, Array]] = {}

    @property
    def n_at_once(self) -> int:
        return max(1, self.X.budget // 2 // (8 * LINES_PER_FIT * self.shape[1]))

    @property
    def budget_per_fit(self) -> int:
        """Bytes that each of the present fits may hold."""
        return self.X.budget // (2 * max(1, self.meeting.n_members))

    def expect(self, parts: Sequence[Array], sample_weight: Array | None = None) -> None:
        expected = []
        for rows in parts:
            weights = np.zeros(self.shape[0])
            weights[rows] = 1.0 if sample_weight is None else sample_weight[rows]
            expected.append(weights)
        if not _are_equal(expected, self._expected):
            self._expected, self._lines = expected, None

    def _make_base(self, fit_intercept: bool) -> BlockedMatrix:
        if self._moments is None:
            cells = Cells.of(self._expected) if self._expected else None
            self._moments = CellMoments(self.X, cells or Cells.of_all(self.shape[0]))
        return BaseMatrix(self.X, self._moments.whole, SampleWeights(self.shape[0], fit_intercept=fit_intercept))

    def moments_of(self, weights: Array) -> Moments | None:
        """Return the moments of the samples of a fit, if they are known."""
        return None if self._moments is None else self._moments.of(weights)

    def design(self, part: Part, scale: Scale | Array, sample_weights: SampleWeights) -> Design:
        return self._choose(PartMatrix(part, scale, sample_weights))

    def values(self, rows: Array, columns: Array | None) -> Any:
        blocks = PartBlocks(self, rows)
        return blocks if columns is None else blocks.columns(columns)

    def _answer(self, requests: list[Any]) -> list[Any]:
        """Answer requests of several fits, of all kinds, by one pass."""
        kinds = [(type(request), request.base) for request in requests]
        chosen = [[number for number, own in enumerate(kinds) if own == kind] for kind in dict.fromkeys(kinds)]
        plans: list[Plan] = [type(requests[own[0]]).plan([requests[number] for number in own]) for own in chosen]
        results = iter(run(self.X, [job for plan in plans for job in plan.jobs]))
        found: list[Any] = [None] * len(requests)
        for own, plan in zip(chosen, plans, strict=True):
            answers = plan.finish([next(results) for _ in plan.jobs])
            for number, answer in zip(own, answers, strict=True):
                found[number] = answer
        return found

    def plan_sums(self, base: BlockedMatrix, weights: list[Array]) -> Plan:
        """Plan the sums, and the sums of squares, of the columns of a base for each vector of weights."""
        keys = [(base, digest(vector)) for vector in weights]
        missing = {key: vector for key, vector in zip(keys, weights, strict=True) if key not in self._sums}

        def finish(results: list[Any]) -> list[tuple[Array, Array]]:
            for found in results:
                self._sums |= dict(zip(missing, zip(*found, strict=True), strict=True))
            return [self._sums[key] for key in keys]

        return Plan([base.sums_job(np.stack(list(missing.values())))] if missing else [], finish)

    def plan_gram_lines(self, base: BlockedMatrix, asked: list[tuple[Array, Array]]) -> Plan:
        """Plan rows of the Gram matrix of a base for each pair of features and weights of the samples."""
        lines = self._lines_of_cells(base, [weights for _, weights in asked])
        uses = [None if lines is None else lines.cells.uses(weights) for _, weights in asked]
        of_cells = [rows for (rows, _), used in zip(asked, uses, strict=True) if used is not None]
        alone = [pair for pair, used in zip(asked, uses, strict=True) if used is None]
        held, fetching = ({}, None) if lines is None or not of_cells else lines.fetching(np.unique(np.concatenate(of_cells)))
        jobs = [] if fetching is None else [fetching]
        if alone:
            placed = base.place_weights([weights for _, weights in alone])
            jobs.append(base.gram_job([rows for rows, _ in alone], placed))

        def finish(results: list[Any]) -> list[Array]:
            found = held if fetching is None else held | results[0]
            own = iter(results[-1] if alone else ())
            return [
                next(own) if used is None else np.stack([used @ found[row] for row in rows.tolist()])
                for (rows, _), used in zip(asked, uses, strict=True)
            ]

        return Plan(jobs, finish)

    def _lines_of_cells(self, base: BlockedMatrix, weights: list[Array]) -> CellLines | None:
        """Return the kept rows of the cells that the present fits, and those that are expected, consist of, if any."""
        held = self._lines
        if held is None or held.base is not base or all(held.cells.uses(vector) is None for vector in weights):
            cells = Cells.of([*self._expected, *weights])
            if cells is not None:
                self._lines = CellLines(base, cells, int(SHARE_FOR_CELLS * self.X.budget))
        return self._lines


def _are_equal(left: list[Array], right: list[Array]) -> bool:
    return len(left) == len(right) and all(map(np.array_equal, left, right))


class Plan(NamedTuple):
    """Jobs whose results ``finish`` turns into one answer per request."""

    jobs: list[Job]
    finish: Callable[[list[Any]], list[Any]]


class Passing(NamedTuple):
    """Ask for a pass over the samples of a part: a kernel on its blocks, whose results are combined, or are a list."""

    base: SharedBlocks
    blocks: PartBlocks
    kernel: Kernel
    own: Sequence[tuple[Any, ...]]
    which: Sequence[int]
    combine: Combine | None

    @staticmethod
    def plan(requests: list[Passing]) -> Plan:
        """Plan a job for each request."""
        return Plan([request.job() for request in requests], list)

    def job(self) -> Job:
        """Return the job on the blocks of all samples."""
        own: list[tuple[Any, ...]] = [()] * len(extents(self.base.X))
        homes = [self.blocks.homes[place] for place in self.which]
        for place, home in zip(self.which, homes, strict=True):
            own[home] = (self.blocks.local[place], self.kernel, *self.own[place])
        return Job(on_samples, own, self.combine, homes)


def on_samples(block: Any, samples: Array | None, kernel: Kernel, *given: Any) -> Any:
    """Run a kernel on some samples of a block; None: on all."""
    return kernel(block if samples is None else block[samples], *given)


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
        #: Columns that were read before, and their numbers.
        self.held: tuple[Array, Any] | None = None
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

    def columns(self, columns: Array) -> Any:
        """Return a few columns in memory, as :class:`Blocks`; those that are held need no pass."""
        held = held_among(self.held, columns)
        return super().columns(columns) if held is None else held

    def keep(self, value: Any) -> Any:
        return self._shared.X.keep(value)

    def send(self, value: Any) -> Any:
        return self._shared.X.send(value)

    def each(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], which: Sequence[int] | None = None) -> list[Any]:
        which = range(len(own)) if which is None else which
        return self._shared.meeting.ask(Passing(self._shared, self, kernel, own, which, None)) if len(which) else []

    def total(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], combine: Combine = add_up) -> Any:
        return self._shared.meeting.ask(Passing(self._shared, self, kernel, own, range(len(own)), combine))


class Products(NamedTuple):
    """Ask for ``vectors @ Z[rows]`` of the columns from ``start`` to ``stop`` of a base Z, of vectors over some samples."""

    base: BlockedMatrix
    vectors: Array
    rows: Array
    start: int
    stop: int

    @staticmethod
    def plan(requests: list[Products]) -> Plan:
        """Plan the products of all vectors, stacked in one, or from sums over samples that have the same values in them."""
        base = requests[0].base
        is_plain = base.blocks.axis == 0 and base.has_plain_lines
        grouped = GroupedLines.of([(own.vectors, own.rows) for own in requests], base.n_samples) if is_plain else None
        if grouped is not None:
            return Plan([base.group_job(grouped.group_of, len(grouped), grouped.masks)], partial(grouped.products, base))
        start, stop = min(request.start for request in requests), max(request.stop for request in requests)
        ends = np.cumsum([0, *(len(request.vectors) for request in requests)])
        stacked = np.zeros((ends[-1], base.n_samples), dtype=np.result_type(*(request.vectors for request in requests)))
        for request, end, next_end in zip(requests, ends[:-1], ends[1:], strict=True):
            stacked[end:next_end, request.rows] = request.vectors

        def finish(results: list[Any]) -> list[Array]:
            parts = np.split(results[0], ends[1:-1])
            return [part[:, own.start - start : own.stop - start] for part, own in zip(parts, requests, strict=True)]

        return Plan([base.product_job(stacked, start, stop)], finish)


class Sums(NamedTuple):
    """Ask for the weighted sums and sums of squares of the columns of a base."""

    base: BlockedMatrix
    shared: SharedBlocks
    weights: Array

    @staticmethod
    def plan(requests: list[Sums]) -> Plan:
        """Plan the sums of all weights."""
        return requests[0].shared.plan_sums(requests[0].base, [request.weights for request in requests])


class GramLines(NamedTuple):
    """Ask for rows of the Gram matrix of a base, with weights of the samples."""

    base: BlockedMatrix
    shared: SharedBlocks
    rows: Array
    weights: Array

    @staticmethod
    def plan(requests: list[GramLines]) -> Plan:
        """Plan the rows of all fits."""
        asked = [(request.rows, request.weights) for request in requests]
        return requests[0].shared.plan_gram_lines(requests[0].base, asked)


class BaseMatrix(BlockedMatrix):
    """Centred and scaled matrix of all samples, whose moments are known."""

    def __init__(self, blocks: Blocks, found: Moments, sample_weights: SampleWeights) -> None:
        self._found = found
        super().__init__(blocks, "zscore", sample_weights)

    def _moments(self) -> Moments:
        return self._checked(self._found)


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
        known = self._shared.moments_of(self._spread_weights)
        if known is not None:
            return self._checked(known)
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
        products = self._shared.meeting.ask(Products(base, vectors, self._rows, own.start, own.stop))
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
        feature_shift = shift[rows]
        if self._base.has_plain_lines:
            feature_shift = feature_shift + (self._base.mean / self._base.column_values.scale)[rows]
        lines -= np.outer(self.sample_weights.total * feature_shift, shift)
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
