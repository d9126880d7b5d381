"""X as the engine sees it: what every container answers, for many rows of sample weights at once.

A *problem* is X under one row of sample weights: all samples, the training samples of a fold (the others have weight 0),
half of them, or a step of the robust loss. Problems share one container, and every answer is for a list of them:

==============  ========================================================================================================
``moments``     weighted sums and sums of squares of every column
``products``    products of all features with given lines over the samples
``gram``        products of all features with combinations of weighted columns (:class:`Lines`)
``among``       products of a few features with combinations of themselves
==============  ========================================================================================================

and ``columns`` of a few features. All of it is written once, over the parts of a container in float64
(:meth:`Matrix.parts`); a container says what its parts are, and what it can do faster.

Values are shifted once: ``V = X - shift``, with the mean of the columns if there is an intercept, so that a column far from
zero keeps its digits, in float32 too. What is left of the weighted mean of a problem is subtracted by algebra, since the
weighted, centred columns of a problem sum to zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from l20fs.design.moments import centre
from l20fs.inputs.devices import Place
from l20fs.typing import Array

#: Elements of one part of a streamed pass: small enough for the cache, large enough to hide the cost of a Python call.
BLOCK_ELEMENTS = 1 << 18

#: Values of a matrix as stored that are copied at a time.
TILE_ELEMENTS = 1 << 21

#: Bytes up to which an X stays close to the processor, where BLAS is faster with contiguous samples.
CACHE_BYTES = 1 << 21


class Lines(NamedTuple):
    """Combinations of columns of one problem, ``combos @ (V[:, rows] - offsets).T * weights``, one line per combination.

    Attributes
    ----------
    rows : array of shape (n_rows,)
    combos : array of shape (n_lines, n_rows), or None
        None: every column is a line.
    offsets : array of shape (n_rows,)
        What is subtracted from the columns, where V is.
    factors : array of shape (n_rows,)
        What they are multiplied by, where V is.
    weights : array of shape (n_samples,), or None
        Where V is; None: all 1.
    """

    rows: Array
    combos: Array | None
    offsets: Any
    factors: Any
    weights: Any

    @property
    def n_lines(self) -> int:
        return len(self.rows if self.combos is None else self.combos)

    def of_columns(self, columns: Any, place: Place) -> Any:
        """Return the lines from the columns of V, (n_rows, n_samples), in float64, where these are."""
        if self.combos is None:
            lines = (columns - self.offsets[:, None]) * self.factors[:, None]
        else:
            combos = place.send(self.combos) * self.factors
            lines = combos @ columns - (combos @ self.offsets)[:, None]
        return lines if self.weights is None else lines * self.weights

    def among(self, columns: Any, place: Place) -> Any:
        """Return the products of the lines with the columns of V that they combine, scaled."""
        return (self.of_columns(columns, place) @ columns.T) * self.factors

    def in_precision(self, dtype: Any, xp: Any) -> Lines:
        """Return what makes columns of this precision, with the roots of the weights, whose products are wanted."""
        weights = None if self.weights is None else xp.astype(xp.sqrt(self.weights), dtype)
        offsets, factors = xp.astype(self.offsets, dtype), xp.astype(self.factors, dtype)
        return self._replace(offsets=offsets, factors=factors, weights=weights)


class Matrix(ABC):
    """Container of X, shared by the problems on it.

    Attributes
    ----------
    n_samples, n_features : int
    dtype : dtype
        float32 or float64: that of products with all features. Sums are float64.
    shift : array of shape (n_features,)
        What was subtracted from X.
    place : Place
        Where products are computed.
    has_intercept : bool
        Whether columns are centred.
    prefers_directions : bool
        Whether a combination of columns costs no more than a column.
    """

    n_samples: int
    n_features: int
    dtype: np.dtype[Any]
    shift: Array
    place: Place
    has_intercept: bool
    prefers_directions: bool = True
    #: Whether X is read again and again from elsewhere.
    is_in_blocks: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_samples, self.n_features

    @abstractmethod
    def parts(self) -> Iterator[tuple[slice, slice, Any]]:
        """Yield V' in parts: features, samples, and their values in float64, (n_features, n_samples), dense or sparse."""

    @abstractmethod
    def there(self, rows: Array) -> Any:
        """Return columns of V where they are, (n_rows, n_samples), in float64."""

    @abstractmethod
    def values(self, samples: Array, rows: Array) -> Any:
        """Return ``X[samples][:, rows]`` as stored, on the host."""

    def columns(self, rows: Array) -> Array:
        """Return columns of V on the host, (n_rows, n_samples), in float64."""
        return self.place.fetch(self.there(rows))

    @property
    def n_columns_at_once(self) -> int:
        """Number of columns that are read together where many are."""
        return max(1, BLOCK_ELEMENTS // self.n_samples)

    def some_at_a_time(self, rows: Array) -> Iterator[Array]:
        """Yield features, as many at a time as columns are read together."""
        step = self.n_columns_at_once
        return (rows[start : start + step] for start in range(0, len(rows), step))

    def hold(self, rows: Sequence[Array]) -> list[None]:
        """Read columns at once that are asked for next; in memory they are there."""
        return [None] * len(rows)

    def answer(self, asked: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Answer what is asked of each operation, by its name."""
        return {operation: getattr(self, operation)(each) for operation, each in asked.items()}

    def moments(self, weights: Sequence[Any]) -> list[tuple[Any, Any]]:
        """Return the weighted sums and sums of squares of the columns of V, (n_features,) each, for each row of weights.

        A row of weights has the shape (n_samples,), or is None: all 1. Sums that are zero may be None.
        """
        ones = self.place.send(np.ones(self.n_samples)) if any(own is None for own in weights) else None
        rows = self.place.xp.stack([ones if own is None else own for own in weights])
        sums, squares = self._zeros(len(weights)), self._zeros(len(weights))
        for features, samples, part in self.parts():
            sums[:, features] += rows[:, samples] @ part.T
            squares[:, features] += rows[:, samples] @ squared(part).T
        return [(sums[place, :], squares[place, :]) for place in range(len(weights))]

    def _zeros(self, n_lines: int, length: int | None = None) -> Any:
        xp, shape = self.place.xp, (n_lines, self.n_features if length is None else length)
        return xp.zeros(shape, dtype=xp.float64, device=self.place.device)

    def products(self, lines: Sequence[Any]) -> list[Any]:
        """Return ``lines @ V``, (n_lines, n_features), in float64, for each group of lines.

        The product itself is in the precision of X; that of :meth:`exact_products` is in float64.
        """
        return self.exact_products(lines)

    def exact_products(self, lines: Sequence[Any]) -> list[Any]:
        return self._together(self._streamed, lines)

    def _streamed(self, lines: Any) -> Any:
        found = self._zeros(lines.shape[0])
        for features, samples, part in self.parts():
            found[:, features] += lines[:, samples] @ part.T
        return found

    def _together(self, multiply: Callable[[Any], Any], lines: Sequence[Any]) -> list[Any]:
        """Multiply groups of lines by one product."""
        if len(lines) == 1:
            return [multiply(lines[0])]
        found, ends = multiply(self.place.xp.concat(list(lines))), np.cumsum([each.shape[0] for each in lines]).tolist()
        return [found[start:end, :] for start, end in zip([0, *ends[:-1]], ends, strict=True)]

    def gram(self, requests: Sequence[Lines]) -> list[Any]:
        """Return ``lines @ V``, (n_lines, n_features), in float64, for the lines of every request."""
        return self.products([request.of_columns(self.there(request.rows), self.place) for request in requests])

    def among(self, requests: Sequence[Lines]) -> list[Array]:
        """Return the products of lines with their own features, scaled, on the host.

        Those of columns may be in the precision of X; :meth:`exact_among` is in float64.
        """
        return self.exact_among(requests)

    def exact_among(self, requests: Sequence[Lines]) -> list[Array]:
        return [self.place.fetch(request.among(self.there(request.rows), self.place)) for request in requests]

    def images(self, values: Array) -> Array:
        """Return ``values @ V.T``, (n_lines, n_samples), on the host, for values of all features."""
        there, found = self.place.send(values), self._zeros(len(values), self.n_samples)
        for features, samples, part in self.parts():
            found[:, samples] += there[:, features] @ part
        return self.place.fetch(found)

    def squared_norms(self, offsets: Any, factors: Any) -> Array:
        """Return the squared norms of the samples ``(V - offsets) * factors``, (n_samples,), on the host."""
        found = self._zeros(1, self.n_samples)[0, :]
        for features, samples, part in self.parts():
            found[samples] += _squared_norms(part, offsets[features], factors[features], self.place.xp)
        return self.place.fetch(found)

    @cached_property
    def shift_there(self) -> Any:
        """The shift that was subtracted from X, where V is."""
        return self.place.send(self.shift)

    def put(self, weights: Array | None) -> Any:
        """Return weights of the samples where lines are multiplied by them."""
        return None if weights is None else self.place.send(weights)


def dense(values: Any) -> Array:
    """Return values of a dense or sparse matrix as an array."""
    return np.asarray(values.toarray() if issparse(values) else values)


def squared(part: Any) -> Any:
    """Return the squares of values; sparse ones keep their places."""
    if issparse(part):
        return type(part)((part.data * part.data, part.indices, part.indptr), shape=part.shape)
    return part * part


def squared_columns(values: Any, xp: Any) -> Any:
    """Return the sum of squares of each column."""
    return np.einsum("ij,ij->j", values, values) if xp is np else xp.sum(values * values, axis=0)


def _squared_norms(part: Any, offsets: Any, factors: Any, xp: Any) -> Any:
    if not issparse(part):
        return squared_columns((part - offsets[:, None]) * factors[:, None], xp)
    squares = factors * factors
    return squares @ squared(part) - 2.0 * (offsets * squares) @ part + float((offsets * offsets) @ squares)


def slabs(n_lines: int, line_length: int) -> Iterator[slice]:
    """Cut lines into parts that fit into the cache of a processor; at least 16 lines are read at a time."""
    elements = BLOCK_ELEMENTS if n_lines * line_length > BLOCK_ELEMENTS else BLOCK_ELEMENTS // 8
    step = max(16, elements // max(1, line_length))
    return (slice(start, min(start + step, n_lines)) for start in range(0, n_lines, step))


class ArrayMatrix(Matrix):
    """Dense X in memory or on a device, of NumPy, torch, CuPy or another library of the array API.

    The values are kept in their own precision, one contiguous line per feature.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Finite numbers; copied.
    has_intercept : bool
        Whether V is centred.
    weights : array of shape (n_samples,), optional
        Weights of the mean that is subtracted.
    """

    def __init__(self, X: Any, *, has_intercept: bool = True, weights: Array | None = None) -> None:
        self.X, self.place, self.has_intercept = X, Place(X), has_intercept
        self.n_samples, self.n_features = X.shape
        xp = self.place.xp
        self.dtype = np.dtype(np.float32 if X.dtype == xp.float32 else np.float64)
        self.prefers_directions = self.n_samples <= self.n_features
        self._features = self._empty(X)
        squares, shifts = [], []
        there = self.put(weights)
        for slab in self._slabs():
            lines = self._lines(X[:, slab].T)
            if has_intercept:
                shifts.append(self.place.fetch(centre(lines.T, there, xp)))
            squares.append(squared_columns(lines.T, xp))
            self._features[slab, :] = lines if self.place.is_host else xp.astype(lines, X.dtype)
        self.shift = np.concatenate(shifts) if has_intercept else np.zeros(self.n_features)
        self._energies = xp.concat(squares) if weights is None or not has_intercept else None

    def _lines(self, values: Any) -> Any:
        """Return a copy of some lines of X', (n_lines, n_samples), in float64."""
        if self.place.is_host:
            return np.array(values, dtype=np.float64, order="C")
        return self.place.xp.astype(values, self.place.xp.float64)

    def _empty(self, X: Any) -> Any:
        if self.place.is_host:
            order = "F" if X.size * X.itemsize <= CACHE_BYTES else "C"
            return np.empty((self.n_features, self.n_samples), dtype=X.dtype, order=order)  # type: ignore[call-overload]
        return self.place.xp.empty((self.n_features, self.n_samples), dtype=X.dtype, device=self.place.device)

    def _slabs(self) -> Iterator[slice]:
        if self.place.is_host:
            return slabs(self.n_features, self.n_samples)
        step = max(1, (64 * BLOCK_ELEMENTS) // self.n_samples)
        return (slice(start, min(start + step, self.n_features)) for start in range(0, self.n_features, step))

    def parts(self) -> Iterator[tuple[slice, slice, Any]]:
        xp = self.place.xp
        return ((slab, slice(None), xp.astype(self._features[slab, :], xp.float64)) for slab in self._slabs())

    def there(self, rows: Array) -> Any:
        return self.place.xp.astype(self._stored(rows), self.place.xp.float64, copy=False)

    def _stored(self, rows: Array) -> Any:
        """Return columns of V where they are, in the precision of X."""
        if not self.place.is_host:
            return self.place.take(self._features, self.place.send(rows))
        return self._features[rows] if self._features.flags.c_contiguous else self._features.T.take(rows, axis=1).T

    def values(self, samples: Array, rows: Array) -> Any:
        if self.place.is_host:
            return self.X[np.ix_(samples, rows)]
        return self.place.fetch(self.place.take(self.X, self.place.send(rows), axis=1))[samples]

    def moments(self, weights: Sequence[Any]) -> list[tuple[Any, Any]]:
        known = [own is None and self._energies is not None for own in weights]
        others = [own for own, is_known in zip(weights, known, strict=True) if not is_known]
        found = iter(super().moments(others) if others else [])
        return [(None, self._energies) if is_known else next(found) for is_known in known]

    def products(self, lines: Sequence[Any]) -> list[Any]:
        return self._together(self._in_own_precision, lines)

    def _in_own_precision(self, lines: Any) -> Any:
        xp = self.place.xp
        if not self.place.is_host:
            return xp.astype(xp.astype(lines, self._features.dtype) @ self._features.T, xp.float64)
        with np.errstate(invalid="ignore"):  # OpenBLAS may read unused memory of thin float32 products, and says so
            found = lines.astype(self.dtype, copy=False) @ self._features.T
        return found.astype(np.float64, copy=False)

    def exact_products(self, lines: Sequence[Any]) -> list[Any]:
        return self.products(lines) if self.dtype == np.float64 else super().exact_products(lines)

    def among(self, requests: Sequence[Lines]) -> list[Array]:
        return [self._among(request) for request in requests]

    def _among(self, lines: Lines) -> Array:
        if lines.combos is not None:
            return self.exact_among([lines])[0]
        columns = self._stored(lines.rows)
        own = lines.in_precision(columns.dtype, self.place.xp)
        columns = own.of_columns(columns, self.place)
        return self.place.fetch(columns @ columns.T).astype(np.float64, copy=False)


class StoredMatrix(Matrix):
    """Matrix that stays as it is stored; less its shift, some columns at a time are made dense and copied to float64."""

    def __init__(self, X: Any, shift: Array) -> None:
        self.X, self.shift, self.place = X, shift, Place(shift)
        self.n_samples, self.n_features = X.shape
        self.dtype, self.has_intercept = np.dtype(np.float64), False

    def _dense(self, features: Any) -> Array:
        values = np.array(dense(self.X[:, features]), dtype=np.float64, order="C")
        values -= self.shift[features]
        return values.T

    def parts(self) -> Iterator[tuple[slice, slice, Any]]:
        step = max(16, TILE_ELEMENTS // max(1, self.n_samples))
        tiles = (slice(start, min(start + step, self.n_features)) for start in range(0, self.n_features, step))
        return ((tile, slice(None), self._dense(tile)) for tile in tiles)

    def there(self, rows: Array) -> Array:
        return self._dense(rows)

    def values(self, samples: Array, rows: Array) -> Any:
        return self.X[samples][:, rows]
