"""MATLAB files of version 7.3, written with h5py as MathWorks describes them."""

from __future__ import annotations

import contextlib
import random

import h5py
import numpy as np
import pytest
import scipy.sparse as sp

from l20fs.data.containers import read_labelled
from l20fs.data.readers import DataError, UnknownColumnError, read_table

X = np.random.default_rng(0).normal(size=(6, 3)).round(2) * (np.arange(18).reshape(6, 3) % 4 > 0)
CODES = np.array([[1.0], [2], [1], [2], [1], [2]])
TYPES = ["Ewing", "Größe 🧬", "Ewing", "Größe 🧬", "Ewing", "Größe 🧬"]
GENES = ["TP53", "MYC", "1-Mar"]


def write(file, **variables):
    """Write variables: arrays, lists of texts as cells, one text as char, and sparse matrices."""
    with h5py.File(file, "w", userblock_size=512) as stored:
        for name, value in variables.items():
            write_variable(stored, name, value)
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon Nov 16 2026 HDF5 schema 1.00 .".ljust(124)
    with open(file, "r+b") as stream:
        stream.write(header + b"\x00\x02IM")
    return file


def write_variable(stored, name, value):
    if isinstance(value, str):
        write_text(stored, name, value)
    elif isinstance(value, list):
        group = stored.require_group("#refs#")
        references = []
        for text in value:
            write_text(group, f"{name}{len(references)}", text)
            references.append(group[f"{name}{len(references)}"].ref)
        cell = stored.create_dataset(name, (1, len(value)), dtype=h5py.ref_dtype)
        cell[0] = references
        cell.attrs["MATLAB_class"] = np.bytes_("cell")
    elif sp.issparse(value):
        group, columns = stored.create_group(name), value.tocsc()
        group.attrs["MATLAB_sparse"], group.attrs["MATLAB_class"] = np.uint64(columns.shape[0]), np.bytes_("double")
        group["jc"] = columns.indptr.astype(np.uint64)
        if columns.nnz:
            group["data"], group["ir"] = columns.data, columns.indices.astype(np.uint64)
    elif isinstance(value, dict):
        group = stored.create_group(name)
        group.attrs["MATLAB_class"] = np.bytes_("struct")
    else:
        is_logical = value.dtype == bool
        stored.create_dataset(name, data=value.T.astype(np.uint8) if is_logical else value.T)
        names = {"f8": "double", "f4": "single", "b1": "logical", "c16": "double", "U": "double"}
        kind = names.get(value.dtype.str[1:], value.dtype.name)
        stored[name].attrs["MATLAB_class"] = np.bytes_(kind)


def write_text(group, name, text):
    units = np.frombuffer(text.encode("utf-16-le"), dtype=np.uint16)
    group[name] = units[:, None] if len(units) else np.zeros(2, dtype=np.uint64)
    group[name].attrs["MATLAB_class"] = np.bytes_("char")
    if not len(units):
        group[name].attrs["MATLAB_empty"] = np.uint8(1)


def refuse(file, **options):
    with pytest.raises(DataError) as caught:
        read_table(file, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u2", "?"])
def test_matrices_of_every_kind(tmp_path, dtype):
    values = (10 * X).astype(dtype)
    table = read_table(write(tmp_path / "a.mat", X=values, Y=CODES))
    np.testing.assert_array_equal(table.X, values)
    assert table.X.dtype == (np.float32 if dtype == "f4" else np.float64)
    assert (table.y.tolist(), table.format, table.target_name) == ([*"121212"], "MATLAB", "Y")


def test_texts_in_cells_are_labels_and_names(tmp_path):
    names = {"feature_names": GENES, "sample_names": [f"s{i}" for i in range(6)]}
    file = write(tmp_path / "a.mat", fea=X, kind=TYPES, donor=["d", "", "d", "e", "e", "e"], **names)
    table = read_table(file, "kind")
    assert table.y.tolist() == TYPES
    assert (table.feature_names, table.sample_names) == (GENES, names["sample_names"])
    table = read_table(write(tmp_path / "b.mat", fea=X.T, gnd=TYPES), samples_in="columns")
    np.testing.assert_array_equal(table.X, X)
    table = read_table(file, "donor")
    assert (table.y.tolist(), table.sample_names) == ([*"ddeee"], ["s0", "s2", "s3", "s4", "s5"])
    assert table.notes[0] == "a.mat: 1 of 6 samples has no 'donor', in sample 2; it is left out."
    found = read_labelled(write(tmp_path / "c.mat", X=X, Y=TYPES, feature_names=GENES))
    np.testing.assert_array_equal(found.X, X)
    assert (found.y.tolist(), found.feature_names) == (TYPES, GENES)


@pytest.mark.parametrize("values", [sp.csc_array(X), sp.csc_array((6, 3))])
def test_sparse_matrices_stay_sparse(tmp_path, values):
    file = write(tmp_path / "a.mat", X=values, Y=CODES)
    table = read_table(file)
    assert sp.issparse(table.X)
    np.testing.assert_array_equal(table.X.toarray(), values.toarray())
    if values.nnz:
        np.testing.assert_array_equal(read_labelled(file).X, X)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"X": {}, "Y": CODES}, "X is a struct; it must be a matrix of real numbers, or text"),
        ({"X": X * 1j, "Y": CODES}, "X is a complex"),
        ({"X": GENES, "Y": CODES}, "the values are <U5"),
        ({"X": X, "Y": {}}, "Y is a struct"),
        ({"X": X, "other": CODES}, "holds 'X', 'other', but no labels"),
        ({"X": X, "Y": CODES, "feature_names": CODES}, "feature_names are float64"),
        ({"X": X, "Y": CODES, "feature_names": GENES[:2]}, "3 features, but 2 feature_names"),
    ],
)
def test_odd_variables_are_refused(tmp_path, variables, message):
    assert message in refuse(write(tmp_path / "a.mat", **variables))


def test_strings_of_matlab_are_refused_with_the_way_out(tmp_path):
    file = write(tmp_path / "a.mat", X=X, Y=np.zeros((1, 6), dtype="u4"))
    with h5py.File(file, "r+") as stored:
        stored["Y"].attrs["MATLAB_class"] = np.bytes_("string")
    assert "Y is a string; it must be a matrix of real numbers, or text; use cellstr()" in refuse(file)


def lead_out(stored, where, other):
    """Let X be stored elsewhere, in one of the ways that HDF5 has."""
    if where == "external link":
        stored["X"] = h5py.ExternalLink(other.name, "X")
    elif where == "soft link":
        stored["X"] = h5py.SoftLink("/Y")
    elif where == "external storage":
        stored.create_dataset("X", (6, 3), dtype="f8", external=[(str(other), 0, h5py.h5f.UNLIMITED)])
    elif where == "virtual":
        layout = h5py.VirtualLayout((6, 3), dtype="f8")
        layout[:] = h5py.VirtualSource(str(other), "X", shape=(6, 3))
        stored.create_virtual_dataset("X", layout)


@pytest.mark.parametrize("where", ["external link", "soft link", "external storage", "virtual"])
def test_what_leads_out_of_the_file_is_refused(tmp_path, where):
    other = tmp_path / "other.h5"
    with h5py.File(other, "w") as stored:
        stored["X"] = X
    file = write(tmp_path / "a.mat", Y=CODES)
    with h5py.File(file, "r+") as stored:
        lead_out(stored, where, other)
    message = refuse(file)
    assert "'X' is a link to another place" in message or "'X' has its values in another file" in message


def test_a_small_file_that_states_a_huge_matrix_is_refused(tmp_path):
    file = write(tmp_path / "a.mat", Y=CODES)
    with h5py.File(file, "r+") as stored:
        stored.create_dataset("X", (10**6, 10**6), dtype="f8", chunks=(1000, 1000), compression="gzip")
    assert "X has the shape (1000000, 1000000), which takes more than 1073741824 bytes" in refuse(file, max_memory=2**40)
    file = write(tmp_path / "b.mat", Y=CODES)
    with h5py.File(file, "r+") as stored:
        stored.create_dataset("X", data=np.zeros((500, 500)), compression="gzip")
    assert "needs about 5.7 MiB of memory, but 4.0 MiB are allowed" in refuse(file, max_memory=2**22)
    file = write(tmp_path / "c.mat", X=sp.csc_array(X), Y=CODES)
    with h5py.File(file, "r+") as stored:
        stored["X"].attrs["MATLAB_sparse"] = np.uint64(2**50)
    assert "of memory" in refuse(file, max_memory=2**30)


def test_damaged_files_are_refused_in_one_line(tmp_path):
    content = write(tmp_path / "a.mat", X=X, Y=TYPES, feature_names=GENES).read_bytes()
    for end in (130, 512, 600, 2000, len(content) - 1):
        (tmp_path / "b.mat").write_bytes(content[:end])
        assert refuse(tmp_path / "b.mat").startswith("b.mat: not a MATLAB file that can be read (")
    chance = random.Random(0)
    for _ in range(60):
        damaged = bytearray(content)
        damaged[chance.randrange(512, len(content))] = chance.randrange(256)
        (tmp_path / "b.mat").write_bytes(damaged)
        with contextlib.suppress(DataError, UnknownColumnError):
            read_table(tmp_path / "b.mat")
