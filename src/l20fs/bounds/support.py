"""Loss of a support, and lower bounds on it that are below it by rounding."""

from __future__ import annotations

import numpy as np

from l20fs.bounds.cuts import EPS, measure_fit, storage_errors, target_storage_error
from l20fs.bounds.relaxation import NEGLIGIBLE
from l20fs.objective.problem import Problem
from l20fs.typing import Array


def support_loss(problem: Problem, rows: Array) -> float:
    """Return the minimum of f over weights on the features ``rows``, in float64 whatever the dtype of X.

    Without a ridge term, columns that are linearly dependent up to rounding count as dependent.

    Examples
    --------
    >>> from l20fs.objective import make_problem
    >>> problem = make_problem(np.eye(3), np.eye(3), ridge=1.0)
    >>> round(support_loss(problem, np.array([0])), 6), round(support_loss(problem, np.arange(3)), 6)
    (0.75, 0.4)
    """
    triangle, targets = problem.factor(rows)
    columns = _unit_columns(triangle)
    explained = columns @ np.linalg.lstsq(columns, targets, rcond=None)[0]
    return max(0.0, problem.null_loss - 0.5 * float(np.vdot(explained, explained)))


def least_residual(problem: Problem, rows: Array) -> float:
    """Return a lower bound on the loss of the features ``rows`` without a ridge: the residual of least squares.

    The direction of a combination of features that is nearly zero is uncertain by rounding: the bound assumes the direction
    that fits best. Of features of length 1, rounding turns the span of the combinations that are at least l long by an angle
    whose sine is at most (error of the features) / (l - error), and lowers the norm of what is left of the targets by no
    more than this share of theirs. Every l gives a bound; the largest counts. A combination that is zero up to rounding
    counts as zero.

    Examples
    --------
    >>> from l20fs.objective import make_problem
    >>> X = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]).T
    >>> round(least_residual(make_problem(X, np.eye(4)[:, [0]]), np.arange(2)), 6)
    0.25
    """
    lines, sides = problem.condensed(rows)
    columns, targets = lines.T, sides.T
    basis, lengths, _ = np.linalg.svd(_unit_columns(columns), full_matrices=False)
    n_directions = int(np.count_nonzero(lengths > max(columns.shape) * EPS))
    norms = np.sqrt(problem.design.column_energy[rows])
    shares = np.divide(storage_errors(problem.design)[rows], norms, out=np.zeros_like(norms), where=norms > 0.0)
    error = float(np.linalg.norm(shares)) + (problem.design.n_samples + len(rows)) * EPS
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
    return max(0.0, loss - 16.0 * (problem.design.n_samples + len(rows)) * EPS * problem.null_loss)


def least_loss(problem: Problem, rows: Array) -> float:
    """Return a lower bound on the loss of the features ``rows``, by rounding below it.

    Examples
    --------
    >>> from l20fs.objective import make_problem
    >>> problem = make_problem(np.eye(3), np.eye(3), ridge=1.0)
    >>> 0.75 - 1e-12 < least_loss(problem, np.array([0])) < 0.75
    True
    """
    if not has_ridge(problem):
        return least_residual(problem, rows)
    cut = measure_fit(problem, rows, best_weights(problem, rows), alone=True)
    return float(cut.bound(cut.scores.sum()))


def best_weights(problem: Problem, rows: Array) -> Array:
    """Return the weights of features that minimise f, (n_targets, n_rows), from their products."""
    moments, gram = problem.normal_equations(rows)
    return np.linalg.solve(gram + problem.ridge * np.eye(len(rows)), moments.T).T


def has_ridge(problem: Problem) -> bool:
    """Return whether the ridge is strong enough for the relaxation: with a weaker one its bounds would be rounding."""
    return problem.ridge > NEGLIGIBLE * float(problem.design.column_energy.mean())


def _unit_columns(matrix: Array) -> Array:
    """Normalise the columns; their span is unchanged."""
    lengths = np.linalg.norm(matrix, axis=0)
    return matrix / np.where(lengths, lengths, 1.0)
