"""Passes over a matrix in blocks: kernels on every block, with combined results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.blocks.file_guard import FileGuard
from l20fs.typing import Array

#: Fan-in of the tree of sums. The order of a sum depends on the blocks only, wherever they are stored, and adjacent blocks
#: are usually on the same machine.
FAN_IN = 4

#: Blocks in memory at a time: while one is read, the others are processed.
AT_ONCE = 2

#: Share of the memory beside the blocks that columns may take which were read, and are held.
SHARE_FOR_COLUMNS = 0.1

#: Function of a block and its arguments; returns an array or a tuple of arrays.
Kernel = Callable[..., Any]


def add_up(left: Any, right: Any) -> Any:
    """Return the sum of two results: arrays or, one by one, tuples of arrays."""
    if isinstance(left, tuple):
        return tuple(add_up(one, other) for one, other in zip(left, right, strict=True))
    return left + right


@dataclass
class Traffic:
    """Number of passes over a matrix, its parts included."""

    n_passes: int = 0


class Blocks(ABC):
    """Matrix split along its samples (``axis=0``) or its features (``axis=1``) at ``edges``.

    ``budget`` is the number of bytes that this process may hold beside the blocks. A kernel is called as ``kernel(block,
    *own)`` with a block, an array or a SciPy sparse matrix, and the arguments of this block.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    axis: int
    edges: Array
    is_sparse: bool
    budget: int
    name: str
    traffic: Traffic

    def send(self, value: Any) -> Any:
        """Return what stands for a value among the arguments of several blocks, so that it travels once."""
        return value

    @abstractmethod
    def each(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], which: Sequence[int] | None = None) -> list[Any]:
        """Return the results of all blocks, or of some, in their order."""

    @abstractmethod
    def total(self, kernel: Kernel, own: Sequence[tuple[Any, ...]]) -> Any:
        """Return the sum of the results of all blocks, added up in order."""

    def columns(self, columns: Array) -> Any:
        """Return a few columns in memory, sparse if X is sparse: a pass over the blocks that hold some of them."""
        if not len(columns):
            nothing = np.empty((self.shape[0], 0), dtype=self.dtype)
            return sp.csr_array(nothing) if self.is_sparse else nothing
        if self.axis == 0:
            parts = self.each(_take_columns, [(columns,)] * len(extents(self)))
            return sp.vstack(parts, format="csr") if any(map(sp.issparse, parts)) else np.concatenate(parts)
        home = np.searchsorted(self.edges, columns, side="right") - 1
        which = np.unique(home)
        places = [(columns[home == number] - self.edges[number],) for number in range(len(extents(self)))]
        parts = self.each(_take_columns, places, which.tolist())
        found = sp.hstack(parts, format="csc") if any(map(sp.issparse, parts)) else np.concatenate(parts, axis=1)
        return found[:, np.argsort(np.argsort(home, kind="stable"), kind="stable")]


def extents(blocks: Blocks) -> list[slice]:
    """Return the slice of each block."""
    return [slice(int(start), int(stop)) for start, stop in zip(blocks.edges[:-1], blocks.edges[1:], strict=True)]


def add_in_order(results: Iterable[Any]) -> Any:
    """Add results up in order, :data:`FAN_IN` adjacent ones at a time; only a few are in memory at once.

    Examples
    --------
    >>> add_in_order(iter("abcdefghijklmnopqrstuvwxyz"))
    'abcdefghijklmnopqrstuvwxyz'
    """
    sums: list[list[Any]] = []  # per level of the tree: the partial sum and its number of terms

    for value in results:
        level = 0
        while True:
            if level == len(sums):
                sums.append([None, 0])
            held = sums[level]
            value = add_up(held[0], value) if held[1] else value
            sums[level] = [value, held[1] + 1]
            if held[1] + 1 < FAN_IN:
                break
            sums[level] = [None, 0]
            level += 1
    parts = [value for value, count in reversed(sums) if count]
    # The rest of a level is the last child of the level above.
    return reduce(lambda right, left: add_up(left, right), reversed(parts[:-1]), parts[-1])


@dataclass(frozen=True)
class DeclaredBlock:
    """Name, shape and type of the values of a block, as the whole matrix declares them."""

    name: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]


def declared_block(blocks: Blocks, span: slice) -> DeclaredBlock:
    """Return what a matrix declares about its block at a slice."""
    length, other = span.stop - span.start, blocks.shape[1 - blocks.axis]
    name = f"The block of {('samples', 'columns')[blocks.axis]} {span.start} to {span.stop - 1} of X"
    return DeclaredBlock(name, (length, other) if blocks.axis == 0 else (other, length), blocks.dtype)


def as_plain_block(block: Any, declared: DeclaredBlock | None = None) -> Any:
    """Return a block as an array or a CSR or CSC matrix, which can be indexed along both axes.

    A block that is not what was declared is refused: a support would be that of other numbers.

    Examples
    --------
    >>> as_plain_block(sp.coo_array(np.eye(3))).format
    'csr'
    >>> as_plain_block(np.eye(3), DeclaredBlock("Block 4 of X", (3, 2), np.dtype(float)))
    Traceback (most recent call last):
    ValueError: Block 4 of X has the shape (3, 3), but (3, 2) was declared. Make the blocks as long and as wide as X says.
    """
    if not sp.issparse(block) and not isinstance(block, np.ndarray):
        raise TypeError(
            f"X has blocks of the type {type(block).__module__}.{type(block).__name__}. Turn them into NumPy arrays or "
            "SciPy sparse matrices with X.map_blocks(...)."
        )
    if declared is not None:
        _check_declared(block, declared)
    if sp.issparse(block):
        return block if block.format in ("csr", "csc") else block.tocsr()
    if np.ma.is_masked(block):
        raise ValueError("X has masked values. Fill them in first, for example with X.map_blocks(numpy.ma.filled, 0.0).")
    return np.asarray(block)


def _check_declared(block: Any, declared: DeclaredBlock) -> None:
    """Raise an error if a block has another shape, or values that are no real numbers of the declared kind."""
    if tuple(block.shape) != declared.shape:
        raise ValueError(
            f"{declared.name} has the shape {tuple(block.shape)}, but {declared.shape} was declared. Make the "
            "blocks as long and as wide as X says."
        )
    # Integers in a matrix of floats are exact, floats in a matrix of integers would be cut off.
    if block.dtype.kind not in "biuf" or not np.can_cast(block.dtype, declared.dtype, "same_kind"):
        raise ValueError(
            f"{declared.name}, of the shape {tuple(block.shape)}, has values of the type {block.dtype}, but "
            f"{declared.dtype} was declared. Use real numbers and declare their type, for example with "
            "X.map_blocks(function, dtype=float)."
        )


def _side_by_side(left: Any, right: Any) -> Any:
    return sp.hstack([left, right], format="csr") if sp.issparse(left) else np.concatenate([left, right], axis=1)


def _take_columns(block: Any, columns: Array) -> Any:
    return block[:, columns]


def _take_entries(block: Any, samples: Array, columns: Array) -> Array:
    entries = block[samples][:, columns]
    return np.asarray(entries.toarray() if sp.issparse(entries) else entries)


def dense_entries(blocks: Blocks, samples: Array, columns: Array) -> Array:
    """Return ``X[samples][:, columns]`` as a dense array: one pass over the blocks that hold some of them.

    Examples
    --------
    >>> X = np.arange(8.0).reshape(4, 2)
    >>> blocks = FileBlocks(X.shape, X.dtype, 0, np.array([0, 1, 4]), False, X.__getitem__, 2**20, "an array")
    >>> dense_entries(blocks, np.array([0, 3]), np.array([1]))
    array([[1.],
           [7.]])
    """
    wanted, axis = (samples, columns)[blocks.axis], blocks.axis
    home = np.searchsorted(blocks.edges, wanted, side="right") - 1
    which = np.unique(home).tolist()
    own: list[tuple[Any, ...]] = [()] * len(extents(blocks))
    found = np.empty((len(samples), len(columns)), dtype=blocks.dtype)
    for number in which:
        local = wanted[home == number] - blocks.edges[number]
        own[number] = (local, columns) if axis == 0 else (samples, local)
    for number, part in zip(which, blocks.each(_take_entries, own, which), strict=True):
        found[(home == number, slice(None)) if axis == 0 else (slice(None), home == number)] = part
    return found


@dataclass
class FileBlocks(Blocks):
    """Blocks that this process reads from a file, a few at a time.

    Parameters
    ----------
    shape, dtype, axis, edges, is_sparse
        See :class:`Blocks`.
    load : callable
        Returns the block of a slice along the axis.
    budget : int
        Bytes that may be held beside the blocks.
    name : str
        Name of the matrix in the log.
    guard : FileGuard, optional
        Raises an error if the file changes during a pass.

    Examples
    --------
    >>> X = np.arange(8.0).reshape(4, 2)
    >>> blocks = FileBlocks(X.shape, X.dtype, 0, np.array([0, 1, 4]), False, X.__getitem__, 2**20, "an array")
    >>> blocks.total(lambda block: block.sum(axis=0), [(), ()])
    array([12., 16.])
    >>> blocks[np.array([0, 3])].total(lambda block: block.sum(axis=0), [(), ()])
    array([6., 8.])
    >>> blocks[:, [1]].ravel()
    array([1., 3., 5., 7.])
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    axis: int
    edges: Array
    is_sparse: bool
    load: Callable[[slice], Any]
    budget: int
    name: str
    traffic: Traffic = field(default_factory=Traffic)
    guard: FileGuard | None = None
    _held: tuple[Array, Any] | None = field(default=None, init=False, repr=False, compare=False)

    def columns(self, columns: Array) -> Any:
        """Return a few columns in memory, as :class:`Blocks`; those that were read before, and are held, need no pass."""
        held, values = (np.arange(0), None) if self._held is None else self._held
        missing = np.setdiff1d(columns, held)
        if len(missing) or values is None:
            found = super().columns(missing)
            values = found if values is None else _side_by_side(values, found)
            held = np.append(held, missing)
        elif self.guard is not None:
            self.guard.check()
        size = values.data.nbytes + values.indices.nbytes if self.is_sparse else values.nbytes
        self._held = (held, values) if size <= SHARE_FOR_COLUMNS * self.budget else None
        order = np.argsort(held)
        return values[:, order[np.searchsorted(held, columns, sorter=order)]]

    def read(self, span: slice) -> Any:
        """Return the block of a slice along the axis, or raise an error if it is not what was declared."""
        return as_plain_block(self.load(span), declared_block(self, span))

    def each(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], which: Sequence[int] | None = None) -> list[Any]:
        return list(self._results(kernel, own, range(len(own)) if which is None else which))

    def total(self, kernel: Kernel, own: Sequence[tuple[Any, ...]]) -> Any:
        return add_in_order(self._results(kernel, own, range(len(own))))

    def __getitem__(self, key: Any) -> Any:
        """Return ``X[samples]``, which stays in the file, or ``X[:, columns]``, which is read."""
        return self.columns(np.asarray(key[1])) if isinstance(key, tuple) else self.samples(np.asarray(key))

    def samples(self, chosen: Array) -> FileBlocks:
        """Return some samples, in increasing order, as blocks that stay in the file."""
        return self._part(0, chosen, "samples")

    def with_columns(self, chosen: Sequence[int]) -> FileBlocks:
        """Return some columns, in increasing order, as blocks that stay in the file."""
        return self._part(1, np.asarray(chosen), "columns")

    def _part(self, axis: int, chosen: Array, what: str) -> FileBlocks:
        if np.any(np.diff(chosen) <= 0):
            raise ValueError(
                f"{what.capitalize()} of a matrix in blocks must be indexed in increasing order. Sort the indices."
            )

        def load(span: slice) -> Any:
            own, start = chosen, 0
            if axis == self.axis:
                own = chosen[span]
                start = int(own[0])
                span = slice(start, int(own[-1]) + 1)
            block = self.read(span)
            return block[own - start] if axis == 0 else block[:, own - start]

        edges = np.unique(np.searchsorted(chosen, self.edges)) if axis == self.axis else self.edges
        shape = (len(chosen), self.shape[1]) if axis == 0 else (self.shape[0], len(chosen))
        return replace(self, shape=shape, edges=edges, load=load, name=f"{len(chosen)} {what} of {self.name}")

    def mapped(self, function: Callable[[Any], Any], dtype: Any) -> FileBlocks:
        """Return the matrix with a function applied to every block as it is read."""
        return replace(self, dtype=np.dtype(dtype), load=lambda span: function(self.read(span)))

    def _results(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], which: Sequence[int]) -> Iterator[Any]:
        self.traffic.n_passes += 1
        covered = extents(self)

        def work(number: int) -> Any:
            # Reading past the end of a memory map whose file shrank would kill the process.
            if self.guard is not None and self.guard.is_cheap:
                self.guard.check()
            return kernel(self.read(covered[number]), *own[number])

        with ThreadPoolExecutor(AT_ONCE) as pool:
            waiting: deque[Future[Any]] = deque()
            try:
                for number in which:
                    waiting.append(pool.submit(work, number))
                    if len(waiting) == AT_ONCE:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
                if self.guard is not None:
                    self.guard.check()
            finally:
                for future in waiting:
                    future.cancel()
