from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import make_data
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import MultiTaskLasso

from l20fs.data import load_srbct
from l20fs.methods.l21 import duality_gap, solve_path
from l20fs.methods.rlsr import RLSR, scales, squared_norm

SHAPES = st.sampled_from([(9, 20), (20, 6), (12, 12)])
SEEDS = st.integers(0, 2**32 - 1)
POWERS = st.sampled_from([1.0, 0.7, 0.5])


def draw(seed, shape, n_classes=3):
    random = np.random.default_rng(seed)
    X = random.standard_normal(shape)
    return X - X.mean(axis=0), np.eye(n_classes)[random.permutation(np.arange(shape[0]) % n_classes)]


def row_norms(V):
    return np.linalg.norm(V, axis=1)


def solve(X, Y, gamma, p=1.0, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return RLSR(1, gamma=gamma, p=p, **options).fit(X, Y.argmax(axis=1))


def published_iteration(X, Y, gamma, p, n_iter):
    """Alternate W and theta as the problem states them, by d equations in the rescaled features."""
    Y = Y - Y.mean(axis=0)
    n_features = X.shape[1]
    theta = np.full(n_features, 1 / n_features)
    for _ in range(n_iter):
        root = np.diag(theta ** (1 / p - 0.5))
        W = np.linalg.solve(root @ X.T @ X @ root + gamma * np.eye(n_features), root @ X.T @ Y)
        V = root @ W
        theta = row_norms(V) ** p / np.sum(row_norms(V) ** p)
    return V, theta


@settings(max_examples=30)
@given(seed=SEEDS, shape=SHAPES, p=POWERS)
def test_it_is_the_published_iteration(seed, shape, p):
    X, Y = draw(seed, shape)
    found = solve(X, Y, 0.5, p, max_iter=4, tol=0.0, accelerate=False)
    V, theta = published_iteration(X, Y, 0.5, p, 4)
    assert np.allclose(found.coef_.T, V, atol=1e-7 * np.abs(V).max())
    assert np.allclose(found.scores_, theta, atol=1e-7)


@settings(max_examples=30)
@given(norms=st.lists(st.floats(0.01, 10), min_size=3, max_size=3), p=POWERS, seed=SEEDS)
def test_the_scales_are_the_best_on_the_simplex(norms, p, seed):
    """The penalty with its best scales is the squared l2,p norm; no other scales do better."""
    norms = np.array(norms)
    power = 2 / p - 1
    best = scales(norms, p)
    assert best.sum() == pytest.approx(1.0)
    assert np.sum(norms**2 / best**power) == pytest.approx(squared_norm(norms, p))
    others = np.random.default_rng(seed).dirichlet(np.ones(3), size=200) + 1e-12
    assert np.all(np.sum(norms**2 / others**power, axis=1) >= squared_norm(norms, p) * (1 - 1e-9))


@settings(max_examples=25)
@given(seed=SEEDS, shape=SHAPES, gamma=st.sampled_from([0.1, 1.0, 10.0]))
def test_with_p_1_it_is_least_squares_with_an_l21_penalty(seed, shape, gamma):
    X, Y = draw(seed, shape)
    V = solve(X, Y, gamma, max_iter=20000, tol=1e-13).coef_.T
    lam = 2 * gamma * row_norms(V).sum()
    # Optimal for ||X V - Y||^2 + lam ||V||_{2,1}: no row of the gradient is longer than lam, and those of live rows are.
    lengths = row_norms(2 * X.T @ (Y - Y.mean(axis=0) - X @ V))
    assert lengths.max() <= lam * (1 + 1e-3)
    live = row_norms(V) > 1e-3 * row_norms(V).max()
    assert np.allclose(lengths[live], lam, rtol=1e-3)


@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
def test_the_matching_multi_task_lasso_has_the_same_weights(gamma):
    X, y = load_digits(return_X_y=True)
    X, y = X[:60, np.ptp(X[:60], axis=0) > 0], y[:60]
    selector = RLSR(10, gamma=gamma, tol=1e-13, max_iter=20000).fit(X, y)
    lam = 2 * gamma * row_norms(selector.coef_.T).sum()
    lasso = MultiTaskLasso(alpha=lam / (2 * len(X)), tol=1e-10, max_iter=100000).fit(X, np.eye(10)[y])
    assert np.allclose(selector.coef_, lasso.coef_, atol=1e-4 * np.abs(lasso.coef_).max())
    assert np.allclose(selector.intercept_, lasso.intercept_, atol=1e-4)
    dead = ~lasso.coef_.any(axis=0)
    assert dead.any()
    assert selector.scores_[dead].max() < 1e-4


# Samples without label.


def hide(y, share, seed=0):
    """Hide the labels of a share of the samples, but of no class entirely."""
    hidden = np.random.default_rng(seed).random(len(y)) < share
    hidden[[np.flatnonzero(y == label)[0] for label in np.unique(y)]] = False
    return np.where(hidden, -1, y)


@settings(max_examples=25)
@given(seed=SEEDS, share=st.sampled_from([0.3, 0.8]))
def test_samples_without_label_end_on_the_simplex(seed, share):
    X, y = make_data(seed, n_samples=45)
    some = hide(y, share, seed)
    selector = RLSR(3, semi_supervised=True, max_iter=5000).fit(X, some)
    shares = selector.label_distributions_
    assert selector.classes_.tolist() == [0, 1, 2]
    assert np.all(shares >= 0)
    assert np.allclose(shares.sum(axis=1), 1)
    assert np.array_equal(shares[some != -1], np.eye(3)[y[some != -1]])
    assert np.all(np.diff(selector.objective_) <= 0)
    assert selector.scores_.sum() == pytest.approx(1.0)


def test_without_open_samples_it_is_the_supervised_answer():
    X, y = make_data()
    supervised, semi = RLSR(3).fit(X, y), RLSR(3, semi_supervised=True).fit(X, y)
    assert np.array_equal(supervised.scores_, semi.scores_)
    assert np.array_equal(semi.label_distributions_, np.eye(3)[y])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([-1, -1, -1, -1], "y has no label: all samples are -1"),
        ([2, -1, 2, -1], "y has one class only, '2'"),
        (["a", "b", "-1", "-1"], "y holds text labels. Turn the labels into numbers"),
    ],
)
def test_bad_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        RLSR(1, semi_supervised=True).fit(np.arange(8.0).reshape(4, 2), y)


@pytest.mark.parametrize("gamma", [1.0, 100.0])
def test_the_duality_gap_of_the_matching_l21_problem_certifies_the_answer(gamma):
    """lambda = 2 gamma ||V||_{2,1} makes V the minimum of the l2,1 problem, whose gap bounds what is left to gain."""
    tumours = load_srbct()
    selector = RLSR(20, gamma=gamma).fit(tumours.data, tumours.target)
    X = tumours.data - tumours.data.mean(axis=0)
    Y = np.eye(4)[np.unique(tumours.target, return_inverse=True)[1]]
    Y -= Y.mean(axis=0)
    V = selector.coef_.T
    lam = 2 * gamma * row_norms(V).sum()
    # Reweighting creeps near zero rows: at the default tolerance the gap is below 1e-4 of the zero model.
    assert 0.0 <= duality_gap(X, Y, V, lam) <= 1e-3 * np.sum(Y**2)
    *_, exact = solve_path(X, Y, np.array([lam]), tol=1e-8, max_iter=10000)
    assert np.abs(exact.W - V).max() <= 0.02 * np.abs(exact.W).max()
    best = np.argsort(-row_norms(exact.W))[:5]
    assert set(best) == set(np.flatnonzero(selector.ranking_ <= 5))
