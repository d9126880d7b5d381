"""UDFS: the neighbourhoods, the local matrix, the eigenproblem in both forms, and what comes out."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from l20fs.data import load_srbct
from l20fs.methods.udfs import (
    UDFS,
    local_matrix,
    local_root,
    neighbourhoods,
    smallest_eigenvectors,
    smoothing,
    starting_weights,
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


@given(seed=seeds, n_neighbors=st.integers(1, 9))
def test_neighbourhoods_are_the_sample_and_its_nearest(seed, n_neighbors):
    X = np.random.default_rng(seed).standard_normal((10, 3))
    table = neighbourhoods(X, n_neighbors)
    assert table.shape == (10, n_neighbors + 1)
    for i, row in enumerate(table):
        distances = np.linalg.norm(X - X[i], axis=1)
        assert row[0] == i
        assert set(row) == set(np.argsort(distances)[: n_neighbors + 1])


def test_a_sample_is_in_its_neighbourhood_once_even_if_others_equal_it():
    table = neighbourhoods(np.array([[1.0], [1.0], [1.0], [5.0]]), 2)
    assert all(len(set(row)) == 3 and row[0] == i for i, row in enumerate(table))


def test_more_neighbours_than_samples_are_all_the_others():
    assert neighbourhoods(np.array([[0.0], [1.0], [5.0]]), 10).shape == (3, 3)


@given(seed=seeds, n_neighbors=st.integers(1, 5), local_ridge=st.sampled_from([1e-3, 1.0, 100.0]))
def test_local_matrix_is_the_definition(seed, n_neighbors, local_ridge):
    X = np.random.default_rng(seed).standard_normal((9, 4))
    L = local_matrix(X @ X.T, neighbourhoods(X, n_neighbors), local_ridge)
    slow = slow_local_matrix(X, n_neighbors, local_ridge * mean_local_scatter(X, n_neighbors))
    assert np.allclose(L, slow, rtol=1e-7, atol=1e-9 * np.abs(slow).max())
    assert np.array_equal(L, L.T)
    assert np.allclose(L @ np.ones(9), 0.0, atol=1e-9 * np.abs(slow).max()), "neighbourhoods are centred"


@pytest.mark.parametrize("n_features", [4, 30])
def test_root_squares_to_the_scatter(n_features, rtol):
    X = np.random.default_rng(0).standard_normal((12, n_features))
    table = neighbourhoods(X, 3)
    Z = local_root(X, table, 0.5)
    M = X.T @ local_matrix(X @ X.T, table, 0.5) @ X
    assert len(Z) < 12
    assert np.allclose(Z.T @ Z, M, rtol=rtol[X.dtype], atol=1e-10)


def test_units_of_x_do_not_matter():
    X = clusters()
    table = neighbourhoods(X, 5)
    assert np.allclose(local_root(X, table, 1.0), local_root(X * 1024.0, table, 1.0))


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
    for form in ("auto", "primal", "dual"):
        W = smallest_eigenvectors(Z, inverse_weights, alpha, 3, form=form)
        assert np.allclose(W.T @ W, np.eye(3), atol=1e-9)
        assert np.trace(W.T @ plain @ W) == pytest.approx(expected, rel=1e-9)
        if is_unique:
            assert np.allclose(projection(W), projection(vectors[:, :3]), atol=1e-6)


def test_the_dual_form_takes_weights_of_zero():
    random = np.random.default_rng(1)
    Z, inverse_weights = random.standard_normal((5, 16)), random.uniform(0.1, 2.0, 16)
    inverse_weights[[2, 9]] = 0.0
    dual, primal = (smallest_eigenvectors(Z, inverse_weights, 0.5, 3, form=form) for form in ("dual", "primal"))
    assert np.allclose(projection(dual), projection(primal), atol=1e-8)
    assert np.allclose(dual[[2, 9]], 0.0, atol=1e-12)


def test_all_eigenvectors_can_be_asked_for():
    W = smallest_eigenvectors(np.ones((1, 4)), np.ones(4), 1.0, 4)
    assert np.allclose(projection(W), np.eye(4))


@pytest.mark.parametrize("n_features", [25, 150])
def test_the_fit_is_the_same_in_both_forms(n_features, monkeypatch):
    X = clusters(n_features=n_features)
    fits = []
    for form in ("primal", "dual"):
        monkeypatch.setattr(
            "l20fs.methods.udfs.smallest_eigenvectors",
            lambda *args, form=form: smallest_eigenvectors(*args, form=form),
        )
        fits.append(UDFS(3, alpha=0.1, tol=1e-3).fit(X))
    primal, dual = fits
    assert np.allclose(primal.objective_, dual.objective_, rtol=1e-8)
    # The objective is flat at its minimum, so that weights agree to fewer digits than it does.
    assert np.allclose(primal.scores_, dual.scores_, atol=1e-4)


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


def test_a_heavy_penalty_leaves_one_row_per_column():
    selector = UDFS(3, n_clusters=3, alpha=1e4).fit(clusters())
    assert np.allclose(np.sort(selector.scores_)[-3:], 1.0, atol=1e-3)
    assert selector.objective_[-1] == pytest.approx(3e4, rel=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_features_that_make_clusters_come_first(seed):
    assert set(UDFS(3, n_clusters=3).fit(clusters(seed)).get_support(indices=True)) == {3, 11, 17}


def test_without_scaling_a_feature_of_small_variance_comes_first():
    X = clusters()
    X[:, 0] *= 1e-3
    assert UDFS(1, n_clusters=3, scale="none").fit(X).ranking_[0] <= 3
    assert UDFS(1, n_clusters=3).fit(X).ranking_[0] > 3


def test_labels_are_ignored():
    X = clusters()
    labels = np.arange(60) % 2
    assert np.array_equal(UDFS(3).fit(X, labels).scores_, UDFS(3).fit(X).scores_)
    assert not hasattr(UDFS(3).fit(X, labels), "classes_")


@pytest.mark.parametrize(("n_rows", "n_features"), [(6, 8), (20, 8)])
def test_the_start_is_the_identity_where_that_determines_the_columns(n_rows, n_features):
    assert starting_weights(np.ones((n_rows, n_features)), 2).tolist() == [1.0] * n_features


def test_the_start_prefers_features_that_vary_little_where_the_identity_leaves_a_choice():
    Z = np.array([[1.0, 2.0, 0.0, 1.0]])
    weights = starting_weights(Z, 2)
    assert np.allclose(weights[[0, 1, 3]], [1.5, 0.375, 1.5])
    assert weights[2] > 1e7
    assert starting_weights(np.zeros((1, 4)), 2).tolist() == [1.0] * 4


def test_more_features_than_samples_do_not_depend_on_the_order_of_features():
    X = clusters(n_samples=20, n_features=60)
    order = np.random.default_rng(1).permutation(60)
    fitted, permuted = (UDFS(5, alpha=0.1, tol=1e-3).fit(data) for data in (X, X[:, order]))
    assert np.allclose(permuted.objective_, fitted.objective_, rtol=1e-8)
    assert np.allclose(permuted.scores_, fitted.scores_[order], atol=1e-4)


def test_equal_features_and_samples_give_finite_scores_that_repeat():
    X = np.repeat(np.repeat(np.random.default_rng(0).standard_normal((3, 4)), 3, axis=0), 8, axis=1)
    one, two = (UDFS(3, n_neighbors=2, max_iter=100, tol=1e-3).fit(X) for _ in range(2))
    assert np.isfinite(one.scores_).all()
    assert np.array_equal(one.scores_, two.scores_)


def test_smoothing_is_small_against_a_row():
    assert smoothing(4, 100) == pytest.approx(2e-9)
    assert smoothing(1, 10**10) == 1e-12


def test_real_expression_data_take_no_square_matrix_of_features():
    X = load_srbct().data.astype(np.float64)
    tracemalloc.start()
    selector = UDFS(20, tol=1e-3).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * X.shape[1] ** 2 / 2
    assert selector.support_.sum() == 20
    assert np.all(np.diff(selector.objective_) <= 1e-9 * selector.objective_[:-1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "n_clusters=0 is not valid"),
        ({"n_neighbors": 1.5}, r"n_neighbors=1\.5 is not valid\. Use a whole number"),
        ({"alpha": 0.0}, r"alpha=0\.0 is not valid\. Use a number at least 1e-12"),
        ({"local_ridge": -1.0}, r"local_ridge=-1\.0 is not valid"),
        ({"scale": "unit"}, "scale='unit' is unknown"),
        ({"max_iter": 0}, "max_iter=0 is not valid"),
        ({"tol": -1.0}, r"tol=-1\.0 is not valid"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        UDFS(1, **parameters).fit(clusters())
