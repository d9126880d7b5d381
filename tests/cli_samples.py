"""Tables on disk and runs of the command line that several test files share."""

from __future__ import annotations

import base64
import csv
import json
import os
import re
import subprocess
import sys
import zlib

import numpy as np

from l20fs.data import make_planted

#: What a run without stability selection writes.
RESULTS = {"selection.tsv", "cv.tsv", "panel.json", "report.html", "run.json"}


def write_table(file, X, labels, names=None, cells=None):
    """Write a TSV with the target ``type`` in the first column; ``cells`` replaces single values."""
    names = names or [f"g{j}" for j in range(X.shape[1])]
    rows = [[str(label), *map(repr, values)] for label, values in zip(labels, X.tolist(), strict=True)]
    for (i, j), text in (cells or {}).items():
        rows[i][j + 1] = text
    file.write_text("".join("\t".join(row) + "\n" for row in [["type", *names], *rows]), encoding="utf-8")
    return str(file)


def planted(n_features=12, random_state=0):
    X, y, informative = make_planted(60, n_features, 3, 3, noise=0.1, random_state=random_state)
    return X, np.array(["left", "mid", "right"])[y], informative


def with_lonely(labels):
    """Give the first sample a class of its own: without cross-validation a run is quick."""
    return np.array(["lonely", *labels[1:]])


def contents(folder):
    """Everything below a folder, hidden and temporary files too."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def read_tsv(file):
    with open(file, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def page_data(folder):
    """Return what the report page of a folder holds for its script."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    found = json.loads(re.search(r'<script[^>]* id="content"[^>]*>(.*?)</script>', page, re.DOTALL)[1])
    return found | json.loads(zlib.decompress(base64.b64decode(found["packed"])))


def start(*arguments, environment=None, **options):
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "l20fs.cli", *arguments]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(command, env={**os.environ, **(environment or {})}, check=False, **options)
