"""The robust loss: monotone, a minimum of F on its rows, and not misled by wrong labels and wild targets."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import robust_greedy, robust_unit
from scipy.optimize import minimize

from l20fs import Constraints, L20Classifier, L20Regressor, L20Selector
from l20fs.design import finish
from l20fs.objective import make_problem
from l20fs.solvers import forward, swap
from l20fs.solvers.robust import robust

robust_module = importlib.import_module("l20fs.solvers.robust")  # the package has the function under this name

SEEDS = st.integers(0, 2**32 - 1)
EXCHANGES = pytest.mark.parametrize("with_exchanges", [False, True])


def make_groups(seed, n_samples=90, n_features=80):
    """Three groups that features 0 to 5, two for each, tell apart; one-hot targets."""
    random = np.random.default_rng(seed)
    Y = np.eye(3)[random.permutation(np.arange(n_samples) % 3)]
    X = random.standard_normal((n_samples, n_features))
    X[:, :6] = 2.0 * np.repeat(Y, 2, axis=1) + 0.6 * random.standard_normal((n_samples, 6))
    return X, Y, random


def with_wrong_labels(seed, n_wrong=12):
    X, Y, random = make_groups(seed)
    wrong = random.choice(len(Y), n_wrong, replace=False)
    Y[wrong] = Y[wrong][:, [1, 2, 0]]
    return X, Y, wrong


def with_wild_targets(seed, n_wild=12):
    """Three continuous targets made of features 0 to 5, some of which are far off."""
    X, _, random = make_groups(seed)
    Y = X[:, :6] @ random.standard_normal((6, 3)) + 0.3 * random.standard_normal((len(X), 3))
    wild = random.choice(len(Y), n_wild, replace=False)
    Y[wild] += 15.0 * random.standard_normal((n_wild, 3))
    return X, Y, wild


def n_true(path):
    return len(set(path.support(6).tolist()) & set(range(6)))


def value(X, Y, W, b, mu):
    """F by its formula."""
    unit = np.sqrt(((Y - Y.mean(axis=0)) ** 2).sum() / len(Y))
    delta = robust_module.DELTA * unit
    errors = np.linalg.norm(X @ W + b - Y, axis=1)
    lengths = np.where(errors >= delta, errors, (errors**2 / delta + delta) / 2)
    return unit * lengths.sum() + 0.5 * mu * (W**2).sum()


@EXCHANGES
@pytest.mark.parametrize("ridge", [0.0, 0.1, 5.0])
@given(seed=SEEDS)
@settings(max_examples=3)
def test_the_loss_falls_with_every_row(with_exchanges, ridge, seed):
    X, Y, _ = with_wrong_labels(seed)
    path = finish(robust(make_problem(X[:, :30], Y, ridge=ridge), 5, with_exchanges=with_exchanges)).path
    assert len(path.losses) == 6
    assert (np.diff(path.losses) < 0.0).all()
    assert path.converged.all()


@st.composite
def small_problems(draw):
    """X, Y and sample weights: outliers, targets that most samples meet exactly, repeated samples, or few labels."""
    random = np.random.default_rng(draw(SEEDS))
    n_samples, n_features, n_targets = draw(st.tuples(st.integers(10, 20), st.integers(4, 6), st.integers(1, 3)))
    kind = draw(st.sampled_from(["wild", "exact", "repeated", "labels"]))
    X = random.standard_normal((n_samples, n_features))
    Y = X[:, :2] @ random.standard_normal((2, n_targets))
    if kind != "exact":
        Y += 0.5 * random.standard_normal(Y.shape)
    wild = random.random(n_samples) < 0.25
    Y[wild] += 10.0 * random.standard_normal((np.count_nonzero(wild), n_targets))
    if kind == "labels":
        y = (random.random(n_samples) < 0.3).astype(int)
        y[:2] = 0, 1
        Y = np.eye(2)[y]
        X[:, 0] += 3.0 * y
    if kind == "repeated":
        drawn = random.integers(0, n_samples // 2, n_samples)
        X, Y = X[drawn] + 1e-3 * random.standard_normal(X.shape), Y[drawn]
    weights = random.choice([0.0, 0.1, 1.0, 2.0], n_samples) if draw(st.booleans()) else np.ones(n_samples)
    weights[:4] = 1.0
    return X, Y, weights


@EXCHANGES
@pytest.mark.parametrize("ridge", [0.0, 0.1, 3.0])
@given(drawn=small_problems())
@settings(max_examples=4)
def test_no_size_is_above_plain_greedy(with_exchanges, ridge, drawn):
    """At every size of the path, against all candidates, each solved slowly to its minimum."""
    X, Y, weights = drawn
    problem = make_problem(X, Y, ridge=ridge, sample_weight=weights)
    losses = finish(robust(problem, 3, with_exchanges=with_exchanges)).path.losses
    slow = robust_greedy(X, Y, len(losses) - 1, problem.ridge, weights, robust_module.DELTA)
    assert (losses <= np.array(slow) * (1.0 + 1e-6)).all()


@pytest.mark.parametrize("ridge", [0.0, 0.05, 1.0])
@given(drawn=small_problems())
@settings(max_examples=25)
def test_no_exchange_of_two_features_lowers_the_loss(ridge, drawn):
    """Against all exchanges, each as the minimum on the features that are included."""
    X, Y, weights = drawn
    options = {"loss": "l21", "solver": "swap", "ridge": ridge, "scale": "none"}

    def path(k, include):
        return L20Regressor(k, constraints=Constraints(include=include), **options).fit(X, Y, sample_weight=weights).path_

    def loss(panel):
        return path(len(panel), panel).losses[-1]

    panel = path(3, None).coef_rows.tolist()
    others = sorted(set(range(X.shape[1])) - set(panel))
    lowest = min(loss([*(kept for kept in panel if kept != left), new]) for left in panel for new in others)
    assert lowest >= loss(panel) * (1.0 - 1e-6)


@EXCHANGES
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("ridge", [0.1, 5.0])
@given(seed=SEEDS)
@settings(max_examples=3)
def test_the_last_stage_is_the_minimum_on_its_rows(with_exchanges, container, ridge, seed):
    """On given rows F is convex: a general solver must find nothing better."""
    X, Y, _ = with_wild_targets(seed)
    X = X[:, :20]
    problem = make_problem(container(X), Y, ridge=ridge)
    path = finish(robust(problem, 3, with_exchanges=with_exchanges)).path
    rows = path.coef_rows
    W, b = path.coef(3)[:, rows].T, path.intercept(3)
    assert path.losses[-1] == pytest.approx(value(X[:, rows], Y, W, b, problem.ridge), rel=1e-9)

    def objective(flat):
        return value(X[:, rows], Y, flat[:9].reshape(3, 3), flat[9:], problem.ridge)

    found = minimize(objective, np.concatenate([W.ravel(), b]), method="BFGS", options={"gtol": 1e-4})
    assert path.losses[-1] <= found.fun * (1.0 + 1e-6)


@EXCHANGES
def test_wrong_labels_mislead_squares_more(with_exchanges):
    solver = swap if with_exchanges else forward
    squared, lengths = [], []
    for seed in range(4):
        X, Y, _ = with_wrong_labels(seed)
        problem = make_problem(X, Y, ridge=0.1, scale="zscore")
        squared.append(n_true(finish(solver(problem, 6))))
        lengths.append(n_true(finish(robust(problem, 6, with_exchanges=with_exchanges)).path))
    assert np.mean(lengths) >= np.mean(squared) + 1.0
    assert np.mean(lengths) >= 5.0


@EXCHANGES
def test_wild_targets_mislead_squares_much_more(with_exchanges):
    solver = swap if with_exchanges else forward
    squared, lengths = [], []
    for seed in range(4):
        X, Y, _ = with_wild_targets(seed)
        problem = make_problem(X, Y, ridge=0.1, scale="zscore")
        squared.append(n_true(finish(solver(problem, 6))))
        lengths.append(n_true(finish(robust(problem, 6, with_exchanges=with_exchanges)).path))
    assert np.mean(lengths) >= 5.5
    assert np.mean(squared) <= 3.0


def test_without_errors_both_losses_find_the_features():
    for seed in range(5):
        X, Y, _ = make_groups(seed)
        assert n_true(finish(robust(make_problem(X, Y, ridge=1.0, scale="zscore"), 6)).path) == 6


def test_units_of_the_targets_do_not_matter():
    X, Y, _ = with_wild_targets(0)
    first = finish(robust(make_problem(X, Y, ridge=0.5), 6)).path
    second = finish(robust(make_problem(X, 1000.0 * Y, ridge=0.5), 6)).path
    assert first.support(6).tolist() == second.support(6).tolist()
    np.testing.assert_allclose(second.losses, 1e6 * first.losses, rtol=1e-6)


@pytest.mark.parametrize("solver", ["forward", "swap"])
def test_the_selector_names_the_samples_that_do_not_fit(solver):
    X, Y, wrong = with_wrong_labels(3)
    selector = L20Selector(6, loss="l21", solver=solver, ridge=1.0).fit(X, Y.argmax(axis=1))
    assert selector.get_support(indices=True).tolist() == list(range(6))
    suspects = np.argsort(selector.sample_weights_)[: len(wrong)]
    assert len(set(suspects) & set(wrong)) >= len(wrong) - 1
    refit = selector.path_.refit(6)
    np.testing.assert_allclose(refit.coef, selector.coef_, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("solver", ["forward", "swap"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 2: 0.5}])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(seed=SEEDS)
@settings(max_examples=2)
def test_losses_and_sample_weights_belong_to_the_weights(solver, class_weight, dtype, seed):
    X, Y, random = make_groups(seed, n_samples=30, n_features=12)
    X, y, given_weights = X.astype(dtype), Y.argmax(axis=1), random.choice([0.0, 0.5, 1.0, 2.0], 30)
    given_weights[:6] = 1.0
    selector = L20Classifier(3, loss="l21", solver=solver, ridge=0.1, scale="zscore", class_weight=class_weight)
    path = selector.fit(X, y, sample_weight=given_weights).path_
    scaled, rtol = Y * path.y_scale, 1e-9 if dtype == np.float64 else 1e-4
    unit = robust_unit(scaled, given_weights)
    delta = robust_module.DELTA * unit
    mu = selector.ridge_ * given_weights.sum()  # of z-scores

    def evaluate(coef, intercept):
        """The loss by its formula, and the lengths."""
        errors = (X.astype(np.float64) @ coef.T + intercept - Y) * path.y_scale
        W = (coef * path.x_scale).T * path.y_scale
        lengths = np.linalg.norm(errors, axis=1)
        rounded = np.where(lengths < delta, (lengths**2 / delta + delta) / 2.0, lengths)
        return unit * given_weights @ rounded + 0.5 * mu * (W**2).sum(), lengths

    value, lengths = evaluate(path.coef(3), path.intercept(3))
    assert path.losses[-1] == pytest.approx(value, rel=rtol)
    assert selector.path_.objectives[-1] == pytest.approx(value + 3.0 * path.alphas[-1], rel=rtol)
    expected = given_weights * unit / np.maximum(lengths, delta)
    np.testing.assert_allclose(selector.sample_weights_, expected, rtol=1e-4 if dtype == np.float64 else 0.05)
    for k in (1, 2, 3):
        refit = path.refit(k)
        assert refit.loss == pytest.approx(evaluate(refit.coef, refit.intercept)[0], rel=rtol)
    assert path.refit(3).loss == pytest.approx(value, rel=1e-6)


def test_squared_loss_has_no_sample_weights():
    X, Y, _ = make_groups(0)
    selector = L20Selector(6, loss="l21").fit(X, Y.argmax(axis=1))
    selector.set_params(loss="squared_error").fit(X, Y.argmax(axis=1))
    assert not hasattr(selector, "sample_weights_")


@pytest.mark.parametrize(
    ("loss", "solver", "message"), [("l21", "ahiht", "solver='forward'"), ("huber", "forward", "loss=")]
)
def test_what_is_not_available_is_refused(loss, solver, message):
    X, Y, _ = make_groups(0)
    with pytest.raises(ValueError, match=message):
        L20Selector(6, loss=loss, solver=solver).fit(X, Y.argmax(axis=1))
