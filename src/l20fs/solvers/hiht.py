"""HIHT: homotopy that iterates to convergence at every lambda (Algorithm 1 of the paper)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from l20fs.inputs.validation import check_choice, check_number
from l20fs.objective.stage import Stage
from l20fs.solvers.homotopy import HomotopySolver, Trial

Stopping = Literal["relative", "absolute"]


@dataclass(repr=False, eq=False, kw_only=True)
class HIHT(HomotopySolver):
    """Take thresholded gradient steps until convergence at every lambda: the homotopy of the paper.

    A stage ends when ``||V - W||^2 <= tol * ||V||^2`` (``stopping="relative"``, independent of the units of X) or
    ``||V - W||^2 <= tol`` (``"absolute"``, the paper), or after ``max_iter`` accepted steps, which is warned about.

    Parameters
    ----------
    alpha_start : float or None, default=None
        Lambda of the first stage (lambda_0 in the paper), from which the path descends by ``rate``. None: where the first
        feature is about to enter.
    alpha_min : float or None, default=None
        Lambda at which the path ends, whatever number of features is asked for. None: it ends when so many are non-zero.
    rate : float, default=0.9
        Factor between two lambdas (rho in the paper), 0.999 at most.
    line_search_factor : float, default=2.0
        Factor by which the step parameter L grows after a rejected trial (gamma in the paper), 1.01 at least.
    eta : float or None, default=None
        Decrease that a step must bring, per half its squared length. None: 1e-4 times the starting L.
    lipschitz_start : float or None, default=None
        Starting value of L. None: the largest squared norm of a centred sample.
    init : {"zeros", "gaussian", "uniform"} or array of shape (n_targets, n_features), default="zeros"
        Where the path starts. The random starts are small against the threshold of the first lambda, since parts of W that
        do not change XW are never undone by a gradient step.
    ranking : {"entry", "norm"}, default="entry"
        Order of the features of the last lambda: by how early they came to stay, or by the norm of their weights.
    random_state : int, RandomState or None, default=None
        Seed of a random start.
    max_iter : int, default=200
        Steps per lambda at most.
    tol : float, default=1e-6
        A lambda is done when the squared step is this short.
    stopping : {"relative", "absolute"}, default="relative"
        Whether ``tol`` is relative to the squared norm of W.

    References
    ----------
    Sun and Yu, Robust multi-class feature selection via l2,0-norm regularization minimization (2020), Algorithm 1.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> selector = L20Selector(3, solver=HIHT(tol=1e-8))
    >>> selector.get_params()["solver__tol"]
    1e-08
    """

    name = "hiht"

    max_iter: int = 200
    tol: float = 1e-6
    stopping: Stopping = "relative"

    def check(self) -> None:
        super().check()
        check_choice("stopping", self.stopping, ("relative", "absolute"))
        check_number("tol", self.tol, minimum=0.0, strict=False)
        check_number("max_iter", self.max_iter, minimum=1, strict=False, whole=True)

    @property
    def _max_steps(self) -> int:
        return self.max_iter

    def _is_converged(self, trial: Trial) -> bool:
        return self._criterion(trial.squared_length, float(trial.squared_norms @ trial.kept)) <= self.tol

    def _criterion(self, squared_step: float, squared_norm: float) -> float:
        """Return the squared step, relative to the squared norm of W if that is asked for."""
        if self.stopping == "absolute":
            return squared_step
        return squared_step / squared_norm if squared_norm else np.inf

    def _report(self, stages: list[Stage]) -> None:
        left = [stage for stage in stages if not stage.converged]
        if not left:
            return
        reached = max(self._criterion(stage.squared_step, float(stage.norms @ stage.norms)) for stage in left)
        warnings.warn(
            f"{len(left)} of {len(stages)} lambdas stopped at max_iter={self.max_iter} steps; the longest last "
            f"{self.stopping} squared step was {reached:.2g} (tol={self.tol:.2g}). Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=2,
        )
