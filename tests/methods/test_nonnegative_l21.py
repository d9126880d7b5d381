"""NonnegativeL21: its proximal map by brute force, optimality conditions, NNLS, a slow twin, and a monotone descent."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, nnls
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from l20fs.data import load_srbct
from l20fs.methods.nonnegative_l21 import (
    NonnegativeL21,
    descend,
    duality_gap,
    largest_penalty,
    prox,
    row_scores,
    take_stock,
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


@given(seeds, st.floats(0.01, 3.0))
@settings(max_examples=30)
def test_prox_against_brute_force(seed, amount):
    """The convex problem of the definition, solved by a general method and looked up on a grid."""
    v = np.random.default_rng(seed).standard_normal(2) * 2

    def value(w):
        return np.sum((w - v) ** 2, axis=-1) / 2 + amount * np.linalg.norm(w, axis=-1)

    found = prox(v[None], amount)[0]
    assert np.all(found >= 0)
    axis = np.linspace(0.0, 8.0, 161)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    assert value(found) <= value(grid).min() + 1e-12
    start = np.maximum(v, 0.0) + 0.1
    best = minimize(value, start, bounds=[(0.0, None)] * 2, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10})
    assert value(found) <= best.fun + 1e-9
    # Strong convexity: a minimiser is unique, so equal values mean equal points.
    assert np.sum((found - best.x) ** 2) / 2 <= best.fun - value(found) + 1e-7


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


@given(seeds, st.floats(0.05, 0.9))
@settings(max_examples=25)
def test_the_gap_bounds_the_distance_to_the_minimum_from_above(seed, share):
    X, Y = make_problem(seed)
    lam = share * largest_penalty(X, Y)
    best = solve(X, Y, lam)
    random = np.random.default_rng(seed)
    for size in (0.0, 0.01, 1.0):
        W = best.W + size * np.abs(random.standard_normal(best.W.shape))
        step = take_stock(X, Y, W, lam)
        assert step.objective == pytest.approx(value_of(X, Y, W, lam))
        excess = step.objective - best.objective
        assert -1e-9 <= excess <= duality_gap(Y, step, lam) + 1e-9 * best.objective


@given(seeds, st.floats(0.01, 0.5))
@settings(max_examples=15)
def test_the_objective_never_rises(seed, share):
    random = np.random.default_rng(seed)
    X, Y = make_problem(seed, n_features=40)
    X = X @ (np.eye(40) + 2.0 * random.standard_normal((40, 1)) @ random.standard_normal((1, 40)))  # correlated features
    lam = share * largest_penalty(X, Y)
    values = [step.objective for step in islice(descend(X, Y, lam), 300)]
    assert values[0] < np.sum(Y * Y) / 2
    assert all(after <= before * (1 + 1e-13) for before, after in pairwise(values))


def test_the_iterates_are_those_of_the_textbook():
    """The accelerated method, its gradient taken afresh at the extrapolated point, before momentum first overshoots."""
    X, Y = make_problem(2)
    lam = 0.1 * largest_penalty(X, Y)
    lipschitz = np.linalg.norm(X, 2) ** 2
    W = Z = np.zeros((30, 3))
    t = 1.0
    for n, step in enumerate(islice(descend(X, Y, lam), 15)):
        V = prox(Z + X.T @ (Y - X @ Z) / lipschitz, lam / lipschitz)
        grown = (1 + np.sqrt(1 + 4 * t**2)) / 2
        W, Z, t = V, V + (t - 1) / grown * (V - W), grown
        np.testing.assert_allclose(step.W, W, atol=1e-12, err_msg=f"step {n}")


def test_momentum_is_worth_it():
    """Three hundred steps come closer to the minimum than three thousand without momentum."""
    X, Y = make_problem(0, n_features=60)
    lam = 0.02 * largest_penalty(X, Y)
    lipschitz = np.linalg.norm(X, 2) ** 2
    W = np.zeros((60, 3))
    for _ in range(3000):
        W = prox(W + X.T @ (Y - X @ W) / lipschitz, lam / lipschitz)
    *_, last = islice(descend(X, Y, lam), 300)
    assert last.objective <= value_of(X, Y, W, lam)


def test_rounding_does_not_take_the_momentum_away(paper_set):
    """About 2400 iterations; twice as many if every rise of the last digit counted as an overshoot."""
    assert NonnegativeL21(20, tol=1e-8, max_iter=3500).fit(*paper_set("brain")).gap_ <= 1e-8


def test_zero_rows_come_last_by_what_pulls_them():
    X, Y = make_problem(4)
    lam = 0.3 * largest_penalty(X, Y)
    step = solve(X, Y, lam)
    scores = row_scores(step, lam)
    zero = ~step.W.any(axis=1)
    assert 0 < zero.sum() < len(zero)
    np.testing.assert_allclose(scores[~zero], norms(step.W[~zero]), rtol=1e-12)
    assert scores[zero].max() <= 0 < scores[~zero].min()
    pulls = norms(np.maximum(X.T @ (Y - X @ step.W), 0.0))
    assert np.array_equal(np.argsort(scores[zero]), np.argsort(pulls[zero]))


def test_features_that_are_low_in_a_class_are_found_as_well():
    random = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = random.standard_normal((90, 20))
    X[:, 4] += 3.0 * (y == 1)
    X[:, 9] -= 3.0 * (y == 2)
    selector = NonnegativeL21(2).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [4, 9]
    assert selector.coef_.min() == 0.0
    assert selector.coef_[:, 4].argmax() == 1
    assert selector.coef_[2, 9] == 0.0 < selector.coef_[:2, 9].min()


def test_real_data_with_more_features_than_samples():
    tumours = load_srbct()
    X, y = tumours.data, tumours.target
    selector = NonnegativeL21(20).fit(X, y)
    assert selector.gap_ <= 1e-6
    assert np.all(np.diff(selector.objective_) <= 1e-13 * selector.objective_[:-1])
    assert np.all(selector.coef_ >= 0)
    centred, Y = X - X.mean(axis=0), selector.classes_ == np.asarray(y)[:, None]
    Y = Y - Y.mean(axis=0)
    assert selector.alpha_ == pytest.approx(0.1 * norms(np.maximum(centred.T @ Y, 0.0)).max())
    assert selector.objective_[-1] == pytest.approx(value_of(centred, Y, selector.coef_.T, selector.alpha_))
    assert 5 < selector.coef_.any(axis=0).sum() < 60


def test_features_without_any_relation_score_zero():
    X = np.array([[1.0, 2.0], [-1.0, -2.0], [1.0, 2.0], [-1.0, -2.0]])
    selector = NonnegativeL21(1).fit(X, ["a", "a", "b", "b"])
    assert selector.scores_.tolist() == [-1.0, -1.0]
    assert not selector.coef_.any()
    assert selector.gap_ == 0.0


def test_too_few_iterations_warn():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="NonnegativeL21 stopped at max_iter=3;"):
        selector = NonnegativeL21(2, max_iter=3).fit(X, y)
    assert selector.n_iter_ == 3
    assert selector.gap_ > 1e-6


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.0}, "alpha=0.0 is not valid. Use a number above 0 and below 1"),
        ({"alpha": 1.0}, "alpha=1.0 is not valid"),
        ({"max_iter": 0}, "max_iter=0 is not valid"),
        ({"tol": 0.0}, "tol=0.0 is not valid"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        NonnegativeL21(**parameters).fit(*load_iris(return_X_y=True))
