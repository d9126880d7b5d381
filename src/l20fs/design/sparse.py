"""Sparse feature matrix, which is never made dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.design.adjustment import SMALL_SHARE, energy_change, explained_energy, left_over, project_out, sum_squares
from l20fs.design.base import Design, Likely, Pull
from l20fs.design.column_scale import ColumnScale
from l20fs.design.kernels import add_samples
from l20fs.design.moments import MODEST, Moments, measure_stored, side_by_side
from l20fs.design.sample_weights import SampleWeights
from l20fs.design.tiles import THIN, blocks
from l20fs.design.tolerances import refuse_overflow
from l20fs.typing import Array, Scale


class SparseDesign(Design):
    """Sparse X in CSC form, centred implicitly so that zeros stay zeros."""

    _shares: Array  # products of the basis of the nuisances with the columns of X~

    def __init__(self, X: Any, scale: Scale | Array, sample_weights: SampleWeights) -> None:
        self.n_samples, self.n_features = X.shape
        self.sample_weights = sample_weights
        columns = X.tocsc(copy=True)  # a copy, since it is put in canonical order and scaled in place
        columns.sum_duplicates()
        if sample_weights.values is not None and sample_weights.n_counted < self.n_samples:
            columns.data[sample_weights.values[columns.indices] == 0.0] = 0.0
            columns.eliminate_zeros()  # from here on all stored values have a positive weight
        self.n_stored = columns.nnz
        self.dtype = columns.dtype
        indptr, data = columns.indptr, columns.data
        self._stored_per_column = max(1, self.n_stored // max(1, self.n_features))
        parts = blocks(self.n_features, self._stored_per_column)
        found = side_by_side([measure_stored(columns[:, block], sample_weights.values) for block in parts])
        found = found if sample_weights.fit_intercept else found.about_zero
        refuse_overflow(found.length)
        is_far = np.concatenate([self._centre_far(found, block, columns) for block in parts])
        plain, found = found, found if sample_weights.basis is None else self._adjust(found, is_far, columns, parts)
        measured = ColumnScale.of(found, scale, self.dtype)
        #: The part of the mean to subtract implicitly, in units of the scale.
        self._shift = np.where(is_far | ~measured.varies, 0.0, measured.mean / measured.scale)
        for block in parts:
            if np.any(measured.scale[block] != 1.0):
                counts = np.diff(indptr[block.start : block.stop + 1])
                data[indptr[block.start] : indptr[block.stop]] /= np.repeat(measured.scale[block], counts).astype(self.dtype)
        self._matrix = columns
        # X itself, of which samples are quickly found; columns that are centred in place are not in it.
        self._samples = X if X.format == "csr" and not is_far.any() else None
        self._keep_scale(measured)
        if sample_weights.basis is not None:
            self._shares = np.where(self.varies, self._shares / self.scale, 0.0)
            self.explained_energy = explained_energy(plain, found, self.scale)
        self.max_sample_energy = self._largest_sample_energy()

    def _centre_far(self, found: Moments, block: slice, columns: Any) -> Array:
        """Centre full columns with large means in place, and return their mask: they have no zeros to lose.

        Implicit centring would lose the digits of their deviations to the large mean.
        """
        mean, counts = found.mean[block], np.diff(columns.indptr[block.start : block.stop + 1])
        values = columns.data[columns.indptr[block.start] : columns.indptr[block.stop]]
        is_full = found.varies[block] & (counts == self.sample_weights.n_counted)
        is_far = is_full & (np.abs(mean) > MODEST * found.deviation[block])
        if is_far.any():
            is_in, own = np.repeat(is_far, counts), counts[is_far]
            far = values[is_in].astype(np.float64) - np.repeat(mean[is_far], own)
            values[is_in] = far - np.repeat(found.rest[block][is_far], own)
        return is_far

    def _adjust(self, found: Moments, is_far: Array, columns: Any, parts: list[slice]) -> Moments:
        """Set the products of the basis of the nuisances with the columns; return the moments without what they explain."""
        weights, basis = self.sample_weights, self.sample_weights.basis
        assert basis is not None
        weighted = np.ascontiguousarray(weights.times_root(basis).T)
        # The basis is orthogonal to the constant column, so that the columns need no centring here.
        self._shares = np.hstack([(columns[:, block].T @ weighted).T for block in parts])
        squares = np.maximum(found.squares - np.square(self._shares / found.unit).sum(axis=0), 0.0)
        small = np.flatnonzero(found.varies & (squares <= SMALL_SHARE * found.squares))
        for block in blocks(len(small), self.n_samples):
            own = small[block]
            part = columns[:, own].toarray() - np.where(is_far[own], 0.0, found.mean[own])
            part = weights.times_root(part.T).T / found.unit[own]
            project_out(part, basis)
            squares[own] = sum_squares(part)
        return left_over(found, squares, self.dtype)

    def _largest_sample_energy(self) -> float:
        """Return ``max_i min(1, w_i) ||x_i - mean||^2``; the zeros of a column add mean^2 to every sample."""
        energy = np.zeros(self.n_samples)
        for block in blocks(self.n_features, self._stored_per_column):
            part = self._matrix[:, block]
            counts, shift = np.diff(part.indptr), self._shift[block]
            # A full column has no zeros: its mean must not be added and subtracted again, which would lose digits.
            has_zeros = self.varies[block] & (counts < self.sample_weights.n_counted)
            of_zeros = np.where(has_zeros, shift * shift, 0.0)
            deviations = part.data.astype(np.float64) - np.repeat(shift, counts)
            deviations[np.repeat(~self.varies[block], counts)] = 0.0
            gains = deviations * deviations - np.repeat(of_zeros, counts)
            energy += np.bincount(part.indices, gains, minlength=self.n_samples) + of_zeros.sum()
        if self.sample_weights.values is not None:
            energy *= np.minimum(self.sample_weights.values, 1.0)
        if self.sample_weights.basis is not None:
            images = (self._matrix @ self._shares.T).T - (self._shares @ self._shift)[:, np.newaxis]
            energy += energy_change(self.sample_weights, self._shares, self.sample_weights.times_root(images))
        return float(energy.max())

    def pull(self, residual: Array, rows: Array | None = None, *, likely: Likely | None = None) -> Array:
        if rows is None:
            return self._products(self._matrix.T, self.varies, self._for_products(residual))
        residual = self._for_products(residual)
        products = np.empty((residual.shape[1], len(rows)), dtype=self.dtype)
        for block in blocks(len(rows), self._stored_per_column):
            products[:, block] = self._products(self._lines(rows[block]), self.varies[rows[block]], residual)
        return products

    @property
    def origin(self) -> Array:
        return self.mean - self.scale * self._shift

    def weighted_sums(self, weights: Array) -> tuple[Array, Array]:
        sums, squares = np.empty((2, len(weights), self.n_features))
        for block in blocks(self.n_features, self._stored_per_column):
            lines = self._lines(block).astype(np.float64)
            sums[:, block] = (lines @ weights.T).T
            np.square(lines.data, out=lines.data)
            squares[:, block] = (lines @ weights.T).T
        return sums, squares

    def pull_among(self, rows: Array | slice) -> Pull:
        lines, varies = self._lines(rows), self.varies[rows]
        return lambda residual: self._products(lines, varies, self._for_products(residual))

    def pull_norms(self) -> Array:
        """Return the norm of each feature as used by :meth:`pull`, which neither centres nor adjusts."""
        shift = np.where(self.varies, self._shift, 0.0)
        return np.sqrt(self.column_energy + self.explained_energy + self.sample_weights.total * shift * shift)

    def gram_lines(self, rows: Array) -> Array | None:
        counts, weights = np.diff(self._matrix.indptr)[rows], self.sample_weights
        is_thin = THIN * counts < self.n_samples
        if self._samples is None or not is_thin.any():
            return None
        lines = np.empty((len(rows), self.n_features))
        if not is_thin.all():
            lines[~is_thin] = self.pull(self.take(rows[~is_thin], slice(None)).T)
        for place in np.flatnonzero(is_thin):
            row = rows[place]
            stored = slice(self._matrix.indptr[row], self._matrix.indptr[row + 1])
            samples, values = self._matrix.indices[stored], self._matrix.data[stored].astype(np.float64)
            values = values if weights.values is None else values * weights.values[samples]
            lines[place] = add_samples(self._samples, samples, values) / self.scale
            lines[place] -= weights.total * self._shift[row] * self._shift
            if weights.basis is not None:
                lines[place] -= self._shares[:, row] @ self._shares
        lines[:, ~self.varies] = 0.0
        return lines

    def _for_products(self, residual: Array) -> Array:
        # With an intercept the columns of R sum to zero (with weights: D^(1/2) R does), so X~.T R = X.T R: this side needs
        # no centring; nor any adjustment, since R is orthogonal to the nuisances as well.
        residual = self.sample_weights.times_root(residual)
        return np.ascontiguousarray(residual.T.astype(self.dtype, copy=False))

    @staticmethod
    def _products(lines: Any, varies: Array, residual: Array) -> Array:
        products: Array = lines @ residual
        products[~varies] = 0.0
        return products.T

    def _lines(self, rows: Array | slice) -> Any:
        """Return columns as rows; adjacent ones share the memory of X."""
        if not isinstance(rows, slice):
            return self._matrix[:, rows].T
        start, stop, _ = rows.indices(self.n_features)
        indptr = self._matrix.indptr[start : stop + 1]
        stored = slice(indptr[0], indptr[-1])
        lines = sp.csr_array((stop - start, self.n_samples), dtype=self.dtype)
        # Attributes are set afterwards: the constructor of SciPy copies arrays that are small parts of another one.
        lines.data, lines.indices, lines.indptr = self._matrix.data[stored], self._matrix.indices[stored], indptr - indptr[0]
        return lines

    def push(self, rows: Array, values: Array, *, likely: Likely | None = None) -> Array:
        if 4 * len(rows) > self.n_features:  # picking so many columns would copy much of X
            weights = np.zeros((self.n_features, len(values)), dtype=self.dtype)
            weights[rows] = values.T
            image = (self._matrix @ weights).T
        else:
            image = (self._matrix[:, rows] @ np.ascontiguousarray(values.T.astype(self.dtype, copy=False))).T
        # Centring subtracts the mean over the samples; computed from the image itself, the sum is zero to the last digit,
        # on which pull relies.
        return self.sample_weights.centred(self.sample_weights.times_root(image))

    def take(self, rows: Array, samples: slice) -> Array:
        part = self._matrix[:, rows][samples].toarray() - self._shift[rows]
        part[:, ~self.varies[rows]] = 0.0
        if self.sample_weights.root is not None:
            part *= self.sample_weights.root[samples, np.newaxis]
        if self.sample_weights.basis is not None:
            part -= self.sample_weights.basis[:, samples].T @ self._shares[:, rows]
        return part

    def column(self, row: int, *, likely: Likely | None = None) -> Array:
        return self.take(np.array([row]), slice(None))[:, 0].astype(np.float64, copy=False)
