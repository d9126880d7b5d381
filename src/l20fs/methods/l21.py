"""L21: least squares with the l2,1 penalty along its regularisation path, with duality gaps."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path

from l20fs.methods._columns import Columns, as_columns
from l20fs.methods._linalg import row_norms
from l20fs.methods._method import POSITIVE, About, Callback, Method, Scored, Targets, choice, number, rules, tell, warn_above
from l20fs.typing import Array, Task

#: The most penalties of a path.
MOST_ALPHAS = 10**5


@dataclass(eq=False, repr=False, kw_only=True)
class PathSelector(Method):
    """Base of the methods that follow a path of decreasing penalties from the entry of the first feature."""

    checks = rules(
        alpha=number(strict=True, below=1.0),
        n_alphas=number(2, most=MOST_ALPHAS, whole=True),
        ranking=choice("entry", "norm"),
        tol=POSITIVE,
    )

    alpha: float = 0.1
    n_alphas: int = 50
    ranking: Literal["entry", "norm"] = "entry"
    max_iter: int = 10000
    tol: float = 1e-6
    callback: Callback | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class L21(PathSelector):
    r"""Select features by least squares with the convex row penalty.

    .. math:: \min_{W, b} \|X W + 1 b' - Y\|_F^2 + \lambda \|W\|_{2,1}, \qquad \|W\|_{2,1} = \sum_j \|w_j\|

    The penalties form a geometric grid from the smallest one at which W is zero,
    :math:`\lambda_{max} = 2 \max_j \|x_j'(Y - 1 \bar y')\|` for centred features :math:`x_j`, down to ``alpha`` times that
    value. Rows are exactly zero or not. Block coordinate descent of scikit-learn solves each problem on the features that
    may be non-zero, and the duality gap over all of them certifies its accuracy.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        Number of features to select, or fraction of all features.
    alpha : float, default=0.1
        Last penalty of the path as a fraction of :math:`\lambda_{max}`, above 0 and below 1. A smaller value selects more
        rows and takes longer.
    n_alphas : int, default=50
        Number of penalties on the path, both ends included.
    ranking : {"entry", "norm"}, default="entry"
        ``"entry"`` ranks rows by the penalty at which they enter the path, largest first; ``"norm"`` by their norm at the
        end of the path. Either way zero rows come last, by :math:`\|x_j' R\|` for the residual R at the end of the path.
    max_iter : int, default=10000
        Maximum number of sweeps of coordinate descent per penalty.
    tol : float, default=1e-6
        Tolerance of the duality gap at each penalty, relative to the objective of W = 0.
    callback : callable or None, default=None
        Called with a :class:`~l20fs.estimators.scoring.Progress` after each penalty.
    task : {"auto", "classification", "regression"}, default="auto"
        Whether y holds labels or numbers; ``"auto"`` takes whole numbers in one column for labels.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        For ``ranking="entry"`` the penalty at which a row enters as a fraction of :math:`\lambda_{max}`, interpolated
        between the two penalties of the path on either side; for a row that stays zero
        :math:`2 \|x_j' R\| / \lambda_{max}`. For ``ranking="norm"`` the norm of the row; for a zero row
        :math:`2 \|x_j' R\| / \lambda - 1`, which is not positive. ``-inf`` for a constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    coef_ : array of shape (n_targets, n_features)
        Weights at the end of the path.
    alphas_ : array of shape (n_alphas,)
        Penalties :math:`\lambda` of the path, largest first.
    gap_ : float
        Largest duality gap on the path, relative to the objective of W = 0.
    objective_ : array of shape (n_alphas,)
        Minimum at each penalty of the path.
    n_iter_ : int
        Number of penalties.
    classes_ : array of shape (n_classes,)
        Class labels in sorted order, if y holds labels.

    References
    ----------
    .. [1] G. Obozinski, B. Taskar and M. I. Jordan, "Joint covariate selection and joint subspace selection for multiple
       classification problems", Statistics and Computing 20 (2010).

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]
    >>> L21(1).fit(X, ["a", "a", "b", "b"]).get_support(indices=True)
    array([0])
    """

    about = About(
        "Obozinski, Taskar and Jordan, Joint covariate selection and joint subspace selection (2010)",
        "embedded",
        "O(N d C) per penalty and check",
    )
    needs_labels = False
    takes_device_arrays = True

    task: Task = "auto"

    def _score_features(self, X: Any, targets: Targets) -> Scored:
        columns, Y = Columns(X).centred(), targets.Y - targets.Y.mean(axis=0)
        lam_max = largest_penalty(columns, Y)
        self.alphas_ = lam_max * np.geomspace(1.0, self.alpha, self.n_alphas)
        values: list[float] = []
        self.gap_ = 0.0
        for solution in solve_path(columns, Y, self.alphas_, tol=self.tol, max_iter=self.max_iter):
            values.append(solution.objective)
            self.gap_ = max(self.gap_, solution.gap)
            tell(self, values)
        warn_above(self, self.gap_)
        scores = entry_scores(solution, lam_max) if self.ranking == "entry" else norm_scores(solution)
        return Scored(scores=scores, coef=solution.W.T, objective=values)


class Solution(NamedTuple):
    """Minimum at one penalty: weights ``W``, objective, duality gap, and the norms ``pulls`` of X'R for the residual R.

    ``gap`` is relative to the objective of W = 0. ``entries`` holds the penalty at which each row became non-zero, 0 for
    rows that have been zero so far.
    """

    lam: float
    W: Array
    pulls: Array
    objective: float
    gap: float
    entries: Array


def largest_penalty(X: Any, Y: Array) -> float:
    """Return the smallest penalty at which W = 0 is the minimum, for centred X and Y."""
    return 2.0 * float(pulls_of(as_columns(X), Y).max())


def pulls_of(columns: Columns, residual: Array) -> Array:
    """Return the norm of ``x_j' R`` for every feature, on the host; a zero row enters where twice that is the penalty."""
    return columns.place.fetch(row_norms(columns.pull(columns.place.send(residual))))


def solve_path(X: Any, Y: Array, penalties: Array, *, tol: float, max_iter: int) -> Iterator[Solution]:
    """Yield the minimum at each of the decreasing ``penalties``, with warm starts; X and Y are centred.

    Coordinate descent sees the rows that are not zero and those which the sequential strong rule of Tibshirani et al.
    (2012) does not discard. One product with all features then gives the duality gap, and the features that were missed,
    which join if the gap is too large.
    """
    columns, Y = as_columns(X), np.asfortranarray(Y)
    W = np.zeros((columns.shape[1], Y.shape[1]))
    entries, pulls = np.zeros(len(W)), pulls_of(columns, Y)
    squared_norms = columns.place.fetch(columns.squares())
    lam_max, empty = 2.0 * float(pulls.max()), float(np.sum(Y * Y))
    above = math.inf
    for lam in penalties.tolist():
        is_tried = W.any(axis=1) | (2.0 * pulls >= 2.0 * lam - min(above, lam_max))
        residual, found, value = Y, W, empty
        gap = (empty - dual_value(Y, residual, pulls, lam)) / empty
        while lam < lam_max:
            tried = np.flatnonzero(is_tried)
            own = np.asfortranarray(columns.take(tried).on_host())
            found = np.zeros_like(W)
            found[tried] = descend(own, Y, W[tried], lam, tol=tol, max_iter=max_iter)
            residual = Y - own @ found[tried]
            pulls = pulls_of(columns, residual)
            value = objective(residual, found, lam)
            gap = (value - dual_value(Y, residual, pulls, lam)) / empty
            is_missed = (2.0 * pulls > lam) & ~is_tried
            if gap <= tol or not is_missed.any():
                break
            W, is_tried = found, is_tried | is_missed
        W = found
        is_new = (entries == 0.0) & W.any(axis=1)
        # A row enters where its product with its partial residual reaches lambda / 2. That product is known at this penalty
        # only; for orthogonal features it is the same everywhere, and the two penalties bound the entry in any case.
        new = np.flatnonzero(is_new)
        if len(new):
            apart = columns.take(new).on_host().T @ residual + squared_norms[new, None] * W[new]
            entries[new] = np.clip(2.0 * row_norms(apart), lam, above)
        yield Solution(lam, W, pulls, value, gap, entries.copy())
        above = lam


def descend(X: Array, Y: Array, W: Array, lam: float, *, tol: float, max_iter: int) -> Array:
    """Minimise at one penalty by scikit-learn's coordinate descent, from ``W``; X and Y are in Fortran order."""
    is_single = Y.shape[1] == 1  # scikit-learn has a faster kernel for one target
    with warnings.catch_warnings():
        # The selector checks the duality gap itself and warns once for the whole path.
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, coefs, _ = lasso_path(
            X,
            Y[:, 0] if is_single else Y,
            # scikit-learn minimises our objective divided by 2 N.
            alphas=[lam / (2 * len(X))],
            coef_init=W[:, 0].copy() if is_single else W.T.copy(),
            precompute=False,
            check_input=False,
            # Its gap is half of ours before the division; the other half is a margin for rounding.
            tol=tol / 4,
            max_iter=max_iter,
        )
    return coefs if is_single else np.ascontiguousarray(coefs[:, :, 0].T)


def objective(residual: Array, W: Array, lam: float) -> float:
    """Return ``||R||_F^2 + lambda ||W||_{2,1}``."""
    return float(np.sum(residual * residual) + lam * row_norms(W).sum())


def dual_value(Y: Array, residual: Array, pulls: Array, lam: float) -> float:
    """Return the dual objective ``<T, Y> - ||T||_F^2 / 4`` at T = 2 R scaled to be feasible, ``||x_j' T|| <= lambda``."""
    steepest = 2.0 * float(pulls.max())
    dual = residual * (2.0 * (lam / steepest if steepest > lam else 1.0))
    return float(np.sum(dual * Y) - np.sum(dual * dual) / 4.0)


def duality_gap(X: Array, Y: Array, W: Array, lam: float) -> float:
    """Return the duality gap at ``W``, an upper bound on its distance to the minimum, for centred X and Y.

    Examples
    --------
    >>> X, Y = np.array([[1.0], [-1.0]]), np.array([[3.0], [-3.0]])
    >>> duality_gap(X, Y, np.array([[2.0]]), lam=4.0), duality_gap(X, Y, np.array([[0.0]]), lam=4.0)
    (0.0, 8.0)
    """
    residual = Y - X @ W
    return objective(residual, W, lam) - dual_value(Y, residual, row_norms(X.T @ residual), lam)


def entry_scores(solution: Solution, lam_max: float) -> Array:
    """Return the penalty at which each row enters relative to ``lam_max``; for a zero row, the one at which it would."""
    reached = np.minimum(2.0 * solution.pulls, solution.lam)
    return np.where(solution.entries > 0.0, solution.entries, reached) / (lam_max or 1.0)


def norm_scores(solution: Solution) -> Array:
    """Return the row norms; for a zero row, minus the fraction of the penalty that it lacks to enter."""
    reached = np.minimum(2.0 * solution.pulls / (solution.lam or 1.0), 1.0)
    return np.where(solution.W.any(axis=1), row_norms(solution.W), reached - 1.0)
