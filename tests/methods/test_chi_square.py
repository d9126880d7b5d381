"""ChiSquare against SciPy, scikit-learn and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2_contingency
from sklearn.datasets import load_digits
from sklearn.feature_selection import chi2
from sklearn.metrics.cluster import contingency_matrix

import l20fs.methods._discretise
from l20fs.data import make_planted
from l20fs.methods._discretise import discretise
from l20fs.methods.chi_square import ChiSquare, log10_p_value

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


def test_blocks_do_not_change_the_answer(monkeypatch):
    X, y, _ = make_planted(40, 30, 2, 3)
    whole = ChiSquare(2).fit(X, y).scores_
    monkeypatch.setattr(l20fs.methods._discretise, "_BLOCK", 100)
    assert np.array_equal(ChiSquare(2).fit(X, y).scores_, whole)


@pytest.mark.parametrize(("binning", "by_p"), [("width", False), ("sigma3", False), ("floor", True), ("mdlp", True)])
def test_by_default_features_with_different_numbers_of_states_are_ranked_by_p_value(binning, by_p):
    X, y, _ = make_planted(60, 8, 2, 3)
    X = 3 * X + np.outer(y, np.arange(8))
    expected = ChiSquare(2, binning=binning, rank_by="p_value" if by_p else "statistic").fit(X, y).scores_
    assert np.array_equal(ChiSquare(2, binning=binning).fit(X, y).scores_, expected)


def test_the_p_value_sees_through_many_states():
    """A state of its own for every sample has the largest statistic there is, and proves nothing."""
    y = np.repeat([0, 1], 20)
    almost = y.copy()
    almost[[0, 39]] = 1 - almost[[0, 39]]
    X = np.column_stack([np.arange(40), almost])
    assert ChiSquare(1, binning="floor", rank_by="statistic").fit(X, y).get_support(indices=True).tolist() == [0]
    assert ChiSquare(1, binning="floor").fit(X, y).get_support(indices=True).tolist() == [1]


@pytest.mark.parametrize("freedom", [2, 4, 10, 60, 400, 1400])
def test_logarithm_of_tiny_p_values_against_the_finite_sum_of_even_freedoms(freedom):
    """With 2 m degrees of freedom the chance is exp(-x / 2) times the first m terms of the series of exp(x / 2)."""
    half = np.array([0.3, 1.0, 2.0, 5.0, 50.0, 1000.0]) * freedom / 2 + 700.0
    i = np.arange(freedom // 2)[:, None]
    expected = logsumexp(i * np.log(half) - gammaln(i + 1), axis=0) - half
    found = log10_p_value(2 * half, np.full(len(half), freedom)) * np.log(10.0)
    assert np.allclose(found, expected, rtol=1e-9)


def test_no_freedom_no_surprise():
    assert log10_p_value(np.zeros(1), np.zeros(1, dtype=int)).tolist() == [0.0]


def test_perfect_features_of_large_data_are_still_told_apart():
    y = np.arange(6000) % 3
    X = np.column_stack([y, np.where(np.arange(6000) < 5, 0, y), np.where(np.arange(6000) < 50, 0, y)])
    selector = ChiSquare(1, binning="floor").fit(X, y)
    assert selector.ranking_.tolist() == [1, 2, 3]
    assert np.isfinite(selector.scores_).all()


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


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rank_by": "p"}, "rank_by='p' is unknown. Use 'auto', 'statistic' or 'p_value'"),
        ({"binning": "equal"}, "binning='equal' is unknown"),
        ({"counts": "yes"}, "counts='yes' is not valid. Use True or False."),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        ChiSquare(**parameters).fit([[0.0], [1.0]], [0, 1])
