"""``l20fs compare`` writes a table and a page, and draws without matplotlib."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
from cli_samples import write

from l20fs.cli import run

FEW = ["--methods", "L20Selector,FisherScore,l2,0-fs", "--sizes", "2,4", "--config", "search.splits=2"]


def test_a_table_and_a_page(table, tmp_path, capsys):
    assert run(["compare", table, "--target", "type", *FEW]) == 0
    assert {file.name for file in (tmp_path / "l20fs-comparison").iterdir()} == {"comparison.tsv", "comparison.html"}
    found = pd.read_csv("l20fs-comparison/comparison.tsv", sep="\t")
    assert set(found["method"]) == {"L20Selector", "FisherScore", "l2,0-FS"}
    assert found["accuracy"].between(0, 100).all()
    page = (tmp_path / "l20fs-comparison/comparison.html").read_text(encoding="utf-8")
    assert page.count("<polyline") == 6, "a curve of each method with each of two models"
    assert capsys.readouterr().out.splitlines()[0] in page.replace("&#39;", "'")
    assert run(["compare", table, "--target", "type", *FEW]) == 2
    assert "Remove them, or name another folder" in capsys.readouterr().err


def test_methods_are_listed(capsys):
    assert run(["compare", "demo", "--methods", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("RFS", "mRMR", "ReliefF", "Sun and Yu"))


def test_no_plotting_library_is_loaded(table, tmp_path):
    code = f"""
import sys
sys.modules["matplotlib"] = None
from l20fs.cli import run
assert run(["compare", {table!r}, "--target", "type", *{FEW!r}]) == 0
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_groups_are_not_on_both_sides(tmp_path):
    """Samples show their donor and nothing of the class: with donors in both parts the neighbours know it nevertheless."""
    random = np.random.default_rng(0)
    donors = np.arange(108) // 9
    X = random.standard_normal((12, 4))[donors] + 0.01 * random.standard_normal((108, 4))
    frame = pd.DataFrame(X).add_prefix("g").assign(type=np.array(["a", "b"])[donors % 2], donor=[f"d{d}" for d in donors])
    file = write(frame, tmp_path / "table.tsv")
    options = ["--target=type", "--methods=FisherScore", "--sizes=4", "--config=search.splits=4"]
    assert (
        run(["compare", file, *options, "-o", "apart"])
        == run(["compare", file, *options, "--groups=donor", "-o", "by"])
        == 0
    )
    knn = {name: pd.read_csv(f"{name}/comparison.tsv", sep="\t")["accuracy"][0] for name in ("apart", "by")}
    assert knn["apart"] == 100.0
    assert knn["by"] < 85.0
