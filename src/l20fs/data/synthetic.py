"""Synthetic multi-class data with known informative features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Planted(NamedTuple):
    """Synthetic data with the indices of the informative features."""

    X: NDArray[Any]
    y: NDArray[Any]
    informative: NDArray[Any]


def make_planted(
    n_samples: int = 200,
    n_features: int = 2000,
    n_informative: int = 20,
    n_classes: int = 4,
    *,
    noise: float = 0.5,
    random_state: int = 0,
) -> Planted:
    """Generate Gaussian features of which ``n_informative`` determine the class.

    The class of a sample is the index of the largest of ``n_classes`` random linear combinations of the informative
    features, after adding noise.

    Parameters
    ----------
    n_samples : int, default=200
        Number of samples.
    n_features : int, default=2000
        Number of features.
    n_informative : int, default=20
        Number of informative features.
    n_classes : int, default=4
        Number of classes.
    noise : float, default=0.5
        Standard deviation of the noise relative to that of the linear combinations.
    random_state : int, default=0
        Seed of the random numbers.

    Returns
    -------
    Planted
        ``X`` (n_samples, n_features), ``y`` with values 0 to n_classes - 1, and the indices ``informative``, ascending.

    Examples
    --------
    >>> X, y, informative = make_planted(n_samples=50, n_features=100, n_informative=2, random_state=1)
    >>> X.shape, len(informative)
    ((50, 100), 2)
    """
    if not 1 <= n_informative <= n_features:
        raise ValueError(f"n_informative={n_informative} is not valid. Use a number from 1 to n_features={n_features}.")
    random = np.random.default_rng(random_state)
    X = random.standard_normal((n_samples, n_features))
    informative = np.sort(random.choice(n_features, n_informative, replace=False))
    signal = X[:, informative] @ random.standard_normal((n_informative, n_classes))
    y = (signal + noise * signal.std() * random.standard_normal(signal.shape)).argmax(axis=1)
    return Planted(X, y, informative)
