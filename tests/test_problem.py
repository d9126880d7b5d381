from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import centred, loss

from l20fs.problem import LeastSquares
from l20fs.solvers import Schedule, ahiht

LAYOUTS = {
    "dense": lambda X: X,
    "fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "csr_matrix": sp.csr_matrix,
}


def draw(seed, n_samples=15, n_features=9, n_targets=3, density=0.6):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_samples, n_features)) * (random.random((n_samples, n_features)) < density)
    X[:, 0] += 3.0  # a mean far from zero, which the centring has to take away
    return X, random.standard_normal((n_samples, n_targets)), random.standard_normal((n_features, n_targets))


def evaluate(problem, W):
    rows = np.arange(problem.n_features)
    residual = problem.residual(rows, W.T)
    return problem.value(residual, W.T), problem.gradient(residual, rows, W.T)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("ridge", [0.0, 0.7])
@given(seed=st.integers(0, 2**32 - 1))
def test_value_and_gradient_match_the_definition(layout, ridge, seed):
    X, Y, W = draw(seed)
    problem = LeastSquares(LAYOUTS[layout](X), Y, ridge=ridge)
    Xc, Yc = centred(X, Y)
    mu = ridge * np.mean(np.sum(Xc**2, axis=0))
    value, gradient = evaluate(problem, W)
    assert value == pytest.approx(loss(Xc, Yc, W, mu), rel=1e-10)
    expected = Xc.T @ (Xc @ W - Yc) + mu * W
    assert np.allclose(gradient.values.T, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    assert np.allclose(gradient.squared_norms, np.sum(expected**2, axis=1), rtol=1e-8, atol=1e-12)


@given(seed=st.integers(0, 2**32 - 1), ridge=st.floats(0, 2))
def test_gradient_matches_finite_differences(seed, ridge):
    X, Y, W = draw(seed)
    problem = LeastSquares(X, Y, ridge=ridge)
    _, gradient = evaluate(problem, W)
    direction = np.random.default_rng(seed).standard_normal(W.shape)
    step = 1e-5  # f is quadratic, so the central difference is exact up to rounding
    slope = (evaluate(problem, W + step * direction)[0] - evaluate(problem, W - step * direction)[0]) / (2 * step)
    assert slope == pytest.approx(np.sum(gradient.values.T * direction), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scale", ["none", "zscore"])
def test_design_statistics(layout, scale):
    X, Y, _ = draw(3)
    design = LeastSquares(LAYOUTS[layout](X), Y, scale=scale).design
    Xc = X - X.mean(axis=0)
    if scale == "zscore":
        Xc = Xc / Xc.std(axis=0)
        assert np.allclose(design.scale, X.std(axis=0))
    assert np.allclose(design.mean, X.mean(axis=0))
    assert np.allclose(design.column_energy, np.sum(Xc**2, axis=0))
    assert design.max_sample_energy == pytest.approx(np.sum(Xc**2, axis=1).max())
    assert np.allclose(design.take(np.array([4, 1]), slice(2, 7)), Xc[2:7, [4, 1]])
    values = np.arange(6.0).reshape(3, 2)
    assert np.allclose(design.push(np.array([4, 1]), values), values @ Xc[:, [4, 1]].T)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scale", ["none", "zscore"])
@pytest.mark.parametrize("n_rows", [0, 1, 9, 400])
def test_gradient_of_a_few_features(layout, scale, n_rows, monkeypatch):
    """Some of the columns of the whole gradient, in blocks or at once; a constant feature has none, though 5 is stored."""
    monkeypatch.setattr("l20fs.design.BLOCK_ELEMENTS", 1 << 8)
    X, Y, _ = draw(3, n_features=500)
    X[:, 7] = 5.0
    problem = LeastSquares(LAYOUTS[layout](X), Y, ridge=0.3, scale=scale)
    random = np.random.default_rng(1)
    rows, residual = random.permutation(500)[:n_rows], problem.targets
    whole, part = problem.gradient(residual, rows[:0], np.zeros((3, 0))), problem.partial_gradient(residual, rows)
    assert np.allclose(part.values, whole.values[:, rows], rtol=1e-12, atol=1e-12)
    assert np.allclose(part.squared_norms, whole.squared_norms[rows], rtol=1e-12)
    assert np.all(part.values[:, rows == 7] == 0.0)
    values = random.standard_normal((3, n_rows))
    with_weights = problem.partial_gradient(residual, rows, values).values
    assert np.allclose(with_weights, part.values + problem.ridge * values, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scale", ["none", "zscore"])
def test_no_product_is_longer_than_its_factors(layout, scale):
    """Whether or not the residual sums to zero, which is what rounding leaves of it; a feature along it gets there."""
    X, Y, _ = draw(3)
    X[:, 7] = 5.0
    design = LeastSquares(LAYOUTS[layout](X), Y, scale=scale).design
    norms = design.pull_norms()
    along = X / (1.0 if scale == "none" else design.scale)
    along = along - along.mean(axis=0) if layout in ("dense", "fortran") else along
    for residual in (along.T, np.ones((1, 15))):
        assert np.all(np.abs(design.pull(residual)) <= np.outer(np.linalg.norm(residual, axis=1), norms) * (1 + 1e-12))
    assert np.allclose(np.diag(design.pull(along.T)), norms**2)
    assert norms[7] == 0.0


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("shape", [(2, 5), (20, 400), (400, 20), (400, 300)])
def test_lipschitz_bounds(layout, shape):
    """The lower bound, the constant (within its 1 % where it is a Lanczos value) and the upper bound enclose the truth."""
    X = np.random.default_rng(0).standard_normal(shape)
    problem = LeastSquares(LAYOUTS[layout](X), np.random.default_rng(1).standard_normal((shape[0], 2)), ridge=0.1)
    Xc = X - X.mean(axis=0)
    truth = np.linalg.norm(Xc, 2) ** 2 + problem.ridge
    assert problem.lipschitz_lower <= truth * (1 + 1e-12)
    assert truth * (1 - 1e-9) <= problem.lipschitz <= truth * 1.03
    assert problem.lipschitz <= problem.lipschitz_upper * (1 + 1e-12)


def test_lipschitz_of_sparse_columns_far_from_zero():
    """Their mean must not leak into the eigenvalue."""
    X = sp.random(400, 500, 0.05, format="csr", random_state=0)
    X.data += 3.0
    problem = LeastSquares(X, np.random.default_rng(1).standard_normal((400, 2)))
    dense = X.toarray()
    truth = np.linalg.norm(dense - dense.mean(axis=0), 2) ** 2
    assert truth <= problem.lipschitz <= 1.02 * truth


def test_float32_keeps_its_digits_behind_a_large_mean():
    """Mean 1000, deviation 1: centring in float64 before rounding keeps the relative gradient error near 1e-6."""
    random = np.random.default_rng(0)
    X = (1000 + random.standard_normal((200, 300))).astype(np.float32)
    Y = random.standard_normal((200, 4))
    single, double = LeastSquares(X, Y), LeastSquares(X.astype(np.float64), Y)
    assert single.dtype == np.float32
    nothing = np.arange(0), np.zeros((4, 0))
    g32 = single.gradient(-single.targets, *nothing).values
    g64 = double.gradient(-double.targets, *nothing).values
    assert g32.dtype == np.float32
    assert np.linalg.norm(g32 - g64) <= 2e-6 * np.linalg.norm(g64)


@given(seed=st.integers(0, 2**32 - 1), ridge=st.sampled_from([0.0, 0.5]))
@settings(max_examples=30)
def test_panel_factor_solves_every_prefix(seed, ridge):
    X, Y, _ = draw(seed, n_samples=12, n_features=9, density=1.0)
    problem = LeastSquares(X, Y, ridge=ridge)
    rows = np.random.default_rng(seed).permutation(9)
    triangle, right = problem.panel_factor(rows)
    Xc, Yc = centred(X, Y)
    for k in range(1, 10):
        columns = Xc[:, rows[:k]]
        expected = np.linalg.solve(columns.T @ columns + problem.ridge * np.eye(k), columns.T @ Yc)
        assert np.allclose(np.linalg.lstsq(triangle[:, :k], right, rcond=None)[0], expected, rtol=1e-6, atol=1e-8)


def test_panel_factor_in_blocks_of_samples(monkeypatch):
    X, Y, _ = draw(5, n_samples=100, density=1.0)
    problem = LeastSquares(X, Y, ridge=0.1)
    whole = problem.panel_factor(np.arange(5))
    monkeypatch.setattr("l20fs.problem.BLOCK_ELEMENTS", 1)
    blocked = problem.panel_factor(np.arange(5))
    assert np.allclose(np.abs(whole[0]), np.abs(blocked[0]))
    assert np.allclose(whole[0].T @ whole[1], blocked[0].T @ blocked[1])


def test_memory_is_one_copy_of_x_and_little_else():
    """Beyond X and its centred copy: a few blocks of 2^18 numbers, and arrays of the sizes of W and Y."""
    n_samples, n_features, n_targets = 1000, 8000, 4
    random = np.random.default_rng(0)
    X = random.standard_normal((n_samples, n_features))
    Y = np.eye(n_targets)[random.integers(0, n_targets, n_samples)]
    tracemalloc.start()
    try:
        ahiht(LeastSquares(X, Y), Schedule(n_rows=200))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    blocks = 4 * 2**18 * 8
    assert peak - X.nbytes <= blocks + 20 * 8 * n_targets * (n_features + n_samples)


def test_sparse_x_is_neither_made_dense_nor_changed():
    X = sp.random_array((500, 4000), density=0.01, format="csr", random_state=np.random.default_rng(0))
    Y = np.eye(3)[np.random.default_rng(0).integers(0, 3, 500)]
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    tracemalloc.start()
    try:
        ahiht(LeastSquares(X, Y, scale="zscore"), Schedule(n_rows=20))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.3 * 8 * X.shape[0] * X.shape[1]
    assert all(np.array_equal(a, b) for a, b in zip(before, (X.data, X.indices, X.indptr), strict=True))
