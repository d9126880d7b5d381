"""Initial weights of a homotopy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from l20fs.objective.least_squares import LeastSquares
from l20fs.typing import Array

#: Size of a row of a random start, relative to the threshold that the rows meet at the largest lambda.
RANDOM_START_SIZE = 0.01

#: Starting weights beyond this make no sense and would overflow when squared.
START_LIMIT = 1e100


def starting_weights(problem: LeastSquares, init: Any, random_state: Any) -> Array | None:
    """Return the initial weights of a path, (n_targets, n_features); None means zero."""
    shape = (problem.n_targets, problem.n_features)
    if isinstance(init, str):
        if init == "zeros":
            return None
        if init not in ("gaussian", "uniform"):
            raise ValueError(f"init={init!r} is unknown. Use 'zeros', 'gaussian', 'uniform' or an array of shape {shape}.")
        random = check_random_state(random_state)
        draw = random.standard_normal(shape) if init == "gaussian" else random.uniform(size=shape)
        # max_j ||x_j . Y|| / L is the threshold at the largest lambda: a typical row starts well below it.
        products = problem.gradient(-problem.targets, np.arange(0), np.zeros((shape[0], 0)))
        threshold = math.sqrt(float(products.squared_norms.max())) / problem.lipschitz_lower
        return draw * (RANDOM_START_SIZE * threshold / math.sqrt(shape[0]))
    weights = np.asarray(init, dtype=np.float64)
    if not np.abs(weights).max(initial=0.0) < START_LIMIT:
        raise ValueError(
            f"init holds values that are missing, infinite or above {START_LIMIT:g}. Start from finite weights."
        )
    return weights
