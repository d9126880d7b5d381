"""L20SelectorCV against a slow loop, and what must never happen: leaks, split groups, results that depend on n_jobs."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from libraries import array_api_failures
from samples import make_data, make_frame
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from l20fs import Constraints, L20Classifier, L20Regressor, L20Selector, L20SelectorCV
from l20fs.objective.ridge import auto_ridge

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


@pytest.mark.filterwarnings("ignore:n_features_to_select=.* is greater than n_features")
@pytest.mark.filterwarnings("ignore:No features were selected")
@pytest.mark.filterwarnings("ignore:Class.* with fewer samples than the")
@pytest.mark.filterwarnings("ignore:The search for the number of features ended at its limit")
@parametrize_with_checks(
    [
        L20SelectorCV(cv=3, sizes=range(1, 6)),
        L20SelectorCV("best", cv=3, estimator=KNeighborsClassifier(3), sizes=[2, 4]),
        L20SelectorCV("best", cv=3, selector=L20Selector(task="regression")),
    ],
    expected_failed_checks=lambda selector: (
        array_api_failures(selector)
        | {
            f"check_sample_weight_equivalence_on_{kind}_data": "without routing, another estimator counts every sample once"
            for kind in ("dense", "sparse")
            if selector.estimator is not None
        }
        | ({"check_classifiers_regression_target": "numbers make it a regression"} if selector.task == "auto" else {})
    ),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def slow_scores(X, y, sizes, ridges, folds=FOLDS):
    """Fit every fold, ridge and number of features anew."""
    return {
        (ridge, k): [
            L20Classifier(k, ridge=ridge, max_features_to_select=max(sizes)).fit(X[train], y[train]).score(X[test], y[test])
            for train, test in folds.split(X, y)
        ]
        for ridge in ridges
        for k in sizes
    }


@pytest.mark.parametrize("seed", range(2))
def test_the_scores_are_those_of_a_slow_loop(seed):
    X, y = make_data(seed)
    X += np.random.default_rng(seed).normal(scale=0.5, size=X.shape)
    sizes, ridges = [1, 2, 3, 4, 6, 8], [0.1, 10.0, 100.0]
    selector = L20SelectorCV("best", ridges=ridges, sizes=sizes, cv=FOLDS).fit(X, y)
    scores = slow_scores(X, y, sizes, ridges)
    results = selector.cv_results_
    for index, (ridge, k) in enumerate(zip(results["ridge"], results["n_features"], strict=True)):
        values = scores[ridge, int(k)]
        assert [results[f"split{i}_test_score"][index] for i in range(3)] == pytest.approx(values)
        assert results["mean_test_score"][index] == pytest.approx(np.mean(values))
        assert results["std_test_score"][index] == pytest.approx(np.std(values))
    assert selector.skill_ == results["skill"].max() == pytest.approx(1 - results["error"].min() / (2 / 3))
    assert selector.best_score_ == pytest.approx(np.mean(scores[selector.ridge_, selector.n_features_]))
    assert selector.quoted_scores_["accuracy"][0] == selector.corrected_score_ == pytest.approx(selector.best_score_)
    assert selector.quoted_scores_["largest_class"] == pytest.approx(1 / 3)
    direct = L20Selector(selector.n_features_, ridge=selector.ridge_, max_features_to_select=8).fit(X, y)
    assert np.array_equal(selector.support_, direct.support_)
    assert np.array_equal(selector.scores_, direct.scores_)


@pytest.mark.filterwarnings("ignore:The search for the number of features ended at its limit")
@pytest.mark.parametrize(
    "options",
    [{"ridges": [0.1, 10.0], "sizes": [1, 2, 5]}, {"ridges": [1.0], "sizes": [2, 6]}],
)
def test_the_selections_of_the_folds_are_those_of_a_slow_loop(options):
    X, y = make_data(2)
    selector = L20SelectorCV("best", cv=FOLDS, **options).fit(X, y)
    results = selector.cv_results_
    for index in range(len(results["ridge"])):
        k = int(results["n_features_to_select"][index])
        counts = []
        for number, (train, _) in enumerate(FOLDS.split(X, y)):
            # The support is that of a fit for so many features alone; the ranks are those of the path to the largest number.
            alone = L20Selector(k, ridge=results["ridge"][index]).fit(X[train], y[train])
            path = clone(alone).set_params(max_features_to_select=max(options["sizes"])).fit(X[train], y[train])
            assert np.array_equal(selector.fold_supports_[f"split{number}_support"][index], alone.support_)
            assert np.array_equal(selector.fold_supports_[f"split{number}_ranking"][index], path.ranking_)
            counts.append(alone.support_.sum())
        assert results["n_features"][index] == pytest.approx(np.mean(counts))


def test_parallel_is_serial():
    X, y = make_data(1)
    serial, parallel = (L20SelectorCV(ridges=[1.0, 10.0], sizes=range(1, 7), cv=FOLDS, n_jobs=n).fit(X, y) for n in (1, 2))
    for name, values in serial.cv_results_.items():
        np.testing.assert_allclose(values, parallel.cv_results_[name], rtol=1e-9, err_msg=name)
    assert np.array_equal(serial.support_, parallel.support_)
    assert np.array_equal(serial.coef_, parallel.coef_)


def test_noise_scores_like_chance_unless_the_selection_has_seen_the_test_samples():
    """The warning example of docs/how_many.md: 60 samples, 5000 features without any meaning, 3 classes."""
    random = np.random.default_rng(0)
    X, y = random.standard_normal((60, 5000)), np.arange(60) % 3
    honest = cross_val_score(L20SelectorCV(sizes=range(1, 31)), X, y, cv=5)
    assert abs(honest.mean() - 1 / 3) < 3 * np.sqrt(2 / 9 / 60)  # three deviations of a binomial share
    selector = L20SelectorCV(sizes=range(1, 31)).fit(X, y)
    assert selector.cv_results_["mean_test_score"].max() < 0.6  # the best of thirty, each within chance
    naive = L20Selector(30).fit_transform(X, y)
    assert cross_val_score(make_pipeline(StandardScaler(), LogisticRegression()), naive, y, cv=5).mean() > 0.9


@pytest.mark.parametrize(
    ("cv", "splitter"),
    [(4, StratifiedGroupKFold(4, shuffle=True, random_state=0)), (GroupKFold(4), GroupKFold(4))],
)
def test_groups_are_kept_together(cv, splitter):
    X, y = make_data(2)
    donors = np.repeat(np.arange(12), 5)
    selector = L20SelectorCV(3, cv=cv, sizes=range(1, 5)).fit(X, y, groups=donors)
    expected = L20SelectorCV(3, cv=list(splitter.split(X, y, donors)), sizes=range(1, 5)).fit(X, y)
    assert selector.n_splits_ == 4
    for name, values in expected.cv_results_.items():
        np.testing.assert_array_equal(selector.cv_results_[name], values, err_msg=name)


def test_groups_are_routed_by_default():
    X, y = make_data(3)
    donors = np.repeat(np.arange(12), 5)
    direct = L20SelectorCV(cv=GroupKFold(3), sizes=range(1, 5)).fit(X, y, groups=donors)
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), L20SelectorCV(cv=GroupKFold(3), sizes=range(1, 5)))
        pipeline.fit(X, y, groups=donors)
        assert np.array_equal(pipeline[-1].support_, direct.support_)
        found = cross_validate(
            L20SelectorCV(cv=GroupKFold(3), sizes=range(1, 5)),
            X,
            y,
            cv=GroupKFold(4),
            params={"groups": donors},
            return_estimator=True,
        )
    for fitted, (train, _) in zip(found["estimator"], GroupKFold(4).split(X, y, donors), strict=True):
        expected = L20SelectorCV(cv=GroupKFold(3), sizes=range(1, 5)).fit(X[train], y[train], groups=donors[train])
        assert np.array_equal(fitted.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])


def test_weights_reach_the_paths_and_those_who_ask_for_them():
    X, y = make_data(4)
    X += np.random.default_rng(4).normal(size=X.shape)
    weights = np.random.default_rng(4).integers(0, 3, 60).astype(float)
    plain = L20SelectorCV(3, cv=FOLDS, sizes=range(1, 5)).fit(X, y, sample_weight=weights)
    direct = L20Selector(plain.n_features_, max_features_to_select=4).fit(X, y, weights)
    np.testing.assert_allclose(plain.scores_, direct.scores_, rtol=1e-12)
    for number, (train, test) in enumerate(FOLDS.split(X, y)):
        model = L20Classifier(4).fit(X[train], y[train], weights[train])
        scores = [model.set_params(n_features_to_select=k).score(X[test], y[test], weights[test]) for k in range(1, 5)]
        assert plain.cv_results_[f"split{number}_test_score"].tolist() == pytest.approx(scores)
    train, test = next(FOLDS.split(X, y))
    with config_context(enable_metadata_routing=True):
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        estimator = LogisticRegression().set_fit_request(sample_weight=True)
        selector = L20SelectorCV(3, cv=FOLDS, sizes=[3], scoring=scorer, estimator=estimator)
        selector.set_fit_request(sample_weight=True).fit(X, y, sample_weight=weights)
        chosen = L20Selector(3).fit(X[train], y[train], weights[train]).support_
        logistic = LogisticRegression().fit(X[train][:, chosen], y[train], weights[train])
        expected = logistic.score(X[test][:, chosen], y[test], weights[test])
        assert selector.cv_results_["split0_test_score"][0] == pytest.approx(expected)
    with pytest.raises(TypeError, match=r"fit\(\) got 'colour', which only metadata routing can pass on"):
        L20SelectorCV().fit(X, y, colour=weights)


def test_another_estimator_is_fitted_on_the_selected_columns():
    X, y = make_data(5)
    selector = L20SelectorCV("best", sizes=[1, 3, 5], estimator=KNeighborsClassifier(3), cv=FOLDS).fit(X, y)
    for index, k in enumerate([1, 3, 5]):
        for number, (train, test) in enumerate(FOLDS.split(X, y)):
            chosen = L20Selector(k).fit(X[train], y[train]).support_
            expected = KNeighborsClassifier(3).fit(X[train][:, chosen], y[train]).score(X[test][:, chosen], y[test])
            assert selector.cv_results_[f"split{number}_test_score"][index] == pytest.approx(expected)
    reduced = selector.transform(X)
    assert np.array_equal(selector.predict(X), KNeighborsClassifier(3).fit(reduced, y).predict(reduced))
    assert selector.predict_proba(X).shape == (60, 3)
    assert not hasattr(selector, "decision_function")
    assert not hasattr(L20SelectorCV(estimator=LinearSVC()), "predict_proba")
    other = 3 if selector.n_features_ != 3 else 5
    with pytest.raises(
        ValueError, match=rf"estimator_ was fitted on {selector.n_features_} features, of which there are {other} now"
    ):
        selector.set_params(n_features_to_select=other).predict(X)


@pytest.mark.filterwarnings("ignore:The search for the number of features ended at its limit")
def test_numbers_are_regressed():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((80, 30))
    Y = X[:, [4, 9]] @ rng.standard_normal((2, 2)) + 0.1 * rng.standard_normal((80, 2))
    for estimator in ("regressor", LinearRegression()):
        selector = L20SelectorCV("auto", estimator=estimator, sizes=range(1, 9), cv=KFold(4)).fit(X, Y)
        assert {4, 9} <= set(selector.get_support(indices=True)), "and a third, a tenth of the features"
        assert selector.predict(X).shape == (80, 2)
        assert selector.score(X, Y) > 0.6
        assert is_regressor(selector)
        assert not is_classifier(selector)
        assert selector.fit(X, Y[:, 0]).predict(X).shape == (80,)
    chosen = selector.set_params(estimator="regressor").fit(X, Y)
    assert set(chosen.cv_results_["ridge"]) == {auto_ridge(30, 80, for_labels=False), 1.0}
    assert chosen.refit_ridge_ == chosen.cv_results_["refit_ridge"][chosen.best_index_] < 0.1
    assert L20SelectorCV(3, sizes=range(1, 9)).fit(X, Y[:, 0]).task_ == "regression"


def test_a_fixed_number_is_kept_and_the_ridge_is_chosen_for_it():
    X, y = make_data(8)
    selector = L20SelectorCV(3, ridges=[0.1, 10.0, 100.0], sizes=range(1, 7), cv=FOLDS).fit(X, y)
    results = selector.cv_results_
    at_three = results["n_features"] == 3
    assert results["error"][selector.best_index_] == results["error"][at_three].min()
    assert selector.support_.sum() == selector.n_features_ == 3
    assert len(results["ridge"]) == 18
    share = L20SelectorCV(0.5, sizes=range(1, 5), cv=FOLDS).fit(X, y)
    assert share.support_.sum() == 6
    assert share.cv_results_["n_features"].tolist() == [1.0, 2.0, 3.0, 4.0, 6.0]


def test_automatic_settings_are_those_of_each_fold():
    """Of the training samples, on which another ridge and another scaling may be right than on all samples."""
    X, y = make_data(3)
    folds = list(FOLDS.split(X, y))
    X[:, 7] = 0.0
    X[folds[0][1][0], 7] = 1.0  # varies in two folds only
    X[folds[1][1][0], :6] = 1e4  # deviations are comparable without this sample
    cv = L20SelectorCV(3, ridges=["auto", 5.0], sizes=range(1, 5), cv=folds).fit(X, y)
    results = cv.cv_results_
    on_all = L20Classifier(3).fit(X, y)
    assert on_all.scale_ == "zscore"
    assert np.unique(results["ridge"]).tolist() == sorted([on_all.ridge_, 5.0])
    for number, (train, test) in enumerate(folds):
        for ridge in ("auto", 5.0):
            model = L20Classifier(4, ridge=ridge).fit(X[train], y[train])
            assert model.scale_ == ("moderated" if number == 1 else "zscore")
            is_here = results["ridge"] == (on_all.ridge_ if ridge == "auto" else ridge)
            scores = [model.set_params(n_features_to_select=k).score(X[test], y[test]) for k in range(1, 5)]
            assert results[f"split{number}_test_score"][is_here].tolist() == pytest.approx(scores)
    assert cv.scale_ == "zscore"
    assert L20SelectorCV(3, ridges=["auto"], cv=folds).fit(X, y).ridge_ == on_all.ridge_
    template = L20Selector(ridge=2.0, scale="none")
    asked = L20SelectorCV(3, selector=template, cv=folds).fit(X, y)
    assert (asked.ridge_, asked.scale_) == (2.0, "none")


def test_containers_and_names():
    frame, y = make_frame()
    selector = L20SelectorCV("best", sizes=range(1, 6), cv=FOLDS).fit(frame, y)
    array = L20SelectorCV("best", sizes=range(1, 6), cv=FOLDS).fit(frame.to_numpy(), y)
    sparse = L20SelectorCV("best", sizes=range(1, 6), cv=FOLDS).fit(sp.csc_array(frame.to_numpy()), y)
    assert np.array_equal(selector.support_, array.support_)
    assert np.array_equal(selector.support_, sparse.support_)
    assert np.array_equal(sparse.predict(sp.csr_array(frame.to_numpy())), array.predict(frame.to_numpy()))
    names = selector.get_feature_names_out()
    assert set(names) == set(selector.to_frame()["feature"])
    assert set(names) <= set(frame.columns)
    assert isinstance(selector.set_output(transform="pandas").transform(frame), pd.DataFrame)
    polars = pl.DataFrame(dict(frame))
    other = L20SelectorCV("best", sizes=range(1, 6), cv=FOLDS).set_output(transform="polars").fit(polars, y)
    assert other.transform(polars).columns == names.tolist()
    assert np.array_equal(selector.predict(frame), other.predict(polars))
    copy = pickle.loads(pickle.dumps(selector))
    assert np.array_equal(copy.predict(frame), selector.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        selector.predict(frame.rename(columns={"g0": "other"}))


def test_text_labels_and_scoring_by_name():
    X, y = make_data(11)
    labels = np.array(["pear", "apple", "fig"])[y]
    selector = L20SelectorCV(scoring="balanced_accuracy", sizes=range(1, 5), cv=FOLDS).fit(X, labels)
    assert set(selector.predict(X)) <= set(labels)
    assert selector.score(X, labels) == make_scorer_value(selector, X, labels)
    auc = L20SelectorCV(scoring="roc_auc", sizes=range(1, 5), cv=FOLDS).fit(X[y != 0], labels[y != 0])
    assert 0.5 < auc.best_score_ <= 1.0


def make_scorer_value(selector, X, labels):
    hits = [np.mean(selector.predict(X[labels == label]) == label) for label in np.unique(labels)]
    return pytest.approx(np.mean(hits))


def test_rare_classes_are_named():
    X, y = make_data()
    y = np.where(np.arange(60) == 7, 3, y)
    with pytest.warns(UserWarning, match=r"Class '3' \(1\) with fewer samples than the 5 folds"):
        L20SelectorCV(2, sizes=range(1, 4)).fit(X, y)
    with pytest.raises(ValueError, match="n_splits=5 cannot be greater than the number of members in each class"):
        L20SelectorCV(sizes=range(1, 4), selector=L20Selector(task="classification"), cv=5).fit(X[:8], y[:8])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_features_to_select": "2se"}, r"n_features_to_select='2se' is not valid.* or 'auto', or 'best'"),
        ({"n_features_to_select": None}, "n_features_to_select=None is not valid"),
        ({"estimator": "tree"}, "estimator='tree' is unknown. Use 'classifier', 'regressor'"),
        ({"estimator": StandardScaler()}, r"estimator=StandardScaler\(\) is unknown"),
        ({"ridges": [1.0, -1.0]}, "ridge=-1.0 is not valid"),
        ({"ridges": ["auto", None]}, "ridge=None is not valid. Use 'auto'"),
        ({"ridges": []}, r"ridges=\[\] leaves nothing to choose from"),
        ({"sizes": [0]}, "sizes=0 is not valid"),
        ({"sizes": 5}, r"sizes=5 is not a list. Give numbers of features"),
        ({"scoring": ["accuracy", "f1_macro"]}, r"one score decides. Use a name, a callable, or None"),
        (
            {"scoring": "roc_auc_ovr", "estimator": LinearSVC()},
            r"scoring needs a method that LinearSVC does not have.*CalibratedClassifierCV",
        ),
        ({"selector": L20Selector(class_weight={"apple": 2.0})}, "class_weight names 'apple', which y does not have"),
        ({"sizes": []}, r"sizes=\[\] leaves nothing to choose from"),
        ({"scoring": "nonsense"}, "nonsense"),
        ({"selector": L20Selector(solver="magic")}, "solver='magic' is unknown"),
    ],
)
def test_odd_parameters_are_refused(params, message):
    X, y = make_data()
    selector = L20SelectorCV(**params)
    with pytest.raises(ValueError, match=message):
        selector.fit(X, y)
    with pytest.raises(NotFittedError):
        selector.transform(X)


def test_scores_that_are_not_finite_choose_nothing():
    X, y = make_data()
    with pytest.raises(ValueError, match="12 of 12 mean scores are not finite: no size can be chosen"):
        L20SelectorCV(scoring=lambda *_: np.nan, cv=FOLDS, sizes=range(1, 13)).fit(X, y)


def test_an_interrupted_fit_leaves_no_trace():
    X, y = make_data()

    def interrupt(*_):
        raise KeyboardInterrupt

    selector = L20SelectorCV(2, sizes=range(1, 4), cv=FOLDS).fit(X, y)
    support = selector.support_
    with pytest.raises(KeyboardInterrupt):
        selector.set_params(scoring=interrupt).fit(X[:, :6], y)
    assert np.array_equal(selector.support_, support)
    fresh = L20SelectorCV(scoring=interrupt)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    with pytest.raises(NotFittedError):
        fresh.predict(X)


def test_the_regressor_of_the_path_is_scored_as_it_predicts():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 20))
    y = X[:, 3] + 0.5 * rng.standard_normal(60)
    selector = L20SelectorCV("best", estimator="regressor", sizes=range(1, 6), cv=KFold(3)).fit(X, y)
    train, test = next(KFold(3).split(X))
    for k in range(1, 6):
        ridge, refit = (selector.cv_results_[name][k - 1] for name in ("ridge", "refit_ridge"))
        assert ridge == auto_ridge(20, 60, for_labels=False)
        expected = L20Regressor(k, refit_ridge=max(refit, 1e-12)).fit(X[train], y[train]).score(X[test], y[test])
        assert selector.cv_results_["split0_test_score"][k - 1] == pytest.approx(expected)


def test_groups_that_cannot_work_are_named():
    X, y = make_data()
    donors = np.repeat(np.arange(12), 5).astype(float)
    with pytest.raises(ValueError, match="groups has 1 missing values"):
        L20SelectorCV().fit(X, y, groups=np.where(np.arange(60) == 3, np.nan, donors))
    with pytest.raises(ValueError, match=r"cv=5 means 5 folds, but there are 3 groups. Use cv=3 or less"):
        L20SelectorCV(cv=5).fit(X, y, groups=np.arange(60) % 3)
    assert L20SelectorCV(2, sizes=[1, 2]).fit(X, y, groups=np.arange(60) % 3).n_splits_ == 12
    y = np.where(donors == 2, 3, y)
    with pytest.warns(UserWarning, match="1 of 4 classes are in one group only: '3'"):
        L20SelectorCV(2, sizes=range(1, 4), cv=3).fit(X, y, groups=donors)


def test_groups_of_features_are_counted_as_such():
    X, y = make_data()
    template = L20Selector(constraints=Constraints(groups=[[2, 3, 4], [5, 6]], include=[0]))
    selector = L20SelectorCV(3, selector=template, estimator=KNeighborsClassifier(3), sizes=range(1, 6), cv=FOLDS).fit(X, y)
    assert selector.cv_results_["n_features_to_select"].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert selector.n_features_ == selector.support_.sum() > 3
    with pytest.raises(ValueError, match="Fit again with n_features_to_select=4"):
        selector.set_params(n_features_to_select=4).predict(X)
    assert selector.set_params(n_features_to_select=3).predict(X).shape == (60,)


def test_scores_can_be_weighted():
    X, y = make_data()
    X += np.random.default_rng(0).normal(size=X.shape)
    selector = L20SelectorCV(2, cv=FOLDS, sizes=[2]).fit(X, y)
    is_right = selector.predict(X) == y
    assert not is_right.all()
    assert selector.score(X, y, sample_weight=is_right) == 1.0
    with config_context(enable_metadata_routing=True):
        selector.set_score_request(sample_weight=True)
