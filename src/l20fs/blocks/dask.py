"""Dask arrays: a function per block on whatever Dask runs on, with the array's own graph as what loads the blocks.

A worker that is lost takes nothing with it: its blocks are made again by the graph, and what was kept on it is part of
the graph, too. Values go down as one literal per pass and not once per task. This file is imported where there is a Dask
array, and nowhere else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property, reduce
from operator import add
from typing import Any

import dask.base
import numpy as np
from dask.array.utils import meta_from_array
from dask.delayed import Delayed, delayed

from l20fs.blocks.memory import bytes_of, shown
from l20fs.blocks.passes import FAN_IN, Blocks, Combine, Kernel, Traffic, plain, size_of

logger = logging.getLogger("l20fs")

#: The array is held in the memory of the workers, or of this machine, if it takes at most this share of it.
SHARE_FOR_X = 0.4

#: Seconds without a single worker, after there were some, before the fit gives up; a nanny starts a new one in less.
PATIENCE = 30.0

AGAIN = "Start workers and fit again; with checkpoint=folder it goes on where it was."


def dask_blocks(X: Any, memory: int) -> DaskBlocks:
    """Take the chunks of a Dask array as blocks, or say how it must be chunked."""
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} axes. Give a matrix of two axes, samples and features.")
    if any(np.isnan(size) for chunks in X.chunks for size in chunks):
        raise ValueError("X has chunks of unknown size. Call X.compute_chunk_sizes() first.")
    n_rows, n_columns = X.numblocks
    if n_rows > 1 and n_columns > 1:
        whole = 1 if X.shape[0] >= X.shape[1] else 0
        raise ValueError(
            f"X is cut along both axes, into {n_rows} x {n_columns} chunks. Cut it along one: X.rechunk("
            f"{{{1 - whole}: 'auto', {whole}: -1}})."
        )
    return DaskBlocks(X, int(n_columns > 1), memory)


class DaskBlocks(Blocks):
    """The chunks of a Dask array as :class:`~l20fs.blocks.passes.Blocks`."""

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
        """The blocks as Dask knows them; from here on they are held in memory if they fit."""
        X, workers = self._X, self._workers()
        room = sum(workers.values())
        fits = X.nbytes <= SHARE_FOR_X * room
        how = "held in memory" if fits else "made again by its graph for each pass"
        logger.info("X takes up to %s and there are %s for it: it is %s", shown(X.nbytes), shown(room), how)
        blocks = [block for block, size in zip(X.to_delayed().ravel(), X.chunks[self.axis], strict=True) if size]
        if not fits or self._client is None:
            return list(dask.base.persist(*blocks)) if fits else blocks
        # Neighbours on one worker, if it lives: most of a sum is then done where its parts are.
        groups = np.array_split(np.arange(len(blocks)), len(workers))
        held: list[Any] = []
        for worker, group in zip(workers, groups, strict=True):
            chosen = [blocks[number] for number in group]
            held += self._client.persist(chosen, workers=[worker], allow_other_workers=True) if chosen else []
        return held

    def _workers(self) -> dict[str, int]:
        """Return the memory of each worker, or what may be used of this machine."""
        if self._client is None:
            return {"": self._memory}
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        return {address: int(worker["memory_limit"] or bytes_of(None)) for address, worker in workers.items()}

    def keep(self, value: Any) -> Any:
        return self._leaf(value).persist()

    def send(self, value: Any) -> Any:
        return self._leaf(value)

    def _leaf(self, value: Any) -> Any:
        self.traffic.n_down += size_of(value)
        return delayed(value, pure=False, traverse=False)

    def each(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], which: Sequence[int] | None = None) -> list[Any]:
        return self._computed(self._tasks(kernel, own, range(len(own)) if which is None else which))

    def total(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], combine: Combine = add) -> Any:
        parts = self._tasks(kernel, own, range(len(own)))
        while len(parts) > 1:
            groups = [parts[start : start + FAN_IN] for start in range(0, len(parts), FAN_IN)]
            parts = [delayed(_in_order, pure=False)(combine, *group) for group in groups]
        return self._computed(parts)[0]

    def _tasks(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], which: Sequence[int]) -> list[Any]:
        self.traffic.n_passes += 1
        task = delayed(_OnPlainBlock(kernel), pure=False)
        self.traffic.n_down += sum(
            size_of(value) for number in which for value in own[number] if not isinstance(value, Delayed)
        )
        return [task(self._blocks[number], *own[number]) for number in which]

    def _computed(self, tasks: list[Any]) -> list[Any]:
        # What goes down is what a pass needs, and not larger than that: there is nothing to warn about.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            results = list(dask.base.compute(*tasks)) if self._client is None else self._gathered(tasks)
        self.traffic.n_up += size_of(results)
        return results

    def _gathered(self, tasks: list[Any]) -> list[Any]:
        """Compute on a cluster, and give up when there is nobody left to wait for."""
        from distributed import CancelledError, KilledWorker

        client = self._client
        assert client is not None
        had_workers = bool(self._workers()) or self.traffic.n_up > 0
        alone_since = time.monotonic()
        futures = client.compute(tasks)
        try:
            while not _are_done(futures):
                has_workers = bool(self._workers())
                had_workers |= has_workers  # one that is still on its way to its first worker may wait
                if has_workers or not had_workers:
                    alone_since = time.monotonic()
                elif time.monotonic() - alone_since > PATIENCE:
                    raise RuntimeError(
                        f"All workers of the Dask cluster at {client.scheduler.address} are gone, and no other came within "
                        f"{PATIENCE:.0f} seconds. {AGAIN}"
                    )
            return list(client.gather(futures))
        except KilledWorker as error:
            raise RuntimeError(
                f"A block of X was lost with its worker several times ({error}). As a rule it did not fit into the memory "
                "of a worker: use smaller chunks, for example X.rechunk({0: 'auto', 1: -1}), or workers with more memory."
            ) from error
        except CancelledError as error:
            raise RuntimeError(f"The Dask cluster has gone in the middle of a fit ({error}). {AGAIN}") from error
        except BaseException:
            with suppress(Exception):  # of a client that is closed; what happened before that is what matters
                client.cancel(futures)  # nobody waits for them any more
            raise


class _OnPlainBlock:
    """A kernel on a block of any kind; Dask calls its tasks by its name."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.__name__ = kernel, kernel.__name__

    def __call__(self, block: Any, *own: Any) -> Any:
        return self.kernel(plain(block), *own)


def _are_done(futures: list[Any]) -> bool:
    """Wait a moment. What a task itself raises is none of this function's business, even if it is a timeout, too."""
    from distributed import wait

    try:
        wait(futures, timeout=1.0)
    except TimeoutError:
        return False
    return True


def _in_order(combine: Combine, *parts: Any) -> Any:
    return reduce(combine, parts)
