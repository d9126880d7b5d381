"""Sample weights, and the centre of the samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from l20fs.inputs.targets import checked_weights
from l20fs.typing import Array


class SampleWeights:
    """Weights of the samples; a weight of 0 leaves a sample out.

    With an intercept the samples are centred by their mean, which is equivalent to fitting it; without one by zero, which
    leaves them as they are. ``root`` is the square root of the weights, ``share`` are the weights divided by their sum.
    Without weights these arrays are None, and products with them are skipped.

    Examples
    --------
    >>> SampleWeights(3, [1.0, 0.0, 3.0]).centre(np.array([[4.0], [5.0], [0.0]]))
    array([1.])
    >>> SampleWeights(3, fit_intercept=False).centre(np.array([[4.0], [5.0], [0.0]]))
    array([0.])
    """

    def __init__(self, n_samples: int, values: Any = None, *, fit_intercept: bool = True) -> None:
        self.fit_intercept = bool(fit_intercept)
        self.values: Array | None = None
        self.root: Array | None = None
        self.share: Array | None = None
        self.n_counted = n_samples
        self.total, self.largest_root = float(n_samples), 1.0
        if values is not None:
            self.values = checked_weights(values, n_samples)
            # A sample that weighs less than the rounding error of another one changes no sum: its weight becomes 0.
            self.values[self.values < np.finfo(np.float64).eps * self.values.max()] = 0.0
            self.root = np.sqrt(self.values)
            self.n_counted = int(np.count_nonzero(self.values))
            with np.errstate(over="ignore"):  # raised as an error by make_design
                self.total = float(self.values.sum())
            self.share = self.values / self.total
            self.largest_root = float(self.root.max())

    def centre(self, values: Array) -> Array:
        """Return what is subtracted from the samples, the first axis: their mean, or zero without an intercept."""
        if not self.fit_intercept:
            return np.zeros(values.shape[1])
        return values.mean(axis=0) if self.share is None else np.einsum("i,ij->j", self.share, values)

    def times_root(self, values: Array) -> Array:
        """Multiply by the square roots of the weights along the last axis, the samples."""
        return values if self.root is None else values * self.root

    def centred(self, images: Array) -> Array:
        """Project predictions, with samples on the last axis, onto the range of centred X~: orthogonal to root weights."""
        if not self.fit_intercept:
            return images
        if self.root is None:
            return images - images.mean(axis=1, keepdims=True, dtype=np.float64)
        return images - (images @ self.root / self.total)[:, np.newaxis] * self.root
