r"""Shares of units: convex relaxations of the best subset problem, many at once, by an interior-point method.

A *unit* is a feature, or a group of features that are selected together. With z the shares of the units, from 0 to 1, and
:math:`\mu` the ridge,

.. math:: \min_z \; \tfrac12 \langle \tilde Y, M_z \tilde Y\rangle + p^T z
    \quad\text{with}\quad M_z = \Bigl(I + \sum_j \frac{z_{u(j)}}{\mu} \tilde x_j \tilde x_j^T\Bigr)^{-1}

over the shares in [0, 1] whose sum is at most the number to be chosen and that meet the linear rules :math:`R z \le u`, with
prices p of the units. Units that are in every panel are eliminated first (:func:`eliminate`).

The root of a search is one relaxation, solved as exactly as one likes; its nodes are thousands of small ones that differ in
little, solved side by side in one call of LAPACK per step. Any multipliers within their ends give a valid bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from l20fs.bounds.polytope import MISSED, top_sums
from l20fs.typing import Array

#: Limit of the Newton steps, which is not reached: 13 are the most of a root on the paper's data sets.
MAX_STEPS = 60


class Relaxations(NamedTuple):
    """Relaxations, stacked along the first axis.

    Attributes
    ----------
    ridge : float
    sizes : array of shape (n_units,), or None
        Number of rows of each unit; None if each has one.
    gram : array of shape (n, n_rows, n_rows)
        Inner products of the rows, which are features of X~; those of a unit stand side by side.
    moments : array of shape (n, n_targets, n_rows)
        Products of the rows with the targets.
    null_loss : array of shape (n,)
        Loss without any of the rows.
    prices : array of shape (n, n_units)
        Price of a unit.
    weights : array of shape (n, n_sides, n_units)
        Weights of the limited sums; the first one counts the units.
    limits : array of shape (n, n_sides)
        Largest sums.
    least, most : arrays of shape (n, n_sides)
        Ends of the multipliers. A limit is *elastic* where ``most`` is finite: to miss it costs so much; and it holds from
        both sides where ``least`` is below 0.
    """

    ridge: float
    sizes: Array | None
    gram: Array
    moments: Array
    null_loss: Array
    prices: Array
    weights: Array
    limits: Array
    least: Array
    most: Array

    def of(self, places: Array) -> Relaxations:
        """Return some of the relaxations."""
        return Relaxations(self.ridge, self.sizes, *(part[places] for part in self[2:]))

    @property
    def n_chosen(self) -> Array:
        """Largest number of units of each, (n,)."""
        return np.minimum(self.limits[:, 0], self.prices.shape[1]).astype(np.intp)

    def per_unit(self, values: Array, axis: int = -1) -> Array:
        """Add up the values of the rows of each unit."""
        if self.sizes is None:
            return values
        return np.add.reduceat(values, np.cumsum(self.sizes) - self.sizes, axis=axis)

    def sums(self, z: Array) -> Array:
        """Return the sums that are limited."""
        return np.einsum("nlu,nu->nl", self.weights, z)

    def priced(self, multipliers: Array) -> Array:
        """Return what the multipliers of the limits take off the slopes of the units."""
        return np.einsum("nlu,nl->nu", self.weights, multipliers)

    def missed(self, z: Array) -> Array:
        """Return by how much shares miss the limits, but for the number of units."""
        excess = (self.sums(z) - self.limits)[:, 1:]
        return np.where(self.least[:, 1:] < 0.0, np.abs(excess), np.maximum(excess, 0.0))


class Shares(NamedTuple):
    r"""Shares z of the units, with results that follow from them, one per relaxation.

    With B the moments, :math:`K = I + Z^{1/2} G Z^{1/2} / \mu` and :math:`V = B Z^{1/2} K^{-1} / \sqrt\mu`, the ``weights``
    of the rows are :math:`V Z^{1/2} / \sqrt\mu`; their products with ``A = Y~ - X~ W``, the ``pulls``, are
    :math:`\sqrt\mu V Z^{-1/2}`; ``scores`` are the sums of ``||x_j' A||^2 / 2 mu`` over the rows of each unit, minus the
    derivatives of the value without prices. ``value`` includes the prices, ``inverse`` is that of K, and ``multipliers``
    are those of the limits.
    """

    z: Array
    value: Array
    weights: Array
    pulls: Array
    scores: Array
    inverse: Array
    multipliers: Array

    def excess(self, these: Relaxations) -> Array:
        """Return the largest decrease of a linear model of the value, with the multipliers, over all allowed shares."""
        slopes, rules = self.scores - these.prices, np.array(self.multipliers)
        rules[:, 0] = 0.0
        load = np.einsum("nl,nl->n", rules, these.limits) + top_sums(slopes - these.priced(rules), these.n_chosen)[0]
        return load - np.einsum("nu,nu->n", self.z, slopes)


def evaluate(these: Relaxations, z: Array, multipliers: Array) -> Shares:
    """Return the values at given shares."""
    root = np.sqrt((z if these.sizes is None else np.repeat(z, these.sizes, axis=1)) / these.ridge)
    kernel = root[:, :, None] * these.gram * root[:, None, :]
    kernel += np.eye(kernel.shape[1])
    inverse = np.linalg.inv(kernel)
    scaled = these.moments * root[:, None, :]
    V = scaled @ inverse
    value = these.null_loss - 0.5 * np.einsum("ntr,ntr->n", V, scaled) + np.einsum("nu,nu->n", these.prices, z)
    pulls = V / root[:, None, :]
    scores = these.per_unit(np.einsum("ntr,ntr->nr", pulls, pulls)) / (2.0 * these.ridge)
    return Shares(z, value, V * root[:, None, :], pulls, scores, inverse, multipliers)


def curvature(these: Relaxations, found: Shares) -> Array:
    r"""Return the second derivatives of the values by the shares, times the square roots of both.

    They are :math:`(x_i^T M_z x_j) \langle p_i, p_j\rangle / \mu^2` with p the pulls, summed over the rows of two units.
    """
    rows = np.eye(found.inverse.shape[1]) - found.inverse
    rows *= found.pulls.mT @ found.pulls
    rows /= these.ridge
    return these.per_unit(these.per_unit(rows), axis=-2)


def solve_shares(
    these: Relaxations,
    z: Array,
    tol: float,
    *,
    target: float = -np.inf,
    ceiling: float = np.inf,
    nearer: Array | float = 1.0,
) -> Shares:
    """Minimise relaxations over the shares.

    Primal-dual interior-point method. Four positive numbers per unit are kept: z, the room 1 - z, and the multipliers of the
    two inequalities; and four per limit: the distance kept from it, the distance by which it is missed, and the distances of
    its multiplier from the least and the largest one.

    Parameters
    ----------
    these : Relaxations
    z : array of shape (n, n_units)
        Shares to start from.
    tol : float
        Relative accuracy of the values.
    target : float
        Value that decides: where the value is clearly below, a tenth of the distance is accurate enough.
    ceiling : float
        Nothing more is needed where all values are above.
    nearer : array of shape (n, 1)
        Factor of the first multipliers: below 1 where the start is near the end.

    Returns
    -------
    Shares
    """
    results: list[tuple[Array, Shares]] = []
    left, is_lost = np.arange(len(z)), np.zeros(len(z), dtype=bool)
    found, units, sides = _start(these, z, nearer)
    for step in range(MAX_STEPS):
        missed, most, excess = these.missed(found.z), these.most[:, 1:], found.excess(these)
        is_clear = (missed <= MISSED) | (np.abs(found.multipliers[:, 1:]) > 0.5 * most)  # the penalty is too small
        width = excess + (np.where(np.isinf(most), 0.0, most) * missed).sum(axis=1)
        is_exact = (width <= np.maximum(tol * found.value, 0.1 * (target - found.value))) & is_clear.all(axis=1)
        is_done = is_exact | (found.value - excess > ceiling) | is_lost | (step == MAX_STEPS - 1)
        if is_done.any():
            results.append((left[is_done], Shares(*(part[is_done] for part in found))))
            going = np.flatnonzero(~is_done)
            if not len(going):
                break
            left, these, found = left[going], these.of(going), Shares(*(part[going] for part in found))
            units, sides = units[:, going], sides[:, going]
        with np.errstate(all="ignore"):  # the multipliers of limits that cannot be met grow without end
            after, units, sides = _step(these, found, units, sides)
            is_lost = ~np.isfinite(after.value + after.multipliers.sum(axis=1))
        for new, old in zip(after, found, strict=True):  # as exact as rounding allows
            new[is_lost] = old[is_lost]
        found = after
    order = np.argsort(np.concatenate([which for which, _ in results]))
    return Shares(*(np.concatenate(parts)[order] for parts in zip(*(found for _, found in results), strict=True)))


def _start(these: Relaxations, z: Array, nearer: Array | float) -> tuple[Shares, Array, Array]:
    """Return the first shares, the four numbers per unit and the four per limit."""
    found = evaluate(these, z, np.zeros_like(these.limits))
    slopes, place = found.scores - these.prices, these.prices.shape[1] - these.n_chosen
    price = np.take_along_axis(np.sort(slopes, axis=1), place[:, None], axis=1)
    scale = (these.null_loss + these.prices.max(axis=1))[:, None]
    spread = np.abs(slopes - price).mean(axis=1, keepdims=True)
    spread = nearer * np.maximum(spread, np.where(scale > 0.0, 1e-9 * scale, 1e-9))  # equal slopes have no spread
    units = np.stack([z, 1.0 - z, np.maximum(price - slopes, spread), np.maximum(slopes - price, spread)])
    multipliers = np.where(these.least < 0.0, 0.0, np.minimum(spread, 0.5 * these.most))
    multipliers[:, :1] = np.minimum(np.maximum(price, spread), 0.5 * these.most[:, :1])
    gaps, from_least, from_most = these.limits - these.sums(z), multipliers - these.least, these.most - multipliers
    kept = spread / from_least
    missed = np.where(np.isinf(from_most), 0.0, np.maximum(spread / from_most, kept - gaps))
    kept = np.maximum(gaps + missed, kept)  # a sum that is rounded may be 0
    return found._replace(multipliers=multipliers), units, np.stack([kept, missed, from_least, from_most])


def _step(these: Relaxations, found: Shares, units: Array, sides: Array) -> tuple[Shares, Array, Array]:
    """Take the Newton step to the point where the complementarity products are a tenth of their mean, inside the bounds.

    The system is solved for the step of z divided by the square root of z, which is well conditioned for small shares, and
    then for the multipliers of the limits.
    """
    z, room, below, above = units
    kept, missed, from_least, from_most = sides
    root, places = np.sqrt(z), np.arange(z.shape[1])
    total = (z * below + room * above).sum(axis=1) + (kept * from_least + np.nan_to_num(missed * from_most)).sum(axis=1)
    centre = (0.1 * total / (2 * (z.shape[1] + kept.shape[1])))[:, None]
    system = curvature(these, found)
    system[:, places, places] += below + above * z / room
    slopes = found.scores - these.prices - these.priced(found.multipliers) + centre / z - centre / room
    scaled = these.weights * root[:, None, :]
    towards = _solve(system, np.concatenate([(root * slopes)[:, None, :], scaled], axis=1).mT)
    beyond = these.limits - these.sums(z) - centre / from_least + centre / from_most  # what the step has to gain
    small = scaled @ towards
    softness = (kept / from_least + missed / from_most)[:, :, None] * np.eye(kept.shape[1])
    of_sides = _solve(small[:, :, 1:] + softness, (small[:, :, 0] - beyond)[:, :, None])
    z_step = root * (towards[:, :, :1] - towards[:, :, 1:] @ of_sides)[:, :, 0]
    of_sides = of_sides[:, :, 0]
    units_step = np.stack([z_step, -z_step, (centre - below * z_step) / z - below, (centre + above * z_step) / room - above])
    kept_step, missed_step = (
        (centre - kept * of_sides) / from_least - kept,
        (centre + missed * of_sides) / from_most - missed,
    )
    sides_step = np.stack([kept_step, missed_step, of_sides, -of_sides])
    shrinking = np.fmax((-units_step / units).max(axis=(0, 2)), np.fmax.reduce(-sides_step / sides, axis=(0, 2)))
    length = (1.0 / np.maximum(1.0, shrinking / 0.99))[:, None]
    units, sides = units + length * units_step, sides + length * sides_step
    return evaluate(these, units[0], found.multipliers + length * of_sides), units, sides


def _solve(systems: Array, right_sides: Array) -> Array:
    """Solve stacked systems; the result is not a number where one is singular."""
    try:
        return np.linalg.solve(systems, right_sides)
    except np.linalg.LinAlgError:
        if len(systems) == 1:
            return np.full_like(right_sides, np.nan)
        half = len(systems) // 2
        parts = (slice(None, half), slice(half, None))
        return np.concatenate([_solve(systems[part], right_sides[part]) for part in parts])


#: Function that adds the weights of eliminated rows, before those of the others.
Completed = Callable[[Array], Array]


def eliminate(gram: Array, moments: Array, null_loss: Array, ridge: float, n: int) -> tuple[Array, Array, Array, Completed]:
    """Take the first n rows, whose shares are 1, out of stacked Gram matrices and moments.

    Return what is left of the Gram matrices and the moments, the loss without the other rows, and a function of their
    weights that returns those of all rows.

    Examples
    --------
    >>> gram, moments, null_loss, completed = eliminate(np.eye(2)[None], np.ones((1, 1, 2)), np.ones(1), 1.0, 1)
    >>> gram, moments, null_loss, completed(np.array([[[0.5]]]))
    (array([[[1.]]]), array([[[1.]]]), array([0.75]), array([[[0.5, 0.5]]]))
    """
    if not n:
        return gram, moments, null_loss, lambda weights: weights
    across = np.concatenate([gram[:, :n, n:], moments[:, :, :n].mT], axis=2)
    solved = np.linalg.solve(gram[:, :n, :n] + ridge * np.eye(n), across)
    width = gram.shape[1] - n
    of_others, own = solved[:, :, :width], solved[:, :, width:]

    def completed(weights: Array) -> Array:
        return np.concatenate([(own - of_others @ weights.mT).mT, weights], axis=2)

    left = gram[:, n:, n:] - gram[:, n:, :n] @ of_others, moments[:, :, n:] - moments[:, :, :n] @ of_others
    return *left, null_loss - 0.5 * np.einsum("ntf,nft->n", moments[:, :, :n], own), completed
