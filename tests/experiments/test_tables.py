"""Tables: the same cells in three formats, marks where they belong, text as it is."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from rows import make_rows

from l20fs.experiments.exhibits import add_table
from l20fs.experiments.outcomes import fit_times, optimistic
from l20fs.experiments.tables import accuracy_table, frame_table, seconds, show, times_table
from l20fs.report import Exhibit
from l20fs.report.document import Cell, Table
from l20fs.report.formats import to_html, to_latex, to_markdown, to_page

ODD = [
    "</script><script>alert(1)</script>",
    'a"b',
    "a|b",
    "x_y*z*",
    "100% & more",
    "$x^2$",
    "\\alpha{}",
    "~[c]",
    "#1",
    "a\nb",
]


class Reader(HTMLParser):
    """Read the cells of a table back."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self.inside = tag if tag in ("td", "th") else getattr(self, "inside", "")

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.inside = ""

    def handle_data(self, data):
        if getattr(self, "inside", ""):
            self.rows[-1][-1] += data


def plain(texts, caption="c"):
    header = tuple(f"h{i}" for i in range(len(texts)))
    return Table(caption, header, (tuple(map(Cell, texts)),), tuple(False for _ in texts))


def report(**columns):
    frame = pd.DataFrame({"dataset": "nci", "classifier": "knn", "standard_error": 1.0, "protocol": "optimistic", **columns})
    return frame


def marks(table, row=0):
    return {name: cell.rank for name, cell in zip(table.header, table.rows[row], strict=True) if cell.rank in (1, 2)}


def test_best_and_second():
    table = accuracy_table(
        report(method=list("abcd"), accuracy=[90.0, 95.0, 95.0, 80.0], n_features=[20, 40, 20, 20]), "knn"
    )
    assert marks(table) == {"c": 1, "b": 2}, "of equal accuracies the one with fewer features"
    assert to_markdown(table).splitlines()[-1] == (
        "| nci | 90.00 ± 1.00 (20) | <ins>95.00</ins> ± 1.00 (40) | **95.00** ± 1.00 (20) | 80.00 ± 1.00 (20) |"
    )
    shared = accuracy_table(report(method=list("abc"), accuracy=[95.0, 95.001, 90.0], n_features=[20, 20, 20]), "knn")
    assert marks(shared) == {"a": 1, "b": 1, "c": 2}, "equal as shown: both are best"
    assert r"\shortstack{\textbf{95.00}\\{\scriptsize $\pm$ 1.00 (20)}}" in to_latex(shared)
    assert "<u>90.00</u><br><small>± 1.00 (20)</small>" in to_html(shared)


def test_gaps_and_single_splits_are_shown_as_such():
    table = report(method=["a", "b", "a"], accuracy=[90.0, 95.0, 50.0], n_features=[20, 40, 22.5], dataset=["x", "x", "y"])
    table.loc[2, "standard_error"] = np.nan
    lines = to_markdown(accuracy_table(table, "knn")).splitlines()
    assert lines[2] == "| dataset | a | b |"
    assert lines[-1] == "| y | **50.00** (22.5) |  |"


def test_the_protocol_is_named():
    table = report(method=["a"], accuracy=[1.0], n_features=[1.0])
    assert "optimistic" in accuracy_table(table, "knn").caption
    honest = accuracy_table(table.assign(protocol="honest"), "knn").caption
    assert "Honest" in honest
    assert "optimistic" not in honest
    assert "KNN" in honest


def test_any_frame():
    frame = pd.DataFrame({"data_set": ["brain", None], "exact": [True, False], "n": pd.array([3, None], dtype="Int64")})
    frame["p"] = [0.00001, np.nan]
    table = frame_table(frame, "Sets", {"n": "samples"})
    assert table.header == ("data set", "exact", "samples", "p")
    assert [[cell.text for cell in row] for row in table.rows] == [["brain", "True", "3", "1.0e-05"], ["", "False", "", ""]]
    assert table.is_number == (False, False, True, True)
    assert to_latex(table).splitlines()[3] == r"\begin{tabular}{llrr}"


def test_numbers():
    assert [show(value) for value in (0.0, 0.004, -0.004, 0.005, 12.345, -1.0, 3, True)] == [
        "0.00", "4.0e-03", "-4.0e-03", "0.01", "12.35", "-1.00", "3", "True"
    ]  # fmt: skip
    assert seconds(0.0) == "0"


def test_times():
    rows = pd.concat([make_rows(fit_seconds=s, choice=c) for s, c in ((0.5, "a"), (1.5, "b"))])
    table = times_table(fit_times(rows))
    assert table.rows == ((Cell("srbct"), Cell("1.0", "0.50 to 1.5")),)


@given(st.lists(st.one_of(st.sampled_from(ODD), st.text(max_size=8)), min_size=1, max_size=5))
def test_html_reads_back_as_it_was(texts):
    texts = [text.replace("\r", " ") for text in texts]
    reader = Reader(to_html(plain(texts)))
    assert reader.rows[1] == texts
    assert set(reader.tags) <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "strong", "u", "br", "small"}


@given(st.lists(st.one_of(st.sampled_from(ODD), st.text("ab|*_<>\\`\n ~$[]&#", max_size=8)), min_size=1, max_size=5))
def test_markdown_has_one_line_per_row_and_one_cell_per_value(texts):
    lines = to_markdown(plain(texts)).splitlines()
    assert len(lines) == 5
    cells, current, previous = [], "", ""
    for sign in lines[-1][1:]:
        if sign == "|" and previous != "\\":
            cells.append(current)
            current = ""
        else:
            current += sign
        previous = "" if previous == "\\" else sign
    unescaped = ["".join(c for i, c in enumerate(cell) if not is_escape(cell, i)).strip() for cell in cells]
    assert unescaped == [" ".join(text.split()) for text in texts]
    assert not any("<" in cell.replace("\\<", "") for cell in cells), "no tag"


def is_escape(text, place):
    """Say whether a backslash escapes the next sign: every second of a run does."""
    if text[place] != "\\":
        return False
    start = place
    while start and text[start - 1] == "\\":
        start -= 1
    return (place - start) % 2 == 0


@given(st.lists(st.sampled_from([*ODD, "&", "{", "}", "\\\\", "^"]), min_size=1, max_size=4))
def test_latex_has_balanced_braces_and_no_bare_sign(texts):
    row = to_latex(plain(texts)).splitlines()[7]
    assert row.endswith(r" \\")
    bare = row[: -len(r" \\")]
    for escaped in (r"\&", r"\%", r"\$", r"\#", r"\_", r"\{", r"\}"):
        bare = bare.replace(escaped, "")
    assert bare.count("{") == bare.count("}")
    assert bare.count(" & ") == len(texts) - 1
    assert not set(bare.replace(" & ", "")) & set("&%$#_^~")


def test_page_has_no_script_and_loads_nothing():
    page = to_page(plain(ODD, caption=ODD[0]), ODD[0])
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert "://" not in page
    assert "<title>&lt;/script&gt;" in page


def test_a_table_is_added_in_three_formats():
    table, files = accuracy_table(optimistic(make_rows()), "knn"), {}
    made = add_table(files, "accuracy", table)
    assert made == Exhibit("accuracy", ("accuracy.md", "accuracy.tex", "accuracy.html"), table)
    markdown, latex, page = (files[name] for name in made.files)
    assert markdown == to_markdown(table)
    assert latex == to_latex(table)
    assert to_html(table) in page


def test_a_long_latex_table_goes_over_pages_and_long_texts_over_lines():
    frame = pd.DataFrame({"a": ["x" * 60] * 100, "b": 1})
    text = to_latex(frame_table(frame, "Many rows"))
    assert r"\begin{longtable}{p{5cm}r}" in text
    assert text.count(r"\endhead") == 1
    assert text.count("x" * 60 + " & 1") == 100
    assert r"\begin{tabular}{p{5cm}r}" in to_latex(frame_table(frame.head(3), "Few rows"))
