"""NonnegativeL21: least squares with the l2,1 penalty and non-negative weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from l20fs.design.moments import centred
from l20fs.methods._linalg import row_norms, squared_spectral_norm
from l20fs.methods._method import POSITIVE, About, Callback, Method, Scored, Targets, follow, number, rules
from l20fs.objective.prox import shrink_rows
from l20fs.typing import Array

#: Relative rounding error of the objective. A smaller rise does not restart the momentum.
ROUNDING = 1e-14


@dataclass(eq=False, repr=False, kw_only=True)
class NonnegativeL21(Method):
    r"""Select features by least squares with the l2,1 penalty and non-negative weights.

    .. math:: \min_{W \ge 0,\, b} \tfrac12 \|X W + 1 b' - Y\|_F^2 + \lambda \|W\|_{2,1}, \qquad
              \|W\|_{2,1} = \sum_j \|w_j\|

    A feature that is high in one class gets a positive weight for that class; one that is low in a class gets positive
    weights for the others. Features are ranked by :math:`\|w_j\|`; zero rows follow, by :math:`\|\max(x_j' R, 0)\|` for
    the residual R. An accelerated proximal gradient method finds the minimum; its momentum restarts whenever it would raise
    the objective.

    **This is a reconstruction** from one sentence about the original article, which names the penalty and the constraint.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        Number of features to select, or fraction of all features.
    alpha : float, default=0.1
        Penalty as a fraction of :math:`\lambda_{max} = \max_j \|\max(x_j' (Y - 1 \bar y'), 0)\|`, the smallest penalty at
        which W is zero, for centred features :math:`x_j`. Above 0 and below 1.
    max_iter : int, default=10000
        Maximum number of iterations.
    tol : float, default=1e-6
        Tolerance of the duality gap, relative to the objective of W = 0.
    callback : callable or None, default=None
        Called with a :class:`~l20fs.estimators.scoring.Progress` after each iteration.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Norm of the row; for a zero row :math:`\|\max(x_j' R, 0)\| / \lambda - 1`, which is not positive. ``-inf`` for a
        constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    coef_ : array of shape (n_classes, n_features)
        Non-negative weights.
    alpha_ : float
        Penalty :math:`\lambda`.
    gap_ : float
        Duality gap at the end, relative to the objective of W = 0.
    objective_ : array of shape (``n_iter_``,)
        Objective after every iteration; it rises by rounding errors at most.
    n_iter_ : int
        Number of iterations.
    classes_ : array of shape (n_classes,)
        Class labels in sorted order.

    References
    ----------
    .. [1] Yan et al. (2016), the l2,1 method with non-negative weights that [2]_ mentions.
    .. [2] Z. Sun and Y. Yu, "Robust multi-class feature selection via l2,0-norm regularization minimization" (2020).

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]
    >>> NonnegativeL21(1).fit(X, ["a", "a", "b", "b"]).get_support(indices=True)
    array([0])
    """

    about = About(
        "after Yan et al. (2016), reconstructed from one sentence in Sun and Yu (2020)", "embedded", "O(N d C) per iteration"
    )
    checks = rules(alpha=number(strict=True, below=1.0), tol=POSITIVE)

    alpha: float = 0.1
    max_iter: int = 10000
    tol: float = 1e-6
    callback: Callback | None = None

    def _score_features(self, X: Array, targets: Targets) -> Scored:
        X, Y = centred(X), targets.Y - targets.Y.mean(axis=0)
        self.alpha_ = self.alpha * largest_penalty(X, Y)
        empty = float(np.sum(Y * Y)) / 2.0
        steps = ((step, step.objective, duality_gap(Y, step, self.alpha_) / empty) for step in descend(X, Y, self.alpha_))
        step, objective = follow(self, steps)
        self.gap_ = duality_gap(Y, step, self.alpha_) / empty
        return Scored(scores=row_scores(step, self.alpha_), coef=step.W.T, objective=objective)


class Step(NamedTuple):
    """Iterate: weights, residual ``R = Y - X W``, products ``X' R`` and objective."""

    W: Array
    residual: Array
    products: Array
    objective: float


def largest_penalty(X: Array, Y: Array) -> float:
    """Return the smallest penalty at which W = 0 is the minimum, for centred X and Y."""
    return float(pulls(X.T @ Y).max())


def pulls(products: Array) -> Array:
    """Return the norm of the positive part of every row of ``X' R``; a zero row enters where it exceeds the penalty."""
    return np.asarray(row_norms(np.maximum(products, 0.0)))


def prox(V: Array, amount: float) -> Array:
    """Return the proximal map of ``amount * ||W||_{2,1}`` on ``W >= 0``: clip at zero, then shrink the rows.

    Examples
    --------
    >>> prox(np.array([[3.0, 4.0], [2.0, -9.0], [0.5, -9.0]]), amount=1.0)
    array([[2.4, 3.2],
           [1. , 0. ],
           [0. , 0. ]])
    """
    return shrink_rows(np.maximum(V, 0.0), amount)


def descend(X: Array, Y: Array, lam: float) -> Iterator[Step]:
    """Yield the iterates of the accelerated proximal gradient method from W = 0 indefinitely; X and Y are centred."""
    lipschitz = squared_spectral_norm(X)
    now = take_stock(X, Y, np.zeros((X.shape[1], Y.shape[1])), lam)
    ahead, ahead_products, momentum = now.W, now.products, 1.0
    while True:
        reached = take_stock(X, Y, prox(ahead + ahead_products / lipschitz, lam / lipschitz), lam)
        if reached.objective > now.objective * (1.0 + ROUNDING):
            # Momentum overshot. A step without it cannot rise, except by rounding.
            momentum = 1.0
            reached = take_stock(X, Y, prox(now.W + now.products / lipschitz, lam / lipschitz), lam)
        grown = (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
        share = (momentum - 1.0) / grown
        ahead = reached.W + share * (reached.W - now.W)
        # X'(Y - XZ) is affine in Z: no product with X is needed at the extrapolated point.
        ahead_products = reached.products + share * (reached.products - now.products)
        now, momentum = reached, grown
        yield now


def take_stock(X: Array, Y: Array, W: Array, lam: float) -> Step:
    """Compute the residual, its products with the features and the objective at ``W``."""
    rows = np.flatnonzero(W.any(axis=1))
    residual = Y - X[:, rows] @ W[rows]
    value = float(np.sum(residual * residual)) / 2.0 + lam * float(row_norms(W[rows]).sum())
    return Step(W, residual, X.T @ residual, value)


def duality_gap(Y: Array, step: Step, lam: float) -> float:
    """Return the duality gap, an upper bound on the distance to the minimum, for a positive penalty.

    The dual objective is ``<T, Y> - ||T||_F^2 / 2`` at the residual scaled to be feasible, ``||max(x_j' T, 0)|| <= lam``.
    """
    steepest = float(pulls(step.products).max())
    dual = step.residual * (lam / steepest if steepest > lam else 1.0)
    return step.objective - float(np.sum(dual * Y) - np.sum(dual * dual) / 2.0)


def row_scores(step: Step, lam: float) -> Array:
    """Return the row norms; for a zero row, minus the fraction of the penalty that it lacks to enter."""
    reached = np.minimum(pulls(step.products) / (lam or 1.0), 1.0)
    return np.where(step.W.any(axis=1), row_norms(step.W), reached - 1.0)
