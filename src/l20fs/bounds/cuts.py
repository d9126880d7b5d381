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

from l20fs.design import Design, storage_errors
from l20fs.design.moments import MODEST
from l20fs.objective.least_squares import LeastSquares
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
    >>> float(cut.bound(load=3.0)), cut.bounds_by_size()
    (1.0, array([4. , 1. , 0.8]))
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

    def bounds_by_size(self) -> Array:
        """Return the lower bound on h(S) over all supports of k features, for every k from 0 to all."""
        heaviest_first = np.sort(self.scores)[::-1]
        return np.asarray(self.bound(np.concatenate([[0.0], np.cumsum(heaviest_first)])))

    def by_unit(self, unit_of: Array, n_units: int) -> Cut:
        """Return the cut with the scores of units of features."""
        return self._replace(scores=np.bincount(unit_of, weights=self.scores, minlength=n_units))

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


def measure(problem: LeastSquares, A: Array, rows: Array | None = None) -> Cut:
    """Compute the cut of a point A, (n_targets, n_samples), in one pass over X, or with the scores of a few features alone.

    Examples
    --------
    >>> problem = LeastSquares(np.eye(3), np.eye(3), ridge=1.0)
    >>> cut = measure(problem, problem.targets)
    >>> round(cut.product, 6), round(cut.energy, 6), cut.scores.round(6)
    (2.0, 2.0, array([0.5, 0.5, 0.5]))
    """
    design = problem.design
    A = design.sample_weights.centred(A)  # a sparse design relies on it
    length = float(np.linalg.norm(A))
    # In any order of summation, the error of a sum of n products is at most n eps times the norms of the two factors.
    rounding = 4.0 * (A.size + 8) * EPS
    which: Array | slice = slice(None) if rows is None else rows
    if rows is None:
        squares = design.squared_lengths_exactly(A)
    else:
        products = np.zeros((len(A), len(rows)))
        for samples, columns in design.sample_blocks(rows):
            products += A[:, samples] @ columns
        squares = np.einsum("ij,ij->j", products, products)
    errors = rounding * _product_norms(design)[which] + storage_errors(design, which)
    norms = np.sqrt(squares) + length * errors
    target_error = rounding * float(np.linalg.norm(problem.targets)) + target_storage_error(problem)
    product = float(np.vdot(A, problem.targets)) - length * target_error
    return _rounded(problem, product, length * length, norms, rounding)


def measure_fit(problem: LeastSquares, rows: Array, weights: Array, *, alone: bool = False) -> Cut:
    """Compute the cut of ``A = Y~ - X~ W`` for weights of some features; ``alone``: with their scores and no others.

    Where vectors over the samples are represented by their products with the features, so is A.

    Examples
    --------
    >>> problem = LeastSquares(np.eye(3), np.eye(3), ridge=1.0)
    >>> measure_fit(problem, np.array([0]), np.zeros((3, 1))).scores.round(6)
    array([0.5, 0.5, 0.5])
    """
    if problem.design.vectors == "features":
        cut = _measure_products(problem, rows, weights)
        return cut._replace(scores=cut.scores[rows]) if alone else cut
    A = problem.targets.copy()  # in float64 whatever the dtype of X: it may be much smaller than Y~
    for samples, columns in problem.design.sample_blocks(rows):
        A[:, samples] -= weights @ columns.T
    return measure(problem, A, rows if alone else None)


def _measure_products(problem: Any, rows: Array, weights: Array) -> Cut:
    """Compute the cut of ``A = Y~ - X~ W`` from products of targets and features with all features.

    The errors of the products are those of the sums over the samples and of X~ and Y~ as they are stored; the products with
    A are their differences.
    """
    design, image = problem.design, problem.image(rows, weights) if len(rows) else None
    norms, stored = _product_norms(design), storage_errors(design)
    rounding = 4.0 * (problem.n_targets * design.n_samples + len(rows) + 8) * EPS
    sizes = np.linalg.norm(weights, axis=0)
    target_length = float(np.sqrt(2.0 * problem.null_loss))
    length = target_length + float(sizes @ norms[rows])
    stored_length = target_storage_error(problem) + float(sizes @ stored[rows])
    products = problem.targets - image.products if image is not None else problem.targets
    errors = (rounding * norms + stored) * length + norms * stored_length
    along = float(np.vdot(problem.targets[:, rows], weights))
    energy = 2.0 * (problem.null_loss - along) + (image.squared_length if image is not None else 0.0)
    error = (rounding * length + 2.0 * stored_length) * length
    pulls = np.sqrt(np.einsum("ij,ij->j", products, products)) + errors
    return _rounded(problem, 2.0 * problem.null_loss - along - error, max(energy, 0.0) + error, pulls, rounding)


def _rounded(problem: LeastSquares, product: float, energy: float, norms: Array, rounding: float) -> Cut:
    rounding_up = 1.0 + rounding + problem.n_features * EPS  # the scores are summed later
    energy = max(energy * rounding_up, float(np.finfo(np.float64).tiny))  # A = 0 bounds by zero, not by 0 / 0
    return Cut(max(0.0, float(product)), energy, norms * norms * (rounding_up / (2.0 * problem.ridge)))


def _product_norms(design: Design) -> Array:
    """Return upper bounds on the norms of the features as they are multiplied: in blocks, not centred by all of the mean."""
    return design.pull_norms() * (np.sqrt(1.0 + MODEST * MODEST) if design.location == "blocks" else 1.0)


def target_storage_error(problem: LeastSquares) -> float:
    """Return an upper bound on the norm of the rounding error of the targets as they are stored."""
    offset = float(np.sqrt(problem.design.sample_weights.total)) * float(np.linalg.norm(problem.y_mean * problem.y_scale))
    return 8.0 * EPS * (problem.targets_norm + offset)
