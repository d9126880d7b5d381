"""Where the search of L20SelectorCV ends, and what it says there."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from samples import make_data, make_many_classes

from l20fs import L20SelectorCV
from l20fs.evaluation import choice

LIMIT = "The search for the number of features ended at its limit of {}, .* may do better. Raise the limit"


def test_fifty_classes_get_the_features_that_they_need():
    X, y, informative = make_many_classes()
    progress = []
    selector = L20SelectorCV(cv=2, callback=progress.append).fit(X, y)
    sizes, means = selector.cv_results_["n_features_to_select"], selector.cv_results_["mean_test_score"]
    assert 80 < selector.n_features_ < 180
    assert selector.best_score_ > 1.6 * means[sizes == 40]
    assert selector.support_[informative].mean() > 0.6
    assert sizes.max() == 200
    assert selector.cv_results_["n_features_to_select"].tolist() == choice.search_sizes(200)
    assert [(each.n_done, each.n_paths) for each in progress] == [(1, 2), (2, 2), (3, 4), (4, 4)]
    with pytest.warns(UserWarning, match=f"{LIMIT.format(40)} with max_features"):
        short = L20SelectorCV("best", cv=2, max_features=40).fit(X, y)
    assert short.n_features_ > 36


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(choice, "FIRST_LIMIT", 2)


@pytest.fixture
def rising():
    """Ten features, each of which tells two of eleven classes apart."""
    X, y, _ = make_many_classes(n_classes=11, n_per_class=1, n_samples=20, n_noise=0)
    return X, y


def test_a_search_goes_on_until_all_features_are_tried_and_says_nothing(small_limits, rising):
    X, y = rising
    selector = L20SelectorCV("best", cv=2).fit(X, y)
    assert selector.n_features_ > 9
    assert selector.cv_results_["n_features_to_select"].max() == X.shape[1]


def test_a_search_that_ends_at_its_limit_names_it(rising):
    X, y = rising
    with pytest.warns(UserWarning, match=f"{LIMIT.format(6)} with max_features") as caught:
        selector = L20SelectorCV("best", cv=2, max_features=6).fit(X, y)
    assert selector.n_features_ == 6
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=f"{LIMIT.format(4)} with sizes"):
        L20SelectorCV("best", cv=2, sizes=[1, 2, 4]).fit(X, y)
    assert L20SelectorCV("best", cv=2, max_features=len(X.T)).fit(X, y).n_features_ > 9


def test_what_is_asked_for_is_no_search(rising):
    X, y = rising
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert L20SelectorCV(3, cv=2, max_features=3).fit(X, y).n_features_ == 3
        L20SelectorCV("best", cv=2, alpha=[0.1, 1.0]).fit(X, y)


def test_a_level_curve_is_not_warned_of():
    X, y = make_data(n_samples=200)
    X[:, 3:6] += 10.0 * np.eye(3)[y]
    assert L20SelectorCV("auto", max_features=8, cv=3).fit(X, y).n_features_ < 4
