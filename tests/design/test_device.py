"""X of another library: the same answer as NumPy's, where X is, with few transfers."""

from __future__ import annotations

import pickle
import warnings

import array_api_compat as xpc
import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import make_data
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import StandardScaler

from l20fs import HIHT, L20Selector, L20SelectorCV, StabilitySelector
from l20fs.bounds.branch_and_bound import solve_exactly
from l20fs.design import DeviceDesign, make_design
from l20fs.inputs.devices import Place, as_numpy, is_device_array, working_dtype
from l20fs.methods import LFS
from l20fs.objective.least_squares import LeastSquares
from l20fs.solvers import Schedule, ahiht, forward, hiht, swap
from l20fs.solvers.active_sets import device as device
from l20fs.solvers.active_sets.device import DeviceActiveSet, DeviceBasis, foresee, leading_triangle, n_leading
from l20fs.solvers.homotopy import Walk


def libraries():
    """What moves an array to a library: those that are here."""
    # Nothing comes from the second device of array-api-strict to the host, or goes there, by itself.
    movers = {
        "strict": array_api_strict.asarray,
        "strict on device1": lambda X: array_api_strict.asarray(X, device=array_api_strict.Device("device1")),
    }
    try:
        import torch
    except ModuleNotFoundError:
        return movers
    movers["torch"] = torch.tensor
    if torch.cuda.is_available():
        movers["torch on cuda"] = lambda X: torch.tensor(X, device="cuda")
    return movers


LIBRARIES = libraries()
DTYPES = [np.float32, np.float64]

move_to_each = pytest.mark.parametrize("move", LIBRARIES.values(), ids=LIBRARIES)
in_each_dtype = pytest.mark.parametrize("dtype", DTYPES)


def test_torch_is_tested_where_it_is_installed():
    pytest.importorskip("torch", reason="torch is not installed; array-api-strict stands for it")
    assert "torch" in LIBRARIES


def make_problem_data(n_samples, n_features, dtype, seed=0):
    """Classes, and features with means; one is constant, one zero, one far from zero, one tiny.

    In float64 two are the same; in float32 rounding may tell such features apart, in NumPy as well as elsewhere.
    """
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(n_samples) % 3)
    X = random.standard_normal((n_samples, n_features)) + random.uniform(-2.0, 2.0, n_features)
    X[:, :5] += np.eye(3)[y] @ random.standard_normal((3, 5))
    X[:, 7], X[:, 8] = 0.3, 0.0
    X[:, 9] += 300.0
    X[:, 10] *= 1e-4
    if dtype == np.float64:
        X[:, 12] = X[:, 11]
    return X.astype(dtype), np.eye(3)[y], y


SHAPES = [(40, 150), (150, 30)]
OPTIONS = {
    "plain": {},
    "zscore": {"scale": "zscore", "ridge": 1.0},
    "moderated": {"scale": "moderated", "ridge": 1.0},
    "weights": {"scale": "zscore", "ridge": 0.1, "sample_weight": "some"},
    "weights, unscaled": {"ridge": 0.5, "sample_weight": "some"},
}


def options_for(name, n_samples):
    options = dict(OPTIONS[name])
    if "sample_weight" in options:
        options["sample_weight"] = np.random.default_rng(1).integers(0, 3, n_samples).astype(float)
    return options


def both(move, shape, dtype, name, seed=0):
    """The same problem with NumPy and with another library."""
    X, Y, _ = make_problem_data(*shape, dtype, seed)
    options = options_for(name, shape[0])
    return LeastSquares(X, Y, **options), LeastSquares(move(X), Y, **options)


def assert_same_path(found, expected, dtype):
    assert found.n_nonzero.tolist() == expected.n_nonzero.tolist()
    assert found.indices.tolist() == expected.indices.tolist()
    tolerance = {"rtol": 1e-7, "atol": 1e-10} if dtype == np.float64 else {"rtol": 5e-3, "atol": 1e-4}
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-9 if dtype == np.float64 else 1e-4)
    k = min(5, len(expected.coef_rows))
    np.testing.assert_allclose(found.coef(k), expected.coef(k), **tolerance)


@move_to_each
def test_arrays_go_and_come_back_as_copies(move):
    there = move(np.arange(6.0).reshape(2, 3))
    place = Place(there)
    here = np.array([1.0, 2.0])
    sent = place.send(here)
    here[0] = 9.0
    assert place.fetch(sent).tolist() == [1.0, 2.0]
    fetched = place.fetch(there)
    fetched[:] = 0.0
    assert float(there[1, 2]) == 5.0
    assert is_device_array(there)
    assert working_dtype(there) == np.float64
    assert as_numpy(here) is here
    assert not is_device_array(here)


@in_each_dtype
@move_to_each
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_design_is_that_of_numpy(move, dtype, name, shape):
    host, there = (problem.design for problem in both(move, shape, dtype, name))
    assert isinstance(there, DeviceDesign)
    assert there.varies.tolist() == host.varies.tolist()
    assert there.dtype == host.dtype == dtype
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 2e-5, "atol": 2e-4}
    np.testing.assert_allclose(there.mean, host.mean, rtol=close["rtol"], atol=1e-6)
    for attribute in ("scale", "column_energy", "max_sample_energy"):
        np.testing.assert_allclose(getattr(there, attribute), getattr(host, attribute), rtol=10 * close["rtol"])
    assert there.gram_top() == pytest.approx(host.gram_top(), rel=10 * close["rtol"])
    random = np.random.default_rng(0)
    residual = host.sample_weights.centred(random.standard_normal((2, shape[0])))
    if host.sample_weights.root is not None:
        residual[:, host.sample_weights.root == 0.0] = 0.0
    rows = np.array([11, 3, 7, 9])
    for products in (lambda design: design.pull(residual), lambda design: design.pull(residual, rows)):
        np.testing.assert_allclose(products(there), products(host), **close)
    np.testing.assert_allclose(there.pull_among(slice(2, 12))(residual), host.pull_among(slice(2, 12))(residual), **close)
    assert not there.pull(residual)[:, ~there.varies].any()
    values = random.standard_normal((2, 4))
    image = there.push(rows, values)
    np.testing.assert_allclose(image, host.push(rows, values), **close)
    root = np.ones(shape[0]) if host.sample_weights.root is None else host.sample_weights.root
    np.testing.assert_allclose(image @ root, 0.0, atol=1e-10)  # also in float32: products rely on it
    np.testing.assert_allclose(there.take(rows, slice(5, 20)), host.take(rows, slice(5, 20)), **close)
    np.testing.assert_allclose(there.column(9), host.column(9), **close)
    np.testing.assert_allclose(there.pull_norms(), host.pull_norms(), rtol=10 * close["rtol"])


@in_each_dtype
@move_to_each
@pytest.mark.parametrize("name", OPTIONS)
def test_products_in_float64_are_those_of_numpy(move, dtype, name, monkeypatch):
    """A few features at a time; of X in float32 they keep the digits of float64."""
    monkeypatch.setattr("l20fs.design.device.PART_ELEMENTS", 40 * 7)
    random = np.random.default_rng(0)
    X = (random.standard_normal((40, 50)) + random.uniform(-0.4, 0.4, 50)).astype(dtype)  # means that are not subtracted
    residual = random.standard_normal((2, 40))
    there = LeastSquares(move(X), residual.T, **options_for(name, 40)).design
    columns = there.take(np.arange(50), slice(None)).astype(np.float64)
    expected = residual @ columns
    rounding = 1e-12 if dtype == np.float64 else 1e-5  # what is taken is rounded
    close = {"rtol": rounding, "atol": rounding * np.abs(expected).max()}
    np.testing.assert_allclose(there.pull_exactly(residual), expected, **close)
    squares = there.squared_lengths_exactly(residual)
    assert squares.dtype == np.float64
    np.testing.assert_allclose(squares, np.sum(there.pull_exactly(residual) ** 2, axis=0), rtol=1e-13)


@in_each_dtype
@move_to_each
@pytest.mark.parametrize("name", ["zscore", "weights"])
def test_the_best_panel_is_proved_as_by_numpy(move, dtype, name):
    host, there = both(move, (40, 60), dtype, name)
    expected, found = (solve_exactly(problem, 3) for problem in (host, there))
    assert found.support.tolist() == expected.support.tolist()
    close = 1e-9 if dtype == np.float64 else 1e-5
    for bound in ("lower_bound", "upper_bound"):
        assert getattr(found.certificate, bound) == pytest.approx(getattr(expected.certificate, bound), rel=close)
    assert found.certificate.gap <= 1e-6


@move_to_each
def test_x_is_copied_only_where_its_means_are_large(move):
    random = np.random.default_rng(0)
    X = move(random.standard_normal((50, 20)))
    design = make_design(X)
    assert design._base is X or design._base.data_ptr() == X.data_ptr()
    before = as_numpy(X)
    assert make_design(X + 5.0)._base is not X
    assert make_design(X, sample_weight=np.arange(50.0))._base is not X
    np.testing.assert_array_equal(as_numpy(X), before)


@in_each_dtype
@move_to_each
def test_x_without_a_copy_is_centred_by_algebra(move, dtype):
    random = np.random.default_rng(0)
    X = (random.standard_normal((50, 20)) + random.uniform(-0.7, 0.7, 20)).astype(dtype)
    X[:, 4] = 1e6
    host, there = make_design(X, "zscore"), make_design(move(X), "zscore")
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-4}
    assert there.max_sample_energy == pytest.approx(host.max_sample_energy, rel=close["rtol"])
    residual = host.sample_weights.centred(random.standard_normal((3, 50)))
    np.testing.assert_allclose(there.pull(residual), host.pull(residual), **close)
    assert not there.pull(residual)[:, 4].any()
    rows = np.array([3, 4, 11])
    np.testing.assert_allclose(there.take(rows, slice(None)), host.take(rows, slice(None)), **close)


@move_to_each
@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_gradient_is_that_of_numpy(move, ridge):
    X, Y, _ = make_problem_data(50, 40, np.float64)
    rows, values = np.array([2, 5, 30]), np.random.default_rng(0).standard_normal((3, 3))
    host, there = (LeastSquares(kind(X), Y, ridge=ridge) for kind in (np.asarray, move))
    expected, found = (problem.gradient(problem.residual(rows, values), rows, values) for problem in (host, there))
    np.testing.assert_allclose(found.squared_norms, expected.squared_norms, rtol=1e-9, atol=1e-12)
    few = np.array([1, 2, 5, 17, 30])
    np.testing.assert_allclose(found.at(few), expected.at(few), rtol=1e-9, atol=1e-12)


@move_to_each
def test_small_deviations_keep_their_digits(move):
    """In float32 around 1000 a deviation of 1 has four digits; a mean carried as a vector would cost three of them."""
    random = np.random.default_rng(0)
    X = (1000.0 + random.standard_normal((200, 30))).astype(np.float32)
    host, there = make_design(X, "zscore"), make_design(move(X), "zscore")
    residual = host.sample_weights.centred(random.standard_normal((3, 200)))
    np.testing.assert_allclose(there.scale, host.scale, rtol=1e-6)
    np.testing.assert_allclose(there.pull(residual), host.pull(residual), atol=1e-4)
    np.testing.assert_allclose(there.take(np.arange(30), slice(None)), host.take(np.arange(30), slice(None)), atol=1e-5)


@move_to_each
def test_tiny_and_huge_features_are_scaled_in_float64(move):
    random = np.random.default_rng(0)
    X = random.standard_normal((50, 4)) * np.array([1e-200, 1.0, 1e150, 0.0])
    host, there = make_design(X[:, [0, 1, 3]], "zscore"), make_design(move(X[:, [0, 1, 3]]), "zscore")
    assert there.varies.tolist() == [True, True, False]
    np.testing.assert_allclose(there.scale, host.scale, rtol=1e-9)
    with pytest.raises(ValueError, match=r"Divide X by a constant"):
        make_design(move(X[:, [1, 2]]), "none")
    with pytest.raises(ValueError, match="constant, so there is nothing to select"):
        make_design(move(np.ones((5, 3))))


SOLVERS = {
    "forward": lambda problem: forward(problem, 25),
    "ahiht": lambda problem: ahiht(problem, Schedule(n_rows=20)),
    "ahiht, lazy": lambda problem: ahiht(problem, Schedule(n_rows=20), lazy=True),
    "hiht": lambda problem: hiht(problem, Schedule(n_rows=8)),
    "swap": lambda problem: swap(problem, 6),
}


@in_each_dtype
@move_to_each
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_stage_is_that_of_numpy(move, dtype, name, shape, solver):
    host, there = both(move, shape, dtype, name)
    expected, found = SOLVERS[solver](host), SOLVERS[solver](there)
    assert_same_path(found, expected, dtype)
    k = min(6, len(expected.coef_rows))
    refits = found.with_refits(there, k).refit(k), expected.with_refits(host, k).refit(k)
    np.testing.assert_allclose(refits[0].coef, refits[1].coef, rtol=1e-6 if dtype == np.float64 else 1e-2, atol=1e-4)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.tuples(st.integers(20, 60), st.integers(13, 90)),
    ridge=st.sampled_from([0.01, 1.0]),
    scale=st.sampled_from(["none", "zscore", "moderated"]),
)
def test_forward_of_random_problems_is_that_of_numpy(seed, shape, ridge, scale):
    X, Y, _ = make_problem_data(*shape, np.float64, seed)
    for move in LIBRARIES.values():
        expected = forward(LeastSquares(X, Y, ridge=ridge, scale=scale), 12)
        found = forward(LeastSquares(move(X), Y, ridge=ridge, scale=scale), 12)
        assert_same_path(found, expected, np.float64)
        assert found.order.tolist() == expected.order.tolist()


@move_to_each
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_more_rows_than_the_basis_has_places_at_first(move, ridge, monkeypatch):
    monkeypatch.setattr(device, "FIRST_PLACES", 1)
    monkeypatch.setattr(device, "FIRST_LINES", 0)
    monkeypatch.setattr(device, "FEWEST_AHEAD", 2)
    monkeypatch.setattr(device, "PART_ELEMENTS", 64)  # several parts for a batch
    X, Y, _ = make_problem_data(80, 60, np.float64)
    expected, found = (forward(LeastSquares(kind(X), Y, ridge=ridge), 40) for kind in (np.asarray, move))
    assert_same_path(found, expected, np.float64)


@move_to_each
def test_wrong_foresight_changes_nothing(move, monkeypatch):
    X, Y, _ = make_problem_data(60, 90, np.float64)
    expected = forward(LeastSquares(X, Y, ridge=0.1), 16)
    problem = LeastSquares(move(X), Y, ridge=0.1)

    def foresee_badly(first, gram, products, room, n_rows, may_gain, outside, loss):
        others = [j for j in np.flatnonzero(may_gain).tolist() if j != first]
        return [first, *others][:n_rows]

    calls = []
    settle = DeviceActiveSet._settle

    def count(self, rows, directions, least):
        calls.append((len(rows), settle(self, rows, directions, least)))
        return calls[-1][1]

    monkeypatch.setattr(DeviceActiveSet, "_settle", count)
    forward(problem, 16)
    n_batches = len(calls)
    monkeypatch.setattr(device, "foresee", foresee_badly)
    assert_same_path(forward(problem, 16), expected, np.float64)
    assert n_batches == 1
    assert len(calls) > 5
    assert any(n_right < n_rows for n_rows, n_right in calls)


@move_to_each
def test_correlated_features_are_chosen_as_by_numpy(move):
    """Groups of near copies: the best one of a group takes the worth of the others with it."""
    random = np.random.default_rng(0)
    factors = random.standard_normal((100, 15))
    X = np.repeat(factors, 20, axis=1) + 0.1 * random.standard_normal((100, 300))
    Y = factors @ random.standard_normal((15, 4)) + random.standard_normal((100, 4))
    for ridge in (0.0, 0.5):
        expected, found = (forward(LeastSquares(kind(X), Y, ridge=ridge), 40) for kind in (np.asarray, move))
        assert_same_path(found, expected, np.float64)


@move_to_each
def test_nothing_more_to_gain_ends_the_path(move):
    """Fewer independent features than asked for, and copies of them."""
    random = np.random.default_rng(0)
    X = random.standard_normal((30, 5))
    X = np.hstack([X, X, X @ random.standard_normal((5, 4))])
    Y = random.standard_normal((30, 2))
    expected, found = (forward(LeastSquares(kind(X), Y), 14) for kind in (np.asarray, move))
    assert found.n_nonzero[-1] == 5
    assert_same_path(found, expected, np.float64)
    assert found.order.tolist() == expected.order.tolist()


@move_to_each
def test_a_path_ends_at_alpha(move):
    X, Y, _ = make_problem_data(60, 90, np.float64)
    expected = forward(LeastSquares(X, Y, ridge=0.1), 3, target=0.5)
    found = forward(LeastSquares(move(X), Y, ridge=0.1), 3, target=0.5)
    assert 3 < expected.n_nonzero[-1] < 40
    assert_same_path(found, expected, np.float64)


@move_to_each
@pytest.mark.parametrize("ridge", [0.0, 1e-6, 0.7])
def test_the_lines_of_the_basis_are_orthonormal(move, ridge):
    X, Y, _ = make_problem_data(60, 40, np.float64)
    X[:, 20:40] = X[:, :20] + 1e-4 * np.random.default_rng(1).standard_normal((60, 20))  # nearly dependent
    problem = LeastSquares(move(X), Y, ridge=ridge)
    active = DeviceActiveSet(problem)
    while len(active) < 25:
        assert active.grow(25 - len(active))
    lines = as_numpy(active.basis._lines)[:25]
    np.testing.assert_allclose(lines @ lines.T, np.eye(25), atol=1e-12)
    rows = np.array(active.rows)
    columns = problem.design.take(rows, slice(None))
    stacked, target = np.vstack([columns, np.sqrt(problem.ridge) * np.eye(25)]), np.zeros((85, 3))
    target[:60] = problem.targets.T
    weights = np.linalg.lstsq(stacked, target)[0]
    np.testing.assert_allclose(active.weights.T, weights, rtol=1e-5, atol=1e-6)
    residual = problem.targets - (columns @ weights).T
    np.testing.assert_allclose(as_numpy(active._residual), residual, atol=1e-8)
    energies = problem.ridge * np.vdot(weights, weights)
    assert active.loss == pytest.approx(0.5 * np.vdot(residual, residual) + 0.5 * energies, rel=1e-8)
    outside = np.setdiff1d(np.flatnonzero(problem.design.varies), rows)
    for row in outside[:5]:
        with_it = problem.design.take(np.append(rows, row), slice(None))
        stacked = np.vstack([with_it, np.sqrt(problem.ridge) * np.eye(26)])
        target = np.vstack([problem.targets.T, np.zeros((26, 3))])
        left = target - stacked @ np.linalg.lstsq(stacked, target)[0]
        assert as_numpy(active.merits())[row] == pytest.approx(active.loss - 0.5 * np.vdot(left, left), rel=1e-5, abs=1e-9)


@move_to_each
@pytest.mark.parametrize("ridge", [0.0, 1e-9])
def test_nearly_dependent_columns_of_one_batch(move, ridge):
    X, Y, _ = make_problem_data(60, 40, np.float64)
    X[:, 20:26] = X[:, :6] + 1e-4 * np.random.default_rng(1).standard_normal((60, 6))
    problem = LeastSquares(move(X), Y, ridge=ridge)
    basis = DeviceBasis(problem)
    for rows in ([0, 1, 2, 20, 21, 22], [3, 23, 4, 24]):
        basis.extend(np.array(rows), np.zeros(len(rows)))
    lines = as_numpy(basis._lines)[:10]
    np.testing.assert_allclose(lines @ lines.T, np.eye(10), atol=1e-12)
    columns = np.vstack([problem.design.take(np.array(basis.rows), slice(None)), np.sqrt(problem.ridge) * np.eye(10)])
    triangle = np.linalg.inv(basis.inverse)
    np.testing.assert_allclose(lines[:, :60].T @ triangle, columns[:60], atol=1e-7)


@move_to_each
def test_products_are_made_anew_with_every_batch(move):
    X, Y, _ = make_problem_data(60, 40, np.float64)
    problem = LeastSquares(move(X), Y, ridge=0.1)
    active = DeviceActiveSet(problem)
    active._products = active._products + 1e-3  # far more than rounding ever would
    active.grow(5)
    expected = problem.design.pull(as_numpy(active._residual))
    np.testing.assert_allclose(as_numpy(active._products), expected, atol=1e-9)


def test_of_equal_rows_the_lowest_counts():
    """Equal but for rounding, be they in the batch or not."""
    rows, gains = np.array([4, 7, 6]), np.array([[0.0, 3.0, 1.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    nothing, low = np.zeros((1, 3)), np.array([[5, 5, 5]])
    options = {"tie": 1e-9, "least": 0.0}
    assert n_leading(rows, gains, nothing, low, **options) == 3
    for others, n_right in ((3.0, 1), (3.0 - 1e-12, 1), (3.0 - 1e-6, 3), (3.1, 1)):
        assert n_leading(rows, gains, np.array([[others, 0.0, 0.0]]), low, **options) == n_right
    assert n_leading(rows, gains, np.array([[3.0 - 1e-12, 0.0, 0.0]]), low + 4, **options) == 3
    gains[0, 2] = 3.0 - 1e-12
    assert n_leading(rows, gains, nothing, low, **options) == 1


def test_rows_without_room_are_left_out():
    gram = np.eye(4) + 1.0
    np.testing.assert_allclose(leading_triangle(gram, np.zeros(4)), np.linalg.cholesky(gram))
    gram[2] = gram[:, 2] = gram[0]
    gram[2, 2] = gram[0, 0]
    assert leading_triangle(gram, np.full(4, 1e-9)).shape == (2, 2)
    assert leading_triangle(gram, np.full(4, 1e9)).shape == (1, 1)


@move_to_each
def test_a_row_is_foreseen_once_where_the_last_ones_gain_no_more_than_rounding(move):
    """As many features as samples leave to them, in float32: one of the draws in which a row came twice."""
    random = np.random.default_rng(2250)
    n_samples = random.integers(6, 25)
    X = random.standard_normal((n_samples, 10)) * random.choice([1, 1, 3], 10)
    X, y = X.astype(random.choice([np.float32, np.float64])), random.integers(0, random.choice([2, 3]), n_samples)
    rows = L20Selector(10).fit(move(X), y).path_.stage_rows(-1)
    assert len(np.unique(rows)) == len(rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_foreseen_rows_are_those_that_lower_the_loss_most(dtype):
    random = np.random.default_rng(3)
    columns, targets = random.standard_normal((25, 14)), random.standard_normal((25, 3))

    def loss(rows):
        return np.square(targets - columns[:, rows] @ np.linalg.lstsq(columns[:, rows], targets)[0]).sum()

    may_gain = np.arange(14) != 5
    expected = []
    while len(expected) < 8:
        expected.append(min((j for j in range(14) if may_gain[j] and j not in expected), key=lambda j: loss([*expected, j])))
    gram, products = columns.T @ columns, targets.T @ columns
    arguments = (expected[0], gram.astype(dtype), products, np.diagonal(gram), 8, may_gain)
    assert foresee(*arguments) == expected
    # One outside the candidates ends them where its gain, as far as it falls with the loss, is above theirs.
    losses = np.array([0.5 * loss(expected[:n]) for n in range(9)])
    falls = -np.diff(losses)
    outside = 1.001 * falls[5] / losses[5] * losses[0] / device.OUTSIDE_SHARE
    n_before = int((falls[1:] < device.OUTSIDE_SHARE * outside * losses[1:8] / losses[0]).argmax()) + 1
    assert foresee(*arguments, outside, losses[0]) == expected[:n_before]


class Transfers:
    """Count what comes to the host, and note the largest of it."""

    def __init__(self, monkeypatch):
        self.sizes = []
        fetch = Place.fetch

        def counted(place, array):
            host = fetch(place, array)
            self.sizes.append(host.size)
            return host

        monkeypatch.setattr(Place, "fetch", counted)


def test_forward_moves_little(monkeypatch):
    X, Y, _ = make_problem_data(50, 3000, np.float64)
    problem = LeastSquares(array_api_strict.asarray(X), Y, ridge=1.0)
    monkeypatch.setattr(device, "FEWEST_CANDIDATES", 100)
    monkeypatch.setattr(device, "CANDIDATES_PER_ROW", 1)
    monkeypatch.setattr(device, "FIRST_LINES", 0)
    monkeypatch.setattr(device, "FEWEST_AHEAD", 8)
    active = DeviceActiveSet(problem)
    transfers = Transfers(monkeypatch)
    n_batches = 0
    while len(active) < 24:
        active.grow(24 - len(active))
        n_batches += 1
    assert n_batches <= 4
    assert len(transfers.sizes) <= 6 * n_batches
    assert max(transfers.sizes) <= 100 * 100  # the inner products of the candidates


def test_homotopies_move_little(monkeypatch):
    X, Y, _ = make_problem_data(50, 3000, np.float64)
    problem = LeastSquares(array_api_strict.asarray(X), Y, ridge=1.0)
    assert problem.lipschitz_lower > 0.0
    transfers = Transfers(monkeypatch)
    trials, propose = [], Walk.propose
    monkeypatch.setattr(Walk, "propose", lambda walk, lam: trials.append(lam) or propose(walk, lam))
    ahiht(problem, Schedule(n_rows=15))
    assert len(transfers.sizes) <= 3 * len(trials) + 4
    assert sorted(transfers.sizes)[-3] < X.shape[1]  # at the end the numbers per feature, and once their closeness


@in_each_dtype
@move_to_each
@pytest.mark.parametrize("solver", ["forward", "ahiht"])
def test_selector_answers_as_with_numpy_and_where_x_is(move, dtype, solver):
    X, _, y = make_problem_data(60, 80, dtype)
    there = move(X)
    before = as_numpy(there)
    expected = L20Selector(6, solver=solver, max_features=10).fit(X, y)
    selector = L20Selector(6, solver=solver, max_features=10).fit(there, move(y))
    assert selector.support_.tolist() == expected.support_.tolist()
    assert selector.ranking_[:13].tolist() == expected.ranking_[:13].tolist()
    np.testing.assert_allclose(selector.coef_, expected.coef_, rtol=1e-2 if dtype == np.float32 else 1e-7, atol=1e-5)
    assert selector.n_features_in_ == 80
    assert selector.classes_.tolist() == [0, 1, 2]
    for name, value in vars(selector).items():
        assert not is_device_array(value), name
    reduced = selector.transform(there)
    assert type(reduced) is type(there)
    assert reduced.dtype == there.dtype
    assert xpc.device(reduced) == xpc.device(there)
    np.testing.assert_array_equal(as_numpy(reduced), X[:, selector.support_])
    np.testing.assert_array_equal(selector.transform(X), X[:, selector.support_])
    np.testing.assert_array_equal(as_numpy(there), before)
    again = pickle.loads(pickle.dumps(selector))
    np.testing.assert_array_equal(as_numpy(again.set_params(n_features_to_select=3).transform(there)), X[:, again.support_])


SETTINGS = [
    {"n_features_to_select": None, "alpha": 0.5, "ridge": 0.1},
    {"n_features_to_select": 4, "class_weight": {0: 2.0}, "scale": "none", "ridge": 0.01},
    {"n_features_to_select": 4, "include": [30], "exclude": [1]},
    {"n_features_to_select": 4, "solver": "ahiht", "penalty_factor": {1: 2.0, 3: 0.5}},
    {"n_features_to_select": 3, "feature_groups": [[0, 20], [1, 2, 3]]},
    {"n_features_to_select": 3, "loss": "l21"},
    {"n_features_to_select": 3, "certify": True},
    {"n_features_to_select": 4, "solver": HIHT(init="gaussian", random_state=0, max_iter=20)},
    {"n_features_to_select": 4, "solver": "swap", "ranking": "norm"},
]


@move_to_each
@pytest.mark.parametrize("parameters", SETTINGS, ids=str)
def test_all_settings_work(move, parameters):
    X, _, y = make_problem_data(50, 40, np.float64)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = L20Selector(**parameters).fit(X, y, sample_weight=weights)
        selector = L20Selector(**parameters).fit(move(X), y, sample_weight=move(weights))
    assert selector.support_.tolist() == expected.support_.tolist()
    np.testing.assert_allclose(selector.coef_, expected.coef_, rtol=1e-5, atol=1e-8)


@move_to_each
def test_numbers_as_targets_from_any_place(move):
    X, _, _ = make_problem_data(50, 40, np.float64)
    Y = X[:, [3, 5]] + 0.1 * np.random.default_rng(0).standard_normal((50, 2))
    expected = L20Selector(2).fit(X, Y)
    for targets in (Y, move(Y), Y.tolist()):
        assert L20Selector(2).fit(move(X), targets).support_.tolist() == expected.support_.tolist()


@move_to_each
def test_what_cannot_be_taken_is_refused(move):
    X, y = make_data()
    there = move(X)
    with pytest.raises(TypeError, match=r"it must be float32 or float64\. Convert"):
        L20Selector(3).fit(move(X.astype(np.int64)), y)
    with pytest.raises(ValueError, match="1 dimensions; expected 2"):
        L20Selector(3).fit(move(X[0]), y)
    with pytest.raises(ValueError, match=r"X has the shape \(12,\)\. Give a matrix of two axes"):
        L20Selector(3).fit(X, y).transform(move(X[0]))
    with pytest.raises(ValueError, match=r"shape \(1, 12\)\. Give at least 2 samples"):
        L20Selector(3).fit(move(X[:1]), y[:1])
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[60, 59\]"):
        L20Selector(3).fit(there, y[:-1])
    with pytest.raises(ValueError, match="one class only"):
        L20Selector(3).fit(there, np.zeros(60))
    with pytest.raises(NotFittedError):
        L20Selector(3).transform(there)
    selector = L20Selector(3).fit(X, y)
    with pytest.raises(ValueError, match="X has 11 features, but L20Selector is expecting 12"):
        selector.transform(move(X[:, :11]))
    for value, message in ((np.nan, r"X has 2 missing values \(NaN\)\."), (-np.inf, r"X has 2 infinite values \(inf\)\.")):
        spoilt = X.copy()
        spoilt[3, 4:6] = value
        with pytest.raises(ValueError, match=message):
            L20Selector(3).fit(move(spoilt), y)
    for estimator in (L20SelectorCV(max_features=3, preprocess=StandardScaler()), StabilitySelector(LFS(3))):
        with pytest.raises(TypeError, match=r"X is a (torch|array_api_strict) array, .* Convert it first, for example"):
            estimator.fit(there, y)
    with pytest.raises(TypeError, match="Convert it first"):
        selector.selection_frame(there)


@move_to_each
def test_large_values_work_and_larger_ones_are_refused(move):
    """Neither are infinite values, even where their sum is."""
    X, _, y = make_problem_data(40, 20, np.float32)
    X[:, 3] = np.where(y == 0, np.float32(2e16), np.float32(1e16))
    expected = L20Selector(3).fit(X, y)
    assert expected.support_[3]
    assert L20Selector(3).fit(move(X), y).support_.tolist() == expected.support_.tolist()
    X[:, 3] *= np.float32(1e22)
    for scale in ("none", "zscore"):
        with pytest.raises(ValueError, match=r"overflow in float32\. Divide X by a constant"):
            L20Selector(3, scale=scale).fit(move(X), y)


@move_to_each
def test_nothing_is_selected(move):
    X, y = make_data()
    selector = L20Selector(None, alpha=1e9).fit(X, y)
    with pytest.warns(UserWarning, match="No features were selected"):
        reduced = selector.transform(move(X))
    assert tuple(reduced.shape) == (60, 0)


@pytest.mark.filterwarnings("ignore:Sparse CSC tensor support")
def test_tensors_that_are_no_plain_arrays_are_refused():
    torch = pytest.importorskip("torch")
    X, y = make_data()
    there, selector = torch.tensor(X), L20Selector(3).fit(X, y)
    weights = torch.ones(60)
    for sparse in (there.to_sparse(), there.to_sparse_csc()):
        for method in (lambda X: L20Selector(3).fit(X, y), selector.transform):
            with pytest.raises(TypeError, match=r"X is a tensor of the layout torch\.sparse_c.*\. Use X\.to_dense\(\)"):
                method(sparse)
    with pytest.raises(ValueError, match="X is on the device 'meta', where tensors have no values"):
        L20Selector(3).fit(there.to("meta"), y)
    with pytest.raises(ValueError, match="y is on the device 'meta'"):
        L20Selector(3).fit(there, torch.tensor(y, device="meta"))
    with pytest.raises(TypeError, match=r"y is a tensor of the layout .* Use y\.to_dense\(\)"):
        L20Selector(3).fit(there, torch.tensor(y).to_sparse())
    with pytest.raises(ValueError, match="sample_weight is on the device 'meta'"):
        L20Selector(3).fit(there, y, sample_weight=weights.to("meta"))
    with pytest.raises(TypeError, match=r"sample_weight is a tensor of the layout .* Use sample_weight\.to_dense\(\)"):
        L20Selector(3).fit(there, y, sample_weight=weights.to_sparse())


def test_types_that_numpy_does_not_have():
    torch = pytest.importorskip("torch")
    X, y = make_data()
    weights = np.arange(60) % 3
    expected = L20Selector(3).fit(X, y, sample_weight=weights)
    found = L20Selector(3).fit(
        torch.tensor(X), torch.tensor(y).bfloat16(), sample_weight=torch.tensor(weights, dtype=torch.bfloat16)
    )
    assert found.support_.tolist() == expected.support_.tolist()
    there = torch.tensor(X).bfloat16()
    with pytest.raises(TypeError, match=r"X has the type torch\.bfloat16; .* Convert it first: X\.float\(\)") as caught:
        L20Selector(3).fit(there, y)
    L20Selector(3).fit(eval(str(caught.value).rpartition(": ")[2].rstrip("."), {"X": there}), y)


def test_gradients_of_torch_are_not_recorded():
    torch = pytest.importorskip("torch")
    X, y = make_data()
    there = torch.tensor(X, requires_grad=True)
    expected = L20Selector(3).fit(X, y)
    assert L20Selector(3).fit(there, y).support_.tolist() == expected.support_.tolist()
    assert there.grad is None


def test_layouts_of_torch_give_the_same_answer():
    torch = pytest.importorskip("torch")
    X, _, y = make_problem_data(40, 30, np.float64)
    expected = L20Selector(5).fit(X, y)
    for there in (torch.tensor(X.T.copy()).T, torch.tensor(np.repeat(X, 2, axis=0))[::2]):
        assert L20Selector(5).fit(there, y).support_.tolist() == expected.support_.tolist()
