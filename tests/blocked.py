"""Dask arrays for several test files."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp


def cut(X, axis, n_blocks):
    """Cut an array or a sparse matrix into a Dask array with blocks of almost the same size."""
    edges = np.unique(np.linspace(0, X.shape[axis], n_blocks + 1).astype(int))
    if sp.issparse(X):
        X = X.tocsr() if axis == 0 else X.tocsc()
    chunks = tuple(tuple(np.diff(edges).tolist()) if i == axis else X.shape[i] for i in (0, 1))
    return pytest.importorskip("dask.array").from_array(X, chunks=chunks, asarray=False)


def make_counts(seed, n_samples, n_features, n_classes=3, density=0.5):
    """Sparse features, a third of which are larger in one class, and the classes."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_samples) % n_classes)
    X = rng.gamma(2.0, 1.0, (n_samples, n_features)) * (rng.random((n_samples, n_features)) < density)
    X[:, ::3] += rng.random(X[:, ::3].shape[1]) * (y[:, None] == rng.integers(n_classes, size=X[:, ::3].shape[1]))
    return X, y
