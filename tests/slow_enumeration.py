"""Slow twin of the enumeration of near-optimal panels: one node after the other, each with a relaxation of its own."""

from __future__ import annotations

import heapq
import math
import time

import numpy as np

from l20fs.bounds.certificate import check_size, least_loss, support_loss
from l20fs.bounds.enumeration import Enumeration
from l20fs.bounds.relaxation import NEGLIGIBLE, NO_ROWS, relax
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty
from l20fs.typing import Array


def enumerate_panels(  # noqa: C901, PLR0915
    problem: LeastSquares,
    k: int,
    *,
    eps: float,
    penalty: RowPenalty | None = None,
    support: Array | None = None,
    max_panels: int = 100_000,
    time_limit: float | None = None,
) -> Enumeration:
    """List all panels of k units whose loss is at most ``1 + eps`` times that of the best; support are features."""
    check_size(problem, k)
    penalty = penalty or RowPenalty.plain(problem.n_features)
    deadline = math.inf if time_limit is None else time.monotonic() + time_limit
    free = np.unique(penalty.unit_of[penalty.may_enter(problem.design.varies)])
    free = np.setdiff1d(free, penalty.included)
    k = min(k, len(free) + len(penalty.included))
    found: dict[tuple[int, ...], float] = {}
    margin = NEGLIGIBLE * problem.null_loss
    best = math.inf

    def rows_of(units: Array) -> Array:
        return np.sort(np.concatenate([penalty.members[unit] for unit in units])) if len(units) else NO_ROWS

    def offer(units: Array) -> None:
        nonlocal best
        if len(units) == k and (penalty.rules is None or penalty.rules.allows(units)):
            loss = support_loss(problem, rows_of(units))
            found[tuple(sorted(units.tolist()))] = loss
            best = min(best, loss)

    if support is not None:
        offer(np.unique(penalty.unit_of[support]))
    n_nodes, closed = 0, math.inf
    heap = [(0.0, 0, penalty.included.astype(np.intp), free, NO_ROWS)]
    ticket = 1
    while heap and heap[0][0] <= (1.0 + eps) * best + margin and time.monotonic() < deadline:
        bound, _, forced, open_units, start = heapq.heappop(heap)
        n_nodes += 1
        n_chosen = k - len(forced)
        if n_chosen == 0 or len(open_units) <= n_chosen:
            offer(np.concatenate([forced, open_units[:n_chosen]]))
            continue
        pick = open_units[0]
        if penalty.has_groups:
            bound = max(bound, least_loss(problem, rows_of(np.concatenate([forced, open_units]))))
        else:
            is_free = np.zeros(problem.n_features, dtype=bool)
            is_free[open_units] = True
            varying = forced[problem.design.varies[forced]]
            start = np.union1d(start[is_free[start]], open_units[: n_chosen + 32])
            for relaxed in relax(problem, len(varying) + n_chosen, start=start, tol=1e-4, forced=varying, is_free=is_free):
                bound = max(bound, relaxed.bound)
                if bound > (1.0 + eps) * best + margin:
                    break
            start = relaxed.rows
            shares = np.argsort(relaxed.shares)[::-1]
            if len(shares) >= n_chosen:
                offer(np.concatenate([forced, relaxed.rows[shares[:n_chosen]]]))
            pick = relaxed.rows[np.argmin(np.abs(relaxed.shares - 0.5))]
        if bound > (1.0 + eps) * best + margin:
            closed = min(closed, bound)
            continue
        others = open_units[open_units != pick]
        heapq.heappush(heap, (bound, ticket, np.append(forced, pick), others, start))
        heapq.heappush(heap, (bound, ticket + 1, forced, others, start))
        ticket += 2
    is_complete = not heap or heap[0][0] > (1.0 + eps) * best + margin
    limit = (1.0 + eps) * best + margin
    kept = sorted((loss, units) for units, loss in found.items() if loss <= limit)
    counts = np.bincount(np.array([units for _, units in kept], dtype=np.intp).ravel(), minlength=penalty.n_units)
    lower = limit if is_complete else heap[0][0]
    if len(kept) > max_panels:
        lower = min(lower, kept[max_panels][0])
    candidates = np.flatnonzero(counts) if is_complete else np.concatenate([penalty.included, free])
    return Enumeration(
        panels=np.array([units for _, units in kept[:max_panels]], dtype=np.intp).reshape(-1, k),
        losses=np.array([loss for loss, _ in kept[:max_panels]]),
        best_loss=best,
        is_complete=is_complete,
        n_nodes=n_nodes,
        lower_bound=lower,
        candidates=candidates,
        n_panels=len(kept),
        counts=counts,
    )
