"""HIHT: the homotopy that iterates to convergence at every lambda (Algorithm 1 of the paper)."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath, Stage
from l20fs.solvers.homotopy import Callback, Schedule, Trial, run_homotopy


def hiht(
    problem: LeastSquares,
    schedule: Schedule,
    *,
    weights: NDArray[Any] | None = None,
    max_iter: int = 200,
    tol: float = 1e-6,
    stopping: Literal["relative", "absolute"] = "relative",
    callback: Callback | None = None,
    lazy: bool | None = None,
    penalty: RowPenalty | None = None,
) -> SolutionPath:
    """Walk down lambda and iterate at each one until the step is short.

    A stage ends when ``||V - W||^2 <= tol * ||V||^2`` (``stopping="relative"``, independent of the units of X) or
    ``||V - W||^2 <= tol`` (``"absolute"``, the paper), or after ``max_iter`` accepted steps, which is warned about. The
    other arguments are those of :func:`~l20fs.solvers.ahiht`.

    Examples
    --------
    >>> path = hiht(LeastSquares(np.eye(4)[:, :3], np.eye(4)), Schedule(n_rows=3))
    >>> int(path.n_nonzero[-1])
    3
    """
    reached, farthest = np.inf, 0.0

    def is_converged(trial: Trial) -> bool:
        nonlocal reached
        unit = float(trial.squared_norms @ trial.kept) if stopping == "relative" else 1.0
        reached = trial.squared_length / unit if unit else np.inf
        return reached <= tol

    def watch(stage: Stage) -> None:
        nonlocal farthest
        if not stage.converged:
            farthest = max(farthest, reached)
        if callback is not None:
            callback(stage)

    path = run_homotopy(
        problem,
        schedule,
        weights=weights,
        max_steps=max_iter,
        is_converged=is_converged,
        callback=watch,
        lazy=lazy,
        penalty=penalty,
    )
    n_open = int(np.count_nonzero(~path.converged))
    if n_open:
        warnings.warn(
            f"{n_open} of {len(path.alphas)} lambdas stopped at max_iter={max_iter} steps; the longest last {stopping} "
            f"squared step was {farthest:.2g} (tol={tol:.2g}). Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return path
