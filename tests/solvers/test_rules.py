"""Solvers under rules for panels: every answer meets them, and no allowed exchange improves a panel of swap."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from supports import loss_of

from l20fs.design import finish
from l20fs.objective import make_problem
from l20fs.objective.panel_rules import PanelRules
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers import forward, swap

SEEDS = st.integers(0, 2**32 - 1)


def draw(random, *, is_even=False):
    """A problem with copies, ties and columns that are nearly the same or constant, and its units under rules."""
    n_features, n_samples = int(random.integers(3, 9)), int(random.integers(6, 12))
    X = random.standard_normal((n_samples, n_features))
    X = np.round(X) if random.random() < 0.4 else X
    X[:, random.integers(n_features)] = X[:, 0] + random.choice([0.0, 1e-7]) * random.standard_normal(n_samples)
    if random.random() < 0.2:
        X[:, random.integers(1, n_features)] = 1.0
    X[:, 0] = random.standard_normal(n_samples)
    Y = np.eye(3)[np.concatenate([[0, 1, 2], random.integers(0, 3, n_samples - 3)])]
    problem = make_problem(X, Y, ridge=0.3 if is_even else float(random.choice([0.0, 0.1, 10.0])))
    labels = np.arange(n_features) if random.random() < 0.6 else random.integers(0, n_features, n_features)
    factors = random.choice([0.5, 1.0, 2.0], n_features) if random.random() < 0.3 else np.ones(n_features)
    for factor in (0.0, np.inf):
        if random.random() < 0.3:
            factors[labels == labels[random.integers(1, n_features)]] = factor
    penalty = RowPenalty.of_groups(labels, factors)
    if not penalty.units_to_enter(problem.design.varies).any():
        penalty = RowPenalty.of_groups(labels, np.ones(n_features))
    costs = np.where(np.isin(penalty.costs, (0.0, np.inf)), penalty.costs, 1.0) if is_even else penalty.costs
    return problem, RowPenalty(penalty.unit_of, costs, draw_rules(random, penalty))


def draw_rules(random, penalty):
    """Quotas of sets that may overlap, lists that exclude each other, a budget: some of them."""
    lines, lower, upper, n_features = [], [], [], len(penalty.unit_of)
    for _ in range(random.integers(1, 4)):
        is_budget = random.random() < 0.3
        lines.append(random.integers(0, 50, n_features) / 10.0 if is_budget else 1.0 * (random.random(n_features) < 0.5))
        lower.append(0.0 if is_budget else float(random.integers(0, 3)))
        most = max(lower[-1], random.integers(1, 4)) if random.random() < 0.5 else np.inf
        upper.append(random.integers(2, 10) if is_budget else most)
    members = 1.0 * (penalty.unit_of[:, None] == np.arange(penalty.n_units))
    return PanelRules(sp.csr_array(np.array(lines) @ members), np.array(lower), np.array(upper, dtype=float))


def panels_of(problem, penalty):
    """Sizes of all panels that meet the rules, and the units to choose from."""
    included = penalty.included
    free = np.setdiff1d(np.flatnonzero(penalty.units_to_enter(problem.design.varies)), included).tolist()
    sets = {len(included) + n: combinations(free, n) for n in range(len(free) + 1)}
    return [size for size in sets if any(penalty.rules.allows([*included, *more]) for more in sets[size])], free


@pytest.mark.parametrize("solver", [forward, swap])
@given(seed=SEEDS)
@settings(max_examples=60)
def test_every_answer_meets_the_rules(solver, seed):
    random = np.random.default_rng(seed)
    problem, penalty = draw(random)
    possible, _ = panels_of(problem, penalty)
    k = int(random.integers(1, penalty.n_units + 1))
    if not possible or possible[0] > k:
        with pytest.raises(ValueError, match="No panel of at most"):
            finish(solver(problem, k, penalty=penalty))
        return
    path = finish(solver(problem, k, penalty=penalty))
    path = path.ranked_by(str(random.choice(["entry", "norm"])))
    assert path.least_size <= max(size for size in possible if size <= k) <= path.n_ranked
    for size in range(max(1, path.least_size), path.n_ranked + 1):
        units = np.unique(penalty.unit_of[path.support(size)])
        assert len(units) == size
        assert penalty.rules.allows(units)
        assert set(penalty.included.tolist()) <= set(units.tolist())
    assert penalty.rules.allows(np.unique(penalty.unit_of[path.is_selected]))
    for size in range(path.least_size):
        with pytest.raises(ValueError, match="is outside"):
            path.support(size)
        with pytest.raises(ValueError, match="No stage of the path has exactly"):
            path.rows_at(size)
    assert path.size_at(1e9) >= min(path.least_size, path.sizes[-1])


@given(seed=SEEDS)
@settings(max_examples=80)
def test_no_allowed_exchange_improves_a_panel_of_swap(seed):
    problem, penalty = draw(np.random.default_rng(seed), is_even=True)
    possible, free = panels_of(problem, penalty)
    assume(possible)
    path = finish(swap(problem, possible[-1], penalty=penalty))
    for size in set(possible) & set(path.sizes.tolist()) - set(range(path.least_size)):
        units = set(penalty.included.tolist()) | set(penalty.unit_of[path.rows_at(size)].tolist())
        loss = loss_of(problem, penalty.rows_of(np.array(list(units), dtype=int)))
        for left, new in product(units - set(penalty.included.tolist()), set(free) - units):
            panel = [*(units - {left}), new]
            if penalty.rules.allows(panel):
                assert loss_of(problem, penalty.rows_of(np.array(panel))) >= loss - 1e-9 * problem.null_loss
