"""What it costs to leave out a selected feature, against fits without it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from samples import make_data
from sklearn.base import clone

from l20fs import Constraints, L20Selector


def refitted(selector, X, y, rows):
    """The loss of least squares on some features, by a fit that has no others."""
    others = [j for j in range(X.shape[1]) if j not in rows]
    options = {"constraints": Constraints(include=list(map(int, rows)), exclude=others), "max_features_to_select": None}
    fit = clone(selector).set_params(**options, n_features_to_select=len(rows), solver="forward")
    return fit.fit(X, y).path_.refit(len(rows)).loss


@pytest.mark.parametrize("ridge", [0.0, 0.5])
@pytest.mark.parametrize("solver", ["forward", "ahiht"])
def test_costs_are_those_of_fits_without_the_feature(ridge, solver):
    X, y = make_data()
    selector = L20Selector(4, solver=solver, ridge=ridge, max_features_to_select=5, scale="zscore").fit(X, y)
    for k in (2, 4, 5):
        rows = selector.path_.support(k)
        expected = np.array([refitted(selector, X, y, np.delete(rows, place)) for place in range(k)])
        np.testing.assert_allclose(
            selector.path_.failure_costs(k), expected / refitted(selector, X, y, rows) - 1.0, rtol=1e-6
        )


def test_a_group_is_left_out_as_a_whole():
    X, y = make_data()
    selector = L20Selector(3, constraints=Constraints(groups=[[0, 1, 2], [3, 4]]), ridge=0.1, scale="zscore").fit(X, y)
    rows, units = selector.path_.support(3), selector.path_.unit_of
    expected = np.array([refitted(selector, X, y, rows[units[rows] != units[row]]) for row in rows])
    assert len(rows) > 3
    np.testing.assert_allclose(selector.path_.failure_costs(3), expected / refitted(selector, X, y, rows) - 1.0, rtol=1e-6)


def test_without_a_copy_nothing_is_lost():
    X, y = make_data()
    X[:, 5] = X[:, 0]
    selector = L20Selector(3, constraints=Constraints(include=[0, 5]), ridge=0.0, scale="zscore")
    with pytest.warns(UserWarning, match="copies or combinations"):
        selector.fit(X, y)
    costs = dict(zip(selector.path_.support(3), selector.path_.failure_costs(3), strict=True))
    assert costs[0] == pytest.approx(0.0, abs=1e-9)
    assert costs[5] == pytest.approx(0.0, abs=1e-9)
    assert max(costs.values()) > 1e-3


def test_a_saved_path_and_the_table_have_them():
    X, y = make_data()
    selector = L20Selector(3).fit(X, y)
    costs = selector.path_.failure_costs(3)
    np.testing.assert_array_equal(selector.to_frame()["loss_increase"], costs)
    path = pickle.loads(pickle.dumps(selector.path_))
    assert np.array_equal(path.failure_costs(3), costs)
    with pytest.raises(ValueError, match=r"failure_costs\(k=5\): the path can be refitted up to k=3"):
        path.failure_costs(5)
    with pytest.warns(UserWarning, match="goes beyond"):
        assert selector.set_params(n_features_to_select=6).to_frame()["loss_increase"].isna().all()


def test_the_robust_loss_has_costs_of_its_weighted_squares():
    X, y = make_data()
    path = L20Selector(3, loss="l21").fit(X, y).path_
    assert (path.failure_costs(3) > 0.0).all()
    assert ((1.0 + path.failure_costs(3)) * path.refit(3).loss < float(path.null_loss)).all()
