"""Fits on matrices in blocks: the same as on the whole matrix."""

from __future__ import annotations

import logging

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from blocked import cut, make_counts
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from l20fs import AHIHT, HIHT, Constraints, L20Classifier, L20Regressor, L20Selector, StabilitySelector
from l20fs.blocks import as_blocks
from l20fs.estimators.selection_table import likeness
from l20fs.methods import FisherScore

SHAPES = {"tall": (70, 24), "wide": (24, 70)}
KINDS = {"dense": np.asarray, "csr": sp.csr_array}


SELECTORS = {
    "swap": {"solver": "swap", "scale": "zscore", "ridge": 0.0},
    "hiht": {"solver": HIHT(max_iter=2000), "ridge": 0.5},
    "wishes": {"constraints": Constraints(include=[4], exclude=[1], costs={2: 3.0, 7: 0.5})},
    "groups": {"constraints": Constraints(groups=np.arange(24) // 2)},
    "groups of AHIHT": {"solver": "ahiht", "constraints": Constraints(groups=np.arange(24) // 2)},
}


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_wishes_and_options_work_as_in_memory(shape, kind, name):
    X, y = make_counts(1, *SHAPES[shape])
    X, weights = KINDS[kind](X[:, :24]), np.arange(len(y)) % 3 + 0.5
    selector = L20Selector(6, **SELECTORS[name])
    expected = clone(selector).fit(X, y, sample_weight=weights)
    for axis in (0, 1):
        for n_blocks in (1, 5):
            found = clone(selector).fit(cut(X, axis, n_blocks), y, sample_weight=weights)
            np.testing.assert_array_equal(found.path_.indices, expected.path_.indices)
            np.testing.assert_allclose(found.path_.losses, expected.path_.losses, rtol=1e-7)


@pytest.mark.parametrize("axis", [0, 1])
def test_selector(axis, caplog):
    X, y = make_counts(3, 90, 30)
    expected = L20Selector(6).fit(X, y)
    with caplog.at_level(logging.INFO, logger="l20fs"):
        found = L20Selector(6).fit(cut(X, axis, 5), y)
    assert "90 x 30 float64 from a test in 5 blocks" in caplog.text
    np.testing.assert_array_equal(found.ranking_, expected.ranking_)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-10)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-10)
    np.testing.assert_allclose(found.path_.refit(6).coef, expected.path_.refit(6).coef, atol=1e-10)
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    assert found.n_features_in_ == 30
    np.testing.assert_array_equal(found.transform(cut(X, axis, 5)), expected.transform(X))
    with pytest.raises(ValueError, match="X has 29 features, but L20Selector is expecting 30"):
        found.transform(cut(X[:, 1:], axis, 5))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("value", "message"), [
    (np.nan, r"X has 2 missing values \(NaN\), first in 'column 3' and 'column 7'\. Fill them in first"),
    (np.inf, r"X has 2 infinite values \(inf\), first in 'column 3' and 'column 7'\. Replace"),
])  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_finite_is_refused(axis, value, message, kind):
    X, y = make_counts(3, 90, 30)
    X[4, 3] = X[80, 7] = value
    with pytest.raises(ValueError, match=message):
        L20Selector(3).fit(cut(KINDS[kind](X), axis, 5), y)


@pytest.mark.parametrize("axis", [0, 1])
def test_other_refusals(axis):
    X, y = make_counts(3, 30, 9)
    blocks = cut(X, axis, 3)
    with pytest.raises(ValueError, match="X has 30 samples, but y has 29"):
        L20Selector(3).fit(blocks, y[1:])
    with pytest.raises(ValueError, match="loss='l21' is not available for X in blocks"):
        L20Selector(3, loss="l21").fit(blocks, y)
    with pytest.raises(ValueError, match="All 9 features of X are constant"):
        L20Selector(3).fit(cut(np.full((30, 9), 1e6 + 0.1), axis, 3), y)
    with pytest.raises(ValueError, match="X must hold numbers only"):
        L20Selector(3).fit(cut(X.astype(str), axis, 3), y)
    with pytest.raises(ValueError, match="max_memory='lots'"):
        L20Selector(3, max_memory="lots").fit(X, y)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "bool", "float16", "longdouble"])
@given(shape=st.sampled_from(list(SHAPES)), weighted=st.booleans(), axis=st.sampled_from([0, 1]))
@settings(max_examples=3)
def test_other_numbers_are_worked_with_in_float64(dtype, shape, weighted, axis):
    X, y = make_counts(3, *SHAPES[shape])
    X = (X > 1.0) if dtype == "bool" else (X * 3).astype(dtype)
    weights = np.random.default_rng(3).integers(3, size=len(y)) if weighted else None
    expected = L20Selector(4).fit(X.astype(float), y, sample_weight=weights)
    for kind in KINDS.values() if dtype != "float16" else [np.asarray]:  # of which SciPy makes no sparse matrix
        found = L20Selector(4).fit(cut(kind(X), axis, 3), y, sample_weight=weights)
        np.testing.assert_array_equal(found.ranking_, expected.ranking_)
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-10)


TOO_LATE = [
    ({"constraints": Constraints(include=[99])}, "include has the index 99, which is outside 0 to 8"),
    ({"constraints": Constraints(include=[0], exclude=[0])}, "both included"),
    ({"constraints": Constraints(include=[0, 1, 2, 3])}, "n_features_to_select=3 is less than the 4 features"),
    (
        {"constraints": Constraints(include=[0, 1, 2, 3]), "n_features_to_select": 0.2},
        "n_features_to_select=0.2 is less than the 4 features",
    ),
    ({"constraints": Constraints(exclude=range(9))}, "All 9 features are excluded or constant"),
    ({"solver": AHIHT(init=np.zeros((3, 8)))}, r"init has the shape \(3, 8\); expected .* = \(3, 9\)"),
    ({"solver": AHIHT(init="ones")}, "init='ones' is unknown"),
    ({"class_weight": {7: 1.0}}, "class_weight names '7', which y does not have"),
    ({"scale": np.ones(8)}, "scale has 8 deviations for 9 features"),
]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("parameters", "message"), TOO_LATE, ids=[" ".join(given) for given, _ in TOO_LATE])
def test_what_needs_no_pass_is_refused_before_the_first(parameters, message, axis):
    """Half an hour later is too late."""
    X, y = make_counts(3, 30, 9)
    blocks = cut(X, axis, 3)
    selector = L20Selector(3).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        selector.fit(blocks, y)
    assert blocks.traffic.n_passes == 0


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_selected(kind):
    X, y = make_counts(3, 30, 9)
    X = KINDS[kind](X)
    selector, model = (make(None, solver=AHIHT(alpha_min=1e9)).fit(X, y) for make in (L20Selector, L20Classifier))
    whole = [X, cut(X, 0, 3), cut(X, 1, 3)]
    lazy = da.from_array(as_dense(X), chunks=(10, 9))
    for there in [*whole, lazy, lazy.map_blocks(sp.csr_matrix)]:
        with pytest.warns(UserWarning, match="No features were selected"):
            reduced = selector.transform(there)
        assert reduced.shape == (30, 0)
        assert reduced.dtype == X.dtype
        np.testing.assert_array_equal(model.predict(there), model.predict(X))
    for there in whole[1:]:
        assert sp.issparse(there[:, []]) == (kind == "csr")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
@given(weighted=st.booleans())
@settings(max_examples=2)
def test_models_are_those_of_the_whole_matrix(shape, weighted, kind):
    X, y = make_counts(3, *SHAPES[shape])
    X = KINDS[kind](X)
    weights = np.random.default_rng(3).integers(3, size=len(y)) if weighted else None
    for model in (L20Classifier(5), L20Classifier(5, class_weight=None), L20Regressor(5)):
        expected = clone(model).fit(X, y, sample_weight=weights)
        for axis in (0, 1):
            blocks = cut(X, axis, 3)
            found = clone(model).fit(blocks, y, sample_weight=weights)
            np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0, atol=1e-8 * np.abs(expected.coef_).max())
            np.testing.assert_allclose(found.intercept_, expected.intercept_, rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(found.predict(blocks).astype(float), expected.predict(X).astype(float), rtol=1e-7)


def test_models_refuse_blocks_that_are_not_like_those_of_the_fit():
    X, y = make_counts(3, 60, 12)
    model = L20Classifier(12).fit(X, y)
    with pytest.raises(ValueError, match="X has 11 features, but L20Classifier is expecting 12"):
        model.predict(cut(X[:, :-1], 0, 2))
    X[50, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.predict(cut(X, 0, 2))


@pytest.mark.parametrize("shape", SHAPES)
def test_halves_of_blocks_are_those_of_the_whole_matrix(shape):
    X, y = make_counts(3, *SHAPES[shape])
    y = y if shape == "tall" else y % 2
    selector = L20Selector(4, constraints=Constraints(groups=[[0, 1]]), solver="ahiht")
    expected = StabilitySelector(selector, n_features_to_select=3, n_resamples=6, random_state=1).fit(X, y)
    for axis in (0, 1):
        found = StabilitySelector(selector, n_features_to_select=3, n_resamples=6, random_state=1, n_jobs=2)
        found.fit(cut(sp.csr_array(X), axis, 3), y)
        np.testing.assert_array_equal(found.orders_, expected.orders_)
        np.testing.assert_array_equal(found.transform(cut(X, axis, 3)), expected.transform(X))
    with pytest.raises(TypeError, match="X comes in blocks, and FisherScore needs it in memory"):
        StabilitySelector(FisherScore(3)).fit(cut(X, 0, 2), y)


def as_dense(X):
    return X.toarray() if sp.issparse(X) else X


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_substitutes_are_those_of_the_whole_matrix(shape, axis):
    X, _ = make_counts(3, *SHAPES[shape])
    X[:, 7] = 1.0
    expected, found = likeness(X, [5, 2, 7, 20], exclude=[3]), likeness(cut(X, axis, 3), [5, 2, 7, 20], exclude=[3])
    np.testing.assert_array_equal(found.outside.substitute, expected.outside.substitute)
    np.testing.assert_allclose(found.outside.correlation, expected.outside.correlation, atol=1e-10)
    np.testing.assert_allclose(found.mutual, expected.mutual, atol=1e-10)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(expected.mutual, np.corrcoef(X[:, [5, 2, 7, 20]], rowvar=False), atol=1e-10)


def test_blocks_of_an_array():
    X, y = make_counts(3, 60, 12)
    np.testing.assert_array_equal(L20Selector(4).fit(as_blocks(X), y).ranking_, L20Selector(4).fit(X, y).ranking_)
