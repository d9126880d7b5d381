"""Probabilities of classes from the values of a linear rule."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from l20fs.typing import Array


class Calibration(NamedTuple):
    """Calibration of the values of a rule: the probabilities are ``softmax(slope * values + offset)``.

    ``offset`` (n_classes,) has the logarithms of what the frequency of each class is multiplied by. The one value of a rule
    for two classes stands for minus and plus half of it.

    Examples
    --------
    >>> calibration = Calibration(2.0, np.zeros(2))
    >>> calibration.probabilities(np.array([[0.0], [1.0]])).round(3)
    array([[0.5  , 0.5  ],
           [0.119, 0.881]])
    """

    slope: float
    offset: Array

    def probabilities(self, values: Array) -> Array:
        """Return the probability of each class, (n_samples, n_classes)."""
        return softmax(self.slope * per_class(values) + self.offset)


def per_class(values: Array) -> Array:
    """Return values with a column per class: the one of a rule for two classes becomes minus and plus half of it."""
    return values * np.array([-0.5, 0.5]) if values.shape[-1] == 1 else values


def softmax(logits: Array) -> Array:
    """Return the exponentials along the last axis, divided by their sum.

    Examples
    --------
    >>> softmax(np.array([1000.0, 1000.0, -np.inf]))
    array([0.5, 0.5, 0. ])
    """
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
