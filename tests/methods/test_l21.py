"""L21: closed form, a slow twin, scikit-learn's estimator, optimality conditions and the certificate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, MultiTaskLasso

from l20fs.methods.l21 import L21, duality_gap, entry_scores, largest_penalty, objective, solve_path
from l20fs.objective.prox import shrink_rows

seeds = st.integers(0, 2**32 - 1)


def make_problem(seed, n_samples=20, n_features=30, n_targets=3):
    """Centred data whose targets depend on three features, with scales that differ by feature."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_samples, n_features)) * random.uniform(0.5, 2.0, n_features)
    Y = X[:, :3] @ random.standard_normal((3, n_targets)) + random.standard_normal((n_samples, n_targets))
    return X - X.mean(axis=0), Y - Y.mean(axis=0)


def norms(V):
    return np.linalg.norm(V, axis=1)


def value_of(X, Y, W, lam):
    return np.linalg.norm(X @ W - Y) ** 2 + lam * norms(W).sum()


def solve(X, Y, lam, tol=1e-11):
    """The end of a short path."""
    penalties = np.geomspace(max(lam, largest_penalty(X, Y)), lam, 5)
    return list(solve_path(X, Y, penalties, tol=tol, max_iter=100_000))[-1]


def slow_block_descent(X, Y, lam, n_sweeps=3000):
    """One row at a time, from zero, with the residual computed afresh."""
    W = np.zeros((X.shape[1], Y.shape[1]))
    for _ in range(n_sweeps):
        before = W.copy()
        for j, x in enumerate(X.T):
            W[j] = 0.0
            pull = x @ (Y - X @ W)
            length = np.linalg.norm(pull)
            if length > lam / 2:
                W[j] = (1 - lam / 2 / length) * pull / (x @ x)
        if np.abs(W - before).max() < 1e-13:
            break
    return W


@given(seeds, st.floats(0.01, 0.95), st.integers(4, 40), st.integers(1, 4))
@settings(max_examples=40)
def test_gap_and_optimality_conditions(seed, share, n_features, n_targets):
    X, Y = make_problem(seed, n_features=n_features, n_targets=n_targets)
    lam = share * largest_penalty(X, Y)
    W = solve(X, Y, lam).W
    assert duality_gap(X, Y, W, lam) < 1e-8 * value_of(X, Y, W, lam)
    pulls = 2 * X.T @ (Y - X @ W)
    # A gap g leaves the residual within sqrt(g) of the best: 1e-11 becomes 3e-6, times the norms of the features.
    slack = 1e-4 * lam / share
    assert np.all(norms(pulls) <= lam + slack)
    nonzero = W.any(axis=1)
    assert nonzero.any()
    assert not nonzero.all() or n_features < 30
    directions = W[nonzero] / norms(W[nonzero])[:, None]
    np.testing.assert_allclose(pulls[nonzero], lam * directions, atol=slack)


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
@pytest.mark.parametrize("shape", [(20, 30), (40, 8)])
def test_slow_twin_agrees(share, shape):
    X, Y = make_problem(1, *shape)
    lam = share * largest_penalty(X, Y)
    W = solve(X, Y, lam, tol=1e-14).W
    expected = slow_block_descent(X, Y, lam)
    np.testing.assert_allclose(W, expected, atol=1e-6 * np.abs(expected).max())
    assert np.array_equal(W.any(axis=1), expected.any(axis=1))
    assert value_of(X, Y, W, lam) == pytest.approx(value_of(X, Y, expected, lam), rel=1e-10)


def test_orthogonal_features_have_a_closed_form():
    random = np.random.default_rng(0)
    basis = np.linalg.qr(random.standard_normal((40, 9)) - random.standard_normal(9))[0]
    basis -= basis.mean(axis=0)
    basis = np.linalg.qr(basis)[0]  # orthonormal, and orthogonal to the ones
    sizes = random.uniform(0.5, 3.0, 9)
    X, Y = basis * sizes, random.standard_normal((40, 3))
    Y -= Y.mean(axis=0)
    pulls = X.T @ Y
    lam_max = 2 * norms(pulls).max()
    assert largest_penalty(X, Y) == pytest.approx(lam_max)
    path = list(solve_path(X, Y, np.geomspace(lam_max, 0.05 * lam_max, 4), tol=1e-13, max_iter=1000))
    for stage in path:
        np.testing.assert_allclose(stage.W, shrink_rows(pulls, stage.lam / 2) / sizes[:, None] ** 2, atol=1e-8)
    # Four penalties for nine features: several enter between two of them, and still each has its own score.
    np.testing.assert_allclose(entry_scores(path[-1], lam_max), 2 * norms(pulls) / lam_max, rtol=1e-6)


@given(seeds)
@settings(max_examples=25)
def test_nothing_enters_above_the_largest_penalty(seed):
    X, Y = make_problem(seed)
    lam_max = 2 * max(np.linalg.norm(x @ Y) for x in X.T)
    assert largest_penalty(X, Y) == pytest.approx(lam_max)
    for lam in (1.5 * lam_max, 1.000001 * lam_max):
        stage = solve(X, Y, lam)
        assert not stage.W.any()
        assert stage.gap == pytest.approx(0.0, abs=1e-12)
    assert solve(X, Y, 0.99 * lam_max).W.any()


@pytest.mark.parametrize("ranking", ["entry", "norm"])
def test_scikit_learns_estimator_agrees(ranking):
    X, y = load_iris(return_X_y=True)
    selector = L21(2, alpha=0.05, ranking=ranking, tol=1e-13).fit(X, y)
    reference = MultiTaskLasso(alpha=selector.alphas_[-1] / (2 * len(X)), tol=1e-13, max_iter=100_000)
    reference.fit(X, np.eye(3)[y])
    np.testing.assert_allclose(selector.coef_, reference.coef_, atol=1e-7)
    residual = np.eye(3)[y] - reference.predict(X)
    expected = np.sum(residual**2) + selector.alphas_[-1] * norms(reference.coef_.T).sum()
    assert selector.objective_[-1] == pytest.approx(expected, rel=1e-9)
    assert objective(residual, reference.coef_.T, selector.alphas_[-1]) == pytest.approx(expected)


def test_ranking_by_norm_is_that_of_the_weights():
    X, y = load_iris(return_X_y=True)
    X = np.hstack([X, np.random.default_rng(0).standard_normal((150, 6))])
    selector = L21(3, ranking="norm", alpha=0.02).fit(X, y)
    lengths = norms(selector.coef_.T)
    ranked = lengths[np.argsort(selector.ranking_)]
    assert np.all(np.diff(ranked) <= 0)
    assert 0 < (lengths > 0).sum() < 10
    entry = L21(3, ranking="entry", alpha=0.02).fit(X, y)
    np.testing.assert_array_equal(entry.coef_, selector.coef_)
    assert not np.array_equal(entry.ranking_, selector.ranking_)


def test_numbers_are_targets_too():
    X, Y = make_problem(5, n_targets=1)
    single = L21(3, alpha=0.05, tol=1e-13).fit(X + 7.0, Y[:, 0] - 2.0)
    reference = Lasso(alpha=single.alphas_[-1] / (2 * len(X)), tol=1e-13, max_iter=100_000).fit(X, Y[:, 0])
    np.testing.assert_allclose(single.coef_[0], reference.coef_, atol=1e-7)
    twice = L21(3, alpha=0.05, tol=1e-13).fit(X, np.hstack([Y, Y]))
    assert twice.coef_.shape == (2, 30)
    # Two equal targets are one that is sqrt(2) times as long.
    np.testing.assert_allclose(twice.coef_, np.vstack([single.coef_] * 2), atol=1e-6)


def test_features_without_any_relation_score_zero():
    X = np.array([[1.0, 2.0], [-1.0, -2.0], [1.0, 2.0], [-1.0, -2.0]])
    for ranking, expected in (("entry", 0.0), ("norm", -1.0)):
        selector = L21(1, ranking=ranking).fit(X, ["a", "a", "b", "b"])
        assert selector.scores_.tolist() == [expected, expected]
        assert not selector.coef_.any()
        assert selector.ranking_.tolist() == [1, 2]


def test_too_few_sweeps_warn_and_report_the_gap():
    X, Y = make_problem(7)
    with pytest.warns(ConvergenceWarning, match="L21 stopped at max_iter=1;"):
        selector = L21(3, max_iter=1, tol=1e-12, alpha=0.01).fit(X, Y)
    assert selector.gap_ > 1e-12
