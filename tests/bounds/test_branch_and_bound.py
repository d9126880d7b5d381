from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from supports import all_losses, dense, exact_optima, nearly_dependent, powers_of_ten, problems

from l20fs.bounds import size_bounds
from l20fs.bounds.branch_and_bound import solve_exactly
from l20fs.data import load_srbct
from l20fs.objective import make_problem

ROUNDING = 1e-12


def random_problem(seed=0, ridge=0.3, n_features=15):
    random = np.random.default_rng(seed)
    X = random.standard_normal((20, n_features)) + random.standard_normal((20, 1))
    return make_problem(X, random.standard_normal((20, 2)), ridge=ridge)


@given(problem=problems(ridge=powers_of_ten(-4, 2)), k=st.integers(1, 7))
def test_the_optimum_is_that_of_the_brute_force(problem, k):
    k = min(k, problem.n_features)
    values = {support: loss for support, loss in all_losses(problem).items() if len(support) <= k}
    best = min(values.values())
    optimum = solve_exactly(problem, k)
    found = optimum.certificate
    assert found.upper_bound == pytest.approx(best, rel=1e-6, abs=3e-9 * problem.null_loss)
    assert found.upper_bound == pytest.approx(values[tuple(optimum.support)], abs=1e-10 * problem.null_loss)
    assert found.lower_bound <= best + ROUNDING * problem.null_loss
    # Weights of up to 100, the inverse root of the ridge, multiply the rounding of X as it is stored.
    rounding = 3e-9 if problem.dtype == np.float64 else 1e-4
    assert found.upper_bound - found.lower_bound <= 1e-6 * best + rounding * problem.null_loss
    for support, value in values.items():
        if value <= best:
            assert set(found.proved_in) <= set(support)
            assert not set(found.proved_out) & set(support)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@settings(max_examples=20)
@given(data=nearly_dependent(), ridge=st.just(0.0) | powers_of_ten(-12, 1))
def test_no_bound_is_above_the_optimum_in_exact_arithmetic(dtype, data, ridge):
    X, Y = data[0].astype(dtype), data[1]
    problem = make_problem(X, Y, ridge=ridge)
    optima = exact_optima(X, Y, Fraction(problem.ridge))
    # With hardly a ridge there is nothing to search, but all features have a bound.
    for k in range(1 if ridge > 1e-8 else X.shape[1], X.shape[1] + 1):
        found = solve_exactly(problem, k, max_nodes=50).certificate
        assert Fraction(found.lower_bound) <= optima[k]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_gap_of_all_features_is_zero(dtype, ridge):
    """Their bound is below their loss by rounding, and counts as equal."""
    problem = make_problem(dense(random_problem(n_features=6)).astype(dtype), random_problem().targets.T, ridge=ridge)
    found = solve_exactly(problem, 6).certificate
    assert found.lower_bound < found.upper_bound
    assert found.gap == 0.0


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("ridge", [0.001, 0.1, 1.0])
def test_copies_tie_and_do_no_harm(k, ridge):
    """Four copies of two features: many supports and many nodes are equally good."""
    random = np.random.default_rng(0)
    X = np.tile(random.standard_normal((10, 2)), (1, 4))
    problem = make_problem(X, random.standard_normal((10, 2)), ridge=ridge)
    optimum = solve_exactly(problem, k)
    best = min(loss for support, loss in all_losses(problem).items() if len(support) <= k)
    assert optimum.certificate.upper_bound == pytest.approx(best, rel=1e-6)
    assert optimum.certificate.gap < 1e-5
    assert len(optimum.certificate.proved_in) == len(optimum.certificate.proved_out) == 0


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), max_nodes=st.integers(0, 30))
def test_a_search_cut_short_proves_a_bound_that_holds(seed, max_nodes):
    problem = random_problem(seed, ridge=0.1)
    best = solve_exactly(problem, 3, max_nodes=10**6)
    assert best.certificate.gap < 1e-6
    short = solve_exactly(problem, 3, max_nodes=max_nodes)
    assert short.n_nodes <= max_nodes
    assert short.certificate.lower_bound <= best.certificate.upper_bound <= short.certificate.upper_bound + 1e-9
    assert len(short.support) <= 3


def test_more_nodes_never_loosen_the_gap():
    problem = random_problem(ridge=0.05, n_features=30)
    gaps = [solve_exactly(problem, 6, max_nodes=n).certificate.gap for n in (1, 10, 100, 1000)]
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(gaps))
    assert gaps[0] > 0.05
    assert gaps[-1] < 0.5 * gaps[0]


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_all_features_are_the_best_ones(ridge):
    problem = random_problem(ridge=ridge, n_features=6)
    optimum = solve_exactly(problem, 6)
    assert optimum.support.tolist() == list(range(6))
    assert optimum.certificate.gap < 1e-6


def test_any_features_are_the_best_for_targets_that_do_not_vary():
    problem = make_problem(np.random.default_rng(0).standard_normal((8, 5)), np.ones((8, 2)), ridge=1.0)
    optimum = solve_exactly(problem, 2)
    assert len(optimum.support) == 2
    assert optimum.certificate.upper_bound == optimum.certificate.gap == 0.0


def test_what_cannot_be_searched_is_refused(monkeypatch):
    with pytest.raises(ValueError, match=r"at most 0 features\. Use a ridge above 0"):
        solve_exactly(random_problem(ridge=0.0), 2)
    with pytest.raises(ValueError, match="k=16 is outside 1 to 15"):
        solve_exactly(random_problem(), 16)
    with pytest.raises(ValueError, match="support has 3 features, more than k=2"):
        solve_exactly(random_problem(), 2, support=np.array([0, 1, 2]))
    monkeypatch.setattr(size_bounds, "LARGEST_SIZE", 4)
    with pytest.raises(ValueError, match=r"at most 4 features\. Use a smaller k"):
        solve_exactly(random_problem(), 5)


def test_the_best_five_genes_of_srbct():
    """Proved among 2308; the number of nodes is far below that of the supports, which is 5e14."""
    data = load_srbct()
    targets = data.target[:, None] == np.array(data.target_names)
    optimum = solve_exactly(make_problem(data.data, targets.astype(float), ridge=10.0, scale="zscore"), 5)
    assert optimum.certificate.gap < 2e-6
    assert optimum.n_nodes < 100
    assert set(optimum.certificate.proved_in) <= set(optimum.support)
    assert not set(optimum.certificate.proved_out) & set(optimum.support)
