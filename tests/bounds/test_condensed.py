"""Problems on few units against those on more, and against X itself."""

from __future__ import annotations

import numpy as np
import pytest
from constrained import draw_penalty, draw_problem
from samples import CONTAINERS

from l20fs.bounds.choice import Choice
from l20fs.bounds.condensed import Condensed
from l20fs.bounds.cuts import measure, measure_fit
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty

ROUNDING = 1e-9


@pytest.mark.parametrize("with_rules", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_nodes_have_the_same_bounds_among_the_units_that_they_may_use(seed, with_rules):
    """Also where fewer units need fewer samples."""
    random = np.random.default_rng([seed, with_rules])
    problem, penalty = draw_problem(random, 9), draw_penalty(random, 9, with_rules=with_rules)
    price = 0.01 * problem.null_loss
    whole = Condensed(problem, penalty, np.flatnonzero(penalty.costs < np.inf), price)
    places = np.sort(random.choice(whole.n_units, min(whole.n_units, 4), replace=False))
    part, k = whole.among(places), min(2, len(places))
    panels = np.arange(k)[None]
    for few, many in ((part.losses, whole.losses), (part.price_of, whole.price_of)):
        assert few(panels) == pytest.approx(many(places[panels]), abs=ROUNDING * problem.null_loss)
    states = np.zeros((2, len(places)), dtype=np.int8)
    states[1, 0] = 1
    wide = np.full((2, whole.n_units), -1, dtype=np.int8)
    wide[:, places] = states
    target = 2.0 * problem.null_loss
    options = {"k": k, "tol": 1e-6, "target": target}
    found, expected = (
        each.bound(state, state == 0, np.zeros(state.shape), **options) for each, state in ((part, states), (whole, wide))
    )
    # Relaxations are solved up to the tolerance. The bound of nodes without a panel, by the rules, grows until one stops.
    is_bounded = expected.bounds < target
    assert np.minimum(found.bounds, target) == pytest.approx(np.minimum(expected.bounds, target), abs=1e-5 * target)
    few, many = found.adjusted[is_bounded], expected.adjusted[is_bounded][:, places]
    assert few == pytest.approx(many, abs=1e-2 * problem.null_loss)


def test_few_units_need_few_samples_and_the_slack_grows():
    random = np.random.default_rng(0)
    problem = LeastSquares(random.standard_normal((60, 30)), random.standard_normal((60, 2)), ridge=1.0)
    whole = Condensed(problem, RowPenalty.plain(30), np.arange(30))
    part = whole.among(np.array([3, 4, 20]))
    assert part.lines.shape == (4, 1, 3)
    assert part.slack > whole.slack
    explained = [0.5 * np.sum(each.targets**2) + each.constant for each in (part, whole)]
    assert explained == pytest.approx([problem.null_loss] * 2)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_scores_of_a_few_features_are_those_of_all(container, dtype):
    random = np.random.default_rng(0)
    X = (random.standard_normal((40, 25)) + 3.0).astype(dtype)
    weights = random.integers(1, 4, 40).astype(float)
    problem = LeastSquares(container(X), random.standard_normal((40, 3)), ridge=0.5, sample_weight=weights)
    rows, A = np.array([2, 7, 24]), problem.targets * 0.7
    few, every = measure(problem, A, rows), measure(problem, A)
    assert (few.product, few.energy) == (every.product, every.energy)
    np.testing.assert_allclose(few.scores, every.scores[rows], rtol=1e-12)
    fitted = 0.1 * random.standard_normal((3, 3))
    alone, with_others = (measure_fit(problem, rows, fitted, alone=alone) for alone in (True, False))
    np.testing.assert_allclose(alone.scores, with_others.scores[rows], rtol=1e-12)


@pytest.mark.parametrize("n_forced", [0, 2])
def test_the_loads_of_all_sizes_are_those_of_each(n_forced):
    random = np.random.default_rng(0)
    problem = LeastSquares(random.standard_normal((20, 12)), random.standard_normal((20, 1)), ridge=1.0)
    costs = np.ones(12)
    costs[:n_forced], costs[5] = 0.0, np.inf
    choice, scores = Choice.of(problem, RowPenalty(np.arange(12), costs), 0.1), random.standard_normal(12)
    scores[5] = 9.0  # excluded
    for most in range(n_forced, 13):
        expected = [choice.load(scores, max(k, n_forced)) for k in range(most + 1)]
        assert choice.loads_by_size(scores, most) == pytest.approx(expected)
