"""Runs of ``select --stability``, ``compare`` and ``reproduce`` that are killed by SIGKILL and called again.

    python tests/kills.py          # at a few system calls, as CI does it
    python tests/kills.py 60       # so many kills, half of them at random moments, half at random system calls

A run that is called again must end with the same bytes as one that nobody disturbed, and with no other file, hidden or not.
A killed run that was to replace results must leave the old set or the new one, whole, to whoever opens the folder next.
Every run is a fork of this process, so that the interpreter starts once; the signal comes from here. Each fit takes exactly
one second by the clock of these runs, since measured times would differ.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

from cli_samples import contents, planted, write_table

from l20fs.cli import compare as _compare  # noqa: F401  loaded once, before the forks
from l20fs.cli import run, select_content, select_pipeline  # noqa: F401
from l20fs.evaluation import engine
from l20fs.experiments import compare, reproduce
from l20fs.experiments.plan import parse_plan
from l20fs.report.formats import text_writer
from l20fs.storage.swap import recover

#: A plan of a few quick fits in place of the paper's.
PLAN = """
datasets = ["srbct"]
sizes = [2, 5]
n_splits = 2

[[methods]]
method = "FisherScore"

[[methods]]
label = "l2,0-FS"
paper_solver = "ahiht"
grid = { alpha = [1e-1] }
"""

WATCHED = ("fsync", "replace")


def commands(place: Path) -> dict[str, tuple[list[str], list[str]]]:
    """Return the runs without their folder, and the options with which each is called again."""
    X, labels, _ = planted(n_features=8)
    table = write_table(place / "table.tsv", X, labels)
    small = ["--methods=FisherScore", "--sizes=2", "--splits=2", "--n-jobs=1"]
    return {
        "select": (["select", table, "--target=type", "-k", "3", "--stability", "8"], ["--resume"]),
        "compare": (["compare", table, "--target=type", *small], []),
        "reproduce": (["reproduce", "accuracy", "--datasets=srbct", f"--data-dir={place / 'none'}", "--n-jobs=1"], []),
    }


def start(arguments: list[str], stop_at: tuple[str, int, bool] | None = None) -> tuple[int, int]:
    """Start a run in a fork that waits at a system call; return its process and a pipe on which it says that it is there."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            silence = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(silence, number)
            seconds = itertools.count()
            engine.time = SimpleNamespace(perf_counter=lambda: float(next(seconds)))
            counts = watch(stop_at, writing)
            code = run(arguments)
            os.write(writing, json.dumps(counts).encode())
        finally:
            os._exit(code)
    os.close(writing)
    return child, reading


def watch(stop_at: tuple[str, int, bool] | None, writing: int) -> dict[str, int]:
    """Count the calls of some functions of the system; wait for ever before or after one of them."""
    counts = dict.fromkeys(WATCHED, 0)

    def watched(name, original):
        def call(*given):
            counts[name] += 1
            if stop_at is None or stop_at[:2] != (name, counts[name]):
                return original(*given)
            if stop_at[2]:
                original(*given)
            elif name == "fsync":
                with suppress(OSError):  # half of a file is on disk; a folder cannot be cut
                    os.ftruncate(given[0], os.fstat(given[0]).st_size // 2)
            os.write(writing, b"!")
            while True:
                signal.pause()

        return call

    for name in WATCHED:
        setattr(os, name, watched(name, getattr(os, name)))
    return counts


def finish(child: int, reading: int) -> tuple[int, dict[str, int]]:
    """Wait for the end of a run; return its exit code and how often it called the watched functions."""
    said = b""
    while content := os.read(reading, 1000):
        said += content
    os.close(reading)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, json.loads(said) if code == 0 else {}


def kill(child: int, reading: int, seconds: float | None) -> bool:
    """Kill a run after some time, or where it waits; return whether it was still alive."""
    if seconds is None:
        select.select([reading], [], [], 120.0)
    else:
        time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.close(reading)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


class Trial:
    """One command, its undisturbed result, and kills of it."""

    def __init__(self, name: str, place: Path, command: list[str], again: list[str]) -> None:
        self.name, self.place, self.command, self.again = name, place, command, again
        begun = time.monotonic()
        code, self.counts = finish(*start([*command, "-o", str(place / "whole")]))
        assert code == 0, f"{name} ended with {code}"
        self.seconds = time.monotonic() - begun
        self.whole = contents(place / "whole")
        self.old: dict[str, bytes] | None = None
        if name == "select":
            assert finish(*start([*command, "-k", "2", "-o", str(place / "old")]))[0] == 0
            self.old = contents(place / "old")

    def kill(self, number: int, *, stop_at=None, seconds=None, replace=False) -> tuple[bool, list[str]]:
        """Kill a run and call it again; return whether it was killed, and what is wrong."""
        folder, options = self.place / str(number), []
        if replace and self.old is not None:
            shutil.copytree(self.place / "old", folder)
            options = ["--force"]
        was_alive = kill(*start([*self.command, *options, "-o", str(folder)], stop_at), seconds)
        faults = ["was not killed"] if stop_at is not None and not was_alive else []
        if folder.exists():
            faults += self.judge(folder, is_replaced=bool(options))
        code, _ = finish(*start([*self.command, *options, *self.again, "-o", str(folder)]))
        after = contents(folder)
        if code != 0 or after != self.whole:
            names = [name for name in {**after, **self.whole} if after.get(name) != self.whole.get(name)]
            faults.append(f"ended with {code} and other files: {names}")
        shutil.rmtree(folder)
        where = f"{self.name} {stop_at or seconds}{' --force' if options else ''}"
        return was_alive, [f"{where}: {fault}" for fault in faults]

    def judge(self, folder: Path, *, is_replaced: bool) -> list[str]:
        """Return what is wrong with what a killed run has left."""
        recover(folder)
        left = {name: content for name, content in contents(folder).items() if os.sep not in name and name[0] != "."}
        allowed = [{name: content for name, content in self.whole.items() if os.sep not in name}]
        allowed.append({n: content for n, content in self.old.items() if os.sep not in n} if is_replaced else {})
        return [] if left in allowed else [f"left a mixed set: {sorted(left)}"]


def at_points(trials: list[Trial]) -> tuple[int, list[str]]:
    """Kill at a few system calls from the first to the last, just before or just after them."""
    faults, number = [], 0
    for trial in trials:
        for name, shares in (("replace", (0.0, 0.9, 0.6, 1.0)), ("fsync", (0.3, 0.95))):
            for share in shares[:: 1 if trial.name == "select" else 2]:
                replace = number % 4 == 3  # such a run does not mark its folder, which is one call less
                point = (name, max(1, round(share * trial.counts[name]) - replace), number % 2 == 1)
                faults += trial.kill(number, stop_at=point, replace=replace)[1]
                number += 1
    return number, faults


def at_random(trials: list[Trial], n_kills: int, seed: int) -> tuple[int, list[str]]:
    """Kill at random moments and at random system calls."""
    draw, faults, number, n_done = random.Random(seed), [], 0, 0
    while n_done < n_kills:
        trial = trials[number % len(trials)]
        seconds, point = None, None
        if draw.random() < 0.5:
            seconds = draw.uniform(0.0, 1.1 * trial.seconds)
        else:
            name = draw.choice(WATCHED)
            point = (name, draw.randint(1, trial.counts[name] - 2), draw.random() < 0.5)
        was_alive, new = trial.kill(number, stop_at=point, seconds=seconds, replace=draw.random() < 0.4)
        faults += new
        n_done += was_alive
        number += 1
    return n_done, faults


def main() -> None:
    n_kills = int(sys.argv[1]) if len(sys.argv) > 1 else None
    reproduce.load_plan = lambda name: parse_plan(PLAN)
    if n_kills is None:  # pictures take most of the time
        compare.figure_writers = lambda figure, name: {f"{name}.svg": text_writer(name)}
    with tempfile.TemporaryDirectory() as name:
        place, trials = Path(name), []
        for command, (arguments, again) in commands(place).items():
            (place / command).mkdir()
            trials.append(Trial(command, place / command, arguments, again))
        seed = random.randrange(10**6)
        done, faults = at_points(trials) if n_kills is None else at_random(trials, n_kills, seed)
    print("".join(f"{fault}\n" for fault in faults), end="")
    print(f"{done} kills, {len(faults)} faults" + (f" (seed {seed})" if n_kills else ""))


if __name__ == "__main__":
    main()
