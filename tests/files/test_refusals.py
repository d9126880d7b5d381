"""Files that are no tables, or that must not be read: one line that names the file, the rule and the way out."""

from __future__ import annotations

import gzip
import pickle
import zipfile

import files
import h5py
import numpy as np
import pytest
from scipy.io import savemat

from l20fs.tables import DataError, MissingPackageError, UnknownColumnError, gate, read_table

#: Name, content, and words of the refusal.
CONTENTS = [
    ("a.sav", b"$FL2@(#) SPSS DATA FILE", ["SPSS", "read_spss"]),
    ("a.dta", b"<stata_dta><header>", ["Stata", "read_stata"]),
    ("b.dta", b"\x72\x01\x01\x00" + bytes(200), ["Stata", "read_stata"]),
    ("a.sas7bdat", bytes(12) + b"\xc2\xea\x81\x60" + bytes(200), ["SAS", "read_sas"]),
    ("a.fcs", b"FCS3.1    256", ["flow cytometer", "one line per sample"]),
    ("a.png", b"\x89PNG\r\n\x1a\n", ["an image", "CSV"]),
    ("a.jpg", b"\xff\xd8\xff\xe0", ["an image", "CSV"]),
    ("a.pdf", b"%PDF-1.7", ["a PDF", "CSV"]),
    ("a.biom", b'{"id": "x", "format": "Biological Observation Matrix 1.0"}', ["BIOM", "biom convert"]),
    ("a.xls", b"\xd0\xcf\x11\xe0" + bytes(100), ["old Excel file", ".xlsx"]),
    ("a.csv.xz", b"\xfd7zXZ\x00", ["another program than gzip", "Unpack"]),
    ("a.pkl", pickle.dumps([1]), ["run code", "CSV"]),
    ("b.csv", pickle.dumps([1]), ["pickle", "run code"]),
    ("a.rds", b"X\n\0\0\0\x03", ["run code"]),
    ("a.RData", b"RDX3\n", ["run code"]),
    ("empty.csv", b"", ["empty"]),
    ("blank.csv", b"\n \n\n", ["empty"]),
    ("header.csv", b"type,a\n", ["no samples"]),
    ("one.csv", b"type\nu\nv\n", ["one column"]),
    ("nul.csv", b"type,a\nu,1\nv,\x002\n", ["NUL bytes, first in line 3"]),
    ("ragged.csv", b"type,a,b\nu,1,2\nv,1\nu,1,2\n", ["line 3 has 2 fields", "3 fields"]),
    ("long.csv", b"type,a,b\nu,1,2\nv,1,2,3\nu,1,2\n", ["line 3 has 4 fields", "3 fields"]),
    ("twice.csv", b"type,type,a\nu,u,1\nv,v,2\n", ["column names occur more than once: 'type'"]),
    ("cut.csv.gz", gzip.compress(b"type,a\n" + b"u,1\nv,2\n" * 99)[:40], ["gzip"]),
    ("a.gct", b"#1.2\n5\t2\nName\tDescription\ts1\ts2\nx\ty\t1\t2\n", ["5 gene rows", "1"]),
    ("b.gct", b"#1.4\n", ["GCT version", "1.2 and 1.3"]),
    ("a.arff", b"@relation x\n@attribute a numeric\n@data\n{0 1}\n", ["sparse ARFF"]),
    ("b.arff", b"@relation x\n@attribute\n@data\n", ["line 2 is no attribute"]),
    ("a.svm", b"1 9999999:1\n0 1:2\n", ["states 9999999 features"]),
    ("a.ods", None, ["OpenDocument", ".xlsx"]),
    ("other.zip", None, ["a zip file with", "Unpack"]),
    ("a.xlsx", b"PK\x03\x04" + bytes(50), ["damaged zip"]),
    ("a.mat", b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM", ["7.3", "-v7"]),
    ("cut.npy", None, ["not a whole npy file"]),
    ("pickled.npy", None, ["not a whole npy file"]),
    ("complex.npy", None, ["complex128", "real numbers"]),
    ("complex.mat", None, ["complex128", "real numbers"]),
    ("struct.mat", None, ["is a struct"]),
    ("cut.parquet", None, ["not a whole Parquet file"]),
    ("cut.xlsx", None, ["zip"]),
    ("cut.h5ad", None, ["not a whole HDF5 file"]),
    ("noise.h5ad", b"\x89HDF\r\n\x1a\n" + bytes(range(256)) * 8, ["HDF5"]),
]


def content_of(name, folder):
    """Return the content of a file that a library has to write."""
    if name == "cut.npy":
        return files.written(np.save, files.X)[:200]
    if name == "pickled.npy":
        return files.written(np.save, np.array([{}] * 8, dtype=object))
    if name == "complex.npy":
        return files.written(np.save, files.X * 1j)
    if name.endswith(".mat"):
        X = {"a": 1} if name == "struct.mat" else files.X + 1j
        return files.written(savemat, {"X": X, "Y": np.arange(8) % 2})
    if name == "cut.parquet":
        return files.with_labels().to_parquet()[:-20]
    if name == "cut.xlsx":
        return files.excel(files.with_labels())[:3000]
    if name == "cut.h5ad":
        return files.h5ad(folder)[:2000]
    with zipfile.ZipFile(folder / "made.zip", "w") as archive:
        for entry in ("content.xml", "mimetype") if name == "a.ods" else ("table.csv",):
            archive.writestr(entry, "x")
    return (folder / "made.zip").read_bytes()


@pytest.mark.parametrize(("name", "content", "words"), CONTENTS, ids=[name for name, *_ in CONTENTS])
def test_what_is_no_table_is_named(name, content, words, tmp_path):
    (tmp_path / name).write_bytes(content_of(name, tmp_path) if content is None else content)
    (tmp_path / "labels.txt").write_text("\n".join(files.LABELS))
    options = {"labels": tmp_path / "labels.txt"} if name.endswith(".npy") else {}
    with pytest.raises(DataError) as caught:
        read_table(tmp_path / name, None if options or name.endswith((".mat", ".svm")) else "type", **options)
    said = str(caught.value)
    assert said.startswith(name)
    assert "\n" not in said
    assert [word for word in words if word not in said] == [], said


@pytest.mark.parametrize("name", ["a.csv", "a.npz", "a.xlsx", "a.parquet", "a.h5ad", "a.arff", "matrix.mtx"])
def test_wrong_names_are_told_with_near_ones(name, tmp_path):
    options = files.lay_out(tmp_path)[name]
    labels = {"labels": tmp_path / "labels.csv"} if "labels" in options else {}
    with pytest.raises(UnknownColumnError, match=r"dono|typ"):
        read_table(tmp_path / name, "typ", groups="donr", **labels)


def test_settings_are_checked_before_anything_is_read(tmp_path):
    for settings, words in (
        ({"samples_in": "diagonal"}, "'rows' or 'columns'"),
        ({"decimal": ";"}, "decimal=';' is not valid"),
        ({"missing": "zero"}, "missing='zero' is not valid"),
        ({"task": "both"}, "task='both' is unknown"),
    ):
        with pytest.raises(ValueError, match=words):
            read_table(tmp_path / "no.csv", "type", **settings)
    with pytest.raises(TypeError, match=r"no setting 'decimals'\. Did you mean 'decimal'"):
        read_table(tmp_path / "no.csv", "type", decimals=",")
    (tmp_path / "a.csv").write_text("type,a\nu,1\nv,2\n")
    for settings in ({"layer": "x"}, {"sheet": "x"}):
        with pytest.raises(DataError, match="this is CSV"):
            read_table(tmp_path / "a.csv", "type", **settings)


def whole_h5ad(folder):
    """Write a file whose X is in chunks, and return its place."""
    (folder / "a.h5ad").write_bytes(files.h5ad(folder, files.X))
    with h5py.File(folder / "a.h5ad", "r+") as stored:
        attributes = dict(stored["X"].attrs)
        del stored["X"]
        stored.create_dataset("X", (8, 5), "f8", chunks=(4, 5))[:4] = files.X[:4]
        stored["X"].attrs.update(attributes)
    return folder / "a.h5ad"


def test_chunks_that_are_missing_are_never_zeros(tmp_path):
    file = whole_h5ad(tmp_path)
    with pytest.raises(DataError, match="'X': 1 of 2 chunks are missing, and would be read as zeros"):
        read_table(file, "type")
    with h5py.File(file, "r+") as stored:
        stored["X"][4:] = files.X[4:]
    np.testing.assert_array_equal(read_table(file, "type").X, files.X)


def test_links_in_a_folder_are_not_followed(tmp_path):
    options = files.lay_out(tmp_path)["matrix.mtx"]
    (tmp_path / "sub").mkdir()
    for name in ("matrix.mtx", "features.tsv", "barcodes.tsv.gz"):
        (tmp_path / "sub" / name).symlink_to(tmp_path / name)
    with pytest.raises(DataError, match="is a link"):
        read_table(tmp_path / "sub", **options)
    (tmp_path / "folder").symlink_to(tmp_path)
    assert read_table(tmp_path / "folder", **options).X.shape == (8, 5)


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(files.with_labels().to_parquet())
    (tmp_path / "pyarrow.py").write_text("raise ModuleNotFoundError('no pyarrow', name='pyarrow')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(MissingPackageError, match=r"read with pyarrow.*pip install 'l20fs\[io\]'"):
        read_table(tmp_path / "a.parquet", "type")


@pytest.mark.parametrize("name", ["a.npz", "a.mat", "a.xlsx", "a.parquet", "a.h5ad", "matrix.mtx", "a.npy"])
def test_a_good_file_passes_the_limits_that_stop_a_bad_one(name, tmp_path, monkeypatch):
    """With limits that are too low a process dies at once, and everything looks held."""
    options = dict(files.lay_out(tmp_path)[name])
    options |= {"labels": tmp_path / options["labels"].name} if "labels" in options else {}
    target = options.pop("target", None)
    monkeypatch.setattr(gate, "FREE_BYTES", 2**27)
    monkeypatch.setattr(gate, "SECONDS", 5)
    assert read_table(tmp_path / name, target, **options).X.shape == (8, 5)


BAD = {
    "crash": "import os; os.abort()",
    "hang": "while True: pass",
    "sleep": "import time; time.sleep(3600)",
    "memory": "x = bytearray(2**34)",
    "noise": "import os; os.write(1, b'x' * 100)",
    "lie": "import os, struct; os.write(1, struct.pack('<Q', 2**60))",
}


@pytest.mark.parametrize("kind", BAD)
def test_a_library_that_crashes_hangs_or_lies_ends_in_one_line(kind, tmp_path, monkeypatch):
    """The library that the gate loads does what a hostile file makes it do."""
    (tmp_path / "a.parquet").write_bytes(files.with_labels().to_parquet())
    limits = "import sys; sys.modules['__main__'].limit(2**30, 1)\n" if kind in ("memory", "hang") else ""
    (tmp_path / "pyarrow.py").write_text(limits + BAD[kind])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(gate, "SECONDS", 1)
    monkeypatch.setattr(gate, "BY_CLOCK", 2)
    with pytest.raises(DataError) as caught:
        read_table(tmp_path / "a.parquet", "type")
    assert "\n" not in str(caught.value)
    assert "a.parquet" in str(caught.value)
