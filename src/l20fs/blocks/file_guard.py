"""Guard against changes of a file between passes, with which a result would belong to no version of the file."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any


class ChangedFileError(ValueError):
    """File changed between or during passes."""


class FileGuard:
    """Guard of an open file, or of every file of a folder, by its size and time of modification.

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
        if not path.is_dir():
            self._handle = os.open(path, os.O_RDONLY)
            weakref.finalize(self, os.close, self._handle)
        self._before = self._state()

    @property
    def is_cheap(self) -> bool:
        """Whether a check is one system call, whatever the size of the data."""
        return self._handle is not None

    def check(self) -> None:
        """Raise ChangedFileError if anything changed."""
        if self._state() != self._before:
            raise ChangedFileError(
                f"{self._path.name} was changed while it was read. Wait until it is complete and start again."
            )

    def _state(self) -> Any:
        if self._handle is not None:
            return _stamp(os.fstat(self._handle))
        return sorted((str(file), *_stamp(file.stat())) for file in self._path.rglob("*") if file.is_file())


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_size, status.st_mtime_ns, status.st_ino


def file_guard_of(stored: Any) -> FileGuard | None:
    """Return a guard of the file of a memory map, of an HDF5 file that is open for reading, or of a zarr store."""
    path = getattr(stored, "filename", None)  # of a memory map
    file = getattr(stored, "file", None)  # of HDF5
    if file is not None:
        path = file.filename if getattr(file, "mode", "") == "r" else None
    root = getattr(getattr(stored, "store", None), "root", None)  # of zarr in a folder
    path = root if path is None else path
    return FileGuard(Path(path)) if isinstance(path, str | os.PathLike) and os.path.exists(path) else None
