from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import make_data
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from l20fs.methods.rfs import RFS, gamma_max

GOLDEN = json.loads((Path(__file__).parent / "golden" / "rfs.json").read_text())
SHAPES = st.sampled_from([(9, 20), (20, 6), (12, 12)])
SEEDS = st.integers(0, 2**32 - 1)


def draw(seed, shape, n_targets=3):
    random = np.random.default_rng(seed)
    return random.standard_normal(shape), random.standard_normal((shape[0], n_targets))


def row_norms(V):
    return np.linalg.norm(V, axis=1)


def value(X, Y, W, gamma, intercept=0.0):
    """The objective as published, without smoothing."""
    return row_norms(X @ W + intercept - Y).sum() + gamma * row_norms(W).sum()


def solve(X, Y, gamma, *, max_iter=1000, tol=1e-10, accelerate=True):
    """Return the fitted selector, and its weights as published."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        selector = RFS(1, gamma=gamma, max_iter=max_iter, tol=tol, accelerate=accelerate, task="regression")
        selector.fit(X, Y if Y.shape[1] > 1 else Y[:, 0])
    return selector, selector.coef_.T


def lower_bound(X, Y, W, gamma):
    """The dual value of the directions of the residuals, shrunk until they are feasible."""
    residuals = Y - X @ W
    directions = residuals / row_norms(residuals)[:, None]
    return min(1.0, gamma / row_norms(X.T @ directions).max()) * np.sum(directions * Y)


def stacked_form(X, Y, gamma, n_iter):
    """The iteration as published: the smallest ||U||_{2,1} with [X, gamma I] U = Y. Slow, and says what it does."""
    A = np.hstack([X, gamma * np.eye(len(X))])
    # Where the reduced form begins.
    size = np.sqrt(np.mean(X**2))
    inverse = np.diag(np.concatenate([np.full(X.shape[1], 1 / size), np.full(len(X), 1 / gamma)]))
    for _ in range(n_iter):
        U = inverse @ A.T @ np.linalg.inv(A @ inverse @ A.T) @ Y
        inverse = np.diag(2 * row_norms(U))
    return U[: X.shape[1]]


@given(seed=SEEDS, shape=SHAPES, gamma=st.sampled_from([0.5, 2.0]))
def test_the_reduced_form_is_the_published_stacked_form(seed, shape, gamma):
    X, Y = draw(seed, shape)
    _, W = solve(X, Y, gamma, max_iter=4, tol=0.0, accelerate=False)
    expected = stacked_form(X, Y, gamma, 4)
    assert np.allclose(W, expected, atol=1e-6 * np.abs(expected).max())


@settings(max_examples=25)
@given(seed=SEEDS, shape=SHAPES, share=st.sampled_from([0.3, 0.6, 0.9]))
def test_the_duality_gap_closes(seed, shape, share):
    X, Y = draw(seed, shape)
    gamma = share * gamma_max(X, Y)
    _, W = solve(X, Y, gamma, max_iter=3000, tol=1e-13)
    found, bound = value(X, Y, W, gamma), lower_bound(X, Y, W, gamma)
    # The bound holds for any W; where residuals vanish their directions are lost and it is merely valid.
    assert bound <= found * (1 + 1e-9)
    assert lower_bound(X, Y, np.zeros_like(W), gamma) <= found * (1 + 1e-9)
    if row_norms(X @ W - Y).min() > 1e-3:
        assert bound >= found * (1 - 1e-3)


@settings(max_examples=25)
@given(seed=SEEDS, shape=SHAPES)
def test_above_gamma_max_nothing_is_left_and_below_something_is(seed, shape):
    X, Y = draw(seed, shape)
    highest = gamma_max(X, Y)
    above, W = solve(X, Y, 1.1 * highest, max_iter=3000, tol=0.0)
    assert row_norms(W).max() < 1e-6
    assert above.objective_[-1] == pytest.approx(row_norms(Y).sum(), rel=1e-6)
    _, W = solve(X, Y, 0.9 * highest)
    assert value(X, Y, W, 0.9 * highest) < row_norms(Y).sum() * (1 - 1e-6)


def test_one_feature_is_a_weighted_median():
    """|1 - w| + |2 - 2 w| + |9 - w| + gamma |w| is smallest at w = 1 if gamma is below 4, else at w = 0."""
    X, y = np.array([[1.0], [2.0], [1.0]]), np.array([[1.0], [2.0], [9.0]])
    candidates = np.array([0.0, 1.0, 9.0])
    for gamma in (0.5, 1.5, 3.5, 4.5):
        values = [value(X, y, np.array([[w]]), gamma) for w in candidates]
        _, W = solve(X, y, gamma, max_iter=5000, tol=0.0)
        assert value(X, y, W, gamma) == pytest.approx(min(values), abs=1e-5)
        assert W[0, 0] == pytest.approx(candidates[np.argmin(values)], abs=1e-4)


def test_fitted_attributes_belong_together():
    X, y = make_data()
    Y = np.eye(3)[y]
    for bias in ("none", "unpenalised"):
        selector = RFS(3, bias=bias).fit(X, y)
        found = value(X, Y, selector.coef_.T, 1.0, selector.intercept_)
        assert selector.objective_[-1] == pytest.approx(found, rel=1e-6)
        assert np.allclose(selector.scores_, row_norms(selector.coef_.T))
        assert selector.coef_.shape == (3, 12)
        assert selector.intercept_.any() == (bias == "unpenalised")


# A peer: the rfs of scikit-feature. It stops at an absolute change of 1e-3 and adds 1e-6 to the diagonal.


def peer_data():
    X, y = load_digits(return_X_y=True)
    X, y = X[:40, np.ptp(X[:40], axis=0) > 0], y[:40]
    return X / np.sqrt(np.mean(X**2)), y, np.where(np.eye(10)[y] > 0, 1.0, -1.0)


def assert_close_to_peer(norms, n_iter):
    """At gamma = 1 both forms start alike, so that the published iteration is met step for step."""
    X, _, Y = peer_data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        selector = RFS(10, gamma=1.0, accelerate=False, max_iter=n_iter, tol=0.0).fit(X, Y)
    assert np.allclose(selector.scores_, norms, atol=2e-5 * norms.max())


def test_steps_of_scikit_feature_as_stored():
    assert_close_to_peer(np.array(GOLDEN["row_norms"]["1.0"]), GOLDEN["n_iter"]["1.0"])


@pytest.mark.parametrize("gamma", ["0.1", "1.0", "3.0"])
def test_the_objective_is_no_higher_than_that_of_scikit_feature(gamma):
    X, _, Y = peer_data()
    selector = RFS(10, gamma=float(gamma)).fit(X, Y)
    found = value(X, Y, selector.coef_.T, float(gamma))
    assert found <= GOLDEN["objective"][gamma]
    assert found == pytest.approx(GOLDEN["objective"][gamma], rel=1e-3)
    assert set(selector.get_support(indices=True)) >= set(np.argsort(GOLDEN["row_norms"][gamma])[:-6:-1])
