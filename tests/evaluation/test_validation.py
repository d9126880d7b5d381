"""Judgement of predictions, against scikit-learn, closed forms and intervals computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest, ttest_1samp
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    confusion_matrix,
    f1_score,
    log_loss,
    mean_absolute_error,
    r2_score,
    recall_score,
    roc_auc_score,
    root_mean_squared_error,
)

from l20fs.evaluation.metrics import Outputs
from l20fs.evaluation.validation import calibration_slope, validate_classes, validate_numbers


@pytest.fixture
def rng():
    return np.random.default_rng(0)


CLASSES = ["a", "b", "c"]


@pytest.fixture
def cohort(rng):
    truth = rng.choice(CLASSES, 80)
    logits = 2.0 * np.eye(3)[np.searchsorted(CLASSES, truth)] + rng.standard_normal((80, 3))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    predicted = np.array(CLASSES)[probabilities.argmax(axis=1)]
    return truth, probabilities, predicted


def test_scores_are_those_of_scikit_learn(cohort):
    truth, probabilities, predicted = cohort
    found = validate_classes(truth.tolist(), probabilities, predicted.tolist(), CLASSES)
    expected = {
        "accuracy": accuracy_score(truth, predicted),
        "balanced_accuracy": balanced_accuracy_score(truth, predicted),
        "f1_macro": f1_score(truth, predicted, average="macro"),
        "roc_auc": roc_auc_score(truth, probabilities, multi_class="ovr"),
        "log_loss": log_loss(truth, probabilities),
        "brier": brier_score_loss(truth, probabilities, scale_by_half=False),
    }
    assert {name: each.value for name, each in found.scores.items()} == pytest.approx(expected)
    assert all(each.lower < each.value < each.upper for each in found.scores.values())
    interval = binomtest(int((truth == predicted).sum()), 80).proportion_ci(method="wilson")
    assert found.scores["accuracy"][1:] == pytest.approx((interval.low, interval.high))
    np.testing.assert_array_equal(found.confusion, confusion_matrix(truth, predicted))


def test_rates_of_classes_are_those_of_each_against_the_rest(cohort):
    truth, probabilities, predicted = cohort
    rates = validate_classes(truth.tolist(), probabilities, predicted.tolist(), CLASSES).rates
    for place, (name, each) in enumerate(zip(CLASSES, rates, strict=True)):
        assert each.sensitivity.value == pytest.approx(recall_score(truth == name, predicted == name))
        assert each.specificity.value == pytest.approx(recall_score(truth != name, predicted != name))
        assert each.n_expected == pytest.approx(probabilities[:, place].sum())
        assert (each.n_samples, each.n_predicted) == ((truth == name).sum(), (predicted == name).sum())


def test_classes_that_are_not_known_count_in_no_score(cohort):
    truth, probabilities, predicted = cohort
    predicted = np.where(predicted == "c", "b", predicted)
    found = validate_classes(truth.tolist(), probabilities[:, :2], predicted.tolist(), ["a", "b"])
    known = truth != "c"
    assert found.unknown == {"c": int((~known).sum())}
    assert found.n_samples == known.sum()
    assert found.scores["accuracy"].value == np.mean(predicted[known] == truth[known])
    assert found.confusion.shape == (3, 2)
    assert found.confusion.sum() == 80


def test_reliability_of_probabilities_is_that_of_the_bins(cohort):
    truth, probabilities, predicted = cohort
    found = validate_classes(truth.tolist(), probabilities, predicted.tolist(), CLASSES)
    largest, right = probabilities.max(axis=1), truth == predicted
    assert sum(each.n_samples for each in found.bins) == 80
    error = 0.0
    for low in np.arange(10) / 10:
        mask = (largest >= low) & (largest < low + 0.1)
        error += abs(largest[mask].sum() - right[mask].sum()) / 80
    assert found.calibration_error == pytest.approx(error)


def test_the_slope_of_the_calibration_has_the_largest_likelihood(cohort):
    truth, probabilities, _ = cohort
    codes = np.searchsorted(CLASSES, truth)
    outputs = Outputs(codes, 3, probabilities=probabilities[:, None, :])

    def loss(slope):
        powers = probabilities**slope
        return -np.log(powers[np.arange(80), codes] / powers.sum(axis=1)).sum()

    best = minimize_scalar(loss, bounds=(0.01, 20.0), method="bounded", options={"xatol": 1e-10}).x
    found = calibration_slope(outputs)
    assert found.value == pytest.approx(best, rel=1e-5)  # a minimum is found to the root of the rounding
    for end in (found.lower, found.upper):  # half of the 95 % quantile of chi-squared
        assert loss(end) - loss(best) == pytest.approx(1.920729, rel=1e-5)
    assert found.lower < found.value < found.upper
    squared = probabilities**2 / (probabilities**2).sum(axis=1, keepdims=True)
    halved = calibration_slope(Outputs(codes, 3, probabilities=squared[:, None, :]))
    assert halved == pytest.approx([end / 2 for end in found], rel=1e-5)


def test_numbers_are_judged_as_by_scikit_learn(rng):
    truth = rng.standard_normal(50)
    predicted = truth + 0.3 * rng.standard_normal(50) + 0.1
    groups = np.array(["x", "y"])[np.arange(50) % 2]
    found = validate_numbers(truth, predicted, groups)
    expected = {
        "r2": r2_score(truth, predicted),
        "mae": mean_absolute_error(truth, predicted),
        "rmse": root_mean_squared_error(truth, predicted),
    }
    assert {name: each.value for name, each in found.scores.items()} == pytest.approx(expected)
    interval = ttest_1samp(predicted - truth, 0.0).confidence_interval()
    assert found.bias[1:] == pytest.approx((interval.low, interval.high))
    assert [each.score.value for each in found.batches] == pytest.approx(
        [r2_score(truth[groups == name], predicted[groups == name]) for name in "xy"]
    )
