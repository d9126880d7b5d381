r"""Condensed problem: the units that may still be in a panel, with their columns alone.

A relaxation proves of most features that they are in none of the panels of interest. On the few that are left the loss of a
panel is, up to a constant, that of a small problem: the columns themselves, or the triangle of their QR factorisation where
there are more samples. Branch and bound then never reads X again, wherever X is.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from l20fs.bounds.cuts import EPS, storage_errors, target_storage_error
from l20fs.bounds.polytope import top_sums
from l20fs.bounds.shares import Relaxations, Shares, eliminate, solve_shares
from l20fs.objective.panel_rules import PanelRules
from l20fs.objective.problem import Problem
from l20fs.objective.row_penalty import RowPenalty
from l20fs.typing import Array

#: Share of even shares in a start from those of a similar node, whose multipliers are nearer to the end by this factor: with
#: them an average node takes 4 steps instead of 6.5.
EVEN_SHARE, NEARER = 0.05, 0.1

#: Limits are loosened by this share, so that rules that leave a single choice have an interior.
LOOSE = 1e-7


class NodeBounds(NamedTuple):
    """Bounds of nodes, one per node.

    Attributes
    ----------
    bounds : array of shape (n_nodes,)
        Lower bounds on the objective of all panels of a node.
    adjusted : array of shape (n_nodes, n_units)
        Scores of the units less their prices and what they use of the rules; minus infinity for units that are not free.
    room : array of shape (n_nodes,)
        Increase of the load that a proof allows: a change of the load by less than this keeps the bound above the target.
    places : array of shape (n_nodes, size)
        Units of the working sets, padded with the number of units.
    shares : Shares
        Solutions on the working sets.
    nodes : Relaxations
    """

    bounds: Array
    adjusted: Array
    room: Array
    places: Array
    shares: Shares
    nodes: Relaxations


class Condensed:
    """Problem on candidate units.

    Parameters
    ----------
    problem : Problem
        With a ridge term.
    penalty : RowPenalty
        Units of features and their costs; its rules hold for the panels.
    units : array
        Candidates, ascending.
    price : float
        Price of a unit of cost.

    Attributes
    ----------
    places : array of shape (n_units,)
        Positions of the units among those of the first problem; see :meth:`among`.
    lines : array of shape (n_units + 1, n_members, n)
        Columns of the members of each unit, padded with zeros; the last unit is all padding.
    norms, errors : arrays of shape (n_units + 1, n_members)
        Their lengths, and upper bounds on the rounding errors of the columns as they are stored.
    targets : array of shape (n_targets, n)
    constant : float
        Loss that no candidate can explain.
    slack, rounding : float
        Upper bounds on the rounding errors of the condensed problem, and of the losses that are computed from it.
    """

    def __init__(self, problem: Problem, penalty: RowPenalty, units: Array, price: float = 0.0) -> None:
        varies = problem.design.varies
        rows = penalty.rows_of(units)
        rows = rows[varies[rows]]
        nothing = np.zeros((0, 1)), np.zeros((problem.n_targets, 1))
        columns, targets = problem.condensed(rows) if len(rows) else nothing
        self.targets: Array = targets
        owner = np.searchsorted(units, penalty.unit_of[rows])
        place = np.arange(len(rows)) - np.searchsorted(owner, owner)
        shape = (len(units) + 1, int(place.max(initial=0)) + 1)
        self.units, self.n_units, self.places = units, len(units), np.arange(len(units))
        self.lines = np.zeros((*shape, columns.shape[1]))
        self.lines[owner, place] = columns
        self.ridge, self.null_loss = problem.ridge, problem.null_loss
        explained = 0.5 * float(np.vdot(self.targets, self.targets))
        is_whole = self.targets is problem.targets
        self.constant = 0.0 if is_whole else problem.null_loss - explained
        self.prices = price * np.append(penalty.prices[units], 0.0)
        rules = (penalty.rules or PanelRules.none(penalty.n_units)).among(units)
        self.rules = np.hstack([rules.weights.toarray(), np.zeros((rules.n_rules, 1))])
        self.lower, self.upper = rules.lower, rules.upper
        # All limits of a panel as largest sums: of the number of units, of the rules, and of minus the rules.
        self._has_upper, self._has_lower = np.isfinite(self.upper), self.lower > 0.0
        count = np.append(np.ones(self.n_units), 0.0)[None]
        self._limited = np.concatenate([count, self.rules[self._has_upper], -self.rules[self._has_lower]])
        self.norms, self.errors = np.zeros(self.lines.shape[:2]), np.zeros(self.lines.shape[:2])
        self.norms[owner, place] = np.sqrt(problem.design.column_energy[rows])
        self.errors[owner, place] = storage_errors(problem.design)[rows]
        self.target_error = target_storage_error(problem)
        self.slack = 0.0 if is_whole else self._slack(len(rows) + problem.n_targets)
        self.rounding = 16.0 * (self.lines.shape[2] + self.n_units) * EPS * (1.0 + self._reach()) * self.null_loss

    def among(self, places: Array) -> Condensed:
        """Return the problem on some of the units, ascending, and on fewer samples where they have fewer members.

        Of thousands of candidates, the nodes of a search that are bounded together leave a few dozen after some branches.

        Examples
        --------
        >>> from l20fs.objective import make_problem
        >>> problem = make_problem(np.eye(5)[:, :4], np.eye(5), ridge=1.0)
        >>> whole = Condensed(problem, RowPenalty.plain(4), np.arange(4))
        >>> part = whole.among(np.array([1, 3]))
        >>> part.units, np.allclose(part.losses(np.array([[0, 1]])), whole.losses(np.array([[1, 3]])))
        (array([1, 3]), True)
        """
        part, kept = copy(self), np.append(places, self.n_units)
        part.units, part.n_units, part.places = self.units[places], len(places), self.places[places]
        part.lines, part.norms, part.errors = self.lines[kept], self.norms[kept], self.errors[kept]
        part.prices, part.rules, part._limited = self.prices[kept], self.rules[:, kept], self._limited[:, kept]
        n_rows, n_targets = len(places) * self.lines.shape[1], len(self.targets)
        if self.lines.shape[2] > n_rows + n_targets:
            columns = part.lines[:-1].reshape(n_rows, -1).T
            triangle = np.asarray(np.linalg.qr(np.hstack([columns, self.targets.T]), mode="r"))[:n_rows]
            part.lines = np.zeros((*part.lines.shape[:2], n_rows))
            part.lines[:-1] = triangle[:, :n_rows].T.reshape(part.lines[:-1].shape)
            part.targets = triangle[:, n_rows:].T
            explained = [0.5 * float(np.vdot(targets, targets)) for targets in (self.targets, part.targets)]
            part.constant = self.constant + explained[0] - explained[1]
            part.slack = self.slack + part._slack(n_rows + n_targets)
        return part

    def _reach(self) -> float:
        """Return the largest squared length of the columns of all units together, in units of the ridge."""
        return float(np.square(self.norms).sum(axis=1).max(initial=0.0)) * self.n_units / self.ridge

    def _slack(self, n_terms: int) -> float:
        """Return an upper bound on the error of the losses by the rounding of a factorisation of the columns.

        It rounds each column by so much of its length, and weights are at most the root of 2 * null_loss / ridge long.
        """
        rounding, reach = 16.0 * (n_terms + 8) * EPS, self._reach()
        return rounding * self.null_loss * (4.0 + 2.0 * np.sqrt(reach) + reach)

    def losses(self, panels: Array) -> Array:
        """Return the losses of panels with the same number of units, (n_panels, size)."""
        n_panels, size = panels.shape
        width = size * self.lines.shape[1]
        lines = self.lines[panels].reshape(n_panels, width, self.lines.shape[2])
        gram = lines @ lines.mT
        gram += self.ridge * np.eye(width)
        moments = lines @ self.targets.T
        return self.null_loss - 0.5 * np.einsum("nrt,nrt->n", moments, np.linalg.solve(gram, moments))

    def bound(self, states: Array, working: Array, shares: Array, k: int, *, tol: float, target: float) -> NodeBounds:
        """Bound the objective of the panels of nodes from below.

        Parameters
        ----------
        states : int array of shape (n_nodes, n_units)
            1 for a unit that is in all panels of the node, -1 for one in none, 0 for a free one.
        working : mask of shape (n_nodes, n_units)
            Working sets: free units that matter.
        shares : array of shape (n_nodes, n_units)
            Shares of these units in a similar node; zeros where there is none.
        k : int
            Largest number of units of a panel.
        tol, target : float
            As in :func:`~l20fs.bounds.shares.solve_shares`.
        """
        is_forced, is_free = states == 1, states == 0
        n_chosen, n_nodes = k - is_forced.sum(axis=1), len(states)
        forced, places = pad(is_forced), pad(working, least=1)
        _, group, n = self.lines.shape
        lines = self.lines[np.hstack([forced, places])].reshape(n_nodes, -1, n)
        products = lines @ lines.mT, self.targets @ lines.mT, np.full(n_nodes, self.null_loss)
        gram, moments, null_loss, completed = eliminate(*products, self.ridge, forced.shape[1] * group)

        sums = is_forced @ self.rules[:, :-1].T
        given = [n_chosen[:, None], (self.upper - sums)[:, self._has_upper], (sums - self.lower)[:, self._has_lower]]
        limits = np.concatenate(given, axis=1)
        weights = np.moveaxis(self._limited[:, places], 0, 1)
        weights[:, 0] = 1.0  # padding counts: it brings nothing
        loose, ends = limits + LOOSE * (1.0 + np.abs(limits)), (np.zeros(limits.shape), np.full(limits.shape, np.inf))
        sizes = None if group == 1 else np.full(places.shape[1], group)
        nodes = Relaxations(self.ridge, sizes, gram, moments, null_loss, self.prices[places], weights, loose, *ends)

        near = np.take_along_axis(np.pad(shares, ((0, 0), (0, 1))), places, axis=1)
        even = np.minimum(0.95 * n_chosen / places.shape[1], 0.5)[:, None]
        is_warm = near.any(axis=1, keepdims=True)
        z = np.where(is_warm, EVEN_SHARE * even + (1.0 - EVEN_SHARE) * near, even)
        z *= np.minimum(1.0, 0.97 * n_chosen / z.sum(axis=1))[:, None]
        enough, nearer = target - self.slack, np.where(is_warm, NEARER, 1.0)
        solved = solve_shares(nodes, z, 0.2 * tol, target=enough, ceiling=enough, nearer=nearer)
        residual = self.targets - completed(solved.weights) @ lines
        bounds, adjusted, room = self._measure(
            residual, is_forced, is_free, n_chosen, limits[:, 1:], solved.multipliers[:, 1:], target
        )
        return NodeBounds(bounds, adjusted, room, places, solved, nodes)

    def _measure(
        self,
        residual: Array,
        is_forced: Array,
        is_free: Array,
        n_chosen: Array,
        limits: Array,
        multipliers: Array,
        target: float,
    ) -> tuple[Array, Array, Array]:
        """Return the bounds that points A, (n_nodes, n_targets, n), give; see :func:`l20fs.bounds.cuts.measure`.

        Return also the adjusted scores and the room of :class:`NodeBounds`.
        """
        n_nodes, n_targets, n = residual.shape
        lengths = np.sqrt(np.einsum("nti,nti->n", residual, residual))
        rounding = 4.0 * (n_targets * n + 8) * EPS
        products = residual.reshape(-1, n) @ self.lines[:-1].reshape(-1, n).T
        products = products.reshape(n_nodes, n_targets, -1)
        norms = np.sqrt(np.einsum("ntr,ntr->nr", products, products))
        norms += lengths[:, None] * (rounding * self.norms + self.errors)[:-1].reshape(-1)
        rounding_up = 1.0 + rounding + (self.n_units + len(self.lower) + 8) * EPS
        scores = (norms * norms).reshape(n_nodes, self.n_units, -1).sum(axis=2) * (rounding_up / (2.0 * self.ridge))
        scores -= self.prices[:-1]
        target_error = rounding * float(np.linalg.norm(self.targets)) + self.target_error
        product = np.maximum(np.einsum("nti,ti->n", residual, self.targets) - lengths * target_error, 0.0)
        energy = np.maximum(lengths * lengths * rounding_up, np.finfo(np.float64).tiny)
        paid = np.einsum("nl,nl->n", multipliers, limits)
        used = multipliers @ self._limited[1:, :-1]
        adjusted = np.where(is_free, scores - used, -np.inf)
        load = np.einsum("nu,nu->n", scores, is_forced) + paid
        load += EPS * (8 + self.n_units) * (np.abs(scores * is_forced).sum(axis=1) + np.abs(paid) + np.abs(used).sum(axis=1))
        load += top_sums(adjusted, n_chosen)[0]
        bounds, room = self._conclude(product, energy, load, target)
        return bounds, adjusted, room

    def _conclude(self, product: Array, energy: Array, load: Array, target: float) -> tuple[Array, Array]:
        """Return the bounds for a load, and how far the load is above the largest that proves ``target``."""
        constant = self.constant - 8.0 * EPS * self.null_loss - self.slack
        if self.prices.any():
            bounds = constant + product - 0.5 * energy - load
            return bounds, load - (constant + product - 0.5 * energy - target)
        with np.errstate(divide="ignore", over="ignore"):  # infinite where the load is so negative that there is no panel
            bounds = constant + 0.5 * product * (product / np.maximum(energy + 2.0 * load, np.finfo(np.float64).tiny))
            most = 0.5 * (product * (product / (2.0 * max(target - constant, np.finfo(np.float64).tiny))) - energy)
        return np.maximum(bounds, constant), load - most


def pad(mask: Array, least: int = 0) -> Array:
    """Return the positions of the true entries of each row, padded with the number of columns, ``least`` or more.

    Examples
    --------
    >>> pad(np.array([[True, False, True], [False, True, False]]))
    array([[0, 2],
           [1, 3]])
    """
    counts = mask.sum(axis=1)
    padded = np.full((len(mask), int(counts.max(initial=least))), mask.shape[1])
    rows, columns = np.nonzero(mask)
    padded[rows, np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)] = columns
    return padded
