"""Text tables as programs and laboratories write them: encodings, separators, decimal marks, titles, odd cells."""

from __future__ import annotations

import shlex

import numpy as np
import openpyxl
import pandas as pd
import pytest

from l20fs.data.readers import DataError, UnknownColumnError, read_table

ROWS = [("u", 1.5, -2.0), ("v", 0.25, 1e-3), ("u", 3.0, 4.5), ("v", 5.125, 6.0), ("u", 7.5, 8.0), ("v", 9.5, 0.5)]
X = np.array([row[1:] for row in ROWS])
NA = np.nan


def table(separator=",", mark=".", header="type,a,b"):
    lines = [header.replace(",", separator)]
    return "\n".join([*lines, *(separator.join(map(str, row)).replace(".", mark) for row in ROWS)]) + "\n"


PLAIN = table()


@pytest.fixture
def read(tmp_path):
    """Read a text as a table without a check for missing values, which are asked for by name."""

    def read(content, target="type", name="a.csv", encoding="utf-8", **options):
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return read_table(file, target, **options)

    return read


@pytest.fixture
def refuse(read):
    def refuse(content, *arguments, kind=DataError, **options):
        with pytest.raises(kind) as caught:
            read(content, *arguments, **options)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    return refuse


def values_of(read, column, **options):
    """Return what is read of a column of cells, and the notes; missing values are allowed."""
    lines = "".join(f"{'uv'[i % 2]};{i};{cell}\n" for i, cell in enumerate(column))
    found = read("type;n;x\n" + lines, needed=["n", "x"], **options)
    return found.X[:, 1].tolist(), [note.removeprefix("a.csv: ") for note in found.notes]


# Encodings and line ends


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r", "\r\r\n"])
def test_encodings_with_marks_and_line_ends_are_read_without_a_word(read, encoding, ends):
    found = read(PLAIN.replace("a", "gène").replace("\n", ends), encoding=encoding)
    np.testing.assert_array_equal(found.X, X)
    assert (found.feature_names, found.notes) == (["gène", "b"], ())


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "cp1252"])
def test_encodings_without_marks_are_guessed_and_said(read, refuse, encoding):
    text = PLAIN.replace("a", "gène €")
    found = read(text, encoding=encoding)
    np.testing.assert_array_equal(found.X, X)
    assert found.feature_names == ["gène €", "b"]
    assert f"(--encoding {encoding})." in found.notes[0]
    assert found.choices == {"a.csv": {"encoding": encoding}}
    assert f"Say so with --encoding {encoding}" in refuse(text.encode(encoding), strict=True)


def test_an_encoding_can_be_said(tmp_path, read, refuse):
    text = PLAIN.replace("a", "ген")
    (tmp_path / "b.csv").write_bytes(text.encode("koi8-r"))
    found = read_table(tmp_path / "b.csv", "type", encoding="koi8-r", strict=True)
    assert (found.feature_names, found.notes) == (["ген", "b"], ())
    for name in ("utf-8", "utf-16-le"):
        content = ("\ufeff" + PLAIN).encode(name)
        (tmp_path / "b.csv").write_bytes(content)
        assert read_table(tmp_path / "b.csv", "type", encoding=name).feature_names == ["a", "b"]
    for name in ("utf-9", "base64", "a\0b", ""):
        with pytest.raises(DataError, match="is no encoding of text"):
            read_table(tmp_path / "b.csv", "type", encoding=name)
    (tmp_path / "b.csv").write_bytes(text.encode("koi8-r"))
    with pytest.raises(DataError, match=r"not utf-8 text \(byte 5, line 1\)"):
        read_table(tmp_path / "b.csv", "type", encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"type,a\nu,1\n\x8d,2\n", "not UTF-8 text (byte 11, line 3), nor that of Windows"),
        (b"type,a\nu,1\n\xe8\x07,2\n", "nor that of Windows"),
        (b"type,a\nu,\x001\n", "NUL bytes, first in line 2"),
        (PLAIN.encode("utf-16")[:-1], "not utf-16 text"),
        (b"type,a\nu,1\rv,2\n", "carriage returns without a line feed, first in line 2"),
        (bytes(50), "NUL"),
    ],
)
def test_bytes_that_are_no_text_are_refused(refuse, content, message):
    assert message in refuse(content)


def test_arff_and_gct_may_be_utf_16(read):
    arff = "@relation x\n@attribute a real\n@attribute type {u,v}\n@data\n1,u\n2,v\n3,u\n4,v\n"
    assert read(arff, name="a.arff", encoding="utf-16").X.ravel().tolist() == [1, 2, 3, 4]
    found = read("#1.3\n1\t2\t0\t1\nid\ts\tt\ntype\tu\tv\ng\t1,5\t2\n", name="a.gct", encoding="utf-16")
    assert (found.X.ravel().tolist(), found.format) == ([1.5, 2.0], "GCT")


# Separators and decimal marks


@pytest.mark.parametrize("separator", ["\t", ",", ";", "|", " ", "   "])
def test_separators(read, separator):
    found = read(table(separator))
    np.testing.assert_array_equal(found.X, X)
    assert found.notes == ()


@pytest.mark.parametrize("separator", ["\t", ";", "|", " "])
def test_a_decimal_comma_is_found_and_said(read, refuse, separator):
    text = table(separator, ",")
    found = read(text)
    np.testing.assert_array_equal(found.X, X)
    assert found.notes == ("a.csv: numbers have a decimal comma (--decimal ,).",)
    assert found.choices == {"a.csv": {"decimal": ","}}
    assert "Say so with --decimal ," in refuse(text, strict=True)
    said = read(text, decimal=",", strict=True)
    np.testing.assert_array_equal(said.X, X)
    assert said.notes == ()


def test_a_decimal_comma_is_found_below_the_first_lines_and_in_quotes(read):
    lines = [f"{'uv'[i % 2]};{i % 7};{i}" for i in range(60)]
    lines[50] = "u;50;2,5"
    found = read("type;a;b\n" + "\n".join(lines))
    assert found.X[50].tolist() == [50, 2.5]
    assert "first '2,5' in column 'b', line 52 (--decimal ,)" in found.notes[0]
    quoted = "".join(f'{label},"{a}","{b}"\n'.replace(".", ",") for label, a, b in ROWS)
    np.testing.assert_array_equal(read("type,a,b\n" + quoted).X, X)
    np.testing.assert_array_equal(read("type,a,b\n" + quoted, decimal=",", strict=True).X, X)


def test_thousands(read, refuse):
    values, notes = values_of(read, ["1.234,5", "0,5", "1.234", "12.345.678"])
    assert values == [1234.5, 0.5, 1234.0, 12345678.0]
    assert notes == ["numbers have a decimal comma (--decimal ,)."]
    values, notes = values_of(read, ["1,234.5", "0.5", "1,234"])
    assert values == [1234.5, 0.5, 1234.0]
    assert notes == ["commas separate thousands, first in '1,234' in column 'x', line 4 (--decimal .)."]
    # In doubt: semicolons go with decimal commas, commas with points, and for others it has to be said.
    assert values_of(read, ["1,234", "2,345"])[0] == [1.234, 2.345]
    assert values_of(read, ["1,234", "2,345"], decimal=".", strict=True)[0] == [1234, 2345]
    # Decimals have as many digits everywhere, so that whole numbers beside them are doubtful.
    rows = 'u,"1,234"\nv,345\n'
    assert read("type,a\n" + rows * 2).X.ravel().tolist() == [1234, 345] * 2
    for separator, other in ((",", "2,345"), ("\t", "2,345"), ("\t", "345"), (";", "345")):
        message = refuse(f"type{separator}a\n" + (f'u{separator}"1,234"\nv{separator}"{other}"\n' * 2))
        assert "'1,234' in column 'a', line 2 may have a decimal comma or a comma between thousands. Say" in message
    message = refuse("type;a;b\n" + "u;1,234;1\nv;5;1.234\n" * 2)
    assert "'1,234' in column 'a', line 2 may" in message
    assert "and '1.234' in column 'b', line 3 a point. Say" in message


def test_a_panel_is_read_with_the_decimal_mark_of_the_whole_file(read, refuse):
    """The columns of a panel alone might have either mark, or would have the other one."""
    rows = "".join(f"{'uv'[i % 2]};1,234;{i};{i}\n" for i in range(8))
    content = "type;a;b;c\n" + rows + "u;2,345;1,234.5;1\n"
    assert read(content, needed=["a"]).X.ravel().tolist() == read(content).X[:, 0].tolist() == [1234.0] * 8 + [2345.0]
    content = content.replace(".", "x").replace(",", ".").replace("x", ",")
    assert read(content, needed=["a"]).X.ravel().tolist() == [1234.0] * 8 + [2345.0]
    assert read(content, features=["a"]).X.ravel().tolist() == [1234.0] * 8 + [2345.0]


@pytest.mark.parametrize("needed", [None, ["a", "b"]])
def test_empty_fields_in_quotes_are_no_samples(read, needed):
    lines = ['"id","s1","s2","s3","s4","",""', '"type","u","v","u","v","",""', '"a","1","2","3","4","",""', 'b,5,6,7,8,,""']
    found = read("\n".join(lines), samples_in="columns", needed=needed)
    assert found.sample_names == ["s1", "s2", "s3", "s4"]
    assert (found.X.tolist(), found.notes) == ([[1, 5], [2, 6], [3, 7], [4, 8]], ())


def test_a_header_that_a_spreadsheet_shifted_is_refused(read, refuse):
    """R's header, one field short, has an empty field at its end once a spreadsheet saved it: names would be shifted."""
    rows = "s1,1,u,2\ns2,3,v,4\ns3,5,u,6\ns4,7,v,8\n"
    assert read("a,type,b\n" + rows).feature_names == ["a", "b"]
    assert "last column has values, but no name in line 1" in refuse("a,type,b,\n" + rows)
    turned = "Made in March\ns1,s2,s3,s4,\ntype,u,v,u,v\nTP53,1,2,3,4\nMYC,1,2,3,5\n"
    assert "last column has values, but no name in line 2" in refuse(turned)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_points_between_thousands_are_not_taken_for_decimals(read, refuse, separator):
    rows = "u;1.234\nv;345\nu;12.345\nv;7\n"
    message = refuse(("type;a\n" + rows).replace(";", separator))
    assert "'1.234' in column 'a', line 2 may have a decimal point or a point between thousands" in message
    assert read(("type;a\n" + rows).replace(";", separator), decimal=",").X.ravel().tolist() == [1234, 345, 12345, 7]
    for decimals in ("1.5", "0.125", "1.2345", "1.234e2"):
        found = read(("type;a\n" + rows.replace("7", decimals)).replace(";", separator))
        assert found.X.ravel().tolist() == [1.234, 345, 12.345, float(decimals)]
    assert read("type,a\n" + rows.replace(";", ",")).X.ravel().tolist() == [1.234, 345, 12.345, 7]
    assert read("type;a\n" + rows.replace("345\nu", "0\nu").replace("7", "0")).X.ravel().tolist() == [1.234, 0, 12.345, 0]


@pytest.mark.parametrize("first", ["1,5", "1.5"])
def test_two_decimal_marks_are_refused(refuse, first):
    second = first.translate(str.maketrans(",.", ".,"))
    lines = [f"{'uv'[i % 2]};{i};{i}" for i in range(50)]
    lines[1], lines[45] = f"v;{first};1", f"v;45;{second}"
    message = refuse("type;a;b\n" + "\n".join(lines))
    assert f"'{second}' in column 'b', line 47" in message
    assert f"'{first}' in column 'a', line 3" in message
    assert "have different decimal marks" in message
    assert "--decimal . or --decimal ," in message


def test_targets_have_the_mark_of_the_table(read, refuse):
    for text in ("age;a\n1,5;1\n2,25;2\n3;4\n1.000,5;7\n", "age;a\n1,5;0,5\n2,25;2\n3;4\n1.000,5;7\n"):
        found = read(text, "age", task="regression")
        assert found.y.tolist() == [1.5, 2.25, 3.0, 1000.5]
        assert found.choices == {"a.csv": {"decimal": ","}}
    turned = "x;s1;s2;s3\nage;1,5;2;3\ng;1;2;3\n"
    assert read(turned, "age", task="regression", samples_in="columns").y.tolist() == [1.5, 2.0, 3.0]
    message = refuse("age;a\n1,5;1\n2;2.5\n3;4\n", "age", task="regression")
    assert "'1,5' in column 'age', line 2" in message
    assert "'2.5' in column 'a', line 3" in message
    assert read("grade;a\n1,5;1\n2;2\n1,5;3\n2;4\n", "grade").notes == ()  # labels are text


def test_labels_in_a_file_have_a_mark_of_their_own(tmp_path, read):
    (tmp_path / "ages.csv").write_text("Ages of all samples\n\nsample;age\ns1;1,5\ns2;2\ns3;3\n;\n")
    found = read("sample,a\ns1,1.5\ns2,2\ns3,4\n", None, labels=tmp_path / "ages.csv", task="regression", encoding="utf-8")
    assert (found.y.tolist(), found.target_name) == ([1.5, 2.0, 3.0], "age")
    assert found.choices == {"ages.csv": {"decimal": ","}}


# Lines above the header, empty lines and columns, headers of R


@pytest.mark.parametrize(
    ("above", "n_lines"),
    [
        ("Expression of two genes\n", 1),
        ("Expression of two genes\n\nMarch, 2024\n", 3),
        ("Expression,,\nMarch,,\n", 2),
        ("# made by a machine\n# version 1\n", 2),
        ('!Series_title\t"x"\n!Sample_title\t"a"\t"b"\n!series_matrix_table_begin\n', 3),
    ],
)
def test_titles_are_skipped_and_said(read, refuse, above, n_lines):
    text = above + PLAIN
    found = read(text)
    np.testing.assert_array_equal(found.X, X)
    assert found.feature_names == ["a", "b"]
    assert found.notes[0].endswith(f"(--skip-rows {n_lines}).")
    assert found.choices == {"a.csv": {"skip_rows": n_lines}}
    assert "--skip-rows" in refuse(text, strict=True)
    said = read(text, skip_rows=n_lines, strict=True)
    assert (said.feature_names, said.notes) == (["a", "b"], ())
    assert "type" in refuse(text, skip_rows=n_lines + 1, kind=(DataError, UnknownColumnError))


def test_blank_lines_above_and_lines_below_are_nothing_to_speak_of(read):
    found = read("\n  \n" + PLAIN + ",,\n\n , ,\n!series_matrix_table_end\n")
    np.testing.assert_array_equal(found.X, X)
    assert found.notes == ()


def test_lines_in_messages_are_those_of_the_file(refuse):
    assert "line 6 has 2 fields" in refuse("Title\n\n" + PLAIN.replace("u,3.0,4.5", "u,3.0"))
    assert "the file is empty below line 40 (--skip-rows 40)" in refuse(PLAIN, skip_rows=40)
    assert "line 2 is the first with 5 fields" in refuse("type,a,b\nu,1,2,3,4\nv,1,2,3,4\n")
    assert "--skip-rows N" in refuse("Title\n" + PLAIN, skip_rows=0)


def test_a_comment_may_be_the_header(read):
    assert read("# made by a machine\n#type,a\nu,1\nv,2\n", "#type").feature_names == ["a"]


def test_numbers_may_name_the_columns(read):
    found = read("gene,1,2,3,4\ntype,u,v,u,v\nTP53,5,6,7,8\n", samples_in="columns")
    assert (found.sample_names, found.notes) == (["1", "2", "3", "4"], ())


def test_empty_columns_at_the_end_are_left_out(read):
    lines = PLAIN.splitlines()
    for end, rows in ((",,", ",,"), ("", ",,"), (",,", ""), (", ", ",")):
        found = read(lines[0] + end + "\n" + "".join(line + rows + "\n" for line in lines[1:]))
        np.testing.assert_array_equal(found.X, X)
        assert (found.feature_names, found.notes) == (["a", "b"], ())


def test_columns_without_a_name(read, refuse):
    text = "type,a,,b,,\n" + "".join(f"{label},{a},,{b},5,\n" for label, a, b in ROWS)
    found = read(text)
    assert found.feature_names == ["a", "b", "column 5"]
    np.testing.assert_array_equal(found.X, np.column_stack([X, np.full(len(X), 5.0)]))
    assert found.notes == ("a.csv: 1 column has no name and is called 'column 5'.",)
    assert "'column 5'" in refuse(text, strict=True)


@pytest.mark.parametrize("separator", [" ", ",", "\t"])
def test_the_header_of_r_lacks_the_row_names(read, separator):
    text = separator.join(['"type"', '"a"', '"b"']) + "\n"
    text += "".join(separator.join([f'"s {i}"', f'"{row[0]}"', *map(str, row[1:])]) + "\n" for i, row in enumerate(ROWS))
    found = read(text, strict=True)
    np.testing.assert_array_equal(found.X, X)
    assert (found.feature_names, found.sample_names) == (["a", "b"], [f"s {i}" for i in range(len(X))])
    assert found.notes == ("a.csv: the header is one field short, as R writes it, so the first column holds names.",)
    genes = '"s1" "s2" "s3" "s4"\n"type" u v u v\n"TP53" 1 2 3 4\n'
    found = read(genes, samples_in="columns")
    assert (found.feature_names, found.sample_names, found.X.ravel().tolist()) == (
        ["TP53"],
        ["s1", "s2", "s3", "s4"],
        [1, 2, 3, 4],
    )


# Odd cells

NUMBERS = ["1.5", "2", "3", "4.5", "5", "6", "7", "8"]


@pytest.mark.parametrize("text", ["?", "--", "n.d.", "<lod", "k. a.", "below detection limit", "#div/0!"])
def test_texts_that_mean_missing(read, refuse, text):
    values, notes = values_of(read, [*NUMBERS, text.upper()])
    np.testing.assert_array_equal(values, [*map(float, NUMBERS), NA])
    said = f"{text.upper()!r} in column 'x', line 10 (--na {shlex.quote(text.upper())})."
    assert notes == [f"1 text among numbers is read as missing, {said}"]
    assert values_of(read, [*NUMBERS, text], na=[text], strict=True)[1] == []


def test_the_universal_missing_texts_need_no_word(read):
    texts = ["", "NA", "nan", "NaN", "null", "None", "n/a", "N/A", "#N/A", "na"]
    values, notes = values_of(read, [*NUMBERS, *texts], strict=True)
    assert np.isnan(values).tolist() == [False] * 8 + [True] * 10
    assert notes == []


def test_percent_signs_in_all_cells(read):
    values, notes = values_of(read, ["12%", "12.5 %", "", "7%"])
    np.testing.assert_array_equal(values, [12, 12.5, NA, 7])
    assert notes == ["percent signs of 1 feature are left out, first '12%' in column 'x', line 2."]
    assert np.isnan(values_of(read, [*NUMBERS, "12%"])[0][-1])  # a stray one means something else


def test_texts_among_numbers_are_missing_and_said_once(read, refuse):
    lines = [f"{'uv'[i % 2]},{i},{i},{i}" for i in range(20)]
    lines[3], lines[4], lines[9] = "v,3,haemolytic,n.d.", "u,4,4,n.d.", "v,9,9,NA"
    text = "type,n,x,y\n" + "\n".join(lines)
    found = read(text, needed=["n", "x", "y"])
    assert np.argwhere(np.isnan(found.X)).tolist() == [[3, 1], [3, 2], [4, 2], [9, 2]]
    assert found.notes == (
        "a.csv: 3 texts among numbers are read as missing, first 'haemolytic' in column 'x', line 5 (also 'n.d.') "
        "(--na haemolytic,n.d.).",
    )
    assert found.choices == {"a.csv": {"na": ["haemolytic", "n.d."]}}
    assert "'haemolytic' in column 'x', line 5" in refuse(text, strict=True)
    said = read(text, needed=["n", "x", "y"], na=["haemolytic", "n.d."], strict=True)
    np.testing.assert_array_equal(said.X, found.X)
    # What is not asked for is not looked at.
    assert read(text, needed=["n"]).notes == ()


def test_a_column_with_fewer_numbers_is_text(read):
    for column, is_text in ((["1", "2", "3", "4", "high"], False), (["1", "2", "3", "high"], True), (["-", "-"], True)):
        text = "type;n;x\n" + "".join(f"{'uv'[i % 2]};{i};{cell}\n" for i, cell in enumerate(column))
        if is_text:
            with pytest.raises(DataError, match="text"):
                read(text, needed=["x"])
        else:
            assert np.isnan(read(text, needed=["x"]).X[-1, 0])


def test_the_first_column_holds_names_if_it_has_any_text(read):
    ids = [*map(str, range(9)), "9a"]
    text = "id,type,x\n" + "".join(f"{name},{'uv'[i % 2]},{i}\n" for i, name in enumerate(ids))
    assert read(text).sample_names == ids
    found = read(text.replace("9a", "n.d."), needed=["id", "x"])
    assert (found.sample_names, found.feature_names) == (None, ["id", "x"])


@pytest.mark.parametrize("mark", [".", ","])
def test_odd_cells_with_samples_in_columns(read, refuse, mark):
    names = [f"s{j}" for j in range(10)]
    rows = [["type", *"uvuvuvuvuv"], ["TP53", *(f"{j}{mark}5" for j in range(10))], ["NA", *map(str, range(10))]]
    rows[1][3], rows[2][4], rows[2][5] = "n.d.", f"<0{mark}5", f"1{'.,'[mark == '.']}234{mark}5"
    text = "\n".join(";".join(row) for row in [["gene", *names], *rows])
    found = read(text, samples_in="columns", needed=["TP53", "NA"])
    expected = np.array([[j + 0.5 for j in range(10)], range(10)], dtype=float)
    expected[0, 2], expected[1, 3], expected[1, 4] = NA, 0.5, 1234.5
    np.testing.assert_array_equal(found.X, expected.T)
    assert found.feature_names == ["TP53", "NA"]
    assert "missing, 'n.d.' in row 'TP53', line 3, sample 's2' (--na n.d.)" in " ".join(found.notes)
    assert f"number, '<0{mark}5' in row 'NA', line 4, sample 's3'" in " ".join(found.notes)
    assert ("--decimal ," in " ".join(found.notes)) == (mark == ",")
    message = refuse(text.replace(f"7{mark}5", f"7{'.,'[mark == '.']}5"), samples_in="columns")
    assert "have different decimal marks" in message


def test_a_row_of_text_is_not_read_as_missing(read):
    text = "gene,s1,s2,s3,s4\ntype,u,v,u,v\nTP53,1,2,3,4\nbatch,first,second,first,second\n"
    found = read(text, samples_in="columns")
    assert (found.feature_names, found.others) == (["TP53"], ["batch"])
    assert found.notes == ("a.csv: 1 row of text is left out: 'batch' (--ignore batch).",)
    one_sample = "\n".join(",".join(line.split(",")[:2]) for line in text.splitlines())
    found = read(one_sample, samples_in="columns")
    assert (found.X.tolist(), found.y.tolist(), found.others) == ([[1.0]], ["u"], ["batch"])


# The same cells in workbooks and Parquet files


def workbook(file, rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(file)
    return file


def test_cells_of_a_workbook(tmp_path):
    body = [["s1", "u", 1.5, "1,5", "12%"], ["s2", "v", "n.d.", 2, "3 %"], ["s3", "u", 3, "<0,5", None]]
    body += [[f"s{i}", "uv"[i % 2], i, i, f"{i}%"] for i in range(4, 10)]
    rows = [["Measured in March"], [], ["name", "type", "a", "b", "c", None], *body, [None] * 6, ["", " "]]
    found = read_table(workbook(tmp_path / "a.xlsx", rows), "type", needed=["a", "b", "c"])
    expected = np.array([[i, i, i] for i in range(1, 10)], dtype=float)
    expected[:3] = [[1.5, 1.5, 12], [NA, 2, 3], [3, 0.5, NA]]
    np.testing.assert_array_equal(found.X, expected)
    notes = " ".join(found.notes)
    assert "2 rows above the header were skipped, first 'Measured in March' (--skip-rows 2)" in notes
    assert "--decimal ," in notes
    assert "missing, 'n.d.' in column 'a', sample 2 (--na n.d.)" in notes
    assert "1 limit is read as a number, '<0,5' in column 'b', sample 3" in notes
    assert found.choices["a.xlsx"] == {"skip_rows": 2, "decimal": ",", "na": ["n.d."]}
    with pytest.raises(DataError, match="--strict forbids"):
        read_table(tmp_path / "a.xlsx", "type", strict=True)
    said = read_table(tmp_path / "a.xlsx", "type", needed=["a", "b", "c"], skip_rows=2, decimal=",", na=["n.d."])
    np.testing.assert_array_equal(said.X, expected)
    assert "skip_rows" not in said.choices.get("a.xlsx", {})


def test_a_workbook_with_samples_in_columns_and_a_target_of_numbers(tmp_path):
    rows = [["gene", *[f"s{j}" for j in range(9)]], ["age", "1,5", *range(8)], ["TP53", *range(8), "#NV"]]
    file = workbook(tmp_path / "a.xlsx", rows)
    found = read_table(file, "age", samples_in="columns", task="regression", needed=["TP53"])
    assert found.y.tolist() == [1.5, *range(8)]
    np.testing.assert_array_equal(found.X.ravel(), [*range(8), NA])
    file = workbook(tmp_path / "b.xlsx", [["type", "a"], *[["uv"[i % 2], -999 if i == 4 else i] for i in range(8)]])
    assert np.isnan(read_table(file, "type", needed=["a"], na=["-999"], strict=True).X[4, 0])


def test_text_columns_of_parquet(tmp_path):
    frame = pd.DataFrame({"type": list("uvuvuvuvuv"), "a": [*map(str, range(9)), "n.d."], "b": ["x", "y"] * 5})
    frame.to_parquet(tmp_path / "a.parquet")
    found = read_table(tmp_path / "a.parquet", "type", needed=["a"])
    np.testing.assert_array_equal(found.X.ravel(), [*range(9), NA])
    assert "9 numbers are stored as text, first '0' in column 'a', sample 1." in " ".join(found.notes)
