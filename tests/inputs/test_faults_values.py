"""Faults of L20Selector, E1 to E9: constant, duplicate, missing and extreme values."""

from __future__ import annotations

import numpy as np
import pytest
from blocked import cut
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import CONTAINERS, HOMOTOPIES, INFORMATIVE, SOLVERS, make_data, make_solver
from sklearn.base import clone

from l20fs import L20Regressor, L20Selector

STORED = st.sampled_from(CONTAINERS)
SCALES = st.sampled_from(["none", "zscore", "moderated"])
RIDGES = st.sampled_from([0.0, 0.5, 10.0])


@pytest.mark.parametrize(
    ("solver", "init"), [*((name, "zeros") for name in SOLVERS), *((name, "gaussian") for name in HOMOTOPIES)]
)
@given(
    scale=SCALES,
    constant=st.sampled_from([0.0, 0.1, 1e10]),
    container=STORED,
)
@settings(max_examples=8)
def test_e01_constant_feature_is_never_selected(container, constant, solver, init, scale):
    X, y = make_data()
    X[:, [3, 7]] = constant
    selector = L20Selector(10, solver=make_solver(solver, max_iter=5000, init=init, random_state=0), scale=scale)
    selector.fit(container(X), y)
    assert selector.support_.sum() == 10
    assert not selector.support_[[3, 7]].any()


@pytest.mark.parametrize("container", CONTAINERS)
def test_e01_constant_feature_that_is_asked_for_is_left_out_with_a_warning(container):
    X, y = make_data()
    X[:, [3, 7]] = 0.1
    with pytest.warns(UserWarning, match="n_features_to_select=12, but only 10 of 12 features vary; these are returned"):
        selector = L20Selector(12).fit(container(X), y)
    assert np.flatnonzero(~selector.support_).tolist() == [3, 7]


@pytest.mark.parametrize("constant", [0.0, -3.0])
@pytest.mark.parametrize("container", CONTAINERS)
def test_e02_all_features_constant_are_refused(container, constant):
    y = make_data()[1]
    with pytest.raises(ValueError, match=r"All 4 features of X are constant.*Give at least one feature that varies"):
        L20Selector(2).fit(container(np.full((len(y), 4), constant)), y)


@pytest.mark.parametrize("solver", SOLVERS)
@given(
    container=STORED,
    ridge=RIDGES,
    seed=st.sampled_from([0, 1, 2, 69, 74, 131]),
)
@settings(max_examples=12)
def test_e03_of_duplicate_columns_the_lower_index_comes_first(seed, ridge, container, solver):
    X, y = make_data(seed)
    originals = np.arange(X.shape[1])
    copies = originals + X.shape[1]
    selector = L20Selector(6, solver=make_solver(solver, max_iter=5000), ridge=ridge, scale="zscore")
    ranking = selector.fit(container(np.hstack([X, X])), y).ranking_
    assert (ranking[originals] < ranking[copies]).all()
    if solver in HOMOTOPIES:  # to the gradient both are the same; where rows are weighed up, the second brings less
        assert ranking[copies].tolist() == (ranking[originals] + 1).tolist()
    elif ridge == 0.0:  # and nothing at all beside the first
        assert not selector.support_[copies].any()


@pytest.mark.parametrize("solver", SOLVERS)
@given(container=STORED, seed=st.integers(0, 99))
@settings(max_examples=6)
def test_e03_permuted_columns_permute_the_answer(seed, container, solver):
    X, y = make_data(seed)
    order = np.random.default_rng(seed).permutation(X.shape[1])
    selector = L20Selector(4, solver=make_solver(solver, max_iter=5000))
    ranking = selector.fit(container(X), y).ranking_
    permuted = selector.fit(container(X[:, order]), y).ranking_
    assert permuted.tolist() == ranking[order].tolist()


@pytest.mark.parametrize("solver", SOLVERS)
@given(scale=SCALES, k=st.sampled_from([1, 5]))
@settings(max_examples=6)
def test_e04_perfectly_separating_feature_is_first(k, solver, scale):
    X, y = make_data(n_classes=2)
    rng = np.random.default_rng(1)
    X[:, INFORMATIVE] = rng.standard_normal((len(y), len(INFORMATIVE)))
    X[:, 8] = (2.0 * y - 1.0) * (1.0 + rng.random(len(y)))
    assert L20Selector(k, solver=make_solver(solver, max_iter=5000), scale=scale).fit(X, y).ranking_[8] == 1


@pytest.mark.parametrize("label", ["healthy", 3])
def test_e05_one_class_only_is_refused_by_its_name(label):
    X, y = make_data()
    with pytest.raises(ValueError, match=rf"y has one class only, .*{label}.*Give samples of 2 or more classes"):
        L20Selector(3).fit(X, np.full(len(y), label))


def test_e05_constant_numbers_as_target_are_refused():
    X, y = make_data()
    with pytest.raises(ValueError, match=r"y is constant.*Give targets that differ"):
        L20Selector(3).fit(X, np.full(len(y), 0.5))


@pytest.mark.parametrize("solver", SOLVERS)
def test_e06_class_with_one_sample_fits(solver):
    X, y = make_data(n_classes=2)
    labels = np.where(y == 0, "a", "b").astype(object)
    labels[7] = "rare"
    selector = L20Selector(3, solver=make_solver(solver, max_iter=5000)).fit(X, labels)
    assert selector.classes_.tolist() == ["a", "b", "rare"]
    assert selector.coef_.shape == (3, 12)
    assert np.isfinite(selector.coef_).all()


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1, 5), r"Found array with 1 sample\(s\) .*minimum of 2 is required"),
        ((0, 5), r"Found array with 0 sample\(s\) .*minimum of 2 is required"),
        ((6, 0), r"Found array with 0 feature\(s\) .*minimum of 1 is required"),
        ((6,), "Expected 2D array, got 1D array"),
        ((6, 2, 2), "Found array with dim 3"),
    ],
)
def test_e07_shapes_that_cannot_be_fitted_give_the_messages_of_scikit_learn(shape, message):
    with pytest.raises(ValueError, match=message):
        L20Selector(1).fit(np.ones(shape), np.arange(shape[0]) % 2)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_e07_single_feature_is_selected(container, solver):
    X, y = make_data()
    assert L20Selector(1, solver=make_solver(solver, max_iter=5000)).fit(container(X[:, :1]), y).support_.tolist() == [True]


@pytest.mark.parametrize("solver", SOLVERS)
@given(
    k=st.sampled_from([1, 4, 12]),
    ridge=RIDGES,
    scale=SCALES,
    container=STORED,
)
@settings(max_examples=12)
def test_e07_two_samples_of_two_classes_fit(container, scale, ridge, solver, k):
    X = make_data()[0][:2]
    selector = L20Selector(k, solver=make_solver(solver, max_iter=5000), scale=scale, ridge=ridge).fit(
        container(X), ["a", "b"]
    )
    assert selector.support_.sum() == k
    for values in (selector.scores_, selector.coef_, selector.intercept_, selector.path_.refit(k).coef):
        assert np.isfinite(values).all()
    if scale != "zscore" and (ridge or solver in HOMOTOPIES):
        # Both classes have one sample, so the strongest feature is the one with the largest difference.
        assert selector.ranking_[np.abs(X[0] - X[1]).argmax()] == 1
    else:
        # Any feature tells two samples apart completely: with equal deviations or equal gains, the lower index goes first.
        assert selector.ranking_.tolist() == list(range(1, 13))


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, r"X has 3 missing values \(NaN\), first in 'column 4' and 'column 6'\. Impute them first, .*SimpleImputer"),
        (np.inf, r"X has 3 infinite values \(inf\), first in 'column 4' and 'column 6'\. Replace or drop them first"),
        (-np.inf, r"X has 3 infinite values \(inf\), first in 'column 4' and 'column 6'\. Replace or drop them first"),
    ],
)
def test_e08_non_finite_values_are_counted_and_located(value, message, container):
    X, y = make_data()
    X[[0, 1, 5], [4, 4, 6]] = value
    with pytest.raises(ValueError, match=message):
        L20Selector(3).fit(container(X), y)


def test_e08_opposite_infinities_are_found():
    X, y = make_data()
    X[:2, 4] = np.inf, -np.inf
    with pytest.raises(ValueError, match=r"X has 2 infinite values \(inf\), first in 'column 4'"):
        L20Selector(3).fit(X, y)


@pytest.mark.parametrize(("value", "message"), [(np.nan, "Input y contains NaN"), (np.inf, "Input y contains infinity")])
def test_e08_non_finite_targets_are_refused(value, message):
    X, y = make_data()
    with pytest.raises(ValueError, match=message):
        L20Selector(3).fit(X, np.where(y == 0, value, X[:, 0]))


@pytest.mark.parametrize("container", CONTAINERS)
def test_e08_non_finite_values_are_refused_at_transform(container):
    X, y = make_data()
    selector = L20Selector(3).fit(X, y)
    X[0, 4] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        selector.transform(container(X))


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (
            1e150,
            r"A feature of X has the deviation \d.*e\+150; .* squares overflow in float64\. Divide X .* scale='zscore'",
        ),
        (
            1e-100,
            r"The largest deviation .* is \d.*e-(99|100); .* squares underflow in float64\. Multiply X .* scale='zscore'",
        ),
        (1e-300, r"All 12 features of X are constant.* at least one feature that varies, by more than 1e-145"),
    ],
)
def test_e09_values_whose_squares_leave_the_range_are_refused(factor, message, container):
    X, y = make_data()
    with pytest.raises(ValueError, match=message):
        L20Selector(3, scale="none").fit(container(X * factor), y)


@pytest.mark.parametrize("container", CONTAINERS)
def test_e09_finite_values_whose_sum_overflows(container):
    """Their z-scores are numbers like any others; what no float64 can hold is refused."""
    X, y = make_data()
    X[:2, 4] = 1e150
    smaller = X.copy()
    smaller[:2, 4] = 1e140
    found, expected = (L20Selector(3).fit(container(values), y) for values in (X, smaller))
    assert found.get_support().tolist() == expected.get_support().tolist()
    assert np.isfinite(found.coef_).all()
    with pytest.raises(ValueError, match=r"has the deviation .*e\+149; .* squares overflow .* Divide X by a constant"):
        L20Selector(3, scale="none").fit(container(X), y)
    X[2:4, 4] = -1e308
    X[4:, 4] = 1.7e308
    with pytest.raises(ValueError, match=r"sum or square overflows float64\. Divide X by a constant"):
        L20Selector(3).fit(container(X), y)


MIXED = np.where(np.arange(12) % 2, 1e-8, 1e8)


@pytest.mark.parametrize(
    "factors",
    [np.full(12, 1e150), np.full(12, 1e-140), MIXED, np.where(np.arange(12) % 2, 1e-140, 1e150), -MIXED],
    ids=["1e150", "1e-140", "1e-8 and 1e8", "1e-140 and 1e150", "negative"],
)
@pytest.mark.parametrize("solver", SOLVERS)
@given(container=STORED)
@settings(max_examples=2)
def test_e09_with_scaling_a_column_rescale_changes_nothing(container, solver, factors, rtol):
    X, y = make_data()
    selector = L20Selector(4, scale="zscore", solver=make_solver(solver, max_iter=5000))
    expected = clone(selector).fit(container(X), y)
    rescaled = selector.fit(container(X * factors), y)
    assert rescaled.ranking_.tolist() == expected.ranking_.tolist()
    np.testing.assert_allclose(rescaled.scores_, expected.scores_, rtol=rtol[X.dtype])
    np.testing.assert_allclose(rescaled.coef_ * factors, expected.coef_, rtol=rtol[X.dtype])


def numbers_of(X):
    """Return targets of which the first three features explain most."""
    return X[:, :3] @ [3.0, -2.0, 1.0] + 0.1 * np.random.default_rng(0).standard_normal(len(X))


BLOCKED = {f"blocks of {kind}": lambda X, axis=axis: cut(X, axis, 3) for axis, kind in enumerate(("samples", "columns"))}
SIZES = st.sampled_from([1e-300, 1e-160, 1e160, 1e307])
ARRAYS = {container.__name__: container for container in CONTAINERS} | BLOCKED


@pytest.mark.parametrize("solver", SOLVERS)
@given(
    container=st.sampled_from(list(ARRAYS)),
    dtype=st.sampled_from([np.float64, np.float32]),
    factor=SIZES,
)
@settings(max_examples=8)
def test_targets_too_small_or_too_large_to_be_squared_are_refused(factor, dtype, container, solver):
    X = make_data()[0]
    way = "underflow" if factor < 1.0 else "overflow"
    with pytest.raises(ValueError, match=rf"y differs from its mean by at most .* {way} in .* Divide y by a constant"):
        L20Regressor(3, solver=solver).fit(ARRAYS[container](X.astype(dtype)), factor * numbers_of(X))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("dtype", "factors"), [(np.float64, (1e-140, 1e140)), (np.float32, (1e-14, 1e12))])
@given(container=st.sampled_from(list(ARRAYS)))
@settings(max_examples=4)
def test_targets_of_any_other_size_have_the_same_features(dtype, factors, container, solver, rtol):
    X = make_data()[0].astype(dtype)
    expected = L20Regressor(3, solver=make_solver(solver, max_iter=5000)).fit(X, numbers_of(X))
    for factor in factors:
        found = clone(expected).fit(ARRAYS[container](X), factor * numbers_of(X))
        np.testing.assert_array_equal(found.support_, expected.support_)
        np.testing.assert_allclose(found.coef_ / factor, expected.coef_, rtol=10 * rtol[X.dtype], atol=1e-6)
