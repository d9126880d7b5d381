r"""Homotopy shared by HIHT and AHIHT: decreasing lambda with warm starts.

One step from W with the parameter L (equation 14 of the paper) is

.. math:: V = H_{2\lambda/L}\bigl(W - \nabla f(W) / L\bigr)

where H zeroes the rows whose squared norm is at most :math:`2 \lambda / L`, or :math:`2 \lambda c_u / L` for a unit of rows
that costs :math:`c_u` (see :mod:`l20fs.objective.row_penalty`). L is raised, always from the same W,
until the objective falls by at least :math:`\tfrac\eta2 \|W - V\|_F^2`. An accepted step costs one pass over X at most, for
the gradient at V; a trial costs only the rows that change.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from l20fs.inputs.validation import check_number
from l20fs.objective.gradients import Gradient
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath
from l20fs.objective.stage import Stage
from l20fs.solvers.base import Callback, Solver
from l20fs.solvers.initial_weights import starting_weights
from l20fs.solvers.lazy import GradientRule, LazyGradients, laziness_pays
from l20fs.typing import Array

#: Squared step, per squared norm of W, up to which W counts as standing still. It is far above the rounding of W in float32,
#: and the same for all dtypes: otherwise rounding, or the dtype, would decide which lambdas are visited.
STANDSTILL = 1e-12

#: Factors closer to 1 would take millions of trials, or of lambdas.
LEAST_FACTOR, LARGEST_RATE = 1.01, 0.999

#: How many times below the bounds of the curvature of f, or above them, L may start: with a larger one W would not move.
FARTHEST = 1e8


@dataclass(frozen=True)
class Schedule:
    """Schedule of lambda, and line search for L.

    Parameters
    ----------
    target : float or None
        The lambda at which the path ends, reached exactly. None: go on until ``n_rows`` rows are non-zero.
    n_rows : int
        Where a path without a target ends; with a penalty on groups, the number of units.
    start : float or None
        lambda_0, the lambda of the first stage, as in the paper's listings. None: the smallest lambda at which W = 0
        stays put, so that the first stage is empty and none is idle.
    rate : float
        rho, the factor between two lambdas.
    line_search_factor : float
        gamma, by which L grows after a rejected trial.
    eta : float or None
        Wanted decrease per squared step length. None: 1e-4 times the starting L, which does not depend on the units
        of X.
    lipschitz_start : float or None
        The starting L. None: the largest squared norm of a centred sample.
    """

    target: float | None = None
    n_rows: int = 20
    start: float | None = None
    rate: float = 0.9
    line_search_factor: float = 2.0
    eta: float | None = None
    lipschitz_start: float | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The options of a solver that walks like this."""
        return {
            "alpha_start": self.start,
            "rate": self.rate,
            "line_search_factor": self.line_search_factor,
            "eta": self.eta,
            "lipschitz_start": self.lipschitz_start,
        }


@dataclass
class Iterate:
    """Iterate of the homotopy: its non-zero rows, ascending, with their values and as a mask, and what is known there."""

    rows: Array
    values: Array
    is_active: Array
    residual: Array
    gradient: Gradient = field(init=False)


class Trial(NamedTuple):
    """Trial step: new values of the rows ``touched``, of which ``kept`` stay non-zero."""

    touched: Array
    kept: Array
    values: Array
    squared_norms: Array
    image: Array
    squared_length: float
    is_good: bool


class Walk:
    """State of a homotopy: the current iterate, L and its bounds."""

    def __init__(
        self,
        problem: LeastSquares,
        schedule: Schedule,
        weights: Array | None = None,
        *,
        penalty: RowPenalty | None = None,
        lazy: bool = False,
    ) -> None:
        self.problem = problem
        self.schedule = schedule
        self.penalty = penalty or RowPenalty.plain(problem.n_features)
        self.L = self._checked("lipschitz_start", problem.lipschitz_lower / FARTHEST, problem.lipschitz_lower)
        self.eta = self._checked("eta", 0.0, 1e-4 * self.L)
        self.tried_L = self.L
        self._gradient: GradientRule = LazyGradients(problem) if lazy else problem.gradient
        self.point = point = starting_point(problem, weights, self.penalty)
        point.gradient = self._gradient(point.residual, point.rows, point.values)

    def _checked(self, name: str, least: float, default: float) -> float:
        """Return an option of the schedule that is a curvature, or its default."""
        given, most = getattr(self.schedule, name), FARTHEST * self.problem.lipschitz_upper
        if given is None:
            return default
        if not least <= given <= most:
            raise ValueError(
                f"{name}={given!r} is not valid for this X. Use a number from {least:.1e} to {most:.1e}, or None."
            )
        return float(given)

    def step(self, lam: float) -> Trial:
        """Search an acceptable step at ``lam`` and take it, unless it is zero."""
        trial, point = self.search(lam), self.point
        if trial.squared_length > 0.0:
            point.is_active[trial.touched] = trial.kept
            point.rows = trial.touched[trial.kept]
            point.values = trial.values.compress(trial.kept, axis=1)
            point.residual += trial.image
            point.gradient = self._gradient(point.residual, point.rows, point.values)
        return trial

    def search(self, lam: float) -> Trial:
        """Increase L until the trial step from the current point is acceptable."""
        trial = self.propose(lam)
        while not trial.is_good and trial.squared_length > 0.0 and self.L < self._ceiling:
            self.L = min(self.schedule.line_search_factor * self.L, self._next_bound())
            trial = self.propose(lam)
        self.tried_L = self.L
        return trial

    def propose(self, lam: float) -> Trial:
        """Compute the trial step with the current L and check its decrease."""
        problem, penalty, point, L = self.problem, self.penalty, self.point, self.L
        threshold = math.sqrt(2.0 * lam / L)
        # A zero row enters only if ||gradient|| / L > threshold: all others stay zero and need not be looked at.
        touched = point.gradient.touched(L * threshold, penalty, point.is_active)
        if not penalty.is_plain:
            touched = touched[problem.design.varies[touched]]  # an included feature may be constant
        old = np.zeros((problem.n_targets, len(touched)))
        old[:, np.searchsorted(touched, point.rows)] = point.values  # a row with weights is touched
        slope = point.gradient.at(touched)
        new = old - slope / L
        squared_norms = np.add.reduce(new * new)
        kept = penalty.is_heavy(squared_norms, threshold, touched)
        new *= kept
        change = new - old
        image = problem.image(touched, change, point.gradient.likely)
        squared_length = float(np.vdot(change, change))
        # f(W + D) - f(W) = <gradient, D> + (||X D||^2 + mu ||D||^2) / 2, without the cancellation of two values of f.
        descent = -float(np.vdot(slope, change))
        bend = 0.5 * problem.curvature(image, change)
        saved = lam * (penalty.cost_of(point.rows) - penalty.cost_of(touched[kept]))
        is_good = descent - bend + saved >= 0.5 * self.eta * squared_length
        return Trial(touched, kept, new, squared_norms, image, squared_length, is_good)

    @property
    def _cap(self) -> float:
        """Upper bound of the curvature of f: every trial step with this L is acceptable."""
        return 1.01 * (self.problem.lipschitz + self.eta)

    @property
    def _ceiling(self) -> float:
        """Upper bound of L that also holds if the eigenvalue behind the cap is inexact."""
        return 1.01 * (self.problem.lipschitz_upper + self.eta)

    def _next_bound(self) -> float:
        return self._cap if self._cap > self.L else self._ceiling

    def stage(self, lam: float, trial: Trial, n_steps: int, converged: bool) -> Stage:
        """Describe the current point, which the last trial has reached, as the solution at ``lam``."""
        point, norms = self.point, np.sqrt(trial.squared_norms[trial.kept])
        loss, cost = self.problem.value(point.residual, point.values), self.penalty.cost_of(point.rows)
        return Stage(lam, point.rows, norms, loss, self.L, n_steps, converged, trial.squared_length, cost)


def starting_point(problem: LeastSquares, weights: Array | None, penalty: RowPenalty) -> Iterate:
    """Evaluate the residual at the starting weights, (n_targets, n_features); None: all zero."""
    shape = (problem.n_targets, problem.n_features)
    if weights is None:
        rows, values = np.arange(0), np.zeros((shape[0], 0))
        residual = problem.residual(rows, values)
        is_active = np.zeros(shape[1], dtype=bool)
        return Iterate(rows, values, is_active, residual)
    weights = np.array(weights, dtype=np.float64)
    if weights.shape != shape:
        raise ValueError(f"The starting weights have shape {weights.shape}; expected (n_targets, n_features) = {shape}.")
    may_enter = penalty.may_enter(problem.design.varies)
    weights[:, ~may_enter] = 0.0  # a constant feature has no effect, hence no reason to be selected
    is_active = np.asarray(weights.any(axis=0))
    if penalty.has_groups:  # a unit is non-zero as a whole
        is_active = may_enter & np.isin(penalty.unit_of, penalty.unit_of[is_active])
    rows, values = np.flatnonzero(is_active), weights[:, is_active]
    residual = problem.residual(rows, values)
    return Iterate(rows, values, is_active, residual)


def entry_lambda(point: Iterate, L: float, penalty: RowPenalty) -> float:
    """Return the lambda below which a new unit enters: ``max_u ||gradient_u||^2 / (2 L c_u)`` over those that are zero."""
    return point.gradient.largest_outside(point.is_active, penalty) / (2.0 * L)


def target_grid(start: float, target: float, rate: float) -> list[float]:
    """Return the lambdas from ``start`` down to ``target``, which comes last and is never left out.

    The number of factors is ``floor(ln(start / target) / ln(1 / rate))``, at least one, as the authors count it.

    Examples
    --------
    >>> target_grid(1.0, 0.05, 0.4)
    [1.0, 0.4, 0.16000000000000003, 0.05]
    """
    if target >= start:
        return [target]
    n_factors = max(1, math.floor(math.log(start / target) / math.log(1.0 / rate) + 1e-9))
    least = smallest_lambda(start, np.dtype(np.float64))
    return [lam for i in range(n_factors) if (lam := start * rate**i) > least] + [target]


def smallest_lambda(largest: float, dtype: np.dtype[Any]) -> float:
    """Return the lambda at which what is left of the gradient is rounding, if it is all there is at ``largest``."""
    return largest * (100.0 * float(np.finfo(dtype).eps)) ** 2


def lambdas(walk: Walk, stages: list[Stage]) -> Iterator[float]:
    """Yield the lambdas of the path; ``stages`` is filled by the caller between two of them."""
    schedule, problem, penalty = walk.schedule, walk.problem, walk.penalty
    origin = walk.point
    if len(origin.rows):
        origin = starting_point(problem, None, penalty)
        origin.gradient = problem.gradient(origin.residual, origin.rows, origin.values)
    largest = entry_lambda(origin, walk.L, penalty) * (1.0 + 1e-6)
    first = largest if schedule.start is None else schedule.start
    if schedule.target is not None:
        yield from target_grid(first, schedule.target, schedule.rate)
        return
    if largest == 0.0:
        yield problem.null_loss  # no feature has anything to do with the targets: the path is its empty stage
        return
    n_wanted = min(schedule.n_rows, penalty.n_selectable(problem.design.varies))
    lam = first
    smallest = smallest_lambda(largest, problem.dtype)
    has_been_sparse = False  # a random start has all rows; the path begins when the threshold has thinned them
    while lam > smallest or not stages:
        yield lam
        n_units = penalty.size_of(stages[-1].rows)
        if n_units < n_wanted:
            has_been_sparse = True
        elif has_been_sparse or n_units == len(penalty.included):
            return
        lam *= schedule.rate
        # Nothing moved, so nothing will before the next row enters: skip the idle lambdas.
        if stages[-1].squared_step <= STANDSTILL * float(stages[-1].norms @ stages[-1].norms):
            lam = min(lam, entry_lambda(walk.point, walk.tried_L, penalty) * (1.0 - 1e-6))


@dataclass(repr=False, eq=False, kw_only=True)
class HomotopySolver(Solver):
    """Options that the solvers which follow the gradient share."""

    groups_in_blocks = True

    alpha_start: float | None = None
    rate: float = 0.9
    line_search_factor: float = 2.0
    eta: float | None = None
    lipschitz_start: float | None = None
    init: Any = "zeros"
    random_state: Any = None

    @abstractmethod
    def _is_converged(self, trial: Trial) -> bool:
        """Say whether a lambda is done after a step."""

    @property
    @abstractmethod
    def _max_steps(self) -> int:
        """The number of steps per lambda at most."""

    def _report(self, stages: list[Stage]) -> None:
        """Warn of lambdas that were left before they were done."""

    def walk(
        self,
        problem: LeastSquares,
        n_rows: int,
        *,
        target: float | None = None,
        penalty: RowPenalty | None = None,
        callback: Callback | None = None,
        weights: Array | None = None,
        lazy: bool | None = None,
    ) -> SolutionPath:
        """Walk down lambda with warm starts until ``n_rows`` units are non-zero, or lambda is ``target``.

        Parameters
        ----------
        problem : LeastSquares
            The data term.
        n_rows : int
            Number of non-zero rows, or units of rows, at which the path ends.
        target : float or None, default=None
            The lambda at which the path ends, whatever ``n_rows`` says.
        penalty : RowPenalty or None, default=None
            Costs of the rows, one by one or in groups; each of them 1 by default.
        callback : callable or None, default=None
            Called with the :class:`~l20fs.objective.stage.Stage` after each lambda.
        weights : array of shape (n_targets, n_features) or None, default=None
            Starting point; None: that of ``init``.
        lazy : bool or None, default=None
            Whether a feature is evaluated only where it may matter, which does not change the path; None: where that pays.

        Returns
        -------
        SolutionPath
            All solutions on the way.
        """
        weights = self.weights(problem) if weights is None else weights
        is_lazy = laziness_pays(problem) if lazy is None else lazy
        walk = Walk(problem, self.schedule(n_rows, target), weights, penalty=penalty, lazy=is_lazy)
        stages: list[Stage] = []
        for lam in lambdas(walk, stages):
            L_before, n_steps, converged = walk.L, 0, False
            while n_steps < self._max_steps and not converged:
                trial = walk.step(lam)
                if trial.squared_length == 0.0:
                    # A standstill says nothing about the curvature: an L raised on the way to it would freeze the path.
                    walk.L, converged = L_before, True
                else:
                    n_steps, converged = n_steps + 1, self._is_converged(trial)
            stages.append(walk.stage(lam, trial, n_steps, converged))
            if callback is not None:
                callback(stages[-1])
        closeness = np.sqrt(walk.penalty.per_cost(walk.point.gradient.squared_norms).astype(np.float64))
        self._report(stages)
        return SolutionPath.from_stages(problem, stages, walk.point.values, closeness, walk.penalty)

    def check(self) -> None:
        check_number("line_search_factor", self.line_search_factor, minimum=LEAST_FACTOR, strict=False)
        check_number("rate", self.rate, minimum=0.0, most=LARGEST_RATE)
        for name in ("alpha_start", "eta", "lipschitz_start"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), minimum=0.0, strict=name != "eta")
        if isinstance(self.init, str) and self.init not in ("zeros", "gaussian", "uniform"):
            raise ValueError(
                f"init={self.init!r} is unknown. Use 'zeros', 'gaussian', 'uniform' or an array of shape (n_targets, "
                "n_features)."
            )

    def check_shape(self, n_targets: int, n_features: int) -> None:
        shape = (n_targets, n_features)
        if not isinstance(self.init, str) and np.shape(self.init) != shape:
            raise ValueError(f"init has the shape {np.shape(self.init)}; expected (n_targets, n_features) = {shape}.")

    def schedule(self, n_rows: int, target: float | None) -> Schedule:
        """Return the schedule of lambda and of the step parameter L.

        Parameters
        ----------
        n_rows : int
            Number of non-zero rows at which the path ends.
        target : float or None
            The lambda at which the path ends, whatever ``n_rows`` says.

        Returns
        -------
        Schedule
            These two and the options.
        """
        return Schedule(
            target=target,
            n_rows=n_rows,
            start=None if self.alpha_start is None else float(self.alpha_start),
            rate=float(self.rate),
            line_search_factor=float(self.line_search_factor),
            eta=self.eta,
            lipschitz_start=self.lipschitz_start,
        )

    def weights(self, problem: LeastSquares) -> Array | None:
        """Return the weights at which the path begins.

        Parameters
        ----------
        problem : LeastSquares
            The data term.

        Returns
        -------
        array of shape (n_targets, n_features), or None
            None stands for zero.
        """
        return starting_weights(problem, self.init, self.random_state)
