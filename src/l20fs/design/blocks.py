"""X in blocks, which are read again for every request: files larger than memory, and Dask arrays."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.blocks import Blocks, extents
from l20fs.blocks.passes import dense_entries
from l20fs.design.matrix import Lines, Matrix
from l20fs.inputs.devices import Place, working_dtype
from l20fs.inputs.validation import refuse_counted
from l20fs.typing import Array

#: Way out of missing values: there is no imputer for blocks.
FILL_BLOCKS = "Fill them in first; those of a Dask array, for example, with X.map_blocks(numpy.nan_to_num)."

#: Values of a block that are copied at a time.
TILE_ELEMENTS = 1 << 21

logger = logging.getLogger("l20fs")


class BlockMatrix(Matrix):
    """X in blocks of samples or of features; what blocks of samples return is summed in their order.

    Parameters
    ----------
    blocks : Blocks
    has_intercept : bool
        Whether columns are centred. If so, dense ones are shifted by the first sample. Sparse ones are not: one far from
        zero keeps the digits that sums in float64 leave.
    """

    is_in_blocks = True

    def __init__(self, blocks: Blocks, *, has_intercept: bool = True) -> None:
        self.blocks, self.has_intercept = blocks, has_intercept
        self.place, self.dtype = Place(np.zeros(0)), working_dtype(blocks)
        self.n_samples, self.n_features = blocks.shape
        self.prefers_directions = not blocks.is_sparse
        self.shift = np.zeros(self.n_features)
        if has_intercept and not blocks.is_sparse:
            first = dense_entries(blocks, np.array([0]), np.arange(self.n_features))[0].astype(np.float64)
            self.shift = np.where(np.isfinite(first), first, 0.0)
        self._shifts = self._own(self.shift, axis=1)
        self._held: tuple[Array, Any] = np.arange(0), blocks.columns(np.arange(0))
        cut = f"{len(self._shifts)} blocks of {('samples', 'columns')[blocks.axis]}"
        logger.info("%d x %d %s from %s in %s", *blocks.shape, np.dtype(blocks.dtype).name, blocks.name, cut)

    def _own(self, values: Array | None, axis: int) -> list[Any]:
        """Return the part of each block of values whose last axis is the samples (0) or the features (1)."""
        if values is None:
            return [None] * len(extents(self.blocks))
        if axis != self.blocks.axis:
            return [self.blocks.send(values)] * len(extents(self.blocks))
        return [values[..., extent] for extent in extents(self.blocks)]

    def _passed(self, kernel: Any, *arguments: list[Any]) -> Any:
        """Return the results of a kernel, summed over blocks of samples or side by side."""
        own = list(zip(self._shifts, *arguments, strict=True))
        if self.blocks.axis == 0:
            return self.blocks.total(kernel, own)
        parts = self.blocks.each(kernel, own)
        return tuple(np.concatenate(each, axis=-1) for each in zip(*parts, strict=True))

    def moments(self, weights: Sequence[Any]) -> list[tuple[Any, Any]]:
        rows = np.stack([np.ones(self.n_samples) if own is None else own for own in weights])
        sums, squares, missing, infinite = self._passed(_moments, self._own(rows, 0))
        refuse_counted(missing, infinite, None, FILL_BLOCKS)
        return list(zip(sums, squares, strict=True))

    def products(self, lines: Any, *, exactly: bool = False) -> Any:
        (found,) = self._passed(_products, self._own(lines, 0))
        return found

    def hold(self, rows: Sequence[Array]) -> None:
        wanted = np.unique(np.concatenate(rows))
        if not np.isin(wanted, self._held[0]).all():
            self._held = wanted, self.blocks.columns(wanted)

    def _read(self, rows: Array) -> Any:
        """Return columns as stored, of those that are held or by a pass."""
        held, values = self._held
        return values[:, np.searchsorted(held, rows)] if np.isin(rows, held).all() else self.blocks.columns(rows)

    def columns(self, rows: Array) -> Array:
        found = self._read(rows)
        found = found.toarray() if sp.issparse(found) else found
        return np.array(found.T, dtype=np.float64, order="C") - self.shift[rows][:, None]

    def values(self, samples: Array, rows: Array) -> Any:
        if len(samples) == self.n_samples or np.isin(rows, self._held[0]).all():
            return self._read(rows)[samples]
        return dense_entries(self.blocks, samples, rows)

    def gram(self, requests: Sequence[Lines]) -> list[Any]:
        ends = np.cumsum([len(each.rows if each.combos is None else each.combos) for each in requests])[:-1]
        if self.blocks.axis == 1:
            rows = np.unique(np.concatenate([each.rows for each in requests]))
            columns = self.columns(rows)
            lines = [each.of_columns(columns[np.searchsorted(rows, each.rows)], self.place) for each in requests]
            return np.split(self.products(np.concatenate(lines)), ends)
        weights = [self._own(each.weights, 0) for each in requests]
        sent = [self.blocks.send([each._replace(weights=None) for each in requests])] * len(self._shifts)
        (found,) = self._passed(_gram, sent, list(zip(*weights, strict=True)))
        return np.split(found, ends)

    def images(self, values: Array) -> Array:
        own = list(zip(self._shifts, self._own(values, 1), strict=True))
        if self.blocks.axis == 1:
            return np.asarray(self.blocks.total(_images, own))
        return np.concatenate(self.blocks.each(_images, own), axis=1)

    def squared_norms(self, offsets: Any, factors: Any) -> Array:
        own = list(zip(self._shifts, self._own(offsets, 1), self._own(factors, 1), strict=True))
        if self.blocks.axis == 1:
            return np.asarray(self.blocks.total(_squared_norms, own))
        return np.concatenate(self.blocks.each(_squared_norms, own))


def _tiles(block: Any, shift: Array) -> Iterator[tuple[slice, Array]]:
    """Yield the columns of a block, less their shift, in float64; a few at a time."""
    step = max(16, TILE_ELEMENTS // max(1, block.shape[0]))
    for start in range(0, block.shape[1], step):
        tile = slice(start, min(start + step, block.shape[1]))
        part = block[:, tile]
        part = part.toarray() if sp.issparse(part) else part
        yield tile, np.array(part, dtype=np.float64, order="C") - shift[tile]


def _stays_sparse(block: Any, shift: Array) -> bool:
    """Return whether a block is sparse and not shifted, as it is where X says that it is sparse."""
    return sp.issparse(block) and not shift.any()


def _with_values(block: Any, values: Array) -> Any:
    """Return a sparse block with other values in its stored places."""
    return type(block)((values, block.indices, block.indptr), shape=block.shape)


def _canonical(block: Any) -> tuple[Any, Array]:
    """Return a sparse block in which no place is stored twice, and its values in float64."""
    if not block.has_canonical_format:
        block = block.copy()
        block.sum_duplicates()
    return block, block.data.astype(np.float64)


def _moments(block: Any, shift: Array, rows: Array) -> tuple[Array, ...]:
    sums, squares = np.empty((2, len(rows), block.shape[1]))
    missing, infinite = np.zeros((2, block.shape[1]), dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):  # refused when all is known
        if _stays_sparse(block, shift):
            block, values = _canonical(block)
            sums, squares = ((_with_values(block, each).T @ rows.T).T for each in (values, values * values))
            if not np.isfinite(values.sum()):
                odd = (_with_values(block, found(values).astype(np.int64)) for found in (np.isnan, np.isinf))
                missing, infinite = (np.asarray(each.sum(axis=0)).ravel() for each in odd)
            return sums, squares, missing, infinite
        for tile, part in _tiles(block, shift):
            sums[:, tile], squares[:, tile] = rows @ part, rows @ (part * part)
            if not np.isfinite(part.sum()):
                missing[tile], infinite[tile] = np.isnan(part).sum(axis=0), np.isinf(part).sum(axis=0)
    return sums, squares, missing, infinite


def _products(block: Any, shift: Array, lines: Array) -> tuple[Array]:
    if _stays_sparse(block, shift):
        return (np.ascontiguousarray((block.T.astype(np.float64) @ lines.T).T),)
    found = np.empty((len(lines), block.shape[1]))
    for tile, part in _tiles(block, shift):
        found[:, tile] = lines @ part
    return (found,)


def _gram(block: Any, shift: Array, requests: list[Lines], weights: tuple[Any, ...]) -> tuple[Array]:
    place, lines = Place(shift), []
    for request, own in zip(requests, weights, strict=True):
        columns = block[:, request.rows]
        columns = columns.toarray() if sp.issparse(columns) else columns
        columns = columns.T.astype(np.float64) - shift[request.rows][:, None]
        lines.append(request._replace(weights=own).of_columns(columns, place))
    return _products(block, shift, np.concatenate(lines))


def _images(block: Any, shift: Array, values: Array) -> Array:
    if _stays_sparse(block, shift):
        return np.ascontiguousarray((block.astype(np.float64) @ values.T).T)
    return np.add.reduce([values[:, tile] @ part.T for tile, part in _tiles(block, shift)])


def _squared_norms(block: Any, shift: Array, offsets: Array, factors: Array) -> Array:
    if _stays_sparse(block, shift):
        block, values = _canonical(block)
        squares = factors * factors
        found = _with_values(block, values * values) @ squares - 2.0 * (_with_values(block, values) @ (offsets * squares))
        return np.asarray(found + float((offsets * offsets) @ squares))
    parts = ((part - offsets[tile]) * factors[tile] for tile, part in _tiles(block, shift))
    return np.add.reduce([np.einsum("ij,ij->i", part, part) for part in parts])
