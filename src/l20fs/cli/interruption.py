"""Interrupted runs: what is kept, and the command that goes on."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: Exit codes of shells: 128 and the number of the signal.
EXIT_INTERRUPTED, EXIT_TERMINATED = 130, 143


class Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM), which ends a run in the same order as Ctrl-C."""


class Interrupted(KeyboardInterrupt):
    """A run was interrupted; ``kept`` says what is left of it, ``option`` with which option the same command goes on."""

    def __init__(self, kept: str, option: str | None) -> None:
        super().__init__(kept)
        self.kept, self.option = kept, option


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM end the block by an exception, so that what was computed is kept and told."""

    def stop(number: int, frame: Any) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def resumable(kept: Callable[[], str], option: str | None = None) -> Iterator[None]:
    """Tell what is kept when the block is interrupted: ``kept`` returns it, empty if there is nothing yet."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise Interrupted(kept(), option) from stop


def message_of(stop: BaseException, arguments: list[str]) -> tuple[str, int]:
    """Return what to say about an interruption, and the exit code.

    Examples
    --------
    >>> message_of(Interrupted("3 folds are kept in out/", "--resume"), ["select", "my file.csv", "-o", "out"])
    ("interrupted: 3 folds are kept in out/. Go on with: l20fs select 'my file.csv' -o out --resume", 130)
    >>> message_of(KeyboardInterrupt(), ["select", "srbct"])
    ('interrupted: nothing was kept.', 130)
    """
    causes = [stop]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and cause not in causes:
        causes.append(cause)
    is_terminated = any(isinstance(cause, Terminated) for cause in causes)
    word, code = ("terminated", EXIT_TERMINATED) if is_terminated else ("interrupted", EXIT_INTERRUPTED)
    known = next((cause for cause in causes if isinstance(cause, Interrupted)), None)
    if known is None:
        return f"{word}: nothing was kept.", code
    further = [known.option] if known.kept and known.option is not None and known.option not in arguments else []
    command = shlex.join([*program(), *arguments, *further])
    if not known.kept:
        return f"{word}: nothing was kept yet. Begin again with: {command}", code
    return f"{word}: {known.kept}. Go on with: {command}", code


def program() -> list[str]:
    """Return the words that call this program, as they were typed."""
    typed = sys.orig_argv[: max(0, len(sys.orig_argv) - len(sys.argv[1:]))]
    if typed[-2:-1] == ["-m"] and typed[-1] in ("l20fs", "l20fs.cli"):
        return typed
    called = sys.argv[0]
    is_found = os.path.basename(called) != "l20fs" or shutil.which("l20fs") == os.path.abspath(called)
    return ["l20fs"] if is_found else [called]
