"""Scores of a choice against a slow twin, closed forms and simulated truth."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.stats import binomtest, t
from sklearn.metrics import accuracy_score

from l20fs.evaluation.choice import Setting, choose, choose_each, tabulate
from l20fs.evaluation.corrected_score import (
    N_CHOICES,
    Estimate,
    corrected_by_folds,
    corrected_score,
    fixed_score,
    wilson,
)
from l20fs.evaluation.folds import Fold, make_stratified_folds
from l20fs.evaluation.metrics import METRICS, Outputs

ACCURACY = METRICS["accuracy"]


def make_predictions(seed=0, n_samples=60, n_settings=12, n_classes=3, share=0.7):
    """Return labels that are right with the same probability by every setting, and folds."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n_samples) % n_classes)
    wrong = (truth[:, None] + rng.integers(1, n_classes, (n_samples, n_settings))) % n_classes
    labels = np.where(rng.random((n_samples, n_settings)) < share, truth[:, None], wrong)
    return Outputs(truth, n_classes, labels), make_stratified_folds(truth, seed=seed)


def table(outputs, metric, folds):
    """Return the results of 1, 2, ... features."""
    scores = [metric.formula(outputs.part(fold.test), np.ones((1, len(fold.test))))[0] for fold in folds]
    sizes = np.arange(1, outputs.n_settings + 1)
    return tabulate([Setting(1.0, None)], sizes, metric.sign * np.array(scores)[None], np.array([[sizes] * len(folds)]))


def correct(outputs, metric, folds, rule="best", **options):
    choose_by = partial(choose_each, table(outputs, metric, folds), rule)
    return corrected_score(outputs, metric, folds, choose_by, **options)


def corrected_slowly(outputs, folds, rule):
    """Return the corrected accuracy by loops over bootstrap samples, folds and settings."""
    results = table(outputs, ACCURACY, folds)
    best = choose(results, rule)
    right = outputs.labels == outputs.truth[:, None]
    random = np.random.default_rng(0)
    counts = np.empty((N_CHOICES, len(right)))
    for code in range(outputs.n_classes):
        members = np.flatnonzero(outputs.truth == code)
        counts[:, members] = random.multinomial(len(members), [1 / len(members)] * len(members), N_CHOICES)
    changes = []
    for drawn in counts:
        means, shares = np.zeros(outputs.n_settings), 0.0
        for fold in folds:
            weights = drawn[fold.test]
            if weights.sum():
                means += [weights @ right[fold.test, setting] / len(weights) for setting in range(outputs.n_settings)]
                shares += weights.sum() / len(weights)
        chosen = choose(results | {"mean_test_score": means / shares}, rule)
        left = drawn == 0
        changes.append(
            accuracy_score(outputs.truth[left], outputs.labels[left, chosen])
            - accuracy_score(outputs.truth[left], outputs.labels[left, best])
        )
    return right[:, best].mean() + np.mean(changes)


@pytest.mark.parametrize("rule", ["best", "1se"])
def test_the_corrected_score_is_that_of_a_slow_loop(rule):
    outputs, folds = make_predictions()
    assert correct(outputs, ACCURACY, folds, rule).value == pytest.approx(corrected_slowly(outputs, folds, rule), abs=1e-12)


@pytest.mark.parametrize("rule", ["best", "1se"])
def test_rows_are_chosen_as_one_by_one(rule):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 6, (2, 5, 7)) / 5.0  # with ties
    results = tabulate([Setting(1.0, 0.1), Setting(2.0, 0.1)], range(7), scores, rng.integers(1, 4, (2, 1, 7)))
    means = rng.integers(0, 4, (50, 14)) / 10.0
    among = rng.random(14) < 0.7
    found = choose_each(results, rule, means, among)
    assert found.tolist() == [choose(results | {"mean_test_score": row}, rule, among) for row in means]


@pytest.mark.parametrize("metric", METRICS.values(), ids=list(METRICS))
def test_the_optimism_of_a_choice_among_equals_is_removed(metric):
    """Of settings that are equally good the best seems better, and the corrected score is that of any of them."""
    uncorrected, corrected, expected = [], [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        outputs, folds = make_predictions(seed, n_samples=90)
        if metric.needs == "probabilities":
            logits = 2.0 * rng.standard_normal((90, 12, 3)) + 2.0 * np.eye(3)[outputs.truth][:, None, :]
            outputs = Outputs(outputs.truth, 3, probabilities=np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True))
        elif metric.needs == "numbers":
            truth = rng.standard_normal(90)
            outputs = Outputs(truth, 0, numbers=truth[:, None, None] + 0.5 * rng.standard_normal((90, 12, 1)))
        found = correct(outputs, metric, folds)
        assert found.lower < found.value < found.upper
        assert seed or found == correct(outputs, metric, folds), "the draws are the same"
        corrected.append(found.value)
        of_all = metric.formula(outputs, np.ones((1, 90)))[0]
        uncorrected.append(of_all[table(outputs, metric, folds)["mean_test_score"].argmax()])
        expected.append(of_all.mean())
    optimism = metric.sign * (np.mean(uncorrected) - np.mean(expected))
    assert optimism > 0.0
    assert abs(np.mean(corrected) - np.mean(expected)) < 0.6 * optimism  # of ten samples


def test_intervals_of_independent_settings_cover_the_truth():
    """The nominal 95 %: at least 93 % in 200 samples, of which the models are known and do not vary."""
    found = [correct(*with_metric(make_predictions(seed, share=0.85))) for seed in range(200)]
    assert np.mean([each.lower <= 0.85 <= each.upper for each in found]) > 0.93


def with_metric(made):
    return made[0], ACCURACY, made[1]


def test_wilson_is_that_of_scipy():
    for n_right, n in [(0, 7), (3, 7), (63, 63), (150, 200)]:
        expected = binomtest(n_right, n).proportion_ci(method="wilson")
        assert wilson(n_right, n) == pytest.approx((expected.low, expected.high))


def test_a_perfect_score_has_an_interval():
    truth = np.arange(63) % 4
    outputs = Outputs(truth, 4, np.repeat(truth[:, None], 5, axis=1))
    folds = make_stratified_folds(truth)
    for metric in (METRICS[name] for name in ("accuracy", "balanced_accuracy", "f1_macro")):
        assert correct(outputs, metric, folds) == Estimate(1.0, *wilson(63, 63))
    groups = np.arange(63) // 7
    assert correct(outputs, ACCURACY, folds, groups=groups) == Estimate(1.0, *wilson(9, 9)), "of nine groups"


@pytest.mark.parametrize("name", ["balanced_accuracy", "mae", "r2"])
def test_intervals_of_fresh_samples_cover_the_truth(name):
    """At least 91 % of 200: of 60 samples the bootstrap variance is a little too small."""
    metric, is_inside = METRICS[name], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        if metric.is_for_labels:
            outputs, expected = make_predictions(seed, n_settings=1)[0], 0.7
        else:
            truth = rng.standard_normal(60)
            outputs = Outputs(truth, 0, numbers=(0.5 * truth)[:, None, None])  # what is left has half the deviation
            expected = 0.75 if name == "r2" else 0.5 * np.sqrt(2.0 / np.pi)
        found = fixed_score(outputs, metric, 0)
        is_inside.append(found.lower <= expected <= found.upper)
    assert np.mean(is_inside) > 0.91


def test_samples_of_a_group_count_as_one():
    outputs, folds = make_predictions(n_settings=4)
    copies = np.repeat(np.arange(60), 3)
    repeated = [Fold(fold.train, np.flatnonzero(np.isin(copies, fold.test))) for fold in folds]
    found = correct(outputs.part(copies), ACCURACY, repeated, groups=copies)
    once, naive = correct(outputs, ACCURACY, folds), correct(outputs.part(copies), ACCURACY, repeated)
    assert found.value == pytest.approx(once.value, abs=0.01)  # other draws, of groups instead of samples within classes
    assert found.upper - found.lower == pytest.approx(once.upper - once.lower, rel=0.15)
    assert naive.upper - naive.lower < 0.8 * (once.upper - once.lower)


def test_samples_without_weight_or_fold_do_not_count():
    outputs, folds = make_predictions()
    kept = np.arange(60) % 5 > 0
    fewer = [Fold(fold.train, fold.test[kept[fold.test]]) for fold in folds]
    by_weight = correct(outputs, ACCURACY, fewer, sample_weight=kept.astype(float))
    places = np.cumsum(kept) - 1
    removed = [Fold(fold.train, places[fold.test]) for fold in fewer]
    assert correct(outputs, ACCURACY, fewer) == by_weight == correct(outputs.part(np.flatnonzero(kept)), ACCURACY, removed)


def test_by_folds_the_others_choose():
    scores = np.random.default_rng(0).random((5, 8))
    found = corrected_by_folds(scores, lambda means: means.argmax(axis=1))
    left = [scores[fold, np.delete(scores, fold, axis=0).mean(axis=0).argmax()] for fold in range(5)]
    half = t(4).ppf(0.975) * np.std(left, ddof=1) / np.sqrt(5)
    assert found == pytest.approx((np.mean(left), np.mean(left) - half, np.mean(left) + half))
    assert np.isnan(corrected_by_folds(scores[:1], lambda means: means.argmax(axis=1))[1:]).all()
