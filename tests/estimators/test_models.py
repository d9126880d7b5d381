"""L20Classifier and L20Regressor: the rule against discriminant analysis and ridge regression of scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from libraries import array_api_failures
from samples import CONTAINERS, SOLVERS, make_data, make_frame, make_solver
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from l20fs import AHIHT, Constraints, L20Classifier, L20Regressor, L20Selector
from l20fs.data import load_srbct
from l20fs.prediction import discriminant


@pytest.mark.filterwarnings("ignore:n_features_to_select=.* is greater than n_features")
@pytest.mark.filterwarnings("ignore:No features were selected")
@parametrize_with_checks(
    [
        L20Classifier(),
        L20Classifier(3, loss="l21", ridge=10.0),
        L20Classifier(fit_intercept=False),
        L20Regressor(),
        L20Regressor(2, solver="swap", ridge=0.0, fit_intercept=False),
    ],
    expected_failed_checks=lambda model: (
        array_api_failures(model)
        | ({} if model.fit_intercept else {"check_class_weight_classifiers": "through the origin no class gets all samples"})
        | {
            f"check_sample_weight_equivalence_on_{kind}_data": "a weight of two is in one fold, two samples may be in two"
            for kind in ("dense", "sparse")
            if isinstance(model, L20Classifier)
        }
    ),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def make_outputs(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 15)) * rng.uniform(0.5, 20.0, 15) + rng.normal(size=15)
    Y = X[:, [3, 8]] @ rng.standard_normal((2, 2)) + rng.standard_normal((80, 2))
    return X, Y


@pytest.mark.parametrize("class_weight", ["balanced", None, {0: 1.0, 1: 4.0, 2: 0.5}])
@pytest.mark.parametrize("ridge", [0.01, 10.0])
def test_the_classifier_is_a_discriminant_analysis_of_the_predictions(class_weight, ridge, monkeypatch):
    monkeypatch.setattr(discriminant, "LEAST_SCATTER", 1e-6)  # hardly any
    X, y = make_data(3, n_samples=150)
    keep = (y != 2) | (np.arange(150) % 2 == 0)  # classes of different sizes
    X, y = X[keep], y[keep]
    model = L20Classifier(4, class_weight=class_weight, ridge=ridge).fit(X, y)
    refit = model.path_.refit(4)
    scores = X @ refit.coef.T + refit.intercept
    sizes = np.bincount(y) * np.array([1.0, 4.0, 0.5] if isinstance(class_weight, dict) else [1.0, 1.0, 1.0])
    priors = np.full(3, 1 / 3) if class_weight == "balanced" else sizes / sizes.sum()
    # Three predictions add up to one: two of them carry everything, and have a scatter of full rank.
    axes = scores[:, :2]
    centres = np.array([axes[y == label].mean(axis=0) for label in range(3)])
    scatter = (axes - centres[y]).T @ (axes - centres[y]) / len(y)
    distances = np.linalg.solve(scatter, centres.T)
    expected = axes @ distances - 0.5 * np.einsum("cj,jc->c", centres, distances) + np.log(priors)
    found = model.decision_function(X)
    centre = lambda values: values - values.mean(axis=1, keepdims=True)  # noqa: E731
    np.testing.assert_allclose(centre(found), centre(expected), rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    if class_weight == "balanced":
        assert np.array_equal(model.predict(X), LinearDiscriminantAnalysis(priors=priors).fit(axes, y).predict(axes))
    np.testing.assert_allclose(X @ model.coef_.T + model.intercept_, found, rtol=1e-9, atol=1e-9)


def test_two_classes_have_one_decision_value():
    X, y = make_data(1, n_classes=2)
    model = L20Classifier(3).fit(X, np.array(["no", "yes"])[y])
    decision = model.decision_function(X)
    assert decision.shape == (60,)
    assert (model.coef_.shape, model.intercept_.shape) == ((1, 12), (1,))  # as in scikit-learn
    np.testing.assert_allclose((X @ model.coef_.T + model.intercept_).ravel(), decision, rtol=1e-9, atol=1e-9)
    assert np.array_equal(model.predict(X) == "yes", decision > 0.0)
    assert model.score(X, np.array(["no", "yes"])[y]) > 0.7


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("scale", ["none", "zscore", "moderated"])
@pytest.mark.parametrize("k", [1, 4])
def test_the_regression_is_ridge_regression_on_the_selected_features(ridge, scale, k):
    X, Y = make_outputs()
    model = L20Regressor(4, ridge=ridge, scale=scale).fit(X, Y).set_params(n_features_to_select=k)
    deviations = np.ones(15) if scale == "none" else X.std(axis=0)
    if scale == "moderated":
        deviations = deviations + np.median(deviations)
    scaled = (X / deviations)[:, model.support_]
    mu = ridge * np.square((X - X.mean(axis=0)) / deviations).sum(axis=0).mean()
    reference = (Ridge(mu) if ridge else LinearRegression()).fit(scaled, Y)
    np.testing.assert_allclose(model.predict(X), reference.predict(scaled), rtol=1e-8)
    np.testing.assert_allclose(model.coef_[:, model.support_] * deviations[model.support_], reference.coef_, rtol=1e-8)
    assert model.score(X, Y) == pytest.approx(reference.score(scaled, Y))
    assert not model.coef_[:, ~model.support_].any()


def test_weights_have_the_shapes_of_scikit_learn():
    X, Y = make_outputs()
    for y in (Y[:, 0], Y[:, [0]], Y):
        model, reference = L20Regressor(3, ridge=0.0).fit(X, y), LinearRegression()
        reference.fit(X[:, model.support_], y)
        np.testing.assert_allclose(model.coef_[..., model.support_], reference.coef_, rtol=1e-8)
        np.testing.assert_allclose(model.intercept_, reference.intercept_, rtol=1e-8)
        assert model.coef_.shape == (*reference.coef_.shape[:-1], 15)
        assert np.shape(model.intercept_) == np.shape(reference.intercept_)
        np.testing.assert_allclose(model.predict(X), X @ model.coef_.T + model.intercept_, rtol=1e-9, atol=1e-9)
    assert isinstance(L20Regressor(3).fit(X, Y[:, 0]).intercept_, float)
    # A selector has the weights W' of least squares, one row per target in any case.
    assert L20Selector(3).fit(X, Y[:, 0]).coef_.shape == (1, 15)
    assert L20Selector(3).fit(X, Y[:, 0] > 0).coef_.shape == (2, 15)


def test_the_shape_of_the_outputs_is_kept_and_whole_numbers_are_numbers():
    X, Y = make_outputs()
    assert L20Regressor(3).fit(X, Y[:, 0]).predict(X).shape == (80,)
    assert L20Regressor(3).fit(X, Y[:, [0]]).predict(X).shape == (80, 1)
    counts = np.round(Y[:, 0]).astype(int)
    model = L20Regressor(3).fit(X, counts)
    assert not hasattr(model, "classes_")
    np.testing.assert_array_equal(model.predict(X), L20Regressor(3).fit(X, counts.astype(float)).predict(X))
    assert is_regressor(model)
    assert not is_classifier(model)


@pytest.mark.parametrize("solver", SOLVERS)
def test_selection_is_that_of_the_selector(solver):
    X, y = make_data(2)
    settings = {"solver": make_solver(solver, max_iter=5000)}
    selector, model = L20Selector(4, **settings).fit(X, y), L20Classifier(4, **settings).fit(X, y)
    assert np.array_equal(selector.ranking_, model.ranking_)
    assert np.array_equal(selector.transform(X), model.transform(X))
    assert is_classifier(model)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_containers_agree(container, dtype):
    X, y = make_data(4)
    dense = L20Classifier(4).fit(X, y)
    model = L20Classifier(4).fit(container(X.astype(dtype)), y)
    np.testing.assert_allclose(
        model.decision_function(container(X.astype(dtype))), dense.decision_function(X), rtol=1e-3, atol=1e-3
    )
    assert np.array_equal(model.predict(sp.csc_array(X)), dense.predict(X))
    numbers = X[:, 2] + 0.1 * X[:, 3]
    predicted = L20Regressor(4).fit(container(X.astype(dtype)), numbers).predict(container(X.astype(dtype)))
    np.testing.assert_allclose(predicted, L20Regressor(4).fit(X, numbers).predict(X), rtol=1e-3, atol=1e-4)


CONSTRAINTS = [
    {},
    {"constraints": Constraints(include=[7], exclude=[5])},
    {"constraints": Constraints(groups=[[2, 3], [0, 9, 11]])},
    {"constraints": Constraints(costs={2: 3.0})},
]


@pytest.mark.parametrize("settings", CONSTRAINTS, ids=lambda settings: "+".join(settings) or "plain")
@pytest.mark.parametrize("Model", [L20Selector, L20Classifier, L20Regressor])
def test_a_smaller_k_is_a_fresh_fit(Model, settings):
    X, y = make_data(6)
    model = Model(8, **settings).fit(X, y)
    for k in range(1, 9):
        fresh = Model(k, **settings).fit(X, y)
        assert np.array_equal(model.at(k).support_, fresh.support_)
        assert np.array_equal(model._order_for(k), fresh._order_for(k))
        assert np.array_equal(model.at(k).transform(X), fresh.transform(X))
        found, expected = model.at(k)._linear_rule(), fresh.at(k)._linear_rule()
        assert np.array_equal(found.rows, expected.rows)
        np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(found.intercept, expected.intercept, rtol=1e-7, atol=1e-9)


def test_weight_two_is_the_sample_twice():
    X, y = make_data(6)
    counts = np.random.default_rng(6).integers(0, 4, len(y))
    repeated = np.repeat(np.arange(60), counts)
    for Model, target in ((L20Classifier, y), (L20Regressor, X[:, 2] + X[:, 5] * y)):
        weighted = Model(4).fit(X, target, sample_weight=counts)
        plain = Model(4).fit(X[repeated], target[repeated])
        np.testing.assert_allclose(weighted.coef_, plain.coef_, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(weighted.intercept_, plain.intercept_, rtol=1e-10, atol=1e-10)


@pytest.mark.filterwarnings("ignore:No features were selected")
def test_nothing_selected_predicts_without_features():
    X, y = make_data(7)
    y[:5] = 2
    model = L20Classifier(None, solver=AHIHT(alpha_min=1e9), class_weight=None).fit(X, y)
    assert not model.support_.any()
    assert set(model.predict(X)) == {2}
    np.testing.assert_allclose(L20Regressor(None, solver=AHIHT(alpha_min=1e9)).fit(X, y * 1.5).predict(X), 1.5 * y.mean())


def test_a_class_without_weight_is_never_predicted():
    X, y = make_data(8)
    model = L20Classifier(3).fit(X, y, sample_weight=y != 1)
    assert model.classes_.tolist() == [0, 1, 2]
    assert 1 not in model.predict(X)
    assert np.isfinite(model.coef_).all()


def test_wrong_input_is_refused():
    X, y = make_data()
    with pytest.raises(NotFittedError):
        L20Classifier().predict(X)
    with pytest.raises(ValueError, match="Unknown label type"):
        L20Classifier(3).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="one class label per sample"):
        L20Classifier(3).fit(X, np.eye(3, dtype=int)[y])
    with pytest.raises(ValueError, match=r"y must hold numbers .*For labels use L20Classifier"):
        L20Regressor(3).fit(X, np.array(["a", "b", "c"])[y])
    with pytest.raises(ValueError, match="X has 11 features"):
        L20Classifier(3).fit(X, y).predict(X[:, :11])
    frame, y = make_frame()
    with pytest.raises(ValueError, match="feature names"):
        L20Classifier(3).fit(frame, y).predict(frame.rename(columns={"g0": "other"}))


def test_frames_and_copies():
    frame, y = make_frame()
    model = L20Classifier(3).fit(frame, y)
    expected = model.predict(frame)
    polars = pl.DataFrame(dict(frame))
    assert np.array_equal(L20Classifier(3).fit(polars, y).predict(polars), expected)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(frame), expected)
    assert isinstance(clone(model).set_output(transform="polars").fit(polars, y).transform(polars), pl.DataFrame)
    assert isinstance(model.set_output(transform="pandas").transform(frame), pd.DataFrame)
    assert model.to_frame()["feature"].tolist() == frame.columns[np.argsort(model.ranking_)[:3]].tolist()


def test_srbct_is_classified():
    tumours = load_srbct()
    assert cross_val_score(L20Classifier(20), tumours.data, tumours.target, cv=5).mean() > 0.95
