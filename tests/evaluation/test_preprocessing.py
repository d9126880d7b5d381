"""L20SelectorCV(preprocess=...) against pipelines that are fitted anew for every fold and size, and what must not happen."""

from __future__ import annotations

import numpy as np
import pytest
from libraries import needs_sklearn
from samples import make_data, make_frame
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler, TargetEncoder
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from l20fs import L20Classifier, L20Regressor, L20Selector, L20SelectorCV
from l20fs.plots import SelectionHeatmapDisplay

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


def slow_models(preprocess, X, y, ridge, k, largest, **options):
    """Fit a pipeline in every fold; return the scores of the folds, and the names that each selected."""
    scores, names = [], []
    for train, test in FOLDS.split(X, y):
        model = L20Classifier(k, ridge=ridge, max_features=largest, **options)
        pipeline = make_pipeline(clone(preprocess), model).fit(X.iloc[train], y[train])
        scores.append(pipeline.score(X.iloc[test], y[test]))
        names.append(pipeline[:-1].get_feature_names_out()[model.support_].tolist())
    return scores, names


def make_holes(seed=0):
    """Return a frame with missing values and a column that varies in some folds only."""
    frame, y = make_frame(seed)
    frame += np.random.default_rng(seed).normal(scale=0.5, size=frame.shape)
    frame = frame.mask(np.random.default_rng(seed).random(frame.shape) < 0.1)
    frame["rare"] = 0.0
    frame.loc[next(FOLDS.split(frame, y))[1][0], "rare"] = 1.0
    return frame[["rare", *frame.columns[:-1]]], y


STEPS = {
    "scaled": make_pipeline(SimpleImputer(), StandardScaler()),
    "fewer": make_pipeline(SimpleImputer(), VarianceThreshold()),
    "supervised": make_pipeline(SimpleImputer(), VarianceThreshold(), SelectKBest(k=8)),
    "rotated": make_pipeline(SimpleImputer(), PCA(8, random_state=0)),
    "logarithms": make_pipeline(SimpleImputer(), FunctionTransformer(np.arcsinh, feature_names_out="one-to-one")),
    "target": make_pipeline(
        SimpleImputer(), FunctionTransformer(np.rint, feature_names_out="one-to-one"), TargetEncoder(cv=FOLDS)
    ),
}


@pytest.mark.filterwarnings("ignore:The search for the number of features ended at its limit")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(name, marks=needs_sklearn("1.9", "no folds for TargetEncoder") if name == "target" else ())
        for name in STEPS
    ],
)
def test_the_scores_and_supports_are_those_of_a_slow_loop(steps, seed):
    """Of TargetEncoder, too, whose ``fit_transform`` is not its ``transform``."""
    frame, y = make_holes(seed)
    preprocess, sizes, ridges = STEPS[steps], [1, 2, 4, 6], [0.1, 10.0]
    if steps == "target":
        y = (y > 0).astype(int)
    selector = L20SelectorCV("best", preprocess=preprocess, ridge=ridges, sizes=sizes, cv=FOLDS).fit(frame, y)
    results = selector.cv_results_
    features = selector.preprocess_.get_feature_names_out()
    for index, (ridge, k) in enumerate(zip(results["ridge"], results["n_features_to_select"], strict=True)):
        scores, names = slow_models(preprocess, frame, y, ridge, int(k), max(sizes))
        assert [results[f"split{i}_test_score"][index] for i in range(3)] == pytest.approx(scores)
        for number, chosen in enumerate(names):
            expected = [name for name in features if name in chosen]
            assert features[results[f"split{number}_support"][index]].tolist() == expected
            ranks = results[f"split{number}_ranking"][index][results[f"split{number}_support"][index]]
            assert ranks.max(initial=0) <= k
    alone = make_pipeline(clone(preprocess), L20Classifier(selector.n_features_, ridge=selector.ridge_, max_features=6))
    alone.fit(frame, y)
    assert np.array_equal(selector.support_, alone[-1].support_)
    assert np.array_equal(selector.ranking_, alone[-1].ranking_)
    np.testing.assert_array_equal(selector.coef_, alone[-1].coef_)
    assert selector.get_feature_names_out().tolist() == features[selector.support_].tolist()
    np.testing.assert_array_equal(selector.predict(frame), alone.predict(frame))
    np.testing.assert_allclose(selector.decision_function(frame), alone.decision_function(frame))
    np.testing.assert_allclose(selector.predict_proba(frame).sum(axis=1), 1.0)
    np.testing.assert_array_equal(selector.transform(frame), alone[:-1].transform(frame)[:, selector.support_])
    assert selector.score(frame, y) == alone.score(frame, y)
    assert (selector.n_features_in_, selector.feature_names_in_.tolist()) == (13, frame.columns.tolist())


def test_the_choice_is_that_of_a_grid_search_over_a_pipeline():
    frame, y = make_holes(3)
    preprocess, sizes = STEPS["scaled"], list(range(1, 9))
    search = GridSearchCV(
        make_pipeline(preprocess, L20Classifier(1, ridge=1.0, max_features=8)),
        {"l20classifier__n_features_to_select": sizes},
        cv=FOLDS,
    ).fit(frame, y)
    selector = L20SelectorCV("best", preprocess=preprocess, ridge=1.0, sizes=sizes, cv=FOLDS).fit(frame, y)
    np.testing.assert_allclose(selector.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])
    assert selector.best_score_ == pytest.approx(search.best_score_)
    np.testing.assert_array_equal(selector.predict(frame), search.predict(frame))


@pytest.mark.filterwarnings("ignore:The search for the number of features ended at its limit")
def test_a_preprocess_that_saw_the_test_samples_would_score_better():
    """Pure noise: thirty columns chosen on all samples tell the classes apart, those chosen in each fold do not."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 5000)), np.arange(60) % 3
    inside = L20SelectorCV("best", preprocess=SelectKBest(k=30), max_features=30, cv=FOLDS).fit(X, y)
    leaked = L20SelectorCV("best", max_features=30, cv=FOLDS).fit(SelectKBest(k=30).fit_transform(X, y), y)
    scores = inside.cv_results_["mean_test_score"]
    assert scores.max() < 0.55  # the best of thirty, each within chance
    assert abs(scores.mean() - 1 / 3) < 3 * np.sqrt(2 / 9 / 60)  # three deviations of a binomial share
    assert leaked.best_score_ > 0.8


def test_constraints_follow_their_columns_into_every_fold():
    """``rare`` comes first and is missing in one fold, so that indices mean other columns there."""
    frame, y = make_holes()
    preprocess = STEPS["fewer"]
    by_name = {"include": ["g7"], "exclude": ["g5", "rare"], "feature_groups": {"pair": ["g0", "g1"]}}
    by_index = {"include": [8], "exclude": [6, 0], "feature_groups": [[1, 2]]}
    found = [
        L20SelectorCV(
            4, selector=L20Selector(ridge=1.0, **constraints), preprocess=preprocess, max_features=4, cv=FOLDS
        ).fit(frame, y)
        for constraints in (by_name, by_index)
    ]
    for number, (train, test) in enumerate(FOLDS.split(frame, y)):
        steps = clone(preprocess).set_output(transform="pandas")
        here = {**by_name, "exclude": ["g5"] if number == 0 else ["g5", "rare"]}
        pipeline = make_pipeline(steps, L20Classifier(4, ridge=1.0, **here)).fit(frame.iloc[train], y[train])
        for selector in found:
            assert selector.cv_results_[f"split{number}_test_score"][-1] == pipeline.score(frame.iloc[test], y[test])
            chosen = selector.preprocess_.get_feature_names_out()[selector.cv_results_[f"split{number}_support"][-1]]
            assert chosen.tolist() == pipeline.get_feature_names_out().tolist()
            assert ("g7" in chosen, "g5" in chosen) == (True, False)
    assert {"g7"} <= set(found[0].get_feature_names_out()) == set(found[1].get_feature_names_out())
    assert found[0].cv_results_["split0_ranking"][0][0] == found[0].cv_results_["split0_ranking"][0].max()


def test_another_estimator_gets_the_preprocessed_columns():
    frame, y = make_holes(5)
    preprocess = STEPS["scaled"]
    selector = L20SelectorCV("best", sizes=[1, 3], estimator=KNeighborsClassifier(3), preprocess=preprocess, cv=FOLDS)
    selector.fit(frame, y)
    for index, k in enumerate([1, 3]):
        for number, (train, test) in enumerate(FOLDS.split(frame, y)):
            slow = make_pipeline(clone(preprocess), L20Selector(k), KNeighborsClassifier(3)).fit(frame.iloc[train], y[train])
            assert selector.cv_results_[f"split{number}_test_score"][index] == slow.score(frame.iloc[test], y[test])
    assert selector.predict_proba(frame).shape == (60, 3)
    reduced = selector.transform(frame)
    assert np.array_equal(selector.predict(frame), KNeighborsClassifier(3).fit(reduced, y).predict(reduced))


def test_numbers_are_regressed_after_the_steps():
    frame, _ = make_frame()
    y = frame["g3"] * 2.0 + 0.1 * frame["g4"]
    template = L20Selector(ridge=0.5, refit_ridge=0.2, task="regression")
    selector = L20SelectorCV(2, selector=template, preprocess=StandardScaler(), sizes=[1, 2], cv=KFold(4)).fit(frame, y)
    slow = cross_validate(
        make_pipeline(StandardScaler(), L20Regressor(2, ridge=0.5, refit_ridge=0.2)), frame, y, cv=KFold(4)
    )["test_score"]
    assert [selector.cv_results_[f"split{i}_test_score"][1] for i in range(4)] == pytest.approx(slow)
    assert "g3" in selector.get_feature_names_out()


def test_frames_of_mixed_columns():
    frame, y = make_frame()
    frame["tissue"] = np.array(["skin", "lung", "bone"])[y]
    steps = make_column_transformer(
        (OneHotEncoder(), ["tissue"]), remainder=StandardScaler(), verbose_feature_names_out=False
    )
    selector = L20SelectorCV(4, preprocess=steps, selector=L20Selector(include=["g3"]), cv=FOLDS).fit(frame, y)
    assert {"tissue_skin", "g3"} <= set(selector.get_feature_names_out())
    assert (selector.n_features_in_, len(selector.support_)) == (13, 15)
    assert selector.score(frame, y) == 1.0
    table = selector.selection_frame(frame)
    assert set(table["feature"]) == set(selector.get_feature_names_out())
    assert table["could_replace"].str.fullmatch(r"(\S+ \(-?0\.\d+\)(, )?)*").all()
    assert table["could_replace"].astype(bool).any()
    with pytest.raises(ValueError, match="include names 'g33', which X does not have"):
        clone(selector).set_params(selector__include=["g33"]).fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        selector.predict(frame.rename(columns={"g0": "other"}))
    pytest.importorskip("matplotlib")
    assert set(SelectionHeatmapDisplay.from_estimator(selector, frame, y).names) == set(table["feature"])


def test_text_becomes_features():
    texts = ["red apple", "red cherry", "green pear", "green lime", "red plum", "green kiwi"] * 3
    y = ["r" if text.startswith("red") else "g" for text in texts]
    selector = L20SelectorCV(1, preprocess=CountVectorizer(), max_features=2, cv=3).fit(texts, y)
    assert selector.get_feature_names_out().tolist()[0] in ("red", "green")
    assert selector.predict(["red melon", "green melon"]).tolist() == ["r", "g"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_output_of_frames(library):
    frame, y = make_frame()
    frame.index = [f"sample{i}" for i in range(60)]
    steps = make_pipeline(SimpleImputer(), StandardScaler()).set_output(transform=library)
    selector = L20SelectorCV(3, preprocess=steps, sizes=[3], cv=FOLDS).fit(frame, y)
    plain = L20SelectorCV(3, preprocess=make_pipeline(SimpleImputer(), StandardScaler()), sizes=[3], cv=FOLDS).fit(frame, y)
    assert np.array_equal(selector.support_, plain.support_)
    assert selector.get_feature_names_out().tolist() == plain.get_feature_names_out().tolist()
    for each in (selector, plain):
        out = each.set_output(transform="pandas").transform(frame)
        assert out.columns.tolist() == plain.get_feature_names_out().tolist()
        assert out.index.tolist() == frame.index.tolist()
    with config_context(transform_output="pandas"):
        again = L20SelectorCV(3, preprocess=clone(plain.preprocess), sizes=[3], cv=FOLDS).fit(frame, y)
        assert np.array_equal(again.coef_, plain.coef_)
        assert again.predict(frame).shape == (60,)
        assert again.transform(frame).index.tolist() == frame.index.tolist()


def test_missing_values_are_the_matter_of_the_first_step():
    frame, y = make_holes()
    for preprocess, allowed in (
        (None, False),
        (SimpleImputer(), True),
        (STEPS["scaled"], True),
        (make_pipeline("passthrough", SimpleImputer()), True),
        (make_pipeline(PCA(), SimpleImputer()), False),
    ):
        assert get_tags(L20SelectorCV(preprocess=preprocess)).input_tags.allow_nan is allowed
    assert not get_tags(L20SelectorCV(preprocess=PowerlessTransformer())).input_tags.sparse
    selector = L20SelectorCV(preprocess=StandardScaler(), cv=FOLDS)
    n_missing = int(frame.isna().sum().sum())
    with pytest.raises(ValueError, match=rf"preprocess=StandardScaler gives: X has {n_missing} missing.*'g0'.*Impute"):
        selector.fit(frame, y)
    # Objects are converted one by one; the type of pandas 3 for text is refused by its name.
    with pytest.raises(ValueError, match=r"preprocess=FunctionTransformer gives: (could not convert|X must hold numbers)"):
        L20SelectorCV(preprocess=FunctionTransformer()).fit(frame.assign(tissue="skin"), y)


class PowerlessTransformer(BaseEstimator):
    """Without ``fit_transform``, names or sparse matrices."""

    def __init__(self, n_dropped=0):
        self.n_dropped = n_dropped

    def fit(self, X, y=None):
        self.width_ = X.shape[1] - (len(X) < 60) * self.n_dropped
        return self

    def transform(self, X):
        return X[:, : self.width_]


@pytest.mark.parametrize(
    ("preprocess", "message"),
    [
        ("scale", r"preprocess='scale' is not a transformer. Use one with fit and transform, such as StandardScaler\(\)"),
        (StandardScaler, "preprocess=.*StandardScaler.* is not a transformer"),
        ([StandardScaler()], r"preprocess=\[StandardScaler\(\)\] is not a transformer"),
        (np.log1p, "preprocess=<ufunc 'log1p'> is not a transformer"),
        (LogisticRegression(), r"preprocess=LogisticRegression\(\) is not a transformer"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "is not a transformer"),
    ],
)
def test_what_is_no_transformer_is_refused(preprocess, message):
    X, y = make_data()
    selector = L20SelectorCV(preprocess=preprocess)
    with pytest.raises(TypeError, match=message):
        selector.fit(X, y)
    with pytest.raises(NotFittedError):
        selector.transform(X)


def test_weights_reach_the_steps_by_routing_only():
    X, y = make_data()
    weights = np.random.default_rng(0).integers(1, 4, 60).astype(float)
    options = {"sizes": [3], "cv": FOLDS}
    plain = L20SelectorCV(3, preprocess=StandardScaler(), **options).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(plain.preprocess_.mean_, X.mean(axis=0))
    with config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        for preprocess in (scaler, make_pipeline(scaler)):
            selector = L20SelectorCV(3, preprocess=preprocess, **options).set_fit_request(sample_weight=True)
            selector.fit(X, y, sample_weight=weights)
            fitted = selector.preprocess_ if preprocess is scaler else selector.preprocess_[0]
            np.testing.assert_allclose(fitted.mean_, np.average(X, axis=0, weights=weights))
            for number, (train, test) in enumerate(FOLDS.split(X, y)):
                here = StandardScaler().fit(X[train], sample_weight=weights[train])
                model = L20Classifier(3).fit(here.transform(X[train]), y[train], weights[train])
                expected = model.score(here.transform(X[test]), y[test], weights[test])
                assert selector.cv_results_[f"split{number}_test_score"][0] == pytest.approx(expected)


def expected_failures(selector):
    checks = {"check_sample_weight_equivalence_on_dense_data": "without routing, the scaler counts every sample once"}
    checks |= {"check_classifiers_regression_target": "numbers make it a regression"} if selector.task == "auto" else {}
    return checks if not isinstance(selector.preprocess, SimpleImputer) else {}


@pytest.mark.filterwarnings("ignore:n_features_to_select=.* is greater than n_features")
@pytest.mark.filterwarnings("ignore:No features were selected")
@pytest.mark.filterwarnings("ignore:Class.* with fewer samples than the")
@pytest.mark.filterwarnings("ignore:The search for the number of features ended at its limit")
@parametrize_with_checks(
    [
        L20SelectorCV(2, cv=3, sizes=[1, 2], preprocess=make_pipeline(SimpleImputer(), StandardScaler())),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
