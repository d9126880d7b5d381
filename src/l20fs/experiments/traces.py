"""Traces of objectives along iterations."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from l20fs import paper_settings
from l20fs.experiments.cells import Dataset
from l20fs.methods import ESFS, RPMFS
from l20fs.objective.least_squares import LeastSquares
from l20fs.solvers.homotopy import Walk, target_grid
from l20fs.typing import Array

if TYPE_CHECKING:
    import pandas as pd


#: Lambda of the trace of l2,0-FS, number of features of the other methods, and maximum number of iterations.
ALPHA, SIZE, MOST_STEPS = 1e-4, 100, 200


def traces(datasets: list[Dataset]) -> pd.DataFrame:
    """Return the objective after every iteration, in columns dataset, method, iteration, objective.

    l2,0-FS is AHIHT with the authors' constants: its objective is that of its last lambda at every step. "HIHT, one lambda"
    iterates at that lambda only, where every step must decrease the objective.
    """
    import pandas as pd

    rows = []
    for name, X, y, *_ in datasets:
        one_hot = np.eye(int(y.max()) + 1)[y]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = {
                "l2,0-FS": trace_homotopy(X, one_hot, max_steps=1),
                "HIHT, one lambda": trace_homotopy(X, one_hot, max_steps=MOST_STEPS, one_lambda=True),
                "RPMFS": RPMFS(SIZE).fit(X, y).objective_.tolist(),
                "ESFS": ESFS(SIZE).fit(X, y).objective_.tolist(),
            }
        rows += [
            (name, method, iteration, float(value))
            for method, values in found.items()
            for iteration, value in enumerate(values[: MOST_STEPS + 1])
        ]
    return pd.DataFrame(rows, columns=["dataset", "method", "iteration", "objective"])


def trace_homotopy(X: Array, one_hot: Array, *, max_steps: int, one_lambda: bool = False) -> list[float]:
    """Return f + lambda * (number of rows) at the start and after every accepted step, for the last lambda."""
    problem, solver = LeastSquares(X, one_hot), paper_settings("ahiht")["solver"]
    walk = Walk(problem, solver.schedule(n_rows=X.shape[1], target=ALPHA))
    lambdas = [ALPHA] if one_lambda else target_grid(solver.alpha_start, ALPHA, solver.rate)
    values = [problem.null_loss]
    for lam in lambdas:
        for _ in range(max_steps):
            trial = walk.step(lam)
            if trial.squared_length == 0.0:
                break
            point = walk.point
            values.append(problem.value(point.residual, point.values) + ALPHA * len(point.rows))
    return values
