"""Loss of a support, and lower bounds on it that are below it by rounding."""

from __future__ import annotations

from copy import copy

import numpy as np

from l20fs.bounds.cuts import target_storage_error
from l20fs.bounds.relaxation import NEGLIGIBLE, bound_support
from l20fs.design import storage_errors
from l20fs.objective.least_squares import LeastSquares
from l20fs.typing import Array


def support_loss(problem: LeastSquares, rows: Array) -> float:
    """Return the minimum of f over weights on the features ``rows``, in float64 whatever the dtype of X.

    Without a ridge term, columns that are linearly dependent up to rounding count as dependent.

    Examples
    --------
    >>> problem = LeastSquares(np.eye(3), np.eye(3), ridge=1.0)
    >>> round(support_loss(problem, np.array([0])), 6), round(support_loss(problem, np.arange(3)), 6)
    (0.75, 0.4)
    """
    triangle, targets = problem.factor(rows)
    columns = _unit_columns(triangle)
    explained = columns @ np.linalg.lstsq(columns, targets, rcond=None)[0]
    return max(0.0, problem.null_loss - 0.5 * float(np.vdot(explained, explained)))


def least_residual(problem: LeastSquares, rows: Array) -> float:
    """Return a lower bound on the loss of the features ``rows`` without a ridge: the residual of least squares.

    The direction of a combination of features that is nearly zero is uncertain by rounding: the bound assumes the direction
    that fits best. Of features of length 1, rounding turns the span of the combinations that are at least l long by an angle
    whose sine is at most (error of the features) / (l - error), and lowers the norm of what is left of the targets by no
    more than this share of theirs. Every l gives a bound; the largest counts. A combination that is zero up to rounding
    counts as zero. Where only products of the features are known, the bound is 0.

    Examples
    --------
    >>> X = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]).T
    >>> round(least_residual(LeastSquares(X, np.eye(4)[:, [0]]), np.arange(2)), 6)
    0.25
    """
    if problem.design.vectors == "features":
        return 0.0
    without_ridge = copy(problem)
    without_ridge.ridge = 0.0
    triangle, targets = without_ridge.factor(rows)
    basis, lengths, _ = np.linalg.svd(_unit_columns(triangle), full_matrices=False)
    eps = float(np.finfo(np.float64).eps)
    n_directions = int(np.count_nonzero(lengths > max(triangle.shape) * eps))
    norms = np.sqrt(problem.design.column_energy[rows])
    shares = np.divide(storage_errors(problem.design, rows), norms, out=np.zeros_like(norms), where=norms > 0.0)
    error = float(np.linalg.norm(shares)) + (problem.design.n_samples + len(rows)) * eps
    length, loss = float(np.linalg.norm(problem.targets)), 0.0
    for n_clear in range(max(0, n_directions - problem.n_targets + 1), n_directions + 1):
        shortest = float(lengths[n_clear - 1]) if n_clear else np.inf
        if shortest <= 2.0 * error:
            break
        explained = basis[:, :n_clear].T @ targets
        energies = np.linalg.eigvalsh(problem.targets @ problem.targets.T - explained.T @ explained)
        # Along its principal directions, of which the uncertain ones may explain the largest.
        left = np.sqrt(np.maximum(energies[: problem.n_targets - (n_directions - n_clear)], 0.0))
        left -= length * error / (shortest - error) + target_storage_error(problem)
        loss = max(loss, 0.5 * float(np.square(np.maximum(left, 0.0)).sum()))
    return max(0.0, loss - 16.0 * (problem.design.n_samples + len(rows)) * eps * problem.null_loss)


def least_loss(problem: LeastSquares, rows: Array) -> float:
    """Return a lower bound on the loss of the features ``rows``, by rounding below it.

    Examples
    --------
    >>> problem = LeastSquares(np.eye(3), np.eye(3), ridge=1.0)
    >>> 0.75 - 1e-12 < least_loss(problem, np.array([0])) < 0.75
    True
    """
    return bound_support(problem, rows) if has_ridge(problem) else least_residual(problem, rows)


def has_ridge(problem: LeastSquares) -> bool:
    """Return whether the ridge is strong enough for the relaxation: with a weaker one its bounds would be rounding."""
    return problem.ridge > NEGLIGIBLE * float(problem.design.column_energy.mean())


def _unit_columns(matrix: Array) -> Array:
    """Normalise the columns; their span is unchanged."""
    lengths = np.linalg.norm(matrix, axis=0)
    return matrix / np.where(lengths, lengths, 1.0)
