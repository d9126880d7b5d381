"""Encoding of nuisances: labels one-hot, floats as numbers, everything else refused with the way out."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from l20fs.inputs.nuisances import encode_nuisances

ONE_HOT = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
LABELS = ["a", "b", "a", "b", "a"]
NUMBERS = [0.5, 1.0, -2.0, 0.0, 1.5]
SCALED = np.array(NUMBERS)[:, None] / 2.0


@pytest.mark.parametrize(
    "given",
    [
        LABELS,
        tuple(LABELS),
        np.array(LABELS),
        np.array([[label] for label in LABELS], dtype=object),
        [[label] for label in LABELS],
        [1, 2, 1, 2, 1],
        np.array([1, 2, 1, 2, 1]),
        [False, True, False, True, False],
        pd.Series(LABELS, name="batch"),
        pd.Series(LABELS, dtype="category"),
        pd.Series([0.5, 1.0, 0.5, 1.0, 0.5]).astype("category"),
        pd.Series([1, 2, 1, 2, 1], dtype="Int64"),
        pd.DataFrame({"batch": LABELS}),
        pl.Series(LABELS),
        pl.DataFrame({"batch": LABELS}),
        pl.LazyFrame({"batch": LABELS}),
        array_api_strict.asarray([1, 2, 1, 2, 1]),
    ],
    ids=lambda given: type(given).__name__,
)
def test_labels_are_one_hot(given):
    np.testing.assert_array_equal(encode_nuisances(given, 5), ONE_HOT)


@pytest.mark.parametrize(
    "given",
    [
        NUMBERS,
        np.array(NUMBERS),
        np.array(NUMBERS, dtype=np.float32)[:, None],
        pd.Series(NUMBERS),
        pd.Series(NUMBERS, dtype="Float64"),
        pd.DataFrame({"age": NUMBERS}),
        pl.DataFrame({"age": NUMBERS}),
        array_api_strict.asarray(NUMBERS),
    ],
    ids=lambda given: type(given).__name__,
)
def test_floats_are_numbers(given):
    np.testing.assert_allclose(encode_nuisances(given, 5), SCALED)


def test_columns_are_read_one_by_one():
    both = np.hstack([ONE_HOT, SCALED])
    np.testing.assert_allclose(encode_nuisances(pd.DataFrame({"batch": LABELS, "age": NUMBERS}), 5), both)
    np.testing.assert_allclose(encode_nuisances([list(row) for row in zip(LABELS, NUMBERS, strict=True)], 5), both)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([*LABELS, "a"], ValueError, r"adjust_for has shape \(6,\) for 5 samples. Give one label or number per sample"),
        (np.zeros((5, 2, 2)), ValueError, r"adjust_for has shape \(5, 2, 2\) for 5 samples"),
        ("batch", ValueError, r"adjust_for has shape \(\) for 5 samples"),
        (["a", None, "a", "b", "b"], ValueError, "adjust_for has 1 missing values. Drop these samples"),
        ([0.5, np.nan, 1.0, 2.0, 3.0], ValueError, "adjust_for has 1 missing values"),
        (pd.Series(["a", pd.NA, "a", "b", "b"]), ValueError, "adjust_for has 1 missing values"),
        (pd.DataFrame({"age": [1.0, np.nan] * 2 + [1.0]}), ValueError, r"adjust_for\['age'\] has 2 missing values"),
        ([[np.inf]] * 5, ValueError, "column 0 of adjust_for has 5 infinite values. Give finite numbers."),
        (list("abcde"), ValueError, "adjust_for has 5 labels for 5 samples, .*Give labels that samples share"),
        ([31, 52, 43, 24, 24], ValueError, r"adjust_for has 4 labels for 5 samples, .*astype\(float\)"),
        (sp.csr_array(np.eye(5)), TypeError, "adjust_for is a sparse matrix. Give a dense one"),
    ],
)
def test_the_rest_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        encode_nuisances(given, 5)


def test_whole_numbers_that_few_samples_share_give_a_warning():
    with pytest.warns(UserWarning, match=r"adjust_for holds whole numbers, .* 4 labels, 3 of them .*astype\(float\)"):
        assert encode_nuisances([1, 1, 2, 2, 3, 3, 4, 4, 4, 4], 10).shape == (10, 4)
