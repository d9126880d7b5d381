"""URAFS: each of the three updates against its definition, and the whole against a slow twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import polar, sqrtm
from sklearn.exceptions import ConvergenceWarning

from l20fs.methods.urafs import (
    URAFS,
    entropy_graph,
    power_iteration,
    uncorrelated_weights,
)

seeds = st.integers(0, 2**32 - 1)


def clusters(seed=0, n_samples=60, n_features=25, shift=6.0):
    """Three clusters that features 3, 11 and 17 tell apart."""
    random = np.random.default_rng(seed)
    label = random.permutation(np.arange(n_samples) % 3)
    X = random.standard_normal((n_samples, n_features))
    for cluster, feature in enumerate((3, 11, 17)):
        X[:, feature] += shift * (label == cluster)
    return X


def orthonormal(random, n_rows, n_columns):
    """Draw centred orthonormal columns."""
    draw = random.standard_normal((n_rows, n_columns))
    return np.linalg.qr(draw - draw.mean(axis=0))[0]


def graph_value(S, F, beta):
    """Write out sum s_ij (||f_i - f_j||^2 / 2 + beta log s_ij)."""
    squares = np.array([[np.sum((one - other) ** 2) for other in F] for one in F])
    return np.sum(S * squares) / 2.0 + beta * np.sum(S * np.log(S))


@given(seed=seeds, beta=st.sampled_from([0.03, 0.3, 3.0]))
def test_graph_minimises_distance_and_negative_entropy(seed, beta):
    random = np.random.default_rng(seed)
    F = random.standard_normal((6, 2))
    S = entropy_graph(F, beta)
    assert np.allclose(S.sum(axis=1), 1.0)
    best = graph_value(np.maximum(S, 1e-300), F, beta)
    # At the minimum of a row, s_ij (d_ij / 2 + beta log s_ij) sums to -beta log sum_j exp(-d_ij / (2 beta)).
    squares = np.sum((F[:, None] - F[None]) ** 2, axis=2)
    assert best == pytest.approx(-beta * np.log(np.exp(-squares / (2.0 * beta)).sum(axis=1)).sum(), rel=1e-9, abs=1e-9)
    for other in random.dirichlet(np.ones(6), size=(20, 6)):
        mixed = 0.9 * S + 0.1 * other
        assert graph_value(np.maximum(mixed, 1e-300), F, beta) >= best - 1e-12 * abs(best)


@given(seed=seeds, shape=st.sampled_from([(15, 6), (8, 20), (9, 9)]))
def test_weights_satisfy_their_constraint_and_are_the_polar_factor(seed, shape):
    random = np.random.default_rng(seed)
    X = random.standard_normal(shape)
    X -= X.mean(axis=0)
    F, penalties = orthonormal(random, shape[0], 3), random.uniform(0.1, 10.0, shape[1])
    W = uncorrelated_weights(X, F, penalties)
    M = X.T @ X + np.diag(penalties)
    K = X.T @ F
    assert np.allclose(W.T @ M @ W, np.eye(3), atol=1e-8)
    root = np.linalg.inv(np.real(sqrtm(M)))
    assert np.allclose(W, root @ polar(root @ K)[0], rtol=1e-6, atol=1e-7)
    # No other W that satisfies the constraint has a larger tr(W'K).
    for _ in range(10):
        other = root @ np.linalg.qr(random.standard_normal((shape[1], 3)))[0]
        assert np.trace(other.T @ K) <= np.trace(W.T @ K) * (1.0 + 1e-9)


def slow_fit(X, n_columns, alpha, graph_weight, entropy, n_rounds):
    """Follow the published order of updates with explicit matrices of the size of the features."""
    n_samples, n_features = X.shape
    X = X - X.mean(axis=0)
    X = X / np.sqrt(np.mean(X**2))
    beta = entropy * n_columns / n_samples
    F = np.linalg.svd(X, full_matrices=False)[0][:, :n_columns]
    G, epsilon, values = np.eye(n_features), None, []
    for _ in range(n_rounds):
        squares = np.sum((F[:, None] - F[None]) ** 2, axis=2)
        S = np.exp(-squares / (2.0 * beta))
        S /= S.sum(axis=1, keepdims=True)
        symmetric = (S + S.T) / 2.0
        L = np.diag(symmetric.sum(axis=1)) - symmetric
        root = np.linalg.inv(np.real(sqrtm(X.T @ X + alpha * G)))
        W = root @ polar(root @ X.T @ F)[0]
        A = np.eye(n_samples) - np.ones((n_samples, n_samples)) / n_samples + 2.0 * graph_weight * L
        F = power_iteration(A, X @ W, F).F
        epsilon = epsilon or 1e-8 * np.sqrt(np.mean(np.sum(W**2, axis=1)))
        norms = np.sqrt(np.sum(W**2, axis=1) + epsilon**2)
        G = np.diag(1.0 / (2.0 * norms))
        graph = np.trace(F.T @ L @ F) + beta * np.sum(S * np.log(S))
        values.append(np.sum((X @ W - F) ** 2) + alpha * norms.sum() + 2.0 * graph_weight * graph)
    return np.linalg.norm(W, axis=1), values


@pytest.mark.parametrize("shape", [(20, 6), (12, 30)])
@pytest.mark.parametrize(("alpha", "graph_weight", "entropy"), [(1.0, 0.1, 0.1), (0.1, 1.0, 0.5), (3.0, 0.0, 1.0)])
def test_the_fit_is_that_of_the_slow_twin(shape, alpha, graph_weight, entropy):
    X = np.random.default_rng(5).standard_normal(shape)
    scores, values = slow_fit(X, 3, alpha, graph_weight, entropy, n_rounds=4)
    selector = URAFS(3, n_clusters=3, alpha=alpha, graph_weight=graph_weight, entropy=entropy, max_iter=4, tol=0.0)
    with pytest.warns(ConvergenceWarning, match="URAFS stopped at max_iter=4"):
        selector.fit(X)
    assert np.allclose(selector.objective_, values, rtol=1e-7)
    assert np.allclose(selector.scores_, scores, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("graph_weight", [0.1, 100.0])
@pytest.mark.parametrize("init", ["pca", "random"])
def test_the_embedding_keeps_its_constraints(graph_weight, init):
    F = URAFS(3, graph_weight=graph_weight, init=init, max_iter=1000).fit(clusters()).embedding_
    assert np.allclose(F.T @ F, np.eye(5), atol=1e-10)
    assert np.allclose(F.mean(axis=0), 0.0, atol=1e-10)


def test_a_random_start_repeats_by_default_and_follows_its_seed():
    X = clusters()
    one, two, other = (URAFS(3, init="random", max_iter=500, **seed).fit(X) for seed in ({}, {}, {"random_state": 1}))
    assert np.array_equal(one.scores_, two.scores_)
    assert not np.allclose(one.scores_, other.scores_)
