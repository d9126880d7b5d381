"""Blocks of a Dask array, one task per block on any scheduler.

If a worker is lost, Dask computes its blocks, and the values sent to it, again by the graph. A value is sent once per pass,
not once per task. This module needs dask and is imported only for a Dask array.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property, reduce
from typing import Any

import dask.array
import dask.base
import numpy as np
from dask.array.utils import meta_from_array
from dask.delayed import delayed

from l20fs.blocks.memory import format_bytes, memory_limit
from l20fs.blocks.passes import (
    FAN_IN,
    Blocks,
    DeclaredBlock,
    Kernel,
    Traffic,
    add_up,
    as_plain_block,
    declared_block,
    extents,
)
from l20fs.inputs.sparse_structure import refuse_broken_sparse

logger = logging.getLogger("l20fs")

#: The array is persisted if it takes at most this fraction of the memory of the workers, or of the limit on this machine.
SHARE_FOR_X = 0.4


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
        self._X = X

    @cached_property
    def _blocks(self) -> list[Any]:
        """Blocks as tasks of Dask, persisted in memory if they fit."""
        X, room = self._X, self._room()
        fits = X.nbytes <= SHARE_FOR_X * room
        how = "held in memory" if fits else "computed again by its graph for each pass"
        logger.info("X takes up to %s of %s available: it is %s", format_bytes(X.nbytes), format_bytes(room), how)
        blocks = [block for block, size in zip(X.to_delayed().ravel(), X.chunks[self.axis], strict=True) if size]
        return list(dask.base.persist(*blocks)) if fits else blocks

    def _room(self) -> int:
        """Return the memory of all workers, or the limit on this machine if there is no cluster."""
        client: Any = getattr(dask.base.get_scheduler(collections=[self._X]), "__self__", None)
        if not hasattr(client, "scheduler_info"):
            return self._memory
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(int(worker["memory_limit"] or memory_limit(None)) for worker in workers)

    def send(self, value: Any) -> Any:
        return delayed(value, pure=False, traverse=False)

    def each(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], which: Sequence[int] | None = None) -> list[Any]:
        return self._compute(self._tasks(kernel, own, range(len(own)) if which is None else which))

    def total(self, kernel: Kernel, own: Sequence[tuple[Any, ...]]) -> Any:
        parts = self._tasks(kernel, own, range(len(own)))
        while len(parts) > 1:
            groups = [parts[start : start + FAN_IN] for start in range(0, len(parts), FAN_IN)]
            parts = [delayed(_in_order, pure=False)(*group) for group in groups]
        return self._compute(parts)[0]

    def _tasks(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], which: Sequence[int]) -> list[Any]:
        self.traffic.n_passes += 1
        declared = [declared_block(self, span) for span in extents(self)]
        tasks = {number: delayed(_OnPlainBlock(kernel, declared[number]), pure=False) for number in which}
        return [task(self._blocks[number], *own[number]) for number, task in tasks.items()]

    def _compute(self, tasks: list[Any]) -> list[Any]:
        # Dask warns about large graphs; these hold only the values that a pass needs.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return list(dask.base.compute(*tasks))


class _OnPlainBlock:
    """Kernel on a block of any container; its name is the name of its tasks in Dask."""

    def __init__(self, kernel: Kernel, declared: DeclaredBlock) -> None:
        self.kernel, self.declared, self.__name__ = kernel, declared, kernel.__name__

    def __call__(self, block: Any, *own: Any) -> Any:
        refuse_broken_sparse(block, self.declared.name)
        return self.kernel(as_plain_block(block, self.declared), *own)


def _in_order(*parts: Any) -> Any:
    return reduce(add_up, parts)
