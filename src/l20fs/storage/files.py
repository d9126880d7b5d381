"""Atomic writing of files, and locked output folders."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_atomically(file: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Write a file atomically: ``write`` fills a temporary file that is then renamed.

    After an error an older ``file`` is unchanged.
    """
    write_together({Path(file): write})


def write_together(writers: dict[Path, Callable[[BinaryIO], object]]) -> None:
    """Write several files as :func:`write_atomically` does, and rename them when all are on disk."""
    staged: dict[Path, str] = {}
    try:
        for file, write in writers.items():
            handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name[:100]}.", suffix=".part")
            staged[file] = temporary
            with os.fdopen(handle, "wb") as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, 0o666 & ~_umask())
        for file, temporary in staged.items():
            os.replace(temporary, file)
    finally:
        for temporary in staged.values():
            Path(temporary).unlink(missing_ok=True)
    for folder in {file.parent for file in staged}:
        _sync_folder(folder)


def writable_folder(folder: str | os.PathLike[str], parameter: str) -> Path:
    """Return a writable folder, created if necessary; ``parameter`` is for the error."""
    if not isinstance(folder, str | os.PathLike) or not os.fspath(folder):
        raise TypeError(f"{parameter}={folder!r} is not a folder. Give the path of one, or None.")
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise OSError(
            f"{parameter}={os.fspath(folder)!r} cannot be written to ({reason}). Give a writable folder."
        ) from error
    return path


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Create a folder and lock it against other processes within the context.

    The system releases the lock of a process that is killed, and no lock file is left in the folder. A folder that was
    created here and still holds no file after an error is removed again.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = _lock(folder)
    try:
        yield
    except BaseException:
        inside = [path for path in folder.iterdir() if path.is_dir()] if missing else []
        for path in (*inside, *missing):
            try:
                path.rmdir()
            except OSError:
                break
        raise
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock(folder: Path) -> int | None:
    """Lock a folder; None if the system cannot."""
    try:
        import fcntl
    except ModuleNotFoundError:  # pragma: no cover - not on Windows
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise BlockingIOError(
                f"{folder}: another run is writing into this folder. Wait until it ends, or name another folder."
            ) from error
        return None  # some network file systems have no locks
    return descriptor


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Make the new name durable; not every system can open a folder."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
