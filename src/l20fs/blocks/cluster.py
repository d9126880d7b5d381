"""Work on a Dask cluster that may lose its workers or its scheduler: no call waits for ever.

A pass goes on as long as something is done: a task ends, values move, or a worker that sends heartbeats executes a task,
however long it takes. After :data:`PATIENCE` seconds in which nothing is done, workers without heartbeats are given up, so
that others compute what they held; if there are none, the pass ends with an error.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import dask.config
from dask.utils import parse_timedelta

from l20fs.blocks.memory import memory_limit

logger = logging.getLogger("l20fs")

#: Seconds in which nothing is done until a pass fails; ``dask.config.set({"l20fs-patience": "5 minutes"})`` sets others. The
#: first task of a worker imports this package, and on a busy machine no heartbeat is sent meanwhile.
PATIENCE = 45.0

#: Seconds between two looks at the cluster.
INTERVAL = 1.0

#: Seconds that one answer of the scheduler may take.
ANSWER = 5.0

AGAIN = "Start workers and fit again; with checkpoint=folder the fit is resumed."
LONGER = "If a task keeps a worker from its heartbeats for longer, use dask.config.set({'l20fs-patience': '5 minutes'})."
SMALLER = "use smaller chunks, for example X.rechunk({0: 'auto', 1: -1}), or workers with more memory"


class WorkersReplacedError(Exception):
    """All workers that blocks were placed on are gone, and there are others."""


class LostClusterError(RuntimeError):
    """Dask has given up tasks."""


class Cluster:
    """Scheduler and workers behind a client of Dask.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        #: Name in messages; a client that is closed knows it no more.
        self.name = f"the Dask cluster at {getattr(client.scheduler, 'address', 'an unknown address')}"
        self.had_workers = False

    def memory(self) -> dict[str, int]:
        """Return the memory of each worker by its address; wait for the scheduler as long as for a task."""
        watch = Watch(self)
        with self._clear_errors():
            while (workers := watch.look()) is None:
                time.sleep(INTERVAL)
        self.had_workers |= bool(workers)
        return {address: int(worker["memory_limit"] or memory_limit(None)) for address, worker in workers.items()}

    def persist(self, tasks: list[Any], **options: Any) -> list[Any]:
        """Hold the results of tasks in the memory of the workers."""
        with self._clear_errors():
            return list(self.client.persist(tasks, **options))

    def compute(self, tasks: list[Any], placed_on: frozenset[str] = frozenset()) -> list[Any]:
        """Return the results of tasks.

        Raises WorkersReplacedError if none of the workers in ``placed_on`` is left and there are others: Dask never runs
        tasks that were placed on workers if all of them are lost at once. RuntimeError if the cluster is lost.
        """
        with self._clear_errors():
            futures = self.client.compute(tasks)
            watch = Watch(self, futures, placed_on)
            gathering = self._submit(partial(_gather, futures=futures))
            try:
                while not concurrent.futures.wait([gathering], timeout=INTERVAL).done:
                    watch.check()
                return list(gathering.result())
            except BaseException:
                with suppress(RuntimeError):  # the loop is closed
                    gathering.cancel()
                self.cancel(futures)
                raise

    def raise_first_error(self, held: list[Any]) -> None:
        """Raise the error of a task that should be held, if one has failed: what needs it is only reported as cancelled."""
        from distributed import futures_of

        for future in futures_of(held):
            if future.status == "error":
                self.ask(partial(_gather, futures=[future]))

    def cancel(self, futures: list[Any]) -> None:
        """Forget the results of tasks; a cluster that does not answer is left alone."""
        with suppress(Exception):
            self.ask(lambda client: client.cancel(futures, asynchronous=True))

    def ask(self, question: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        """Return the answer to a question to the client, run by its event loop, or raise TimeoutError."""
        answer = self._submit(question)
        try:
            return answer.result(ANSWER)
        except TimeoutError:
            answer.cancel()
            raise

    def _submit(self, question: Callable[[Any], Coroutine[Any, Any, Any]]) -> concurrent.futures.Future[Any]:
        if self.is_closed:
            raise RuntimeError(f"The client of {self.name} was closed during the fit. {AGAIN}")
        return asyncio.run_coroutine_threadsafe(question(self.client), self.client.loop.asyncio_loop)

    @property
    def is_closed(self) -> bool:
        """Whether the client was closed, or its event loop has ended."""
        return self.client.loop.asyncio_loop.is_closed() or self.client.status in ("closing", "closed")

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        """Turn errors of a lost cluster into one that says what to do; errors of the tasks themselves pass."""
        from distributed import CancelledError, KilledWorker
        from distributed.client import ClosedClientError
        from distributed.comm.core import CommClosedError

        cancelled = (CancelledError, asyncio.CancelledError, concurrent.futures.CancelledError)
        try:
            yield
        except KilledWorker as error:
            raise RuntimeError(
                f"A block of X was lost with its worker several times ({error}). It probably does not fit into the memory "
                f"of a worker: {SMALLER}."
            ) from error
        except (*cancelled, ClosedClientError, CommClosedError) as error:
            raise self._lost() from error

    def _lost(self) -> LostClusterError:
        return LostClusterError(f"The connection to {self.name} was lost during the fit. {AGAIN}")


class Watch:
    """Clock of one pass: how long ago the scheduler answered, each worker sent a heartbeat and something was done.

    Heartbeats are compared with the one before and never with the time on this machine, whose clock may differ.
    """

    def __init__(self, cluster: Cluster, futures: list[Any] | None = None, placed_on: frozenset[str] = frozenset()) -> None:
        self._cluster, self._futures, self._placed_on = cluster, futures or [], placed_on
        self._patience = float(parse_timedelta(dask.config.get("l20fs-patience", PATIENCE)))
        self._answered = self._moved = time.monotonic()
        self._beats: dict[str, tuple[Any, float]] = {}  # last heartbeat, and when it was seen first
        self._done: dict[str, Any] = {}

    def look(self) -> dict[str, Any] | None:
        """Return what the scheduler knows about its workers; None if it does not answer yet."""
        cluster = self._cluster
        try:
            workers: dict[str, Any] = cluster.ask(lambda client: client.scheduler.identity())["workers"]
        except OSError as error:  # a timeout, too
            if time.monotonic() - self._answered > self._patience:
                raise RuntimeError(
                    f"The scheduler of {cluster.name} has not answered for {self._patience:.0f} seconds. {AGAIN}"
                ) from error
            return None
        self._answered = time.monotonic()
        return workers

    def check(self) -> None:
        """Raise an error if the pass cannot go on, and give up workers that block it."""
        workers = self.look()
        if workers is None:
            return
        if workers and self._placed_on and self._placed_on.isdisjoint(workers):
            raise WorkersReplacedError
        if self._something_is_done(workers):
            self._moved = time.monotonic()
        elif time.monotonic() - self._moved > self._patience:
            self._give_up(workers)

    def _something_is_done(self, workers: dict[str, Any]) -> bool:
        now, cluster = time.monotonic(), self._cluster
        fresh = [address for address in workers if self._beats.get(address, (None, 0.0))[0] != workers[address]["last_seen"]]
        self._beats |= {address: (workers[address]["last_seen"], now) for address in fresh}
        # A worker that has gone is no progress: one deadline, also for workers that are frozen and then lost.
        done: dict[str, Any] = {
            address: [worker["metrics"].get(name) for name in COUNTS] for address, worker in workers.items()
        }
        done["tasks"] = sum(future.done() for future in self._futures)
        moved = any(self._done.get(name) != count for name, count in done.items())
        self._done |= done
        waits_for_first = not workers and not cluster.had_workers  # in the queue of a batch system, for example
        cluster.had_workers |= bool(workers)
        return moved or waits_for_first or any(_is_busy(workers[address]["metrics"]) for address in fresh)

    def _give_up(self, workers: dict[str, Any]) -> None:
        """Let the scheduler remove workers without heartbeats, or raise an error if that does not help."""
        cluster, waited = self._cluster, f"{self._patience:.0f} seconds"
        if not workers:
            raise RuntimeError(f"All workers of {cluster.name} are gone, and none was added within {waited}. {AGAIN}")
        silent = [address for address in workers if time.monotonic() - self._beats[address][1] > self._patience / 2]
        if len(silent) == len(workers):
            raise RuntimeError(f"No worker of {cluster.name} has sent a heartbeat for {waited}. {AGAIN} {LONGER}")
        if silent:
            logger.warning("No heartbeat for %s: the work of %s is given to other workers", waited, ", ".join(silent))
            for address in silent:  # as the scheduler does by itself after its worker-ttl, five minutes by default
                reason = f"l20fs-no-heartbeat-{time.time()}"
                cluster.ask(partial(_unregister, address=address, stimulus_id=reason))
            self._moved = time.monotonic()
            return
        n_paused = sum(worker["status"] == "paused" for worker in workers.values())
        paused = f", and {n_paused} are paused since their memory is full: {SMALLER}" if n_paused else ""
        raise RuntimeError(
            f"Nothing was done on {cluster.name} for {waited}: none of its {len(workers)} workers executes a task{paused}. "
            f"{AGAIN}"
        )


def _gather(client: Any, futures: list[Any]) -> Coroutine[Any, Any, Any]:
    return client.gather(futures, asynchronous=True)


def _unregister(client: Any, **worker: str) -> Coroutine[Any, Any, Any]:
    return client.scheduler.unregister(**worker)


#: What changes in the metrics of a worker, and only then, when it does something.
COUNTS = ("task_counts", "managed_bytes", "spilled_bytes", "transfer")


def _is_busy(metrics: dict[str, Any]) -> bool:
    """Return whether a worker executes a task, be it one that was cancelled; what waits for another worker does not count.

    Examples
    --------
    >>> _is_busy({"task_counts": {"executing": 1}}), _is_busy({"task_counts": {"flight": 1}})
    (True, False)
    """
    counts, n_incoming = metrics.get("task_counts", {}), metrics.get("transfer", {}).get("incoming_count", 0)
    cancelled = 0 if n_incoming else counts.get("cancelled", 0) + counts.get("resumed", 0)
    return bool(counts.get("executing", 0) + counts.get("long-running", 0) + cancelled)
