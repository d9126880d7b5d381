"""The feature matrix, centred and scaled: the only place of the package that touches X.

Everything is kept class-major: weights are ``(n_targets, n_rows)`` and residuals ``(n_targets, n_samples)``, the
orientation of scikit-learn's ``coef_``. A thin product with its long side contiguous is up to twice as fast in this
orientation (``benchmarks/path_cost.py`` prints both).

A *design* is the centred and scaled feature matrix X~ behind a few operations; a new array library is one more design,
and no solver changes:

=============  ==============================================================  =======================
``pull(R)``    ``R @ X~``, the products of all features with a residual         one pass over X
``pull(R, r)`` ``R @ X~[:, r]``, the products of a few features                 the columns ``r`` only
``pull_among`` the same for features that are asked again: fetched once        the columns ``r`` only
``push(r, V)`` ``V @ X~[:, r].T``, the predictions of a few features            the columns ``r`` only
``take(r, i)`` ``X~[i, r]`` as a dense array                                    the columns ``r`` only
``column(j)``  one column of X~, in float64                                     this column only
``gram_top()`` an upper bound of the largest eigenvalue of ``X~ X~.T``          once, on demand
=============  ==============================================================  =======================

With weights w of the samples, ``X~ = D^(1/2) (X - 1 mean') / scale`` with D = diag(w) and the weighted mean, so that plain
least squares on it are the weighted ones, and a sample of weight 2 is the same as the sample twice.
"""

from __future__ import annotations

from collections.abc import Callable
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
    max_sample_energy: float

    def pull(self, residual: Array, rows: Array | None = None) -> Array: ...
    def pull_among(self, rows: Array | slice) -> Pull: ...
    def pull_norms(self) -> Array: ...
    def push(self, rows: Array, values: Array) -> Array: ...
    def take(self, rows: Array, samples: slice) -> Array: ...
    def column(self, row: int) -> Array: ...
    def gram_top(self) -> float: ...


def make_design(X: Any, scale: Scale | Array = "none", sample_weight: Any = None) -> Design:
    """Wrap a dense array or a SciPy sparse matrix; a dense X is copied once, a sparse one is never made dense.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    scale : {"none", "zscore"} or array of shape (n_features,)
        What each feature is divided by: nothing, its own (weighted) deviation, or the number given.
    sample_weight : array of shape (n_samples,), optional

    Examples
    --------
    >>> design = make_design(np.array([[0.0], [3.0]]), sample_weight=[2.0, 1.0])
    >>> design.mean.tolist(), design.column_energy.round(6).tolist()
    ([1.0], [6.0])
    """
    X = X if sp.issparse(X) else np.asarray(X)
    n_samples, n_features = X.shape
    deviations = _given_deviations(scale, n_features)
    sample_weights = SampleWeights(n_samples, sample_weight)
    if sample_weight is not None:
        _refuse_extreme_total(sample_weights.total, X.dtype)
    kind = SparseDesign if sp.issparse(X) else DenseDesign
    design: Design = kind(X, deviations, sample_weights)
    if not design.varies.any():
        counted = "" if sample_weight is None else f" over the {sample_weights.n_counted} samples with a positive weight"
        raise ValueError(
            f"All {design.n_features} features of X are constant{counted}, so none can tell the targets apart. "
            "Check that X holds the measurements of different samples in its rows."
        )
    _refuse_vanishing_values(design)
    return design


class SampleWeights:
    """How often each sample counts; a weight of 0 leaves it out.

    ``root`` is the square root of the weights, ``share`` sums to 1. Without weights each sample counts once, these arrays
    are None and nothing is multiplied.

    Examples
    --------
    >>> SampleWeights(3, [1.0, 0.0, 3.0]).mean(np.array([[4.0], [5.0], [0.0]]))
    array([1.])
    """

    def __init__(self, n_samples: int, values: Any = None) -> None:
        self.values: Array | None = None
        self.root: Array | None = None
        self.share: Array | None = None
        self.n_counted = n_samples
        self.total, self.largest_root = float(n_samples), 1.0
        if values is not None:
            self.values = _checked_weights(values, n_samples)
            self.root = np.sqrt(self.values)
            self.n_counted = int(np.count_nonzero(self.values))
            with np.errstate(over="ignore"):  # refused by make_design
                self.total = float(self.values.sum())
            self.share = self.values / self.total
            self.largest_root = float(self.root.max())

    def mean(self, values: Array) -> Array:
        """Return the mean over the samples, which are the first axis."""
        return values.mean(axis=0) if self.share is None else np.einsum("i,ij->j", self.share, values)

    def times_root(self, values: Array) -> Array:
        """Multiply by the root of the weights along the samples, which are the last axis."""
        return values if self.root is None else values * self.root

    def centred(self, images: Array) -> Array:
        """Project images, whose last axis are the samples, on what X~ can reach: they become orthogonal to the root."""
        if self.root is None:
            return images - images.mean(axis=1, keepdims=True, dtype=np.float64)
        return images - (images @ self.root / self.total)[:, np.newaxis] * self.root

    def outside(self, samples: Array, starts: Array, counts: Array) -> Array:
        """Return for each segment of ``samples``, all of positive weight, how much the samples weigh that are not in it."""
        n_outside = self.n_counted - counts
        if self.values is None:
            return n_outside
        # A difference of sums is rounding where next to nothing is left, and must then neither be negative nor appear
        # from nowhere: the number of samples is exact.
        least = n_outside * self.values.min(where=self.values > 0.0, initial=np.inf)
        return np.where(
            n_outside > 0, np.maximum(self.total - _segment_sums(self.values[samples], starts, counts), least), 0.0
        )


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
        for block in _blocks(self.n_features, self.n_samples):
            # In float64 and in this memory order whatever X is: the result does not depend on X's layout, and a
            # float32 feature with mean 1000 and deviation 1 keeps all its digits.
            part = np.array(X[:, block], dtype=np.float64, order="C")
            with np.errstate(over="ignore", invalid="ignore"):  # refused below
                self.mean[block] = sample_weights.mean(part)
                part -= self.mean[block]
                if sample_weights.root is not None:
                    part *= sample_weights.root[:, np.newaxis]
            peak = np.abs(part).max(axis=0)
            _refuse_overflow(peak)
            is_constant = peak <= _rounding_of_mean(self.mean[block], self.n_samples) * sample_weights.largest_root
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
                _refuse_huge_values(peak, self.dtype)
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
        # So few lines at a time that they are still close at hand, once fetched, when they are multiplied.
        step = max(16, BLOCK_ELEMENTS // (8 * self.n_samples))
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
        return _largest_eigenvalue(self)


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
        self.column_energy = np.empty(self.n_features)
        self.varies = np.empty(self.n_features, dtype=bool)
        self.largest_deviation = 0.0
        indptr, data = columns.indptr, columns.data
        self._stored_per_column = max(1, self.n_stored // max(1, self.n_features))
        for block in _blocks(self.n_features, self._stored_per_column):
            first, last = indptr[block.start], indptr[block.stop]
            starts = (indptr[block.start : block.stop] - first).astype(np.intp)
            counts = np.diff(indptr[block.start : block.stop + 1])
            self._measure(block, data[first:last], columns.indices[first:last], starts, counts, deviations is None)
            if np.any(self.scale[block] != 1.0):
                data[first:last] /= np.repeat(self.scale[block], counts).astype(self.dtype)
        self.columns = columns
        self._shift = self.mean / self.scale
        self.max_sample_energy = self._largest_sample_energy()

    def _measure(self, block: slice, values: Array, samples: Array, starts: Array, counts: Array, set_scale: bool) -> None:
        """Set mean, energy and, where it is not given, deviation of a block of columns from their stored values."""
        weights = self.sample_weights
        values = values.astype(np.float64)
        weight_of_zeros = weights.outside(samples, starts, counts)
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            if weights.share is None:
                mean = _segment_sums(values, starts, counts) / self.n_samples
            else:
                mean = _segment_sums(values * weights.share[samples], starts, counts)
            values -= np.repeat(mean, counts)
            if weights.root is not None:
                values *= weights.root[samples]
            # No zero weighs more than all of them, nor more than the heaviest sample.
            peak = np.abs(mean) * np.minimum(np.sqrt(weight_of_zeros), weights.largest_root)
        if len(values):
            stored = np.maximum.reduceat(np.abs(values), np.minimum(starts, len(values) - 1))
            peak = np.maximum(peak, np.where(counts > 0, stored, 0.0))
        _refuse_overflow(peak)
        is_constant = peak <= _rounding_of_mean(mean, self.n_samples) * weights.largest_root
        unit = np.where(is_constant, 1.0, peak)
        relative = values / np.repeat(unit, counts)
        energy = _segment_sums(relative * relative, starts, counts) + weight_of_zeros * (mean / unit) ** 2
        energy[is_constant] = 0.0
        if set_scale:
            self.scale[block] = np.where(is_constant, 1.0, unit * np.sqrt(energy / weights.total))
            energy, unit = np.where(is_constant, 0.0, weights.total), np.ones_like(unit)
        else:
            with np.errstate(over="ignore"):
                peak, unit = peak / self.scale[block], unit / self.scale[block]
            _refuse_huge_values(peak, self.dtype)
        self.largest_deviation = max(self.largest_deviation, float(peak.max()))
        self.varies[block] = ~is_constant
        self.mean[block] = mean
        self.column_energy[block] = energy * unit * unit

    def _largest_sample_energy(self) -> float:
        """Return ``max_i min(1, w_i) ||x_i - mean||^2``: the zeros of a column add mean^2 to every sample."""
        energy = np.zeros(self.n_samples)
        for block in _blocks(self.n_features, self._stored_per_column):
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
        for block in _blocks(len(rows), self._stored_per_column):
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


def _given_deviations(scale: Scale | Array, n_features: int) -> Array | None:
    """Return what to divide the features by, or None if it is to be measured."""
    if isinstance(scale, str) and scale == "zscore":
        return None
    if isinstance(scale, str) and scale == "none":
        return np.ones(n_features)
    if np.ndim(scale) != 1:
        raise ValueError(
            f"scale={scale!r} is unknown. Use 'none' (as given), 'zscore' (each feature to deviation 1) or an array with "
            "one deviation per feature."
        )
    deviations = np.array(scale, dtype=np.float64)
    if len(deviations) != n_features:
        raise ValueError(f"scale has {len(deviations)} deviations for {n_features} features. Give one per feature.")
    bad = np.flatnonzero(~((deviations > 0.0) & np.isfinite(deviations)))
    if len(bad):
        raise ValueError(
            f"scale[{bad[0]}]={deviations[bad[0]]:g} is not valid: features are divided by it. "
            "Use finite numbers above 0, for example 1 for a constant feature."
        )
    return deviations


def _checked_weights(sample_weight: Any, n_samples: int) -> Array:
    """Return the weights as a float64 array of their own, or say what is wrong with them."""
    weights = np.array(sample_weight, dtype=np.float64)
    if weights.shape != (n_samples,):
        raise ValueError(f"sample_weight has shape {weights.shape} for {n_samples} samples. Give one number per sample.")
    bad = np.flatnonzero(~((weights >= 0.0) & np.isfinite(weights)))
    if len(bad):
        raise ValueError(
            f"sample_weight[{bad[0]}]={weights[bad[0]]:g} is not valid: a weight is a finite number of at least 0. "
            "Use 0 to leave a sample out."
        )
    if not weights.any():
        raise ValueError(
            f"sample_weight is 0 for all {n_samples} samples, which leaves none to fit. Give samples a weight above 0."
        )
    return weights


def _refuse_extreme_total(total: float, dtype: np.dtype[Any]) -> None:
    limit = _safe_limit(dtype) ** 2
    if not 1.0 / limit < total < limit:
        raise ValueError(
            f"sample_weight adds up to {total:.3g}; outside {1.0 / limit:.1g} to {limit:.1g} squares vanish or overflow in "
            f"{np.dtype(dtype).name}. Divide sample_weight by its mean."
        )


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
        return design.push(every, design.pull(design.sample_weights.centred(vector.reshape(1, -1))))[0]

    operator = LinearOperator((n_samples, n_samples), matvec=multiply, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n_samples)
    top = eigsh(operator, k=1, which="LA", v0=start, tol=0.01, ncv=12, return_eigenvectors=False)
    return 1.01 * float(top[0])
