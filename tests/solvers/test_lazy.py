from __future__ import annotations

import tracemalloc
import warnings
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from l20fs.data import make_planted
from l20fs.design import DenseDesign
from l20fs.objective.least_squares import Gradient, LeastSquares
from l20fs.objective.path_ranking import RULES
from l20fs.solvers import Schedule, ahiht, hiht, lazy
from l20fs.solvers.homotopy import Walk
from l20fs.solvers.lazy import LazyGradient, LazyGradients, RowBounds, laziness_pays

SEEDS = st.integers(0, 2**32 - 1)
LAYOUTS = {"dense": np.asarray, "csr": sp.csr_array}


def draw(seed, n_samples=20, n_features=40, n_classes=3, dtype=np.float64):
    """Features of all lengths, some correlated, some with a mean far from zero, one constant, some decisive."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_samples, n_features)) + random.standard_normal((n_samples, 1))
    X *= random.uniform(0.2, 3.0, n_features)
    X[:, ::5] *= random.random((n_samples, len(X[0, ::5]))) < 0.3
    X[:, 1::5] += 5.0
    X[:, 3] = 2.0
    y = np.concatenate([np.arange(n_classes), random.integers(0, n_classes, n_samples - n_classes)])
    X[:, :3] += y[:, None]
    return X.astype(dtype), np.eye(n_classes)[y]


def solve(solver, problem, schedule, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not every lambda converges within the limit
        return solver(problem, schedule, **options)


def assert_same_path(path, plain):
    """A product of a few features may be rounded differently than that of all: 1e-16 per step, hence not bit for bit."""
    assert np.array_equal(path.indptr, plain.indptr)
    assert np.array_equal(path.indices, plain.indices)
    assert np.array_equal(path.n_iters, plain.n_iters)
    assert np.array_equal(path.rules, plain.rules)
    assert np.array_equal(path.order, plain.order)
    for name in ("alphas", "losses", "lipschitz", "norms", "scores"):
        assert np.allclose(getattr(path, name), getattr(plain, name), rtol=1e-10, atol=0), name
    size = np.abs(plain.coef_values).max(initial=0.0)
    assert np.allclose(path.coef_values, plain.coef_values, rtol=1e-10, atol=1e-12 * size)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("solver", [ahiht, hiht])
@given(
    seed=SEEDS,
    shape=st.tuples(st.integers(6, 25), st.integers(4, 60), st.integers(1, 4)),
    ridge=st.sampled_from([0.0, 0.3]),
    scale=st.sampled_from(["none", "zscore", "moderated"]),
    rate=st.sampled_from([0.5, 0.9, 0.97]),
    lipschitz_factor=st.sampled_from([0.05, 1.0]),
    n_kept=st.sampled_from([2, 3, 5, 16]),
    share=st.sampled_from([0.1, 0.5, 1.0]),
)
@settings(max_examples=40)
def test_the_path_is_that_of_the_plain_loop(
    layout, solver, seed, shape, ridge, scale, rate, lipschitz_factor, n_kept, share
):
    n_samples, n_features, n_targets = shape
    X, _ = draw(seed, n_samples, n_features)
    Y = np.random.default_rng(seed).standard_normal((n_samples, n_targets))
    problem = LeastSquares(LAYOUTS[layout](X), Y, ridge=ridge, scale=scale)
    # Fewer rows than would fit Y exactly: what is left of a residual then is rounding, and so is the path.
    n_rows = min(15, n_samples // 2, n_features // 2)
    schedule = Schedule(n_rows=n_rows, rate=rate, lipschitz_start=lipschitz_factor * problem.lipschitz_lower)
    options = {"max_iter": 30} if solver is hiht else {}
    plain = solve(solver, problem, schedule, lazy=False, **options)
    with mock.patch.multiple(lazy, N_KEPT=n_kept, SCATTERED_SHARE=share):
        path = solve(solver, problem, schedule, lazy=True, **options)
    assert_same_path(path, plain)


@pytest.mark.parametrize("name", ["brain", "nci", "srbct"])
@pytest.mark.parametrize("solver", [ahiht, hiht])
def test_real_data(paper_set, solver, name):
    X, y = paper_set(name)
    problem = LeastSquares(X, np.eye(y.max() + 1)[y])
    plain = solve(solver, problem, Schedule(n_rows=30), lazy=False)
    assert_same_path(solve(solver, problem, Schedule(n_rows=30), lazy=True), plain)


@pytest.mark.parametrize("ridge", [0.0, 0.5])
@given(seed=SEEDS)
@settings(max_examples=25)
def test_a_start_with_all_rows_in_use(ridge, seed):
    """Each row leaves with the ridge term in its gradient; what was noted there must not be taken for its product."""
    X, Y = draw(seed)
    problem = LeastSquares(X, Y, ridge=ridge)
    weights = 1e-3 * np.random.default_rng(seed).standard_normal((3, 40))
    plain = ahiht(problem, Schedule(n_rows=15), weights=weights, lazy=False)
    with mock.patch.object(lazy, "SCATTERED_SHARE", 1.0):
        assert_same_path(ahiht(problem, Schedule(n_rows=15), weights=weights, lazy=True), plain)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=SEEDS, n_kept=st.sampled_from([2, 16]), ridge=st.sampled_from([0.0, 0.3]))
@settings(max_examples=25)
def test_no_bound_is_ever_violated(layout, dtype, seed, n_kept, ridge):
    """At every point of a walk, for every zero row, in the precision in which the plain loop computes."""
    X, Y = draw(seed, dtype=dtype)
    problem = LeastSquares(LAYOUTS[layout](X), Y, ridge=ridge)
    with mock.patch.multiple(lazy, N_KEPT=n_kept, SCATTERED_SHARE=1.0):
        walk = Walk(problem, Schedule(), lazy=True)
        lam = float(walk.point.gradient.squared_norms.max()) / (2 * walk.L)
        n_decided = 0
        for _ in range(60):
            walk.step(lam)
            point = walk.point
            plain = problem.gradient(point.residual, point.rows, point.values)
            bounds = walk._gradient.bounds.at(point.residual)
            zero = ~point.is_active
            assert np.all(bounds[zero] >= np.sqrt(plain.squared_norms[zero].astype(np.float64)))
            lam *= 0.9
            threshold = np.sqrt(2 * lam * walk.L)
            n_decided += np.count_nonzero(bounds[zero] < threshold)
            # What the plain loop lets in, the lazy one lets in: up to the last digits, which two products need not share.
            is_above = point.gradient.above(threshold)
            assert np.all(is_above[zero & (plain.squared_norms > threshold**2)])
            room = 1e-4 if dtype == np.float32 else 1e-5
            assert not np.any(is_above[zero & (plain.squared_norms < (threshold * (1 - room)) ** 2)])
            assert np.allclose(
                point.gradient.at(np.flatnonzero(is_above | point.is_active)),
                plain.at(np.flatnonzero(is_above | point.is_active)),
                rtol=0,
                atol=2000 * np.finfo(dtype).eps * np.linalg.norm(X) * np.linalg.norm(point.residual),
            )
    assert n_decided > 0


@given(seed=SEEDS, n_steps=st.integers(1, 40), n_kept=st.integers(2, 6), n_targets=st.integers(1, 4))
def test_bounds_from_any_history(seed, n_steps, n_kept, n_targets):
    """Residuals that wander at random, with any features noted at each; without a note a bound is infinite."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((8, 6))
    residual = random.standard_normal((n_targets, 8))
    noted = np.zeros(6, dtype=bool)
    with mock.patch.object(lazy, "N_KEPT", n_kept):
        bounds = RowBounds(np.linalg.norm(X, axis=0), residual.shape, eps=2.0**-52)
        for _ in range(n_steps):
            rows = np.flatnonzero(random.random(6) < 0.3)
            bounds.note(residual, rows, np.linalg.norm(residual @ X[:, rows], axis=0))
            noted[rows] = True
            residual = residual + 10.0 ** random.uniform(-8, 0) * random.standard_normal(residual.shape)
            bound = bounds.at(residual)
            assert np.all(bound >= np.linalg.norm(residual @ X, axis=0))
            assert np.array_equal(np.isfinite(bound), noted)


@pytest.mark.parametrize("factor", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("n_targets", [1, 5])
def test_the_bound_is_tight_where_it_can_be(factor, n_targets):
    """A feature along a residual that only grows reaches the triangle inequality, in any units."""
    lengths = np.array([2.0, 0.5])
    along = factor * np.outer(np.ones(n_targets), [0.6, 0.0, 0.8])
    product = lengths * factor * np.sqrt(n_targets)
    bounds = RowBounds(lengths, (n_targets, 3), eps=2.0**-52)
    bounds.note(along, slice(None), product)
    bound = bounds.at(1.5 * along)
    assert np.all(bound >= 1.5 * product)
    assert np.allclose(bound, 1.5 * product, rtol=2e-6, atol=0)


def test_the_bound_uses_the_spectral_norm():
    """Four equal orthogonal displacements: the Frobenius norm would say twice as much as the spectral norm, which is 1."""
    bounds = RowBounds(np.ones(1), (4, 4), eps=2.0**-52)
    bounds.note(np.zeros((4, 4)), slice(None), np.zeros(1))
    assert 1.0 <= bounds.at(np.eye(4))[0] <= 4**0.125 * (1 + 1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=SEEDS)
def test_the_bound_holds_for_products_as_they_are_rounded(dtype, seed):
    """A feature along the residual reaches the bound exactly, and a tiny step leaves the decision to the rounding."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((300, 20)).astype(dtype)
    lengths = np.linalg.norm(X.astype(np.float64), axis=0)
    for j in range(20):
        bounds = RowBounds(lengths, (1, 300), float(np.finfo(dtype).eps))
        start = X[:, j].astype(np.float64)[None] * random.uniform(0.5, 2.0)
        end = start * (1.0 + 1e-9)
        bounds.note(start, slice(None), np.abs(start.astype(dtype) @ X)[0])
        for order in (slice(None), slice(None, None, -1)):  # summed in any order
            product = np.abs(end.astype(dtype)[:, order] @ X[order])[0]
            assert np.all(bounds.at(end) >= product)


def test_references_die_slowly():
    """Half of the kept residuals go when there is no room; their features stay bounded, by little more than before."""
    lengths = np.ones(100)
    bounds = RowBounds(lengths, (1, 2), eps=2.0**-52)
    for step in range(100):
        bounds.note(np.array([[float(step), 1.0]]), np.array([step]), np.array([0.0]))
    bound = bounds.at(np.array([[99.0, 1.0]]))
    age = 99.0 - np.arange(100)
    assert bounds._kept.shape == (lazy.N_KEPT, 1, 2)
    assert np.all(bound >= age)
    assert np.allclose(bound, age, rtol=1e-5, atol=1e-5)  # on a straight way the triangle inequality loses nothing


@pytest.fixture
def pulled(monkeypatch):
    """The number of features in each product with a residual; a whole pass counts all."""
    counts = []
    pull = DenseDesign.pull

    def counted(self, residual, rows=None):
        counts.append(self.n_features if rows is None else len(rows))
        return pull(self, residual, rows)

    monkeypatch.setattr(DenseDesign, "pull", counted)
    return counts


@pytest.mark.parametrize(("solver", "saving"), [(ahiht, 4), (hiht, 10)])
def test_few_features_are_evaluated(pulled, solver, saving):
    X, y, _ = make_planted(100, 4000, 10, 4)
    problem = LeastSquares(X, np.eye(4)[y])
    schedule = Schedule(n_rows=30, rate=0.95, lipschitz_start=problem.lipschitz)
    plain = solve(solver, problem, schedule, lazy=False)
    n_plain = sum(pulled)
    assert n_plain == 4000 * (plain.n_iters.sum() + 1)
    pulled.clear()
    assert_same_path(solve(solver, problem, schedule, lazy=True), plain)
    assert saving * sum(pulled) <= n_plain
    assert pulled.count(4000) >= 2, "the first point and the ranking at the end need all features"


def test_a_feature_is_evaluated_once_per_point(pulled):
    """However many trials the line search makes from it."""
    X, y, _ = make_planted(100, 3000, 10, 4)
    walk = Walk(LeastSquares(X, np.eye(4)[y]), Schedule(), lazy=True)
    lam = 0.5 * float(walk.point.gradient.squared_norms.max()) / (2 * walk.L)
    walk.step(lam)
    pulled.clear()
    n_new = np.count_nonzero(walk.propose(0.8 * lam).kept) - len(walk.point.rows)
    assert n_new > 0
    evaluated = list(pulled)
    assert len(walk.point.rows) + n_new <= sum(evaluated) < 3000
    walk.propose(0.8 * lam)
    walk.L *= 2
    walk.propose(lam)
    assert pulled == evaluated


def test_many_rows_in_use_cost_one_pass(pulled):
    """To fetch them one by one would cost more."""
    X, Y = draw(0)
    problem = LeastSquares(X, Y)
    gradient_at = LazyGradients(problem)
    rows, values = np.arange(25), np.full((3, 25), 1e-3)
    residual = problem.residual(rows, values)
    gradient_at(-problem.targets, rows[:0], values[:, :0])
    pulled.clear()
    gradient = gradient_at(residual, rows, values)
    gradient.above(1e9)
    gradient.at(rows)
    assert pulled == [40]


@given(seed=SEEDS)
@settings(max_examples=25)
def test_what_was_noted_of_a_row_in_use_is_not_taken_for_its_product(seed):
    """At the ridge solution the gradient of a row in use is zero, and its product is not: without weights it may enter."""
    X, Y = draw(seed)
    problem = LeastSquares(X, Y, ridge=0.5)
    rows = np.flatnonzero(problem.design.varies)
    columns = problem.design.take(rows, slice(None))
    gram = columns.T @ columns + problem.ridge * np.eye(len(rows))
    values = np.linalg.solve(gram, columns.T @ problem.targets.T).T
    residual = problem.residual(rows, values)
    gradient_at = LazyGradients(problem)
    at_the_solution = gradient_at(residual, rows, values)
    nothing = rows[:0], values[:, :0]
    product = problem.gradient(residual, *nothing)
    threshold = 0.5 * np.sqrt(product.squared_norms.max())
    assert not at_the_solution.above(threshold).any()
    with mock.patch.object(lazy, "SCATTERED_SHARE", 1.0):
        assert np.array_equal(gradient_at(residual, *nothing).above(threshold), product.above(threshold))


@pytest.mark.parametrize("layout", LAYOUTS)
@given(seed=SEEDS, ridge=st.sampled_from([0.0, 0.5]))
@settings(max_examples=25)
def test_a_lazy_gradient_answers_like_a_plain_one(layout, seed, ridge):
    """In any order of questions, for rows that it knows and rows that it does not."""
    X, Y = draw(seed)
    problem = LeastSquares(LAYOUTS[layout](X), Y, ridge=ridge)
    random = np.random.default_rng(seed)
    gradient_at = LazyGradients(problem)
    gradient_at(-problem.targets, np.arange(0), np.zeros((3, 0)))
    rows = np.sort(random.choice(40, 5, replace=False))
    values = 0.01 * random.standard_normal((3, 5))
    point = problem.residual(rows, values), rows, values
    plain = problem.gradient(*point)
    zero = np.setdiff1d(np.arange(40), rows)
    thresholds = np.sqrt(np.quantile(plain.squared_norms, random.random(4))) * 1.001
    with mock.patch.object(lazy, "SCATTERED_SHARE", 1.0):
        gradient = gradient_at(*point)
        for threshold in thresholds:
            assert np.array_equal(gradient.above(threshold)[zero], plain.above(threshold)[zero])
            some = np.sort(random.choice(40, 7, replace=False))
            assert np.allclose(gradient.at(some), plain.at(some), rtol=1e-9, atol=1e-12 * np.linalg.norm(X))
    assert np.array_equal(gradient.squared_norms, plain.squared_norms)
    assert np.array_equal(gradient.at(zero), plain.at(zero))
    assert np.array_equal(gradient.above(thresholds[0]), plain.above(thresholds[0]))


def test_bounds_that_never_decide_are_asked_ever_more_rarely(pulled, monkeypatch):
    """And a point costs one pass, as in the plain loop, and is noted only if the bounds are asked next."""
    X, Y = draw(0)
    problem = LeastSquares(X, Y)
    nothing = np.arange(0), np.zeros((3, 0))
    gradient_at = LazyGradients(problem)
    asked, noted = [], []
    monkeypatch.setattr(
        gradient_at.bounds, "note", lambda *_, note=gradient_at.bounds.note: noted.append(number) or note(*_)
    )
    for number in range(90):
        gradient = gradient_at(-problem.targets * (1 + number), *nothing)
        if isinstance(gradient, LazyGradient):
            asked.append(number)
        gradient.above(0.0)
        gradient.above(0.0)
        gradient.at(np.arange(40))
    assert asked == [1, 2, 4, 8, 16, 32, 48, 64, 80]
    assert noted == [number - 1 for number in asked]
    assert pulled == [40] * 90


def test_one_success_restores_the_trust():
    X, Y = draw(0)
    problem = LeastSquares(X, Y)
    nothing = np.arange(0), np.zeros((3, 0))
    gradient_at = LazyGradients(problem)
    kinds = []
    for threshold in [0.0, 0.0, 0.0, 0.0, np.inf, 0.0, 0.0, 0.0]:
        gradient = gradient_at(-problem.targets, *nothing)
        gradient.above(threshold)
        kinds.append("lazy" if isinstance(gradient, LazyGradient) else "whole")
    assert kinds == ["whole", "lazy", "lazy", "whole", "lazy", "lazy", "lazy", "whole"]


def test_where_laziness_pays():
    def pays(n_samples, n_features, n_targets, density=None):
        X = np.zeros((2, 2))
        X[0] = 1.0
        problem = LeastSquares(X, np.eye(2))
        problem.targets = np.zeros((n_targets, n_samples))
        problem.design.n_stored = int(n_samples * n_features * (density or 1.0))
        return laziness_pays(problem)

    assert pays(300, 200_000, 8)
    assert pays(200, 20_000, 8)
    assert not pays(63, 2308, 4), "a pass is as quick as the bounds"
    assert not pays(1500, 600, 26), "as many numbers in the kept residuals as in X"
    assert not pays(2000, 50_000, 5, density=0.001), "hardly anything is stored"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_stored_elements(layout):
    X = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]])
    assert LeastSquares(LAYOUTS[layout](X), np.eye(2)).design.n_stored == (6 if layout == "dense" else 3)


@pytest.mark.parametrize("solver", [ahiht, hiht])
def test_the_solvers_choose_by_themselves(pulled, monkeypatch, solver):
    X, y, _ = make_planted(50, 1000, 5, 3)
    problem = LeastSquares(X, np.eye(3)[y])
    solve(solver, problem, Schedule(n_rows=10))
    assert set(pulled) == {1000}
    monkeypatch.setattr(lazy, "LARGE", 1)
    pulled.clear()
    solve(solver, problem, Schedule(n_rows=10))
    assert min(pulled) < 1000


def test_memory_beyond_the_plain_loop():
    """Less than ten vectors with one number per feature, and the kept residuals."""
    n_samples, n_features, n_targets = 60, 50_000, 4
    X, y, _ = make_planted(n_samples, n_features, 10, n_targets)
    problem = LeastSquares(X, np.eye(n_targets)[y])

    def peak(**options):
        tracemalloc.start()
        try:
            ahiht(problem, Schedule(n_rows=30), **options)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    kept = 8 * 2 * lazy.N_KEPT * n_targets * n_samples  # and the displacements from them
    assert peak(lazy=True) <= peak(lazy=False) + 10 * 8 * n_features + kept


def test_the_last_ranking_is_by_the_gradient_at_the_end():
    """Not by a bound: the features that never entered are ordered by their gradients at the last point."""
    X, Y = draw(7, n_samples=30, n_features=200)
    problem = LeastSquares(X, Y)
    path = ahiht(problem, Schedule(n_rows=10), lazy=True)
    outside = path.rules == RULES.index("gradient")
    values = path.coef_values
    expected = problem.gradient(problem.residual(path.coef_rows, values), path.coef_rows, values)
    assert isinstance(expected, Gradient)
    ranked = path.order[outside[path.order]]
    assert np.all(np.diff(expected.squared_norms[ranked]) <= 1e-8 * expected.squared_norms.max())
