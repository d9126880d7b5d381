from __future__ import annotations

import warnings
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from l20fs.objective.least_squares import LeastSquares
from l20fs.solvers import Schedule, ahiht, hiht, lazy
from l20fs.solvers.homotopy import Walk

SEEDS = st.integers(0, 2**32 - 1)
LAYOUTS = {"dense": np.asarray, "csr": sp.csr_array}


def draw(seed, n_samples=20, n_features=40, n_classes=3, dtype=np.float64):
    """Features of all lengths, some correlated, some with a mean far from zero, one constant, some decisive."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_samples, n_features)) + random.standard_normal((n_samples, 1))
    X *= random.uniform(0.2, 3.0, n_features)
    X[:, ::5] *= random.random((n_samples, len(X[0, ::5]))) < 0.3
    X[:, 1::5] += 5.0
    X[:, 3] = 2.0
    y = np.concatenate([np.arange(n_classes), random.integers(0, n_classes, n_samples - n_classes)])
    X[:, :3] += y[:, None]
    return X.astype(dtype), np.eye(n_classes)[y]


def solve(solver, problem, schedule, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not every lambda converges within the limit
        return solver(problem, schedule, **options)


def assert_same_path(path, plain):
    """A product of a few features may be rounded differently than that of all: 1e-16 per step, hence not bit for bit."""
    assert np.array_equal(path.indptr, plain.indptr)
    assert np.array_equal(path.indices, plain.indices)
    assert np.array_equal(path.n_iters, plain.n_iters)
    assert np.array_equal(path.rules, plain.rules)
    assert np.array_equal(path.order, plain.order)
    for name in ("alphas", "losses", "lipschitz", "norms", "scores"):
        assert np.allclose(getattr(path, name), getattr(plain, name), rtol=1e-10, atol=0), name
    size = np.abs(plain.coef_values).max(initial=0.0)
    assert np.allclose(path.coef_values, plain.coef_values, rtol=1e-10, atol=1e-12 * size)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("solver", [ahiht, hiht])
@given(
    seed=SEEDS,
    shape=st.tuples(st.integers(6, 25), st.integers(4, 60), st.integers(1, 4)),
    ridge=st.sampled_from([0.0, 0.3]),
    scale=st.sampled_from(["none", "zscore", "moderated"]),
    rate=st.sampled_from([0.5, 0.9, 0.97]),
    lipschitz_factor=st.sampled_from([0.05, 1.0]),
    n_kept=st.sampled_from([2, 3, 5, 16]),
    share=st.sampled_from([0.1, 0.5, 1.0]),
)
@settings(max_examples=12)
def test_the_path_is_that_of_the_plain_loop(
    layout, solver, seed, shape, ridge, scale, rate, lipschitz_factor, n_kept, share
):
    n_samples, n_features, n_targets = shape
    X, _ = draw(seed, n_samples, n_features)
    Y = np.random.default_rng(seed).standard_normal((n_samples, n_targets))
    problem = LeastSquares(LAYOUTS[layout](X), Y, ridge=ridge, scale=scale)
    # Fewer rows than would fit Y exactly: what is left of a residual then is rounding, and so is the path.
    n_rows = min(15, n_samples // 2, n_features // 2)
    schedule = Schedule(n_rows=n_rows, rate=rate, lipschitz_start=lipschitz_factor * problem.lipschitz_lower)
    options = {"max_iter": 30} if solver is hiht else {}
    plain = solve(solver, problem, schedule, lazy=False, **options)
    with mock.patch.multiple(lazy, N_KEPT=n_kept, SCATTERED_SHARE=share):
        path = solve(solver, problem, schedule, lazy=True, **options)
    assert_same_path(path, plain)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=SEEDS, n_kept=st.sampled_from([2, 16]), ridge=st.sampled_from([0.0, 0.3]))
@settings(max_examples=8)
def test_no_bound_is_ever_violated(layout, dtype, seed, n_kept, ridge):
    """At every point of a walk, for every zero row, in the precision in which the plain loop computes."""
    X, Y = draw(seed, dtype=dtype)
    problem = LeastSquares(LAYOUTS[layout](X), Y, ridge=ridge)
    with mock.patch.multiple(lazy, N_KEPT=n_kept, SCATTERED_SHARE=1.0):
        walk = Walk(problem, Schedule(), lazy=True)
        lam = float(walk.point.gradient.squared_norms.max()) / (2 * walk.L)
        n_decided = 0
        for _ in range(60):
            walk.step(lam)
            point = walk.point
            plain = problem.gradient(point.residual, point.rows, point.values)
            bounds = walk._gradient.bounds.at(point.residual)
            zero = ~point.is_active
            assert np.all(bounds[zero] >= np.sqrt(plain.squared_norms[zero].astype(np.float64)))
            lam *= 0.9
            threshold = np.sqrt(2 * lam * walk.L)
            n_decided += np.count_nonzero(bounds[zero] < threshold)
            # What the plain loop lets in, the lazy one lets in: up to the last digits, which two products need not share.
            is_above = point.gradient.above(threshold)
            assert np.all(is_above[zero & (plain.squared_norms > threshold**2)])
            room = 1e-4 if dtype == np.float32 else 1e-5
            assert not np.any(is_above[zero & (plain.squared_norms < (threshold * (1 - room)) ** 2)])
            assert np.allclose(
                point.gradient.at(np.flatnonzero(is_above | point.is_active)),
                plain.at(np.flatnonzero(is_above | point.is_active)),
                rtol=0,
                atol=2000 * np.finfo(dtype).eps * np.linalg.norm(X) * np.linalg.norm(point.residual),
            )
    assert n_decided > 0
