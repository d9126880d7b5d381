"""Cross-validated predictions for every size, against a loop that fits each size."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from reference import vote
from samples import CONTAINERS, make_data

from l20fs import L20Classifier, L20Selector, L20SelectorCV
from l20fs.data import make_planted
from l20fs.evaluation.choice import choose
from l20fs.evaluation.folds import make_stratified_folds
from l20fs.evaluation.judges import RefittedRule
from l20fs.evaluation.predictions import JUDGES, nested_accuracy, predictions_by_k
from l20fs.methods import MRMR, RPMFS, FisherScore
from l20fs.objective.ridge import auto_ridge

LETTERS = np.array(["a", "b", "c"])


def labelled(seed=0, **sizes):
    X, y = make_data(seed, **sizes)
    return X, LETTERS[y]


def slow_predictions(selector, X, y, sizes, folds, ridge):
    """Fit everything anew for every fold and every size."""
    found = {judge: np.empty((len(y), len(sizes)), dtype=y.dtype) for judge in JUDGES}
    for train, test in folds:
        for column, k in enumerate(sizes):
            if isinstance(selector, L20Selector):
                parameters = selector.get_params() | {"n_features_to_select": k, "max_features": max(sizes)}
                model = L20Classifier(**parameters).fit(X[train], y[train])
                order = model.path_.support(k)
                found["linear"][test, column] = model.predict(X[test])
            else:
                fitted = type(selector)(**selector.get_params() | {"n_features_to_select": max(sizes)}).fit(
                    X[train], y[train]
                )
                order = np.argsort(fitted.ranking_)[:k]
                model = L20Classifier(k, ridge=ridge, scale="zscore").fit(X[train][:, order], y[train])
                found["linear"][test, column] = model.predict(X[test][:, order])
            found["KNN-5"][test, column] = [vote(X[train][:, order], y[train], X[i, order]) for i in test]
    return found


SELECTORS = [
    L20Selector(2),
    L20Selector(solver="ahiht", ridge=0.5),
    L20Selector(solver="swap", scale="none", class_weight=None, ranking="norm"),
    L20Selector(include=[3], exclude=[0]),
    FisherScore(),
    MRMR(),
    RPMFS(tol=0.1),
]


def test_the_automatic_ridge_of_the_judge_is_that_of_the_training_samples():
    X, y = labelled(n_samples=60)
    X = np.hstack([X, np.ones((60, 1))])  # a constant feature does not count
    sizes, folds = [1, 2, 4, 7], make_stratified_folds(y, seed=3)[:1]
    ridge = auto_ridge(X.shape[1] - 1, len(folds[0].train), for_labels=True)
    automatic, given = (predictions_by_k(FisherScore(), X, y, sizes, folds, ridge=value) for value in ("auto", ridge))
    np.testing.assert_array_equal(automatic.predicted["linear"], given.predicted["linear"])
    assert RefittedRule().strength_on(X[folds[0].train]) == ridge


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda selector: repr(selector)[:40])
def test_predictions_are_those_of_a_slow_loop(selector):
    X, y = labelled(n_samples=60)
    kept = (y != "b") | (np.arange(60) < 30)  # classes of unequal size have unequal weights
    X, y = X[kept], y[kept]
    sizes, folds = [1, 2, 4, 7], make_stratified_folds(y, seed=3)
    found = predictions_by_k(selector, X, y, sizes, folds, ridge=3.0)
    expected = slow_predictions(selector, X, y, sizes, folds, 3.0)
    for judge in JUDGES:
        np.testing.assert_array_equal(found.classes[found.predicted[judge]], expected[judge])
        right = expected[judge] == y[:, None]
        np.testing.assert_allclose(found.accuracy(judge), [right[fold.test].mean(axis=0) for fold in folds])
    assert len(np.unique(found.accuracy(), axis=1).T) > 1  # sizes differ, so a mix-up would be seen


@pytest.mark.filterwarnings("ignore:The search for the number of features ended at its limit")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rule", ["best", "1se"])
def test_the_choice_is_that_of_the_selector_with_cross_validation(seed, rule):
    X, y = labelled(seed)
    X += np.random.default_rng(seed).standard_normal(X.shape)
    folds = make_stratified_folds(y, seed=seed)
    selector = L20Selector(ridge=1.0)
    found = predictions_by_k(selector, X, y, range(1, 11), folds)
    cv = L20SelectorCV(rule, selector=selector, max_features=10, cv=folds).fit(X, y)
    assert found.sizes[choose(found.results(), rule)] == cv.n_features_
    for key in ("mean_test_score", "standard_error", "n_features"):
        np.testing.assert_array_equal(found.results()[key], cv.cv_results_[key])


@pytest.mark.filterwarnings("ignore:The search for the number of features ended at its limit")
@pytest.mark.parametrize("rule", ["best", "1se"])
@pytest.mark.parametrize("groups", [None, np.arange(60) % 12])
def test_the_nested_accuracy_is_that_of_a_choice_in_each_fold(groups, rule):
    X, y = labelled(1)
    X = X[:, [2, 5, 9, 2, 5, 9, 2, 5]] + 2.0 * np.random.default_rng(0).standard_normal((60, 8))  # every feature helps
    folds = make_stratified_folds(y, groups, seed=2)
    outer = predictions_by_k(L20Selector(), X, y, range(1, 8), folds)
    nested = nested_accuracy(L20Selector(), X, y, outer, rule, groups=groups, seed=2)
    for place, (train, test) in enumerate(folds):
        inner = make_stratified_folds(y[train], None if groups is None else groups[train], seed=2)
        cv = L20SelectorCV(rule, max_features=7, cv=inner).fit(X[train], y[train])
        assert nested.sizes[place] == cv.n_features_
        assert nested.accuracies[place] == pytest.approx(cv.score(X[test], y[test]))
    assert len(set(nested.sizes)) > 1


def test_the_confusion_counts_every_sample_once():
    X, y = labelled()
    found = predictions_by_k(L20Selector(), X, y, [2, 5], make_stratified_folds(y))
    for judge in JUDGES:
        for column, size in enumerate(found.sizes):
            predicted = found.classes[found.predicted[judge][:, column]]
            expected = [[((y == a) & (predicted == b)).sum() for b in LETTERS] for a in LETTERS]
            np.testing.assert_array_equal(found.confusion(size, judge), expected)
    assert (found.confusion(2) != found.confusion(5)).any()


@pytest.mark.parametrize("selector", [L20Selector(), L20Selector(solver="ahiht")], ids=["forward", "ahiht"])
def test_sparse_is_as_dense_and_never_made_dense(selector, monkeypatch):
    X, y = labelled()
    X = X * (np.abs(X) > 0.7)
    folds = make_stratified_folds(y)
    expected = predictions_by_k(selector, X, y, [1, 3, 6], folds)
    densified = []
    original = sp.csr_array.toarray
    monkeypatch.setattr(
        sp.csr_array, "toarray", lambda self, *a, **k: densified.append(self.shape) or original(self, *a, **k)
    )
    found = predictions_by_k(selector, sp.csc_array(X), y, [1, 3, 6], folds)
    for judge in JUDGES:
        np.testing.assert_array_equal(found.predicted[judge], expected.predicted[judge])
    assert densified
    assert max(n_columns for _, n_columns in densified) <= 6


def test_noise_has_chance_accuracy_and_a_leak_would_be_seen():
    honest, leaky = [], []
    rng = np.random.default_rng(0)
    for seed in range(4):
        X, y = rng.standard_normal((60, 2000)), rng.permutation(np.repeat(LETTERS, 20))
        folds = make_stratified_folds(y, seed=seed)
        found = predictions_by_k(L20Selector(), X, y, [20], folds)
        honest.append([found.accuracy(judge).mean() for judge in JUDGES])
        chosen = L20Selector(20).fit_transform(X, y)
        cheat = predictions_by_k(L20Selector(), chosen, y, [20], folds)
        leaky.append([cheat.accuracy(judge).mean() for judge in JUDGES])
    # Three classes of equal size. On one such set the accuracy has deviation 0.08, so the mean of four has 0.04.
    np.testing.assert_allclose(np.mean(honest, axis=0), 1 / 3, atol=0.16)
    assert (np.mean(leaky, axis=0) > 0.6).all()


def test_selection_never_sees_the_test_samples():
    X, y = labelled()
    seen = []

    class Recording(FisherScore):
        def fit(self, X, y):
            seen.append((X.copy(), y.copy()))
            return super().fit(X, y)

    folds = make_stratified_folds(y, seed=2)
    predictions_by_k(Recording(), X, y, [3], folds)
    for (X_seen, y_seen), fold in zip(seen, folds, strict=True):
        np.testing.assert_array_equal(X_seen, X[fold.train])
        np.testing.assert_array_equal(y_seen, y[fold.train])


@pytest.mark.parametrize("make", CONTAINERS)
def test_selector_and_data_stay_as_they_were_and_every_fold_is_reported(make):
    X, y = labelled()
    X = make(X)
    X_before, y_before = X.copy(), y.copy()
    selector = L20Selector(5).fit(X, y)
    support, parameters = selector.support_.copy(), selector.get_params()
    calls = []
    folds = make_stratified_folds(y)
    found = predictions_by_k(selector, X, y, [2, 3], folds, on_fold=lambda: calls.append(1))
    assert len(calls) == len(folds)
    assert found.n_features.tolist() == [[2, 3]] * 5
    assert selector.get_params() == parameters
    np.testing.assert_array_equal(selector.support_, support)
    assert abs(X - X_before).max() == 0.0
    np.testing.assert_array_equal(y, y_before)


def test_processes_change_nothing():
    X, y = labelled()
    folds = make_stratified_folds(y)
    one, two = (predictions_by_k(L20Selector(), X, y, [1, 4], folds, n_jobs=n_jobs) for n_jobs in (1, 2))
    for judge in JUDGES:
        np.testing.assert_array_equal(one.predicted[judge], two.predicted[judge])


def test_a_class_that_a_fold_does_not_know_is_never_right_there():
    X, y = labelled()
    y = np.where(np.arange(60) < 4, "ab", y)  # between the others, so that its absence shifts their positions
    groups = np.where(np.arange(60) < 4, 0, 1 + np.arange(60) % 6)
    folds = make_stratified_folds(y, groups)
    for selector in (L20Selector(), L20Selector(class_weight={"ab": 2.0}), FisherScore()):
        found = predictions_by_k(selector, X, y, [3], folds)
        for judge in JUDGES:
            assert (found.classes[found.predicted[judge][:4, 0]] != "ab").all()
            assert found.accuracy(judge)[:, 0].max() > 0.5


def test_an_alpha_that_leaves_a_fold_without_features_is_no_error():
    X, y, _ = make_planted(60, 12, 3, 3, noise=0.1, random_state=0)
    alpha = 0.999 * L20Selector(3).fit(X, y).path_.alphas[0]  # just below where the first feature enters
    found = predictions_by_k(L20Selector(3, alpha=alpha), X, y, [3], make_stratified_folds(y))
    assert 0 in found.n_features
    assert all(np.isfinite(found.accuracy(judge)).all() for judge in JUDGES)


def test_features_that_are_constant_in_a_fold_are_not_counted():
    X, y = labelled()
    X[:, 3:] = 1.0
    for selector in (L20Selector(), FisherScore()):
        found = predictions_by_k(selector, X, y, [2, 3, 6], make_stratified_folds(y))
        assert found.n_features.tolist() == [[2, 3, 3]] * 5
