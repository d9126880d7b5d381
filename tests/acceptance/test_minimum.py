"""What the solvers minimise, and that they do.

Losses, rows and weights are compared with least squares written out below and solved from scratch for every panel, with
closed forms, linear programs, and the paper's Algorithms 1 and 2 in dense arrays.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from acceptance import doors
from scipy.optimize import linprog

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of HIHT

SOLVERS = ["forward", "swap", "ahiht", "hiht"]
PLAIN = {"ridge": 0.3, "scale": "none", "class_weight": None, "fit_intercept": True, "ranking": "entry", "loss": "squared"}
WALK = {"alpha_start": None, "rate": 0.7, "line_search_factor": 2.0, "eta": 0.1, "lipschitz_start": None, "init": "zeros"}
STEPS = {"ahiht": WALK, "hiht": WALK | {"max_iter": 60, "tol": 1e-9, "stopping": "absolute"}}
KINDS = [{"task": "classification"}, {"task": "classification", "class_weight": "balanced"}, {"task": "regression"}]
WIDE = [KINDS[1] | {"scale": "zscore"}, KINDS[2] | {"ridge": 0.0, "fit_intercept": False}]


def fit(X, y, k, solver="forward", *, weights=None, known=None, steps=None, **options):
    steps = STEPS[solver] | (steps or {}) if solver in STEPS else None
    return doors.fit(X, y, k, sample_weight=weights, adjust_for=known, solver=solver, steps=steps, **(PLAIN | options))


def draw(seed, n_samples=40, n_features=9, *, task="classification"):
    """Correlated features with offsets and units of their own; three classes or two numbers; weights of the samples."""
    random = np.random.default_rng(seed)
    hidden = random.standard_normal((n_samples, 3))
    X = hidden[:, random.integers(0, 3, n_features)] + hidden[:, random.integers(0, 3, n_features)]
    X = (X + 0.4 * random.standard_normal((n_samples, n_features)) + 1.0) * (0.5 + random.random(n_features))
    Y = hidden + 0.5 * random.standard_normal((n_samples, 3))
    return X, Y[:, :2] + 3.0 if task == "regression" else Y.argmax(axis=1), random.integers(1, 9, n_samples) / 4


class Problem:
    """Least squares from its definition: columns A and targets B as they are compared, and the strength mu of the ridge."""

    def __init__(self, X, y, *, weights=None, known=None, **options):
        options = PLAIN | options
        Y = np.eye(y.max() + 1)[y] if y.ndim == 1 else y
        w, known = np.ones(len(X)) if weights is None else weights, X[:, :0] if known is None else known
        self.X, self.Y, self.root = X, Y, np.sqrt(w)[:, None]
        A, B, known = (self.root * (M - options["fit_intercept"] * (w @ M) / w.sum()) for M in (X, Y, known))
        basis = np.linalg.qr(known)[0]
        A, B = (M - basis @ (basis.T @ M) for M in (A, B))
        deviation = np.sqrt((A**2).sum(axis=0) / w.sum())
        rules = {"none": np.ones(len(A.T)), "zscore": deviation, "moderated": deviation + np.median(deviation)}
        self.factors = np.sqrt(w.sum() / (len(Y.T) * (w @ Y))) if options["class_weight"] else np.ones(len(Y.T))
        self.units = rules[options["scale"]][:, None] * self.factors
        self.A, self.B = A / rules[options["scale"]], B * self.factors
        self.mu = options["ridge"] * (self.A**2).sum(axis=0).mean()

    def loss(self, W):
        return 0.5 * np.linalg.norm(self.A @ W - self.B) ** 2 + 0.5 * self.mu * np.linalg.norm(W) ** 2

    def loss_of(self, coef, intercept):
        """The loss of weights and intercepts in units of X and Y, from the samples as they are given."""
        error = self.root * self.factors * (self.X @ coef.T + intercept - self.Y)
        return 0.5 * np.linalg.norm(error) ** 2 + 0.5 * self.mu * np.linalg.norm(coef.T * self.units) ** 2

    def solve(self, rows):
        rows, W = list(rows), np.zeros((len(self.A.T), len(self.B.T)))
        lifted = np.vstack([self.A[:, rows], np.sqrt(self.mu) * np.eye(len(rows))])
        W[rows] = np.linalg.lstsq(lifted, np.vstack([self.B, np.zeros((len(rows), len(self.B.T)))]), rcond=None)[0]
        return W

    def minimum(self, panel):
        """The lowest loss of a panel of units, which are tuples of rows."""
        return self.loss(self.solve(sum(panel, ())))


def greedy(value, prices, k, chosen=(), fits=lambda panel: True):
    """Add what lowers the value most for its price."""
    chosen, values = [*chosen], [value(chosen)]
    while len(chosen) < k:
        others = [unit for unit in prices if unit not in chosen and fits([*chosen, unit])]
        chosen.append(max(others, key=lambda unit: (values[-1] - value([*chosen, unit])) / prices[unit]))
        values.append(value(chosen))
    return chosen, values


def assert_close(found, expected, rtol=1e-8):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-10 * np.abs(expected).max())


COSTS = [1.0, 2.0, 1.5, 0.5, 3.0, 1.0, 2.5, 0.7, 1.2]
GROUPS = [[0, 3], [1, 4, 6, 7], [2], [5], [8]]
USUAL = {"groups": [[row] for row in range(9)], "factors": [1.0] * 9, "costs": [0.0] * 9}
WISHES = {
    "nothing": {},
    "covariates": {},
    "include and exclude": {"include": [4], "exclude": [1]},
    "factors": {"factors": COSTS},
    "groups": {"groups": GROUPS},
    "groups of one price": {"groups": GROUPS, "factors": [0.5, 0.25, 1.0, 0.5, 0.25, 1.0, 0.25, 0.25, 1.0]},
    "budget": {"costs": COSTS, "budget": 3.5},
}


@pytest.mark.parametrize("wish", WISHES)
def test_forward_swap_and_the_exact_solution_against_all_panels(wish):
    """Forward is greedy by gain per price; no exchange helps swap at any size; the search finds the best of all panels."""
    wished, n_exchanged = WISHES[wish], 0
    groups, factors, costs = (wished.get(name, usual) for name, usual in USUAL.items())
    prices = {tuple(unit): sum(factors[row] for row in unit) for unit in groups if unit != wished.get("exclude")}
    k, included = min(4, len(prices) - 2), [(row,) for row in wished.get("include", [])]
    whole = [{*panel} for panel in combinations(prices, k) if sum(costs[row] for row in sum(panel, ())) <= 3.5]

    def fits(panel):
        return {*included} <= {*panel} and any({*panel} <= other for other in whole)

    for seed, (kind, is_weighted, ridge) in enumerate(product(KINDS, [False, True], [0.3, 0.0])):
        X, y, weights = draw(seed, task=kind["task"])
        weights, known = weights if is_weighted else None, np.sin(X[:, :2]) if wish == "covariates" else None
        how = kind | {"weights": weights, "known": known, "ridge": ridge, "scale": ["none", "zscore", "moderated"][seed % 3]}
        problem, fitted = Problem(X, y, **how), fit(X, y, k, **how, **wished)
        order, losses = greedy(problem.minimum, prices, k, included, fits)
        path, (coef, _, loss) = doors.path(fitted), fitted.refit(k)
        assert [*map(list, path.supports)] == [sorted(sum(order[:size], ())) for size in range(len(included), k + 1)]
        assert_close([*path.losses, loss], [*losses, losses[-1]])
        assert_close(coef.T, problem.solve(sum(order, ())) / problem.units, rtol=1e-5)
        swapped = doors.path(fit(X, y, k, "swap", **how, **wished))
        for rows, loss, alpha in zip(swapped.supports, swapped.losses, swapped.alphas, strict=True):
            chosen = {unit for unit in prices if {*unit} <= {*rows.tolist()}}
            assert_close(loss, problem.minimum(chosen))
            near = [panel for panel in combinations(prices, len(chosen)) if fits(panel) and len({*panel} - chosen) < 2]
            values = [problem.minimum(panel) + alpha * sum(prices[unit] for unit in panel) for panel in near]
            assert loss + alpha * sum(prices[unit] for unit in chosen) <= min(values, default=np.inf) * (1 + 1e-9)
        assert fits(chosen)
        n_exchanged += np.count_nonzero(swapped.losses < path.losses * (1 - 1e-6))
        if ridge and len({*prices.values()}) == 1:
            found = doors.solve_exactly(fitted, X, y, k, sample_weight=weights, adjust_for=known)[0]
            assert found.tolist() == sorted(sum(min(filter(fits, whole), key=problem.minimum), ()))
    assert n_exchanged, "the problems must need exchanges"


@pytest.mark.parametrize("options", [KINDS[0], KINDS[1] | {"weights": draw(0)[2]}, WIDE[1]])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_loss_of_a_stage_is_that_of_its_weights(solver, options):
    """With more features than samples; there, too, forward is greedy."""
    X, y, _ = draw(3, n_features=60, task=options["task"])
    problem, whole = Problem(X, y, **options), doors.path(fit(X, y, 6, solver, **options))
    for k in range(1, 7):
        path = doors.path(fit(X, y, k, solver, **options))
        assert_close([path.losses[-1], whole.losses[len(path.losses) - 1]], problem.loss_of(path.coef, path.intercept))
        assert np.flatnonzero(path.coef.any(axis=0)).tolist() == path.supports[-1].tolist()
    if solver == "forward":
        assert_close(whole.losses, greedy(problem.minimum, {(row,): 1.0 for row in range(60)}, 6)[1])


@pytest.mark.parametrize("solver", SOLVERS)
def test_orthonormal_features_have_the_closed_form(solver):
    """With A'A = I the rows decouple: those that lower the loss by more than lambda stay."""
    X, Y, _ = draw(4, task="regression")
    X = np.linalg.qr(X - X.mean(axis=0))[0]
    for ridge, lam in product([0.0, 0.5], [0.05, 0.4]):
        problem = Problem(X, Y, ridge=ridge)
        W = problem.A.T @ problem.B / (1 + ridge)
        gains = (1 + ridge) / 2 * (W**2).sum(axis=1)
        kept = gains > lam
        steps = {"alpha_start": lam, "lipschitz_start": 1 + ridge, "eta": 0.0}
        fitted = fit(X, Y, None, solver, steps=steps, alpha_min=lam, ridge=ridge, task="regression")
        assert fitted.support().tolist() == np.flatnonzero(kept).tolist()
        assert_close(doors.path(fitted).coef.T, kept[:, None] * W)
        assert_close(doors.path(fitted).losses[-1], problem.loss(0 * W) - gains[kept].sum())


def homotopy(problem, lambdas, L, max_steps, eta=0.1):
    """Algorithms 1 and 2 in dense arrays; L has a cap, and a point that does not move ends a lambda and leaves L alone."""
    A, mu, W, stages = problem.A, problem.mu, np.zeros((len(problem.A.T), len(problem.B.T))), []
    L, cap = L or (A**2).sum(axis=1).max() + mu, 1.01 * (np.linalg.norm(A, 2) ** 2 + mu + eta)
    for lam in lambdas:
        L_before = L
        for _ in range(max_steps):
            while True:
                V = W - (A.T @ (A @ W - problem.B) + mu * W) / L
                V[(V**2).sum(axis=1) <= 2 * lam / L] = 0.0
                step = np.linalg.norm(V - W) ** 2
                decrease = problem.loss(W) - problem.loss(V) + lam * (np.sum(W.any(axis=1)) - np.sum(V.any(axis=1)))
                if decrease >= eta / 2 * step - 1e-12 * problem.loss(W) or L >= cap:
                    break
                L = min(2.0 * L, cap)
            W, L = V, L if step else L_before
            if step <= 1e-9:
                break
        stages.append((W, L))
    return stages


@pytest.mark.parametrize("solver", ["ahiht", "hiht"])
def test_ahiht_and_hiht_are_the_algorithms_of_the_paper(solver):
    lambdas = [*(0.5 * 0.7 ** np.arange(10)), 0.01]  # log(0.5 / 0.01) / log(1 / 0.7) is 10.97
    for options, L in zip(WIDE, (30.0, None), strict=True):
        X, y, _ = draw(0, 25, 40, task=options["task"])
        problem, steps = Problem(X, y, **options), {"alpha_start": 0.5, "lipschitz_start": L}
        path = doors.path(fit(X, y, 5, solver, steps=steps, alpha_min=0.01, **options))
        stages = homotopy(problem, lambdas, L, STEPS[solver].get("max_iter", 1))
        assert [rows.tolist() for rows in path.supports] == [np.flatnonzero(W.any(axis=1)).tolist() for W, _ in stages]
        assert_close(path.losses, [problem.loss(W) for W, _ in stages])
        assert_close([path.alphas / lambdas, path.lipschitz / [L for _, L in stages]], 1.0)
        assert_close(path.coef.T, stages[-1][0] / problem.units, rtol=1e-5)


def test_the_robust_loss_of_one_target_is_a_linear_program():
    """The median, without features: the sum of weighted absolute errors in units of the deviation of the target."""
    X, Y, w = draw(5, 30, 4, task="regression")
    y = Y[:, 0] + 30.0 * (np.arange(30) % 7 == 0)
    unit = np.sqrt(w @ (y - w @ y / w.sum()) ** 2 / w.sum())

    def program(panel):
        signed = np.hstack([np.ones((30, 1)), X[:, sum(panel, ())], np.eye(30), -np.eye(30)])
        prices = unit * np.concatenate([np.zeros(1 + len(panel)), w, w])
        return linprog(prices, A_eq=signed, b_eq=y, bounds=[(None, None)] * (1 + len(panel)) + [(0, None)] * 60).fun

    order, losses = greedy(program, {(row,): 1.0 for row in range(4)}, 2)
    path = doors.path(fit(X, y, 2, weights=w, loss="l21", ridge=0.0, task="regression"))
    assert path.supports[-1].tolist() == sorted(sum(order, ()))
    assert_close(path.losses, losses, rtol=3e-5)  # errors near zero count as squares


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_must_not_matter_does_not(solver):
    """The order of features; a sample twice or its weight 2, left out or its weight 0; a constant; a distance from zero.

    Of exact duplicates the lower index comes first.
    """
    X, y, _ = draw(6, n_features=12)
    options = KINDS[1] | {"solver": solver, "scale": "zscore"}
    usual, shuffled = doors.path(fit(X, y, 4, **options)), np.random.default_rng(6).permutation(12)
    moved = doors.path(fit(X[:, shuffled], y, 4, **options))
    assert [sorted(shuffled[rows]) for rows in moved.supports] == [rows.tolist() for rows in usual.supports]
    assert_close(moved.losses, usual.losses)
    counts = np.arange(len(X)) % 3
    weighted, repeated = fit(X, y, 4, weights=counts, **options), fit(X.repeat(counts, 0), y.repeat(counts), 4, **options)
    assert np.array_equal(weighted.order, repeated.order)
    assert_close(doors.path(weighted).losses, doors.path(repeated).losses)
    far = np.column_stack([np.full(len(X), 0.1), X + 1e8 * np.isin(np.arange(12), usual.supports[-1]), np.zeros(len(X))])
    fitted = fit(far, y, 4, **options)
    assert [rows.tolist() for rows in doors.path(fitted).supports] == [(rows + 1).tolist() for rows in usual.supports]
    assert {*fitted.order[-2:]} == {0, 13}
    assert_close(doors.path(fitted).losses, usual.losses, rtol=1e-6)
    place = np.argsort(fit(np.column_stack([X, X[:, shuffled]]), y, 4, **options).order)
    assert (place[shuffled] < place[12:]).all()
