"""Results of a command: all files of a run are complete before the first one takes its place."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from l20fs.storage.files import PREFIX, Writable, write_together

#: What the results were made from.
RUN = "run.json"

#: All files that a command may write, by which a rerun knows what to replace.
RESULTS: dict[str, tuple[str, ...]] = {
    "select": (
        *("selection.tsv", "path.npz", "cv.tsv", "stability.tsv", "panels.tsv", "atlas.tsv", "panel.json", RUN),
        "report.html",
    ),
    "compare": ("rows.csv", "comparison.csv", "curves.csv", RUN, "report.html"),
    "validate": ("validation.tsv", "predictions.tsv", "validation.json", RUN, "validation.html"),
    "predict": ("predictions.tsv", RUN),
}


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
