"""Solvers beside an X of another library: the choices of NumPy, and nothing as long as X has features moves."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
import scipy.sparse as sp
from libraries import move_to_each

from l20fs.inputs.devices import Place, as_numpy
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.panel_rules import PanelRules
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers import forward, robust, swap
from l20fs.solvers.active_sets import device_rows, make_active_set
from l20fs.solvers.active_sets.device_rows import gains_there, gains_without_there
from l20fs.solvers.active_sets.rows import gains_of, gains_without

N_FEATURES = 21


def make_penalty(kind):
    units, ones = np.arange(N_FEATURES), np.ones(N_FEATURES)
    if kind == "groups":
        return RowPenalty.of_groups(units // 2 % 7, ones)
    if kind == "costly groups":
        return RowPenalty.of_groups(units % 9, np.where(units % 3, 1.0, 0.25))
    costs = {"costs": np.where(units % 4, 1.0, 0.4), "given": np.where(units == 11, 0.0, np.where(units == 1, np.inf, 1.0))}
    rules = None
    if kind == "rules":  # one of the last units at least, and two of the first at most
        weights = sp.csr_array(np.array([units > 13, units < 5], dtype=float))
        rules = PanelRules(weights, np.array([1.0, 0.0]), np.array([np.inf, 2.0]))
    return RowPenalty(units, costs.get(kind, ones), rules)


def make_data(n_samples, seed=0, dtype=np.float64):
    """Features of which one depends on two others, one nearly so, one is the copy of another and one is constant."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_samples, N_FEATURES))
    X[:, 3] = X[:, 0] - X[:, 2]
    X[:, 6] = X[:, 5] + 1e-5 * X[:, 6]
    X[:, 8], X[:, 9] = X[:, 7], 0.5
    Y = X[:, [0, 5, 7]] @ random.standard_normal((3, 3)) + random.standard_normal((n_samples, 3))
    return X.astype(dtype), Y


def stages_of(solver, X, Y, penalty, n_rows=6, **options):
    path = solver(LeastSquares(X, Y, **options), n_rows, penalty=penalty)
    return [path.stage_rows(stage).tolist() for stage in range(len(path.alphas))], path


@move_to_each
@pytest.mark.parametrize("kind", ["plain", "costs", "given", "rules", "groups", "costly groups"])
@pytest.mark.parametrize("solver", [forward, swap], ids=["forward", "swap"])
@pytest.mark.parametrize(("n_samples", "ridge"), [(15, 0.0), (40, 1.0)])
def test_every_solver_chooses_as_with_numpy(move, kind, solver, n_samples, ridge):
    X, Y = make_data(n_samples)
    weights = np.random.default_rng(1).integers(0, 3, n_samples).astype(float) if n_samples > 20 else None
    options = {"ridge": ridge, "sample_weight": weights, "scale": "zscore"}
    expected, path = stages_of(solver, X, Y, make_penalty(kind), **options)
    found, path_there = stages_of(solver, move(X), Y, make_penalty(kind), **options)
    assert found == expected
    assert len(found[-1]) > 2
    np.testing.assert_allclose(path_there.losses, path.losses, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(path_there.coef(3), path.coef(3), rtol=1e-5, atol=1e-8)
    assert path_there.order.tolist() == path.order.tolist()


@move_to_each
@pytest.mark.parametrize("kind", ["plain", "groups"])
def test_the_robust_loss_chooses_as_with_numpy(move, kind):
    X, Y = make_data(30)
    problems = LeastSquares(X, Y, ridge=0.1), LeastSquares(move(X), Y, ridge=0.1)
    expected, found = (robust(problem, 4, with_exchanges=True, penalty=make_penalty(kind)).path for problem in problems)
    assert found.indices.tolist() == expected.indices.tolist()
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-7)


@move_to_each
def test_single_precision_chooses_as_with_numpy(move):
    X, Y = make_data(40, dtype=np.float32)
    X = np.delete(X, [3, 8], axis=1)  # what equals others up to rounding may change places with them
    expected, _ = stages_of(swap, X, Y, None, ridge=1.0)
    assert stages_of(swap, move(X), Y, None, ridge=1.0)[0] == expected


@move_to_each
@pytest.mark.parametrize("kind", ["plain", "costs", "rules"])
def test_exchanges_are_the_same_in_parts_of_any_size(move, kind, monkeypatch):
    monkeypatch.setattr(device_rows, "LINES_PER_PASS", 2)
    monkeypatch.setattr(device_rows, "PART_ELEMENTS", 8)
    X, Y = make_data(30)
    units = [14, 10, 17, 12, 13]
    for ridge in (0.0, 0.5):
        sets = [make_active_set(LeastSquares(x, Y, ridge=ridge), units, make_penalty(kind)) for x in (X, move(X))]
        expected, found = (active.best_exchange(0.1) for active in sets)
        assert found[:2] == expected[:2]
        assert found.decrease == pytest.approx(expected.decrease, rel=1e-9)


@move_to_each
def test_of_equal_exchanges_the_lowest_unit_enters_and_the_highest_leaves(move):
    X, Y = np.random.default_rng(0).standard_normal((20, 6)), np.random.default_rng(1).standard_normal((20, 1))
    X[:, 5], X[:, 2], Y = X[:, 4], X[:, 1], Y + 3.0 * X[:, 1:2]
    for x in (X, move(X)):
        active = make_active_set(LeastSquares(x, Y, ridge=0.1), [4, 5])
        best = active.best_exchange()
        assert (active.units[best.position], best.unit) == (5, 1)


@move_to_each
def test_many_numbers_of_a_long_vector_change_at_once(move, monkeypatch):
    X, Y = make_data(12)
    active = make_active_set(LeastSquares(move(X), Y, ridge=1.0))
    rows, values = np.array([3, 0, 7]), np.array([1.0, 2.0, 3.0])
    one_by_one = as_numpy(active._with(move(np.zeros(9)), rows, values))
    monkeypatch.setattr(device_rows, "FEW", 0)
    assert as_numpy(active._with(move(np.zeros(9)), rows, values)).tolist() == one_by_one.tolist()
    assert one_by_one.tolist() == [2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 3.0, 0.0]


def test_formulas_are_those_of_numpy():
    random = np.random.default_rng(0)
    images, targets, products = (random.standard_normal(shape) for shape in ((4, 9), (4, 2), (2, 9)))
    room, needed_room = random.uniform(0.1, 1.0, 9), np.where(np.arange(9) % 3, 0.2, np.inf)
    lengths = (targets * targets).sum(axis=1)[:, None]
    there = array_api_strict.asarray
    found = gains_there(array_api_strict, there(products), there(room), there(needed_room))
    np.testing.assert_allclose(as_numpy(found), gains_of(products, room, 0.0, needed_room))
    arguments = map(there, (images, targets, lengths, products, room, needed_room))
    expected = gains_without(images, targets, products, room, needed_room)
    np.testing.assert_allclose(as_numpy(gains_without_there(array_api_strict, *arguments)), expected)


@pytest.mark.parametrize("kind", ["plain", "groups"])
def test_nothing_as_long_as_x_has_features_moves(kind, monkeypatch):
    random = np.random.default_rng(0)
    X, Y = random.standard_normal((20, 3000)), random.standard_normal((20, 2))
    penalty = RowPenalty.of_groups(np.arange(3000) // 2, np.ones(3000)) if kind == "groups" else None
    active = make_active_set(LeastSquares(array_api_strict.asarray(X), Y, ridge=1.0), [5, 700], penalty)
    active.gains()  # the order of the groups goes there once
    sizes, fetch, send = [], Place.fetch, Place.send

    def fetched(place, array):
        here = fetch(place, array)
        sizes.append(here.size)
        return here

    def sent(place, values, dtype=None):
        sizes.append(np.asarray(values).size)
        return send(place, values, dtype)

    monkeypatch.setattr(Place, "fetch", fetched)
    monkeypatch.setattr(Place, "send", sent)
    best = active.best_exchange()
    active.remove(best.position)
    active.add(best.unit)
    assert active.grow(2) == 2
    assert max(sizes) <= 100
