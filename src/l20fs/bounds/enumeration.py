"""Enumeration of all panels whose objective is near the best."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from l20fs.bounds.branch_and_bound import Root, find_best
from l20fs.bounds.relaxation import NEGLIGIBLE
from l20fs.objective.problem import Problem
from l20fs.objective.row_penalty import RowPenalty
from l20fs.typing import Array


@dataclass(frozen=True, eq=False)
class Enumeration:
    """Panels of k units whose loss is at most (1 + eps) times the smallest.

    Attributes
    ----------
    panels : array of shape (n_listed, k)
        Units of each panel, ascending; the best panel first.
    losses : array of shape (n_listed,)
        Losses of the panels.
    best_loss : float
        Smallest loss that was found.
    is_complete : bool
        Whether all panels within the limit were found; they are all listed if there are at most ``max_panels``.
    n_panels : int
        Number of panels within the limit that were found.
    counts : array of shape (n_units,)
        In how many of these each unit is.
    lower_bound : float
        Lower bound on the loss of all panels that are not listed.
    candidates : array
        Units that are not proved to be in none of the panels.
    n_nodes : int
        Number of nodes that were visited.
    """

    panels: Array
    losses: Array
    best_loss: float
    is_complete: bool
    n_panels: int
    counts: Array
    lower_bound: float
    candidates: Array
    n_nodes: int


class _Found:
    """Panels below a limit: the best ones, and how often each unit occurs in all."""

    def __init__(self, n_units: int, k: int, max_panels: int, rounding: float) -> None:
        self.max_panels, self.n_panels, self.rounding = max_panels, 0, rounding
        self.counts = np.zeros(n_units, dtype=np.int64)
        self.first_dropped = np.inf
        self._panels, self._losses = [np.empty((0, k), dtype=np.intp)], [np.empty(0)]
        self._n_stored = 0

    def add(self, panels: Array, losses: Array) -> None:
        self.n_panels += len(panels)
        self.counts += np.bincount(panels.ravel(), minlength=len(self.counts))
        self._panels.append(panels)
        self._losses.append(losses)
        self._n_stored += len(panels)
        if self._n_stored > 2 * self.max_panels:
            self.sorted()

    def sorted(self) -> tuple[Array, Array]:
        """Return the best panels, those with equal losses in the order of their units; forget the others."""
        panels, losses = np.sort(np.concatenate(self._panels), axis=1), np.concatenate(self._losses)
        order = np.lexsort((*panels.T[::-1], np.round(losses / self.rounding) if self.rounding else losses))
        kept, dropped = order[: self.max_panels], order[self.max_panels :]
        if len(dropped):
            self.first_dropped = min(self.first_dropped, float(losses[dropped[0]]))
        self._panels, self._losses, self._n_stored = [panels[kept]], [losses[kept]], len(kept)
        return panels[kept], losses[kept]


def enumerate_panels(
    problem: Problem,
    k: int,
    *,
    eps: float,
    penalty: RowPenalty | None = None,
    support: Array | None = None,
    max_panels: int = 100_000,
    time_limit: float | None = None,
    max_nodes: int | None = None,
) -> Enumeration:
    """Find all panels of k units whose loss is at most (1 + eps) times the smallest, by branch and bound.

    Losses that differ by rounding, 1e-9 of the loss without features, count as equal: with ``eps=0`` all panels are found
    that tie with the best.

    Parameters
    ----------
    problem : Problem
        The data term, with a ridge term.
    k : int
        Number of units of a panel: features, or groups of features.
    eps : float
        Largest relative distance from the smallest loss.
    penalty : RowPenalty, optional
        Units, what is included and excluded, and the rules that a panel must meet; costs do not count.
    support : array, optional
        Features of an initial solution; a good one saves nodes. One that is no panel of k units by the rules counts for
        nothing.
    max_panels : int
        Maximum number of panels to list; others are counted.
    time_limit : float, optional
        Maximum number of seconds.
    max_nodes : int, optional
        Maximum number of nodes to visit.

    Returns
    -------
    Enumeration
        The panels, best first, and what is proved about the others.

    Examples
    --------
    >>> from l20fs.objective import make_problem
    >>> X, Y = np.diag([1.0, 2.0, 2.0, 3.0]), np.eye(4)[:, [1, 2, 3]]
    >>> found = enumerate_panels(make_problem(X, Y, ridge=1.0), 2, eps=0.0)
    >>> found.panels.tolist(), found.is_complete
    ([[1, 3], [2, 3]], True)
    """
    start = time.monotonic()
    root = Root.of(problem, k, penalty)
    # The best panel first: the limit depends on it. Half of the time is kept for the others.
    half = None if time_limit is None else start + 0.5 * time_limit
    proof = find_best(root, support, tol=1e-6, max_nodes=max_nodes, deadline=half)
    best = proof.best

    def limit() -> float:
        return (1.0 + eps) * best.loss + NEGLIGIBLE * problem.null_loss

    condensed = root.condensed(limit())
    found = _Found(condensed.n_units, root.k, max_panels, 0.1 * NEGLIGIBLE * problem.null_loss)

    def collect(panels: Array, losses: Array) -> None:
        for number in np.flatnonzero(np.abs(losses - limit()) <= condensed.rounding):
            losses[number] = best.objective(condensed.units[panels[number]])
        lowest = int(np.argmin(losses))
        if losses[lowest] < best.loss:
            best.offer(condensed.units[panels[lowest]])
        is_near = losses <= limit()
        if is_near.any():
            found.add(panels[is_near], losses[is_near])

    search, first = root.search(condensed, target=lambda: np.nextafter(limit(), np.inf), collect=collect)
    left = None if max_nodes is None else max(0, max_nodes - proof.n_nodes)
    search.run(first, max_nodes=left, deadline=None if time_limit is None else start + time_limit)
    panels, losses = found.sorted()
    place = np.searchsorted(condensed.units, best.units)
    if not search.is_complete and len(place) == root.k and not (panels == place).all(axis=1).any():
        found.add(place[None], np.array([best.loss]))  # the search was stopped before it came there
        panels, losses = found.sorted()
    is_near = losses <= limit()
    n_panels, counts = found.n_panels, found.counts
    if not is_near.all():  # the best panel was not known at first
        panels, losses = panels[is_near], losses[is_near]
        n_panels, counts = len(panels), np.bincount(panels.ravel(), minlength=len(counts))
    every = np.zeros(root.choice.n_units, dtype=np.int64)
    every[condensed.units] = counts
    return Enumeration(
        panels=condensed.units[panels],
        losses=losses,
        best_loss=best.loss,
        is_complete=search.is_complete,
        n_panels=n_panels,
        counts=every,
        lower_bound=min(search.lower_bound, found.first_dropped - condensed.rounding, limit()),
        candidates=condensed.units,
        n_nodes=proof.n_nodes + search.n_nodes,
    )
