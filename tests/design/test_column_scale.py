"""Rules for the divisors of the features: the same in every container, and the same as dividing X by hand."""

from __future__ import annotations

import array_api_strict
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from blocked import cut
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import SOLVERS, make_data, make_solver

from l20fs import L20Classifier, L20Selector
from l20fs.blocks import as_blocks
from l20fs.design.column_scale import COMPARABLE_RATIO
from l20fs.objective import make_problem
from l20fs.objective.least_squares import LeastSquares
from l20fs.solvers import forward

CONTAINERS = {
    "dense": np.ascontiguousarray,
    "fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "device": array_api_strict.asarray,
    "blocks of rows": lambda X: cut(X, 0, 3),
    "blocks of columns": lambda X: cut(X, 1, 3),
    "sparse blocks of columns": lambda X: cut(sp.csr_array(X), 1, 3),
}
BLOCKED = [name for name in CONTAINERS if "blocks" in name]
RULES = ["moderated", "zscore", "auto"]
in_each_container = pytest.mark.parametrize("container", CONTAINERS)


def draw(seed, shape=(24, 40), spread=1.0):
    """Features of different deviations, two of them constant, one far from zero."""
    random = np.random.default_rng(seed)
    X = random.standard_normal(shape) * np.exp(spread * random.standard_normal(shape[1]))
    X *= random.random(shape) < 0.8
    X[:, 3], X[:, 5] = 0.0, 2.5
    X[:, 7] += 100.0
    return X, np.eye(3)[random.permutation(np.arange(shape[0]) % 3)]


def correlation_by_hand(X, Y):
    """Return the correlation of log deviation and share of the targets explained, over the features."""
    shares = [np.square(np.corrcoef(column, Y, rowvar=False)[0, 1:]).sum() for column in X.T]
    return np.corrcoef(np.log(X.std(axis=0)), shares)[0, 1]


def slow_divisors(X, Y, rule):
    """Return the divisors of the definition."""
    deviations = X.std(axis=0)
    varies = np.ptp(X, axis=0) > 0.0
    if rule == "auto":
        ascending = np.sort(deviations[varies])
        last = len(ascending) - 1
        low, high = ascending[int(np.floor(0.05 * last))], ascending[int(np.ceil(0.95 * last))]
        is_contrary = Y is not None and correlation_by_hand(X[:, varies], Y) < -max(0.1, 2.0 / np.sqrt(varies.sum()))
        rule = "moderated" if high <= COMPARABLE_RATIO * low and not is_contrary else "zscore"
    s0 = np.median(deviations[varies]) if rule == "moderated" else 0.0
    return np.where(varies, deviations + s0, 1.0)


@in_each_container
@given(seed=st.integers(0, 2**32 - 1), spread=st.sampled_from([0.3, 3.0]), tall=st.booleans(), rule=st.sampled_from(RULES))
@settings(max_examples=12)
def test_a_rule_is_the_division_by_hand_in_every_container(container, rule, seed, spread, tall):
    X, Y = draw(seed, (60, 20) if tall else (24, 40), spread)
    problem = make_problem(CONTAINERS[container](X), Y, scale=rule, ridge=0.5)
    divisors = slow_divisors(X, Y, rule)
    expected = LeastSquares(X / divisors, Y, ridge=0.5)
    varies = expected.design.varies
    np.testing.assert_array_equal(problem.design.varies, varies)
    np.testing.assert_allclose(problem.design.scale[varies], divisors[varies], rtol=1e-9)
    np.testing.assert_allclose(problem.design.column_energy, expected.design.column_energy, rtol=1e-8)
    np.testing.assert_allclose(problem.design.max_sample_energy, expected.design.max_sample_energy, rtol=1e-8)
    assert problem.ridge == pytest.approx(expected.ridge)
    path, by_hand = forward(problem, 6), forward(expected, 6)
    np.testing.assert_array_equal(path.indices, by_hand.indices)
    np.testing.assert_allclose(path.losses, by_hand.losses, rtol=1e-7)
    np.testing.assert_allclose(path.coef(4) * divisors, by_hand.coef(4), rtol=1e-6, atol=1e-9)


@in_each_container
@given(rule=st.sampled_from(RULES), spread=st.sampled_from([0.3, 3.0]))
@settings(max_examples=4)
def test_weights_are_repeated_samples(container, rule, spread):
    X, Y = draw(4, spread=spread)
    counts = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = make_problem(CONTAINERS[container](X), Y, scale=rule, sample_weight=counts.astype(float))
    repeated = LeastSquares(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0), scale=rule)
    assert weighted.design.scale_rule == repeated.design.scale_rule
    varies = repeated.design.varies
    np.testing.assert_allclose(weighted.design.scale[varies], repeated.design.scale[varies], rtol=1e-9)
    np.testing.assert_allclose(weighted.design.column_energy, repeated.design.column_energy, rtol=1e-8)


@pytest.mark.parametrize("container", ["dense", "csr", "device", *BLOCKED])
def test_single_precision(container):
    """Also of columns whose deviations have no digits left in float32."""
    X, Y = draw(2, spread=0.3)
    for factor in (1.0, 2.0**-60, 2.0**40):
        single = (X * factor).astype(np.float32)
        design = make_problem(CONTAINERS[container](single), Y, scale="moderated").design
        expected = LeastSquares(single.astype(np.float64), Y, scale="moderated").design
        np.testing.assert_allclose(design.scale, expected.scale, rtol=1e-4)
        np.testing.assert_allclose(design.column_energy, expected.column_energy, rtol=1e-3)
        if design.vectors == "samples":
            found, wanted = (each.pull(Y[:, :1].T - Y[:, :1].mean()) for each in (design, expected))
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("rule", ["moderated", "zscore"])
def test_every_solver_sees_the_scaled_features(solver, rule):
    X, Y = draw(1)
    y = Y.argmax(axis=1)
    divisors = slow_divisors(X, Y, rule)
    options = {"solver": make_solver(solver), "ridge": 0.5, "max_features": 6}
    found = L20Classifier(4, scale=rule, **options).fit(X, y)
    expected = L20Classifier(4, scale="none", **options).fit(X / divisors, y)
    np.testing.assert_array_equal(found.ranking_, expected.ranking_)
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-7)
    np.testing.assert_allclose(found.coef_ * divisors, expected.coef_, rtol=1e-5, atol=1e-8)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X / divisors))


def test_files_and_dask_arrays(tmp_path):
    X, Y = draw(6)
    y = Y.argmax(axis=1)
    np.save(tmp_path / "X.npy", X)
    expected = L20Selector(5).fit(X, y)
    for there in (as_blocks(np.load(tmp_path / "X.npy", mmap_mode="r")), da.from_array(X, chunks=(7, -1))):
        found = L20Selector(5).fit(there, y)
        assert found.scale_ == expected.scale_
        assert found.ridge_ == expected.ridge_
        np.testing.assert_array_equal(found.ranking_, expected.ranking_)
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6, atol=1e-9)


@given(
    seed=st.integers(0, 2**32 - 1), factor=st.sampled_from([1e-30, 0.1, 7.0, 1e30]), rule=st.sampled_from([*RULES, "none"])
)
@settings(max_examples=20)
def test_one_factor_for_all_of_X_changes_no_selection(seed, factor, rule):
    X, Y = draw(seed)
    y = Y.argmax(axis=1)
    one, other = (L20Selector(5, scale=rule).fit(each, y) for each in (X, factor * X))
    assert one.scale_ == other.scale_
    np.testing.assert_array_equal(one.get_support(indices=True), other.get_support(indices=True))
    np.testing.assert_allclose(other.coef_ * factor, one.coef_, rtol=1e-6, atol=1e-12)


@in_each_container
def test_auto_takes_zscores_if_features_that_vary_more_explain_less(container):
    """Labels that contradict what moderated deviations assume: the informative features are those that hardly vary."""
    X, Y = draw(5, (60, 40), 0.0)
    spread = np.geomspace(1.0, 10.0, 40)
    for informative, rule in ((slice(0, 20), "zscore"), (slice(20, 40), "moderated"), (slice(0), "moderated")):
        told = X.copy()
        told[:, informative] += 2.0 * Y[:, :1]
        told = told / told.std(axis=0).clip(1e-9) * spread
        told[:, [3, 5]] = 2.5  # constant
        assert make_problem(CONTAINERS[container](told), Y, scale="auto").design.scale_rule == rule


@pytest.mark.parametrize("rule", [*RULES, "none"])
def test_the_rule_that_was_used_is_told(rule):
    X, y = make_data(0)
    assert L20Selector(3, scale=rule).fit(X, y).scale_ == {"auto": "moderated"}.get(rule, rule)
    X = X * np.geomspace(1.0, 1e6, X.shape[1])
    assert L20Selector(3, scale=rule).fit(X, y).scale_ == {"auto": "zscore"}.get(rule, rule)


@pytest.mark.parametrize("scale", ["Moderated", "std", 3.0, None])
def test_an_unknown_scale_is_refused(scale):
    X, y = make_data(0)
    with pytest.raises(ValueError, match=r"scale=.* is unknown\. Use 'auto', 'moderated' .*'zscore' .*'none' "):
        L20Selector(3, scale=scale).fit(X, y)


@in_each_container
def test_a_feature_that_vanishes_beside_the_others_is_passed_over(container):
    """One in forty decides no percentile, and the square of its moderated deviation is 0."""
    X, Y = draw(1, spread=0.3)
    X[:, 9] *= 1e-200
    problem = make_problem(CONTAINERS[container](X), Y, scale="auto", ridge=0.5)
    assert problem.design.scale_rule == "moderated"
    assert 9 not in forward(problem, 5).indices
