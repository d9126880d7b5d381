r"""Panels that survive: greedy selection and exchange by the loss that is left when the worst unit fails.

A unit (a feature, or a group) *fails* if it cannot be measured. Of all panels S of k units the one is wanted whose loss
without its worst unit,

.. math:: r(S) = \max_{i \in S} h(S \setminus i),

is smallest, and of those with equal r the one with the smallest h. One more unit never raises r, nor h.
:mod:`l20fs.solvers.active_sets.failures` has both for all panels one change away, from one pass over X.

Only one failure is considered: two of k units fail in k (k - 1) / 2 ways, and an exchange would have to judge the cube of k.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath
from l20fs.objective.stage import Stage
from l20fs.solvers.active_sets import make_failure_set
from l20fs.solvers.active_sets.failures import Changes, FailureRows
from l20fs.solvers.active_sets.rows import NEGLIGIBLE
from l20fs.solvers.base import Callback
from l20fs.solvers.greedy import first_alpha, path_of, record, stage_of, swap
from l20fs.typing import Array


class Change(NamedTuple):
    """Take the unit at ``position`` out (none if it is -1), put ``unit`` in: then r is ``worst`` and h is ``loss``."""

    position: int
    unit: int
    worst: float
    loss: float


def worst_case(
    problem: LeastSquares,
    n_rows: int,
    *,
    with_exchanges: bool = False,
    target: float | None = None,
    callback: Callback | None = None,
    penalty: RowPenalty | None = None,
) -> SolutionPath:
    """Add the unit that leaves the smallest r, and optionally exchange units while that lowers r, at every size.

    With exchanges r is at most that without them and that of :func:`~l20fs.solvers.greedy.swap`, and no exchange of one unit
    for another lowers it, nor h where r stays, by more than 1e-9 of f at W = 0 (5e-7 if X is float32).

    Parameters
    ----------
    problem : LeastSquares
        The data term. Without a ridge term exact copies of selected columns cannot enter, although they would protect them.
    n_rows : int
        Number of non-zero rows, or units of rows, at which the path ends.
    with_exchanges : bool, default=False
        Whether units are exchanged at every size.
    target : None
        Not available: lambda weighs h, by which nothing is chosen here.
    callback : callable or None, default=None
        Called with the :class:`~l20fs.objective.stage.Stage` of every size.
    penalty : RowPenalty or None, default=None
        What is included, excluded or grouped; included units may fail, too. Units with other costs, and rules, are not
        available.

    Returns
    -------
    SolutionPath
        One stage per size, ranked by entry; the losses are h, with all units measured.

    Examples
    --------
    >>> X = np.diag([1.0, 2.0, 3.0, 4.0])[:, :3]
    >>> worst_case(LeastSquares(X, np.eye(4), ridge=0.1), 2).n_nonzero.tolist()
    [0, 1, 2]
    """
    penalty = penalty or RowPenalty.plain(problem.n_features)
    _refuse(problem, penalty, target)
    active = make_failure_set(problem, (), penalty)
    limit = min(n_rows, penalty.n_units)
    starts = _starts(problem, limit, penalty) if with_exchanges else {}
    alpha = first_alpha(active)
    stages: list[Stage] = []
    record(stages, stage_of(active, alpha, n_steps=0), callback)
    while active.size < limit and _grow(active):
        before = active.losses[active.n_rows_at(len(active) - 1)]
        alpha = min(alpha, (before - active.loss) / float(active.unit_costs[-1]))
        n_exchanged = 0
        if with_exchanges:
            others = (make_failure_set(problem, units, penalty) for units in starts.get(active.size, ()))
            active = min((active, *others), key=FailureRows.worst_loss)
            n_exchanged = exchange_for_failures(active)
        record(stages, stage_of(active, alpha, n_steps=1 + n_exchanged), callback)
    return path_of(active, stages)


def _refuse(problem: LeastSquares, penalty: RowPenalty, target: float | None) -> None:
    """Raise an error for what has no meaning beside r, which counts units."""
    n_members = np.bincount(penalty.unit_of, weights=problem.design.varies)
    is_given = {
        "alpha": target is not None,
        "penalty_factor": not np.isin(penalty.costs, (0.0, np.inf))[penalty.costs != n_members].all(),
        "constraints": penalty.rules is not None,
    }
    for name, value in is_given.items():
        if value:
            raise ValueError(
                f"robust_to=1 with {name} is not available: the loss when the worst feature fails is compared at a given "
                f"number of features, all at one price. Leave {name} out (include, exclude and feature_groups are "
                "available), or use robust_to=0."
            )


def _grow(active: FailureRows) -> bool:
    """Add the best unit, if one brings anything at all."""
    change = best_change(active, exchange=False)
    if change is None:
        return False
    active.add(change.unit)
    return True


def _starts(problem: LeastSquares, limit: int, penalty: RowPenalty) -> dict[int, list[Array]]:
    """Return panels of every size from which exchanges may start: those without exchanges, and those of least h."""
    starts: dict[int, list[Array]] = {}
    for path in (worst_case(problem, limit, penalty=penalty), swap(problem, limit, penalty=penalty)):
        for stage, size in enumerate(path.sizes.tolist()):
            starts.setdefault(size, []).append(np.unique(penalty.unit_of[path.stage_rows(stage)]))
    return starts


def exchange_for_failures(active: FailureRows) -> int:
    """Exchange the best pair of units while that lowers r, or h where r stays; return the number of exchanges.

    An exchange that does not keep its promise, or leads to a set that was there before, is taken back, and is the last.
    """
    slack = active.problem.tie * active.problem.null_loss
    worst, loss = active.worst_loss(), active.loss
    seen = {frozenset(active.units)}
    while active.n_fixed < len(active) < active.penalty.n_units:
        change = best_change(active, exchange=True)
        if change is None:
            break
        left = active.units[change.position]
        active.remove(change.position)
        active.add(change.unit)
        before, worst, loss = (worst, loss), active.worst_loss(), active.loss
        is_lower = worst < before[0] - slack or (worst <= before[0] + slack and loss < before[1])
        if not is_lower or frozenset(active.units) in seen:
            active.remove(len(active) - 1)
            active.add(left)
            break
        seen.add(frozenset(active.units))
    return len(seen) - 1


def best_change(active: FailureRows, *, exchange: bool) -> Change | None:
    """Return the exchange, or the addition, that leaves the smallest r, and of equal ones the smallest h.

    Of panels that are equal in both the one with the lowest unit that enters counts, then that with the highest unit that
    leaves. None if neither r nor h falls.
    """
    now = Change(-1, -1, active.worst_loss(), active.loss)
    slack, nothing = (share * active.problem.null_loss for share in (active.problem.tie, NEGLIGIBLE))
    best = now if exchange else Change(-1, -1, math.inf, math.inf)
    for changes in active.changes(exchange=exchange, most=best.worst + slack):
        best = _better_of(active, best, changes, slack)
    falls = best.worst < now.worst - nothing or best.loss < now.loss - nothing
    return best if falls and best.unit >= 0 else None


def _better_of(active: FailureRows, best: Change, changes: Changes, slack: float) -> Change:
    """Return the best of some changes, if that is better than the best so far."""
    lowest = float(changes.worst.min(initial=math.inf))
    is_lower = lowest < best.worst - slack
    losses = np.where(changes.worst <= (lowest if is_lower else best.worst) + slack, changes.losses, math.inf)
    least = float(losses.min(initial=math.inf))
    if least == math.inf or not (is_lower or least < best.loss - slack):
        return best
    lines, places = np.nonzero(losses <= least + slack)
    place = int(places.min())
    line = max(lines[places == place], key=lambda equal: active.units[changes.positions[equal]] if len(active) else 0)
    return Change(
        int(changes.positions[line]),
        int(changes.units[place]),
        float(changes.worst[line, place]),
        float(changes.losses[line, place]),
    )
