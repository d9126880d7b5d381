"""Bounds and proofs under constraints against exhaustive search."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from supports import dense, exact_losses, nearly_dependent, powers_of_ten

from l20fs.bounds.certificate import certify_penalty, certify_size, lower_bounds, prove
from l20fs.bounds.choice import Choice
from l20fs.bounds.cuts import Cut, LinearCut
from l20fs.bounds.relaxation import relax
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.panel_rules import PanelRules
from l20fs.objective.row_penalty import RowPenalty

#: The brute force rounds as well.
ROUNDING = 1e-10


def draw_problem(random, n_features):
    n_samples = int(random.integers(6, 25))
    X = random.standard_normal((n_samples, n_features))
    kind = random.choice(["plain", "copies", "nearly dependent", "units", "constant"])
    i, j = random.choice(n_features, 2, replace=False)
    if kind == "copies":
        X[:, j] = X[:, i]
    elif kind == "nearly dependent":
        X[:, j] = X[:, i] + 10.0 ** random.uniform(-9, -2) * X[:, j]
    elif kind == "units":
        X *= 10.0 ** random.integers(-3, 4, n_features)
    elif kind == "constant":
        X[:, j] = 0.5
    Y = random.standard_normal((n_samples, int(random.integers(1, 4))))
    Y[:, 0] += 2.0 * X[:, i] / np.linalg.norm(X[:, i])
    X = X.astype(random.choice([np.float64, np.float64, np.float32]))
    weights = random.integers(1, 4, n_samples) if random.random() < 0.3 else None
    scale = "zscore" if kind == "units" else "none"
    return LeastSquares(X, Y, ridge=10.0 ** random.uniform(-2, 1), sample_weight=weights, scale=scale)


def draw_penalty(random, n_features, *, with_rules):
    labels = random.integers(n_features, size=n_features) if random.random() < 0.4 else np.arange(n_features)
    factors = random.choice([1.0, 1.0, 2.0, 0.5], n_features) if random.random() < 0.5 else np.ones(n_features)
    penalty = RowPenalty.of_groups(labels, factors)
    costs = penalty.costs.copy()
    chosen = random.permutation(penalty.n_units)
    n_included, n_excluded = random.integers(0, 2, size=2)
    costs[chosen[:n_included]] = 0.0
    costs[chosen[n_included : n_included + n_excluded]] = np.inf
    rules = draw_rules(random, penalty.n_units) if with_rules else None
    return RowPenalty(penalty.unit_of, costs, rules)


def draw_rules(random, n_units):
    """Quotas, budgets, units that exclude each other: one to three of them, some with equal limits."""
    weights, lower, upper = [], [], []
    for _ in range(random.integers(1, 4)):
        is_member = random.random(n_units) < 0.6
        kind = random.choice(["quota", "budget", "exclusive", "exact"])
        weights.append(is_member * (random.integers(1, 30, n_units) / 10.0 if kind == "budget" else np.ones(n_units)))
        least = float(random.integers(1, 3))
        lower.append(0.0 if kind in ("budget", "exclusive") else least)
        upper.append({"quota": random.choice([least + 1.0, np.inf]), "budget": 3.3, "exclusive": 1.0, "exact": least}[kind])
    return PanelRules(sp.csr_array(np.array(weights)), np.array(lower), np.array(upper))


def all_panels(problem, penalty, price):
    """Objective of every panel that is allowed, by its units."""
    columns, targets = dense(problem), problem.targets
    gram, moments = columns.T @ columns, targets @ columns
    varies = np.bincount(penalty.unit_of, weights=problem.design.varies, minlength=penalty.n_units) > 0
    included = set(penalty.included.tolist())
    units = [u for u in range(penalty.n_units) if u in included or (penalty.costs[u] < np.inf and varies[u])]
    panels = {}
    for size in range(len(included), len(units) + 1):
        for panel in combinations(units, size):
            if included <= set(panel) and (penalty.rules is None or penalty.rules.allows(list(panel))):
                rows = np.flatnonzero(np.isin(penalty.unit_of, panel))
                K = gram[np.ix_(rows, rows)] + problem.ridge * np.eye(len(rows))
                explained = np.sum(moments[:, rows].T * np.linalg.solve(K, moments[:, rows].T)) if len(rows) else 0.0
                panels[panel] = problem.null_loss - 0.5 * explained + price * penalty.costs[list(panel)].sum()
    return panels


def assert_holds(found, values, upper, problem, penalty):
    """Check a certificate against all panels that compete."""
    margin = ROUNDING * problem.null_loss
    assert found.lower_bound <= min(values.values()) + margin
    good = [panel for panel, value in values.items() if value <= upper + margin]
    masks = np.array([np.isin(penalty.unit_of, panel) for panel in good])
    assert masks.all(axis=0)[found.proved_in].all()
    assert not masks.any(axis=0)[found.proved_out].any()
    fixed = np.isin(penalty.unit_of, np.flatnonzero((penalty.costs == 0.0) | (penalty.costs == np.inf)))
    assert not fixed[found.proved_in].any()
    assert not fixed[found.proved_out].any()


@pytest.mark.parametrize("with_rules", [False, True])
@pytest.mark.parametrize("seed", range(150))
def test_certificates_hold_for_every_panel(seed, with_rules):
    random = np.random.default_rng([seed, with_rules])
    n_features = int(random.integers(3, 9))
    problem, penalty = draw_problem(random, n_features), draw_penalty(random, n_features, with_rules=with_rules)
    price = float(random.choice([0.0, 0.01, 0.1])) * problem.null_loss
    panels = all_panels(problem, penalty, price)
    k = int(random.integers(max(1, len(penalty.included)), penalty.n_units + 1))
    bounds = lower_bounds(problem, k, penalty=penalty, price=price)
    for size in range(len(penalty.included), k + 1):
        best = min((value for panel, value in panels.items() if len(panel) <= size), default=np.inf)
        assert bounds[size] <= best + ROUNDING * problem.null_loss
    values = {panel: value for panel, value in panels.items() if len(panel) <= k}
    if not values:
        return
    ranked = sorted(values.values())
    for upper in (ranked[0], ranked[int(random.random() * len(ranked))]):
        found = certify_size(problem, k, upper, penalty=penalty, price=price)
        assert_holds(found, values, upper, problem, penalty)
    ranked = sorted(panels.values())
    for upper in (ranked[0], ranked[int(random.random() * len(ranked))]):
        assert_holds(certify_penalty(problem, price, upper, penalty=penalty), panels, upper, problem, penalty)


@pytest.mark.parametrize("with_rules", [False, True])
@pytest.mark.parametrize("price", [0.0, 0.02])
@pytest.mark.parametrize("seed", range(10))
def test_the_relaxation_is_solved_from_any_working_set(seed, price, with_rules):
    """Between the bound and the value there is nothing left but the accuracy; more units than a working set has at first."""
    random = np.random.default_rng([seed, with_rules])
    problem = draw_problem(random, 60)
    penalty = draw_penalty(random, 60, with_rules=with_rules)
    choice = Choice.of(problem, penalty, price * problem.null_loss)
    *_, last = relax(problem, 8, start=np.flatnonzero(choice.candidates)[:3], tol=1e-4, choice=choice)
    if last.bound == np.inf:
        assert choice.least_size() > 8
    else:
        assert -1e-9 <= last.value - last.bound <= 1.001e-4 * last.value + 1e-8 * problem.null_loss
        totals = np.zeros(0) if choice.weights is None else choice.weights[:, last.rows] @ last.shares
        assert len(totals) == 0 or np.all(totals <= choice.rules.given(choice.forced).upper + 1e-5)


@pytest.mark.parametrize("seed", range(100))
def test_proofs_are_exact_for_a_cut_without_rules(seed):
    """They are what the bounds of all panels prove one by one: signed scores, forced units, units that are not free."""
    random = np.random.default_rng(seed)
    scores = random.integers(-3, 6, 6) / 2.0
    cut = Cut(2.0, 20.0, scores) if seed % 2 else LinearCut(3.0, scores)
    order = random.permutation(6)
    forced, is_free = np.sort(order[: seed % 3]), np.isin(np.arange(6), order[2 : 6 - seed % 2])
    choice = Choice(None, forced, is_free, np.ones(6, dtype=bool))
    k = len(forced) + int(random.integers(1, 4))
    free = np.flatnonzero(is_free).tolist()
    panels = [(*forced, *more) for size in range(k - len(forced) + 1) for more in combinations(free, size)]
    bounds = np.array([cut.bound(scores[list(panel)].sum()) for panel in panels])
    loss = bounds.min() + random.random() * np.ptp(bounds) + 1e-9
    are_in, are_out = prove(cut, k, loss, choice)
    masks = np.array([np.isin(np.arange(6), panel) for panel, bound in zip(panels, bounds, strict=True) if bound <= loss])
    assert np.array_equal(are_in, is_free & masks.all(axis=0))
    assert np.array_equal(are_out, is_free & ~masks.any(axis=0))


@settings(max_examples=30)
@given(data=nearly_dependent(), ridge=powers_of_ten(-9, 1), seed=st.integers(0, 2**32 - 1), lam=powers_of_ten(-6, 0))
def test_no_bound_of_groups_is_above_the_optimum_in_exact_arithmetic(data, ridge, seed, lam):
    X, Y = data
    labels = np.random.default_rng(seed).integers(0, 3, X.shape[1])
    penalty = RowPenalty.of_groups(labels, np.ones(X.shape[1]))
    problem = LeastSquares(X, Y, ridge=ridge)
    losses = exact_losses(X, Y, Fraction(problem.ridge), [rows.tolist() for rows in penalty.members])
    bounds = lower_bounds(problem, penalty.n_units, penalty=penalty)
    for k in range(1, penalty.n_units + 1):
        assert Fraction(bounds[k]) <= min(loss for panel, loss in losses.items() if len(panel) <= k)
    best = min(loss + Fraction(lam) * sum(map(Fraction, penalty.costs[list(panel)])) for panel, loss in losses.items())
    assert Fraction(certify_penalty(problem, lam, np.inf, penalty=penalty).lower_bound) <= best * (1 + Fraction(1, 10**14))


def test_a_size_that_no_panel_has_is_refused():
    problem = draw_problem(np.random.default_rng(0), 6)
    rules = PanelRules(sp.csr_array(np.ones((1, 6))), np.array([3.0]), np.array([np.inf]))
    penalty = RowPenalty(np.arange(6), np.ones(6), rules)
    assert np.isinf(lower_bounds(problem, 4, penalty=penalty)).tolist() == [True, True, True, False, False]
    with pytest.raises(ValueError, match=r"k=2: no panel of so few units meets the rules\. Use at least 3\."):
        certify_size(problem, 2, 1.0, penalty=penalty)
    included = RowPenalty(np.arange(6), np.array([0.0, 0.0, 1.0, 1.0, 1.0, 1.0]))
    with pytest.raises(ValueError, match="k=1 is outside 2 to 6"):
        certify_size(problem, 1, 1.0, penalty=included)
