"""Faults of a Dask cluster in the middle of a fit: seconds until the fit finished, or until its error.

Run ``OMP_NUM_THREADS=1 python benchmarks/dask_faults.py [--only kill,freeze_one] [--limit 240]``. Every fault has a
scheduler and two workers with nannies in processes of their own. The fit should finish with the support of the fit in
memory, or end with a clear error within a minute; what takes longer than the limit is ended and called a hang.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import dask
import dask.array as da
import distributed
import joblib
import numpy as np

from l20fs import L20Selector, StabilitySelector

#: Seconds into the fit at which the fault happens.
SOON = 1.5

CLUSTERS: list[Cluster] = []
STARTED: list[float] = []


def slow(block, seconds):
    time.sleep(seconds)
    return block


def swell(block, n_bytes):
    return block + np.ones(n_bytes // 8)[0]


class Cluster:
    """Scheduler and two workers with nannies, each in a process of its own."""

    def __init__(self, *, memory: str = "1GiB", nanny: bool = True) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.scheduler = self.start("dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", self.file)
        flag = "--nanny" if nanny else "--no-nanny"
        options = ("--nthreads", "1", "--memory-limit", memory, "--no-dashboard", "--scheduler-file", self.file, flag)
        self.nannies = [self.start("dask_worker", *options) for _ in range(2)]
        self.client = distributed.Client(scheduler_file=self.file, timeout=60)
        self.client.wait_for_workers(2, timeout=60)
        self.pids = list(self.client.run(os.getpid).values())
        CLUSTERS.append(self)
        STARTED.append(time.monotonic())
        signal.signal(signal.SIGTERM, self.end)

    @property
    def file(self) -> str:
        return f"{self.folder.name}/scheduler.json"

    def start(self, module: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *options]
        return subprocess.Popen(command, cwd=self.folder.name, stderr=subprocess.DEVNULL, start_new_session=True)

    def signal(self, number: int, *pids: int) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):  # the fit has ended before
                os.kill(pid, number)

    def end(self, number: int = 0, frame: object = None) -> None:
        for process in (*self.nannies, self.scheduler):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if number:
            os._exit(1)


def problem(shape=(120, 3000)):
    rng = np.random.default_rng(1)
    X = rng.standard_normal(shape)
    return X, np.argmax(X[:, :3] + rng.standard_normal((len(X), 3)), axis=1)


def compare(found, expected) -> str:
    return "finished, same support" if np.array_equal(found, expected) else "ANOTHER SUPPORT"


def fit(cluster: Cluster, fault: Callable[[], object], *, seconds: float = 0.3) -> str:
    """Fit while a fault happens; compare the path with that of the fit in memory."""
    X, y = problem()
    lazy = da.from_array(X, chunks=(120, 250)).map_blocks(slow, seconds=seconds, meta=X[:0])
    # The path takes some seconds, so that the fault meets it, and not the first pass alone.
    selector = L20Selector(15, solver="ahiht", callback=lambda stage: time.sleep(0.2))
    with dask.config.set(scheduler=cluster.client):
        threading.Timer(SOON, fault).start()
        found = selector.fit(lazy, y)
    expected = L20Selector(15, solver="ahiht").fit(X, y)
    return compare(found.path_.indices, expected.path_.indices)


def kill() -> str:
    """Both workers are killed and restarted by their nannies."""
    cluster = Cluster()
    return fit(cluster, lambda: cluster.signal(signal.SIGKILL, *cluster.pids))


def kill_while_loading() -> str:
    """The same in the first pass."""
    cluster = Cluster()
    return fit(cluster, lambda: cluster.signal(signal.SIGKILL, *cluster.pids), seconds=1.0)


def kill_for_good() -> str:
    """Both workers are killed and nobody restarts them."""
    cluster = Cluster(nanny=False)
    return fit(cluster, lambda: cluster.signal(signal.SIGKILL, *cluster.pids))


def freeze_one() -> str:
    """One of two workers is stopped for good."""
    cluster = Cluster()
    return fit(cluster, lambda: cluster.signal(signal.SIGSTOP, cluster.pids[0]))


def freeze_all() -> str:
    """Both workers are stopped for good."""
    cluster = Cluster()
    return fit(cluster, lambda: cluster.signal(signal.SIGSTOP, *cluster.pids))


def freeze_scheduler() -> str:
    """The scheduler is stopped for good."""
    cluster = Cluster()
    return fit(cluster, lambda: cluster.signal(signal.SIGSTOP, cluster.scheduler.pid))


def thaw_scheduler() -> str:
    """The scheduler is stopped for 15 seconds."""
    cluster = Cluster()

    def stop():
        cluster.signal(signal.SIGSTOP, cluster.scheduler.pid)
        time.sleep(15)
        cluster.signal(signal.SIGCONT, cluster.scheduler.pid)

    return fit(cluster, stop)


def kill_scheduler() -> str:
    """The scheduler is killed."""
    cluster = Cluster()
    return fit(cluster, lambda: cluster.signal(signal.SIGKILL, cluster.scheduler.pid))


def shut_down() -> str:
    """client.shutdown() in another thread."""
    cluster = Cluster()
    return fit(cluster, cluster.client.shutdown)


def close_client() -> str:
    """client.close() in another thread."""
    cluster = Cluster()
    return fit(cluster, cluster.client.close)


def stop_loop() -> str:
    """The event loop of the client ends."""
    cluster = Cluster()
    return fit(cluster, lambda: cluster.client.loop.add_callback(cluster.client.loop.stop))


def oversize() -> str:
    """Blocks of 1.6 GB for workers of 600 MB."""
    cluster = Cluster(memory="600MB")
    X, y = problem((40, 20))
    lazy = da.from_array(X, chunks=(10, 20)).map_blocks(swell, n_bytes=1_600_000_000, meta=X[:0])
    with dask.config.set(scheduler=cluster.client):
        L20Selector(3).fit(lazy, y)
    return "finished"


def long_block() -> str:
    """Each block takes 80 seconds: not a fault."""
    cluster = Cluster()
    X, y = problem((40, 20))
    lazy = da.from_array(X, chunks=(10, 20)).map_blocks(slow, seconds=80.0, meta=X[:0])
    with dask.config.set(scheduler=cluster.client):
        found = L20Selector(3).fit(lazy, y)
    return (
        "finished, same support" if np.array_equal(found.support_, L20Selector(3).fit(X, y).support_) else "ANOTHER SUPPORT"
    )


def resamples(fault: Callable[[Cluster], object]) -> str:
    cluster = Cluster()
    X, y = problem((120, 4000))
    selector = StabilitySelector(L20Selector(10, solver="swap"), n_resamples=30, random_state=0)
    expected = selector.fit(X, y).scores_
    threading.Timer(SOON, fault, (cluster,)).start()
    with joblib.parallel_config("dask", client=cluster.client):
        found = selector.fit(X, y).scores_
    return compare(found, expected)


def joblib_kill() -> str:
    """Both workers are killed while StabilitySelector runs through joblib."""
    return resamples(lambda cluster: cluster.signal(signal.SIGKILL, *cluster.pids))


def joblib_freeze() -> str:
    """Both workers are stopped for good while StabilitySelector runs through joblib."""
    return resamples(lambda cluster: cluster.signal(signal.SIGSTOP, *cluster.pids))


FAULTS = (kill, kill, kill, kill_while_loading, kill_for_good, freeze_one, freeze_all, freeze_scheduler, thaw_scheduler)
FAULTS += (kill_scheduler, shut_down, close_client, stop_loop, oversize, long_block, joblib_kill, joblib_freeze)


def run_here(fault: Callable[[], str]) -> None:
    """Run a fault in this process and print how it ended."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        end = fault()
    except Exception as error:
        end = f"{type(error).__name__}: {error}"
    print(f"{time.monotonic() - STARTED[0]:.1f} s  {end}", flush=True)
    CLUSTERS[0].end()
    os._exit(0)  # threads of a broken client may wait for ever


def run(fault: Callable[[], str], limit: float) -> str:
    """Run a fault in a process of its own; return its seconds and how it ended."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--here", fault.__name__],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=limit)[0].strip()
    except subprocess.TimeoutExpired:
        process.terminate()  # ends its cluster
        return f"HANG, ended after {limit:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="faults, separated by commas")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds after which a fit is called a hang")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        run_here(globals()[options.here])
    for fault in FAULTS:
        if not options.only or fault.__name__ in options.only.split(","):
            print(f"{fault.__name__:20} {run(fault, options.limit)}", flush=True)


if __name__ == "__main__":
    main()
