"""One measurement of columns: equal moments, constancy and selection in every container."""

from __future__ import annotations

import array_api_strict
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from blocked import cut
from hypothesis import given, settings
from hypothesis import strategies as st

from l20fs import L20Selector
from l20fs.design import make_design
from l20fs.design.column_scale import scaled
from l20fs.design.moments import CONSTANT_SHARE, LEAST_RANGE, centre, centred, is_varying, measure, varying_columns
from l20fs.methods import FisherScore

CONTAINERS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "rows": lambda X: cut(X, 0, 3),
    "columns": lambda X: cut(X, 1, 3),
    "csr rows": lambda X: cut(sp.csr_array(X), 0, 3),
    "csc columns": lambda X: cut(sp.csc_array(X), 1, 3),
    "array API": array_api_strict.asarray,
}

ULP = np.spacing(1e8)


def exact_deviations(X, weights=None):
    """Deviations in extended precision from exact differences."""
    shifted = (X - X[0]).astype(np.longdouble)
    mean = np.average(shifted, axis=0, weights=weights)
    return np.sqrt(np.average((shifted - mean) ** 2, axis=0, weights=weights)).astype(float)


def draw(seed, n_samples=40, n_features=12):
    """Return columns with offsets of up to 1e12 deviations, one constant column and a full one of zeros."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n_samples)
    y[:3] = range(3)
    X = rng.standard_normal((n_samples, n_features)) + np.eye(3)[y] @ rng.standard_normal((3, n_features))
    X = X * 2.0 ** rng.integers(-3, 4, n_features)
    X += 10.0 ** rng.uniform(0, 12, n_features) * X.std(axis=0) * rng.choice([-1, 0, 1], n_features)
    X[:, 3], X[:, 7] = 10.0 ** rng.uniform(-3, 6), 0.0
    return X, y


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_moments_do_not_depend_on_the_container(container, weighted, seed):
    X, _ = draw(seed)
    weights = np.random.default_rng(seed).integers(0, 4, len(X)) + (np.arange(len(X)) < 2) * 1.0 if weighted else None
    design = make_design(CONTAINERS[container](X), "zscore", weights)
    assert np.flatnonzero(~design.varies).tolist() == [3, 7]
    varies = design.varies
    np.testing.assert_allclose(design.scale[varies], exact_deviations(X[:, varies], weights), rtol=1e-6)
    np.testing.assert_allclose(design.mean, np.average(X, axis=0, weights=weights), rtol=1e-14, atol=1e-12)
    np.testing.assert_allclose(design.column_energy[varies], len(X) if weights is None else weights.sum(), rtol=1e-6)


@pytest.mark.parametrize("container", CONTAINERS)
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_columns_are_centred_to_the_last_digit(container, seed):
    """With fewer samples than features, where blocks of columns give columns and not lines of a Gram matrix."""
    X, _ = draw(seed, n_samples=9, n_features=30)
    design = make_design(CONTAINERS[container](X), "zscore")
    shifted = (X - X[0]).astype(np.longdouble)
    for row in np.flatnonzero(design.varies):
        deviations = (shifted - shifted.mean(axis=0))[:, row].astype(float)
        if design.vectors == "samples":
            np.testing.assert_allclose(
                design.column(row) * design.scale[row], deviations, atol=1e-7 * np.abs(deviations).max()
            )


@pytest.mark.parametrize("container", CONTAINERS)
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_the_selection_does_not_depend_on_the_container(container, seed):
    X, y = draw(seed)
    expected = L20Selector(4).fit(X, y)
    merits = -np.diff(expected.path_.losses)
    found = L20Selector(4).fit(CONTAINERS[container](X), y)
    np.testing.assert_allclose(found.path_.losses, expected.path_.losses, rtol=1e-5)
    if (merits > 1e-6 * merits[0]).all():
        assert found.get_support().tolist() == expected.get_support().tolist()


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_column_that_varies_in_its_last_digits(container):
    """It is found wherever it lies: 19 units in the last place are more than rounding."""
    y = np.array([0, 1, 0, 1, 0, 1])
    X = np.column_stack([1e8 + 19 * ULP * y, [0.1, 0.9, 0.3, 0.7, 0.8, 0.2]])
    found = L20Selector(1, max_memory="1G").fit(CONTAINERS[container](X), y)
    assert found.get_support(indices=True).tolist() == [0]


def test_a_column_that_varies_in_its_last_digits_from_dask_and_from_a_file(tmp_path):
    y = np.tile([0, 1], 30)
    X = np.random.default_rng(0).standard_normal((60, 4))
    X[:, 2] = 1e8 + 19 * ULP * y
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for there in (da.from_array(X, chunks=(20, 4)), da.from_array(X, chunks=(60, 2)), mapped, X.astype(np.float64)):
        assert L20Selector(1).fit(there, y).get_support(indices=True).tolist() == [2]


@pytest.mark.parametrize(("offset", "step", "n_samples"), [(1e13, 2.0, 1000), (1e10, 1.0, 10**6)])
def test_neither_the_offset_nor_the_number_of_samples_makes_a_column_constant(offset, step, n_samples):
    y = np.arange(n_samples) % 2
    X = np.column_stack([np.random.default_rng(0).standard_normal(n_samples), offset + step * y])
    for there in (X, sp.csr_array(X), cut(X, 0, 3)):
        design = make_design(there, "zscore")
        assert design.varies.all()
        np.testing.assert_allclose(design.scale[1], step / 2, rtol=1e-9)
        assert L20Selector(1).fit(there, y).get_support(indices=True).tolist() == [1]
    assert FisherScore(1).fit(X, y).get_support(indices=True).tolist() == [1]


@given(st.floats(-1e300, 1e300), st.integers(0, 12))
def test_the_rule_of_constancy(value, n_steps):
    """Four units of rounding are none; the rule is about values, not about their number or place."""
    other = value
    for _ in range(n_steps):
        other = np.nextafter(other, np.inf)
    expected = bool(other - value > max(CONSTANT_SHARE * max(abs(value), abs(other)), LEAST_RANGE))
    for n_samples in (2, 9):
        X = np.full((n_samples, 1), value)
        X[-1] = other
        assert varying_columns(X).tolist() == measure(X).varies.tolist() == [expected]
        assert measure(sp.csr_array(X)).varies.tolist() == [expected]
    assert is_varying(np.array([value]), np.array([other])).tolist() == [expected]


@pytest.mark.parametrize("scale", ["none", "zscore", "moderated"])
@pytest.mark.parametrize("container", CONTAINERS)
def test_constant_columns_change_nothing(container, scale):
    """The ridge is relative to the columns that vary."""
    X, y = draw(5)
    X = np.delete(X, [3, 7], axis=1) - 1.0
    longer = np.hstack([X, np.zeros((len(X), 60)), np.full((len(X), 30), 2.5)])
    short, long = (L20Selector(5, scale=scale).fit(CONTAINERS[container](part), y) for part in (X, longer))
    assert long.get_support(indices=True).tolist() == short.get_support(indices=True).tolist()
    np.testing.assert_allclose(long.path_.losses, short.path_.losses, rtol=1e-9)
    np.testing.assert_allclose(long.coef_[:, : X.shape[1]], short.coef_, rtol=1e-6, atol=1e-12)


def test_a_sample_that_weighs_nothing_beside_the_others_does_not_count():
    X = np.column_stack([np.r_[5.0, np.ones(9)], np.arange(10.0)])
    weights = np.r_[1e-20, np.ones(9)]
    for container in CONTAINERS.values():
        assert make_design(container(X), sample_weight=weights).varies.tolist() == [False, True]


def test_centred_and_standardised_copies():
    X, _ = draw(11)
    before = X.copy()
    varies = varying_columns(X)
    np.testing.assert_allclose(centred(X)[:, varies].std(axis=0), exact_deviations(X[:, varies]), rtol=1e-6)
    np.testing.assert_allclose(scaled(X, "zscore")[:, varies].std(axis=0), 1.0, rtol=1e-9)
    assert not scaled(X, "zscore")[:, ~varies].any()
    np.testing.assert_array_equal(X, before)


def test_centre_with_weights_of_zero():
    X = np.array([[1.0, 1e300], [3.0, 2.0], [8.0, 4.0]])
    found = centre(X.copy(), X, np.array([0.0, 1.0, 1.0]))
    np.testing.assert_allclose(found.mean, [5.5, 3.0])
    np.testing.assert_allclose(found.squares, [12.5, 2.0])
