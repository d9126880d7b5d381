from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from libraries import array_api_failures
from reference import minimum
from samples import REPLACING, SOLVERS, assert_same_fit, make_data, make_solver
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from l20fs import AHIHT, HIHT, L20Selector
from l20fs.data import make_planted
from l20fs.objective.ridge import auto_ridge

CHECKED = [L20Selector(), L20Selector(0.5, solver="hiht", scale="zscore", ridge=0.1), L20Selector(fit_intercept=False)]


@pytest.mark.filterwarnings("ignore:n_features_to_select=.* is greater than n_features")
@pytest.mark.filterwarnings("ignore:.*lambdas stopped at max_iter")
@pytest.mark.filterwarnings("ignore:No features were selected")
@parametrize_with_checks(CHECKED, expected_failed_checks=array_api_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def planted():
    return make_planted(200, 300, 6, 4, random_state=0)


def test_a_share_of_the_features(planted):
    X, y, _ = planted
    assert L20Selector(0.1).fit(X, y).support_.sum() == 30
    assert L20Selector(0.0001).fit(X, y).support_.sum() == 1


@pytest.mark.parametrize("solver", SOLVERS)
def test_max_features_carries_the_path_further(planted, solver):
    X, y, _ = planted
    short, long = (
        L20Selector(10, solver=make_solver(solver, max_iter=5000), max_features_to_select=n).fit(X, y) for n in (None, 60)
    )
    assert short.path_.n_nonzero[-1] < 60 <= long.path_.n_nonzero[-1]
    assert long.support_.sum() == 10
    assert long.path_.refit(60).coef.shape == (4, 300)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_renaming_the_labels_changes_nothing(seed):
    X, y, _ = make_planted(40, 60, 4, 3, random_state=seed)
    names = np.array(["zebra", "ant", "mole"])
    a, b = L20Selector(10).fit(X, y), L20Selector(10).fit(X, names[y])
    assert np.allclose(a.scores_, b.scores_, rtol=1e-8)
    assert b.classes_.tolist() == sorted(set(names[y]))
    columns = [b.classes_.tolist().index(names[c]) for c in a.classes_]
    assert np.allclose(a.coef_, b.coef_[columns], rtol=1e-6, atol=1e-12)
    assert np.allclose(a.intercept_, b.intercept_[columns], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", ["int", "str", "bool", "category", "object", "datetime"])
def test_labels_of_any_type(kind):
    X, y, _ = make_planted(60, 40, 3, 2)
    labels = {
        "int": y + 5,
        "str": np.array(["no", "yes"])[y],
        "bool": y.astype(bool),
        "category": pd.Series(pd.Categorical.from_codes(y, ["low", "high"])),
        "object": np.array(["a", "b"], dtype=object)[y],
        "datetime": np.array(["2020-01-01", "2021-01-01"])[y],
    }[kind]
    selector = L20Selector(3).fit(X, labels)
    assert len(selector.classes_) == 2
    assert selector.coef_.shape == (2, 40)
    assert np.allclose(selector.scores_, L20Selector(3).fit(X, y).scores_)


def test_the_automatic_ridge_counts_varying_features_and_samples():
    """A constant feature is none, and a sample of weight 2 is two."""
    X, y = make_data(0, n_samples=60, n_features=12)
    X = np.hstack([X, np.ones((60, 5))])
    assert L20Selector(3).fit(X, y).ridge_ == L20Selector(3).fit(X, np.eye(3, dtype=int)[y]).ridge_
    assert L20Selector(3).fit(X, y).ridge_ == auto_ridge(12, 60, for_labels=True)
    assert L20Selector(3).fit(X, X[:, 0] + y).ridge_ == auto_ridge(12, 60, for_labels=False)
    assert L20Selector(3, ridge=7).fit(X, y).ridge_ == 7.0
    counts = np.random.default_rng(0).integers(0, 3, 60)
    weighted = L20Selector(3).fit(X, y, sample_weight=counts)
    repeated = L20Selector(3).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighted.ridge_ == repeated.ridge_ == auto_ridge(12, counts.sum(), for_labels=True)
    assert weighted.get_support(indices=True).tolist() == repeated.get_support(indices=True).tolist()
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("ridge", [None, "best", -1.0, np.inf, np.nan, True])
def test_an_odd_ridge_is_refused(ridge):
    X, y = make_data(0)
    with pytest.raises(ValueError, match=r"ridge=.* is not valid\. Use 'auto', or a number at least 0"):
        L20Selector(3, ridge=ridge).fit(X, y)


def test_one_hot_indicator_and_numbers_are_targets_too():
    X, y, _ = make_planted(60, 40, 3, 3)
    labels = L20Selector(5).fit(X, y)
    indicator = L20Selector(5).fit(X, np.eye(3, dtype=int)[y])
    assert np.allclose(indicator.scores_, labels.scores_)
    assert indicator.classes_.tolist() == [0, 1, 2]
    norm = AHIHT(ranking="norm")
    labels = L20Selector(5, solver=norm, class_weight=None).fit(X, y)
    numbers = L20Selector(5, solver=norm, ridge=labels.ridge_).fit(X, np.eye(3)[y] * 2.5 + 0.25)  # no classes to weigh
    assert not hasattr(numbers, "classes_")
    assert np.allclose(numbers.scores_[numbers.support_], 2.5 * labels.scores_[labels.support_])
    single = L20Selector(5).fit(X, X[:, 7] - 2 * X[:, 9] + 0.01 * X[:, 3])
    assert single.coef_.shape == (1, 40)
    assert {7, 9} <= set(single.get_support(indices=True))
    assert not hasattr(labels.fit(X, X[:, 7]), "classes_"), "classes of a former fit must go"


@pytest.mark.parametrize("solver", SOLVERS)
def test_recovers_planted_features(planted, solver):
    X, y, informative = planted
    selector = L20Selector(6, solver=make_solver(solver, max_iter=5000)).fit(X, y)
    assert set(informative) == set(selector.get_support(indices=True))


def test_pipeline_grid_search_and_pandas_output(planted):
    X, y, _ = planted
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(300)])
    pipeline = make_pipeline(L20Selector(), LogisticRegression()).set_output(transform="pandas")
    search = GridSearchCV(pipeline, {"l20selector__n_features_to_select": [2, 6]}, cv=3).fit(frame, y)
    assert search.best_params_["l20selector__n_features_to_select"] == 6
    names = search.best_estimator_[0].get_feature_names_out()
    assert search.best_estimator_[:-1].transform(frame).columns.tolist() == names.tolist()


def test_clone_and_pickle(planted):
    X, y, _ = planted
    selector = L20Selector(7, ridge=0.1, scale="zscore").fit(X, y)
    copy = pickle.loads(pickle.dumps(selector))
    assert np.array_equal(copy.transform(X), selector.transform(X))
    assert np.array_equal(copy.coef_, selector.coef_)
    assert clone(selector).get_params() == selector.get_params()
    assert len(pickle.dumps(selector)) < X.nbytes / 2, "the fit must not drag X along"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("solver", "newton"),
        ("scale", "minmax"),
        ("class_weight", "equal"),
        ("ridge", -1.0),
        ("max_features_to_select", 0),
        ("max_features_to_select", True),
    ],
)
def test_bad_parameters_are_named(planted, name, value):
    X, y, _ = planted
    with pytest.raises(ValueError, match=rf"{name}={value!r} is (unknown|not valid)\. Use "):
        L20Selector(5, **{name: value}).fit(X, y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stopping", "never"),
        ("rate", 1.0),
        ("rate", 0.0),
        ("alpha_start", -1.0),
        ("line_search_factor", 1.0),
        ("eta", -0.1),
        ("lipschitz_start", "big"),
        ("max_iter", 0),
        ("max_iter", 2.5),
        ("tol", None),
    ],
)
def test_bad_options_of_a_solver_are_named(planted, name, value):
    X, y, _ = planted
    for kind in (AHIHT, HIHT):
        if name in kind().get_params():
            with pytest.raises(ValueError, match=rf"{name}={value!r} is (unknown|not valid)\. Use "):
                L20Selector(5, solver=kind(**{name: value})).fit(X, y)


def uneven(seed=0):
    """Samples of three classes, of which the second is rare."""
    X, y = make_data(seed, n_samples=90)
    kept = (y != 1) | (np.cumsum(y == 1) <= 8)
    return X[kept], y[kept]


@pytest.mark.parametrize("labels", [np.array([0, 1, 2]), np.array(["b", "a", "c"]), np.array([2.0, -1.0, 7.0])], ids=str)
@pytest.mark.parametrize("solver", SOLVERS)
def test_balanced_weights_are_inverse_to_the_sizes(solver, labels):
    X, y = uneven()
    sizes = np.bincount(y)
    weights = {label: len(y) / (3 * size) for label, size in zip(labels.tolist(), sizes, strict=True)}
    balanced, given = (
        L20Selector(4, solver=make_solver(solver, max_iter=5000), class_weight=chosen).fit(X, labels[y])
        for chosen in ("balanced", weights)
    )
    assert_same_fit(balanced, given)
    unweighted = L20Selector(4, solver=make_solver(solver, max_iter=5000), class_weight=None).fit(X, labels[y])
    assert not np.allclose(balanced.path_.losses[-1], unweighted.path_.losses[-1])


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_label_without_a_weight_has_weight_1(solver):
    X, y = uneven()
    few, all_given = (
        L20Selector(4, solver=make_solver(solver, max_iter=5000), class_weight=chosen).fit(X, y)
        for chosen in ({1: 5.0}, {0: 1.0, 1: 5.0, 2: 1.0})
    )
    assert_same_fit(few, all_given)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scale", ["none", "zscore"])
@given(seed=st.integers(0, 2**32 - 1), ridge=st.sampled_from([0.0, 0.1, 10.0]), weight=st.floats(0.01, 100.0))
@settings(max_examples=10)
def test_class_weights_choose_the_features_and_leave_the_weights_in_units_of_the_target(solver, scale, seed, ridge, weight):
    """Given the features, the columns of W do not know of each other, so that the weight of a class drops out."""
    X, y = uneven(seed)
    selector = L20Selector(4, solver=make_solver(solver, max_iter=5000), scale=scale, ridge=ridge, class_weight={1: weight})
    path = selector.fit(X, y).path_
    deviations = X.std(axis=0) if scale == "zscore" else np.ones(X.shape[1])
    scaled = X / deviations
    mu = ridge * np.square(scaled - scaled.mean(axis=0)).sum(axis=0).mean()
    support = path.support(4)
    expected = minimum(scaled, np.eye(3)[y], support, mu)[1].T / deviations[support]
    refit = path.refit(4)
    np.testing.assert_allclose(refit.coef[:, support], expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose((X @ refit.coef.T + refit.intercept).mean(axis=0), np.bincount(y) / len(y))
    if solver in REPLACING and path.n_nonzero[-1] == 4:
        np.testing.assert_allclose(selector.coef_[:, support], expected, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(selector.intercept_, refit.intercept, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_heavy_class_gets_its_feature_first(solver):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [60, 60, 6])
    X = rng.standard_normal((len(y), 10))
    X[:, 3] += 2.0 * (y == 0)
    X[:, 7] += 3.0 * (y == 2)
    first = {
        name: L20Selector(1, solver=make_solver(solver, max_iter=5000), class_weight=chosen)
        .fit(X, y)
        .get_support(indices=True)
        .tolist()
        for name, chosen in (("common", None), ("rare", {2: 100.0}))
    }
    assert first == {"common": [3], "rare": [7]}


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({"a": 2.0, "x": 1.0}, r"class_weight names 'x', which y does not have\. Its classes are 'a', 'b' and 'c'"),
        ({0: 1.0}, r"class_weight names '0', which y does not have"),
        ({"a": -1.0}, r"class_weight\['a'\]=-1\.0 is not valid\. Use a number above 0"),
        ({"a": 0.0}, r"class_weight\['a'\]=0\.0 is not valid\. Use a number above 0"),
        ({"a": np.nan}, r"class_weight\['a'\]=nan is not valid\. Use a number above 0"),
        ({"a": np.inf}, r"class_weight\['a'\]=inf is not valid\. Use a number above 0 and below 1e\+15"),
        ({"a": "much"}, r"class_weight\['a'\]='much' is not valid\. Use a number above 0"),
        ("Balanced", r"class_weight='Balanced' is unknown\. Use 'balanced', a dict of label: weight, or None"),
        (2.0, r"class_weight=2\.0 is unknown\. Use 'balanced', a dict"),
        (np.array([1.0, 2.0, 3.0]), r"class_weight=array\(.*\) is unknown\. Use 'balanced', a dict"),
    ],
    ids=repr,
)
def test_bad_class_weights_are_named(class_weight, message):
    X, y = make_data()
    with pytest.raises(ValueError, match=message):
        L20Selector(3, class_weight=class_weight).fit(X, np.array(["a", "b", "c"])[y])
