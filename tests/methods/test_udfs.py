"""UDFS: the neighbourhoods, the local matrix, the eigenproblem in both forms, and what comes out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from l20fs.methods.udfs import (
    UDFS,
    local_root,
    neighbourhoods,
    smallest_eigenvectors,
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


def slow_local_matrix(X, n_neighbors, ridge):
    """Write out the definition: select, centre, invert and scatter, one neighbourhood at a time."""
    n_samples = len(X)
    total = np.zeros((n_samples, n_samples))
    for i in range(n_samples):
        distances = [np.linalg.norm(X[i] - X[j]) if j != i else -1.0 for j in range(n_samples)]
        members = np.argsort(distances)[: n_neighbors + 1]
        scatter_back = np.zeros((n_samples, n_neighbors + 1))
        scatter_back[members, np.arange(n_neighbors + 1)] = 1.0
        centring = np.eye(n_neighbors + 1) - np.ones((n_neighbors + 1, n_neighbors + 1)) / (n_neighbors + 1)
        local = centring @ X[members]
        inverse = np.linalg.inv(local @ local.T + ridge * np.eye(n_neighbors + 1))
        total += scatter_back @ centring @ inverse @ centring @ scatter_back.T
    return total


def mean_local_scatter(X, n_neighbors):
    """Return the mean squared distance of a sample to the centre of a neighbourhood it is in."""
    squares = []
    for i in range(len(X)):
        members = np.argsort(np.linalg.norm(X - X[i], axis=1))[: n_neighbors + 1]
        squares.extend(np.sum((X[members] - X[members].mean(axis=0)) ** 2, axis=1))
    return np.mean(squares)


def projection(W):
    return W @ W.T


@given(seed=seeds, shape=st.sampled_from([(12, 7), (5, 16), (9, 9)]), alpha=st.sampled_from([0.1, 1.0, 10.0]))
def test_both_forms_find_the_smallest_eigenvectors(seed, shape, alpha):
    random = np.random.default_rng(seed)
    Z, inverse_weights = random.standard_normal(shape), random.uniform(0.1, 2.0, shape[1])
    plain = Z.T @ Z + alpha * np.diag(1.0 / inverse_weights)
    eigenvalues, vectors = np.linalg.eigh(plain)
    expected = eigenvalues[:3].sum()
    is_unique = eigenvalues[3] - eigenvalues[2] > 1e-4 * eigenvalues[3]
    # Further rows of zeros change nothing but the form.
    for more in (0, shape[1]):
        W = smallest_eigenvectors(np.pad(Z, ((0, more), (0, 0))), inverse_weights, alpha, 3)
        assert np.allclose(W.T @ W, np.eye(3), atol=1e-9)
        assert np.trace(W.T @ plain @ W) == pytest.approx(expected, rel=1e-9)
        if is_unique:
            assert np.allclose(projection(W), projection(vectors[:, :3]), atol=1e-6)


@given(seed=seeds, shape=st.sampled_from([(20, 8), (8, 20)]), alpha=st.sampled_from([1e-3, 0.1, 10.0]))
def test_objective_never_rises_and_is_the_published_one(seed, shape, alpha):
    X = np.random.default_rng(seed).standard_normal(shape)
    selector = UDFS(3, n_clusters=2, n_neighbors=3, alpha=alpha, local_ridge=1.0, scale="none", max_iter=300, tol=1e-4).fit(
        X
    )
    assert np.all(np.diff(selector.objective_) <= 1e-9 * selector.objective_[:-1])
    assert np.sum(selector.scores_**2) == pytest.approx(2.0), "two columns of length 1"
    centred = X - X.mean(axis=0)
    Z = local_root(centred, neighbourhoods(centred, 3), 1.0)
    # Over orthonormal W, the norms of the rows add up to no less than the number of columns.
    lowest = np.linalg.eigvalsh(Z.T @ Z)[:2].sum() + 2.0 * alpha
    assert selector.objective_[-1] >= lowest * (1.0 - 1e-9)
    assert selector.objective_[-1] >= alpha * selector.scores_.sum() * (1.0 - 1e-9)


def test_one_step_without_reweighting_is_the_plain_eigenproblem():
    X = clusters()
    with pytest.warns(ConvergenceWarning, match="UDFS stopped at max_iter=1"):
        selector = UDFS(3, n_clusters=3, alpha=0.1, local_ridge=1.0, scale="none", max_iter=1).fit(X)
    centred = X - X.mean(axis=0)
    M = centred.T @ slow_local_matrix(centred, 5, mean_local_scatter(centred, 5)) @ centred
    W = np.linalg.eigh(M)[1][:, :3]
    assert np.allclose(selector.scores_, np.linalg.norm(W, axis=1), atol=1e-8)
    expected = np.trace(W.T @ M @ W) + 0.1 * np.linalg.norm(W, axis=1).sum()
    assert selector.objective_[0] == pytest.approx(expected, rel=1e-8)


def slow_fit(X, n_clusters, alpha, n_rounds):
    """Follow the published iteration with the plain matrix X'LX + alpha D."""
    X = X - X.mean(axis=0)
    M = X.T @ slow_local_matrix(X, 5, mean_local_scatter(X, 5)) @ X
    D, epsilon, values = np.eye(X.shape[1]), 1e-8 * np.sqrt(n_clusters / X.shape[1]), []
    for _ in range(n_rounds):
        W = np.linalg.eigh(M + alpha * D)[1][:, :n_clusters]
        norms = np.sqrt(np.sum(W**2, axis=1) + epsilon**2)
        D = np.diag(1.0 / (2.0 * norms))
        values.append(np.trace(W.T @ M @ W) + alpha * norms.sum())
    return np.linalg.norm(W, axis=1), values


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
def test_the_fit_is_that_of_the_slow_twin(alpha):
    X = clusters(n_samples=30)[:, [3, 11, 17, 0, 1, 2, 4, 5]]
    scores, values = slow_fit(X, 3, alpha, n_rounds=4)
    with pytest.warns(ConvergenceWarning, match="UDFS stopped at max_iter=4"):
        selector = UDFS(3, n_clusters=3, alpha=alpha, local_ridge=1.0, scale="none", max_iter=4, tol=0.0).fit(X)
    assert np.allclose(selector.objective_, values, rtol=1e-8)
    assert np.allclose(selector.scores_, scores, atol=1e-6)


def test_labels_are_ignored():
    X = clusters()
    labels = np.arange(60) % 2
    assert np.array_equal(UDFS(3).fit(X, labels).scores_, UDFS(3).fit(X).scores_)
    assert not hasattr(UDFS(3).fit(X, labels), "classes_")
