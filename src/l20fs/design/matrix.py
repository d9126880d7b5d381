"""X as the engine sees it: what every container answers, for many rows of sample weights at once.

A *problem* is X under one row of sample weights: all samples, the training samples of a fold (the others have weight 0),
half of them, or a step of the robust loss. Problems share one container, and every answer is for a list of them:

==============  ========================================================================================================
``moments``     weighted sums and sums of squares of every column
``products``    products of all features with given lines over the samples
``gram``        products of all features, or of a few, with combinations of weighted columns (:class:`Lines`)
``columns``     the columns of a few features
==============  ========================================================================================================

Values are shifted once: ``V = X - shift``, with the mean of the columns if there is an intercept, so that a column far from
zero keeps its digits, in float32 too. What is left of the weighted mean of a problem is subtracted by algebra, since the
weighted, centred columns of a problem sum to zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from l20fs.inputs.devices import Place
from l20fs.typing import Array

#: Elements of one part of a streamed pass: small enough for the cache, large enough to hide the cost of a Python call.
BLOCK_ELEMENTS = 1 << 18

#: Bytes up to which an X stays close to the processor, where BLAS is faster with contiguous samples.
CACHE_BYTES = 1 << 21


class Lines(NamedTuple):
    """Combinations of columns of one problem, ``combos @ (V[:, rows] - offsets).T * weights``, one line per combination.

    Attributes
    ----------
    rows : array of shape (n_rows,)
    combos : array of shape (n_lines, n_rows), or None
        None: every column is a line.
    offsets : array of shape (n_rows,), or None
        What is subtracted from the columns, where V is; None: nothing.
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

    def of_columns(self, columns: Any, place: Place) -> Any:
        """Return the lines from the columns of V, (n_rows, n_samples), in float64, where these are."""
        if self.combos is None:
            columns = columns if self.offsets is None else columns - self.offsets[:, None]
            lines = columns * self.factors[:, None]
        else:
            combos = place.send(self.combos) * self.factors
            lines = combos @ columns
            if self.offsets is not None:
                lines = lines - (combos @ self.offsets)[:, None]
        return lines if self.weights is None else lines * self.weights


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
    def moments(self, weights: Sequence[Any]) -> list[tuple[Any, Any]]:
        """Return the weighted sums and sums of squares of the columns of V, (n_features,) each, for each row of weights.

        A row of weights has the shape (n_samples,), or is None: all 1. Sums that are zero may be None.
        """

    @abstractmethod
    def products(self, lines: Any, *, exactly: bool = False) -> Any:
        """Return ``lines @ V``, (n_lines, n_features), in float64; the product itself is in the precision of X.

        ``exactly``: it is in float64, too.
        """

    @abstractmethod
    def columns(self, rows: Array) -> Array:
        """Return columns of V on the host, (n_rows, n_samples), in float64."""

    @abstractmethod
    def values(self, samples: Array, rows: Array) -> Any:
        """Return ``X[samples][:, rows]`` as stored, on the host."""

    def hold(self, rows: Sequence[Array]) -> None:  # noqa: B027 - in memory they are there
        """Read columns at once that are asked for next."""

    @abstractmethod
    def gram(self, requests: Sequence[Lines]) -> list[Any]:
        """Return ``lines @ V``, (n_lines, n_features), in float64, for the lines of every request."""

    def gram_among(self, lines: Lines, *, exactly: bool) -> Array:
        """Return the products of lines with some of their own features, scaled, on the host.

        In float64 if they are wanted ``exactly``, whatever the dtype of X.
        """
        columns = self.columns(lines.rows)
        host = Place(columns)
        own = lines._replace(**{name: self.place.fetch(getattr(lines, name)) for name in ("offsets", "factors", "weights")})
        return np.asarray(own.of_columns(columns, host) @ columns.T) * own.factors

    @abstractmethod
    def images(self, values: Array) -> Array:
        """Return ``values @ V.T``, (n_lines, n_samples), on the host, for values of all features."""

    @abstractmethod
    def squared_norms(self, offsets: Any, factors: Any) -> Array:
        """Return the squared norms of the samples ``(V - offsets) * factors``, (n_samples,), on the host."""

    @cached_property
    def shift_there(self) -> Any:
        """The shift that was subtracted from X, where V is."""
        return self.place.send(self.shift)

    def put(self, weights: Array | None) -> Any:
        """Return weights of the samples where lines are multiplied by them."""
        return None if weights is None else self.place.send(weights)


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
                shifts.append(self.place.fetch(_centre(lines, there, xp)))
            squares.append(_squares(lines, xp))
            self._features[slab, :] = lines if self.place.is_host else xp.astype(lines, X.dtype)
        self.shift = np.concatenate(shifts) if has_intercept else np.zeros(self.n_features)
        self._is_centred = has_intercept and weights is None
        self._energies = xp.concat(squares)

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

    def moments(self, weights: Sequence[Any]) -> list[tuple[Any, Any]]:
        xp, found = self.place.xp, dict[int, Any]()
        if self._is_centred or not self.has_intercept:
            found = {number: (None, self._energies) for number, own in enumerate(weights) if own is None}
        others = [number for number in range(len(weights)) if number not in found]
        if others:
            ones = self.place.send(np.ones(self.n_samples))
            rows = xp.stack([ones if weights[number] is None else weights[number] for number in others])
            sums, squares = [], []
            for slab in self._slabs():
                lines = xp.astype(self._features[slab, :], xp.float64)
                sums.append(rows @ lines.T)
                squares.append(rows @ (lines * lines).T)
            sums, squares = xp.concat(sums, axis=1), xp.concat(squares, axis=1)
            found |= {number: (sums[place, :], squares[place, :]) for place, number in enumerate(others)}
        return [found[number] for number in range(len(weights))]

    def products(self, lines: Any, *, exactly: bool = False) -> Any:
        xp = self.place.xp
        if exactly and self.dtype != np.float64:
            return xp.concat([lines @ xp.astype(self._features[slab, :], xp.float64).T for slab in self._slabs()], axis=1)
        if not self.place.is_host:
            return xp.astype(xp.astype(lines, self._features.dtype) @ self._features.T, xp.float64)
        with np.errstate(invalid="ignore"):  # OpenBLAS may read unused memory of thin float32 products, and says so
            found = lines.astype(self.dtype, copy=False) @ self._features.T
        return found.astype(np.float64, copy=False)

    def _there(self, rows: Array) -> Any:
        """Return columns of V where they are, (n_rows, n_samples), in float64."""
        if self.place.is_host:
            by_line = self._features.flags.c_contiguous
            found = self._features[rows] if by_line else self._features.T.take(rows, axis=1).T
            return found.astype(np.float64, copy=False)
        return self.place.xp.astype(self.place.take(self._features, self.place.send(rows)), self.place.xp.float64)

    def columns(self, rows: Array) -> Array:
        return self.place.fetch(self._there(rows))

    def values(self, samples: Array, rows: Array) -> Any:
        if self.place.is_host:
            return self.X[np.ix_(samples, rows)]
        return self.place.fetch(self.place.take(self.X, self.place.send(rows), axis=1))[samples]

    def gram(self, requests: Sequence[Lines]) -> list[Any]:
        lines = [request.of_columns(self._there(request.rows), self.place) for request in requests]
        if len(lines) == 1:
            return [self.products(lines[0])]
        found, ends = self.products(self.place.xp.concat(lines)), np.cumsum([each.shape[0] for each in lines])
        return [found[start:end, :] for start, end in zip([0, *ends[:-1]], ends, strict=True)]

    def gram_among(self, lines: Lines, *, exactly: bool) -> Array:
        if lines.combos is not None or exactly:
            columns = self._there(lines.rows)
            return self.place.fetch((lines.of_columns(columns, self.place) @ columns.T) * lines.factors)
        xp, columns = self.place.xp, self._single(lines.rows)
        kind = columns.dtype
        if lines.offsets is not None:
            columns = columns - xp.astype(lines.offsets, kind)[:, None]
        columns = columns * xp.astype(lines.factors, kind)[:, None]
        if lines.weights is not None:
            columns = columns * xp.astype(xp.sqrt(lines.weights), kind)
        return self.place.fetch(columns @ columns.T).astype(np.float64, copy=False)

    def _single(self, rows: Array) -> Any:
        if self.place.is_host:
            return self._features[rows]
        return self.place.take(self._features, self.place.send(rows))

    def images(self, values: Array) -> Array:
        xp, there = self.place.xp, self.place.send(values)
        found = xp.zeros((values.shape[0], self.n_samples), dtype=xp.float64, device=self.place.device)
        for slab in self._slabs():
            found = found + there[:, slab] @ xp.astype(self._features[slab, :], xp.float64)
        return self.place.fetch(found)

    def squared_norms(self, offsets: Any, factors: Any) -> Array:
        xp = self.place.xp
        found = xp.zeros(self.n_samples, dtype=xp.float64, device=self.place.device)
        for slab in self._slabs():
            lines = (xp.astype(self._features[slab, :], xp.float64) - offsets[slab][:, None]) * factors[slab][:, None]
            found = found + squared_columns(lines, xp)
        return self.place.fetch(found)


def squared_columns(values: Any, xp: Any) -> Any:
    """Return the sum of squares of each column."""
    return np.einsum("ij,ij->j", values, values) if xp is np else xp.sum(values * values, axis=0)


def _centre(lines: Any, weights: Any, xp: Any) -> Any:
    """Subtract the weighted mean of each line in place, and return it; equal values become zero exactly.

    They are shifted by a value of the largest weight before: neither a sum nor a difference loses digits of a column far
    from zero, nor to a sample that does not count.
    """
    first = xp.asarray(lines[:, 0 if weights is None else int(xp.argmax(weights))], copy=True)
    lines -= first[:, None]
    mean = xp.mean(lines, axis=1) if weights is None else lines @ (weights / xp.sum(weights))
    lines -= mean[:, None]
    return first + mean


def _squares(lines: Any, xp: Any) -> Any:
    """Return the sum of squares of each line."""
    return np.einsum("ij,ij->i", lines, lines) if xp is np else xp.sum(lines * lines, axis=1)
