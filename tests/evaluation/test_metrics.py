"""Metrics of many settings and weightings against scikit-learn, one setting and one weighting at a time."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn import metrics as sk

from l20fs.evaluation.metrics import METRICS, Outputs, find_metric

LABELS = {
    "accuracy": sk.accuracy_score,
    "balanced_accuracy": sk.balanced_accuracy_score,
    "f1_macro": lambda truth, labels, **weights: sk.f1_score(truth, labels, average="macro", **weights),
}
PROBABILITIES = {
    "roc_auc": lambda truth, p, n, **weights: (
        sk.roc_auc_score(truth, p[:, 1], **weights)
        if n == 2
        else sk.roc_auc_score(truth, p, multi_class="ovr", labels=np.arange(n), **weights)
    ),
    "log_loss": lambda truth, p, n, **weights: sk.log_loss(truth, p, labels=np.arange(n), **weights),
    "brier": lambda truth, p, n, **weights: sk.brier_score_loss(truth, p, labels=np.arange(n), **weights),
}
NUMBERS = {
    "r2": sk.r2_score,
    "mae": sk.mean_absolute_error,
    "rmse": sk.root_mean_squared_error,
}


def make_outputs(n_classes, seed=0, n_samples=40, n_settings=3, n_outputs=2):
    """Return random predictions; probabilities have one decimal, so that many are equal."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n_samples) % max(n_classes, 1))
    labels = np.where(rng.random((n_samples, n_settings)) < 0.6, truth[:, None], rng.integers(0, 4, (n_samples, n_settings)))
    if n_classes == 0:
        truth = 1e3 + rng.standard_normal((n_samples, n_outputs))
        return Outputs(truth, 0, numbers=truth[:, None, :] + 0.5 * rng.standard_normal((n_samples, n_settings, n_outputs)))
    tenths = rng.multinomial(10, np.full(n_classes, 1.0 / n_classes), (n_samples, n_settings))
    return Outputs(truth, n_classes, labels % n_classes, tenths / 10.0)


def make_weights(n_samples, seed=0):
    """Return the weightings of one fold, of a bootstrap sample, and of fractions."""
    rng = np.random.default_rng(seed)
    counts = np.bincount(rng.integers(0, n_samples, n_samples), minlength=n_samples)
    return np.stack([np.arange(n_samples) % 3 == 0, counts, rng.random(n_samples)]).astype(float)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", [*LABELS, *PROBABILITIES])
def test_metrics_of_labels_are_those_of_scikit_learn(name, n_classes):
    outputs, weights = make_outputs(n_classes, n_classes), make_weights(40, n_classes)
    found = METRICS[name].formula(outputs, weights)
    assert found.shape == (3, 3)
    for row, given in zip(found, weights, strict=True):
        used = given > 0.0
        for setting, value in enumerate(row):
            options = {"sample_weight": given[used]}
            if name in LABELS:
                expected = LABELS[name](outputs.truth[used], outputs.labels[used, setting], **options)
            else:
                shown = outputs.probabilities[used, setting]
                expected = PROBABILITIES[name](outputs.truth[used], shown, n_classes, **options)
            assert value == pytest.approx(expected)


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("name", NUMBERS)
def test_metrics_of_numbers_are_those_of_scikit_learn(name, n_outputs):
    outputs, weights = make_outputs(0, n_outputs=n_outputs), make_weights(40)
    found = METRICS[name].formula(outputs, weights)
    for row, given in zip(found, weights, strict=True):
        for setting, value in enumerate(row):
            assert value == pytest.approx(NUMBERS[name](outputs.truth, outputs.numbers[:, setting], sample_weight=given))
    if n_outputs == 1:
        flat = Outputs(outputs.truth[:, 0], 0, numbers=outputs.numbers)
        np.testing.assert_array_equal(METRICS[name].formula(flat, weights), found)


@pytest.mark.parametrize("name", ["balanced_accuracy", "f1_macro"])
def test_a_class_that_is_not_there_does_not_count(name):
    outputs = make_outputs(4)
    weights = (outputs.truth != 2).astype(float)[None]
    labels = np.where(outputs.labels == 2, 0, outputs.labels)
    used = weights[0] > 0.0
    for kept in (labels, outputs.labels):  # the class is never predicted, or wrongly
        found = METRICS[name].formula(Outputs(outputs.truth, 4, kept), weights)[0]
        with (
            pytest.warns(UserWarning, match="not in y_true") if name[0] == "b" and kept is outputs.labels else nullcontext()
        ):
            expected = [LABELS[name](outputs.truth[used], column) for column in kept[used].T]
        assert found == pytest.approx(expected)


def test_names_and_signs_are_those_of_scikit_learn():
    for metric in METRICS.values():
        for name in (metric.name, *metric.aliases):
            assert find_metric(name) is metric
        known = [name for name in (metric.name, *metric.aliases) if name in sk.get_scorer_names()]
        assert known
        assert all(name.startswith("neg_") == (metric.sign < 0) for name in known)
        assert metric.is_share == (metric.sign > 0 and metric.is_for_labels)
    with pytest.raises(ValueError, match=r"The metric 'acuracy' is unknown.*accuracy"):
        find_metric("acuracy")
