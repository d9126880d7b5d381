"""ESFS: l2,0-constrained regression on labels coded so that least squares becomes discriminant analysis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from l20fs.design.moments import centred
from l20fs.methods._linalg import row_norms, squared_spectral_norm
from l20fs.methods._method import POSITIVE, About, Callback, MethodForOneK, Scored, Targets, follow, rules
from l20fs.methods.fisher import class_scatter
from l20fs.objective.prox import keep_best_rows, order_descending
from l20fs.typing import Array


@dataclass(eq=False, repr=False, kw_only=True)
class ESFS(MethodForOneK):
    r"""Select k features by l2,0-constrained regression on labels coded for linear discriminant analysis.

    .. math:: \min_{W, b} \|X W + 1 b' - Y Q\|_F^2 \quad \text{subject to } \|W\|_{2,0} = k,
              \qquad Q = \mathrm{diag}(n_c^{-1/2})

    With this coding the least squares loss on a support S is a constant minus the trace criterion
    :math:`\mathrm{tr}[(S_t)_{SS}^{-1} (S_b)_{SS}]`. Stage 1 selects the k features with the largest ratio
    :math:`(S_b)_{jj} / (S_t)_{jj}`, which is optimal for uncorrelated features. Stage 2 runs projected gradient descent from
    there and refits by least squares on the resulting support.

    **This is a reconstruction** from the abstract of the publication; no code is public. The coding follows from the
    abstract; the initial weights and the step size of stage 2 are our choice. Stage 2 rarely changes the support, so that
    the selection is close to that of :class:`~l20fs.methods.FisherScore`.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        Number k of features to select, or fraction of all features. Each number is a separate problem: after ``fit``,
        numbers other than this one and ``sizes`` are an error.
    max_iter : int, default=1000
        Maximum number of steps of stage 2.
    tol : float, default=1e-6
        Relative decrease of the loss below which stage 2 stops.
    sizes : sequence of int or None, default=None
        Other numbers of features to solve for in ``fit``, for ``support_for`` and ``n_features_to_select``.
    callback : callable or None, default=None
        Called with a :class:`~l20fs.estimators.scoring.Progress` after each step.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        On the support 1 plus the norm of the weights relative to the largest, elsewhere the ratio of stage 1; ``-inf`` for a
        constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    coef_ : array of shape (n_classes, n_features)
        Weights of the k features for the coded labels, in units of X; zero elsewhere.
    loss_ : float
        Loss of ``coef_``; never above that of least squares on the features of stage 1.
    objective_ : array of shape (``n_iter_``,)
        Loss after every step of stage 2, before the refit.
    n_iter_ : int
        Number of steps of stage 2.
    solutions_ : dict of int to Solution
        Solution for each number of features, of which the attributes above are those for ``n_features_to_select``.
    classes_ : array of shape (n_classes,)
        Class labels in sorted order.

    References
    ----------
    .. [1] T. Pang, F. Nie, J. Han and X. Li, "Efficient feature selection via l2,0-norm constrained sparse regression", IEEE
       Transactions on Knowledge and Data Engineering 31 (2019).

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]
    >>> ESFS(1).fit(X, ["a", "a", "b", "b"]).get_support(indices=True)
    array([0])
    """

    about = About(
        "Pang, Nie, Han and Li, Efficient feature selection via l2,0-norm constrained sparse regression (2019); "
        "reconstructed from its abstract",
        "embedded",
        "O(N d C) per iteration",
    )
    checks = rules(tol=POSITIVE)

    max_iter: int = 1000
    tol: float = 1e-6
    sizes: Sequence[int] | None = None
    callback: Callback | None = None

    def _solve_for(self, k: int, X: Array, targets: Targets) -> Scored:
        between, total = class_scatter(X, targets)
        # Rounding may lift a perfect ratio above 1, which belongs to the support.
        ratios = np.minimum(between / total, 1.0)
        by_ratio = order_descending(ratios)
        first = np.sort(by_ratio[:k])
        deviations, coded = centred(X), code_labels(targets.Y)
        W = np.zeros((X.shape[1], coded.shape[1]))
        W[first] = deviations[:, first].T @ coded / total[first, None]  # the regression on each feature alone
        W, objective = follow(self, projected_gradient(deviations, coded, W, k))
        # Descent lowers the loss of W as a whole; what counts is how well its features do once refitted.
        supports = first, np.flatnonzero(W.any(axis=1))
        best = min((refit(deviations, coded, support) for support in supports), key=lambda refitted: refitted.loss)
        norms = row_norms(best.weights)
        order = np.concatenate([best.support[order_descending(norms)], by_ratio[~np.isin(by_ratio, best.support)]])
        scores = ratios.copy()
        scores[best.support] = 1.0 + norms / max(norms.max(), np.finfo(np.float64).tiny)
        coef = np.zeros((coded.shape[1], X.shape[1]))
        coef[:, best.support] = best.weights.T
        return Scored(scores, order, coef, objective, loss=best.loss)


class Refitted(NamedTuple):
    """Least squares on a support: its features, their weights, the loss that is left."""

    support: Array
    weights: Array
    loss: float


def code_labels(Y: Array) -> Array:
    """Return centred one-hot labels with every class divided by the root of its size: the columns of H Y Q.

    Examples
    --------
    >>> code_labels(np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    coded = Y / np.sqrt(Y.sum(axis=0))
    return coded - coded.mean(axis=0)


def projected_gradient(X: Array, Y: Array, W: Array, k: int) -> Iterator[tuple[Array, float, float]]:
    """Yield the best W so far, the loss and its decrease after every step of descent on the matrices with k non-zero rows.

    The step is 1 / L for an L just above the Lipschitz constant of the gradient, so the loss never rises.
    """
    lipschitz = 1.01 * squared_spectral_norm(X)
    residual = fitted(X, W) - Y
    best, before = W, float(np.sum(residual**2))
    least = before
    while True:
        W = keep_best_rows(W - X.T @ residual / lipschitz, k)
        residual = fitted(X, W) - Y
        loss = float(np.sum(residual**2))
        if loss < least:
            best, least = W, loss
        yield best, loss, (before - loss) / before if before > 0 else 0.0
        before = loss


def fitted(X: Array, W: Array) -> Array:
    """Return ``X W`` from the non-zero rows of W."""
    rows = W.any(axis=1)
    return X[:, rows] @ W[rows]


def refit(X: Array, Y: Array, support: Array) -> Refitted:
    """Return least squares on a support; of several solutions the one with the least norm."""
    weights = np.linalg.lstsq(X[:, support], Y, rcond=None)[0]
    return Refitted(support, weights, float(np.sum((X[:, support] @ weights - Y) ** 2)))
