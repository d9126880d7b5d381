from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from l20fs.methods._linalg import project_on_simplex, smooth_row_norms, solve_positive, squared_spectral_norm, weighted_ridge


@given(seed=st.integers(0, 2**32 - 1), shape=st.sampled_from([(5, 9), (9, 5), (6, 6)]))
def test_weighted_ridge_in_both_forms_is_the_stationary_point(seed, shape):
    random = np.random.default_rng(seed)
    X, Y = random.standard_normal(shape), random.standard_normal((shape[0], 3))
    p, s = random.uniform(0.1, 2, shape[1]), random.uniform(0.1, 2, shape[0])
    dual, primal = (weighted_ridge(X, Y, p, s, form=form) for form in ("dual", "primal"))
    assert np.allclose(dual, primal, rtol=1e-8, atol=1e-10)
    assert np.allclose(weighted_ridge(X, Y, p, s), dual)
    gradient = X.T @ ((X @ dual - Y) / s[:, None]) + dual / p[:, None]
    assert np.abs(gradient).max() < 1e-8


@pytest.mark.parametrize("form", ["dual", "primal"])
def test_a_feature_of_weight_zero_gets_no_coefficient(form):
    random = np.random.default_rng(0)
    X, Y = random.standard_normal((6, 4)), random.standard_normal((6, 2))
    W = weighted_ridge(X, Y, np.array([1.0, 0.0, 2.0, 1.0]), np.ones(6), form=form)
    assert not W[1].any()
    without = weighted_ridge(X[:, [0, 2, 3]], Y, np.array([1.0, 2.0, 1.0]), np.ones(6), form=form)
    assert np.allclose(W[[0, 2, 3]], without)


def test_a_singular_system_is_lifted():
    A = np.ones((3, 3))
    Z = solve_positive(A.copy(), np.zeros(3), np.ones((3, 1)))
    assert np.allclose(A @ Z, 1.0, atol=1e-6)


@given(seed=st.integers(0, 2**32 - 1))
def test_simplex_projection_is_the_closest_point(seed):
    random = np.random.default_rng(seed)
    V = 3 * random.standard_normal((4, 5))
    P = project_on_simplex(V)
    assert np.all(P >= 0)
    assert np.allclose(P.sum(axis=1), 1)
    others = random.dirichlet(np.ones(5), size=(50, 4))
    assert np.all(np.sum((others - V) ** 2, axis=2) >= np.sum((P - V) ** 2, axis=1) - 1e-9)


def test_smooth_norms():
    assert smooth_row_norms(np.array([[3.0, 4.0], [0.0, 0.0]]), 1e-3) == pytest.approx([5.0, 1e-3], rel=1e-6)


@pytest.mark.parametrize("shape", [(4, 9), (9, 4), (5, 5)])
def test_spectral_norm_of_either_shape(shape):
    X = np.random.default_rng(0).standard_normal(shape)
    assert squared_spectral_norm(X) == pytest.approx(np.linalg.norm(X, 2) ** 2, rel=1e-12)
