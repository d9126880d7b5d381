"""Checks of samples: groups, raw counts, identifiers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from blocked import cut

from l20fs.evaluation.data_checks import classes_in_one_group, looks_like_counts, separates_classes


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, lambda X: cut(X, 0, 2)])
def test_raw_counts(make):
    rng = np.random.default_rng(0)
    counts = rng.negative_binomial(0.3, 0.01, size=(30, 50)).astype(float)
    assert looks_like_counts(make(counts))
    assert not looks_like_counts(make(counts + 0.5))
    assert not looks_like_counts(make(np.log1p(counts)))
    assert not looks_like_counts(make(counts - 1))
    pixels = rng.integers(0, 256, size=(30, 50)).astype(float)
    assert not looks_like_counts(make(pixels))
    assert not looks_like_counts(make((counts > 5).astype(float)))
    assert not looks_like_counts(make(np.zeros((3, 40))))
    assert not looks_like_counts(make(counts[:, :6])), "a few whole numbers of different units, as of patients"


def test_classes_in_one_group():
    y = np.array(["a", "a", "b", "b"])
    assert classes_in_one_group(y, None) == []
    assert classes_in_one_group(y, np.array(["u", "v", "u", "v"])) == []
    assert classes_in_one_group(y, np.array(["u", "u", "u", "v"])) == ["a"]
    assert classes_in_one_group(y, np.array(["u", "u", "v", "v"])) == ["a", "b"]


def test_a_feature_that_may_be_an_identifier():
    codes = np.array([0, 0, 1, 1, 2, 2])
    perfect = np.array([5.0, 6.0, 1.0, 2.0, 8.0, 9.0])
    assert separates_classes(perfect, codes)
    for place, value in ((0, 2.0), (5, 5.5), (2, 8.5)):
        overlapping = perfect.copy()
        overlapping[place] = value
        assert not separates_classes(overlapping, codes)
