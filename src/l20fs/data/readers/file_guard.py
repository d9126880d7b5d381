"""Guard against changes of a file while it is read, with which a result would belong to no version of the file."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

#: A file that changed less than this many nanoseconds ago may change again without another time: clocks of disks are coarse.
YOUNG = 2 * 10**9


class ChangedFileError(ValueError):
    """File changed between or during passes."""


def changed_file(name: str) -> ChangedFileError:
    """Return the error for a file that changed."""
    return ChangedFileError(f"{name} was changed while it was read. Wait until it is complete and start again.")


class Stamp(NamedTuple):
    """State of a file without its content. Only the system sets the time of change: no program can restore it."""

    size: int
    modified: int
    inode: int
    changed: int
    #: What changes with the time of change alone.
    others: tuple[int, ...]

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        """Return the state in a result of ``os.stat``."""
        others = (status.st_mode, status.st_nlink, status.st_uid, status.st_gid)
        return cls(status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns, others)

    @property
    def is_young(self) -> bool:
        """Whether the next change may leave the same state."""
        return time.time_ns() - max(self.modified, self.changed) < YOUNG

    def has_same_content(self, now: Stamp) -> bool:
        """Return whether a later state is of the same content, as far as can be told without a hash."""
        return self == now or (self[:3] == now[:3] and self.others != now.others)


def files_below(folder: Path) -> list[Path]:
    """Return all files in a folder and its subfolders, in the order in which they are hashed."""
    return sorted(file for file in folder.rglob("*") if file.is_file())


def hash_files(files: Sequence[Path], before: bytes = b"") -> Any:
    """Return the SHA-256 of ``before`` and the content of regular files, one after the other, as an object of hashlib."""
    found = hashlib.sha256(before)
    for file in files:
        with open(file, "rb") as stream:
            hashlib.file_digest(stream, lambda: found)
    return found
