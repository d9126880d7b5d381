r"""Convex relaxation of the best subset problem: lower bounds on the loss of every support.

For a support S let :math:`h(S)` be the smallest value of f with weights on S only. With a ridge term :math:`\mu > 0`

.. math:: h(S) = \max_A \; \langle A, \tilde Y\rangle - \tfrac12 \|A\|^2 - \sum_{j \in S} \frac{\|\tilde x_j^T A\|^2}{2\mu}

so *any* A bounds the loss of *all* supports from below: a :class:`Cut`. The best A for supports of k features is that of the
optimal *shares* z, numbers from 0 to 1 that sum to k and relax the indicators of the selected features:

.. math:: A = M_z \tilde Y \quad\text{with}\quad M_z = (I + \tilde X \operatorname{diag}(z) \tilde X^T / \mu)^{-1},
    \qquad z \text{ minimises the convex } \tfrac12 \langle \tilde Y, M_z \tilde Y\rangle

:func:`relax` computes them. Most shares are zero: it solves for those of a small working set of features by an
interior-point method, and passes over X only to find the features that are missing from the working set.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from l20fs.design import BLOCK_ELEMENTS, Design, storage_errors
from l20fs.objective.least_squares import LeastSquares
from l20fs.typing import Array

NO_ROWS: Array = np.empty(0, dtype=np.intp)

#: Limits of both loops, which are not reached: 13 Newton steps and 18 working sets are the most on the paper's data sets.
MAX_NEWTON_STEPS = 60
MAX_WORKING_SETS = 60

#: Rounding error of a loss, as a fraction of the loss without features.
NEGLIGIBLE = 1e-9


class Cut(NamedTuple):
    r"""Cut of the relaxation: a point A with the bounds that it gives for every support.

    .. math:: h(S) \ge \frac{\text{product}^2}{2\,(\text{energy} + 2 \sum_{j \in S} \text{scores}_j)}

    This is the formula of the module, with A multiplied by the best factor. ``product``,
    :math:`\langle A, \tilde Y\rangle`, is rounded down, ``energy``, :math:`\|A\|^2`, and ``scores``,
    :math:`\|\tilde x_j^T A\|^2 / 2\mu`, are rounded up by more than rounding can amount to: that of the products, which
    are in float64, and that of X~ and Y~ as they are stored. The bound holds for X~ and Y~ in exact arithmetic.

    Examples
    --------
    >>> cut = Cut(product=4.0, energy=2.0, scores=np.array([1.0, 3.0]))
    >>> float(cut.bound(load=3.0)), cut.bounds_by_size()
    (1.0, array([4. , 1. , 0.8]))
    """

    product: float
    energy: float
    scores: Array

    def bound(self, load: Any) -> Any:
        """Return the lower bound on h(S) for the supports S whose scores sum to at most ``load``."""
        return 0.5 * self.product * (self.product / (self.energy + 2.0 * load))  # a square might overflow

    def bounds_by_size(self) -> Array:
        """Return the lower bound on h(S) over all supports of k features, for every k from 0 to all."""
        heaviest_first = np.sort(self.scores)[::-1]
        return np.asarray(self.bound(np.concatenate([[0.0], np.cumsum(heaviest_first)])))


def measure(problem: LeastSquares, A: Array) -> Cut:
    """Compute the cut of a point A, (n_targets, n_samples), in one pass over X.

    Examples
    --------
    >>> problem = LeastSquares(np.eye(3), np.eye(3), ridge=1.0)
    >>> cut = measure(problem, problem.targets)
    >>> round(cut.product, 6), round(cut.energy, 6), cut.scores.round(6)
    (2.0, 2.0, array([0.5, 0.5, 0.5]))
    """
    design, eps = problem.design, float(np.finfo(np.float64).eps)
    A = design.sample_weights.centred(A)  # a sparse design relies on it
    length = float(np.linalg.norm(A))
    # In any order of summation, the error of a sum of n products is at most n eps times the norms of the two factors.
    rounding = 4.0 * (A.size + 8) * eps
    products = _products(design, A)
    errors = rounding * design.pull_norms() + storage_errors(design)
    norms = np.sqrt(np.einsum("ij,ij->j", products, products)) + length * errors
    target_error = rounding * float(np.linalg.norm(problem.targets)) + target_storage_error(problem)
    product = float(np.vdot(A, problem.targets)) - length * target_error
    rounding_up = 1.0 + rounding + design.n_features * eps  # the scores are summed later
    energy = max(length * length * rounding_up, float(np.finfo(np.float64).tiny))  # A = 0 bounds by zero, not by 0 / 0
    return Cut(max(0.0, product), energy, norms * norms * (rounding_up / (2.0 * problem.ridge)))


def target_storage_error(problem: LeastSquares) -> float:
    """Return an upper bound on the norm of the rounding error of the targets as they are stored."""
    offset = np.sqrt(problem.design.sample_weights.total) * float(np.linalg.norm(problem.y_mean * problem.y_scale))
    return 8.0 * float(np.finfo(np.float64).eps) * float(problem.targets_norm + offset)


def bound_support(problem: LeastSquares, rows: Array) -> float:
    """Return a lower bound on the loss of the features ``rows``, below it by little more than rounding.

    Examples
    --------
    >>> problem = LeastSquares(np.eye(3), np.eye(3), ridge=1.0)
    >>> round(bound_support(problem, np.array([0])), 6), round(bound_support(problem, np.arange(3)), 6)
    (0.75, 0.4)
    """
    point = _WorkingSet.of(problem, rows, len(rows)).at(np.ones(len(rows)))
    cut = measure(problem, _residual(problem, rows, point.weights))
    return float(cut.bound(cut.scores[rows].sum()))


def _products(design: Design, A: Array) -> Array:
    """Return ``A @ X~`` in float64 whatever the dtype of X: float32 would limit the bound to six digits."""
    if design.dtype == np.float64:
        return design.pull(A)
    products = np.empty((len(A), design.n_features))
    step = max(1, BLOCK_ELEMENTS // design.n_samples)
    for start in range(0, design.n_features, step):
        rows = np.arange(start, min(start + step, design.n_features))
        products[:, rows] = A @ design.take(rows, slice(None)).astype(np.float64, copy=False)
    return products


class Relaxed(NamedTuple):
    """Solution of the relaxation on a working set of features.

    ``bound`` holds for the supports of the request, ``cut`` for all. ``value`` is the value of the relaxation at the
    ``shares`` of the features ``rows``: no bound by a relaxation exceeds it.
    """

    bound: float
    value: float
    rows: Array
    shares: Array
    cut: Cut


def relax(
    problem: LeastSquares,
    k: int,
    *,
    start: Array,
    tol: float,
    forced: Array = NO_ROWS,
    is_free: Array | None = None,
) -> Iterator[Relaxed]:
    """Solve the relaxation over the supports of at most k features that contain ``forced``, by working sets.

    The iterator ends when ``bound`` is within ``tol`` of ``value``; the caller may stop earlier.

    Parameters
    ----------
    problem : LeastSquares
        With a ridge term.
    k : int
        Maximum number of features, more than the number of forced ones.
    start : array
        Features of the first working set; those that are not free are left out.
    tol : float
        Relative accuracy.
    forced : array
        Features that are in every support.
    is_free : mask of shape (n_features,), optional
        Other features that may be in a support; by default all that vary.

    Examples
    --------
    >>> problem = LeastSquares(np.eye(3), np.eye(3), ridge=1.0)
    >>> *_, last = relax(problem, 1, start=np.arange(3), tol=1e-6)
    >>> last.shares.round(3), round(last.bound, 4), round(last.value, 4)
    (array([0.333, 0.333, 0.333]), 0.6667, 0.6667)
    """
    is_free = problem.design.varies if is_free is None else is_free
    n_forced, n_chosen = len(forced), k - len(forced)
    rows = start[is_free[start]]
    for _ in range(MAX_WORKING_SETS):
        working_set = _WorkingSet.of(problem, np.concatenate([forced, rows]), n_forced)
        # More exact than tol, so that a remaining gap is due to features that are missing from the working set.
        point = _solve_working_set(working_set, n_chosen, 0.2 * tol)
        cut = measure(problem, _residual(problem, working_set.rows, point.weights))
        scores = np.where(is_free, cut.scores, 0.0)
        bound = float(cut.bound(cut.scores[forced].sum() + _heaviest(scores, n_chosen)))
        shares = point.shares[n_forced:]
        yield Relaxed(bound, point.value, rows, shares, cut)
        rows, is_complete = _next_working_set(rows, shares, scores, n_chosen)
        if is_complete or point.value - bound <= tol * point.value + NEGLIGIBLE * problem.null_loss:
            return


def _next_working_set(rows: Array, shares: Array, scores: Array, n_chosen: int) -> tuple[Array, bool]:
    """Add the features with the largest scores to the working set, drop useless ones; return whether none was added."""
    inside = scores[rows]
    price = float(np.partition(inside, -n_chosen)[-n_chosen]) if n_chosen <= len(rows) else 0.0
    outside = scores.copy()
    outside[rows] = 0.0
    entering = np.flatnonzero(outside > price)
    n_entering = max(32, n_chosen, len(rows) // 4)
    if len(entering) > n_entering:
        entering = entering[np.argpartition(outside[entering], -n_entering)[-n_entering:]]
    staying = rows[(shares > 0.01) | (inside > 0.9 * price)]
    return np.concatenate([staying, entering]), not len(entering)


def _heaviest(scores: Array, n: int) -> float:
    """Return the sum of the ``n`` largest scores."""
    return float(np.partition(scores, len(scores) - n)[len(scores) - n :].sum()) if n < len(scores) else float(scores.sum())


def _residual(problem: LeastSquares, rows: Array, weights: Array) -> Array:
    """Return ``Y~ - X~ W`` in float64 whatever the dtype of X: it may be much smaller than Y~."""
    residual = problem.targets.copy()
    for samples, columns in problem.design.sample_blocks(rows):
        residual[:, samples] -= weights @ columns.T
    return residual


class _Point(NamedTuple):
    """Shares on the working set, with what follows from them. ``pulls`` are the products of the features with A."""

    shares: Array
    value: float
    weights: Array
    pulls: Array
    scores: Array
    inverse: Array


class _WorkingSet(NamedTuple):
    """Working set of features, forced ones first, with their Gram matrix and products with the targets."""

    rows: Array
    n_forced: int
    gram: Array
    moments: Array
    ridge: float
    null_loss: float

    @classmethod
    def of(cls, problem: LeastSquares, rows: Array, n_forced: int) -> _WorkingSet:
        gram, moments = np.zeros((len(rows), len(rows))), np.zeros((problem.n_targets, len(rows)))
        for samples, columns in problem.design.sample_blocks(rows):
            gram += columns.T @ columns
            moments += problem.targets[:, samples] @ columns
        return cls(rows, n_forced, gram, moments, problem.ridge, problem.null_loss)

    def at(self, shares: Array) -> _Point:
        r"""Evaluate the relaxation, from the inverse of :math:`K = \mu I + Z^{1/2} G Z^{1/2}` alone.

        With B the moments and :math:`V = B Z^{1/2} K^{-1}`, the weights are :math:`V Z^{1/2}`, the value is
        :math:`h(\emptyset) - \tfrac12 \langle V, B Z^{1/2}\rangle`, and the products of the features with A are
        :math:`\mu V Z^{-1/2}`.
        """
        root = np.sqrt(shares)
        inverse = np.linalg.inv(root[:, None] * self.gram * root + self.ridge * np.eye(len(root)))
        scaled_moments = self.moments * root
        V = scaled_moments @ inverse
        value = self.null_loss - 0.5 * float(np.vdot(V, scaled_moments))
        pulls = V * (self.ridge / root)
        scores = np.einsum("ij,ij->j", pulls, pulls) / (2.0 * self.ridge)
        return _Point(shares, value, V * root, pulls, scores, inverse)


def _solve_working_set(working_set: _WorkingSet, n_chosen: int, tol: float) -> _Point:
    """Minimise over the shares of the working set, which sum to ``n_chosen`` besides the forced ones with share 1.

    Primal-dual interior-point method for ``min value(z)`` with ``0 <= z <= 1`` and ``sum z = n_chosen``. Four positive
    numbers per feature are kept: z, the ``room`` 1 - z, and the multipliers ``below`` and ``above`` of the two
    inequalities; ``price`` is the multiplier of the sum.
    """
    free, n_free = slice(working_set.n_forced, None), len(working_set.rows) - working_set.n_forced
    if n_free <= n_chosen:
        return working_set.at(np.ones(len(working_set.rows)))
    forced, z = np.ones(working_set.n_forced), np.full(n_free, n_chosen / n_free)
    point = working_set.at(np.concatenate([forced, z]))
    scores = point.scores[free]
    price = float(np.partition(scores, -n_chosen)[-n_chosen])
    spread = np.abs(scores - price).mean()
    positive = np.stack([z, 1.0 - z, np.maximum(price - scores, spread), np.maximum(scores - price, spread)])
    for _ in range(MAX_NEWTON_STEPS):
        # The largest decrease of a linear model of the value; the bound of the working set is value^2 / (value + excess).
        excess = _heaviest(point.scores[free], n_chosen) - float(positive[0] @ point.scores[free])
        if excess <= tol * point.value:
            break
        step, price_step = _newton_step(point, working_set.ridge, free, positive, price)
        length = 1.0 / max(1.0, float(np.max(-step / positive)) / 0.99)
        positive, price = positive + length * step, price + length * price_step
        point = working_set.at(np.concatenate([forced, positive[0]]))
    return point


def _newton_step(point: _Point, ridge: float, free: slice, positive: Array, price: float) -> tuple[Array, float]:
    r"""Return the Newton step to the point where the complementarity products are a tenth of their present mean.

    The second derivative of the value is :math:`(x_i^T M_z x_j) \langle p_i, p_j\rangle / \mu^2` with p the pulls, and
    :math:`Z^{1/2} X^T M_z X Z^{1/2} = \mu I - \mu^2 K^{-1}`. The system is solved for the step of z divided by the square
    root of z, which is well conditioned for small shares.
    """
    z, room, below, above = positive
    root, pulls, scores = np.sqrt(z), point.pulls[:, free], point.scores[free]
    centre = 0.1 * float(z @ below + room @ above) / (2 * len(z))
    system = (np.eye(len(z)) / ridge - point.inverse[free, free]) * (pulls.T @ pulls)
    system[np.diag_indices_from(system)] += below + above * z / room
    slope = scores - price + centre / z - centre / room
    towards, by_price = np.linalg.solve(system, np.stack([root * slope, root], axis=1)).T
    price_step = float(root @ towards) / float(root @ by_price)  # keeps the sum of z
    z_step = root * (towards - price_step * by_price)
    below_step = (centre - below * z_step) / z - below
    above_step = (centre + above * z_step) / room - above
    return np.stack([z_step, -z_step, below_step, above_step]), price_step
