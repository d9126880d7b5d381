"""SciPy sparse X behind the four operations: centred by algebra, never made dense."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from l20fs.design.matrix import Lines, Matrix
from l20fs.inputs.devices import Place
from l20fs.typing import Array

#: Stored values that are read at a time: SciPy copies those of float32 in every product with float64.
PART_VALUES = 1 << 20


class SparseMatrix(Matrix):
    """Sparse X in memory, by rows.

    A column without zeros is shifted by its mean in a copy of the values, so that one far from zero keeps its digits; the
    others keep their zeros, and are not shifted.

    Parameters
    ----------
    X : sparse matrix of shape (n_samples, n_features)
        Finite numbers; it stays as it is.
    has_intercept : bool
        Whether columns are centred.
    """

    prefers_directions = False

    def __init__(self, X: Any, *, has_intercept: bool = True) -> None:
        self.X = X if X.format == "csr" else X.tocsr()
        if not self.X.has_canonical_format:
            self.X = self.X.copy()
            self.X.sum_duplicates()
        self.place, self.has_intercept = Place(np.zeros(0)), has_intercept
        self.n_samples, self.n_features = self.X.shape
        self.dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        self.shift = np.zeros(self.n_features)
        counts = np.zeros(self.n_features, dtype=np.int64)
        for start in range(0, self.X.nnz, PART_VALUES):
            counts += np.bincount(self.X.indices[start : start + PART_VALUES], minlength=self.n_features)
        is_full = counts == self.n_samples
        if has_intercept and is_full.any():
            first = np.asarray(self.X[[0]].toarray(), dtype=np.float64)[0]
            self.shift = np.where(is_full, first, 0.0)  # a sum of what is left loses no digits
            (sums, _) = self.moments([None])[0]
            self.shift = np.where(is_full, first + sums / self.n_samples, 0.0)

    def _parts(self) -> Iterator[tuple[slice, Any]]:
        """Yield V, some samples at a time, in float64 and with values of its own."""
        indptr, start = self.X.indptr, 0
        while start < self.n_samples:
            stop = max(start + 1, int(np.searchsorted(indptr, indptr[start] + PART_VALUES, side="right")) - 1)
            span = slice(indptr[start], indptr[stop])
            places, values = self.X.indices[span], self.X.data[span].astype(np.float64)
            if self.shift.any():
                values -= self.shift[places]
            shape = (stop - start, self.n_features)
            yield slice(start, stop), csr_array((values, places, indptr[start : stop + 1] - indptr[start]), shape=shape)
            start = stop

    def moments(self, weights: Sequence[Any]) -> list[tuple[Any, Any]]:
        rows = np.stack([np.ones(self.n_samples) if own is None else own for own in weights])
        sums, squares = np.zeros((2, len(rows), self.n_features))
        for samples, part in self._parts():
            sums += (part.T @ rows[:, samples].T).T
            part.data *= part.data
            squares += (part.T @ rows[:, samples].T).T
        return list(zip(sums, squares, strict=True))

    def products(self, lines: Any, *, exactly: bool = False) -> Any:
        found = np.zeros((self.n_features, len(lines)))
        for samples, part in self._parts():
            found += part.T @ lines[:, samples].T
        return np.ascontiguousarray(found.T)

    def columns(self, rows: Array) -> Array:
        found = np.asarray(self.X[:, rows].toarray().T, dtype=np.float64)
        return found - self.shift[rows][:, None]

    def values(self, samples: Array, rows: Array) -> Any:
        return self.X[samples][:, rows]

    def gram(self, requests: Sequence[Lines]) -> list[Any]:
        lines = [request.of_columns(self.columns(request.rows), self.place) for request in requests]
        ends = np.cumsum([len(each) for each in lines])
        return np.split(self.products(np.concatenate(lines)), ends[:-1])

    def images(self, values: Array) -> Array:
        found = np.empty((len(values), self.n_samples))
        for samples, part in self._parts():
            found[:, samples] = (part @ values.T).T
        return found

    def squared_norms(self, offsets: Any, factors: Any) -> Array:
        squares = factors * factors
        found = np.empty(self.n_samples)
        for samples, part in self._parts():
            found[samples] = -2.0 * (part @ (offsets * squares))
            part.data *= part.data
            found[samples] += part @ squares
        return found + float((offsets * offsets) @ squares)
