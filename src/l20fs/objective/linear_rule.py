r"""Linear rules on selected features, and discriminant analysis of their predictions.

The regressor predicts by least squares (with the ridge term) on the selected features. So does the classifier, but the label
is not that of the largest prediction: the ridge term shrinks the predictions towards the class frequencies, so that rare or
middle classes would never be predicted. Instead the predictions :math:`s = W'x` are the axes of a discriminant analysis,

.. math:: \delta_c(x) = m_c' \Sigma^{-1} s - \tfrac12 m_c' \Sigma^{-1} m_c + \log \pi_c,

where :math:`m_c` are the class means of s, :math:`\Sigma` is its scatter within the classes and :math:`\pi` are the
frequencies of the classes, equal ones if ``class_weight`` is balanced. This is invariant to the shrinkage of each axis
(penalized discriminant analysis; Hastie, Buja and Tibshirani 1995).

Without an intercept the rule goes through the origin: the scores are the least squares of the indicators on the predictions,

.. math:: \delta_c(x) = \pi_c m_c' M^{-1} s, \qquad M = \Sigma + \sum_c \pi_c m_c m_c',

which undoes the shrinkage as well. To drop the constants of the discriminant analysis instead would be wrong wherever the
samples are far from the origin.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from l20fs.design import Design, SampleWeights
from l20fs.design.moments import measure
from l20fs.inputs.targets import Targets, weights_of_targets
from l20fs.inputs.validation import check_number
from l20fs.objective.least_squares import LeastSquares
from l20fs.typing import Array

#: Value of ``ridge="auto"`` with far more features than samples; docs/defaults.md has the measurements.
RIDGE_FOR_LABELS, RIDGE_FOR_NUMBERS = 3.0, 1.0

#: Features per sample at which it has half that value.
HALFWAY = 10.0

#: Fraction of the mean scatter of the predictions that is added to the scatter within the classes, which is zero for a
#: perfect fit, and uncertain in the directions of little scatter where samples are few.
LEAST_SCATTER = 0.01


def auto_ridge(n_features: int, n_samples: float, *, for_labels: bool) -> float:
    r"""Return the strength of the ridge term for ``ridge="auto"``.

    It is :math:`3 q / (q + 10)` for labels and :math:`q / (q + 10)` for numbers, with q the number of features per sample:
    weak on tall tables, where many samples separate correlated features, strong on wide ones. docs/defaults.md has the
    measurements.

    Parameters
    ----------
    n_features : int
        Number of features that vary.
    n_samples : float
        Number of samples, or the sum of their weights.
    for_labels : bool
        Whether the targets are labels or label indicators, and not numbers.

    Examples
    --------
    >>> auto_ridge(30, 300, for_labels=True), auto_ridge(5000, 50, for_labels=True), auto_ridge(30, 300, for_labels=False)
    (0.02970297029702971, 2.727272727272727, 0.009900990099009901)
    """
    per_sample = n_features / n_samples
    return (RIDGE_FOR_LABELS if for_labels else RIDGE_FOR_NUMBERS) * per_sample / (per_sample + HALFWAY)


def ridge_on(ridge: float | str, targets: Targets, design: Design) -> float:
    """Return the strength of the ridge term on a design: the given number, or that of ``"auto"``."""
    if not isinstance(ridge, str):
        return float(ridge)
    n_features = int(np.count_nonzero(design.varies))
    return auto_ridge(n_features, design.sample_weights.total, for_labels=targets.classes is not None)


def auto_ridge_for(X: Any, sample_weights: SampleWeights, *, for_labels: bool) -> float:
    """Return :func:`auto_ridge` for an array or a sparse matrix, without a design.

    Examples
    --------
    >>> auto_ridge_for(np.array([[1.0, 5.0], [2.0, 5.0]]), SampleWeights(2, None), for_labels=False)
    0.047619047619047616
    """
    found = measure(X, sample_weights.values)
    found = found if sample_weights.fit_intercept else found.about_zero
    return auto_ridge(int(np.count_nonzero(found.varies)), sample_weights.total, for_labels=for_labels)


def check_ridge(ridge: Any) -> None:
    """Raise an error for a strength of the ridge term that is neither "auto" nor a number from 0."""
    if isinstance(ridge, str) and ridge == "auto":
        return
    try:
        check_number("ridge", ridge, minimum=0.0, strict=False)
    except ValueError:
        raise ValueError(f"ridge={ridge!r} is not valid. Use 'auto', or a number at least 0.") from None


class LinearRule(NamedTuple):
    """Linear rule ``x[rows] @ weights + intercept``, one column per target.

    The rule for two classes has one column, for the second against the first. ``rows`` (n_rows,) are features, best first;
    ``weights`` (n_rows, n_targets) and ``intercept`` (n_targets,) are in units of X.
    """

    rows: Array
    weights: Array
    intercept: Array

    def apply(self, columns: Any) -> Array:
        """Return the values for samples, (n_samples, n_targets), from their columns ``X[:, rows]``."""
        return np.asarray(columns @ self.weights) + self.intercept


def decide(values: Array) -> Array:
    """Return the index of the class of each sample from the values of a rule; ties go to the first class.

    Examples
    --------
    >>> decide(np.array([[0.5], [-2.0], [0.0]])), decide(np.array([[1.0, 3.0, 2.0]]))
    (array([1, 0, 0]), array([1]))
    """
    return (values[:, 0] > 0.0).astype(np.intp) if values.shape[1] == 1 else values.argmax(axis=1)


class ClassScatter(NamedTuple):
    """Class means and scatter of some features, in the units of the design, after ``scale``.

    ``means`` (n_classes, n_rows) of the features, centred if there is an intercept, ``within`` (n_rows, n_rows) their mean
    scatter within the classes, ``shares`` (n_classes,) of the classes.
    """

    means: Array
    within: Array
    shares: Array
    fit_intercept: bool = True

    @classmethod
    def of(cls, problem: LeastSquares, rows: Array, targets: Targets, class_weight: Any) -> ClassScatter:
        """Compute the statistics of the columns ``rows``."""
        sample_weights, one_hot = problem.design.sample_weights, targets.Y
        root = sample_weights.root
        membership = one_hot if root is None else one_hot * root[:, None]
        sizes = (membership * membership).sum(axis=0)
        sums, gram = problem.products_among(rows, membership)
        means = sums / np.where(sizes > 0.0, sizes, 1.0)[:, None]
        within = (gram - (means.T * sizes) @ means) / sizes.sum()
        weights = weights_of_targets(targets, class_weight)
        shares = sizes if weights is None else sizes * weights
        # Equal frequencies must be equal to the last digit: they decide ties between classes.
        return cls(means, within, np.round(shares / shares.sum(), 12), sample_weights.fit_intercept)

    def discriminant(self, weights: Array) -> tuple[Array, Array]:
        """Convert predictions ``x @ weights`` on the first rows to class scores: their weights and intercepts.

        Two classes have one score, that of the second less that of the first.
        """
        k = len(weights)
        centres = self.means[:, :k] @ weights
        scatter = weights.T @ self.within[:k, :k] @ weights
        middle = self.shares @ centres
        total = np.trace(scatter) + float(self.shares @ np.square(centres - middle).sum(axis=1))
        # Without an intercept predictions may be the same for all samples and still not zero.
        total = max(total, 1e-6 * float(middle @ middle))
        scatter += (LEAST_SCATTER * total / len(centres) or 1.0) * np.eye(len(centres))
        present = self.shares > 0.0
        intercept = np.where(present, 0.0, -np.inf)  # a class without samples has no centre and is never predicted
        if self.fit_intercept:
            axes = np.linalg.solve(scatter, centres.T)
            intercept[present] = np.log(self.shares[present]) - 0.5 * np.einsum("cj,jc->c", centres, axes)[present]
        else:
            axes = np.linalg.solve(scatter + (centres.T * self.shares) @ centres, centres.T * self.shares)
        if len(centres) == 2:
            return weights @ np.diff(axes), np.diff(intercept)
        # Only differences between classes matter: their mean is subtracted.
        return weights @ (axes - axes[:, present].mean(axis=1, keepdims=True)), intercept - intercept[present].mean()
