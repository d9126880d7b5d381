"""Multi-class data with known relevant features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Planted(NamedTuple):
    """Data and the features that made the labels."""

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
    """Draw Gaussian features of which ``n_informative`` decide the class.

    The class of a sample is the largest of ``n_classes`` random combinations of the informative features, each with noise
    of ``noise`` times its own spread.

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
        raise ValueError(f"n_informative={n_informative} is outside 1 to n_features={n_features}.")
    random = np.random.default_rng(random_state)
    X = random.standard_normal((n_samples, n_features))
    informative = np.sort(random.choice(n_features, n_informative, replace=False))
    signal = X[:, informative] @ random.standard_normal((n_informative, n_classes))
    y = (signal + noise * signal.std() * random.standard_normal(signal.shape)).argmax(axis=1)
    return Planted(X, y, informative)
