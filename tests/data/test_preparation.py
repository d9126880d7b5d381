"""Missing values and repeated names: what every rule makes of a table, against pandas and scikit-learn."""

from __future__ import annotations

import warnings

import anndata
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.impute import KNNImputer, SimpleImputer

from l20fs.data.readers import DataError, read_table
from l20fs.data.readers.preparation import ColumnImputer

LABELS = ["u", "v"] * 6


def gappy(n_features=6, seed=0):
    """Return values of which the first and the last feature are complete, and the others not."""
    X = np.random.default_rng(seed).normal(size=(len(LABELS), n_features)).round(3)
    X[1, 1] = X[2, 2] = X[7, 2] = X[5, 4] = np.nan
    return X


def write(folder, X, names, name="a.csv", **columns):
    frame = pd.DataFrame(X, columns=names)
    for place, (column, values) in enumerate(columns.items()):
        frame.insert(place, column, values)
    frame.assign(type=LABELS[: len(X)]).to_csv(folder / name, index=False)
    return folder / name


def refuse(*arguments, **options):
    with pytest.raises(DataError) as caught:
        read_table(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Names


REPEATED = ["TP53", "MYC", "TP53", "CD99", "TP53", "MYC"]


@pytest.mark.parametrize("rule", [None, "number", "mean", "first"])
def test_rules_for_features_of_one_name(tmp_path, rule):
    X = np.random.default_rng(1).normal(size=(12, 6)) * [1, 2, 3, 1, 2, 1]
    table = read_table(write(tmp_path, X, REPEATED), "type", duplicates=rule)
    chosen = {
        "mean": np.column_stack([X[:, [0, 2, 4]].mean(axis=1), X[:, [1, 5]].mean(axis=1), X[:, 3]]),
        "first": X[:, [0, 1, 3]],
    }
    np.testing.assert_allclose(table.X, chosen.get(rule, X))
    numbered = ["TP53", "MYC", "TP53.1", "CD99", "TP53.2", "MYC.1"]
    assert table.feature_names == (["TP53", "MYC", "CD99"] if rule in chosen else numbered)
    (note,) = table.notes
    assert note.startswith("a.csv: 2 feature names occur more than once ('TP53', 'MYC'); ")
    assert note.endswith("they are numbered, as in 'TP53.1' (--duplicates number).") == (rule is None)
    assert table.choices == ({"a.csv": {"duplicates": "number"}} if rule is None else {})
    for options in ({"duplicates": "refuse"}, {"strict": True}):
        assert "'TP53', 'MYC'. Make them unique. Or let it be done: --duplicates" in refuse(
            tmp_path / "a.csv", "type", **options
        )


def repeated_files(folder):
    """Write the same table with repeated genes in several formats, and return how each is read."""
    X = np.arange(48.0).reshape(12, 4)
    names, samples = ["TP53", "MYC", "TP53", "CD99"], [f"s{i}" for i in range(12)]
    frame = pd.DataFrame(X, columns=names, index=samples)
    (folder / "labels.csv").write_text("".join(f"{name},{label}\n" for name, label in zip(samples, LABELS, strict=True)))
    labels = {"labels": folder / "labels.csv"}
    frame.T.to_csv(folder / "turned.csv")
    frame.assign(type=LABELS).to_excel(folder / "a.xlsx")
    frame.T.to_excel(folder / "turned.xlsx")
    np.savez(folder / "a.npz", X=X, y=LABELS, feature_names=names)
    pq.write_table(pa.table([*X.T, LABELS], names=[*names, "type"]), folder / "a.parquet")
    pq.write_table(pa.table([names, *X], names=["gene", *samples]), folder / "turned.parquet")
    rows = ["\t".join([name, "x", *map(str, column)]) for name, column in zip(names, X.T, strict=True)]
    (folder / "a.gct").write_text("#1.2\n4\t12\nName\tDescription\t" + "\t".join(samples) + "\n" + "\n".join(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of anndata, about the names
        obs, var = pd.DataFrame({"type": LABELS}, index=samples), pd.DataFrame(index=names)
        anndata.AnnData(sp.csr_array(X), obs=obs, var=var).write_h5ad(folder / "a.h5ad")
    turned = labels | {"samples_in": "columns"}
    own = {"target": "type"}
    return {
        **dict.fromkeys(("turned.csv", "turned.xlsx", "turned.parquet"), turned),
        **dict.fromkeys(("a.xlsx", "a.parquet", "a.h5ad"), own),
        "a.npz": {},
        "a.gct": labels,
    }, X


def test_repeated_names_in_every_format_and_for_a_panel(tmp_path):
    options, X = repeated_files(tmp_path)
    for name, given_options in options.items():
        table = read_table(tmp_path / name, **given_options)
        assert table.feature_names == ["TP53", "MYC", "TP53.1", "CD99"], name
        table = read_table(tmp_path / name, **given_options, duplicates="mean")
        found = table.X.toarray() if sp.issparse(table.X) else table.X
        np.testing.assert_array_equal(found, X[:, [0, 1, 3]] + [1, 0, 0])  # of two columns that are 2 apart
        table = read_table(tmp_path / name, **given_options, needed=["TP53.1", "CD99"])
        assert table.feature_names == ["TP53.1", "CD99"], name
        assert "TP53" in table.others
        table = read_table(tmp_path / name, **given_options, needed=["TP53"], duplicates="mean")
        assert (table.feature_names, table.X.shape) == (["TP53"], (12, 1))


def test_symbols_of_10x_follow_a_rule_that_is_given(tmp_path):
    (tmp_path / "matrix.mtx").write_text("%%MatrixMarket matrix coordinate real general\n3 4 3\n1 1 2\n2 1 4\n3 2 1\n")
    (tmp_path / "genes.tsv").write_text("E1\tTP53\nE2\tTP53\nE3\tMYC\n")
    (tmp_path / "barcodes.tsv").write_text("a\nb\nc\nd\n")
    (tmp_path / "labels.txt").write_text("u\nu\nv\nv\n")
    table = read_table(tmp_path, labels=tmp_path / "labels.txt", duplicates="mean")
    assert table.feature_names == ["TP53", "MYC"]
    np.testing.assert_array_equal(table.X.toarray(), [[3, 0], [0, 1], [0, 0], [0, 0]])


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("type,a,type\nu,1,v\n", {"target": "type"}, "column names occur more than once: 'type'"),
        ("id,a,id,type\ns1,1,2,u\n", {"target": "type"}, "column names occur more than once: 'id'"),
        ("gene,s1,s2\ntype,u,v\na,1,2\ntype,v,u\n", {"target": "type", "samples_in": "columns"}, "row names occur more"),
        ("id,a,a\ns1,1,2\n", {"need_labels": False, "needed": ["a"], "strict": True}, "more than once: 'a'"),
    ],
)
def test_names_of_labels_groups_and_samples_are_unique(tmp_path, text, options, message):
    (tmp_path / "a.csv").write_text(text)
    assert message in refuse(tmp_path / "a.csv", **options)


def test_repeated_samples_are_numbered_unless_labels_are_matched_by_them(tmp_path):
    file = write(tmp_path, np.arange(24.0).reshape(12, 2), ["a", "b"], id=["s1", "s2", "s3", "s4", "s5", "s6"] * 2)
    table = read_table(file, "type")
    assert table.sample_names[4:8] == ["s5", "s6", "s1.1", "s2.1"]
    assert "6 sample names occur more than once ('s1', 's2', 's3', 's4', 's5' and 1 more); they are num" in table.notes[0]
    assert "Correct the file, or leave --strict out." in refuse(file, "type", strict=True)
    (tmp_path / "b.csv").write_text("id,a,b\ns1,1,2\ns2,3,4\ns1,5,6\n")
    (tmp_path / "labels.csv").write_text("name,type\ns1,u\ns2,v\n")
    assert "sample names occur more than once: 's1'" in refuse(tmp_path / "b.csv", labels=tmp_path / "labels.csv")


# Missing values


@pytest.mark.parametrize("rule", [None, "median", "knn", "drop"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rules_for_missing_values(tmp_path, rule, dtype):
    X, names = gappy().astype(dtype), [f"g{j}" for j in range(6)]
    file = tmp_path / "a.npz"
    np.savez(file, X=X, y=LABELS, feature_names=names)
    table = read_table(file, missing=rule)
    assert table.X.dtype == dtype
    if rule == "drop":
        np.testing.assert_array_equal(table.X, X[:, [0, 3, 5]])
        assert table.notes == ("a.npz: 3 features with missing values are left out: 'g1', 'g2', 'g4'.",)
        assert (table.others, table.unprepared, table.missing) == (["g1", "g2", "g4"], None, {})
        return
    imputer = KNNImputer() if rule == "knn" else SimpleImputer(strategy="median")
    np.testing.assert_array_equal(table.X, imputer.fit_transform(X))
    np.testing.assert_array_equal(table.X_before, X)
    assert table.missing == {"g1": 1 / 12, "g2": 2 / 12, "g4": 1 / 12}
    what = "mean of the five nearest" if rule == "knn" else "median of the"
    said = "a.npz: 4 values of 3 features are missing, first in column 'g1', sample 2; they are filled in by the"
    assert table.notes == (f"{said} {what} training samples{' (--missing median)' if rule is None else ''}.",)
    assert table.choices == ({"a.npz": {"missing": "median"}} if rule is None else {})


def test_what_has_no_value_at_all_is_left_out(tmp_path):
    X = gappy()
    X[:, 3] = np.nan
    X[4] = np.nan
    file = write(tmp_path, X, list("abcdef"), id=[f"s{i}" for i in range(12)], donor=[f"d{i // 2}" for i in range(12)])
    kept = np.delete(np.delete(X, 3, axis=1), 4, axis=0)
    for rule in ("median", "knn"):
        table = read_table(file, "type", groups="donor", missing=rule)
        np.testing.assert_array_equal(table.X_before, kept)
        assert (len(table.y), len(table.groups), table.sample_names[4], table.groups[4]) == (11, 11, "s5", "d2")
        assert table.notes[:2] == (
            "a.csv: 1 feature without any value is left out: 'd'.",
            "a.csv: 1 sample without any value is left out: line 6.",
        )
    (tmp_path / "b.csv").write_text("type,a,b\nu,,\nv,,\n")
    assert "2 features without any value are left out: 'a', 'b', and no other is there" in refuse(tmp_path / "b.csv", "type")
    assert "infinite" in refuse(write(tmp_path, np.where(X > 1.0, np.inf, X), list("abcdef")), "type")


def test_gaps_of_a_sparse_matrix(tmp_path):
    X = sp.random_array((12, 5), density=0.5, random_state=np.random.default_rng(0)).toarray()
    X[3, 1] = X[5, 2] = np.nan
    (tmp_path / "labels.txt").write_text("\n".join(LABELS))
    options = {"labels": tmp_path / "labels.txt"}
    for make in (sp.csr_array, sp.csc_array):
        sp.save_npz(tmp_path / "a.npz", make(X))
        table = read_table(tmp_path / "a.npz", **options)
        assert sp.issparse(table.X)
        np.testing.assert_array_equal(table.X.toarray(), SimpleImputer(strategy="median").fit_transform(X))
        assert "--missing knn needs a dense table, and this one is sparse. Use --missing median or drop." in refuse(
            tmp_path / "a.npz", **options, missing="knn"
        )
        assert read_table(tmp_path / "a.npz", **options, missing="drop").X.shape == (12, 3)


def test_steps_are_those_of_scikit_learn_on_the_training_samples():
    X = gappy()
    median = SimpleImputer(strategy="median", keep_empty_features=True)
    imputer = ColumnImputer(median, [1, 2, 4]).fit(X[:8])
    np.testing.assert_array_equal(imputer.transform(X), median.fit(X[:8]).transform(X))
