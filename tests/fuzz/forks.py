"""Many cases in forks of a warm interpreter: a case that crashes or hangs ends its fork, and is known by its number."""

from __future__ import annotations

import faulthandler
import gc
import logging
import mmap
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from attacks.runner import MOST_MEMORY

from fuzz.case import Cases
from fuzz.corpus import Target

#: Seconds of processor time and of time that a case may take; one of these files takes some milliseconds.
MOST_WORK, MOST_TIME = 10, 300

#: Cases of one fork.
BATCH = 500

#: Cases after which a line tells how far it is.
PROGRESS = 10_000

#: Separates faults in the file in which a fork writes them.
END = "\0\n"


@dataclass
class Found:
    """What came out of many cases."""

    n_cases: int = 0
    n_read: int = 0
    n_flips: int = 0
    #: Target, number of the case, and fault.
    faults: list[tuple[str, int, str]] = field(default_factory=list)
    cases: Counter[str] = field(default_factory=Counter)


class Fork:
    """Process that runs cases ``start`` to ``stop``; case i is the one of target i modulo the number of targets."""

    def __init__(self, cases: Sequence[Cases], start: int, stop: int) -> None:
        self.stop = stop
        #: Number of the case in work, of those that were done, of tables and of flipped bytes.
        self.journal = np.frombuffer(mmap.mmap(-1, 4 * 8), dtype=np.int64)
        self.journal[0] = start
        self.said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this object
        self.process = os.fork()
        if self.process == 0:
            try:
                self._work(cases, start)
            finally:
                os._exit(70)

    def _work(self, cases: Sequence[Cases], start: int) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        nothing, said = os.open(os.devnull, os.O_RDWR), self.said.fileno()
        for place, descriptor in ((nothing, 0), (said, 1), (said, 2)):
            os.dup2(place, descriptor)
        logging.disable()  # a stored result that is damaged is told, and that is right
        faulthandler.enable(file=said)
        for limit in (signal.SIGPROF, signal.SIGALRM):
            faulthandler.register(limit, file=said, chain=True)  # tells where, then the signal ends this process
        for number in range(start, self.stop):
            self.journal[0] = number
            signal.setitimer(signal.ITIMER_PROF, MOST_WORK)
            signal.alarm(MOST_TIME)
            end = os.lseek(said, 0, os.SEEK_END)
            outcome = cases[number % len(cases)].run(number // len(cases))
            fault = outcome.fault
            if (size := os.lseek(said, 0, os.SEEK_END)) > end:
                fault = fault or "printed " + os.pread(said, size - end, end).decode(errors="replace")
            if fault:
                os.write(said, f"{END}{number}\n{fault}{END}".encode(errors="replace"))
            self.journal[1:] += [1, outcome.is_read, outcome.n_flips]
        os._exit(0)

    def faults(self, status: int) -> Iterator[tuple[int, str]]:
        """Yield number and fault of every case, after the process has ended."""
        self.said.seek(0)
        parts = self.said.read().decode(errors="replace").split(END)
        for part in parts[1::2]:
            number, _, fault = part.partition("\n")
            yield int(number), fault
        code = os.waitstatus_to_exitcode(status)
        if code:
            names = {-signal.SIGPROF: "more work than allowed", -signal.SIGALRM: "hangs"}
            name = names.get(code) or (signal.Signals(-code).name if code < 0 else f"exit code {code}")
            yield int(self.journal[0]), f"{name}\n{parts[-1][:3000]}"


def run_cases(
    targets: Sequence[Target],
    corpus: Path,
    *,
    seed: int,
    n_cases: int,
    n_flips: int = 0,
    seconds: float = 0.0,
    jobs: int = 1,
) -> Found:
    """Run up to ``n_cases`` cases, with every target in turn; until so many bytes are flipped or seconds gone, if given."""
    gc.freeze()  # pages that are not written to are shared
    found, queue, running, number = Found(), [], {}, 0
    deadline = time.monotonic() + seconds
    folders = [Path(tempfile.mkdtemp(prefix="work-", dir=corpus)) for _ in range(jobs)]
    lanes = [
        [Cases(each, corpus / each.name, folder / each.name, seed, only_flips=bool(n_flips)) for each in targets]
        for folder in folders
    ]
    free = list(range(jobs))
    while True:
        is_over = (n_flips and found.n_flips >= n_flips) or (seconds and time.monotonic() > deadline)
        while free and not is_over and (queue or number < n_cases):
            start, stop = queue.pop() if queue else (number, min(n_cases, number + BATCH))
            number = max(number, stop)
            lane = free.pop()
            fork = Fork(lanes[lane], start, stop)
            running[fork.process] = (fork, lane)
        if not running:
            return found
        process, status = os.wait()
        fork, lane = running.pop(process)
        free.append(lane)
        _add(found, fork, status, targets)
        if status and fork.journal[0] + 1 < fork.stop:
            queue.append((int(fork.journal[0]) + 1, fork.stop))


def kind_of(fault: tuple[str, int, str]) -> str:
    """Return target, number and type of a fault, and the line of the package that it comes from."""
    target, number, text = fault
    lines = text.strip().splitlines()
    places = [line.rpartition("l20fs/")[2].split(",") for line in lines if "src/l20fs/" in line]
    has_ended = "most recent call first" in text  # as faulthandler has it, other than Python
    said = lines[0][:60] if has_ended or len(lines) == 1 else lines[-1].partition(":")[0]
    place = (places[0] if has_ended else places[-1])[:2] if places else []
    return f"{target!r} {number} {said} {','.join(place)}"


def _add(found: Found, fork: Fork, status: int, targets: Sequence[Target]) -> None:
    """Add what a fork has found."""
    n_done, n_read, n_flips = fork.journal[1:].tolist()
    if found.n_cases // PROGRESS < (found.n_cases + n_done) // PROGRESS:
        print(f"{found.n_cases + n_done} cases, {found.n_flips + n_flips} flips", file=sys.stderr, flush=True)
    found.n_cases, found.n_read, found.n_flips = found.n_cases + n_done, found.n_read + n_read, found.n_flips + n_flips
    for number, fault in fork.faults(status):
        found.faults.append((targets[number % len(targets)].name, number // len(targets), fault))
        print(f"{found.n_cases} cases, {found.n_flips} flips: {kind_of(found.faults[-1])}", file=sys.stderr, flush=True)
