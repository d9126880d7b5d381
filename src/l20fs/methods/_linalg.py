"""Linear algebra shared by several methods: weighted ridge regression, smoothed norms, projections."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh

from l20fs.inputs.devices import Place, namespace_of
from l20fs.methods._columns import as_columns
from l20fs.objective.prox import squared_row_norms
from l20fs.typing import Array


def weighted_ridge(X: Any, Y: Any, feature_weights: Any, sample_weights: Any) -> Any:
    r"""Solve a ridge regression with weighted features and samples.

    Minimises :math:`\sum_i \|x_i W - y_i\|^2 / s_i + \sum_j \|w_j\|^2 / p_j` for feature weights p and sample weights s by
    :math:`W = P X' (X P X' + S)^{-1} Y` (dual, N x N) or the equivalent primal system (d x d), whichever is smaller. Neither
    form divides by p, so a feature may have weight 0.

    Parameters
    ----------
    X : array or Columns of shape (n_samples, n_features)
        Data; all other arrays are where they are.
    Y : array of shape (n_samples, n_targets)
        Targets.
    feature_weights : array of shape (n_features,)
        Non-negative weights p.
    sample_weights : array of shape (n_samples,)
        Positive weights s.

    Returns
    -------
    array of shape (n_features, n_targets)
        Weights W.

    Examples
    --------
    >>> weighted_ridge(np.eye(2), np.array([[2.0], [6.0]]), np.array([1.0, 2.0]), np.ones(2)).ravel()
    array([1., 4.])
    """
    columns = as_columns(X)
    if columns.shape[0] <= columns.shape[1]:
        dual = solve_positive(columns.sample_products(feature_weights), sample_weights, Y)
        return feature_weights[:, None] * columns.pull(dual)
    root, shares = columns.xp.sqrt(feature_weights), 1.0 / sample_weights
    products = columns.feature_products(shares) * root * root[:, None]
    ones = columns.xp.ones_like(root)
    return root[:, None] * solve_positive(products, ones, root[:, None] * columns.pull(shares[:, None] * Y))


def solve_positive(A: Any, diagonal: Any, B: Any) -> Any:
    """Solve ``(A + diag(diagonal)) Z = B`` for a positive semi-definite A, which is overwritten."""
    # NumPy's solver instead of SciPy's Cholesky: each package brings its own BLAS, and when products and solves alternate
    # on a busy machine, the idle threads of one slow down the other many times over.
    place = Place(A)
    A = _with_diagonal(A, diagonal, place)
    try:
        Z = place.xp.linalg.solve(A, B)
        if place.is_host or bool(place.xp.all(place.xp.isfinite(Z))):  # CuPy does not raise
            return Z
    except (np.linalg.LinAlgError, RuntimeError):  # torch has an error of its own
        pass
    # Singular in float64 although positive definite: raise the diagonal by the rounding error of the trace.
    size = 1e-12 * float(place.xp.linalg.trace(A)) / A.shape[0]
    return place.xp.linalg.solve(_with_diagonal(A, size * place.xp.ones_like(A[:, 0]), place), B)


def _with_diagonal(A: Any, values: Any, place: Place) -> Any:
    """Add values to the diagonal of a square matrix, which is overwritten on the host."""
    if not place.is_host:
        return A + place.xp.eye(A.shape[0], dtype=A.dtype, device=place.device) * values
    A.flat[:: len(A) + 1] += values
    return A


def squared_spectral_norm(X: Array) -> float:
    """Return the largest eigenvalue of X'X, from the smaller of the two Gram matrices.

    Examples
    --------
    >>> round(squared_spectral_norm(np.array([[3.0, 0.0, 4.0], [0.0, 2.0, 0.0]])), 12)
    25.0
    """
    gram = X @ X.T if X.shape[0] <= X.shape[1] else X.T @ X
    last = len(gram) - 1
    return float(eigh(gram, eigvals_only=True, subset_by_index=[last, last])[0])


def row_norms(V: Any) -> Any:
    """Return the Euclidean norm of every row, where it is."""
    return namespace_of(V).sqrt(squared_row_norms(V))


def smooth_row_norms(V: Any, epsilon: float) -> Any:
    """Return ``sqrt(||v||^2 + epsilon^2)`` for every row, a norm that is never zero."""
    return namespace_of(V).sqrt(squared_row_norms(V) + epsilon * epsilon)


def project_on_simplex(V: Array) -> Array:
    """Project every row of ``V`` onto the probability simplex.

    Examples
    --------
    >>> project_on_simplex(np.array([[0.5, 0.5], [2.0, 0.0]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    descending = -np.sort(-V, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1.0) / np.arange(1, V.shape[1] + 1)
    n_positive = np.sum(descending > excess, axis=1)
    return np.maximum(V - excess[np.arange(len(V)), n_positive - 1][:, None], 0.0)
