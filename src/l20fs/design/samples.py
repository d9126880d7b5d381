"""Samples that several fits share: X once, and a part of the samples for each fit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn import get_config

from l20fs.design.column_scale import checked_scale
from l20fs.design.driver import finish
from l20fs.design.matrix import ArrayMatrix, Matrix, StoredMatrix
from l20fs.design.sample_weights import SampleWeights
from l20fs.design.sparse import SparseMatrix
from l20fs.design.standardised import Design, measure
from l20fs.design.tolerances import refuse_extreme_total, refuse_nothing_to_select, refuse_vanishing_values
from l20fs.inputs.devices import Place, as_numpy, is_dask, is_device_array
from l20fs.typing import Array, Scale


def make_matrix(X: Any, *, has_intercept: bool = True, weights: Array | None = None) -> Matrix:
    """Return the container of X: an array of any library, a sparse matrix or a Dask array.

    Examples
    --------
    >>> type(make_matrix(sp.csr_array(np.eye(3)))).__name__
    'SparseMatrix'
    """
    if is_dask(X):
        from l20fs.design.dask import DaskMatrix

        return DaskMatrix(X, has_intercept=has_intercept)
    with np.errstate(over="ignore", invalid="ignore"):  # refused when columns are measured
        if sp.issparse(X):
            return SparseMatrix(X, has_intercept=has_intercept)
        if not is_device_array(X):
            X = np.asarray(X)
            X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        return ArrayMatrix(X, has_intercept=has_intercept, weights=weights)


def stored_matrix(X: Any) -> Matrix:
    """Return the container of an X of NumPy, SciPy or Dask as it is: neither copied, nor shifted."""
    if isinstance(X, np.ndarray):
        return StoredMatrix(X, np.zeros(X.shape[1]))
    return make_matrix(X, has_intercept=False)


class SharedSamples:
    """All samples of X, with its container, which is made once."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self._matrices: dict[bool, Matrix] = {}

    def matrix(self, has_intercept: bool) -> Matrix:
        """Return the container whose columns are centred or not."""
        if has_intercept not in self._matrices:
            self._matrices[has_intercept] = make_matrix(self.X, has_intercept=has_intercept)
        return self._matrices[has_intercept]

    def values(self, rows: Array, columns: Array) -> Any:
        """Return ``X[rows][:, columns]`` in memory, by the container that the fits have made."""
        return self.matrix(next(reversed(self._matrices), True)).values(rows, columns)


class Part:
    """Some samples of a shared X, which stay where they are; a fit takes it as its X.

    ``part[samples]`` are some of them, ``part[:, columns]`` a few columns in memory, ``part[samples, columns]`` both;
    one column by its number is dense.
    """

    ndim = 2

    def __init__(self, shared: SharedSamples, rows: Array) -> None:
        self.shared, self.rows = shared, rows
        self.shape = (len(rows), shared.X.shape[1])
        self.dtype = shared.X.dtype

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return Part(self.shared, self.rows[key])
        rows, columns = self.rows[key[0]], np.arange(self.shape[1])[key[1]]
        found = self.shared.values(rows, np.atleast_1d(columns))
        if columns.ndim:
            return found
        return (found.toarray() if sp.issparse(found) else found)[:, 0]

    def stored(self) -> Any:
        """Return these samples on the host; of X in blocks this part, whose columns can be read."""
        return self if self.is_in_blocks else as_numpy(samples_of(self.shared.X, self.rows))

    @property
    def is_whole(self) -> bool:
        """Whether these are all samples, in order."""
        return np.array_equal(self.rows, np.arange(self.shared.X.shape[0]))

    @property
    def is_in_blocks(self) -> bool:
        """Whether X comes in blocks."""
        return is_dask(self.shared.X)


def samples_of(X: Any, rows: Array) -> Any:
    """Return some samples of an array, sparse matrix, frame or part of a shared X, where X is."""
    if is_device_array(X):
        place = Place(X)
        return place.take(X, place.send(rows))
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def share_samples(X: Any) -> Part:
    """Return all samples of an X that several fits share: each takes a part of them, ``samples[rows]``, as its X.

    Examples
    --------
    >>> share_samples(np.eye(3))[[0, 2]].shape
    (2, 3)
    """
    if isinstance(X, Part):
        return X
    return Part(SharedSamples(X), np.arange(X.shape[0]))


class Weighed(NamedTuple):
    """Container of X, the weights of the samples of a problem, and which samples of the container they are (None: all)."""

    matrix: Matrix
    weights: SampleWeights
    samples: Array | None


def weigh(X: Any, sample_weight: Any = None, *, fit_intercept: bool = True, nuisances: Array | None = None) -> Weighed:
    """Weigh the samples of an X of any kind, or of a part of a shared one."""
    weights = SampleWeights(X.shape[0], sample_weight, fit_intercept=fit_intercept, nuisances=nuisances)
    if sample_weight is not None:
        refuse_extreme_total(weights.total, np.dtype(np.float64))
    if isinstance(X, Part):
        return Weighed(X.shared.matrix(fit_intercept), weights, None if X.is_whole else X.rows)
    return Weighed(make_matrix(X, has_intercept=fit_intercept, weights=weights.values), weights, None)


def make_design(X: Any, scale: Scale | Array = "none", sample_weight: Any = None, **options: Any) -> Design:
    """Return X~ of an X of any kind; the options are those of :func:`weigh`.

    Examples
    --------
    >>> design = make_design(np.array([[0.0], [3.0]]), sample_weight=[2.0, 1.0])
    >>> design.mean.tolist(), design.column_energy.round(6).tolist()
    ([1.0], [6.0])
    >>> make_design(np.array([[3.0], [3.0]]), fit_intercept=False).column_energy
    array([18.])
    """
    scale = checked_scale(scale, X.shape[1])
    design = Design(finish(measure(*weigh(X, sample_weight, **options)))[0], scale)
    refuse_nothing_to_select(design)
    refuse_vanishing_values(design)
    return design


def problems_at_once(n_features: int, n_targets: int, n_rows: int) -> int:
    """Return how many problems are solved side by side: as many as fit scikit-learn's ``working_memory``, at least one."""
    per_problem = 8.0 * (n_targets + n_rows + 2) * n_features
    return max(1, int(get_config()["working_memory"] * 2**20 / per_problem))
