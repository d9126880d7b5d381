"""A dense feature matrix."""

from __future__ import annotations

from typing import Literal

import numpy as np

from l20fs.design.protocol import Pull
from l20fs.design.sample_weights import SampleWeights
from l20fs.design.spectrum import largest_eigenvalue
from l20fs.design.tiles import BLOCK_ELEMENTS, blocks
from l20fs.design.tolerances import refuse_huge_values, refuse_overflow, rounding_of_mean
from l20fs.typing import Array

#: What a processor core commonly keeps close at hand.
CACHE_BYTES = 1 << 21


class DenseDesign:
    """A centred copy of a dense X, one line per feature."""

    def __init__(self, X: Array, deviations: Array | None, sample_weights: SampleWeights) -> None:
        self.n_samples, self.n_features = X.shape
        self.sample_weights = sample_weights
        self.n_stored = X.size
        self.dtype = X.dtype
        self.mean = np.empty(self.n_features)
        self.scale = np.ones(self.n_features) if deviations is None else deviations
        self.column_energy = np.empty(self.n_features)
        self.varies = np.empty(self.n_features, dtype=bool)
        # Features as contiguous lines make it cheap to fetch a few of them; where all of X stays in the cache that does
        # not matter, and BLAS is faster with the samples contiguous.
        order: Literal["C", "F"] = "F" if X.size * X.itemsize <= CACHE_BYTES else "C"
        self.features = np.empty((self.n_features, self.n_samples), dtype=X.dtype, order=order)
        self.largest_deviation = 0.0
        has_units = bool(np.any(self.scale != 1.0))
        sample_energy = np.zeros(self.n_samples)
        for block in blocks(self.n_features, self.n_samples):
            # In float64 and in this memory order whatever X is: the result does not depend on X's layout, and a
            # float32 feature with mean 1000 and deviation 1 keeps all its digits.
            part = np.array(X[:, block], dtype=np.float64, order="C")
            with np.errstate(over="ignore", invalid="ignore"):  # refused below
                self.mean[block] = sample_weights.mean(part)
                part -= self.mean[block]
                if sample_weights.root is not None:
                    part *= sample_weights.root[:, np.newaxis]
            peak = np.abs(part).max(axis=0)
            refuse_overflow(peak)
            is_constant = peak <= rounding_of_mean(self.mean[block], self.n_samples) * sample_weights.largest_root
            part[:, is_constant] = 0.0
            self.varies[block] = ~is_constant
            if deviations is None:
                # Through the peak, so that neither 1e150 overflows nor 1e-300 vanishes when squared.
                part /= np.where(is_constant, 1.0, peak)
                deviation = np.sqrt(np.einsum("ij,ij->j", part, part) / sample_weights.total)
                deviation[is_constant] = 1.0
                part /= deviation
                self.scale[block] = np.where(is_constant, 1.0, peak * deviation)
            else:
                if has_units:
                    with np.errstate(over="ignore"):
                        peak /= self.scale[block]
                        part /= self.scale[block]
                refuse_huge_values(peak, self.dtype)
            self.largest_deviation = max(self.largest_deviation, float(peak.max()))
            self.column_energy[block] = np.einsum("ij,ij->j", part, part)
            sample_energy += np.einsum("ij,ij->i", part, part)
            self.features[block] = part.T
        if sample_weights.values is not None:
            sample_energy /= np.maximum(sample_weights.values, 1.0)
        self.max_sample_energy = float(sample_energy.max())

    def pull(self, residual: Array, rows: Array | None = None) -> Array:
        residual = residual.astype(self.dtype, copy=False)
        if rows is None:
            return residual @ self.features.T
        products = np.empty((len(residual), len(rows)), dtype=self.dtype)
        # So few lines at a time that they are still close at hand when they are multiplied, and that BLAS does not share
        # out the work among its threads: to wake and await them takes longer.
        step = max(8, BLOCK_ELEMENTS // (2 * residual.size))
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            np.matmul(residual, self._lines(rows[block]).T, out=products[:, block])
        return products

    def pull_norms(self) -> Array:
        """Return the norm of each feature as :meth:`pull` multiplies it."""
        return np.sqrt(self.column_energy)

    def pull_among(self, rows: Array | slice) -> Pull:
        lines = self.features[rows].T
        return lambda residual: residual.astype(self.dtype, copy=False) @ lines

    def push(self, rows: Array, values: Array) -> Array:
        values = values.astype(self.dtype, copy=False)
        step = max(64, 2 * BLOCK_ELEMENTS // self.n_samples)
        if len(rows) <= step:
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

    def column(self, row: int) -> Array:
        return self.features[row].astype(np.float64)

    def gram_top(self) -> float:
        return largest_eigenvalue(self)
