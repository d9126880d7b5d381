"""The active set: what one row more or less would change, against the definition with dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import best_subset, minimum

from l20fs.objective.least_squares import LeastSquares
from l20fs.solvers.active_sets import rows as rows_module
from l20fs.solvers.active_sets.basis import FeatureBasis, SampleBasis
from l20fs.solvers.active_sets.rows import RowActiveSet

SEEDS = st.integers(0, 2**32 - 1)
SHAPES = pytest.mark.parametrize("shape", [(12, 30), (40, 9)], ids=["N<d", "N>d"])
RIDGES = pytest.mark.parametrize("ridge", [0.0, 1e-6, 0.5, 20.0])
FORMS = pytest.mark.parametrize("container", [np.asarray, sp.csc_array, sp.csr_array])


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


@FORMS
@SHAPES
@RIDGES
@given(seed=SEEDS)
@settings(max_examples=10)
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


@SHAPES
@RIDGES
@given(seed=SEEDS)
@settings(max_examples=20)
def test_adding_and_removing_a_row_changes_nothing(shape, ridge, seed):
    X, Y = draw(seed, shape)
    active = RowActiveSet(LeastSquares(X, Y, ridge=ridge), [3, 5, 1])
    before = [array.copy() for array in (active.gains(), active.energies, active.products, active.residual, active.weights)]
    loss = active.loss
    active.add(7)
    assert active.loss < loss
    active.remove(3)
    after = (active.gains(), active.energies, active.products, active.residual, active.weights)
    for old, new in zip(before, after, strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-8, atol=1e-9)
    assert active.loss == pytest.approx(loss)
    assert active.rows == [3, 5, 1]


@SHAPES
@RIDGES
@given(seed=SEEDS)
@settings(max_examples=10)
def test_gains_are_differences_of_minima(shape, ridge, seed):
    X, Y = draw(seed, shape)
    active = RowActiveSet(LeastSquares(X, Y, ridge=ridge), [2, 4, 6])
    mu, value = active.problem.ridge, active.loss
    gains = active.gains()
    for row in range(shape[1]):
        gain = 0.0 if row in active.rows else value - minimum(X, Y, [*active.rows, row], mu)[0]
        assert gains[row] == pytest.approx(gain, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("start", ["any rows", "the best rows"])
@FORMS
@SHAPES
@RIDGES
@given(seed=SEEDS)
@settings(max_examples=5)
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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_that_cannot_be_in_the_best_exchange_are_not_multiplied(dtype, monkeypatch):
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 3000)).astype(dtype)
    problem = LeastSquares(X, X[:, :10] @ random.standard_normal((10, 3)) + random.standard_normal((60, 3)))
    active = RowActiveSet(problem, range(8))
    monkeypatch.setattr(RowActiveSet, "_exchange_candidates", lambda *_: np.arange(3000))
    every = active.best_exchange()
    monkeypatch.undo()
    multiplied = []
    images_of = active.basis.images_of
    monkeypatch.setattr(
        active.basis, "images_of", lambda lines, rows: multiplied.append(len(X.T[rows])) or images_of(lines, rows)
    )
    assert active.best_exchange() == pytest.approx(every)
    assert sum(multiplied) < 600


def test_exchanges_are_searched_block_by_block(monkeypatch):
    X, Y = draw(1, (30, 700))
    active = RowActiveSet(LeastSquares(X, Y, ridge=0.1), range(4))
    whole = active.best_exchange()
    monkeypatch.setattr(rows_module, "BLOCK_ELEMENTS", 1)
    assert active.best_exchange() == pytest.approx(whole)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@FORMS
@SHAPES
@pytest.mark.parametrize("ridge", [0.0, 1.0])
@given(seed=SEEDS)
@settings(max_examples=8)
def test_looking_ahead_changes_nothing(dtype, container, shape, ridge, seed):
    X, Y = draw(seed, (shape[0], 6 * shape[1]) if shape[0] < shape[1] else shape)
    problem = LeastSquares(container(X.astype(dtype)), Y, ridge=ridge)
    n_rows = 8
    plain, ahead = RowActiveSet(problem), RowActiveSet(problem)
    while len(plain) < n_rows:
        assert plain.grow(1) == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "FEWEST_CANDIDATES", 2)  # so few that the best one is often not among them
        ahead._ahead = 8
        while len(ahead) < n_rows:
            assert ahead.grow(n_rows - len(ahead)) >= 1
    assert ahead.rows == plain.rows
    np.testing.assert_allclose(ahead.losses, plain.losses, rtol=1e-9 if dtype == np.float64 else 1e-4)
    np.testing.assert_allclose(ahead.gains(), plain.gains(), rtol=1e-6 if dtype == np.float64 else 1e-2, atol=1e-5)


@pytest.mark.parametrize("ridge", [0.0, 0.5])
@pytest.mark.parametrize("distance", [1.0, 1e-1, 1e-4])
@given(seed=SEEDS)
@settings(max_examples=8)
def test_images_of_columns_with_many_zeros_are_those_of_the_vectors(distance, ridge, seed):
    """By lines of X'X, or by the vectors where columns nearly agree: to the same number of digits."""
    random = np.random.default_rng(seed)
    X = random.gamma(2.0, size=(150, 12)) * (random.uniform(size=(150, 12)) < 0.07)
    X[[range(12)], [range(12)]] = 1.0  # every column varies
    X[:, 6:] = X[:, :6] + distance * X[:, 6:]
    Y = random.standard_normal((150, 2))
    images = []
    for container in (np.asarray, sp.csr_array):
        active = RowActiveSet(LeastSquares(container(X), Y, ridge=ridge), [0, 6, 7])
        active.remove(0)
        for row in (1, 2, 8):
            active.add(row)
        images.append(active.basis.lines / np.sqrt(active.problem.design.column_energy))
    np.testing.assert_allclose(images[1], images[0], atol=1e-14 / distance)


def test_columns_with_many_zeros_need_no_pass(monkeypatch):
    random = np.random.default_rng(0)
    X = sp.csr_array(random.gamma(2.0, size=(400, 30)) * (random.uniform(size=(400, 30)) < 0.03))
    problem = LeastSquares(X, random.standard_normal((400, 2)))
    active = RowActiveSet(problem)
    monkeypatch.setattr(problem.design, "pull", lambda *_: pytest.fail("a pass over X"))
    for row in range(4):
        active.add(row)
    with pytest.raises(pytest.fail.Exception, match="a pass"):
        problem.design.products(problem.targets)


def test_what_was_chosen_too_early_is_taken_back(monkeypatch):
    monkeypatch.setattr(rows_module, "FEWEST_CANDIDATES", 2)
    random = np.random.default_rng(0)
    base = random.standard_normal((50, 3))
    # Twins of the best column fill the list of candidates and are worth nothing once it is in.
    X = np.hstack([base[:, :1] + 0.01 * random.standard_normal((50, 4)), base[:, 1:]])
    active = RowActiveSet(LeastSquares(X, base @ np.diag([3.0, 2.0, 1.0])))
    active._ahead = 2
    assert active.grow(2) == 1
    assert active.grow(2) == 2
    assert active.rows[1:] == [4, 5]
    assert_true(active, X, base @ np.diag([3.0, 2.0, 1.0]))


def test_rounding_does_not_pile_up():
    X, Y = draw(3, (60, 80))
    active = RowActiveSet(LeastSquares(X, Y, ridge=0.01), range(20))
    random = np.random.default_rng(0)
    for _ in range(300):
        active.remove(int(random.integers(len(active))))
        active.add(int(random.choice([j for j in range(80) if j not in active.rows])))
    assert_true(active, X, Y)


def test_lines_stay_orthogonal_when_columns_nearly_agree():
    random = np.random.default_rng(0)
    X = random.standard_normal((40, 1)) + 3e-5 * random.standard_normal((40, 60))
    active = RowActiveSet(LeastSquares(X, random.standard_normal((40, 2))), range(6))
    np.testing.assert_allclose(active.basis.lines @ active.basis.lines.T, np.eye(6), atol=1e-13)


def test_what_has_piled_up_is_swept_away():
    X, Y = draw(3, (60, 80))
    active = RowActiveSet(LeastSquares(X, Y, ridge=0.01), range(20))
    active.products += 1e-3  # far more than rounding ever would
    for _ in range(rows_module.REFRESH_EVERY // 2):
        active.add(30)
        active.remove(20)
    assert_true(active, X, Y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_copies_and_sums_of_selected_columns_gain_nothing(dtype):
    random = np.random.default_rng(0)
    X = random.standard_normal((20, 6))
    X[:, 3], X[:, 4] = X[:, 0], X[:, 1] - 2.0 * X[:, 0]
    X[:, 5] = 7.0
    active = RowActiveSet(LeastSquares(X.astype(dtype), random.standard_normal((20, 2))), [0, 1])
    assert np.flatnonzero(active.gains()).tolist() == [2]
    closeness = active.closeness()
    assert closeness[5] == 0.0
    assert closeness[2] > max(closeness[3], closeness[4]) > 0.0


def test_a_copy_may_share_the_ridge():
    X, Y = draw(5, (15, 4))
    X[:, 3] = X[:, 0]
    active = RowActiveSet(LeastSquares(X, Y, ridge=1.0), [0])
    value = minimum(X, Y, [0, 3], active.problem.ridge)[0]
    assert active.gains()[3] == pytest.approx(active.loss - value)
    assert best_subset(X, Y, 4, active.problem.ridge)[0] < minimum(X, Y, [0, 1, 2], active.problem.ridge)[0]
