"""Designs of some of the samples of an X that several fits share.

The samples of a fold, or a half, are a vector of weights over the samples of one X, 0 for those that are left out. Their X~
is ``(B - 1 centre') * factor``, where B is what one base design of all samples multiplies: nothing of X is copied.
Fits that run side by side ask a :class:`~l20fs.design.meeting.Meeting` for their products, which are computed at once: one
product of B with the lines of all fits.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

from l20fs.blocks import is_blocks, memory_limit
from l20fs.design.adjustment import SMALL_SHARE, explained_energy, left_over, project_out, sum_squares
from l20fs.design.base import Design, Likely, Pull
from l20fs.design.column_scale import ColumnScale
from l20fs.design.meeting import Meeting, computed_once
from l20fs.design.moments import Moments, measure
from l20fs.design.sample_weights import SampleWeights
from l20fs.design.tiles import blocks
from l20fs.typing import Array, Scale

#: A column with a smaller share of its sum of squares about the mean of a part is measured again, without cancellation.
CLEAR_SHARE = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-2}

#: Fits in memory that run side by side: more would not be faster, and progress is told when all of them are done.
MOST_AT_ONCE = 10

#: Share of the memory limit for fits that run side by side.
SHARE_FOR_FITS = 0.25

#: Vectors over the features that a fit holds at a time, in float64: products with the lines of a batch, and those it keeps.
LINES_PER_FIT = 96


@cache
def threads_of_blas() -> ThreadpoolController:
    """Return what sets the number of threads of BLAS; it looks through all libraries that are loaded, once."""
    return ThreadpoolController().select(user_api="blas")


class Part:
    """Some samples of a shared X, which stay where they are; a fit takes it as its X.

    ``part[samples]`` are some of them, ``part[:, columns]`` a few columns in memory, ``part[samples, columns]`` both;
    one column by its number is dense.
    """

    ndim = 2

    def __init__(self, shared: SharedSamples, rows: Array) -> None:
        self.shared, self.rows = shared, rows
        self.shape = (len(rows), shared.shape[1])
        #: Whether the ranking is all that the fit is for.
        self.for_ranking = False
        self.dtype = shared.dtype
        self._held: tuple[Array, Any] | None = None

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return Part(self.shared, self.rows[key])
        rows, columns = self.rows[key[0]], np.arange(self.shape[1])[key[1]]
        held = held_among(self._held, columns) if columns.ndim and len(rows) == len(self.rows) else None
        if held is not None:
            return held
        found = self.shared.values(rows, np.atleast_1d(columns))
        if columns.ndim:
            return found
        return (found.toarray() if sp.issparse(found) else found)[:, 0]  # SciPy before 1.15 has no sparse vectors

    @property
    def is_whole(self) -> bool:
        """Whether these are all samples, in order."""
        return np.array_equal(self.rows, np.arange(self.shared.shape[0]))

    @property
    def is_in_blocks(self) -> bool:
        """Whether X comes in blocks."""
        return is_blocks(self.shared.X)

    @property
    def has_short_columns(self) -> bool:
        """Whether X is split along its features, of which there are more than samples here."""
        return self.is_in_blocks and self.shared.X.axis == 1 and self.shape[0] < self.shape[1]

    def expect(self, parts: Sequence[Array], sample_weight: Array | None = None) -> None:
        """Announce parts of these samples that later fits see, with weights of these samples."""
        if self.shared.meeting.is_member:
            return
        weights = None
        if sample_weight is not None:
            weights = np.zeros(self.shared.shape[0])
            weights[self.rows] = sample_weight
        self.shared.expect([self.rows[part] for part in parts], weights)

    def whole(self) -> Any:
        """Return the samples as X has them: in memory, or in blocks."""
        found = self.shared.values(self.rows, None)
        if self._held is not None:
            found.held = self._held
        return found


def hold(parts: Sequence[Part], columns: Array) -> None:
    """Read columns of several parts of shared blocks at once, to be held for all that asks for some of them later."""
    if not parts[0].is_in_blocks:
        return
    rows, places = np.unique(np.concatenate([part.rows for part in parts]), return_inverse=True)
    found = parts[0].shared.values(rows, columns)
    ends = np.cumsum([len(part.rows) for part in parts])
    for part, own in zip(parts, np.split(places, ends[:-1]), strict=True):
        part._held = columns, found[own]


def held_among(held: tuple[Array, Any] | None, columns: Array) -> Any:
    """Return columns out of those that are held; None if some are not."""
    if held is None or not np.isin(columns, held[0]).all():
        return None
    order = np.argsort(held[0])
    return held[1][:, order[np.searchsorted(held[0], columns, sorter=order)]]


class SharedSamples(ABC):
    """X that several fits share, each of which sees some of its samples.

    Parameters
    ----------
    X : array, sparse matrix or Blocks of shape (n_samples, n_features)
        Valid numbers.
    """

    #: How many fits run at a time between their requests; None: all of them. BLAS has threads of its own.
    at_once: ClassVar[int | None] = 1

    #: Into how many groups they are split: one computes products while the other makes its steps.
    n_groups: ClassVar[int] = 1

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape: tuple[int, int] = X.shape
        self.dtype = X.dtype
        self.meeting = Meeting(self._answer, self.at_once, n_groups=self.n_groups)
        self._lock = threading.RLock()
        self._bases: dict[bool, Any] = {}

    @property
    def n_at_once(self) -> int:
        """Maximum number of fits that run side by side."""
        return max(2, int(SHARE_FOR_FITS * self.memory) // (8 * LINES_PER_FIT * self.shape[1]))

    @property
    def memory(self) -> int:
        """Number of bytes where the fits keep what is as long as X has features."""
        return memory_limit(None)

    def together(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run fits side by side, so that they share their products."""
        return self.meeting.together(calls)

    def base(self, fit_intercept: bool) -> Any:
        """Return the design of all samples, made when it is first needed."""
        with self._lock:
            if fit_intercept not in self._bases:
                self._bases[fit_intercept] = self._make_base(fit_intercept)
            return self._bases[fit_intercept]

    def expect(self, parts: Sequence[Array], sample_weight: Array | None = None) -> None:  # noqa: B027 - not in memory
        """Announce samples of later fits, and their weights, so that those before them compute what all can use."""

    @abstractmethod
    def _make_base(self, fit_intercept: bool) -> Any:
        """Make the design of all samples."""

    @abstractmethod
    def design(self, part: Part, scale: Scale | Array, sample_weights: SampleWeights) -> Design:
        """Return the design of some samples."""

    @abstractmethod
    def values(self, rows: Array, columns: Array | None) -> Any:
        """Return ``X[rows][:, columns]`` on the host, sparse if X is sparse; None: all columns."""

    def _answer(self, requests: list[Any]) -> list[Any]:
        """Answer requests of several fits, those of one kind at once."""
        found: list[Any] = [None] * len(requests)
        for kind in dict.fromkeys((type(request), request.base) for request in requests):
            chosen = [number for number, request in enumerate(requests) if (type(request), request.base) == kind]
            for number, answer in zip(chosen, kind[0].answer([requests[i] for i in chosen]), strict=True):
                found[number] = answer
        return found


class Request(Protocol):
    """Request of a fit to a base design; those of one kind are answered together."""

    @property
    def base(self) -> Any:
        """The design, or matrix, of all samples."""

    @staticmethod
    def answer(requests: list[Any]) -> list[Any]:
        """Return one answer per request."""


class Product(NamedTuple):
    """Ask for ``lines @ B``, of lines over all samples."""

    base: Any
    lines: Any

    @staticmethod
    def answer(requests: list[Product]) -> list[Any]:
        """Return the products of all lines, stacked in one."""
        base = requests[0].base
        if len(requests) == 1:
            return [base.pull(requests[0].lines)]
        products = base.pull(np.concatenate([request.lines for request in requests]))
        ends = np.cumsum([len(request.lines) for request in requests])
        return np.split(products, ends[:-1])


class Sums(NamedTuple):
    """Ask for the sums and the sums of squares of the columns of B, weighted by a vector over all samples."""

    base: Any
    weights: Array

    @staticmethod
    def answer(requests: list[Sums]) -> list[Any]:
        """Return the sums of all weights, from one pass."""
        sums, squares = requests[0].base.weighted_sums(np.stack([request.weights for request in requests]))
        return list(zip(sums, squares, strict=True))


class SharedMatrix(SharedSamples):
    """Shared array or sparse matrix in memory."""

    n_groups = 2

    def together(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        # One thread less for BLAS: the steps of the other group of fits have it.
        blas = threads_of_blas()
        n_threads = min((library.num_threads for library in blas.lib_controllers), default=1)
        with blas.limit(limits=max(1, n_threads - 1)):
            return super().together(calls)

    @property
    def n_at_once(self) -> int:
        return min(MOST_AT_ONCE, super().n_at_once)

    def _make_base(self, fit_intercept: bool) -> Any:
        from l20fs.design import make_design

        return make_design(self.X, "zscore", fit_intercept=fit_intercept)

    def design(self, part: Part, scale: Scale | Array, sample_weights: SampleWeights) -> Design:
        if len(np.unique(part.rows)) == len(part.rows):
            return PartDesign(part, scale, sample_weights)
        from l20fs.design import design_of  # a sample that counts twice has no weight of its own

        return design_of(part.whole(), scale, sample_weights)

    def values(self, rows: Array, columns: Array | None) -> Any:
        if columns is None:
            return self.X[rows]
        if sp.issparse(self.X):
            return self.X[rows][:, columns] if self.X.format == "csr" else self.X[:, columns][rows]
        return self.X[np.ix_(rows, columns)]


class PartDesign(Design):
    """Design of some samples of an X in memory, by the base design of all of them."""

    _shares: Array  # products of the basis of the nuisances with the columns of X~

    def __init__(self, part: Part, scale: Scale | Array, sample_weights: SampleWeights) -> None:
        self._part, self.sample_weights = part, sample_weights
        self.n_samples, self.n_features = part.shape
        base = part.shared.base(sample_weights.fit_intercept)
        self._base, self.dtype = base, base.dtype
        self.n_stored = base.n_stored * self.n_samples // max(1, base.n_samples)
        found, squares = self._measure()
        plain, found = found, found if sample_weights.basis is None else self._adjust(found)
        self._keep_scale(ColumnScale.of(found, scale, self.dtype))
        self._factor = np.where(self.varies, base.scale / self.scale, 0.0)
        self._factor_there = self._factor.astype(self.dtype)
        self._norms = np.sqrt(squares) * self._factor
        if sample_weights.basis is not None:
            self._shares = np.where(self.varies, self._shares / self.scale, 0.0)
            self.explained_energy = explained_energy(plain, found, self.scale)

    def _measure(self) -> tuple[Moments, Array]:
        """Return the moments of the columns, and the sums of squares of what the base multiplies."""
        base, weights = self._base, self.sample_weights
        own = np.ones(self.n_samples) if weights.values is None else weights.values
        if weights.values is None and self._part.is_whole:
            sums, squares = np.zeros(self.n_features), base.column_energy.copy()
        else:
            spread = np.zeros(base.n_samples)
            spread[self._part.rows] = own
            sums, squares = self._part.shared.meeting.ask(Sums(base, spread))
        found, is_clear = moments_of_sums(sums, squares, weights, base)
        unclear = np.flatnonzero(~is_clear)
        for block in blocks(len(unclear), self.n_samples):
            exact = measure(self._part[:, unclear[block]], weights.values)
            exact = exact if weights.fit_intercept else exact.about_zero
            for values, measured in zip(found[1:], exact[1:], strict=True):
                values[unclear[block]] = measured
        return found, squares

    def _adjust(self, found: Moments) -> Moments:
        """Set the products of the basis of the nuisances with the columns; return the moments without what they explain."""
        weights, basis = self.sample_weights, self.sample_weights.basis
        assert basis is not None
        self._shares = self._products(basis) * self._base.scale
        unit = np.where(found.varies, found.unit, np.inf)  # that of a column which is constant here may be tiny
        squares = np.maximum(found.squares - np.square(self._shares / unit).sum(axis=0), 0.0)
        small = np.flatnonzero(found.varies & (squares <= SMALL_SHARE * found.squares))
        for block in blocks(len(small), self.n_samples):
            own = small[block]
            part = weights.times_root((self._raw(own) - found.mean[own]).T).T / found.unit[own]
            project_out(part, basis)
            squares[own] = sum_squares(part)
        return left_over(found, squares, self.dtype)

    def _raw(self, rows: Array) -> Array:
        """Return some columns of X in float64."""
        columns = self._part[:, rows]
        return np.asarray(columns.toarray() if sp.issparse(columns) else columns, dtype=np.float64)

    def _spread(self, residual: Array) -> Array:
        """Return lines over all samples, 0 for those of other parts."""
        residual = self.sample_weights.times_root(residual)
        lines = np.zeros((len(residual), self._base.n_samples), dtype=self.dtype)
        lines[:, self._part.rows] = residual
        return lines

    def _products(self, residual: Array) -> Array:
        return self._part.shared.meeting.ask(Product(self._base, self._spread(residual)))

    def pull(self, residual: Array, rows: Array | None = None, *, likely: Likely | None = None) -> Array:
        # With an intercept a residual, times the root weights, sums to zero: this side needs no centring, nor any
        # adjustment, since it is orthogonal to the nuisances as well.
        if rows is not None:
            return self._base.pull(self._spread(residual), rows) * self._factor_there[rows]
        products = self._products(residual)
        products *= self._factor_there
        return products

    def pull_among(self, rows: Array | slice) -> Pull:
        pull, factor = self._base.pull_among(rows), self._factor_there[rows]
        return lambda residual: pull(self._spread(residual)) * factor

    def pull_norms(self) -> Array:
        """Return the norm of each feature as used by :meth:`pull`, which neither centres nor adjusts."""
        return self._norms

    def push(self, rows: Array, values: Array, *, likely: Likely | None = None) -> Array:
        image = self._base.push(rows, values * self._factor[rows])[:, self._part.rows]
        # The sum is then zero to the last digit, on which pull relies.
        return self.sample_weights.centred(self.sample_weights.times_root(image))

    def take(self, rows: Array, samples: slice) -> Array:
        raw = self._part[samples][:, rows]
        part = np.asarray(raw.toarray() if sp.issparse(raw) else raw, dtype=np.float64)
        part = (part - self.mean[rows] - self.rest[rows]) * np.where(self.varies[rows], 1.0 / self.scale[rows], 0.0)
        if self.sample_weights.root is not None:
            part *= self.sample_weights.root[samples, np.newaxis]
        if self.sample_weights.basis is not None:
            part -= self.sample_weights.basis[:, samples].T @ self._shares[:, rows]
        return part

    def column(self, row: int, *, likely: Likely | None = None) -> Array:
        return self.take(np.array([row]), slice(None))[:, 0]

    @computed_once
    def max_sample_energy(self) -> float:  # only some solvers need it
        """Largest ``min(1, w_i) ||x_i||^2``."""
        energy = np.zeros(self.n_samples)
        for block in blocks(self.n_features, self.n_samples):
            part = self.take(np.arange(block.start, block.stop), slice(None))
            energy += np.einsum("ij,ij->i", part, part)
        if self.sample_weights.values is not None:
            energy /= np.maximum(self.sample_weights.values, 1.0)
        return float(energy.max())


def moments_of_sums(sums: Array, squares: Array, weights: SampleWeights, base: Any) -> tuple[Moments, Array]:
    """Return the moments of columns from weighted sums of what a base multiplies, and a mask of those that are exact."""
    total = weights.total
    mean = sums / total if weights.fit_intercept else np.zeros_like(sums)
    left = squares - total * mean * mean
    is_clear = left >= CLEAR_SHARE[base.dtype] * squares  # all values are 0, or they differ clearly
    left = np.maximum(left, 0.0)
    origin = base.origin.copy() if weights.fit_intercept else np.zeros_like(sums)
    offset = base.scale * mean + base.rest if weights.fit_intercept else np.zeros_like(sums)
    centre, deviation = origin + offset, base.scale * np.sqrt(left / total)
    zeros = np.zeros(len(sums), dtype=np.int64)
    found = Moments(
        np.asarray(total),
        origin,
        offset,
        left,
        base.scale.copy(),
        centre - deviation,
        centre + deviation,
        zeros,
        zeros.copy(),
    )
    return found, is_clear
