"""RFS: robust feature selection with the l2,1 norm of the residuals and of the weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from l20fs.methods._columns import Columns, as_columns
from l20fs.methods._linalg import row_norms, weighted_ridge
from l20fs.methods._method import POSITIVE, About, Callback, Method, Scored, Targets, choice, follow, rules
from l20fs.methods._reweighting import Point, descend, epsilon_for
from l20fs.objective.prox import squared_row_norms
from l20fs.typing import Array, Task

Bias = Literal["none", "unpenalised"]

#: Smoothing of a norm, relative to the typical norm of its rows.
EPSILON = 1e-8


@dataclass(eq=False, repr=False, kw_only=True)
class RFS(Method):
    r"""Rank features by a sparse regression with l2,1 loss and l2,1 penalty.

    .. math:: \min_W \sum_i \|x_i W - y_i\| + \gamma \sum_j \|w_j\|

    Residuals enter by their norm and not by its square, so that single outliers have little influence. The score of a
    feature is :math:`\|w_j\|`. The problem is convex and is solved by iteratively reweighted ridge regressions with
    min(N, d) equations. No row becomes exactly zero.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        Number of features to select, or fraction of all features.
    gamma : float, default=1.0
        Strength of the penalty. With more features than samples all small values give the same ranking, that of the
        smallest weights that fit every sample exactly; from :func:`gamma_max` on all weights are zero. Useful values lie
        between, for example ``gamma_max(X, Y)`` times 0.02, 0.05, 0.1, 0.2 or 0.5.
    bias : {"none", "unpenalised"}, default="none"
        ``"none"`` fits without intercept, as published. ``"unpenalised"`` adds an intercept without penalty, so that
        shifting a feature does not change the scores.
    accelerate : bool, default=True
        Whether to extrapolate the weights between iterations; a step that raises the objective is repeated without
        extrapolation. False is the published iteration, which needs about four times as many steps.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-6
        Relative decrease of the objective below which the iterations stop.
    task : {"auto", "classification", "regression"}, default="auto"
        Whether y holds labels or numbers; ``"auto"`` takes whole numbers in one column for labels.
    callback : callable or None, default=None
        Called with a :class:`~l20fs.estimators.scoring.Progress` after each iteration.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Norm of the row of W; ``-inf`` for a constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    coef_ : array of shape (n_targets, n_features)
        Weights, W transposed.
    intercept_ : array of shape (n_targets,)
        Intercept; zero unless ``bias="unpenalised"``.
    objective_ : array of shape (``n_iter_``,)
        Objective after every iteration, each norm smoothed as in
        :func:`~l20fs.methods._linalg.smooth_row_norms`; it never rises.
    n_iter_ : int
        Number of iterations.
    classes_ : array of shape (n_classes,)
        Class labels in sorted order, if y holds labels.

    References
    ----------
    .. [1] F. Nie, H. Huang, X. Cai and C. Ding, "Efficient and robust feature selection via joint l2,1-norms minimization",
       Advances in Neural Information Processing Systems 23 (2010).

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]
    >>> RFS(1, bias="unpenalised").fit(X, ["a", "a", "b", "b"]).get_support(indices=True)
    array([0])
    """

    about = About(
        "Nie, Huang, Cai, Ding, Efficient and robust feature selection via joint l2,1-norms minimization (2010)",
        "embedded",
        "O(min(N, d) N d) per iteration",
    )
    needs_labels = False
    takes_device_arrays = True
    checks = rules(gamma=POSITIVE, bias=choice("none", "unpenalised"))

    gamma: float = 1.0
    bias: Bias = "none"
    accelerate: bool = True
    max_iter: int = 100
    tol: float = 1e-6
    task: Task = "auto"
    callback: Callback | None = None

    def _score_features(self, X: Any, targets: Targets) -> Scored:
        given = Columns(X)
        # The intercept absorbs any shift of X; without one, X must not be centred.
        columns = given.centred() if self.bias == "unpenalised" else given
        problem = JointNorms(columns, columns.place.send(targets.Y), self.gamma, bias=self.bias)
        start = problem.start()
        steps = descend(start, problem.step, floor=problem.epsilon, accelerate=self.accelerate)
        point, objective = follow(self, steps)
        intercept = point.intercept if columns is given else point.intercept - given.means() @ point.weights
        return Scored(row_norms(point.weights), coef=point.weights.T, objective=objective, intercept=intercept)


class JointNorms:
    """Problem of :class:`RFS` as a sequence of weighted ridge regressions.

    ``norms`` holds the norms of the rows of W, followed by those of the residuals.
    """

    def __init__(self, X: Any, Y: Any, gamma: float, *, bias: Bias = "none") -> None:
        self.columns, self.Y, self.gamma, self.bias = as_columns(X), Y, gamma, bias
        self.n_samples, self.n_features = X.shape
        self.xp = self.columns.xp
        self.epsilon = self._repeated(0.0, 0.0)

    def _repeated(self, of_feature: float, of_sample: float) -> Any:
        """Return one number for every feature, and one for every sample."""
        return self.columns.place.send(np.repeat([of_feature, of_sample], [self.n_features, self.n_samples]))

    def start(self) -> Point:
        """Return the ridge regression with equal weights, and set the smoothing of the norms relative to its size."""
        # The published start assumes X of size 1; otherwise the first steps would be short enough to end the iteration.
        size = math.sqrt(float(self.xp.sum(self.columns.squares())) / (self.n_samples * self.n_features))
        weights, intercept = self._regress(self._repeated(0.5 / size, 0.5))
        self.epsilon = self._repeated(epsilon_for(weights, EPSILON), epsilon_for(self.Y, EPSILON))
        return self._measure(weights, intercept)

    def step(self, norms: Any, point: Point) -> Point:
        """Minimise the quadratic majoriser of the objective at ``norms``."""
        return self._measure(*self._regress(norms))

    def _regress(self, norms: Any) -> tuple[Any, Any]:
        feature_weights, sample_weights = 2.0 * norms[: self.n_features], 2.0 * self.gamma * norms[self.n_features :]
        if self.bias == "none":
            weights = weighted_ridge(self.columns, self.Y, feature_weights, sample_weights)
            return weights, self.xp.zeros_like(self.Y[0, :])
        # The optimal intercept passes through the means, each sample weighted as its residual is.
        shares = 1.0 / sample_weights
        shares = shares / self.xp.sum(shares)
        X_mean, Y_mean = self.columns.pull(shares[:, None])[:, 0], shares @ self.Y
        weights = weighted_ridge(self.columns.moved(X_mean), self.Y - Y_mean, feature_weights, sample_weights)
        return weights, Y_mean - X_mean @ weights

    def _measure(self, weights: Any, intercept: Any) -> Point:
        residuals = self.columns.push(weights) + intercept - self.Y
        squared = self.xp.concat([squared_row_norms(weights), squared_row_norms(residuals)])
        norms = self.xp.sqrt(squared + self.epsilon**2)
        of_residuals, of_weights = self.xp.sum(norms[self.n_features :]), self.xp.sum(norms[: self.n_features])
        return Point(weights, intercept, norms, float(of_residuals + self.gamma * of_weights), self.Y)


def gamma_max(X: Array, Y: Array) -> float:
    r"""Return the smallest gamma at which the solution without intercept is zero.

    .. math:: \gamma_{max} = \max_j \Bigl\| \sum_i x_{ij} \, y_i / \|y_i\| \Bigr\|

    Samples with :math:`y_i = 0` are left out; with such samples a smaller gamma may suffice.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Data.
    Y : array of shape (n_samples, n_targets)
        One-hot labels, or any numbers.

    Returns
    -------
    float
        The value of gamma.

    Examples
    --------
    >>> gamma_max(np.array([[1.0, 2.0], [1.0, -2.0]]), np.array([[1.0], [1.0]]))
    2.0
    """
    norms = row_norms(Y)[:, None]
    return float(row_norms(X.T @ np.divide(Y, norms, out=np.zeros_like(Y), where=norms > 0)).max())
