"""Features of a dense X in float64, where X is: the products of which several methods consist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from l20fs.design.moments import centred
from l20fs.inputs.devices import Place

#: Number of elements of a temporary copy of a part of X on a device: large enough for few calls, small compared with its
#: memory (256 MB of float64).
PART_ELEMENTS = 1 << 25


class Columns:
    """Dense X from which shifts were subtracted, and which was divided, column by column.

    On the host X is float64 and one part. On a device X stays as it is, and every product goes through parts of it that
    are converted to float64 and shifted for the moment. Results are float64, where X is; X and the parts must not be
    changed.

    Examples
    --------
    >>> columns = Columns(np.array([[1.0, 2.0], [3.0, 6.0]]))
    >>> columns.centred().pull(np.array([[1.0], [2.0]])).ravel(), columns.means()
    (array([1., 2.]), array([2., 4.]))
    """

    def __init__(self, X: Any, *, shifts: tuple[Any, ...] = (), divisor: Any = None) -> None:
        self._X, self._shifts, self._divisor = X, shifts, divisor
        self.place, self.shape = Place(X), X.shape
        self.xp = self.place.xp

    def centred(self) -> Columns:
        """Return the features with mean 0."""
        if self.place.is_host:
            return Columns(centred(self._X))
        # Once more, for what rounding has left of a mean far from zero.
        first = Columns(self._X, shifts=(self.means(),))
        rest = first.means()
        return Columns(self._X, shifts=(*first._shifts, rest))

    def means(self) -> Any:
        """Return the mean of every feature."""
        return self.joined([self.xp.mean(part, axis=0) for _, part in self.parts()])

    def moved(self, shift: Any) -> Columns:
        """Return the features less one number each."""
        return Columns(self._X - shift) if self.place.is_host else Columns(self._X, shifts=(*self._shifts, shift))

    def in_unit_range(self) -> Columns:
        """Return the features, which vary, scaled to the range from 0 to 1; missing values on the host stay missing."""
        if self.place.is_host:
            half = self._X / 2  # max - min may overflow
            half -= np.fmin.reduce(half, axis=0)
            half /= np.fmax.reduce(half, axis=0)
            return Columns(half)
        low, high = (self.joined([ends(part, axis=0) for _, part in self.parts()]) for ends in (self.xp.min, self.xp.max))
        return Columns(self._X, shifts=(*self._shifts, low), divisor=high - low)

    def divided(self, divisor: Any) -> Columns:
        """Return the features divided by one number each."""
        if self.place.is_host:
            return Columns(self._X / divisor)
        divisor = divisor if self._divisor is None else self._divisor * divisor
        return Columns(self._X, shifts=self._shifts, divisor=divisor)

    def peaks(self) -> Any:
        """Return the largest absolute value of every feature."""
        return self.joined([self.xp.max(self.xp.abs(part), axis=0) for _, part in self.parts()])

    def strips(self, width: int) -> Iterator[tuple[slice, Any]]:
        """Yield slices of the features with their columns, on the host so many at a time."""
        if not self.place.is_host:
            yield from self.parts()
            return
        for start in range(0, self.shape[1], width):
            yield slice(start, start + width), self._X[:, start : start + width]

    def parts(self) -> Iterator[tuple[slice, Any]]:
        """Yield slices of the features with their columns, of shape (n_samples, n_columns)."""
        n_samples, n_features = self.shape
        if self.place.is_host:
            yield slice(0, n_features), self._X
            return
        step = max(1, PART_ELEMENTS // n_samples)
        for start in range(0, n_features, step):
            columns = slice(start, min(start + step, n_features))
            yield columns, self._converted(slice(None), columns)

    def _samples(self) -> Iterator[tuple[slice, Any]]:
        """Yield slices of the samples with their rows."""
        n_samples, n_features = self.shape
        step = n_samples if self.place.is_host else max(1, PART_ELEMENTS // n_features)
        for start in range(0, n_samples, step):
            rows = slice(start, min(start + step, n_samples))
            yield rows, self._X if self.place.is_host else self._converted(rows, slice(None))

    def _converted(self, rows: slice, columns: slice) -> Any:
        part = self.xp.astype(self._X[rows, columns], self.xp.float64, copy=False)
        for shift in self._shifts:
            part = part - shift[columns]
        return part if self._divisor is None else part / self._divisor[columns]

    def take(self, features: Any) -> Columns:
        """Return some of the features, by their indices, as a copy."""
        if self.place.is_host:
            return Columns(self._X[:, features])
        chosen = self.place.send(features)
        shifts = tuple(self.xp.take(shift, chosen) for shift in self._shifts)
        divisor = None if self._divisor is None else self.xp.take(self._divisor, chosen)
        return Columns(self.xp.take(self._X, chosen, axis=1), shifts=shifts, divisor=divisor)

    def on_host(self) -> Any:
        """Return all features as one array of NumPy; for few of them."""
        return self._X if self.place.is_host else self.place.fetch(self._converted(slice(None), slice(None)))

    def pull(self, V: Any) -> Any:
        """Return ``X' V`` for V of shape (n_samples, n_lines)."""
        return self.joined([part.T @ V for _, part in self.parts()])

    def push(self, W: Any) -> Any:
        """Return ``X W`` for W of shape (n_features, n_lines)."""
        return sum_of(part @ W[columns, :] for columns, part in self.parts())

    def squares(self) -> Any:
        """Return the squared norm of every feature."""
        return self.joined([squared_column_norms(part) for _, part in self.parts()])

    def sample_products(self, weights: Any) -> Any:
        """Return ``X diag(weights) X'``, of shape (n_samples, n_samples), for weights of features."""
        root = self.xp.sqrt(weights)
        # A @ A.T: half the work for BLAS
        return sum_of(scaled @ scaled.T for scaled in (part * root[columns] for columns, part in self.parts()))

    def feature_products(self, weights: Any) -> Any:
        """Return ``X' diag(weights) X``, of shape (n_features, n_features), for weights of samples."""
        root = self.xp.sqrt(weights)[:, None]
        return sum_of(scaled.T @ scaled for scaled in (part * root[rows, :] for rows, part in self._samples()))

    def joined(self, parts: list[Any], axis: int = 0) -> Any:
        """Return one array of what was computed for each part."""
        return parts[0] if len(parts) == 1 else self.xp.concat(parts, axis=axis)


def as_columns(X: Any) -> Columns:
    """Return an array as :class:`Columns`, which stay as they are."""
    return X if isinstance(X, Columns) else Columns(X)


def sum_of(terms: Iterator[Any]) -> Any:
    """Return the sum of arrays, of which two are in memory at a time."""
    total = next(terms)
    for term in terms:
        total = total + term
    return total


def squared_column_norms(part: Any) -> Any:
    """Return the squared Euclidean norm of every column of an array.

    Examples
    --------
    >>> squared_column_norms(np.array([[1.0, 2.0], [3.0, 0.0]]))
    array([10.,  4.])
    """
    place = Place(part)
    return np.einsum("ij,ij->j", part, part) if place.is_host else place.xp.sum(part * part, axis=0)
