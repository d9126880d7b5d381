"""The fold engine against loops that fit everything anew, and its four users against each other."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import vote
from samples import make_data
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer, make_scorer, mean_absolute_error
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold
from sklearn.neighbors import KNeighborsClassifier

from l20fs import L20Classifier, L20Regressor, L20Selector, L20SelectorCV
from l20fs.evaluation.engine import Samples, evaluate, score_sizes, select
from l20fs.evaluation.folds import Fold, make_folds
from l20fs.evaluation.judges import FittedEstimator, NearestNeighbours, OwnModel, RefittedRule
from l20fs.evaluation.predictions import predictions_by_k
from l20fs.experiments.cells import Dataset
from l20fs.experiments.plan import parse_plan
from l20fs.experiments.protocol import paper_split
from l20fs.experiments.runner import run
from l20fs.methods import ESFS, MRMR, FisherScore

SIZES, ACCURACY = [1, 2, 4, 7], get_scorer("accuracy")


def noisy(seed=0):
    X, y = make_data(seed)
    return X + np.random.default_rng(seed).standard_normal(X.shape), y


def slow_scores(make_selector, folds, score_on):
    """Return (n_folds, n_sizes): for every fold and size a selector of its own, and a score with its features."""
    return np.array([[score_on(make_selector(k), train, test) for k in SIZES] for train, test in folds])


# ------------------------------------------------------------------------------------------------- four users, one engine


def knn(X, y, fold, columns):
    train, test = fold
    return np.mean([vote(X[train][:, columns], y[train], X[i, columns]) == y[i] for i in test])


@pytest.mark.filterwarnings("ignore:The search for the number of features ended at its limit")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("params", ["", 'solver = "swap"', "ridge = 0.5", 'scale = "none"'])
def test_cv_select_compare_and_reproduce_give_the_same_scores_on_the_same_fold(tmp_path, seed, params):
    X, y = noisy(seed)
    plan = parse_plan(
        f'datasets = ["toy"]\nsizes = {SIZES}\nn_splits = 1\nseed = {seed}\n[[methods]]\nmethod = "L20Selector"\n'
        f"params = {{ {params} }}"
    )
    fold, template = paper_split(y, 0, seed), plan.variants[0].selector()
    rows = run(plan, [Dataset("toy", X, y)], tmp_path)
    by_cells = rows.accuracy[rows.classifier == "knn"].to_numpy()
    neighbours = KNeighborsClassifier(5, algorithm="brute")
    by_cv = L20SelectorCV("best", selector=template, sizes=SIZES, cv=[fold], estimator=neighbours).fit(X, y)
    by_select = predictions_by_k(template, X, y, SIZES, [fold])
    fits = [
        clone(template).set_params(n_features_to_select=k, max_features=7).fit(X[fold.train], y[fold.train]) for k in SIZES
    ]
    expected = [knn(X, y, fold, fitted.get_support(indices=True)) for fitted in fits]
    assert by_cells.tolist() == pytest.approx(expected)
    scaled = X / X[fold.train].std(axis=0)  # select has features of any units and divides them by their deviation
    expected_scaled = [knn(scaled, y, fold, fitted.get_support(indices=True)) for fitted in fits]
    assert by_select.accuracy("KNN-5")[0].tolist() == pytest.approx(expected_scaled)
    assert by_cv.cv_results_["split0_test_score"].tolist() == pytest.approx(expected)
    own = L20SelectorCV("best", selector=template, sizes=SIZES, cv=[fold]).fit(X, y)
    assert by_select.accuracy("linear")[0].tolist() == own.cv_results_["split0_test_score"].tolist()
    assert len(set(expected)) > 1, "sizes differ, so a mix-up would be seen"


# ------------------------------------------------------------------------------------------------------------- slow loops


def worst(model, X, y):
    """A scorer of one's own: minus the largest error in any target."""
    return -np.abs(model.predict(X) - y).max()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_targets", [1, 3])
def test_several_targets_and_weights_with_a_scorer_of_ones_own(n_targets, weighted):
    rng = np.random.default_rng(n_targets)
    X = rng.standard_normal((60, 12))
    Y = X[:, [2, 5, 9]] @ rng.standard_normal((3, n_targets)) + rng.standard_normal((60, n_targets))
    Y = Y[:, 0] if n_targets == 1 else Y
    weights = rng.integers(0, 4, 60).astype(float) if weighted else None
    folds = make_folds(KFold(4), X, Y, None, classify=False)

    def part(chosen):
        return {} if weights is None else {"sample_weight": weights[chosen]}

    samples = Samples(X, Y, weights, fit_params={} if weights is None else {"sample_weight": weights})
    judges = {"own": OwnModel(worst), "ridge": FittedEstimator(Ridge(), worst)}
    found = [judged.by_judge for judged in evaluate([L20Regressor()], samples, folds, SIZES, judges)]
    for number, (train, test) in enumerate(folds):
        for place, k in enumerate(SIZES):
            model = L20Regressor(k, max_features=7).fit(X[train], Y[train], **part(train))
            assert found[number]["own"][place] == pytest.approx(worst(model, X[test], Y[test]))
            chosen = model.support_
            other = Ridge().fit(X[train][:, chosen], Y[train], **part(train))
            assert found[number]["ridge"][place] == pytest.approx(worst(other, X[test][:, chosen], Y[test]))


@pytest.mark.parametrize("selector", [FisherScore(), MRMR(), L20Selector(), ESFS()], ids=lambda each: type(each).__name__)
def test_any_selector_with_any_estimator(selector):
    X, y = noisy(1)
    donors = np.repeat(np.arange(12), 5)
    folds = make_folds(4, X, y, donors, classify=True)
    assert [set(donors[fold.test]) for fold in folds] == [
        set(donors[test]) for _, test in StratifiedGroupKFold(4).split(X, y, donors)
    ]

    def score_on(each, train, test):
        chosen = each.fit(X[train], y[train]).support_
        return LogisticRegression().fit(X[train][:, chosen], y[train]).score(X[test][:, chosen], y[test])

    def make(k):
        return clone(selector).set_params(n_features_to_select=k)

    judge = FittedEstimator(LogisticRegression(), ACCURACY)
    for container in (np.asarray, sp.csr_array) if selector.takes_sparse else (np.asarray,):
        found = score_sizes([selector], Samples(container(X), y), folds, SIZES, judge, on_path=id)
        np.testing.assert_allclose(found.values[0], slow_scores(make, folds, score_on))
        assert found.n_features.tolist() == [[SIZES] * 4]


def test_weights_groups_and_a_routed_scorer_in_the_selector_with_cross_validation():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 12))
    Y = X[:, [2, 9]] @ rng.standard_normal((2, 2)) + rng.standard_normal((60, 2))
    weights, donors = rng.integers(1, 4, 60).astype(float), np.repeat(np.arange(12), 5)
    with config_context(enable_metadata_routing=True):
        scorer = make_scorer(mean_absolute_error, greater_is_better=False).set_score_request(sample_weight=True)
        selector = L20SelectorCV(
            "best", cv=3, sizes=SIZES, scoring=scorer, estimator=Ridge().set_fit_request(sample_weight=True)
        )
        selector.set_fit_request(sample_weight=True).fit(X, Y, sample_weight=weights, groups=donors)
    for number, (train, test) in enumerate(GroupKFold(3).split(X, Y, donors)):
        for place, k in enumerate(SIZES):
            chosen = L20Regressor(k, max_features=7).fit(X[train], Y[train], weights[train]).support_
            model = Ridge().fit(X[train][:, chosen], Y[train], sample_weight=weights[train])
            expected = -mean_absolute_error(Y[test], model.predict(X[test][:, chosen]), sample_weight=weights[test])
            assert selector.cv_results_[f"split{number}_test_score"][place] == pytest.approx(expected)


# ---------------------------------------------------------------------------------------------------- sizes and selections


class Listed(BaseEstimator):
    """Nothing but the contract: it selects the features that it was given, for each size others."""

    def __init__(self, features, n_features_to_select=1):
        self.features = features
        self.n_features_to_select = n_features_to_select

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def order_for(self, k):
        return np.array(self.features[k], dtype=int)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_judges_do_not_need_selections_within_each_other(seed):
    rng = np.random.default_rng(seed)
    X, y = noisy(seed % 100)
    fold = Fold(np.arange(40), np.arange(40, 60))
    features = {k: rng.permutation(12)[:k].tolist() for k in SIZES}
    if rng.random() < 0.3:
        features = {k: features[7][:k] for k in SIZES}
    judges = {"linear": RefittedRule(3.0), "neighbours": NearestNeighbours()}
    (found,) = evaluate([Listed(features)], Samples(X, y), [fold], SIZES, judges)
    assert found.n_features.tolist() == SIZES
    for place, k in enumerate(SIZES):
        columns = features[k]
        model = L20Classifier(k, ridge=3.0, scale="zscore").fit(X[fold.train][:, columns], y[fold.train])
        scores = model.decision_function(X[fold.test][:, columns])
        np.testing.assert_allclose(found.by_judge["linear"][:, place], scores, atol=1e-9)
        scaled = X[:, columns] / X[fold.train][:, columns].std(axis=0)
        votes = [vote(scaled[fold.train], y[fold.train], scaled[i]) for i in fold.test]
        assert np.unique(y)[found.by_judge["neighbours"][:, place].argmax(axis=1)].tolist() == votes


def test_a_method_that_solves_for_one_size_is_asked_for_each_unless_one_ranking_is_wanted():
    X, y = make_data(3)
    train = Samples(X, y)
    each = select(ESFS(), train, SIZES)
    alone = [ESFS(k).fit(X, y).order_for(k) for k in SIZES]
    assert all(np.array_equal(*pair) for pair in zip(each.features, alone, strict=True))
    assert len(each.chains) == len(SIZES), "otherwise this test says nothing"
    one = select(ESFS(), train, SIZES, one_ranking=True)
    assert [features.tolist() for features in one.features] == [alone[-1][:k].tolist() for k in SIZES]
    assert len(one.chains) == 1


def test_groups_of_features_and_an_end_of_the_path_are_as_the_selector_says():
    X, y = make_data()
    train = Samples(X, y)
    grouped = L20Selector(feature_groups=[[2, 3, 4], [5, 6]], include=[0])
    for one_ranking in (False, True):
        found = select(grouped, train, [1, 2, 5], one_ranking=one_ranking)
        for k, features in zip([1, 2, 5], found.features, strict=True):
            expected = clone(grouped).set_params(n_features_to_select=k, max_features=5).fit(X, y).order_for(k)
            assert features.tolist() == expected.tolist()
    alpha = 0.999 * L20Selector(3).fit(X, y).path_.alphas[0]
    for one_ranking in (False, True):
        found = select(L20Selector(alpha=alpha), train, [1, 3], one_ranking=one_ranking)
        assert found.n_features.tolist() == [found.selector.support_for(k).sum() for k in (1, 3)]
    (nonzero,) = select(L20Selector(alpha=0.1), train, [None]).features
    assert set(nonzero) == set(np.flatnonzero(L20Selector(None, alpha=0.1).fit(X, y).support_))


def test_selectors_samples_and_folds_stay_as_they_were():
    X, y = make_data()
    weights = np.arange(60.0)
    selector = L20Classifier(5, callback=print, certify=True).fit(X, y)
    state = {name: value for name, value in vars(selector).items() if not name.startswith("_")}
    samples, folds = Samples(X, y, weights), make_folds(3, X, y, None, classify=True)
    before = X.copy(), y.copy(), weights.copy()
    scores = score_sizes([selector], samples, folds, SIZES, OwnModel(ACCURACY), on_path=id)
    assert scores.values.shape == (1, 3, 4)
    assert {name: vars(selector)[name] for name in state} == state
    for old, new in zip(before, (X, y, weights), strict=True):
        np.testing.assert_array_equal(old, new)


def test_several_selectors_come_in_order_whoever_computes_them():
    X, y = noisy()
    samples, folds = Samples(X, y), make_folds(3, X, y, None, classify=True)
    selectors, seen = [L20Classifier(ridge=ridge) for ridge in (0.1, 10.0)], []
    one, two = (
        score_sizes(selectors, samples, folds, SIZES, OwnModel(ACCURACY), on_path=seen.append, n_jobs=n) for n in (1, 2)
    )
    assert seen == [1, 2, 3, 4, 5, 6] * 2
    np.testing.assert_array_equal(one.values, two.values)
    for selector, values in zip(selectors, one.values, strict=True):
        np.testing.assert_array_equal(
            score_sizes([selector], samples, folds, SIZES, OwnModel(ACCURACY), on_path=id).values[0], values
        )
    assert (one.values[0] != one.values[1]).any()


def test_columns_are_read_once_for_all_judges():
    X, y = make_data()
    read = []

    class Counted(np.ndarray):
        def __getitem__(self, key):
            if isinstance(key, tuple):
                read.append(key)
            return super().__getitem__(key)

    samples = Samples(X.view(Counted), y)
    judges = {"linear": RefittedRule(1.0), "neighbours": NearestNeighbours()}
    list(
        evaluate(
            [Listed({k: list(range(k)) for k in SIZES})], samples, [Fold(np.arange(40), np.arange(40, 60))], SIZES, judges
        )
    )
    of_samples = [key for key in read if isinstance(key[1], np.ndarray) and key[1].tolist() == list(range(7))]
    assert len(of_samples) == 2, "once of the training samples, once of the test samples"
