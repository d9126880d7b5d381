"""The active set: what one row more or less would change, against the definition with dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import minimum

from l20fs.objective.least_squares import LeastSquares
from l20fs.solvers.active_sets import rows as rows_module
from l20fs.solvers.active_sets.basis import FeatureBasis, SampleBasis
from l20fs.solvers.active_sets.rows import RowActiveSet

SEEDS = st.integers(0, 2**32 - 1)
SHAPES = st.sampled_from([(12, 30), (40, 9)])
RIDGES = st.sampled_from([0.0, 1e-6, 0.5, 20.0])
FORMS = st.sampled_from([np.asarray, sp.csc_array, sp.csr_array])


def draw(seed, shape, n_targets=3):
    random = np.random.default_rng(seed)
    X = random.standard_normal(shape) * (random.uniform(size=shape) < 0.7) * random.uniform(0.5, 2.0, shape[1])
    return X, random.standard_normal((shape[0], n_targets))


def definition(X, Y, rows, mu):
    """q, c and M for all columns, by the formulas; with mu = 0 the projection on the complement of the columns."""
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    columns = X[:, rows]
    if mu:
        M = np.linalg.inv(np.eye(len(X)) + columns @ columns.T / mu)
    else:
        M = np.eye(len(X)) - columns @ np.linalg.pinv(columns)
    return np.einsum("ij,ij->j", X, M @ X), X.T @ M @ Y, M @ Y


def assert_true(active, X, Y):
    """Everything the active set says agrees with the definition."""
    mu = active.problem.ridge
    energies, products, residual = definition(X, Y, active.rows, mu)
    scale = np.abs(X).max() ** 2 * len(X)
    np.testing.assert_allclose(active.energies, energies, atol=1e-10 * scale)
    np.testing.assert_allclose(active.products.T, products, atol=1e-10 * scale)
    np.testing.assert_allclose(active.residual.T, residual, atol=1e-10 * scale)
    for size, value in enumerate(active.losses):
        assert value == pytest.approx(minimum(X, Y, active.rows[:size], mu)[0], rel=1e-9, abs=1e-10)
    np.testing.assert_allclose(active.weights, minimum(X, Y, active.rows, mu)[1].T, rtol=1e-6, atol=1e-8)


@given(seed=SEEDS, container=FORMS, shape=SHAPES, ridge=RIDGES)
@settings(max_examples=30)
def test_rows_come_and_go_and_the_active_set_keeps_to_the_definition(container, shape, ridge, seed):
    X, Y = draw(seed, shape)
    active = RowActiveSet(LeastSquares(container(X), Y, ridge=ridge))
    assert isinstance(active.basis, SampleBasis if shape[0] <= shape[1] else FeatureBasis)
    random = np.random.default_rng(seed)
    for row in random.permutation(shape[1])[:5]:
        active.add(int(row))
    assert_true(active, X, Y)
    active.remove(int(random.integers(5)))
    active.remove(0)
    active.add(int(next(j for j in range(shape[1]) if j not in active.rows)))
    assert_true(active, X, Y)
    other = RowActiveSet(active.problem, active.rows)
    np.testing.assert_allclose(other.gains(), active.gains(), rtol=1e-7, atol=1e-11)
    assert other.rows == active.rows


@given(seed=SEEDS, shape=SHAPES, ridge=RIDGES)
@settings(max_examples=25)
def test_gains_and_losses_are_differences_of_minima(shape, ridge, seed):
    X, Y = draw(seed, shape)
    active = RowActiveSet(LeastSquares(X, Y, ridge=ridge), [2, 4, 6])
    mu, value = active.problem.ridge, active.loss
    gains = active.gains()
    for row in range(shape[1]):
        gain = 0.0 if row in active.rows else value - minimum(X, Y, [*active.rows, row], mu)[0]
        assert gains[row] == pytest.approx(gain, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("start", ["any rows", "the best rows"])
@given(seed=SEEDS, container=FORMS, shape=SHAPES, ridge=RIDGES)
@settings(max_examples=20)
def test_the_best_exchange_is_the_best_of_all_pairs(container, shape, ridge, start, seed):
    X, Y = draw(seed, shape)
    active = RowActiveSet(LeastSquares(container(X), Y, ridge=ridge), [2, 4, 6] if start == "any rows" else [])
    if start == "the best rows":
        assert active.grow(3) == 3
    mu = active.problem.ridge
    values = {
        (position, row): minimum(X, Y, [*(r for r in active.rows if r != active.rows[position]), row], mu)[0]
        for position in range(3)
        for row in range(shape[1])
        if row not in active.rows
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "FEWEST_CANDIDATES", 2)  # so few that others are often better, and bounds decide
        best = active.best_exchange()
    assert best.decrease == pytest.approx(active.loss - min(values.values()), rel=1e-6, abs=1e-9)
    assert values[best.position, best.unit] == pytest.approx(min(values.values()), rel=1e-9, abs=1e-9)
