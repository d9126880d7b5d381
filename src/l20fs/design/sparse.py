"""A sparse feature matrix, which is never made dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.design.kernels import MODEST
from l20fs.design.protocol import Pull
from l20fs.design.sample_weights import SampleWeights
from l20fs.design.spectrum import largest_eigenvalue
from l20fs.design.tiles import blocks, segment_peaks, segment_sums
from l20fs.design.tolerances import refuse_huge_values, refuse_overflow, rounding_of_mean
from l20fs.typing import Array


class SparseDesign:
    """A sparse X in CSC form; centring is done by algebra, so that zeros stay zeros."""

    def __init__(self, X: Any, deviations: Array | None, sample_weights: SampleWeights) -> None:
        self.n_samples, self.n_features = X.shape
        self.sample_weights = sample_weights
        columns = X.tocsc(copy=True)  # never the caller's own object: it is put in canonical order and scaled
        columns.sum_duplicates()
        if sample_weights.values is not None and sample_weights.n_counted < self.n_samples:
            columns.data[sample_weights.values[columns.indices] == 0.0] = 0.0
            columns.eliminate_zeros()  # from here on all that is stored counts
        self.n_stored = columns.nnz
        self.dtype = columns.dtype
        self.scale = np.ones(self.n_features) if deviations is None else deviations
        self.mean = np.empty(self.n_features)
        self._shift = np.empty(self.n_features)  # what is left of the mean to be taken away, in units of the scale
        self.column_energy = np.empty(self.n_features)
        self.varies = np.empty(self.n_features, dtype=bool)
        self.largest_deviation = 0.0
        indptr, data = columns.indptr, columns.data
        self._stored_per_column = max(1, self.n_stored // max(1, self.n_features))
        for block in blocks(self.n_features, self._stored_per_column):
            first, last = indptr[block.start], indptr[block.stop]
            starts = (indptr[block.start : block.stop] - first).astype(np.intp)
            counts = np.diff(indptr[block.start : block.stop + 1])
            self._measure(block, data[first:last], columns.indices[first:last], starts, counts, deviations is None)
            self._centre_far(block, data[first:last], counts)
            if np.any(self.scale[block] != 1.0):
                data[first:last] /= np.repeat(self.scale[block], counts).astype(self.dtype)
        self.columns = columns
        self.max_sample_energy = self._largest_sample_energy()

    def _measure(self, block: slice, values: Array, samples: Array, starts: Array, counts: Array, set_scale: bool) -> None:
        """Set mean, energy and, where it is not given, deviation of a block of columns from their stored values."""
        weights = self.sample_weights
        values = values.astype(np.float64)
        weight_of_zeros = weights.outside(samples, starts, counts)
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            if weights.share is None:
                mean = segment_sums(values, starts, counts) / self.n_samples
            else:
                mean = segment_sums(values * weights.share[samples], starts, counts)
            values -= np.repeat(mean, counts)
            if weights.root is not None:
                values *= weights.root[samples]
            # No zero weighs more than all of them, nor more than the heaviest sample.
            peak = np.abs(mean) * np.minimum(np.sqrt(weight_of_zeros), weights.largest_root)
        peak = np.maximum(peak, segment_peaks(np.abs(values), starts, counts))
        refuse_overflow(peak)
        is_constant = peak <= rounding_of_mean(mean, self.n_samples) * weights.largest_root
        unit = np.where(is_constant, 1.0, peak)
        relative = values / np.repeat(unit, counts)
        energy = segment_sums(relative * relative, starts, counts) + weight_of_zeros * (mean / unit) ** 2
        energy[is_constant] = 0.0
        if set_scale:
            self.scale[block] = np.where(is_constant, 1.0, unit * np.sqrt(energy / weights.total))
            energy, unit = np.where(is_constant, 0.0, weights.total), np.ones_like(unit)
        else:
            with np.errstate(over="ignore"):
                peak, unit = peak / self.scale[block], unit / self.scale[block]
            refuse_huge_values(peak, self.dtype)
        self.largest_deviation = max(self.largest_deviation, float(peak.max()))
        self.varies[block] = ~is_constant
        self.mean[block] = mean
        self.column_energy[block] = energy * unit * unit

    def _centre_far(self, block: slice, values: Array, counts: Array) -> None:
        """Centre the full columns whose mean is far from zero where they are stored: there is no zero to be lost.

        By algebra the digits of their deviations would be, behind those of the mean.
        """
        deviation = self.scale[block] * np.sqrt(self.column_energy[block] / self.sample_weights.total)
        is_full = self.varies[block] & (counts == self.sample_weights.n_counted)
        is_far = is_full & (np.abs(self.mean[block]) > MODEST * deviation)
        if is_far.any():
            is_in = np.repeat(is_far, counts)
            values[is_in] = values[is_in] - np.repeat(self.mean[block][is_far], counts[is_far])
        self._shift[block] = np.where(is_far, 0.0, self.mean[block] / self.scale[block])

    def _largest_sample_energy(self) -> float:
        """Return ``max_i min(1, w_i) ||x_i - mean||^2``: the zeros of a column add mean^2 to every sample."""
        energy = np.zeros(self.n_samples)
        for block in blocks(self.n_features, self._stored_per_column):
            part = self.columns[:, block]
            counts, shift = np.diff(part.indptr), self._shift[block]
            # A full column has no zeros, and its mean, however large, must not come in and go out again.
            has_zeros = self.varies[block] & (counts < self.sample_weights.n_counted)
            of_zeros = np.where(has_zeros, shift * shift, 0.0)
            deviations = part.data.astype(np.float64) - np.repeat(shift, counts)
            deviations[np.repeat(~self.varies[block], counts)] = 0.0
            gains = deviations * deviations - np.repeat(of_zeros, counts)
            energy += np.bincount(part.indices, gains, minlength=self.n_samples) + of_zeros.sum()
        if self.sample_weights.values is not None:
            energy *= np.minimum(self.sample_weights.values, 1.0)
        return float(energy.max())

    def pull(self, residual: Array, rows: Array | None = None) -> Array:
        if rows is None:
            return self._products(self.columns.T, self.varies, self._for_products(residual))
        residual = self._for_products(residual)
        products = np.empty((residual.shape[1], len(rows)), dtype=self.dtype)
        for block in blocks(len(rows), self._stored_per_column):
            products[:, block] = self._products(self._lines(rows[block]), self.varies[rows[block]], residual)
        return products

    def pull_among(self, rows: Array | slice) -> Pull:
        lines, varies = self._lines(rows), self.varies[rows]
        return lambda residual: self._products(lines, varies, self._for_products(residual))

    def pull_norms(self) -> Array:
        """Return the norm of each feature as :meth:`pull` multiplies it, which is not centred."""
        shift = np.where(self.varies, self._shift, 0.0)
        return np.sqrt(self.column_energy + self.sample_weights.total * shift * shift)

    def _for_products(self, residual: Array) -> Array:
        # The columns of R sum to zero (with weights: D^(1/2) R does), so X~.T R = X.T R: this side needs no centring.
        residual = self.sample_weights.times_root(residual)
        return np.ascontiguousarray(residual.T.astype(self.dtype, copy=False))

    @staticmethod
    def _products(lines: Any, varies: Array, residual: Array) -> Array:
        products: Array = lines @ residual
        products[~varies] = 0.0
        return products.T

    def _lines(self, rows: Array | slice) -> Any:
        """Pick columns as lines; neighbours share the memory of X, of which they may be the greater part."""
        if not isinstance(rows, slice):
            return self.columns[:, rows].T
        start, stop, _ = rows.indices(self.n_features)
        indptr = self.columns.indptr[start : stop + 1]
        stored = slice(indptr[0], indptr[-1])
        lines = sp.csr_array((stop - start, self.n_samples), dtype=self.dtype)
        # Filled from outside: SciPy would copy what it makes a matrix of, if that is a small part of another array.
        lines.data, lines.indices, lines.indptr = self.columns.data[stored], self.columns.indices[stored], indptr - indptr[0]
        return lines

    def push(self, rows: Array, values: Array) -> Array:
        if 4 * len(rows) > self.n_features:  # picking so many columns would copy much of X
            weights = np.zeros((self.n_features, len(values)), dtype=self.dtype)
            weights[rows] = values.T
            image = (self.columns @ weights).T
        else:
            image = (self.columns[:, rows] @ np.ascontiguousarray(values.T.astype(self.dtype, copy=False))).T
        # The mean over the samples is what centring takes away; taken from the image itself, the sum is zero to the last
        # digit, on which pull relies.
        return self.sample_weights.centred(self.sample_weights.times_root(image))

    def take(self, rows: Array, samples: slice) -> Array:
        part = self.columns[:, rows][samples].toarray() - self._shift[rows]
        part[:, ~self.varies[rows]] = 0.0
        if self.sample_weights.root is not None:
            part *= self.sample_weights.root[samples, np.newaxis]
        return part

    def column(self, row: int) -> Array:
        return self.take(np.array([row]), slice(None))[:, 0].astype(np.float64, copy=False)

    def gram_top(self) -> float:
        return largest_eigenvalue(self)
