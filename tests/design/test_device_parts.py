"""Fits that share an X of another library: designs of some samples, cross-validation and halves are those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from libraries import move_to_each
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import accuracy_score, make_scorer

from l20fs import HIHT, L20Selector, L20SelectorCV, StabilitySelector, Swap
from l20fs.inputs.devices import as_numpy, is_device_array

in_each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def make_samples(dtype=np.float64, n_samples=60, n_features=40):
    """Classes, and features of which one is constant, one zero, one constant in a part, one far from zero, one tiny."""
    random = np.random.default_rng(0)
    y = np.arange(n_samples) % 3
    X = random.standard_normal((n_samples, n_features)) + random.uniform(-2.0, 2.0, n_features)
    X[:, :5] += np.eye(3)[y] @ random.standard_normal((3, 5))
    X[:, 7], X[:, 8], X[:45, 9] = 0.3, 0.0, 1.5
    X[:, 10] += 300.0
    X[:, 11] *= 1e-4
    X[:45, 12] *= 1e-3
    return X.astype(dtype), y


def results_of(selector):
    return {name: values for name, values in selector.cv_results_.items() if "_time" not in name}


SEARCHES = {
    "classes": {},
    "all ridges": {"ridge": [0.1, "auto"], "n_features_to_select": 2},
    "swap": {"selector": L20Selector(solver=Swap())},
    "HIHT": {"selector": L20Selector(solver=HIHT())},
    "groups": {"selector": L20Selector(feature_groups=np.arange(40) // 2, exclude=[3])},
    "own scorer": {"scoring": make_scorer(lambda truth, found: accuracy_score(truth, found))},
    "other estimator": {"estimator": RidgeClassifier()},
}


@move_to_each
@pytest.mark.parametrize("name", SEARCHES)
def test_cross_validation_is_that_of_numpy(move, name):
    X, y = make_samples()
    options = {"n_features_to_select": 3, "max_features": 4, "cv": 3} | SEARCHES[name]
    expected, found = (L20SelectorCV(**options).fit(x, y) for x in (X, move(X)))
    assert found.support_.tolist() == expected.support_.tolist()
    assert found.ranking_.tolist() == expected.ranking_.tolist()
    assert (found.best_index_, found.n_features_) == (expected.best_index_, expected.n_features_)
    for key, values in results_of(expected).items():
        np.testing.assert_allclose(found.cv_results_[key], values, rtol=1e-9, err_msg=key)
    np.testing.assert_allclose(found.corrected_score_, expected.corrected_score_, rtol=1e-9)
    predicted = found.predict(move(X))
    assert as_numpy(predicted).tolist() == expected.predict(X).tolist()
    assert is_device_array(predicted) == (name != "other estimator")
    assert as_numpy(found.transform(move(X))).tolist() == X[:, expected.support_].tolist()


@move_to_each
def test_cross_validation_of_numbers_with_weights_and_nuisances_is_that_of_numpy(move):
    X, y = make_samples()
    given = {"sample_weight": np.arange(60) % 4 + 0.5, "adjust_for": np.arange(60) % 2, "groups": np.arange(60) // 6}
    target = X[:, 0] - 2.0 * X[:, 4] + y
    options = {"n_features_to_select": 3, "max_features": 4, "cv": 3, "task": "regression"}
    expected, found = (L20SelectorCV(**options).fit(x, target, **given) for x in (X, move(X)))
    assert found.ranking_.tolist() == expected.ranking_.tolist()
    for key, values in results_of(expected).items():
        np.testing.assert_allclose(found.cv_results_[key], values, rtol=1e-7, err_msg=key)
    np.testing.assert_allclose(as_numpy(found.predict(move(X))), expected.predict(X), rtol=1e-7)
    assert found.score(X, target) == pytest.approx(expected.score(X, target))


@in_each_dtype
@move_to_each
@pytest.mark.parametrize(
    "selector", [L20Selector(4), L20Selector(4, solver=Swap(), scale="zscore")], ids=["forward", "swap"]
)
def test_halves_are_those_of_numpy(move, dtype, selector):
    X, y = make_samples(dtype)
    expected, found = (StabilitySelector(selector, n_resamples=6, random_state=0).fit(x, y) for x in (X, move(X)))
    assert found.orders_.tolist() == expected.orders_.tolist()
    assert found.frequencies_.tolist() == expected.frequencies_.tolist()
    assert as_numpy(found.transform(move(X))).tolist() == X[:, expected.support_].tolist()
