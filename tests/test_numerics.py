"""Numbers as they come: far from zero, constant, tiny, huge, weighted, in float32; the same in every container."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
import scipy.sparse as sp
from blocked import cut
from hypothesis import given, settings
from hypothesis import strategies as st

from l20fs import Constraints, L20Regressor, L20Selector

#: All but sparse blocks keep the digits of a column far from zero.
KEEP_DIGITS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "array API": array_api_strict.asarray,
    "blocks of rows": lambda X: cut(X, 0, 3),
    "blocks of columns": lambda X: cut(X, 1, 3),
    "csr": sp.csr_array,
    "csc": sp.csc_array,
}
CONTAINERS = KEEP_DIGITS | {
    "sparse blocks of rows": lambda X: cut(sp.csr_array(X), 0, 3),
    "sparse blocks of columns": lambda X: cut(sp.csc_array(X), 1, 3),
}
SCALES = ["none", "zscore", "moderated"]
in_each = pytest.mark.parametrize("container", CONTAINERS)


def draw(seed):
    """Eighths of whole numbers, some zero, so that sums with whole numbers are exact; classes that some features tell."""
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(40) % 3)
    X = random.standard_normal((40, 12)) + np.eye(3)[y] @ random.standard_normal((3, 12))
    X *= random.random(X.shape) < 0.7
    return np.round(8.0 * X * random.uniform(0.5, 2.0, 12)) / 8.0, y


def assert_same(found, expected, rtol=1e-8):
    """Compare the rows of the path in their order, and its losses."""
    size = int(expected.path_.sizes[-1])
    assert np.argsort(found.ranking_)[:size].tolist() == np.argsort(expected.ranking_)[:size].tolist()
    np.testing.assert_allclose(found.path_.losses, expected.path_.losses, rtol=rtol, atol=rtol * expected.path_.null_loss)


@in_each
@pytest.mark.parametrize("scale", SCALES)
def test_constant_columns_change_nothing(container, scale):
    """The ridge is relative to the columns that vary, and so is the median of the deviations."""
    X, y = draw(0)
    longer = np.hstack([X, np.zeros((40, 60)), np.full((40, 30), 2.7)])
    found = L20Selector(5, scale=scale).fit(CONTAINERS[container](longer), y)
    assert_same(found, L20Selector(5, scale=scale).fit(X, y))
    assert set(np.argsort(found.ranking_)[:12].tolist()) == set(range(12))


@in_each
@given(value=st.floats(0.01, 1e6), n_samples=st.integers(6, 3000), is_weighted=st.booleans())
@settings(max_examples=10)
def test_a_constant_column_is_constant_whatever_its_value(container, value, n_samples, is_weighted):
    X = np.column_stack([np.arange(n_samples) % 7, np.full(n_samples, value), np.full(n_samples, -value / 3)])
    weights = np.random.default_rng(0).random(n_samples) + 0.1
    weights[0] = X[0] = 0.0
    kept = slice(0 if is_weighted else 1, None)
    selector = L20Selector(1, scale="zscore", task="regression")
    selector.fit(CONTAINERS[container](X[kept]), X[kept, 0], sample_weight=weights if is_weighted else None)
    assert selector.path_.x_scale[1:].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("container", KEEP_DIGITS)
def test_a_column_that_varies_in_its_last_digits_is_found(container):
    y = np.tile([0, 1], 30)
    X = np.column_stack([1e8 + 19 * np.spacing(1e8) * y, np.random.default_rng(0).standard_normal((60, 3))])
    for far in (X[:, 0], 1e13 + 2.0 * y):
        X[:, 0] = far
        assert L20Selector(1).fit(KEEP_DIGITS[container](X), y).get_support(indices=True).tolist() == [0]


@pytest.mark.parametrize("container", KEEP_DIGITS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("mean", [2.0**20, -(2.0**30)])
def test_columns_far_from_zero_keep_their_digits(container, scale, mean):
    X, y = draw(1)
    weights = np.arange(40) % 4 / 2.0
    for own in (None, weights):
        expected = L20Selector(5, scale=scale).fit(X, y, sample_weight=own)
        found = L20Selector(5, scale=scale).fit(KEEP_DIGITS[container](X + mean), y, sample_weight=own)
        assert_same(found, expected)
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-7)


@in_each
def test_float32_keeps_its_digits(container):
    """The truth is the same float32 numbers in float64; blocks are multiplied in float64."""
    X, y = draw(2)
    X = (X + 1000.0 * ("sparse" not in container and np.arange(12) % 2)).astype(np.float32)
    for factor in (1.0, 2.0**-60, 2.0**40):
        X_scaled = X * np.float32(factor)
        found = L20Selector(5).fit(CONTAINERS[container](X_scaled), y)
        assert_same(found, L20Selector(5).fit(X_scaled.astype(np.float64), y), rtol=1e-5)


@in_each
@pytest.mark.parametrize("solver", ["forward", "swap", "ahiht"])
@given(scale=st.sampled_from([*SCALES, "auto", "given"]), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=4)
def test_whole_weights_are_repeated_samples(container, solver, scale, seed):
    """Those of weight 0 have no influence, however large they are."""
    X, y = draw(seed)
    counts = np.random.default_rng(seed).integers(1, 4, 40)
    counts[[3, 17]] = 0
    selector = L20Selector(5, scale=np.linspace(0.5, 3.0, 12) if scale == "given" else scale, solver=solver, ridge=0.3)
    expected = selector.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)).path_
    X[3], X[17] = 1e6, -7.0
    found = selector.fit(CONTAINERS[container](X), y, sample_weight=counts).path_
    assert found.indices.tolist() == expected.indices.tolist()
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-7, atol=1e-9 * expected.null_loss)


@in_each
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_given_divisors_and_covariates(container, fit_intercept):
    X, y = draw(3)
    divisors, batch = np.geomspace(0.1, 10.0, 12), np.arange(40) % 3
    options = {"ridge": 0.5, "fit_intercept": fit_intercept}
    expected = L20Regressor(5, scale="none", **options).fit(X / divisors, y, adjust_for=batch)
    found = L20Regressor(5, scale=divisors, **options).fit(CONTAINERS[container](X), y, adjust_for=batch)
    assert_same(found, expected)
    np.testing.assert_allclose(found.coef_ * divisors, expected.coef_, atol=1e-8)


@pytest.mark.parametrize("scale", [*SCALES, "auto"])
@pytest.mark.parametrize("factor", [1e-30, 0.1, 7.0, 1e30])
def test_one_factor_for_all_of_X_changes_no_selection(scale, factor):
    X, y = draw(4)
    one, other = (L20Selector(5, scale=scale).fit(each, y) for each in (X, factor * X))
    assert other.get_support().tolist() == one.get_support().tolist()
    np.testing.assert_allclose(other.coef_ * factor, one.coef_, rtol=1e-6, atol=1e-12)


REFUSED = [
    ({"scale": "minmax"}, "scale='minmax' is unknown. Use 'auto', 'moderated'"),
    ({"scale": [1.0] * 3}, "3 deviations for 12 features. Give one per feature"),
    ({"scale": [0.0] * 12}, r"scale\[0\]=0 is not valid: .* above 0"),
    ({"scale": [1e-90] * 12}, r"has the deviation .*e\+(89|90); above"),
    ({"scale": "none", "X": 1e-100}, r"largest deviation of a feature of X .* below 9e-78 the squares underflow"),
    ({"scale": "none", "X": 1e100}, r"A feature of X has the deviation .* above 1e\+77 the squares overflow"),
    ({"X": 1e160}, "their sum or square overflows float64. Divide X by a constant"),
    ({"X": 0.0}, "All 12 features of X are constant, so there is nothing to select"),
    ({"weights": [1.0, -2.0]}, r"sample_weight\[1\]=-2 is not valid .*at least 0. Use 0"),
    ({"weights": [np.nan, 1.0]}, r"sample_weight\[0\]=nan is not valid .*finite"),
    ({"weights": [0.0, 0.0]}, "sample_weight is zero for all 40 samples"),
    ({"weights": [1e308, 1e308]}, "adds up to inf; outside .* Divide sample_weight by its mean"),
    ({"y": 1e-300}, "the squares of its products with X underflow in float64. Divide y by a constant"),
]  # fmt: skip


@pytest.mark.parametrize("container", ["C", "csr", "blocks of rows", "sparse blocks of columns"])
@pytest.mark.parametrize(("given", "message"), REFUSED, ids=[message[:30] for _, message in REFUSED])
def test_what_cannot_be_squared_or_weighed_is_refused(container, given, message):
    X, y = draw(6)
    weights = np.resize(given["weights"], 40) if "weights" in given else None
    with pytest.raises(ValueError, match=message):
        L20Selector(3, scale=given.get("scale", "auto"), task="regression").fit(
            CONTAINERS[container](given.get("X", 1.0) * X), given.get("y", 1.0) * y, sample_weight=weights
        )


@pytest.mark.parametrize("solver", ["forward", "swap", "hiht"])
@pytest.mark.parametrize(("dtype", "share", "tolerance"), [(np.float64, 1e-5, 1e-10), (np.float32, 1e-2, 1e-5)])
def test_nuisances_may_explain_almost_all(solver, dtype, share, tolerance):
    random = np.random.default_rng(0)
    batch, values = np.eye(4)[random.integers(0, 4, 60)], random.standard_normal((60, 30))
    X = (batch @ random.standard_normal((4, 30)) + share * values).astype(dtype)
    y = values[:, 0] + values[:, 1] + 0.1 * random.standard_normal(60)
    left = np.eye(60) - batch @ np.linalg.pinv(batch)
    selector = L20Selector(5, task="regression", scale="zscore", ridge=0.1, solver=solver)
    expected = selector.fit(left @ X.astype(np.float64), left @ y).path_
    found = selector.fit(X, y, adjust_for=batch.argmax(axis=1).astype(str)).path_
    assert found.indices.tolist() == expected.indices.tolist()
    np.testing.assert_allclose(found.losses / found.null_loss, expected.losses / expected.null_loss, atol=tolerance)


@in_each
def test_targets_may_be_far_from_zero(container):
    X, y = draw(3)
    selector = L20Selector(5, task="regression", ridge=0.3)
    expected = selector.fit(X, 1e6 + y / 7.0).path_.losses
    np.testing.assert_allclose(selector.fit(CONTAINERS[container](X), 1e6 + y / 7.0).path_.losses, expected, rtol=1e-14)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("groups", [None, np.arange(60) // 2])
def test_no_path_is_lost_where_nearly_equal_columns_explain_all(seed, groups):
    """Rounding is no row of its own, and one that turns out to depend on others takes no other out."""
    random = np.random.default_rng(seed)
    X, y = random.standard_normal((8, 60)), random.permutation(np.arange(8) % 4)
    X[:, random.integers(0, 60, 20)] = X[:, random.integers(0, 60, 20)] + 1e-8 * random.standard_normal((8, 20))
    options = {"task": "classification", "ridge": 0.0, "scale": "none"}
    path = L20Selector(20, solver="swap", constraints=Constraints(groups=groups), **options).fit(X, y).path_
    assert path.sizes.tolist() == list(range(len(path.sizes)))
    assert path.sizes[-1] <= 7
    assert (np.diff(path.losses) < 1e-6 * path.null_loss).all()
    assert path.losses[-1] < 1e-6 * path.null_loss


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_nearly_equal_columns_count_in_groups(delta):
    """What tells the targets is the difference of two columns, of which the other is in a group with noise."""
    random = np.random.default_rng(0)
    X = random.standard_normal((40, 12))
    y = random.standard_normal(40)
    X[:, 5] = X[:, 2] + delta * (y + 0.1 * random.standard_normal(40))
    X[:, 2] += 1e-3 * delta * random.standard_normal(40)
    options = {"task": "regression", "ridge": 0.0, "scale": "none", "constraints": Constraints(include=[2])}
    alone = L20Selector(2, **options).fit(X, y).path_.losses
    options["constraints"] = Constraints(include=[2], groups=[0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10])
    grouped = L20Selector(2, **options).fit(X, y)
    assert grouped.support_[5]
    assert grouped.path_.losses[-1] <= alone[-1] * (1.0 + 1e-9)


def test_scale_depends_on_no_rounding():
    """Of two samples every feature tells the same."""
    for seed in range(20):
        X = 1e6 * np.random.default_rng(seed).standard_normal((1, 9)) + np.array([[0.0], [1.0]]) * np.linspace(1.0, 3.0, 9)
        assert L20Selector(1, task="regression").fit(X, np.array([0.0, 1.0])).scale_ == "moderated"
