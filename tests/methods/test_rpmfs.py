"""RPMFS: its steps by definition, its end by the constraints, its loss by other solvers and by brute force."""

from __future__ import annotations

from itertools import combinations, islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import make_data
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import QuantileRegressor

from l20fs.methods.rpmfs import RPMFS, Centred, alm_iterates, l21_regression, ridge_solver, split_rows, sum_of_norms
from l20fs.objective.prox import shrink_rows

seeds = st.integers(0, 2**32 - 1)
may_stop_early = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def one_hot(y):
    return np.eye(y.max() + 1)[y]


def zero_model(Y):
    return sum_of_norms(Y - Y.mean(axis=0))


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


@pytest.mark.parametrize("form", ["dual", "primal"])
@pytest.mark.parametrize("shape", [(8, 20), (20, 8)])
def test_the_step_of_W_is_the_dense_solution(form, shape):
    random = np.random.default_rng(3)
    X = random.standard_normal(shape)
    U, T = random.standard_normal((shape[1], 3)), random.standard_normal((shape[0], 3))
    W, fitted = ridge_solver(X, form)(U, T)
    expected = np.linalg.solve(X.T @ X + np.eye(shape[1]), U + X.T @ T)
    np.testing.assert_allclose(W, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fitted, X @ expected, rtol=1e-9, atol=1e-12)


@given(seeds)
@settings(max_examples=20)
def test_the_step_of_E_minimises_its_definition(seed):
    """E_i minimises ||e|| + mu/2 ||e - q||^2, and such an e lies on the ray of q."""
    random = np.random.default_rng(seed)
    Q, mu = random.standard_normal((6, 3)), random.uniform(0.3, 3.0)
    for e, q in zip(shrink_rows(Q, 1 / mu), Q, strict=True):
        found = minimize_scalar(
            lambda t, q=q: np.linalg.norm(t * q) + mu / 2 * np.sum((t * q - q) ** 2),
            bounds=(0, 1),
            method="bounded",
            options={"xatol": 1e-9},
        )
        np.testing.assert_allclose(e, found.x * q, atol=1e-6)  # a minimum is found to the root of its rounding


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


@pytest.mark.parametrize(("k", "larger"), [(5, 0), (12, 1)])
def test_the_gap_is_the_larger_of_both_constraints(k, larger):
    """With all rows kept, W is V and the residual decides; with few rows, W and V are further apart."""
    X, y = make_data(4, 40, 12)
    problem = Centred.of(X, one_hot(y), scaled=True)
    start = np.zeros((12, 3)), -problem.Y
    for n_iter, iterate in enumerate(islice(alm_iterates(problem, k, *start, mu=0.1, rho=1.05), 2, 20), 3):
        W, V, E, b = twin(problem.X, problem.Y, k, *start, 0.1, 1.05, n_iter)
        distances = np.linalg.norm(W - V), np.linalg.norm(problem.X @ W + b - problem.Y - E)
        relative = distances / np.array([np.linalg.norm(V), np.sqrt(40)])
        assert iterate.gap == pytest.approx(relative.max(), rel=1e-6)
    assert relative.argmax() == larger


@pytest.mark.parametrize("shape", [(60, 12), (30, 80)])
def test_the_constraints_hold_at_the_end(shape):
    X, y = make_data(1, *shape)
    selector = RPMFS(3, refit=False, max_iter=3000).fit(X, y)
    assert selector.n_iter_ < selector.max_iter
    problem = Centred.of(X, one_hot(y), scaled=True)
    start = np.zeros((shape[1], 3)), -problem.Y
    W, V, E, b = twin(problem.X, problem.Y, 3, *start, selector.mu, selector.rho, selector.n_iter_)
    assert np.linalg.norm(W - V) < selector.tol * np.linalg.norm(V)
    assert np.linalg.norm(problem.X @ W + b - problem.Y - E) < selector.tol * np.sqrt(shape[0])
    np.testing.assert_allclose(selector.coef_.T, problem.unscale(V), rtol=1e-6, atol=1e-9)


@may_stop_early
@given(seeds, st.integers(1, 12), st.booleans(), st.sampled_from(["zeros", "random"]))
@settings(max_examples=25)
def test_exactly_k_rows_which_are_the_selected_ones(seed, k, refit, init):
    X, y = make_data(seed)
    selector = RPMFS(k, refit=refit, init=init, max_iter=60, rho=1.2).fit(X, y)
    weights = np.linalg.norm(selector.coef_, axis=0)
    assert (weights > 0).sum() == k
    assert np.array_equal(weights > 0, selector.support_)


@may_stop_early
@given(seeds, st.sampled_from(["zeros", "random"]), st.sampled_from([1.0, 1.02, 1.5]))
@settings(max_examples=25)
def test_never_worse_than_the_zero_model_nor_than_V(seed, init, rho):
    X, y = make_data(seed, n_samples=20, n_features=30)
    options = {"init": init, "rho": rho, "max_iter": 60}
    refitted = RPMFS(4, **options).fit(X, y)
    slack = 1 + 1e-7  # norms are smoothed by 1e-8
    assert refitted.loss_ <= zero_model(one_hot(y)) * slack
    assert refitted.loss_ <= RPMFS(4, refit=False, **options).fit(X, y).loss_ * slack


@may_stop_early
@pytest.mark.parametrize("refit", [True, False])
def test_the_loss_is_that_of_coef_and_intercept(refit):
    X, y = make_data(2)
    X = X * 7 + 100
    selector = RPMFS(3, refit=refit).fit(X, y)
    assert selector.loss_ == pytest.approx(sum_of_norms(X @ selector.coef_.T + selector.intercept_ - one_hot(y)), rel=1e-9)
    if not refit:
        assert selector.loss_ == pytest.approx(selector.objective_[-1], rel=1e-9)


def test_all_features_converge_to_robust_regression():
    """Without a choice to make the problem is convex: the iteration alone must reach its minimum."""
    X, y = make_data(5, n_samples=80, n_features=10)
    with pytest.warns(UserWarning, match="All the features will be returned"):
        selector = RPMFS(20, refit=False, rho=1.01, max_iter=5000, tol=1e-7).fit(X, y)
    coef, intercept = reweighted_twin(X, one_hot(y))
    assert selector.loss_ == pytest.approx(sum_of_norms(X @ coef + intercept - one_hot(y)), rel=1e-6)
    np.testing.assert_allclose(selector.coef_.T, coef, atol=1e-3 * np.abs(coef).max())  # the minimum is flat
    np.testing.assert_allclose(selector.intercept_, intercept, atol=1e-3)


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


def test_the_refit_interpolates_where_it_can():
    """More features than samples and two equal ones: the system is singular and the loss must still reach zero."""
    X, y = make_data(8, n_samples=15, n_features=40)
    X[:, 1] = X[:, 0]
    W, bias = l21_regression(X, one_hot(y), one_hot(y))
    assert sum_of_norms(X @ W + bias - one_hot(y)) < 1e-6


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


@given(seeds, st.floats(1e-3, 1e3), st.floats(-10, 10))
@settings(max_examples=10)
def test_units_of_data_and_targets_do_not_matter(seed, factor, shift):
    random = np.random.default_rng(seed)
    X = random.standard_normal((30, 10))
    Y = X[:, :2] @ random.standard_normal((2, 2)) + 0.1 * random.standard_normal((30, 2))
    options = {"max_iter": 50, "tol": 1e-100}
    with pytest.warns(ConvergenceWarning):
        one = RPMFS(2, **options).fit(X, Y)
    with pytest.warns(ConvergenceWarning):
        two = RPMFS(2, **options).fit(X / factor + shift, factor * (Y + shift))
    np.testing.assert_allclose(two.scores_, one.scores_ * factor**2, rtol=1e-5, atol=1e-7 * factor**2)
    assert two.loss_ == pytest.approx(one.loss_ * factor, rel=1e-5)


def test_rows_of_V_come_first_then_the_others_by_norm():
    norms = np.array([1.0, 5.0, 3.0, 5.0, 2.0])
    V = np.array([0.0, 0.0, 3.0, 5.0, 0.0])[:, None]  # of the equal features 1 and 3, V has the latter
    support, rest = split_rows(norms, V, 2)
    assert support.tolist() == [3, 2]
    assert rest.tolist() == [1, 4, 0]


@may_stop_early
def test_the_objective_may_rise():
    X, y = make_data(0)
    steps = np.diff(RPMFS(3).fit(X, y).objective_)
    assert (steps > 0).any()
    assert (steps < 0).any()


@may_stop_early
def test_the_random_start_depends_on_its_seed_only():
    X, y = make_data(9, n_samples=20, n_features=30)
    one, two, other = (RPMFS(3, init="random", random_state=seed, max_iter=20).fit(X, y) for seed in (1, 1, 2))
    assert np.array_equal(one.objective_, two.objective_)
    assert not np.allclose(one.objective_, other.objective_)


def test_srbct_ends_where_a_sound_schedule_does(paper_set):
    X, y = paper_set("srbct")
    selector = RPMFS(20).fit(X, y)
    assert X.shape[0] == 63
    assert selector.n_iter_ < 500
    assert selector.loss_ < 12  # 52.8 without any feature


def test_a_limit_that_is_too_low_is_reported():
    X, y = make_data()
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=3"):
        assert RPMFS(3, max_iter=3).fit(X, y).n_iter_ == 3


def test_a_start_that_has_not_moved_is_no_solution():
    """The first iteration from zero leaves V at zero, where both constraints hold at once."""
    X, y = make_data()
    with pytest.warns(ConvergenceWarning):
        selector = RPMFS(3, max_iter=1, tol=1.5).fit(X, y)
    assert selector.support_.sum() == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mu": 0}, "mu=0 is not valid. Use a number above 0"),
        ({"rho": 0.9}, "rho=0.9 is not valid. Use a number at least 1"),
        ({"init": "ones"}, "init='ones' is unknown. Use 'zeros' or 'random'"),
        ({"max_iter": 0}, "max_iter=0 is not valid"),
        ({"tol": 0}, "tol=0 is not valid"),
        ({"n_features_to_select": None}, "n_features_to_select=None is not valid"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(options, message):
    X, y = make_data()
    with pytest.raises(ValueError, match=message):
        RPMFS(**options).fit(X, y)
