from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from supports import dense

from l20fs.bounds.certificate import lower_bounds
from l20fs.objective import make_problem


def random_problem(seed=0, n_samples=30, n_features=200, n_targets=3, ridge=1.0, **options):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_samples, n_features))
    Y = X[:, :5] @ random.standard_normal((5, n_targets)) + 0.5 * random.standard_normal((n_samples, n_targets))
    return make_problem(X, Y, ridge=ridge, **options)


def relaxed_value(problem, shares):
    """The value of the relaxation from its definition; shares are (n_features,)."""
    X, targets = dense(problem), problem.targets
    M = np.linalg.inv(np.eye(len(X)) + (X * shares) @ X.T / problem.ridge)
    return 0.5 * np.sum(targets * (targets @ M))


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("ridge", [0.05, 1.0])
def test_value_matches_a_general_purpose_optimiser(k, ridge):
    problem = random_problem(n_samples=10, n_features=6, n_targets=2, ridge=ridge)
    result = minimize(
        lambda shares: relaxed_value(problem, shares),
        np.full(6, k / 6),
        method="SLSQP",
        bounds=[(0.0, 1.0)] * 6,
        constraints={"type": "ineq", "fun": lambda shares: k - shares.sum()},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert lower_bounds(problem, k, tol=1e-8)[k] == pytest.approx(result.fun, rel=1e-6)


def test_orthogonal_features_in_closed_form():
    """With x_i'x_j = 0 the shares of equal features are equal: h = sum_j y_j^2 mu / (2 (mu + z_j))."""
    X = np.vstack([np.eye(4), -np.eye(4)])
    problem = make_problem(X, X, ridge=0.5)
    energy, mu = 2.0, problem.ridge
    assert lower_bounds(problem, 2, tol=1e-8)[2] == pytest.approx(0.5 * 4 * energy / (1.0 + 0.5 * energy / mu))
