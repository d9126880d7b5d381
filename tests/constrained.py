"""Random problems with constraints, and the objective of every panel by brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import scipy.sparse as sp
from supports import dense

from l20fs.objective import make_problem
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
    return make_problem(X, Y, ridge=10.0 ** random.uniform(-2, 1), sample_weight=weights, scale=scale)


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


def all_panels(problem, penalty, price, sizes=None):
    """Objective of every panel that is allowed, by its units; of some sizes, or of all."""
    columns, targets = dense(problem), problem.targets
    gram, moments = columns.T @ columns, targets @ columns
    varies = np.bincount(penalty.unit_of, weights=problem.design.varies, minlength=penalty.n_units) > 0
    included = penalty.included.tolist()
    others = [u for u in range(penalty.n_units) if u not in included and penalty.costs[u] < np.inf and varies[u]]
    rules = PanelRules.none(penalty.n_units) if penalty.rules is None else penalty.rules
    weights, panels = rules.weights.toarray(), {}
    for size in range(len(included), len(included) + len(others) + 1) if sizes is None else sizes:
        for more in combinations(others, max(0, size - len(included))):
            panel = tuple(sorted([*included, *more]))
            sums = weights[:, list(panel)].sum(axis=1)
            if (sums >= rules.lower - 1e-9).all() and (sums <= rules.upper + 1e-9).all():
                rows = np.flatnonzero(np.isin(penalty.unit_of, panel))
                K = gram[np.ix_(rows, rows)] + problem.ridge * np.eye(len(rows))
                explained = np.sum(moments[:, rows].T * np.linalg.solve(K, moments[:, rows].T)) if len(rows) else 0.0
                panels[panel] = problem.null_loss - 0.5 * explained + price * penalty.costs[list(panel)].sum()
    return panels
