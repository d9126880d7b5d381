"""Columns: names, features, what is left out, repeated features, gaps in folds, and what is said about them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import KNNImputer

from l20fs.tables import DataError, UnknownColumnError, read_table

N = 12
X = np.random.default_rng(0).normal(size=(N, 3)).round(3)
TYPES = [*"uv"] * (N // 2)
FRAME = pd.DataFrame(X, [f"s{i}" for i in range(N)], ["a", "b", "c"])


@pytest.fixture(params=["csv", "xlsx", "parquet"])
def read(request, tmp_path):
    """Read a table from a file of each kind."""

    def read(frame, target="type", **options):
        file = tmp_path / f"table.{request.param}"
        {"csv": frame.to_csv, "xlsx": frame.to_excel, "parquet": frame.to_parquet}[request.param](file)
        return read_table(file, target, **options)

    return read


def said(samples, *words):
    """Return whether a sentence holds all words."""
    return any(all(word in note for word in words) for note in samples.notes)


def test_columns_of_text_and_ignored_ones_are_no_features(read):
    frame = FRAME.assign(type=TYPES, site=["x", "y", "z"] * 4, plate1=7.5, plate2=8.5)
    found = read(frame, ignore=["plate*"])
    assert found.feature_names == ["a", "b", "c"]
    assert said(found, "1 column of text is left out: 'site'")
    assert set(found.others) >= {"site", "plate1", "plate2"}
    with pytest.raises(UnknownColumnError, match="no column matches 'q\\*'"):
        read(frame, ignore=["q*"])
    with pytest.raises(DataError, match="leaves no feature"):
        read(FRAME.assign(type=TYPES), ignore=["a", "b", "c"])


def test_only_needed_features_are_read_and_may_lack_values(read):
    frame = FRAME.assign(type=TYPES, site=["x"] * N)
    frame.iloc[2, 1] = np.nan
    found = read(frame, needed={"b", "z"}, substitutes={"c"}, need_labels=False)
    assert found.feature_names == ["b", "c"]
    assert np.isnan(found.X[2, 0])
    with pytest.raises(DataError, match=r"none of the 2 features that are needed is there \('y', 'z'\)"):
        read(frame, needed={"y", "z"}, substitutes={f"w{j}" for j in range(50)})
    with pytest.raises(DataError, match="1 column of text, first 'site'"):
        read(frame, needed={"a", "site"})


def test_a_first_column_that_counts_the_samples_is_no_feature(tmp_path):
    FRAME.assign(type=TYPES).reset_index(drop=True).rename_axis("id").to_csv(tmp_path / "a.csv")
    found = read_table(tmp_path / "a.csv", "type")
    assert (found.feature_names, found.sample_names) == (["a", "b", "c"], [str(i) for i in range(N)])
    assert said(found, "'id' counts the samples from 0 to 11")
    FRAME.assign(type=TYPES).to_csv(tmp_path / "b.csv", index=False)
    found = read_table(tmp_path / "b.csv", "type")
    assert (found.feature_names, found.sample_names) == (["a", "b", "c"], None)
    np.testing.assert_array_equal(found.X, X)


@pytest.mark.parametrize(
    ("rule", "names", "values"),
    [
        ("number", ["a", "b", "a.1"], X),
        ("mean", ["a", "b"], np.column_stack([(X[:, 0] + X[:, 2]) / 2, X[:, 1]])),
        ("first", ["a", "b"], X[:, :2]),
        ("refuse", None, None),
    ],
)
def test_features_of_one_name(rule, names, values, tmp_path):
    FRAME.set_axis(["a", "b", "a"], axis=1).assign(type=TYPES).to_csv(tmp_path / "a.csv")
    if names is None:
        with pytest.raises(DataError, match=r"more than once: 'a'.*input\.duplicates"):
            read_table(tmp_path / "a.csv", "type", duplicates=rule)
        return
    found = read_table(tmp_path / "a.csv", "type", duplicates=rule)
    assert found.feature_names == names
    np.testing.assert_allclose(found.X, values, rtol=1e-12)
    assert said(found, "'a'", f"input.duplicates={rule}")
    only = read_table(tmp_path / "a.csv", "type", duplicates=rule, needed={names[-1]})
    np.testing.assert_allclose(only.X, values[:, -1:], rtol=1e-12)


@pytest.mark.parametrize("rule", ["median", "knn", "drop", "refuse"])
def test_gaps_are_filled_by_the_training_samples(rule, read):
    frame = FRAME.assign(d=np.arange(N) / 7, empty=np.nan, type=TYPES)
    frame.iloc[1, 0] = frame.iloc[3, 0] = frame.iloc[5, 2] = np.nan
    if rule == "refuse":
        with pytest.raises(DataError, match=r"values of 3 features are missing, first in column 'a'"):
            read(frame, missing=rule)
        return
    found = read(frame, missing=rule)
    assert said(found, "'empty'", "left out")
    if rule == "drop":
        assert found.feature_names == ["b", "d"]
        assert found.preprocess is None
        return
    gaps = frame[["a", "b", "c", "d"]].to_numpy()
    filled = (
        np.where(np.isnan(gaps), np.nanmedian(gaps, axis=0), gaps) if rule == "median" else KNNImputer().fit_transform(gaps)
    )
    np.testing.assert_allclose(found.X, filled, rtol=1e-12)
    np.testing.assert_allclose(found.X_before, gaps, rtol=1e-12)
    train = np.arange(6)
    in_fold = found.preprocess.fit(found.X_before[train]).transform(found.X_before)
    expected = KNNImputer().fit(gaps[train]).transform(gaps)
    if rule == "median":
        expected = np.where(np.isnan(gaps), np.nanmedian(gaps[train], axis=0), gaps)
    np.testing.assert_allclose(in_fold, expected, rtol=1e-12)
    assert found.missing == {"a": 2 / N, "c": 1 / N}


def test_infinite_values_are_refused_by_name(tmp_path):
    FRAME.replace(X[3, 1], np.inf).assign(type=TYPES).to_csv(tmp_path / "a.csv")
    with pytest.raises(DataError, match="1 infinite value, in column 'b', line 5"):
        read_table(tmp_path / "a.csv", "type")


def test_what_looks_like_metadata_is_said(read):
    frame = FRAME.assign(Age=np.arange(N) + 0.5, IDS=X[:, 0] + 1, type=TYPES)
    found = read(frame)
    assert said(found, "metadata", "'Age'")
    assert not said(found, "'IDS'"), "a gene"


def test_the_target_under_another_name_is_said(read):
    loss = np.arange(N) ** 1.5
    frame = FRAME.assign(**{"Muscle loss": loss, "Muscle loss per 100 days": loss + X[:, 0], "weight in g": 3 - 2 * loss})
    found = read(frame, "Muscle loss", task="regression")
    assert said(found, "2 features may be the target", "'Muscle loss per 100 days', 'weight in g'")
    coded = FRAME.assign(type=TYPES, grade=[3 if label == "u" else 1 for label in TYPES])
    assert said(read(coded), "may be the target", "'grade'")
    assert not said(read(FRAME.assign(type=TYPES)), "may be the target")


def test_samples_that_stand_twice_and_patients_are_said(read):
    wide = pd.DataFrame(np.random.default_rng(1).normal(size=(N, 12)), FRAME.index, [f"g{j}" for j in range(12)])
    wide.iloc[7] = wide.iloc[2]
    found = read(wide.assign(type=TYPES, patient=[f"p{i // 2}" for i in range(N)]))
    assert said(found, "same values", "'s2' and 's7'", "--groups")
    assert said(found, "'patient'", "--groups patient")
    assert not said(
        read(wide.assign(type=TYPES, patient=[f"p{i // 2}" for i in range(N)]), groups="patient"), "--groups patient"
    )


def test_repeated_names_of_samples_are_numbered(read):
    frame = FRAME.set_axis(["x", *FRAME.index[1:-1], "x"]).assign(type=TYPES)
    found = read(frame)
    assert (found.sample_names[0], found.sample_names[-1]) == ("x", "x.1")
    assert said(found, "1 sample name occurs more than once ('x')")


def test_columns_without_a_name_and_empty_ones(tmp_path):
    rows = "".join(f"{label},{a},,{b},5,\n" for label, (a, b, _) in zip(TYPES, X.tolist(), strict=True))
    (tmp_path / "a.csv").write_text("type,a,,b,,\n" + rows)
    found = read_table(tmp_path / "a.csv", "type")
    assert found.feature_names == ["a", "b", "column 5"]
    assert said(found, "1 column has no name and is called 'column 5'")


@pytest.mark.parametrize("is_said", [False, True])
def test_samples_in_columns(is_said, read):
    turned = pd.concat([pd.DataFrame([TYPES], ["type"], FRAME.index), FRAME.T.astype(object)])
    turned.insert(0, "description", ["", "one", "two", "three"])
    options = {"samples_in": "columns"} if is_said else {}
    found = read(turned.astype(str), **options)
    np.testing.assert_array_equal(found.X, X)
    assert (found.feature_names, found.sample_names, found.y.tolist()) == (["a", "b", "c"], FRAME.index.tolist(), TYPES)
    assert said(found, "'description'", "left out")
    assert said(found, "'type' is the name of a row") != is_said


def test_covariates_are_labels_or_numbers(read):
    frame = FRAME.assign(type=TYPES, batch=[1, 2] * 6, age=np.arange(N) + 0.5, day=np.arange(N))
    found = read(frame, adjust_for=["batch", "age", "day:number"])
    assert found.adjust_for["batch"].tolist() == ["1", "2"] * 6
    np.testing.assert_array_equal(found.adjust_for["age"], np.arange(N) + 0.5)
    np.testing.assert_array_equal(found.adjust_for["day"], np.arange(N))
    assert found.feature_names == ["a", "b", "c"]
    for name, words in (
        ("day", "12 labels for 12 samples"),
        ("type:number", "holds no numbers"),
        ("dey", "Did you mean 'day'"),
    ):
        with pytest.raises((DataError, UnknownColumnError), match=words):
            read(frame, "batch", task="classification", adjust_for=[name])
