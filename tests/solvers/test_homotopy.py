from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference import best_objective, centred, homotopy, loss, n_rows

from l20fs.data import make_planted
from l20fs.design import finish
from l20fs.design.driver import GramRequest, answer
from l20fs.objective.problem import make_problem
from l20fs.solvers import AHIHT, HIHT

SEEDS = st.integers(0, 2**32 - 1)


def draw(seed, n_samples=20, n_features=30, n_classes=3):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_samples, n_features)) * random.uniform(0.5, 2.0, n_features) + 1.0
    y = np.concatenate([np.arange(n_classes), random.integers(0, n_classes, n_samples - n_classes)])
    X[:, :3] += y[:, None]
    return X, np.eye(n_classes)[y]


def ahiht(problem, n_rows=20, target=None, **options):
    return finish(AHIHT(**options).walk(problem, n_rows, target=target))


def hiht(problem, n_rows=20, target=None, **options):
    return finish(HIHT(**options).walk(problem, n_rows, target=target))


def quiet_hiht(*args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not every lambda converges within the limit; the tests say what must hold
        return hiht(*args, **kwargs)


def dense_weights(path):
    W = np.zeros((path.n_features, len(path.y_mean)))
    W[path.coef_rows] = path.coef_values.T
    return W


@pytest.mark.parametrize("ridge", [0.0, 0.5])
@pytest.mark.parametrize(("solver", "max_steps"), [("ahiht", 1), ("hiht", 40)])
@given(seed=SEEDS)
@settings(max_examples=25)
def test_both_solvers_equal_their_slow_twin(solver, max_steps, ridge, seed):
    X, Y = draw(seed)
    problem = make_problem(X, Y, ridge=ridge)
    options = {"target": 1e-2, "alpha_start": 1.0, "rate": 0.5, "eta": 0.1}
    if solver == "ahiht":
        path = ahiht(problem, **options)
    else:
        path = quiet_hiht(problem, **options, max_iter=max_steps, tol=1e-12, stopping="absolute")
    stages = homotopy(X, Y, path.alphas, L=problem.lipschitz_lower, mu=problem.ridge, max_steps=max_steps, tol=1e-12)
    for number, (W, L) in enumerate(stages):
        assert np.array_equal(path.stage_rows(number), np.flatnonzero(W.any(axis=1)))
        assert np.allclose(path.stage_norms(number), np.linalg.norm(W[path.stage_rows(number)], axis=1), rtol=1e-7)
        assert path.losses[number] == pytest.approx(loss(*centred_with(X, Y, W), mu=problem.ridge), rel=1e-8, abs=1e-12)
        assert path.lipschitz[number] == pytest.approx(L)
    assert np.allclose(dense_weights(path), stages[-1][0], rtol=1e-6, atol=1e-9)


def centred_with(X, Y, W):
    return *centred(X, Y), W


@given(seed=SEEDS, lam=st.floats(1e-3, 0.5))
def test_orthonormal_features_have_the_closed_form(seed, lam):
    """With X'X = I the rows decouple: keep x_j'Y where ||x_j'Y||^2 > 2 lam. One step with L = 1 lands there."""
    random = np.random.default_rng(seed)
    X = np.linalg.qr(np.column_stack([np.ones(12), random.standard_normal((12, 8))]))[0][:, 1:]
    Y = random.standard_normal((12, 3))
    products = X.T @ (Y - Y.mean(axis=0))
    expected = np.where((np.sum(products**2, axis=1) > 2 * lam)[:, None], products, 0.0)
    path = ahiht(make_problem(X, Y), target=lam, alpha_start=lam, lipschitz_start=1.0)
    assert np.allclose(dense_weights(path), expected, rtol=1e-10, atol=1e-10)
    best, support = best_objective(X, Y, lam)
    assert path.objectives[-1] == pytest.approx(best, rel=1e-9)
    assert path.stage_rows(-1).tolist() == list(support)


@given(seed=SEEDS, lam=st.floats(0.02, 1.0), ridge=st.sampled_from([0.0, 0.3]))
@settings(max_examples=20)
def test_never_below_the_global_minimum(seed, lam, ridge):
    X, Y = draw(seed, n_samples=12, n_features=8)
    problem = make_problem(X, Y, ridge=ridge)
    best, _ = best_objective(X, Y, lam, mu=problem.ridge)
    for path in (ahiht(problem, target=lam), quiet_hiht(problem, target=lam)):
        assert path.objectives[-1] >= best * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_hiht_finds_the_global_minimum_of_an_easy_problem(seed):
    """Ten nearly uncorrelated features, up to three of which decide: exhaustive search and HIHT agree."""
    X, y, informative = make_planted(400, 10, 3, 3, noise=0.1, random_state=seed)
    Y = np.eye(3)[y]
    best, support = best_objective(X, Y, 2.0)
    path = hiht(make_problem(X, Y), target=2.0, max_iter=5000, tol=1e-20)
    assert 1 <= len(support) <= 3
    assert set(support) <= set(informative)
    assert path.stage_rows(-1).tolist() == list(support)
    assert path.objectives[-1] == pytest.approx(best, rel=1e-6)


@given(seed=SEEDS)
@settings(max_examples=25)
def test_hiht_ends_at_a_fixed_point(seed):
    """Conditions for every row at the last L: zero gradient inside, norm above, gradient below the threshold outside."""
    X, Y = draw(seed)
    lam = 0.05
    path = quiet_hiht(make_problem(X, Y), target=lam, max_iter=20000, tol=1e-24)
    assume(path.converged[-1])
    (Xc, Yc), W, L = centred(X, Y), dense_weights(path), path.lipschitz[-1]
    gradient = Xc.T @ (Xc @ W - Yc)
    active = W.any(axis=1)
    size = np.abs(Xc.T @ Yc).max()
    assert np.abs(gradient[active]).max(initial=0) <= 1e-6 * size
    assert np.all(np.sum(W[active] ** 2, axis=1) >= 2 * lam / L * (1 - 1e-6))
    assert np.all(np.sum(gradient[~active] ** 2, axis=1) <= 2 * lam * L * (1 + 1e-6))
    refitted = np.linalg.lstsq(Xc[:, active], Yc, rcond=None)[0]
    assert loss(Xc[:, active], Yc, refitted) >= path.losses[-1] * (1 - 1e-6) - 1e-12


@pytest.mark.parametrize("start", [1e12, 1e-3])
def test_a_path_from_any_start_reaches_the_rows_wanted(start):
    X, Y = draw(5)
    path = ahiht(make_problem(X, Y), n_rows=10, alpha_start=start)
    assert path.alphas[0] == start, "as in the listings of the paper"
    assert path.n_nonzero[-1] >= 10


def test_one_feature_in_other_units_does_not_end_the_path():
    X, Y = draw(6)
    X[:, 3] *= 1e7
    path = ahiht(make_problem(X, Y), n_rows=5)
    assert path.n_nonzero[-1] >= 5


@pytest.mark.parametrize("solver", [ahiht, quiet_hiht])
@pytest.mark.parametrize("scale", ["none", "zscore"])
def test_sparse_and_dense_agree(solver, scale, rtol):
    random = np.random.default_rng(0)
    X = random.standard_normal((40, 80)) * (random.random((40, 80)) < 0.3)
    Y = np.eye(3)[random.integers(0, 3, 40)]
    dense = solver(make_problem(X, Y, ridge=0.1, scale=scale), n_rows=30)
    for make in (sp.csr_array, sp.csc_array, sp.csr_matrix):
        path = solver(make_problem(make(X), Y, ridge=0.1, scale=scale), n_rows=30)
        assert np.array_equal(path.indices, dense.indices)
        assert np.allclose(path.norms, dense.norms, rtol=rtol[X.dtype])
        assert np.allclose(path.losses, dense.losses, rtol=rtol[X.dtype])
        assert np.array_equal(path.order, dense.order)


def test_sparse_columns_far_from_zero():
    """Stored without a single zero and with means of 1e4: what centring takes away is 1e8 times what it leaves."""
    X, Y = draw(4)
    X = X + 1e4
    dense = ahiht(make_problem(X, Y), n_rows=15)
    sparse = ahiht(make_problem(sp.csr_array(X), Y), n_rows=15)
    assert np.array_equal(sparse.indices, dense.indices)
    assert np.allclose(sparse.losses, dense.losses, rtol=1e-8)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_float32_agrees_to_its_tolerance(make, rtol):
    X, Y = draw(0, n_samples=60, n_features=300)
    double = ahiht(make_problem(make(X), Y), n_rows=30)
    single = ahiht(make_problem(make(X.astype(np.float32)), Y), n_rows=30)
    assert np.array_equal(single.n_nonzero, double.n_nonzero)
    assert np.allclose(single.losses, double.losses, rtol=rtol[np.dtype(np.float32)])
    assert np.allclose(single.norms, double.norms, rtol=rtol[np.dtype(np.float32)])


@given(seed=SEEDS, factor=st.floats(1e-6, 1e6))
@settings(max_examples=25)
def test_multiplying_x_changes_nothing(seed, factor):
    X, Y = draw(seed)
    path = ahiht(make_problem(X, Y, ridge=0.2), n_rows=15)
    other = ahiht(make_problem(factor * X, Y, ridge=0.2), n_rows=15)
    assert np.array_equal(other.n_nonzero, path.n_nonzero)
    assert np.allclose(other.alphas, path.alphas, rtol=1e-9)
    assert np.allclose(other.losses, path.losses, rtol=1e-7)
    assert np.allclose(other.coef(15) * factor, path.coef(15), rtol=1e-6, atol=1e-9)


@given(seed=SEEDS)
@settings(max_examples=25)
def test_permuting_samples_features_and_classes(seed):
    X, Y = draw(seed)
    random = np.random.default_rng(seed)
    samples, features, classes = random.permutation(20), random.permutation(30), random.permutation(3)
    path = ahiht(make_problem(X, Y), n_rows=15)
    other = ahiht(make_problem(X[samples][:, features], Y[samples][:, classes]), n_rows=15)
    assert np.allclose(other.losses, path.losses, rtol=1e-8)
    assert np.allclose(other.scores, path.scores[features], rtol=1e-6)
    assert np.allclose(other.coef(15), path.coef(15)[np.ix_(classes, features)], rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize(("n_samples", "n_features"), [(10, 50), (50, 10), (30, 30), (3, 4)])
def test_any_shape_reaches_all_rows_or_stops(n_samples, n_features):
    random = np.random.default_rng(0)
    X = random.standard_normal((n_samples, n_features))
    X[:, 1] = X[:, 0] + X[:, 2]  # rank deficient
    Y = random.standard_normal((n_samples, 2))
    for solver in (ahiht, quiet_hiht):
        path = solver(make_problem(X, Y), n_rows=n_features)
        assert np.isfinite(path.losses).all()
        assert np.isfinite(path.coef(n_features)).all()
        assert sorted(path.order.tolist()) == list(range(n_features))
        Xc, Yc = centred(X, Y)
        smallest = loss(Xc, Yc, np.linalg.lstsq(Xc, Yc, rcond=None)[0])
        assert smallest * (1 - 1e-9) - 1e-9 <= path.losses[-1] < path.losses[0] == pytest.approx(0.5 * np.sum(Yc**2))


@pytest.mark.parametrize("solver", [ahiht, hiht])
def test_targets_orthogonal_to_all_features_give_the_empty_path(solver):
    X = np.array([[1.0, 2.0], [-1.0, -2.0], [1.0, 2.0], [-1.0, -2.0]])
    path = solver(make_problem(X, np.array([[0.0], [0.0], [1.0], [1.0]])), n_rows=2)
    assert path.n_nonzero.tolist() == [0]
    assert path.losses.tolist() == [0.5]
    assert path.order.tolist() == [0, 1]


def test_scalar_target_is_the_scalar_l0_problem():
    """With one output the rows are numbers: the step is Blumensath and Davies' thresholding of single coefficients."""
    random = np.random.default_rng(0)
    X, Y = random.standard_normal((15, 20)), random.standard_normal((15, 1))
    path = ahiht(make_problem(X, Y), target=0.05, alpha_start=1.0, rate=0.5, eta=0.1)
    Xc, Yc = centred(X, Y)
    w, L = np.zeros(20), make_problem(X, Y).lipschitz_lower
    for lam in path.alphas:
        g = Xc.T @ (Xc @ w - Yc[:, 0])
        while True:
            v = np.where(np.abs(w - g / L) > np.sqrt(2 * lam / L), w - g / L, 0.0)
            change = loss(Xc, Yc[:, 0], w) - loss(Xc, Yc[:, 0], v) + lam * (np.count_nonzero(w) - np.count_nonzero(v))
            if change >= 0.05 * np.sum((w - v) ** 2):
                break
            L *= 2
        w = v
    assert np.allclose(dense_weights(path)[:, 0], w)
    assert n_rows(dense_weights(path)) == path.n_nonzero[-1] > 0


@pytest.mark.parametrize(("solver", "most"), [(AHIHT(), 1.0), (HIHT(max_iter=5000), 0.5)])
def test_steps_among_near_rows_ask_for_no_product(solver, most):
    X, Y = draw(3, n_samples=40, n_features=400)
    walk, n_products = solver.walk(make_problem(X, Y, ridge=1.0), 10), 0
    try:
        request = next(walk)
        while True:
            n_products += isinstance(request, GramRequest)
            request = walk.send(answer([request])[0])
    except StopIteration as end:
        path = end.value
    assert 0 < n_products <= most * path.n_iters.sum()


def test_many_steps_do_not_drift():
    """The gradient is updated step by step; the loss follows from it."""
    X, Y = draw(1, n_samples=60, n_features=300)
    for dtype, rtol in ((np.float64, 1e-13), (np.float32, 1e-6)):
        problem = make_problem(X.astype(dtype), Y)
        path = quiet_hiht(problem, n_rows=50, max_iter=1000, tol=1e-14)
        values = path.coef_values
        assert path.n_iters.sum() > 5000
        assert path.losses[-1] == pytest.approx(
            problem.value(problem.residual(path.coef_rows, values), values), abs=rtol * problem.null_loss
        )
