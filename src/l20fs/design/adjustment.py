"""Moments of columns without what nuisances explain."""

from __future__ import annotations

from typing import Any

import numpy as np

from l20fs.design.moments import Moments
from l20fs.design.sample_weights import SampleWeights
from l20fs.typing import Array

#: A column of which nuisances leave no more than so many units in the last place of its values is explained altogether.
LEAST_LEFT = 16.0

#: A column of which nuisances leave a smaller share of the sum of squares is measured again, without cancellation.
SMALL_SHARE = 1e-6


def project_out(part: Array, basis: Array) -> None:
    """Project the rows of an orthonormal basis out of the columns of an array, in place.

    Examples
    --------
    >>> part = np.array([[4.0], [3.0]])
    >>> project_out(part, np.array([[1.0, 0.0]]))
    >>> part[:, 0].tolist()
    [0.0, 3.0]
    """
    for _ in range(2):  # once more, for what rounding has left
        part -= basis.T @ (basis @ part)


def sum_squares(part: Array) -> Array:
    """Return the sum of squares of each column."""
    return np.einsum("ij,ij->j", part, part)


def left_over(found: Moments, squares: Array, dtype: np.dtype[Any]) -> Moments:
    """Return moments with the sums of squares that nuisances leave; columns that they explain altogether are constant.

    Examples
    --------
    >>> from l20fs.design.moments import measure
    >>> left_over(measure(np.array([[0.0, 1.0], [2.0, 3.0]])), np.array([1.0, 0.0]), np.dtype(np.float64)).varies
    array([ True, False])
    """
    share = LEAST_LEFT * float(np.finfo(dtype).eps)
    with np.errstate(over="ignore", invalid="ignore"):  # raised as an error by the users of the moments
        stored = np.sqrt(found.squares + found.weight * np.square(found.mean / found.unit))
        is_left = ~(np.sqrt(squares) <= share * stored)
    mean = found.mean
    return found._replace(
        squares=np.where(is_left, squares, 0.0),
        low=np.where(is_left, found.low, mean),
        high=np.where(is_left, found.high, mean),
    )


def explained_energy(before: Moments, after: Moments, scale: Array) -> Array:
    """Return the squared norms of the parts of the columns that nuisances explain, in units of the scale."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.where(after.varies, before.length, 0.0) / scale
        return np.maximum(np.square(lengths) - np.square(after.length / scale), 0.0)


def energy_change(sample_weights: SampleWeights, shares: Array, images: Array) -> Array:
    """Return by how much the energies of the samples, ``min(1, w_i) ||x_i||^2``, change when nuisances are projected out.

    Parameters
    ----------
    sample_weights : SampleWeights
        Weights with a basis of the nuisances.
    shares : array of shape (n_independent, n_features)
        Products of the basis with the columns.
    images : array of shape (n_independent, n_samples)
        Products of the shares with the samples, before the projection.
    """
    basis = sample_weights.basis
    assert basis is not None
    change = np.einsum("ij,ij->j", basis, (shares @ shares.T) @ basis - 2.0 * images)
    return change if sample_weights.values is None else change / np.maximum(sample_weights.values, 1.0)
