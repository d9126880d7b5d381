"""Selectors and models with an X of another library: the panels, proofs and predictions of NumPy, where X is."""

from __future__ import annotations

import pickle

import array_api_compat as xpc
import numpy as np
import pytest
from libraries import move_to_each

from l20fs import L20Classifier, L20Regressor
from l20fs.inputs.devices import as_numpy, is_device_array


def make_data():
    random = np.random.default_rng(0)
    X, codes = random.standard_normal((48, 24)), np.arange(48) % 3
    X[:, 4] += codes
    X[:, 9] += codes == 1
    return X, codes, X[:, [4, 9]] @ [1.0, 2.0] + 0.1 * random.standard_normal(48)


def is_beside(values, X):
    return is_device_array(values) and xpc.device(values) == xpc.device(X)


@move_to_each
@pytest.mark.parametrize("calibration", [5, 3, None], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_classifier_answers_where_x_is(move, calibration, n_classes):
    X, codes, _ = make_data()
    codes, there = codes % n_classes, move(X)
    expected = L20Classifier(3, calibration=calibration).fit(X, codes)
    model = pickle.loads(pickle.dumps(L20Classifier(3, calibration=calibration).fit(there, move(codes))))
    assert model.support_.tolist() == expected.support_.tolist()
    names = ["decision_function", "predict"] + ["predict_proba", "predict_log_proba"] * (calibration is not None)
    for name in names:
        values, right = getattr(model, name)(there), getattr(expected, name)(X)
        assert is_beside(values, there)
        np.testing.assert_allclose(as_numpy(values), right, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(getattr(model, name)(X), right, rtol=1e-6, atol=1e-9)  # fitted there, asked here
    assert model.score(there, move(codes)) == expected.score(X, codes)
    assert model.score(there, codes, sample_weight=move(1.0 + codes)) == expected.score(X, codes, sample_weight=1.0 + codes)


@move_to_each
@pytest.mark.parametrize("n_outputs", [0, 2])
def test_a_regression_answers_where_x_is(move, n_outputs):
    X, _, numbers = make_data()
    y = np.column_stack([numbers, X[:, 3]]) if n_outputs else numbers
    expected, model = L20Regressor(3).fit(X, y), L20Regressor(3).fit(move(X), move(y))
    values = model.predict(move(X))
    assert is_beside(values, move(X))
    np.testing.assert_allclose(as_numpy(values), expected.predict(X), rtol=1e-8)
    assert model.score(move(X), move(y)) == pytest.approx(expected.score(X, y))


@move_to_each
def test_a_panel_is_the_same_from_anywhere(move):
    X, codes, _ = make_data()
    expected = L20Classifier(3).fit(X, codes).to_panel(X, codes)
    found = L20Classifier(3).fit(move(X), codes).to_panel(move(X), codes)
    assert found.features == expected.features
    columns = X[:, L20Classifier(3).fit(X, codes).path_.support(3)]
    np.testing.assert_allclose(found.predict_proba(columns), expected.predict_proba(columns), rtol=1e-6)


@move_to_each
def test_samples_that_cannot_be_answered_are_refused(move):
    X, codes, _ = make_data()
    model = L20Classifier(3).fit(X, codes)
    spoilt = X.copy()
    spoilt[5, model.support_] = np.nan
    with pytest.raises(ValueError, match=r"features of the panel have missing or infinite values in X\. Replace"):
        model.predict(move(spoilt))
    spoilt = np.where(model.support_, X, np.nan)  # what is not in the panel is not read
    assert as_numpy(model.predict(move(spoilt))).tolist() == model.predict(X).tolist()
    with pytest.raises(TypeError, match=r"it must be float32 or float64\. Convert"):
        model.predict(move(np.arange(48 * 24).reshape(48, 24)))
    with pytest.raises(ValueError, match="X has 23 features, but L20Classifier is expecting 24"):
        model.predict(move(X[:, :23]))
