"""RPMFS: its steps by definition, its end by the constraints, its loss by other solvers and by brute force."""

from __future__ import annotations

from itertools import combinations, islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import make_data
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import QuantileRegressor

from l20fs.methods.rpmfs import RPMFS, Centred, alm_iterates, l21_regression, sum_of_norms

seeds = st.integers(0, 2**32 - 1)
may_stop_early = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def one_hot(y):
    return np.eye(y.max() + 1)[y]


def twin(X, Y, k, V, E, mu, rho, n_iter):
    """The published steps, line by line, with dense systems and loops over rows."""
    n_features = X.shape[1]
    dual_W, dual_E = np.zeros_like(V), np.zeros_like(E)
    for _ in range(n_iter):
        T = Y + E - dual_E / mu
        b = T.mean(axis=0)
        W = np.linalg.solve(X.T @ X + np.eye(n_features), V - dual_W / mu + X.T @ T)
        Z = W + dual_W / mu
        V = np.zeros_like(Z)
        for j in sorted(range(n_features), key=lambda j: -np.linalg.norm(Z[j]))[:k]:
            V[j] = Z[j]
        Q = X @ W + b - Y + dual_E / mu
        E = np.array([max(0.0, 1 - 1 / (mu * np.linalg.norm(q))) * q for q in Q])
        dual_W = dual_W + mu * (W - V)
        dual_E = dual_E + mu * (X @ W + b - Y - E)
        mu = min(mu * rho, 1e10)
    return W, V, E, b


def reweighted_twin(X, Y, n_iter=3000):
    """Minimise the sum of norms by reweighted least squares with a column of ones, from equal weights."""
    A = np.column_stack([X, np.ones(len(X))])
    weights = np.ones(len(X))
    for _ in range(n_iter):
        coef = np.linalg.solve((A.T * weights) @ A, (A.T * weights) @ Y)
        weights = 1 / np.sqrt(np.sum((A @ coef - Y) ** 2, axis=1) + 1e-20)
    return coef[:-1], coef[-1]


@pytest.mark.parametrize("shape", [(30, 12), (12, 30)])
@pytest.mark.parametrize("scaled", [True, False])
def test_iterates_are_those_of_the_published_steps(shape, scaled):
    X, y = make_data(4, *shape)
    problem = Centred.of(X, one_hot(y), scaled=scaled)
    random = np.random.default_rng(0)
    V, E = random.uniform(size=(shape[1], 3)), random.uniform(size=(shape[0], 3))
    iterate = list(islice(alm_iterates(problem, 5, V, E, mu=0.1, rho=1.05), 40))[-1]
    _, V, _, b = twin(problem.X, problem.Y, 5, V, E, 0.1, 1.05, 40)
    np.testing.assert_allclose(iterate.V, V, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(iterate.bias, b, rtol=1e-7, atol=1e-10)
    assert iterate.loss == pytest.approx(sum_of_norms(problem.X @ V + b - problem.Y), rel=1e-9)


@may_stop_early
@given(seeds, st.integers(1, 12), st.booleans(), st.sampled_from(["zeros", "random"]))
@settings(max_examples=25)
def test_exactly_k_rows_which_are_the_selected_ones(seed, k, refit, init):
    X, y = make_data(seed)
    selector = RPMFS(k, refit=refit, init=init, max_iter=60, rho=1.2).fit(X, y)
    weights = np.linalg.norm(selector.coef_, axis=0)
    assert (weights > 0).sum() == k
    assert np.array_equal(weights > 0, selector.support_)


def test_the_refit_is_robust_regression():
    X, y = make_data(6, n_samples=80, n_features=10)
    Y = one_hot(y)
    W, bias = l21_regression(X, Y, Y.mean(axis=0) - Y)
    coef, intercept = reweighted_twin(X, Y)
    assert sum_of_norms(X @ W + bias - Y) == pytest.approx(sum_of_norms(X @ coef + intercept - Y), rel=1e-6)
    np.testing.assert_allclose(W, coef, atol=1e-3 * np.abs(coef).max())  # the minimum is flat


def test_one_numeric_target_is_least_absolute_deviations():
    """For one target a norm is an absolute value; scikit-learn solves that as a linear programme."""
    random = np.random.default_rng(7)
    X = random.standard_normal((50, 4)) + 3
    y = 100 * (X @ [3.0, -2.0, 1.0, 0.5]) + 40 * random.standard_t(2, 50)
    selector = RPMFS(4).fit(X, y)
    exact = QuantileRegressor(alpha=0, solver="highs").fit(X, y)
    assert selector.loss_ == pytest.approx(np.abs(exact.predict(X) - y).sum(), rel=1e-4)


@may_stop_early
@pytest.mark.parametrize("seed", range(3))
def test_brute_force_is_never_beaten_and_met_where_few_samples_lie(seed):
    """Every tenth sample has wild targets, which a sum of squares would follow."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((40, 10))
    Y = X[:, [1, 4, 6]] @ random.choice([-1.0, 1.0], (3, 2)) + 0.1 * random.standard_normal((40, 2))
    Y[::10] += 20 * random.standard_normal((4, 2))

    def best_loss(support):
        W, bias = l21_regression(X[:, support], Y, Y.mean(axis=0) - Y)
        return sum_of_norms(X[:, support] @ W + bias - Y)

    for k in (2, 3):
        losses = {support: best_loss(list(support)) for support in combinations(range(10), k)}
        selector = RPMFS(k).fit(X, Y)
        assert selector.loss_ >= min(losses.values()) * (1 - 1e-6)
    assert min(losses, key=losses.get) == (1, 4, 6)
    assert selector.get_support(indices=True).tolist() == [1, 4, 6]


def test_a_limit_that_is_too_low_is_reported():
    X, y = make_data()
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=3"):
        assert RPMFS(3, max_iter=3).fit(X, y).n_iter_ == 3
