"""Rules on other features from stored sums: those of a fit to the samples."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from panel_samples import columns_for, fitted, named
from samples import make_data

from l20fs import L20Classifier, L20Regressor, Panel
from l20fs.prediction.panel_file import PanelError

#: Parameters of the estimators under which the sums differ.
SETTINGS = [
    {},
    {"ridge": 1e-3},
    {"scale": "zscore"},
    {"scale": "none"},
    {"fit_intercept": False},
    {"class_weight": None},
    {"class_weight": {0: 3.0, 1: 0.2}},
]


def fit_on(features, X, y, kind, weight=None, **settings):
    """Fit a model to given features alone, in the units of all."""
    others = [j for j in range(X.shape[1]) if j not in features]
    return kind(len(features), exclude=others, **settings).fit(X, y, weight)


def assert_same_rule(panel, model):
    order = [[f"x{j}" for j in model.model_for(model.n_features_to_select).rows].index(name) for name in panel.features]
    rule, expected = panel.rule_for(), model.model_for(model.n_features_to_select)
    np.testing.assert_allclose(rule.weights, expected.weights[order], rtol=1e-8, atol=1e-8 * np.abs(expected.weights).max())
    np.testing.assert_allclose(rule.intercept, expected.intercept, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_rule_is_that_of_a_fit_to_the_same_features(settings, weighted):
    X, y = make_data(5, n_features=14, n_classes=2 if weighted else 3)
    X += 3.0 * (np.arange(14) % 3) - 1.0
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float) if weighted else None
    model = L20Classifier(4, max_features=6, **settings).fit(X, y, weight)
    panel = Panel.from_json(model.to_panel(X, y, weight, n_substitutes=8).to_json())
    available = [f"x{j}" for j in range(14) if f"x{j}" not in panel.features[1:3]]
    adapted = panel.adapted(available)
    assert set(adapted.replaced) == set(panel.features[1:3])
    assert len(adapted.features) == 4
    chosen = [int(name[1:]) for name in adapted.features]
    assert_same_rule(adapted, fit_on(chosen, X, y, L20Classifier, weight, **settings))


@pytest.mark.parametrize("settings", [{}, {"fit_intercept": False}, {"scale": "none", "ridge": 0.0}], ids=str)
@pytest.mark.parametrize("kind", [0, -1])
def test_the_rule_for_numbers_is_that_of_a_fit_to_the_same_features(kind, settings):
    _, _, X, y = fitted(kind)
    model = L20Regressor(4, max_features=6, **settings).fit(X, y)
    panel = model.to_panel(X, y, n_substitutes=8)
    adapted = panel.adapted([f"x{j}" for j in range(14) if f"x{j}" != panel.features[0]])
    chosen = [int(name[1:]) for name in adapted.features]
    assert_same_rule(adapted, fit_on(chosen, X, y, L20Regressor, **settings))


@pytest.mark.parametrize("kind", [L20Classifier, L20Regressor])
@pytest.mark.parametrize("seed", range(3))
def test_the_substitute_is_the_one_of_the_lowest_loss(kind, seed):
    X, y = make_data(seed, n_features=14)
    X = X @ np.random.default_rng(seed).standard_normal((14, 14))  # so that correlation and scale matter
    y = y if kind is L20Classifier else X[:, :3].sum(axis=1) + y
    panel = kind(4, scale="none").fit(X, y).to_panel(X, y, n_substitutes=10)
    for gone in range(4):
        kept = [int(name[1:]) for place, name in enumerate(panel.features) if place != gone]
        others = [j for j in range(14) if j not in kept and f"x{j}" != panel.features[gone]]
        losses = {j: fit_on([*kept, j], X, y, kind, scale="none").path_.refit(4).loss for j in others}  # brute force
        adapted = panel.adapted({f"x{j}" for j in [*kept, *others]})
        assert adapted.replaced == {panel.features[gone]: f"x{min(losses, key=losses.get)}"}


@pytest.mark.parametrize("kind", [2, 3, 0, -1])
def test_with_all_features_nothing_changes(kind):
    panel, _, X, _ = fitted(kind)
    for k in (None, 2):
        same = panel.adapted(named(X), k)
        assert same.replaced == {}
        np.testing.assert_array_equal(same.rule_for().weights, panel.rule_for(k).weights)
        np.testing.assert_array_equal(same.predict(columns_for(panel, X, k)), panel.predict(columns_for(panel, X, k), k))


def test_an_adapted_panel_is_a_panel():
    panel, _, X, _ = fitted(3)
    first, second = panel.features[:2]
    left = {name: values for name, values in named(X).items() if name != first}
    adapted = Panel.from_json(panel.adapted(left).to_json())
    assert adapted.calibration_for().slope == panel.calibration_for().slope
    assert adapted.rules[0].farthest == panel.rules[3].farthest
    assert len(adapted.check(left)) == 60
    assert adapted.predict_proba(left).shape == (60, 3)
    assert adapted.sizes == [4]
    del left[second]
    twice = adapted.adapted(left)
    once = panel.adapted(left)
    assert set(twice.replaced) == {first, second}
    assert set(twice.features) == set(once.features)
    np.testing.assert_allclose(twice.decision_function(left), once.decision_function(left), rtol=1e-9)


def test_a_copy_replaces_a_feature_without_a_trace():
    X, y = make_data(2)
    best = int(L20Classifier(3).fit(X, y).order_for(1)[0])
    X = np.column_stack([X, X[:, best]])
    model = L20Classifier(3, exclude=[X.shape[1] - 1]).fit(X, y)
    panel = model.with_size(3).to_panel(X, y)
    assert f"x{X.shape[1] - 1}" not in panel.features + panel.substitutes  # what is excluded replaces nothing
    model = L20Classifier(3).fit(X, y)
    panel = model.to_panel(X, y)
    gone = panel.features[0]
    adapted = panel.adapted([name for name in named(X) if name != gone])
    assert adapted.replaced == {gone: f"x{X.shape[1] - 1}"}
    np.testing.assert_allclose(adapted.decision_function(named(X)), panel.decision_function(named(X)), atol=1e-9)


def test_every_set_of_missing_features_has_a_rule():
    panel, _, X, _ = fitted(3)
    for n in range(1, 5):
        for gone in combinations(panel.features_for(), n):
            adapted = panel.adapted([name for name in [*panel.features, *panel.substitutes] if name not in gone])
            assert len(adapted.features) == 4
            assert not set(gone) & set(adapted.features)
            assert sorted(adapted.replaced) == sorted(gone)
            assert len(set(adapted.replaced.values())) == n
            assert np.isfinite(adapted.decision_function(named(X))).all()


def test_numbers_that_overflow_are_refused():
    panel = fitted(3)[0]
    tiny = replace(panel, cross_products=replace(panel.cross_products, target_factors=[1e-320] * 3))
    with pytest.raises(PanelError, match="too large to solve"):
        tiny.adapted(panel.features[1:])


def test_what_cannot_be_replaced_is_said():
    panel, _, _, _ = fitted(3)
    only = panel.adapted(panel.features_for()[:1])
    assert only.features == panel.features[:1]
    assert only.replaced == dict.fromkeys(panel.features_for()[1:])
    with pytest.raises(PanelError, match="None of the 4 features of the panel is there"):
        panel.adapted(["other"])
    for nonsense in ("x1", 3):
        with pytest.raises(PanelError, match="holds no names of features"):
            panel.adapted(nonsense)
    with pytest.raises(PanelError, match="stores no cross-products of its features"):
        replace(panel, cross_products=None).adapted(panel.features[:1])
