"""Forward selection and swaps: stages, ends, columns that are nearly combinations of others, many problems at a time."""

from __future__ import annotations

from itertools import product

import array_api_strict
import numpy as np
import pytest
import scipy.sparse as sp
from blocked import cut
from hypothesis import given, settings
from hypothesis import strategies as st
from libraries import MOVERS, move_to_each
from reference import best_subset, centred, minimum
from supports import nearly_dependent

from l20fs.data import make_planted
from l20fs.design import finish, run, share_samples
from l20fs.objective import make_problem
from l20fs.objective.problem import problem_on
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers import forward, swap

SEEDS = st.integers(0, 2**32 - 1)
SOLVERS = pytest.mark.parametrize("solver", [forward, swap])
CONTAINERS = {
    "array": np.asarray,
    "sparse": sp.csr_array,
    "device": array_api_strict.asarray,
    "rows": lambda X: cut(X, 0, 2),
    "columns": lambda X: cut(X, 1, 3),
}


def draw(seed, shape, n_classes=3):
    random = np.random.default_rng(seed)
    X = random.standard_normal(shape) * random.uniform(0.5, 2.0, shape[1]) + 1.0
    y = np.concatenate([np.arange(n_classes), random.integers(0, n_classes, shape[0] - n_classes)])
    X[:, :2] += y[:, None]
    return X, np.eye(n_classes)[y]


class Slow:
    """Losses from a basis that is made orthogonal twice, column by column, in float64.

    A column of which no more than ``least`` of its length is left is a combination of those before it.
    """

    def __init__(self, X, Y, mu=0.0, least=1e-9):
        X, Y = centred(*(A.astype(np.float64) - A[0].astype(np.float64) for A in (X, Y)))
        self.columns = np.vstack([X, np.sqrt(mu) * np.eye(X.shape[1])]).T
        self.targets, self.least = np.vstack([Y, np.zeros((X.shape[1], Y.shape[1]))]), least

    def loss(self, rows):
        basis = np.zeros((0, len(self.targets)))
        for column in self.columns[list(rows)]:
            left = column
            for _ in range(2):
                left = left - (basis @ left) @ basis
            if np.linalg.norm(left) > self.least * np.linalg.norm(column):
                basis = np.vstack([basis, left / np.linalg.norm(left)])
        return 0.5 * np.sum((self.targets - basis.T @ (basis @ self.targets)) ** 2)

    def best_with(self, rows, others):
        """The lowest loss of the rows and one of some tuples of others."""
        return min((self.loss([*rows, *other]) for other in others), default=np.inf)

    def best_exchange(self, units, others):
        """The lowest loss of units, which are tuples of rows, if one of them is another."""
        return min((self.best_with(sum((u for u in units if u != left), ()), others) for left in units), default=np.inf)


@SOLVERS
@given(seed=SEEDS, shape=st.sampled_from([(10, 14), (25, 8)]), ridge=st.sampled_from([0.0, 0.3, 10.0]))
@settings(max_examples=25)
def test_every_stage_holds_the_minimum_on_its_rows(solver, shape, ridge, seed):
    X, Y = draw(seed, shape)
    problem = make_problem(X, Y, ridge=ridge)
    path = finish(solver(problem, 6)).with_refits(problem, 6)
    for number, value in enumerate(path.losses):
        expected, W = minimum(X, Y, path.stage_rows(number), problem.ridge)
        assert value == pytest.approx(expected, rel=1e-8, abs=1e-10)
        np.testing.assert_allclose(path.stage_norms(number), np.linalg.norm(W, axis=1), rtol=1e-6, atol=1e-9)
    for k in range(1, 7):
        assert path.refit(k).loss == pytest.approx(minimum(X, Y, path.support(k), problem.ridge)[0], rel=1e-8, abs=1e-10)
    assert (np.diff(path.alphas) <= 0.0).all()


def test_the_best_size_for_any_lambda_comes_from_one_run():
    X, Y = draw(4, (40, 12))
    path = finish(forward(make_problem(X, Y, ridge=0.1), 12))
    np.testing.assert_allclose(path.alphas[1:], np.minimum.accumulate(-np.diff(path.losses)), rtol=1e-6)
    for alpha in np.geomspace(path.alphas[-1] / 2, 2 * path.alphas[0], 30):
        assert path.size_at(alpha) == min(range(13), key=lambda k: path.losses[k] + alpha * k)


def test_swap_finds_nearly_every_optimum():
    """Not a theorem: it may end in a local minimum. Of 60 problems it misses two at most."""
    n_found = 0
    for seed in range(20):
        X, Y = draw(seed, (30, 9))
        problem = make_problem(X, Y, ridge=0.1)
        for k in (2, 3, 4):
            n_found += finish(swap(problem, k)).losses[-1] <= best_subset(X, Y, k, problem.ridge)[0] * (1.0 + 1e-9)
    assert n_found >= 58


def test_swaps_only_where_asked():
    X, y, _ = make_planted(40, 400, 10, 4, random_state=3)
    problem = make_problem(X, np.eye(4)[y])
    plain, some, every = run([forward(problem, 20), swap(problem, 20, sizes=(10, 20)), swap(problem, 20)])
    np.testing.assert_allclose(some.losses[:10], plain.losses[:10])
    assert some.losses[10] < plain.losses[10]
    assert some.losses[20] <= plain.losses[20]
    assert (every.losses <= plain.losses * (1.0 + 1e-9)).all()


def test_more_rows_than_samples_need_a_ridge():
    X, Y = draw(0, (10, 40))
    with_ridge, without = (finish(forward(make_problem(X, Y, ridge=ridge), 30)) for ridge in (1.0, 0.0))
    assert with_ridge.n_nonzero[-1] == 30
    assert without.n_nonzero[-1] <= 9  # three targets that sum to one: nothing is left to explain well before the tenth row
    assert without.losses[-1] == pytest.approx(0.0, abs=1e-9)
    assert len(set(without.order.tolist())) == 40


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("n_samples", "seed"), [(8, 0), (8, 1), (10, 2), (20, 3)])
def test_float32_ends_where_all_is_explained(container, n_samples, seed):
    """Without degrees of freedom left, what a row would bring is rounding."""
    X = np.random.default_rng(seed).standard_normal((n_samples, 30)).astype(np.float32)
    Y, n_rows = np.eye(3)[np.arange(n_samples) % 3], n_samples - 1
    found, expected = (finish(swap(make_problem(A, Y), n_rows)) for A in (container(X), X.astype(np.float64)))
    assert found.losses.min() <= 1e-6 * found.null_loss
    losses = [path.losses[path.n_nonzero == n_rows // 2].min() for path in (found, expected)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@SOLVERS
def test_no_signal_gives_an_empty_path(solver):
    X, Y = np.vstack([np.eye(2), -np.eye(2)]), np.array([[1.0], [-1.0], [1.0], [-1.0]])  # orthogonal to both columns
    path = finish(solver(make_problem(X, Y), 2))
    assert not len(path.coef_rows)
    assert path.order.tolist() == [0, 1]


@move_to_each
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_exchanges_among_many_rows_are_the_best_of_all(move, ridge):
    """In memory most rows are ruled out by bounds before they are multiplied; on a device none is."""
    random = np.random.default_rng(0)
    factors = random.standard_normal((60, 30))
    X = np.repeat(factors, 50, axis=1) + 0.3 * random.standard_normal((60, 1500))
    Y = factors @ random.standard_normal((30, 3)) + random.standard_normal((60, 3))
    problem = make_problem(X, Y, ridge=ridge)
    expected, found, plain = run([swap(problem, 12), swap(make_problem(move(X), Y, ridge=ridge), 12), forward(problem, 12)])
    assert found.indices.tolist() == expected.indices.tolist()
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-9)
    assert np.count_nonzero(expected.losses < plain.losses * (1.0 - 1e-6)) > 5
    slow, rows = Slow(X, Y, problem.ridge), [(row,) for row in expected.rows_at(4)]
    assert slow.best_exchange(rows, [(j,) for j in range(1500) if (j,) not in rows]) >= expected.losses[4] * (1.0 - 1e-9)


# Columns that are nearly combinations of others


@pytest.mark.parametrize("mean", [0.0, 1000.0])
@pytest.mark.parametrize("container", CONTAINERS)
@given(seed=SEEDS, close=st.tuples(st.just(6), st.floats(-7.0, -3.0)) | st.tuples(st.just(1), st.floats(-8.0, -3.0)))
@settings(max_examples=8)
def test_near_copies_are_told_apart_without_a_ridge(container, mean, seed, close):
    """Targets that only the differences of columns explain: of one close pair, or of six that are less close."""
    random = np.random.default_rng(seed)
    X, differences = random.standard_normal((2, 30, 6))
    distances = np.where(np.arange(6) < close[0], 10.0 ** close[1], 1.0)
    X = np.hstack([X, X + distances * differences]) + mean * (random.random(12) < 0.5)
    Y = (differences + X[:, :6]) @ random.standard_normal((6, 2))
    problem, slow = make_problem(CONTAINERS[container](X), Y), Slow(X, Y, least=1e-11)
    least, alone = 1e-7 * problem.null_loss, {(row,) for row in range(12)}
    order = finish(forward(problem, 8)).order[:8].tolist()
    for k in range(8):
        assert slow.loss(order[: k + 1]) <= slow.best_with(order[:k], alone) + least
    units = {(row,) for row in finish(swap(problem, 4)).rows_at(4).tolist()}
    assert slow.loss(sum(units, ())) <= slow.best_exchange(units, alone - units) + least
    included = RowPenalty(np.arange(12), np.isin(np.arange(12), [0, 1, 6, 7], invert=True).astype(float))
    assert finish(forward(problem, 5, penalty=included)).losses[0] == pytest.approx(slow.loss([0, 1, 6, 7]), abs=least)


@pytest.mark.parametrize(
    ("dtype", "smallest", "far", "least"), [(np.float64, 1e-6, 1e-9, 1e-8), (np.float32, 1e-3, 2e-5, 1e-5)]
)
@pytest.mark.parametrize("container", CONTAINERS)
@given(data=st.data(), ridge=st.sampled_from([0.0, 0.0, 1e-12, 1e-6, 1e-3]), in_pairs=st.booleans())
@settings(max_examples=15)
def test_no_exchange_helps_and_no_other_row_helps_more(dtype, smallest, far, least, container, data, ridge, in_pairs):
    X, Y = data.draw(nearly_dependent(st.sampled_from([(9, 12), (30, 8)]), smallest))
    X = X.astype(dtype)
    labels = np.arange(X.shape[1]) // (1 + in_pairs)
    penalty = RowPenalty.of_groups(labels, np.ones(X.shape[1])) if in_pairs else None
    problem = make_problem(CONTAINERS[container](X), Y, ridge=ridge)
    slow, units = Slow(X, Y, problem.ridge, far), {tuple(np.flatnonzero(labels == unit)) for unit in set(labels)}
    least *= problem.null_loss
    exchanged, grown = (finish(solver(problem, 3, penalty=penalty)) for solver in (swap, forward))
    for k in range(1, 1 + exchanged.sizes.max()):
        rows = set(exchanged.rows_at(k).tolist())
        chosen = {unit for unit in units if rows & {*unit}}
        assert slow.loss(sum(chosen, ())) <= slow.best_exchange(chosen, units - chosen) + least
    for k in range(1, 1 + grown.sizes.max()):
        before, rows = grown.support(k - 1).tolist() if k > 1 else [], grown.support(k).tolist()
        assert slow.loss(rows) <= slow.best_with(before, units) + least
        assert grown.losses[k] == pytest.approx(slow.loss(rows), abs=least)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_combined_from_others_up_to_the_rounding_of_x_stays_dependent(dtype):
    """In units of the last place before centring: a mean of 1000 leaves three digits fewer."""
    random = np.random.default_rng(0)
    X = random.standard_normal((40, 8)) + np.where(np.arange(8) < 4, 1000.0, 0.0)
    X = np.hstack([X, X[:, :1] + X[:, 4:5], X[:, 5:6] - X[:, 6:7]]).astype(dtype)
    path = finish(forward(make_problem(X, random.standard_normal((40, 3))), 10))
    assert path.n_nonzero.max() == 8


# Many problems at a time


TOGETHER = CONTAINERS | {
    "Fortran order": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "torch": lambda X: pytest.importorskip("torch").tensor(X),
    "second device": MOVERS[0].values[0],
}


@pytest.mark.parametrize("container", TOGETHER)
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_problems_that_are_walked_together_are_those_alone(container, ridge):
    """Folds, weights and groups of one X, by both solvers: one run, each by itself, and each on a copy of its samples."""
    X, Y = draw(0, (40, 120))
    X[:, 100:] += 50.0
    random, samples = np.random.default_rng(0), share_samples(TOGETHER[container](X))
    groups = RowPenalty.of_groups(np.arange(120) // 2, random.choice([1.0, 2.0], 60).repeat(2))
    weights, folds = random.uniform(0.5, 2.0, 40), [np.flatnonzero(np.arange(40) % 4 != fold) for fold in range(4)]
    problems = [(samples[rows], Y[rows], weights[rows] * (fold % 2) + 1.0) for fold, rows in enumerate(folds)]
    wanted = [(*problem, *how) for problem in problems for how in product([forward, swap], [None, groups])]

    def walk(X, Y, weights, solver, penalty):
        problem = yield from problem_on(X, Y, sample_weight=weights, ridge=ridge, scale="zscore")
        return (yield from solver(problem, 8, penalty=penalty))

    rounding = (1e-5, 1e-5) if container == "float32" else (1e-12, 1e-9)
    together, alone = run(walk(*each) for each in wanted), [finish(walk(*each)) for each in wanted]
    copied = [finish(walk(TOGETHER[container](X[part.rows]), *rest)) for part, *rest in wanted]
    for path, by_itself, on_copy in zip(together, alone, copied, strict=True):
        for other, rtol in ((by_itself, rounding[0]), (on_copy, rounding[1])):
            assert path.indices.tolist() == other.indices.tolist()
            np.testing.assert_allclose(path.losses, other.losses, rtol=rtol)
            np.testing.assert_allclose(path.coef_values, other.coef_values, rtol=1e4 * rtol, atol=1e4 * rtol)
