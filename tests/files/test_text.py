"""Texts: encodings, separators, headers, titles, and the cells of laboratories."""

from __future__ import annotations

import gzip
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from l20fs.tables import DataError, UnknownColumnError, read_table

PLAIN = "type,a,b\nu,1.5,2\nv,2.5,3\nu,3,4.25\nv,4,5\n"
X = np.array([[1.5, 2], [2.5, 3], [3, 4.25], [4, 5]])


@pytest.fixture
def read(tmp_path):
    def read(content, target="type", **options):
        file = tmp_path / "a.csv"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(file, target, **options)

    return read


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r\r\n", "\r"])
def test_encodings_and_line_ends(encoding, ends, read):
    found = read(PLAIN.replace("a,", "gène,").replace("\n", ends).encode(encoding))
    np.testing.assert_array_equal(found.X, X)
    assert found.feature_names == ["gène", "b"]
    is_guess = encoding in ("utf-16-le", "utf-16-be", "cp1252")
    assert bool(found.notes) == is_guess, found.notes


def test_an_encoding_can_be_said(read):
    found = read(PLAIN.replace("a,", "Ł,").encode("cp1250"), encoding="cp1250")
    assert (found.feature_names, found.notes) == (["Ł", "b"], ())


@pytest.mark.parametrize("separator", ["\t", ";", ",", "|", " ", "   "])
def test_separators(separator, read):
    found = read(PLAIN.replace(",", separator))
    np.testing.assert_array_equal(found.X, X)
    assert found.notes == ()


@pytest.mark.parametrize(
    "above",
    [
        "Expression of two genes\n",
        "Expression,,\nMarch,,\n",
        "Expression\n\nMarch, 2024\n",
        "# by a machine\n# 1\n",
        '!Series\t"x"\n!series_matrix_table_begin\n',
    ],
)
def test_titles_are_skipped_and_said(above, read):
    found = read(above + PLAIN)
    np.testing.assert_array_equal(found.X, X)
    assert "above the header" in found.notes[0]


def test_a_header_may_begin_with_a_mark_of_comments(read):
    """As tables of QIIME do."""
    qiime = "# Constructed from biom file\n#OTU ID\ts1\ts2\ts3\ts4\ntype\tu\tv\tu\tv\nOTU1\t1\t2\t3\t4\nOTU2\t0\t5\t6\t7\n"
    found = read(qiime)
    assert (found.sample_names, found.feature_names) == (["s1", "s2", "s3", "s4"], ["OTU1", "OTU2"])
    assert read("# made by a machine\n#type,a\nu,1\nv,2\n", "#type").feature_names == ["a"]


@pytest.mark.parametrize("separator", [",", "\t", " "])
def test_the_header_of_r_lacks_the_name_of_the_row_names(separator, read):
    text = "type a b\n" + "".join(f"s{i} {line}\n" for i, line in enumerate(PLAIN.replace(",", " ").splitlines()[1:]))
    found = read(text.replace(" ", separator))
    assert found.sample_names == ["s0", "s1", "s2", "s3"]
    np.testing.assert_array_equal(found.X, X)


def test_names_are_never_shifted_by_one(read):
    """A short header with separators at the ends of the lines: either all names are right, or the table is refused."""
    body = "".join(f"s{i},{line},\n" for i, line in enumerate(PLAIN.splitlines()[1:]))
    with pytest.raises(DataError):
        read("type,a,b,\n" + body.replace(",\n", "\n"))
    found = read("type,a,b\n" + body.replace(",\n", "\n"))
    assert (found.feature_names, found.X.tolist()) == (["a", "b"], X.tolist())
    with pytest.raises(DataError, match=r"the last column has values|as many as the header|no name"):
        read("sample,type,a\n" + body.replace(",\n", ",9\n"))
    found = read("sample,type,a,b,,\n" + body)
    assert (found.feature_names, found.X.tolist()) == (["a", "b"], X.tolist())


def test_ragged_lines_of_empty_fields_are_read(read):
    """As those of MaxQuant, which end with tabs."""
    lines = PLAIN.replace(",", "\t").splitlines()
    found = read("\n".join([lines[0], lines[1] + "\t\t", *lines[2:4], lines[4] + "\t", "", "\t\t"]) + "\n")
    np.testing.assert_array_equal(found.X, X)


def test_quotes_line_breaks_and_long_fields(read):
    text = 'type,"a ""1""","b, c"\n"u","1.5",2\n"v\nw",2.5,3\nu,"3","4.25"\n"v\nw",4,5\n'
    found = read(text)
    np.testing.assert_array_equal(found.X, X)
    assert found.feature_names == ['a "1"', "b, c"]
    assert found.y.tolist() == ["u", "v\nw", "u", "v\nw"]
    name, note = "n" * 65_536, "x" * 200_000
    found = read(f"type,a,{name},note\n" + "".join(f'{line},"{note}"\n' for line in PLAIN.splitlines()[1:]))
    assert found.feature_names == ["a", name]
    np.testing.assert_array_equal(found.X, X)


ODD = [
    ("n.d.", np.nan, "read as missing"),
    ("K. A.", np.nan, "read as missing"),
    ("#DIV/0!", np.nan, "read as missing"),
    ("haemolytic", np.nan, "read as missing"),
    ("<0.5", 0.5, "limit"),
    ("≥ 7", 7.0, "limit"),
    ("1,234.5", 1234.5, ""),
    ("\N{MINUS SIGN}2", -2.0, ""),
    ("1e3", 1000.0, ""),
    ("NA", np.nan, ""),
    ("", np.nan, ""),
]


@pytest.mark.parametrize("in_columns", [False, True])
@pytest.mark.parametrize(("cell", "value", "said"), ODD, ids=[cell for cell, _, _ in ODD])
def test_odd_cells_are_cleaned_and_said(cell, value, said, in_columns, read):
    rows = [["s", "type", "a", "b"], *([f"s{i}", "uv"[i % 2], f"{i}.5", str(i)] for i in range(10))]
    rows[4][3] = cell
    rows = [list(row) for row in zip(*rows, strict=True)] if in_columns else rows
    found = read("".join("\t".join(row) + "\n" for row in rows))
    assert found.X_before[3, 1] == pytest.approx(value, nan_ok=True)
    np.testing.assert_array_equal(found.X_before[:, 0], np.arange(10) + 0.5)
    assert np.isfinite(found.X).all()
    if said:
        [note] = [note for note in found.notes if said in note]
        assert repr(cell) in note
        assert ("'s3'" if in_columns else "line 5") in note


def column(read, cells, separator=";", **options):
    """Return a column of a table, of whose cells all are in quotes."""
    rows = "".join(f'{"uv"[i % 2]}{separator}"{cell}"\n' for i, cell in enumerate(cells))
    return read(f"type{separator}x\n{rows}", **options).X_before[:, 0].tolist()


MARKS = [
    (["1,5", "2", "3,25", "4"], ";", [1.5, 2, 3.25, 4]),
    (["1,5", "2", "3,25", "4"], ",", [1.5, 2, 3.25, 4]),
    (["1.234,5", "2", "1.234", "4"], "\t", [1234.5, 2, 1234, 4]),
    (["1,234.5", "2", "1,234", "4"], ";", [1234.5, 2, 1234, 4]),
    (["1,234", "345", "1,234", "345"], ",", [1234, 345, 1234, 345]),
    (["1,234", "2,345", "3,456", "1,111"], ";", [1.234, 2.345, 3.456, 1.111]),
    (["1,234", "345", "1,234", "345"], "\t", None),
    (["1.234", "345", "1.234", "345"], ";", None),
    (["1,5", "2.5", "3", "4"], ";", None),
    (["12 %", "3%", "4 %", "5%"], ";", [12, 3, 4, 5]),
]


@pytest.mark.parametrize(("cells", "separator", "expected"), MARKS)
def test_decimal_marks_are_found_or_asked_for(cells, separator, expected, read):
    if expected is None:
        with pytest.raises(DataError, match=r"input\.decimal=") as caught:
            column(read, cells, separator)
        assert "\n" not in str(caught.value)
        assert column(read, ["1,5", "2", "3", "4"], separator, decimal=",") == [1.5, 2, 3, 4]
    else:
        assert column(read, cells, separator) == expected


def test_a_mark_is_found_below_the_first_lines(read):
    cells = ["1"] * 200 + ["2,5"]
    assert column(read, cells)[-1] == 2.5
    with pytest.raises(DataError, match="different decimal marks"):
        column(read, ["1.5", *cells])


def test_missing_texts_can_be_said(read):
    found = read("type,a,b\nu,1,2\nv,-999,3\nu,4,x\nv,5,6\nu,7,8\nv,7,8\n", na=["-999", "x"])
    assert np.argwhere(np.isnan(found.X_before)).tolist() == [[1, 0], [2, 1]]


def test_the_quick_way_and_the_careful_one_agree(read):
    """Numbers of a whole block, and one by one since a cell of their line is odd."""
    random = np.random.default_rng(0)
    values = random.standard_normal((40, 30)) * 10.0 ** random.integers(-300, 300, (40, 30))
    rows = [
        ["type", *(f"g{j}" for j in range(30))],
        *(["uv"[i % 2], *map(repr, row)] for i, row in enumerate(values.tolist())),
    ]
    plain = read("".join(",".join(row) + "\n" for row in rows)).X
    for row in rows[1:]:
        row[1] = "n.d." if row is rows[5] else row[1]
        row[2:] = [f" {cell}" for cell in row[2:]]
    odd = read("".join(",".join(row) + "\n" for row in rows)).X_before
    np.testing.assert_array_equal(plain, values)
    np.testing.assert_array_equal(odd[:, 1:], values[:, 1:])


CELLS = st.text(alphabet="0123456789.,-+eE%<> nauNA\"';\t", max_size=12)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(CELLS, min_size=3, max_size=4), min_size=1, max_size=8),
    st.sampled_from([",", ";", "\t"]),
    st.booleans(),
)
def test_any_text_is_read_or_refused(tmp_path_factory, rows, separator, is_packed):
    file = tmp_path_factory.mktemp("any") / "a.csv"
    text = separator.join(["type", "a", "b"]) + "\n" + "".join(separator.join(row) + "\n" for row in rows)
    file.write_bytes(gzip.compress(text.encode()) if is_packed else text.encode())
    with suppress(DataError, UnknownColumnError):
        found = read_table(file, "type")
        assert np.isfinite(found.X).all()
        assert found.X.shape == (len(found.y), len(found.feature_names))
