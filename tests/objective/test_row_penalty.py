"""Row penalty with costs, groups, included and excluded features, in every solver, against brute force and twins."""

from __future__ import annotations

import warnings
from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import best_units, centred, greedy_units, homotopy, loss, minimum, unit_minimum

from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.path_ranking import RULES
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath
from l20fs.solvers import Schedule, ahiht, forward, hiht, robust, swap
from l20fs.solvers.active_sets import rows as rows_module

SEEDS = st.integers(0, 2**32 - 1)
SHAPES = st.sampled_from([(20, 24), (30, 9)])
RIDGES = st.sampled_from([0.0, 0.5])
REPLACING = pytest.mark.parametrize("solver", [forward, swap])
KINDS = st.sampled_from(["wishes", "costs", "groups", "all"])
PATH_ARRAYS = ("alphas", "losses", "n_iters", "indptr", "indices", "norms", "coef_values", "scores", "order", "costs")


def draw(seed, shape, n_targets=3):
    random = np.random.default_rng(seed)
    X = random.standard_normal(shape) * random.uniform(0.5, 2.0, shape[1]) + 1.0
    return X, X[:, :4] @ random.standard_normal((4, n_targets)) + random.standard_normal((shape[0], n_targets))


def draw_penalty(seed, n_features, kind):
    """Groups of up to three, costs from 0.3 to 3, one or two units included and excluded, as ``kind`` says."""
    random = np.random.default_rng(seed)
    labels = random.permutation(n_features) // 2 if kind in ("groups", "all") else np.arange(n_features)
    factors = random.uniform(0.3, 3.0, n_features) if kind in ("costs", "all") else np.ones(n_features)
    penalty = RowPenalty.of_groups(labels, factors)
    if kind in ("wishes", "all"):
        units = random.permutation(penalty.n_units)
        penalty.costs[units[: random.integers(1, 3)]] = 0.0
        penalty.costs[units[-random.integers(1, 3) :]] = np.inf
    return penalty


def solve(solver, problem, n_units, penalty, target=None, **options):
    if solver in (ahiht, hiht):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not every lambda converges within the limit
            return solver(problem, Schedule(n_rows=n_units, target=target), penalty=penalty, **options)
    if solver is robust:
        return robust(problem, n_units, target=target, penalty=penalty, with_exchanges=True, **options).path
    return solver(problem, n_units, target=target, penalty=penalty, **options)


def units_of(path, stage):
    return set(path.unit_of[path.stage_rows(stage)].tolist())


@pytest.mark.parametrize("solver", [forward, swap, ahiht])
@given(seed=SEEDS, lam=st.floats(0.02, 0.5), kind=KINDS)
@settings(max_examples=20)
def test_orthonormal_features_have_the_closed_form(solver, kind, seed, lam):
    """With X'X = I the units decouple: keep X_u'Y where ||X_u'Y||^2 > 2 lam c_u."""
    random = np.random.default_rng(seed)
    X = np.linalg.qr(np.column_stack([np.ones(12), random.standard_normal((12, 8))]))[0][:, 1:]
    Y = random.standard_normal((12, 3))
    penalty = draw_penalty(seed, 8, kind)
    products = X.T @ (Y - Y.mean(axis=0))
    worth = np.bincount(penalty.unit_of, weights=np.sum(products**2, axis=1))
    kept = (worth > 2 * lam * penalty.costs) | (penalty.costs == 0.0)
    problem = LeastSquares(X, Y)
    if solver is ahiht:
        path = ahiht(problem, Schedule(target=lam, start=lam, lipschitz_start=1.0), penalty=penalty)
    else:
        path = solver(problem, 8, target=lam, penalty=penalty)
    assert units_of(path, -1) == set(np.flatnonzero(kept).tolist())
    np.testing.assert_allclose(path.coef_values.T, products[path.coef_rows], rtol=1e-8, atol=1e-10)
    best, chosen = best_units(X, Y, lam, penalty.unit_of, penalty.costs)
    assert path.objectives[-1] == pytest.approx(best, rel=1e-9)
    assert chosen == sorted(units_of(path, -1))


@given(seed=SEEDS, shape=SHAPES, ridge=RIDGES, kind=KINDS)
@settings(max_examples=30)
def test_forward_is_greedy_from_scratch(shape, ridge, kind, seed):
    X, Y = draw(seed, shape)
    penalty = draw_penalty(seed, shape[1], kind)
    problem = LeastSquares(X, Y, ridge=ridge)
    path = forward(problem, 4, penalty=penalty)
    chosen, values = greedy_units(X, Y, 4, penalty.unit_of, penalty.costs, problem.ridge)
    assert [units_of(path, number) for number in range(len(path.alphas))] == [
        set(chosen[: len(penalty.included) + number]) for number in range(len(path.alphas))
    ]
    np.testing.assert_allclose(path.losses, values, rtol=1e-8)
    added = penalty.costs[chosen[len(penalty.included) :]]
    np.testing.assert_allclose(path.alphas[1:], np.minimum.accumulate(-np.diff(values) / added), rtol=1e-6)
    np.testing.assert_allclose(path.costs, np.cumsum([0.0, *added]))
    assert path.sizes.tolist() == list(range(len(penalty.included), len(chosen) + 1))
    free = path.order[path.rules[path.order] == RULES.index("entry")]
    assert list(dict.fromkeys(penalty.unit_of[free].tolist())) == chosen[len(penalty.included) :]


@REPLACING
@given(seed=SEEDS, shape=SHAPES, ridge=RIDGES, kind=KINDS, container=st.sampled_from([np.asarray, sp.csr_array]))
@settings(max_examples=30)
def test_every_stage_holds_the_minimum_on_its_units(solver, shape, ridge, kind, container, seed):
    X, Y = draw(seed, shape)
    penalty = draw_penalty(seed, shape[1], kind)
    problem = LeastSquares(container(X), Y, ridge=ridge)
    path = solver(problem, 5, penalty=penalty)
    for number, value in enumerate(path.losses):
        expected, W = minimum(X, Y, path.stage_rows(number), problem.ridge)
        assert value == pytest.approx(expected, rel=1e-8, abs=1e-10)
        np.testing.assert_allclose(path.stage_norms(number), np.linalg.norm(W, axis=1), rtol=1e-6, atol=1e-9)
        assert path.costs[number] == pytest.approx(penalty.costs[list(units_of(path, number))].sum())
    np.testing.assert_allclose(path.coef_values.T, W, rtol=1e-6, atol=1e-8)
    assert (np.diff(path.alphas) <= 0.0).all()
    k = int(path.sizes[-1])
    assert sorted(path.support(k)) == np.flatnonzero(path.is_selected).tolist()
    assert set(path.coef_rows.tolist()) <= set(path.support(k).tolist())  # without a ridge some may have no room
    path = path.with_refits(problem, k)
    for size in range(max(1, path.n_included), k + 1):
        assert path.refit(size).loss == pytest.approx(minimum(X, Y, path.support(size), problem.ridge)[0], abs=1e-9)


@given(seed=SEEDS, shape=SHAPES, ridge=RIDGES, kind=KINDS)
@settings(max_examples=30)
def test_no_exchange_helps_where_swap_ends(shape, ridge, kind, seed):
    X, Y = draw(seed, shape)
    penalty = draw_penalty(seed, shape[1], kind)
    problem = LeastSquares(X, Y, ridge=ridge)
    n_units = min(4, penalty.n_selectable(problem.design.varies) - 1)
    path, plain = swap(problem, n_units, penalty=penalty), forward(problem, n_units, penalty=penalty)
    last, alpha = units_of(path, -1), path.alphas[-1]
    assert len(last) == n_units
    assert path.objectives[-1] <= (plain.losses[-1] + alpha * plain.costs[-1]) * (1.0 + 1e-9)
    for leaving in last - set(penalty.included.tolist()):
        for entering in set(np.flatnonzero(penalty.costs < np.inf).tolist()) - last:
            other = list(last - {leaving} | {entering})
            value = unit_minimum(X, Y, other, penalty.unit_of, problem.ridge) + alpha * penalty.costs[other].sum()
            assert path.objectives[-1] <= value * (1.0 + 1e-9) + 1e-9 * problem.null_loss


@pytest.mark.parametrize("solver", [forward, swap, ahiht, hiht])
@given(seed=SEEDS, share=st.floats(0.01, 1.2), ridge=st.sampled_from([0.0, 0.3]), kind=KINDS)
@settings(max_examples=15)
def test_a_target_is_reached_and_never_below_the_global_minimum(solver, kind, seed, share, ridge):
    X, Y = draw(seed, (20, 8))
    penalty = draw_penalty(seed, 8, kind)
    problem = LeastSquares(X, Y, ridge=ridge)
    target = share * float(rows_module.RowActiveSet(problem).gains().max())
    path = solve(solver, problem, 3, penalty, target)
    assert path.alphas[-1] == target
    assert path.objectives[-1] >= best_units(X, Y, target, penalty.unit_of, penalty.costs, problem.ridge)[0] * (1.0 - 1e-9)
    if solver in (forward, swap):
        assert path.objectives[-1] <= (path.losses + target * path.costs).min() * (1.0 + 1e-9)
        assert path.size_at(target) == path.sizes[-1]


@pytest.mark.parametrize(("solver", "max_steps"), [(ahiht, 1), (hiht, 30)])
@given(seed=SEEDS, ridge=RIDGES, kind=KINDS, lazily=st.booleans())
@settings(max_examples=25)
def test_the_homotopy_equals_its_slow_twin(solver, max_steps, lazily, ridge, kind, seed):
    X, Y = draw(seed, (20, 24))
    penalty = draw_penalty(seed, 24, kind)
    problem = LeastSquares(X, Y, ridge=ridge)
    options = {} if solver is ahiht else {"max_iter": max_steps, "tol": 1e-12, "stopping": "absolute"}
    schedule = Schedule(target=0.1, start=10.0, rate=0.5, eta=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = solver(problem, schedule, penalty=penalty, lazy=lazily, **options)
    stages = homotopy(
        X,
        Y,
        path.alphas,
        L=problem.lipschitz_lower,
        mu=problem.ridge,
        max_steps=max_steps,
        tol=1e-12,
        units=penalty.unit_of,
        costs=penalty.costs,
    )
    for number, (W, L) in enumerate(stages):
        assert np.array_equal(path.stage_rows(number), np.flatnonzero(W.any(axis=1)))
        np.testing.assert_allclose(path.stage_norms(number), np.linalg.norm(W[path.stage_rows(number)], axis=1), rtol=1e-6)
        assert path.losses[number] == pytest.approx(loss(*centred(X, Y), W, mu=problem.ridge), rel=1e-8, abs=1e-12)
        assert path.lipschitz[number] == pytest.approx(L)


@pytest.mark.parametrize("solver", [forward, swap, robust, ahiht, hiht])
@given(seed=SEEDS)
@settings(max_examples=5)
def test_groups_of_one_are_no_groups(solver, seed):
    X, Y = draw(seed, (15, 12))
    problem = LeastSquares(X, Y, ridge=0.1)
    alone = solve(solver, problem, 5, RowPenalty.of_groups(list("abcdefghijkl"), np.ones(12)))
    plain = solve(solver, problem, 5, None)
    for name in PATH_ARRAYS:
        assert np.array_equal(getattr(alone, name), getattr(plain, name)), name


@pytest.mark.parametrize("solver", [forward, swap, robust, ahiht, hiht])
@given(seed=SEEDS, exponent=st.integers(-40, 40), kind=KINDS)
@settings(max_examples=12)
def test_only_the_product_of_lambda_and_cost_matters(solver, kind, seed, exponent):
    X, Y = draw(seed, (20, 12))
    problem = LeastSquares(X, Y, ridge=0.1)
    penalty = draw_penalty(seed, 12, kind)
    factor = 2.0**exponent
    one = solve(solver, problem, 4, penalty)
    other = solve(solver, problem, 4, RowPenalty(penalty.unit_of, factor * penalty.costs))
    assert np.array_equal(one.indices, other.indices)
    assert np.array_equal(one.order, other.order)
    np.testing.assert_allclose(other.losses, one.losses, rtol=1e-10)
    np.testing.assert_allclose(other.alphas * factor, one.alphas, rtol=1e-10)


@pytest.mark.parametrize("solver", [forward, swap, robust, ahiht, hiht])
@given(seed=SEEDS, kind=KINDS)
@settings(max_examples=12)
def test_what_is_excluded_might_as_well_not_be_there(solver, kind, seed):
    X, Y = draw(seed, (20, 12))
    penalty = draw_penalty(seed, 12, kind)
    penalty.costs[-1] = np.inf
    stays = np.flatnonzero(penalty.may_enter(np.ones(12, dtype=bool)))
    problem, smaller = LeastSquares(X, Y, ridge=0.1), LeastSquares(X[:, stays], Y)
    smaller.ridge = problem.ridge  # relative to the mean over all columns
    rest = RowPenalty(np.unique(penalty.unit_of[stays], return_inverse=True)[1], penalty.costs[penalty.costs < np.inf])
    n_units = min(4, rest.n_units)
    if solver in (ahiht, hiht):
        schedule = Schedule(n_rows=n_units, eta=0.1, lipschitz_start=2.0 * problem.lipschitz_upper)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole, part = (solver(p, schedule, penalty=q) for p, q in ((problem, penalty), (smaller, rest)))
    else:
        whole, part = solve(solver, problem, n_units, penalty), solve(solver, smaller, n_units, rest)
    assert np.array_equal(whole.indices, stays[part.indices])
    np.testing.assert_allclose(whole.losses, part.losses, rtol=1e-9)
    np.testing.assert_allclose(whole.alphas, part.alphas, rtol=1e-9)
    assert whole.order[: len(stays)].tolist() == stays[part.order].tolist()


@pytest.mark.parametrize("solver", [forward, swap, robust, ahiht, hiht])
@given(seed=SEEDS, kind=KINDS)
@settings(max_examples=12)
def test_permuting_the_features_permutes_the_answer(solver, kind, seed):
    X, Y = draw(seed, (20, 12))
    penalty = draw_penalty(seed, 12, kind)
    order = np.random.default_rng(seed).permutation(12)
    moved = RowPenalty.of_groups(penalty.unit_of[order], np.ones(12))
    old_unit = penalty.unit_of[order][np.unique(moved.unit_of, return_index=True)[1]]
    moved = RowPenalty(moved.unit_of, penalty.costs[old_unit])
    first = solve(solver, LeastSquares(X, Y, ridge=0.5), 4, penalty)
    second = solve(solver, LeastSquares(X[:, order], Y, ridge=0.5), 4, moved)
    k = int(first.sizes[-1])
    assert np.array_equal(second.ranking[second.ranking <= k], first.ranking[order][second.ranking <= k])


@pytest.mark.parametrize("solver", [forward, swap, robust, ahiht, hiht])
@pytest.mark.parametrize("ridge", [0.0, 1.0])
@pytest.mark.parametrize("grouped", [False, True])
def test_what_is_included_may_be_constant_or_depend_on_others(solver, ridge, grouped):
    X, Y = draw(0, (20, 12))
    X[:, 3], X[:, 5], X[:, 6], X[:, 7] = 4.0, X[:, 2], X[:, 2] - X[:, 4], X[:, 8]
    labels = np.arange(12) if not grouped else np.array([0, 0, 2, 3, 4, 5, 5, 7, 8, 9, 10, 11])
    factors = np.ones(12)
    factors[[2, 3, 4, 5, 6]] = 0.0
    penalty = RowPenalty.of_groups(labels, factors)
    path = solve(solver, LeastSquares(X, Y, ridge=ridge), 7, penalty)
    n_included = len(penalty.included)
    assert n_included == (4 if grouped else 5)
    assert (path.sizes >= n_included).all()
    assert path.sizes[-1] >= 7
    for k in range(n_included, 9):
        assert {2, 3, 4, 5, 6} <= set(path.support(k).tolist())
        assert len(set(penalty.unit_of[path.support(k)])) == k
    assert np.isfinite(path.coef(7)).all()
    assert not path.coef(7)[:, 3].any()
    assert [RULES[path.rules[j]] for j in (2, 3, 4, 5, 6)] == ["included"] * 5
    with pytest.raises(ValueError, match=f"k={n_included - 1} is outside {n_included} to .* {n_included} are included"):
        path.support(n_included - 1)


@pytest.mark.parametrize("solver", [forward, swap, robust, ahiht, hiht])
def test_nothing_but_what_is_included(solver):
    X, Y = draw(1, (20, 6))
    penalty = RowPenalty(np.arange(6), np.array([1.0, 0.0, 1.0, 0.0, 1.0, 1.0]))
    path = solve(solver, LeastSquares(X, Y), 2, penalty)
    assert path.sizes.tolist() == [2]
    assert path.coef_rows.tolist() == [1, 3]
    assert sorted(path.support(2).tolist()) == [1, 3]
    everything = RowPenalty(np.arange(6), np.zeros(6))
    assert solve(solver, LeastSquares(X, Y), 6, everything).coef_rows.tolist() == list(range(6))
    nothing_else = RowPenalty(np.arange(6), np.array([np.inf, 0.0, np.inf, np.inf, np.inf, np.inf]))
    path = solve(solver, LeastSquares(X, Y), 1, nothing_else)
    assert path.coef_rows.tolist() == [1]
    with pytest.raises(ValueError, match="k=2 is outside 1 to 1, the number of features that are not excluded"):
        path.support(2)


def test_a_path_of_groups_counts_units(tmp_path):
    X, Y = draw(3, (30, 8))
    penalty = RowPenalty.of_groups([0, 1, 0, 1, 2, 3, 3, 3], np.ones(8))
    problem = LeastSquares(X, Y, ridge=0.1)
    path = forward(problem, 4, penalty=penalty).with_refits(problem, 3)
    assert path.sizes.tolist() == [0, 1, 2, 3, 4]
    assert path.costs[-1] == 8.0
    np.testing.assert_allclose(path.objectives, path.losses + path.alphas * path.costs)
    units = penalty.unit_of[path.order]
    assert np.count_nonzero(np.diff(units)) == 3  # the members of a unit are side by side
    for k in range(1, 5):
        assert set(path.ranking[path.support(k)].tolist()) == set(range(1, k + 1))
        assert sorted(path.support(k)) == np.flatnonzero(path.ranking <= k).tolist()
        assert np.array_equal(np.flatnonzero(path.coef(k).any(axis=0)), np.sort(path.support(k)))
        assert path.rows_at(k).tolist() == sorted(path.support(k))
        assert (np.diff(path.scores[path.order]) <= 0.0).all()
    assert path.largest_refit == 3
    with pytest.raises(ValueError, match="up to k=3"):
        path.refit(4)
    with pytest.raises(ValueError, match="outside 1 to 4, the number of units"):
        path.support(5)
    path.save(tmp_path / "path.npz")
    loaded = SolutionPath.load(tmp_path / "path.npz")
    for field in fields(path):
        np.testing.assert_array_equal(getattr(loaded, field.name), getattr(path, field.name))
    for ranking in ("norm", "entry"):
        assert loaded.ranked_by(ranking).order.tolist() == path.ranked_by(ranking).order.tolist()
    norms = [np.linalg.norm(path.stage_norms(-1)[penalty.unit_of == unit]) for unit in range(4)]
    by_norm = path.ranked_by("norm")
    np.testing.assert_allclose(by_norm.scores, np.array(norms)[penalty.unit_of])
