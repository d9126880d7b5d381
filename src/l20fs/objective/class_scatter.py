"""Class means and scatter of the features of a problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from l20fs.inputs.targets import Targets, weights_of_targets
from l20fs.objective.least_squares import LeastSquares
from l20fs.prediction.discriminant import ClassScatter
from l20fs.typing import Array


def class_scatter(problem: LeastSquares, rows: Array, targets: Targets, class_weight: Any) -> ClassScatter:
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
    return ClassScatter(means, within, np.round(shares / shares.sum(), 12), sample_weights.fit_intercept)
