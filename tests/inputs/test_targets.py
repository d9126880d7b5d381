"""What y stands for: labels or numbers, by ``task`` or by its type."""

from __future__ import annotations

import numpy as np
import pytest
from samples import assert_same_fit, make_data
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsRegressor

from l20fs import L20Classifier, L20Regressor, L20Selector, L20SelectorCV, StabilitySelector

WARNING = r"y holds numbers, .* 214 class labels, \d+ of them with one or two samples. Use task='regression'"


@pytest.fixture(scope="module")
def diabetes():
    """442 whole numbers, of which 214 differ."""
    return load_diabetes(return_X_y=True)


@pytest.mark.filterwarnings("ignore:y has 84 of 214 classes in one sample only")
def test_many_whole_numbers_that_hardly_repeat_are_numbers(diabetes):
    X, y = diabetes
    for target in (y, y.astype(int)):
        with pytest.warns(UserWarning, match="214 distinct whole numbers.* Use task='classification' if they are labels"):
            selector = L20Selector(3).fit(X, target)
        assert selector.task_ == "regression"
        assert_same_selection(selector, L20Regressor(3).fit(X, y))
    with pytest.warns(UserWarning, match="taken for numbers") as caught:
        StabilitySelector(L20Selector(3), n_resamples=4, random_state=0).fit(X, y)
    assert sum("taken for" in str(each.message) for each in caught) == 1, "once, not in every half"
    with pytest.warns(UserWarning, match="taken for numbers"):
        search = L20SelectorCV(3, cv=KFold(2), sizes=[3]).fit(X, y)
    assert is_regressor(search)
    assert search.score(X, y) > 0.4
    with pytest.warns(UserWarning, match="221 distinct whole numbers"):
        assert L20Selector(3).fit(X, np.arange(442) % 221).task_ == "regression"
    assert L20Selector(3).fit(X, np.arange(442) % 20).task_ == "classification"


def test_classes_of_a_few_samples_stay_classes_in_halves():
    X, y = np.random.default_rng(0).standard_normal((100, 8)), np.arange(100) % 25
    found = StabilitySelector(L20Selector(3), n_resamples=4, random_state=0).fit(X, y)
    expected = StabilitySelector(L20Selector(3, task="classification"), n_resamples=4, random_state=0).fit(X, y)
    np.testing.assert_array_equal(found.orders_, expected.orders_)


def test_dates_and_labels_in_two_columns_are_refused():
    X, y = make_data()
    with pytest.raises(ValueError, match="y holds dates or times"):
        L20Selector(3).fit(X, np.datetime64("2024-01-01") + y)
    with pytest.raises(ValueError, match="y has 2 columns of whole numbers that are no label indicator"):
        L20Selector(3).fit(X, np.column_stack([y, y[::-1]]))


def test_a_named_task_is_not_warned_of(diabetes):
    X, y = diabetes
    labels = L20Selector(3, task="classification").fit(X, y)
    assert len(labels.classes_) == 214
    numbers = L20Selector(3, task="regression").fit(X, y)
    assert not hasattr(numbers, "classes_")
    assert_same_selection(numbers, L20Regressor(3).fit(X, y))
    assert numbers.ridge_ == L20Selector(3).fit(X, y + 0.5).ridge_, "that of numbers"


def test_models_have_their_task_by_nature():
    X, y = make_data()
    asked = L20Selector(3, task="regression", ridge=0.5)
    assert_same_fit(asked.as_classifier().fit(X, y), L20Classifier(3, ridge=0.5).fit(X, y))
    assert_same_selection(asked.as_regressor().fit(X, y), asked.fit(X, y))
    assert_same_fit(L20Classifier(3, task="classification").fit(X, y), L20Classifier(3).fit(X, y))
    assert clone(L20Regressor(task="regression")).get_params()["task"] == "regression"
    assert L20Selector().get_params() == L20Selector().as_regressor().get_params()
    own = {name: value for name, value in L20Selector().get_params().items() if name != "refit_ridge"}
    assert L20Classifier().get_params() == own | {"calibration": 5}
    with pytest.raises(ValueError, match=r"task='regression' is unknown. Use 'auto' or 'classification'"):
        L20Classifier(task="regression").fit(X, y)
    with pytest.raises(ValueError, match=r"task='classification' is unknown. Use 'auto' or 'regression'"):
        L20Regressor(task="classification").fit(X, y)
    with pytest.raises(ValueError, match=r"task='numbers' is unknown. Use 'auto', 'classification' or 'regression'"):
        L20Selector(task="numbers").fit(X, y)


def test_a_search_follows_the_task():
    X, y = make_data()
    labels, numbers = L20SelectorCV(cv=3), L20SelectorCV(cv=3, task="regression")
    assert is_classifier(labels)
    assert is_regressor(numbers)
    assert is_regressor(L20SelectorCV(selector=L20Selector(task="regression")))
    numbers.fit(X, y)
    folds = KFold(3, shuffle=True, random_state=0)
    expected = L20SelectorCV(cv=folds, estimator="regressor", scoring="r2").fit(X, y)
    np.testing.assert_array_equal(numbers.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])
    assert not hasattr(numbers, "classes_")
    assert isinstance(numbers.model_, L20Regressor)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    expected = L20SelectorCV(cv=folds, estimator="classifier", scoring="accuracy").fit(X, y)
    np.testing.assert_array_equal(labels.fit(X, y).cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])


def test_a_search_refuses_what_contradicts_itself():
    X, y = make_data()
    assert L20SelectorCV(3, cv=3).fit(X, y + 0.5).task_ == "regression"
    with pytest.raises(ValueError, match="Unknown label type"):
        L20SelectorCV(task="classification").fit(X, y + 0.5)
    with pytest.raises(ValueError, match=r"task='regression' contradicts estimator='classifier'"):
        L20SelectorCV(task="regression", estimator="classifier").fit(X, y)
    with pytest.raises(ValueError, match=r"task='classification' contradicts estimator=KNeighborsRegressor"):
        L20SelectorCV(task="classification", estimator=KNeighborsRegressor()).fit(X, y)
    with pytest.raises(ValueError, match=r"task='ranks' is unknown"):
        L20SelectorCV(task="ranks").fit(X, y)


def test_halves_have_the_task_of_the_whole():
    X, y = make_data()
    y = np.where(np.arange(60) == 7, 0.5, y)  # the only fraction; without it y looks like labels
    numbers = StabilitySelector(L20Selector(3), n_resamples=4, random_state=0).fit(X, y)
    expected = StabilitySelector(L20Regressor(3), n_resamples=4, random_state=0).fit(X, y)
    np.testing.assert_array_equal(numbers.orders_, expected.orders_)
    whole = StabilitySelector(L20Selector(3, task="regression"), n_resamples=4, random_state=0).fit(X, y.astype(int))
    expected = StabilitySelector(L20Regressor(3), n_resamples=4, random_state=0).fit(X, y.astype(int))
    np.testing.assert_array_equal(whole.orders_, expected.orders_)


def assert_same_selection(selector, expected):
    np.testing.assert_array_equal(selector.ranking_, expected.ranking_)
    np.testing.assert_array_equal(selector.scores_, expected.scores_)
