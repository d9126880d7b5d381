"""Design that represents vectors over the samples by their products ``X~' v`` with all features.

Solvers only add columns of X~ and targets to such vectors, and take products with columns. In this representation the
product with column j is element j, and column j itself is a row of the Gram matrix ``X~' X~``. Rows of the Gram matrix are
computed by a pass over X when a feature is first used, several at a time; the cost of everything else does not depend on the
number of samples.
"""

from __future__ import annotations

import numpy as np

from l20fs.design.base import Likely, Pull
from l20fs.design.blocked import SMALL_GRAM, BlockDesign, BlockedMatrix
from l20fs.design.column_cache import ColumnCache
from l20fs.design.spectrum import EXACT, lanczos_bound
from l20fs.typing import Array


class GramDesign(BlockDesign):
    """Design of a matrix in blocks by its Gram matrix, of which only the rows of used features are computed."""

    vectors = "features"

    def __init__(self, matrix: BlockedMatrix) -> None:
        super().__init__(matrix)
        self.n_stored = matrix.n_features  # the length of a vector in a pull
        #: Whether the whole Gram matrix is so small that the first pass that needs a row computes all.
        self.is_small = self.n_features <= SMALL_GRAM
        self.cache = ColumnCache(
            self.n_features,
            self.n_features,
            matrix.blocks.budget,
            matrix.gram_lines,
            all_at_once=self.is_small,
            at_once=matrix.at_once,
        )

    def products_with(self, vectors: Array) -> Array:
        """Return the products that represent vectors over the samples; takes a pass over X."""
        return self.matrix.products(vectors)

    def pull(self, residual: Array, rows: Array | None = None, *, likely: Likely | None = None) -> Array:
        return residual.copy() if rows is None else residual[:, rows]

    def pull_among(self, rows: Array | slice) -> Pull:
        return lambda residual: residual[:, rows]

    def push(self, rows: Array, values: Array, *, likely: Likely | None = None) -> Array:
        if len(rows) <= self.cache.most:
            return self.cache.combined(rows, values, likely)
        weights = np.zeros((len(values), self.n_features))
        weights[:, rows] = values
        return self.matrix.twice(weights)

    def column(self, row: int, *, likely: Likely | None = None) -> Array:
        return self.cache.gathered(np.array([row]), likely)[0]

    def inner(self, rows: Array) -> Array:
        """Return ``X~[:, rows]' X~[:, rows]``."""
        step = max(1, self.cache.most // 2)
        parts = [self.cache.gathered(rows[start : start + step])[:, rows] for start in range(0, len(rows), step)]
        return np.vstack(parts) if parts else np.zeros((0, 0))

    def take(self, rows: Array, samples: slice) -> Array:
        raise ValueError(
            "feature_groups with the solvers 'forward' and 'swap' need X in memory, or in blocks of columns with "
            "fewer samples than features. Use solver='ahiht' or 'hiht'."
        )

    def gram_top(self) -> float:
        if not self.is_small:
            return super().gram_top()
        gram = self.inner(np.arange(self.n_features))
        if min(self.n_samples, self.n_features) > EXACT:
            return lanczos_bound(gram.__matmul__, self.n_features)
        return float(np.linalg.eigvalsh(gram)[-1])
