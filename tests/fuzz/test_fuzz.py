"""Damaged files of every format, and texts of odd shapes: a table or a refusal, never a crash, a hang or another error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from platforms import needs_linux

pytestmark = needs_linux

#: Cases of each target: enough to reach every reader, few enough for seconds. `make fuzz` runs as many as time allows.
N_CASES = 5


def run(*arguments):
    """Run a module in a process of its own, which forks."""
    paths = os.pathsep.join([str(Path(__file__).parents[1]), *(path for path in sys.path if path)])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_damaged_files_give_a_table_or_our_refusal(tmp_path):
    """The same cases each time, so that a failure speaks of the change."""
    done = run("fuzz", "--seed", "0", "--per-target", str(N_CASES), "--keep", str(tmp_path))
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-3000:]


def test_the_time_for_odd_shapes_is_linear():
    done = run("fuzz.shapes")
    assert done.returncode == 0, f"ended by {done.returncode} at {done.stdout.splitlines()[-1:]}\n{done.stderr[-3000:]}"
