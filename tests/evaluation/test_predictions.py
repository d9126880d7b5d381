"""Cross-validated predictions for every size, against a loop that fits each size."""

from __future__ import annotations

import numpy as np
import pytest
from libraries import needs_sklearn
from reference import vote
from samples import make_data
from sklearn.base import clone
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, log_loss, r2_score, roc_auc_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from l20fs import AHIHT, Constraints, L20Classifier, L20Regressor, L20Selector, L20SelectorCV
from l20fs.evaluation.choice import choose
from l20fs.evaluation.folds import make_stratified_folds
from l20fs.evaluation.metrics import METRICS
from l20fs.evaluation.predictions import JUDGES, nested_scores, predictions_by_k
from l20fs.evaluation.target_summary import summarise
from l20fs.methods import MRMR, RFS, RPMFS, FisherScore
from l20fs.prediction.calibration import per_class

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
                model = (
                    selector._as_classifier()
                    .set_params(n_features_to_select=k, max_features_to_select=max(sizes))
                    .fit(X[train], y[train])
                )
                order = model.path_.support(k)
                found["linear"][test, column] = model.predict(X[test])
            else:
                fitted = type(selector)(**selector.get_params() | {"n_features_to_select": max(sizes)}).fit(
                    X[train], y[train]
                )
                order = np.argsort(fitted.ranking_)[:k]
                model = L20Classifier(k, ridge=ridge, scale="zscore").fit(X[train][:, order], y[train])
                found["linear"][test, column] = model.predict(X[test][:, order])
            scaled = X[:, order] / X[train][:, order].std(axis=0)
            found["KNN-5"][test, column] = [vote(scaled[train], y[train], scaled[i]) for i in test]
    return found


SELECTORS = [
    L20Selector(2),
    L20Selector(solver="ahiht", ridge=0.5),
    L20Selector(solver=AHIHT(ranking="norm"), scale="none", class_weight=None),
    L20Selector(constraints=Constraints(include=[3], exclude=[0])),
    FisherScore(),
    MRMR(),
    RPMFS(tol=0.1),
]


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
    cv = L20SelectorCV(rule, selector=selector, sizes=range(1, 11), cv=folds).fit(X, y)
    assert found.sizes[choose(found.results(), rule)] == cv.n_features_
    for key in ("mean_test_score", "standard_error", "n_features"):
        np.testing.assert_array_equal(found.results()[key], cv.cv_results_[key])


@pytest.mark.filterwarnings("ignore:The search for the number of features ended at its limit")
@pytest.mark.parametrize("rule", ["best", "1se"])
@pytest.mark.parametrize(
    "groups",
    [None, pytest.param(np.arange(60) % 12, marks=needs_sklearn("1.8", "its folds by groups happen to choose one size"))],
)
def test_the_nested_accuracy_is_that_of_a_choice_in_each_fold(groups, rule):
    X, y = labelled(1)
    X = X[:, [2, 5, 9, 2, 5, 9, 2, 5]] + 2.0 * np.random.default_rng(0).standard_normal((60, 8))  # every feature helps
    folds = make_stratified_folds(y, groups, seed=2)
    outer = predictions_by_k(L20Selector(), X, y, range(1, 8), folds)
    nested = nested_scores(L20Selector(), X, y, outer, rule, groups=groups, seed=2)
    for place, (train, test) in enumerate(folds):
        inner = make_stratified_folds(y[train], None if groups is None else groups[train], seed=2)
        cv = L20SelectorCV(rule, sizes=range(1, 8), cv=inner).fit(X[train], y[train])
        assert nested.sizes[place] == cv.n_features_
        assert nested.scores[place] == pytest.approx(cv.score(X[test], y[test]))
        chosen = outer.predicted["linear"][test, outer.sizes.index(cv.n_features_)]
        assert nested.outputs.labels[test, 0].tolist() == chosen.tolist()
    assert len(set(nested.sizes)) > 1


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


# ------------------------------------------------------------------------------------------------- metrics and regressions


def uneven(seed=0, n_classes=3):
    """Return noisy samples of classes of 30, 20 and 10."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(LETTERS, [30, 20, 10]))
    y = np.where(y == "c", "b", y) if n_classes == 2 else y
    return rng.standard_normal((60, 9)) + 1.2 * rng.standard_normal((3, 9))[np.searchsorted(LETTERS, y)], y


def slow_values(X, y, sizes, folds):
    """Return the decisions of models that are fitted anew for every fold and size, per class."""
    found = np.zeros((len(y), len(sizes), len(np.unique(y))))
    for train, test in folds:
        for column, k in enumerate(sizes):
            model = L20Classifier(k, max_features_to_select=max(sizes)).fit(X[train], y[train])
            scores = model.decision_function(X[test])
            found[test, column] = scores if scores.ndim == 2 else np.stack([-scores / 2, scores / 2], axis=1)
    return found


@pytest.mark.parametrize("n_classes", [2, 3])
def test_values_are_the_decisions_of_models_of_their_own(n_classes):
    X, y = uneven(n_classes=n_classes)
    sizes, folds = [1, 3, 6], make_stratified_folds(y, seed=1)
    found = predictions_by_k(L20Selector(), X, y, sizes, folds)
    np.testing.assert_allclose(per_class(found.values), slow_values(X, y, sizes, folds), atol=1e-9)
    np.testing.assert_allclose(found.probabilities.sum(axis=2), 1.0)
    np.testing.assert_array_equal(found.probabilities.argmax(axis=2), found.predicted["linear"])


SCORERS = {
    "accuracy": accuracy_score,
    "balanced_accuracy": balanced_accuracy_score,
    "f1_macro": lambda truth, labels: f1_score(truth, labels, average="macro"),
    "log_loss": lambda truth, chances: log_loss(truth, chances, labels=range(chances.shape[1])),
    "roc_auc": lambda truth, chances: roc_auc_score(
        truth, chances[:, 1] if chances.shape[1] == 2 else chances, multi_class="ovr"
    ),
}


@pytest.mark.parametrize("name", SCORERS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("judge", JUDGES)
def test_scores_are_those_of_scikit_learn_in_every_fold(name, n_classes, judge):
    X, y = uneven(n_classes=n_classes)
    metric = METRICS[name]
    folds = make_stratified_folds(y, seed=1)
    found = predictions_by_k(L20Selector(), X, y, [1, 3, 6], folds)
    if judge not in found.judges_for(metric):
        assert (judge, metric.needs) == ("KNN-5", "probabilities")
        return
    shown = found.probabilities if metric.needs == "probabilities" else found.predicted[judge]
    expected = [[SCORERS[name](found.targets.codes[test], shown[test, column]) for column in range(3)] for _, test in folds]
    np.testing.assert_allclose(found.fold_scores(judge, metric), expected)
    results = found.results(judge, metric)
    np.testing.assert_allclose(results["mean_test_score"], metric.sign * np.mean(expected, axis=0))
    np.testing.assert_allclose(results["standard_error"], np.std(expected, axis=0, ddof=1) / np.sqrt(len(folds)))


def numbers(seed=0, n_samples=60):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, 9)) * np.geomspace(0.1, 100, 9)
    return X, X[:, [1, 4, 8]] @ [5.0, 1.0, 0.05] + rng.standard_normal(n_samples) + 100.0


@pytest.mark.parametrize(
    "selector", [L20Selector(task="regression"), L20Selector(solver="swap", ridge=0.5), RFS()], ids=repr
)
@pytest.mark.parametrize("groups", [None, np.arange(60) % 7])
def test_numbers_are_predicted_as_in_a_slow_loop(selector, groups):
    X, y = numbers()
    sizes, folds = [1, 3, 6], summarise(y).folds(groups, seed=2)
    found = predictions_by_k(selector, X, y, sizes, folds, ridge=3.0)
    for fold, (train, test) in enumerate(folds):
        for column, k in enumerate(sizes):
            if isinstance(selector, L20Selector):
                model = (
                    selector._as_regressor()
                    .set_params(n_features_to_select=k, max_features_to_select=6)
                    .fit(X[train], y[train])
                )
                order, expected = model.path_.support(k), model.predict(X[test])
            else:
                order = np.argsort(clone(selector).set_params(n_features_to_select=6).fit(X[train], y[train]).ranking_)[:k]
                model = L20Regressor(k, ridge=3.0, scale="zscore").fit(X[train][:, order], y[train])
                expected = model.predict(X[test][:, order])
            np.testing.assert_allclose(found.predicted["linear"][test, column], expected)
            assert found.fold_scores()[fold, column] == pytest.approx(r2_score(y[test], expected))
            neighbours = make_pipeline(StandardScaler(), KNeighborsRegressor(5)).fit(X[train][:, order], y[train])
            np.testing.assert_allclose(found.predicted["KNN-5"][test, column], neighbours.predict(X[test][:, order]))
    assert found.values is None
    assert found.results()["mean_test_score"][-1] > 0.8 or isinstance(selector, RFS)


def test_the_nested_choice_for_numbers_is_that_of_the_selector_with_cross_validation():
    X, y = numbers()
    outer = predictions_by_k(L20Selector(task="regression"), X, y, range(1, 8), summarise(y).folds())
    metric = METRICS["mae"]
    nested = nested_scores(L20Selector(task="regression"), X, y, outer, "best", metric)
    for place, (train, test) in enumerate(outer.folds):
        inner = summarise(y[train]).folds()
        cv = L20SelectorCV(
            "best", sizes=range(1, 8), cv=inner, scoring="neg_mean_absolute_error", selector=L20Selector(task="regression")
        )
        cv.fit(X[train], y[train])
        assert nested.sizes[place] == cv.n_features_
        assert nested.scores[place] == pytest.approx(np.abs(cv.predict(X[test]) - y[test]).mean())
        np.testing.assert_allclose(nested.outputs.numbers[test, 0, 0], cv.predict(X[test]))
