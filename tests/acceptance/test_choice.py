"""How many features, by cross-validation, and how stable they are: every result against a slow loop written out here.

Scores, selections and the choice of the number; nothing that a fold learns comes from its test samples, steps before the
selection included; groups stay whole. The rules, the default folds and the quoted score have tests of their own, behind all
others.
"""

from __future__ import annotations

import numpy as np
import pytest
from acceptance import doors
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of a search that ends at its limit
both_tasks = pytest.mark.parametrize("task", ["classification", "regression"])

OPTIONS = {"solver": "forward", "loss": "squared", "scale": "zscore", "fit_intercept": True, "class_weight": "balanced"}
HALVING = {"n_resamples": 20, "threshold": 0.6, "random_state": 4, "n_jobs": 1}
RIDGES, SIZES = [0.03, 1.0, 30.0], [1, 2, 3, 5, 8]
REFIT = {"refit_ridge": 0.3}  # of the weights of numbers, which are chosen in one test alone
GROUPS = np.random.default_rng(7).permutation(60) % 12


def draw(task, seed=0, d=14, noise=1.5):
    """Return 60 samples of three classes, or with a number each, that depend on three of the features."""
    rng = np.random.default_rng(seed)
    X, names = rng.standard_normal((60, d)), np.array(["a", "b", "c"])
    if task == "regression":
        return X, X[:, [2, 5, 9]] @ [1.5, -1.0, 0.7] + noise * rng.standard_normal(60)
    y = names[rng.permutation(60) % 3]
    X[:, [2, 5, 9]] += (y[:, None] == names) * 2.0 / noise
    return X, y


def folds_at_will():
    """Return splits of unequal sizes; they test some samples twice and some never."""
    tests = [np.random.default_rng(size).permutation(60)[:size] for size in (9, 17, 12, 14)]
    return [(np.setdiff1d(np.arange(60), test), test) for test in tests]


def fit(X, y, k, ridge, weights=None, **options):
    own = {"model": "classifier", "calibration": None} if y.dtype.kind == "U" else {"model": "regressor"} | REFIT
    return doors.fit(X, y, k, ridge=ridge, sample_weight=weights, **OPTIONS | own | options)


def search(X, y, rule, *, ridge=1.0, scale="zscore", **options):
    task = "classification" if y.dtype.kind == "U" else "regression"
    refit = {} if y.dtype.kind == "U" else {"refit_ridge": options.pop("refit_ridge", REFIT["refit_ridge"])}
    template = doors.selector(3, **OPTIONS | {"ridge": ridge, "scale": scale, "task": task} | refit)
    return doors.search(X, y, rule, **{"selector": template, "ridges": RIDGES, "sizes": SIZES, "task": task} | options)


def score(truth, predicted, weights=None):
    return (accuracy_score if truth.dtype.kind == "U" else r2_score)(truth, predicted, sample_weight=weights)


def assert_slow(found, X, y, splits, weights=None, prepared=lambda X, train: X, sizes=SIZES, **options):
    """Compare scores, selections and final predictions with those of a fit for each fold, ridge and size.

    ``prepared`` returns X as steps make it that have learned from the given samples.
    """
    assert set(found.fold_scores) == {(ridge, k) for ridge in RIDGES for k in sizes}
    weights = np.ones(60) if weights is None else weights
    for fold, (train, test) in enumerate(splits):
        Z = prepared(X, train)
        for (ridge, k), scores in found.fold_scores.items():
            own = fit(Z[train], y[train], k, ridge, weights[train], **options)
            assert np.array_equal(found.fold_support(fold, k, ridge), own.support())
            assert scores[fold] == pytest.approx(score(y[test], own.predict(Z[test]), weights[test]), rel=1e-8, abs=1e-10)
    Z = prepared(X, np.arange(60))
    own = fit(Z, y, found.n_features, found.ridge, weights, **options)
    assert score(own.predict(Z), found.final.predict(X)) == pytest.approx(1.0)


@both_tasks
@pytest.mark.parametrize("kind", ["at will", "weights", "groups"])
def test_scores_and_selections_of_the_folds_are_those_of_a_slow_loop(task, kind):
    X, y = draw(task)
    weights = np.random.default_rng(1).choice([0.5, 1.0, 3.0], 60) if kind == "weights" else None
    groups, cv = (GROUPS, GroupKFold(4)) if kind == "groups" else (None, folds_at_will())
    found = search(X, y, "best", cv=cv, groups=groups, sample_weight=weights)
    assert_slow(found, X, y, list(cv.split(X, y, groups)) if kind == "groups" else cv, weights)


@both_tasks
def test_steps_before_the_selection_learn_in_each_fold(task):
    X, y = draw(task)
    X = np.where(np.random.default_rng(2).random(X.shape) < 0.15, np.nan, X * np.geomspace(0.1, 10.0, 14) + 5.0)

    def prepared(X, train):
        filled = np.where(np.isnan(X), np.nanmean(X[train], axis=0), X)
        return (filled - filled[train].mean(axis=0)) / filled[train].std(axis=0)

    steps = make_pipeline(SimpleImputer(), StandardScaler())
    found = search(X, y, "best", scale="none", cv=folds_at_will(), preprocess=steps)
    assert_slow(found, X, y, folds_at_will(), prepared=prepared, scale="none")


@both_tasks
@pytest.mark.parametrize("d", [30, 22_000], ids=["narrow", "wide"])  # the folds share a wide table
def test_changed_test_samples_change_no_selection_of_their_fold(task, d):
    X, y = draw(task, d=d)
    (train, test), rng, Z, z = folds_at_will()[1], np.random.default_rng(3), X.copy(), y.copy()
    Z[test] = 40.0 * rng.random(d) * rng.standard_normal((17, d))
    z[test] = rng.permutation(y[train])[:17]
    options = {"ridge": "auto", "scale": "auto", "ridges": ["auto", 0.5], "sizes": SIZES[:4], "cv": folds_at_will()}
    before, after = search(X, y, "best", **options), search(Z, z, "best", **options)
    for ridge, k in before.fold_scores:
        assert np.array_equal(before.fold_support(1, k, ridge), after.fold_support(1, k, ridge))
    assert not np.array_equal(before.fold_support(0, 3, 0.5), after.fold_support(0, 3, 0.5)), "which learns from them"


@both_tasks
def test_samples_of_a_group_are_never_on_both_sides_of_a_split(task):
    (X, y), seen = draw(task), []
    X[:, 0] = np.arange(60)
    steps = FunctionTransformer(lambda X: seen.append(sorted(X[:, 0].astype(int))) or X)
    search(X, y, 3, cv=4, groups=GROUPS, preprocess=steps, n_jobs=1)
    tests = [samples for samples in seen if len(samples) < 30]
    assert sorted(np.concatenate(tests)) == list(range(60))
    for test in tests:
        assert np.delete(np.arange(60), test).tolist() in seen, "the training samples"
        assert not set(GROUPS[test]) & set(np.delete(GROUPS, test))


SEEN = []


class Halves(BaseEstimator):
    """Select by the means of the first class and of the others, and record the samples of each half by the first feature."""

    def fit(self, X, y):
        found = np.abs(X[y == "a"].mean(axis=0) - X[y != "a"].mean(axis=0)) * (np.arange(X.shape[1]) > 0)
        self.support_, self.ranking_ = (found > 0.5) | (found == found.max()), np.argsort(np.argsort(-found)) + 1
        SEEN.append((sorted(X[:, 0].astype(int)), self.support_))
        return self


def halves_of(X, y, **options):
    """Return a stability selection, the samples of each half, and the selections."""
    SEEN.clear()
    found = doors.stability(np.column_stack([np.arange(60), X[:, 1:]]), y, Halves(), **HALVING | options)
    return found, [half for half, _ in SEEN], np.array([support for _, support in SEEN])


def nogueira(members):
    """Return the index of Nogueira, Sechidis and Brown (2018) and its interval, of a row of zeros and ones per selection."""
    (n, d), p, shares = members.shape, members.mean(axis=0), members.mean(axis=1)
    mean, unit = shares.mean(), shares.mean() * (1.0 - shares.mean())
    index = 1.0 - n / (n - 1) * np.mean(p * (1.0 - p)) / unit
    parts = (members @ p / d - shares * mean + index / 2.0 * (2.0 * shares * mean - shares - mean + 1.0)) / unit
    reach = norm.ppf(0.975) * np.sqrt(4.0 / n**2 * np.square(parts - parts.mean()).sum())
    return index, (index - reach, index + reach)


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["samples", "groups"])
def test_stability_counts_what_complementary_halves_select(groups):
    X, y = draw("classification", noise=2.5)
    found, halves, members = halves_of(X, y, groups=groups)
    assert sorted(halves) == sorted(sorted(set(range(60)) - set(half)) for half in halves)
    assert len({tuple(half) for half in halves}) == len(halves) == 20
    for half in halves:  # has half of each class, or whole groups
        counts = np.unique(y[half] if groups is None else groups[half], return_counts=True)[1]
        assert set(counts) == ({10} if groups is None else {5})
    assert found.frequencies_ == pytest.approx(members.mean(axis=0))
    index, interval = nogueira(members)
    assert (found.stability_, *found.stability_interval_) == pytest.approx((index, *interval))
    assert np.array_equal(found.support_, found.frequencies_ >= 0.6)


@pytest.mark.parametrize(("d", "n"), [(14, 20), (22_000, 4)], ids=["narrow", "wide"])
def test_each_half_is_a_fit_of_its_own(d, n):
    X, y = draw("classification", d=d, noise=0.5)
    halves = halves_of(X, y, n_resamples=n)[1]  # those of the seed, whatever selects on them
    options = OPTIONS | {"ridge": 1.0, "task": "classification"}
    found = doors.stability(X, y, doors.selector(5, **options), **HALVING | {"n_resamples": n})
    members = np.array([np.isin(np.arange(d), doors.fit(X[half], y[half], 5, **options).support()) for half in halves])
    assert found.frequencies_ == pytest.approx(members.mean(axis=0))
    assert found.frequencies_[[2, 5, 9]].tolist() == [1.0, 1.0, 1.0]
    assert found.stability_ == pytest.approx(nogueira(members)[0])


def chosen(scores, rule, *, perfect, guess, d=14):
    """Return the number and the ridge that a rule chooses by the distances of mean scores to the perfect one.

    Of equals: the fewest features, then the strongest ridge.
    """
    errors = {setting: perfect - values.mean() for setting, values in scores.items()}
    best = sorted(errors, key=lambda setting: (round(errors[setting], 10), setting[1], -setting[0]))
    if rule == "auto":
        best = [each for each in best if each[1] >= min(10, d / 10)]
        k = min(k for ridge, k in best if errors[ridge, k] <= 1.05 * errors[best[0]] + 1e-10)
    else:
        k = best[0][1] if rule == "best" else rule
    if rule != k and min(errors.values()) >= perfect - guess:
        k = min(SIZES)
    return next((k, ridge) for ridge, other in best if other == k) if k > 1 else k


def searches(rule, n=10, **options):
    for seed in range(n):
        X, y = draw("classification" if seed % 2 else "regression", seed, noise=(1.5, 2.5, 6.0)[seed % 3])
        yield search(X, y, rule, cv=KFold(4), scoring=options.get("scoring", ("r2", "accuracy"))[seed % 2]), seed % 2


@pytest.mark.parametrize("rule", ["auto", "best", 3])
def test_a_rule_chooses_by_the_distance_to_the_perfect_score(rule):
    found = [(each.n_features, each.ridge, each.fold_scores, labels) for each, labels in searches(rule)]
    for k, ridge, scores, labels in found:
        right = chosen(scores, rule, perfect=1.0, guess=1 / 3 if labels else 0.0)
        assert right in (k, (k, ridge))
    assert rule == 3 or len({k for k, *_ in found}) > 2


def test_by_default_calibrated_probabilities_choose_and_numbers_by_all_predictions_together():
    differ, n_guesses = 0, 0
    for seed in range(12):
        X, y = draw("classification", seed, noise=(1.5, 3.0, 30.0)[seed % 3])
        folds = list(StratifiedKFold(5).split(X, y))  # of equal sizes, whose mean is that of all predictions
        by = {name: search(X, y, "auto", cv=folds, scoring=name) for name in (None, "neg_brier_score", "accuracy")}
        own, brier, accuracy = ((each.n_features, each.ridge) for each in by.values())
        assert own == brier
        right = chosen(by["neg_brier_score"].fold_scores, "auto", perfect=0.0, guess=-2.0 / 3.0)
        assert right in (own, own[0])
        differ, n_guesses = differ + (own != accuracy), n_guesses + (own[0] == 1)
    assert differ
    assert n_guesses, "on noise"
    for seed in range(4):
        X, y = draw("regression", seed, noise=2.5)
        splits, errors = folds_at_will(), {}
        found = search(X, y, "best", cv=splits)
        tested = np.concatenate([test for _, test in splits])
        for ridge, k in found.fold_scores:
            parts = [fit(X[train], y[train], k, ridge).predict(X[test]) for train, test in splits]
            errors[ridge, k] = np.square(np.concatenate(parts) - y[tested]).sum()
        assert (found.ridge, found.n_features) == min(errors, key=lambda each: (round(errors[each], 8), each[1], -each[0]))


def test_the_ridge_of_the_weights_is_chosen_with_the_number_and_the_ridge_of_the_selection():
    seen = set()
    for seed, noise in ((0, 0.3), (1, 3.0)):
        X, y = draw("regression", seed, noise=noise)
        found, errors = search(X, y, "best", cv=KFold(4), refit_ridge=None), {}
        for ridge, k in found.fold_scores:
            for refit in [0.0, 1e-3, 1e-2, 1e-1, 1.0, 10.0]:
                predicted = np.empty(60)
                for train, test in KFold(4).split(X):
                    predicted[test] = fit(X[train], y[train], k, ridge, refit_ridge=refit).predict(X[test])
                errors[ridge, k, refit] = np.square(predicted - y).sum()
        ridge, k, refit = min(errors, key=lambda each: (round(errors[each], 7), each[1], -each[0]))
        assert (found.ridge, found.n_features) == (ridge, k)
        own = fit(X, y, k, ridge, refit_ridge=refit)
        np.testing.assert_allclose(found.final.predict(X), own.predict(X), rtol=1e-8)
        seen.add(refit)
    assert len(seen) > 1


def test_folds_by_default_are_four_times_five_with_the_shares_of_the_classes():
    kinds = {"classification": RepeatedStratifiedKFold, "regression": RepeatedKFold}
    for task, kind in kinds.items():
        X, y = draw(task)
        splits = kind(n_splits=5, n_repeats=4, random_state=0).split(X, y)
        assert_slow(search(X, y, "best", sizes=[2, 5]), X, y, list(splits), sizes=[2, 5])
    X, y = draw("classification")
    random, splits = np.random.RandomState(0), []
    for _ in range(4):
        splits += StratifiedGroupKFold(5, shuffle=True, random_state=random).split(X, y, GROUPS)
    assert_slow(search(X, y, "best", groups=GROUPS, sizes=[2]), X, y, splits, sizes=[2])
    once = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    steps = FunctionTransformer(lambda X: X)
    assert_slow(search(X, y, "best", preprocess=steps, sizes=[2]), X, y, once, sizes=[2])
    assert_slow(search(X, y, "best", cv=5, sizes=[2]), X, y, once, sizes=[2])


def test_the_quoted_score_on_noise_is_chance_and_selecting_first_is_far_above():
    quoted, first, y = [], [], np.array(["a", "b"])[np.arange(60) % 2]
    for seed in range(8):
        X = np.random.default_rng(seed).standard_normal((60, 200))
        found = search(X, y, "auto", ridges=[1.0], sizes=list(range(1, 31)))
        few = search(X[:, fit(X, y, 10, 1.0).support()], y, "best", cv=StratifiedKFold(5), ridges=[1.0], sizes=[10])
        quoted.append(found.score)
        first.append(few.fold_scores[1.0, 10].mean())
        assert found.interval[0] < 0.5 < found.interval[1]
    assert abs(np.mean(quoted) - 0.5) < 0.07  # three errors of 8 x 60 predictions
    assert np.mean(first) > 0.75


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_quoted_score_is_that_of_all_predictions_of_all_repeats(task):
    X, y = draw(task, 1, d=40, noise=3.0)
    repeats = [list(KFold(5, shuffle=True, random_state=seed).split(X)) for seed in range(3)]
    splits = [split for repeat in repeats for split in repeat]
    found = search(X, y, "auto", cv=splits)
    k, ridge = found.n_features, found.ridge
    predicted = [fit(X[train], y[train], k, ridge).predict(X[test]) for train, test in splits]
    tested = np.concatenate([test for _, test in splits])
    assert found.score == pytest.approx(score(y[tested], np.concatenate(predicted)), rel=1e-9)
    assert found.interval[0] < found.score < found.interval[1]
    if task == "classification":  # Wilson's interval, with an effective number of samples
        c, variance = found.score, found.score * (1.0 - found.score)
        n = 60 * variance / (variance + 0.75 * norm.pdf(norm.ppf(c)) ** 2)
        t = norm.ppf(0.975) ** 2 / n
        assert found.interval == pytest.approx(tuple(sorted(np.roots([1.0 + t, -2.0 * c - t, c * c]))))
