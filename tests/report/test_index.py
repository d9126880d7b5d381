"""The page of a reproduction: exhibits, and links to what else is in the folder."""

from __future__ import annotations

import re

from click.testing import CliRunner

from l20fs.cli.reproduce import reproduce
from l20fs.experiments.exhibits import add_table
from l20fs.report import reproduction_page
from l20fs.report.document import Bullets, Cell, Heading, Paragraph, Table
from l20fs.report.index import Exhibit


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


def test_reproduce_makes_a_page_of_all_that_is_in_the_folder(tmp_path):
    (tmp_path / "accuracy-knn.svg").write_text("<svg/>")
    (tmp_path / "rows.csv").write_text("a\n")
    (tmp_path / "summary.md").write_text("Earlier words\n")
    (tmp_path / ".summary.md.part").write_text("half a fi")
    (tmp_path / "foreign.html").write_bytes(b"\xff<p>")
    for _ in range(2):  # the page itself is no exhibit
        result = CliRunner().invoke(reproduce, ["datasets", "-o", str(tmp_path)])
        assert result.exit_code == 0, result.output
    assert str(tmp_path / "index.html") in result.stderr
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    places = [page.index(f">{name}</h2>") for name in ("Summary", "Accuracy knn", "Datasets", "Foreign", "Rows")]
    assert places == sorted(places)
    assert "The data sets of the paper, and what is used for them</caption>" in page
    assert ">Index<" not in page
    assert "half" not in page


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
