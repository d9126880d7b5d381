"""URAFS: each of the three updates against its definition, and the whole against a slow twin."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import polar, sqrtm
from sklearn.exceptions import ConvergenceWarning

from l20fs.data import load_srbct
from l20fs.methods import urafs
from l20fs.methods.urafs import (
    URAFS,
    entropy_graph,
    laplacian,
    power_iteration,
    starting_embedding,
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


@given(seed=seeds)
def test_laplacian_measures_squared_differences_along_edges(seed):
    random = np.random.default_rng(seed)
    S, F = random.dirichlet(np.ones(5), size=5), random.standard_normal((5, 2))
    L = laplacian(S)
    expected = sum(S[i, j] * np.sum((F[i] - F[j]) ** 2) for i in range(5) for j in range(5)) / 2.0
    assert np.trace(F.T @ L @ F) == pytest.approx(expected)
    assert np.allclose(L @ np.ones(5), 0.0, atol=1e-12)
    assert np.array_equal(L, L.T)


@given(seed=seeds, shape=st.sampled_from([(15, 6), (8, 20), (9, 9)]), form=st.sampled_from(["auto", "primal", "dual"]))
def test_weights_satisfy_their_constraint_and_are_the_polar_factor(seed, shape, form):
    random = np.random.default_rng(seed)
    X = random.standard_normal(shape)
    X -= X.mean(axis=0)
    F, penalties = orthonormal(random, shape[0], 3), random.uniform(0.1, 10.0, shape[1])
    W = uncorrelated_weights(X, F, penalties, form=form)
    M = X.T @ X + np.diag(penalties)
    K = X.T @ F
    assert np.allclose(W.T @ M @ W, np.eye(3), atol=1e-8)
    root = np.linalg.inv(np.real(sqrtm(M)))
    assert np.allclose(W, root @ polar(root @ K)[0], rtol=1e-6, atol=1e-7)
    # No other W that satisfies the constraint has a larger tr(W'K).
    for _ in range(10):
        other = root @ np.linalg.qr(random.standard_normal((shape[1], 3)))[0]
        assert np.trace(other.T @ K) <= np.trace(W.T @ K) * (1.0 + 1e-9)


@given(seed=seeds, shape=st.sampled_from([(15, 6), (8, 20)]))
def test_both_forms_give_the_same_weights(seed, shape):
    random = np.random.default_rng(seed)
    X = random.standard_normal(shape)
    X -= X.mean(axis=0)
    F = orthonormal(random, shape[0], 3)
    penalties = 10.0 ** random.uniform(-2.0, 6.0, shape[1])  # rows that shrink make penalties grow
    primal, dual = (uncorrelated_weights(X, F, penalties, form=form) for form in ("primal", "dual"))
    assert np.allclose(primal, dual, rtol=1e-6, atol=1e-8 * np.abs(primal).max())


def test_weights_survive_a_loss_of_rank():
    random = np.random.default_rng(0)
    X = np.outer(random.standard_normal(8), random.standard_normal(5))
    X -= X.mean(axis=0)
    penalties = np.ones(5)
    W = uncorrelated_weights(X, orthonormal(random, 8, 3), penalties)
    constraint = W.T @ (X.T @ X + np.diag(penalties)) @ W
    assert np.linalg.matrix_rank(W, tol=1e-10) == 1
    assert np.allclose(constraint @ constraint, constraint, atol=1e-8), "a projection in place of the identity"


def power_value(A, B, F):
    return np.trace(F.T @ A @ F) - 2.0 * np.trace(F.T @ B)


@given(seed=seeds, graph_weight=st.sampled_from([0.0, 0.1, 10.0]))
def test_power_iteration_never_rises_and_keeps_the_constraints(seed, graph_weight):
    random = np.random.default_rng(seed)
    F = orthonormal(random, 12, 3)
    A = np.eye(12) - 1.0 / 12 + 2.0 * graph_weight * laplacian(entropy_graph(F, 0.02))
    B = random.standard_normal((12, 3))
    B -= B.mean(axis=0)
    found = power_iteration(A, B, F)
    values = np.array(found.values)
    assert values[0] == pytest.approx(power_value(A, B, F))
    assert values[-1] == pytest.approx(power_value(A, B, found.F))
    assert np.all(np.diff(values) <= 1e-10 * np.abs(values[:-1]))
    assert np.allclose(found.F.T @ found.F, np.eye(3), atol=1e-10)
    assert np.allclose(found.F.mean(axis=0), 0.0, atol=1e-10)


def test_power_iteration_without_curvature_is_the_rotation_of_procrustes():
    random = np.random.default_rng(0)
    B = random.standard_normal((7, 3))
    B -= B.mean(axis=0)
    found = power_iteration(np.zeros((7, 7)), B, orthonormal(random, 7, 3))
    assert np.allclose(found.F, polar(B)[0])


def test_power_iteration_finds_the_minimum_on_a_circle():
    """With three samples and one column, F lies on a circle that can be searched."""
    random = np.random.default_rng(3)
    basis = orthonormal(random, 3, 2)
    A = basis @ np.diag([0.5, 2.0]) @ basis.T
    B = basis @ np.array([[1.0], [1.5]])
    angles = np.linspace(0.0, 2.0 * np.pi, 100_001)
    circle = basis @ np.vstack([np.cos(angles), np.sin(angles)])
    values = np.einsum("in,ij,jn->n", circle, A, circle) - 2.0 * (B.T @ circle)[0]
    found = power_iteration(A, B, basis[:, :1])
    assert found.values[-1] == pytest.approx(values.min(), abs=1e-6)
    assert np.allclose(found.F[:, 0], circle[:, values.argmin()], atol=1e-3)


def test_power_iteration_does_not_fall_to_the_constant_vector():
    """A constant column would cost nothing; only rounding leads there, and it grows with every step."""
    F = orthonormal(np.random.default_rng(0), 30, 2)
    A = np.eye(30) - 1.0 / 30
    B = np.zeros((30, 2))
    for _ in range(60):
        F = power_iteration(A * 1e3, B, F + 1e-9).F
    assert np.allclose(F.mean(axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize("init", ["pca", "random"])
@pytest.mark.parametrize("n_distinct", [3, 10])
def test_the_start_is_centred_and_orthonormal(init, n_distinct):
    X = np.random.default_rng(0).standard_normal((n_distinct, 7))[np.arange(10) % n_distinct]
    F = starting_embedding(X - X.mean(axis=0), 4, init, 0)
    assert np.allclose(F.T @ F, np.eye(4), atol=1e-10)
    assert np.allclose(F.mean(axis=0), 0.0, atol=1e-10)


def test_the_start_holds_the_principal_components():
    X = clusters()
    X -= X.mean(axis=0)
    F = starting_embedding(X, 2, "pca", 0)
    left = np.linalg.svd(X, full_matrices=False)[0][:, :2]
    assert np.allclose(F @ F.T, left @ left.T, atol=1e-8)


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


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("shape", [(60, 25), (30, 100)])
def test_the_fit_is_the_same_in_both_forms(form, shape, monkeypatch):
    X = clusters(n_samples=shape[0], n_features=shape[1])
    expected = URAFS(3, n_clusters=2).fit(X)
    monkeypatch.setattr(urafs, "uncorrelated_weights", lambda *args: uncorrelated_weights(*args, form=form))
    found = URAFS(3, n_clusters=2).fit(X)
    assert np.allclose(found.objective_, expected.objective_, rtol=1e-8)
    assert np.allclose(found.scores_, expected.scores_, rtol=1e-4, atol=1e-6)


def test_a_rotation_of_the_start_changes_nothing(monkeypatch):
    X = clusters()
    expected = URAFS(3, n_clusters=3).fit(X)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    monkeypatch.setattr(urafs, "starting_embedding", lambda *args: starting_embedding(*args) @ turn)
    turned = URAFS(3, n_clusters=3).fit(X)
    assert np.allclose(turned.objective_, expected.objective_, rtol=1e-8)
    assert np.allclose(turned.scores_, expected.scores_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("graph_weight", [0.1, 100.0])
@pytest.mark.parametrize("init", ["pca", "random"])
def test_the_embedding_keeps_its_constraints(graph_weight, init):
    F = URAFS(3, graph_weight=graph_weight, init=init, max_iter=1000).fit(clusters()).embedding_
    assert np.allclose(F.T @ F, np.eye(5), atol=1e-10)
    assert np.allclose(F.mean(axis=0), 0.0, atol=1e-10)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_features", [25, 200])
def test_features_that_make_clusters_come_first(seed, n_features):
    selector = URAFS(3, n_clusters=2).fit(clusters(seed, n_features=n_features))
    assert set(selector.get_support(indices=True)) == {3, 11, 17}
    assert selector.objective_[-1] < selector.objective_[0]


def test_a_random_start_repeats_by_default_and_follows_its_seed():
    X = clusters()
    one, two, other = (URAFS(3, init="random", max_iter=500, **seed).fit(X) for seed in ({}, {}, {"random_state": 1}))
    assert np.array_equal(one.scores_, two.scores_)
    assert not np.allclose(one.scores_, other.scores_)


def test_the_unit_of_x_does_not_matter():
    X = clusters()
    one, other = URAFS(3, n_clusters=2).fit(X), URAFS(3, n_clusters=2).fit(X * 1024.0)
    assert np.allclose(one.scores_, other.scores_)


def test_zscore_makes_the_units_of_features_irrelevant():
    X = clusters()
    factors = 2.0 ** np.random.default_rng(0).integers(-6, 7, size=25)
    one, other = (URAFS(3, n_clusters=2, scale="zscore", max_iter=500).fit(data) for data in (X, X * factors))
    assert np.allclose(one.scores_, other.scores_, rtol=1e-6)


def test_labels_are_ignored():
    X = clusters()
    assert np.array_equal(URAFS(3).fit(X, np.arange(60) % 2).scores_, URAFS(3).fit(X).scores_)


def test_equal_samples_and_features_give_finite_scores_that_repeat():
    X = np.repeat(np.repeat(np.random.default_rng(0).standard_normal((3, 4)), 3, axis=0), 5, axis=1)
    one, two = (URAFS(3, max_iter=500).fit(X) for _ in range(2))
    assert np.isfinite(one.scores_).all()
    assert np.array_equal(one.scores_, two.scores_)


def test_two_samples_have_one_column():
    assert URAFS(1).fit([[0.0, 1.0, 5.0], [1.0, 3.0, 5.5]]).embedding_.shape == (2, 1)


def test_real_expression_data_take_no_square_matrix_of_features():
    X = load_srbct().data.astype(np.float64)
    tracemalloc.start()
    selector = URAFS(20).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * X.shape[1] ** 2 / 2
    assert selector.support_.sum() == 20


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "n_clusters=0 is not valid"),
        ({"alpha": 0.0}, r"alpha=0\.0 is not valid\. Use a number above 0"),
        ({"graph_weight": -1.0}, r"graph_weight=-1\.0 is not valid\. Use a number at least 0"),
        ({"entropy": 0}, "entropy=0 is not valid"),
        ({"scale": "unit"}, "scale='unit' is unknown"),
        ({"init": "zeros"}, "init='zeros' is unknown. Use 'pca' or 'random'"),
        ({"max_iter": 0}, "max_iter=0 is not valid"),
        ({"tol": -1.0}, r"tol=-1\.0 is not valid"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        URAFS(1, **parameters).fit(clusters())
