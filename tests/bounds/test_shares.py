from __future__ import annotations

import numpy as np
import pytest
from libraries import needs_scipy
from scipy.optimize import linprog, minimize

from l20fs.bounds import shares
from l20fs.bounds.polytope import Polytope, heaviest
from l20fs.bounds.shares import WorkingSet, solve_shares

KINDS = ("free", "prices", "quotas", "equalities", "budget", "exclusive", "tight")


def draw(seed, kind):
    """X and Y with groups of rows, a ridge per row, forced units and a polytope of one kind."""
    random = np.random.default_rng(seed)
    n_units, n_forced = 9, int(random.integers(0, 3))
    unit_of_row = np.sort(np.concatenate([np.arange(n_units), random.integers(n_units, size=3)]))
    X = random.standard_normal((20, len(unit_of_row)))
    X[:, 5] = X[:, 4]
    Y = X[:, 3:6] @ random.standard_normal((3, 2)) + random.standard_normal((20, 2))
    ridge = 10.0 ** random.uniform(-1, 2, len(unit_of_row))
    n_free, n_chosen = n_units - n_forced, int(random.integers(2, 5))
    sets = np.arange(n_free) % 2 == np.arange(2)[:, None]
    rules = {
        "quotas": (sets, [1.0, 1.0], [2.0, np.inf]),
        "equalities": (sets, [1.0, 1.0], [1.0, 1.0]),
        "tight": (sets, [n_chosen - 1.0, 1.0], [np.inf, np.inf]),  # the lower limits add up to the number of units
        "budget": (100.0 * random.random((1, n_free)), [0.0], [60.0]),
        "exclusive": (np.eye(n_free)[:1] + np.eye(n_free)[2:3], [0.0], [1.0]),
    }
    prices = random.random(n_free) if kind == "prices" else None
    polytope = Polytope(n_chosen, prices=prices)
    if kind in rules:
        polytope = Polytope(n_chosen, *(np.asarray(part, dtype=float) for part in rules[kind]), prices=prices)
    return X, Y, ridge, unit_of_row, n_forced, polytope


def value_of(X, Y, ridge, shares):
    """The value of the relaxation from its definition; shares are those of the rows."""
    return 0.5 * np.sum(Y * np.linalg.solve(np.eye(len(X)) + (X * (shares / ridge)) @ X.T, Y))


def working_set_of(X, Y, ridge, unit_of_row, n_forced):
    return WorkingSet(X.T @ X, Y.T @ X, ridge, 0.5 * np.sum(Y * Y), unit_of_row=unit_of_row, n_forced=n_forced)


@needs_scipy("1.16", "its SLSQP stops before the minimum")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_shares_match_a_general_purpose_optimiser(seed, kind):
    X, Y, ridge, unit_of_row, n_forced, polytope = draw(seed, kind)
    point = solve_shares(working_set_of(X, Y, ridge, unit_of_row, n_forced), polytope, 1e-8)
    n_free = 9 - n_forced
    prices = np.zeros(n_free) if polytope.prices is None else polytope.prices

    def objective(z):
        return value_of(X, Y, ridge, np.concatenate([np.ones(n_forced), z])[unit_of_row]) + prices @ z

    limits = [{"type": "ineq", "fun": lambda z: polytope.n_chosen - z.sum()}]
    if polytope.weights is not None:
        upper = np.minimum(polytope.upper, 1e3)
        limits += [
            {"type": "ineq", "fun": lambda z: upper - polytope.weights @ z},
            {"type": "ineq", "fun": lambda z: polytope.weights @ z - polytope.lower},
        ]
    result = minimize(
        objective,
        np.full(n_free, polytope.n_chosen / n_free),
        method="SLSQP",
        bounds=[(0.0, 1.0)] * n_free,
        constraints=limits,
        options={"ftol": 1e-14, "maxiter": 500},
    )
    z = point.shares[n_forced:]
    assert np.all(point.shares[:n_forced] == 1.0)
    assert np.all((z >= 0.0) & (z <= 1.0))
    assert all(np.all(limit["fun"](z) >= -1e-4) for limit in limits)  # a millionth of the largest weight
    assert objective(z) == pytest.approx(result.fun, rel=1e-6)
    assert point.value + prices @ z == pytest.approx(objective(z), rel=1e-9)
    assert -1e-9 <= point.excess <= 1e-7 * objective(z)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_scores_weights_and_multipliers_fit_together(seed, kind):
    X, Y, ridge, unit_of_row, n_forced, polytope = draw(seed, kind)
    point = solve_shares(working_set_of(X, Y, ridge, unit_of_row, n_forced), polytope, 1e-8)
    A = Y - X @ point.weights.T
    assert point.pulls == pytest.approx(A.T @ X, abs=1e-9)
    assert point.scores == pytest.approx(np.bincount(unit_of_row, np.sum((A.T @ X) ** 2, axis=0) / (2 * ridge)), abs=1e-9)
    # Any multipliers bound the objective: value - excess of the linear model, with the heaviest of what is left.
    slopes = point.scores[n_forced:] - (0.0 if polytope.prices is None else polytope.prices)
    load, left = 0.0, slopes
    if polytope.weights is not None:
        upper = np.where(point.above > 0.0, polytope.upper, 0.0)
        load = point.above @ upper - point.below @ polytope.lower
        left = slopes - (point.above - point.below) @ polytope.weights
        assert np.all(np.minimum(point.above, point.below) == 0.0)
        assert np.all(np.maximum(point.above, point.below) >= 0.0)
    load += heaviest(left, polytope.n_chosen)
    assert -1e-9 <= load - point.shares[n_forced:] @ slopes <= point.excess + 1e-12


@pytest.mark.parametrize("seed", range(120))
def test_rules_that_cannot_be_met_are_told_from_those_that_can(seed):
    """Against a linear program: random rules, with equal limits and few units."""
    random = np.random.default_rng(seed)
    n_units, n_rules = 8, int(random.integers(1, 5))
    weights = (random.random((n_rules, n_units)) < 0.5) * random.choice([1.0, 1.0, 7.0], (n_rules, n_units))
    lower = random.integers(0, 4, n_rules).astype(float)
    upper = lower + random.choice([0.0, 1.0, np.inf], n_rules)
    n_chosen = int(random.integers(1, 6))
    finite = upper < np.inf
    result = linprog(
        np.zeros(n_units),
        np.vstack([weights[finite], -weights, np.ones((1, n_units))]),
        np.concatenate([upper[finite], -lower, [n_chosen]]),
        bounds=(0.0, 1.0),
    )
    X, Y = random.standard_normal((12, n_units)), random.standard_normal((12, 2))
    point = solve_shares(working_set_of(X, Y, 5.0, None, 0), Polytope(n_chosen, weights, lower, upper), 1e-5)
    assert (point is None) == (result.status == 2)
    if point is not None:
        totals = weights @ point.shares
        assert np.all((totals >= lower - 1e-5) & (totals <= upper + 1e-5))
        assert point.shares.sum() <= n_chosen * (1.0 + 1e-6)
        assert point.excess <= 1e-5 * point.value


def test_targets_that_nothing_explains_under_a_rule_with_equal_limits(monkeypatch):
    """All slopes are equal: the first distance from the limit is rounding beside the distance by which it is missed."""
    monkeypatch.setattr(shares, "PENALTIES", (1e7,))
    items = WorkingSet(np.eye(6), np.zeros((1, 6)), 1.0, 1.0)
    rule = Polytope(3, np.array([[1.0, 1.0, 1.0, 1.0, 1.0, 0.0]]), np.array([1.0]), np.array([1.0]))
    assert solve_shares(items, rule, 1e-6).shares[:5].sum() == pytest.approx(1.0, abs=1e-5)


def test_nothing_can_be_chosen_or_everything():
    X, Y = np.random.default_rng(0).standard_normal((2, 10, 4))
    items = WorkingSet(X.T @ X, Y.T @ X, 2.0, 0.5 * np.sum(Y * Y), n_forced=1)
    nothing, everything = solve_shares(items, Polytope(0), 1e-6), solve_shares(items, Polytope(3), 1e-6)
    assert nothing.shares == pytest.approx([1.0, 0.0, 0.0, 0.0])
    assert nothing.value == pytest.approx(value_of(X, Y, 2.0, np.array([1.0, 0.0, 0.0, 0.0])))
    assert nothing.pulls == pytest.approx((Y - X @ nothing.weights.T).T @ X)
    assert everything.value == pytest.approx(value_of(X, Y, 2.0, np.ones(4)))
    needed = Polytope(0, np.ones((1, 3)), np.ones(1), np.full(1, np.inf))
    assert solve_shares(items, needed, 1e-6) is None
