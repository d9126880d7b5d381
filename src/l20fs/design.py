"""The feature matrix, centred and scaled: the only place of the package that touches X.

Everything is kept class-major: weights are ``(n_targets, n_rows)`` and residuals ``(n_targets, n_samples)``, the
orientation of scikit-learn's ``coef_``. A thin product with its long side contiguous is up to twice as fast in this
orientation (``benchmarks/path_cost.py`` prints both).

A *design* is the centred and scaled feature matrix X~ behind a few operations; a new array library is one more design,
and no solver changes:

=============  ==============================================================  =======================
``pull(R)``    ``R @ X~``, the products of all features with a residual         one pass over X
``pull(R, r)`` ``R @ X~[:, r]``, the products of a few features                 the columns ``r`` only
``push(r, V)`` ``V @ X~[:, r].T``, the predictions of a few features            the columns ``r`` only
``take(r, i)`` ``X~[i, r]`` as a dense array                                    the columns ``r`` only
``gram_top()`` an upper bound of the largest eigenvalue of ``X~ X~.T``          once, on demand
=============  ==============================================================  =======================
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import LinearOperator, eigsh

Array = NDArray[Any]
Scale = Literal["none", "zscore"]

#: Elements that one block of a streamed pass may hold: small enough for the cache, large against a Python call.
BLOCK_ELEMENTS = 1 << 18

#: What a processor core commonly keeps close at hand.
CACHE_BYTES = 1 << 21


class Design(Protocol):
    """What :class:`LeastSquares` needs of a centred and scaled feature matrix."""

    n_samples: int
    n_features: int
    n_stored: int
    dtype: np.dtype[Any]
    mean: Array
    scale: Array
    column_energy: Array
    varies: Array
    largest_deviation: float
    max_sample_energy: float

    def pull(self, residual: Array, rows: Array | None = None) -> Array: ...
    def pull_norms(self) -> Array: ...
    def push(self, rows: Array, values: Array) -> Array: ...
    def take(self, rows: Array, samples: slice) -> Array: ...
    def gram_top(self) -> float: ...


def make_design(X: Any, scale: Scale = "none") -> Design:
    """Wrap a dense array or a SciPy sparse matrix; a dense X is copied once, a sparse one is never made dense."""
    if scale not in ("none", "zscore"):
        raise ValueError(f"scale={scale!r} is unknown. Use 'none' (as given) or 'zscore' (each feature to deviation 1).")
    design: Design = SparseDesign(X, scale) if sp.issparse(X) else DenseDesign(np.asarray(X), scale)
    if not design.varies.any():
        raise ValueError(
            f"All {design.n_features} features of X are constant, so none can tell the targets apart. "
            "Check that X holds the measurements of different samples in its rows."
        )
    _refuse_vanishing_values(design)
    return design


class DenseDesign:
    """A centred copy of a dense X, one line per feature."""

    def __init__(self, X: Array, scale: Scale) -> None:
        self.n_samples, self.n_features = X.shape
        self.n_stored = X.size
        self.dtype = X.dtype
        self.mean = np.empty(self.n_features)
        self.scale = np.ones(self.n_features)
        self.column_energy = np.empty(self.n_features)
        self.varies = np.empty(self.n_features, dtype=bool)
        # Features as contiguous lines make it cheap to fetch a few of them; where all of X stays in the cache that does
        # not matter, and BLAS is faster with the samples contiguous.
        order: Literal["C", "F"] = "F" if X.size * X.itemsize <= CACHE_BYTES else "C"
        self.features = np.empty((self.n_features, self.n_samples), dtype=X.dtype, order=order)
        self.largest_deviation = 0.0
        sample_energy = np.zeros(self.n_samples)
        for block in _blocks(self.n_features, self.n_samples):
            # In float64 and in this memory order whatever X is: the result does not depend on X's layout, and a
            # float32 feature with mean 1000 and deviation 1 keeps all its digits.
            part = np.array(X[:, block], dtype=np.float64, order="C")
            with np.errstate(over="ignore", invalid="ignore"):  # refused below
                self.mean[block] = part.mean(axis=0)
                part -= self.mean[block]
            peak = np.abs(part).max(axis=0)
            _refuse_overflow(peak)
            is_constant = peak <= _rounding_of_mean(self.mean[block], self.n_samples)
            part[:, is_constant] = 0.0
            self.largest_deviation = max(self.largest_deviation, float(peak.max()))
            self.varies[block] = ~is_constant
            if scale == "zscore":
                # Through the peak, so that neither 1e150 overflows nor 1e-300 vanishes when squared.
                part /= np.where(is_constant, 1.0, peak)
                deviation = np.sqrt(np.einsum("ij,ij->j", part, part) / self.n_samples)
                deviation[is_constant] = 1.0
                part /= deviation
                self.scale[block] = np.where(is_constant, 1.0, peak * deviation)
            else:
                _refuse_huge_values(peak, self.dtype)
            self.column_energy[block] = np.einsum("ij,ij->j", part, part)
            sample_energy += np.einsum("ij,ij->i", part, part)
            self.features[block] = part.T
        self.max_sample_energy = float(sample_energy.max())

    def pull(self, residual: Array, rows: Array | None = None) -> Array:
        residual = residual.astype(self.dtype, copy=False)
        if rows is None:
            return residual @ self.features.T
        products = np.empty((len(residual), len(rows)), dtype=self.dtype)
        # So few lines at a time that they are still close at hand, once fetched, when they are multiplied.
        step = max(16, BLOCK_ELEMENTS // (8 * self.n_samples))
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            np.matmul(residual, self._lines(rows[block]).T, out=products[:, block])
        return products

    def pull_norms(self) -> Array:
        """Return the norm of each feature as :meth:`pull` multiplies it."""
        return np.sqrt(self.column_energy)

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

    def gram_top(self) -> float:
        return _largest_eigenvalue(self)


class SparseDesign:
    """A sparse X in CSC form; centring is done by algebra, so that zeros stay zeros."""

    def __init__(self, X: Any, scale: Scale) -> None:
        self.n_samples, self.n_features = X.shape
        columns = X.tocsc(copy=True)  # never the caller's own object: it is put in canonical order and scaled
        columns.sum_duplicates()
        self.n_stored = columns.nnz
        self.dtype = columns.dtype
        self.scale = np.ones(self.n_features)
        self.mean = np.empty(self.n_features)
        self.column_energy = np.empty(self.n_features)
        self.varies = np.empty(self.n_features, dtype=bool)
        self.largest_deviation = 0.0
        indptr, data = columns.indptr, columns.data
        self._stored_per_column = max(1, self.n_stored // max(1, self.n_features))
        for block in _blocks(self.n_features, self._stored_per_column):
            first, last = indptr[block.start], indptr[block.stop]
            starts = (indptr[block.start : block.stop] - first).astype(np.intp)
            counts = np.diff(indptr[block.start : block.stop + 1])
            self._measure(block, data[first:last], starts, counts, scale)
            if scale == "zscore":
                data[first:last] /= np.repeat(self.scale[block], counts).astype(self.dtype)
        self.columns = columns
        self._shift = self.mean / self.scale
        self.max_sample_energy = self._largest_sample_energy()

    def _measure(self, block: slice, values: Array, starts: Array, counts: Array, scale: Scale) -> None:
        """Set mean, deviation and energy of a block of columns from their stored values."""
        values = values.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            mean = _segment_sums(values, starts, counts) / self.n_samples
            values -= np.repeat(mean, counts)
        n_zeros = self.n_samples - counts
        peak = np.where(n_zeros > 0, np.abs(mean), 0.0)
        if len(values):
            stored = np.maximum.reduceat(np.abs(values), np.minimum(starts, len(values) - 1))
            peak = np.maximum(peak, np.where(counts > 0, stored, 0.0))
        _refuse_overflow(peak)
        is_constant = peak <= _rounding_of_mean(mean, self.n_samples)
        self.largest_deviation = max(self.largest_deviation, float(peak.max()))
        if scale == "none":
            _refuse_huge_values(peak, self.dtype)
        unit = np.where(is_constant, 1.0, peak)
        relative = values / np.repeat(unit, counts)
        energy = _segment_sums(relative * relative, starts, counts) + n_zeros * (mean / unit) ** 2
        energy[is_constant] = 0.0
        if scale == "zscore":
            self.scale[block] = np.where(is_constant, 1.0, unit * np.sqrt(energy / self.n_samples))
            energy, unit = np.where(is_constant, 0.0, float(self.n_samples)), np.ones_like(unit)
        self.varies[block] = ~is_constant
        self.mean[block] = mean
        self.column_energy[block] = energy * unit * unit

    def _largest_sample_energy(self) -> float:
        """Return ``max_i ||x_i - mean||^2``, column by column: the zeros of a column add mean^2 to every sample."""
        energy = np.zeros(self.n_samples)
        for block in _blocks(self.n_features, self._stored_per_column):
            part = self.columns[:, block]
            counts, shift = np.diff(part.indptr), self._shift[block]
            # A full column has no zeros, and its mean, however large, must not come in and go out again.
            of_zeros = np.where(counts < self.n_samples, shift * shift, 0.0)
            deviations = part.data.astype(np.float64) - np.repeat(shift, counts)
            deviations[np.repeat(~self.varies[block], counts)] = 0.0
            gains = deviations * deviations - np.repeat(of_zeros, counts)
            energy += np.bincount(part.indices, gains, minlength=self.n_samples) + of_zeros.sum()
        return float(energy.max())

    def pull(self, residual: Array, rows: Array | None = None) -> Array:
        # The columns of R sum to zero, so X~.T R = X.T R: no centring is needed on this side.
        residual = np.ascontiguousarray(residual.T.astype(self.dtype, copy=False))
        if rows is None:
            products = self.columns.T @ residual
            products[~self.varies] = 0.0
            return products.T
        products = np.empty((len(rows), residual.shape[1]), dtype=self.dtype)
        for block in _blocks(len(rows), self._stored_per_column):
            products[block] = self.columns[:, rows[block]].T @ residual
        products[~self.varies[rows]] = 0.0
        return products.T

    def pull_norms(self) -> Array:
        """Return the norm of each feature as :meth:`pull` multiplies it, which is not centred."""
        shift = np.where(self.varies, self._shift, 0.0)
        return np.sqrt(self.column_energy + self.n_samples * shift * shift)

    def push(self, rows: Array, values: Array) -> Array:
        if 4 * len(rows) > self.n_features:  # picking so many columns would copy much of X
            weights = np.zeros((self.n_features, len(values)), dtype=self.dtype)
            weights[rows] = values.T
            image = (self.columns @ weights).T
        else:
            image = (self.columns[:, rows] @ np.ascontiguousarray(values.T.astype(self.dtype, copy=False))).T
        # The mean over the samples is what centring takes away; taken from the image itself, the sum is zero to the last
        # digit, on which pull relies.
        return image - image.mean(axis=1, keepdims=True, dtype=np.float64)

    def take(self, rows: Array, samples: slice) -> Array:
        part = self.columns[:, rows][samples].toarray() - self._shift[rows]
        part[:, ~self.varies[rows]] = 0.0
        return part

    def gram_top(self) -> float:
        return _largest_eigenvalue(self)


def _blocks(n_lines: int, line_length: int) -> list[slice]:
    elements = BLOCK_ELEMENTS
    if n_lines * line_length <= elements:
        elements //= 8  # a few rounds through memory that stays warm, rather than one through fresh pages
    # At least 16 lines: a narrower strip of a row-major array would drag in whole cache lines to use a part of them.
    step = max(16, elements // max(1, line_length))
    return [slice(start, min(start + step, n_lines)) for start in range(0, n_lines, step)]


def _segment_sums(values: Array, starts: Array, counts: Array) -> Array:
    """Sum ``values`` over consecutive segments, some of which may be empty."""
    if not len(values):
        return np.zeros(len(starts))
    sums = np.add.reduceat(values, np.minimum(starts, len(values) - 1))
    return np.where(counts > 0, sums, 0.0)


def _rounding_of_mean(mean: Array, n_samples: int) -> Array:
    """How far from zero the deviations of a constant feature may lie for rounding alone."""
    return np.abs(mean) * (np.finfo(np.float64).eps * n_samples)


def _safe_limit(dtype: np.dtype[Any]) -> float:
    """The size up to which products of squares stay finite, and above whose inverse they do not vanish."""
    return float(np.finfo(dtype).max) ** 0.25


def _refuse_huge_values(peak: Array, dtype: np.dtype[Any]) -> None:
    largest = float(peak.max(initial=0.0))
    if not largest < _safe_limit(dtype):
        raise ValueError(
            f"X deviates from its mean by up to {largest:.3g}; above {_safe_limit(dtype):.1g} the squares overflow in "
            f"{np.dtype(dtype).name}. Divide X by a constant, or use scale='zscore'."
        )


def _refuse_overflow(peak: Array) -> None:
    if not np.isfinite(peak).all():
        raise ValueError("X has values so large that their sum or difference overflows float64. Divide X by a constant.")


def _refuse_vanishing_values(design: Design) -> None:
    limit = 1.0 / _safe_limit(design.dtype)
    if float(np.sqrt(design.column_energy.max())) < limit:
        raise ValueError(
            f"No feature of X deviates from its mean by more than {design.largest_deviation:.3g}; below {limit:.1g} the "
            f"squares vanish in {np.dtype(design.dtype).name}. Multiply X by a constant, or use scale='zscore'."
        )


def _largest_eigenvalue(design: Design) -> float:
    """Return the largest eigenvalue of ``X~ X~.T``: exact where a small Gram matrix has it, else by Lanczos."""
    n_samples, n_features = design.n_samples, design.n_features
    size = min(n_samples, n_features)
    if size > 256:
        return _largest_eigenvalue_by_lanczos(design)
    gram = np.zeros((size, size))
    if n_samples <= n_features:
        for block in _blocks(n_features, n_samples):
            part = design.take(np.arange(block.start, block.stop), slice(None))
            gram += part @ part.T
    else:
        for block in _blocks(n_samples, n_features):
            part = design.take(np.arange(n_features), block)
            gram += part.T @ part
    return float(eigvalsh(gram, subset_by_index=[size - 1, size - 1])[0])


def _largest_eigenvalue_by_lanczos(design: Design) -> float:
    """Bound the largest eigenvalue of ``X~ X~.T`` from above by 1.01 times a Lanczos value of accuracy 1 %."""
    n_samples, every = design.n_samples, np.arange(design.n_features)

    def multiply(vector: Array) -> Array:
        # A design may count on a residual that sums to zero; the eigenvector sought does.
        return design.push(every, design.pull((vector - vector.mean()).reshape(1, -1)))[0]

    operator = LinearOperator((n_samples, n_samples), matvec=multiply, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n_samples)
    top = eigsh(operator, k=1, which="LA", v0=start, tol=0.01, ncv=12, return_eigenvectors=False)
    return 1.01 * float(top[0])
