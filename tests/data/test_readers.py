from __future__ import annotations

import gzip
import hashlib
import warnings

import numpy as np
import pytest

from l20fs.data.readers import DataError, UnknownColumnError, read_table

PLAIN = "type,a,b\nu,1,2.5\nv,-3,4e-3\nu,5,6\nv,7,8\n"


def write(folder, content, name="data.csv"):
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def refuse(file, target="type", kind=DataError, **options):
    """Read as a user does, for whom a warning of pandas stops nothing, and return the message of the refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(kind) as caught:
            read_table(file, target, **options)
    return str(caught.value)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_reads_every_spelling_of_one_table(tmp_path, separator, compress, bom, newline):
    content = compress(bom + PLAIN.replace(",", separator).replace("\n", newline).encode())
    table = read_table(write(tmp_path, content), "type")
    np.testing.assert_array_equal(table.X, [[1, 2.5], [-3, 4e-3], [5, 6], [7, 8]])
    assert table.X.dtype == np.float64
    assert table.y.tolist() == ["u", "v", "u", "v"]
    assert table.feature_names == ["a", "b"]
    assert table.sha256 == hashlib.sha256(content).hexdigest()


def test_numbers_keep_their_digits(tmp_path):
    X = np.random.default_rng(0).standard_normal((50, 3)) * 10.0 ** np.array([-200, 0, 200])
    rows = [f"{'uv'[i % 2]}," + ",".join(map(repr, values)) for i, values in enumerate(X.tolist())]
    table = read_table(write(tmp_path, "type,a,b,c\n" + "\n".join(rows)), "type")
    # Older versions of pandas are off in the last digits of a few numbers.
    np.testing.assert_allclose(table.X, X, rtol=1e-14)


@pytest.mark.parametrize("labels", [["none", "None"], ["1", "01"], ["1", "1.0"], ["True", "TRUE"], ["é", "e"]])
def test_labels_are_text(tmp_path, labels):
    first, second = labels
    rows = f"{first},1\n{second},2\n{first},3\n{second},4\n"
    table = read_table(write(tmp_path, "type,a\n" + rows), "type")
    assert table.y.tolist() == [first, second, first, second]


def test_feature_names_are_verbatim(tmp_path):
    names = ["NA", "nan", "1-Mar", "2-Sep", "44256", " x ", "a.1", "gène", "=cmd|'/c calc'!A1", "[red]"]
    table = read_table(write(tmp_path, "\t".join([*names, "type"]) + "\n" + ("\t".join("1" * 10) + "\tu\n") * 2), "type")
    assert table.feature_names == names


def test_quoted_fields(tmp_path):
    content = '"a ""x""","b,c",type\n1,2,"u,1"\n3,4,v\n5,6,"u,1"\n7,8,v\n'
    table = read_table(write(tmp_path, content), "type")
    assert table.feature_names == ['a "x"', "b,c"]
    assert table.y.tolist() == ["u,1", "v", "u,1", "v"]
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4], [5, 6], [7, 8]])


@pytest.mark.parametrize("column", ["sample", "", "NA"])
def test_sample_names_in_the_first_column_are_dropped(tmp_path, column):
    table = read_table(write(tmp_path, f"{column},a,type\ns1,1,u\ns2,2,v\ns3,3,u\ns4,4,v\n"), "type")
    assert table.feature_names == ["a"]
    np.testing.assert_array_equal(table.X, [[1], [2], [3], [4]])


def test_sample_names_that_look_missing_are_different_names(tmp_path):
    table = read_table(write(tmp_path, "sample,a,type\nNA,1,u\nnan,2,v\nnull,3,u\ns4,4,v\n"), "type")
    assert table.feature_names == ["a"]


def test_missing_numbers_are_refused_with_column_and_line(tmp_path):
    file = write(tmp_path, "a,b,type\n1,2,u\n3,,v\nNA,6,u\n7,8,v\n")
    message = refuse(file, missing="refuse")
    assert "2 missing values, first in column 'a', line 4. Fill them in or remove the columns or samples" in message
    assert "--missing median, --missing knn or --missing drop." in message
    assert refuse(file, strict=True) == message


@pytest.mark.parametrize("first", [0, 1, 1000])
def test_a_first_column_that_counts_the_samples_is_no_feature(tmp_path, first):
    """Sorted by class, the numbers of the rows would tell the classes apart better than any gene."""
    rows = [f"{i + first},{i % 3}.5,{'uv'[i >= 10]}" for i in range(20)]
    file = write(tmp_path, "id,a,type\n" + "\n".join(rows))
    table = read_table(file, "type")
    assert (table.feature_names, table.others) == (["a"], ["id"])
    assert table.sample_names == [str(i + first) for i in range(20)]
    assert table.choices == {"data.csv": {"ignore": ["id"]}}
    counts = f"the first column 'id' counts the samples from {first} to {first + 19}"
    assert any(counts in note and "(--ignore id)" in note for note in table.notes)
    with pytest.raises(DataError, match=rf"{counts}.*--ignore id"):
        read_table(file, "type", strict=True)
    said = read_table(file, "type", ignore=["id"], strict=True)
    assert (said.feature_names, said.sample_names, said.notes) == (["a"], table.sample_names, ())
    assert read_table(file, "type", features=["id", "a"]).feature_names == ["id", "a"]
    with pytest.raises(DataError, match="leave no feature"):
        read_table(file, "type", ignore=["a"])
    alone = write(tmp_path, "id,type\n" + "\n".join(f"{i + first},{'uv'[i >= 10]}" for i in range(20)))
    with pytest.raises(DataError, match=rf"{counts}, and there is no other feature"):
        read_table(alone, "type")
    assert read_table(write(tmp_path, ",a,type\n" + "\n".join(rows)), "type").feature_names == ["a"]


def test_a_tab_in_the_header_separates_whatever_the_names_hold(tmp_path):
    content = "1,3-dimethyl\t1,4,5-trimethyl\ttype\n1.5\t2\tu\n3\t4\tv\n5\t6\tu\n7\t8\tv\n"
    assert read_table(write(tmp_path, content), "type").feature_names == ["1,3-dimethyl", "1,4,5-trimethyl"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ("\n", "empty"),
        ("   \n1,2\n", "no samples"),
        ("type,a\n", "no samples"),
        ("type,a", "no samples"),
        ("type\nu\nv\n", "one column"),
        ("type,sample\nu,s1\nv,s2\n", "text"),
        ("sample,type\ns1,u\ns2,v\n", "no feature"),
    ],
)
def test_a_table_without_content_is_refused(tmp_path, content, message):
    assert message in refuse(write(tmp_path, content))


RAGGED = {
    "one line too long": "a,b,type\n1,2,u\n3,4,v\n5,6,u,9\n7,8,v\n",
    "first line too long": "a,b,type\n1,2,u,9\n3,4,v\n5,6,u\n7,8,v\n",
    "number missing at the end": "type,a,b\nu,1,2\nv,3\nu,5,6\nv,7,8\n",
    "last line cut off": "type,a,b\nu,1,2\nv,3,4\nu,5,6\nv",
    "label missing at the end": "a,b,type\n1,2,u\n3,4\n5,6,u\n7,8,v\n9,1,v\n2,3,u\n",
}


@pytest.mark.parametrize("content", RAGGED.values(), ids=RAGGED.keys())
@pytest.mark.parametrize("separator", [",", "\t"])
def test_ragged_rows_are_refused(tmp_path, content, separator):
    assert "3 fields" in refuse(write(tmp_path, content.replace(",", separator)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"type,g\x8dne\nu,1\nv,2\n", "UTF-8"),
        (PLAIN.encode("utf-16")[:-1], "utf-16"),
        (b"type,a\nu,1\nv,\x002\n", "NUL"),
        (bytes(100), "NUL"),
        (gzip.compress(PLAIN.encode())[:-4], "gzip"),
        (gzip.compress(PLAIN.encode())[:20], "gzip"),
        (gzip.compress(PLAIN.encode())[:5], "gzip"),
        (gzip.compress(PLAIN.encode())[:10] + b"\xff" * 50, "gzip"),
        (gzip.compress(PLAIN.encode())[:-8] + bytes(8), "gzip"),
        (gzip.compress(PLAIN.encode("utf-16")[:-1]), "utf-16"),
    ],
    ids=["cp1252", "utf-16", "NUL", "zeros", "gz cut 4", "gz cut 20", "gz cut 5", "gz garbage", "gz checksum", "gz utf-16"],
)
def test_damaged_bytes_are_refused(tmp_path, content, message):
    assert message in refuse(write(tmp_path, content))


@pytest.mark.parametrize("label", ["", "  "])
def test_empty_labels_are_refused_with_their_line(tmp_path, label):
    rows = [f"{i}.5,{'uv'[i % 2]}" for i in range(10)]
    rows[4] = f"4,{label}"
    message = refuse(write(tmp_path, "a,type\n" + "\n".join(rows) + "\n"), strict=True)
    assert "'type'" in message
    assert "line 6" in message


@pytest.mark.parametrize("labels", [range(20), np.linspace(0, 1, 20), [f"sample {i}" for i in range(20)]])
def test_a_target_with_too_many_values_is_refused(tmp_path, labels):
    message = refuse(write(tmp_path, "a,type\n" + "".join(f"{i}.5,{label}\n" for i, label in enumerate(labels))))
    assert "'type'" in message
    assert "20 different values" in message


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("tpye", "Did you mean 'type'?"),
        ("Type", "Did you mean 'type'?"),
        ("type ", "Did you mean 'type'?"),
        ("zzz", "It has 'type', 'a', 'b'."),
        ("", "It has 'type', 'a', 'b'."),
    ],
)
def test_an_unknown_target_gets_a_hint(tmp_path, target, hint):
    message = refuse(write(tmp_path, PLAIN), target, UnknownColumnError)
    assert repr(target) in message
    assert hint in message
