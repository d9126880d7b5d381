"""What the README and the pages show is what happens."""

from __future__ import annotations

import inspect
import pkgutil
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from anndata import AnnData
from conftest import DATA

from l20fs import AHIHT, L20Selector
from l20fs.cli import COMMANDS
from l20fs.cli.select import select
from l20fs.data import load_srbct
from l20fs.methods import discover

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/l20fs/l20fs/blob/main/"
SITE = "https://l20fs.readthedocs.io/en/latest/"


def test_the_python_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_cells().write_h5ad("cells.h5ad")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len(blocks) == 2, "Python, single cells"
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert names["selector"].support_.sum() == 20
    assert names["selector"].at(50).support_.sum() == 50
    assert names["adata"].var["l20fs"].sum() == 20


def make_cells():
    """Return the tumours as an AnnData object, with a column of .obs as in the README."""
    tumours = load_srbct()
    return AnnData(tumours.data, obs=pd.DataFrame({"cell_type": tumours.target}, index=[f"c{i}" for i in range(63)]))


def test_the_readme_is_two_screens():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 90


def test_the_number_of_parameters_is_that_of_the_selector():
    (number,) = re.findall(r"`L20Selector` has (\d+) parameters", (ROOT / "docs" / "start.md").read_text())
    assert int(number) == len(L20Selector().get_params(deep=False))
    assert AHIHT(rate=0.5) == L20Selector(solver=AHIHT()).set_params(solver__rate=0.5).solver


def test_the_install_line_is_one_for_a_clone_with_extras_that_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (line,) = re.findall(r"^ +(pip install .*)$", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    assert shlex.split(line.partition("#")[0])[2] == ".[all]"
    assert set(re.findall(r"'\.\[(\w+)\]'", line)) <= set(extras)
    everything = ",".join(re.findall(r"l20fs\[([\w,]+)\]", " ".join(extras["all"]))).split(",")
    for file in ("Makefile", "README.md"):
        asked = re.findall(r"-e \"\.\[([\w,]+)\]", (ROOT / file).read_text())
        assert {extra for each in asked for extra in each.split(",")} <= {*everything, "dev"}


def test_the_demo_ends_with_commands_that_are_understood():
    """A newcomer replaces the words in capital letters."""
    demo = (ROOT / "Makefile").read_text().partition("\ndemo:")[2].partition("\n\n")[0]
    commands = re.findall(r'@echo " +\$\(BIN\)/l20fs (.*)"', demo)
    assert len(commands) == 2
    for command in commands:
        words = [str(ROOT / "README.md") if word == "SHEET.csv" else word for word in shlex.split(command)]
        assert select.make_context("select", words[1:]).params["target"] == "COLUMN"


def test_dotted_names_exist():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for name in set(re.findall(r"(?<![\w/.])l20fs(?:\.[A-Za-z_]\w*)+", page.read_text())):
            assert pkgutil.resolve_name(name), f"{page.name}: {name}"


def test_links_to_files_lead_somewhere():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            assert source_of(link, page).exists(), f"{page.name}: {link}"


def source_of(link, page):
    """Return the file that a link leads to, or from which the site makes it: pages of examples come from examples/."""
    folder, path = page.parent, link
    if link.startswith(REPOSITORY):
        return ROOT / link.removeprefix(REPOSITORY)
    if link.startswith(SITE):
        folder, path = ROOT / "docs", re.sub(r"\.html$", ".md", link.removeprefix(SITE))
    if found := re.fullmatch(r"gallery/(\w+)(?:\.md)?", path):
        return ROOT / "examples" / ("GALLERY_HEADER.rst" if found[1] == "index" else f"{found[1]}.py")
    return folder / path


def test_every_claim_has_a_command_that_exists():
    rows = re.findall(r"^\| .* \| `(.*)` \|$", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    assert len(rows) >= 5
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for command in rows:
        program, what, *_ = command.split()
        known = {"make": what in targets, "python": (ROOT / what).exists(), "l20fs": what in COMMANDS}
        assert known[program], command


def test_the_page_on_security_names_tests_that_exist():
    page = (ROOT / "SECURITY.md").read_text()
    named = re.findall(r"`(tests/[\w/.]+)`", page)
    assert len(named) > 5
    assert len(page.split()) <= 300
    for name in named:
        assert (ROOT / name).exists(), name


def test_the_tables_of_formats_and_settings_are_those_of_the_package():
    assert subprocess.run([sys.executable, ROOT / "tools" / "settings_table.py", "--check"], check=False).returncode == 0
    assert len((ROOT / "docs" / "files.md").read_text().split()) <= 900


@pytest.mark.parametrize("name", discover())
def test_every_method_has_its_page(name):
    file = Path(inspect.getfile(discover()[name])).stem
    page = ROOT / "docs" / "methods" / f"{file}.md"
    assert page.exists()
    assert name in page.read_text()
    assert f"({file}.md)" in (ROOT / "docs" / "methods" / "README.md").read_text()


@pytest.mark.parametrize("name", discover())
def test_every_parameter_is_on_the_page_or_needs_no_word(name):
    """Limits, tolerances, callbacks and seeds mean the same everywhere; what is special to a method is explained."""
    selector = discover()[name]
    page = (ROOT / "docs" / "methods" / f"{Path(inspect.getfile(selector)).stem}.md").read_text()
    common = {"n_features_to_select", "max_iter", "tol", "callback", "random_state"}
    assert not [
        parameter for parameter in selector().get_params() if parameter not in common and f"`{parameter}" not in page
    ]


def test_the_example_answers(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["tumour_panel.py"])
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    runpy.run_path(str(ROOT / "examples" / "tumour_panel.py"), run_name="__main__")
    printed = capsys.readouterr().out
    readme = (ROOT / "README.md").read_text()
    n_genes, score, n_wrong = re.search(r"(\d+) of 2308 genes, (\d+ % \(.*?\)).*?, (\d+) of 63", readme, re.DOTALL).groups()
    assert f"{n_genes} genes are enough: {score} are right" in printed
    assert f"{n_wrong} of 63 samples are wrong" in printed
    assert "gene1389" in printed


def test_known_markers_are_looked_up_by_name(capsys, monkeypatch, paper_set):
    paper_set("leukemia")  # skips where the sets are not there
    monkeypatch.setattr(sys, "argv", ["tumour_panel.py", str(DATA / "paper" / "leukemia.npz")])
    runpy.run_path(str(ROOT / "examples" / "tumour_panel.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert re.search(r"X95735_at +AML +ALL +zyxin", printed)
    assert re.search(r"M27891_at +AML +ALL +cystatin C", printed)
