"""Design in blocks of columns: vectors over the samples and used columns are kept in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.design import kernels
from l20fs.design.base import Likely, Pull
from l20fs.design.blocked import BlockDesign, BlockedMatrix
from l20fs.design.column_cache import ColumnCache
from l20fs.typing import Array


class ColumnDesign(BlockDesign):
    """Design in blocks of columns; a pass returns products, or only the features above a threshold."""

    def __init__(self, matrix: BlockedMatrix) -> None:
        super().__init__(matrix)
        self.n_stored = 0  # lazy bounds save products, not passes
        self.cache = ColumnCache(self.n_features, self.n_samples, matrix.blocks.budget, matrix.lines, at_once=matrix.at_once)

    def pull(self, residual: Array, rows: Array | None = None, *, likely: Likely | None = None) -> Array:
        if rows is None or len(rows) > self.cache.most:
            products = self.matrix.products(residual)
            return products if rows is None else products[:, rows]
        return residual @ self.cache.gathered(rows, likely).T

    def pull_exactly(self, residual: Array) -> Array:
        return self.matrix.products(residual, precision=np.dtype(np.float64))

    def pull_among(self, rows: Array | slice) -> Pull:
        if isinstance(rows, slice):  # adjacent columns, perhaps all of X: they are not fetched
            start, stop, _ = rows.indices(self.n_features)
            return lambda residual: self.matrix.products(residual, start, stop)
        picked, columns = self._stored(rows)
        varies = self.varies[rows]

        def pull(residual: Array) -> Array:
            products = kernels.products(picked, columns, self.sample_weights.times_root(residual))
            products[:, ~varies] = 0.0
            return products

        return pull

    def _stored(self, rows: Array) -> tuple[Any, kernels.Columns]:
        """Return a few columns side by side, sparse if X is sparse, with their means and scales."""
        matrix, nowhere, nothing = self.matrix, np.arange(0), np.zeros(len(rows))
        which, places, is_in = matrix.located(rows)
        parts = matrix.blocks.each(kernels.stored_columns, matrix.spread(which, [(places[i],) for i in which]), which)
        if not matrix.blocks.is_sparse:
            found = np.empty((self.n_samples, len(rows)))
            for number, part in zip(which, parts, strict=True):
                found[:, is_in[number]] = part
            found -= self.mean[rows]
            found -= matrix.columns.rest[rows]
            return found, kernels.Columns(nothing, nothing, self.scale[rows], nowhere)
        made = [sp.csc_array(part, shape=(self.n_samples, len(part[2]) - 1)) for part in parts]
        order = np.concatenate([np.flatnonzero(is_in[number]) for number in which])
        picked = sp.hstack(made, format="csc")[:, np.argsort(order)]
        return picked, kernels.Columns(self.mean[rows], nothing, self.scale[rows], nowhere)

    def push(self, rows: Array, values: Array, *, likely: Likely | None = None) -> Array:
        if len(rows) <= self.cache.most:
            return self.cache.combined(rows, values, likely)
        weights = np.zeros((len(values), self.n_features))
        weights[:, rows] = values
        return self.matrix.images(weights)

    def take(self, rows: Array, samples: slice) -> Array:
        step = max(1, self.cache.most // 2)
        parts = [self.cache.gathered(rows[start : start + step])[:, samples] for start in range(0, len(rows), step)]
        return np.vstack(parts).T if parts else np.zeros((len(range(*samples.indices(self.n_samples))), 0))

    def column(self, row: int, *, likely: Likely | None = None) -> Array:
        return self.cache.gathered(np.array([row]), likely)[0]

    def squared_lengths(self, residual: Array) -> Array:
        return self.matrix.squared_lengths(residual)

    def long_columns(self, residual: Array, threshold: float) -> tuple[Array, Array]:
        return self.matrix.long_columns(residual, threshold)
