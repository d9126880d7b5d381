"""Classes and numbers: their sizes, folds, metrics and chance levels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import get_scorer

from l20fs.evaluation.metrics import METRICS
from l20fs.evaluation.target_summary import Classes, Numbers, summarise

NOTHING = np.zeros((90, 1))


def classes(**sizes):
    return Classes.of(np.repeat(list(sizes), list(sizes.values())))


def test_classes_are_counted_in_sorted_order():
    found = Classes.of(np.array(["b", "a", "b", "c"]))
    assert (found.names, found.sizes, len(found)) == (["a", "b", "c"], [1, 2, 1], 3)
    np.testing.assert_array_equal(found.codes, [1, 0, 1, 2])
    assert found.largest_share == 0.5
    assert found.smallest == ("a", 1)  # the first of two


def test_rare_classes():
    assert classes(a=5, b=60).rare() == []
    assert classes(a=4, b=60).rare() == [("a", 4)]
    assert classes(a=4, b=60, c=1).rare() == [("a", 4), ("c", 1)]


def test_a_dominant_class():
    assert classes(a=49, b=10).dominant() is None
    assert classes(a=50, b=10).dominant() == ("a", pytest.approx(5 / 6))


def test_uneven_classes_are_scored_class_by_class():
    assert classes(a=49, b=10).metric.name == "accuracy"
    assert classes(a=50, b=10).metric.name == "balanced_accuracy"
    assert Numbers(np.arange(3.0)).metric.name == "r2"


SCORERS = {
    "roc_auc": "roc_auc_ovr",
    "log_loss": "neg_log_loss",
    "mae": "neg_mean_absolute_error",
    "rmse": "neg_root_mean_squared_error",
}


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.is_for_labels and name != "brier"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_chance_of_classes_is_the_score_of_a_dummy(name, n_classes):
    y = np.random.default_rng(0).choice(list("abc")[:n_classes], 90)
    expected = get_scorer(SCORERS.get(name, name))(DummyClassifier().fit(NOTHING, y), NOTHING, y)
    assert METRICS[name].sign * summarise(y).chance(METRICS[name]) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["r2", "mae", "rmse"])
def test_the_chance_of_numbers_is_the_score_of_a_dummy(name):
    y = np.random.default_rng(0).exponential(size=90)
    expected = get_scorer(SCORERS.get(name, name))(DummyRegressor().fit(NOTHING, y), NOTHING, y)
    assert METRICS[name].sign * summarise(y).chance(METRICS[name]) == pytest.approx(expected, abs=1e-12)


def test_folds_of_numbers_test_every_sample_once_and_keep_groups_together():
    y = np.arange(23.0)
    folds = summarise(y).folds(seed=1)
    assert np.sort(np.concatenate([fold.test for fold in folds])).tolist() == list(range(23))
    assert summarise(y).n_folds() == len(folds) == 5
    assert any(a.test.tolist() != b.test.tolist() for a, b in zip(folds, summarise(y).folds(seed=2), strict=True))
    groups = np.arange(23) % 4
    for fold in summarise(y).folds(groups, seed=1):
        assert not set(groups[fold.train]) & set(groups[fold.test])
    assert summarise(y).n_folds(groups) == 4
    with pytest.raises(ValueError, match="at least 4 samples"):
        summarise(np.arange(3.0)).folds()
