"""Fits on matrices in blocks: the same as on the whole matrix, with few passes and little to move."""

from __future__ import annotations

import gc
import itertools
import logging

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from blocked import cut, make_counts
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from l20fs import AHIHT, L20Classifier, L20Regressor, L20Selector, StabilitySelector
from l20fs.blocks import as_blocks
from l20fs.design import kernels, make_design, moments, tiles
from l20fs.design.column_cache import AT_ONCE, ColumnCache
from l20fs.design.moments import MODEST, centre, measure, merge
from l20fs.estimators.selection_table import likeness
from l20fs.methods import FisherScore
from l20fs.objective import make_problem
from l20fs.objective.gram_least_squares import GramLeastSquares
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers import Schedule, ahiht, forward, hiht, swap

SOLVERS = {
    "ahiht": lambda problem, **more: ahiht(problem, Schedule(n_rows=8), **more),
    "hiht": lambda problem, **more: hiht(problem, Schedule(n_rows=8), max_iter=2000, **more),
    "forward": lambda problem, **more: forward(problem, 8, **more),
    "swap": lambda problem, **more: swap(problem, 5, **more),
}
SHAPES = {"tall": (70, 24), "wide": (24, 70)}
KINDS = {"dense": np.asarray, "csr": sp.csr_array}


@pytest.fixture(params=["small", "large"])
def gram_size(request, monkeypatch):
    """Let the Gram matrix be made whole, or line by line."""
    if request.param == "large":
        monkeypatch.setattr("l20fs.design.gram.SMALL_GRAM", 0)
        monkeypatch.setattr("l20fs.design.blocked.PROBES", 24)  # an exact eigenvalue: the rest is about the path
    return request.param


def assert_same_path(path, expected, rtol):
    np.testing.assert_array_equal(path.indptr, expected.indptr)
    np.testing.assert_array_equal(path.indices, expected.indices)
    np.testing.assert_allclose(path.alphas, expected.alphas, rtol=rtol)
    np.testing.assert_allclose(path.losses, expected.losses, rtol=rtol, atol=rtol * float(expected.null_loss))
    np.testing.assert_allclose(
        path.coef_values, expected.coef_values, rtol=0, atol=rtol * np.abs(expected.coef_values).max()
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_support_is_that_of_the_whole_matrix_at_every_stage(shape, kind, dtype, rtol, gram_size):
    X, y = make_counts(3, *SHAPES[shape])
    X, Y = KINDS[kind](X.astype(dtype)), np.eye(3)[y]
    whole = LeastSquares(X, Y, ridge=0.5, scale="zscore")
    for name in ("ahiht", "hiht", "forward"):
        expected = SOLVERS[name](whole)
        for axis in (0, 1):
            for n_blocks in (1, 3, 16):
                problem = make_problem(cut(X, axis, n_blocks), Y, ridge=0.5, scale="zscore")
                assert_same_path(SOLVERS[name](problem), expected, 10 * rtol[np.dtype(dtype)])
                assert isinstance(problem, GramLeastSquares) is ((shape, axis) != ("wide", 1))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_any_data_any_weights_any_solver(shape, axis, seed):
    rng = np.random.default_rng(seed)
    X, y = make_counts(seed, *SHAPES[shape])
    X[:, 4] = rng.choice([0.0, 7.0])  # a constant feature
    X[:, 5] += 1000.0
    Y = np.eye(3)[y]
    options = {
        "ridge": float(rng.choice([0.0, 0.1, 10.0])),
        "scale": str(rng.choice(["none", "zscore", "moderated", "auto"])),
        "sample_weight": None if rng.random() < 0.5 else rng.integers(0, 3, len(X)) + 0.5 * (np.arange(len(X)) < 9),
        "target_weights": rng.random(3) + 0.5,
    }
    name = str(rng.choice(list(SOLVERS)))
    X = KINDS[str(rng.choice(list(KINDS)))](X)
    whole, parts = make_problem(X, Y, **options), make_problem(cut(X, axis, int(rng.integers(1, 6))), Y, **options)
    assert_same_path(SOLVERS[name](parts), SOLVERS[name](whole), 1e-6)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_wishes_of_users(shape, axis):
    X, y = make_counts(1, *SHAPES[shape])
    Y = np.eye(3)[y]
    whole, parts = (make(X_, Y, ridge=1.0) for make, X_ in ((LeastSquares, X), (make_problem, cut(X, axis, 4))))
    factors = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0, np.inf], size=X.shape[1], p=[0.1, 0.2, 0.4, 0.2, 0.1])
    single = RowPenalty(np.arange(X.shape[1]), factors)
    grouped = RowPenalty.of_groups(np.arange(X.shape[1]) // 2, np.ones(X.shape[1]))
    for name, solve in SOLVERS.items():
        assert_same_path(solve(parts, penalty=single), solve(whole, penalty=single), 1e-7)
        if name.endswith("hiht") or not isinstance(parts, GramLeastSquares):
            assert_same_path(solve(parts, penalty=grouped), solve(whole, penalty=grouped), 1e-7)
        else:
            with pytest.raises(ValueError, match=r"feature_groups with the solvers .* Use solver='ahiht' or 'hiht'"):
                solve(parts, penalty=grouped)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("init", ["gaussian", "array"])
@pytest.mark.parametrize("shape", SHAPES)
def test_starts_other_than_zero(shape, init, axis):
    X, y = make_counts(2, *SHAPES[shape])
    start = init if init == "gaussian" else np.random.default_rng(0).standard_normal((3, X.shape[1])) * 1e-4
    settings = {"solver": AHIHT(init=start, random_state=0)}
    expected = L20Selector(6, **settings).fit(X, y)
    blocks = cut(X, axis, 3, budget=2**12 if (shape, axis) == ("wide", 1) else 2**24)  # in plan E weights travel, if need be
    assert_same_path(L20Selector(6, **settings).fit(blocks, y).path_, expected.path_, 1e-7)


# What a pass measures


@given(seed=st.integers(0, 10**6))
def test_moments(seed):
    rng = np.random.default_rng(seed)
    n_samples = int(rng.integers(2, 40))
    X = rng.standard_normal((n_samples, 5)) * 10.0 ** rng.integers(-3, 4, 5) + 10.0 ** rng.integers(0, 7, 5)
    X[rng.random(X.shape) < rng.random()] = 0.0
    weights = None if rng.random() < 0.5 else rng.integers(0, 3, n_samples).astype(float)
    if weights is not None:
        weights[0] = 1.0
    parts = np.split(np.arange(n_samples), np.sort(rng.integers(1, n_samples, 2)))
    parts = [part for part in parts if len(part)]
    kind = [np.asarray, sp.csr_array, sp.csc_array, sp.csr_matrix, sp.coo_array][rng.integers(5)]
    found = None
    for part in parts:
        measured = measure(kind(X[part]), None if weights is None else weights[part])
        found = measured if found is None else merge(found, measured)
    mean = np.average(X, axis=0, weights=weights)
    squares = np.average((X - mean) ** 2, axis=0, weights=weights) * found.weight
    assert found.weight == (n_samples if weights is None else weights.sum())
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.squares, squares, rtol=1e-9, atol=1e-22 * np.square(X).max())


@given(seed=st.integers(0, 10**6))
def test_moments_of_values_of_any_size(seed):
    """The same numbers times a power of two have the same moments times that power, in whatever blocks they come."""
    rng = np.random.default_rng(seed)
    n_samples = int(rng.integers(2, 12))
    X = rng.standard_normal((n_samples, 6)) + rng.choice([0.0, 0.0, 1e3], 6)
    X[rng.random(X.shape) < rng.random()] = 0.0
    exponents = rng.choice([-990, -600, -399, 0, 401, 700, 1000], 6)
    weights = None if rng.random() < 0.5 else rng.integers(0, 3, n_samples) + (np.arange(n_samples) == 0)
    kind = [np.asarray, sp.csr_array, sp.csc_array, sp.coo_array][rng.integers(4)]
    edges = np.unique([0, *rng.integers(0, n_samples, 3), n_samples])
    found = None
    for start, stop in itertools.pairwise(edges):
        own = None if weights is None else weights[start:stop]
        measured = measure(kind(np.ldexp(X, exponents)[start:stop]), own)
        found = measured if found is None else merge(found, measured)
    mean = np.average(X, axis=0, weights=weights)
    length = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights) * found.weight)
    np.testing.assert_allclose(np.ldexp(found.mean, -exponents), mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.ldexp(found.length, -exponents), length, rtol=1e-9, atol=1e-12 * np.abs(X).max())


EXTREMES = {
    "one tiny column": lambda X, y: np.where(np.arange(X.shape[1]) == 4, 1e-180 * (y == 0)[:, None], X),
    "one huge column": lambda X, y: np.where(np.arange(X.shape[1]) == 4, 1e160 * (y == 0)[:, None], X),
    "all tiny": lambda X, y: X * 1e-200,
    "all huge": lambda X, y: X * 1e160,
    "next to nothing": lambda X, y: X * 1e-303,
    "all tiny, float32": lambda X, y: (X * 1e-36).astype(np.float32),
    "all huge, float32": lambda X, y: (X * 1e36).astype(np.float32),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("change", EXTREMES)
def test_values_too_small_or_too_large_to_be_squared(change, shape, kind):
    X, y = make_counts(3, *SHAPES[shape])
    X = KINDS[kind](EXTREMES[change](X, y))
    expected = L20Selector(5, scale="zscore").fit(X, y)
    for axis in (0, 1):
        for n_blocks in (1, 4):
            found = L20Selector(5, scale="zscore").fit(cut(X, axis, n_blocks), y)
            np.testing.assert_array_equal(found.get_support(), expected.get_support())
            np.testing.assert_allclose(found.path_.losses, expected.path_.losses, rtol=1e-5)
    if change.startswith("one"):
        assert found.get_support()[4]


@pytest.mark.parametrize(("factor", "message"), [
    (1e-200, r"The largest deviation of a feature of X .* below 9e-78 the squares underflow"),
    (1e160, r"A feature of X has the deviation .* above 1e\+77 the squares overflow"),
])  # fmt: skip
def test_values_too_small_or_too_large_as_they_are(factor, message):
    X, y = make_counts(3, 90, 30)
    for axis in (0, 1):
        with pytest.raises(ValueError, match=message):
            L20Selector(5, scale="none").fit(cut(X * factor, axis, 3), y)


def test_values_that_are_stored_twice_are_summed():
    block = sp.csr_array((np.array([1.0, 2.0, 5.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    before = block.data.copy()
    np.testing.assert_allclose(measure(block, None).squares, [4.5, 12.5])
    np.testing.assert_array_equal(block.data, before)


@pytest.mark.parametrize("mean", [1e8, 1e12])
def test_sparse_columns_far_from_zero_are_centred_before_they_are_multiplied(mean):
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((60, 9)) * 2.0**10) / 2.0**10 + mean
    X[:, ::3] = rng.integers(0, 2, (60, 3))
    X[7, 1] = 0.0  # next to full
    lengths = X.std(axis=0)
    columns = kernels.Columns(X.mean(axis=0), np.zeros(9), lengths, np.flatnonzero(X.mean(axis=0) > MODEST * lengths))
    assert columns.far.tolist() == [2, 4, 5, 7, 8]
    for kernel, width in ((kernels.products, 60), (kernels.images, 9)):
        values = rng.standard_normal((2, width))
        found = kernel(sp.csr_array(X), columns, values)
        expected = kernel(X, columns, values)
        np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_large_means_cost_no_digits(axis, dtype):
    """Mean 1000 and deviation 1 in float32, as in the design notes; the truth is the same float32 numbers in float64."""
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((60, 90)) + 1000.0).astype(dtype)
    residual = rng.standard_normal((3, 60))
    residual -= residual.mean(axis=1, keepdims=True)
    truth = residual @ make_design(X.astype(np.float64)).take(np.arange(90), slice(None))
    design = make_design(cut(X, axis, 4))
    found = design.matrix.products(residual)
    assert np.abs(found - truth).max() < (1e-6 if dtype == np.float32 and axis else 1e-11) * np.abs(truth).max()


def test_eigenvalues():
    X = np.random.default_rng(0).standard_normal((400, 500)) * np.linspace(0.1, 2.0, 500)
    top = np.linalg.norm(X - X.mean(axis=0), 2) ** 2
    for axis in (0, 1):
        matrix = make_design(cut(X, axis, 4)).matrix
        assert 0.98 * top < matrix.gram_top() < 1.02 * top
        assert 0.97 * top < matrix._top_by_passes() < (1 + 1e-9) * top
    assert 0.98 * top < make_design(cut(X, 0, 4)).gram_top() < 1.02 * top


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-9), (np.float32, 1e-5)])
def test_the_step_size_on_blocks_of_columns_is_that_of_the_whole(dtype, rtol, monkeypatch):
    """By the same search from the same start, on X X' in the precision of X: other steps would be other iterates."""
    monkeypatch.setattr(kernels, "BLOCK_ELEMENTS", 1 << 12)  # several steps per block
    X = np.random.default_rng(0).standard_normal((300, 400)).astype(dtype) + dtype(1.0)
    weights = np.random.default_rng(1).random(300)
    np.testing.assert_allclose(
        make_design(cut(X, 1, 3), "none", weights).gram_top(), make_design(X, "none", weights).gram_top(), rtol=rtol
    )


@pytest.mark.parametrize("axis", [0, 1])
def test_designs_answer_like_the_whole(axis):
    X, _ = make_counts(5, 24, 70)
    X[:, 2] = 3.0
    weights = np.random.default_rng(0).random(24) + 0.5
    whole, design = make_design(X, "zscore", weights), make_design(cut(X, axis, 3), "zscore", weights)
    for name in ("mean", "scale", "column_energy", "varies", "max_sample_energy"):
        np.testing.assert_allclose(getattr(design, name), getattr(whole, name), rtol=1e-10, atol=1e-10, err_msg=name)
    every = np.arange(70)
    lines = whole.take(every, slice(None)).T
    np.testing.assert_allclose(design.matrix.lines(every[::3]), lines[::3], atol=1e-12)
    np.testing.assert_allclose(design.matrix.gram_lines(every[5:9]), lines[5:9] @ lines.T, atol=1e-9)
    if axis == 1:
        residual = whole.sample_weights.centred(np.random.default_rng(1).standard_normal((2, 24)))
        rows = np.array([3, 60, 7, 2])
        expected = residual @ lines.T
        np.testing.assert_allclose(design.pull(residual), expected, atol=1e-11)
        np.testing.assert_allclose(design.pull(residual, rows), expected[:, rows], atol=1e-11)
        np.testing.assert_allclose(design.pull_among(rows)(residual), expected[:, rows], atol=1e-11)
        np.testing.assert_allclose(design.pull_among(slice(20, 55))(residual), expected[:, 20:55], atol=1e-11)
        np.testing.assert_allclose(design.take(rows, slice(3, 9)), lines[rows, 3:9].T, atol=1e-12)
        np.testing.assert_allclose(design.push(rows, np.eye(4)), lines[rows], atol=1e-12)
        np.testing.assert_allclose(design.matrix.images(np.eye(70)[:5]), lines[:5], atol=1e-12)
        found, squares = design.matrix.long_columns(residual, 1.0)
        np.testing.assert_array_equal(found, np.flatnonzero(np.square(expected).sum(axis=0) > 1.0))
        np.testing.assert_allclose(squares, np.square(expected).sum(axis=0)[found], rtol=1e-9)


def test_refits():
    X, y = make_counts(7, 80, 20)
    X[:, 6] = X[:, 3] + X[:, 0]  # depends on what is before it
    rows = np.array([3, 0, 6, 9])
    whole, parts = LeastSquares(X, np.eye(3)[y], ridge=0.3), make_problem(cut(X, 0, 3), np.eye(3)[y], ridge=0.3)
    np.testing.assert_array_equal(parts.dependent(rows), [6])
    # Of what depends on others QR makes a direction out of rounding, so that the rows after it are compared with the truth.
    centred = X - X.mean(axis=0)
    left = np.linalg.lstsq(centred[:, [3, 0, 9]], whole.targets.T, rcond=None)[1].sum()
    explained = np.square(make_problem(cut(X, 0, 3), np.eye(3)[y]).factor(rows)[1]).sum()
    np.testing.assert_allclose(2.0 * whole.null_loss - explained, left, rtol=1e-9)
    expected, found = whole.factor(rows), parts.factor(rows)
    for k in range(1, 5):
        weights = [np.linalg.lstsq(triangle[:, :k], sides, rcond=None)[0] for triangle, sides in (expected, found)]
        np.testing.assert_allclose(weights[1], weights[0], rtol=1e-8)


# What is kept


def test_lines_are_fetched_together_kept_and_dropped():
    fetched = []
    truth = np.random.default_rng(0).standard_normal((40, 10))

    def fetch(rows):
        fetched.append(rows.tolist())
        return truth[rows]

    lines, ranks = ColumnCache(40, 10, 8 * 10 * 20, fetch), lambda: np.arange(40.0)
    np.testing.assert_array_equal(lines.gathered(np.array([3, 1]), ranks), truth[[3, 1]])
    assert fetched == [[3, 1, *range(40 - AT_ONCE + 2, 40)]]
    np.testing.assert_allclose(
        lines.combined(np.array([39, 3]), np.array([[1.0, 2.0]]), ranks), truth[[39]] + 2 * truth[[3]]
    )
    assert len(fetched) == 1  # the most likely ones came along
    np.testing.assert_array_equal(lines.gathered(np.array([5]), ranks), truth[[5]])
    assert len(fetched) == 2
    lines.gathered(np.array([3]), ranks)  # was dropped: there is room for twenty
    assert len(fetched) == 3
    with pytest.raises(MemoryError, match=r"21 features take .* Select fewer features, or raise max_memory"):
        lines.gathered(np.arange(21))


@settings(max_examples=50)
@given(seed=st.integers(0, 10**6))
def test_no_more_lines_are_kept_than_there_is_room_for(seed):
    """Each time some old features and some new ones, as solvers ask; what is needed now may be spread over all batches."""
    rng = np.random.default_rng(seed)
    n_lines, most = 200, int(rng.integers(1, 60))
    truth = rng.standard_normal((n_lines, 3))
    held = []

    def fetch(rows):
        held.append(lines.n_held + len(rows))
        return truth[rows]

    lines = ColumnCache(n_lines, 3, 8 * 3 * most, fetch)
    order = rng.permutation(n_lines)
    for size in range(1, most + 1):
        rows = order[rng.integers(3) :][:size]
        np.testing.assert_array_equal(lines.gathered(rows, lambda: rng.random(n_lines)), truth[rows])
        known = len(held)
        values = rng.standard_normal((2, size))
        np.testing.assert_allclose(lines.combined(rows, values), values @ truth[rows], atol=1e-12)
        assert len(held) == known  # what was needed a moment ago is here
    assert max(held) <= most


@pytest.mark.parametrize("axis", [0, 1])
def test_more_features_are_touched_than_there_is_room_for(axis, monkeypatch):
    """Plan D, where a common factor lets one step of the homotopy touch most features: a pass instead of their lines."""
    monkeypatch.setattr("l20fs.design.gram.SMALL_GRAM", 0)
    monkeypatch.setattr("l20fs.design.blocked.PROBES", 24)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 60)) + 3.0 * rng.standard_normal((150, 1))
    X[:, 7] = 1e15 / 7.0  # constant but for rounding, which must not count
    weights = None if axis else rng.random(150) + 0.5
    Y = np.eye(3)[np.argmax(X[:, :3] + rng.standard_normal((150, 3)), axis=1)]
    whole = LeastSquares(X, Y, ridge=0.5, sample_weight=weights)
    parts = make_problem(cut(X, axis, 4, budget=8 * 60 * 10), Y, ridge=0.5, sample_weight=weights)
    rows, values = np.arange(5, 40), rng.standard_normal((3, 35))
    np.testing.assert_allclose(
        parts.image(rows, values).products, whole.design.pull(whole.image(rows, values)), rtol=1e-9, atol=1e-8
    )
    assert parts.design.cache.most == 10
    for solve in (ahiht, hiht):
        for start in (None, 1e-4 * rng.standard_normal((3, 60))):
            found, expected = (solve(problem, Schedule(n_rows=6), weights=start) for problem in (parts, whole))
            assert_same_path(found, expected, 1e-6)


@pytest.mark.parametrize("axis", [0, 1])
def test_all_that_goes_to_the_blocks_is_counted_once(axis):
    X, _ = make_counts(5, 24, 70)
    blocks = cut(X, axis, 5)
    matrix = make_design(blocks, sample_weight=np.ones(24)).matrix
    matrix.products(np.ones((1, 24)))  # sends the means and units of the columns
    cases = [  # with the numbers that go down; what was placed there before does not
        (lambda: matrix.products(np.ones((2, 24))), 2 * 24),
        (lambda: matrix.lines(np.arange(10)), 10),
        (lambda: matrix.gram_lines(np.arange(10)), 10 + 5 if axis == 0 else 10 + 10 * 24),
        (lambda: matrix.twice(np.ones((2, 70))), 2 * 70 if axis == 0 else 2 * 70 + 2 * 24),
        (lambda: matrix.max_sample_energy, 0),
    ]
    if axis == 1:
        cases.append((lambda: matrix.long_columns(np.ones((2, 24)), 0.5), 2 * 24 + 5))
    for ask, expected in cases:
        before = blocks.traffic.n_down
        ask()
        assert blocks.traffic.n_down - before == 8 * expected


def test_how_many_passes_and_bytes():
    """Plan D and E: within 1.5 times the table of the design notes, per step and block of work."""
    n_classes = 5
    rng = np.random.default_rng(0)
    for shape, axis in (((300, 2500), 0), ((100, 2500), 1)):
        X = rng.standard_normal(shape)
        Y = np.eye(n_classes)[np.argmax(X[:, :n_classes] + rng.standard_normal((len(X), n_classes)), axis=1)]
        blocks = cut(X, axis, 4)
        problem = make_problem(blocks, Y, ridge=1.0, scale="zscore")
        assert problem.lipschitz + problem.lipschitz_lower > 0.0
        before = blocks.traffic.n_passes, blocks.traffic.n_down, blocks.traffic.n_up
        path = ahiht(problem, Schedule(n_rows=40))
        n_passes, n_down, n_up = (
            now - then
            for now, then in zip((blocks.traffic.n_passes, blocks.traffic.n_down, blocks.traffic.n_up), before, strict=True)
        )
        n_steps, n_rows = int(path.n_iters.sum()), int(path.n_nonzero.max())
        assert n_steps > 10
        if axis == 0:
            assert n_passes < 0.5 * n_steps
            assert n_down <= 1.5 * n_steps * n_rows * n_classes * 8
            assert n_up <= 1.5 * n_steps * shape[1] * n_classes * 8
        else:
            assert n_passes <= 2.2 * n_steps + 3
            assert n_down <= 1.5 * n_steps * shape[0] * n_classes * 8
            # the columns that are touched, a number for each feature above the threshold, and twice for all
            n_columns = int((problem.design.cache._batch_of >= 0).sum())
            assert n_up <= 1.5 * (n_columns * shape[0] * 8 + n_steps * n_rows * 16 + 2 * shape[1] * 8)


def test_forward_needs_few_passes(monkeypatch):
    X, y = make_counts(0, 100, 3000)
    blocks = cut(X, 0, 2)
    problem = make_problem(blocks, np.eye(3)[y], ridge=10.0, scale="zscore")
    forward(problem, 40)
    assert blocks.traffic.n_passes <= 2 + 8  # one by one it would be 42


# L20Selector


@pytest.mark.parametrize("axis", [0, 1])
def test_selector(axis, caplog):
    X, y = make_counts(3, 90, 30)
    expected = L20Selector(6).fit(X, y)
    with caplog.at_level(logging.INFO, logger="l20fs"):
        found = L20Selector(6).fit(cut(X, axis, 5), y)
    assert "90 x 30 float64 from a test in 5 blocks" in caplog.text
    assert "plan C" in caplog.text
    np.testing.assert_array_equal(found.ranking_, expected.ranking_)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-10)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-10)
    np.testing.assert_allclose(found.path_.refit(6).coef, expected.path_.refit(6).coef, atol=1e-10)
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    assert found.n_features_in_ == 30
    np.testing.assert_array_equal(found.transform(cut(X, axis, 5)), expected.transform(X))
    with pytest.raises(ValueError, match="X has 29 features, but L20Selector is expecting 30"):
        found.transform(cut(X[:, 1:], axis, 5))


def test_plans_are_named_in_the_log(caplog):
    X = np.random.default_rng(0).standard_normal((40, 2500))
    with caplog.at_level(logging.INFO, logger="l20fs"):
        L20Selector(2).fit(cut(X, 0, 2), X[:, 0])
        L20Selector(2).fit(cut(X, 1, 2), X[:, 0])
    assert "plan D, many features and samples, 19.5 KiB back for each feature" in caplog.text
    assert "plan E, fewer samples than features, 320 bytes per target" in caplog.text


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("value", "message"), [
    (np.nan, r"X has 2 missing values \(NaN\), first in 'column 3' and 'column 7'\. Fill them in first"),
    (np.inf, r"X has 2 infinite values \(inf\), first in 'column 3' and 'column 7'\. Replace"),
])  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_finite_is_refused(axis, value, message, kind):
    X, y = make_counts(3, 90, 30)
    X[4, 3] = X[80, 7] = value
    with pytest.raises(ValueError, match=message):
        L20Selector(3).fit(cut(KINDS[kind](X), axis, 5), y)


@pytest.mark.parametrize("axis", [0, 1])
def test_other_refusals(axis):
    X, y = make_counts(3, 30, 9)
    blocks = cut(X, axis, 3)
    with pytest.raises(ValueError, match="X has 30 samples, but y has 29"):
        L20Selector(3).fit(blocks, y[1:])
    with pytest.raises(ValueError, match="loss='l21' is not available for X in blocks"):
        L20Selector(3, loss="l21").fit(blocks, y)
    with pytest.raises(ValueError, match="All 9 features of X are constant"):
        L20Selector(3).fit(cut(np.full((30, 9), 1e6 + 0.1), axis, 3), y)
    with pytest.raises(ValueError, match="X must hold numbers only"):
        L20Selector(3).fit(cut(X.astype(str), axis, 3), y)
    with pytest.raises(ValueError, match="max_memory='lots'"):
        L20Selector(3, max_memory="lots").fit(X, y)
    with pytest.raises(MemoryError, match="raise max_memory"):
        make_problem(cut(X, 0, 3, budget=8 * 9 * 2), np.eye(3)[y]).design.cache.gathered(np.arange(5))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "bool", "float16", "longdouble"])
def test_other_numbers_are_worked_with_in_float64(dtype, shape, weighted, axis):
    X, y = make_counts(3, *SHAPES[shape])
    X = (X > 1.0) if dtype == "bool" else (X * 3).astype(dtype)
    weights = np.random.default_rng(3).integers(3, size=len(y)) if weighted else None
    expected = L20Selector(4).fit(X.astype(float), y, sample_weight=weights)
    for kind in KINDS.values() if dtype != "float16" else [np.asarray]:  # of which SciPy makes no sparse matrix
        found = L20Selector(4).fit(cut(kind(X), axis, 3), y, sample_weight=weights)
        np.testing.assert_array_equal(found.ranking_, expected.ranking_)
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-10)


TOO_LATE = [
    ({"feature_groups": [[0, 1]]}, "feature_groups with solver='forward' need X in memory"),
    ({"include": [99]}, "include has the index 99, which is outside 0 to 8"),
    ({"include": [0], "exclude": [0]}, "both included"),
    ({"include": [0, 1, 2, 3]}, "n_features_to_select=3 is less than the 4 features"),
    ({"include": [0, 1, 2, 3], "n_features_to_select": 0.2}, "n_features_to_select=0.2 is less than the 4 features"),
    ({"exclude": range(9)}, "All 9 features are excluded or constant"),
    ({"solver": AHIHT(init=np.zeros((3, 8)))}, r"init has the shape \(3, 8\); expected .* = \(3, 9\)"),
    ({"solver": AHIHT(init="ones")}, "init='ones' is unknown"),
    ({"class_weight": {7: 1.0}}, "class_weight names '7', which y does not have"),
    ({"scale": np.ones(8)}, "scale has 8 deviations for 9 features"),
]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("parameters", "message"), TOO_LATE, ids=[" ".join(given) for given, _ in TOO_LATE])
def test_what_needs_no_pass_is_refused_before_the_first(parameters, message, axis):
    """Half an hour later is too late."""
    X, y = make_counts(3, 30, 9)
    blocks = cut(X, axis, 3)
    selector = L20Selector(3).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        selector.fit(blocks, y)
    assert blocks.traffic.n_passes == 0


def test_weights_are_refused_before_the_first_pass():
    X, y = make_counts(3, 30, 9)
    blocks, selector = cut(X, 0, 3), L20Selector(3)
    for weights, message in ((np.ones(29), "shape"), (-np.ones(30), "not valid"), (np.full(30, 1e300), "adds up to")):
        with pytest.raises(ValueError, match=f"sample_weight.*{message}"):
            selector.fit(blocks, y, sample_weight=weights)
    assert blocks.traffic.n_passes == 0


def test_groups_in_wide_blocks_of_columns_are_not_refused():
    X, y = make_counts(3, 9, 30)
    selector = L20Selector(3, feature_groups=[[0, 1]])
    np.testing.assert_array_equal(clone(selector).fit(cut(X, 1, 3), y).ranking_, selector.fit(X, y).ranking_)


def test_a_share_is_one_of_what_is_left_when_constant_features_leave_their_group():
    X, y = make_counts(3, 30, 10)
    X[:, 1:5] = 1.0
    selector = L20Selector(0.34, solver="ahiht", feature_groups=[range(5)], include=[5, 6, 7])  # 2 of 6, but 3 of 10
    expected = clone(selector).fit(X, y)
    assert expected.get_support(indices=True).tolist() == [5, 6, 7]
    np.testing.assert_array_equal(selector.fit(cut(X, 0, 3), y).support_, expected.support_)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_selected(kind):
    X, y = make_counts(3, 30, 9)
    X = KINDS[kind](X)
    selector, model = (make(None, alpha=1e9).fit(X, y) for make in (L20Selector, L20Classifier))
    whole = [X, cut(X, 0, 3), cut(X, 1, 3)]
    lazy = da.from_array(as_dense(X), chunks=(10, 9))
    for there in [*whole, lazy, lazy.map_blocks(sp.csr_matrix)]:
        with pytest.warns(UserWarning, match="No features were selected"):
            reduced = selector.transform(there)
        assert reduced.shape == (30, 0)
        assert reduced.dtype == X.dtype
        np.testing.assert_array_equal(model.predict(there), model.predict(X))
    for there in whole[1:]:
        assert sp.issparse(there[:, []]) == (kind == "csr")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_models_are_those_of_the_whole_matrix(shape, weighted, kind):
    X, y = make_counts(3, *SHAPES[shape])
    X = KINDS[kind](X)
    weights = np.random.default_rng(3).integers(3, size=len(y)) if weighted else None
    for model in (L20Classifier(5), L20Classifier(5, class_weight=None), L20Regressor(5)):
        expected = clone(model).fit(X, y, sample_weight=weights)
        for axis in (0, 1):
            blocks = cut(X, axis, 3)
            found = clone(model).fit(blocks, y, sample_weight=weights)
            np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0, atol=1e-8 * np.abs(expected.coef_).max())
            np.testing.assert_allclose(found.intercept_, expected.intercept_, rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(found.predict(blocks).astype(float), expected.predict(X).astype(float), rtol=1e-7)


def test_models_refuse_blocks_that_are_not_like_those_of_the_fit():
    X, y = make_counts(3, 60, 12)
    model = L20Classifier(12).fit(X, y)
    with pytest.raises(ValueError, match="X has 11 features, but L20Classifier is expecting 12"):
        model.predict(cut(X[:, :-1], 0, 2))
    X[50, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.predict(cut(X, 0, 2))


@pytest.mark.parametrize("shape", SHAPES)
def test_halves_of_blocks_are_those_of_the_whole_matrix(shape):
    X, y = make_counts(3, *SHAPES[shape])
    y = y if shape == "tall" else y % 2
    selector = L20Selector(4, feature_groups=[[0, 1]], solver="ahiht")
    expected = StabilitySelector(selector, 3, n_resamples=6, random_state=1).fit(X, y)
    for axis in (0, 1):
        found = StabilitySelector(selector, 3, n_resamples=6, random_state=1, n_jobs=2)
        found.fit(cut(sp.csr_array(X), axis, 3), y)
        np.testing.assert_array_equal(found.orders_, expected.orders_)
        np.testing.assert_array_equal(found.transform(cut(X, axis, 3)), expected.transform(X))
    with pytest.raises(TypeError, match="X comes in blocks, and FisherScore needs it in memory"):
        StabilitySelector(FisherScore(3)).fit(cut(X, 0, 2), y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiles_of_a_block_make_no_difference(dtype, monkeypatch):
    X, _ = make_counts(3, 23, 50)
    X = X.astype(dtype)
    rng = np.random.default_rng(0)
    vectors, values, weights = rng.standard_normal((3, 23)), rng.standard_normal((3, 50)), rng.random(23)
    columns = kernels.Columns(X.mean(axis=0, dtype=float), np.zeros(50), X.std(axis=0, dtype=float), np.array([3, 40]))

    def results():
        return (
            measure(X, weights).mean,
            measure(X, weights).length,
            kernels.products(X, columns, vectors),
            kernels.images(X, columns, values),
            kernels.sample_energies(X, columns, weights),
        )

    expected = results()
    shapes = []
    monkeypatch.setattr(moments, "centre", lambda part, *own: shapes.append(part.shape) or centre(part, *own))
    for least, wide, elements in ((4, 16, 32), (1, 1, 1), (5, 49, 100)):
        for name, value in (("LEAST_STRIP", least), ("WIDE", wide), ("BLOCK_ELEMENTS", elements)):
            monkeypatch.setattr(tiles, name, value)
        for found, whole in zip(results(), expected, strict=True):
            np.testing.assert_allclose(found, whole, rtol=1e-9, atol=1e-9)
    assert min(shapes) == (1, 1)
    assert (4, 8) in shapes


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@given(value=st.floats(0.01, 1e6), n_samples=st.integers(4, 3000))
@settings(max_examples=20)
def test_a_constant_column_is_constant_whatever_its_value(axis, kind, weighted, value, n_samples):
    """A long sum rounds, and what it leaves in the deviations must not be taken for them."""
    X = np.column_stack([np.arange(n_samples) % 7, np.full(n_samples, value), np.full(n_samples, -value / 3)])
    weights = np.random.default_rng(0).random(n_samples) + 0.1 if weighted else None
    if weighted:
        weights[0], X[0] = 0.0, 0.0  # which does not count
    design = make_design(cut(KINDS[kind](X), axis, 3), "zscore", weights)
    assert design.varies.tolist() == [True, False, False]
    np.testing.assert_allclose(design.mean[1:], [value, -value / 3], rtol=1e-15)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_samples_and_columns_of_blocks(kind, axis):
    X, _ = make_counts(3, 40, 30)
    blocks = cut(KINDS[kind](X), axis, 7)
    columns, rows = np.array([20, 3, 29, 4]), np.array([0, 1, 17, 18, 39])
    for found, expected in ((blocks, X), (blocks[rows], X[rows]), (blocks[rows][np.array([1, 3])], X[rows[[1, 3]]])):
        assert found.shape == expected.shape
        picked = found[:, columns]
        assert sp.issparse(picked) == (kind == "csr")
        np.testing.assert_array_equal(picked.toarray() if kind == "csr" else picked, expected[:, columns])
    np.testing.assert_array_equal(as_dense(blocks.mapped(lambda block: block * 2, X.dtype)[:, columns]), 2 * X[:, columns])
    with pytest.raises(ValueError, match="in increasing order"):
        blocks[np.array([3, 2])]


def as_dense(X):
    return X.toarray() if sp.issparse(X) else X


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_substitutes_are_those_of_the_whole_matrix(shape, axis, gram_size):
    X, _ = make_counts(3, *SHAPES[shape])
    X[:, 7] = 1.0
    expected, found = likeness(X, [5, 2, 7, 20], exclude=[3]), likeness(cut(X, axis, 3), [5, 2, 7, 20], exclude=[3])
    np.testing.assert_array_equal(found.outside.substitute, expected.outside.substitute)
    np.testing.assert_allclose(found.outside.correlation, expected.outside.correlation, atol=1e-10)
    np.testing.assert_allclose(found.mutual, expected.mutual, atol=1e-10)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(expected.mutual, np.corrcoef(X[:, [5, 2, 7, 20]], rowvar=False), atol=1e-10)


@pytest.mark.parametrize("solver", ["forward", "ahiht"])
@pytest.mark.parametrize("axis", [0, 1])
def test_what_a_fit_held_is_given_back_at_once(axis, solver):
    """The lines of a fit are large, and the collector of cycles may come late."""
    X, y = make_counts(3, 24, 70)
    blocks, selector = cut(X, axis, 9), L20Selector(4, solver=solver)
    selector.fit(blocks, y)
    gc.collect()
    gc.disable()
    try:
        selector.fit(blocks, y)
        # Of all things that there are, some of torch warn when isinstance asks for their __class__.
        assert not any(issubclass(type(thing), LeastSquares | ColumnCache) for thing in gc.get_objects())
    finally:
        gc.enable()


def test_blocks_of_an_array():
    X, y = make_counts(3, 60, 12)
    np.testing.assert_array_equal(L20Selector(4).fit(as_blocks(X), y).ranking_, L20Selector(4).fit(X, y).ranking_)
