r"""Discriminant analysis of least-squares predictions.

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

from typing import NamedTuple

import numpy as np

from l20fs.typing import Array

#: Fraction of the mean scatter of the predictions that is added to the scatter within the classes, which is zero for a
#: perfect fit, and uncertain in the directions of little scatter where samples are few.
LEAST_SCATTER = 0.01


class ClassScatter(NamedTuple):
    """Class means and scatter of some features, in the units of the design, after ``scale``.

    ``means`` (n_classes, n_rows) of the features, centred if there is an intercept, ``within`` (n_rows, n_rows) their mean
    scatter within the classes, ``shares`` (n_classes,) of the classes.
    """

    means: Array
    within: Array
    shares: Array
    fit_intercept: bool = True

    def discriminant(self, weights: Array) -> tuple[Array, Array]:
        """Convert predictions ``x @ weights`` on the first rows to class scores: their weights and intercepts.

        Two classes have one score, that of the second less that of the first.
        """
        axes, intercept = self.axes(weights)
        return weights @ axes, intercept

    def axes(self, weights: Array) -> tuple[Array, Array]:
        """Return the weights of predictions ``x @ weights`` in the class scores, (n_targets, n_scores), and intercepts."""
        k = len(weights)
        return self.axes_of(self.means[:, :k] @ weights, weights.T @ self.within[:k, :k] @ weights)

    def axes_of(self, centres: Array, scatter: Array) -> tuple[Array, Array]:
        """Return the same from the class means of predictions, (..., n_classes, n_targets), and their scatter.

        Leading axes are those of several predictions, (..., n_targets, n_scores) and (..., n_scores).
        """
        middle = self.shares @ centres
        total = np.trace(scatter, axis1=-2, axis2=-1)
        total = total + np.square(centres - middle[..., None, :]).sum(axis=-1) @ self.shares
        # Without an intercept predictions may be the same for all samples and still not zero.
        total = np.maximum(total, 1e-6 * np.square(middle).sum(axis=-1))
        least = LEAST_SCATTER * total / len(self.shares)
        scatter = scatter + np.where(least == 0.0, 1.0, least)[..., None, None] * np.eye(scatter.shape[-1])
        turned = centres.swapaxes(-1, -2)
        present = self.shares > 0.0
        # A class without samples has no centre and is never predicted.
        intercept = np.where(present, np.zeros((*total.shape, 1)), -np.inf)
        if self.fit_intercept:
            axes = np.linalg.solve(scatter, turned)
            lengths = (centres * axes.swapaxes(-1, -2)).sum(axis=-1)
            intercept[..., present] = np.log(self.shares[present]) - 0.5 * lengths[..., present]
        else:
            shared = turned * self.shares
            axes = np.linalg.solve(scatter + shared @ centres, shared)
        if len(self.shares) == 2:
            return np.diff(axes), np.diff(intercept)
        # Only differences between classes matter: their mean is subtracted.
        level = axes[..., present].mean(axis=-1, keepdims=True), intercept[..., present].mean(axis=-1, keepdims=True)
        return axes - level[0], intercept - level[1]
