"""The robust loss: monotone, a minimum of F on its rows, and not misled by wrong labels and wild targets."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from l20fs import L20Selector
from l20fs.objective.least_squares import LeastSquares
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
@settings(max_examples=5)
def test_the_objective_never_rises(with_exchanges, ridge, seed):
    X, Y, _ = with_wrong_labels(seed)
    problem = LeastSquares(X[:, :30], Y, ridge=ridge)
    values: list[float] = []

    def watch(loss, active, function=robust_module.RobustLoss.value):
        values.append(function(loss, active))
        return values[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(robust_module.RobustLoss, "value", watch)
        path = robust(problem, 5, with_exchanges=with_exchanges).path
    assert len(values) > 6
    assert (np.diff(values) <= 1e-9 * values[0]).all()
    assert (np.diff(path.losses) < 0.0).all()


@EXCHANGES
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("ridge", [0.1, 5.0])
@given(seed=SEEDS)
@settings(max_examples=3)
def test_the_last_stage_is_the_minimum_on_its_rows(with_exchanges, container, ridge, seed):
    """On given rows F is convex: a general solver must find nothing better."""
    X, Y, _ = with_wild_targets(seed)
    X = X[:, :20]
    problem = LeastSquares(container(X), Y, ridge=ridge)
    path = robust(problem, 3, with_exchanges=with_exchanges).path
    rows = path.coef_rows
    W, b = path.coef(3)[:, rows].T, path.intercept(3)
    assert path.losses[-1] == pytest.approx(value(X[:, rows], Y, W, b, problem.ridge), rel=1e-9)

    def objective(flat):
        return value(X[:, rows], Y, flat[:9].reshape(3, 3), flat[9:], problem.ridge)

    found = minimize(objective, np.concatenate([W.ravel(), b]), method="BFGS", options={"gtol": 1e-4})
    assert path.losses[-1] <= found.fun * (1.0 + 1e-4)


@EXCHANGES
def test_wrong_labels_mislead_squares_more(with_exchanges):
    solver = swap if with_exchanges else forward
    squared, lengths = [], []
    for seed in range(4):
        X, Y, _ = with_wrong_labels(seed)
        problem = LeastSquares(X, Y, ridge=0.1, scale="zscore")
        squared.append(n_true(solver(problem, 6)))
        lengths.append(n_true(robust(problem, 6, with_exchanges=with_exchanges).path))
    assert np.mean(lengths) >= np.mean(squared) + 1.0
    assert np.mean(lengths) >= 5.0


@EXCHANGES
def test_wild_targets_mislead_squares_much_more(with_exchanges):
    solver = swap if with_exchanges else forward
    squared, lengths = [], []
    for seed in range(4):
        X, Y, _ = with_wild_targets(seed)
        problem = LeastSquares(X, Y, ridge=0.1, scale="zscore")
        squared.append(n_true(solver(problem, 6)))
        lengths.append(n_true(robust(problem, 6, with_exchanges=with_exchanges).path))
    assert np.mean(lengths) >= 5.5
    assert np.mean(squared) <= 3.0


def test_without_errors_both_losses_find_the_features():
    for seed in range(5):
        X, Y, _ = make_groups(seed)
        assert n_true(robust(LeastSquares(X, Y, ridge=1.0, scale="zscore"), 6).path) == 6


def test_where_every_error_is_small_it_is_least_squares(monkeypatch):
    monkeypatch.setattr(robust_module, "DELTA", 1e6)
    X, Y, _ = make_groups(0)
    problem = LeastSquares(X, Y)
    assert robust(problem, 6).path.support(6).tolist() == forward(problem, 6).support(6).tolist()


def test_units_of_the_targets_do_not_matter():
    X, Y, _ = with_wild_targets(0)
    first = robust(LeastSquares(X, Y, ridge=0.5), 6).path
    second = robust(LeastSquares(X, 1000.0 * Y, ridge=0.5), 6).path
    assert first.support(6).tolist() == second.support(6).tolist()
    np.testing.assert_allclose(second.losses, 1e6 * first.losses, rtol=1e-6)


@pytest.mark.parametrize("share", [0.02, 2.0])
def test_a_target_is_reached(share):
    X, Y, _ = with_wrong_labels(0)
    problem = LeastSquares(X, Y, ridge=1.0)
    target = share * robust(problem, 1).path.alphas[0]
    path = robust(problem, 1, target=target).path
    assert path.alphas[-1] == target
    assert path.objectives[-1] == pytest.approx((path.losses + target * path.n_nonzero).min())
    assert len(path.coef_rows) == (0 if share > 1.0 else path.size_at(target))


@pytest.mark.parametrize("solver", ["forward", "swap"])
def test_the_selector_names_the_samples_that_do_not_fit(solver):
    X, Y, wrong = with_wrong_labels(3)
    selector = L20Selector(6, loss="l21", solver=solver, ridge=1.0).fit(X, Y.argmax(axis=1))
    assert selector.get_support(indices=True).tolist() == list(range(6))
    suspects = np.argsort(selector.sample_weights_)[: len(wrong)]
    assert len(set(suspects) & set(wrong)) >= len(wrong) - 1
    refit = selector.path_.refit(6)
    np.testing.assert_allclose(refit.coef, selector.coef_, rtol=1e-2, atol=1e-3)


def test_squared_loss_has_no_sample_weights():
    X, Y, _ = make_groups(0)
    selector = L20Selector(6, loss="l21").fit(X, Y.argmax(axis=1))
    selector.set_params(loss="squared").fit(X, Y.argmax(axis=1))
    assert not hasattr(selector, "sample_weights_")


@pytest.mark.parametrize(
    ("loss", "solver", "message"), [("l21", "ahiht", "solver='forward'"), ("huber", "forward", "loss=")]
)
def test_what_is_not_available_is_refused(loss, solver, message):
    X, Y, _ = make_groups(0)
    with pytest.raises(ValueError, match=message):
        L20Selector(6, loss=loss, solver=solver).fit(X, Y.argmax(axis=1))
