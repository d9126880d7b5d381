"""The rule by which a pass on a Dask cluster goes on, gives up workers or ends, on a clock made of numbers."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import dask.config
import pytest

pytest.importorskip("distributed")

from l20fs.blocks.cluster import INTERVAL, PATIENCE, Cluster, LostClusterError, Watch, WorkersReplacedError

WELL = 10.0 * PATIENCE


class Scheduler:
    """Cluster whose workers, by address, tell how long ago they sent a heartbeat and what they do."""

    name = "the Dask cluster at tcp://here"

    def __init__(self, monkeypatch):
        self.now, self.workers, self.asked, self.answers, self.had_workers = 0.0, {}, [], True, False
        monkeypatch.setattr("l20fs.blocks.cluster.time", SimpleNamespace(monotonic=lambda: self.now, time=lambda: self.now))

    def ask(self, question):
        if not self.answers:
            raise TimeoutError
        handlers = SimpleNamespace(
            identity=lambda: {"workers": self.workers}, unregister=lambda address, stimulus_id: address
        )
        answer = question(SimpleNamespace(scheduler=handlers))
        if isinstance(answer, str):
            self.asked.append(answer)
            self.workers.pop(answer)
        return answer

    def add(self, address, *, beats=True, status="running", **task_counts):
        self.workers[address] = {
            "last_seen": 0.0, "beats": beats, "status": status, "metrics": {"task_counts": task_counts}, "memory_limit": 0
        }  # fmt: skip

    def run(self, watch, seconds):
        """Let time pass, with a look at every interval."""
        end = self.now + seconds
        while self.now < end:
            self.now += INTERVAL
            for worker in self.workers.values():
                worker["last_seen"] += worker["beats"]
            watch.check()


@pytest.fixture
def scheduler(monkeypatch):
    return Scheduler(monkeypatch)


def watch_over(scheduler, futures=(), placed_on=()):
    return Watch(scheduler, list(futures), frozenset(placed_on))


def test_a_long_task_of_a_worker_with_heartbeats_is_no_stall(scheduler):
    scheduler.add("a", executing=1)
    scheduler.run(watch_over(scheduler), WELL)
    assert not scheduler.asked


def test_short_tasks_between_two_looks_are_progress(scheduler):
    done = [False] * 100
    futures = [SimpleNamespace(done=lambda number=number: done[number]) for number in range(100)]
    watch = watch_over(scheduler, futures)
    scheduler.add("a")
    for number in range(100):
        done[number] = True
        scheduler.run(watch, PATIENCE / 2)
    with pytest.raises(RuntimeError, match="Nothing was done"):
        scheduler.run(watch, 2 * PATIENCE)


def test_no_worker_yet_is_no_stall_and_none_left_is_one(scheduler):
    watch = watch_over(scheduler)
    scheduler.run(watch, WELL)  # in the queue of a batch system
    scheduler.add("a", executing=1)
    scheduler.run(watch, 2.0)
    scheduler.workers.clear()
    scheduler.run(watch, PATIENCE / 2)
    with pytest.raises(
        RuntimeError, match=r"All workers of the Dask cluster at tcp://here are gone.*with checkpoint=folder"
    ):
        scheduler.run(watch, PATIENCE)
    with pytest.raises(RuntimeError, match="are gone"):
        scheduler.run(watch_over(scheduler), 2 * PATIENCE)  # those of an earlier pass count


def test_a_frozen_worker_is_given_up_when_the_others_have_nothing_to_do(scheduler, caplog):
    scheduler.add("frozen", beats=False, executing=1)
    scheduler.add("b", executing=1)
    watch = watch_over(scheduler)
    scheduler.run(watch, WELL)
    assert not scheduler.asked  # there is work beside it
    scheduler.add("b")
    with caplog.at_level(logging.WARNING, "l20fs"):
        scheduler.run(watch, 2 * PATIENCE - 5.0)
    assert scheduler.asked == ["frozen"]
    assert "the work of frozen is given to other workers" in caplog.text
    with pytest.raises(RuntimeError, match=r"Nothing was done.*none of its 1 workers executes a task"):
        scheduler.run(watch, PATIENCE)  # it did not help


def test_frozen_workers_only(scheduler):
    scheduler.add("a", beats=False, executing=1)
    scheduler.add("b", beats=False, executing=1)
    with pytest.raises(RuntimeError, match=r"No worker of .* has sent a heartbeat for 45 seconds.*l20fs-patience"):
        scheduler.run(watch_over(scheduler), 2 * PATIENCE)
    assert scheduler.now < PATIENCE + 5.0
    with dask.config.set({"l20fs-patience": "5 minutes"}), pytest.raises(RuntimeError, match="for 300 seconds"):
        scheduler.run(watch_over(scheduler), 600.0)


def test_frozen_workers_that_then_lose_their_connection(scheduler):
    """One deadline for both."""
    scheduler.add("a", beats=False, executing=1)
    watch = watch_over(scheduler)
    scheduler.run(watch, PATIENCE - 5.0)
    scheduler.workers.clear()
    with pytest.raises(RuntimeError, match="are gone"):
        scheduler.run(watch, PATIENCE)
    assert scheduler.now < PATIENCE + 5.0


def test_workers_that_are_paused(scheduler):
    scheduler.add("a", status="paused", ready=2)
    scheduler.add("b", flight=1)
    with pytest.raises(RuntimeError, match=r"1 are paused since their memory is full: use smaller chunks"):
        scheduler.run(watch_over(scheduler), 2 * PATIENCE)


def test_a_frozen_scheduler(scheduler):
    scheduler.add("a", executing=1)
    watch = watch_over(scheduler)
    for _ in range(5):  # a while is no harm
        scheduler.answers = not scheduler.answers
        scheduler.run(watch, PATIENCE / 2)
    scheduler.answers = False
    with pytest.raises(RuntimeError, match=r"The scheduler of .* has not answered for 45 seconds\. Start workers"):
        scheduler.run(watch, 2 * PATIENCE)


def test_the_workers_with_the_blocks_are_replaced(scheduler):
    scheduler.add("a", executing=1)
    watch = watch_over(scheduler, placed_on=["a", "b"])
    scheduler.run(watch, WELL)
    scheduler.workers.clear()
    scheduler.run(watch, 2.0)  # their nannies are busy
    scheduler.add("c")
    with pytest.raises(WorkersReplacedError):
        scheduler.run(watch, 2.0)


def test_a_client_that_was_closed():
    from distributed.client import ClosedClientError

    def persist(tasks, **options):
        raise ClosedClientError("Tried sending message after closing.")

    loop = SimpleNamespace(asyncio_loop=SimpleNamespace(is_closed=lambda: False))
    client = SimpleNamespace(status="closed", persist=persist, loop=loop, scheduler=None)
    with pytest.raises(LostClusterError, match=r"The connection to the Dask cluster .* was lost.*Start workers"):
        Cluster(client).persist([])
