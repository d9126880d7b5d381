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


@pytest.mark.parametrize("container", CONTAINERS)
@given(scale=st.sampled_from(["none", "zscore", "moderated"]))
@settings(max_examples=3)
def test_constant_columns_change_nothing(container, scale):
    """The ridge is relative to the columns that vary."""
    X, y = draw(5)
    X = np.delete(X, [3, 7], axis=1) - 1.0
    longer = np.hstack([X, np.zeros((len(X), 60)), np.full((len(X), 30), 2.5)])
    short, long = (L20Selector(5, scale=scale).fit(CONTAINERS[container](part), y) for part in (X, longer))
    assert long.get_support(indices=True).tolist() == short.get_support(indices=True).tolist()
    np.testing.assert_allclose(long.path_.losses, short.path_.losses, rtol=1e-9)
    np.testing.assert_allclose(long.coef_[:, : X.shape[1]], short.coef_, rtol=1e-6, atol=1e-12)
