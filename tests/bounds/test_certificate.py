from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import best_objective
from supports import RIDGES, all_losses, dense, exact_optima, nearly_dependent, powers_of_ten, problems

from l20fs.bounds.certificate import Certificate, certify_penalty, certify_size, lower_bounds, support_loss
from l20fs.bounds.support import least_residual
from l20fs.data import load_srbct
from l20fs.objective import make_problem

SEEDS = st.integers(0, 2**32 - 1)
FRACTION = st.floats(0, 1)
#: The brute force rounds as well; a thousandth of what the certificates give away for that.
ROUNDING = 1e-12


def random_problem(seed=0, n_samples=40, n_features=60, n_targets=3, ridge=3.0, **options):
    """Few features that explain the targets, and many that do not."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_samples, n_features))
    Y = X[:, :4] @ (3.0 * random.standard_normal((4, n_targets))) + 0.1 * random.standard_normal((n_samples, n_targets))
    return make_problem(X, Y, ridge=ridge, **options)


def members(supports, n_features):
    """Masks of the features that are in all, and in none, of the supports."""
    masks = np.array([np.isin(np.arange(n_features), support) for support in supports])
    return masks.all(axis=0), ~masks.any(axis=0)


def assert_holds(found, values, upper, problem):
    """Check a certificate against the values of all supports that compete; proofs speak of those that reach ``upper``."""
    assert found.lower_bound <= min(values.values()) + ROUNDING * problem.null_loss
    assert 0.0 <= found.lower_bound <= found.upper_bound == upper
    assert 0.0 <= found.gap <= 1.0
    good = [support for support, value in values.items() if value <= upper + ROUNDING * problem.null_loss]
    in_all, in_none = members(good, problem.n_features)
    assert in_all[found.proved_in].all()
    assert in_none[found.proved_out].all()


# --- bounds


@given(problem=problems(ridge=RIDGES | st.just(0.0)))
def test_lower_bounds_are_below_every_support_and_above_all_features(problem):
    losses = all_losses(problem)
    bounds = lower_bounds(problem, problem.n_features)
    for k, bound in enumerate(bounds):
        best = min(loss for support, loss in losses.items() if len(support) <= k)
        assert bound <= best + ROUNDING * problem.null_loss
    assert bounds[0] == problem.null_loss
    assert np.all(np.diff(bounds) <= 0)
    assert bounds[-1] >= 0
    design = problem.design
    deviation = design.scale * np.sqrt(design.column_energy / design.n_samples)
    # A mean of many deviations costs digits, the more so the weaker the ridge is.
    if problem.ridge and np.all(np.abs(design.mean) <= 100 * deviation):
        # Weights of up to 1e3, the inverse root of the ridge, multiply the rounding of X as it is stored.
        accuracy = 1e-7 if problem.dtype == np.float64 else 1e-3
        assert bounds[-1] == pytest.approx(losses[tuple(range(problem.n_features))], abs=accuracy * problem.null_loss)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@settings(max_examples=30)
@given(data=nearly_dependent(), ridge=st.just(0.0) | powers_of_ten(-12, 1), lam=powers_of_ten(-6, 0))
def test_no_bound_is_above_the_optimum_in_exact_arithmetic(dtype, data, ridge, lam):
    X, Y = data[0].astype(dtype), data[1]
    problem = make_problem(X, Y, ridge=ridge)
    optima = exact_optima(X, Y, Fraction(problem.ridge))
    bounds = lower_bounds(problem, X.shape[1])
    for k in range(1, X.shape[1] + 1):
        assert Fraction(bounds[k]) <= optima[k]
        assert Fraction(certify_size(problem, k, problem.null_loss).lower_bound) <= optima[k]
    penalised = [optimum + k * Fraction(lam) for k, optimum in enumerate(optima)]
    found = certify_penalty(problem, lam, problem.null_loss)
    assert Fraction(found.lower_bound) <= min(penalised) * (1 + Fraction(1, 10**14))  # the sum is rounded, too


def test_scaling_x_or_permuting_the_features_changes_nothing():
    problem = random_problem()
    X, Y = dense(problem), problem.targets.T
    order = np.random.default_rng(1).permutation(60)
    upper = support_loss(problem, np.arange(4))
    found = certify_size(problem, 4, upper)
    scaled = certify_size(make_problem(1e5 * X, Y, ridge=3.0), 4, upper)
    permuted = certify_size(make_problem(X[:, order], Y, ridge=3.0), 4, upper)
    assert scaled.lower_bound == pytest.approx(found.lower_bound, rel=1e-4)
    assert permuted.lower_bound == pytest.approx(found.lower_bound, rel=1e-4)
    assert set(order[permuted.proved_in]) == set(found.proved_in) == {0, 1, 2, 3}
    assert set(scaled.proved_in) == {0, 1, 2, 3}


# --- without a ridge


@pytest.mark.parametrize("ridge", [0.0, 1e-13])
@pytest.mark.parametrize("kind", ["independent", "copies", "units"])
def test_without_ridge_the_bound_is_the_residual_of_all_features(ridge, kind):
    random = np.random.default_rng(0)
    X, Y = random.standard_normal((20, 6)), random.standard_normal((20, 2))
    if kind == "copies":
        X = np.hstack([X, X[:, :2], X @ random.integers(-1, 2, (6, 2))])
    elif kind == "units":
        X *= 10.0 ** np.arange(-9, 9, 3)
    problem = make_problem(X, Y, ridge=ridge)
    columns = dense(problem) / np.linalg.norm(dense(problem), axis=0)
    residual = 0.5 * np.sum((columns @ np.linalg.lstsq(columns, problem.targets.T)[0] - problem.targets.T) ** 2)
    bounds = lower_bounds(problem, 4)
    assert bounds[1:] == pytest.approx(np.full(4, residual), rel=1e-6)
    assert np.all(bounds[1:] <= residual)
    found = certify_size(problem, 3, support_loss(problem, np.arange(3)))
    assert found.lower_bound == bounds[3]
    assert len(found.proved_in) == len(found.proved_out) == 0


@settings(max_examples=50)
@given(seed=SEEDS, gap=powers_of_ten(-14, 0), n_targets=st.integers(1, 2))
def test_nearly_dependent_columns_are_safe(seed, gap, n_targets):
    """Against least squares in exact arithmetic: a direction that rounding blurs fits as well as any other."""
    random = np.random.default_rng(seed)
    X, Y = random.standard_normal((8, 3)), random.standard_normal((8, n_targets))
    X[:, 2] = X[:, 0] - X[:, 1] + gap * X[:, 2]
    problem = make_problem(X, Y)
    columns = [[Fraction(x) for x in column] for column in dense(problem).T]
    targets = [[Fraction(y) for y in row] for row in problem.targets]
    for i, column in enumerate(columns):  # Gram-Schmidt
        for later in columns[i + 1 :] + targets:
            factor = dot(later, column) / dot(column, column)
            later[:] = [x - factor * y for x, y in zip(later, column, strict=True)]
    exact = sum(dot(target, target) for target in targets) / 2
    assert Fraction(least_residual(problem, np.arange(3))) <= exact
    if gap > 1e-3:
        assert least_residual(problem, np.arange(3)) == pytest.approx(float(exact), abs=2e-9 * problem.null_loss)


def dot(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


@pytest.mark.parametrize("n_features", [20, 1200])
def test_without_ridge_many_features_fit_everything(n_features):
    random = np.random.default_rng(0)
    problem = make_problem(random.standard_normal((10, n_features)), random.standard_normal((10, 2)))
    assert lower_bounds(problem, 5)[1:] == pytest.approx(np.zeros(5), abs=1e-9)
    found = certify_penalty(problem, 0.1, problem.null_loss)
    assert found.lower_bound == pytest.approx(0.1)  # one feature at least, or nothing at all


@settings(max_examples=50)
@given(problem=problems(ridge=powers_of_ten(-16, -6)))
def test_a_vanishing_ridge_is_safe(problem):
    losses = all_losses(problem)
    for k in range(1, problem.n_features + 1):
        values = {support: loss for support, loss in losses.items() if len(support) <= k}
        assert_holds(certify_size(problem, k, min(values.values())), values, min(values.values()), problem)


# --- certificates


@given(problem=problems(), k=st.integers(1, 7), fraction=FRACTION)
def test_what_is_proved_for_a_size_holds_for_every_support(problem, k, fraction):
    """With the best loss as upper bound, where ties decide, and with a worse one."""
    k = min(k, problem.n_features)
    values = {support: loss for support, loss in all_losses(problem).items() if len(support) <= k}
    ranked = sorted(values.values())
    for upper in (ranked[0], ranked[int(fraction * (len(ranked) - 1))]):
        assert_holds(certify_size(problem, k, upper), values, upper, problem)


@given(problem=problems(), fraction=FRACTION, price=powers_of_ten(-6, 0))
def test_what_is_proved_for_a_penalty_holds_for_every_support(problem, fraction, price):
    lam = price * problem.null_loss
    values = {support: loss + lam * len(support) for support, loss in all_losses(problem).items()}
    ranked = sorted(values.values())
    for upper in (ranked[0], ranked[int(fraction * (len(ranked) - 1))]):
        assert_holds(certify_penalty(problem, lam, upper), values, upper, problem)


@settings(max_examples=30)
@given(seed=SEEDS, ridge=st.floats(0.01, 10), lam=st.floats(0.01, 5))
def test_bound_of_the_penalised_problem_against_its_definition(seed, ridge, lam):
    """From the raw X, in another way than the other tests."""
    random = np.random.default_rng(seed)
    X, Y = random.standard_normal((12, 6)) + 5.0, random.standard_normal((12, 2))
    problem = make_problem(X, Y, ridge=ridge)
    best, support = best_objective(X, Y, lam, mu=problem.ridge)
    found = certify_penalty(problem, lam, support_loss(problem, np.array(support, dtype=int)) + lam * len(support))
    assert found.lower_bound <= best * (1 + 1e-12)
    assert found.upper_bound == pytest.approx(best)


def test_copies_of_a_feature_can_neither_be_proved_in_nor_out():
    problem = random_problem()
    X = dense(problem)
    X[:, 7] = X[:, 0]
    copied = make_problem(X, problem.targets.T, ridge=3.0)
    found = certify_size(copied, 4, support_loss(copied, np.arange(4)))
    assert 0 < len(found.proved_in)
    assert set(found.proved_in) <= {1, 2, 3}
    assert not {0, 7} & set(found.proved_out)
    assert len(found.proved_out) > 40


def test_a_high_price_proves_that_nothing_is_in():
    problem = random_problem()
    found = certify_penalty(problem, problem.null_loss, problem.null_loss)
    assert found.gap == 0.0
    assert len(found.proved_in) == 0
    assert found.proved_out.tolist() == list(range(60))


@pytest.mark.parametrize("scale", ["none", "zscore"])
def test_expression_data(scale):
    """On real data with a strong ridge, twenty genes found greedily are proved to be within two per cent of the best."""
    data = load_srbct()
    targets = data.target[:, None] == np.array(data.target_names)
    problem = make_problem(data.data, targets.astype(float), ridge=10.0, scale=scale)
    found = certify_size(problem, 20, support_loss(problem, greedy_fast(problem, 20)))
    assert 0.0 < found.gap < 0.02
    assert len(found.proved_out) > 2000 or scale == "none"


def greedy_fast(problem, k):
    """Forward selection by the gain of each feature: half its squared product with A over mu plus its own."""
    X, support = dense(problem), []
    for _ in range(k):
        chosen = X[:, support]
        M = np.linalg.inv(np.eye(len(X)) + chosen @ chosen.T / problem.ridge)
        MX = M @ X
        gains = np.sum((problem.targets @ MX) ** 2, axis=0) / (problem.ridge + np.sum(X * MX, axis=0))
        gains[support] = -1.0
        support.append(int(np.argmax(gains)))
    return np.array(support)


def test_float32_is_certified_like_float64():
    problem = random_problem()
    X = dense(problem).astype(np.float32)
    single = make_problem(X, problem.targets.T, ridge=3.0)
    double = make_problem(X.astype(np.float64), problem.targets.T, ridge=3.0)
    for k in (2, 4):
        upper = support_loss(single, np.arange(k))
        assert upper == pytest.approx(support_loss(double, np.arange(k)), rel=1e-6)
        found = certify_size(single, k, upper)
        assert found.lower_bound == pytest.approx(certify_size(double, k, upper).lower_bound, rel=2e-4)


# --- the pieces


def test_the_gap_of_a_perfect_solution_is_zero():
    assert Certificate(0.0, 0.0, np.array([]), np.array([])).gap == 0.0
    assert Certificate(1.0, 4.0, np.array([]), np.array([])).gap == 0.75
    assert Certificate(1.0, 1.0 + 1e-9, np.array([]), np.array([]), rounding=2e-9).gap == 0.0
    assert Certificate(1.0, 4.0, np.array([]), np.array([]), rounding=2e-9).gap == 0.75


def test_targets_that_do_not_vary_have_no_gap():
    problem = make_problem(np.random.default_rng(0).standard_normal((8, 5)), np.ones((8, 2)), ridge=1.0)
    assert lower_bounds(problem, 5).tolist() == [0.0] * 6
    assert certify_size(problem, 2, 0.0).gap == 0.0


@pytest.mark.parametrize("k", [0, 61, -1])
def test_sizes_that_do_not_exist_are_refused(k):
    problem = random_problem()
    with pytest.raises(ValueError, match=f"k={k} is outside 1 to 60"):
        certify_size(problem, k, 1.0)
    with pytest.raises(ValueError, match=f"k={k} is outside 1 to 60"):
        lower_bounds(problem, k)


@pytest.mark.parametrize("lam", [-1.0, np.nan])
def test_a_price_below_zero_is_refused(lam):
    with pytest.raises(ValueError, match=r"lam=.* is not valid\. Use a number of at least 0"):
        certify_penalty(random_problem(), lam, 1.0)


@pytest.mark.parametrize("upper", [0.0, np.nan])
def test_an_upper_bound_below_what_is_possible_is_refused(upper):
    problem = random_problem()
    with pytest.raises(ValueError, match="the lower bound of all supports"):
        certify_size(problem, 2, upper)
    with pytest.raises(ValueError, match="the lower bound of all supports"):
        certify_penalty(problem, 0.1, upper)
