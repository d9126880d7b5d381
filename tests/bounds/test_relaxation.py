from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import CONTAINERS
from scipy.optimize import minimize
from supports import all_losses, dense, powers_of_ten, problems

from l20fs.bounds.relaxation import Cut, measure, relax
from l20fs.design import base
from l20fs.objective.least_squares import LeastSquares

SEEDS = st.integers(0, 2**32 - 1)


def make_problem(seed=0, n_samples=30, n_features=200, n_targets=3, ridge=1.0, **options):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_samples, n_features))
    Y = X[:, :5] @ random.standard_normal((5, n_targets)) + 0.5 * random.standard_normal((n_samples, n_targets))
    return LeastSquares(X, Y, ridge=ridge, **options)


def solve(problem, k, *, tol=1e-6, start=None, **face):
    start = np.arange(problem.n_features) if start is None else start
    *_, last = relax(problem, k, start=start, tol=tol, **face)
    return last


def relaxed_value(problem, shares):
    """The value of the relaxation from its definition; shares are (n_features,)."""
    X, targets = dense(problem), problem.targets
    M = np.linalg.inv(np.eye(len(X)) + (X * shares) @ X.T / problem.ridge)
    return 0.5 * np.sum(targets * (targets @ M))


@given(problem=problems(), seed=SEEDS)
def test_a_cut_bounds_the_loss_of_every_support(problem, seed):
    """For whatever A: near the best one, and anywhere."""
    random = np.random.default_rng(seed)
    A = problem.targets * random.random() + random.standard_normal(problem.targets.shape) * 10.0 ** random.integers(-6, 2)
    for point in (A, problem.targets, np.zeros_like(A)):
        cut = measure(problem, point)
        by_size = cut.bounds_by_size()
        for support, loss in all_losses(problem).items():
            bound = cut.bound(cut.scores[list(support)].sum())
            # The brute force rounds as well.
            assert by_size[len(support)] <= bound * (1 + 1e-12) <= loss + 1e-12 * problem.null_loss


@given(seed=SEEDS, size=st.integers(1, 5))
def test_the_bound_of_a_size_is_that_of_its_heaviest_support(seed, size):
    scores = np.random.default_rng(seed).random(size)
    bounds = Cut(2.0, 1.0, scores).bounds_by_size()
    assert bounds == pytest.approx([2.0 / (1.0 + 2.0 * np.sort(scores)[size - k :].sum()) for k in range(size + 1)])


@settings(max_examples=50)
@given(seed=SEEDS, unit=powers_of_ten(-8, 8), n_targets=st.integers(1, 3), container=st.sampled_from(CONTAINERS))
def test_a_cut_is_rounded_to_the_safe_side(seed, unit, n_targets, container):
    """Against exact arithmetic: with columns nearly orthogonal to A, and far from zero in a sparse X."""
    random = np.random.default_rng(seed)
    half = random.integers(-1000, 1000, (n_targets, 32)).astype(float)
    A = np.hstack([half, -half])  # sums to zero exactly, so that centring does not change it
    X = random.standard_normal((64, 4))
    X[:, 1] = np.tile(X[:32, 1], 2) + 1e-14 * X[:, 2]
    X[:, 3] += 1e5
    problem = LeastSquares(container(X * unit), random.standard_normal((64, n_targets)), ridge=0.3)
    cut = measure(problem, A)
    columns, mu = dense(problem), Fraction(problem.ridge)
    exact_product = sum(Fraction(a) * Fraction(y) for a, y in zip(A.ravel(), problem.targets.ravel(), strict=True))
    assert Fraction(cut.product) <= max(exact_product, 0)
    assert Fraction(cut.energy) >= sum(Fraction(a) ** 2 for a in A.ravel())
    for j in range(4):
        pulls = [sum(Fraction(a) * Fraction(x) for a, x in zip(row, columns[:, j], strict=True)) for row in A]
        exact = sum(pull**2 for pull in pulls) / (2 * mu)
        assert exact <= Fraction(cut.scores[j])
        # No more is given away than the rounding of products of these lengths, of columns as they are stored.
        rounding = 1e3 * np.finfo(np.float64).eps * np.linalg.norm(A) * np.linalg.norm(X[:, j] * unit)
        length = np.sqrt(2.0 * problem.ridge * float(exact))
        assert np.sqrt(2.0 * problem.ridge * cut.scores[j]) <= length * (1.0 + 1e-9) + rounding


def test_float32_and_sparse_columns_far_from_zero_cost_no_digits():
    """The products are taken in float64; a mean of 1000 deviations must not be visible in a bound."""
    random = np.random.default_rng(0)
    X = (random.standard_normal((50, 80)) + 1000.0).astype(np.float32)
    Y = random.standard_normal((50, 2))
    single, double = LeastSquares(X, Y, ridge=1.0), LeastSquares(X.astype(np.float64), Y, ridge=1.0)
    sparse = LeastSquares(sp.csr_array(X), Y, ridge=1.0)
    bound = solve(double, 5).bound
    # X is centred in float64 and then stored in float32.
    assert solve(single, 5).bound == pytest.approx(bound, rel=3e-6)
    assert solve(sparse, 5).bound == pytest.approx(bound, rel=3e-6)


@settings(max_examples=50)
@given(problem=problems(), k=st.integers(1, 7), seed=SEEDS)
def test_the_relaxation_bounds_its_supports_and_is_solved(problem, k, seed):
    """With features forced in and out: below the loss of every support that is left, and as close as asked for."""
    random = np.random.default_rng(seed)
    features = random.permutation(problem.n_features)
    n_forced, n_excluded = random.integers(0, min(k, problem.n_features), size=2)
    forced, excluded = features[:n_forced], features[n_forced:][:n_excluded]
    is_free = problem.design.varies.copy()
    is_free[np.concatenate([forced, excluded])] = False
    last = solve(problem, k, tol=1e-4, forced=forced, is_free=is_free)
    may_have = set(np.flatnonzero(is_free)) | set(forced)
    for support, loss in all_losses(problem).items():
        if set(forced) <= set(support) <= may_have and len(support) <= k:
            assert last.bound <= loss + 1e-12 * problem.null_loss
    # Neither rounding nor a value that is rounding itself can be asked to meet a relative accuracy; a bound is safe against
    # what float32 has rounded off X.
    rounding = 1e-8 if problem.dtype == np.float64 else 1e-6
    assert last.value - last.bound <= 1.001e-4 * last.value + rounding * problem.null_loss
    assert last.bound <= last.value + 1e-9 * problem.null_loss


@pytest.mark.parametrize("ridge", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_shares_are_feasible_and_reach_the_value(ridge, k):
    problem = make_problem(ridge=ridge)
    last = solve(problem, k, start=np.arange(3))
    assert np.all((last.shares >= 0) & (last.shares <= 1))
    assert last.shares.sum() == pytest.approx(k, rel=1e-9)
    shares = np.zeros(problem.n_features)
    shares[last.rows] = last.shares
    assert last.value == pytest.approx(relaxed_value(problem, shares), rel=1e-7)
    assert last.bound == pytest.approx(last.value, rel=1e-6)


@pytest.mark.parametrize("start", [[], [7], range(50, 60), range(50, 200)])
def test_the_first_working_set_does_not_matter(start):
    problem = make_problem()
    expected = solve(problem, 4)
    got = solve(problem, 4, start=np.array(start, dtype=int))
    assert got.bound == pytest.approx(expected.bound, rel=2e-6)
    assert len(got.rows) < 100  # and a working set stays small


def test_a_working_set_is_solved_no_further_than_asked_for():
    problem = make_problem(ridge=0.1)
    n_working_sets = [len(list(relax(problem, 4, start=np.arange(10), tol=tol))) for tol in (0.5, 1e-3, 1e-8)]
    assert n_working_sets[0] < n_working_sets[1] <= n_working_sets[2] < 20
    assert len(list(relax(problem, 4, start=np.arange(200), tol=1e-12))) == 1  # there is no other feature to try


def test_samples_are_read_in_blocks(monkeypatch):
    expected = solve(make_problem(), 4)
    for module in (base,):
        monkeypatch.setattr(module, "BLOCK_ELEMENTS", 700)
    got = solve(make_problem(), 4)
    assert got.value == pytest.approx(expected.value, rel=1e-9)
    assert got.bound == pytest.approx(expected.bound, rel=1e-9)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("ridge", [0.05, 1.0])
def test_value_matches_a_general_purpose_optimiser(k, ridge):
    problem = make_problem(n_samples=10, n_features=6, n_targets=2, ridge=ridge)
    result = minimize(
        lambda shares: relaxed_value(problem, shares),
        np.full(6, k / 6),
        method="SLSQP",
        bounds=[(0.0, 1.0)] * 6,
        constraints={"type": "ineq", "fun": lambda shares: k - shares.sum()},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert solve(problem, k, tol=1e-8).value == pytest.approx(result.fun, rel=1e-6)


def test_orthogonal_features_in_closed_form():
    """With x_i'x_j = 0 the shares of equal features are equal: h = sum_j y_j^2 mu / (2 (mu + z_j))."""
    X = np.vstack([np.eye(4), -np.eye(4)])
    problem = LeastSquares(X, X, ridge=0.5)
    last = solve(problem, 2)
    assert last.shares == pytest.approx(np.full(4, 0.5), abs=1e-6)
    energy, mu = 2.0, problem.ridge
    assert last.value == pytest.approx(0.5 * 4 * energy / (1.0 + 0.5 * energy / mu))


def test_a_stronger_ridge_or_fewer_features_raise_the_value():
    values = np.array([[solve(make_problem(ridge=ridge), k).value for k in (1, 3, 9)] for ridge in (0.1, 1.0, 10.0)])
    assert np.all(np.diff(values, axis=0) > 0)
    assert np.all(np.diff(values, axis=1) < 0)


def test_a_wide_sparse_problem_stays_sparse():
    random = np.random.default_rng(0)
    X = sp.random_array((300, 20000), density=0.003, format="csr", random_state=random)
    problem = LeastSquares(X, random.standard_normal((300, 2)), ridge=1.0)
    tracemalloc.start()
    solve(problem, 5, tol=1e-3, start=np.arange(40))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.25 * 8 * 300 * 20000  # a quarter of X made dense
