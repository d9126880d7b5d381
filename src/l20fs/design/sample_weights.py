"""Sample weights, and what is projected out of the samples: their mean and nuisances."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import qr

from l20fs.inputs.targets import checked_weights
from l20fs.typing import Array

#: A nuisance with a smaller share of its length outside the span of the others depends on them.
LEAST_REMAINDER = 1e-10


class SampleWeights:
    """Weights of the samples; a weight of 0 leaves a sample out.

    With an intercept the samples are centred by their mean, which is equivalent to fitting it; without one by zero, which
    leaves them as they are. ``root`` is the square root of the weights, ``share`` are the weights divided by their sum.
    Without weights these arrays are None, and products with them are skipped.

    Nuisances, such as the batch of each sample, are projected out of the centred samples as the constant column is by
    centring: ``basis`` (n_independent, n_samples) is orthonormal, and spans what the nuisances, multiplied by ``root``, have
    beyond the centre. It is None without nuisances, and where the centre explains them all.

    Examples
    --------
    >>> SampleWeights(3, [1.0, 0.0, 3.0]).centre(np.array([[4.0], [5.0], [0.0]]))
    array([1.])
    >>> SampleWeights(3, fit_intercept=False).centre(np.array([[4.0], [5.0], [0.0]]))
    array([0.])
    >>> SampleWeights(3, nuisances=np.array([[1.0], [0.0], [0.0]])).adjusted(np.array([[4.0, -1.0, -3.0]]))[:, 1:].round(6)
    array([[ 1., -1.]])
    """

    def __init__(
        self, n_samples: int, values: Any = None, *, fit_intercept: bool = True, nuisances: Array | None = None
    ) -> None:
        self.fit_intercept = bool(fit_intercept)
        self.values: Array | None = None
        self.root: Array | None = None
        self.share: Array | None = None
        self.n_counted = self._n_samples = n_samples
        self.total = float(n_samples)
        if values is not None:
            self.values = checked_weights(values, n_samples)
            # A sample that weighs less than the rounding error of another one changes no sum: its weight becomes 0.
            self.values[self.values < np.finfo(np.float64).eps * self.values.max()] = 0.0
            self.root = np.sqrt(self.values)
            self.n_counted = int(np.count_nonzero(self.values))
            with np.errstate(over="ignore"):  # raised as an error by the problem
                self.total = float(self.values.sum())
            self.share = self.values / self.total
        self.nuisances = nuisances
        self.basis = None if nuisances is None else self._independent(nuisances)

    def centre(self, values: Array) -> Array:
        """Return what is subtracted from the samples, the first axis: their mean, or zero without an intercept."""
        if not self.fit_intercept:
            return np.zeros(values.shape[1])
        return values.mean(axis=0) if self.share is None else np.einsum("i,ij->j", self.share, values)

    def times_root(self, values: Array) -> Array:
        """Multiply by the square roots of the weights along the last axis, the samples."""
        return values if self.root is None else values * self.root

    def centred(self, images: Array) -> Array:
        """Project predictions, with samples on the last axis, onto the range of X~.

        It is orthogonal to the root weights, if there is an intercept, and to the nuisances.
        """
        if not self.fit_intercept:
            return self.adjusted(images)
        if self.root is None:
            return self.adjusted(images - images.mean(axis=1, keepdims=True, dtype=np.float64))
        return self.adjusted(images - (images @ self.root / self.total)[:, np.newaxis] * self.root)

    def adjusted(self, lines: Array) -> Array:
        """Project the nuisances out of centred vectors with the root weights, whose last axis is the samples."""
        return lines if self.basis is None else lines - (lines @ self.basis.T) @ self.basis

    def _independent(self, nuisances: Array) -> Array | None:
        """Return an orthonormal basis of the nuisances beyond the centre; None if there is none."""
        lines = (nuisances - self.centre(nuisances)).T
        spread = np.abs(lines).max(axis=1, initial=0.0)
        is_spread = spread > LEAST_REMAINDER * np.abs(nuisances).max(axis=0, initial=0.0)
        lines = self.times_root(lines[is_spread] / spread[is_spread, np.newaxis])
        lengths = np.linalg.norm(lines, axis=1)
        lines = lines[lengths > 0.0] / lengths[lengths > 0.0, np.newaxis]
        if not len(lines):
            return None
        basis, triangle, _ = qr(lines.T, mode="economic", pivoting=True)
        corners = np.abs(np.diagonal(triangle))
        return np.ascontiguousarray(basis[:, corners > LEAST_REMAINDER * corners[0]].T)
