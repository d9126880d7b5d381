"""Bad files, by the number of the fault (F1 to F13): each is refused in one line, with the way out, and harms nobody."""

from __future__ import annotations

import contextlib
import gzip
import io
import pickle
import struct
import warnings
import zipfile
from pathlib import Path

import files
import joblib
import numpy as np
import openpyxl
import pandas as pd
import pytest
import scipy.sparse as sp
from files import GENES, LABELS, SAMPLES, X
from scipy.io import savemat

from l20fs.cli import run
from l20fs.data.readers import DataError, Samples, UnknownColumnError, limits, read_table
from l20fs.data.readers.table import Request
from l20fs.data.readers.tenx import parse_matrix_market

OURS = (DataError, UnknownColumnError)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def options(folder):
    return files.lay_out(folder)


def refuse(file, target=None, kind=DataError, **options):
    with pytest.raises(kind) as caught:
        read_table(file, target, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def write(folder, content, name):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / name


# F1: damaged text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"type,a\n", "a header and no samples"),
        (b"type,a\nu,1\nv,2,3\n", "line 3 has 3 fields. Every line must have 2 fields"),
        (b'type,a\n"u\nu",1\n"v,2\n', "line 4"),
        (b"type,a\nu,1\ng\x8dne,2\n", "not UTF-8 text (byte 12, line 3)"),
        (b"type,a\nu,1\nv,\x002\n", "NUL bytes, first in line 3"),
        (b"type,a\nu,1\rv,2\n", "carriage returns without a line feed, first in line 2"),
    ],
)
def test_f1_damaged_text_is_refused_with_its_line(tmp_path, capsys, content, message):
    file = write(tmp_path, content, "a.csv")
    assert message in refuse(file, "type")
    assert run(["select", str(file), "--target", "type"]) == 3
    assert message in capsys.readouterr().err


def test_f1_quotes_line_ends_and_marks_are_read(tmp_path):
    text = '\ufeff"na""me",type,"a,b"\r\n"s\n1","u ""x""",1\r\n\r\ns2,v,"2"\r\ns3,"u ""x""",3\r\ns4,v,4\r\n'
    table = read_table(write(tmp_path, text, "a.csv"), "type")
    assert table.sample_names == ["s\n1", "s2", "s3", "s4"]
    assert table.y.tolist() == ['u "x"', "v", 'u "x"', "v"]
    assert (table.feature_names, table.X.ravel().tolist()) == (["a,b"], [1, 2, 3, 4])


def test_f1_lines_are_counted_as_an_editor_does(tmp_path):
    text = 'name,type,a\n"s\n1",u,1\n\ns2,v,\ns3,u,3\ns4,,4\n'
    assert "1 of 4 samples has no 'type', in line 7" in refuse(write(tmp_path, text, "a.csv"), "type", strict=True)
    assert "1 missing value, in column 'a', line 5" in refuse(
        write(tmp_path, text.replace("4,,4", "4,v,4"), "a.csv"), "type", missing="refuse"
    )


def test_f1_text_in_a_row_of_numbers_is_refused_with_its_line(tmp_path):
    text = "gene,s1,s2\ntype,u,v\nTP53,1,NA\nMYC,high,3\n"
    message = refuse(write(tmp_path, text, "a.csv"), "type", samples_in="columns")
    assert "line 4, 'MYC', holds text" in message
    text = text.replace("high", "2")
    message = refuse(write(tmp_path, text, "a.csv"), "type", samples_in="columns", missing="refuse")
    assert "1 missing value, in column 'TP53', sample 's2'" in message
    assert "Add rows of numbers" in refuse(write(tmp_path, text[:20], "a.csv"), "type", samples_in="columns")


@pytest.mark.parametrize("value", ["inf", "-Infinity"])
def test_infinite_numbers_are_refused(tmp_path, value):
    message = refuse(write(tmp_path, f"type,a,b\nu,1,2\nv,3,{value}\n", "a.csv"), "type")
    assert "1 infinite value, in column 'b', line 3" in message


def test_values_of_a_sparse_matrix_that_are_missing_are_found(tmp_path):
    values = sp.csc_array(X)
    values.data[2] = np.nan
    column = np.repeat(np.arange(5), np.diff(values.indptr))[2]
    (tmp_path / "labels.txt").write_text("\n".join(LABELS))
    sp.save_npz(tmp_path / "a.npz", values)
    message = refuse(tmp_path / "a.npz", labels=tmp_path / "labels.txt", missing="refuse")
    assert f"1 missing value, in column 'feature{column + 1}', sample {values.indices[2] + 1}" in message


# F2: names that look like something else


def test_f2_names_are_kept_and_dates_are_told(folder, options):
    for name in ("a.csv", "turned.csv", "two.gct", "a.xlsx", "turned.xlsx", "a.parquet", "a.h5ad", "matrix.mtx", "a.arff"):
        table = read_table(folder / name, **options[name])
        assert table.feature_names == GENES == ["TP53", "NA", "1-Mar", "nan", "44256"]
        assert "2 feature names look like dates ('1-Mar', '44256')" in " ".join(table.notes)


def test_f2_excel_dates_are_shown_as_dates(tmp_path):
    frame = pd.DataFrame(X[:, :2].T, index=[pd.Timestamp("2021-03-01"), "TP53"], columns=SAMPLES)
    (tmp_path / "labels.txt").write_text("\n".join(LABELS))
    frame.to_excel(tmp_path / "a.xlsx")
    table = read_table(tmp_path / "a.xlsx", labels=tmp_path / "labels.txt", samples_in="columns")
    assert table.feature_names == ["2021-03-01", "TP53"]
    assert "1 feature name looks like a date ('2021-03-01')" in table.notes[0]


# F3: names that stand for two things


@pytest.mark.parametrize("axis", ["features", "samples"])
@pytest.mark.parametrize(
    ("kind", "samples_in"),
    [("csv", "rows"), ("csv", "columns"), ("xlsx", "rows"), ("gct", "columns"), ("mtx", "rows"), ("h5ad", "rows")],
)
def test_f3_repeated_names_are_refused_and_five_are_listed(tmp_path, kind, axis, samples_in):
    names = {"features": [f"g{j}" for j in range(14)], "samples": [f"s{j}" for j in range(14)]}
    names[axis] = [f"{axis[0]}{j % 7}" for j in range(14)]
    values = np.arange(196.0).reshape(14, 14)
    (tmp_path / "labels.txt").write_text("u\nv\n" * 7)
    frame = pd.DataFrame(values, index=names["samples"], columns=names["features"])
    frame = frame.T if samples_in == "columns" else frame
    file = tmp_path / f"a.{kind}"
    given = {"labels": tmp_path / "labels.txt", "samples_in": samples_in}
    if kind == "csv":
        frame.to_csv(file)
    elif kind == "xlsx":
        frame.to_excel(file)
    elif kind == "gct":
        rows = [f"{name}\tx\t" + "\t".join(map(str, row)) for name, row in zip(names["features"], values.T, strict=True)]
        file.write_text("#1.2\n14\t14\nName\tDescription\t" + "\t".join(names["samples"]) + "\n" + "\n".join(rows))
    elif kind == "mtx":
        file = write(tmp_path, "%%MatrixMarket matrix coordinate real general\n14 14 1\n1 1 2\n", "matrix.mtx")
        (tmp_path / "genes.tsv").write_text("\n".join(names["features"]))
        (tmp_path / "barcodes.tsv").write_text("\n".join(names["samples"]))
    else:
        import anndata

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            obs, var = pd.DataFrame(index=names["samples"]), pd.DataFrame(index=names["features"])
            anndata.AnnData(values, obs=obs, var=var).write_h5ad(file)
        given.pop("samples_in")
    message = refuse(file, **given, duplicates="refuse")
    assert "more than once" in message
    assert [f"'{axis[0]}{j}'" in message for j in range(7)] == [True] * 5 + [False] * 2


# F4: genes in rows


def test_f4_a_table_that_looks_transposed_gets_a_hint(tmp_path):
    genes = "".join(f"g{j},{j}.5,{j * j}\n" for j in range(100))
    file = write(tmp_path, "gene,s1,s2\n" + genes, "a.csv")
    hint = "If its samples are in columns, say so (--samples-in columns)."
    assert hint in refuse(file, kind=UnknownColumnError)
    assert hint in refuse(write(tmp_path, "gene,s1,s2\ng1,1,2\n" + genes, "c.csv"), "s2")
    assert hint in refuse(write(tmp_path, "gene,s1,s2\n" + genes + "type,u,v\n", "d.csv"), "gene")


def test_f4_a_table_with_many_samples_is_read_without_a_word_if_it_has_the_target(tmp_path):
    rows = "".join(f"s{i},{'uv'[i % 2]},{i % 7}\n" for i in range(100))
    table = read_table(write(tmp_path, "name,type,a\n" + rows, "a.csv"), "type")
    assert (table.X.shape, table.notes) == ((100, 1), ())
    numbers = "".join(f"{i * i},{i % 7}\n" for i in range(100))
    assert read_table(write(tmp_path, "age,a\n" + numbers, "b.csv"), "age", task="regression").notes == ()


# F5: files that are cut off; those with damaged bytes (F13) are in tests/fuzz


BINARY = ["a.tsv.gz", "three.gct.gz", "a.npz", "a.npy", "sparse.npz", "a.mat", "packed.mat", "a.parquet", "a.xlsx", "a.h5ad"]
TEXTS = ["a.csv", "quoted.csv", "turned.csv", "two.gct", "a.arff", "a.svm", "matrix.mtx"]


def try_to_read(file, content, options):
    """Read a damaged file: a table, or our refusal."""
    file.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            table = read_table(file, **options)
        except OURS as error:
            assert "\n" not in str(error)  # noqa: PT017
            return None
    assert isinstance(table, Samples)
    assert table.X.shape == (len(table.y), len(table.feature_names))
    assert np.isfinite(table.X.data if sp.issparse(table.X) else table.X).all()
    return table


def beside(folder, tmp_path, name):
    """Return where to write a damaged copy of a file, among the files that belong to it."""
    for other in ("features.tsv", "barcodes.tsv.gz"):
        (tmp_path / other).write_bytes((folder / other).read_bytes())
    return tmp_path / name


@pytest.mark.parametrize("name", BINARY)
def test_f5_a_file_that_is_cut_off_is_refused(folder, options, tmp_path, capsys, name):
    content = (folder / name).read_bytes()
    for length in [1, 9, *range(16, len(content) - 8, max(1, len(content) // 5)), len(content) - 8]:
        assert try_to_read(tmp_path / name, content[:length], options[name]) is None
    write(tmp_path, content[: len(content) // 2], name)
    assert run(["select", str(tmp_path / name), "--target", "type"]) == 3
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("name", TEXTS)
def test_f5_text_that_is_cut_off_is_a_shorter_table_or_refused(folder, options, tmp_path, name):
    content = (folder / name).read_bytes()
    for length in range(0, len(content), max(1, len(content) // 20)):
        try_to_read(beside(folder, tmp_path, name), content[:length], options[name])


# F6 and F7: what can run code


class Canary:
    """Creates a file when it is unpickled."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def dump_gzipped(payload, stream):
    stream.write(gzip.compress(pickle.dumps(payload)))


DUMPS = {
    "npy": lambda payload, stream: np.save(stream, np.array([payload], dtype=object), allow_pickle=True),
    "npz X": lambda payload, stream: np.savez(stream, X=np.array([[payload]], dtype=object), y=[1], allow_pickle=True),
    "npz y": lambda payload, stream: np.savez(stream, X=X, y=np.array([payload] * 8, dtype=object), allow_pickle=True),
    "npz names": lambda payload, stream: np.savez(
        stream, X=X, y=LABELS, feature_names=np.array([payload] * 5, dtype=object), allow_pickle=True
    ),
    **{f"pickle {p}": lambda payload, stream, p=p: pickle.dump(payload, stream, protocol=p) for p in range(6)},
    "gzip": dump_gzipped,
    "joblib": joblib.dump,
}


@pytest.mark.parametrize("what", DUMPS)
@pytest.mark.parametrize("ending", [".npz", ".csv", ".pkl", ".h5ad"])
def test_f6_a_payload_is_never_run(folder, options, tmp_path, what, ending):
    canary = tmp_path / "canary"
    stream = io.BytesIO()
    DUMPS[what](Canary(canary), stream)
    file = write(tmp_path, stream.getvalue(), f"a{ending}")
    for asked in ({}, {"target": "y"}, {"labels": folder / "plain.txt"}, {"labels": file, "target": "y"}):
        if what != "npz y" or "labels" not in asked or ending in (".pkl", ".joblib"):
            refuse(file, **asked, kind=OURS)
        else:  # y is not looked at
            with contextlib.suppress(*OURS):
                read_table(file, **asked)
    refuse(folder / "plain.csv", labels=file, kind=OURS)
    assert run(["select", str(file), "--target", "y"]) in (2, 3)
    assert not canary.exists()


@pytest.mark.parametrize("what", ["pickle 4", "npy", "npz y"])
def test_f6_the_canary_would_be_seen(tmp_path, what):
    stream = io.BytesIO()
    DUMPS[what](Canary(tmp_path / "canary"), stream)
    stream.seek(0)
    if what.startswith("pickle"):
        pickle.load(stream)
    else:
        loaded = np.load(stream, allow_pickle=True)
        assert loaded["y"] is not None if what == "npz y" else loaded is not None
    assert (tmp_path / "canary").exists()


@pytest.mark.parametrize("name", ["a.pkl", "a.PICKLE", "a.joblib", "a.rds", "a.RData", "a.rda", "a.pkl.gz", "a.dill"])
def test_f7_files_that_can_run_code_are_refused_without_a_look(tmp_path, capsys, name):
    assert "can run code when they are read and are refused" in refuse(tmp_path / name)  # it is not even there
    file = write(tmp_path, "type,a\nu,1\nv,2\n", name)
    assert run(["select", str(file), "--target", "type"]) == 3
    assert "can run code" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"X\n\0\0\0\x03\0\x04\x02\0", mtime=0), "an R object, which can run code"),
        (b"RDX3\nX\n", "an R object"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel file"),
        (b"BZh91AY&SY", "compressed by another program than gzip"),
        (b"\xfd7zXZ\0", "compressed by another program"),
        (b"%PDF-1.7", "a PDF"),
    ],
)
def test_f7_files_of_other_programs_are_known_by_their_content(tmp_path, content, message):
    assert message in refuse(write(tmp_path, content, "a.csv"), "type")


# F8: bombs


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(limits, "FREE_BYTES", 100_000)
    monkeypatch.setattr(limits, "CHUNK", 10_000)


def bomb(kind):
    """Return a file of a few kilobytes that grows to megabytes."""
    zeros = np.zeros((500, 1000))
    if kind == "gz":
        return gzip.compress(b"type,a\n" + b"u,1\nv,2\n" * 500_000)
    if kind == "npz":
        return files.written(np.savez_compressed, X=zeros, y=np.arange(500) % 2)
    if kind == "mat":
        return files.written(savemat, {"X": zeros, "Y": np.arange(500) % 2}, do_compression=True)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b" " * 4_000_000)
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["gz", "npz", "mat", "xlsx"])
def test_f8_a_file_that_grows_out_of_proportion_is_refused(small_limits, tmp_path, capsys, kind):
    content = bomb(kind)
    assert len(content) * limits.MOST_GROWTH < 4_000_000
    file = write(tmp_path, content, f"a.{kind}")
    message = refuse(file, "type" if kind in ("gz", "xlsx") else None)
    assert "that unpack to more than" in message or "larger than the" in message
    assert run(["select", str(file), "--target", "Y" if kind == "mat" else "type"]) == 3


# Memory


@pytest.mark.parametrize("name", [*TEXTS, *BINARY, "dense.h5ad"])
def test_a_file_that_needs_too_much_memory_is_refused_with_both_numbers(folder, options, name):
    message = refuse(folder / name, **options[name], max_memory=100)
    assert "needs about " in message
    assert "100 bytes are allowed. Remove features" in message
    read_table(folder / name, **options[name], max_memory=10**9)


def test_empty_fields_at_the_end_of_lines_are_counted_once(tmp_path):
    """A header that ends in many empty names, and lines of which half are empty, took hours."""
    header, line = "type,a" + "," * 50_000, ",1" + "," * 25_000 + "2" + "," * 25_000
    file = write(tmp_path, f"{header}\nu{line}\nv{line}\nu{line}\nv,3{line[2:]}\n", "a.csv")
    assert read_table(file, "type").feature_names == ["a", "column 25002"]


def test_labels_and_groups_have_a_greatest_length(tmp_path):
    rows = "".join(f"{name},d{i % 3},{i}.5\n" for i, name in enumerate(["u" * 1000, "v"] * 4))
    file = write(tmp_path, f"type,donor,a\n{rows}", "a.csv")
    assert read_table(file, "type", groups="donor").y[0] == "u" * 1000
    write(tmp_path, f"type,donor,a\n{rows.replace('d2', 'd' * 1001)}", "a.csv")
    assert "'donor' has 1001 characters in line 4. Labels and groups have at most 1000" in refuse(
        file, "type", groups="donor"
    )


# F9: MATLAB


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + b"\x89HDF\r\n\x1a\n",
            "a MATLAB 7.3 file (HDF5). Save it with -v7, or as CSV.",
        ),
        (files.written(savemat, {"X": {"a": 1.0}, "Y": [1, 2]}), "X is a struct; it must be a full matrix"),
        (files.written(savemat, {"X": sp.csc_array(X), "Y": LABELS}), "X is a sparse; it must be a full matrix"),
        (
            files.written(savemat, {"X": X, "Y": LABELS}).replace(
                struct.pack("<ii", 8, 5), struct.pack("<ii", 2**31 - 1, 5), 1
            ),
            "",
        ),
    ],
    ids=["7.3", "struct", "sparse", "absurd"],
)
def test_f9_matlab_files_that_cannot_be_read(tmp_path, content, message):
    found = refuse(write(tmp_path, content, "a.mat"))
    assert message in found
    assert found.startswith("a.mat: ")


# F10: Matrix Market

MTX = "%%MatrixMarket matrix coordinate real general\n%\n3 2 2\n1 1 5\n3 2 6\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3 2 2\n", "3 2 3\n", "states 3 entries, but has 2 lines of them"),
        ("3 2 2\n", "3 2 999999999\n", "states 999999999 entries, but has 2"),
        ("3 2 2\n", "3 2 1\n", "states 1 entries, but has 2"),
        ("3 2 2\n", "2 2 2\n", "states 2 rows, but has an entry in row 3"),
        ("3 2 2\n", "3 1 2\n", "states 1 columns, but has an entry in column 2"),
        ("1 1 5", "0 1 5", "but has an entry in row 0"),
        ("1 1 5", "1 -1 5", "but has an entry in column -1"),
        ("1 1 5", "3 2 5", "1 entries stand for the same value"),
        ("1 1 5", "1 1", "1 entries have no value"),
        ("1 1 5", "1 1 x", "not a list of row, column and value"),
        ("1 1 5", "1.5 1 5", "not a list of row, column and value"),
        ("3 2 2\n", "3 2\n", "are no numbers of rows, columns and entries"),
        ("3 2 2\n", "3 2 9999999999\n", "are no numbers of rows"),
        ("3 2 2\n", "0 2 0\n", "are no numbers of rows"),
        ("real general", "real symmetric", "Only sparse general matrices"),
        ("coordinate", "array", "Only sparse general matrices"),
        (MTX[50:], "", "are no numbers of rows"),
    ],
)
def test_f10_a_header_that_lies_is_found_out(old, new, message):
    assert old in MTX
    request = Request(Path("matrix.mtx"))
    with pytest.raises(DataError) as caught:
        parse_matrix_market(MTX.replace(old, new, 1).encode(), request)
    assert message in str(caught.value)


# F11: GCT


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("5\t8\t2\t2", "6\t8\t2\t2", "line 2 states 6 gene rows, but there are 5"),
        ("5\t8\t2\t2", "4\t8\t2\t2", "line 2 states 4 gene rows, but there are 5"),
        ("5\t8\t2\t2", "5\t9\t2\t2", "line 2 states 9 sample columns, but there are 8"),
        ("5\t8\t2\t2", "5\t8\t1\t2", "line 2 states 8 sample columns, but there are 9"),
        ("5\t8\t2\t2", "5\t8\t2\t99", "line 2 states 5 gene rows, but there are 0"),
        ("5\t8\t2\t2", "5\t8", "line 2 is '5\\t8'. In GCT 1.3 it has 4 numbers"),
        ("5\t8\t2\t2", "5\tx\t2\t2", "In GCT 1.3 it has 4 numbers"),
        ("#1.3", "#1.4", "GCT version '#1.4'"),
        ("id\tsymbol", "id", "line 4 has 11 fields. Every line must have 10"),
    ],
)
def test_f11_wrong_dimensions_are_refused_with_both(tmp_path, old, new, message):
    text = files.gct(3).decode()
    assert old in text
    assert message in refuse(write(tmp_path, text.replace(old, new, 1), "a.gct"), "type")


# F12: very wide tables


def test_f12_very_many_columns_are_read(tmp_path):
    n = 50_000  # a million take half a minute, most of it in pandas
    rows = [f"{label}," + ",".join(["0.5", "2"] * (n // 2)) for label in "uv"]
    text = "type," + ",".join(f"g{j}" for j in range(n)) + "\n" + "\n".join(rows) + "\n"
    table = read_table(write(tmp_path, text, "wide.csv"), "type")
    assert table.X.shape == (2, n)
    assert table.X.sum() == 2.5 * n
    assert table.feature_names[-1] == f"g{n - 1}"


def test_f12_absurd_numbers_of_features_are_refused(tmp_path):
    assert "states 99999999 features" in refuse(write(tmp_path, "1 1:1\n2 99999999:1\n", "a.svm"))


# F13: random bytes into every parser of our own


def test_cells_far_beyond_a_table_do_not_take_all_memory(tmp_path):
    """Python-calamine would allocate all cells between, and end the process."""
    book = openpyxl.Workbook()
    for row in (["type", "a"], ["u", 1], ["v", 2], ["u", 3], ["v", 4]):
        book.active.append(row)
    book.active["XFD1048576"].number_format = "0.00"  # formatted and empty: no matter
    book.save(tmp_path / "a.xlsx")
    assert read_table(tmp_path / "a.xlsx", "type").X.shape == (4, 1)
    book.active["XFD1048576"] = 1
    book.save(tmp_path / "b.xlsx")
    message = refuse(tmp_path / "b.xlsx", "type")
    assert "a sheet has cells as far as row 1048576, column 16384, which would take 640" in message
    with zipfile.ZipFile(tmp_path / "b.xlsx") as packed, zipfile.ZipFile(tmp_path / "c.xlsx", "w") as other:
        for entry in packed.namelist():
            cell = packed.read(entry).replace(b'<c r="XFD1048576"', b'<c x=">"\n r = "XFD1048576"')
            other.writestr(entry, cell)
    assert "row 1048576, column 16384" in refuse(tmp_path / "c.xlsx", "type")


def test_spreadsheets_of_other_programs_are_refused_by_name(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", "<x/>")
    assert "an OpenDocument spreadsheet (.ods), and is refused. Save it as .xlsx or CSV." in refuse(tmp_path / "a.ods")
