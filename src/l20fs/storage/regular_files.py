"""Files that are read: regular ones only, so that a pipe or a device neither blocks nor goes on for ever."""

from __future__ import annotations

import os
import stat
from io import BufferedReader, FileIO
from typing import Any

#: Largest file of results, or plan, that is read.
MOST_BYTES = 2**28

#: Kinds of files, by the type bits of their mode.
KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


class NotAFileError(OSError):
    """Folder, pipe, device or socket where a regular file is needed."""


class LargeFileError(OSError):
    """File that is larger than any of its kind."""


class _NamedFile(FileIO):
    """Open file that is named in errors of the system, such as those of a damaged disk."""

    def __init__(self, descriptor: int, file: str) -> None:
        super().__init__(descriptor, "rb")
        self.file = file

    def readinto(self, buffer: Any) -> Any:
        try:
            return super().readinto(buffer)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.file) from error

    def readall(self) -> Any:
        try:
            return super().readall()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.file) from error


def open_regular(file: str | os.PathLike[str]) -> BufferedReader:
    """Open a regular file for reading in binary; anything else raises an error at once, and nothing waits.

    Examples
    --------
    >>> open_regular(".")
    Traceback (most recent call last):
        ...
    l20fs.storage.regular_files.NotAFileError: .: a folder, where a regular file is needed. Name a file in it.
    """
    mode = os.stat(file).st_mode
    if not stat.S_ISREG(mode):  # opening a socket fails, and opening a device may move it
        raise not_a_file(file, mode)
    # Opening a pipe would wait for its other end; the check on the open file cannot be overtaken by another process.
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise not_a_file(file, mode)
    return BufferedReader(_NamedFile(descriptor, os.fspath(file)))


def kind_of(mode: int) -> str:
    """Return what something is, by its mode."""
    return KINDS.get(stat.S_IFMT(mode), "something else")


def not_a_file(file: str | os.PathLike[str], mode: int, kind: str | None = None) -> NotAFileError:
    """Return an error that says what stands in the place of a regular file."""
    kind = kind or kind_of(mode)
    way_out = "Name a file in it." if stat.S_ISDIR(mode) else "Save it to a file first."
    return NotAFileError(f"{os.fspath(file)}: {kind}, where a regular file is needed. {way_out}")


def read_regular(file: str | os.PathLike[str], most_bytes: int) -> bytes:
    """Return the content of a regular file of at most ``most_bytes``."""
    with open_regular(file) as stream:
        content = stream.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise LargeFileError(f"{os.fspath(file)}: larger than {most_bytes} bytes, as no such file is. Name another one.")
    return content
