"""ONNX models of panels and rules predict what NumPy predicts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from samples import make_data

from l20fs import L20Classifier, L20Regressor

WHY = "the extra 'onnx' is not installed, or no runtime for it"
onnxruntime = pytest.importorskip("onnxruntime", reason=WHY)


def run(model, X):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, {"X": X}), strict=True))


def make_panel(n_classes=3, transform="none", labels=None):
    X, y = make_data(n_samples=90, n_classes=n_classes)
    measured = np.expm1(np.abs(X)) if transform == "log1p" else X
    y = y if labels is None else np.array(labels)[y]
    X = np.abs(X) if transform == "log1p" else X
    return L20Classifier(4, max_features_to_select=6).fit(X, y).to_panel(X, y, transform=transform), measured


def columns_of(panel, X, k=None):
    return X[:, [int(name[1:]) for name in panel.features_for(k)]]


@pytest.mark.parametrize("transform", ["none", "log1p"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("k", [None, 1, 6])
def test_a_panel_of_classes(n_classes, transform, k):
    panel, X = make_panel(n_classes, transform)
    columns = columns_of(panel, X, k)
    found = run(panel.to_onnx(k), columns)
    assert found["label"].tolist() == panel.predict(columns, k).tolist()
    assert found["probabilities"].dtype == np.float64
    np.testing.assert_allclose(found["probabilities"], panel.predict_proba(columns, k), rtol=0, atol=1e-9)


def test_labels_of_any_alphabet():
    panel, X = make_panel(labels=["Größe ß", "日本語", "🧬 <b>"])
    found = run(panel.to_onnx(), columns_of(panel, X))
    assert set(found["label"]) == {"Größe ß", "日本語", "🧬 <b>"}
    assert found["label"].tolist() == panel.predict(columns_of(panel, X)).tolist()


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_a_panel_of_numbers(n_outputs):
    X, _ = make_data()
    y = X[:, :n_outputs] @ np.diag([3.0, -1.0][:n_outputs]) + X[:, [4]]
    panel = L20Regressor(3).fit(X, y).to_panel(X, y)
    columns = columns_of(panel, X)
    found = run(panel.to_onnx(), columns)
    assert list(found) == ["variable"]
    np.testing.assert_allclose(found["variable"], panel.predict(columns).reshape(-1, n_outputs), rtol=0, atol=1e-9)


def test_the_metadata_say_what_comes_in_and_out():
    panel, _ = make_panel()
    model = panel.to_onnx(2)
    about = {entry.key: entry.value for entry in model.metadata_props}
    assert about["sha256"] == panel.sha256
    assert about["task"] == "classification"
    assert json.loads(about["features"]) == panel.features_for(2)
    assert json.loads(about["classes"]) == panel.classes
    assert json.loads(about["targets"]) == panel.targets
    assert about["k"] == "2"
    assert [entry.name for entry in model.graph.input] == ["X"]
    assert {entry.domain for entry in model.opset_import} == {""}


def test_other_sizes_are_refused_as_the_panel_does():
    panel, _ = make_panel()
    with pytest.raises(ValueError, match="k=99 is not valid"):
        panel.to_onnx(99)


def test_impossible_classes():
    """The intercept of a class without samples is minus infinity, also where the slope is zero."""
    panel, X = make_panel()
    rules = [replace(rule, slope=0.0, doubt=0.3, intercept=[0.1, None, -0.2]) for rule in panel.rules]
    panel = replace(panel, rules=rules)
    found = run(panel.to_onnx(), columns_of(panel, X))
    assert 1 not in found["label"]
    np.testing.assert_allclose(found["probabilities"], np.tile([0.5, 0.0, 0.5], (len(X), 1)), atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_sample_with_a_missing_value_has_no_label(n_classes):
    panel, X = make_panel(n_classes, labels=["ape", "bee", "cat"][:n_classes])
    columns = columns_of(panel, X)[:3].copy()
    columns[1, 2] = np.nan
    found = run(panel.to_onnx(), columns)
    assert found["label"][1] == ""
    assert np.isnan(found["probabilities"][1]).all()
    assert found["label"][[0, 2]].tolist() == panel.predict(columns[[0, 2]]).tolist()
