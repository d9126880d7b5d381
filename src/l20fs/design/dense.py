"""Dense feature matrix."""

from __future__ import annotations

from typing import Literal

import numpy as np

from l20fs.design.adjustment import explained_energy, left_over, project_out, sum_squares
from l20fs.design.base import Design, Likely, Pull
from l20fs.design.column_scale import ColumnScale, storage_units
from l20fs.design.moments import centre, side_by_side, weigh
from l20fs.design.sample_weights import SampleWeights
from l20fs.design.tiles import BLOCK_ELEMENTS, blocks
from l20fs.typing import Array, Scale

#: Common cache size of a processor core.
CACHE_BYTES = 1 << 21


class DenseDesign(Design):
    """Centred copy of a dense X, one row per feature."""

    def __init__(self, X: Array, scale: Scale | Array, sample_weights: SampleWeights) -> None:
        self.n_samples, self.n_features = X.shape
        self.sample_weights = sample_weights
        self.n_stored = X.size
        self.dtype = X.dtype
        # Contiguous features make it cheap to fetch a few of them; if all of X fits into the cache this does not matter,
        # and BLAS is faster with contiguous samples.
        order: Literal["C", "F"] = "F" if X.size * X.itemsize <= CACHE_BYTES else "C"
        self.features = np.empty((self.n_features, self.n_samples), dtype=X.dtype, order=order)
        units = np.empty(self.n_features)
        measured, plain = [], []  # without and with what nuisances explain
        for block in blocks(self.n_features, self.n_samples):
            # In float64 and in this memory order whatever X is: the result does not depend on X's layout, and a
            # float32 feature with mean 1000 and deviation 1 keeps all its digits.
            part = np.array(X[:, block], dtype=np.float64, order="C")
            own = sample_weights.values
            found = centre(part, X[:, block], own) if sample_weights.fit_intercept else weigh(part, own)
            if sample_weights.basis is not None:
                plain.append(found)
                project_out(part, sample_weights.basis)
                found = left_over(found, sum_squares(part), self.dtype)
            with np.errstate(over="ignore", invalid="ignore"):  # raised as an error below
                units[block] = storage_units(found, self.dtype)
                if not np.array_equal(found.unit, units[block]):
                    part *= found.unit / units[block]
                self.features[block] = part.T
            measured.append(found)
        # Only now are all deviations known, on which the divisor of each feature may depend.
        columns = ColumnScale.of(side_by_side(measured), scale, self.dtype)
        self._keep_scale(columns)
        if plain:
            self.explained_energy = explained_energy(side_by_side(plain), side_by_side(measured), columns.scale)
        self.max_sample_energy = self._divide(columns.factors(units))

    def _divide(self, factors: Array | None) -> float:
        """Scale the stored features; return the largest energy of a sample."""
        energy = np.zeros(self.n_samples)
        for block in blocks(self.n_features, self.n_samples):
            lines = self.features[block]
            if factors is not None:
                lines *= factors[block, None]
            energy += np.einsum("ij,ij->j", lines, lines, dtype=np.float64)
        if self.sample_weights.values is not None:
            energy /= np.maximum(self.sample_weights.values, 1.0)
        return float(energy.max())

    def pull(self, residual: Array, rows: Array | None = None, *, likely: Likely | None = None) -> Array:
        residual = residual.astype(self.dtype, copy=False)
        if rows is None:
            return residual @ self.features.T
        products = np.empty((len(residual), len(rows)), dtype=self.dtype)
        # So few features at a time that they are still in the cache when they are multiplied, and that BLAS does not use
        # several threads: starting and joining them would take longer.
        step = max(8, BLOCK_ELEMENTS // (2 * residual.size))
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            np.matmul(residual, self._lines(rows[block]).T, out=products[:, block])
        return products

    def weighted_sums(self, weights: Array) -> tuple[Array, Array]:
        sums, squares = np.empty((2, len(weights), self.n_features))
        for block in blocks(self.n_features, self.n_samples):
            lines = self.features[block].astype(np.float64)
            np.matmul(weights, lines.T, out=sums[:, block])
            np.square(lines, out=lines)
            np.matmul(weights, lines.T, out=squares[:, block])
        return sums, squares

    def pull_among(self, rows: Array | slice) -> Pull:
        lines = self.features[rows].T
        return lambda residual: residual.astype(self.dtype, copy=False) @ lines

    def push(self, rows: Array, values: Array, *, likely: Likely | None = None) -> Array:
        values = values.astype(self.dtype, copy=False)
        step = max(64, 2 * BLOCK_ELEMENTS // self.n_samples)
        if len(rows) <= step:
            with np.errstate(invalid="ignore"):  # OpenBLAS may read unused memory of thin float32 products, and says so
                return values @ self._lines(rows)
        image = np.zeros((len(values), self.n_samples), dtype=self.dtype)
        for start in range(0, len(rows), step):
            image += values[:, start : start + step] @ self._lines(rows[start : start + step])
        return image

    def _lines(self, rows: Array) -> Array:
        if self.features.flags.c_contiguous:
            return self.features[rows]
        return self.features.T.take(rows, axis=1).T

    def take(self, rows: Array, samples: slice) -> Array:
        return self.features[rows, samples].T

    def column(self, row: int, *, likely: Likely | None = None) -> Array:
        return self.features[row].astype(np.float64)
