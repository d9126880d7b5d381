"""Folders of results: written as a whole, and overwritten only if asked for."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import click

from l20fs.files import Writable, refuse_irregular, write_together


def check_folder(
    folder: Path, names: Sequence[str], *, force: bool, way_out: str = "Add --force to overwrite them."
) -> None:
    """Raise an error before any work is done if results cannot be written, or are there already."""
    place = next(place for place in (folder, *folder.resolve().parents) if os.path.lexists(place))
    if not place.is_dir():
        raise NotADirectoryError(f"-o {folder}: {place} is no folder. Name another folder.")
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise OSError(f"-o {folder}: {place} cannot be written to ({error.strerror}). Name another folder.") from error
    for name in names:
        refuse_irregular(folder / name)
    times = [(folder / name).stat().st_mtime for name in names if (folder / name).exists()]
    if times and not force:
        made = datetime.fromtimestamp(max(times)).strftime("%d %b %H:%M")
        raise click.UsageError(f"{folder} has results of {made}. {way_out}")


def write_results(folder: Path, files: Mapping[str, Writable], names: Sequence[str]) -> list[str]:
    """Write results, the page last; of ``names``, all that the command may write, those of an earlier run go."""
    folder.mkdir(parents=True, exist_ok=True)
    write_together(folder, files, stale=set(names) - files.keys())
    return list(files)
