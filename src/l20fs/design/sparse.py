"""SciPy sparse X behind the four operations: centred by algebra, never made dense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from l20fs.design.matrix import Matrix
from l20fs.inputs.devices import Place
from l20fs.typing import Array

#: Stored values that are read at a time: SciPy copies those of float32 in every product with float64.
PART_VALUES = 1 << 20

#: Lines that are multiplied at a time: for each of them SciPy makes two arrays as long as X has features.
LINES_AT_ONCE = 32


class SparseMatrix(Matrix):
    """Sparse X in memory, CSR or CSC.

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
        self.X = X if X.format in ("csr", "csc") else X.tocsr()
        if not self.X.has_canonical_format:
            self.X = self.X.copy()
            self.X.sum_duplicates()
        self.place, self.has_intercept = Place(np.zeros(0)), has_intercept
        self.n_samples, self.n_features = self.X.shape
        self.dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        self.shift = np.zeros(self.n_features)
        if not has_intercept:
            return
        is_full = self._counts() == self.n_samples
        if is_full.any():
            first = np.asarray(self.X[[0]].toarray(), dtype=np.float64)[0]
            self.shift = np.where(is_full, first, 0.0)  # a sum of what is left loses no digits
            (sums, _) = self.moments([None])[0]
            self.shift = np.where(is_full, first + sums / self.n_samples, 0.0)

    def _counts(self) -> Array:
        """Return the number of values that are stored of each column."""
        if self.X.format == "csc":
            return np.diff(self.X.indptr)
        counts = np.zeros(self.n_features, dtype=np.int64)
        for start in range(0, self.X.nnz, PART_VALUES):
            counts += np.bincount(self.X.indices[start : start + PART_VALUES], minlength=self.n_features)
        return counts

    def parts(self) -> Iterator[tuple[slice, slice, Any]]:
        X, by_samples, start = self.X, self.X.format == "csr", 0
        while start < len(X.indptr) - 1:
            stop = max(start + 1, int(np.searchsorted(X.indptr, X.indptr[start] + PART_VALUES, side="right")) - 1)
            stored, starts = slice(X.indptr[start], X.indptr[stop]), X.indptr[start : stop + 1] - X.indptr[start]
            places, values = X.indices[stored], X.data[stored].astype(np.float64)
            if self.shift.any():
                values -= self.shift[places] if by_samples else np.repeat(self.shift[start:stop], np.diff(starts))
            lines, every = slice(start, stop), slice(None)
            shape = (stop - start, self.n_features) if by_samples else (self.n_samples, stop - start)
            part = type(X)((values, places, starts), shape=shape).T
            yield (every, lines, part) if by_samples else (lines, every, part)
            start = stop

    def _streamed(self, lines: Any) -> Any:
        found = np.empty((len(lines), self.n_features))
        for start in range(0, len(lines), LINES_AT_ONCE):
            own = slice(start, start + LINES_AT_ONCE)
            products = np.zeros((self.n_features, len(lines[own])))  # the layout in which SciPy makes a product
            for features, samples, part in self.parts():
                products[features] += part @ lines[own, samples].T
            found[own] = products.T
        return found

    def there(self, rows: Array) -> Any:
        found = np.asarray(self.X[:, rows].toarray().T, dtype=np.float64)
        return found - self.shift[rows][:, None]

    def values(self, samples: Array, rows: Array) -> Any:
        return self.X[:, rows][samples]
