"""Output folder of a command that writes a few files: checked first, locked, written together, run.json last."""

from __future__ import annotations

import json
import platform
import tempfile
from collections.abc import Callable, Collection
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import click

from l20fs.storage.files import claimed, write_together

#: Files by which the results of ``l20fs select`` are known; no other command writes beside them.
OF_SELECT = ("selection.tsv", "panel.json", "report.json")

#: Files by which the results of a command are known.
COMMAND_OF = dict.fromkeys(OF_SELECT, "select") | {
    "comparison.csv": "compare",
    "validation.json": "validate",
    "predictions.tsv": "predict",
}

Writers = dict[str, Callable[[BinaryIO], object]]


def check_writable(folder: Path) -> None:
    """Raise an error for a folder that cannot be written to, or not be made, before any work is done."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"-o {folder}: this is a file. Name a folder.")
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise NotADirectoryError(f"-o {folder}: {place} is a file, and no folder can be made in it. Name another folder.")
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise OSError(f"-o {folder}: {place} cannot be written to ({error.strerror}). Name another folder.") from error


def check_folder(folder: Path | None, files: Collection[str], *, force: bool) -> None:
    """Raise an error for an invalid output folder before any work is done."""
    if folder is None:
        return
    check_writable(folder)
    foreign = [name for name in OF_SELECT if (folder / name).exists()]
    if foreign:
        raise click.UsageError(f"-o {folder}: holds results of `l20fs select` ({', '.join(foreign)}). Name another folder.")
    present = [name for name in files if (folder / name).exists()]
    if present and not force:
        raise click.UsageError(f"-o {folder}: holds results already ({', '.join(present)}). Use --force to replace them.")


def write_folder(folder: Path, writers: Writers, run: dict[str, Any], files: Collection[str], *, force: bool) -> list[str]:
    """Write the files atomically, with run.json last, remove those of an earlier run, and return their names."""
    from l20fs.report.formats import text_writer

    all_writers = {**writers, "run.json": text_writer(json.dumps(run, indent=2, ensure_ascii=False) + "\n")}
    with claimed(folder):
        check_folder(folder, files, force=force)
        for name in files:
            for part in folder.glob(f".{name}.*.part"):
                part.unlink(missing_ok=True)
        write_together({folder / name: write for name, write in all_writers.items()})
        for name in set(files) - all_writers.keys():
            (folder / name).unlink(missing_ok=True)
    return list(all_writers)


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    return {"python": platform.python_version(), **{name: version(name) for name in ("l20fs", "numpy")}}
