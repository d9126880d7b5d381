"""Bounds of the Lipschitz constant, in every container."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from blocked import cut

from l20fs.objective import make_problem


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, lambda X: cut(X, 0, 3), lambda X: cut(X, 1, 3)])
@pytest.mark.parametrize("shape", [(3, 5), (20, 400), (400, 20), (400, 300)])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_bounds_enclose_the_lipschitz_constant(make, shape, is_weighted):
    """The constant itself is known to 1 % where it takes a few passes."""
    random = np.random.default_rng(0)
    X, Y = random.standard_normal(shape), random.standard_normal((shape[0], 2))
    weights = random.integers(1, 4, shape[0]).astype(float) if is_weighted else np.ones(shape[0])
    problem = make_problem(make(X), Y, ridge=0.1, sample_weight=weights if is_weighted else None)
    centred = np.sqrt(weights)[:, None] * (X - weights @ X / weights.sum())
    truth = np.linalg.norm(centred, 2) ** 2 + problem.ridge
    assert problem.lipschitz_lower <= truth * (1 + 1e-12)
    assert truth * (1 - 1e-9) <= problem.lipschitz <= truth * 1.03
    assert problem.lipschitz <= problem.lipschitz_upper * (1 + 1e-12)
