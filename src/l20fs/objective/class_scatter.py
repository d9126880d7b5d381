"""Class means and scatter of the features of a problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from l20fs.design import SampleWeights
from l20fs.inputs.targets import Targets, weights_of_targets
from l20fs.objective.problem import Problem
from l20fs.prediction.discriminant import ClassScatter
from l20fs.typing import Array


def _adjusted_scatter(
    membership: Array, sizes: Array, sums: Array, gram: Array, sample_weights: SampleWeights
) -> tuple[Array, Array]:
    """Return class means and scatter where nuisances were projected out of the columns, and hence parts of the classes too.

    The means are those of least squares on the classes and the nuisances together: the difference between two classes is
    the mean difference within batches, whatever shares they have there.
    """
    projected = sample_weights.centred(membership.T)
    overlap = projected @ projected.T
    # With an intercept the overlap leaves the common level open: the mean over all samples is zero.
    level = np.outer(sizes, sizes) / sizes.sum() if sample_weights.fit_intercept else 0.0
    means = np.linalg.lstsq(overlap + level, sums, rcond=1e-9)[0]
    return means, (gram - means.T @ overlap @ means) / sizes.sum()


def class_scatter(problem: Problem, rows: Array, targets: Targets, class_weight: Any) -> ClassScatter:
    """Compute the statistics of the columns ``rows``."""
    sample_weights, one_hot = problem.design.sample_weights, targets.Y
    root = sample_weights.root
    membership = one_hot if root is None else one_hot * root[:, None]
    sizes = (membership * membership).sum(axis=0)
    # The features are centred and adjusted: their products with the targets of the problem are those with the classes.
    products, gram = problem.normal_equations(rows)
    sums = products / problem.y_scale[:, None]
    if sample_weights.basis is None:
        means = sums / np.where(sizes > 0.0, sizes, 1.0)[:, None]
        within = (gram - (means.T * sizes) @ means) / sizes.sum()
    else:
        means, within = _adjusted_scatter(membership, sizes, sums, gram, sample_weights)
    weights = weights_of_targets(targets, class_weight)
    shares = sizes if weights is None else sizes * weights
    # Equal frequencies must be equal to the last digit: they decide ties between classes.
    return ClassScatter(means, within, np.round(shares / shares.sum(), 12), sample_weights.fit_intercept)
