"""Prediction by a panel: that of the estimator, from any kind of X, with missing values, or a clear error."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from panel_samples import columns_for, fitted, named
from samples import make_data

from l20fs import L20Classifier, Panel
from l20fs.prediction.calibration import softmax
from l20fs.prediction.new_samples import predict_samples
from l20fs.prediction.panel_file import PanelError

KINDS = [2, 3, 4, 0, -1]
by_kind = pytest.mark.parametrize("kind", KINDS, ids=["two", "three", "four", "number", "numbers"])


@by_kind
def test_predicts_what_the_estimator_predicts_for_every_k(kind):
    panel, model, X, _ = fitted(kind)
    panel = Panel.from_json(panel.to_json())
    assert (panel.k, panel.k_max, panel.sizes) == (4, 6, [1, 2, 3, 4, 5, 6])
    for k in panel.sizes:
        sized, columns = model.with_size(k), columns_for(panel, X, k)
        assert panel.features_for(k) == [f"x{j}" for j in sized.model_for(k).rows]
        np.testing.assert_array_equal(panel.rule_for(k).weights, sized.model_for(k).weights)
        if kind > 0:
            np.testing.assert_allclose(panel.decision_function(columns, k), sized.decision_function(X), rtol=0, atol=1e-12)
            np.testing.assert_array_equal(panel.predict(columns, k), sized.predict(X))
        else:
            np.testing.assert_allclose(panel.predict(columns, k), sized.predict(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("labels", [[3, 1], [1.0, 2.0], [True, False], ["b", "a"], [2, 10, -1]], ids=str)
def test_labels_keep_their_type(labels):
    X, y = make_data(1, n_classes=len(labels))
    y = np.array(labels)[y]
    model = L20Classifier(3).fit(X, y)
    panel = Panel.from_json(model.to_panel(X, y).to_json())
    found = panel.predict(named(X))
    assert found.dtype == y.dtype
    assert np.array_equal(found, model.predict(X))
    one = predict_samples(panel, {name: values[:3] for name, values in named(X).items()})
    assert one.predicted.tolist() == found[:3].tolist()


@pytest.mark.parametrize("kind", [2, 3])
def test_probabilities_are_the_softmax_of_the_calibrated_scores(kind):
    panel, _, X, _ = fitted(kind)
    panel = replace(panel, rules=[replace(rule, slope=1.7, doubt=0.2) for rule in panel.rules])
    scores = panel.decision_function(columns_for(panel, X))
    scores = np.column_stack([-scores / 2, scores / 2]) if kind == 2 else scores
    expected = 0.8 * softmax(1.7 * scores) + 0.2 * softmax(0.25 * 1.7 * scores)
    np.testing.assert_allclose(panel.predict_proba(named(X)), expected, rtol=1e-12)


def test_names_are_picked_from_any_table():
    panel, _, X, _ = fitted(3)
    expected = panel.predict_proba(columns_for(panel, X))
    frame = pd.DataFrame(named(X)).iloc[:, ::-1]
    structures = [named(X), frame, columns_for(panel, X).tolist(), sp.csr_array(columns_for(panel, X)), frame.astype(object)]
    for given in structures:
        np.testing.assert_array_equal(panel.predict_proba(given), expected)


def test_logarithms_are_taken_of_raw_values():
    _, model, X, y = fitted(3)
    raw = np.expm1(X - X.min())
    model = L20Classifier(4, max_features=6).fit(np.log1p(raw), y)
    panel = model.to_panel(np.log1p(raw), y, transform="log1p")
    np.testing.assert_allclose(
        panel.decision_function(columns_for(panel, raw)), model.decision_function(np.log1p(raw)), rtol=0, atol=1e-11
    )
    raw[3] = -0.5
    with pytest.raises(PanelError, match=r"sample 3 is -0.5, but the panel takes log\(1 \+ x\)"):
        panel.predict(columns_for(panel, raw))


@by_kind
def test_a_sample_with_missing_values_is_predicted_by_what_it_has(kind):
    panel, _, X, _ = fitted(kind)
    columns = columns_for(panel, X)[:5].copy()
    columns[0, 1] = columns[1, 1] = columns[2, 0] = columns[2, 3] = np.nan
    values = panel.predict(columns) if kind <= 0 else panel.decision_function(columns)
    whole = panel.predict(columns[3:]) if kind <= 0 else panel.decision_function(columns[3:])
    np.testing.assert_allclose(values[3:], whole, rtol=1e-12)
    for sample, gone in ((0, [1]), (1, [1]), (2, [0, 3])):
        left = [name for place, name in enumerate(panel.features_for()) if place not in gone]
        alone = panel.adapted(left)
        rows = np.array([[columns[sample, panel.features.index(name)] for name in alone.features]])
        expected = alone.predict(rows) if kind <= 0 else alone.decision_function(rows)
        np.testing.assert_allclose(values[sample], expected[0], rtol=1e-12)
    columns[4] = np.nan
    with pytest.raises(PanelError, match="Sample 4 has none of the 4 features"):
        panel.predict(columns)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: X[:, :3], r"shape \(60, 3\).*4 columns: 'x"),
        (lambda X: X[0], r"shape \(4,\)"),
        (lambda X: X.astype(str), "X holds what is no number, such as"),
        (lambda X: X.astype(complex), "X holds what is no number"),
        (lambda X: np.where(X == X[7, 2], np.inf, X), "of sample 7 is inf"),
        (lambda X: {"x1": X[:, 0]}, "X lacks [34] of the 4 features"),
        (lambda X: {}, "It has no column"),
        (lambda X: np.array([[object()] * 4]), "X holds what is no number"),
        (lambda X: None, r"shape \(\)"),
    ],
)
def test_samples_that_do_not_fit_are_refused(spoil, message):
    panel, _, X, _ = fitted(3)
    with pytest.raises(PanelError, match=message):
        panel.predict(spoil(columns_for(panel, X)))


@pytest.mark.parametrize("kind", [2, 3, 0, -1])
def test_values_that_overflow_are_refused(kind):
    """Not a number is of no class; the first one would be predicted without a word."""
    panel, _, X, _ = fitted(kind)
    columns = columns_for(panel, X)[:9]
    columns[7] = np.where(np.arange(4) % 2, 1.7e308, -1.7e308)
    columns[8, 0] = np.nan
    panel = replace(panel, rules=[replace(rule, weights=(9.0 * np.array(rule.weights)).tolist()) for rule in panel.rules])
    with pytest.raises(PanelError, match="Sample 7 has values that are too large to predict with"):
        panel.predict(columns)
    assert len(panel.predict(columns[:7])) == 7
    assert panel.check(columns).is_far[7]


def test_probabilities_that_overflow_are_refused():
    panel, _, X, _ = fitted(3)
    panel = replace(panel, rules=[replace(rule, slope=1e308) for rule in panel.rules])
    with pytest.raises(PanelError, match="Sample 0 has values that are too large"):
        panel.predict_proba(1e3 * columns_for(panel, X))


def test_columns_of_a_table_that_do_not_fit_are_refused():
    panel, _, X, _ = fitted(3)
    first = panel.features[0]
    with pytest.raises(PanelError, match=r"shape \(60,\), and .* has 1 values"):
        panel.predict(named(X) | {first: [1.0]})
    with pytest.raises(PanelError, match=r"shape \(60, 2\)"):
        panel.predict(named(X) | {first: X[:, :2]})
    with pytest.raises(PanelError, match=f"Feature '{first}' holds what is no number, such as 'high'"):
        panel.predict(named(X) | {first: ["high"] * 60})


@pytest.mark.parametrize("k", [0, 7, -1, True, "4", 2.5])
def test_an_unknown_k_is_refused(k):
    panel, _, X, _ = fitted(3)
    with pytest.raises(PanelError, match=r"the panel has rules for 1 to 6 features"):
        panel.predict(X, k)


def test_a_regression_has_no_probabilities():
    panel, _, X, _ = fitted(0)
    for method in (panel.predict_proba, panel.decision_function):
        with pytest.raises(PanelError, match=r"this panel predicts numbers\. Use predict"):
            method(columns_for(panel, X))


def test_a_class_without_samples_is_never_predicted():
    X, y = make_data(1, n_classes=3)
    weight = (y != 1).astype(float)
    model = L20Classifier(3).fit(X, y, weight)
    panel = Panel.from_json(model.to_panel(X, y, weight).to_json())
    assert panel.rules[0].intercept[1] is None
    np.testing.assert_allclose(panel.decision_function(columns_for(panel, X)), model.decision_function(X), atol=1e-12)
    probabilities = panel.predict_proba(columns_for(panel, X))
    assert not probabilities[:, 1].any()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_predicts_without_scikit_learn_scipy_and_pandas(tmp_path):
    panel, _, X, _ = fitted(3)
    panel.save(tmp_path / "panel.json")
    columns = columns_for(panel, X)[:3]
    columns[0, 0] = np.nan
    code = f"""
import sys, json
from l20fs import Panel
panel = Panel.load({str(tmp_path / "panel.json")!r})
X = {columns.tolist()!r}
print(json.dumps([panel.predict(X).tolist(), panel.predict_proba(X).tolist(), len(panel.check(X)), len(panel.to_r())]))
panel.adapted(panel.features[1:])
print(*sorted({{name.split(".")[0] for name in sys.modules}}))
""".replace("nan", "float('nan')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert json.loads(done[0])[0] == panel.predict(columns).tolist()
    np.testing.assert_allclose(json.loads(done[0])[1], panel.predict_proba(columns), rtol=1e-12)
    assert not {"sklearn", "scipy", "pandas"} & set(done[1].split())
