"""Constraints: kept by every solver at every size, also in searches, and refused with the way out where they cannot be."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import SOLVERS, make_data, make_frame
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from l20fs import Constraints, L20Classifier, L20Regressor, L20Selector, L20SelectorCV
from l20fs.data import make_planted

SEEDS = st.integers(0, 2**32 - 1)
quiet = pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}")


def select(k=3, /, **constraints):
    own = {
        name: constraints.pop(name) for name in ("solver", "loss", "ridge", "max_features_to_select") if name in constraints
    }
    return L20Selector(k, constraints=Constraints(**constraints), **own)


@st.composite
def wishes(draw, n_features):
    """Draw what is included and excluded, costs and groups that do not contradict each other."""
    random = np.random.default_rng(draw(SEEDS))
    labels = random.integers(0, n_features // 2, n_features) if draw(st.booleans()) else np.arange(n_features)
    features = random.permutation(n_features)
    included, excluded = features[: draw(st.integers(0, 3))], features[n_features - draw(st.integers(0, 3)) :]
    excluded = excluded[~np.isin(labels[excluded], labels[included])]
    costs = random.uniform(0.2, 4.0, n_features) if draw(st.booleans()) else None
    return {"include": included, "exclude": excluded, "costs": costs, "groups": labels}


@quiet
@pytest.mark.parametrize(("solver", "loss"), [*((solver, "squared_error") for solver in SOLVERS), ("swap", "l21")])
@given(asked=wishes(12), seed=SEEDS, container=st.sampled_from([np.asarray, sp.csr_array]))
@settings(max_examples=12)
def test_every_selection_on_a_path_keeps_to_them(solver, loss, asked, seed, container):
    X, y = make_data(seed)
    X[:, 4], X[:, 7], X[:, 8] = 1.0, X[:, 3], X[:, 0] + X[:, 1]
    labels, included, excluded = asked["groups"], asked["include"], asked["exclude"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is included but does not change the fit
        selector = select(6, max_features_to_select=12, solver=solver, loss=loss, **asked)
        selector.fit(X if loss == "l21" else container(X), y)
        must, must_not = np.isin(labels, labels[included]), np.isin(labels, labels[excluded])
        must[4] = 4 in included
        for k in range(max(1, len({*labels[included]} | {*np.flatnonzero(must & (np.arange(12) == 4))})), 12):
            support = selector.set_params(n_features_to_select=k).support_
            assert support[must].all()
            assert not support[must_not].any()
            for label in np.unique(labels):
                members = support[(labels == label) & (np.arange(12) != 4)]
                assert members.all() or not members.any()
            assert not selector.coef_[:, ~support].any()


@pytest.mark.parametrize("solver", ["forward", "swap"])
def test_numbers_per_class_hold_at_every_size(solver):
    X, y, _ = make_planted(n_samples=90, n_features=30, n_informative=4, n_classes=3, random_state=0)
    owner = np.argmax([X[y == label].mean(axis=0) for label in range(3)], axis=0)
    selector = select(9, solver=solver, min_per_class=2, max_per_class=4).fit(X, y)
    for k in range(6, 10):
        counts = np.bincount(owner[selector.set_params(n_features_to_select=k).support_], minlength=3)
        assert counts.sum() == k
        assert counts.min() >= 2
        assert counts.max() <= 4
    with pytest.raises(ValueError, match="n_features_to_select=5 is less than the 6 features that the constraints"):
        selector.set_params(n_features_to_select=5).get_support()
    search = L20SelectorCV("best", selector=select(min_per_class=2, max_per_class=4), cv=3).fit(X, y)
    assert search.cv_results_["n_features_to_select"].tolist() == list(range(6, 13))


def test_a_budget_limits_and_costs_alone_weigh():
    X, y = make_data(0)
    best = int(np.flatnonzero(L20Selector(1).fit(X, y).support_)[0])
    assert not select(1, costs={best: 100.0}).fit(X, y).support_[best]
    assert select(12, costs={best: 100.0}).fit(X, y).support_[best]
    assert not select(2, costs={best: 100.0}, budget=50).fit(X, y).support_[best]
    assert select(2, costs={best: 0.0}).fit(X, y).ranking_[best] == 1
    assert select(2, costs={best: np.inf}).fit(X, y).scores_[best] == -np.inf


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"include": ["gg3"]}, "include names 'gg3', which X does not have. The closest name is 'g"),
        ({"include": [12]}, "include has the index 12, which is outside 0 to 11"),
        ({"include": [-1]}, "negative indices are not supported"),
        ({"include": [True, False]}, "include has 2 entries for 12 features"),
        ({"include": "g1"}, "include='g1' is not a list"),
        ({"include": [1, "g1"]}, "include names 'g1' twice"),
        ({"include": [1], "exclude": ["g1"]}, "'g1' is both included and excluded"),
        ({"include": [1], "exclude": [2], "groups": [[1, 2]]}, "but both are in one group"),
        ({"costs": [1, 2]}, "costs has 2 entries for 12 features"),
        ({"costs": {"g2": -2.0}}, "costs=-2 of 'g2' is not valid. Use a number of at least 0: 0 includes"),
        ({"costs": {"g2": np.inf}, "budget": 3}, "costs=inf of 'g2' is not valid. Use a finite number"),
        ({"groups": [["g0", "g1"], ["g1"]]}, "'g1' in two groups, 0 and 1"),
        ({"groups": {"a": []}}, r"groups\['a'\] is empty"),
        ({"groups": ["a", "b"]}, "groups has 2 entries for 12 features"),
        ({"groups": [None] * 12}, "groups has no label for 'g0'"),
        ({"exclude": range(12)}, "All 12 features are excluded or constant"),
        ({"include": [0, 1, 2, 3]}, "n_features_to_select=3 is less than the 4 features or groups"),
        ({"budget": 0}, "budget=0 is not valid. Use a number above 0"),
        ({"min_per_class": -1}, "min_per_class=-1 is not valid"),
        ({"sets": {"A": [0]}}, "sets without min_per_class or max_per_class limit nothing"),
        ({"exclusive": [0, 1]}, r"exclusive=\[0, 1\] is no list of lists"),
        ({"min_per_class": {"7": 1}}, "min_per_class names '7', which is no class"),
        ({"min_per_class": 2}, "n_features_to_select=3: no panel of this size meets min_per_class=2; panels that do have 6"),
        ({"budget": 2}, "no panel of this size meets budget=2; panels that do have 0 to 2 features"),
        ({"min_per_class": 2, "max_per_class": 1}, "min_per_class=2 and max_per_class=1: no panel of any size"),
        ({"min_per_class": 1, "solver": "ahiht"}, "Limits of panels with solver='ahiht' are not available"),
        ({"min_per_class": 1, "loss": "l21"}, "Limits of panels with loss='l21' are not available"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_in_one_line(given, words):
    frame, y = make_frame()
    with pytest.raises(ValueError, match=words) as caught:
        select(3, **given).fit(frame, y)
    assert "\n" not in str(caught.value)


def test_no_object_of_constraints_is_refused_and_numbers_have_no_classes():
    X, y = make_data(0)
    with pytest.raises(TypeError, match="is no object of l20fs"):
        L20Selector(constraints={"include": [1]}).fit(X, y)
    with pytest.raises(ValueError, match="need one class label per sample"):
        L20Regressor(2, constraints=Constraints(min_per_class=1)).fit(X, X[:, 0])


def test_idle_features_that_are_included_stay_with_a_warning():
    X, y = make_data(1)
    X[:, 2], X[:, 7], X[:, 8] = 5.0, X[:, 3], 2.0 * X[:, 3] - X[:, 1]
    with pytest.warns(UserWarning, match="1 of the included features are constant, first feature 2"):
        assert select(3, include=[2, 5]).fit(X, y).support_[[2, 5]].all()
    with pytest.warns(UserWarning, match="2 of the included features are copies or combinations"):
        selector = select(5, include=[1, 3, 7, 8], ridge=0.0).fit(X, y)
    assert np.isfinite(selector.coef_).all()
    X = np.hstack([X, np.eye(3)[np.random.default_rng(0).integers(0, 3, 60)]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one-hot columns of a group add up to 1
        assert select(3, include=[12], groups=[[12, 13, 14]], ridge=0.0).fit(X, y).support_[12:].all()


def test_names_indices_masks_and_series_are_the_same():
    frame, y = make_frame()
    mask = pd.Series(np.isin(frame.columns, ["g1", "g4"]), index=frame.columns)[::-1]
    groups = pd.Series(["both" if name in ("g5", "g9") else name for name in frame.columns], index=frame.columns)[::-1]
    fits = [select(4, include=include, exclude=["g2"], groups=groups) for include in (["g1", "g4"], [1, 4], mask)]
    fits = [clone(fit).fit(frame, y) for fit in fits]
    assert fits[0].ranking_.tolist() == fits[1].ranking_.tolist() == fits[2].ranking_.tolist()
    assert fits[0].support_[[1, 4]].all()
    assert fits[0].ranking_[5] == fits[0].ranking_[9]
    with pytest.raises(ValueError, match="Series whose index does not name the features of X"):
        select(4, include=mask).fit(frame.to_numpy(), y)
    assert Constraints(include=[1], costs=np.ones(3)) == Constraints(include=[1], costs=np.ones(3))
    assert Constraints(include=[1]) != Constraints(include=[2])


def test_models_and_shares_count_groups():
    X, y = make_data(0)
    groups = Constraints(groups=np.arange(12) // 3)
    assert L20Selector(0.5, constraints=groups).fit(X, y).support_.sum() == 6
    model = L20Classifier(2, constraints=groups).fit(X, y)
    assert np.array_equal(model.coef_.any(axis=0), model.support_)
    search = L20SelectorCV("best", selector=L20Selector(constraints=groups), sizes=range(1, 7), cv=3).fit(X, y)
    assert search.cv_results_["n_features"].tolist() == [3, 6, 9, 12]
    with pytest.warns(UserWarning, match="but only 2 of 3 features and groups may be selected"):
        select(5, exclude=[0], groups=np.arange(12) // 4).fit(X, y)
