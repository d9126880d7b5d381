"""Short examples of the gallery run without a warning and draw; ``make docs`` runs all of them."""

from __future__ import annotations

import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

#: Those that take several seconds.
OTHERS = {"coming_from_scikit_learn", "constraints_and_costs", "larger_than_memory", "many_outputs", "near_equal_panels"}
EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
EXAMPLES = [file for file in EXAMPLES if file.stem not in OTHERS]


@pytest.fixture
def drawn():
    """Figures are drawn into memory and closed at the end."""
    before = matplotlib.get_backend()
    matplotlib.use("agg")
    yield
    plt.close("all")
    matplotlib.use(before)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_example(file, drawn, monkeypatch):
    if file.stem == "single_cell" and find_spec("scanpy") is None:
        pytest.skip("scanpy is not here; make docs has it, and runs this example")
    monkeypatch.setattr(sys, "argv", [file.name])
    names = runpy.run_path(str(file), run_name="__main__")
    assert plt.get_fignums(), "draws no picture"
    if "report" in names:
        assert "</html>" in names["report"].read_text()[-200:]
