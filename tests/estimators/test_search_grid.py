"""Where the search of L20SelectorCV ends, and what it says there."""

from __future__ import annotations

import numpy as np
import pytest
from samples import make_data, make_many_classes

from l20fs import L20SelectorCV
from l20fs.evaluation import choice

LIMIT = "The search for the number of features ended at its limit of {}, .* may do better. Raise the limit"


def test_fifty_classes_get_the_features_that_they_need():
    X, y, informative = make_many_classes()
    selector = L20SelectorCV(cv=2).fit(X, y)
    sizes, means = selector.cv_results_["n_features_to_select"], selector.cv_results_["mean_test_score"]
    assert 50 < selector.n_features_ <= 100
    assert selector.best_score_ > 1.6 * means[sizes == 40]
    assert selector.support_[informative].mean() > 0.6
    assert sizes.max() == 100
    assert selector.cv_results_["n_features_to_select"].tolist() == choice.search_sizes(100)
    with pytest.warns(UserWarning, match=f"{LIMIT.format(40)} with sizes"):
        short = L20SelectorCV("best", cv=2, sizes=range(1, 41)).fit(X, y)
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
    with pytest.warns(UserWarning, match=f"{LIMIT.format(6)} with sizes") as caught:
        selector = L20SelectorCV("best", cv=2, sizes=range(1, 7)).fit(X, y)
    assert selector.n_features_ == 6
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=f"{LIMIT.format(4)} with sizes"):
        L20SelectorCV("best", cv=2, sizes=[1, 2, 4]).fit(X, y)
    assert L20SelectorCV("best", cv=2, sizes=range(1, len(X.T) + 1)).fit(X, y).n_features_ > 9


def test_a_level_curve_is_not_warned_of():
    X, y = make_data(n_samples=200)
    X[:, 3:6] += 10.0 * np.eye(3)[y]
    assert L20SelectorCV("auto", sizes=range(1, 9), cv=3).fit(X, y).n_features_ < 4
