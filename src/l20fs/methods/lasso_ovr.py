"""LassoOVR: one lasso per class, one versus rest."""

from __future__ import annotations

import numpy as np

from l20fs.design.moments import centred
from l20fs.methods._method import About, Scored, Targets, tell, warn_above
from l20fs.methods.l21 import PathSelector, Solution, entry_scores, norm_scores, solve_path
from l20fs.typing import Array


class LassoOVR(PathSelector):
    r"""Select features by one lasso per class, one versus rest.

    .. math:: \min_{w_c, b_c} \tfrac{1}{2N} \|y_c - X w_c - b_c\|^2 + \alpha_c \|w_c\|_1, \qquad y_{ic} \in \{0, 1\}

    The smallest penalty of class c at which all its weights are zero is
    :math:`\alpha_{max,c} = \max_j |x_j'(y_c - \bar y_c)| / N` for centred features :math:`x_j`. The penalties form a
    geometric grid from there, and coordinate descent of scikit-learn solves the problems with warm starts.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        Number of features to select, or fraction of all features.
    alpha : float, default=0.1
        Last penalty of the path as a fraction of the largest one, above 0 and below 1.
    n_alphas : int, default=50
        Number of penalties on the path, both ends included.
    ranking : {"entry", "norm"}, default="entry"
        ``"entry"`` ranks features by the largest penalty at which they enter the path of any class; every class has its own
        penalty, :math:`\alpha_c` relative to :math:`\alpha_{max,c}`. ``"norm"`` ranks them by
        :math:`\sqrt{\sum_c w_{jc}^2}` at the end of the path; all classes share one penalty, relative to the largest
        :math:`\alpha_{max,c}`. Features with zero weights come last, by :math:`\max_c |x_j' r_c| / (N \alpha_c)` for the
        residuals :math:`r_c`.
    max_iter : int, default=10000
        Maximum number of sweeps of coordinate descent per penalty and class.
    tol : float, default=1e-6
        Tolerance of the duality gap of each lasso, relative to its objective with zero weights.
    callback : callable or None, default=None
        Called with a :class:`~l20fs.estimators.scoring.Progress` after each penalty, for all classes together.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        For ``ranking="entry"`` the largest penalty at which the feature enters, as a fraction of :math:`\alpha_{max,c}` of
        the class, interpolated between the two penalties of the path on either side. For ``ranking="norm"`` the norm over
        the classes, and a number that is not positive for features with zero weights. ``-inf`` for a constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    coef_ : array of shape (n_classes, n_features)
        Weights at the end of the path.
    alpha_ : array of shape (n_classes,)
        Penalty of each class at the end of the path.
    gap_ : float
        Largest duality gap of a lasso on the path, relative to its objective with zero weights.
    objective_ : array of shape (n_alphas,)
        Sum of the minima of all classes at each penalty of the path.
    n_iter_ : int
        Number of penalties.
    classes_ : array of shape (n_classes,)
        Class labels in sorted order.

    References
    ----------
    .. [1] R. Tibshirani, "Regression shrinkage and selection via the lasso", Journal of the Royal Statistical Society,
       Series B 58 (1996).

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]
    >>> LassoOVR(1).fit(X, ["a", "a", "b", "b"]).get_support(indices=True)
    array([0])
    """

    about = About(
        "Tibshirani, Regression shrinkage and selection via the lasso (1996), one versus rest",
        "embedded",
        "O(N d) per class, penalty and check",
    )

    def _score_features(self, X: Array, targets: Targets) -> Scored:
        X, Y = np.asfortranarray(centred(X)), targets.Y - targets.Y.mean(axis=0)
        first = largest_alphas(X, Y)
        if self.ranking == "norm":
            first = np.full_like(first, first.max())
        alphas = np.outer(np.geomspace(1.0, self.alpha, self.n_alphas), first)
        self.alpha_, self.gap_ = alphas[-1], 0.0
        objective: list[float] = []
        # With one target and lambda = 2 N alpha, the l2,1 objective is 2 N times that of the lasso.
        twice = 2 * len(X)
        paths = [
            solve_path(X, Y[:, [c]], twice * alphas[:, c], tol=self.tol, max_iter=self.max_iter) for c in range(Y.shape[1])
        ]
        for stage in zip(*paths, strict=True):
            objective.append(sum(lasso.objective for lasso in stage) / twice)
            self.gap_ = max(self.gap_, *(lasso.gap for lasso in stage))
            tell(self, objective)
        warn_above(self, self.gap_)
        scores = earliest_entry(stage, twice * first) if self.ranking == "entry" else joint_norms(stage)
        return Scored(scores=scores, coef=np.hstack([lasso.W for lasso in stage]).T, objective=objective)


def largest_alphas(X: Array, Y: Array) -> Array:
    """Return for every column of Y the smallest penalty at which all weights are zero, for centred X and Y."""
    return np.abs(X.T @ Y).max(axis=0) / len(X)


def earliest_entry(stage: tuple[Solution, ...], lam_max: Array) -> Array:
    """Return for every feature the largest relative penalty at which it enters the path of a class."""
    return np.max([entry_scores(lasso, lam) for lasso, lam in zip(stage, lam_max.tolist(), strict=True)], axis=0)


def joint_norms(stage: tuple[Solution, ...]) -> Array:
    """Return the norms over the classes; for a feature with zero weights its largest score in a class, at most 0."""
    W = np.hstack([lasso.W for lasso in stage])
    return np.where(W.any(axis=1), np.sqrt(np.sum(W * W, axis=1)), np.max([norm_scores(lasso) for lasso in stage], axis=0))
