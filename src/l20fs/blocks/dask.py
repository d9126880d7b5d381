"""Blocks of a Dask array, one task per block on any scheduler.

If a worker is lost, its blocks and the values sent to it are computed again by the graph. A value is sent once per pass, not
once per task. This module needs dask and is imported only for a Dask array.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property, reduce
from operator import add
from typing import Any

import dask.array
import dask.base
import numpy as np
from dask.array.utils import meta_from_array
from dask.delayed import Delayed, delayed

from l20fs.blocks.memory import format_bytes, memory_limit
from l20fs.blocks.passes import FAN_IN, Blocks, Combine, Kernel, Traffic, as_plain_block, count_bytes

logger = logging.getLogger("l20fs")

#: The array is persisted if it takes at most this fraction of the memory of the workers, or of the limit on this machine.
SHARE_FOR_X = 0.4

#: Seconds without any worker, after there were some, until the fit fails; a nanny restarts a worker faster.
PATIENCE = 30.0

AGAIN = "Start workers and fit again; with checkpoint=folder the fit is resumed."


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
        self._client = owner if hasattr(owner, "scheduler_info") else None
        self._X = X

    @cached_property
    def _blocks(self) -> list[Any]:
        """Blocks as tasks of Dask, persisted in memory if they fit."""
        X, workers = self._X, self._workers()
        room = sum(workers.values())
        fits = X.nbytes <= SHARE_FOR_X * room
        how = "held in memory" if fits else "computed again by its graph for each pass"
        logger.info("X takes up to %s of %s available: it is %s", format_bytes(X.nbytes), format_bytes(room), how)
        blocks = [block for block, size in zip(X.to_delayed().ravel(), X.chunks[self.axis], strict=True) if size]
        if not fits or self._client is None:
            return list(dask.base.persist(*blocks)) if fits else blocks
        # Adjacent blocks on one worker, while it is alive: most of a sum is then computed where its parts are.
        groups = np.array_split(np.arange(len(blocks)), len(workers))
        held: list[Any] = []
        for worker, group in zip(workers, groups, strict=True):
            chosen = [blocks[number] for number in group]
            held += self._client.persist(chosen, workers=[worker], allow_other_workers=True) if chosen else []
        return held

    def _workers(self) -> dict[str, int]:
        """Return the memory of each worker, or the limit on this machine."""
        if self._client is None:
            return {"": self._memory}
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        return {address: int(worker["memory_limit"] or memory_limit(None)) for address, worker in workers.items()}

    def keep(self, value: Any) -> Any:
        return self._leaf(value).persist()

    def send(self, value: Any) -> Any:
        return self._leaf(value)

    def _leaf(self, value: Any) -> Any:
        self.traffic.n_down += count_bytes(value)
        return delayed(value, pure=False, traverse=False)

    def each(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], which: Sequence[int] | None = None) -> list[Any]:
        return self._compute(self._tasks(kernel, own, range(len(own)) if which is None else which))

    def total(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], combine: Combine = add) -> Any:
        parts = self._tasks(kernel, own, range(len(own)))
        while len(parts) > 1:
            groups = [parts[start : start + FAN_IN] for start in range(0, len(parts), FAN_IN)]
            parts = [delayed(_in_order, pure=False)(combine, *group) for group in groups]
        return self._compute(parts)[0]

    def _tasks(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], which: Sequence[int]) -> list[Any]:
        self.traffic.n_passes += 1
        task = delayed(_OnPlainBlock(kernel), pure=False)
        self.traffic.n_down += sum(
            count_bytes(value) for number in which for value in own[number] if not isinstance(value, Delayed)
        )
        return [task(self._blocks[number], *own[number]) for number in which]

    def _compute(self, tasks: list[Any]) -> list[Any]:
        # Dask warns about large graphs; these hold only the values that a pass needs.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            results = list(dask.base.compute(*tasks)) if self._client is None else self._compute_on_cluster(tasks)
        self.traffic.n_up += count_bytes(results)
        return results

    def _compute_on_cluster(self, tasks: list[Any]) -> list[Any]:
        """Compute on a cluster; raise RuntimeError if all workers are gone for :data:`PATIENCE` seconds."""
        from distributed import CancelledError, KilledWorker

        client = self._client
        assert client is not None
        had_workers = bool(self._workers()) or self.traffic.n_up > 0
        alone_since = time.monotonic()
        futures = client.compute(tasks)
        try:
            while not _are_done(futures):
                has_workers = bool(self._workers())
                had_workers |= has_workers  # a cluster may still wait for its first worker
                if has_workers or not had_workers:
                    alone_since = time.monotonic()
                elif time.monotonic() - alone_since > PATIENCE:
                    raise RuntimeError(
                        f"All workers of the Dask cluster at {client.scheduler.address} are gone, and none was added within "
                        f"{PATIENCE:.0f} seconds. {AGAIN}"
                    )
            return list(client.gather(futures))
        except KilledWorker as error:
            raise RuntimeError(
                f"A block of X was lost with its worker several times ({error}). It probably does not fit into the memory "
                "of a worker: use smaller chunks, for example X.rechunk({0: 'auto', 1: -1}), or workers with more memory."
            ) from error
        except CancelledError as error:
            raise RuntimeError(f"The Dask cluster was lost during the fit ({error}). {AGAIN}") from error
        except BaseException:
            with suppress(Exception):  # a closed client; the first error is the one to report
                client.cancel(futures)
            raise


class _OnPlainBlock:
    """Kernel on a block of any container; its name is the name of its tasks in Dask."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.__name__ = kernel, kernel.__name__

    def __call__(self, block: Any, *own: Any) -> Any:
        return self.kernel(as_plain_block(block), *own)


def _are_done(futures: list[Any]) -> bool:
    """Wait for a second and return whether all are done; the errors of tasks are raised by ``gather``, even timeouts."""
    from distributed import wait

    try:
        wait(futures, timeout=1.0)
    except TimeoutError:
        return False
    return True


def _in_order(combine: Combine, *parts: Any) -> Any:
    return reduce(combine, parts)
