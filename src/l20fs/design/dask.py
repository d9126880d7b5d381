"""Dask arrays behind the four operations: one task per block and round, whose results are added up in the order of blocks.

What is asked for at the same time is answered by one pass. Lines and weights are sent with it; blocks come from the graph of
the array, so that Dask can make them again where a worker is lost. This module needs dask.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple

import dask.array
import dask.base
import numpy as np
import scipy.sparse as sp
from dask.array.utils import meta_from_array
from dask.delayed import delayed
from sklearn import get_config
from threadpoolctl import ThreadpoolController

from l20fs.design.matrix import Lines, Matrix, StoredMatrix, dense
from l20fs.design.sparse import SparseMatrix
from l20fs.inputs.devices import Place, working_dtype
from l20fs.inputs.sparse_structure import refuse_broken_sparse
from l20fs.inputs.validation import refuse_counted
from l20fs.typing import Array

#: Way out of missing values: there is no imputer for blocks.
FILL_BLOCKS = "Fill them in first, for example with X.map_blocks(numpy.nan_to_num)."

#: Results of so many neighbours are added up by one task: the order of a sum depends on the blocks alone.
FAN_IN = 4

#: Share of scikit-learn's working memory for columns that were read and are held.
SHARE_HELD = 0.25

NO_COLUMNS: Array = np.empty(0, dtype=np.intp)

logger = logging.getLogger("l20fs")


class Job(NamedTuple):
    """Part of a pass: a function of the container of each block and of this job, with the values that belong to the block.

    ``keeps`` says whether results are side by side along the samples, and along the features; otherwise they are added up.
    """

    work: Callable[[Any, Any], Any]
    keeps: tuple[bool, bool]
    by_samples: Any = None
    by_features: Any = None
    common: Any = None

    def cut(self, samples: slice, features: slice) -> Job:
        """Return the job with the values of a block."""
        return self._replace(by_samples=_cut(self.by_samples, samples), by_features=_cut(self.by_features, features))

    def key(self, i: int, j: int) -> tuple[int, int]:
        """Return the place of the result of a block: those of one place are added up."""
        return i if self.keeps[0] else 0, j if self.keeps[1] else 0


class DaskMatrix(Matrix):
    """Dask array of dense or sparse blocks, by samples, by features or both.

    Parameters
    ----------
    X : dask.array.Array of shape (n_samples, n_features)
    has_intercept : bool
        Whether columns are centred. If so, dense ones are shifted by the first sample. Sparse ones are not: one far from
        zero keeps the digits that sums in float64 leave.
    """

    is_in_blocks = True

    def __init__(self, X: Any, *, has_intercept: bool = True) -> None:
        self.X, self.has_intercept = X, has_intercept
        self.place, self.dtype = Place(np.zeros(0)), working_dtype(X)
        self.n_samples, self.n_features = X.shape
        self._samples, self._features = (_extents(chunks) for chunks in X.chunks)
        self._blocks = X.to_delayed()
        self._is_sparse = not isinstance(meta_from_array(X), np.ndarray)
        self.prefers_directions = not self._is_sparse
        self._threads = ThreadpoolController()
        self.shift = np.zeros(self.n_features)
        if has_intercept and not self._is_sparse:
            (first,) = self._compute(X[:1])
            first = dense(first)[0].astype(np.float64)
            self.shift = np.where(np.isfinite(first), first, 0.0)
        #: Columns that were read, and their values as stored.
        nothing = np.empty((self.n_samples, 0), dtype=X.dtype)
        self._held: tuple[Array, Any] = NO_COLUMNS, sp.csc_array(nothing) if self._is_sparse else nothing
        logger.info("%d x %d %s in %d x %d blocks", *X.shape, X.dtype, *X.numblocks)

    # --------------------------------------------------------------------------------------------------------- passes

    def _compute(self, *what: Any) -> tuple[Any, ...]:
        """Compute by Dask, with one thread of BLAS per thread of Dask on this machine."""
        # A cluster warns of large graphs; these hold only what a pass needs.
        quiet = {"distributed.admin.large-graph-warning-threshold": "1TB"} if "distributed" in sys.modules else {}
        with self._threads.limit(limits=1), dask.config.set(quiet):
            return dask.base.compute(*what)

    def _pass(self, jobs: Sequence[Job]) -> list[Any]:
        """Return the results of jobs, by one task for every block."""
        parts = []
        for i, samples in enumerate(self._samples):
            for j, features in enumerate(self._features):
                shift = None if self._is_sparse else self.shift[features]
                own = [(job.key(i, j), job.cut(samples, features)) for job in jobs]
                work = _Work(own, (samples, features), self.X.dtype, shift)
                parts.append(delayed(work, pure=False, traverse=False)(self._blocks[i, j]))
        while len(parts) > 1:
            groups = [parts[start : start + FAN_IN] for start in range(0, len(parts), FAN_IN)]
            parts = [delayed(_add_up, pure=False, traverse=False)(*group) for group in groups]
        (found,) = self._compute(*parts)
        return [self._assembled(each, job.keeps) for each, job in zip(found, jobs, strict=True)]

    def _assembled(self, found: dict[tuple[int, int], Any], keeps: tuple[bool, bool]) -> Any:
        """Put the results of blocks side by side."""
        if not any(keeps):
            return found[0, 0]
        if not all(keeps):
            return np.concatenate([found[key] for key in sorted(found)], axis=-1)
        lines = [[found[i, j] for j in range(len(self._features))] for i in range(len(self._samples))]
        return sp.block_array(lines, format="csc") if sp.issparse(lines[0][0]) else np.block(lines)

    def answer(self, asked: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Answer by one pass; columns that are combined are held from then on, as long as there is room."""
        grams, amongs, wanted = (asked.get(name, []) for name in ("gram", "exact_among", "hold"))
        amongs = [*asked.get("among", []), *amongs]
        lines = [*asked.get("products", []), *asked.get("exact_products", [])]
        if len(self._features) > 1:  # columns to be combined are in other blocks
            self.hold([each.rows for each in [*grams, *amongs]])
            lines, grams = [*lines, *(each.of_columns(self.there(each.rows), self.place) for each in grams)], []
        is_here = [not len(self._missing([each.rows])) for each in amongs]
        here = [each.among(self.there(each.rows), self.place) for each in compress(amongs, is_here)]
        far = [each for each, is_held in zip(amongs, is_here, strict=True) if not is_held]
        missing, also = self._missing(wanted), self._missing([*wanted, *(each.rows for each in grams)])
        missing = also if self._has_room(len(also)) else missing
        jobs: dict[str, Job] = {}
        if "moments" in asked:
            jobs["moments"] = Job(_moments, (False, True), asked["moments"])
        if grams or lines:
            jobs["lines"] = Job(_products, (False, True), (lines, _weights(grams)), None, _without_weights(grams))
        if far:
            jobs["among"] = Job(_among, (False, False), _weights(far), None, _without_weights(far))
        if len(missing):
            jobs["hold"] = Job(_columns, (True, True), None, np.isin(np.arange(self.n_features), missing))
        results = dict(zip(jobs, self._pass(list(jobs.values())), strict=True)) if jobs else {}
        if len(missing):
            self._keep(missing, results["hold"], np.concatenate([missing, *wanted]))
        found: dict[str, list[Any]] = {"hold": [None] * len(wanted)}
        if "moments" in asked:
            *sums, n_missing, n_infinite = results["moments"]
            refuse_counted(n_missing.astype(int), n_infinite.astype(int), None, FILL_BLOCKS)
            found["moments"] = list(zip(sums[::2], sums[1::2], strict=True))
        ends = np.cumsum([*(len(each) for each in lines), *(each.n_lines for each in grams)])[:-1]
        products = iter(np.split(results["lines"], ends) if "lines" in results else [])
        squares = (iter(here), iter(results.get("among", [])))
        found |= {name: [next(products) for _ in asked.get(name, [])] for name in ("products", "exact_products", "gram")}
        both = [next(squares[0 if is_held else 1]) for is_held in is_here]
        n_first = len(asked.get("among", []))
        return found | {"among": both[:n_first], "exact_among": both[n_first:]}

    def moments(self, weights: Sequence[Any]) -> list[tuple[Any, Any]]:
        return self.answer({"moments": list(weights)})["moments"]

    def exact_products(self, lines: Sequence[Any]) -> list[Any]:
        return self.answer({"exact_products": list(lines)})["exact_products"]

    def gram(self, requests: Sequence[Lines]) -> list[Any]:
        return self.answer({"gram": list(requests)})["gram"]

    def exact_among(self, requests: Sequence[Lines]) -> list[Array]:
        return self.answer({"exact_among": list(requests)})["exact_among"]

    def images(self, values: Array) -> Array:
        (found,) = self._pass([Job(_images, (True, False), None, values)])
        return np.asarray(found)

    def squared_norms(self, offsets: Any, factors: Any) -> Array:
        (found,) = self._pass([Job(_squared_norms, (True, False), None, (offsets, factors))])
        return np.asarray(found)

    # -------------------------------------------------------------------------------------------------------- columns

    def hold(self, rows: Sequence[Array]) -> list[None]:
        return self.answer({"hold": list(rows)})["hold"] if rows else []

    def _missing(self, rows: Sequence[Array]) -> Array:
        """Return those of some columns that are not held."""
        return np.setdiff1d(np.concatenate([NO_COLUMNS, *rows]), self._held[0])

    @property
    def n_columns_at_once(self) -> int:
        room = SHARE_HELD * get_config()["working_memory"] * 2**20
        return max(1, int(room / (self.n_samples * self.dtype.itemsize)))

    def _has_room(self, n_more: int) -> bool:
        return len(self._held[0]) + n_more <= self.n_columns_at_once

    def _keep(self, rows: Array, values: Any, wanted: Array) -> None:
        """Keep columns that were read beside those that are held, if there is room, else beside those that are wanted."""
        held, before = self._held
        if not self._has_room(len(rows)):
            stays = np.isin(held, wanted)
            held, before = held[stays], before[:, stays]
        if sp.issparse(values) or sp.issparse(before):
            values = sp.hstack([sp.csc_array(before), sp.csc_array(values)], format="csc")
        else:
            values = np.hstack([before, values])
        rows = np.concatenate([held, rows])
        order = np.argsort(rows)
        self._held = rows[order], values[:, order]

    def _stored(self, rows: Array) -> Any:
        """Return columns as stored, of those that are held or by a pass."""
        self.hold([rows])
        held, values = self._held
        return values[:, np.searchsorted(held, rows)]

    def parts(self) -> Iterator[tuple[slice, slice, Any]]:
        raise NotImplementedError("Blocks are read where Dask has them.")

    def there(self, rows: Array) -> Array:
        found = np.array(dense(self._stored(rows)).T, dtype=np.float64, order="C")
        return found - self.shift[rows][:, None]

    def values(self, samples: Array, rows: Array) -> Any:
        return self._stored(rows)[samples]


def _extents(chunks: Sequence[int]) -> list[slice]:
    """Return the slices of chunks of these sizes."""
    ends = np.cumsum(chunks).tolist()
    return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _cut(values: Any, extent: slice) -> Any:
    """Return the part of arrays whose last axis has an extent."""
    if values is None or isinstance(values, np.ndarray):
        return values if values is None else values[..., extent]
    return [_cut(each, extent) for each in values]


def _weights(lines: Sequence[Lines]) -> list[Any]:
    return [each.weights for each in lines]


def _without_weights(lines: Sequence[Lines]) -> list[Lines]:
    return [each._replace(weights=None) for each in lines]


# ------------------------------------------------------------------------------------------------------- on every block


class _Work:
    """Jobs on one block, of some samples and features of X; Dask calls it with the block."""

    __name__ = "l20fs"

    def __init__(self, jobs: list[Any], extents: tuple[slice, slice], dtype: Any, shift: Array | None) -> None:
        self.jobs, self.extents, self.dtype, self.shift = jobs, extents, dtype, shift

    def __call__(self, block: Any) -> list[dict[tuple[int, int], Any]]:
        matrix = self._matrix_of(block)
        with np.errstate(over="ignore", invalid="ignore"):  # refused when all is known
            return [{key: job.work(matrix, job)} for key, job in self.jobs]

    def _matrix_of(self, block: Any) -> Matrix:
        """Return the container of a block, which is refused if it is not what X declares."""
        (rows, columns) = self.extents
        name = f"The block X[{rows.start}:{rows.stop}, {columns.start}:{columns.stop}]"
        if not sp.issparse(block) and not isinstance(block, np.ndarray):
            raise TypeError(
                f"X has blocks of the type {type(block).__module__}.{type(block).__name__}. Turn them into NumPy arrays or "
                "SciPy sparse matrices with X.map_blocks(...)."
            )
        if np.ma.is_masked(block):
            raise ValueError("X has masked values. Fill them in first, for example with X.map_blocks(numpy.ma.filled, 0.0).")
        declared = (rows.stop - rows.start, columns.stop - columns.start)
        if tuple(block.shape) != declared:
            raise ValueError(
                f"{name} has the shape {tuple(block.shape)}, but {declared} was declared. Make the blocks as long and as "
                "wide as X says."
            )
        # Integers in a matrix of floats are exact, floats in a matrix of integers would be cut off.
        if block.dtype.kind not in "biuf" or not np.can_cast(block.dtype, self.dtype, "same_kind"):
            raise ValueError(
                f"{name} has values of the type {block.dtype}, but {self.dtype} was declared. Use real numbers and declare "
                "their type, for example with X.map_blocks(function, dtype=float)."
            )
        refuse_broken_sparse(block, name)
        if sp.issparse(block):
            block = block if block.format in ("csr", "csc") else block.tocsr()
            if self.shift is None or not self.shift.any():
                return SparseMatrix(block, has_intercept=False)
        else:
            block = np.asarray(block)
        return StoredMatrix(block, np.zeros(block.shape[1]) if self.shift is None else self.shift)


def _add_up(*parts: list[dict[tuple[int, int], Any]]) -> list[dict[tuple[int, int], Any]]:
    """Add up the results of neighbours, where they belong to the same place; the others are kept side by side."""
    found = [dict(each) for each in parts[0]]
    for part in parts[1:]:
        for own, other in zip(found, part, strict=True):
            for key, value in other.items():
                own[key] = _sum(own[key], value) if key in own else value
    return found


def _sum(one: Any, other: Any) -> Any:
    return [a + b for a, b in zip(one, other, strict=True)] if isinstance(one, list) else one + other


def _moments(matrix: Matrix, job: Job) -> Array:
    """Return sums and squares for each row of weights, and the numbers of missing and of infinite values."""
    found = np.array([each for pair in matrix.moments(job.by_samples) for each in pair])
    odd = np.zeros((2, matrix.n_features))
    if not np.isfinite(found).all():
        for features, _samples, part in matrix.parts():
            for place, is_odd in enumerate((np.isnan, np.isinf)):
                odd[place, features] += np.asarray(_mapped(part, is_odd).sum(axis=1)).ravel()
    return np.concatenate([found, odd])


def _mapped(part: Any, function: Any) -> Any:
    if not sp.issparse(part):
        return function(part)
    return type(part)((function(part.data).astype(float), part.indices, part.indptr), shape=part.shape)


def _products(matrix: Matrix, job: Job) -> Array:
    lines, weights = job.by_samples
    for each, own in zip(job.common, weights, strict=True):
        lines = [*lines, each._replace(weights=own).of_columns(matrix.there(each.rows), matrix.place)]
    return np.asarray(matrix.exact_products([np.concatenate(lines)])[0])


def _among(matrix: Matrix, job: Job) -> list[Array]:
    return matrix.exact_among([each._replace(weights=own) for each, own in zip(job.common, job.by_samples, strict=True)])


def _columns(matrix: Any, job: Job) -> Any:
    found = matrix.X[:, np.flatnonzero(job.by_features)]
    return found.tocsc() if sp.issparse(found) else found


def _images(matrix: Matrix, job: Job) -> Array:
    return matrix.images(job.by_features)


def _squared_norms(matrix: Matrix, job: Job) -> Array:
    return matrix.squared_norms(*job.by_features)
