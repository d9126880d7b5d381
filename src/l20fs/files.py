"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

#: What a file is to hold: its text, or a function that fills the open file.
Writable = str | Callable[[BinaryIO], object]

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
    """Raise an error for a folder or a device in the place of a file that is to be written."""
    if file.exists() and not file.is_file():
        raise OSError(f"{file}: not a regular file, and only such a file is replaced. Name another file, or remove it.")
