"""skops stores every estimator without a hand-written list, and skl2onnx converts it; each predicts the same after it."""

from __future__ import annotations

import inspect
import pkgutil
import warnings

import numpy as np
import pytest
from samples import make_data
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from l20fs import Constraints, L20Classifier, L20Regressor, L20Selector, L20SelectorCV, StabilitySelector
from l20fs.deployment import register_converters, trusted_types
from l20fs.methods import discover
from l20fs.solvers import SOLVERS

X, Y = make_data(n_samples=72)
X = np.abs(X)  # as some methods want it
NAMES = np.array(["é", "b c", "日本"])[Y]
NUMBERS = X[:, [2]] - 2.0 * X[:, [5, 9]]


def quietly(model, y=Y, X=X):
    """Return a fitted model; short searches warn of their limits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


# ------------------------------------------------------------------------------------------------------------------ skops

STORED = {
    "L20Selector": (L20Selector(3), Y),
    "L20Classifier": (L20Classifier(3), NAMES),
    "L20Regressor": (L20Regressor(3), NUMBERS),
    "L20SelectorCV": (L20SelectorCV(sizes=[1, 2, 3, 4], cv=3), NAMES),
    "L20SelectorCV-estimator": (L20SelectorCV(sizes=[2, 4], cv=3, estimator=LogisticRegression(), ridges=[0.1, 1.0]), Y),
    "L20SelectorCV-preprocess": (L20SelectorCV(sizes=[1, 2, 3, 4], cv=3, preprocess=StandardScaler()), Y),
    "StabilitySelector": (StabilitySelector(L20Selector(3), n_resamples=4, random_state=0), Y),
    **{f"solver-{name}": (L20Selector(3, solver=solver()), Y) for name, solver in SOLVERS.items()},
    **{name: (method(n_features_to_select=3), Y) for name, method in discover().items()},
}


@pytest.mark.parametrize("name", STORED)
def test_skops_loads_what_it_stored(name, capsys):
    skops_io = pytest.importorskip("skops.io", reason="skops is not installed")
    model, y = STORED[name]
    model = quietly(model, y)
    stored = skops_io.dumps(model)
    loaded = skops_io.loads(stored, trusted=trusted_types())
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    for method in ("predict", "predict_proba", "decision_function", "score"):
        if hasattr(model, method):
            arguments = (X, y) if method == "score" else (X,)
            np.testing.assert_array_equal(getattr(loaded, method)(*arguments), getattr(model, method)(*arguments))
    if isinstance(model, L20Selector | L20SelectorCV):
        np.testing.assert_array_equal(loaded.at(2).coef_, model.at(2).coef_)


def test_only_types_that_do_nothing_are_trusted():
    for name in trusted_types():
        kind = pkgutil.resolve_name(name)
        assert inspect.isclass(kind)
        assert name.split(".")[0] in ("l20fs", "sklearn")
    assert "sklearn.model_selection._split.StratifiedKFold" in trusted_types()
    assert not [name for name in trusted_types() if "blocks" in name]


# --------------------------------------------------------------------------------------------------------------- skl2onnx


@pytest.fixture(scope="module")
def convert():
    """Return a function that converts a model and predicts with it."""
    skl2onnx = pytest.importorskip("skl2onnx", reason="the extra 'onnx' is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="no ONNX runtime is installed")
    register_converters()
    register_converters()  # a second time changes nothing

    def converted(model, X, **options):
        stored = skl2onnx.to_onnx(model, X[:1], **options).SerializeToString()
        return onnxruntime.InferenceSession(stored, providers=["CPUExecutionProvider"]).run(None, {"X": X})

    return converted


TYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def tolerance(dtype):
    return {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-5}


SELECTORS = {
    "L20Selector": L20Selector(3),
    "first": L20Selector(1, constraints=Constraints(include=[0])),
    "StabilitySelector": StabilitySelector(L20Selector(3), n_resamples=4, random_state=0),
    **{name: method(n_features_to_select=3) for name, method in discover().items()},
}


@pytest.mark.parametrize("name", SELECTORS)
def test_selectors_extract_their_columns(convert, name):
    selector = quietly(SELECTORS[name])
    for samples in (X, X.astype(np.float32), (100 * X).astype(np.int64)):
        (found,) = convert(selector, samples)
        assert found.dtype == samples.dtype
        np.testing.assert_array_equal(found, samples[:, selector.support_])


STEPS = make_pipeline(StandardScaler(), SelectKBest(k=9))

CLASSIFIERS = {
    "last": (make_pipeline(StandardScaler(), L20Classifier(3)), Y),
    "searched, last": (make_pipeline(StandardScaler(), L20SelectorCV(sizes=[1, 2, 3, 4], cv=3)), Y),
    "searched, other estimator": (L20SelectorCV(sizes=[2, 4], cv=3, estimator=LogisticRegression()), NAMES),
    "in a search": (
        GridSearchCV(make_pipeline(StandardScaler(), L20Classifier(3)), {"l20classifier__ridge": [0.1, 1.0]}),
        Y,
    ),
    "first": (make_pipeline(L20Classifier(3), StandardScaler(), LogisticRegression()), Y),
    "steps before, other estimator": (
        L20SelectorCV(sizes=[2, 4], cv=3, preprocess=STEPS, estimator=LogisticRegression()),
        Y,
    ),
    "steps before, first": (make_pipeline(L20SelectorCV(sizes=[2, 4], cv=3, preprocess=STEPS), LogisticRegression()), Y),
}


@TYPES
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_predict_the_same(convert, name, dtype):
    model, y = CLASSIFIERS[name]
    model, samples = quietly(model, y), X.astype(dtype)
    # Classifiers of scikit-learn make dicts of single precision without this option.
    options = {} if "l20" in str(type(model)) or "last" in name else {"options": {id(model): {"zipmap": False}}}
    labels, probabilities = convert(model, samples, **options)
    np.testing.assert_array_equal(labels, model.predict(samples))
    assert probabilities.dtype == dtype
    np.testing.assert_allclose(probabilities, model.predict_proba(samples), **tolerance(dtype))


REGRESSIONS = {
    "last": (make_pipeline(StandardScaler(), L20Regressor(3)), NUMBERS),
    "searched": (L20SelectorCV(sizes=[1, 2, 3, 4], cv=3, selector=L20Selector(task="regression")), NUMBERS[:, 0]),
    "first": (make_pipeline(L20Regressor(3), Ridge()), NUMBERS),
}


@TYPES
@pytest.mark.parametrize("name", REGRESSIONS)
def test_regressions_predict_the_same(convert, name, dtype):
    model, y = REGRESSIONS[name]
    model, samples = quietly(model, y), X.astype(dtype)
    (found,) = convert(model, samples)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, model.predict(samples).reshape(found.shape), **tolerance(dtype))


def test_a_classifier_without_probabilities_is_refused(convert):
    with pytest.raises(AttributeError, match="calibration=None computes no probabilities"):
        convert(quietly(L20Classifier(3, calibration=None)), X)
