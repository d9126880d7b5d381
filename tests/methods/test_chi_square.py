"""ChiSquare against SciPy, scikit-learn and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency
from sklearn.datasets import load_digits
from sklearn.feature_selection import chi2
from sklearn.metrics.cluster import contingency_matrix

from l20fs.data import make_planted
from l20fs.methods._discretise import discretise
from l20fs.methods.chi_square import ChiSquare

seeds = st.integers(0, 2**32 - 1)


def scipy_answers(codes, y):
    """Statistics and p-values; SciPy sees only the states that occur."""
    answers = [chi2_contingency(contingency_matrix(x, y), correction=False) for x in codes.T]
    return np.array([[answer.statistic, answer.pvalue] for answer in answers]).T


@given(seed=seeds, binning=st.sampled_from(["width", "quantile", "sigma3", "floor", "mdlp"]))
def test_statistics_and_p_values_equal_those_of_scipy(seed, binning):
    X, y, _ = make_planted(40, 6, 2, 3, random_state=seed)
    y[:3] = [0, 1, 2]
    X[:, 0] += 3 * y
    statistic, p_value = scipy_answers(discretise(X, binning, labels=y).codes, y)
    found = ChiSquare(2, binning=binning, rank_by="statistic").fit(X, y)
    assert np.allclose(found.scores_, statistic, rtol=1e-10, atol=1e-12)
    found = ChiSquare(2, binning=binning, rank_by="p_value").fit(X, y)
    assert np.allclose(found.scores_, -np.log10(p_value), rtol=1e-9, atol=1e-12)


def test_two_by_two_by_hand():
    X = np.repeat([0.0, 0.0, 1.0, 1.0], [3, 1, 2, 4])[:, None]
    y = np.repeat([0, 1, 0, 1], [3, 1, 2, 4])
    # N (ad - bc)^2 over the product of the margins: 10 * (12 - 2)^2 / (4 * 6 * 5 * 5).
    assert ChiSquare(1, n_bins=2).fit(X, y).scores_[0] == pytest.approx(10 * 100 / 600)


def test_the_p_value_sees_through_many_states():
    """A state of its own for every sample has the largest statistic there is, and proves nothing."""
    y = np.repeat([0, 1], 20)
    almost = y.copy()
    almost[[0, 39]] = 1 - almost[[0, 39]]
    X = np.column_stack([np.arange(40), almost])
    assert ChiSquare(1, binning="floor", rank_by="statistic").fit(X, y).get_support(indices=True).tolist() == [0]
    assert ChiSquare(1, binning="floor").fit(X, y).get_support(indices=True).tolist() == [1]


def test_counts_equal_those_of_scikit_learn():
    digits = load_digits()
    X = digits.data
    varies = np.ptp(X, axis=0) > 0
    selector = ChiSquare(10, counts=True).fit(X, digits.target)
    assert np.allclose(selector.scores_[varies], chi2(X[:, varies], digits.target)[0], rtol=1e-12)


def test_counts_must_not_be_negative():
    with pytest.raises(ValueError, match="X has 2 negative values, the lowest -3, but counts=True needs counts"):
        ChiSquare(1, counts=True).fit([[1.0, -3.0], [2.0, 5.0], [0.0, -1.0]], [0, 1, 1])
    ChiSquare(1).fit([[1.0, -3.0], [2.0, 5.0], [0.0, -1.0]], [0, 1, 1])
