r"""Convex relaxation of the best subset problem: lower bounds on the loss of every support.

The best point A for the supports of k units (:mod:`l20fs.bounds.cuts`) is that of the optimal *shares* z, numbers from 0
to 1 that sum to k and relax the indicators of the selected units:

.. math:: A = M_z \tilde Y \quad\text{with}\quad M_z = (I + \tilde X \operatorname{diag}(z) \tilde X^T / \mu)^{-1},
    \qquad z \text{ minimises the convex } \tfrac12 \langle \tilde Y, M_z \tilde Y\rangle

:func:`relax` computes them. Most shares are zero: it solves for those of a small working set of units by an
interior-point method (:mod:`l20fs.bounds.shares`), and passes over X only to find the units that are missing from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from l20fs.bounds.choice import Choice
from l20fs.bounds.cuts import Cut, LinearCut, measure_fit
from l20fs.bounds.polytope import MISSED, largest
from l20fs.bounds.shares import Relaxations, eliminate, evaluate, solve_shares
from l20fs.objective.problem import Problem
from l20fs.typing import Array

#: Limit of the loop, which is not reached: 18 working sets are the most on the paper's data sets.
MAX_WORKING_SETS = 60

#: Units that enter a working set at least, in memory and where a pass over X takes long; and as many as are chosen, if not
#: more than the last.
ENTERING, ENTERING_IN_BLOCKS, MOST_ENTERING = 32, 128, 512

#: Penalties of a missed limit, in units of the loss without features plus the largest price: so every start has an interior,
#: also where the rules leave none, as equal limits do, and the multipliers stay bounded.
PENALTIES = (10.0, 1e4, 1e7)

#: A share that stands for zero: the weights of its rows are zero, and its score is known.
NOTHING = 1e-30

#: Rounding error of a loss, as a fraction of the loss without features.
NEGLIGIBLE = 1e-9


class Relaxed(NamedTuple):
    """Solution of the relaxation on a working set of units.

    ``bound`` holds for the panels of the request: infinite if there is none; ``cut`` bounds all panels that meet the same
    rules at the same prices. ``value`` is the value of the relaxation, with prices, at the ``shares`` of the free units
    ``rows``: no bound by a relaxation exceeds it.
    """

    bound: float
    value: float
    rows: Array
    shares: Array
    cut: Cut | LinearCut


def relax(problem: Problem, k: int, *, start: Array, tol: float, choice: Choice) -> Iterator[Relaxed]:
    """Solve the relaxation over the panels of at most k units, by working sets.

    The iterator ends when ``bound`` is within ``tol`` of ``value``; the caller may stop earlier.

    Parameters
    ----------
    problem : Problem
        With a ridge term.
    k : int
        Maximum number of units, at least the number of forced ones.
    start : array
        Units of the first working set; those that are not free are left out.
    tol : float
        Relative accuracy.
    choice : Choice
        Panels that compete, with their prices and rules.

    Examples
    --------
    >>> from l20fs.objective import make_problem
    >>> problem = make_problem(np.eye(3), np.eye(3), ridge=1.0)
    >>> *_, last = relax(problem, 1, start=np.arange(3), tol=1e-6, choice=Choice.of(problem))
    >>> last.shares.round(3), round(last.bound, 4), round(last.value, 4)
    (array([0.333, 0.333, 0.333]), 0.6667, 0.6667)
    """
    choice = choice.among_candidates()
    n_chosen = k - choice.n_forced
    units, scores = start[choice.is_free[start]], np.zeros(choice.n_units)
    n_entering = max(least_entering(problem), min(n_chosen, MOST_ENTERING))
    for _ in range(MAX_WORKING_SETS):
        # More exact than tol, so that a remaining gap is due to units that are missing from the working set.
        point = solve_working_set(problem, choice, units, n_chosen, 0.2 * tol)
        if point is None:
            missing = choice.feasible_units(n_chosen, scores)
            if missing is None or not len(np.setdiff1d(missing, units)):
                yield Relaxed(np.inf, np.inf, units, np.zeros(len(units)), LinearCut(np.inf, scores))
                return
            units = np.union1d(units, missing)
            continue
        measured = choice.by_unit(measure_fit(problem, point.rows, point.weights))
        reduced = choice.reduced_costs(point.multipliers)
        cut = choice.cut_with(measured, reduced, k)
        scores = np.where(choice.is_free, measured.scores - reduced.costs, 0.0)
        bound = float(cut.bound(choice.loads_by_size(cut.scores, k)[-1]))
        value, shares = point.value + choice.price_of(choice.forced), point.shares
        yield Relaxed(bound, value, units, shares, cut)
        least_share = 1e-6 if choice.rules.n_rules else 0.01
        units, is_complete = _next_working_set(units, shares > least_share, scores, n_chosen, n_entering)
        if is_complete or value - bound <= tol * value + NEGLIGIBLE * problem.null_loss:
            return


class Point(NamedTuple):
    """Solution of the relaxation on the ``rows`` of a working set, those of the forced units first.

    ``weights`` (n_targets, n_rows); ``multipliers`` of the rules, above 0 for an upper limit, below for a lower one.
    """

    rows: Array
    shares: Array
    value: float
    weights: Array
    multipliers: Array


def solve_working_set(problem: Problem, choice: Choice, units: Array, n_chosen: int, tol: float) -> Point | None:
    """Solve the relaxation on some free units; return None if no shares meet the rules."""
    sides = choice.sides(units, n_chosen)
    if sides is None:
        return None
    rows, unit_of_row = choice.rows_of(np.concatenate([choice.forced, units]))
    problem.design.matrix.hold([rows])  # they are read again for the cut
    moments, gram = problem.normal_equations(rows)
    n_fixed = int(np.searchsorted(unit_of_row, choice.n_forced))
    *left, completed = eliminate(gram[None], moments[None], np.array([problem.null_loss]), problem.ridge, n_fixed)
    counts = np.unique(unit_of_row[n_fixed:], return_counts=True)[1]
    sizes = None if (counts == 1).all() else counts
    scale = problem.null_loss + float(sides.prices.max(initial=0.0)) or 1.0  # targets that do not vary have no loss
    ceiling = (
        problem.null_loss + float(largest(sides.prices, sides.n_chosen).sum()) + 1e-6 * scale
    )  # no allowed units cost more
    is_settled = sides.n_chosen == 0 or (len(units) <= sides.n_chosen and sides.is_free)
    for penalty in PENALTIES:
        most = scale * np.append(PENALTIES[-1], np.full(len(sides.rules), penalty))
        ends = np.where(sides.is_rigid, -most, 0.0), most
        limits = (part[None] for part in (sides.prices, sides.weights, sides.limits, *ends))
        these = Relaxations(problem.ridge, sizes, *left, *limits)
        if is_settled:
            z = np.full((1, len(units)), 1.0 if sides.n_chosen else NOTHING)
            found = evaluate(these, z, np.zeros_like(these.limits))
            break
        z = np.full((1, len(units)), (1.0 if sides.is_free else 0.9) * sides.n_chosen / len(units))
        found = solve_shares(these, z, tol, ceiling=ceiling)
        if found.value[0] - found.excess(these)[0] > ceiling:
            return None
        if these.missed(found.z).max(initial=0.0) <= MISSED:
            break
    multipliers = np.zeros(sides.n_rules)
    np.add.at(multipliers, sides.rules, found.multipliers[0, 1:] * sides.factors)
    return Point(rows, found.z[0], float(found.value[0]), completed(found.weights)[0], multipliers)


def least_entering(problem: Problem) -> int:
    """Return how many units enter a working set at least."""
    return ENTERING_IN_BLOCKS if problem.design.matrix.is_in_blocks else ENTERING


def _next_working_set(units: Array, is_used: Array, scores: Array, n_chosen: int, n_entering: int) -> tuple[Array, bool]:
    """Add the units with the largest scores to the working set, drop useless ones; return whether none was added."""
    inside = scores[units]
    price = max(0.0, float(np.partition(inside, -n_chosen)[-n_chosen])) if 0 < n_chosen <= len(units) else 0.0
    outside = scores.copy()
    outside[units] = 0.0
    entering = np.flatnonzero(outside > price)
    n_entering = max(n_entering, len(units) // 4)
    if len(entering) > n_entering:
        entering = entering[np.argpartition(outside[entering], -n_entering)[-n_entering:]]
    staying = units[is_used | (inside > 0.9 * price)]
    return np.concatenate([staying, entering]), not len(entering)
