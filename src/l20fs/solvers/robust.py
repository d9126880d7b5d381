r"""Robust loss: sum of residual norms instead of squares, with the l2,0 penalty.

.. math:: F(W, b) = s \sum_i \omega^0_i \rho_\delta(\|W' x_i + b - y_i\|) + \tfrac\mu2 \|W\|_F^2,
          \qquad \rho_\delta(r) = \begin{cases} r & r \ge \delta \\ (r^2 / \delta + \delta) / 2 & r < \delta \end{cases}

The paper names this loss as future work; :math:`\omega^0_i` is the weight that the sample was given, 1 as a rule. The unit
s, the root mean square of the targets, makes the answer independent of their units.

On given rows F is convex, and :mod:`l20fs.solvers.robust_regression` finds its minimum to a duality gap. With
:math:`\omega_i = \omega^0_i s / \max(r_i, \delta)` at the errors r of that minimum,
:math:`\tfrac12 \sum_i \omega_i \|W' x_i + b - y_i\|^2` touches the first term from above but for a constant. These weighted
squares, in which one pass over X judges every row, propose the rows to add, and those to put in the place of a row, from the
errors without it; F at its minimum on the rows decides.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from l20fs.design import BLOCK_ELEMENTS
from l20fs.design.driver import Walk
from l20fs.objective.problem import Problem
from l20fs.objective.prox import squared_row_norms
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath
from l20fs.objective.stage import Stage
from l20fs.solvers.active_set import ActiveSet
from l20fs.solvers.greedy import least_merit, path_of, stage_of
from l20fs.solvers.groups import make_active_set
from l20fs.solvers.robust_regression import MAX_STEPS, TOLERANCE, Fit, RobustRegression, Span
from l20fs.typing import Array

#: Errors below this share of the unit count as squares, so that a sample that is met exactly has a finite weight.
DELTA = 1e-5

#: How many units, those that the weighted squares find best, are tried on F at each size.
N_CANDIDATES = 32

#: Relative gap of the minima without a unit, which only propose.
PROPOSAL_TOLERANCE = 1e-2

#: How many exchanges of two units, those that promise most, are tried on F before a size ends.
N_EXCHANGES = 256

#: Squares that propose rows have weights as if no error were below this share of the median of those above delta: a sample
#: that is met almost exactly would forbid every row that moves it.
PROPOSAL_FLOOR = 0.2


class RobustFit(NamedTuple):
    """Path with the values of F as losses, the weighted least squares problem at its end, and the function F."""

    path: SolutionPath
    problem: Problem
    value: Callable[[Problem, Array, Array], float]


def robust(
    problem: Problem,
    n_rows: int,
    *,
    with_exchanges: bool = False,
    penalty: RowPenalty | None = None,
) -> Walk[RobustFit]:
    """Add the row that lowers F most, and optionally exchange rows while that lowers F, at each size.

    Every value of F is that of the minimum on the rows, to a relative gap of :data:`TOLERANCE`. With at most
    :data:`N_CANDIDATES` units to choose from, each addition is the best of all, up to that tolerance; with more, it is the
    best of those that weighted squares rank first. With exchanges F, or F + lambda * cost where units have different
    costs, is at most that without them. No exchange of one unit for another lowers it further by more than the tolerance, if
    there are at most :data:`N_EXCHANGES`; with more, none of those that weighted squares rank first does.

    Parameters
    ----------
    problem : Problem
        The data term.
    n_rows : int
        Number of non-zero rows, or units of rows, at which the path ends.
    with_exchanges : bool, default=False
        Whether rows are exchanged at every size while that lowers the objective.
    penalty : RowPenalty or None, default=None
        Costs of the rows, one by one or in groups; each of them 1 by default.

    Returns
    -------
    RobustFit
        One stage per size with the values of F as losses, the weighted problem at the end, and F.

    Examples
    --------
    >>> from l20fs.design import finish
    >>> from l20fs.objective import make_problem
    >>> X = np.diag([1.0, 2.0, 3.0, 4.0])[:, :3]
    >>> finish(robust(make_problem(X, np.eye(4)), 2)).path.n_nonzero.tolist()
    [0, 1, 2]
    """
    penalty = penalty or RowPenalty.plain(problem.n_features)
    search = RobustSearch(problem, penalty)
    limit = min(n_rows, penalty.n_units)
    chosen = nested = search.start()  # with exchanges, and without them
    grown = yield from search.grow(chosen)
    alpha = search.merit(chosen, grown) * (1.0 + 1e-6) or chosen.fit.value
    stages, passed = [search.stage(chosen, alpha, n_steps=0)], [chosen]
    while chosen.size < limit and grown is not None and search.merit(chosen, grown) > 0.0:
        cost, n_exchanged = float(penalty.costs[grown.units[-1]]), 0
        exchange_at = min(alpha, search.merit(chosen, grown))
        if with_exchanges:
            nested = grown if nested is chosen else (yield from search.grow(nested)) or nested
            if nested.size == grown.size and nested.objective(exchange_at) < grown.objective(exchange_at):
                grown = nested
            grown, n_exchanged = yield from search.exchange(grown, exchange_at)
        chosen = grown
        # An exchange for something cheaper may let F rise again.
        alpha = min(alpha, max(0.0, stages[-1].loss - chosen.fit.value) / cost)
        stages.append(search.stage(chosen, alpha, n_steps=1 + n_exchanged))
        passed.append(chosen)
        grown = (yield from search.grow(chosen)) if chosen.size < limit else None
    _warn_of_gaps(passed)
    return (yield from search.finish(chosen, stages))


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


#: A selection, and a unit that may be added to it.
Addition: TypeAlias = tuple[Selection, int]


class Trial(NamedTuple):
    """An addition, the columns after it, and a lower bound on F there."""

    addition: Addition
    span: Span
    bound: float


class Columns(NamedTuple):
    """The columns of a unit that may have a weight, (n_counted, n_rows), and their features."""

    rows: Array
    values: Array


class RobustSearch:
    """Find the units to add and to exchange, for a problem and a penalty."""

    def __init__(self, problem: Problem, penalty: RowPenalty) -> None:
        self.problem, self.penalty = problem, penalty
        self.loss = RobustLoss(problem)
        self._may_enter = penalty.may_enter(problem.design.varies)
        self._span = self._extended(Span.free(self.loss.free_basis()), penalty.included.tolist())

    def start(self) -> Selection:
        """Return the selection of the included units."""
        return self._fitted([], self._span)

    def merit(self, before: Selection, after: Selection | None) -> float:
        """Return what a change lowers F by, per cost of the last unit; 0 if there is no change."""
        if after is None:
            return 0.0
        return (before.fit.value - after.fit.value) / float(self.penalty.costs[after.units[-1]])

    def grow(self, selection: Selection) -> Walk[Selection | None]:
        """Add the unit that lowers F most per cost; None if none lowers it by more than the tolerance."""
        active = yield from self._propose(selection)
        units, merits = active.leading(N_CANDIDATES)
        additions = [(selection, unit) for unit in units[merits > least_merit(active)].tolist()]
        best, best_merit, slack = None, 0.0, TOLERANCE * selection.fit.value
        for trial in self._trials(additions, selection.fit.value - slack, 0.0):
            found = self._tried(trial, selection.objective(best_merit) - slack, best_merit)
            if found is not None:
                best, best_merit = found, self.merit(selection, found)
        return best

    def exchange(self, selection: Selection, alpha: float) -> Walk[tuple[Selection, int]]:
        """Exchange units while F + alpha * cost falls by more than the tolerance; return the number of exchanges too."""
        n_exchanged = 0
        while True:
            exchanges = yield from self._exchanges(selection, alpha)
            highest = selection.objective(alpha) - TOLERANCE * selection.fit.value
            tried = (self._tried(trial, highest, alpha) for trial in self._trials(exchanges, highest, alpha))
            better = next((found for found in tried if found is not None), None)
            if better is None:
                return selection, n_exchanged
            selection, n_exchanged = better, n_exchanged + 1

    def _exchanges(self, selection: Selection, alpha: float) -> Walk[list[Addition]]:
        """Return the exchanges that promise most, each as the selection without a unit and another unit to add."""
        promises: list[tuple[float, Addition]] = []
        for unit in selection.units:
            others = [other for other in selection.units if other != unit]
            span = self._extended(self._span, others)
            without = self._fitted(others, span, selection.fit.lengths, tolerance=PROPOSAL_TOLERANCE)
            active = yield from self._propose(without)
            units, merits = active.leading(N_EXCHANGES + 1)
            objectives = without.objective(alpha) + (alpha - merits) * self.penalty.prices[units]
            may_enter = (merits > least_merit(active)) & (units != unit)
            promises += [(objectives[place], (without, int(units[place]))) for place in np.flatnonzero(may_enter)]
        promises.sort(key=lambda promise: promise[0])
        return [addition for _, addition in promises[:N_EXCHANGES]]

    def _trials(self, additions: list[Addition], highest: float, alpha: float) -> Iterator[Trial]:
        """Yield additions with bounds on F, which rise until F + alpha * cost is certainly not below ``highest``."""
        columns = self._columns({unit for _, unit in additions})
        largest = max((kept.fit.span.upper.size for kept, _ in additions), default=0)
        step = max(1, min(N_CANDIDATES, 4 * BLOCK_ELEMENTS // (largest + 1)))
        for start in range(0, len(additions), step):
            batch = additions[start : start + step]
            spans = [kept.fit.span.extended(*columns[unit], self.problem.ridge) for kept, unit in batch]
            lengths = np.stack([kept.fit.lengths for kept, _ in batch])
            cutoffs = np.array([self._cutoff(addition, highest, alpha) for addition in batch])
            yield from map(Trial, batch, spans, self.loss.regression.bounds(spans, lengths, cutoffs))

    def _tried(self, trial: Trial, highest: float, alpha: float) -> Selection | None:
        """Return the selection after an addition; None if F + alpha * cost is not below ``highest``."""
        (kept, unit), cutoff = trial.addition, self._cutoff(trial.addition, highest, alpha)
        if trial.bound >= cutoff:
            return None
        found = self._fitted([*kept.units, unit], trial.span, kept.fit.lengths, cutoff=cutoff)
        return found if found.fit.value < cutoff else None

    def _cutoff(self, addition: Addition, highest: float, alpha: float) -> float:
        kept, unit = addition
        return highest - alpha * (kept.cost + float(self.penalty.costs[unit]))

    def _propose(self, selection: Selection) -> Walk[ActiveSet]:
        """Return the active set of the weighted squares."""
        lengths = selection.fit.lengths
        long = lengths[lengths > self.loss.regression.delta]
        weights = self.loss.weights(np.maximum(lengths, PROPOSAL_FLOOR * float(np.median(long)) if len(long) else 0.0))
        return (yield from self._weighted_squares(weights, selection))

    def _weighted_squares(self, weights: Array, selection: Selection) -> Walk[ActiveSet]:
        problem = yield from self.problem.reweighted(weights)
        active = make_active_set(problem, self.penalty)
        yield from active.start(selection.units)
        return active

    def _fitted(self, units: list[int], span: Span, lengths: Array | None = None, **options: float) -> Selection:
        fit = self.loss.regression.minimise(span, lengths, **options)
        cost = float(self.penalty.costs[units].sum())
        return Selection(units, fit, len(units) + len(self.penalty.included), cost)

    def _extended(self, span: Span, units: list[int]) -> Span:
        for columns in self._columns(units).values():
            span = span.extended(*columns, self.problem.ridge)
        return span

    def _columns(self, units: Collection[int]) -> dict[int, Columns]:
        """Return the columns of units."""
        rows = np.concatenate([[], *(self.penalty.members[unit] for unit in units)]).astype(np.intp)
        rows = rows[self._may_enter[rows]]
        values, owners = self.loss.columns(rows), self.penalty.unit_of[rows]
        return {unit: Columns(rows[owners == unit], values[:, owners == unit]) for unit in units}

    def stage(self, selection: Selection, alpha: float, *, n_steps: int = 1) -> Stage:
        """Describe a selection as the solution at a lambda."""
        fit = selection.fit
        rows = np.array(fit.span.rows, dtype=np.intp)
        norms = np.sqrt(squared_row_norms(fit.span.weights(fit.coordinates)))
        order = np.argsort(rows)
        return Stage(
            alpha, rows[order], norms[order], fit.value, n_steps=n_steps, converged=fit.converged, cost=selection.cost
        )

    def finish(self, selection: Selection, stages: list[Stage]) -> Walk[RobustFit]:
        """Return the path that ends with a selection, its weights as the minimum of the squares that touch F there."""
        active = yield from self._weighted_squares(self.loss.weights(selection.fit.lengths), selection)
        last = stage_of(active, stages[-1].alpha)
        value = self.loss.value(active.problem, last.rows, active.weights()[:, np.argsort(active.rows)])
        stages[-1] = stages[-1]._replace(rows=last.rows, norms=last.norms, loss=value)
        return RobustFit(path_of(active, stages), active.problem, self.loss.value)


class RobustLoss:
    """The loss F of a problem with given sample weights."""

    def __init__(self, problem: Problem) -> None:
        given = problem.design.sample_weights
        root = np.ones(problem.design.n_samples) if given.root is None else given.root
        self._problem, self._counts = problem, root > 0.0  # a sample of weight 0 is left out
        self._given = root * root
        self.unit = float(np.sqrt(2.0 * problem.null_loss / given.total))
        targets = problem.targets.T[self._counts]
        self.regression = RobustRegression(targets, root[self._counts], self.unit, DELTA * self.unit)

    def free_basis(self) -> Array:
        """Return the intercept and the nuisances as orthonormal columns, (n_counted, n_independent)."""
        weights, root = self._problem.design.sample_weights, self.regression.root
        basis = np.empty((0, len(root))) if weights.basis is None else weights.basis[:, self._counts]
        if weights.fit_intercept:
            basis = np.vstack([root / np.linalg.norm(root), basis])
        return basis.T

    def columns(self, rows: Array) -> Array:
        """Return the columns of some features, for the samples that count."""
        return self._problem.design.columns(rows).T[self._counts]

    def weights(self, lengths: Array) -> Array:
        """Return the sample weights of the squares that touch F at given lengths of the errors."""
        weights = np.zeros(len(self._given))
        weights[self._counts] = self._given[self._counts] * self.regression.omega(lengths)
        return weights

    def value(self, problem: Problem, rows: Array, values: Array) -> float:
        """Return F at the weights ``values`` of ``rows``, with the intercept of a reweighted problem."""
        root = problem.design.sample_weights.root
        norms: Array = np.sqrt(squared_row_norms(problem.residual(rows, values).T))
        lengths = norms[self._counts] if root is None else norms[self._counts] / root[self._counts]
        return float(self.regression.value(lengths, np.sqrt(problem.ridge) * values))


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
