"""Constant columns change nothing; X and y at the ends of the range of float64 give numbers, or one line."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from l20fs import L20Classifier, L20Regressor, L20Selector, L20SelectorCV, StabilitySelector
from l20fs.inputs.targets import encode_targets
from l20fs.inspection import certify
from l20fs.methods import L21, RFS, RPMFS, discover

METHODS = discover()
SELECTORS = {solver: lambda solver=solver: L20Selector(3, solver=solver) for solver in ("forward", "swap", "ahiht")}
SELECTORS |= {
    "robust": lambda: L20Selector(3, loss="l21"),
    "unscaled": lambda: L20Selector(3, scale="none"),
    "classifier": lambda: L20Classifier(3),
    "search": lambda: L20SelectorCV("best", cv=2),  # the floor of "auto" counts all features
    "stability": lambda: StabilitySelector(L20Selector(3), n_features_to_select=3, n_resamples=4, random_state=0),
}
SELECTORS |= {name: lambda kind=kind: kind(3) for name, kind in METHODS.items() if name != "Baseline"}
TAKE_SPARSE = [name for name in SELECTORS if name not in METHODS]
CONSTANTS = [0.0, 1.0, 1e8, 0.1, 1 / 3, -7.3, 1e-9, 1e140, 1e-320]


def make_data(n_features=6):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((24, n_features)) * np.arange(1, n_features + 1), np.arange(24) % 3
    X[:, 2] += y
    X[:, 4] += 9 * (y == 1)
    return X, y


def answer(estimator, X, y, columns):
    """Return what a fit says about these columns: which are selected in which order, and how the rules decided."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = estimator.fit(X, y)
    places = {column: place for place, column in enumerate(columns)}
    order = [places[column] for column in fitted._order_for(fitted.n_features_to_select)]
    path = getattr(fitted, "path_", None)
    losses = np.zeros(1) if path is None else path.objectives
    return order, getattr(fitted, "scale_", None), np.append(losses, getattr(fitted, "ridge_", 0.0))


@pytest.mark.parametrize("name", SELECTORS)
@settings(max_examples=4)
@given(st.lists(st.tuples(st.sampled_from(CONSTANTS), st.booleans(), st.integers(0, 6)), min_size=1, max_size=9), st.data())
def test_constant_columns_change_nothing(name, constants, data):
    """Whatever their values, their place and their rounding, and however X is stored."""
    X, y = make_data()
    wider, columns = X, np.arange(6)
    for value, is_rounded, place in constants:
        column = np.full(24, value)
        column[::2] = np.nextafter(value, np.inf) if is_rounded else value
        wider = np.insert(wider, place, column, axis=1)
        columns = columns + (columns >= place)
    convert = data.draw(st.sampled_from([np.asarray, sp.csr_array])) if name in TAKE_SPARSE else np.asarray
    order, rule, numbers = answer(SELECTORS[name](), convert(wider), y, columns.tolist())
    expected_order, expected_rule, expected = answer(SELECTORS[name](), X, y, range(6))
    assert (order, rule) == (expected_order, expected_rule)
    np.testing.assert_allclose(numbers, expected, rtol=1e-7)


def refusal_of(estimator, X, y):
    """Fit; return the text of the error, empty if there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            estimator.fit(X, y)
        except np.linalg.LinAlgError:
            raise
        except ValueError as error:
            return str(error)
    return ""


@pytest.mark.parametrize("name", SELECTORS)
@given(factor=st.sampled_from([1e-320, 1e-300, 1e-200, 1e-74, 1e74, 1e200, 1e300, 1.7e307]))
@settings(max_examples=5)
def test_values_of_any_size_give_numbers_or_are_refused(name, factor):
    X, y = make_data()
    X /= np.abs(X).max()
    estimator = SELECTORS[name]()
    refusal = refusal_of(estimator, X * factor, y)
    if refusal:
        assert any(
            part in refusal
            for part in ("by more than 1e-145", "differ by 1e-305", "squares products of values", "overflow", "underflow")
        )
        assert factor not in (1e-74, 1e74)
        return
    for part in ("scores_", "coef_", "intercept_", "objective_"):
        assert not np.isnan(np.asarray(getattr(estimator, part, 0.0), dtype=float)).any(), part


@pytest.mark.parametrize("kind", [L20Selector, L20Regressor, L21, RFS, RPMFS])
@given(factor=st.sampled_from([1e-300, 1e-140, 1e-74, 1e16, 1e73, 1e140, 1e154, 1e300]))
@settings(max_examples=8)
def test_targets_of_any_size_have_the_same_features_or_are_refused(kind, factor):
    X, y = make_data()
    y = X[:, 2] + 2.0 * X[:, 4] + 0.1 * np.random.default_rng(1).standard_normal(24)
    expected, found = kind(2), kind(2)
    assert not refusal_of(expected, X, y)
    refusal = refusal_of(found, X, factor * y)
    if refusal:
        assert "y has values from" in refusal or "y differs from its mean by" in refusal
        assert factor not in (1e-74, 1e16, 1e73)
        return
    assert found.get_support().tolist() == expected.get_support().tolist()
    np.testing.assert_allclose(found.coef_ / factor, expected.coef_, rtol=1e-4, atol=1e-6)


def test_numbers_that_are_whole_by_rounding_are_no_labels():
    y = np.random.default_rng(0).standard_normal(9)
    assert encode_targets(y * 1e16).classes is None
    assert len(encode_targets(np.round(y * 1e3)).classes) == 9


@pytest.mark.parametrize("factor", [1e-100, 1e100])
def test_a_certificate_does_not_depend_on_the_units_of_the_targets(factor):
    X, _ = make_data()
    y = X[:, 2] + 0.5 * np.random.default_rng(1).standard_normal(24)
    expected, found = (certify(L20Selector(2).fit(X, y * unit), X, y * unit) for unit in (1.0, factor))
    assert found.lower_bound / factor**2 == pytest.approx(expected.lower_bound)
    assert found.proved_in.tolist() == expected.proved_in.tolist()
