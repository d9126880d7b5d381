"""What a whole AHIHT path costs, in units of the matrix product it cannot do without.

Run ``python benchmarks/path_cost.py``. For each size it times, in one process and interleaved,

* ``bare``: one ``X.T @ R`` with R of the shape of the residual, as a user would write it (and ``R.T @ X``, the orientation
  that the package uses);
* ``path``: the solver from W = 0 to min(400, n_samples - 3) non-zero rows with the default schedule;
* ``set-up``: centring and measuring X, once per fit;

and prints path / (accepted steps x bare), and the peak memory beyond X and its centred copy in units of one float64 array
of shape (n_features + n_samples, n_classes). Best of several repeats: the machine may be noisy, the ratio much less so.
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np

from l20fs.data import make_planted
from l20fs.objective.least_squares import LeastSquares
from l20fs.solvers import Schedule, ahiht

# n_samples, n_features, n_classes, repeats, target ratio
SIZES = [(63, 2308, 4, 60, 3.0), (200, 20000, 8, 12, 1.5), (5000, 5000, 10, 4, 1.5)]


def seconds(function) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def main() -> None:
    print(f"{'size':>16}{'bare ms':>9}{'R.T@X ms':>10}{'set-up ms':>11}{'steps':>7}{'rows':>6}{'path ms':>9}", end="")
    print(f"{'ratio':>7}{'target':>8}{'with set-up':>13}{'memory':>8}")
    for n_samples, n_features, n_classes, repeats, target in SIZES:
        X, y, _ = make_planted(n_samples, n_features, 20, n_classes)
        Y = np.eye(n_classes)[y]
        R = np.random.default_rng(1).standard_normal((n_samples, n_classes))
        R_wide = np.ascontiguousarray(R.T)
        schedule = Schedule(n_rows=min(400, n_samples - 3))
        problem = LeastSquares(X, Y)
        path = ahiht(problem, schedule)
        steps = int(path.n_iters.sum())
        bare = wide = walk = setup = np.inf
        for _ in range(repeats):
            bare = min(bare, *(seconds(lambda: X.T @ R) for _ in range(10)))
            wide = min(wide, *(seconds(lambda: R_wide @ X) for _ in range(10)))
            walk = min(walk, *(seconds(lambda: ahiht(problem, schedule)) for _ in range(2 if n_samples > 1000 else 10)))
            setup = min(setup, *(seconds(lambda: LeastSquares(X, Y)) for _ in range(2)))
        tracemalloc.start()
        ahiht(LeastSquares(X, Y), schedule)
        beyond = tracemalloc.get_traced_memory()[1] - X.nbytes
        tracemalloc.stop()
        unit = 8 * n_classes * (n_features + n_samples)
        print(
            f"{n_samples:>5}x{n_features}x{n_classes:<4}{1e3 * bare:9.3f}{1e3 * wide:10.3f}{1e3 * setup:11.2f}{steps:7d}"
            f"{path.n_nonzero[-1]:6d}{1e3 * walk:9.2f}{walk / steps / bare:7.2f}{target:8.1f}"
            f"{(walk + setup) / steps / bare:13.2f}{beyond / unit:8.1f}"
        )


if __name__ == "__main__":
    main()
