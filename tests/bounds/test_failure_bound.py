"""Bounds on the worst case of panels, against all panels."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from supports import all_losses, problems

from l20fs import L20Selector, Swap
from l20fs.bounds.failure_bound import certify_failures, failure_loads
from l20fs.data import make_planted
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty


def worst_cases(problem, k, penalty):
    """r of every panel of k units that has what is included and nothing that is excluded."""
    losses = all_losses(problem)

    def loss(units):
        return losses[tuple(sorted(row for unit in units for row in penalty.members[unit]))]

    allowed = np.flatnonzero(penalty.costs < np.inf)
    panels = [panel for panel in combinations(allowed, k) if set(penalty.included) <= set(panel)]
    return {panel: max(loss(set(panel) - {unit}) for unit in panel) for panel in panels}


@given(problem=problems(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_no_panel_is_below_the_bound(problem, seed):
    random = np.random.default_rng(seed)
    n = problem.n_features
    factors = np.where(random.random(n) < 0.2, random.choice([0.0, np.inf]), 1.0)
    labels = random.integers(0, n, n) if seed % 3 == 0 else np.arange(n)
    for penalty in (RowPenalty.plain(n), RowPenalty.of_groups(labels, factors)):
        for k in range(max(1, len(penalty.included)), int(np.count_nonzero(penalty.costs < np.inf)) + 1):
            found = worst_cases(problem, k, penalty)
            best = min(found.values())
            for upper in (best, max(found.values())):
                certificate = certify_failures(problem, k, upper, penalty=penalty)
                assert certificate.lower_bound <= best * (1.0 + 1e-12)
                as_good = [set(penalty.unit_of[certificate.proved_in])] + [
                    set(panel) for panel, worst in found.items() if worst <= upper
                ]
                assert all(as_good[0] <= panel for panel in as_good[1:])
                out = set(penalty.unit_of[certificate.proved_out])
                assert not any(out & panel for panel in as_good[1:])


@given(scores=st.lists(st.floats(0.0, 10.0), min_size=1, max_size=6), data=st.data())
@settings(max_examples=60)
def test_loads_are_the_largest_of_all_panels(scores, data):
    scores, n = np.array(scores), len(scores)
    k = data.draw(st.integers(1, n))
    included = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1), max_size=k))), dtype=np.intp)
    panels = [panel for panel in combinations(range(n), k) if set(included) <= set(panel)]
    load_of = {panel: sum(sorted(scores[list(panel)])[:-1]) for panel in panels}
    loads = failure_loads(scores, k, included)
    assert loads.largest == pytest.approx(max(load_of.values()))
    for unit in set(range(n)) - set(included):
        with_it = [load for panel, load in load_of.items() if unit in panel]
        without = [load for panel, load in load_of.items() if unit not in panel]
        assert not with_it or loads.with_it[unit] == pytest.approx(max(with_it))
        assert not without or loads.without[unit] >= max(without) - 1e-12


def test_the_certificate_of_a_selector():
    X, y, _ = make_planted(n_samples=60, n_features=40, n_informative=4, random_state=2)
    selector = L20Selector(4, solver=Swap(robust_to=1), ridge=10.0, certify=True).fit(X, y)
    certificate = selector.certificate_
    assert certificate.upper_bound == pytest.approx(selector.failure_losses(4).max())
    assert 0.0 <= certificate.gap < 0.05
    assert not set(certificate.proved_out) & set(selector.get_support(True))
    other = L20Selector(4, ridge=10.0, certify=True).fit(X, y)
    assert certificate.lower_bound > other.certificate_.lower_bound


def test_an_upper_bound_that_no_panel_has():
    problem = LeastSquares(np.eye(4), np.eye(4), ridge=1.0)
    with pytest.raises(ValueError, match=r"is below .* the lower bound of all panels"):
        certify_failures(problem, 2, 0.1)
