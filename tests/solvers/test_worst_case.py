"""Panels that survive the failure of a unit, against losses from scratch and exhaustive search."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from supports import loss_of

from l20fs import Forward, L20Selector, Swap
from l20fs.data import make_planted
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers import forward, swap, worst_case
from l20fs.solvers.active_sets import failures, make_failure_set
from l20fs.solvers.worst_case import best_change

SEEDS = st.integers(0, 2**32 - 1)


class Losses:
    """h and r of panels of units, from scratch."""

    def __init__(self, problem, penalty=None):
        self.problem = problem
        self.penalty = penalty or RowPenalty.plain(problem.n_features)
        self.slack = 1e-9 * problem.null_loss
        self._known = {}

    def h(self, units):
        rows = tuple(sorted(row for unit in units for row in self.penalty.members[unit]))
        if rows not in self._known:
            self._known[rows] = loss_of(self.problem, rows)
        return self._known[rows]

    def r(self, units):
        return max((self.h(set(units) - {unit}) for unit in units), default=self.h(()))

    def best(self, panels):
        """The smallest r, and the smallest h among panels with this r."""
        lowest = min(map(self.r, panels))
        return lowest, min(self.h(panel) for panel in panels if self.r(panel) <= lowest + self.slack)


@st.composite
def cases(draw):
    """Draw a problem with copies and nearly equal columns, and a penalty: none, with something forced, or with groups."""
    random = np.random.default_rng(draw(SEEDS))
    n_samples, n_features = draw(st.integers(5, 20)), draw(st.integers(4, 9))
    X = random.standard_normal((n_samples, n_features))
    Y = X[:, :2] @ random.standard_normal((2, 2)) + draw(st.sampled_from([0.1, 1.0])) * random.standard_normal(
        (n_samples, 2)
    )
    X[:, -1] = X[:, 0] + draw(st.sampled_from([0.0, 1e-5, 0.3])) * random.standard_normal(n_samples)
    ridge = draw(st.sampled_from([1e-3, 0.3, 10.0]))
    problem = LeastSquares(draw(st.sampled_from([np.asarray, sp.csr_array]))(X), Y, ridge=ridge)
    kind = draw(st.sampled_from(["plain", "forced", "groups"]))
    factors = np.ones(n_features)
    if kind != "plain":
        factors[random.integers(n_features)] = 0.0
        factors[random.integers(n_features)] = np.inf
    labels = random.integers(0, n_features - 1, n_features) if kind == "groups" else np.arange(n_features)
    return problem, None if kind == "plain" else RowPenalty.of_groups(labels, factors)


@given(cases())
@settings(max_examples=60)
def test_every_addition_is_the_best_of_all(case):
    problem, penalty = case
    losses, active = Losses(problem, penalty), make_failure_set(problem, (), penalty)
    while (change := best_change(active, exchange=False)) is not None:
        outside = [unit for unit in np.flatnonzero(losses.penalty.costs < np.inf) if unit not in active.units]
        best = losses.best([[*active.units, unit] for unit in outside])
        assert (change.worst, change.loss) == pytest.approx(best, rel=1e-7, abs=3 * losses.slack)
        active.add(change.unit)
        assert (losses.r(active.units), losses.h(active.units)) == pytest.approx(best, rel=1e-7, abs=3 * losses.slack)
        assert active.worst_loss() == pytest.approx(best[0], rel=1e-7)
        np.testing.assert_allclose(
            active.failure_losses(), [losses.h(set(active.units) - {unit}) for unit in active.units], rtol=1e-7
        )
    assert active.size == np.count_nonzero(losses.penalty.costs < np.inf)


@given(case=cases(), size=st.integers(1, 4))
@settings(max_examples=60)
def test_every_panel_one_exchange_away_has_its_losses(case, size):
    problem, penalty = case
    losses = Losses(problem, penalty)
    free = np.flatnonzero((losses.penalty.costs > 0.0) & (losses.penalty.costs < np.inf))
    active = make_failure_set(problem, free[:size], penalty)
    now = losses.r(active.units)
    for most in (np.inf, now + losses.slack):
        lowest = np.inf
        for changes in active.changes(exchange=True, most=most):
            for line, position in enumerate(changes.positions):
                for place, unit in enumerate(changes.units):
                    found = changes.worst[line, place]
                    if unit in active.units or unit not in free:
                        assert found == np.inf
                        continue
                    panel = set(active.units) - {active.units[position]} | {unit}
                    lowest = min(lowest, losses.r(panel))
                    if found < np.inf:
                        assert found == pytest.approx(losses.r(panel), rel=1e-6)
                        assert changes.losses[line, place] == pytest.approx(losses.h(panel), rel=1e-6)
            if lowest < most:
                assert changes.worst.min() == pytest.approx(lowest, rel=1e-6)


@given(cases())
@settings(max_examples=25)
def test_exchanges_leave_no_panel_that_is_better_by_one(case):
    problem, penalty = case
    losses, k = Losses(problem, penalty), 4
    robust = worst_case(problem, k, with_exchanges=True, penalty=penalty)
    others = [worst_case(problem, k, penalty=penalty), swap(problem, k, penalty=penalty)]
    for stage, size in enumerate(robust.sizes.tolist()):
        panel = losses.penalty.unit_of[robust.stage_rows(stage)]
        panel = set(panel.tolist()) | set(losses.penalty.included.tolist())
        worst, loss = losses.r(panel), losses.h(panel)
        assert robust.losses[stage] == pytest.approx(loss, rel=1e-7)
        outside = set(np.flatnonzero(losses.penalty.costs < np.inf)) - panel
        for left in panel - set(losses.penalty.included):
            for unit in outside:
                other = panel - {left} | {unit}
                assert losses.r(other) > worst - 5 * losses.slack
                assert losses.r(other) > worst + 2 * losses.slack or losses.h(other) > loss - 5 * losses.slack
        for path in others:
            if stage and size in path.sizes:
                rows = path.rows_at(size)
                assert worst <= losses.r(set(losses.penalty.unit_of[rows])) + 5 * losses.slack
        assert (np.diff(robust.alphas) <= 0.0).all()


@given(seed=SEEDS)
@settings(max_examples=8)
def test_exchanges_are_close_to_the_best_panel_of_all(seed):
    random = np.random.default_rng(seed)
    problem = LeastSquares(random.standard_normal((30, 8)), random.standard_normal((30, 2)), ridge=1.0)
    losses = Losses(problem)
    for k in (2, 3):
        found = losses.r(worst_case(problem, k, with_exchanges=True).rows_at(k))
        best = min(map(losses.r, combinations(range(8), k)))
        assert best - losses.slack <= found <= 1.02 * best


@pytest.mark.parametrize("solver", [Forward, Swap])
def test_copies_of_a_feature_protect_each_other(solver):
    random = np.random.default_rng(0)
    X = random.standard_normal((80, 30))
    numbers = X[:, [3, 8]].sum(axis=1) + 0.1 * random.standard_normal(80)
    X[:, 20] = X[:, 3] + 0.01 * random.standard_normal(80)
    X[:, 21] = X[:, 8]
    options = {"task": "regression", "ridge": 0.01}
    plain = L20Selector(4, solver=solver(), **options).fit(X, numbers)
    robust = L20Selector(4, solver=solver(robust_to=1), **options).fit(X, numbers)
    assert len({3, 20} & set(plain.support_for(2).nonzero()[0])) == 1
    assert robust.get_support(True).tolist() == [3, 8, 20, 21]
    assert robust.failure_losses(4).max() < 0.1 * plain.failure_losses(2).max()
    assert plain.path_.refit(4).loss <= robust.path_.refit(4).loss


def test_features_in_parts_and_as_a_whole(monkeypatch):
    X, y, _ = make_planted(n_samples=40, n_features=600, n_informative=5, random_state=1)
    problem = LeastSquares(X, np.eye(y.max() + 1)[y], ridge=1.0)
    whole = worst_case(problem, 6, with_exchanges=True)
    monkeypatch.setattr(failures, "BLOCK_ELEMENTS", 1)
    parts = worst_case(problem, 6, with_exchanges=True)
    assert np.array_equal(whole.indices, parts.indices)
    np.testing.assert_allclose(whole.losses, parts.losses, rtol=1e-9)


def test_one_failure_leaves_nothing_of_one_feature():
    X, y, _ = make_planted(n_samples=40, n_features=20, n_informative=3, random_state=0)
    problem = LeastSquares(X, np.eye(y.max() + 1)[y], ridge=0.1)
    assert worst_case(problem, 1).rows_at(1) == forward(problem, 1).rows_at(1)


def test_what_is_not_available_is_refused():
    X, y, _ = make_planted(n_samples=40, n_features=20, n_informative=3, random_state=0)
    for value in (2, -1, 1.0, "1", True, None):
        with pytest.raises(ValueError, match=r"robust_to=.* is not valid\. Use 0, or 1 for the failure of any one feature"):
            L20Selector(3, solver=Swap(robust_to=value)).fit(X, y)
    for options in ({"alpha": 1.0}, {"penalty_factor": {0: 2.0}}):
        with pytest.raises(ValueError, match=rf"robust_to=1 with {next(iter(options))} is not available: .* robust_to=0"):
            L20Selector(3, solver=Forward(robust_to=1), **options).fit(X, y)
    for solver in (Forward, Swap):
        with pytest.raises(ValueError, match=r"robust_to=1 with loss='l21' is not available"):
            L20Selector(3, solver=solver(robust_to=1), loss="l21").fit(X, y)
