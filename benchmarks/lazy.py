"""What lazy gradients save: whole paths with and without them, interleaved in one run, best of several.

Run ``python benchmarks/lazy.py``. Each line is one path on planted data: ``plain`` evaluates every feature at every point,
``lazy`` only those whose bound says that they may matter, ``auto`` is what the package does by itself. ``passes`` are
products of all features with a residual, ``evaluated`` those of single features in units of all; the first point and the
ranking at the end need one pass each. The supports must be the same at every stage and the weights equal to 1e-12; a
product of a few features may be rounded differently than that of all, so that bits are not compared.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import scipy.sparse as sp

from l20fs.data import make_planted
from l20fs.objective.least_squares import LeastSquares
from l20fs.solvers import Schedule, ahiht, hiht
from l20fs.solvers.homotopy import Walk, lambdas

# samples, features, classes, rows wanted, options
CASES = [
    (300, 200_000, 8, 130, {}),
    (300, 200_000, 8, 130, {"L": 1.0}),
    (300, 200_000, 8, 130, {"L": 0.1}),
    (300, 200_000, 8, 130, {"rate": 0.98}),
    (300, 200_000, 8, 130, {"dtype": np.float32}),
    (200, 20_000, 8, 130, {}),
    (200, 20_000, 8, 130, {"L": 0.1}),
    (200, 20_000, 8, 50, {"solver": hiht}),
    (2000, 20_000, 8, 130, {"density": 0.05}),
    (5000, 5000, 10, 400, {}),
    (63, 2308, 4, 60, {}),
    (63, 2308, 4, 60, {"solver": hiht}),
]


def make_problem(n_samples, n_features, n_classes, dtype=np.float64, density=None) -> LeastSquares:
    X, y, _ = make_planted(n_samples, n_features, 20, n_classes)
    if density is not None:
        X[np.random.default_rng(0).random(X.shape) > density] = 0.0
        X = sp.csr_array(X)
    problem = LeastSquares(X.astype(dtype, copy=False), np.eye(n_classes)[y])
    assert problem.lipschitz > 0.0  # once per problem and not part of a path
    return problem


def evaluations(problem: LeastSquares, solve) -> float:
    """Count the products of features with residuals, in units of all features."""
    pull, counts = problem.design.pull, []

    def counted(residual, rows=None):
        counts.append(problem.n_features if rows is None else len(rows))
        return pull(residual, rows)

    problem.design.pull = counted
    solve()
    problem.design.pull = pull
    return sum(counts) / problem.n_features


def stages(problem: LeastSquares, schedule: Schedule, lazy: bool):
    """Yield rows and weights at every lambda of an AHIHT path."""
    walk, done = Walk(problem, schedule, lazy=lazy), []
    for lam in lambdas(walk, done):
        before = walk.L
        trial = walk.step(lam)
        if trial.squared_length == 0.0:
            walk.L = before
        done.append(walk.stage(lam, trial, n_steps=1, converged=True))
        yield walk.point.rows, walk.point.values


def check_every_stage(problem: LeastSquares, schedule: Schedule) -> None:
    tolerance = 1e-12 if problem.dtype == np.float64 else 1e-5
    both = zip(stages(problem, schedule, False), stages(problem, schedule, True), strict=True)
    for (rows, weights), (lazy_rows, lazy_weights) in both:
        assert np.array_equal(rows, lazy_rows)
        assert np.allclose(weights, lazy_weights, rtol=0, atol=tolerance * np.abs(weights).max(initial=0.0))


def best_times(solve, repeats: int) -> dict:
    best = dict.fromkeys((False, True, None), np.inf)
    for _ in range(repeats):
        for lazy in best:
            begin = time.perf_counter()
            solve(lazy)
            best[lazy] = min(best[lazy], time.perf_counter() - begin)
    return best


def main() -> None:
    warnings.simplefilter("ignore")  # HIHT says that some lambdas stop at their step limit
    print(
        f"{'size':>18} {'':<26}{'rows':>5}{'passes':>8}{'evaluated':>11}{'plain ms':>10}{'lazy ms':>9}{'auto ms':>9}", end=""
    )
    print(f"{'plain/lazy':>12}{'plain/auto':>12}")
    problem, kind = None, None
    for n_samples, n_features, n_classes, n_rows, options in CASES:
        solver = options.get("solver", ahiht)
        wanted = (n_samples, n_features, n_classes, options.get("dtype", np.float64), options.get("density"))
        if wanted != kind:
            problem = None  # the old one goes before the new one comes
            problem, kind = make_problem(*wanted), wanted
        start = options["L"] * problem.lipschitz if "L" in options else None
        schedule = Schedule(n_rows=n_rows, rate=options.get("rate", 0.9), lipschitz_start=start)

        def solve(lazy):
            return solver(problem, schedule, lazy=lazy)

        if solver is ahiht:
            check_every_stage(problem, schedule)
        plain, path = solve(False), solve(True)
        assert np.array_equal(path.indices, plain.indices)
        assert np.array_equal(path.order, plain.order) or problem.dtype == np.float32
        passes, evaluated = (evaluations(problem, lambda lazy=lazy: solve(lazy)) for lazy in (False, True))
        best = best_times(solve, 3 if n_samples * n_features > 10**6 else 40)
        label = ", ".join(f"{name}={getattr(value, '__name__', value)}" for name, value in options.items())
        print(
            f"{n_samples:>6}x{n_features}x{n_classes:<4} {label.replace('L=1.0', 'L=L_f').replace('L=0.1', 'L=L_f/10'):<26}"
            f"{path.n_nonzero[-1]:5d}{passes:8.0f}{evaluated:11.2f}{1e3 * best[False]:10.1f}{1e3 * best[True]:9.1f}"
            f"{1e3 * best[None]:9.1f}{best[False] / best[True]:12.2f}{best[False] / best[None]:12.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
