"""Products of sparse columns with each other, against those of the dense matrix."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from l20fs.design import kernels, make_design

N_SAMPLES, N_FEATURES, CONSTANT, THICK = 120, 30, 4, slice(0, 3)


def make_thin(seed=0):
    """Columns with 4 % of values, three with half of them and a constant one."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(N_SAMPLES, N_FEATURES)) * rng.uniform(0.1, 10.0, N_FEATURES)
    X[rng.random(X.shape) > np.where(np.arange(N_FEATURES) < THICK.stop, 0.5, 0.04)] = 0.0
    X[:, CONSTANT] = 3.0
    return X, rng


@pytest.mark.parametrize("gathered", [1 << 21, 40], ids=["at once", "in parts"])
@pytest.mark.parametrize("units", ["plain", "weights", "no intercept", "nuisances"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gram_lines(dtype, units, gathered, monkeypatch):
    monkeypatch.setattr(kernels, "GATHERED", gathered)
    X, rng = make_thin()
    options = {
        "plain": {},
        "weights": {"sample_weight": rng.integers(0, 3, N_SAMPLES).astype(float)},
        "no intercept": {"fit_intercept": False},
        "nuisances": {"nuisances": rng.standard_normal((N_SAMPLES, 2)), "sample_weight": rng.random(N_SAMPLES)},
    }[units]
    design = make_design(sp.csr_array(X.astype(dtype)), "zscore", **options)
    whole = make_design(X.astype(dtype).astype(np.float64), "zscore", **options).take(np.arange(N_FEATURES), slice(None))
    rows = np.array([20, 1, 7, CONSTANT, 8])
    tolerance = (1e-12 if dtype == np.float64 else 1e-5) * N_SAMPLES
    np.testing.assert_allclose(design.gram_lines(rows), whole[:, rows].T @ whole, atol=tolerance)


def test_there_are_no_gram_lines_where_they_save_nothing():
    X, _ = make_thin()
    assert make_design(sp.csr_array(X)).gram_lines(np.arange(THICK.stop)) is None
    assert make_design(sp.csc_array(X)).gram_lines(np.arange(10, 12)) is None  # samples are not found quickly
    assert make_design(X).gram_lines(np.arange(10, 12)) is None
    X[:, 1] = 1e6 + np.arange(N_SAMPLES)  # centred in place, to keep its digits
    assert make_design(sp.csr_array(X)).gram_lines(np.arange(10, 12)) is None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array])
def test_gram_lines_of_a_block(container, weighted):
    """The means are those of all samples, not of this block; that of the feature itself is not subtracted."""
    X, rng = make_thin()
    weights = rng.random(N_SAMPLES) if weighted else None
    columns = kernels.Columns(1.1 * X.mean(axis=0), np.zeros(N_FEATURES), X.std(axis=0) + 0.1, np.arange(0))
    rows = np.array([20, 1, 7, 8])
    found = kernels.gram_lines(container(X.astype(np.float32)), columns, weights, rows, is_plain=True)
    dense = X.astype(np.float32).astype(np.float64)
    own = (dense[:, rows] / columns.scale[rows]) * (1.0 if weights is None else weights[:, None])
    np.testing.assert_allclose(found, own.T @ ((dense - columns.mean) / columns.scale), rtol=1e-12, atol=1e-12)
