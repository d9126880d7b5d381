"""EBIC against its formula, and its choice of a size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from blocked import cut
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import make_data
from sklearn.linear_model import LinearRegression

from l20fs import L20Selector
from l20fs.data import make_planted
from l20fs.objective.criterion import ebic
from l20fs.objective.least_squares import LeastSquares


def slow_ebic(X, Y, rows, n_targets):
    n_samples, n_features = X.shape
    values = []
    for k in range(len(rows) + 1):
        predicted = LinearRegression().fit(X[:, rows[:k]], Y).predict(X[:, rows[:k]]) if k else Y.mean(axis=0)
        rss = np.square(Y - predicted).sum()
        price = k * n_targets * math.log(n_samples) + 2 * math.log(math.comb(n_features, k))
        n = n_samples * n_targets
        values.append(n * math.log(rss / n) + n_samples / (n_samples - k - 2) * price)
    return values


@given(seed=st.integers(0, 2**32 - 1), ridge=st.sampled_from([0.0, 10.0]))
@settings(max_examples=20)
def test_the_formula(seed, ridge):
    X, y = make_data(seed)
    rows = np.random.default_rng(seed).permutation(12)[:6]
    one_hot = np.eye(3)[y]
    problem = LeastSquares(X, one_hot, ridge=ridge, scale="zscore")
    np.testing.assert_allclose(ebic(problem, rows), slow_ebic(X, one_hot, rows, 2), rtol=1e-9)
    numbers = X[:, :2] + np.random.default_rng(seed).standard_normal((60, 2))
    np.testing.assert_allclose(ebic(LeastSquares(X, numbers), rows), slow_ebic(X, numbers, rows, 2), rtol=1e-9)


def test_weights_count_as_samples():
    X, y = make_data(1)
    counts = np.arange(60) % 3
    repeated = np.repeat(np.arange(60), counts)
    weighted = LeastSquares(X, np.eye(3)[y], sample_weight=counts)
    plain = LeastSquares(X[repeated], np.eye(3)[y[repeated]])
    np.testing.assert_allclose(ebic(weighted, np.arange(5)), ebic(plain, np.arange(5)), rtol=1e-10)


@pytest.mark.parametrize("total", [1.0, 2.0, 2.9, 3.0])
@pytest.mark.parametrize("container", [np.asarray, lambda X: cut(X, 0, 2)])
def test_weights_that_count_for_less_than_a_feature_needs_are_refused(container, total):
    """N is the sum of the weights; up to 3 the criterion has no finite value for one feature."""
    X, y = make_data(1)
    weights = np.full(60, total / 60)
    with pytest.raises(ValueError, match=rf"extended BIC counts {total:.3g} samples .* more than 3\. Use sample_weight /"):
        L20Selector("ebic").fit(container(X), y, sample_weight=weights)
    found = L20Selector("ebic").fit(container(X), y, sample_weight=weights / weights.mean())
    assert found.support_.tolist() == L20Selector("ebic").fit(X, y).support_.tolist(), "the way out that is named works"
    assert len(L20Selector("ebic").fit(container(X), y, sample_weight=weights * 3.1 / total).ebic_) == 2


def test_three_samples_are_too_few():
    with pytest.raises(ValueError, match="extended BIC counts 3 samples"):
        L20Selector("ebic").fit(np.arange(6.0).reshape(3, 2), [0.5, 1.5, 0.1])


@pytest.mark.parametrize("ridge", [0.0, 0.1, 10.0])
def test_noise_is_left_alone_and_strong_features_are_found(ridge):
    random = np.random.default_rng(0)
    noise = L20Selector("ebic", ridge=ridge).fit(random.standard_normal((60, 2000)), np.arange(60) % 3)
    assert noise.support_.sum() == 0
    assert len(noise.ebic_) == 58  # up to N - 3 features
    with pytest.warns(UserWarning, match="No features were selected"):
        assert noise.transform(random.standard_normal((2, 2000))).shape == (2, 0)
    X, y, informative = make_planted(200, 300, 6, 4, random_state=0)
    found = L20Selector("ebic", ridge=ridge).fit(X, y)
    assert found.get_support(indices=True).tolist() == informative.tolist()
    assert found.support_.sum() == np.argmin(found.ebic_)


def test_samples_that_a_robust_fit_meets_exactly_are_no_evidence_for_more_features():
    X, y, informative = make_planted(150, 60, 3, 3, random_state=1)
    robust = L20Selector("ebic", loss="l21", max_features=12).fit(X, y)
    assert set(informative) <= set(robust.get_support(indices=True))
    assert robust.support_.sum() <= 5


def test_it_goes_as_far_as_max_features_and_can_be_left():
    X, y = make_data(2)
    with pytest.warns(UserWarning, match="ended at its limit of 4, where the smallest EBIC is"):
        selector = L20Selector("ebic", ridge=10.0, max_features=4).fit(X, y)
    assert len(selector.ebic_) == 5
    assert selector.set_params(n_features_to_select=4).support_.sum() == 4
    other = L20Selector(3).fit(X, y).set_params(n_features_to_select="ebic")
    with pytest.raises(ValueError, match=r"was set after fit, which did not compute it. Fit again"):
        other.transform(X)
    with pytest.raises(ValueError, match=r"n_features_to_select='bic' is not valid. Use .*, or 'ebic'"):
        L20Selector("bic").fit(X, y)


def test_a_feature_that_adds_nothing_costs_only():
    for seed in range(10):
        X, y = make_data(seed)
        X = np.column_stack([X, X[:, 2] + X[:, 5]])
        values = ebic(LeastSquares(X, np.eye(3)[y]), np.array([2, 5, 12]))
        prices = [
            60 / (58 - k) * (k * 2 * math.log(60) + 2 * math.log(math.comb(13, k))) for k in (2, 3)
        ]  # the third explains nothing: it changes the price alone
        assert values[3] - values[2] == pytest.approx(prices[1] - prices[0], rel=1e-9)


def test_units_that_were_no_choice_cost_no_choice():
    """Groups count as one choice of so many groups; what is included or excluded is no choice at all."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 12))
    y = (X[:, :3].sum(axis=1) > 0).astype(int)
    groups = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10]]
    selector = L20Selector("ebic", feature_groups=groups, include=[11], exclude=[9], max_features=4).fit(X, y)
    Y = np.eye(2)[y]
    assert np.isinf(selector.ebic_[0])
    for k, rows in {1: [11], 2: [11, 0, 1, 2]}.items():
        predicted = LinearRegression().fit(X[:, rows], Y).predict(X[:, rows])
        rss = np.square(Y - predicted).sum() / 2.0  # both columns say the same
        price = len(rows) * math.log(100) + 2 * math.log(math.comb(3, k - 1))  # three groups to choose from
        expected = 100 * math.log(2.0 * rss / 100) + 100 / (98 - len(rows)) * price
        assert selector.ebic_[k] == pytest.approx(expected, rel=0.02), "classes are nearly balanced"
    assert selector.support_.sum() == 4
    alone = L20Selector("ebic", ridge=1.0).fit(X[:, :6], y)
    excluded = L20Selector("ebic", ridge=1.0, exclude=range(6, 12)).fit(X, y)
    np.testing.assert_allclose(alone.ebic_, excluded.ebic_[: len(alone.ebic_)], rtol=1e-9)


def test_nothing_chosen_is_not_certified():
    random = np.random.default_rng(0)
    selector = L20Selector("ebic", certify=True, max_features=5).fit(random.standard_normal((60, 200)), np.arange(60) % 3)
    assert selector.support_.sum() == 0
    assert not hasattr(selector, "certificate_")
