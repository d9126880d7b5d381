from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import centred, loss, weighted

from l20fs.design import make_design
from l20fs.objective.least_squares import LeastSquares
from l20fs.solvers import Schedule, ahiht, forward

LAYOUTS = {
    "dense": lambda X: X,
    "fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "csr_matrix": sp.csr_matrix,
}


def draw(seed, n_samples=15, n_features=9, n_targets=3, density=0.6):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_samples, n_features)) * (random.random((n_samples, n_features)) < density)
    X[:, 0] += 3.0  # a mean far from zero, which the centring has to take away
    return X, random.standard_normal((n_samples, n_targets)), random.standard_normal((n_features, n_targets))


def evaluate(problem, W):
    rows = np.arange(problem.n_features)
    residual = problem.residual(rows, W.T)
    return problem.value(residual, W.T), problem.gradient(residual, rows, W.T)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("ridge", [0.0, 0.7])
@given(seed=st.integers(0, 2**32 - 1))
def test_value_and_gradient_match_the_definition(layout, ridge, seed):
    X, Y, W = draw(seed)
    problem = LeastSquares(LAYOUTS[layout](X), Y, ridge=ridge)
    Xc, Yc = centred(X, Y)
    mu = ridge * np.mean(np.sum(Xc**2, axis=0))
    value, gradient = evaluate(problem, W)
    assert value == pytest.approx(loss(Xc, Yc, W, mu), rel=1e-10)
    expected = Xc.T @ (Xc @ W - Yc) + mu * W
    assert np.allclose(gradient.values.T, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    assert np.allclose(gradient.squared_norms, np.sum(expected**2, axis=1), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("shape", [(2, 5), (20, 400), (400, 20), (400, 300)])
def test_lipschitz_bounds(layout, shape):
    """The lower bound, the constant (within its 1 % where it is a Lanczos value) and the upper bound enclose the truth."""
    X = np.random.default_rng(0).standard_normal(shape)
    problem = LeastSquares(LAYOUTS[layout](X), np.random.default_rng(1).standard_normal((shape[0], 2)), ridge=0.1)
    Xc = X - X.mean(axis=0)
    truth = np.linalg.norm(Xc, 2) ** 2 + problem.ridge
    assert problem.lipschitz_lower <= truth * (1 + 1e-12)
    assert truth * (1 - 1e-9) <= problem.lipschitz <= truth * 1.03
    assert problem.lipschitz <= problem.lipschitz_upper * (1 + 1e-12)


def test_float32_keeps_its_digits_behind_a_large_mean():
    """Mean 1000, deviation 1: centring in float64 before rounding keeps the relative gradient error near 1e-6."""
    random = np.random.default_rng(0)
    X = (1000 + random.standard_normal((200, 300))).astype(np.float32)
    Y = random.standard_normal((200, 4))
    single, double = LeastSquares(X, Y), LeastSquares(X.astype(np.float64), Y)
    assert single.dtype == np.float32
    nothing = np.arange(0), np.zeros((4, 0))
    g32 = single.gradient(-single.targets, *nothing).values
    g64 = double.gradient(-double.targets, *nothing).values
    assert g32.dtype == np.float32
    assert np.linalg.norm(g32 - g64) <= 2e-6 * np.linalg.norm(g64)


@given(seed=st.integers(0, 2**32 - 1), ridge=st.sampled_from([0.0, 0.5]))
@settings(max_examples=30)
def test_factor_solves_every_prefix(seed, ridge):
    X, Y, _ = draw(seed, n_samples=12, n_features=9, density=1.0)
    problem = LeastSquares(X, Y, ridge=ridge)
    rows = np.random.default_rng(seed).permutation(9)
    triangle, right = problem.factor(rows)
    Xc, Yc = centred(X, Y)
    for k in range(1, 10):
        columns = Xc[:, rows[:k]]
        expected = np.linalg.solve(columns.T @ columns + problem.ridge * np.eye(k), columns.T @ Yc)
        assert np.allclose(np.linalg.lstsq(triangle[:, :k], right, rcond=None)[0], expected, rtol=1e-6, atol=1e-8)


SEEDS = st.integers(0, 2**32 - 1)
CONTAINERS = st.sampled_from([np.asarray, sp.csr_array, sp.csc_array])
SCALES = st.sampled_from(["none", "zscore", "given"])
TOLERANCE = {np.float64: 1e-10, np.float32: 2e-5}


def draw_scale(scale, seed, n_features=9):
    return np.random.default_rng(seed).uniform(0.2, 5.0, n_features) if scale == "given" else scale


def draw_counts(seed, n_samples=15):
    """Weights 0 to 3, with so many samples left that 9 features stay independent."""
    counts = np.random.default_rng(seed).integers(0, 4, n_samples)
    counts[:11] = np.maximum(counts[:11], 1)
    return counts


def draw_weights(seed, n_samples=15):
    """Weights over six orders of magnitude."""
    return 10.0 ** np.random.default_rng(seed).uniform(-4, 2, n_samples)


def assert_close(value, expected, rtol):
    """Close by the largest number in sight: what cancels in one entry is as exact as its neighbours are."""
    expected = np.asarray(expected)
    assert np.shape(value) == expected.shape
    assert np.allclose(value, expected, rtol=0.0, atol=rtol * np.abs(expected).max(initial=0.0))


def assert_same_numbers(problem, other, rtol, W):
    """Compare all that does not have one entry per sample; W is a point of the problems."""
    assert np.array_equal(problem.design.varies, other.design.varies)
    for name in ("mean", "scale", "column_energy", "max_sample_energy"):
        assert_close(getattr(problem.design, name), getattr(other.design, name), rtol)
    for name in ("ridge", "y_mean", "null_loss", "lipschitz_lower", "lipschitz", "lipschitz_upper"):
        assert_close(getattr(problem, name), getattr(other, name), rtol)
    (value, gradient), (other_value, other_gradient) = evaluate(problem, W), evaluate(other, W)
    assert_close(value, other_value, rtol)
    assert_close(gradient.values, other_gradient.values, rtol)
    rows = np.array([7, 2, 5, 0])
    (triangle, right), (other_triangle, other_right) = problem.factor(rows), other.factor(rows)
    assert_close(triangle.T @ triangle, other_triangle.T @ other_triangle, rtol)
    assert_close(np.linalg.solve(triangle, right), np.linalg.solve(other_triangle, other_right), 10 * rtol)


@given(seed=SEEDS, make=CONTAINERS, scale=SCALES)
@settings(max_examples=40)
def test_path_with_whole_weights_is_that_of_repeated_samples(seed, make, scale):
    X, Y, _ = draw(seed, density=0.8)
    counts, settings = draw_counts(seed), {"ridge": 0.1, "scale": draw_scale(scale, seed)}
    problem = LeastSquares(make(X), Y, sample_weight=counts, **settings)
    longer = LeastSquares(make(np.repeat(X, counts, axis=0)), np.repeat(Y, counts, axis=0), **settings)
    path, expected = (ahiht(p, Schedule(n_rows=5)).with_refits(p, 7) for p in (problem, longer))
    assert np.array_equal(path.indices, expected.indices)
    assert np.array_equal(path.order, expected.order)
    for name in ("alphas", "losses", "lipschitz", "n_nonzero", "norms", "scores"):
        assert_close(getattr(path, name), getattr(expected, name), 1e-10)
    for k in (1, 4, 7):
        assert_close(path.coef(k), expected.coef(k), 1e-10)
        assert_close(path.intercept(k), expected.intercept(k), 1e-10)
        assert_close(path.refit(k).coef, expected.refit(k).coef, 1e-10)
        assert_close(path.refit(k).intercept, expected.refit(k).intercept, 1e-10)
        assert path.refit(k).loss == pytest.approx(expected.refit(k).loss, abs=1e-10 * problem.null_loss)


@given(seed=SEEDS, make=CONTAINERS, scale=SCALES, dtype=st.sampled_from([np.float64, np.float32]))
def test_weights_match_the_definition(seed, make, scale, dtype):
    X, Y, W = draw(seed)
    weights, scale, rtol = draw_weights(seed), draw_scale(scale, seed), TOLERANCE[dtype]
    problem = LeastSquares(make(X.astype(dtype)), Y, ridge=0.3, scale=scale, sample_weight=weights)
    Xw, Yw, deviations = weighted(X, weights), weighted(Y, weights), scale
    if isinstance(scale, str):
        deviations = np.sqrt(np.sum(Xw**2, axis=0) / weights.sum()) if scale == "zscore" else np.ones(9)
    Xw /= deviations
    design, every = problem.design, np.arange(9)
    assert_close(design.mean, weights @ X / weights.sum(), rtol)
    assert_close(design.scale, deviations, rtol)
    assert_close(design.column_energy, np.sum(Xw**2, axis=0), rtol)
    assert_close(design.take(np.array([4, 1]), slice(2, 7)), Xw[2:7, [4, 1]], rtol)
    assert_close(design.push(every, W.T), (Xw @ W).T, rtol)
    assert_close(problem.targets, Yw.T, rtol)
    value, gradient = evaluate(problem, W)
    mu = 0.3 * np.mean(np.sum(Xw**2, axis=0))
    assert problem.ridge == pytest.approx(mu, rel=rtol)
    assert value == pytest.approx(loss(Xw, Yw, W, mu), rel=10 * rtol)
    assert_close(gradient.values.T, Xw.T @ (Xw @ W - Yw) + mu * W, rtol)
    truth = np.linalg.norm(Xw, 2) ** 2 + mu
    assert problem.lipschitz_lower <= truth * (1 + rtol)
    assert problem.lipschitz == pytest.approx(truth, rel=10 * rtol)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("scale", ["none", "zscore", "moderated"])
@pytest.mark.parametrize("kept_value", [0.0, 0.1, 100.0])
def test_sample_of_weight_zero_has_no_influence(make, scale, kept_value):
    """Not even if it is enormous, or the only one in which a feature differs."""
    X, Y, W = draw(1, n_samples=30, density=1.0)
    weights = np.random.default_rng(2).uniform(0.1, 2.0, 30)
    weights[[3, 17, 20]] = 0.0
    X[:, 4] = kept_value
    X[[3, 17, 20]] = [[1e100], [0.0], [-7.0]]
    Y[3] = 1e100
    kept = weights > 0
    problem = LeastSquares(make(X), Y, ridge=0.1, scale=scale, sample_weight=weights)
    shorter = LeastSquares(make(X[kept]), Y[kept], ridge=0.1, scale=scale, sample_weight=weights[kept])
    assert np.flatnonzero(~problem.design.varies).tolist() == [4]
    assert_same_numbers(problem, shorter, 1e-10, W)


@pytest.mark.parametrize("scale", ["none", "zscore", "moderated"])
@given(seed=SEEDS)
@settings(max_examples=25)
def test_weighted_sparse_columns_far_from_zero(scale, seed):
    """Their mean is 1e4 times their deviation, and all the zeros there are belong to samples that do not count."""
    X, Y, W = draw(seed, density=1.0)
    X, weights = X + 1e4, np.random.default_rng(seed).uniform(0.1, 2.0, 15)
    X[:2, :6] = 0.0
    weights[:2] = 0.0
    sparse, dense = (LeastSquares(make(X), Y, scale=scale, sample_weight=weights) for make in (sp.csr_array, np.asarray))
    assert_close(sparse.design.column_energy, dense.design.column_energy, 1e-9)
    assert_close(sparse.design.max_sample_energy, dense.design.max_sample_energy, 1e-9)
    assert_close(sparse.design.scale, dense.design.scale, 1e-9)
    assert_close(evaluate(sparse, W)[1].values, evaluate(dense, W)[1].values, 1e-5)
    # What pull relies on: nothing along the root of the weights, which it would multiply by the mean.
    along = sparse.design.push(np.arange(9), W.T) @ np.sqrt(weights)
    assert np.abs(along).max() <= 1e-12 * weights.sum() * np.abs(sparse.design.mean / sparse.design.scale).max()


@pytest.mark.parametrize("scale", ["none", "zscore", "moderated"])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("mean", [1e8, -1e10])
def test_full_sparse_columns_far_from_zero_keep_their_digits(scale, is_weighted, mean):
    """What is left of them beside others must not be multiplied by the mean; the dense twin centres what it stores."""
    X, Y, _ = draw(0, n_samples=60, density=1.0)
    X += mean
    X[:, 2::3] = np.random.default_rng(1).integers(0, 2, (60, 3))
    weights = None
    if is_weighted:  # all that is missing in a full column does not count
        X[:5], weights = 0.0, np.random.default_rng(2).uniform(0.1, 2.0, 60)
        weights[:5] = 0.0
    X = sp.csr_array(X)
    sparse, dense = (LeastSquares(container, Y, scale=scale, sample_weight=weights) for container in (X, X.toarray()))
    rows, rounding = np.arange(9), 1e-14 * abs(mean)  # of the mean, in units of the deviation
    lines = dense.design.take(rows, slice(None)).T
    assert_close(sparse.design.take(rows, slice(3, 20)), lines[:, 3:20].T, rounding)
    assert_close(sparse.design.pull(lines), lines @ lines.T, rounding)
    assert_close(sparse.design.push(rows, np.eye(9)), lines, rounding)
    assert_close(sparse.design.max_sample_energy, dense.design.max_sample_energy, rounding)
    assert_close(sparse.design.pull_norms()[:2], dense.design.pull_norms()[:2], rounding)
    assert sparse.design.n_stored == np.count_nonzero(X.toarray() if weights is None else X.toarray()[5:])
    found, expected = forward(sparse, 6), forward(dense, 6)
    assert found.order.tolist() == expected.order.tolist()
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-8)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -2.0, 1.0, 1.0], r"sample_weight\[1\]=-2 is not valid .1 such values.: .* at least 0. Use 0"),
        ([1.0, 1.0, np.nan, 1.0], r"sample_weight\[2\]=nan is not valid .*finite"),
        ([np.inf, 1.0, 1.0, 1.0], r"sample_weight\[0\]=inf is not valid .*finite"),
        ([0.0, 0.0, 0.0, 0.0], "sample_weight is zero for all 4 samples.*Give samples a weight above 0"),
        ([1.0, 1.0], r"shape \(2,\) for 4 samples. Give one number per sample"),
        ([[1.0]] * 4, r"shape \(4, 1\) for 4 samples"),
        ([1e308] * 4, "adds up to inf; outside .* Divide sample_weight by its mean"),
        ([1e-200] * 4, "adds up to 4e-200; outside .* Divide sample_weight by its mean"),
        ([0.0, 0.0, 3.0, 0.0], "constant over the 1 samples with a positive weight"),
    ],
)
def test_odd_weights_are_refused(make, weights, message):
    X, Y = np.arange(8.0).reshape(4, 2), np.eye(4)
    with pytest.raises(ValueError, match=message):
        LeastSquares(make(X), Y, sample_weight=weights)
    with pytest.raises(ValueError, match=message):
        LeastSquares(make(X), Y).reweighted(weights)


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ("minmax", "scale='minmax' is unknown. Use 'auto', 'moderated'"),
        (None, "scale=None is unknown"),
        (2.0, "scale=2.0 is unknown. .*one divisor per feature"),
        ([1.0, 1.0, 1.0], "3 deviations for 2 features. Give one per feature"),
        ([1.0, 0.0], r"scale\[1\]=0 is not valid: .* above 0"),
        ([-1.0, 1.0], r"scale\[0\]=-1 is not valid"),
        ([1.0, np.inf], r"scale\[1\]=inf is not valid"),
        ([1e-90, 1.0], "has the deviation 2.24e\\+90; above"),
        ([1e-320, 1.0], "has the deviation inf; above"),
        ([1e90, 1e95], "largest deviation of a feature of X is 2.24e-90; below"),
    ],
)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_odd_scales_are_refused(make, scale, message):
    with pytest.raises(ValueError, match=message):
        make_design(make(np.arange(8.0).reshape(4, 2)), scale)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["none", "zscore", "moderated"]), st.booleans())
def test_empty_columns_of_a_sparse_x_take_nothing_from_their_neighbours(seed, scale, is_weighted):
    """Empty columns at the start, in the middle, one after the other and at the end."""
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 5, size=(rng.integers(2, 8), rng.integers(2, 30))) * rng.choice([-1.0, 1.0, 3.0])
    X[:, rng.random(X.shape[1]) < 0.6] = 0.0
    X[:, rng.integers(X.shape[1])] = np.arange(len(X))
    weights = rng.integers(1, 4, size=len(X)) if is_weighted else None
    dense, sparse = (make_design(make(X), scale, weights) for make in (np.asarray, sp.csr_array))
    assert np.array_equal(sparse.varies, dense.varies)
    for name in ("mean", "scale", "column_energy", "largest_deviation", "max_sample_energy"):
        assert_close(getattr(sparse, name), getattr(dense, name), 1e-9)
