"""Standard input and pipes: read once, into memory or into a private temporary file that is then read as any other."""

from __future__ import annotations

import os
import re
import select
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from l20fs.storage.regular_files import LargeFileError, not_a_file, read_regular

#: Name that stands for standard input.
STANDARD_INPUT = "-"

#: Seconds within which somebody must open a named pipe for writing.
PATIENCE = 3.0

#: Bytes at the beginning by which the limit of a stream is decided, and bytes that are read at a time.
HEAD, CHUNK = 2**8, 2**20

#: A stream takes at most this share of the free space of the temporary folder.
SHARE_OF_DISK = 0.9

#: Temporary folders begin with this; one that is older than this many seconds and not locked is left of a killed process.
PREFIX, OLD = "l20fs-input-", 3600.0

StreamName = str | os.PathLike[str]


def descriptor_of(file: StreamName) -> int | None:
    """Return the open file of this process that a name stands for; None if it is another name.

    Examples
    --------
    >>> descriptor_of("-"), descriptor_of("/dev/fd/63"), descriptor_of("table.csv")
    (0, 63, None)
    """
    name = os.fspath(file)
    if name in (STANDARD_INPUT, "/dev/stdin"):
        return 0
    number = re.fullmatch(r"/(?:dev|proc/self)/fd/([0-9]{1,6})", name)
    return int(number[1]) if number else None


def title_of(file: StreamName) -> str:
    """Return the name of a file or stream for messages.

    Examples
    --------
    >>> title_of("-"), title_of("/dev/fd/63"), title_of("data/table.csv")
    ('standard input', 'pipe 63', 'table.csv')
    """
    number = descriptor_of(file)
    return Path(file).name if number is None else f"pipe {number}" if number else "standard input"


def is_stream(file: StreamName) -> bool:
    """Return whether a name stands for something that can be read once: standard input or a pipe."""
    if os.fspath(file) == STANDARD_INPUT:
        return True
    try:
        mode = os.stat(file).st_mode
    except (OSError, ValueError):  # nothing there, or an impossible name
        return False
    return stat.S_ISFIFO(mode) or (stat.S_ISSOCK(mode) and descriptor_of(file) is not None)


def read_once(file: StreamName, most_bytes: int) -> bytes:
    """Return the content of a regular file or of a pipe, of at most ``most_bytes``."""
    if not is_stream(file):
        return read_regular(file, most_bytes)
    content = bytearray()
    with closing(pieces_of(file)) as pieces:
        for piece in pieces:
            content += piece
            if len(content) > most_bytes:
                raise LargeFileError(f"{title_of(file)}: more than {most_bytes} bytes came, as in no such file.")
    return bytes(content)


@contextmanager
def copied(file: StreamName, limit: Callable[[bytes], int | None]) -> Iterator[Path]:
    """Copy a stream into a regular file that nobody else can read, and remove it when the context ends.

    ``limit`` returns the maximum number of bytes for a stream that begins with the given ones, None if there is none.
    """
    sweep()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder, _locked(folder):
        place = Path(folder, title_of(file))
        room = int(SHARE_OF_DISK * shutil.disk_usage(folder).free)
        try:
            with open(place, "wb", buffering=0) as copy, closing(pieces_of(file)) as pieces:
                _copy(pieces, copy.write, limit, room, title_of(file))
        except _FullDiskError as error:
            raise OSError(
                f"{title_of(file)}: the temporary folder {tempfile.gettempdir()} has no room for it ({error}). Name another "
                "folder in the environment variable TMPDIR."
            ) from error
        yield place


class _FullDiskError(Exception):
    """No room for a copy."""


def _copy(
    pieces: Iterator[bytes], write: Callable[[Any], int], limit: Callable[[bytes], int | None], room: int, name: str
) -> None:
    head, size, most = b"", 0, None
    for piece in pieces:
        if len(head) < HEAD:
            head += piece[: HEAD - len(head)]
            most = limit(head)
        size += len(piece)
        if most is not None and size > most:
            raise LargeFileError(f"{name}: more than {most} bytes came.")
        if size > room:
            raise _FullDiskError(f"more than {room} bytes came")
        view = memoryview(piece)
        try:
            while view:
                view = view[write(view) :]
        except OSError as error:
            raise _FullDiskError(error.strerror) from error


def pieces_of(file: StreamName) -> Generator[bytes]:
    """Yield the content of a stream piece by piece.

    A writer is waited for; a named pipe that nobody opens for writing is refused after some seconds.
    """
    number = descriptor_of(file)
    try:
        # Another descriptor of the same pipe: its mode is shared with other processes and stays as it is.
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)) if number is None else os.dup(number)
    except OSError as error:
        raise OSError(f"{title_of(file)} cannot be read ({error.strerror}). Save it to a file first.") from error
    try:
        mode = os.fstat(descriptor).st_mode
        is_pipe = stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or (stat.S_ISSOCK(mode) and number is not None)
        if not is_pipe:
            raise not_a_file(title_of(file) if number == 0 else file, mode)
        yield from _pieces(descriptor, file, PATIENCE if number is None else 0.0)
    finally:
        os.close(descriptor)


def _pieces(descriptor: int, file: StreamName, patience: float) -> Iterator[bytes]:
    has_writer, deadline = not patience, time.monotonic() + patience
    while True:
        try:
            piece = os.read(descriptor, CHUNK)
        except BlockingIOError:  # somebody has it open for writing, and has nothing yet
            has_writer = True
            _wait(descriptor)
            continue
        if piece:
            has_writer = True
            yield piece
        elif has_writer:
            return
        elif time.monotonic() > deadline:
            raise not_a_file(file, stat.S_IFIFO, "a pipe that nobody writes to")
        else:
            time.sleep(0.02)


def _wait(descriptor: int) -> None:
    """Wait until there is something to read, or nobody writes any more; an interrupt ends it."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    waiting.poll(1000)


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Lock a folder while it is used; the system releases the lock of a process that is killed."""
    descriptor = _lock(folder)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock(folder: StreamName) -> int | None:
    """Return a descriptor that locks a folder; None if another process has it, or the system has no locks."""
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    except (ModuleNotFoundError, AttributeError, OSError):
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def sweep() -> None:
    """Remove the copies of processes of this user that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError, AttributeError):
            status = folder.lstat()
            if status.st_uid != os.getuid() or time.time() - status.st_mtime < OLD:
                continue
            descriptor = _lock(folder)
            if descriptor is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(descriptor)
