r"""Certificates of near-optimality: lower bounds on the loss, and features proved to be in or out.

The loss of a support S is :math:`h(S) = \min f` with weights on S only. Finding the best k of d features is NP-hard, but
:mod:`l20fs.bounds.relaxation` bounds the loss of all supports from below, and a solution whose loss is close to the bound is
close to the optimum.

Every bound holds for the X and Y that were given, in exact arithmetic: it is computed in float64 and lowered by more than
rounding can amount to, of the computation and of X~ and Y~ as they are stored. So even the bound of an optimum is below it,
as a rule by 1e-13 of the loss without features in float64 and by 1e-7 to 1e-6 in float32, and by more where features are
nearly dependent and the ridge is weak. Bounds whose difference is within :data:`ROUNDING` count as equal. A linear
combination of features that is zero up to rounding in float64 counts as zero, as in :func:`support_loss`.

The bounds depend on the ridge term: they are tight if it is strong, and loose if it is weak. Without a ridge the only lower
bound is the loss of all features together, which is zero as soon as they fit the targets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from l20fs.bounds.choice import Choice
from l20fs.bounds.cuts import Cut, LinearCut
from l20fs.bounds.relaxation import NEGLIGIBLE
from l20fs.bounds.size_bounds import SizeBounds, lower_bounds
from l20fs.bounds.support import support_loss
from l20fs.objective.problem import Problem
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath
from l20fs.typing import Array

__all__ = ["Certificate", "certify_penalty", "certify_selection", "certify_size", "lower_bounds", "support_loss"]

#: Differences of losses that may be rounding, as a fraction of the loss without features, by the dtype of X.
ROUNDING = {np.dtype(np.float64): NEGLIGIBLE, np.dtype(np.float32): 1e-5}


@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds on the optimal value, and features proved to be in or out.

    Attributes
    ----------
    lower_bound : float
        Lower bound of the optimal value.
    upper_bound : float
        Value of the given solution.
    proved_in, proved_out : arrays of feature indices
        Features that are in all, or in none, of the supports whose value is at most ``upper_bound``.
    rounding : float
        Difference of the two bounds that may be rounding: :data:`ROUNDING` times the loss without features, which is 1e-9 of
        it if X is float64, and 1e-5 if it is float32.

    Examples
    --------
    >>> round(Certificate(9.0, 10.0, proved_in=np.array([3]), proved_out=np.array([0, 1])).gap, 3)
    0.1
    """

    lower_bound: float
    upper_bound: float
    proved_in: Array
    proved_out: Array
    rounding: float = 0.0

    @property
    def gap(self) -> float:
        """Maximum relative decrease of ``upper_bound`` by the optimum; 0 if the bounds differ by ``rounding`` or less."""
        difference = self.upper_bound - self.lower_bound
        return difference / self.upper_bound if difference > self.rounding else 0.0


def rounding_of(problem: Problem) -> float:
    """Return the difference of losses that may be rounding."""
    return problem.null_loss * ROUNDING[problem.dtype]


def certify_size(
    problem: Problem,
    k: int,
    upper_bound: float,
    *,
    tol: float = 1e-4,
    penalty: RowPenalty | None = None,
    price: float = 0.0,
) -> Certificate:
    """Certify the objective of k units: the gap to the optimum, and the features proved to be in or out.

    Parameters
    ----------
    problem : Problem
        The data term, with a ridge term for bounds that are tight.
    k : int
        Maximum number of units of a panel.
    upper_bound : float
        Objective of one such panel: its loss as :func:`support_loss` computes it, plus ``price`` times its cost.
    tol : float
        Relative accuracy to which the relaxation is solved.
    penalty : RowPenalty, optional
        Units, included and excluded ones, costs and rules; by default every feature is a unit, and the choice is free.
    price : float
        The objective is the loss plus ``price`` times the cost of the units.

    Returns
    -------
    Certificate
        Lower and upper bound, and the features proved to be in or out.

    Examples
    --------
    >>> from l20fs.objective import make_problem
    >>> X, Y = np.diag([1.0, 2.0, 1.0, 3.0]), np.eye(4)[:, [1, 3]]
    >>> problem = make_problem(X, Y, ridge=0.1)
    >>> certificate = certify_size(problem, 2, support_loss(problem, np.array([1, 3])))
    >>> certificate.proved_in, certificate.proved_out, round(certificate.gap, 3)
    (array([1, 3]), array([0, 2]), 0.0)
    >>> with_the_first = RowPenalty(np.arange(4), np.array([0.0, 1.0, 1.0, 1.0]))
    >>> certify_size(problem, 3, support_loss(problem, np.array([0, 1, 3])), penalty=with_the_first).proved_in
    array([1, 3])
    """
    bounds = SizeBounds(problem, tol, penalty, price, most=k)
    if k < bounds.least:
        raise ValueError(f"k={k}: no panel of so few units meets the rules. Use at least {bounds.least}.")
    cuts = [bounds.solve(k).cut] if bounds.choice.n_forced < k <= bounds.largest else []
    return conclude(problem, float(bounds.lower[k]), upper_bound, {k: upper_bound}, cuts, bounds.choice)


def certify_selection(path: SolutionPath, k: int, problem: Problem, penalty: RowPenalty) -> Certificate:
    """Compare the best ``k`` units of a path with a lower bound on all supports of that size.

    Where features have different costs, the objective is the loss plus the costs at the lambda at which they were selected.

    Parameters
    ----------
    path : SolutionPath
    k : int
        Number of units.
    problem : Problem
        The data term of the path.
    penalty : RowPenalty
        Its units, costs and constraints.

    Returns
    -------
    Certificate
        The bounds, and the features that are proved to be in or out.
    """
    rows = path.support(k)
    price = 0.0 if penalty.is_even else path.alpha_at(k)
    value = support_loss(problem, rows) + price * penalty.cost_of(rows)
    return certify_size(problem, k, value, penalty=penalty, price=price)


def certify_penalty(
    problem: Problem, lam: float, upper_bound: float, *, tol: float = 1e-4, penalty: RowPenalty | None = None
) -> Certificate:
    """Certify ``f + lam * cost``: the gap to the minimum, and the features proved to be in or out.

    Where every unit costs 1, the minimum is the least over all sizes k of the optimal loss of k units plus ``lam * k``, so
    that the proofs for all sizes are combined; otherwise that of a relaxation with prices.

    Parameters
    ----------
    problem : Problem
        The data term, with a ridge term for bounds that are tight.
    lam : float
        Penalty per feature, or per cost, at least 0.
    upper_bound : float
        Value of a solution: ``support_loss(problem, rows) + lam * penalty.cost_of(rows)``.
    tol : float
        Relative accuracy to which the relaxation is solved.
    penalty : RowPenalty, optional
        Units, included and excluded ones, costs and rules; by default every feature is a unit of cost 1.

    Returns
    -------
    Certificate
        Lower and upper bound, and the features proved to be in or out.

    Examples
    --------
    >>> from l20fs.objective import make_problem
    >>> X, Y = np.diag([1.0, 2.0, 1.0, 3.0]), np.eye(4)[:, [1, 3]]
    >>> problem = make_problem(X, Y, ridge=1.0)
    >>> certificate = certify_penalty(problem, 0.05, support_loss(problem, np.array([1, 3])) + 2 * 0.05)
    >>> certificate.proved_in, certificate.proved_out, round(certificate.gap, 3)
    (array([1, 3]), array([0, 2]), 0.0)
    """
    if not lam >= 0.0:
        raise ValueError(f"lam={lam!r} is not valid. Use a number of at least 0.")
    if penalty is not None and not penalty.is_even:
        return _certify_costs(problem, lam, upper_bound, tol, penalty)
    bounds = SizeBounds(problem, tol, penalty)
    n_forced = bounds.choice.n_forced
    price = lam * np.maximum(np.arange(bounds.choice.n_units + 1) - n_forced, 0)
    cuts: dict[int, Cut | LinearCut] = {}
    value = np.inf
    # Solve for the size with the lowest bound, until that size is solved or its bound reaches the value of a solved size.
    while (k := int(np.argmin(bounds.lower + price))) not in cuts and n_forced < k <= bounds.largest:
        if bounds.lower[k] + price[k] >= (1.0 - tol) * value:
            break
        relaxed = bounds.solve(k)
        cuts[k] = relaxed.cut
        value = min(value, relaxed.value + price[k])
    lower = bounds.lower + price
    open_sizes = np.flatnonzero(lower <= upper_bound + rounding_of(problem))
    losses = {int(k): upper_bound - float(price[k]) for k in open_sizes if k >= n_forced}
    return conclude(problem, float(lower.min()), upper_bound, losses, list(cuts.values()), bounds.choice)


def _certify_costs(problem: Problem, lam: float, upper_bound: float, tol: float, penalty: RowPenalty) -> Certificate:
    """Certify ``f + lam * cost`` for units of different costs, whatever their number."""
    bounds = SizeBounds(problem, tol, penalty, lam)
    most = bounds.choice.n_units
    cuts = [bounds.solve(most).cut] if bounds.largest else []
    return conclude(problem, float(bounds.lower[most]), upper_bound, {most: upper_bound}, cuts, bounds.choice)


def conclude(
    problem: Problem,
    lower_bound: float,
    upper_bound: float,
    losses: dict[int, float],
    cuts: list[Cut | LinearCut],
    choice: Choice,
) -> Certificate:
    """Build the certificate.

    ``losses`` maps the sizes that a panel as good as ``upper_bound`` can have to its largest possible objective, of which
    ``cuts`` are the bounds.
    """
    margin = rounding_of(problem)
    if not upper_bound >= lower_bound - margin:
        raise ValueError(
            f"upper_bound={upper_bound:.9g} is below {lower_bound:.9g}, the lower bound of all supports. "
            "Compute it from a support with support_loss(problem, rows)."
        )
    is_in, is_out = np.tile(choice.is_free, (2, 1))
    for k, loss in losses.items():
        if k == choice.n_forced:
            is_in[:] = False  # the forced units alone contain none
            continue
        proofs = [prove(cut, k, loss + margin, choice) for cut in cuts]
        is_in &= np.any([are_in for are_in, _ in proofs], axis=0)
        is_out &= np.any([are_out for _, are_out in proofs], axis=0)
        if not is_in.any() and not is_out.any():
            break
    lower_bound = min(lower_bound, upper_bound)
    return Certificate(lower_bound, upper_bound, choice.features_of(is_in), choice.features_of(is_out), rounding=margin)


def prove(cut: Cut | LinearCut, k: int, loss: float, choice: Choice) -> tuple[Array, Array]:
    """Return masks of the free units in all, and in none, of the panels of at most k units that reach ``loss``.

    A unit is in if the panels without it are bounded above ``loss``, and out if those with it are.

    Examples
    --------
    >>> from l20fs.objective import make_problem
    >>> choice = Choice.of(make_problem(np.eye(3)[:, :2], np.eye(3)))
    >>> prove(Cut(product=4.0, energy=2.0, scores=np.array([1.0, 3.0])), 1, loss=1.5, choice=choice)
    (array([False,  True]), array([ True, False]))
    """
    is_free, forced = choice.is_free, choice.forced
    n_chosen, n_free = k - len(forced), int(np.count_nonzero(is_free))
    if not n_chosen:  # the forced units fill the panel
        return np.zeros_like(is_free), is_free.copy()
    scores = cut.scores[is_free]
    is_heavy = np.zeros(n_free, dtype=bool)
    is_heavy[np.argpartition(scores, max(0, n_free - n_chosen))[max(0, n_free - n_chosen) :]] = True
    is_heavy &= scores > 0.0
    load = cut.scores[forced].sum() + scores[is_heavy].sum()
    # A unit with a small score that is forced in replaces the least of n_chosen heavy ones, if there are so many; a heavy
    # one that is forced out is replaced by the largest score of the others.
    is_full = np.count_nonzero(is_heavy) >= n_chosen
    replaced = scores[is_heavy].min() if is_full else 0.0
    with_it = load + np.where(is_heavy, 0.0, scores - replaced)
    without_it = load - np.where(is_heavy, scores - max(0.0, scores[~is_heavy].max(initial=0.0)), 0.0)
    are_in, are_out = np.zeros((2, len(is_free)), dtype=bool)
    are_in[is_free], are_out[is_free] = cut.bound(without_it) > loss, cut.bound(with_it) > loss
    return are_in, are_out
