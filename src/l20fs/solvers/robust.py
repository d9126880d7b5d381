r"""Robust loss: sum of residual norms instead of squares, with the l2,0 penalty.

.. math:: F(W, b) = s \sum_i \omega^0_i \rho_\delta(\|W' x_i + b - y_i\|) + \tfrac\mu2 \|W\|_F^2,
          \qquad \rho_\delta(r) = \begin{cases} r & r \ge \delta \\ (r^2 / \delta + \delta) / 2 & r < \delta \end{cases}

The paper names this loss as future work; :math:`\omega^0_i` is the weight that the sample was given, 1 as a rule. The unit
s, the root mean square of the targets, makes the answer independent of their units.

On given rows F is convex, and :mod:`l20fs.solvers.robust_regression` finds its minimum to a duality gap. With
:math:`\omega_i = \omega^0_i s / \max(r_i, \delta)` at the errors r of that minimum,
:math:`\tfrac12 \sum_i \omega_i \|W' x_i + b - y_i\|^2` touches the first term from above but for a constant. These weighted
squares, in which one pass over X judges every row, propose the rows to add and to exchange; F at its minimum on the rows
decides.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.prox import squared_row_norms
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath
from l20fs.objective.stage import Stage
from l20fs.solvers.active_sets import RowActiveSet, make_active_set
from l20fs.solvers.base import Callback
from l20fs.solvers.greedy import ended_at, least_merit, path_of, record, stage_of
from l20fs.solvers.robust_regression import MAX_STEPS, TOLERANCE, Fit, RobustRegression, Span
from l20fs.typing import Array

#: Errors below this share of the unit count as squares, so that a sample that is met exactly has a finite weight.
DELTA = 1e-5

#: How many units, those that the weighted squares find best, are tried on F at each size.
N_CANDIDATES = 32

#: Squares that propose rows have weights as if no error were below this share of the median of those above delta: a sample
#: that is met almost exactly would forbid every row that moves it.
PROPOSAL_FLOOR = 0.2


class RobustFit(NamedTuple):
    """Path with the values of F as losses, the weighted least squares problem at its end, and the function F."""

    path: SolutionPath
    problem: LeastSquares
    value: Callable[[LeastSquares, Array, Array], float]


def robust(
    problem: LeastSquares,
    n_rows: int,
    *,
    target: float | None = None,
    with_exchanges: bool = False,
    callback: Callback | None = None,
    penalty: RowPenalty | None = None,
) -> RobustFit:
    """Add the row that lowers F most, and optionally exchange rows while that lowers F, at each size.

    Every value of F is that of the minimum on the rows, to a relative gap of :data:`TOLERANCE`. With at most
    :data:`N_CANDIDATES` units to choose from, each addition is the best of all, up to that tolerance; with more, it is the
    best of those that weighted squares rank first. With exchanges F, or F + lambda * cost where units have different
    costs, is at most that without them.

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
        One stage per size with the values of F as losses, the weighted problem at the end, and F.

    Examples
    --------
    >>> X = np.diag([1.0, 2.0, 3.0, 4.0])[:, :3]
    >>> robust(LeastSquares(X, np.eye(4)), 2).path.n_nonzero.tolist()
    [0, 1, 2]
    """
    penalty = penalty or RowPenalty.plain(problem.n_features)
    search = RobustSearch(problem, penalty)
    limit = min(n_rows, penalty.n_units) if target is None else penalty.n_units
    chosen = nested = search.start()  # with exchanges, and without them
    grown = search.grow(chosen)
    alpha = search.merit(chosen, grown) * (1.0 + 1e-6) or chosen.fit.value
    stages: list[Stage] = []
    passed = [chosen]
    record(stages, search.stage(chosen, alpha, n_steps=0), callback)
    while chosen.size < limit and grown is not None and search.merit(chosen, grown) > (target or 0.0):
        cost, n_exchanged = float(penalty.costs[grown.units[-1]]), 0
        exchange_at = min(alpha, search.merit(chosen, grown))
        if with_exchanges:
            nested = grown if nested is chosen else search.grow(nested) or nested
            if nested.size == grown.size and nested.objective(exchange_at) < grown.objective(exchange_at):
                grown = nested
            grown, n_exchanged = search.exchange(grown, exchange_at)
        chosen = grown
        # An exchange for something cheaper may let F rise again.
        alpha = min(alpha, max(0.0, stages[-1].loss - chosen.fit.value) / cost)
        record(stages, search.stage(chosen, alpha, n_steps=1 + n_exchanged), callback)
        passed.append(chosen)
        grown = search.grow(chosen) if chosen.size < limit else None
    if target is not None and with_exchanges and not penalty.is_even:
        # An exchange for something cheaper was right at the lambda of its stage, and may not be at a smaller one.
        best = min(passed, key=lambda selection: selection.objective(target))
        if best is not chosen:
            chosen = best
            stages.append(search.stage(chosen, alpha))
    _warn_of_gaps(passed)
    return search.finish(chosen, ended_at(stages, target))


def _warn_of_gaps(passed: list[Selection]) -> None:
    gaps = [selection.fit.gap for selection in passed if not selection.fit.converged]
    if gaps:
        warnings.warn(
            f"loss='l21' is not at its minimum at {len(gaps)} of {len(passed)} sizes: within {MAX_STEPS} Newton steps and "
            f"rounding the gap came down to {max(gaps):.1g} of the loss (tolerance {TOLERANCE:.1g}). Raise ridge, or leave "
            "out features that almost depend on others.",
            ConvergenceWarning,
            stacklevel=3,
        )


class Selection(NamedTuple):
    """Selected units, without those that are included, and the minimum of F on them.

    ``size`` counts the included ones as well, ``cost`` is the factor of lambda.
    """

    units: list[int]
    fit: Fit
    size: int
    cost: float

    def objective(self, alpha: float) -> float:
        """Return F + alpha * cost."""
        return self.fit.value + alpha * self.cost


class RobustSearch:
    """Find the units to add and to exchange, for a problem and a penalty."""

    def __init__(self, problem: LeastSquares, penalty: RowPenalty) -> None:
        self.problem, self.penalty = problem, penalty
        self.loss = RobustLoss(problem)
        self._may_enter = penalty.may_enter(problem.design.varies)

    def start(self) -> Selection:
        """Return the selection of the included units."""
        root = self.loss.regression.root
        span = Span.of_intercept(root) if self.problem.design.sample_weights.fit_intercept else Span.empty(len(root))
        span = span.with_nuisances(self.loss.nuisances)
        return self._fitted([], self._extended(span, self.penalty.included.tolist()))

    def merit(self, before: Selection, after: Selection | None) -> float:
        """Return what a change lowers F by, per cost of the last unit; 0 if there is no change."""
        if after is None:
            return 0.0
        return (before.fit.value - after.fit.value) / float(self.penalty.costs[after.units[-1]])

    def grow(self, selection: Selection) -> Selection | None:
        """Add the unit that lowers F most per cost; None if none lowers it by more than the tolerance."""
        active = self._propose(selection, PROPOSAL_FLOOR)
        first, merits = active.leading(N_CANDIDATES)
        units = first[merits > least_merit(active)].tolist()
        rows, ridge = self._rows(units), self.problem.ridge
        columns = self.loss.columns(rows)
        best, best_merit, slack = None, 0.0, TOLERANCE * selection.fit.value
        for unit in units:
            cutoff = selection.fit.value - best_merit * float(self.penalty.costs[unit]) - slack
            own = self.penalty.unit_of[rows] == unit
            if selection.fit.dual.bound_with(columns[:, own], ridge) >= cutoff:
                continue
            span = selection.fit.span.extended(rows[own], columns[:, own], ridge)
            found = self._fitted([*selection.units, unit], span, selection.fit.lengths, cutoff)
            if found.fit.value < cutoff:
                best, best_merit = found, self.merit(selection, found)
        return best

    def exchange(self, selection: Selection, alpha: float) -> tuple[Selection, int]:
        """Exchange units while F + alpha * cost falls by more than the tolerance; return the number of exchanges too."""
        n_exchanged = 0
        while selection.units and selection.size < self.penalty.n_units:
            better = self._exchanged(selection, alpha, PROPOSAL_FLOOR) or self._exchanged(selection, alpha, 0.0)
            if better is None:
                break
            selection, n_exchanged = better, n_exchanged + 1
        return selection, n_exchanged

    def _exchanged(self, selection: Selection, alpha: float, floor: float) -> Selection | None:
        """Make the exchange that the weighted squares propose, if F + alpha * cost falls."""
        active = self._propose(selection, floor)
        best = active.best_exchange(alpha)
        if best.decrease <= 0.0:
            return None
        units = [unit for unit in selection.units if unit != active.units[best.position]] + [best.unit]
        span = self._extended(self.start().fit.span, units)
        cutoff = selection.objective(alpha) - alpha * self._cost(units) - TOLERANCE * selection.fit.value
        found = self._fitted(units, span, selection.fit.lengths, cutoff)
        return found if found.fit.value < cutoff else None

    def _propose(self, selection: Selection, floor: float) -> RowActiveSet:
        """Return the active set of the weighted squares, with errors of at least a share of the median one."""
        lengths = selection.fit.lengths
        long = lengths[lengths > self.loss.regression.delta]
        weights = self.loss.weights(np.maximum(lengths, floor * float(np.median(long)) if len(long) else 0.0))
        return make_active_set(self.problem.reweighted(weights), selection.units, self.penalty)

    def _fitted(self, units: list[int], span: Span, lengths: Array | None = None, cutoff: float = np.inf) -> Selection:
        fit = self.loss.regression.minimise(span, lengths, cutoff=cutoff)
        return Selection(units, fit, len(units) + len(self.penalty.included), self._cost(units))

    def _cost(self, units: list[int]) -> float:
        return float(self.penalty.costs[units].sum())

    def _extended(self, span: Span, units: list[int]) -> Span:
        rows = self._rows(units)
        return span.extended(rows, self.loss.columns(rows), self.problem.ridge)

    def _rows(self, units: list[int]) -> Array:
        """Return the features of some units that may have a weight."""
        rows = np.concatenate([[], *(self.penalty.members[unit] for unit in units)]).astype(np.intp)
        return rows[self._may_enter[rows]]

    def stage(self, selection: Selection, alpha: float, *, n_steps: int = 1) -> Stage:
        """Describe a selection as the solution at a lambda."""
        fit = selection.fit
        rows = np.array(fit.span.rows, dtype=np.intp)
        norms = np.sqrt(squared_row_norms(fit.span.weights(fit.coordinates)))
        order = np.argsort(rows)
        return Stage(
            alpha, rows[order], norms[order], fit.value, n_steps=n_steps, converged=fit.converged, cost=selection.cost
        )

    def finish(self, selection: Selection, stages: list[Stage]) -> RobustFit:
        """Return the path that ends with a selection, its weights as the minimum of the squares that touch F there."""
        problem = self.problem.reweighted(self.loss.weights(selection.fit.lengths))
        active = make_active_set(problem, selection.units, self.penalty)
        last = stage_of(active, stages[-1].alpha)
        value = self.loss.value(problem, last.rows, active.weights[:, np.argsort(active.rows)])
        stages[-1] = stages[-1]._replace(rows=last.rows, norms=last.norms, loss=value)
        return RobustFit(path_of(active, stages), problem, self.loss.value)


class RobustLoss:
    """The loss F of a problem with given sample weights."""

    def __init__(self, problem: LeastSquares) -> None:
        given = problem.design.sample_weights
        root = np.ones(problem.design.n_samples) if given.root is None else given.root
        self._problem, self._counts = problem, root > 0.0  # a sample of weight 0 is left out
        self._given = root * root
        self.unit = float(np.sqrt(2.0 * problem.null_loss / given.total))
        targets = problem.targets.T[self._counts]
        self.regression = RobustRegression(targets, root[self._counts], self.unit, DELTA * self.unit)

    @property
    def nuisances(self) -> Array:
        """Orthonormal columns that are fitted besides the intercept, (n_counted, n_independent)."""
        basis = self._problem.design.sample_weights.basis
        return np.empty((np.count_nonzero(self._counts), 0)) if basis is None else basis[:, self._counts].T

    def columns(self, rows: Array) -> Array:
        """Return the columns of some features, for the samples that count."""
        columns = self._problem.design.take(rows, slice(None))
        return columns[self._counts].astype(np.float64, copy=False)

    def weights(self, lengths: Array) -> Array:
        """Return the sample weights of the squares that touch F at given lengths of the errors."""
        weights = np.zeros(len(self._given))
        weights[self._counts] = self._given[self._counts] * self.regression.omega(lengths)
        return weights

    def value(self, problem: LeastSquares, rows: Array, values: Array) -> float:
        """Return F at the weights ``values`` of ``rows``, with the intercept of a reweighted problem."""
        root = problem.design.sample_weights.root
        norms: Array = np.sqrt(squared_row_norms(problem.residual(rows, values).T))
        lengths = norms[self._counts] if root is None else norms[self._counts] / root[self._counts]
        return self.regression.value(lengths, np.sqrt(problem.ridge) * values)


def bounded_weights(weights: Array, given: Array | None) -> Array:
    """Bound the factors by which the robust loss weighs samples: those above their median count as 1.

    Samples that a robust fit meets exactly have almost all of its weight, and no scatter: statistics of all samples want
    weights of one order. The better half counts as it was given, the others less.

    Examples
    --------
    >>> bounded_weights(np.array([900.0, 4.0, 2.0, 1.0]), np.array([1.0, 2.0, 1.0, 1.0]))
    array([1. , 2. , 1. , 0.5])
    """
    given = np.ones(len(weights)) if given is None else given
    factors = np.divide(weights, given, out=np.zeros_like(weights), where=given > 0.0)
    order = np.argsort(factors)
    counted = np.cumsum(given[order])
    median = factors[order[np.searchsorted(counted, 0.5 * counted[-1] * (1.0 - 1e-12))]]
    return np.asarray(given * np.minimum(factors / median, 1.0))
