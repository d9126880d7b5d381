r"""Lower bounds on the loss of panels whose worst unit fails.

Of a panel S of k units, :math:`r(S) = \max_{i \in S} h(S \setminus i)` is the loss when the worst one cannot be measured. A
cut (:mod:`l20fs.bounds.cuts`) bounds h by a decreasing function of the sum of scores, so that the failure of the unit
with the largest score gives

.. math:: r(S) \ge \phi\Bigl(\sum_{j \in S} s_j - \max_{i \in S} s_i\Bigr) \ge \phi(s_{(2)} + \dots + s_{(k)})

for all panels, with the scores in falling order. Every cut holds; those of no features and of the relaxations for k and for
k - 1 units are used. The bound is at least that of the best panel of k - 1 units.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from l20fs.bounds.certificate import Certificate, rounding_of
from l20fs.bounds.cuts import Cut, LinearCut, measure_fit
from l20fs.bounds.relaxation import NO_ROWS
from l20fs.bounds.size_bounds import SizeBounds
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty
from l20fs.typing import Array


def certify_failures(
    problem: LeastSquares, k: int, upper_bound: float, *, penalty: RowPenalty | None = None, tol: float = 1e-4
) -> Certificate:
    """Certify the loss of a panel of k units without its worst one: the gap to the optimum, and features in or out.

    Parameters
    ----------
    problem : LeastSquares
        The data term, with a ridge term for bounds that are tight.
    k : int
        Number of units of a panel.
    upper_bound : float
        The largest of the losses of one such panel without one of its units.
    penalty : RowPenalty or None, default=None
        What is included, excluded or grouped; rules are left out of account, so that the bound holds with them, too.
    tol : float
        Relative accuracy to which the relaxation is solved.

    Returns
    -------
    Certificate
        Lower and upper bound, and the features proved to be in or out of all panels whose worst case is as good.

    Examples
    --------
    >>> from l20fs.bounds.support import support_loss
    >>> X, Y = np.diag([1.0, 2.0, 1.0, 3.0]), np.eye(4)[:, [1, 3]]
    >>> problem = LeastSquares(X, Y, ridge=1.0)
    >>> worst = max(support_loss(problem, np.array([j])) for j in (1, 3))
    >>> certificate = certify_failures(problem, 2, worst)
    >>> certificate.proved_out, round(certificate.gap, 2)
    (array([0, 2]), 0.12)
    """
    penalty = penalty or RowPenalty.plain(problem.n_features)
    # What is included may be what fails.
    free = replace(penalty, costs=np.where(penalty.costs == 0.0, 1.0, penalty.costs), rules=None)
    lower, margin = float(SizeBounds(problem, tol, free, most=k).lower[k - 1]), rounding_of(problem)
    is_in, is_out = np.zeros((2, penalty.n_units), dtype=bool)
    for cut in _cuts(problem, k, replace(penalty, rules=None), tol):
        loads = failure_loads(np.where(penalty.costs < np.inf, cut.scores, 0.0), k, penalty.included)
        lower = max(lower, float(cut.bound(loads.largest)))
        is_in |= cut.bound(loads.without) > upper_bound + margin
        is_out |= cut.bound(loads.with_it) > upper_bound + margin
    if not upper_bound >= lower - margin:
        raise ValueError(
            f"upper_bound={upper_bound:.9g} is below {lower:.9g}, the lower bound of all panels. Compute it from a panel, "
            "as the largest loss without one of its units."
        )
    proved_in, proved_out = (np.flatnonzero(mask[penalty.unit_of]) for mask in (is_in, is_out))
    return Certificate(min(lower, upper_bound), upper_bound, proved_in, proved_out, rounding=margin)


def _cuts(problem: LeastSquares, k: int, penalty: RowPenalty, tol: float) -> Iterator[Cut | LinearCut]:
    """Yield the cuts of no features, and of the relaxations for k and for k - 1 units."""
    bounds = SizeBounds(problem, tol, penalty, most=k)
    if bounds.largest:
        yield bounds.choice.by_unit(measure_fit(problem, NO_ROWS, np.zeros((problem.n_targets, 0))))
    for size in (k, k - 1):
        if bounds.choice.n_forced < size <= bounds.largest:
            yield bounds.solve(size).cut


class Loads(NamedTuple):
    """Largest sums of the scores of a panel but for the largest: of all panels, of those with, and without, each unit."""

    largest: float
    with_it: Array
    without: Array


def failure_loads(scores: Array, k: int, included: Array) -> Loads:
    """Return the largest sum of the scores of a panel of k units, without its largest score.

    Such a sum rises with every score, so that the panel with the largest scores has it.

    Examples
    --------
    >>> failure_loads(np.array([1.0, 4.0, 3.0, 2.0]), 2, included=np.array([], dtype=int))
    Loads(largest=3.0, with_it=array([1., 3., 3., 2.]), without=array([3., 2., 2., 3.]))
    """
    is_included = np.zeros(len(scores), dtype=bool)
    is_included[included] = True
    free = np.flatnonzero(~is_included)
    free = free[np.argsort(-scores[free], kind="stable")]
    n_chosen = min(max(k - len(included), 0), len(free))
    chosen, others = free[:n_chosen], free[n_chosen:]
    panel = np.sort(np.concatenate([scores[included], scores[chosen]]))
    largest = float(panel[:-1].sum())
    with_it, without = np.full((2, len(scores)), largest)
    without[included] = np.inf  # a panel without them is none
    if n_chosen:
        last, following = scores[chosen[-1]], scores[others[0]] if len(others) else 0.0
        rest = np.delete(panel, np.searchsorted(panel, last))
        with_it[others] = rest.sum() + scores[others] - np.maximum(rest.max(initial=0.0), scores[others])
        for unit in chosen:
            rest = np.delete(panel, np.searchsorted(panel, scores[unit]))
            without[unit] = rest.sum() + following - max(rest.max(initial=0.0), following)
    else:
        with_it[others] = np.inf
    return Loads(largest, with_it, without)
