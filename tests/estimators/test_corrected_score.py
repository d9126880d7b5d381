"""The corrected score of L20SelectorCV, and the predictions that it comes from, against slow loops and scikit-learn."""

from __future__ import annotations

from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
from samples import make_data
from sklearn.linear_model import LinearRegression
from sklearn.metrics import get_scorer, make_scorer, median_absolute_error
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from l20fs import L20Classifier, L20Selector, L20SelectorCV
from l20fs.estimators import selector_cv
from l20fs.evaluation.choice import choose_each
from l20fs.evaluation.corrected_score import corrected_by_folds, corrected_score, fixed_score
from l20fs.evaluation.folds import Fold
from l20fs.evaluation.metrics import METRICS, Outputs
from l20fs.prediction.linear_rule import decide

pytestmark = pytest.mark.filterwarnings("ignore:The search for the number of features ended at its limit")


def fit_keeping_values(selector, X, y):
    """Fit a selector, and keep the values of the rules of its folds, by which it calibrates."""
    with patch.object(selector_cv, "calibrations_of_search", wraps=selector_cv.calibrations_of_search) as spy:
        selector.fit(X, y)
    selector._fold_values = spy.call_args.args[1].values_of(spy.call_args.args[2])
    return selector


def make_numbers(n_outputs):
    X = make_data(n_samples=60)[0]
    rng = np.random.default_rng(1)
    Y = X[:, [2, 5, 9]] @ rng.standard_normal((3, n_outputs)) + rng.standard_normal((60, n_outputs))
    return X, Y[:, 0] if n_outputs == 1 else Y


@pytest.mark.parametrize("rule", ["best", "1se"])
def test_it_is_that_of_the_predictions_of_a_slow_loop(rule):
    X, y = make_data(n_samples=50)
    fitted = L20SelectorCV(rule, ridges=[0.1, 10.0], sizes=range(1, 7)).fit(X, y)
    folds = [Fold(*split) for split in StratifiedKFold(5).split(X, y)]
    labels = np.empty((50, 12), dtype=int)
    for train, test in folds:
        for setting in range(12):
            model = L20Classifier(setting % 6 + 1, ridge=[0.1, 10.0][setting // 6], max_features_to_select=6)
            labels[test, setting] = model.fit(X[train], y[train]).predict(X[test])
    rows = np.concatenate([fold.test for fold in folds])  # in this order they are drawn
    places = np.argsort(rows)
    outputs, folds = Outputs(y[rows], 3, labels[rows]), [Fold(fold.train, places[fold.test]) for fold in folds]
    choose = partial(choose_each, fitted.cv_results_, rule)
    expected = corrected_score(outputs, METRICS["accuracy"], folds, choose)
    assert (fitted.corrected_score_, *fitted.corrected_interval_) == expected


@pytest.mark.parametrize(
    ("estimator", "scoring", "n_classes"),
    [
        (None, "accuracy", 3),
        (None, "balanced_accuracy", 2),
        (None, "f1_macro", 3),
        (None, "roc_auc", 2),
        (GaussianNB(), "neg_brier_score", 2),
        (GaussianNB(), "roc_auc_ovr", 3),
        (GaussianNB(), "neg_log_loss", 3),
        (LinearSVC(), "roc_auc", 2),
    ],
)
def test_scores_of_labels_are_those_of_the_scorer(estimator, scoring, n_classes):
    """A scorer that is called with a model takes another way, fold by fold and size by size."""
    X, y = make_data(n_samples=60, n_classes=n_classes)
    y = y if scoring == "neg_brier_score" else np.array(["a", "b", "c"])[y]  # of which scikit-learn wants numbers
    options = {"sizes": range(1, 5), "estimator": estimator}
    found = L20SelectorCV("best", scoring=scoring, **options).fit(X, y)
    scorer = get_scorer(scoring or "accuracy")
    slow = L20SelectorCV("best", scoring=lambda model, X, y: scorer(model, X, y), **options).fit(X, y)
    for name, values in slow.cv_results_.items():
        np.testing.assert_allclose(found.cv_results_[name], values, rtol=1e-12, err_msg=name)
    if scoring in (None, "accuracy"):
        np.testing.assert_array_equal(found.cv_results_["mean_test_score"], slow.cv_results_["mean_test_score"])
    lower, upper = found.corrected_interval_
    assert lower < found.corrected_score_ < upper
    by_folds = slow.cv_results_
    scores = np.stack([by_folds[f"split{fold}_test_score"] for fold in range(5)])
    expected = corrected_by_folds(scores, partial(choose_each, by_folds, "best"))
    assert (slow.corrected_score_, *slow.corrected_interval_) == expected


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("estimator", ["regressor", LinearRegression()])
@pytest.mark.parametrize("scoring", [None, "r2", "neg_mean_absolute_error", "neg_root_mean_squared_error"])
def test_scores_of_numbers_are_those_of_the_scorer(estimator, scoring, n_outputs):
    X, y = make_numbers(n_outputs)
    options = {"sizes": range(1, 5), "estimator": estimator}
    found = L20SelectorCV("best", scoring=scoring, **options).fit(X, y)
    scorer = get_scorer(scoring or "r2")
    slow = L20SelectorCV("best", scoring=lambda model, X, y: scorer(model, X, y), **options).fit(X, y)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], slow.cv_results_["mean_test_score"], rtol=1e-9)
    lower, upper = found.corrected_interval_
    assert lower < found.corrected_score_ < upper
    assert upper < 0.0 or scoring in (None, "r2"), "errors have a minus sign"
    assert abs(found.corrected_score_ - found.best_score_) < 0.2 * abs(found.best_score_)


def test_noise_is_corrected_to_chance():
    rng = np.random.default_rng(0)
    fits = [
        L20SelectorCV("best", sizes=range(1, 31)).fit(rng.standard_normal((60, 200)), np.arange(60) % 2) for _ in range(8)
    ]
    assert np.mean([fitted.best_score_ for fitted in fits]) > 0.58
    assert abs(np.mean([fitted.corrected_score_ for fitted in fits]) - 0.5) < 0.05  # 8 x 60 samples have an error of 0.023
    for fitted in fits:
        assert fitted.corrected_interval_[0] < 0.5 < fitted.corrected_interval_[1]


def test_a_fixed_number_is_not_chosen_but_its_ridge_is():
    X, y = make_data(n_samples=60)
    options = {"sizes": range(1, 7), "cv": StratifiedKFold(5)}
    one = fit_keeping_values(L20SelectorCV(3, **options), X, y)
    values = one._fold_values
    right = decide(values.values)[:, 2] == y[values.samples]
    outputs = Outputs(np.zeros(60, dtype=int), 1, (~right).astype(int)[:, None])
    folds = [Fold(np.empty(0), np.flatnonzero(values.folds == fold)) for fold in range(5)]
    assert (one.corrected_score_, *one.corrected_interval_) == fixed_score(outputs, METRICS["accuracy"], 0, folds=folds)
    several = L20SelectorCV(3, ridges=[1e-3, 1.0, 1e3], **options).fit(X, y)
    assert several.corrected_score_ < several.best_score_
    assert several.corrected_score_ > 0.6


def test_groups_are_drawn_together():
    X, y = make_data(n_samples=20)
    copies = np.repeat(np.arange(20), 6)
    fitted = L20SelectorCV("best", sizes=range(1, 5), cv=GroupKFold(5)).fit(X[copies], y[copies], groups=copies)
    alone = L20SelectorCV("best", sizes=range(1, 5), cv=GroupKFold(5)).fit(X, y, groups=np.arange(20))
    np.testing.assert_allclose(fitted.corrected_interval_, alone.corrected_interval_, atol=0.06)  # other folds and draws


def test_weights_count_as_samples():
    X, y = make_data(n_samples=60)
    weights = np.where(np.arange(60) < 20, 0.0, 2.0)
    cv = [(train, test) for train, test in StratifiedKFold(4).split(X[20:], y[20:])]
    weighted = L20SelectorCV("best", sizes=range(1, 5), cv=[(train + 20, test + 20) for train, test in cv])
    weighted.fit(X, y, sample_weight=weights)
    plain = L20SelectorCV("best", sizes=range(1, 5), cv=cv).fit(X[20:], y[20:], sample_weight=weights[20:])
    assert (weighted.corrected_score_, weighted.corrected_interval_) == (plain.corrected_score_, plain.corrected_interval_)


@pytest.mark.filterwarnings("ignore:Class.* with fewer samples than the")
def test_a_class_may_be_absent_from_the_training_samples():
    X, y = make_data(n_samples=61)
    y[60] = 7
    fitted = fit_keeping_values(L20SelectorCV("best", sizes=range(1, 5)), X, y)
    values = fitted._fold_values
    assert values.values.shape == (61, 4, 4)
    row = np.flatnonzero(values.samples == 60)[0]
    assert np.isneginf(values.values[row, :, 3]).all()
    assert (decide(values.values[row]) < 3).all()
    X, y = make_data(n_samples=40, n_classes=2)
    y[0] = 7
    values = fit_keeping_values(L20SelectorCV("best", sizes=range(1, 5)), X, y)._fold_values
    two = values.values[values.samples == 0][0]
    np.testing.assert_allclose(two[:, 0], -two[:, 1])  # of the two classes that are there


def test_a_scorer_of_ones_own_is_corrected_by_its_folds():
    X, y = make_numbers(1)
    scoring = make_scorer(median_absolute_error, greater_is_better=False)
    fitted = L20SelectorCV("1se", sizes=range(1, 5), scoring=scoring, selector=L20Selector(task="regression")).fit(X, y)
    scores = np.stack([fitted.cv_results_[f"split{fold}_test_score"] for fold in range(5)])
    expected = corrected_by_folds(scores, partial(choose_each, fitted.cv_results_, "1se"))
    assert (fitted.corrected_score_, *fitted.corrected_interval_) == expected
