r"""Shares of the relaxations of many nodes at once.

:mod:`l20fs.bounds.shares` solves one relaxation as exactly as one likes. Branch and bound solves thousands of small ones
that differ in little: here the same interior-point method takes a step for all of them in one call of LAPACK each. The
result need not be exact: any multipliers of at least 0 give a valid bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from l20fs.typing import Array

MAX_STEPS = 60

#: Share of even shares in a start from those of a similar node, whose multipliers are nearer to the end by this factor: with
#: them an average node takes 4 steps instead of 6.5.
EVEN_SHARE, NEARER = 0.05, 0.1

#: Limits are loosened by this share, so that rules that leave a single choice have an interior.
LOOSE = 1e-7


class Relaxations(NamedTuple):
    """Relaxations of nodes on their working sets, stacked along the first axis.

    Attributes
    ----------
    gram : array of shape (n_nodes, n_rows, n_rows)
        Inner products of the rows; those of a unit stand side by side, the same number for every unit.
    moments : array of shape (n_nodes, n_targets, n_rows)
        Products of the rows with the targets.
    null_loss : array of shape (n_nodes,)
        Loss without any of the rows.
    ridge : float
    prices : array of shape (n_nodes, n_units)
        Price of a unit.
    limited : array of shape (n_nodes, n_limits, n_units)
        Weights of the limits; the first one counts the units.
    limits : array of shape (n_nodes, n_limits)
        Largest sums.
    """

    gram: Array
    moments: Array
    null_loss: Array
    ridge: float
    prices: Array
    limited: Array
    limits: Array

    @property
    def n_units(self) -> int:
        return self.prices.shape[1]

    @property
    def group(self) -> int:
        """Number of rows of a unit."""
        return self.gram.shape[1] // self.n_units

    def of(self, nodes: Array) -> Relaxations:
        """Return the relaxations of some nodes."""
        gram, moments, null_loss, ridge, *others = self
        return Relaxations(gram[nodes], moments[nodes], null_loss[nodes], ridge, *(part[nodes] for part in others))

    def per_unit(self, values: Array) -> Array:
        """Add up the values of the rows of each unit, along the last axis."""
        if self.group == 1:
            return values
        return values.reshape(*values.shape[:-1], self.n_units, self.group).sum(axis=-1)

    def sums(self, z: Array) -> Array:
        """Return the sums that are limited."""
        return np.einsum("nlu,nu->nl", self.limited, z)


class Shares(NamedTuple):
    """Shares z of the units, with results that follow from them, one per node (see :class:`l20fs.bounds.shares.Point`).

    ``value`` includes the prices; ``multipliers`` are those of the limits; ``inverse`` is that of
    :math:`I + Z^{1/2} G Z^{1/2} / \\mu`.
    """

    z: Array
    value: Array
    weights: Array
    pulls: Array
    scores: Array
    inverse: Array
    multipliers: Array


#: Shares, the multipliers of their bounds 0 and 1, and the slack of the limits.
State = tuple[Shares, Array, Array, Array]


def evaluate(nodes: Relaxations, z: Array, multipliers: Array) -> Shares:
    """Return the values at given shares."""
    root = np.sqrt(np.repeat(z, nodes.group, axis=1) / nodes.ridge)
    kernel = root[:, :, None] * nodes.gram * root[:, None, :]
    kernel += np.eye(kernel.shape[1])
    inverse = np.linalg.inv(kernel)
    scaled = nodes.moments * root[:, None, :]
    V = scaled @ inverse
    value = nodes.null_loss - 0.5 * np.einsum("ntr,ntr->n", V, scaled) + np.einsum("nu,nu->n", nodes.prices, z)
    pulls = V / root[:, None, :]
    scores = nodes.per_unit(np.einsum("ntr,ntr->nr", pulls, pulls)) / (2.0 * nodes.ridge)
    return Shares(z, value, V * root[:, None, :], pulls, scores, inverse, multipliers)


def curvature(nodes: Relaxations, found: Shares) -> Array:
    """Return the second derivatives of the values by the shares, times the square roots of both."""
    rows = np.eye(found.inverse.shape[1]) - found.inverse
    rows *= found.pulls.mT @ found.pulls
    rows /= nodes.ridge
    if nodes.group == 1:
        return rows
    n, units, group = len(rows), nodes.n_units, nodes.group
    return rows.reshape(n, units, group, units, group).sum(axis=(2, 4))


def solve_nodes(nodes: Relaxations, start: Array, tol: float, target: float) -> Shares:
    """Minimise the relaxations of all nodes.

    Parameters
    ----------
    nodes : Relaxations
    start : array of shape (n_nodes, n_units)
        Shares to start from, those of a similar node; zeros where there are none.
    tol : float
        Relative accuracy.
    target : float
        Value that decides about a node: where the value is clearly below, a tenth of the distance is accurate enough, and
        where the bound is clearly above, nothing more is needed.

    Returns
    -------
    Shares
        One set of shares per node.
    """
    n_units, n_limits = nodes.n_units, nodes.limits.shape[1]
    results: list[tuple[Array, Shares]] = []
    left, is_lost = np.arange(len(nodes.gram)), np.zeros(len(nodes.gram), dtype=bool)
    state = _start(nodes, start)
    for step in range(MAX_STEPS):
        found, below, above, slack = state
        z, multipliers = found.z, found.multipliers
        limits = nodes.limits + LOOSE * (1.0 + np.abs(nodes.limits))
        missing = limits - nodes.sums(z) - slack
        total = np.einsum("nu,nu->n", z, below) + np.einsum("nu,nu->n", 1.0 - z, above)
        total += np.einsum("nl,nl->n", multipliers, slack)
        is_exact = (total <= tol * np.abs(found.value)) | (total <= 0.1 * (target - found.value))
        is_exact |= found.value - 2.0 * total > target
        is_done = (is_exact & (np.abs(missing).max(axis=1) < 1e-5)) | is_lost | (step == MAX_STEPS - 1)
        if is_done.any():
            results.append((left[is_done], Shares(*(part[is_done] for part in found))))
            going = np.flatnonzero(~is_done)
            if not len(going):
                break
            left, nodes = left[going], nodes.of(going)
            found = Shares(*(part[going] for part in found))
            below, above, slack, missing, total = (part[going] for part in (below, above, slack, missing, total))
        before = found, below, above, slack
        with np.errstate(all="ignore"):  # the multipliers of rules that cannot be met grow without limit
            after = _step(nodes, *before, missing, (0.1 * total / (2 * n_units + n_limits))[:, None])
            is_lost = ~np.isfinite(after[0].value + after[0].multipliers.sum(axis=1))
        state = _where(is_lost, before, after) if is_lost.any() else after
    order = np.argsort(np.concatenate([which for which, _ in results]))
    return Shares(*(np.concatenate(parts)[order] for parts in zip(*(found for _, found in results), strict=True)))


def _where(mask: Array, first: State, second: State) -> State:
    """Return the first state of the nodes of a mask, and the second of the others."""

    def choose(ours: Array, theirs: Array) -> Array:
        return np.where(mask.reshape(-1, *(1,) * (ours.ndim - 1)), ours, theirs)

    shares = Shares(*map(choose, first[0], second[0]))
    return shares, *map(choose, first[1:], second[1:])  # type: ignore[return-value]


def _start(nodes: Relaxations, start: Array) -> State:
    """Return the first shares, the multipliers of their bounds 0 and 1, and the slack of the limits."""
    n_chosen = nodes.limits[:, 0]
    even = np.minimum(0.95 * n_chosen / nodes.n_units, 0.5)[:, None]
    is_warm = start.any(axis=1, keepdims=True)
    z = np.where(is_warm, EVEN_SHARE * even + (1.0 - EVEN_SHARE) * start, even)
    z *= np.minimum(1.0, 0.97 * n_chosen / z.sum(axis=1))[:, None]
    found = evaluate(nodes, z, nodes.limits)
    slopes = found.scores - nodes.prices
    place = (nodes.n_units - np.minimum(n_chosen, nodes.n_units)).astype(np.intp)
    price = np.take_along_axis(np.sort(slopes, axis=1), place[:, None], axis=1)
    scale = np.maximum(np.abs(slopes).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    price = np.maximum(price, 1e-3 * scale)
    spread = np.maximum(np.abs(slopes - price).mean(axis=1, keepdims=True), 1e-3 * price)
    spread = np.where(is_warm, NEARER * spread, spread)
    multipliers = np.repeat(0.1 * price, nodes.limits.shape[1], axis=1)
    multipliers[:, :1] = price
    slack = np.maximum(nodes.limits - nodes.sums(z), 0.05)
    slopes = slopes - np.einsum("nlu,nl->nu", nodes.limited, multipliers)
    found = found._replace(multipliers=multipliers)
    return found, np.maximum(-slopes, spread), np.maximum(slopes, spread), slack


def _step(
    nodes: Relaxations, found: Shares, below: Array, above: Array, slack: Array, missing: Array, centre: Array
) -> State:
    """Take the Newton step to the point where all complementarity products are ``centre``, as far as all stay positive."""
    z, room, multipliers = found.z, 1.0 - found.z, found.multipliers
    root, places = np.sqrt(z), np.arange(nodes.n_units)
    system = curvature(nodes, found)
    system[:, places, places] += below + above * z / room
    scaled = nodes.limited * root[:, None, :]
    system += scaled.mT @ (scaled * (multipliers / slack)[:, :, None])
    pressed = multipliers + (centre - multipliers * (slack + missing)) / slack
    slopes = found.scores - nodes.prices + centre / z - centre / room - np.einsum("nlu,nl->nu", nodes.limited, pressed)
    z_step = root * _solve(system, (root * slopes)[:, :, None])[:, :, 0]
    slack_step = missing - nodes.sums(z_step)
    multipliers_step = (centre - multipliers * (slack + slack_step)) / slack
    below_step = (centre - below * z_step) / z - below
    above_step = (centre + above * z_step) / room - above
    pairs = [(z, z_step), (room, -z_step), (below, below_step), (above, above_step)]
    pairs += [(slack, slack_step), (multipliers, multipliers_step)]
    shrinking = np.maximum.reduce([(-step / value).max(axis=1) for value, step in pairs])
    length = (1.0 / np.maximum(1.0, shrinking / 0.99))[:, None]
    moved = evaluate(nodes, z + length * z_step, multipliers + length * multipliers_step)
    return moved, below + length * below_step, above + length * above_step, slack + length * slack_step


def _solve(systems: Array, right_sides: Array) -> Array:
    """Solve the systems of all nodes; the result is not a number where one is singular."""
    try:
        return np.linalg.solve(systems, right_sides)
    except np.linalg.LinAlgError:
        if len(systems) == 1:
            return np.full_like(right_sides, np.nan)
        half = len(systems) // 2
        parts = (slice(None, half), slice(half, None))
        return np.concatenate([_solve(systems[part], right_sides[part]) for part in parts])
