"""Every line of the pages on interoperability, panels and single cells runs; what needs a package that is not here skips."""

from __future__ import annotations

import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from anndata import AnnData

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```python\n(.*?)```", flags=re.DOTALL)
IMPORT = re.compile(r"^(?:import|from) (\w+)", flags=re.MULTILINE)


def sections(page):
    """Return the code before the first heading, and that of every section by its title."""
    head, *rest = re.split(r"^## ", page, flags=re.MULTILINE)
    return "\n".join(BLOCK.findall(head)), {part.splitlines()[0]: "\n".join(BLOCK.findall(part)) for part in rest}


START, SECTIONS = sections((Path(__file__).parent / "interoperability.md").read_text())

#: Code of other sections that a section goes on from.
NEEDS = {"ONNX": ["Pipeline", "skops"], "MLflow": ["skops"], "shap": ["skops"]}


def test_the_page_has_what_it_promises():
    promised = "Pipeline, GridSearchCV without refits, Metadata routing, imbalanced-learn, optuna, skops, ONNX, MLflow, shap"
    assert [*SECTIONS] == [*promised.split(", "), "dask-ml", "scanpy", "polars"]
    for title, code in SECTIONS.items():
        assert "assert" in code, f"{title} shows nothing that could be wrong"


@pytest.mark.parametrize("title", SECTIONS)
def test_every_line_runs(title, tmp_path, monkeypatch):
    code = [SECTIONS[name] for name in (*NEEDS.get(title, []), title)]
    if "make_pipeline" in code[-1] and "Pipeline" not in (title, *NEEDS.get(title, [])):
        code.insert(0, SECTIONS["Pipeline"])
    run([START, *code], tmp_path, monkeypatch, f"interoperability.md: {title}")


@pytest.mark.parametrize("page", ["use_panel", "single_cell"])
def test_every_line_of_a_page_runs(page, tmp_path, monkeypatch):
    names = {"adata": make_cells()} if page == "single_cell" else {}
    run(BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text()), tmp_path, monkeypatch, f"docs/{page}.md", **names)


def make_cells():
    """Return 300 cells of three types and four donors in two batches, with logarithms of counts."""
    rng = np.random.default_rng(0)
    types = np.arange(300) % 3
    rates = np.where(np.arange(60) // 20 == types[:, None], 4.0, 1.0)
    obs = {
        "cell_type": np.array(["B", "NK", "T"])[types],
        "donor": rng.integers(0, 4, 300),
        "batch": rng.integers(0, 2, 300),
    }
    frame = pd.DataFrame(obs, index=[f"c{i}" for i in range(300)]).astype("category")
    cells = AnnData(np.log1p(rng.poisson(rates)).astype(np.float32), obs=frame)
    cells.var["highly_variable"] = np.arange(60) % 2 == 0
    return cells


def run(blocks, folder, monkeypatch, title, **names):
    """Run blocks of code in a folder, one after the other, where every package that they import is installed."""
    missing = sorted({name for name in IMPORT.findall("\n".join(blocks)) if find_spec(name) is None})
    if missing:
        pytest.skip(f"{', '.join(missing)} not here; make test-interop has all of them")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names["__name__"] = "interoperability"
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # of other packages; our own stay errors
        warnings.filterwarnings("error", module="l20fs|interoperability")
        warnings.filterwarnings("ignore", message=r"\d+ of \d+ types have no marker")
        for block in blocks:
            exec(compile(block, title, "exec"), names)
