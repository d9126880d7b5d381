"""One table in every kind of file: the same numbers, labels, names and groups come out of each."""

from __future__ import annotations

import gzip
import hashlib
import re
import sys

import anndata
import files
import numpy as np
import pandas as pd
import polars
import pytest
import scipy.sparse as sp
from files import DONORS, FRAME, GENES, LABELS, NUMBERED, SAMPLES, X

from l20fs.data.readers import DataError, MissingPackageError, UnknownColumnError, read_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def options(folder):
    return files.lay_out(folder)


NAMES = [
    "a.csv", "a.tsv.gz", "quoted.csv", "plain.csv", "turned.csv", "turned.tsv", "two.gct", "three.gct.gz", "a.arff", "a.svm",
    "a.npz", "a.npy", "sparse.npz", "a.mat", "packed.mat", "a.parquet", "turned.parquet", "a.xlsx", "turned.xlsx", "a.h5ad",
    "dense.h5ad", "matrix.mtx",
]  # fmt: skip
FORMATS = {
    "csv": "CSV", "tsv": "CSV", "gct": "GCT", "arff": "ARFF", "svm": "svmlight", "npz": "npz", "npy": "npy",
    "mat": "MATLAB", "parquet": "Parquet", "xlsx": "Excel", "h5ad": "h5ad", "mtx": "10x",
}  # fmt: skip
UNNAMED = {"a.svm", "a.npy", "sparse.npz", "a.mat", "packed.mat"}
SPARSE = {"a.svm", "sparse.npz", "a.h5ad", "matrix.mtx"}
NUMBERS_AS_LABELS = {"a.svm": 0, "a.mat": 1, "packed.mat": 1}


def refuse(call, *arguments, kind=DataError, **options):
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def as_array(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


def test_every_kind_is_among_the_files(options):
    assert set(options) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_table_comes_out_of_every_file(folder, options, name):
    table = read_table(folder / name, **options[name])
    values = as_array(table.X)
    np.testing.assert_array_equal(values, X.astype(np.float32) if name == "dense.h5ad" else X)
    assert values.dtype == (np.float32 if name == "dense.h5ad" else np.float64)
    assert sp.issparse(table.X) == (name in SPARSE)
    codes = np.unique(LABELS, return_inverse=True)[1]
    expected = (codes + NUMBERS_AS_LABELS[name]).astype(str).tolist() if name in NUMBERS_AS_LABELS else LABELS
    assert table.y.tolist() == expected
    assert table.y.dtype.kind == "U"
    assert table.feature_names == (NUMBERED if name in UNNAMED else GENES)
    assert table.sample_names == (None if name in UNNAMED or name == "a.arff" else SAMPLES)
    if "groups" in options[name]:
        assert table.groups.tolist() == DONORS
    else:
        assert table.groups is None
    assert [note for note in table.notes if "date" not in note] == []
    assert any("'1-Mar', '44256'" in note for note in table.notes) == (name not in UNNAMED)
    assert table.format == FORMATS[name.removesuffix(".gz").rpartition(".")[2]]
    read = [folder / name, *([folder / "features.tsv", folder / "barcodes.tsv.gz"] if name == "matrix.mtx" else [])]
    read += [options[name]["labels"]] if "labels" in options[name] else []
    assert table.sha256 == hashlib.sha256(b"".join(file.read_bytes() for file in read)).hexdigest()


@pytest.mark.parametrize("name", ["a.csv", "turned.tsv", "two.gct", "a.parquet", "a.xlsx", "a.h5ad", "matrix.mtx"])
def test_nuisances_come_out_of_every_file_with_groups(folder, options, name):
    groups = options[name].get("groups")
    if groups is None:
        return
    table = read_table(folder / name, **options[name], adjust_for=[groups])
    assert {column: values.tolist() for column, values in table.adjust_for.items()} == {groups: DONORS}
    assert (table.groups.tolist(), table.feature_names) == (DONORS, GENES)
    alone = read_table(folder / name, **{**options[name], "groups": None}, adjust_for=[groups])
    assert alone.adjust_for[groups].tolist() == DONORS
    assert alone.groups is None


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"matrix.mtx"}))
@pytest.mark.parametrize("ending", [".csv"])
def test_the_content_counts_and_not_the_name(folder, options, tmp_path, name, ending):
    file = tmp_path / f"file{ending}"
    file.write_bytes((folder / name).read_bytes())
    table = read_table(file, **options[name])
    np.testing.assert_array_equal(as_array(table.X), as_array(read_table(folder / name, **options[name]).X))
    promised = {".csv": "CSV", ".h5ad": "h5ad"}.get(ending, table.format)
    notes = [note for note in table.notes if "is named like" in note]
    expected = f"file{ending} is named like {promised}, but is {table.format}. It was read as {table.format}."
    assert notes == ([] if promised == table.format else [expected])


# The target


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz", "a.parquet", "a.xlsx", "a.h5ad"])
def test_without_a_target_the_columns_that_could_be_it_are_named(folder, name):
    message = refuse(read_table, folder / name, kind=UnknownColumnError)
    assert "--target COLUMN" in message
    names = "'donor', 'type'" if name == "a.h5ad" else "'type', 'donor'"
    assert f"Columns that could be the labels: {names}." in message


@pytest.mark.parametrize("name", ["turned.csv", "two.gct", "turned.parquet", "matrix.mtx", "a.npy", "sparse.npz"])
def test_without_a_target_or_labels_there_is_nothing_to_learn(folder, options, name):
    turned = {key: value for key, value in options[name].items() if key == "samples_in"}
    assert "--labels FILE" in refuse(read_table, folder / name, kind=ValueError, **turned)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in UNNAMED | {"plain.csv", "turned.tsv", "turned.parquet"}]
)
@pytest.mark.parametrize("place", ["target", "groups"])
def test_what_is_not_in_the_file_is_refused_with_what_is(folder, options, name, place):
    wrong = {"target": "typ", "groups": "donr"}[place]
    if name in ("a.npz", "a.arff") and place == "target":
        wrong = {"a.npz": "Yy", "a.arff": "clas"}[name]
    if name == "a.arff" and place == "groups":
        return
    message = refuse(read_table, folder / name, kind=UnknownColumnError, **{**options[name], place: wrong})
    assert repr(wrong) in message
    assert "Did you mean" in message


def test_few_numbers_could_be_labels_too(tmp_path):
    (tmp_path / "a.csv").write_text("a,grade,b\n" + "".join(f"{i}.5,{i % 3},{i * i}\n" for i in range(9)))
    assert "could be the labels: 'grade'." in refuse(read_table, tmp_path / "a.csv", kind=UnknownColumnError)
    (tmp_path / "b.csv").write_text("a,b\n" + "".join(f"{i}.5,{i * i}\n" for i in range(9)))
    assert "No column looks like labels." in refuse(read_table, tmp_path / "b.csv", kind=UnknownColumnError)


def test_groups_may_be_in_the_table_when_labels_are_in_a_file(folder, tmp_path):
    files.FRAME.assign(batch=DONORS).to_csv(tmp_path / "a.csv")
    table = read_table(tmp_path / "a.csv", "type", labels=folder / "labels.csv", groups="batch")
    assert table.groups.tolist() == DONORS
    assert table.feature_names == GENES


# Labels in a file of their own

ORDER = [3, 1, 0, 2, 7, 6, 5, 4]


@pytest.mark.parametrize(
    ("text", "target", "name"),
    [
        ("".join(f"{SAMPLES[i]},{LABELS[i]}\n" for i in ORDER), None, ""),
        ("id,kind\n" + "".join(f"{SAMPLES[i]},{LABELS[i]}\n" for i in ORDER), None, "kind"),
        ("id\tkind\n" + "".join(f"{SAMPLES[i]}\t{LABELS[i]}\n" for i in ORDER), "kind", "kind"),
        ("id;x;kind\n" + "".join(f'"{SAMPLES[i]}";1;"{LABELS[i]}"\n' for i in ORDER), "kind", "kind"),
        ("id;kind;x\r\n" + "".join(f"{SAMPLES[i]};{LABELS[i]};1\r\n" for i in ORDER), "kind", "kind"),
        ("\n".join(LABELS), None, ""),
        ("kind\n" + "\n".join(LABELS) + "\n\n", None, "kind"),
        ("kind\n" + "\n".join(LABELS), "kind", "kind"),
        ("\ufeffkind\n" + "\n".join(LABELS), "kind", "kind"),
    ],
)
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_every_spelling_of_a_file_of_labels(folder, options, tmp_path, text, target, name, compress):
    (tmp_path / "labels").write_bytes(compress(text.encode()))
    table = read_table(folder / "plain.csv", target, labels=tmp_path / "labels")
    assert (table.y.tolist(), table.target_name) == (LABELS, name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "labels.txt: the file is empty"),
        ("u\nv\n", "2 labels, but 8 samples"),
        ("u\n" * 10, "10 labels, but 8 samples"),
        ("a,b\nc\n", "line 2 has 1 fields. Every line must have 2"),
        ("s0,u\ns1,v\n", "no label for 6 of 8 samples of plain.csv ('s2', 's3', 's4', 's5', 's6' and 1 more)"),
        ("u\0\n" * 8, "NUL"),
    ],
)
def test_labels_that_do_not_fit_are_refused(folder, options, tmp_path, text, message):
    (tmp_path / "labels.txt").write_text(text)
    assert message in refuse(read_table, folder / "plain.csv", labels=tmp_path / "labels.txt")


def test_one_of_several_columns_of_labels_must_be_named(folder, options):
    message = refuse(read_table, folder / "plain.csv", labels=folder / "labels.csv", kind=UnknownColumnError)
    assert "labels.csv: which column has the labels? Name it (--target COLUMN): 'type', 'donor'." in message


def test_labels_for_samples_without_names_are_taken_in_order_with_a_note(folder, options):
    table = read_table(folder / "a.npy", "type", labels=folder / "labels.csv")
    assert table.y.tolist() == LABELS[::-1]
    assert "labels.csv: a.npy has no sample names, so the labels are taken in the order of the lines." in table.notes


# What single formats have


def test_layers_and_kinds_of_numbers_of_h5ad(tmp_path):
    counts = (X * 10).astype(np.int32)
    (tmp_path / "a.h5ad").write_bytes(files.h5ad(tmp_path, sp.csc_array(X.astype(np.float32)), counts=counts))
    table = read_table(tmp_path / "a.h5ad", "type")
    assert (table.X.format, table.X.dtype) == ("csc", np.float32)
    np.testing.assert_array_equal(read_table(tmp_path / "a.h5ad", "type", layer="counts").X, counts)
    message = refuse(read_table, tmp_path / "a.h5ad", "type", layer="count", kind=UnknownColumnError)
    assert "no layer 'count'. Did you mean 'counts'?" in message


@pytest.mark.parametrize("kind", ["category", "object", "boolean", "float"])
def test_cells_without_a_label_are_left_out(tmp_path, kind):
    obs = pd.DataFrame(index=SAMPLES)
    obs["type"] = pd.Series({"boolean": [True, False], "float": [1.0, 2.0]}.get(kind, ["u", "v"]) * 4, index=SAMPLES).astype(
        kind
    )
    obs.loc["s2", "type"] = None
    anndata.AnnData(X, obs=obs).write_h5ad(tmp_path / "a.h5ad")
    table = read_table(tmp_path / "a.h5ad", "type")
    assert table.notes == ("a.h5ad: 1 of 8 samples has no 'type', in sample 3; it is left out.",)
    assert table.sample_names == [name for name in SAMPLES if name != "s2"]


def test_an_hdf5_file_that_is_no_anndata_is_refused(tmp_path):
    import h5py

    with h5py.File(tmp_path / "a.h5ad", "w") as stored:
        stored["matrix"] = X
    assert "holds 'matrix', but is no AnnData file" in refuse(read_table, tmp_path / "a.h5ad", "type")
    with h5py.File(tmp_path / "a.h5ad", "w") as stored:
        stored.create_group("obs")
        stored.create_group("var")
    assert "not a whole h5ad file" in refuse(read_table, tmp_path / "a.h5ad", "type")


def test_parquet_of_polars_with_float32_and_names_in_the_first_column(tmp_path):
    frame = polars.DataFrame({"cell": SAMPLES, "type": LABELS, **{g: X[:, j].astype("f4") for j, g in enumerate(GENES)}})
    frame.write_parquet(tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet", "type")
    np.testing.assert_array_equal(table.X, X.astype(np.float32))
    assert (table.X.dtype, table.sample_names, table.feature_names) == (np.float32, SAMPLES, GENES)


def test_parquet_of_whole_numbers_truths_and_gaps(tmp_path):
    frame = pd.DataFrame({"type": LABELS, "n": range(8), "is": [True, False] * 4, "p": [1.5] * 8})
    frame.to_parquet(tmp_path / "a.parquet")
    np.testing.assert_array_equal(read_table(tmp_path / "a.parquet", "type").X, frame[["n", "is", "p"]].astype(float))
    frame.astype({"n": "Int64"}).mask(frame["n"] == 3).to_parquet(tmp_path / "b.parquet")
    table = read_table(tmp_path / "b.parquet", "type")  # a sample of which nothing is known
    assert (table.X.shape, table.y.tolist()) == ((7, 3), LABELS[:3] + LABELS[4:])
    assert "b.parquet: 1 of 8 samples has no 'type', in sample 4; it is left out." in table.notes
    frame.assign(n=frame["n"].astype("Int64").mask(frame["n"] == 3)).to_parquet(tmp_path / "c.parquet")
    assert "1 missing value, in column 'n', sample 4" in refuse(read_table, tmp_path / "c.parquet", "type", missing="refuse")


def test_sheets_of_a_workbook(tmp_path):
    with pd.ExcelWriter(tmp_path / "a.xlsx") as book:
        files.with_labels().to_excel(book, sheet_name="first")
        files.with_labels().iloc[:, ::-1].to_excel(book, sheet_name="second")
    table = read_table(tmp_path / "a.xlsx", "type", groups="donor")
    assert table.feature_names == GENES
    assert table.notes[0] == (
        "a.xlsx: its sheets are 'first', 'second'; 'first' has what is asked for and was read (--sheet first)."
    )
    table = read_table(tmp_path / "a.xlsx", "type", groups="donor", sheet="second")
    assert table.feature_names == GENES[::-1]
    assert not any("sheets" in note for note in table.notes)
    message = refuse(read_table, tmp_path / "a.xlsx", "type", sheet="scond", kind=UnknownColumnError)
    assert "no sheet 'scond'. Did you mean 'second'? Its sheets: 'first', 'second'." in message


def test_the_sheet_that_looks_like_a_table_is_read(folder, options, tmp_path):
    with pd.ExcelWriter(tmp_path / "a.xlsx") as book:
        pd.DataFrame({"Key": ["u"], "Meaning": ["normal"]}).to_excel(book, sheet_name="Legend", index=False)
        FRAME.to_excel(book, sheet_name="Data")
        pd.DataFrame().to_excel(book, sheet_name="Empty")
    table = read_table(tmp_path / "a.xlsx", "type", labels=folder / "labels.csv")
    assert table.notes[0] == "a.xlsx: its sheets are 'Legend', 'Data', 'Empty'; 'Data' was read (--sheet Data)."
    assert table.choices == {"a.xlsx": {"sheet": "Data"}}
    message = refuse(read_table, tmp_path / "a.xlsx", "type", labels=folder / "labels.csv", strict=True)
    assert "Say so with --sheet Data" in message
    with pd.ExcelWriter(tmp_path / "b.xlsx") as book:
        pd.DataFrame().to_excel(book, sheet_name="Empty")
        FRAME.to_excel(book, sheet_name="Data")
    assert read_table(tmp_path / "b.xlsx", "type", labels=folder / "labels.csv", strict=True).feature_names == GENES


def test_gaps_text_and_nothing_in_a_workbook(tmp_path):
    FRAME.where(FRAME != X[2, 1]).assign(type=LABELS).to_excel(tmp_path / "a.xlsx")
    message = refuse(read_table, tmp_path / "a.xlsx", "type", missing="refuse")
    assert "1 missing value, in column 'NA', sample 's2'" in message
    pd.DataFrame().to_excel(tmp_path / "c.xlsx")
    assert "holds no table" in refuse(read_table, tmp_path / "c.xlsx", "type")


def test_symbols_of_genes_that_occur_twice_get_their_identifiers(tmp_path):
    (tmp_path / "labels.txt").write_text("\n".join(LABELS))
    for prefix in ("", "GSM1_"):
        (tmp_path / f"{prefix}matrix.mtx.gz").write_bytes(gzip.compress(files.matrix_market()))
        lines = "".join(f"E{j}\t{symbol}\n" for j, symbol in enumerate("ABACB"))
        (tmp_path / f"{prefix}genes.tsv").write_text(lines)
    for place in (tmp_path, tmp_path / "GSM1_matrix.mtx.gz"):
        table = read_table(place, labels=tmp_path / "labels.txt")
        assert table.feature_names == ["A (E0)", "B (E1)", "A (E2)", "C", "B (E4)"]
        assert "2 gene symbols occur more than once ('A', 'B'); their identifiers were added." in table.notes
        np.testing.assert_array_equal(table.X.toarray(), X)
        assert table.sample_names is None


def test_names_that_do_not_belong_to_the_matrix_are_refused(folder, options, tmp_path):
    labels = {"labels": folder / "plain.txt"}
    assert "there is no matrix.mtx" in refuse(read_table, tmp_path, **labels)
    (tmp_path / "matrix.mtx").write_bytes(files.matrix_market())
    assert "there is no features.tsv or genes.tsv" in refuse(read_table, tmp_path, **labels)
    (tmp_path / "features.tsv").write_text("a\nb\n")
    assert "matrix.mtx states 5 features, but features.tsv has 2 lines" in refuse(read_table, tmp_path, **labels)
    (tmp_path / "features.tsv").write_text("a\nb\nc\nd\ne\n")
    (tmp_path / "barcodes.tsv").write_text("\n".join(SAMPLES[:7]))
    assert "states 8 barcodes, but barcodes.tsv has 7" in refuse(read_table, tmp_path, **labels)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("@DATA", "@DAT"), "has no line @data"),
        (lambda text: text.replace("@attribute 'NA' numeric", "@attribute"), "line 5 is no attribute"),
        (lambda text: text.replace("@attribute 'NA' numeric\n", ""), "has 6 fields. Every line must have 5 fields"),
        (lambda text: text.replace("'NA' numeric", "'TP53' numeric"), "column names occur more than once: 'TP53'"),
        (lambda text: text[: text.index("% samples")] + "{0 1.5, 5 u}\n", "sparse ARFF is not read"),
        (lambda text: text.replace("0.126", "?"), "1 missing value, in column 'TP53', line 12"),
        (lambda text: text.replace("class {", "class string %"), "--target COLUMN"),
    ],
)
def test_arff_that_cannot_be_read(tmp_path, change, message):
    text = files.arff().decode()
    assert change(text) != text
    (tmp_path / "a.arff").write_text(change(text))
    assert message in refuse(read_table, tmp_path / "a.arff", kind=ValueError, missing="refuse", duplicates="refuse")


def test_arrays_with_samples_in_columns_and_labels_of_another_name(tmp_path):
    np.savez(tmp_path / "a.npz", X=X.T, y=LABELS, stage=LABELS[::-1])
    table = read_table(tmp_path / "a.npz", "stage", samples_in="columns")
    np.testing.assert_array_equal(table.X, X)
    assert (table.y.tolist(), table.target_name) == (LABELS[::-1], "stage")
    table = read_table(tmp_path / "a.npz")
    np.testing.assert_array_equal(table.X, X)
    assert table.notes == (
        "a.npz: there are as many labels as columns (8), so samples are in columns (--samples-in columns).",
    )
    assert "It looks transposed" in refuse(read_table, tmp_path / "a.npz", samples_in="rows")
    np.savez(tmp_path / "b.npz", X=X, y=[0, 1] * 4, class_names=["wild", "tame"])
    assert read_table(tmp_path / "b.npz").y.tolist() == ["wild", "tame"] * 4


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("a.csv", {"layer": "x"}, "layer 'x' is for h5ad files; this is CSV"),
        ("a.h5ad", {"sheet": "x"}, "sheet 'x' is for Excel files; this is h5ad"),
        ("a.h5ad", {"samples_in": "columns"}, "h5ad files have their samples in rows"),
        ("a.arff", {"samples_in": "columns"}, "ARFF files have their samples in rows"),
        ("a.svm", {"samples_in": "columns"}, "svmlight files have their samples in rows"),
        ("a.csv", {"samples_in": "cols"}, "samples_in='cols'"),
    ],
)
def test_options_without_a_meaning_are_refused(folder, options, name, given, message):
    assert message in refuse(read_table, folder / name, "type", kind=ValueError, **given)


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("a.parquet", "pyarrow.parquet", "io"),
        ("a.xlsx", "python_calamine", "io"),
        ("a.h5ad", "anndata.io", "h5ad"),
        ("a.csv", "pandas", "cli"),
        ("matrix.mtx", "pandas", "cli"),
    ],
)
def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch, folder, options, name, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    message = refuse(read_table, folder / name, kind=MissingPackageError, **options[name])
    assert f"{package.partition('.')[0]}, which is not installed. Install it: pip install 'l20fs[{extra}]'" in message


# --------------------------------------------------------------------------------------------- some features, no labels


@pytest.mark.parametrize("name", ["a.csv", "turned.tsv", "two.gct", "a.parquet", "a.xlsx", "a.h5ad", "matrix.mtx"])
def test_some_features_come_out_of_every_file_without_labels(folder, options, name):
    given = {key: value for key, value in options[name].items() if key == "samples_in"}
    whole = read_table(folder / name, **options[name])
    wanted = [whole.feature_names[place] for place in (3, 0)]
    table = read_table(folder / name, **given, need_labels=False, needed=[*wanted, "not there"])
    places = [whole.feature_names.index(feature) for feature in table.feature_names]
    assert sorted(places) == [0, 3]
    assert np.array_equal(as_array(table.X), as_array(whole.X)[:, places])
    assert table.sample_names == whole.sample_names
    assert set(table.others) >= set(whole.feature_names) - set(wanted)


@pytest.mark.parametrize("name", ["a.csv", "turned.csv", "a.xlsx", "a.parquet", "a.h5ad"])
def test_labels_may_be_read_with_some_features(folder, options, name):
    table = read_table(folder / name, **options[name], needed=["TP53"])
    assert (table.y.tolist(), table.groups.tolist(), table.X.shape) == (LABELS, DONORS, (8, 1))


def test_values_of_some_features_may_be_missing_and_other_columns_may_hold_anything(tmp_path):
    (tmp_path / "a.csv").write_text("id,TP53,batch,MYC,twice,twice\n7,1.5,first,NA,,x\n8,,second,2,inf,y\n")
    table = read_table(tmp_path / "a.csv", need_labels=False, needed=["MYC", "TP53"])
    np.testing.assert_array_equal(table.X, [[1.5, np.nan], [np.nan, 2.0]])
    assert (table.feature_names, table.sample_names) == (["TP53", "MYC"], ["7", "8"])
    assert table.y.tolist() == ["", ""]


@pytest.mark.parametrize(
    ("text", "features", "message"),
    [
        ("id,TP53\ns1,inf\n", ["TP53"], "1 infinite value, in column 'TP53', line 2"),
        ("id,TP53\ns1,high\n", ["TP53"], "1 column of text, first 'TP53'"),
        ("id,TP53,TP53\ns1,1,2\n", ["TP53"], "column names occur more than once: 'TP53'"),
        ("id,tp53 \ns1,1\n", ["TP53", "MYC"], "'tp53 ' for 'TP53'. Rename them"),
        ("id,TP53\ns1,1\ns1,2\n", ["TP53"], "1 sample name occurs more than once ('s1')"),
    ],
)
def test_features_that_cannot_be_read_are_refused(tmp_path, text, features, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match=re.escape(message)):
        read_table(tmp_path / "a.csv", need_labels=False, needed=features, strict=True)
