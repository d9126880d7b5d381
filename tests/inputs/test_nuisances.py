"""What ``adjust_for`` cannot be is refused with the way out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from l20fs import L20Selector

LABELS = ["a", "b", "a", "b", "a"]


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
        L20Selector(1).fit(np.random.default_rng(0).standard_normal((5, 3)), [0, 1, 0, 1, 1], adjust_for=given)
