"""Blocks of a Dask array, one task per block on any scheduler.

If a worker is lost, its blocks and the values sent to it are computed again by the graph; if all are lost at once, blocks
are placed on those that follow. A value is sent once per pass, not once per task. This module needs dask and is imported
only for a Dask array.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from typing import Any

import dask.array
import dask.base
import numpy as np
from dask.array.utils import meta_from_array
from dask.delayed import Delayed, delayed

from l20fs.blocks.cluster import SMALLER, Cluster, LostClusterError, WorkersReplacedError
from l20fs.blocks.memory import format_bytes
from l20fs.blocks.passes import (
    FAN_IN,
    Blocks,
    Combine,
    DeclaredBlock,
    Kernel,
    Traffic,
    add_up,
    as_plain_block,
    count_bytes,
    declared_block,
    extents,
)
from l20fs.inputs.sparse_structure import refuse_broken_sparse

logger = logging.getLogger("l20fs")

#: The array is persisted if it takes at most this fraction of the memory of the workers, or of the limit on this machine.
SHARE_FOR_X = 0.4

#: How often the blocks are placed again in one pass, after all workers were lost at once, until the fit fails.
N_PLACEMENTS = 3


def dask_blocks(X: Any, memory: int) -> DaskBlocks:
    """Return the chunks of a Dask array as blocks, or raise an error with the call that rechunks it."""
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} axes. Give a matrix of two axes, samples and features.")
    if any(np.isnan(size) for chunks in X.chunks for size in chunks):
        raise ValueError("X has chunks of unknown size. Call X.compute_chunk_sizes() first.")
    n_rows, n_columns = X.numblocks
    if n_rows > 1 and n_columns > 1:
        whole = 1 if X.shape[0] >= X.shape[1] else 0
        raise ValueError(
            f"X is split along both axes, into {n_rows} x {n_columns} chunks. Split it along one: X.rechunk("
            f"{{{1 - whole}: 'auto', {whole}: -1}})."
        )
    return DaskBlocks(X, int(n_columns > 1), memory)


def frame_array(X: Any) -> Any:
    """Return the values of a Dask data frame as a Dask array; its partitions are computed once, for their lengths alone."""
    dtype = np.dtype(np.float32 if all(str(kind) in ("float32", "Float32") for kind in X.dtypes) else np.float64)
    parts = X.to_delayed()
    lengths = dask.base.compute(*(delayed(len)(part) for part in parts))
    values = delayed(_values)
    chunks = [
        dask.array.from_delayed(values(part, dtype), (length, len(X.columns)), dtype)
        for part, length in zip(parts, lengths, strict=True)
    ]
    return dask.array.concatenate(chunks)


def _values(part: Any, dtype: Any) -> Any:
    """Return a pandas frame as an array; missing values are NaN."""
    return part.to_numpy(dtype=dtype, na_value=np.nan)


class DaskBlocks(Blocks):
    """Chunks of a Dask array as :class:`~l20fs.blocks.passes.Blocks`."""

    def __init__(self, X: Any, axis: int, memory: int) -> None:
        self.shape = X.shape
        self.dtype = np.dtype(X.dtype)
        self.axis = axis
        chunks = [size for size in X.chunks[axis] if size]
        self.edges = np.concatenate([[0], np.cumsum(chunks)])
        self.is_sparse = not isinstance(meta_from_array(X), np.ndarray)
        self._memory, self.budget = memory, memory // 2
        self.name = f"a Dask array of {len(chunks)} blocks"
        self.traffic = Traffic()
        scheduler = dask.base.get_scheduler(collections=[X])
        owner = getattr(scheduler, "__self__", None)
        self._cluster = Cluster(owner) if hasattr(owner, "scheduler_info") else None
        self._placed_on: frozenset[str] = frozenset()
        self._X = X

    @cached_property
    def _blocks(self) -> list[Any]:
        """Blocks as tasks of Dask, persisted in memory if they fit."""
        X, workers = self._X, {"": self._memory} if self._cluster is None else self._cluster.memory()
        room = sum(workers.values())
        fits = X.nbytes <= SHARE_FOR_X * room
        how = "held in memory" if fits else "computed again by its graph for each pass"
        logger.info("X takes up to %s of %s available: it is %s", format_bytes(X.nbytes), format_bytes(room), how)
        blocks = [block for block, size in zip(X.to_delayed().ravel(), X.chunks[self.axis], strict=True) if size]
        if not fits or self._cluster is None:
            return list(dask.base.persist(*blocks)) if fits else blocks
        return self._placed(blocks, list(workers))

    def _placed(self, blocks: list[Any], workers: list[str]) -> list[Any]:
        """Persist adjacent blocks on one worker, while it is alive: most of a sum is then computed where its parts are."""
        from distributed import futures_of

        assert self._cluster is not None
        there = {future.key for future in futures_of(self._X)}
        if all(block.key in there for block in blocks):
            return blocks  # the user has persisted them, and they stay where they are
        # Names of their own: these tasks can be forgotten and placed again, whoever else holds X.
        hold = delayed(_hold, pure=False)
        held: list[Any] = []
        for worker, group in zip(workers, np.array_split(np.arange(len(blocks)), len(workers)), strict=True):
            chosen = [hold(blocks[number]) for number in group]
            held += self._cluster.persist(chosen, workers=[worker], allow_other_workers=True) if chosen else []
        self._placed_on = frozenset(workers)
        return held

    def keep(self, value: Any) -> Any:
        leaf = self._leaf(value)
        return leaf.persist() if self._cluster is None else self._cluster.persist([leaf])[0]

    def send(self, value: Any) -> Any:
        return self._leaf(value)

    def _leaf(self, value: Any) -> Any:
        self.traffic.n_down += count_bytes(value)
        return delayed(value, pure=False, traverse=False)

    def each(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], which: Sequence[int] | None = None) -> list[Any]:
        return self._compute(lambda: self._tasks(kernel, own, range(len(own)) if which is None else which))

    def total(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], combine: Combine = add_up) -> Any:
        def make_tasks() -> list[Any]:
            parts = self._tasks(kernel, own, range(len(own)))
            while len(parts) > 1:
                groups = [parts[start : start + FAN_IN] for start in range(0, len(parts), FAN_IN)]
                parts = [delayed(_in_order, pure=False)(combine, *group) for group in groups]
            return parts

        return self._compute(make_tasks)[0]

    def _tasks(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], which: Sequence[int]) -> list[Any]:
        self.traffic.n_passes += 1
        self.traffic.n_down += sum(
            count_bytes(value) for number in which for value in own[number] if not isinstance(value, Delayed)
        )
        declared = [declared_block(self, span) for span in extents(self)]
        tasks = {number: delayed(_OnPlainBlock(kernel, declared[number]), pure=False) for number in which}
        return [task(self._blocks[number], *own[number]) for number, task in tasks.items()]

    def _compute(self, make_tasks: Callable[[], list[Any]]) -> list[Any]:
        # Dask warns about large graphs; these hold only the values that a pass needs.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            if self._cluster is None:
                results = list(dask.base.compute(*make_tasks()))
            else:
                results = self._compute_on(self._cluster, make_tasks)
        self.traffic.n_up += count_bytes(results)
        return results

    def _compute_on(self, cluster: Cluster, make_tasks: Callable[[], list[Any]]) -> list[Any]:
        """Compute on a cluster; place the blocks again if all workers that held them are lost."""
        for _ in range(N_PLACEMENTS):
            try:
                return cluster.compute(make_tasks(), self._placed_on)
            except WorkersReplacedError:
                logger.warning("All workers that held X are lost: its blocks are made again on other workers")
                cluster.cancel(self._blocks)
                del self._blocks
            except LostClusterError:
                cluster.raise_first_error(self._blocks)
                raise
        largest = int(np.diff(self.edges).max()) * self.shape[1 - self.axis] * self.dtype.itemsize
        raise RuntimeError(
            f"All workers of {cluster.name} were lost {N_PLACEMENTS} times in one pass over X. A block, up to "
            f"{format_bytes(largest)}, probably does not fit into the memory of a worker: {SMALLER}."
        )


class _OnPlainBlock:
    """Kernel on a block of any container; its name is the name of its tasks in Dask."""

    def __init__(self, kernel: Kernel, declared: DeclaredBlock) -> None:
        self.kernel, self.declared, self.__name__ = kernel, declared, kernel.__name__

    def __call__(self, block: Any, *own: Any) -> Any:
        refuse_broken_sparse(block, self.declared.name)
        return self.kernel(as_plain_block(block, self.declared), *own)


def _hold(block: Any) -> Any:
    return block


def _in_order(combine: Combine, *parts: Any) -> Any:
    return reduce(combine, parts)
