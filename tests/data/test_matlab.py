"""The reader of MATLAB files beside SciPy's, and on files that are damaged."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.io import loadmat, savemat

from l20fs.data.matlab import MatlabError, read_variables

MOST = 10**6
DTYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "?"]


def stored(compress=False, **variables):
    stream = io.BytesIO()
    savemat(stream, variables, do_compression=compress)
    return stream.getvalue()


def element(order, kind, data):
    return struct.pack(order + "II", kind, len(data)) + data + bytes(-len(data) % 8)


def by_hand(order, values, name, stored_as):
    """Write one matrix as the description of the format says, number by number."""
    body = element(order, 6, struct.pack(order + "II", 6, 0))
    body += element(order, 5, struct.pack(order + "ii", len(values), len(values[0])))
    body += element(order, 1, name.encode())
    kind, letter = stored_as
    numbers = [row[j] for j in range(len(values[0])) for row in values]
    body += element(order, kind, struct.pack(f"{order}{len(numbers)}{letter}", *numbers))
    mark = struct.pack(order + "H", 0x0100) + (b"IM" if order == "<" else b"MI")
    return b"MATLAB 5.0".ljust(124) + mark + element(order, 14, body)


@given(
    st.lists(st.sampled_from(DTYPES), min_size=1, max_size=3).flatmap(
        lambda kinds: st.tuples(*(hnp.arrays(kind, hnp.array_shapes(min_dims=2, max_dims=3, max_side=4)) for kind in kinds))
    ),
    st.booleans(),
)
def test_matrices_are_those_that_scipy_reads(matrices, compress):
    content = stored(compress, **{f"v{i}" * (5 * i + 1): matrix for i, matrix in enumerate(matrices)})
    expected = {name: value for name, value in loadmat(io.BytesIO(content)).items() if not name.startswith("__")}
    found = read_variables(content)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].shape == value.shape
        np.testing.assert_array_equal(found[name].array(MOST), value)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=5), min_size=1))
def test_texts_are_those_that_were_written(texts):
    content = stored(Y=np.array(texts))
    np.testing.assert_array_equal(np.char.rstrip(read_variables(content)["Y"].array(MOST)), np.char.rstrip(texts))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    "stored_as", [(1, "b"), (2, "B"), (3, "h"), (4, "H"), (5, "i"), (6, "I"), (7, "f"), (9, "d"), (13, "Q")]
)
def test_both_orders_of_bytes_and_every_way_to_store_a_double(order, stored_as):
    content = by_hand(order, [[1, 2, 3], [4, 5, 60]], "X", stored_as)
    assert read_variables(content)["X"].array(MOST).tolist() == [[1, 2, 3], [4, 5, 60]]
    assert loadmat(io.BytesIO(content))["X"].tolist() == [[1, 2, 3], [4, 5, 60]]


@pytest.mark.parametrize("stored_as", [(8, "d"), (10, "d"), (0, "d"), (255, "d"), (2**31, "d")])
def test_numbers_of_an_unknown_kind_are_refused(stored_as):
    """SciPy may end the interpreter here."""
    with pytest.raises(MatlabError):
        read_variables(by_hand("<", [[1.0, 2.0]], "X", stored_as))["X"].array(MOST)


def test_other_variables_are_passed_over():
    content = stored(X=np.eye(2), cells=np.array([1, "a"], dtype=object), fields={"a": 1}, text="abc")
    found = read_variables(content)
    assert {name: variable.kind for name, variable in found.items()} == {
        "X": "double",
        "cells": "cell",
        "fields": "struct",
        "text": "char",
    }
    with pytest.raises(MatlabError, match="cells is a cell; it must be a full matrix"):
        found["cells"].array(MOST)
    opaque = element("<", 14, element("<", 6, struct.pack("<II", 17, 0)) + element("<", 1, b"t"))
    assert list(read_variables(content + opaque + element("<", 2, b"abc"))) == list(found)


@pytest.mark.parametrize("values", [np.zeros((3, 3, 0)), np.zeros((0, 0)), ""], ids=["no layer", "nothing", "no text"])
def test_empty_variables_are_refused(values):
    with pytest.raises(MatlabError, match="but 0 values"):
        read_variables(stored(X=values))["X"].array(MOST)


def test_a_shape_that_is_not_that_of_the_values_is_refused():
    content = by_hand("<", [[1.0, 2.0]], "X", (9, "d"))
    for shape in ((2, 2), (-1, -2), (2**31 - 1, 2**31 - 1), (0, 2)):
        changed = content.replace(struct.pack("<ii", 1, 2), struct.pack("<ii", *shape))
        assert changed != content
        with pytest.raises(MatlabError, match=r"but 2 values"):
            read_variables(changed)["X"].array(MOST)


def test_elements_end_where_they_say_and_within_the_file():
    content = by_hand("<", [[1.0, 2.0]], "X", (9, "d"))
    for cut in range(129, len(content)):
        with pytest.raises((MatlabError, struct.error)):
            read_variables(content[:cut])
    name = element("<", 1, b"X")
    beside = struct.pack("<HH", 1, 1) + b"X\0\0\0"
    whole = content.replace(name, beside).replace(struct.pack("<II", 14, 72), struct.pack("<II", 14, 64))
    assert read_variables(whole)["X"].array(MOST).tolist() == [[1.0, 2.0]]
    with pytest.raises(MatlabError, match="an element is cut off"):
        read_variables(whole.replace(beside, struct.pack("<HH", 1, 5) + b"X\0\0\0"))
    with pytest.raises(MatlabError, match="a variable is damaged"):
        read_variables(content.replace(struct.pack("<IIii", 5, 8, 1, 2), struct.pack("<IIii", 13, 8, 1, 0)))


def test_no_more_is_unpacked_than_allowed():
    variable = read_variables(stored(compress=True, X=np.zeros((1000, 1000))))["X"]
    assert len(variable.stored) < 10_000
    for most in (1, 100, 8_000_000):
        with pytest.raises(MatlabError, match=f"larger than the {most} bytes"):
            variable.array(most)
    assert variable.array(8_001_000).shape == (1000, 1000)


def test_the_checksum_of_a_compressed_variable_counts():
    content = bytearray(stored(compress=True, X=np.eye(3)))
    content[-1] ^= 1
    with pytest.raises(zlib.error):
        read_variables(bytes(content))["X"].array(MOST)


@pytest.mark.parametrize("content", [b"", b"MATLAB 5.0 MAT-file", bytes(128), b"MATLAB 5.0".ljust(124) + b"\x00\x01XX"])
def test_another_file_is_refused(content):
    with pytest.raises(MatlabError, match="does not begin as"):
        read_variables(content)


def test_another_version_is_refused():
    with pytest.raises(MatlabError, match="its version is 0x300; save it again in MATLAB with '-v7'"):
        read_variables(b"MATLAB 9".ljust(124) + b"\x03\x00MI")
