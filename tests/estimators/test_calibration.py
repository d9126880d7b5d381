"""Probabilities of L20Classifier: leaving out against refitting, folds against a slow loop, what needs probabilities."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibrationDisplay
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

from l20fs import AHIHT, L20Classifier
from l20fs.data import load_srbct, make_planted
from l20fs.estimators.calibration import leave_one_out
from l20fs.inputs.targets import encode_targets, with_weights
from l20fs.prediction.calibration import UNKNOWN_IF_SELECTED, fit_calibrations


def sample(n_classes=3, n_samples=40):
    X, y, _ = make_planted(
        n_samples=n_samples, n_features=30, n_informative=4, n_classes=n_classes, noise=2.0, random_state=0
    )
    return X, y


def refitted_values(model, X, y, k, weights):
    """Return the values of the rule at each sample, with least squares solved without it: centring, too."""
    rows, path = model.path_.support(k), model.path_
    Y = np.eye(len(model.classes_))[np.searchsorted(model.classes_, y)]
    values = []
    for left_out in range(len(y)):
        counts = np.ones(len(y)) if weights is None else weights.astype(float).copy()
        counts[left_out] -= min(1.0, counts[left_out])
        Z = (X[:, rows] - path.x_mean[rows]) / path.x_scale[rows]
        mean, y_mean = (np.average(part, axis=0, weights=counts) for part in (Z, Y))
        gram = (Z - mean).T @ (counts[:, None] * (Z - mean)) + mu(model, X, weights) * np.eye(k)
        solution = np.linalg.solve(gram, (Z - mean).T @ (counts[:, None] * (Y - y_mean)))
        predicted = (Z[left_out] - mean) @ solution + y_mean - path.y_mean
        weights_of_all = path.refit(k).coef[:, rows].T * path.x_scale[rows, None]
        axes, intercept = model._scatter.axes(weights_of_all)
        values.append(predicted @ axes + intercept)
    return np.array(values)


def mu(model, X, weights):
    """Return the ridge term: its strength times the mean squared norm of a scaled feature."""
    counts = np.ones(len(X)) if weights is None else weights
    Z = (X - np.average(X, axis=0, weights=counts)) / model.path_.x_scale
    return model.ridge_ * float((counts @ np.square(Z)).mean())


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_without_a_sample_are_those_of_a_refit(n_classes, weighted):
    X, y = sample(n_classes)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(y)) if weighted else None
    model = L20Classifier(6).fit(X, y, weights)
    targets = with_weights(encode_targets(y), weights)
    found = leave_one_out(model.path_, model._scatter, X, targets, None)
    for k in (1, 3, 6):
        np.testing.assert_allclose(found.values[k], refitted_values(model, X, y, k, weights), rtol=1e-7, atol=1e-9)
    slopes, doubt = fit_calibrations(found.values, found.codes, found.weights, n_unknown=UNKNOWN_IF_SELECTED)
    assert model.at(3)._calibration() == (slopes[3], doubt)


def test_folds_select_anew_and_know_that_they_learn_from_fewer_samples():
    X, y = sample()
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    model = L20Classifier(3, max_features_to_select=5, calibration=folds).fit(X, y)
    values, tested = np.empty((5, len(y), 3)), []
    for train, test in folds.split(X, y):
        part = L20Classifier(5, calibration=None).fit(X[train], y[train])
        tested.extend(test)
        for k in range(1, 6):
            values[k - 1, test] = part.set_params(n_features_to_select=k).decision_function(X[test])
    slopes, doubt = fit_calibrations(values[:, tested], np.searchsorted(model.classes_, y[tested]))
    for k in range(1, 6):
        assert model.at(k)._calibration() == pytest.approx((slopes[k - 1] * 4 / 3, doubt), rel=1e-6)


@pytest.mark.parametrize("calibration", ["loo", 3])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_of_the_largest_probability_is_the_prediction(calibration, n_classes):
    X, y = sample(n_classes)
    model = L20Classifier(5, calibration=calibration).fit(X, y)
    for k in (1, 3, 5):
        model.set_params(n_features_to_select=k)
        probabilities = model.predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), probabilities)


def test_probabilities_of_new_samples_are_better_than_those_of_the_bare_scores():
    train, test = load_srbct(), load_srbct(subset="test")
    losses = {}
    for calibration in ("loo", 5):
        model = L20Classifier(20, calibration=calibration).fit(train.data, train.target)
        losses[calibration] = log_loss(test.target, model.predict_proba(test.data))
    scores = model.decision_function(test.data)
    bare = np.exp(scores - scores.max(axis=1, keepdims=True))
    assert max(losses.values()) < log_loss(test.target, bare / bare.sum(axis=1, keepdims=True))


def test_what_needs_probabilities_works():
    X, y = sample(2, 60)
    assert 0.5 < cross_val_score(L20Classifier(4), X, y, scoring="roc_auc").mean() <= 1.0
    assert (cross_val_score(L20Classifier(4), X, y, scoring="neg_log_loss") < 0.0).all()
    three = sample(3, 60)
    assert cross_val_score(L20Classifier(4), *three, scoring="roc_auc_ovr").mean() > 0.5
    voting = VotingClassifier([("l20", L20Classifier(4)), ("logistic", LogisticRegression())], voting="soft").fit(X, y)
    assert roc_auc_score(y, voting.predict_proba(X)[:, 1]) > 0.5
    assert (
        GridSearchCV(L20Classifier(), {"n_features_to_select": [2, 4]}, scoring="neg_brier_score").fit(X, y).best_score_ < 0
    )
    pytest.importorskip("matplotlib").use("Agg")
    CalibrationDisplay.from_estimator(L20Classifier(4).fit(X, y), X, y)


def test_without_calibration_there_are_no_probabilities():
    X, y = sample()
    model = L20Classifier(3, calibration=None).fit(X, y)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "predict_log_proba")
    with pytest.raises(ValueError, match="calibration='sigmoid' is not valid"):
        L20Classifier(3, calibration="sigmoid").fit(X, y)
    assert clone(L20Classifier(calibration=7)).calibration == 7


def test_no_feature_no_knowledge():
    X, y = sample()
    model = L20Classifier(None, solver=AHIHT(alpha_min=1e6)).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X[:2]), 1 / 3, atol=1e-5)


def test_more_features_than_samples_without_a_ridge_stay_finite():
    X = np.random.default_rng(0).standard_normal((12, 40))
    y = np.arange(12) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the path ends early
        model = L20Classifier(11, ridge=0.0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
