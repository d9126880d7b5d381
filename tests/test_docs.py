"""The documentation site: what it is built from is there; the code on its pages runs. ``make docs`` builds it."""

from __future__ import annotations

import importlib.util
import re
import sys
import types
from pathlib import Path

import pytest
from sklearn.utils.estimator_checks import check_estimator

from l20fs import L20Selector
from l20fs.data import load_srbct

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def load(file):
    """Return a module from a file outside the package."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def listed_in_api():
    """Return the public names of docs/api.md by module."""
    text = (DOCS / "api.md").read_text()
    found = re.findall(r"currentmodule:: (\S+)\n\n.*?:nosignatures:\n\n(.*?)```", text, flags=re.DOTALL)
    return {module: set(names.split()) for module, names in found}


def test_the_api_page_has_every_public_object():
    pytest.importorskip("numpydoc", reason="tools/check_docstrings.py needs numpydoc")
    public = load(ROOT / "tools" / "check_docstrings.py").PUBLIC
    expected = {name: set(names or importlib.import_module(name).__all__) for name, names in public.items()}
    assert listed_in_api() == expected


def test_every_page_is_in_a_table_of_contents():
    toctrees = re.compile(r"```\{toctree\}\n(.*?)```", flags=re.DOTALL)
    entries = {"index"}
    for page in DOCS.glob("*.md"):
        for block in toctrees.findall(page.read_text()):
            lines = [line.strip() for line in block.splitlines() if line.strip() and not line.startswith(":")]
            entries |= {re.sub(r".*<(.*)>", r"\1", line) for line in lines}
    assert "methods/[a-z]*" in entries
    pages = {page.stem for page in DOCS.glob("*.md")}
    assert pages <= entries
    assert entries - pages == {"methods/[a-z]*", "methods/README", "gallery/index"}


def test_the_gallery_has_every_example():
    pytest.importorskip("sphinx", reason="make docs has Sphinx")
    order = load(DOCS / "_ext" / "reports.py").ORDER
    assert sorted(order) == sorted(file.stem for file in (ROOT / "examples").glob("*.py"))
    assert len(order) >= 10


def test_links_that_show_a_file_show_the_title_of_its_page():
    pytest.importorskip("sphinx", reason="make docs has Sphinx")
    with_titles = load(DOCS / "_ext" / "page_titles.py").with_titles
    assert with_titles("[a.md](a.md) [docs/b.md](b.md#c) [b](b.md)") == "[](a.md) [](b.md#c) [b](b.md)"


def test_own_methods_and_solvers_work_as_the_page_says(monkeypatch):
    page = types.ModuleType("extend_page")
    monkeypatch.setitem(sys.modules, page.__name__, page)  # where pickle looks for what it defines
    for block in re.findall(r"```python\n(.*?)```", (DOCS / "extend.md").read_text(), flags=re.DOTALL):
        exec(block, vars(page))
    check_estimator(page.MeanDistance(1))
    tumours = load_srbct()
    losses = {
        solver: L20Selector(10, solver=solver).fit(tumours.data, tumours.target).path_.losses[-1]
        for solver in ("forward", "swap", page.SwapAtTheEnd())
    }
    assert losses[page.SwapAtTheEnd()] <= losses["forward"]
    assert page.selector.solver.step == 5


def test_the_first_steps_run():
    (block,) = re.findall(r"## In Python\n\n```python\n(.*?)```", (DOCS / "start.md").read_text(), flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(block, names)
    assert names["selector"].support_.sum() == 20
    assert 0.9 < names["search"].corrected_score_ <= 1.0


def test_the_check_of_the_site_finds_what_is_wrong(tmp_path):
    check = load(ROOT / "tools" / "check_site.py")
    (tmp_path / "a.html").write_text(
        '<p id="here"></p><a href="b.html#there">x</a><img src="c.png"><a href="https://x.org">y</a>'
    )
    (tmp_path / "b.html").write_text(
        '<p id="there"></p><script src="https://cdn.org/x.js"></script><a href="a.html#gone">x</a>'
    )
    (tmp_path / "s.css").write_text("@import url('https://fonts.org/f.css');")
    assert sorted(check.faults_of_links(tmp_path)) == [
        "a.html: no file for c.png",
        "b.html loads https://cdn.org/x.js",
        "b.html: no place for a.html#gone",
        "s.css loads something from outside",
    ]


@pytest.mark.parametrize("name", ["certificate", "panel", "penalty", "plots", "replacement", "stability", "tutorial"])
def test_the_code_of_a_page_runs(name, tmp_path, monkeypatch):
    """Pages that begin with their own data; panels.md is among them, but takes the minute that it promises."""
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / f"{name}.md").read_text(), flags=re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    plt.close("all")
    assert blocks
