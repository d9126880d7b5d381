r"""Shares of a working set of units: the convex relaxation of the best subset problem, by an interior-point method.

A *unit* is a feature, or a group of features that are selected together. With z the shares of the units, from 0 to 1, and
:math:`\mu` the ridge,

.. math:: \min_z \; \tfrac12 \langle \tilde Y, M_z \tilde Y\rangle + p^T z
    \quad\text{with}\quad M_z = \Bigl(I + \sum_j \frac{z_{u(j)}}{\mu} \tilde x_j \tilde x_j^T\Bigr)^{-1}

over the shares in [0, 1] whose sum is at most ``n_chosen`` and that meet the linear rules :math:`l \le R z \le u`, with
prices p of the units. The shares of the forced units are 1.

Limits are *elastic*: to miss one costs a penalty, which is raised until none is missed, or until the bound shows that no
shares meet the rules. So every start has an interior, also where the rules leave none, as equal limits do, and the
multipliers stay bounded.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import lapack

from l20fs.bounds.polytope import MISSED, Sides, heaviest
from l20fs.objective.problem import Problem
from l20fs.typing import Array

#: Limit of the Newton steps for one penalty, which is not reached: 13 are the most on the paper's data sets.
MAX_NEWTON_STEPS = 60

#: Penalties of a missed limit, in units of the loss without features plus the largest price.
PENALTIES = (10.0, 1e4, 1e7)

#: A share that stands for zero: the weights of its rows are zero, and its score is known.
NOTHING = 1e-30


class Point(NamedTuple):
    """Shares of the units of a working set, and results that follow from them.

    Attributes
    ----------
    shares : array of shape (n_units,)
        The forced units come first, with share 1.
    value : float
        Value of the relaxation without the prices.
    weights, pulls : arrays of shape (n_targets, n_rows)
        Weights of the rows, and their products with ``A = Y~ - X~ W``.
    scores : array of shape (n_units,)
        Sum of ``||x_j' A||^2 / 2 mu`` over the rows of each unit: minus the derivatives of the value.
    factor : array of shape (n_rows, n_rows)
        Triangular factor of the kernel K, see :meth:`WorkingSet.at`.
    above, below : arrays of shape (n_rules,)
        Multipliers of the upper and lower limits of the rules, at least 0; one of the two is 0.
    """

    shares: Array
    value: float
    weights: Array
    pulls: Array
    scores: Array
    factor: Array
    above: Array = np.empty(0)
    below: Array = np.empty(0)


class WorkingSet:
    """Working set of units, forced ones first, with the Gram matrix of their rows and products with the targets.

    Parameters
    ----------
    gram : array of shape (n_rows, n_rows)
        Inner products of the rows: features of X~, ordered by unit.
    moments : array of shape (n_targets, n_rows)
        Their products with the targets.
    ridge : float
    null_loss : float
        Loss without features.
    unit_of_row : array of shape (n_rows,), optional
        Unit of each row, 0, 1, ... in ascending order; by default each row is a unit.
    n_forced : int
        Number of units whose share is 1.

    Examples
    --------
    >>> items = WorkingSet(np.eye(3), np.eye(3), ridge=1.0, null_loss=1.5)
    >>> point = items.at(np.array([1.0, 0.5, 0.5]))
    >>> round(point.value, 4), point.scores.round(4)
    (0.9167, array([0.125 , 0.2222, 0.2222]))
    """

    def __init__(
        self,
        gram: Array,
        moments: Array,
        ridge: float,
        null_loss: float,
        *,
        unit_of_row: Array | None = None,
        n_forced: int = 0,
    ) -> None:
        self.gram, self.moments, self.ridge, self.null_loss = gram, moments, ridge, null_loss
        self.n_forced, self.n_units = n_forced, len(gram)
        self._unit_of_row: Array | None = None
        self._first_free = n_forced
        if unit_of_row is not None and len(unit_of_row) and int(unit_of_row[-1]) + 1 < len(gram):
            self.n_units, self._unit_of_row = int(unit_of_row[-1]) + 1, unit_of_row
            self._starts = np.searchsorted(unit_of_row, np.arange(self.n_units))
            self._first_free = int(np.searchsorted(unit_of_row, n_forced))

    @classmethod
    def of(cls, problem: Problem, rows: Array, *, unit_of_row: Array | None = None, n_forced: int = 0) -> Self:
        """Return the working set of some features of a problem."""
        problem.design.matrix.hold([rows])  # they are read again for the cut
        moments, gram = problem.normal_equations(rows)
        return cls(gram, moments, problem.ridge, problem.null_loss, unit_of_row=unit_of_row, n_forced=n_forced)

    def at(self, shares: Array) -> Point:
        r"""Evaluate the relaxation, from the kernel :math:`K = \mu I + Z^{1/2} G Z^{1/2}` alone.

        With B the moments and :math:`V = B Z^{1/2} K^{-1}`, the weights are :math:`V Z^{1/2}`, the value is
        :math:`h(\emptyset) - \tfrac12 \langle V, B Z^{1/2}\rangle`, and the products of the features with A are
        :math:`\mu V Z^{-1/2}`.
        """
        root = np.sqrt(shares if self._unit_of_row is None else shares[self._unit_of_row])
        kernel = root[:, None] * self.gram * root
        kernel.flat[:: len(root) + 1] += self.ridge
        scaled_moments = self.moments * root
        factor, V = kernel, scaled_moments
        if len(root):
            factor, failed = lapack.dpotrf(kernel.T, clean=False, overwrite_a=True)
            if failed:
                raise np.linalg.LinAlgError("The ridge is too weak for the relaxation.")
            V = lapack.dpotrs(factor, scaled_moments.T)[0].T
        value = self.null_loss - 0.5 * float(np.vdot(V, scaled_moments))
        weights, pulls = V * root, V * (self.ridge / root)
        scores = np.einsum("ij,ij->j", pulls, pulls) / (2.0 * self.ridge)
        if self._unit_of_row is not None:
            scores = np.add.reduceat(scores, self._starts)
        return Point(shares, value, weights, pulls, scores, factor)

    def curvature(self, point: Point) -> Array:
        r"""Return the second derivative of the value in the free shares, times the square roots of both: upper triangle.

        It is :math:`(x_i^T M_z x_j) \langle p_i, p_j\rangle / \mu^2` with p the pulls, summed over the rows of two units,
        and :math:`Z^{1/2} X^T M_z X Z^{1/2} = \mu I - \mu^2 K^{-1}`.
        """
        free = slice(self._first_free, None)
        pulls = point.pulls[:, free]
        among = (pulls.T @ pulls).T
        curvature = -lapack.dpotri(point.factor)[0][free, free] * among
        curvature.T.flat[:: len(among) + 1] += np.diagonal(among) / self.ridge
        if self._unit_of_row is None:
            return curvature
        starts = self._starts[self.n_forced :] - self._first_free
        curvature = np.triu(curvature) + np.triu(curvature, 1).T
        return np.add.reduceat(np.add.reduceat(curvature, starts, axis=0), starts, axis=1)


def solve_shares(working_set: WorkingSet, sides: Sides | None, tol: float) -> Point | None:
    """Minimise over the shares of a working set; return None if no shares meet the rules.

    The objective of the result is exact to ``tol`` times itself.

    Examples
    --------
    >>> items = WorkingSet(np.eye(3), np.array([[3.0, 2.0, 1.0]]), ridge=1.0, null_loss=7.0)
    >>> third, free = np.array([[0.0, 0.0, 1.0]]), np.array([np.inf])
    >>> solve_shares(items, Sides.of(1, third, np.array([0.0]), free), tol=1e-6).shares.round(3)
    array([0.8, 0.2, 0. ])
    >>> solve_shares(items, Sides.of(1, third, np.array([1.0]), free), tol=1e-6).shares.round(3)
    array([0., 0., 1.])
    """
    if sides is None:
        return None
    n_free, multipliers = len(sides.prices), np.zeros(len(sides.limits))
    if sides.n_chosen == 0 or (n_free <= sides.n_chosen and sides.is_free):
        share = 1.0 if sides.n_chosen else NOTHING
        point = working_set.at(np.concatenate([np.ones(working_set.n_forced), np.full(n_free, share)]))
    else:
        for penalty in PENALTIES:
            found = _minimise(working_set, sides, penalty, tol)
            if found is None:
                return None
            point, multipliers = found
            if sides.missed(point.shares[working_set.n_forced :]).max(initial=0.0) <= MISSED:
                break
    by_rule = np.zeros(sides.n_rules)
    np.add.at(by_rule, sides.rules, multipliers[1:] * sides.factors)
    return point._replace(above=np.maximum(by_rule, 0.0), below=np.maximum(-by_rule, 0.0))


def _minimise(working_set: WorkingSet, sides: Sides, penalty: float, tol: float) -> tuple[Point, Array] | None:
    """Return the best shares and multipliers for a penalty of missed limits; None once no shares can meet the rules.

    Primal-dual interior-point method. Four positive numbers per unit are kept: z, the room 1 - z, and the multipliers of the
    two inequalities; and four per side: the distance kept from its limit, the distance by which it is missed, and the
    distances of its multiplier from the least and the largest one.
    """
    free, forced = slice(working_set.n_forced, None), np.ones(working_set.n_forced)
    n_units, n_chosen, prices = len(sides.prices), sides.n_chosen, sides.prices
    z = np.full(n_units, (1.0 if sides.is_free else 0.9) * n_chosen / n_units)
    point = working_set.at(np.concatenate([forced, z]))
    slopes = point.scores[free] - prices

    scale = working_set.null_loss + float(prices.max()) or 1.0  # targets that do not vary have no loss
    ceiling = working_set.null_loss + heaviest(prices, n_chosen) + 1e-6 * scale  # no allowed units cost more
    most = scale * np.append(PENALTIES[-1], np.full(len(sides.rules), penalty))
    least = np.where(sides.is_rigid, -most, 0.0)

    price = float(np.partition(slopes, -n_chosen)[-n_chosen])
    spread = max(float(np.abs(slopes - price).mean()), 1e-9 * scale)  # equal slopes have no spread
    units = np.stack([z, 1.0 - z, np.maximum(price - slopes, spread), np.maximum(slopes - price, spread)])
    multipliers = np.where(sides.is_rigid, 0.0, np.minimum(spread, 0.5 * most))
    multipliers[0] = min(max(price, spread), 0.5 * float(most[0]))
    gaps, from_least, from_most = sides.limits - sides.weights @ z, multipliers - least, most - multipliers
    kept = spread / from_least
    missed = np.maximum(spread / from_most, kept - gaps)
    limits = np.stack([np.maximum(gaps + missed, kept), missed, from_least, from_most])  # a sum that is rounded may be 0
    for _ in range(MAX_NEWTON_STEPS):
        # The largest decrease of a linear model of the value; the bound of the working set is value^2 / (value + excess).
        excess = sides.load(slopes, multipliers) - float(z @ slopes)
        objective = point.value + float(z @ prices)
        if objective - excess > ceiling:
            return None
        missed = sides.missed(z)
        is_clear = (missed <= MISSED) | (np.abs(multipliers[1:]) > 0.5 * most[1:])  # the penalty is too small
        if excess + float(most[1:] @ missed) <= tol * objective and is_clear.all():
            break
        steps = _newton_step(working_set.curvature(point), slopes, units, sides, limits, multipliers)
        if steps is None:  # as exact as rounding allows
            break
        units_step, limits_step, multipliers_step = steps
        shrinking = max(float(np.max(-units_step / units)), float(np.max(-limits_step / limits)))
        length = 1.0 / max(1.0, shrinking / 0.99)
        units, limits = units + length * units_step, limits + length * limits_step
        multipliers = multipliers + length * multipliers_step
        z = units[0]
        point = working_set.at(np.concatenate([forced, z]))
        slopes = point.scores[free] - prices
    return point, multipliers


def _newton_step(
    curvature: Array, slopes: Array, units: Array, sides: Sides, limits: Array, multipliers: Array
) -> tuple[Array, Array, Array] | None:
    """Return the Newton step to the point where the complementarity products are a tenth of their present mean.

    The system is solved for the step of z divided by the square root of z, which is well conditioned for small shares, and
    then for the multipliers of the sides.
    """
    z, room, below, above = units
    kept, missed, from_least, from_most = limits
    root = np.sqrt(z)
    total = float(z @ below + room @ above + kept @ from_least + missed @ from_most)
    centre = 0.1 * total / (2 * (len(z) + len(kept)))
    curvature.T.flat[:: len(z) + 1] += below + above * z / room
    slope = slopes - multipliers @ sides.weights + centre / z - centre / room
    scaled = root * sides.weights
    _, towards, failed = lapack.dposv(curvature, np.vstack([root * slope, scaled]).T)
    if failed:
        return None
    softness = kept / from_least + missed / from_most
    beyond = sides.limits - sides.weights @ z - centre / from_least + centre / from_most  # what the step has to gain
    system = scaled @ towards[:, 1:]
    system.flat[:: len(kept) + 1] += softness
    _, _, multipliers_step, failed = lapack.dgesv(system, scaled @ towards[:, 0] - beyond)
    if failed:
        return None
    z_step = root * (towards[:, 0] - towards[:, 1:] @ multipliers_step)
    units_step = np.stack([z_step, -z_step, (centre - below * z_step) / z - below, (centre + above * z_step) / room - above])
    limits_step = np.stack(
        [
            (centre - kept * multipliers_step) / from_least - kept,
            (centre + missed * multipliers_step) / from_most - missed,
            multipliers_step,
            -multipliers_step,
        ]
    )
    return units_step, limits_step, multipliers_step
