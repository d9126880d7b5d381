"""The fold engine against loops that fit everything anew, and its four users against each other."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from reference import vote
from samples import make_data
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer, make_scorer, mean_absolute_error
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold
from sklearn.neighbors import KNeighborsClassifier

from l20fs import L20Regressor, L20Selector, L20SelectorCV
from l20fs.compare.methods import Method
from l20fs.compare.runner import Dataset, Settings, run
from l20fs.evaluation.engine import Samples, evaluate, score_sizes
from l20fs.evaluation.folds import make_folds
from l20fs.evaluation.judges import FittedEstimator, OwnModel
from l20fs.evaluation.metrics import METRICS
from l20fs.evaluation.predictions import predictions_by_k
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
@pytest.mark.parametrize("params", [{}, {"solver": "swap"}, {"ridge": 0.5}, {"scale": "none"}])
def test_cv_select_and_compare_give_the_same_scores_on_the_same_fold(seed, params):
    X, y = noisy(seed)
    data, method = Dataset("toy", X, y), Method("L20Selector", params=params)
    settings = Settings((method,), tuple(SIZES), n_splits=1, inner_folds=0, scale=None, seed=seed)
    fold, template, rows = data.split(0, seed), method.selector(), run(settings, data)
    by_cells = rows.accuracy[rows.classifier == "knn"].to_numpy()
    neighbours = KNeighborsClassifier(5, algorithm="brute")
    by_cv = L20SelectorCV("best", selector=template, sizes=SIZES, cv=[fold], estimator=neighbours).fit(X, y)
    by_select = predictions_by_k(template, X, y, SIZES, [fold])
    fits = [
        clone(template).set_params(n_features_to_select=k, max_features_to_select=7).fit(X[fold.train], y[fold.train])
        for k in SIZES
    ]
    expected = [knn(X, y, fold, fitted.get_support(indices=True)) for fitted in fits]
    assert by_cells.tolist() == pytest.approx(expected)
    assert by_cv.cv_results_["split0_test_score"].tolist() == pytest.approx(expected)
    own = L20SelectorCV("best", selector=template, sizes=SIZES, cv=[fold]).fit(X, y)
    assert by_select.fold_scores(METRICS["accuracy"])[0].tolist() == own.cv_results_["split0_test_score"].tolist()
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
            model = L20Regressor(k, max_features_to_select=7).fit(X[train], Y[train], **part(train))
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
        set(donors[test]) for _, test in StratifiedGroupKFold(4, shuffle=True, random_state=0).split(X, y, donors)
    ]

    def score_on(each, train, test):
        chosen = each.fit(X[train], y[train]).support_
        return LogisticRegression().fit(X[train][:, chosen], y[train]).score(X[test][:, chosen], y[test])

    def make(k):
        return clone(selector).set_params(n_features_to_select=k)

    judge = FittedEstimator(LogisticRegression(), ACCURACY)
    for container in (np.asarray, sp.csr_array) if selector._takes_sparse else (np.asarray,):
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
    for number, (train, test) in enumerate(GroupKFold(3, shuffle=True, random_state=0).split(X, Y, donors)):
        for place, k in enumerate(SIZES):
            chosen = L20Regressor(k, max_features_to_select=7).fit(X[train], Y[train], weights[train]).support_
            model = Ridge().fit(X[train][:, chosen], Y[train], sample_weight=weights[train])
            expected = -mean_absolute_error(Y[test], model.predict(X[test][:, chosen]), sample_weight=weights[test])
            assert selector.cv_results_[f"split{number}_test_score"][place] == pytest.approx(expected)


# ---------------------------------------------------------------------------------------------------- sizes and selections
