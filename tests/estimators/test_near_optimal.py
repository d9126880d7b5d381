"""All near-optimal panels against brute force, and the noise of losses against the bootstrap."""

from __future__ import annotations

import gc
import pickle
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from supports import loss_of, powers_of_ten, problems

from l20fs import L20Classifier, L20Regressor, L20Selector, StabilitySelector
from l20fs.data import make_planted
from l20fs.estimators.near_optimal import SearchLimits, find_panels, loss_noise, share_of
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty

NO_LIMIT = SearchLimits(0.0, 100_000, None)


def brute_force(problem, penalty, k, eps):
    """Return all panels of k units within eps, best first, and those of which rounding decides."""
    may_enter = set(penalty.unit_of[penalty.may_enter(problem.design.varies)].tolist())
    included = set(penalty.included.tolist())
    others = sorted(may_enter - included)
    panels = [tuple(sorted(included.union(more))) for more in combinations(others, min(k - len(included), len(others)))]
    losses = {
        panel: loss_of(problem, [row for unit in panel for row in penalty.members[unit]])
        for panel in panels
        if penalty.rules is None or penalty.rules.allows(panel)
    }
    best = min(losses.values())
    limit, rounding = (1.0 + eps) * best, 1e-6 * problem.null_loss
    listed = sorted((loss, panel) for panel, loss in losses.items() if loss <= limit + rounding)
    return listed, [panel for loss, panel in listed if loss >= limit - rounding]


def penalties(draw, problem):
    """Draw groups, included and excluded units."""
    n = problem.n_features
    labels = draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n)) if draw(st.booleans()) else list(range(n))
    factors = np.array(draw(st.lists(st.sampled_from([1.0, 1.0, 1.0, 2.0, 0.0]), min_size=n, max_size=n)))
    return RowPenalty.of_groups(labels, factors)


@st.composite
def instances(draw):
    """Draw a problem with a ridge, a penalty, a size and a share."""
    problem = draw(problems(ridge=powers_of_ten(-2, 2)))
    penalty = penalties(draw, problem)
    n_selectable = penalty.n_selectable(problem.design.varies)
    k = draw(st.integers(max(1, len(penalty.included)), max(1, n_selectable)))
    return problem, penalty, k, draw(st.sampled_from([0.0, 0.001, 0.01, 0.1, 0.5, 3.0]))


@given(instances())
def test_the_atlas_is_that_of_brute_force(instance):
    """The list, the count, the core, the optional features, the rest, exchanges and the cheapest."""
    problem, penalty, k, eps = instance
    truth, doubtful = brute_force(problem, penalty, k, eps)
    start = np.union1d(truth[-1][1], penalty.included)
    atlas = find_panels(problem, penalty, start, NO_LIMIT._replace(eps=eps))
    heads = np.unique(penalty.unit_of, return_index=True)[1]
    units = [tuple(penalty.unit_of[panel].tolist()) for panel in atlas.panels]
    certain = [panel for _, panel in truth if panel not in doubtful]
    assert set(certain) <= set(units) <= {panel for _, panel in truth}
    assert len(set(units)) == len(units) == atlas.n_panels
    assert atlas.is_complete
    by_panel = {panel: loss for loss, panel in truth}
    slack = 1e-6 * problem.null_loss
    np.testing.assert_allclose(atlas.losses, [by_panel[panel] for panel in units], atol=slack)
    assert (np.diff(atlas.losses) >= 0.0).all()

    panels = [set(panel) for panel in units]
    core, some = set.intersection(*panels), set.union(*panels)
    features = {name: set(penalty.unit_of[getattr(atlas, name)].tolist()) for name in ("core", "optional", "never")}
    assert features == {"core": core, "optional": some - core, "never": set(range(penalty.n_units)) - some}
    assert len(atlas.core) + len(atlas.optional) + len(atlas.never) == problem.n_features
    np.testing.assert_allclose(
        atlas.occurrence, [np.mean([unit in panel for panel in panels]) for unit in penalty.unit_of]
    )

    pairs = {
        (i, j, heads[min(a - b)], heads[min(b - a)])
        for (i, a), (j, b) in combinations(enumerate(panels), 2)
        if len(a - b) == 1
    }
    assert set(zip(*atlas.exchanges, strict=True)) == pairs

    costs = np.arange(problem.n_features) % 3
    totals = [sum(costs[penalty.unit_of == unit].sum() for unit in panel) for panel in panels]
    assert atlas.totals(costs).tolist() == totals
    cheapest = atlas.cheapest(costs)
    assert cheapest.rank - 1 == totals.index(min(totals))
    assert set(penalty.unit_of[cheapest.features].tolist()) == panels[cheapest.rank - 1]


def tall(n=300, d=8, seed=0, weights=None):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    X[:, 1] = X[:, 0] + 0.4 * X[:, 1]
    Y = X[:, :1] + 0.5 * X[:, 2:3] + random.standard_normal((n, 1))
    return LeastSquares(X, Y, ridge=0.5, sample_weight=weights)


def test_the_noise_is_that_of_bootstrap_samples():
    """The standard error of the difference of two losses, with mu and the panels fixed."""
    problem, random = tall(), np.random.default_rng(1)
    plain = RowPenalty.plain(problem.n_features)
    draws = [problem.reweighted(np.bincount(random.integers(300, size=300), minlength=300)) for _ in range(400)]
    panel = np.array([0, 2])
    neighbours = [
        min(([a, other] for other in range(8) if other not in panel), key=lambda rows: loss_of(problem, rows)) for a in panel
    ]
    spreads = [np.std([loss_of(draw, panel) - loss_of(draw, other) for draw in draws]) for other in neighbours]
    expected = np.median(spreads) / loss_of(problem, panel)
    assert loss_noise(problem, plain, panel) == pytest.approx(expected, rel=0.15)


def test_the_noise_of_weights_is_that_of_repeated_samples():
    weights = np.random.default_rng(2).integers(0, 3, 40)
    problem, plain = tall(40, weights=weights), RowPenalty.plain(8)
    twice = LeastSquares(
        np.repeat(problem._X, weights, axis=0), np.repeat(problem._Y, weights, axis=0), ridge=problem.relative_ridge
    )
    panel = np.array([0, 2])
    assert loss_noise(problem, plain, panel) == pytest.approx(loss_noise(twice, plain, panel))
