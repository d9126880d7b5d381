r"""Cuts: points A with the lower bounds that they give for every support.

For a support S let :math:`h(S)` be the smallest value of f with weights on S only. With a ridge term :math:`\mu > 0`

.. math:: h(S) = \max_A \; \langle A, \tilde Y\rangle - \tfrac12 \|A\|^2 - \sum_{j \in S} \frac{\|\tilde x_j^T A\|^2}{2\mu}

so *any* A bounds the loss of *all* supports from below. Prices of units and multipliers of rules for panels enter as
reduced costs :math:`c_u` of the units: with multipliers :math:`y^+, y^- \ge 0` of the upper and lower limits of rules R,
every panel that meets the rules has

.. math:: h(S) + p(S) \ge \langle A, \tilde Y\rangle - \tfrac12 \|A\|^2 - (u^T y^+ - l^T y^-) - \sum_{u \in S} (s_u - c_u),
    \qquad c = p + R^T (y^+ - y^-)

where :math:`s_u` are the scores of its units.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from l20fs.design import Design
from l20fs.objective.problem import Problem
from l20fs.typing import Array

EPS = float(np.finfo(np.float64).eps)


class Cut(NamedTuple):
    r"""Cut of the relaxation: a point A with the bounds that it gives for every support.

    .. math:: h(S) \ge \frac{\text{product}^2}{2\,(\text{energy} + 2 \sum_{u \in S} \text{scores}_u)}

    This is the formula of the module, with A multiplied by the best factor. ``product``,
    :math:`\langle A, \tilde Y\rangle`, is rounded down, ``energy``, :math:`\|A\|^2`, and ``scores``,
    :math:`\|\tilde x_j^T A\|^2 / 2\mu` summed over the features of a unit, are rounded up by more than rounding can amount
    to: that of the products, which are in float64, and that of X~ and Y~ as they are stored. The bound holds for X~ and Y~
    in exact arithmetic.

    Examples
    --------
    >>> cut = Cut(product=4.0, energy=2.0, scores=np.array([1.0, 3.0]))
    >>> float(cut.bound(load=3.0))
    1.0
    """

    product: float
    energy: float
    scores: Array

    def bound(self, load: Any) -> Any:
        """Return the lower bound for the supports S whose scores sum to at most ``load``.

        It is infinite for a load so negative that there is no such support.
        """
        whole = self.energy + 2.0 * np.asarray(load)
        with np.errstate(over="ignore"):
            share = self.product / np.maximum(whole, float(np.finfo(np.float64).tiny))
            return np.where(whole > 0.0, 0.5 * self.product * share, np.inf)[()]  # a square might overflow

    def under_rules(self, reduced: ReducedCosts) -> Cut:
        """Return the cut for panels under rules, whose multipliers are scaled with A; there are no prices."""
        rounding = reduced.rounding(len(self.scores))
        scores = self.scores - reduced.costs + rounding * (self.scores + reduced.cost_sizes)
        energy = self.energy + 2.0 * (reduced.credit + rounding * reduced.credit_size)
        return Cut(self.product, energy + rounding * self.energy, scores)

    def with_prices(self, reduced: ReducedCosts, factor: float) -> LinearCut:
        """Return the cut of ``factor * A`` for panels with prices and rules."""
        rounding, square = reduced.rounding(len(self.scores)), factor * factor
        scores = square * self.scores
        scores = scores - reduced.costs + rounding * (scores + reduced.cost_sizes)
        gain, loss = factor * self.product, 0.5 * square * self.energy
        constant = gain - loss - reduced.credit - rounding * (gain + loss + reduced.credit_size)
        return LinearCut(constant, scores)


class LinearCut(NamedTuple):
    """Cut for supports with prices: ``constant`` minus the sum of their scores, which may be negative.

    Examples
    --------
    >>> LinearCut(constant=5.0, scores=np.array([1.0, -3.0])).bound(load=1.0)
    4.0
    """

    constant: float
    scores: Array

    def bound(self, load: Any) -> Any:
        """Return the lower bound for the supports whose scores sum to at most ``load``."""
        return self.constant - load


class ReducedCosts(NamedTuple):
    """Reduced costs of units, the credit of the limits, and the sizes of their terms, in which rounding is measured."""

    costs: Array
    cost_sizes: Array
    credit: float
    credit_size: float
    n_terms: int

    def rounding(self, n_units: int) -> float:
        """Return the relative rounding error of sums of all scores and costs, with room to spare."""
        return 4.0 * (n_units + self.n_terms + 16) * EPS


def measure(problem: Problem, A: Array, rows: Array | None = None) -> Cut:
    """Compute the cut of a point A, (n_targets, n_samples), in one pass over X, or with the scores of a few features alone.

    Examples
    --------
    >>> from l20fs.objective import make_problem
    >>> problem = make_problem(np.eye(3), np.eye(3), ridge=1.0)
    >>> cut = measure(problem, problem.targets)
    >>> round(cut.product, 6), round(cut.energy, 6), cut.scores.round(6)
    (2.0, 2.0, array([0.5, 0.5, 0.5]))
    """
    design = problem.design
    A = design.sample_weights.centred(A)  # products with all features rely on it
    length = float(np.linalg.norm(A))
    # In any order of summation, the error of a sum of n products is at most n eps times the norms of the two factors.
    rounding = 4.0 * (A.size + 8) * EPS
    products = design.pull(A, exactly=True) if rows is None else A @ design.columns(rows).T
    errors = rounding * design.pull_norms() + storage_errors(design)
    norms = np.linalg.norm(products, axis=0) + length * (errors if rows is None else errors[rows])
    target_error = rounding * float(np.linalg.norm(problem.targets)) + target_storage_error(problem)
    product = float(np.vdot(A, problem.targets)) - length * target_error
    rounding_up = 1.0 + rounding + problem.n_features * EPS  # the scores are summed later
    energy = max(length * length * rounding_up, float(np.finfo(np.float64).tiny))  # A = 0 bounds by zero, not by 0 / 0
    return Cut(max(0.0, product), energy, norms * norms * (rounding_up / (2.0 * problem.ridge)))


def measure_fit(problem: Problem, rows: Array, weights: Array, *, alone: bool = False) -> Cut:
    """Compute the cut of ``A = Y~ - X~ W`` for weights of some features; ``alone``: with their scores and no others.

    Examples
    --------
    >>> from l20fs.objective import make_problem
    >>> problem = make_problem(np.eye(3), np.eye(3), ridge=1.0)
    >>> measure_fit(problem, np.array([0]), np.zeros((3, 1))).scores.round(6)
    array([0.5, 0.5, 0.5])
    """
    return measure(problem, -problem.residual(rows, weights), rows if alone else None)


def storage_errors(design: Design) -> Array:
    """Return upper bounds on the norms of the rounding errors of the columns of X~ as they are stored.

    Centring, scaling and sample weights round each value three times at most, in the precision of X; a mean is exact to a
    few units in the last place of float64, and a sum over the samples to as many as there are samples.
    """
    share = 1.5 * float(np.finfo(design.dtype).eps) + design.n_samples * EPS
    return share * design.pull_norms() + 8.0 * EPS * np.sqrt(design.place.fetch(design.stored_energy))


def target_storage_error(problem: Problem) -> float:
    """Return an upper bound on the norm of the rounding error of the targets as they are stored."""
    offset = float(np.sqrt(problem.design.sample_weights.total)) * float(np.linalg.norm(problem.y_mean * problem.y_scale))
    return 8.0 * EPS * (problem.targets_norm + offset)
