"""Atomic writing of files: whole or not at all, over regular files only."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

from l20fs.storage.regular_files import NotAFileError, kind_of

#: What fills an open file, and what a file is to hold.
Writer = Callable[[BinaryIO], object]
Writable = str | Writer

#: Temporary folders beside the files that are written begin with this.
PREFIX = ".l20fs-"


def write_atomically(file: str | os.PathLike[str], content: Writable) -> None:
    """Write a file atomically; after an error an older one is unchanged."""
    path = Path(file)
    write_together(path.parent, {path.name: content})


def write_together(folder: Path, files: Mapping[str, Writable], stale: Iterable[str] = ()) -> None:
    """Write files into a temporary folder in ``folder``, and then put them in place one after the other.

    After an error in writing, what was there before is unchanged. ``stale`` files of an earlier run are removed.
    """
    for name in files:
        refuse_irregular(folder / name)
    try:
        with tempfile.TemporaryDirectory(prefix=PREFIX, dir=folder) as place:
            for name, content in files.items():
                with open(Path(place, name), "wb") as stream:
                    if isinstance(content, str):
                        stream.write(content.encode())
                    else:
                        content(stream)
                    stream.flush()
                    os.fsync(stream.fileno())
            for name in stale:
                (folder / name).unlink(missing_ok=True)
            for name in files:
                os.replace(Path(place, name), folder / name)
    except OSError as error:
        raise OSError(
            f"{folder / next(iter(files))} cannot be written ({error.strerror or error}). What was there before is "
            f"unchanged: make room in {folder}{os.sep}, or name another place."
        ) from error


def refuse_irregular(file: Path) -> None:
    """Raise an error for a folder, link, pipe, device or socket in the place of a file that is to be written."""
    try:
        mode = os.lstat(file).st_mode
    except (OSError, ValueError):
        return
    if not stat.S_ISREG(mode):
        raise NotAFileError(
            f"{file}: {kind_of(mode)}, and only a regular file is replaced. Name another file, or remove it."
        )


def check_writable(folder: Path, option: str = "-o") -> None:
    """Raise an error for a folder that cannot be written to, or not be made, before any work is done."""
    place = folder
    while not os.path.lexists(place) and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise NotADirectoryError(f"{option} {folder}: {place} is no folder. Name another folder.")
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise OSError(f"{option} {folder}: {place} cannot be written to ({error.strerror}). Name another folder.") from error
