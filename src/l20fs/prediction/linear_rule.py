"""Linear rules on selected features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from l20fs.typing import Array


class LinearRule(NamedTuple):
    """Linear rule ``x[rows] @ weights + intercept``, one column per target.

    The rule for two classes has one column, for the second against the first. ``rows`` (n_rows,) are features, best first;
    ``weights`` (n_rows, n_targets) and ``intercept`` (n_targets,) are in units of X.
    """

    rows: Array
    weights: Array
    intercept: Array

    def apply(self, columns: Any) -> Array:
        """Return the values for samples, (n_samples, n_targets), from their columns ``X[:, rows]``."""
        return np.asarray(columns @ self.weights) + self.intercept


def decide(values: Array) -> Array:
    """Return the index of the class of each sample from the values of a rule (..., n_values); ties go to the first class.

    Examples
    --------
    >>> decide(np.array([[0.5], [-2.0], [0.0]])), decide(np.array([[1.0, 3.0, 2.0]]))
    (array([1, 0, 0]), array([1]))
    """
    return np.asarray((values[..., 0] > 0.0).astype(np.intp) if values.shape[-1] == 1 else values.argmax(axis=-1))
