"""Active sets with costs and groups: gains and losses of units, against the definition."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference import minimum
from supports import dense, loss_of, problems

from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers.active_sets import groups as groups_module
from l20fs.solvers.active_sets import make_active_set
from l20fs.solvers.active_sets.groups import GroupActiveSet
from l20fs.solvers.active_sets.rows import RowActiveSet

SEEDS = st.integers(0, 2**32 - 1)
SHAPES = pytest.mark.parametrize("shape", [(12, 20), (40, 14)], ids=["N<d", "N>d"])
RIDGES = pytest.mark.parametrize("ridge", [1e-3, 0.5])
FORMS = pytest.mark.parametrize("container", [np.asarray, sp.csc_array])
GROUPED = pytest.mark.parametrize("grouped", [True, False], ids=["groups", "rows"])


def draw(seed, shape, grouped, n_targets=3):
    """Columns some of which are copies or constant, units of different sizes and costs; two are included, one excluded."""
    random = np.random.default_rng(seed)
    X = random.standard_normal(shape) * random.uniform(0.5, 2.0, shape[1])
    X[:, 1], X[:, 2] = X[:, 4], 3.0
    labels = random.integers(0, shape[1] // 2, shape[1]) if grouped else np.arange(shape[1])
    penalty = RowPenalty.of_groups(labels, random.uniform(0.3, 3.0, shape[1]))
    units = random.permutation(penalty.n_units)
    penalty.costs[units[:2]], penalty.costs[units[2]] = 0.0, np.inf
    return X, random.standard_normal((shape[0], n_targets)), penalty


class Definition:
    """What a set of units is worth, from scratch."""

    def __init__(self, X, Y, penalty, mu):
        self.X, self.Y, self.penalty, self.mu = X, Y, penalty, mu
        self.known = {}

    def h(self, units):
        units = frozenset(units) | frozenset(self.penalty.included.tolist())
        if units not in self.known:
            rows = np.flatnonzero(np.isin(self.penalty.unit_of, list(units)))
            self.known[units] = minimum(self.X, self.Y, rows, self.mu)[0]
        return self.known[units]

    def free(self):
        return np.flatnonzero((self.penalty.costs > 0.0) & (self.penalty.costs < np.inf)).tolist()


def is_clear(gains, active):
    """Say whether each gain is either nothing or something: where it is neither, rounding decides who may enter."""
    shares = np.array(gains) / active.problem.null_loss
    return bool(((shares < 1e-12) | (shares > 1e-6)).all())


def assert_true(active, definition, alpha):
    """Everything the active set says about the next change agrees with the definition."""
    penalty, chosen = definition.penalty, active.units
    close = {"rel": 1e-5, "abs": 1e-8 * active.problem.null_loss}
    assert active.loss == pytest.approx(definition.h(chosen), **close)
    expected = np.zeros(penalty.n_units)
    for unit in set(definition.free()) - set(chosen):
        expected[unit] = active.loss - definition.h([*chosen, unit])
    assert active.gains() == pytest.approx(expected, **close)
    removable = chosen[active.n_fixed :]
    rises = [definition.h([other for other in chosen if other != unit]) - active.loss for unit in removable]
    if not removable:
        assert active.best_exchange(alpha).position == -1
        return
    savings = [alpha * penalty.costs[unit] - rise for unit, rise in zip(removable, rises, strict=True)]
    decreases, gains = [], []
    for unit, saving in zip(removable, savings, strict=True):
        others = [other for other in chosen if other != unit]
        for entering in set(definition.free()) - set(chosen):
            gains.append(gain := definition.h(others) - definition.h([*others, entering]))
            if gain > 1e-6 * active.problem.null_loss:
                decreases.append(gain - alpha * penalty.costs[entering] + saving)
    if not decreases or not is_clear(gains, active):
        return
    best = active.best_exchange(alpha)
    assert best.decrease == pytest.approx(max(decreases), **close)
    after = definition.h([*(unit for unit in chosen if unit != chosen[best.position]), best.unit])
    saved = alpha * (penalty.costs[chosen[best.position]] - penalty.costs[best.unit])
    assert active.loss - after + saved == pytest.approx(best.decrease, **close)


@FORMS
@SHAPES
@RIDGES
@GROUPED
@given(seed=SEEDS, alpha=st.floats(0.0, 3.0))
@settings(max_examples=8)
def test_units_come_and_go_and_the_active_set_keeps_to_the_definition(container, shape, ridge, grouped, seed, alpha):
    X, Y, penalty = draw(seed, shape, grouped)
    problem = LeastSquares(container(X), Y, ridge=ridge)
    active = make_active_set(problem, (), penalty)
    assert isinstance(active, GroupActiveSet) == grouped
    definition = Definition(X, Y, penalty, problem.ridge)
    assert_true(active, definition, alpha)
    random = np.random.default_rng(seed)
    chosen = random.permutation(np.flatnonzero(active.gains()))[:3].tolist()
    assume(chosen)
    for unit in chosen:
        active.add(unit)
    assert_true(active, definition, alpha)
    active.remove(int(random.integers(active.n_fixed, len(active))))
    assert_true(active, definition, alpha)
    other = make_active_set(problem, active.units, penalty)
    assert other.units == active.units
    assert other.rows == active.rows
    np.testing.assert_allclose(other.gains(), active.gains(), rtol=1e-6, atol=1e-9 * problem.null_loss)
    np.testing.assert_allclose(other.weights, active.weights, rtol=1e-6, atol=1e-8)
    assert active.cost == pytest.approx(penalty.costs[active.units].sum())


@given(problem=problems(), seed=SEEDS)
@settings(max_examples=60)
def test_the_worst_that_may_come(problem, seed):
    """Copies, sums, constants, units, single precision, weights of samples: growing ends, and each stage is a minimum."""
    random = np.random.default_rng(seed)
    penalty = RowPenalty.of_groups(
        random.integers(0, 4, problem.n_features), random.choice([0.0, 0.5, 1.0], problem.n_features)
    )
    assume(penalty.n_selectable(problem.design.varies) > 0)
    active = make_active_set(problem, (), penalty)
    while active.grow(1):
        pass
    # In single precision a sparse column far from zero has few digits left, in active sets of rows as well.
    tolerance = 3e-2 if problem.dtype == np.float32 else 1e-6
    for size in range(active.n_fixed, len(active) + 1):
        rows = active.rows[: active.n_rows_at(size)]
        assert active.losses[len(rows)] == pytest.approx(
            loss_of(problem, rows), rel=tolerance, abs=tolerance * problem.null_loss
        )
    members = np.flatnonzero(np.isin(penalty.unit_of, [*active.units, *penalty.included]))
    assert active.loss <= loss_of(problem, members) + max(1e-3, tolerance) * problem.null_loss
    assert np.isfinite(active.weights).all()
    assert np.isfinite(dense(problem)).all()


@SHAPES
@pytest.mark.parametrize("ridge", [0.0, 0.5])
@given(seed=SEEDS)
@settings(max_examples=5)
def test_groups_of_one_are_rows(shape, ridge, seed):
    X, Y, _ = draw(seed, shape, grouped=False)
    problem, penalty = LeastSquares(X, Y, ridge=ridge), RowPenalty.plain(shape[1])
    rows, units = RowActiveSet(problem), GroupActiveSet(problem, (), penalty)
    for _ in range(4):
        np.testing.assert_allclose(units.gains(), rows.gains(), rtol=1e-9, atol=1e-12)
        assert rows.grow(1) == units.grow(1) == 1
    assert units.rows == rows.rows
    assert units.best_exchange()[:2] == rows.best_exchange()[:2]
    assert units.best_exchange().decrease == pytest.approx(rows.best_exchange().decrease)


@FORMS
def test_blocks_are_read_piece_by_piece(container, monkeypatch):
    X, Y, _ = draw(0, (30, 12), grouped=False)
    penalty = RowPenalty.of_groups([0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 4, 4], np.ones(12))
    problem = LeastSquares(container(X), Y)
    whole = GroupActiveSet(problem, (), penalty).gains()
    monkeypatch.setattr(groups_module, "BLOCK_ELEMENTS", 7)
    np.testing.assert_allclose(GroupActiveSet(problem, (), penalty).gains(), whole, rtol=1e-10)


def test_a_group_gains_what_its_members_gain_together_however_many_they_are():
    X, Y, _ = draw(1, (60, 40), grouped=False)
    penalty = RowPenalty.of_groups([0] * 25 + [1] * 10 + [2] * 5, np.ones(40))
    problem = LeastSquares(X, Y, ridge=0.1)
    gains = GroupActiveSet(problem, (), penalty).gains()
    for unit, members in enumerate(penalty.members):
        assert gains[unit] == pytest.approx(problem.null_loss - minimum(X, Y, members, problem.ridge)[0])


@pytest.mark.parametrize("grouped", [False, True])
def test_included_rows_are_added_in_one_pass(grouped, monkeypatch):
    X, Y, _ = draw(2, (30, 20), grouped=False)
    problem = LeastSquares(X, Y, ridge=0.1)
    costs = np.where(np.arange(20) < 8, 0.0, 1.0)
    penalty = RowPenalty.of_groups(np.arange(20) // 2 if grouped else np.arange(20), costs)
    n_lines = []
    pull = type(problem.design).pull
    monkeypatch.setattr(
        type(problem.design), "pull", lambda self, R, rows=None: n_lines.append(len(R)) or pull(self, R, rows)
    )
    active = make_active_set(problem, (), penalty)
    assert len(active.rows) == 7  # one of the eight is constant
    assert n_lines == [3, 7]
