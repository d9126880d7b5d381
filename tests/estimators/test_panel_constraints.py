"""Selectors under constraints on panels: quotas, budgets, exclusive features, and wishes that cannot be met."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from blocked import cut
from hypothesis import given, settings
from hypothesis import strategies as st

from l20fs import Constraints, L20Regressor, L20Selector, L20SelectorCV
from l20fs.data import make_planted

SOLVERS = pytest.mark.parametrize("solver", ["forward", "swap"])


@pytest.fixture(scope="module")
def data():
    X, y, _ = make_planted(n_samples=90, n_features=30, n_informative=4, n_classes=3, random_state=0)
    return X, np.array(["a", "b", "c"])[y]


def classes_of(X, y, weights=None):
    """The class in which the mean of each feature is highest."""
    weights = np.ones(len(y)) if weights is None else weights
    means = [np.average(X[y == label], axis=0, weights=weights[y == label]) for label in np.unique(y)]
    return np.argmax(means, axis=0)


def counts(selector, k, owner):
    return np.bincount(owner[selector.support_for(k)], minlength=3)


@SOLVERS
def test_quotas_hold_at_every_size(data, solver):
    X, y = data
    owner = classes_of(X, y)
    selector = L20Selector(9, solver=solver, constraints=Constraints(min_per_class=2, max_per_class=4)).fit(X, y)
    for k in range(6, 10):
        found = counts(selector, k, owner)
        assert found.sum() == k
        assert found.min() >= 2
        assert found.max() <= 4
    assert selector.path_.n_ranked == 12  # all that the upper limits allow
    rule = selector.model_for(7)
    assert np.bincount(owner[rule.rows]).min() >= 2
    with pytest.raises(ValueError, match=r"n_features_to_select=5 is less than the 6 features that the constraints \(at"):
        selector.support_for(5)
    with pytest.warns(UserWarning, match="n_features_to_select=40 goes beyond the 9 features of the fitted path"):
        assert counts(selector, 40, owner).tolist() == [4, 4, 4]


@pytest.mark.parametrize(
    "container", [np.asarray, sp.csr_array, lambda X: cut(X, 0, 2), np.float32], ids=["array", "sparse", "blocks", "float32"]
)
def test_the_class_of_a_feature_is_that_of_its_highest_mean(data, container):
    X, y = data
    weights = np.linspace(0.0, 2.0, len(y))
    selector = L20Selector(3, constraints=Constraints(max_per_class={"a": 0, "b": 0}), fit_intercept=False)
    selector.fit(container(X), y, sample_weight=weights)
    assert counts(selector, 3, classes_of(X, y, weights)).tolist() == [0, 0, 3]


@pytest.mark.parametrize(
    ("wishes", "params", "message"),
    [
        (
            {"min_per_class": 4},
            {},
            "min_per_class=4 with 3 classes: this needs at least 12 features; n_features_to_select=8.",
        ),
        ({"max_per_class": 2}, {}, "max_per_class=2 with 3 classes: this leaves no room for 8 features; n_features_to_se"),
        ({"min_per_class": {"b": 99}}, {}, "min_per_class=99: only .* of the features .* belong to class 'b'."),
        ({"budget": 5.0}, {}, "budget=5: the cheapest 8 features cost 8, and n_features_to_select=8. Raise the budget, or "),
        ({"budget": 5.0, "costs": {0: 9.0}}, {"include": [0]}, "budget=5: the included features cost 9."),
        (
            {"exclusive": [[0, 1, 2]]},
            {"include": [0, 2]},
            r"exclusive\[0\] allows 1, but 2 of .* to it: feature 0, feature 2.",
        ),
        (
            {"min_per_class": 2, "max_per_class": 1},
            {},
            "min_per_class=2 with 3 classes and max_per_class=1 .* no panel meets",
        ),
        ({"min_per_class": 2, "budget": 5}, {}, "min_per_class=2 with 3 classes and budget=5: no panel meets all of this."),
        ({"min_per_class": 1, "sets": {"x": [0, 1]}}, {"exclude": [0, 1]}, "min_per_class=1: only 0 .* belong to set 'x'."),
        ({"min_per_class": 1, "sets": {"x": [0], "y": [1]}, "exclusive": [[0, 1]]}, {}, "min_per_class=1 .* and exclusive"),
        ({"min_per_class": 9, "sets": {"x": range(9)}}, {}, "min_per_class=9 with 1 set: this needs at least 9 features"),
        ({"min_per_class": 2}, {"solver": "ahiht"}, "constraints with solver='ahiht' are not available. Use solver='forw"),
        ({"min_per_class": 2}, {"loss": "l21"}, "constraints with loss='l21' are not available"),
        ({"costs": {0: 1.0}}, {}, "costs without a budget limit nothing"),
    ],
)
def test_what_cannot_be_met_is_told_with_the_constraint(data, wishes, params, message):
    with pytest.raises(ValueError, match=message) as caught:
        L20Selector(8, constraints=Constraints(**wishes), **params).fit(*data)
    assert "\n" not in str(caught.value)


def test_regression_has_no_classes_but_sets(data):
    X, y = data
    numbers = np.unique(y, return_inverse=True)[1] + X[:, 0]
    with pytest.raises(ValueError, match="min_per_class and max_per_class need one class label per sample"):
        L20Regressor(5, constraints=Constraints(min_per_class=1)).fit(X, numbers)
    model = L20Regressor(5, constraints=Constraints(min_per_class=2, sets={"x": [7, 8, 9]})).fit(X, numbers)
    assert model.support_[[7, 8, 9]].sum() >= 2
    with pytest.raises(TypeError, match="is no object of l20fs"):
        L20Selector(constraints={"min_per_class": 2}).fit(X, y)


@SOLVERS
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_infeasible_is_told_exactly_if_brute_force_says_so(solver, seed):
    random = np.random.default_rng(seed)
    X, y = random.standard_normal((20, 8)), np.concatenate([[0, 1, 2], random.integers(0, 3, 17)])
    X[:, 3] = X[:, 2]
    owner, k, costs = classes_of(X, y), int(random.integers(1, 9)), random.integers(1, 5, 8).astype(float)
    given_lists = [random.permutation(8)[:2].tolist() for _ in range(2)]
    wishes = {
        "min_per_class": int(random.integers(0, 3)),
        "max_per_class": int(random.integers(2, 5)),
        "budget": float(random.integers(8, 25)),
        "costs": costs,
        "exclusive": given_lists,
    }
    wishes = {name: value for name, value in wishes.items() if name in ("costs", "budget") or random.random() < 0.6}
    included = random.permutation(8)[: random.integers(0, 2)].tolist()

    def is_allowed(panel):
        held = np.bincount(owner[panel], minlength=3)
        return (
            set(included) <= set(panel)
            and (held >= wishes.get("min_per_class", 0)).all()
            and (held <= wishes.get("max_per_class", 9)).all()
            and costs[panel].sum() <= wishes["budget"]
            and all(len(set(panel) & set(those)) < 2 for those in wishes.get("exclusive", []))
        )

    panels = [list(panel) for panel in combinations(range(8), k) if is_allowed(list(panel))]
    selector = L20Selector(k, solver=solver, constraints=Constraints(**wishes), include=included)
    if not panels:
        with pytest.raises(ValueError, match=r"n_features_to_select|no panel meets|only|include"):
            selector.fit(X, y)
        return
    selector.fit(X, y)
    assert np.flatnonzero(selector.support_).tolist() in panels
    for size in range(selector.path_.least_size, k):
        if size:
            assert is_allowed(np.flatnonzero(selector.support_for(size)))


def test_a_budget_bends_only_the_size_that_is_asked_for(data):
    X, y = data
    costs = np.where(np.arange(30) < 15, 3.0, 1.0)
    free = L20Selector(4).fit(X, y)
    dear = L20Selector(4, max_features=20, constraints=Constraints(budget=12, costs=costs)).fit(X, y)
    assert costs[dear.support_].sum() <= 12.0
    np.testing.assert_array_equal(dear.support_for(4), free.support_)  # four dear ones are within the budget
    many = L20Selector(10, constraints=Constraints(budget=12, costs=costs)).fit(X, y)
    assert many.support_.sum() == 10
    assert costs[many.support_].sum() <= 12.0
    assert dear.support_for(20).sum() < 20  # as far as the budget goes


def test_searches_begin_at_the_least_size(data):
    X, y = data
    constraints = Constraints(min_per_class=2, max_per_class=4)
    search = L20SelectorCV("best", selector=L20Selector(constraints=constraints), cv=3).fit(X, y)
    assert search.cv_results_["n_features_to_select"].tolist() == list(range(6, 13))
    assert counts(search, "best", classes_of(X, y)).min() >= 2
    masks = search.cv_results_["split0_support"]
    assert masks.sum(axis=1)[0] == 6
    none = L20Selector(None, alpha=1e6, constraints=constraints).fit(X, y)
    assert counts(none, None, classes_of(X, y)).tolist() == [2, 2, 2]
