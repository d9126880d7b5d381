r"""Solvers that add, remove and exchange single rows, each time by what it really brings.

The homotopy of HIHT and AHIHT decides by the gradient, which ignores how rows overlap. Here every decision compares the
exact minima of the data term with and without a row (see :mod:`l20fs.solvers.panel`), and the objective ends far lower:

* :func:`forward` adds the best row again and again. The sets are nested: one run gives the ranking and f for every k.
* :func:`sbr` minimises f + lambda * (number of rows) by the single best replacement, an addition or a removal, and follows
  lambda downwards (Soussen, Idier, Brie and Duan 2011).
* :func:`swap` adds the best row, then exchanges rows while that lowers f, at every size.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from l20fs.path import SolutionPath, Stage
from l20fs.problem import LeastSquares
from l20fs.prox import squared_row_norms
from l20fs.solvers.homotopy import Callback
from l20fs.solvers.panel import Panel, best_of

#: An exchange must lower f by more than this share of its value at W = 0, so that rounding cannot turn in circles.
LEAST_DECREASE = 1e-11

#: A row that brings less than this share of f at W = 0 brings nothing but rounding.
NEGLIGIBLE = 1e-14


def forward(
    problem: LeastSquares, n_rows: int, *, target: float | None = None, callback: Callback | None = None
) -> SolutionPath:
    """Add the row that lowers f most, until there are ``n_rows`` or none brings anything.

    Stage k has the k rows added first. Its lambda is the one below which the k-th is worth its price, if that of the rows
    before it is paid; :meth:`SolutionPath.size_at` gives the best size for any lambda.

    Parameters
    ----------
    problem : LeastSquares
    n_rows : int
        Where the path ends; it may exceed the number of samples if the problem has a ridge term.
    target : float, optional
        lambda. The path ends when no row brings more than that, at the size that is best for it, whatever ``n_rows`` says.
    callback : callable, optional
        Called with the :class:`~l20fs.path.Stage` of every size.

    Examples
    --------
    >>> path = forward(LeastSquares(np.diag([1.0, 2.0, 3.0, 4.0])[:, :3], np.eye(4)), 3)
    >>> path.n_nonzero.tolist()
    [0, 1, 2, 3]
    """
    return _grow(problem, n_rows, target, callback, exchange_at=())


def swap(
    problem: LeastSquares,
    n_rows: int,
    *,
    target: float | None = None,
    sizes: Collection[int] | None = None,
    callback: Callback | None = None,
) -> SolutionPath:
    """Add the best row and exchange rows while that lowers f, at every size or only at the given ``sizes``.

    At such a size no exchange of one row for another lowers f further, and f is at most that of :func:`forward`; the sets of
    different sizes need not be nested. The other parameters are those of :func:`forward`.

    Examples
    --------
    >>> path = swap(LeastSquares(np.diag([1.0, 2.0, 3.0, 4.0])[:, :3], np.eye(4)), 2)
    >>> len(path.rows_at(2))
    2
    """
    exchange_at = range(1, problem.n_features) if sizes is None else sizes
    return _grow(problem, n_rows, target, callback, exchange_at, fallback=_grown(problem, n_rows, target))


def sbr(
    problem: LeastSquares, n_rows: int, *, target: float | None = None, callback: Callback | None = None
) -> SolutionPath:
    """Minimise f + lambda * (number of rows) by the single best replacement, for lambda from large to small.

    At each lambda the row is added or removed that lowers the objective most, until none does. The next lambda is the one at
    which the next row is worth its price, so that no stage is idle. The path ends at ``target``, or when there are
    ``n_rows`` rows. The parameters are those of :func:`forward`.

    Examples
    --------
    >>> path = sbr(LeastSquares(np.diag([1.0, 2.0, 3.0, 4.0])[:, :3], np.eye(4)), 3)
    >>> bool((np.diff(path.alphas) < 0.0).all())
    True
    """
    panel = Panel(problem)
    limit = min(n_rows, problem.n_features) if target is None else problem.n_features + 1
    alpha = float(panel.gains().max()) * (1.0 + 1e-6) or problem.null_loss
    stages: list[Stage] = []
    record(stages, stage_of(panel, alpha if target is None else max(alpha, target), n_steps=0), callback)
    while len(panel) < limit and alpha > (target or 0.0):
        # A little below what the next row brings, so that it is worth its price; never below what was asked for.
        alpha = max(float(panel.gains().max()) * (1.0 - 1e-6), target or 0.0)
        if alpha <= NEGLIGIBLE * problem.null_loss:
            break
        n_replaced = _replace(panel, alpha)
        if alpha == target:
            # An earlier stage may have more rows that are worth this lambda: what a larger one removed does not come back.
            best = min(stages, key=lambda stage: stage.loss + alpha * len(stage.rows))
            if best.loss + alpha * len(best.rows) < panel.loss + alpha * len(panel):
                panel = Panel(problem, best.rows)
                n_replaced += _replace(panel, alpha)
        record(stages, stage_of(panel, alpha, n_steps=n_replaced), callback)
    return path_of(panel, stages)


def _replace(panel: Panel, alpha: float) -> int:
    """Add or remove single rows while the objective falls; return how often."""
    n_replaced = 0
    while True:
        gains = panel.gains()
        row = best_of(gains, panel.problem.tie)
        position, rise = panel.cheapest_removal() if len(panel) else (-1, math.inf)
        by_adding, by_removing = gains[row] - alpha, alpha - rise
        if max(by_adding, by_removing) <= 1e-9 * alpha:
            return n_replaced
        if by_adding >= by_removing:
            panel.add(row)
        else:
            panel.remove(position)
        n_replaced += 1


def _grown(problem: LeastSquares, n_rows: int, target: float | None) -> Panel:
    """Add the best row again and again."""
    panel = Panel(problem)
    limit, least = growth_limits(problem, n_rows, target)
    while len(panel) < limit and panel.grow(limit - len(panel), least):
        pass
    return panel


def growth_limits(problem: LeastSquares, n_rows: int, target: float | None) -> tuple[int, float]:
    """Return how many rows there may be, and what one must bring."""
    limit = min(n_rows, problem.n_features) if target is None else problem.n_features
    return limit, max(target or 0.0, NEGLIGIBLE * problem.null_loss)


def _grow(
    problem: LeastSquares,
    n_rows: int,
    target: float | None,
    callback: Callback | None,
    exchange_at: Collection[int],
    fallback: Panel | None = None,
) -> SolutionPath:
    """Add rows one by one and exchange rows at some sizes; return to the fallback where that was better."""
    panel = Panel(problem)
    limit, least = growth_limits(problem, n_rows, target)
    alpha = float(panel.gains().max()) * (1.0 + 1e-6) or problem.null_loss
    stages: list[Stage] = []
    record(stages, stage_of(panel, alpha, n_steps=0), callback)
    while len(panel) < limit:
        first = len(panel)
        until_exchange = next((size for size in range(first + 1, limit) if size in exchange_at), limit)
        if not panel.grow(until_exchange - first, least):
            break
        grown = _stages_since(panel, first, stages[-1].alpha)
        if (size := len(panel)) in exchange_at:
            if fallback is not None and len(fallback) >= size and fallback.losses[size] < panel.loss:
                panel = Panel(problem, fallback.rows[:size])
            n_exchanged = exchange(panel)
            grown[-1] = stage_of(panel, grown[-1].alpha, n_steps=1 + n_exchanged)
        for stage in grown:
            record(stages, stage, callback)
    return path_of(panel, ended_at(stages, target))


def record(stages: list[Stage], stage: Stage, callback: Callback | None) -> None:
    """Append a stage and tell whoever listens."""
    stages.append(stage)
    if callback is not None:
        callback(stage)


def ended_at(stages: list[Stage], target: float | None) -> list[Stage]:
    """Return the stages with the last one at lambda = ``target``, if there is one.

    Each row has lowered f by more than ``target``, or it would not be there: of all stages the last is the best for it.
    """
    if target is None:
        return stages
    return [*(stage for stage in stages if stage.alpha > target), stages[-1]._replace(alpha=target)]


def exchange(panel: Panel) -> int:
    """Exchange one row for another while that lowers f, each time the best pair; return how often."""
    n_exchanged = 0
    while 0 < len(panel) < panel.problem.n_features:
        best = panel.best_exchange()
        if best.decrease <= LEAST_DECREASE * panel.problem.null_loss:
            break
        panel.remove(best.position)
        panel.add(best.row)
        n_exchanged += 1
    return n_exchanged


def _stages_since(panel: Panel, first: int, alpha: float) -> list[Stage]:
    """Describe every size above ``first`` of a panel that has grown; lambda starts from ``alpha`` and never rises."""
    rows, losses, basis = np.array(panel.rows, dtype=np.intp), panel.losses, panel.basis
    alphas = np.minimum.accumulate([alpha, *-np.diff(losses[first:])])[1:]
    # One row more adds to the weights a column of the inverse triangle times the target of that row.
    steps = basis.inverse[:, first:, None] * basis.targets[first:]
    if first:
        steps[:first, 0] += basis.weights(first).T
    norms = np.sqrt(np.square(np.cumsum(steps, axis=1)).sum(axis=2))
    ascending = np.argsort(rows)
    stages = []
    for number, size in enumerate(range(first + 1, len(panel) + 1)):
        chosen = ascending[ascending < size]
        stages.append(Stage(float(alphas[number]), rows[chosen], norms[chosen, number], losses[size]))
    return stages


def stage_of(panel: Panel, alpha: float, *, loss: float | None = None, n_steps: int = 1) -> Stage:
    """Describe the rows of the panel as the solution at a lambda."""
    rows = np.array(panel.rows, dtype=np.intp)
    norms = np.sqrt(squared_row_norms(panel.weights.T))
    order = np.argsort(rows)
    return Stage(alpha, rows[order], norms[order], panel.loss if loss is None else loss, n_steps=n_steps)


def path_of(panel: Panel, stages: list[Stage]) -> SolutionPath:
    """Assemble the path that ends with the rows of a panel, ranked by entry."""
    values = panel.weights[:, np.argsort(panel.rows)]
    return SolutionPath.from_stages(panel.problem, stages, values, panel.closeness()).ranked_by("entry")
