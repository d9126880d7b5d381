"""Runs that are interrupted or terminated: they end in the same order, and say which of the two it was."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Exit codes of shells: 128 and the number of the signal.
EXIT_INTERRUPTED, EXIT_TERMINATED = 130, 143


class Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM), which ends a run in the same order as Ctrl-C."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM end the block by an exception, so that temporary files are removed."""

    def stop(number: int, frame: Any) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def message_of(stop: BaseException) -> tuple[str, int]:
    """Return what to say about an interruption, and the exit code.

    Examples
    --------
    >>> message_of(KeyboardInterrupt()), message_of(Terminated())
    (('interrupted.', 130), ('terminated.', 143))
    """
    causes = (stop, stop.__cause__, stop.__context__)  # click and joblib raise errors of their own
    if any(isinstance(cause, Terminated) for cause in causes):
        return "terminated.", EXIT_TERMINATED
    return "interrupted.", EXIT_INTERRUPTED
