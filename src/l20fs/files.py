"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_atomically(file: str | os.PathLike[str], write: Callable[[BinaryIO], object]) -> None:
    """Let ``write`` fill a temporary file beside ``file`` and put it in place when it is whole and on the disk.

    Whatever goes wrong, an older ``file`` stays as it was.
    """
    write_together({Path(file): write})


def write_together(writers: dict[Path, Callable[[BinaryIO], object]]) -> None:
    """Write several files as :func:`write_atomically` does, and put them in place only when all are on the disk."""
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
