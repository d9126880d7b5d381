r"""Robust loss: sum of residual norms instead of squares, with the l2,0 penalty.

.. math:: F(W, b) = s \sum_i \omega^0_i \rho_\delta(\|W' x_i + b - y_i\|) + \tfrac\mu2 \|W\|_F^2,
          \qquad \rho_\delta(r) = \begin{cases} r & r \ge \delta \\ (r^2 / \delta + \delta) / 2 & r < \delta \end{cases}

The paper names this loss as future work; :math:`\omega^0_i` is the weight that the sample was given, 1 as a rule. With
:math:`\omega_i = \omega^0_i s / \max(r_i, \delta)` at the present errors r,
:math:`\tfrac12 \sum_i \omega_i \|W' x_i + b - y_i\|^2` touches the first term from above but for a constant, so that any
replacement that lowers the weighted squares lowers F. The unit s, the root mean square of the targets, makes the answer
independent of their units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.prox import squared_row_norms
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath
from l20fs.objective.stage import Stage
from l20fs.solvers.active_sets import RowActiveSet, make_active_set
from l20fs.solvers.base import Callback
from l20fs.solvers.greedy import ended_at, exchange, first_alpha, growth_limits, path_of, record, stage_of
from l20fs.typing import Array

#: Errors below this share of the unit count as squares, so that a sample that is met exactly has a finite weight.
DELTA = 1e-3

#: Reweighting goes on while F falls by more than this share; at sizes on the way a rough answer will do.
TOLERANCE, ROUGH_TOLERANCE = 1e-6, 1e-3

MAX_REWEIGHTINGS = 50


class RobustFit(NamedTuple):
    """Path with the values of F as losses, and the weighted least squares problem at its end."""

    path: SolutionPath
    problem: LeastSquares


def robust(
    problem: LeastSquares,
    n_rows: int,
    *,
    target: float | None = None,
    with_exchanges: bool = False,
    callback: Callback | None = None,
    penalty: RowPenalty | None = None,
) -> RobustFit:
    """Add the best row, optionally exchange rows, and reweight the samples until F converges, at each size.

    F, or F + lambda * cost where exchanges are made among units of different costs, never rises from one step to the next.

    Parameters
    ----------
    problem : LeastSquares
        The data term.
    n_rows : int
        Number of non-zero rows, or units of rows, at which the path ends.
    target : float or None, default=None
        The lambda at which the path ends, whatever ``n_rows`` says.
    with_exchanges : bool, default=False
        Whether rows are exchanged at every size while that lowers the objective.
    callback : callable or None, default=None
        Called with the :class:`~l20fs.objective.stage.Stage` of every size.
    penalty : RowPenalty or None, default=None
        Costs of the rows, one by one or in groups; each of them 1 by default.

    Returns
    -------
    RobustFit
        One stage per size with the values of F as losses, and the weighted problem at the end.

    Examples
    --------
    >>> X = np.diag([1.0, 2.0, 3.0, 4.0])[:, :3]
    >>> robust(LeastSquares(X, np.eye(4)), 2).path.n_nonzero.tolist()
    [0, 1, 2]
    """
    active = make_active_set(problem, (), penalty)
    limit, least = growth_limits(active, n_rows, target)
    loss = RobustLoss(problem)
    active, value = _settle(active, loss, TOLERANCE)
    alpha = first_alpha(active)
    stages: list[Stage] = []
    record(stages, stage_of(active, alpha, loss=value, n_steps=0), callback)
    while active.size < limit:
        before = active.loss
        if not active.grow(1, least):
            break
        cost = float(active.unit_costs[-1])
        exchange_at = min(alpha, (before - active.loss) / cost) if with_exchanges else None
        active, value = _settle(active, loss, TOLERANCE if active.size == limit else ROUGH_TOLERANCE, exchange_at)
        # An exchange for something cheaper may let F rise again.
        alpha = min(alpha, max(0.0, stages[-1].loss - value) / cost)
        record(stages, stage_of(active, alpha, loss=value), callback)
    return RobustFit(path_of(active, ended_at(stages, target)), active.problem)


def _settle(
    active: RowActiveSet, loss: RobustLoss, tolerance: float, exchange_at: float | None = None
) -> tuple[RowActiveSet, float]:
    """Reweight the samples, and exchange units at a lambda if asked to, until F stands still."""
    objective, cost = np.inf, active.cost
    for _ in range(MAX_REWEIGHTINGS):
        if exchange_at is not None:
            exchange(active, exchange_at)
        value = loss.value(active)
        before, objective = objective, value + (exchange_at or 0.0) * (active.cost - cost)
        if before - objective <= tolerance * value:
            break
        active = make_active_set(active.problem.reweighted(loss.weights(active)), active.units, active.penalty)
    return active, value


class RobustLoss:
    """Robust loss of a problem with given sample weights."""

    def __init__(self, problem: LeastSquares) -> None:
        given = problem.design.sample_weights
        self.given = np.ones(problem.design.n_samples) if given.values is None else given.values
        self.unit = float(np.sqrt(2.0 * problem.null_loss / given.total))
        self.delta = DELTA * self.unit

    def value(self, active: RowActiveSet) -> float:
        """Return F at the weights of an active set."""
        errors = self.errors(active)
        lengths = np.where(errors >= self.delta, errors, (errors * errors / self.delta + self.delta) / 2.0)
        ridge = 0.5 * active.problem.ridge * float(np.vdot(active.weights, active.weights))
        return self.unit * float(self.given @ lengths) + ridge

    def weights(self, active: RowActiveSet) -> Array:
        """Return the weights of the squares that touch F at the weights of an active set."""
        return self.given * (self.unit / np.maximum(self.errors(active), self.delta))

    def errors(self, active: RowActiveSet) -> Array:
        """Return the residual norm of each sample, without its weight; 0 if it is left out."""
        root = active.problem.design.sample_weights.root
        lengths: Array = np.sqrt(squared_row_norms(active.residual.T))
        return lengths if root is None else np.divide(lengths, root, out=np.zeros_like(lengths), where=root > 0.0)
