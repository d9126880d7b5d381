"""The documentation: pages, links and names exist; the code on pages runs. ``make docs`` builds the site."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

from l20fs.cli import COMMANDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
REPOSITORY = "https://github.com/l20fs/l20fs/"
SITE = "https://l20fs.readthedocs.io/en/latest/"


def load(file):
    """Return a module from a file outside the package."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def code_of(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)


def test_the_api_page_has_every_public_object():
    pytest.importorskip("numpydoc", reason="tools/check_docstrings.py needs numpydoc")
    public = load(ROOT / "tools" / "check_docstrings.py").PUBLIC
    expected = {name: set(names or importlib.import_module(name).__all__) for name, names in public.items()}
    text = (DOCS / "api.md").read_text()
    listed = re.findall(r"currentmodule:: (\S+)\n\n.*?:nosignatures:\n\n(.*?)```", text, flags=re.DOTALL)
    assert {module: set(names.split()) for module, names in listed} == expected


def test_every_page_is_in_the_table_of_contents():
    blocks = re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / "index.md").read_text(), flags=re.DOTALL)
    entries = {line for block in blocks for line in block.split() if not line.startswith(":") and line[0].islower()}
    assert entries == {page.stem for page in DOCS.glob("*.md")} - {"index"} | {"gallery/index"}


def test_the_gallery_has_every_example():
    pytest.importorskip("sphinx", reason="make docs has Sphinx")
    order = load(DOCS / "_ext" / "reports.py").ORDER
    assert sorted(order) == sorted(file.stem for file in (ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("name", ["README", "tutorial_python", "how_many", "alternatives", "constraints", "use_panel"])
def test_the_code_of_a_page_runs(name, tmp_path, monkeypatch):
    """Pages that begin with their own data."""
    monkeypatch.chdir(tmp_path)
    (page,) = (page for page in PAGES if page.stem == name)
    names: dict[str, object] = {}
    for block in code_of(page):
        exec(block, names)
    assert names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_is_python(page):
    for block in code_of(page):
        compile(block, page.name, "exec")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_and_dotted_names_exist(page):
    text = page.read_text()
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if link.startswith("http") and not link.startswith((REPOSITORY, SITE)):
            continue
        assert source_of(link, page).exists(), link
    for name in set(re.findall(r"(?<![\w/.])l20fs(?:\.[A-Za-z_]\w*)+", text)):
        assert pkgutil.resolve_name(name), name


def source_of(link, page):
    """Return the file that a link leads to, or from which the site makes it."""
    if link.startswith(REPOSITORY):
        return ROOT / re.sub(r"^(blob|tree)/main/", "", link.removeprefix(REPOSITORY))
    folder, path = page.parent, link
    if link.startswith(SITE):
        folder, path = DOCS, re.sub(r"\.html$", ".md", link.removeprefix(SITE))
    if found := re.fullmatch(r"gallery/(\w+)(?:\.md)?", path):
        return ROOT / "examples" / ("GALLERY_HEADER.rst" if found[1] == "index" else f"{found[1]}.py")
    return folder / path


def test_sections_that_links_name_exist():
    titles = {page.name: headings(page) for page in PAGES}
    for page in PAGES:
        for target, section in re.findall(r"\]\((\w*(?:\.md)?)#([\w-]+)\)", page.read_text()):
            assert section in titles[target or page.name], f"{page.name}: {target}#{section}"


def headings(page):
    """Return the anchors of the headings of a page."""
    found = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in found}


def test_every_claim_has_a_command_that_exists():
    rows = re.findall(r"^\| .* \| `(.*)` \|$", (ROOT / "README.md").read_text(), flags=re.MULTILINE)
    assert 1 <= len(rows) <= 4
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for command in rows:
        program, what, *_ = command.split()
        assert {"make": what in targets, "python": (ROOT / what).exists(), "l20fs": what in COMMANDS}[program], command


def test_extras_that_pages_name_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for page in PAGES:
        named = re.findall(r"(?:l20fs|'\.)\[([\w,]+)\]", page.read_text())
        assert {extra for each in named for extra in each.split(",")} <= set(extras), page.name


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
