"""Matrix in blocks with measured columns, shared by the designs on blocks."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from l20fs.blocks import Blocks
from l20fs.blocks.jobs import Job, run
from l20fs.blocks.passes import add_up, extents
from l20fs.design import kernels
from l20fs.design.adjustment import SMALL_SHARE, energy_change, explained_energy, left_over
from l20fs.design.base import Design
from l20fs.design.column_cache import AT_ONCE
from l20fs.design.column_scale import ColumnScale
from l20fs.design.kernels import Columns
from l20fs.design.meeting import computed_once
from l20fs.design.moments import MODEST, Moments, measure, merge, side_by_side
from l20fs.design.sample_weights import SampleWeights
from l20fs.design.spectrum import EXACT, lanczos_bound
from l20fs.design.tolerances import safe_limit
from l20fs.inputs.devices import working_dtype
from l20fs.inputs.validation import refuse_counted
from l20fs.typing import Array, Scale

logger = logging.getLogger("l20fs")

#: Way out of missing values: there is no imputer for blocks.
FILL_BLOCKS = "Fill them in first; those of a Dask array, for example, with X.map_blocks(numpy.nan_to_num)."

#: Number of vectors per pass, and number of passes, of the search for the largest eigenvalue.
PROBES, POWER_PASSES = 4, 6

#: Up to this size the whole Gram matrix is computed, and its largest eigenvalue is exact.
SMALL_GRAM = 2048


class BlockedMatrix:
    """Centred and scaled matrix in blocks, measured in one pass.

    Features are centred implicitly, after a product, except for those with a mean far from zero: they are centred in a
    temporary copy of a part of a block before it is multiplied, to keep all digits. Nuisances are projected out of the
    vectors over the samples; what has none is corrected by the small matrix of their products with the features.
    """

    _shares: Array  # products of the basis of the nuisances with the columns of X~
    _column_values: Columns
    #: Columns, or rows of the Gram matrix, that are fetched in one pass.
    at_once = AT_ONCE
    _placed_columns: list[Any] | None

    def __init__(self, blocks: Blocks, scale: Scale | Array, sample_weights: SampleWeights) -> None:
        self.blocks = blocks
        self.n_samples, self.n_features = blocks.shape
        self.sample_weights = sample_weights
        self.dtype = working_dtype(blocks)
        self.extents = extents(blocks)
        self._weights = self._placed(sample_weights.values, axis=0)
        self._measure(scale)

    def _placed(self, values: Any, axis: int) -> list[Any]:
        """Send values of the samples (axis 0) or features (axis 1) to the blocks, to be kept there."""
        if values is None:
            return [None] * len(self.extents)
        if axis != self.blocks.axis:
            return [self.blocks.keep(values)] * len(self.extents)
        if isinstance(values, tuple):
            return [self.blocks.keep(_columns_within(values, extent)) for extent in self.extents]
        return [self.blocks.keep(values[extent]) for extent in self.extents]

    @property
    def column_values(self) -> Columns:
        """Means and units of the columns, for kernels."""
        return self._column_values

    @column_values.setter
    def column_values(self, values: Columns) -> None:
        self._column_values, self._placed_columns = values, None

    @property
    def _columns(self) -> list[Any]:
        """Means and units of the columns of each block, sent there when they are first needed."""
        if self._placed_columns is None:
            self._placed_columns = self._placed(self._column_values, axis=1)
        return self._placed_columns

    @property
    def origin(self) -> Array:
        """Means of the columns."""
        return self.mean

    @property
    def rest(self) -> Array:
        """Rounding errors of the means."""
        return self.columns.rest

    def _moments(self) -> Moments:
        """Return the moments of the columns; takes a pass."""
        own = [(weights,) for weights in self._weights]
        if self.blocks.axis == 0:
            found = Moments(*self.blocks.total(measure, own, merge))
        else:
            found = side_by_side([Moments(*part) for part in self.blocks.each(measure, own)])
        return self._checked(found)

    def _checked(self, found: Moments) -> Moments:
        """Return moments of finite values, about zero if there is no intercept."""
        refuse_counted(found.n_missing, found.n_infinite, None, FILL_BLOCKS)
        return found if self.sample_weights.fit_intercept else found.about_zero

    def _measure(self, scale: Scale | Array) -> None:
        found = self._moments()
        plain, found = found, found if self.sample_weights.basis is None else self._adjust(found)
        self.columns = columns = ColumnScale.of(found, scale, self.dtype)
        self.mean, self.scale, self.varies = columns.mean, columns.scale, columns.varies
        deviation = columns.deviation
        self.column_values = measured_columns(found, self.scale)
        self.explained_energy: Array | float = 0.0
        if self.sample_weights.basis is not None:
            self._shares = np.where(self.varies, self._shares / self.scale, 0.0)
            self.explained_energy = explained_energy(plain, found, self.scale)
        # Over a block of samples a residual does not sum to zero, and its products are added up: they keep all digits.
        # X is scaled after the product: extreme values need the range of float64 there.
        limit = safe_limit(self.dtype) ** 2
        is_fair = (np.abs(self.mean) < limit) & (deviation < limit) & ((deviation > 1.0 / limit) | ~self.varies)
        # So do those of a Gram matrix, from whose differences remainders of columns are computed.
        self._precision = self.dtype if self.blocks.has_short_columns and is_fair.all() else np.dtype(np.float64)

    def _adjust(self, found: Moments) -> Moments:
        """Set the products of the basis of the nuisances with the columns; return the moments without what they explain.

        Takes a pass, and another one for the columns of which little is left.
        """
        basis, root = self.sample_weights.basis, self.sample_weights.root
        assert basis is not None
        self.column_values = measured_columns(found, found.unit)
        self._precision = np.dtype(np.float64)
        shares = self.multiply(self.sample_weights.times_root(basis))
        self._shares = shares * found.unit
        squares = np.maximum(found.squares - np.square(shares).sum(axis=0), 0.0)
        small = found.varies & (squares <= SMALL_SHARE * found.squares)
        if not small.any():
            return left_over(found, squares, self.dtype)
        if self.blocks.axis == 0:
            few, places = shares[:, small], np.flatnonzero(small)
            roots = [None if root is None else root[extent] for extent in self.extents]
            own: list[tuple[Any, ...]] = [
                (columns, part, basis[:, extent], few, places)
                for columns, part, extent in zip(self._columns, roots, self.extents, strict=True)
            ]
            squares[small] = self.blocks.total(kernels.remaining_squares, own)
        else:
            own = [
                (columns, root, basis, shares[:, extent][:, small[extent]], np.flatnonzero(small[extent]))
                for columns, extent in zip(self._columns, self.extents, strict=True)
            ]
            squares[small] = np.concatenate(self.blocks.each(kernels.remaining_squares, own))
        return left_over(found, squares, self.dtype)

    @computed_once
    def max_sample_energy(self) -> float:
        """Largest ``min(1, w_i) ||x_i||^2``; takes a pass over X."""
        own = list(zip(self._columns, self._weights, strict=True))
        if self.sample_weights.basis is not None:
            images = self._plain_images(self._shares)
            found = self.blocks.each(kernels.sample_energies, own)
            energies = np.concatenate(found) if self.blocks.axis == 0 else np.sum(found, axis=0)
            return float((energies + energy_change(self.sample_weights, self._shares, images)).max())
        if self.blocks.axis == 0:
            return float(self.blocks.total(kernels.largest_sample_energy, own, np.maximum))
        return float(self.blocks.total(kernels.sample_energies, own).max())

    def products(
        self, residual: Array, start: int = 0, stop: int | None = None, *, precision: np.dtype[Any] | None = None
    ) -> Array:
        """Return ``residual @ X~`` of all features, or of those from ``start`` to ``stop``, in a pass over their blocks."""
        return self.multiply(self.vectors(residual, precision), start, stop)

    def multiply(self, vectors: Array, start: int = 0, stop: int | None = None) -> Array:
        """Return ``vectors @ (X - 1 mean') / scale``: products of vectors that have sample weights and no nuisances."""
        return self._run(self.product_job(vectors, start, self.n_features if stop is None else stop))

    def product_job(self, vectors: Array, start: int, stop: int) -> Job:
        """Return the job of :meth:`multiply`."""
        if self.blocks.axis == 0:
            own = [(columns, vectors[:, extent]) for columns, extent in zip(self._columns, self.extents, strict=True)]
            return Job(kernels.products, own, add_up, finish=lambda found: found[:, start:stop])
        which = [i for i, extent in enumerate(self.extents) if extent.start < stop and extent.stop > start]
        sent, first = self.blocks.send(vectors), self.extents[which[0]].start
        own = [(columns, sent) for columns in self._columns]
        return Job(kernels.products, own, None, which, lambda parts: np.hstack(parts)[:, start - first : stop - first])

    def group_job(self, group_of: Array, n_groups: int, masks: Array) -> Job:
        """Return the job for sums of X, not centred, over groups of samples for several masks, of X in blocks of samples.

        Sums are (n_groups, n_masks, n_features), and numbers of samples (n_groups, n_masks) come with them.
        """
        own = [(group_of[extent], n_groups, masks[:, extent]) for extent in self.extents]
        return Job(kernels.group_sums, own, add_up)

    def _run(self, job: Job) -> Any:
        return run(self.blocks, [job])[0]

    def vectors(self, residual: Array, precision: np.dtype[Any] | None = None) -> Array:
        """Return a residual without nuisances, with sample weights, in the precision of the kernels or another one."""
        residual = self.sample_weights.adjusted(residual)
        return self.sample_weights.times_root(residual).astype(precision or self._precision, copy=False)

    def lines(self, rows: Array) -> Array:
        """Return the columns ``rows`` of X~ as rows, (n_rows, n_samples); takes a pass over the blocks that hold them."""
        if self.blocks.axis == 0:
            sent = self.blocks.send(rows)
            own = [(columns, sent) for columns in self._columns]
            lines = np.hstack(self.blocks.each(kernels.centred_columns, own))
        else:
            lines = np.empty((len(rows), self.n_samples))
            which, places, is_in = self.located(rows)
            own = self.spread(which, [(self._columns[number], places[number]) for number in which])
            for number, part in zip(which, self.blocks.each(kernels.centred_columns, own, which), strict=True):
                lines[is_in[number]] = part
        return self.sample_weights.adjusted(self.sample_weights.times_root(lines))

    def located(self, rows: Array) -> tuple[list[int], dict[int, Array], dict[int, Array]]:
        """Return the blocks of columns that hold the features, their columns there, and their positions in ``rows``."""
        owner = np.searchsorted(self.blocks.edges, rows, side="right") - 1
        which = np.unique(owner).tolist()
        is_in = {number: owner == number for number in which}
        return which, {number: rows[is_in[number]] - self.extents[number].start for number in which}, is_in

    def spread(self, which: list[int], arguments: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return arguments for all blocks, of which only some are called."""
        own: list[tuple[Any, ...]] = [()] * len(self.extents)
        for number, given in zip(which, arguments, strict=True):
            own[number] = given
        return own

    def gram_lines(self, rows: Array) -> Array:
        """Return ``X~[:, rows]' X~``, (n_rows, n_features); takes a pass over X."""
        if self.blocks.axis == 1:
            return self.products(self.lines(rows))
        sent = self.blocks.send(rows)
        plain = self.has_plain_lines
        own = [(columns, weights, sent, plain) for columns, weights in zip(self._columns, self._weights, strict=True)]
        found = self.blocks.total(kernels.gram_lines, own)
        return found if self.sample_weights.basis is None else found - self._shares[:, rows].T @ self._shares

    @property
    def has_plain_lines(self) -> bool:
        """Whether :meth:`gram_job` does not centre the features whose products it returns, so that zeros stay zeros."""
        return self.blocks.is_sparse and not len(self.column_values.far)

    def place_weights(self, weights: list[Array]) -> list[Any]:
        """Send several weights of the samples to the blocks, for :meth:`gram_job`."""
        return self._placed(np.stack(weights, axis=1), axis=0)

    def gram_job(self, rows: list[Array], placed: list[Any]) -> Job:
        """Return the job for rows of the Gram matrix for several weights of the samples, of X in blocks of samples."""
        sent = self.blocks.send(tuple(rows))
        plain = self.has_plain_lines
        own = [(columns, weights, sent, plain) for columns, weights in zip(self._columns, placed, strict=True)]
        return Job(kernels.gram_lines_of, own, add_up)

    def weighted_sums(self, weights: Array) -> tuple[Array, Array]:
        """Return the sums and the sums of squares of the columns for several weights of the samples; takes a pass."""
        found: tuple[Array, Array] = self._run(self.sums_job(weights))
        return found

    def sums_job(self, weights: Array) -> Job:
        """Return the job of :meth:`weighted_sums`."""
        if self.blocks.axis == 0:
            own = [(columns, weights[:, extent]) for columns, extent in zip(self._columns, self.extents, strict=True)]
            return Job(kernels.weighted_sums, own, add_up)
        sent = self.blocks.send(weights)
        own = [(columns, sent) for columns in self._columns]
        return Job(kernels.weighted_sums, own, finish=lambda parts: tuple(map(np.hstack, zip(*parts, strict=True))))

    def long_columns(self, residual: Array, threshold: float) -> tuple[Array, Array]:
        """Return the features whose products with a residual have a norm above ``threshold``, and their squared norms."""
        sent = self.blocks.send(self.vectors(residual))
        own = [(columns, sent, threshold) for columns in self._columns]
        parts = self.blocks.each(kernels.long_columns, own)
        rows = np.concatenate([places + extent.start for (places, _), extent in zip(parts, self.extents, strict=True)])
        return rows, np.concatenate([squares for _, squares in parts])

    def squared_lengths(self, residual: Array) -> Array:
        """Return the squared norm of the products of each feature with a residual."""
        sent = self.blocks.send(self.vectors(residual))
        return np.concatenate(self.blocks.each(kernels.squared_lengths, [(columns, sent) for columns in self._columns]))

    def images(self, values: Array) -> Array:
        """Return ``values @ X~'`` for weights of all features, by blocks of columns."""
        return self.sample_weights.adjusted(self._plain_images(values))

    def _plain_images(self, values: Array) -> Array:
        """Return predictions of weights of all features from which nuisances are not projected out."""
        if self.blocks.axis == 0:
            own = [(columns, values) for columns in self._columns]
            return self.sample_weights.times_root(np.hstack(self.blocks.each(kernels.images, own)))
        own = [(columns, values[:, extent]) for columns, extent in zip(self._columns, self.extents, strict=True)]
        return self.sample_weights.times_root(self.blocks.total(kernels.images, own))

    def gram_top(self) -> float:
        """Return the largest eigenvalue of ``X~ X~'``: exact if the Gram matrix is small, else to about 1 %."""
        if self.blocks.axis == 1 and self.n_samples <= SMALL_GRAM:
            root = self.sample_weights.root
            kept = None if root is None else self.blocks.send(root)
            own = [(columns, kept, self._precision.name) for columns in self._columns]
            gram = self.blocks.total(kernels.outer_products, own)
            if self.sample_weights.basis is not None:
                gram = self.sample_weights.adjusted(self.sample_weights.adjusted(gram).T)
            if min(self.n_samples, self.n_features) <= EXACT:
                return float(np.linalg.eigvalsh(gram)[-1])
            return lanczos_bound(gram.__matmul__, self.n_samples)
        return 1.01 * self._top_by_passes()

    def _top_by_passes(self) -> float:
        """Return the largest eigenvalue of ``X~' X~`` by block Lanczos in a few passes."""
        spanned, imaged = np.empty((0, self.n_features)), np.empty((0, self.n_features))
        values = np.random.default_rng(0).standard_normal((PROBES, self.n_features)) * self.varies
        for _ in range(POWER_PASSES):
            for _ in range(2):  # twice is enough: the second pass removes the rounding errors of the first
                values = np.linalg.qr((values - (values @ spanned.T) @ spanned).T)[0].T
            image = self.twice(values)
            spanned, imaged = np.vstack([spanned, values]), np.vstack([imaged, image])
            values = image
        return float(np.linalg.eigvalsh(spanned @ imaged.T)[-1])

    def twice(self, values: Array) -> Array:
        """Return ``values @ X~' X~`` for weights of all features; takes a pass over X, two with blocks of columns."""
        if self.blocks.axis == 1:
            return self.products(self.images(values))
        sent = self.blocks.send(values)
        own = [(columns, weights, sent) for columns, weights in zip(self._columns, self._weights, strict=True)]
        found = self.blocks.total(kernels.twice, own)
        return found if self.sample_weights.basis is None else found - (values @ self._shares.T) @ self._shares


class BlockDesign(Design):
    """Base of the designs on a matrix in blocks."""

    location = "blocks"

    def __init__(self, matrix: BlockedMatrix) -> None:
        self.matrix = matrix
        self.n_samples, self.n_features = matrix.n_samples, matrix.n_features
        self.sample_weights = matrix.sample_weights
        self.dtype = matrix.dtype
        self._keep_scale(matrix.columns)
        self.explained_energy = matrix.explained_energy

    @property
    def max_sample_energy(self) -> float:  # type: ignore[override]  # takes a pass over X, hence only on demand
        return self.matrix.max_sample_energy

    def pull_norms(self) -> Array:
        """Return the norm of each feature as used by :meth:`pull`, which projects nuisances out of the vectors instead."""
        return np.sqrt(self.column_energy + self.explained_energy)

    def gram_top(self) -> float:
        return self.matrix.gram_top()


def measured_columns(found: Moments, scale: Array) -> Columns:
    """Return the means and units of columns; those that do not vary have an infinite unit."""
    far = np.flatnonzero(found.varies & (np.abs(found.mean) > MODEST * found.deviation))
    rest = found.rest if found.offset.any() else found.offset
    return Columns(found.mean, rest, np.where(found.varies, scale, np.inf), far)


def _columns_within(columns: Any, extent: slice) -> Columns:
    mean, rest, scale, far = columns
    is_in = (far >= extent.start) & (far < extent.stop)
    return Columns(mean[extent], rest[extent], scale[extent], far[is_in] - extent.start)
