"""Guard against changes of a file while it is read, with which a result would belong to no version of the file."""

from __future__ import annotations

import hashlib
import os
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
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


class FileGuard:
    """Guard of an open file, or of every file of a folder: its size and times, and the hash of its content if it is known.

    An open file stays readable when it is replaced or removed as a whole; the files of a folder do not.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "x.npy"
    >>> _ = file.write_bytes(b"before")
    >>> guard = FileGuard(file)
    >>> guard.check()
    >>> _ = file.write_bytes(b"longer than before")
    >>> guard.check()
    Traceback (most recent call last):
        ...
    l20fs.blocks.file_guard.ChangedFileError: x.npy was changed while it was read. Wait until it is complete and start again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None
        self._digest: str | None = None
        self._lock = Lock()
        if not path.is_dir():
            self._handle = os.open(path, os.O_RDONLY)
            weakref.finalize(self, os.close, self._handle)
        self._before = self._state()

    @property
    def is_cheap(self) -> bool:
        """Whether a check is one system call, whatever the size of the data."""
        return self._handle is not None

    def know(self, digest: str) -> None:
        """Keep the SHA-256 of the content as it was read, which from now on decides whether a change is one of content."""
        self._digest = digest

    def check(self) -> None:
        """Raise ChangedFileError if anything changed; a change of the times alone does not count, if the hash is known."""
        if self._state() == self._before:
            return
        with self._lock:
            state = self._state()
            if state != self._before and not self._is_harmless(state):
                raise changed_file(self._path.name)
            self._before = state

    def verify(self) -> None:
        """Raise ChangedFileError if the content has another hash than when it was read: one more pass over the file."""
        self.check()
        with self._lock:
            if self._digest is not None and self._hash() != self._digest:
                raise changed_file(self._path.name)

    def _is_harmless(self, state: list[tuple[Path, Stamp]]) -> bool:
        if [(name, stamp.size) for name, stamp in state] != [(name, stamp.size) for name, stamp in self._before]:
            return False
        if self._digest is not None:
            return self._hash() == self._digest
        return all(stamp.has_same_content(now) for (_, now), (_, stamp) in zip(state, self._before, strict=True))

    def _hash(self) -> str:
        if self._handle is None:
            return str(hash_files(files_below(self._path)).hexdigest())
        with open(self._handle, "rb", buffering=0, closefd=False) as stream:
            stream.seek(0)
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def _state(self) -> list[tuple[Path, Stamp]]:
        if self._handle is None:
            try:
                return [(file.relative_to(self._path), Stamp.of(file.stat())) for file in files_below(self._path)]
            except FileNotFoundError as error:
                raise changed_file(self._path.name) from error
        stamp = Stamp.of(os.fstat(self._handle))
        try:
            is_there = os.stat(self._path).st_ino == stamp.inode
        except OSError:
            is_there = False
        return [(Path(), stamp._replace(others=(*stamp.others, is_there)))]  # a new name is a reason for a time of change


def file_guard_of(stored: Any) -> FileGuard | None:
    """Return a guard of the file of a memory map, of an HDF5 file that is open for reading, or of a zarr store."""
    path = getattr(stored, "filename", None)  # of a memory map
    file = getattr(stored, "file", None)  # of HDF5
    if file is not None:
        path = file.filename if getattr(file, "mode", "") == "r" else None
    root = getattr(getattr(stored, "store", None), "root", None)  # of zarr in a folder
    path = root if path is None else path
    return FileGuard(Path(path)) if isinstance(path, str | os.PathLike) and os.path.exists(path) else None
