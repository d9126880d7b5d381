"""Tables on disk and runs of the command line that several test files share."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd

#: What a selection writes.
RESULTS = {"features.tsv", "results.xlsx", "panel.json", "report.html"}


def planted(n_features=12, seed=0):
    """Return a table of three classes, in each of which one gene is high."""
    random = np.random.default_rng(seed)
    X, y = random.standard_normal((60, n_features)), random.permutation(np.arange(60) % 3)
    X[np.arange(60), y] += 2.0
    frame = pd.DataFrame(X.round(3), columns=[f"g{j}" for j in range(n_features)])
    return frame.assign(type=np.array(["left", "mid", "right"])[y])


def write(frame, file):
    frame.to_csv(file, sep="\t", index=False)
    return str(file)


def contents(folder):
    """Everything below a folder, hidden and temporary files too."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def start(*arguments, environment=None, **options):
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "l20fs.cli", *arguments]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(command, env={**os.environ, **(environment or {})}, check=False, **options)
