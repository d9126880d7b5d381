"""Panels of fitted estimators: their rules, for every setting and kind of X, and the data that they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from panel_samples import columns_for
from samples import SOLVERS, make_data, make_frame

from l20fs import L20Classifier, L20Regressor, L20Selector, L20SelectorCV, Panel
from l20fs.estimators.calibration import gain_of
from l20fs.estimators.panel_export import build_panel
from l20fs.evaluation.folds import make_folds
from l20fs.evaluation.out_of_fold import Truth
from l20fs.inputs.targets import encode_targets
from l20fs.prediction.calibration import Calibrations
from l20fs.prediction.substitution import NormalEquations

SETTINGS = [
    {},
    {"scale": "none"},
    {"scale": "zscore"},
    {"scale": "moderated"},
    {"fit_intercept": False},
    {"loss": "l21"},
    {"ridge": 0.0},
    {"class_weight": None},
    {"include": [0, 3]},
    {"exclude": [2]},
    {"ranking": "norm"},
    *({"solver": solver} for solver in SOLVERS[1:]),
]


def assert_predicts_like(panel, model, X):
    """Compare a panel, read from its file, with a model for every k."""
    panel = Panel.from_json(panel.to_json())
    for k in panel.sizes:
        sized = model.with_size(k)
        columns = columns_for(panel, X, k)
        if panel.classes is None:
            np.testing.assert_allclose(panel.predict(columns, k), sized.predict(X), rtol=1e-12, atol=1e-12)
        else:
            np.testing.assert_allclose(
                panel.decision_function(columns, k), sized.decision_function(X), rtol=1e-12, atol=1e-12
            )
            assert panel.predict(columns, k).tolist() == sized.predict(X).tolist()


def assert_solves_alike(panel):
    """Check that the sums of the panel give its own rules again."""
    for k in panel.sizes:
        rule = panel.rule_for(k)
        found = NormalEquations(panel.cross_products, panel.columns).rule_on(range(len(rule.weights)))
        np.testing.assert_allclose(found.weights, rule.weights, rtol=1e-8, atol=1e-8 * np.abs(rule.weights).max())
        np.testing.assert_allclose(found.intercept, rule.intercept, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_classifier(settings, weighted):
    X, y = make_data(7, n_classes=3)
    weight = np.random.default_rng(1).uniform(0.0, 2.0, len(y)) if weighted else None
    model = L20Classifier(4, max_features=6, **settings).fit(X, y, weight)
    panel = model.to_panel(X, y, weight)
    assert panel.sizes == list(range(2 if "include" in settings else 1, 7))
    assert_predicts_like(panel, model, X)
    assert_solves_alike(panel)


@pytest.mark.parametrize("settings", [{}, {"fit_intercept": False}, {"loss": "l21"}, {"scale": "none"}], ids=str)
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_regressor(settings, n_outputs):
    X, _ = make_data(8)
    rng = np.random.default_rng(0)
    Y = 1.0 + X[:, :4] @ rng.standard_normal((4, n_outputs)) + 0.3 * rng.standard_normal((len(X), n_outputs))
    y = Y[:, 0] if n_outputs == 1 else Y
    model = L20Regressor(3, max_features=5, **settings).fit(X, y)
    panel = model.to_panel(X, y)
    assert panel.targets == (["y"] if n_outputs == 1 else ["y0", "y1", "y2"])
    assert_predicts_like(panel, model, X)
    assert_solves_alike(panel)


def test_groups_of_features():
    X, y = make_data(4)
    groups = [[2, 5], [9, 0, 1]]
    model = L20Classifier(2, max_features=3, feature_groups=groups).fit(X, y)
    panel = model.to_panel(X, y)
    assert panel.sizes == [1, 2, 3]
    assert panel.ends == [len(model.order_for(k)) for k in panel.sizes]
    assert panel.ends[-1] > 3
    assert_predicts_like(panel, model, X)


def test_the_features_at_alpha():
    X, y = make_data(4)
    alpha = float(L20Classifier(4).fit(X, y).path_.alphas[-1])
    model = L20Classifier(None, alpha=alpha).fit(X, y)
    panel = model.to_panel(X, y)
    assert panel.features_for() == [f"x{j}" for j in model.order_for(None)]
    np.testing.assert_allclose(panel.decision_function(columns_for(panel, X)), model.decision_function(X), atol=1e-12)
    with pytest.raises(ValueError, match="selects 0 features, and a panel needs at least one"):
        L20Classifier(None, alpha=1e9).fit(X, y).to_panel(X, y)


def test_the_search_has_the_panel_of_its_own_model():
    X, y = make_frame(4)
    search = L20SelectorCV(max_features=5, cv=3).fit(X, y)
    panel = search.to_panel(X, y, provenance={"by": "search"})
    assert panel.k == search.n_features_
    assert panel.k_max == 5
    assert panel.provenance == {"by": "search"}
    assert panel.predict(X).tolist() == search.predict(X).tolist()
    np.testing.assert_allclose(panel.decision_function(X), search.decision_function(X), atol=1e-12)
    search.set_params(n_features_to_select=2)
    assert search.to_panel(X, y).k == 2


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_selector_has_the_rules_of_a_classifier(settings):
    X, y = make_data(7, n_classes=2)
    selector = L20Selector(4, max_features=6, **settings).fit(X, y)
    model = L20Classifier(4, max_features=6, **settings).fit(X, y)
    panel = build_panel(selector, X, encode_targets(y), 4, target_names=["class"])
    for k in panel.sizes:
        rule, expected = panel.rule_for(k), model.model_for(k)
        np.testing.assert_allclose(rule.weights, expected.weights, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(rule.intercept, expected.intercept, rtol=1e-8, atol=1e-9)
        assert panel.calibration_for(k).slope == 1.0, "of the discriminant analysis"


def test_data_that_are_not_those_of_the_fit_are_refused():
    X, y = make_data(1)
    model = L20Classifier(3).fit(X, y)
    with pytest.raises(ValueError, match="X is not that of the fit: 'x"):
        model.to_panel(X + 1.0, y)
    with pytest.raises(ValueError, match="y or sample_weight is not that of the fit"):
        model.to_panel(X, np.where(np.arange(len(y)) == np.argmax(y == 0), 1, y))
    with pytest.raises(ValueError, match="other classes"):
        model.to_panel(X, y + 1)
    with pytest.raises(ValueError, match="is expecting 12 features"):
        model.to_panel(X[:, :5], y)
    weight = np.arange(1.0, len(y) + 1)
    with pytest.raises(ValueError, match="is not that of the fit"):
        model.to_panel(X, y, weight)
    indicator = np.eye(3)[y]
    selector = L20Selector(3).fit(X, indicator)
    with pytest.raises(ValueError, match="label indicator"):
        build_panel(selector, X, encode_targets(indicator), 3, target_names=["y"])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_are_those_of_the_estimator(n_classes):
    X, y = make_data(3, n_classes=n_classes)
    for model in (L20Classifier(3, max_features=5), L20Classifier(3, calibration=3), L20SelectorCV(max_features=4, cv=3)):
        model.fit(X, y)
        panel = model.to_panel(X, y)
        np.testing.assert_allclose(
            panel.predict_proba(columns_for(panel, X)), model.predict_proba(X), rtol=1e-12, atol=1e-12
        )
    panel = L20Classifier(3, calibration=None).fit(X, y).to_panel(X, y)
    assert panel.calibration_for().slope == 1.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_calibration_of_folds_is_that_of_a_classifier_with_these_folds(n_classes):
    X, y = make_data(3, n_classes=n_classes)
    folds, shares = make_folds(3, X, y, None, classify=True), Truth.of(encode_targets(y), "balanced").shares
    model = L20Classifier(4, calibration=3).fit(X, y)
    values = np.zeros((len(y), 4, 1 if n_classes == 2 else n_classes))
    for fold in folds:
        part = L20Classifier(4, calibration=None).fit(X[fold.train], y[fold.train])
        for k in range(1, 5):
            values[fold.test, k - 1] = part.model_for(k).apply(X[fold.test][:, part.model_for(k).rows])
    tested, gain = np.concatenate([fold.test for fold in folds]), gain_of(folds, len(y))
    found = Calibrations.of_folds(np.arange(1, 5), values[tested], y[tested], gain, shares)
    for k in range(1, 5):
        np.testing.assert_allclose(found.at(k)[:2], model.calibration_for(k)[:2], rtol=1e-7)
        np.testing.assert_allclose(found.at(k).offset, model.calibration_for(k).offset, rtol=1e-7)
    few = Calibrations.of_folds(np.array([1, 4]), values[tested][:, [0, 3]], y[tested], gain, shares)
    assert min(few.at(1).slope, few.at(4).slope) <= few.at(2).slope <= max(few.at(1).slope, few.at(4).slope)
    assert few.at(9)[:2] == few.at(4)[:2]
    assert few.at(1).doubt == few.at(2).doubt
