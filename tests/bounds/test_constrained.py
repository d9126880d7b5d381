"""Bounds and proofs under constraints against exhaustive search."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from constrained import ROUNDING, all_panels, draw_penalty, draw_problem
from hypothesis import given, settings
from hypothesis import strategies as st
from supports import exact_losses, nearly_dependent, powers_of_ten

from l20fs.bounds.certificate import certify_penalty, certify_size, lower_bounds
from l20fs.objective import make_problem
from l20fs.objective.panel_rules import PanelRules
from l20fs.objective.row_penalty import RowPenalty


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
@pytest.mark.parametrize("seed", range(20))
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


@settings(max_examples=30)
@given(data=nearly_dependent(), ridge=powers_of_ten(-9, 1), seed=st.integers(0, 2**32 - 1), lam=powers_of_ten(-6, 0))
def test_no_bound_of_groups_is_above_the_optimum_in_exact_arithmetic(data, ridge, seed, lam):
    X, Y = data
    labels = np.random.default_rng(seed).integers(0, 3, X.shape[1])
    penalty = RowPenalty.of_groups(labels, np.ones(X.shape[1]))
    problem = make_problem(X, Y, ridge=ridge)
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
