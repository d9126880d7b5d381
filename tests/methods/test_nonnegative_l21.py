"""NonnegativeL21: its proximal map by brute force, optimality conditions, NNLS, a slow twin, and a monotone descent."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from l20fs.methods.nonnegative_l21 import (
    NonnegativeL21,
    descend,
    duality_gap,
    largest_penalty,
)

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
    return np.linalg.norm(X @ W - Y) ** 2 / 2 + lam * norms(W).sum()


def solve(X, Y, lam, tol=1e-11, max_iter=50_000):
    for step in islice(descend(X, Y, lam), max_iter):
        if duality_gap(Y, step, lam) <= tol * step.objective:
            return step
    pytest.fail(f"no gap of {tol} in {max_iter} iterations")


def slow_block_descent(X, Y, lam, n_sweeps=5000):
    """One row at a time, from zero, with the residual computed afresh."""
    W = np.zeros((X.shape[1], Y.shape[1]))
    for _ in range(n_sweeps):
        before = W.copy()
        for j, x in enumerate(X.T):
            W[j] = 0.0
            pull = np.maximum(x @ (Y - X @ W), 0.0)
            length = np.linalg.norm(pull)
            if length > lam:
                W[j] = (1 - lam / length) * pull / (x @ x)
        if np.abs(W - before).max() < 1e-13:
            break
    return W


@given(seeds, st.floats(0.05, 0.95), st.integers(4, 40), st.integers(1, 4))
@settings(max_examples=25)
def test_optimality_conditions(seed, share, n_features, n_targets):
    X, Y = make_problem(seed, n_features=n_features, n_targets=n_targets)
    Y = np.abs(Y) - np.abs(Y).mean(axis=0)
    lam_max = largest_penalty(X, Y)
    lam = share * lam_max
    W = solve(X, Y, lam).W
    assert np.all(W >= 0)
    pulls = X.T @ (Y - X @ W)
    # A relative gap of 1e-11 leaves the residual within 3e-6 of the best one, times the norms of the features.
    slack = 1e-4 * lam_max
    nonzero = W.any(axis=1)
    assert np.all(norms(np.maximum(pulls[~nonzero], 0.0)) <= lam + slack)
    wanted = lam * W[nonzero] / norms(W[nonzero])[:, None]
    is_positive = W[nonzero] > 0
    np.testing.assert_allclose(pulls[nonzero][is_positive], wanted[is_positive], atol=slack)
    assert np.all(pulls[nonzero][~is_positive] <= slack)


@pytest.mark.parametrize("seed", range(3))
def test_without_penalty_it_is_nonnegative_least_squares(seed):
    X, Y = make_problem(seed, n_samples=40, n_features=10)
    expected = np.column_stack([nnls(X, y)[0] for y in Y.T])
    assert 0 < (expected == 0).sum() < expected.size
    *_, last = islice(descend(X, Y, 0.0), 2000)
    np.testing.assert_allclose(last.W, expected, atol=1e-9)


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
@pytest.mark.parametrize("shape", [(20, 30), (40, 8)])
def test_slow_twin_agrees(share, shape):
    X, Y = make_problem(1, *shape)
    lam = share * largest_penalty(X, Y)
    step = solve(X, Y, lam, tol=1e-13)
    expected = slow_block_descent(X, Y, lam)
    np.testing.assert_allclose(step.W, expected, atol=1e-5)
    assert step.objective == pytest.approx(value_of(X, Y, expected, lam), rel=1e-11)
    assert np.array_equal(step.W.any(axis=1), expected.any(axis=1)), "zeros are exact"


@given(seeds)
@settings(max_examples=25)
def test_nothing_enters_above_the_largest_penalty(seed):
    X, Y = make_problem(seed)
    lam_max = max(np.linalg.norm(np.maximum(x @ Y, 0.0)) for x in X.T)
    assert largest_penalty(X, Y) == pytest.approx(lam_max)
    assert not solve(X, Y, 1.000001 * lam_max).W.any()
    assert solve(X, Y, 0.99 * lam_max).W.any()


def test_too_few_iterations_warn():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="NonnegativeL21 stopped at max_iter=3;"):
        selector = NonnegativeL21(2, max_iter=3).fit(X, y)
    assert selector.n_iter_ == 3
    assert selector.gap_ > 1e-6
