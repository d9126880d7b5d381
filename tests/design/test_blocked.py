"""Fits on matrices in blocks: the same as on the whole matrix, with few passes and little to move."""

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

from l20fs import AHIHT, L20Classifier, L20Regressor, L20Selector, StabilitySelector
from l20fs.blocks import as_blocks
from l20fs.design import make_design
from l20fs.estimators.selection_table import likeness
from l20fs.methods import FisherScore
from l20fs.objective import make_problem
from l20fs.objective.gram_least_squares import GramLeastSquares
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers import Schedule, ahiht, forward, hiht, swap

SOLVERS = {
    "ahiht": lambda problem, **more: ahiht(problem, Schedule(n_rows=8), **more),
    "hiht": lambda problem, **more: hiht(problem, Schedule(n_rows=8), max_iter=2000, **more),
    "forward": lambda problem, **more: forward(problem, 8, **more),
    "swap": lambda problem, **more: swap(problem, 5, **more),
}
SHAPES = {"tall": (70, 24), "wide": (24, 70)}
KINDS = {"dense": np.asarray, "csr": sp.csr_array}


@pytest.fixture(params=["small", "large"])
def gram_size(request, monkeypatch):
    """Let the Gram matrix be made whole, or line by line."""
    if request.param == "large":
        monkeypatch.setattr("l20fs.design.gram.SMALL_GRAM", 0)
        monkeypatch.setattr("l20fs.design.blocked.PROBES", 24)  # an exact eigenvalue: the rest is about the path
    return request.param


def assert_same_path(path, expected, rtol):
    np.testing.assert_array_equal(path.indptr, expected.indptr)
    np.testing.assert_array_equal(path.indices, expected.indices)
    np.testing.assert_allclose(path.alphas, expected.alphas, rtol=rtol)
    np.testing.assert_allclose(path.losses, expected.losses, rtol=rtol, atol=rtol * float(expected.null_loss))
    np.testing.assert_allclose(
        path.coef_values, expected.coef_values, rtol=0, atol=rtol * np.abs(expected.coef_values).max()
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_support_is_that_of_the_whole_matrix_at_every_stage(shape, kind, rtol, gram_size):
    dtype = np.float32 if kind == "csr" else np.float64
    X, y = make_counts(3, *SHAPES[shape])
    X, Y = KINDS[kind](X.astype(dtype)), np.eye(3)[y]
    whole = LeastSquares(X, Y, ridge=0.5, scale="zscore")
    for name in ("ahiht", "hiht", "forward"):
        expected = SOLVERS[name](whole)
        for axis in (0, 1):
            for n_blocks in (1, 5):
                problem = make_problem(cut(X, axis, n_blocks), Y, ridge=0.5, scale="zscore")
                assert_same_path(SOLVERS[name](problem), expected, 10 * rtol[np.dtype(dtype)])
                assert isinstance(problem, GramLeastSquares) is ((shape, axis) != ("wide", 1))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_any_data_any_weights_any_solver(shape, axis, seed):
    rng = np.random.default_rng(seed)
    X, y = make_counts(seed, *SHAPES[shape])
    X[:, 4] = rng.choice([0.0, 7.0])  # a constant feature
    X[:, 5] += 1000.0
    Y = np.eye(3)[y]
    options = {
        "ridge": float(rng.choice([0.0, 0.1, 10.0])),
        "scale": str(rng.choice(["none", "zscore", "moderated", "auto"])),
        "sample_weight": None if rng.random() < 0.5 else rng.integers(0, 3, len(X)) + 0.5 * (np.arange(len(X)) < 9),
        "target_weights": rng.random(3) + 0.5,
    }
    name = str(rng.choice(list(SOLVERS)))
    X = KINDS[str(rng.choice(list(KINDS)))](X)
    whole, parts = make_problem(X, Y, **options), make_problem(cut(X, axis, int(rng.integers(1, 6))), Y, **options)
    assert_same_path(SOLVERS[name](parts), SOLVERS[name](whole), 1e-6)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_wishes_of_users(shape, axis):
    X, y = make_counts(1, *SHAPES[shape])
    Y = np.eye(3)[y]
    whole, parts = (make(X_, Y, ridge=1.0) for make, X_ in ((LeastSquares, X), (make_problem, cut(X, axis, 4))))
    factors = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0, np.inf], size=X.shape[1], p=[0.1, 0.2, 0.4, 0.2, 0.1])
    single = RowPenalty(np.arange(X.shape[1]), factors)
    grouped = RowPenalty.of_groups(np.arange(X.shape[1]) // 2, np.ones(X.shape[1]))
    for name, solve in SOLVERS.items():
        assert_same_path(solve(parts, penalty=single), solve(whole, penalty=single), 1e-7)
        if name.endswith("hiht") or not isinstance(parts, GramLeastSquares):
            assert_same_path(solve(parts, penalty=grouped), solve(whole, penalty=grouped), 1e-7)
        else:
            with pytest.raises(ValueError, match=r"feature_groups with the solvers .* Use solver='ahiht' or 'hiht'"):
                solve(parts, penalty=grouped)


# What a pass measures


EXTREMES = {
    "one tiny column": lambda X, y: np.where(np.arange(X.shape[1]) == 4, 1e-180 * (y == 0)[:, None], X),
    "one huge column": lambda X, y: np.where(np.arange(X.shape[1]) == 4, 1e160 * (y == 0)[:, None], X),
    "all tiny": lambda X, y: X * 1e-200,
    "all huge": lambda X, y: X * 1e160,
    "next to nothing": lambda X, y: X * 1e-303,
    "all tiny, float32": lambda X, y: (X * 1e-36).astype(np.float32),
    "all huge, float32": lambda X, y: (X * 1e36).astype(np.float32),
}


@pytest.mark.parametrize("change", EXTREMES)
@given(kind=st.sampled_from(list(KINDS)), shape=st.sampled_from(list(SHAPES)))
@settings(max_examples=3)
def test_values_too_small_or_too_large_to_be_squared(change, shape, kind):
    X, y = make_counts(3, *SHAPES[shape])
    X = KINDS[kind](EXTREMES[change](X, y))
    expected = L20Selector(5, scale="zscore").fit(X, y)
    for axis in (0, 1):
        for n_blocks in (1, 4):
            found = L20Selector(5, scale="zscore").fit(cut(X, axis, n_blocks), y)
            np.testing.assert_array_equal(found.get_support(), expected.get_support())
            np.testing.assert_allclose(found.path_.losses, expected.path_.losses, rtol=1e-5)
    if change.startswith("one"):
        assert found.get_support()[4]


@pytest.mark.parametrize(("factor", "message"), [
    (1e-200, r"The largest deviation of a feature of X .* below 9e-78 the squares underflow"),
    (1e160, r"A feature of X has the deviation .* above 1e\+77 the squares overflow"),
])  # fmt: skip
def test_values_too_small_or_too_large_as_they_are(factor, message):
    X, y = make_counts(3, 90, 30)
    for axis in (0, 1):
        with pytest.raises(ValueError, match=message):
            L20Selector(5, scale="none").fit(cut(X * factor, axis, 3), y)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_large_means_cost_no_digits(axis, dtype):
    """Mean 1000 and deviation 1 in float32, as in the design notes; the truth is the same float32 numbers in float64."""
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((60, 90)) + 1000.0).astype(dtype)
    residual = rng.standard_normal((3, 60))
    residual -= residual.mean(axis=1, keepdims=True)
    truth = residual @ make_design(X.astype(np.float64)).take(np.arange(90), slice(None))
    design = make_design(cut(X, axis, 4))
    found = design.matrix.products(residual)
    assert np.abs(found - truth).max() < (1e-6 if dtype == np.float32 and axis else 1e-11) * np.abs(truth).max()


def test_eigenvalues():
    X = np.random.default_rng(0).standard_normal((400, 500)) * np.linspace(0.1, 2.0, 500)
    top = np.linalg.norm(X - X.mean(axis=0), 2) ** 2
    for axis in (0, 1):
        matrix = make_design(cut(X, axis, 4)).matrix
        assert 0.98 * top < matrix.gram_top() < 1.02 * top
        assert 0.97 * top < matrix._top_by_passes() < (1 + 1e-9) * top
    assert 0.98 * top < make_design(cut(X, 0, 4)).gram_top() < 1.02 * top


# What is kept


# L20Selector


@pytest.mark.parametrize("axis", [0, 1])
def test_selector(axis, caplog):
    X, y = make_counts(3, 90, 30)
    expected = L20Selector(6).fit(X, y)
    with caplog.at_level(logging.INFO, logger="l20fs"):
        found = L20Selector(6).fit(cut(X, axis, 5), y)
    assert "90 x 30 float64 from a test in 5 blocks" in caplog.text
    assert "plan C" in caplog.text
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
    with pytest.raises(MemoryError, match="raise max_memory"):
        make_problem(cut(X, 0, 3, budget=8 * 9 * 2), np.eye(3)[y]).design.cache.gathered(np.arange(5))


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
    ({"feature_groups": [[0, 1]]}, "feature_groups with solver='forward' need X in memory"),
    ({"include": [99]}, "include has the index 99, which is outside 0 to 8"),
    ({"include": [0], "exclude": [0]}, "both included"),
    ({"include": [0, 1, 2, 3]}, "n_features_to_select=3 is less than the 4 features"),
    ({"include": [0, 1, 2, 3], "n_features_to_select": 0.2}, "n_features_to_select=0.2 is less than the 4 features"),
    ({"exclude": range(9)}, "All 9 features are excluded or constant"),
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
    selector, model = (make(None, alpha=1e9).fit(X, y) for make in (L20Selector, L20Classifier))
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
    selector = L20Selector(4, feature_groups=[[0, 1]], solver="ahiht")
    expected = StabilitySelector(selector, 3, n_resamples=6, random_state=1).fit(X, y)
    for axis in (0, 1):
        found = StabilitySelector(selector, 3, n_resamples=6, random_state=1, n_jobs=2)
        found.fit(cut(sp.csr_array(X), axis, 3), y)
        np.testing.assert_array_equal(found.orders_, expected.orders_)
        np.testing.assert_array_equal(found.transform(cut(X, axis, 3)), expected.transform(X))
    with pytest.raises(TypeError, match="X comes in blocks, and FisherScore needs it in memory"):
        StabilitySelector(FisherScore(3)).fit(cut(X, 0, 2), y)


@pytest.mark.parametrize("axis", [0, 1])
@given(
    value=st.floats(0.01, 1000000.0),
    n_samples=st.integers(4, 3000),
    kind=st.sampled_from(list(KINDS)),
    weighted=st.booleans(),
)
@settings(max_examples=20)
def test_a_constant_column_is_constant_whatever_its_value(axis, kind, weighted, value, n_samples):
    """A long sum rounds, and what it leaves in the deviations must not be taken for them."""
    X = np.column_stack([np.arange(n_samples) % 7, np.full(n_samples, value), np.full(n_samples, -value / 3)])
    weights = np.random.default_rng(0).random(n_samples) + 0.1 if weighted else None
    if weighted:
        weights[0], X[0] = 0.0, 0.0  # which does not count
    design = make_design(cut(KINDS[kind](X), axis, 3), "zscore", weights)
    assert design.varies.tolist() == [True, False, False]
    np.testing.assert_allclose(design.mean[1:], [value, -value / 3], rtol=1e-15)


def as_dense(X):
    return X.toarray() if sp.issparse(X) else X


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_substitutes_are_those_of_the_whole_matrix(shape, axis, gram_size):
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
