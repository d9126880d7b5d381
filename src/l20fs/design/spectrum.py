"""Largest eigenvalue of a design."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from l20fs.design.driver import GramRequest, answer
from l20fs.design.matrix import BLOCK_ELEMENTS
from l20fs.typing import Array

if TYPE_CHECKING:
    from l20fs.design.standardised import Design

#: Up to this size the largest eigenvalue is computed exactly, from a Gram matrix.
EXACT = 256


def largest_eigenvalue(design: Design) -> float:
    """Return the largest eigenvalue of ``X~ X~.T``: exact if a Gram matrix is small, else by Lanczos."""
    n_samples, n_features = design.n_samples, design.n_features
    size = min(n_samples, n_features)
    if size > EXACT:
        # The eigenvector sought is in the range of X~, and so are all vectors on the way.
        return lanczos_bound(lambda vector: design.twice(vector.reshape(1, -1))[0], n_samples)
    if n_samples > n_features:
        (products,) = answer([GramRequest(design, np.arange(n_features))])
        gram = design.place.fetch(products)
    else:
        gram = np.zeros((size, size))
        step = 16 * BLOCK_ELEMENTS // n_samples
        for start in range(0, n_features, step):
            columns = design.columns(np.arange(start, min(start + step, n_features)))
            gram += columns.T @ columns
    return float(np.linalg.eigvalsh(gram)[-1])


def lanczos_bound(multiply: Callable[[Array], Array], size: int) -> float:
    """Return 1.01 times the largest eigenvalue of a symmetric operator, found to 1 %."""
    operator = LinearOperator((size, size), matvec=multiply, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    top = eigsh(operator, k=1, which="LA", v0=start, tol=0.01, ncv=12, return_eigenvectors=False)
    return 1.01 * float(top[0])
