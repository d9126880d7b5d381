"""Certificates of the selector under constraints, and for X wherever it is, against exhaustive search."""

from __future__ import annotations

from itertools import combinations

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from blocked import cut, make_counts
from hypothesis import given, settings
from hypothesis import strategies as st
from supports import loss_of

from l20fs import Constraints, L20Selector
from l20fs.estimators.penalty import feature_penalty
from l20fs.objective import make_problem

SETTINGS = {"ridge": 2.0, "scale": "zscore"}
WISHES = {
    "free": {},
    "include and exclude": {"constraints": Constraints(include=[0], exclude=[5])},
    "groups": {"constraints": Constraints(groups=[[0, 3, 4], [1, 2], [6, 7]])},
    "costs": {"constraints": Constraints(costs={0: 3.0, 3: 0.5, 6: 2.0})},
    "all": {"constraints": Constraints(include=[1], exclude=[6], groups=[[0, 3], [1, 2]], costs={4: 2.0, 7: 0.5})},
}


def fit(X, y, parameters, sample_weight=None):
    """The fitted selector with its problem and penalty."""
    fitted = L20Selector(certify=True, class_weight=None, **SETTINGS, **parameters).fit(X, y, sample_weight)
    problem = make_problem(X, np.eye(3)[y], **SETTINGS, sample_weight=sample_weight)
    return fitted, problem, feature_penalty(fitted.constraints, problem.design.varies)


def all_panels(problem, penalty):
    """Loss and cost of every selection that the constraints allow, by its units."""
    included = penalty.included.tolist()
    others = [u for u in range(penalty.n_units) if 0.0 < penalty.costs[u] < np.inf]
    panels = {}
    for size in range(len(others) + 1):
        for more in combinations(others, size):
            panel = (*included, *more)
            if penalty.rules is None or penalty.rules.allows(list(panel)):
                rows = np.flatnonzero(np.isin(penalty.unit_of, panel))
                panels[panel] = (loss_of(problem, rows), float(penalty.costs[list(panel)].sum()))
    return panels


@pytest.mark.parametrize("size", [3, None])
@pytest.mark.parametrize("wishes", WISHES)
@given(weighted=st.booleans())
@settings(max_examples=2)
def test_the_certificate_is_that_of_the_constrained_choice(size, wishes, weighted):
    X, y = make_counts(1, 40, 8)
    sample_weight = np.random.default_rng(0).integers(1, 4, 40).astype(float) if weighted else None
    parameters = WISHES[wishes] | ({"alpha": 0.3, "n_features_to_select": None} if size is None else {})
    fitted, problem, penalty = fit(X, y, {"n_features_to_select": size} | parameters, sample_weight)
    found, panels = fitted.certificate_, all_panels(problem, penalty)
    if size is None:
        price = 0.3
    else:
        panels = {panel: parts for panel, parts in panels.items() if len(panel) <= size}
        price = 0.0 if penalty.is_even else fitted.path_.alpha_at(size)
    values = {panel: loss + price * cost for panel, (loss, cost) in panels.items()}
    chosen = tuple(np.union1d(penalty.unit_of[fitted.support_], penalty.included))
    value = dict(zip([tuple(sorted(panel)) for panel in values], values.values(), strict=True))[chosen]
    assert found.upper_bound == pytest.approx(value, rel=1e-9)
    assert found.lower_bound <= min(values.values()) * (1.0 + 1e-12)
    assert found.lower_bound >= 0.9 * min(values.values())
    good = [np.isin(penalty.unit_of, panel) for panel, other in values.items() if other <= value * (1.0 + 1e-12)]
    assert np.all(good, axis=0)[found.proved_in].all()
    assert not np.any(good, axis=0)[found.proved_out].any()
    for k in range(max(1, len(penalty.included)), 4 if size else 2):
        best = min(loss for panel, (loss, _) in all_panels(problem, penalty).items() if len(panel) <= k)
        assert fitted.path_.refit(k).loss * (1.0 - fitted.path_.gap(k)) <= best * (1.0 + 1e-9)


def test_the_bound_is_tighter_under_constraints():
    X, y = make_counts(2, 60, 20)
    free = L20Selector(4, certify=True, **SETTINGS).fit(X, y)
    without = np.flatnonzero(free.support_)[:2].tolist()
    narrow = L20Selector(4, certify=True, constraints=Constraints(exclude=without), **SETTINGS).fit(X, y)
    assert narrow.certificate_.lower_bound > free.certificate_.lower_bound
    assert not set(without) & set(narrow.certificate_.proved_out)


@pytest.mark.parametrize("solver", ["forward", "swap"])
def test_the_certificate_is_that_of_the_constrained_panels(solver):
    """Lower limits need two features, so that no panel is smaller; upper limits hold at every size."""
    X, y = make_counts(3, 40, 8)
    wishes = Constraints(min_per_class=1, sets={"low": [0, 1], "high": [2, 3, 4]}, exclusive=[[3, 5], [0, 6, 7]])
    fitted, problem, penalty = fit(X, y, {"n_features_to_select": 4, "constraints": wishes, "solver": solver})
    panels = {
        panel: loss
        for panel, (loss, _) in all_panels(problem, penalty).items()
        if {0, 1} & {*panel} and {2, 3, 4} & {*panel} and len({3, 5} & {*panel}) < 2 and len({0, 6, 7} & {*panel}) < 2
    }
    assert np.isinf(fitted.path_.lower_bounds[:2]).all()
    for k in range(2, 5):
        best = min(loss for panel, loss in panels.items() if len(panel) <= k)
        assert 0.95 * best <= fitted.path_.lower_bounds[k] <= best * (1.0 + 1e-12)
    assert 0.95 * best <= fitted.certificate_.lower_bound <= best * (1.0 + 1e-12)
    assert fitted.certificate_.upper_bound == pytest.approx(panels[tuple(np.flatnonzero(fitted.support_))])


PLACES = {
    "samples": lambda X: cut(X, 0, 4),
    "columns": lambda X: cut(X, 1, 4),
    "sparse samples": lambda X: cut(sp.csr_array(X), 0, 3),
    "dask": lambda X: da.from_array(X, chunks=(20, X.shape[1])),
    "torch": lambda X: pytest.importorskip("torch", reason="torch is not installed").asarray(X),
}


@pytest.mark.parametrize("place", PLACES)
@given(
    dtype=st.sampled_from([np.float64, np.float32]),
    shape=st.sampled_from([(80, 12), (12, 60)]),
    shift=st.sampled_from([0.0, 100.0]),
)
@settings(max_examples=5)
def test_x_may_be_anywhere(place, shape, dtype, shift):
    """The bounds hold, and they are close to those of X in memory; also with means far from zero."""
    X, y = make_counts(4, *shape)
    X = (X + shift).astype(dtype)
    parameters = {"n_features_to_select": 3, "constraints": Constraints(include=[1], exclude=[2])}
    expected, problem, penalty = fit(X.astype(np.float64), y, parameters)
    found = L20Selector(certify=True, class_weight=None, **SETTINGS, **parameters).fit(PLACES[place](X), y)
    assert found.path_.lower_bounds == pytest.approx(expected.path_.lower_bounds, rel=1e-3)
    assert found.certificate_.lower_bound == pytest.approx(expected.certificate_.lower_bound, rel=2e-4)
    assert found.certificate_.upper_bound == pytest.approx(expected.certificate_.upper_bound, rel=1e-6)
    if shape[1] < 20:
        best = min(loss for panel, (loss, _) in all_panels(problem, penalty).items() if len(panel) <= 3)
        assert found.certificate_.lower_bound <= best
        assert set(found.certificate_.proved_out) == set(expected.certificate_.proved_out)
