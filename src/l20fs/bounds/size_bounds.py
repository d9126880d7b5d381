"""Lower bounds on the loss of panels of every size."""

from __future__ import annotations

import numpy as np

from l20fs.bounds.choice import NO_ROWS, Choice
from l20fs.bounds.cuts import Cut, LinearCut, measure_fit
from l20fs.bounds.relaxation import NEGLIGIBLE, Relaxed, least_entering, relax
from l20fs.bounds.support import best_weights, has_ridge, least_loss, least_residual
from l20fs.objective.problem import Problem
from l20fs.objective.row_penalty import RowPenalty
from l20fs.typing import Array

#: Largest size for which the relaxation is solved; larger sizes use the bounds that its cuts give for them.
LARGEST_SIZE = 500


class SizeBounds:
    """Lower bounds on the objective of panels of k units for every k, tightened by each relaxation.

    Parameters
    ----------
    problem : Problem
        The data term, with a ridge term for bounds that are tight.
    tol : float
        Relative accuracy to which a relaxation is solved.
    penalty : RowPenalty, optional
        Units, included and excluded ones, costs and rules; by default every feature is a unit, and the choice is free.
    price : float
        Lambda: the objective is the loss plus ``price`` times the cost of the units.
    most : int, optional
        Largest size of interest; by default all units.

    Attributes
    ----------
    choice : Choice
        The panels that compete.
    least : int
        Smallest size of a panel, by the rules and the included units.
    lower : array of shape (most + 1,)
        Lower bounds on the objective of at most k units, decreasing with k: infinite below ``least``, but the same as for
        the included units alone for sizes below their number.
    largest : int
        Largest size that :meth:`solve` accepts, 0 if none.

    Examples
    --------
    >>> from l20fs.objective import make_problem
    >>> bounds = SizeBounds(make_problem(np.eye(3), np.eye(3), ridge=1.0), tol=1e-6)
    >>> round(bounds.solve(2).value, 4), bounds.lower.round(4)
    (0.5, array([1.    , 0.6667, 0.5   , 0.4   ]))
    """

    def __init__(
        self,
        problem: Problem,
        tol: float,
        penalty: RowPenalty | None = None,
        price: float = 0.0,
        *,
        most: int | None = None,
    ) -> None:
        self.problem, self.tol, self.largest = problem, tol, 0
        self.choice = choice = Choice.of(problem, penalty, price)
        self.least = choice.least_size()
        most = choice.n_units if most is None else most
        if not max(1, choice.n_forced) <= most <= choice.n_units:
            raise ValueError(
                f"k={most} is outside {max(1, choice.n_forced)} to {choice.n_units}, the number of "
                f"{'units' if choice.penalty.has_groups else 'features'}. Use a k in this range."
            )
        self.lower = np.full(most + 1, choice.price_of(choice.forced))
        included = choice.rows_of(choice.forced)[0]
        self.lower[: choice.n_forced + 1] += least_loss(problem, np.sort(included)) if len(included) else problem.null_loss
        every = np.flatnonzero(choice.candidates)
        rows, _ = choice.rows_of(np.concatenate([choice.forced, every]))
        are_few = len(rows) <= 2 * LARGEST_SIZE
        if has_ridge(problem):
            self.largest = choice.n_forced + min(LARGEST_SIZE, len(every))
            self._working_set = NO_ROWS
            self._learn_fit(NO_ROWS, np.zeros((problem.n_targets, 0)))
            if are_few:  # no panel beats all features together
                self._learn_fit(rows, best_weights(problem, rows))
        elif are_few:
            self.lower[choice.n_forced + 1 :] += least_residual(problem, rows)
        if self.least > choice.n_forced:
            self.lower[: self.least] = np.inf

    def solve(self, k: int) -> Relaxed:
        """Solve the relaxation for k units and tighten the bounds of all sizes."""
        # Sizes are mostly solved in order: the working set of the last one is a good start.
        n_rows = min(min(k, LARGEST_SIZE) + least_entering(self.problem), self.choice.n_units)
        start = np.union1d(self._working_set, np.argpartition(self._scores, -n_rows)[-n_rows:])
        for relaxed in relax(self.problem, k, start=start, tol=self.tol, choice=self.choice):
            if relaxed.bound == np.inf:
                self.lower[: k + 1] = np.inf
            else:
                self._learn(relaxed.cut)
        self._working_set = relaxed.rows[relaxed.shares > 0.01]
        return relaxed

    def _learn_fit(self, rows: Array, weights: Array) -> None:
        """Learn from the cut of weights of some features, without multipliers."""
        measured = self.choice.by_unit(measure_fit(self.problem, rows, weights))
        self._learn(self.choice.cut_with(measured, self.choice.reduced_costs(), self.choice.n_units))

    def _learn(self, cut: Cut | LinearCut) -> None:
        self.lower = np.fmax(self.lower, cut.bound(self.choice.loads_by_size(cut.scores, len(self.lower) - 1)))
        self._scores = np.where(self.choice.candidates, cut.scores, -np.inf)


def lower_bounds(
    problem: Problem, k_max: int, *, tol: float = 1e-3, penalty: RowPenalty | None = None, price: float = 0.0
) -> Array:
    """Return lower bounds on the loss of the best k units for k = 0 to ``k_max``.

    Up to :data:`LARGEST_SIZE` each is within ``tol`` of the value of the relaxation for its size; above, the bounds are
    valid but weaker.

    Parameters
    ----------
    problem : Problem
        The data term, with a ridge term for bounds that are tight.
    k_max : int
        Largest number of units.
    tol : float
        Relative accuracy to which the relaxation is solved.
    penalty : RowPenalty, optional
        Units, included and excluded ones, costs and rules; by default every feature is a unit, and the choice is free.
    price : float
        Bounds are those of the loss plus ``price`` times the cost of the units.

    Returns
    -------
    array of shape (k_max + 1,)
        Lower bounds over the panels of at most k units, decreasing with k; the first is the loss without features. Sizes
        below the number of included units count as that number; the bound of a size for which the rules leave no panel is
        infinite.

    Examples
    --------
    >>> from l20fs.objective import make_problem
    >>> problem = make_problem(np.eye(3), np.eye(3), ridge=1.0)
    >>> lower_bounds(problem, 3).round(3)
    array([1.   , 0.667, 0.5  , 0.4  ])
    >>> lower_bounds(problem, 2, penalty=RowPenalty(np.array([0, 1, 1]), np.ones(2))).round(3)
    array([1.   , 0.533, 0.4  ])
    """
    bounds = SizeBounds(problem, tol, penalty, price, most=k_max)
    first, last = max(bounds.least, bounds.choice.n_forced), min(k_max, bounds.largest)
    if last < first:
        return bounds.lower[: k_max + 1]
    values = {k: bounds.solve(k).value if k > bounds.choice.n_forced else float(bounds.lower[k]) for k in (first, last)}
    spans = [(first, last)]
    while spans:
        low, high = spans.pop()
        between = np.arange(low + 1, high)
        # The value of the relaxation is convex in k: between two sizes it is below the chord, which is an upper bound.
        chord = np.interp(between, [low, high], [values[low], values[high]])
        missing = chord - bounds.lower[between]
        if np.any(missing > tol * chord + NEGLIGIBLE * problem.null_loss):
            middle = int(between[np.argmax(missing)])
            values[middle] = bounds.solve(middle).value
            spans += [(low, middle), (middle, high)]
    return bounds.lower[: k_max + 1]
