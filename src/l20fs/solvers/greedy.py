r"""Greedy solvers: forward selection and exchange of units.

The homotopy of HIHT and AHIHT decides by the gradient, which ignores how rows overlap. Here every decision compares the
exact minima of the data term with and without a row (:mod:`l20fs.solvers.active_set`), and the objective ends far lower:

* :func:`forward` adds the best row again and again. The sets are nested: one run gives the ranking and f for every k.
* :func:`swap` adds the best row, then exchanges rows while that lowers f, at every size.

Where units of rows have costs (:mod:`l20fs.objective.row_penalty`), the best to add is the one that brings most per cost,
which is the first to be worth its price as lambda falls; everything else is judged by f + lambda * cost.

Under rules (:mod:`l20fs.objective.panel_rules`) a path first fills the lower limits by the best units that belong to a panel
of the least size, and keeps all limits from there on: a unit enters if the panel can still be completed
(:mod:`l20fs.objective.panel_completion`), and is exchanged if the panel after it meets the rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from l20fs.design.driver import Walk
from l20fs.objective.panel_completion import Admission, completion_of
from l20fs.objective.problem import Problem
from l20fs.objective.prox import squared_row_norms
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath
from l20fs.objective.stage import Stage
from l20fs.solvers.active_set import NEGLIGIBLE, ActiveSet
from l20fs.solvers.groups import make_active_set

#: An exchange must promise to lower f by more than this share of its value at W = 0: less may be rounding.
LEAST_DECREASE = {np.dtype(np.float64): 1e-11, np.dtype(np.float32): 5e-9}


def forward(
    problem: Problem,
    n_rows: int,
    *,
    penalty: RowPenalty | None = None,
) -> Walk[SolutionPath]:
    """Add the row that lowers f most, until there are ``n_rows`` or none lowers it.

    Stage k has the k rows added first. Its lambda is the one below which the k-th is worth its price, if that of the rows
    before it is paid; :meth:`SolutionPath.size_at` gives the best size for any lambda.

    Parameters
    ----------
    problem : Problem
        The data term.
    n_rows : int
        Number of units at which the path ends; it may exceed the number of samples if the problem has a ridge term.
    penalty : RowPenalty or None, default=None
        Costs of the rows, one by one or in groups; each of them 1 by default. The first stage has the included units.

    Returns
    -------
    SolutionPath
        One stage per size, ranked by entry.

    Examples
    --------
    >>> from l20fs.design import finish
    >>> from l20fs.objective import make_problem
    >>> path = finish(forward(make_problem(np.diag([1.0, 2.0, 3.0, 4.0])[:, :3], np.eye(4)), 3))
    >>> path.n_nonzero.tolist()
    [0, 1, 2, 3]
    """
    active = yield from _set_of(problem, penalty)
    active.admission = admission_of(active, n_rows)
    limit, least = min(n_rows, active.penalty.n_units), least_merit(active)
    stages = [stage_of(active, first_alpha(active), n_steps=0)]
    while active.size < limit:
        n_before = len(active)
        if not (yield from active.grow(limit - active.size, least)):
            break
        stages += _stages_since(active, n_before, stages[-1].alpha)
    return path_of(active, stages)


def swap(
    problem: Problem,
    n_rows: int,
    *,
    sizes: Collection[int] | None = None,
    penalty: RowPenalty | None = None,
) -> Walk[SolutionPath]:
    """Add the best row and exchange rows while that lowers f, at every size or only at the given ``sizes``.

    At such a size no exchange of one row for another lowers f further, and f is at most that of :func:`forward`; the sets of
    different sizes need not be nested. Where costs differ, this holds for f + lambda * cost at the lambda of the stage.

    It holds up to 1e-9 of f at W = 0, or 1e-6 if X is float32, as long as columns that are nearly linear combinations of
    others differ from these by 1e-6 of their length. Only a column of which the selected ones leave less than 1e-10 of its
    length, or less than 16 units in the last place of its values as stored (2e-6 of its length in float32, more where its
    mean is large), counts as dependent and does not enter without a ridge: it may be a combination that was rounded.

    Parameters
    ----------
    problem : Problem
        The data term.
    n_rows : int
        Number of non-zero rows, or units of rows, at which the path ends.
    sizes : collection of int or None, default=None
        Numbers of units at which rows are exchanged; None: every size.
    penalty : RowPenalty or None, default=None
        Costs of the rows, one by one or in groups; each of them 1 by default.

    Returns
    -------
    SolutionPath
        One stage per size, ranked by entry.

    Examples
    --------
    >>> from l20fs.design import finish
    >>> from l20fs.objective import make_problem
    >>> path = finish(swap(make_problem(np.diag([1.0, 2.0, 3.0, 4.0])[:, :3], np.eye(4)), 2))
    >>> len(path.rows_at(2))
    2
    """
    exchange_at = range(1, problem.n_features) if sizes is None else sizes
    active = yield from _set_of(problem, penalty)
    active.admission = admission_of(active, n_rows)
    fallback: ActiveSet | None = None  # grows without exchanges; the same as the active set before the first of them
    limit, least = min(n_rows, active.penalty.n_units), least_merit(active)
    stages = [stage_of(active, first_alpha(active), n_steps=0)]
    while active.size < limit:
        n_before, first = len(active), active.size
        until_exchange = next((size for size in range(first + 1, limit) if size in exchange_at), limit)
        if (yield from active.grow(until_exchange - first, least)):
            grown = _stages_since(active, n_before, stages[-1].alpha)
        elif active.admission is not None and fallback is not None and len(fallback) > n_before:
            # Exchanges have used up what the rules allow; the units that were added first leave room for more.
            active = yield from _set_like(fallback, fallback.units[: n_before + 1])
            grown = [stage_of(active, stages[-1].alpha)]
        else:
            break
        if active.size in exchange_at:
            alpha = grown[-1].alpha
            if fallback is not None:
                active = yield from _better(active, fallback, alpha)
            units, admission = list(active.units), active.admission and active.admission.copy()
            n_exchanged = yield from exchange(active, alpha)
            grown[-1] = stage_of(active, alpha, n_steps=1 + n_exchanged)
            if fallback is None and units != active.units and active.size < limit:
                fallback = yield from _set_like(active, units)
                fallback.admission = admission
                while fallback.size < limit and (yield from fallback.grow(limit - fallback.size, least)):
                    pass
        stages += grown
        if active.size <= first:  # rounding has not let a unit come back that was exchanged on trial
            break
    return path_of(active, stages)


def first_alpha(active: ActiveSet) -> float:
    """Return a lambda at which no unit enters."""
    return active.best_merit() * (1.0 + 1e-6) or active.problem.null_loss


def least_merit(active: ActiveSet) -> float:
    """Return the merit below which there is nothing but rounding; where costs differ, the active set knows by itself."""
    return NEGLIGIBLE * active.problem.null_loss if active.penalty.is_even else 0.0


def _better(active: ActiveSet, fallback: ActiveSet, alpha: float) -> Walk[ActiveSet]:
    """Return the active set, or the units that were added first where these are better."""
    n_units = len(active)
    if len(fallback) >= n_units and fallback.objective_at(n_units, alpha) < active.objective(alpha):
        return (yield from _set_like(fallback, fallback.units[:n_units]))
    return active


def _set_of(problem: Problem, penalty: RowPenalty | None, units: Iterable[int] = ()) -> Walk[ActiveSet]:
    active = make_active_set(problem, penalty)
    yield from active.start(units)
    return active


def _set_like(other: ActiveSet, units: Iterable[int]) -> Walk[ActiveSet]:
    """Return an active set of other units, under the same rules."""
    active = yield from _set_of(other.problem, other.penalty, units)
    active.admission = other.admission and other.admission.copy()
    return active


def admission_of(active: ActiveSet, n_rows: int) -> Admission | None:
    """Return the units that may enter a panel under the rules of an active set; None if there are no rules.

    Raises an error if no panel meets them.
    """
    penalty, rules = active.penalty, active.penalty.rules
    if rules is None:
        return None
    size = n_rows if rules.size is None else min(n_rows, rules.size)
    return Admission(rules, completion_of(penalty, active.problem.design.varies, size))


def exchange(active: ActiveSet, alpha: float = 0.0) -> Walk[int]:
    """Exchange the best pair of units while that lowers f + alpha * cost; return the number of exchanges.

    What an exchange promises comes from products in the precision of X, and what it brings from columns in float64. One that
    does not keep its promise, or leads to a set that was there before, is taken back, and is the last: nothing can turn in
    circles.
    """
    least = LEAST_DECREASE[active.problem.dtype] * active.problem.null_loss
    n_exchanged, objective = 0, active.objective(alpha)
    seen = {frozenset(active.units)}
    while active.n_fixed < len(active) < active.penalty.n_units:
        best = yield from active.best_exchange(alpha)
        if best.decrease <= least:
            break
        left = active.units[best.position]
        yield from active.remove(best.position)
        n_left = len(active)
        yield from active.add(best.unit)
        before, objective = objective, active.objective(alpha)
        if objective >= before or frozenset(active.units) in seen:
            if len(active) > n_left:  # a unit that turns out to depend on others has not entered
                yield from active.remove(n_left)
            yield from active.add(left)
            break
        seen.add(frozenset(active.units))
        n_exchanged += 1
    return n_exchanged


def _stages_since(active: ActiveSet, first: int, alpha: float) -> list[Stage]:
    """Describe the active set after each unit from ``first`` on; lambda starts from ``alpha`` and never rises."""
    rows, costs = np.array(active.rows, dtype=np.intp), active.unit_costs
    ends = [active.n_rows_at(n_units) for n_units in range(first, len(active) + 1)]
    losses = np.array(active.losses)[ends]
    alphas = np.minimum.accumulate([alpha, *-np.diff(losses) / costs[first:]])[1:]
    n_before = ends[0]
    norms = active.weight_norms(n_before)
    ascending = np.argsort(rows)
    total_costs = np.cumsum(costs)[first:]
    stages = []
    for end, stage_alpha, loss, cost in zip(ends[1:], alphas, losses[1:], total_costs, strict=True):
        chosen = ascending[ascending < end]
        norms_there = norms[chosen, end - n_before - 1]
        stages.append(Stage(float(stage_alpha), rows[chosen], norms_there, float(loss), cost=float(cost)))
    return stages


def stage_of(active: ActiveSet, alpha: float, *, n_steps: int = 1) -> Stage:
    """Describe the rows of the active set as the solution at a lambda."""
    rows = np.array(active.rows, dtype=np.intp)
    norms = np.sqrt(squared_row_norms(active.weights().T))
    order = np.argsort(rows)
    return Stage(alpha, rows[order], norms[order], active.loss, n_steps=n_steps, cost=active.cost)


def path_of(active: ActiveSet, stages: list[Stage]) -> SolutionPath:
    """Assemble the path that ends with the rows of an active set, ranked by entry."""
    values = active.weights()[:, np.argsort(active.rows)]
    path = SolutionPath.from_stages(active.problem, stages, values, active.closeness(), active.penalty)
    path = path.ranked_by("entry")
    return path if active.admission is None else path.under(active.admission.rules, n_whole=active.admission.n_whole)
