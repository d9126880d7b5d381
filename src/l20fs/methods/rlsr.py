"""RLSR: least squares on rescaled features, ranked by their scales."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from l20fs.inputs.devices import namespace_of
from l20fs.inputs.targets import encode_targets
from l20fs.methods._columns import Columns, as_columns
from l20fs.methods._linalg import project_on_simplex, smooth_row_norms, weighted_ridge
from l20fs.methods._method import POSITIVE, About, Callback, Method, Scored, Targets, follow, rules
from l20fs.methods._reweighting import Point, descend, epsilon_for
from l20fs.typing import Array

#: Smoothing of a norm to the power p, relative to the typical norm of a row to that power.
EPSILON = 1e-9

#: Label of unlabelled samples, as in scikit-learn.
UNLABELLED = -1


@dataclass(eq=False, repr=False, kw_only=True)
class RLSR(Method):
    r"""Rank features by the scales of a rescaled linear regression.

    .. math:: \min_{W, b, \theta} \|X \operatorname{diag}(\theta)^{q/2} W + 1 b' - Y\|_F^2 + \gamma \|W\|_F^2,
              \quad \theta_j \ge 0, \; \sum_j \theta_j = 1, \; q = 2 / p - 1

    With :math:`V = \operatorname{diag}(\theta)^{q/2} W` this is regression with the penalty
    :math:`\gamma \|V\|_{2,p}^2 = \gamma (\sum_j \|v_j\|^p)^{2/p}`, and
    :math:`\theta_j = \|v_j\|^p / \sum_k \|v_k\|^p`. The score of a feature is its scale :math:`\theta_j`.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        Number of features to select, or fraction of all features.
    gamma : float, default=1.0
        Strength of the penalty; if X is multiplied by c, multiply gamma by c squared.
    p : float, default=1.0
        Exponent of the row norms, above 0 and up to 1. With 1 the problem is convex and equivalent to least squares with an
        l2,1 penalty; smaller values concentrate the scales on fewer features and may end in a local minimum.
    semi_supervised : bool, default=False
        Whether the label -1 marks unlabelled samples. Their class probabilities are then estimated along with the weights.
        Labels must be numbers in this case.
    accelerate : bool, default=True
        Whether to extrapolate the scales between iterations; a step that raises the objective is repeated without
        extrapolation. False is the published iteration, which needs about five times as many steps.
    max_iter : int, default=1000
        Maximum number of iterations.
    tol : float, default=1e-8
        Relative decrease of the objective below which the iterations stop.
    callback : callable or None, default=None
        Called with a :class:`~l20fs.estimators.scoring.Progress` after each iteration.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Scales :math:`\theta_j`, which sum to 1; ``-inf`` for a constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    coef_ : array of shape (n_classes, n_features)
        Weights, V transposed.
    intercept_ : array of shape (n_classes,)
        Intercept.
    label_distributions_ : array of shape (n_samples, n_classes)
        Class probabilities of every sample, with ``semi_supervised=True``; one-hot for labelled samples.
    objective_ : array of shape (``n_iter_``,)
        Loss plus penalty after every iteration, its norms smoothed as in
        :func:`~l20fs.methods._linalg.smooth_row_norms`; it never rises.
    n_iter_ : int
        Number of iterations.
    classes_ : array of shape (n_classes,)
        Class labels in sorted order.

    References
    ----------
    .. [1] X. Chen, G. Yuan, F. Nie and J. Z. Huang, "Semi-supervised feature selection via rescaled linear regression",
       International Joint Conference on Artificial Intelligence (2017).

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]
    >>> selector = RLSR(1).fit(X, ["a", "a", "b", "b"])
    >>> selector.get_support(indices=True), round(float(selector.scores_.sum()), 9)
    (array([0]), 1.0)
    """

    about = About(
        "Chen, Yuan, Nie and Huang, Semi-supervised feature selection via rescaled linear regression (2017)",
        "embedded",
        "O(min(N, d) N d) per iteration",
    )
    takes_device_arrays = True
    checks = rules(gamma=POSITIVE, p=POSITIVE)

    gamma: float = 1.0
    p: float = 1.0
    semi_supervised: bool = False
    accelerate: bool = True
    max_iter: int = 1000
    tol: float = 1e-8
    callback: Callback | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.p > 1:
            raise ValueError(f"p={self.p!r} is not valid. Use a number above 0 and up to 1.")

    def _encode(self, y: Array) -> Targets:
        return encode_some(y) if self.semi_supervised else super()._encode(y)

    def _score_features(self, X: Any, targets: Targets) -> Scored:
        given = Columns(X)
        columns = given.centred()
        is_open = np.asarray(targets.codes) == UNLABELLED if self.semi_supervised else np.zeros(len(targets.Y), dtype=bool)
        problem = RescaledRegression(columns, is_open, self.gamma, self.p)
        start = problem.start(columns.place.send(targets.Y))
        point, objective = follow(self, descend(start, problem.step, floor=problem.epsilon, accelerate=self.accelerate))
        intercept = point.intercept - given.means() @ point.weights
        if self.semi_supervised:
            self.label_distributions_ = columns.place.fetch(point.targets)
        return Scored(scales(point.norms, self.p), coef=point.weights.T, objective=objective, intercept=intercept)


class RescaledRegression:
    """Problem of :class:`RLSR` as a sequence of ridge regressions on centred, rescaled features.

    Each step minimises over the weights, then over the scales, then over the class probabilities of unlabelled samples;
    none of the three raises the objective.
    """

    def __init__(self, X: Any, is_open: Array, gamma: float, p: float = 1.0) -> None:
        self.columns, self.is_open, self.gamma, self.p = as_columns(X), is_open, gamma, p
        self.place, self.xp = self.columns.place, self.columns.xp
        self.epsilon = self.place.send(np.zeros(X.shape[1]))

    def start(self, Y: Any) -> Point:
        """Return the regression with equal scales, and set the smoothing of the norms relative to its size."""
        n_features = self.columns.shape[1]
        power = 2.0 / self.p - 1.0
        # The first weights are of the order of the scales to this power, and their squares must not underflow.
        if power * math.log10(n_features) > 100.0:
            smallest = math.ceil(200.0 / (1.0 + 100.0 / math.log10(n_features))) / 100.0
            raise ValueError(
                f"p={self.p!r} is too small for {n_features} features: their scales underflow. Use p={smallest:g} or more."
            )
        weights = self._regress(self.place.send(np.ones(n_features)), Y)
        # Every feature adds epsilon to the power p to the norm.
        self.epsilon = self.place.send(np.full(n_features, epsilon_for(weights, EPSILON ** (1.0 / self.p))))
        return self._measure(weights, Y)

    def step(self, norms: Any, point: Point) -> Point:
        """Return the next point, its scales taken from ``norms``."""
        return self._measure(self._regress(norms, point.targets), point.targets)

    def _regress(self, norms: Any, Y: Any) -> Any:
        feature_weights = scales(norms, self.p) ** (2.0 / self.p - 1.0)
        sample_weights = self.place.send(np.full(Y.shape[0], float(self.gamma)))
        return weighted_ridge(self.columns, Y - self.xp.mean(Y, axis=0), feature_weights, sample_weights)

    def _measure(self, weights: Any, Y: Any) -> Point:
        fitted = self.columns.push(weights)
        if self.is_open.any():
            Y = self._complete(fitted, Y)
        intercept = self.xp.mean(Y, axis=0)
        norms = smooth_row_norms(weights, float(self.epsilon[0]))
        loss = self.xp.sum((fitted + intercept - Y) ** 2)
        return Point(weights, intercept, norms, float(loss) + self.gamma * squared_norm(norms, self.p), Y)

    def _complete(self, fitted: Any, Y: Any) -> Any:
        """Return the targets with the best class probabilities of the unlabelled samples; few numbers, on the host."""
        known = self.place.fetch(Y)
        guess = project_on_simplex(self.place.fetch(fitted) + known.mean(axis=0))
        return self.place.send(np.where(self.is_open[:, None], guess, known))


def scales(norms: Any, p: float) -> Any:
    """Return the optimal scales for rows of these norms: the norms to the power p, normalised to sum 1.

    Examples
    --------
    >>> scales(np.array([1.0, 3.0]), 1.0)
    array([0.25, 0.75])
    """
    xp = namespace_of(norms)
    powers = (norms / xp.max(norms)) ** p
    return powers / xp.sum(powers)


def squared_norm(norms: Any, p: float) -> float:
    """Return the squared l2,p norm of a matrix whose rows have these norms: ``sum(norms ** p) ** (2 / p)``.

    Examples
    --------
    >>> squared_norm(np.array([1.0, 3.0]), 1.0)
    16.0
    """
    xp = namespace_of(norms)
    largest = float(xp.max(norms))
    return largest**2 * float(xp.sum((norms / largest) ** p)) ** (2.0 / p)


def encode_some(y: Array) -> Targets:
    """Encode labels in which -1 means unlabelled; such a sample starts with equal class probabilities.

    Examples
    --------
    >>> encode_some(np.array([3, -1, 5])).Y
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """
    y = column_or_1d(y, warn=True)
    if any(isinstance(label, str) for label in y):
        raise ValueError(
            "semi_supervised=True marks samples without label by the number -1, but y holds text labels. "
            "Turn the labels into numbers, for example with LabelEncoder, and keep -1 for samples without label."
        )
    is_labelled = y != UNLABELLED
    if not is_labelled.any():
        raise ValueError("y has no label: all samples are -1. Give the labels of samples of 2 or more classes.")
    known = encode_targets(y[is_labelled])
    Y = np.full((len(y), known.Y.shape[1]), 1.0 / known.Y.shape[1])
    codes = np.full(len(y), UNLABELLED)
    Y[is_labelled], codes[is_labelled] = known.Y, known.codes
    return Targets(Y, known.classes, codes)
