"""Largest eigenvalue of a design."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import LinearOperator, eigsh

from l20fs.design.tiles import blocks
from l20fs.typing import Array

if TYPE_CHECKING:
    from l20fs.design.base import Design

#: Up to this size the largest eigenvalue is computed exactly, from a Gram matrix.
EXACT = 256


def largest_eigenvalue(design: Design) -> float:
    """Return the largest eigenvalue of ``X~ X~.T``: exact if a Gram matrix is small, else by Lanczos."""
    n_samples, n_features = design.n_samples, design.n_features
    size = min(n_samples, n_features)
    if size > EXACT:
        return largest_eigenvalue_by_lanczos(design)
    gram = np.zeros((size, size))
    if n_samples <= n_features:
        for block in blocks(n_features, n_samples):
            part = design.take(np.arange(block.start, block.stop), slice(None))
            gram += part @ part.T
    else:
        for block in blocks(n_samples, n_features):
            part = design.take(np.arange(n_features), block)
            gram += part.T @ part
    return float(eigvalsh(gram, subset_by_index=[size - 1, size - 1])[0])


def largest_eigenvalue_by_lanczos(design: Design) -> float:
    """Bound the largest eigenvalue of ``X~ X~.T`` from above by 1.01 times a Lanczos value of accuracy 1 %."""
    every = np.arange(design.n_features)
    # A design may rely on a residual that sums to zero; so does the eigenvector sought.
    return lanczos_bound(
        lambda vector: design.push(every, design.pull(design.sample_weights.centred(vector.reshape(1, -1))))[0],
        design.n_samples,
    )


def lanczos_bound(multiply: Callable[[Array], Array], size: int) -> float:
    """Return 1.01 times the largest eigenvalue of a symmetric operator, found to 1 %."""
    operator = LinearOperator((size, size), matvec=multiply, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    top = eigsh(operator, k=1, which="LA", v0=start, tol=0.01, ncv=12, return_eigenvectors=False)
    return 1.01 * float(top[0])
