from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from l20fs.objective.prox import keep_best_rows, keep_heavy_rows, order_descending, shrink_rows

MATRICES = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(-5, 5, allow_subnormal=False)
)


@given(MATRICES, st.floats(0.01, 10), st.floats(0.1, 10))
def test_hard_threshold_minimises_row_by_row(V, lam, L):
    """Each row is compared with its only alternatives, 0 and itself: L/2 ||w - v||^2 + lam [w != 0]."""
    W = keep_heavy_rows(V, np.sqrt(2 * lam / L))
    for w, v in zip(W, V, strict=True):
        cost = L / 2 * np.sum((w - v) ** 2) + lam * np.any(w != 0)
        assert cost <= min(L / 2 * np.sum(v**2), lam * np.any(v != 0)) * (1 + 1e-12) + 1e-300
        assert np.array_equal(w, v) or not w.any()


def test_hard_threshold_sends_ties_to_zero():
    assert not keep_heavy_rows(np.array([[3.0, 4.0]]), threshold=5.0).any()
    assert keep_heavy_rows(np.array([[3.0, 4.0]]), threshold=np.nextafter(5.0, 0)).any()


@given(MATRICES, st.integers(0, 6))
def test_best_rows_are_the_closest_row_sparse_matrix(V, k):
    W = keep_best_rows(V, k)
    norms = np.sum(V**2, axis=1)
    assert np.any(W != 0, axis=1).sum() <= k
    expected = np.sort(norms)[::-1][k:].sum()
    assert np.sum((V - W) ** 2) == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_best_rows_break_ties_to_the_lower_index():
    assert keep_best_rows(np.array([[1.0], [2.0], [-2.0], [2.0]]), 2).ravel().tolist() == [0.0, 2.0, -2.0, 0.0]


@given(MATRICES, st.floats(0.01, 3), st.integers(0, 2**32 - 1))
def test_soft_threshold_minimises(V, amount, seed):
    """No perturbation of the result lowers 1/2 ||W - V||^2 + amount ||W||_{2,1}: the problem is convex."""
    W = shrink_rows(V, amount)

    def cost(Z):
        return 0.5 * np.sum((Z - V) ** 2) + amount * np.sqrt(np.sum(Z**2, axis=1)).sum()

    other = W + 1e-3 * np.random.default_rng(seed).standard_normal(V.shape)
    assert cost(W) <= cost(other) + 1e-12


def test_operators_leave_their_input_alone():
    V = np.array([[3.0, 4.0], [0.1, 0.2]])
    before = V.copy()
    keep_heavy_rows(V, 1.0), keep_best_rows(V, 1), shrink_rows(V, 1.0)
    assert np.array_equal(V, before)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        ([2.0], [0]),
        ([1.0, 3.0, 2.0], [1, 2, 0]),
        ([1.0, 1.0, 1.0], [0, 1, 2]),
        ([1.0, 1.0 + 1e-12, 2.0], [2, 0, 1]),
        ([1.0, 2.0, 1.0, 3.0, 2.0], [3, 1, 4, 0, 2]),
        ([1.0, 1.0, 2.0, 2.0], [2, 3, 0, 1]),
        ([np.nan, -np.inf, 0.0, np.nan], [2, 0, 1, 3]),
        ([-np.inf, 5.0, -np.inf], [1, 0, 2]),
    ],
)
def test_order_is_descending_with_ties_to_the_lower_index(values, expected):
    assert order_descending(np.array(values)).tolist() == expected


def test_order_on_a_device_is_that_of_numpy():
    random = np.random.default_rng(0)
    values = np.concatenate(
        [random.integers(0, 9, 40) * (1.0 + 1e-8 * random.uniform(size=40)), [-np.inf, np.nan, -np.inf, 0.0]]
    )
    random.shuffle(values)
    for rtol in (1e-9, 1e-6):
        found = order_descending(array_api_strict.asarray(values), rtol=rtol)
        assert np.asarray(found).tolist() == order_descending(values, rtol=rtol).tolist()
