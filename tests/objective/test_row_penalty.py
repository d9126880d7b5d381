"""Row penalty with costs, groups, included and excluded features, in every solver, against brute force and twins."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import best_units, centred, homotopy, loss

from l20fs.design import finish
from l20fs.objective import make_problem
from l20fs.objective.path_ranking import RULES
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers import SOLVERS, Swap

SEEDS = st.integers(0, 2**32 - 1)
RIDGES = st.sampled_from([0.0, 0.5])
ALL = [*SOLVERS, "robust"]
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


def solve(solver, problem, n_units, penalty, **options):
    """Return the path of a solver by name; "robust" is Swap with the loss l21."""
    if solver == "robust":
        return finish(Swap().walk_robust(problem, n_units, penalty=penalty)).path
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not every lambda converges within the limit
        return finish(SOLVERS[solver](**options).walk(problem, n_units, penalty=penalty))


@pytest.mark.parametrize("solver", ["ahiht", "hiht"])
@given(seed=SEEDS, share=st.floats(0.01, 1.2), ridge=st.sampled_from([0.0, 0.3]), kind=KINDS)
@settings(max_examples=15)
def test_a_target_is_reached_and_never_below_the_global_minimum(solver, kind, seed, share, ridge):
    X, Y = draw(seed, (20, 8))
    penalty = draw_penalty(seed, 8, kind)
    problem = make_problem(X, Y, ridge=ridge)
    target = share * float(solve("forward", problem, 1, None).alphas[1])
    path = solve(solver, problem, 3, penalty, alpha_min=target)
    assert path.alphas[-1] == target
    assert path.objectives[-1] >= best_units(X, Y, target, penalty.unit_of, penalty.costs, problem.ridge)[0] * (1.0 - 1e-9)
    if solver in ("forward", "swap"):
        assert path.objectives[-1] <= (path.losses + target * path.costs).min() * (1.0 + 1e-9)
        assert path.size_at(target) == path.sizes[-1]


@pytest.mark.parametrize(("solver", "max_steps"), [("ahiht", 1), ("hiht", 30)])
@given(seed=SEEDS, ridge=RIDGES, kind=KINDS)
@settings(max_examples=25)
def test_the_homotopy_equals_its_slow_twin(solver, max_steps, ridge, kind, seed):
    X, Y = draw(seed, (20, 24))
    penalty = draw_penalty(seed, 24, kind)
    problem = make_problem(X, Y, ridge=ridge)
    options = {"alpha_start": 10.0, "rate": 0.5, "eta": 0.1}
    if solver == "hiht":
        options |= {"max_iter": max_steps, "tol": 1e-12, "stopping": "absolute"}
    path = solve(solver, problem, 1, penalty, alpha_min=0.1, **options)
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


@pytest.mark.parametrize("solver", ALL)
@given(seed=SEEDS)
@settings(max_examples=5)
def test_groups_of_one_are_no_groups(solver, seed):
    X, Y = draw(seed, (15, 12))
    problem = make_problem(X, Y, ridge=0.1)
    alone = solve(solver, problem, 5, RowPenalty.of_groups(list("abcdefghijkl"), np.ones(12)))
    plain = solve(solver, problem, 5, None)
    for name in PATH_ARRAYS:
        assert np.array_equal(getattr(alone, name), getattr(plain, name)), name


@pytest.mark.parametrize("solver", ALL)
@given(seed=SEEDS, exponent=st.integers(-40, 40), kind=KINDS)
@settings(max_examples=12)
def test_only_the_product_of_lambda_and_cost_matters(solver, kind, seed, exponent):
    X, Y = draw(seed, (20, 12))
    problem = make_problem(X, Y, ridge=0.1)
    penalty = draw_penalty(seed, 12, kind)
    factor = 2.0**exponent
    one = solve(solver, problem, 4, penalty)
    other = solve(solver, problem, 4, RowPenalty(penalty.unit_of, factor * penalty.costs))
    assert np.array_equal(one.indices, other.indices)
    assert np.array_equal(one.order, other.order)
    np.testing.assert_allclose(other.losses, one.losses, rtol=1e-10)
    np.testing.assert_allclose(other.alphas * factor, one.alphas, rtol=1e-10)


@pytest.mark.parametrize("solver", ALL)
@given(seed=SEEDS, kind=KINDS)
@settings(max_examples=12)
def test_what_is_excluded_might_as_well_not_be_there(solver, kind, seed):
    X, Y = draw(seed, (20, 12))
    penalty = draw_penalty(seed, 12, kind)
    penalty.costs[-1] = np.inf
    stays = np.flatnonzero(penalty.may_enter(np.ones(12, dtype=bool)))
    problem, smaller = make_problem(X, Y, ridge=0.1), make_problem(X[:, stays], Y)
    smaller.ridge = problem.ridge  # relative to the mean over all columns
    rest = RowPenalty(np.unique(penalty.unit_of[stays], return_inverse=True)[1], penalty.costs[penalty.costs < np.inf])
    n_units = min(4, rest.n_units)
    options = {"eta": 0.1, "lipschitz_start": 2.0 * problem.lipschitz_upper} if solver in ("ahiht", "hiht") else {}
    whole, part = (solve(solver, p, n_units, q, **options) for p, q in ((problem, penalty), (smaller, rest)))
    assert np.array_equal(whole.indices, stays[part.indices])
    np.testing.assert_allclose(whole.losses, part.losses, rtol=1e-9)
    np.testing.assert_allclose(whole.alphas, part.alphas, rtol=1e-9)
    assert whole.order[: len(stays)].tolist() == stays[part.order].tolist()


@pytest.mark.parametrize("solver", ALL)
@given(seed=SEEDS, kind=KINDS)
@settings(max_examples=12)
def test_permuting_the_features_permutes_the_answer(solver, kind, seed):
    X, Y = draw(seed, (20, 12))
    penalty = draw_penalty(seed, 12, kind)
    order = np.random.default_rng(seed).permutation(12)
    moved = RowPenalty.of_groups(penalty.unit_of[order], np.ones(12))
    old_unit = penalty.unit_of[order][np.unique(moved.unit_of, return_index=True)[1]]
    moved = RowPenalty(moved.unit_of, penalty.costs[old_unit])
    first = solve(solver, make_problem(X, Y, ridge=0.5), 4, penalty)
    second = solve(solver, make_problem(X[:, order], Y, ridge=0.5), 4, moved)
    k = int(first.sizes[-1])
    assert np.array_equal(second.ranking[second.ranking <= k], first.ranking[order][second.ranking <= k])


@pytest.mark.parametrize("solver", ALL)
@pytest.mark.parametrize("ridge", [0.0, 1.0])
@pytest.mark.parametrize("grouped", [False, True])
def test_what_is_included_may_be_constant_or_depend_on_others(solver, ridge, grouped):
    X, Y = draw(0, (20, 12))
    X[:, 3], X[:, 5], X[:, 6], X[:, 7] = 4.0, X[:, 2], X[:, 2] - X[:, 4], X[:, 8]
    labels = np.arange(12) if not grouped else np.array([0, 0, 2, 3, 4, 5, 5, 7, 8, 9, 10, 11])
    factors = np.ones(12)
    factors[[2, 3, 4, 5, 6]] = 0.0
    penalty = RowPenalty.of_groups(labels, factors)
    path = solve(solver, make_problem(X, Y, ridge=ridge), 7, penalty)
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


@pytest.mark.parametrize("solver", ALL)
def test_nothing_but_what_is_included(solver):
    X, Y = draw(1, (20, 6))
    penalty = RowPenalty(np.arange(6), np.array([1.0, 0.0, 1.0, 0.0, 1.0, 1.0]))
    path = solve(solver, make_problem(X, Y), 2, penalty)
    assert path.sizes.tolist() == [2]
    assert path.coef_rows.tolist() == [1, 3]
    assert sorted(path.support(2).tolist()) == [1, 3]
    everything = RowPenalty(np.arange(6), np.zeros(6))
    assert solve(solver, make_problem(X, Y), 6, everything).coef_rows.tolist() == list(range(6))
    nothing_else = RowPenalty(np.arange(6), np.array([np.inf, 0.0, np.inf, np.inf, np.inf, np.inf]))
    path = solve(solver, make_problem(X, Y), 1, nothing_else)
    assert path.coef_rows.tolist() == [1]
    with pytest.raises(ValueError, match="k=2 is outside 1 to 1, the number of features that are not excluded"):
        path.support(2)


def test_a_path_of_groups_counts_units():
    X, Y = draw(3, (30, 8))
    penalty = RowPenalty.of_groups([0, 1, 0, 1, 2, 3, 3, 3], np.ones(8))
    problem = make_problem(X, Y, ridge=0.1)
    path = solve("forward", problem, 4, penalty).with_refits(problem, 3)
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
    loaded = pickle.loads(pickle.dumps(path))
    for field in fields(path):
        np.testing.assert_array_equal(getattr(loaded, field.name), getattr(path, field.name))
    for ranking in ("norm", "entry"):
        assert loaded.ranked_by(ranking).order.tolist() == path.ranked_by(ranking).order.tolist()
    norms = [np.linalg.norm(path.stage_norms(-1)[penalty.unit_of == unit]) for unit in range(4)]
    by_norm = path.ranked_by("norm")
    np.testing.assert_allclose(by_norm.scores, np.array(norms)[penalty.unit_of])
