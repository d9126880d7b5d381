"""LassoOVR: one lasso per class, against the rest."""

from __future__ import annotations

import numpy as np

from l20fs.estimators.base import About
from l20fs.estimators.scoring import Progress, Scored, warn_not_converged
from l20fs.inputs.targets import Targets
from l20fs.methods.l21 import PathSelector, Solution, entry_scores, norm_scores, solve_path
from l20fs.typing import Array


class LassoOVR(PathSelector):
    r"""Select features by a lasso for every class against the rest.

    .. math:: \min_{w_c, b_c} \tfrac{1}{2N} \|y_c - X w_c - b_c\|^2 + \alpha_c \|w_c\|_1, \qquad y_{ic} \in \{0, 1\}

    The penalty of class c that makes all its weights zero is :math:`\alpha_{max,c} = \max_j |x_j'(y_c - \bar y_c)| / N` for
    centred features :math:`x_j`. The penalties fall from there in equal ratios, and scikit-learn's coordinate descent
    solves one problem after the other.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        A number or a share of all features.
    alpha : float, default=0.1
        The penalty at the end of the path as a share of its largest value, above 0 and below 1.
    n_alphas : int, default=50
        Penalties on the path, both ends included.
    ranking : {"entry", "norm"}, default="entry"
        ``"entry"``: the earlier a feature enters the path of any class, the better; every class has its own penalty,
        :math:`\alpha_c` relative to :math:`\alpha_{max,c}`. ``"norm"``: by :math:`\sqrt{\sum_c w_{jc}^2}` at the end of the
        path; all classes have one penalty, relative to the largest :math:`\alpha_{max,c}`. Features without a weight come
        last, by :math:`\max_c |x_j' r_c| / (N \alpha_c)` for the residuals :math:`r_c`.
    max_iter : int, default=10000
        Sweeps of coordinate descent per penalty and class.
    tol : float, default=1e-6
        A lasso is done when its duality gap is at most this share of the objective without weights.
    callback : callable or None, default=None
        Called with a :class:`~l20fs.estimators.scoring.Progress` after each penalty, for all classes together.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        For ``ranking="entry"`` the largest share of a class's :math:`\alpha_{max,c}` at which the feature enters, read off
        between the two penalties of the path on either side. For ``ranking="norm"`` the norm over the classes, and a number
        that is not positive for features without a weight.
    ranking_ : array of shape (n_features,)
        1 is best.
    coef_ : array of shape (n_classes, n_features)
        Weights at the end of the path.
    alpha_ : array of shape (n_classes,)
        The penalty of each class at the end of the path.
    gap_ : float
        The largest duality gap of a lasso on the path, relative to its objective without weights.
    objective_ : array of shape (n_alphas,)
        The sum of the minima of all classes at each penalty of the path.
    n_iter_ : int
        The number of penalties.

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]
    >>> LassoOVR(1).fit(X, ["a", "a", "b", "b"]).get_support(indices=True)
    array([0])
    """

    about = About(
        reference="Tibshirani, Regression shrinkage and selection via the lasso (1996), one versus rest",
        kind="embedded",
        cost="O(N d) per class, penalty and check",
    )

    alpha_: Array
    gap_: float

    def _score_features(self, X: Array, targets: Targets) -> Scored:
        X, Y = np.asfortranarray(X - X.mean(axis=0)), targets.Y - targets.Y.mean(axis=0)
        first = largest_alphas(X, Y)
        if self.ranking == "norm":
            first = np.full_like(first, first.max())
        alphas = np.outer(np.geomspace(1.0, self.alpha, self.n_alphas), first)
        self.alpha_, self.gap_ = alphas[-1], 0.0
        objective: list[float] = []
        # One target and lambda = 2 N alpha make the l2,1 problem 2 N times the lasso.
        twice = 2 * len(X)
        paths = [
            solve_path(X, Y[:, [c]], twice * alphas[:, c], tol=self.tol, max_iter=self.max_iter) for c in range(Y.shape[1])
        ]
        for stage in zip(*paths, strict=True):
            objective.append(sum(lasso.objective for lasso in stage) / twice)
            self.gap_ = max(self.gap_, *(lasso.gap for lasso in stage))
            if self.callback is not None:
                self.callback(Progress(len(objective), objective[-1]))
        if self.gap_ > self.tol:
            warn_not_converged(self, self.gap_, self.tol, self.max_iter)
        scores = earliest_entry(stage, twice * first) if self.ranking == "entry" else joint_norms(stage)
        return Scored(scores=scores, coef=np.hstack([lasso.W for lasso in stage]).T, objective=objective)


def largest_alphas(X: Array, Y: Array) -> Array:
    """Return for every column of Y the smallest penalty at which all weights are zero, for centred X and Y."""
    return np.abs(X.T @ Y).max(axis=0) / len(X)


def earliest_entry(stage: tuple[Solution, ...], lam_max: Array) -> Array:
    """Return for every feature the largest share of a class's largest penalty at which it enters there."""
    return np.max([entry_scores(lasso, lam) for lasso, lam in zip(stage, lam_max.tolist(), strict=True)], axis=0)


def joint_norms(stage: tuple[Solution, ...]) -> Array:
    """Return the norms over the classes; for a feature without a weight its largest score in a class, not positive."""
    W = np.hstack([lasso.W for lasso in stage])
    return np.where(W.any(axis=1), np.sqrt(np.sum(W * W, axis=1)), np.max([norm_scores(lasso) for lasso in stage], axis=0))
