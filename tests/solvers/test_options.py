"""Solvers as objects: strings still work, and options are parameters."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from samples import make_data
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from l20fs import AHIHT, HIHT, L20Classifier, L20Selector
from l20fs.solvers import Solver, forward


def test_options_travel_in_a_grid_a_clone_and_a_file():
    X, y = make_data()
    search = GridSearchCV(L20Classifier(3, solver=AHIHT()), {"solver__rate": [0.5, 0.9]}, cv=3).fit(X, y)
    assert search.best_estimator_.solver.rate in (0.5, 0.9)
    selector = L20Selector(3, solver=AHIHT(rate=0.5, init=np.zeros((3, 12))))
    for copy in (clone(selector), pickle.loads(pickle.dumps(selector))):
        assert copy.solver == selector.solver
        assert copy.solver is not selector.solver
    assert repr(L20Selector(3, solver=HIHT(tol=1e-3))) == "L20Selector(n_features_to_select=3, solver=HIHT(tol=0.001))"
    copy = clone(selector).set_params(solver__rate=0.7)
    assert selector.solver.rate == 0.5
    assert copy.get_params()["solver__rate"] == 0.7


def test_what_a_solver_cannot_do_is_refused():
    X, y = make_data()
    with pytest.raises(
        ValueError, match=r"loss='l21' with solver=AHIHT\(rate=0\.5\) is not available\. Use .*'forward' or 'swap'"
    ):
        L20Selector(3, loss="l21", solver=AHIHT(rate=0.5)).fit(X, y)
    for unknown in ("newton", 3, AHIHT, None):
        with pytest.raises(ValueError, match=r"solver=.* is unknown\. Use 'forward', 'swap', 'ahiht' or 'hiht'"):
            L20Selector(3, solver=unknown).fit(X, y)


def test_a_solver_of_ones_own_is_one_class():
    class Backwards(Solver):
        name = "backwards"

        def walk(self, problem, n_rows, *, penalty=None):
            return forward(problem, n_rows + 1, penalty=penalty)

    X, y = make_data()
    assert L20Selector(3, solver=Backwards()).fit(X, y).path_.n_nonzero[-1] == 4
