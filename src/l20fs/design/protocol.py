"""What a centred and scaled feature matrix can do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from l20fs.design.sample_weights import SampleWeights
from l20fs.typing import Array

#: Products of some features with a residual.
Pull = Callable[[Array], Array]


class Design(Protocol):
    """What :class:`LeastSquares` needs of a centred and scaled feature matrix.

    ``max_sample_energy`` counts a sample of weight 2 as two samples, not as one that is longer: it is the largest
    ``min(1, w_i) ||x_i||^2``, at most the largest squared row norm of X~.
    """

    n_samples: int
    n_features: int
    sample_weights: SampleWeights
    n_stored: int
    dtype: np.dtype[Any]
    mean: Array
    scale: Array
    column_energy: Array
    varies: Array
    largest_deviation: float

    @property
    def max_sample_energy(self) -> float: ...
    def pull(self, residual: Array, rows: Array | None = None) -> Array: ...
    def pull_among(self, rows: Array | slice) -> Pull: ...
    def pull_norms(self) -> Array: ...
    def push(self, rows: Array, values: Array) -> Array: ...
    def take(self, rows: Array, samples: slice) -> Array: ...
    def column(self, row: int) -> Array: ...
    def gram_top(self) -> float: ...
