"""Output folders of the commands: what may be written there, and all results of a run together."""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from l20fs.files import PREFIX, Writable, refuse_irregular, write_together

#: What the results were made from.
RUN = "run.json"

#: All files that a command may write, by which a rerun knows what to replace.
RESULTS: dict[str, tuple[str, ...]] = {
    "select": (
        *("selection.tsv", "cv.tsv", "stability.tsv", "panels.tsv", "atlas.tsv", "panel.json", RUN),
        "report.html",
    ),
    "compare": ("rows.csv", "comparison.csv", "curves.csv", RUN, "report.html"),
    "validate": ("validation.tsv", "predictions.tsv", "validation.json", RUN, "validation.html"),
    "predict": ("predictions.tsv", RUN),
}


def check_output(folder: Path, command: str, *, force: bool) -> None:
    """Raise an error before any work is done if the results of a command cannot be written, or must not."""
    place = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    if not place.is_dir():
        raise NotADirectoryError(f"-o {folder}: {place} is no folder. Name another folder.")
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise OSError(f"-o {folder}: {place} cannot be written to ({error.strerror}). Name another folder.") from error
    present = [name for name in RESULTS[command] if (folder / name).exists()]
    if present and not force:
        raise click.UsageError(f"-o {folder}: holds results already ({', '.join(present)}). Use --force to replace them.")
    for name in present:
        refuse_irregular(folder / name)


def write_results(folder: Path, command: str, files: Mapping[str, Writable], run: Mapping[str, Any]) -> list[str]:
    """Write the results of a command and run.json, the page last, and return their names; those of an earlier run go."""
    record = json.dumps({"command": command, **run}, indent=2, ensure_ascii=False) + "\n"
    written = {RUN: record, **files}
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(f"{PREFIX}*"):  # of runs that were killed
        shutil.rmtree(left, ignore_errors=True)
    write_together(folder, written, stale=set(RESULTS[command]) - written.keys())
    return list(written)


def versions(*packages: str) -> dict[str, str]:
    """Return the versions that a result depends on: of Python, of this package and NumPy, and of others."""
    from importlib.metadata import version  # half of the time of importing this module

    return {"python": platform.python_version(), **{name: version(name) for name in ("l20fs", "numpy", *packages)}}
