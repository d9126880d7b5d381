"""Shared fixtures: tolerances, and the real data sets where they are present."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

# scikit-learn runs its array API check only if SciPy's dispatch was switched on before SciPy is imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest
from hypothesis import settings
from platforms import IS_POSIX

# No test depends on a clock: a busy machine must not fail a search for counterexamples.
# Everywhere else each run looks for new counterexamples; CI repeats the same ones, so that a red run speaks of the change.
IN_CI = os.environ.get("CI") == "true"
settings.register_profile("l20fs", deadline=None, derandomize=IN_CI, max_examples=40)
settings.load_profile("l20fs")

#: The first needs atheris, and instruments what it imports; the others are programs that fork.
collect_ignore = ["fuzz/guided.py"] if IS_POSIX else ["fuzz", "attacks/runner.py"]

DATA = Path(os.environ.get("L20FS_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def rtol():
    """Relative tolerance by dtype: what a few hundred steps of rounding may cost."""
    return {np.dtype(np.float64): 1e-7, np.dtype(np.float32): 1e-4}


@pytest.fixture(scope="session")
def paper_set():
    """Load a data set of the paper by name, or skip."""

    def load(name):
        file = DATA / "paper" / f"{name}.npz"
        if not file.exists():
            pytest.skip(f"{file.name} is not here; set L20FS_DATA to the folder that holds paper/{file.name}")
        with np.load(file, allow_pickle=False) as stored:
            return stored["X"].astype(np.float64), stored["y"]

    return load


def pytest_terminal_summary(terminalreporter):
    """Say how many tests were skipped, and why."""
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", ()))
    if reasons:
        terminalreporter.section(f"{reasons.total()} skipped tests, by reason")
        for reason, n_tests in reasons.most_common():
            terminalreporter.write_line(f"{n_tests:6} {reason}")
