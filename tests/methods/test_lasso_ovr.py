"""LassoOVR: scikit-learn's lasso class by class, the exact path of LARS, and both ways of ranking."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, lars_path

from l20fs.methods.lasso_ovr import LassoOVR


def make_data(seed, n_samples=30, n_features=50, n_classes=3):
    """Classes of unequal size; each has a feature of its own."""
    random = np.random.default_rng(seed)
    y = random.permutation(np.minimum(np.arange(n_samples) % (2 * n_classes), n_classes - 1))
    X = random.standard_normal((n_samples, n_features)) * random.uniform(0.5, 2.0, n_features) + 5.0
    for label in range(n_classes):
        X[:, label] += 1.5 * (y == label)
    return X, y


def one_hot(y):
    return (y[:, None] == np.unique(y)).astype(float)


def slow_largest_alpha(X, target):
    return max(abs(np.sum((x - x.mean()) * target)) for x in X.T) / len(X)


@pytest.mark.parametrize("ranking", ["entry", "norm"])
@pytest.mark.parametrize("shape", [(30, 50), (60, 8)])
def test_scikit_learns_lasso_agrees_class_by_class(ranking, shape):
    X, y = make_data(0, *shape)
    selector = LassoOVR(3, alpha=0.1, ranking=ranking, tol=1e-12).fit(X, y)
    total = 0.0
    for target, weights, alpha in zip(one_hot(y).T, selector.coef_, selector.alpha_, strict=True):
        reference = Lasso(alpha=alpha, tol=1e-12, max_iter=100_000).fit(X, target)
        np.testing.assert_allclose(weights, reference.coef_, atol=1e-6)
        residual = target - reference.predict(X)
        total += residual @ residual / (2 * len(X)) + alpha * np.abs(reference.coef_).sum()
    assert selector.objective_[-1] == pytest.approx(total, rel=1e-9)
    assert selector.gap_ <= 1e-12
    assert selector.n_iter_ == len(selector.objective_) == 50
    assert np.all(np.diff(selector.objective_) <= 0)


def test_penalties_are_relative_to_each_class_or_to_the_largest():
    X, y = make_data(1)
    largest = np.array([slow_largest_alpha(X, target) for target in one_hot(y).T])
    assert largest.max() > 1.2 * largest.min()
    np.testing.assert_allclose(LassoOVR(3, alpha=0.3).fit(X, y).alpha_, 0.3 * largest)
    np.testing.assert_allclose(LassoOVR(3, alpha=0.3, ranking="norm").fit(X, y).alpha_, 0.3 * largest.max())


@pytest.mark.parametrize("seed", range(4))
def test_entry_scores_follow_the_exact_path(seed):
    """LARS knows where each feature enters; between two penalties of our path there is room for little else."""
    X, y = make_data(seed)
    n_alphas = 400
    selector = LassoOVR(3, alpha=0.1, n_alphas=n_alphas, tol=1e-10).fit(X, y)
    exact = np.zeros(X.shape[1])
    for target in one_hot(y).T:
        alphas, _, coefs = lars_path(X - X.mean(axis=0), target - target.mean(), method="lasso")
        for j, weights in enumerate(coefs):
            if weights.any():
                # The knot before the first one with a weight is where the weight begins to grow.
                exact[j] = max(exact[j], alphas[np.flatnonzero(weights)[0] - 1] / alphas[0])
    entered = exact > 0.11
    assert 10 < entered.sum() < 50
    np.testing.assert_allclose(np.log(selector.scores_[entered]), np.log(exact[entered]), atol=np.log(10) / (n_alphas - 1))
    apart = np.diff(np.sort(exact[entered])) / np.sort(exact[entered])[1:] > 2 * np.log(10) / (n_alphas - 1)
    if apart.all():
        assert np.array_equal(np.argsort(-exact)[: entered.sum()], np.argsort(selector.ranking_)[: entered.sum()])
    assert np.all(selector.scores_[exact < 0.09] <= 0.1 + 1e-9)


def test_entry_order_of_orthogonal_features_is_that_of_their_correlations():
    random = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = random.standard_normal((60, 12))
    X = np.linalg.qr(X - X.mean(axis=0))[0] * random.uniform(0.5, 3.0, 12)
    Y = one_hot(y) - 1 / 3
    shares = np.abs(X.T @ Y) / np.abs(X.T @ Y).max(axis=0)
    selector = LassoOVR(3, n_alphas=4, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(selector.scores_, shares.max(axis=1), rtol=1e-6)


def test_two_classes_mirror_each_other():
    X, y = make_data(3, n_classes=2)
    selector = LassoOVR(3, tol=1e-12).fit(X, y)
    assert selector.coef_.any()
    np.testing.assert_allclose(selector.coef_[0], -selector.coef_[1], atol=1e-8)


def test_too_few_sweeps_warn():
    with pytest.warns(ConvergenceWarning, match="LassoOVR stopped at max_iter=1;"):
        selector = LassoOVR(3, max_iter=1, tol=1e-12, alpha=0.01).fit(*make_data(5))
    assert selector.gap_ > 1e-12
