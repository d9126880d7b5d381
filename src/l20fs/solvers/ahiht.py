"""AHIHT: the fast homotopy, one accepted step per lambda (Algorithm 2 of the paper)."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath
from l20fs.solvers.homotopy import Callback, Schedule, run_homotopy


def ahiht(
    problem: LeastSquares,
    schedule: Schedule,
    *,
    weights: NDArray[Any] | None = None,
    callback: Callback | None = None,
    lazy: bool | None = None,
    penalty: RowPenalty | None = None,
) -> SolutionPath:
    """Walk down lambda with one accepted step each.

    The result is not stationary at the last lambda: it is a few steps of thresholded gradient descent, and this early
    stop acts like shrinkage.

    Parameters
    ----------
    problem : LeastSquares
    schedule : Schedule
    weights : array of shape (n_targets, n_features), optional
        The starting point; zero by default.
    callback : callable, optional
        Called with the :class:`~l20fs.objective.solution_path.Stage` after each lambda.
    lazy : bool, optional
        Whether to evaluate a feature only where it may matter (see :mod:`l20fs.solvers.lazy`); by default where that pays.
    penalty : RowPenalty, optional
        What the rows cost, one by one or in groups; each of them 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> path = ahiht(LeastSquares(np.eye(4)[:, :3], np.eye(4)), Schedule(n_rows=3))
    >>> int(path.n_nonzero[0]), int(path.n_nonzero[-1])
    (0, 3)
    """
    return run_homotopy(
        problem,
        schedule,
        weights=weights,
        max_steps=1,
        is_converged=lambda trial: True,
        callback=callback,
        lazy=lazy,
        penalty=penalty,
    )
