"""Search of a condensed problem by branch and bound: the best panel, or all panels below a limit.

A *node* is the set of panels that contain the forced units and none of the excluded ones. The relaxation bounds the
objective of all of them from below. A node whose bound reaches the target is closed; units that the bound proves to be in
all, or in none, of the panels of interest are forced or excluded; a node with few panels left is enumerated; any other is
branched on the unit that promises to raise both bounds most. The nodes with the smallest bounds are visited first, many at a
time, so that a search that stops early still proves a bound for all panels it has not seen.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from itertools import combinations, count
from math import comb
from typing import NamedTuple

import numpy as np

from l20fs.bounds.condensed import Condensed, NodeBounds
from l20fs.bounds.polytope import top_sums
from l20fs.bounds.shares import curvature, eliminate
from l20fs.objective.panel_rules import TOLERANCE
from l20fs.typing import Array

#: Relative accuracy to which the relaxation of a node is solved.
NODE_TOL = 1e-4

#: Nodes with at most so many panels are enumerated, if at most so many units tell these apart from each other.
MOST_PANELS, MOST_TOLD_APART = 3000, 4

#: Nodes that are bounded at once, and numbers in the largest array of such a batch.
BATCH, BATCH_ELEMENTS = 64, 1 << 22

#: Units without a share that a working set keeps: those with the highest scores.
SPARE = 4

#: Nodes of a batch whose shares are rounded to a panel.
ROUNDED = 4

#: A problem on all units that the nodes of a batch may use is made if these are fewer than this share of the last one's.
NARROWER = 0.8

#: Working sets that are tried for a node before it is branched.
MOST_TRIES = 6


class Node(NamedTuple):
    """Node of the search, with a lower ``bound``.

    All its panels hold the ``forced`` units, and others from the ``free`` ones alone; ``working_set`` holds the free units
    that matter, ``shares`` those they had in the node above, and ``n_tries`` counts the working sets that were tried.
    """

    bound: float
    forced: Array
    free: Array
    working_set: Array
    shares: Array
    n_tries: int = 0


#: Receives panels, (n_panels, size) positions of candidates, with their objectives.
Collect = Callable[[Array, Array], None]


class Search:
    """State of a search.

    Parameters
    ----------
    condensed : Condensed
    k : int
        Number of units of a panel.
    target : callable
        Returns the bound from which on a node is closed.
    collect : callable
        Called with all panels of the nodes that are enumerated.
    offer : callable, optional
        Called with some panels that may be good, which are enumerated as well later.
    """

    def __init__(
        self,
        condensed: Condensed,
        k: int,
        *,
        target: Callable[[], float],
        collect: Collect,
        offer: Collect | None = None,
    ) -> None:
        self.problem, self.k = condensed, k
        self._local = condensed
        self.target, self.collect, self.offer = target, collect, offer
        self.open: list[tuple[float, int, Node]] = []
        self._ticket = count()  # nodes of equal bounds are visited in the order of their creation
        self.closed_bound = math.inf
        self.n_nodes = 0
        elements = condensed.lines.shape[0] * condensed.lines.shape[1] * len(condensed.targets)
        self._batch = max(1, min(BATCH, BATCH_ELEMENTS // max(1, elements)))

    @property
    def lower_bound(self) -> float:
        """Lower bound on the objective of all panels that were not enumerated."""
        return min([self.closed_bound] + [bound for bound, _, _ in self.open[:1]])

    @property
    def is_complete(self) -> bool:
        return not self.open or self.open[0][0] >= self.target()

    def run(self, root: Node, *, max_nodes: int | None = None, deadline: float | None = None) -> None:
        """Visit nodes by increasing bound until all are closed."""
        self.push(root)
        while not self.is_complete:
            n_left = self._batch if max_nodes is None else min(self._batch, max_nodes - self.n_nodes)
            if n_left <= 0 or (deadline is not None and time.monotonic() > deadline):
                return
            batch: list[Node] = []
            while len(batch) < n_left and not self.is_complete:
                batch.append(heapq.heappop(self.open)[2])
            self.n_nodes += len(batch)
            self.visit(batch)

    def push(self, node: Node) -> None:
        heapq.heappush(self.open, (node.bound, next(self._ticket), node))

    def close(self, bound: float) -> None:
        self.closed_bound = min(self.closed_bound, float(bound))

    def visit(self, batch: list[Node]) -> None:
        """Close, enumerate or split nodes."""
        local = self._localised(batch)
        states = np.full((len(batch), local.n_units), -1, dtype=np.int8)
        for state, node in zip(states, batch, strict=True):
            state[np.searchsorted(local.places, node.free)] = 0
            state[np.searchsorted(local.places, node.forced)] = 1
        states, is_possible = self.propagate(local, states)
        waiting = []
        for number in np.flatnonzero(is_possible):
            forced, free = (local.places[states[number] == value] for value in (1, 0))
            if self._are_few(len(free), self.k - len(forced)):
                self.enumerate(forced, free)
            else:
                waiting.append(number)
        if waiting:
            self.bound(local, [batch[number] for number in waiting], states[waiting])

    def _localised(self, batch: list[Node]) -> Condensed:
        """Return the problem on the units that any node may use: the last one, if it is not much larger."""
        is_used = np.zeros(self.problem.n_units, dtype=bool)
        for node in batch:
            is_used[node.forced] = is_used[node.free] = True
        n_used, before = int(np.count_nonzero(is_used)), self._local.places
        if 0 < n_used < NARROWER * len(before) or np.count_nonzero(is_used[before]) < n_used:
            self._local = self.problem.among(np.flatnonzero(is_used))
        return self._local

    def propagate(self, problem: Condensed, states: Array) -> tuple[Array, Array]:
        """Return the states with what the rules force or exclude, and a mask of the nodes that hold any panel.

        A state, one row per node, is 1 for a unit that is forced, -1 for one that is excluded and 0 for a free one.
        """
        rules, lower, upper = problem.rules[:, :-1], problem.lower, problem.upper
        is_possible = np.ones(len(states), dtype=bool)
        while True:
            forced, free = (states == 1), (states == 0)
            n_forced, n_free = forced.sum(axis=1), free.sum(axis=1)
            is_possible &= (n_forced <= self.k) & (n_forced + n_free >= self.k)
            before = np.count_nonzero(states)
            states = np.where(free & (n_forced >= self.k)[:, None], -1, states).astype(np.int8)
            if len(rules):
                sums, most = forced @ rules.T, (forced | free) @ rules.T
                slack = TOLERANCE * np.maximum(most, 1.0)
                is_possible &= ((sums <= upper + slack) & (most >= lower - slack)).all(axis=1)
                for rule, weights in enumerate(rules):
                    beyond = free & (sums[:, rule, None] + weights > upper[rule] + slack[:, rule, None])
                    needed = free & (most[:, rule, None] - weights < lower[rule] - slack[:, rule, None])
                    states = np.where(beyond, -1, np.where(needed & (states == 0), 1, states)).astype(np.int8)
            if np.count_nonzero(states) == before:
                return states, is_possible

    def _are_few(self, n_free: int, n_chosen: int) -> bool:
        """Return whether the panels of a node are few enough to enumerate."""
        n_apart = max(0, min(n_chosen, n_free - n_chosen))
        return n_apart == 0 or (n_apart <= MOST_TOLD_APART and comb(n_free, n_apart) <= MOST_PANELS)

    def enumerate(self, forced: Array, free: Array) -> None:
        """Compute the objectives of all panels of a node."""
        chosen, losses = _subset_losses(self.problem, forced, free, self.k - len(forced))
        panels = np.hstack([np.broadcast_to(forced, (len(chosen), len(forced))), free[chosen]])
        allowed = self._allowed(panels)
        panels, losses = panels[allowed], losses[allowed]
        if len(panels):
            self.collect(panels, losses + self.problem.prices[panels].sum(axis=1))

    def _allowed(self, panels: Array) -> Array:
        """Return a mask of the panels that meet the rules."""
        sums = self.problem.rules[:, panels].sum(axis=2)
        slack = TOLERANCE * np.maximum(sums, 1.0)
        is_within = (sums >= self.problem.lower[:, None] - slack) & (sums <= self.problem.upper[:, None] + slack)
        return np.asarray(is_within.all(axis=0))

    def _round(self, places: Array, states: Array, found: NodeBounds) -> None:
        """Offer the panels of the largest shares of some nodes."""
        for number in range(min(ROUNDED, len(states))):
            z = np.full(len(places) + 1, -np.inf)
            z[found.places[number]] = found.shares.z[number]
            z = np.where(states[number] == 0, np.maximum(z[:-1], 0.0), np.where(states[number] == 1, np.inf, -np.inf))
            order = np.lexsort((found.adjusted[number], z))[::-1]
            panel = places[order[: self.k]][None]
            if self.offer is not None and (z[order[: self.k]] >= 0.0).all() and self._allowed(panel).all():
                self.offer(panel, self.problem.losses(panel) + self.problem.prices[panel].sum(axis=1))

    def bound(self, problem: Condensed, nodes: list[Node], states: Array) -> None:
        """Bound nodes, and close or split them."""
        places, target = problem.places, self.target()
        working, shares = np.zeros(states.shape, dtype=bool), np.zeros(states.shape)
        for number, node in enumerate(nodes):
            there = np.searchsorted(places, node.working_set)
            working[number, there] = True
            shares[number, there] = node.shares
        working &= states == 0
        found = problem.bound(states, working, shares, self.k, tol=NODE_TOL, target=target)
        if self.offer is not None:
            self._round(places, states, found)
            target = self.target()
        n_chosen = self.k - (states == 1).sum(axis=1)
        _, last, following = top_sums(found.adjusted, n_chosen)
        bounds = np.maximum(found.bounds, [node.bound for node in nodes])
        is_closed = (found.room < 0.0) | (bounds >= target)
        room, is_free = found.room[:, None], states == 0
        is_out = is_free & (room + found.adjusted - last[:, None] < 0.0)
        is_in = is_free & (room - found.adjusted + following[:, None] < 0.0)
        fixed = np.where(is_out, -1, np.where(is_in, 1, states)).astype(np.int8)
        outside = np.where(working | (fixed != 0), -np.inf, found.adjusted)
        missing = found.shares.value - bounds
        is_exact = missing <= np.maximum(NODE_TOL * np.abs(found.shares.value), 0.1 * (target - found.shares.value))
        branches = self._promises(found)
        for number, node in enumerate(nodes):
            if is_closed[number]:
                self.close(max(bounds[number], target))
                continue
            if is_out[number].any() or is_in[number].any():
                self.close(target)
            entering = np.flatnonzero(outside[number] > last[number])
            n_entering = max(SPARE, int(n_chosen[number]) // 2)
            if len(entering) > n_entering:
                entering = entering[np.argpartition(outside[number, entering], -n_entering)[-n_entering:]]
            staying, shares = self._staying(found, number, fixed[number])
            forced, free = (places[fixed[number] == value] for value in (1, 0))
            below = Node(
                float(bounds[number]),
                forced,
                free,
                places[np.concatenate([staying, entering])],
                np.concatenate([shares, np.zeros(len(entering))]),
            )
            is_open = len(entering) and not is_exact[number] and node.n_tries < MOST_TRIES
            is_small = self._are_few(len(free), self.k - len(forced))
            if is_open or is_small or is_in[number].any():
                self.push(below._replace(n_tries=node.n_tries + 1 if is_open else 0))
            else:
                self.split(below, places[self._branching_unit(found, number, fixed[number], branches[number])])

    @staticmethod
    def _staying(found: NodeBounds, number: int, state: Array) -> tuple[Array, Array]:
        """Return the units of a working set that still matter, and their shares."""
        places, z = found.places[number], found.shares.z[number]
        is_free = np.append(state, -1)[places] == 0  # the last one is padding
        places, z = places[is_free], z[is_free]
        is_kept = z > 0.01
        light = np.flatnonzero(~is_kept)
        is_kept[light[np.argsort(found.adjusted[number, places[light]])[-SPARE:]]] = True
        return places[is_kept], z[is_kept]

    def _promises(self, found: NodeBounds) -> Array:
        """Return, for each unit of the working sets, the product of the increases that both branches promise.

        The value is a quadratic function of the shares near its minimum, along which the other shares that are neither 0 nor
        1 may move as long as their sum stays.
        """
        shares, nodes = found.shares, found.nodes
        z, slopes = shares.z, shares.scores - nodes.prices
        is_fractional = (z > 0.02) & (z < 0.98)
        root, places = np.sqrt(z), np.arange(z.shape[1])
        system = curvature(nodes, shares)
        scale = np.maximum(np.abs(slopes).max(axis=1, keepdims=True), 1e-12 * self.problem.null_loss + 1e-100)
        system[:, places, places] += np.where(is_fractional, 1e-9 * scale, 1e3 * scale)
        inverse = np.linalg.inv(system)
        along = np.einsum("nij,nj->ni", inverse, root)
        give = np.einsum("nii->ni", inverse) - along * along / np.einsum("ni,ni->n", root, along)[:, None]
        promised = z * (1.0 - z) / np.maximum(z * give, 1e-100)
        return np.where(is_fractional, promised, -np.abs(z - 0.5))

    @staticmethod
    def _branching_unit(found: NodeBounds, number: int, state: Array, promises: Array) -> int:
        """Return the free unit of a working set that promises most, or that with the highest score."""
        places = found.places[number]
        is_free = np.append(state, -1)[places] == 0  # the last one is padding
        if is_free.any():
            return int(places[is_free][np.argmax(promises[is_free])])
        free = np.flatnonzero(state == 0)
        return int(free[np.argmax(found.adjusted[number, free])])

    def split(self, node: Node, unit: int) -> None:
        """Branch on a free unit: with and without it."""
        stays, free = node.working_set != unit, node.free[node.free != unit]
        for forced in (np.append(node.forced, unit), node.forced):
            self.push(Node(node.bound, forced, free, node.working_set[stays], node.shares[stays]))


def _subset_losses(problem: Condensed, forced: Array, free: Array, size: int) -> tuple[Array, Array]:
    """Return all choices of ``size`` free units, and the losses of these units together with the forced ones.

    The forced units are eliminated. If most of the free ones are chosen, the others are taken away from all of them.
    """
    n_free, group = len(free), problem.lines.shape[1]
    chosen = np.array(list(combinations(range(n_free), size)), dtype=np.intp).reshape(comb(n_free, size), size)
    kernel, moments, base = _eliminated(problem, forced, free)
    n_left = n_free - size
    if size <= n_left:
        return chosen, base - _explained(kernel, moments, chosen, group)
    left = np.array(list(combinations(range(n_free), n_left)), dtype=np.intp).reshape(comb(n_free, n_left), n_left)[::-1]
    inverse = np.linalg.inv(kernel)
    weights = inverse @ moments
    base -= 0.5 * float(np.vdot(moments, weights))
    return chosen, base + _explained(inverse, weights, left, group)


def _eliminated(problem: Condensed, forced: Array, free: Array) -> tuple[Array, Array, float]:
    """Return the Gram matrix with the ridge and the moments of the free units beside the forced ones, and their loss."""
    _, group, n = problem.lines.shape
    lines = problem.lines[None, np.concatenate([forced, free])].reshape(1, -1, n)
    products = lines @ lines.mT, problem.targets @ lines.mT, np.array([problem.null_loss])
    gram, moments, base, _ = eliminate(*products, problem.ridge, len(forced) * group)
    return gram[0] + problem.ridge * np.eye(gram.shape[1]), moments[0].T, float(base[0])


def _explained(kernel: Array, moments: Array, chosen: Array, group: int) -> Array:
    """Return ``tr(m' K^-1 m) / 2`` for the rows of each choice of units."""
    rows = (chosen[:, :, None] * group + np.arange(group)).reshape(len(chosen), -1)
    if not rows.shape[1]:
        return np.zeros(len(chosen))
    parts = moments[rows]
    solved = np.linalg.solve(kernel[rows[:, :, None], rows[:, None, :]], parts)
    return 0.5 * np.einsum("nrt,nrt->n", parts, solved)
