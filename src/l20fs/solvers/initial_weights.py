"""Initial weights of a homotopy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from l20fs.design.matrix import squared_columns
from l20fs.objective.problem import Problem
from l20fs.typing import Array

#: Size of a row of a random start, relative to the threshold that the rows meet at the largest lambda.
RANDOM_START_SIZE = 0.01

#: Starting weights beyond this make no sense and would overflow when squared.
START_LIMIT = 1e100


def starting_weights(problem: Problem, init: Any, random_state: Any) -> Array | None:
    """Return the initial weights of a path, (n_targets, n_features); None means zero."""
    shape = (problem.n_targets, problem.n_features)
    if isinstance(init, str):
        if init == "zeros":
            return None
        random = check_random_state(random_state)
        draw = random.standard_normal(shape) if init == "gaussian" else random.uniform(size=shape)
        # max_j ||x_j . Y|| / L is the threshold at the largest lambda: a typical row starts well below it.
        products, xp = problem.target_products, problem.design.place.xp
        threshold = math.sqrt(float(xp.max(squared_columns(products, xp)))) / problem.lipschitz_lower
        return draw * (RANDOM_START_SIZE * threshold / math.sqrt(shape[0]))
    weights = np.asarray(init, dtype=np.float64)
    if not np.abs(weights).max(initial=0.0) < START_LIMIT:
        raise ValueError(
            f"init holds values that are missing, infinite or above {START_LIMIT:g}. Start from finite weights."
        )
    return weights
