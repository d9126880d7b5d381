"""The page of a reproduction: exhibits, those of earlier calls, links; nothing is read back from what was written."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from l20fs.cli.reproduce import reproduce
from l20fs.experiments.exhibits import add_table
from l20fs.report import reproduction_page
from l20fs.report.document import Bullets, Cell, Heading, Paragraph, Table
from l20fs.report.index import Exhibit, read_exhibits, write_reproduction_page

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)

TABLES = st.builds(
    lambda header, rows, numbers: Table(
        "A & <b>", tuple(header), tuple(tuple(row) for row in rows), (False, *numbers[: len(header) - 1])
    ),
    st.lists(TEXTS, min_size=3, max_size=3),
    st.lists(
        st.lists(
            st.builds(Cell, TEXTS.filter(bool), st.sampled_from(["", "(3) <x>"]), st.sampled_from([None, 1, 2])),
            min_size=3,
            max_size=3,
        ),
        min_size=1,
        max_size=3,
    ),
    st.lists(st.booleans(), min_size=2, max_size=2),
)


BLOCKS = st.one_of(
    TABLES,
    st.builds(Heading, TEXTS, st.integers(1, 3)),
    st.builds(Paragraph, TEXTS, TEXTS),
    st.builds(Bullets, st.lists(TEXTS, max_size=3).map(tuple)),
)


@given(st.none() | TABLES, st.lists(BLOCKS, max_size=4))
def test_what_a_page_shows_is_kept_for_the_next_page(table, blocks):
    made = Exhibit("accuracy", ("accuracy.csv",), table, tuple(blocks))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "accuracy.csv").write_text("a\n")
        page = write_reproduction_page(folder, [made]).read_bytes()
        assert read_exhibits(folder) == [made]
        assert write_reproduction_page(folder, []).read_bytes() == page


def test_a_document_is_shown_block_by_block():
    table = Table("A_b", ("x|y", "z"), ((Cell("**1**", "(2)", 1), Cell("<b>", "", 2)),), (False, True))
    text = (Heading("Head"), Bullets(("a", "b")), Paragraph(" Words.", "Lead."), table)
    page = reproduction_page([Exhibit("summary", ("summary.md",), text=text)])
    shown = re.sub(r"\s+", " ", page.split("<main")[1])
    for part in (
        "<h3>Head</h3>",
        "<li>a</li> <li>b</li>",
        '<p class="words">Lead. Words.</p>',
        '<p class="words">A_b</p>',
        '<th scope="col">x|y</th><th scope="col">z</th>',
        '<th scope="row">**1** (2)</th><td>&lt;b&gt;</td>',
    ):
        assert part in shown


@pytest.mark.parametrize(
    "stored",
    [
        "",
        "{}",
        "[1]",
        '[{"name": "x"}]',
        '[{"name": "x", "files": ["rows.csv"], "text": [{"kind": "poem", "text": "a"}]}]',
        '[{"name": "x", "files": ["rows.csv"], "table": {"caption": "a", "header": ["b"], "rows": [], "is_number": [1]}}]',
        '[{"name": "x", "files": "rows.csv"}]',
    ],
)
def test_a_damaged_store_of_exhibits_is_replaced(tmp_path, stored):
    (tmp_path / "rows.csv").write_text("a\n")
    (tmp_path / "exhibits.json").write_text(stored)
    page = write_reproduction_page(tmp_path, []).read_text(encoding="utf-8")
    assert 'href="rows.csv"' in page
    assert (tmp_path / "exhibits.json").read_text() == "[]\n"


def test_reproduce_makes_a_page_of_all_that_is_in_the_folder(tmp_path):
    (tmp_path / "accuracy-knn.svg").write_text("<svg/>")
    (tmp_path / "rows.csv").write_text("a\n")
    (tmp_path / "summary.md").write_text("Earlier words\n")
    (tmp_path / ".summary.md.part").write_text("half a fi")
    (tmp_path / "foreign.html").write_bytes(b"\xff<p>")
    earlier = Exhibit("summary", ("summary.md",), text=(Paragraph("Earlier words"),))
    gone = Exhibit("gone", ("gone.md",), text=(Paragraph("Removed words"),))
    write_reproduction_page(tmp_path, [earlier, gone])
    for _ in range(2):  # the page itself is no exhibit
        result = CliRunner().invoke(reproduce, ["datasets", "-o", str(tmp_path)])
        assert result.exit_code == 0, result.output
    assert str(tmp_path / "index.html") in result.stderr
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    places = [page.index(f">{name}</h2>") for name in ("Summary", "Accuracy knn", "Datasets", "Foreign", "Rows")]
    assert places == sorted(places)
    assert "Earlier words" in page
    assert "The data sets of the paper, and what is used for them</caption>" in page
    assert ">Index<" not in page
    assert "half" not in page
    assert "Removed words" not in page
    assert [exhibit.name for exhibit in read_exhibits(tmp_path)] == ["summary", "datasets"]


def test_what_was_written_is_not_read_back(tmp_path):
    """A table that somebody edits by hand, or a text in another language, changes no page."""
    CliRunner().invoke(reproduce, ["datasets", "-o", str(tmp_path)])
    before = (tmp_path / "index.html").read_bytes()
    for name in ("datasets.html", "datasets.md"):
        (tmp_path / name).write_text("<table><caption>forged</caption></table>")
    write_reproduction_page(tmp_path, [])
    assert (tmp_path / "index.html").read_bytes() == before


def test_reproduction_page_links_what_is_in_the_folder(tmp_path):
    table = Table("A <caption>", ("method", "accuracy"), ((Cell("RFS"), Cell("90", "(5)", 1)),), (False, True))
    exhibits = [
        add_table({}, "accuracy-knn", table),
        Exhibit("curves knn", ("curves knn.svg", "curves knn.png")),
        Exhibit("rows", ("rows.csv",)),
        Exhibit("summary", ("summary.md",), text=(Heading("What the rows show", 1), Paragraph("Much."))),
    ]
    page = reproduction_page(exhibits, warnings=["Beware"], sentences=["Done."])
    for text in (
        "A &lt;caption&gt;",
        "<strong>90</strong>",
        'src="curves%20knn.svg"',
        'href="rows.csv"',
        "What the rows show",
    ):
        assert text in page
    assert str(tmp_path) not in page
