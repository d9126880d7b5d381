"""Interface of designs: centred and scaled feature matrices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from l20fs.design.column_scale import ColumnScale
from l20fs.design.meeting import computed_once
from l20fs.design.sample_weights import SampleWeights
from l20fs.design.spectrum import largest_eigenvalue
from l20fs.design.tiles import BLOCK_ELEMENTS
from l20fs.inputs.devices import Place
from l20fs.typing import Array

#: Products of some features with a residual.
Pull: TypeAlias = Callable[[Array], Array]

#: Returns a number per feature: the larger, the likelier its column is needed soon.
Likely: TypeAlias = Callable[[], Array]


class Columns(NamedTuple):
    """Numbers per feature of a design, of NumPy or of the library ``xp`` of an X on a device."""

    xp: Any
    mean: Any
    scale: Any
    varies: Any
    energy: Any
    explained: Any
    norms: Any


class ColumnSummary(NamedTuple):
    """Number of features that vary, the largest energy of a feature, and its mean and the smallest scale of those."""

    n_varying: int
    largest_energy: float
    mean_energy: float
    smallest_scale: float


class Design(ABC):
    """Centred and scaled feature matrix X~.

    Attributes
    ----------
    location : {"memory", "device", "blocks"}
        Place of the products with X.
    vectors : {"samples", "features"}
        Representation of a vector over the samples: itself, or its products with all features
        (:mod:`l20fs.design.gram`).
    n_stored : int
        Number of elements of X in a product on the host; 0 if products are computed elsewhere.
    mean, rest, scale, varies, column_energy : arrays of shape (n_features,)
        See :class:`~l20fs.design.column_scale.ColumnScale`.
    explained_energy : array of shape (n_features,), or 0
        Squared norms of the parts of the columns that nuisances explain, and that X~ has no longer.
    scale_rule : {"moderated", "zscore", "none", "given"}
        Rule that chose the scale.
    largest_deviation : float
        Largest deviation of a feature, in units of the scale.
    place : Place
        Library and device of X, if X is on a device.
    max_sample_energy : float
        Largest ``min(1, w_i) ||x_i||^2``. A sample of weight 2 counts as two samples, not as one of larger norm, so that
        this is at most the largest squared norm of a sample of X~.
    """

    #: Whether fits to it serve a search that reads a few of their numbers per feature only.
    is_temporary: bool = False

    location: Literal["memory", "device", "blocks"] = "memory"
    vectors: Literal["samples", "features"] = "samples"

    n_samples: int
    n_features: int
    sample_weights: SampleWeights
    n_stored: int
    dtype: np.dtype[Any]
    mean: Array
    rest: Array
    scale: Array
    scale_rule: str
    column_energy: Array
    varies: Array
    explained_energy: Array | float = 0.0
    largest_deviation: float
    max_sample_energy: float
    place: Place

    def _keep_scale(self, columns: ColumnScale) -> None:
        """Set mean, scale and energy of the columns."""
        self.mean, self.rest, self.scale, self.scale_rule = columns.mean, columns.rest, columns.scale, columns.rule
        self.varies, self.column_energy = columns.varies, columns.energy
        self.largest_deviation = float((columns.deviation / columns.scale).max(initial=0.0))

    @property
    def columns(self) -> Columns:
        """Mean, scale and energies of the features where products are computed, and the norms of :meth:`pull_norms`."""
        return Columns(np, self.mean, self.scale, self.varies, self.column_energy, self.explained_energy, self.pull_norms())

    @computed_once
    def summary(self) -> ColumnSummary:
        """Numbers that stand for all features."""
        return ColumnSummary(
            int(np.count_nonzero(self.varies)),
            float(self.column_energy.max()),
            float(self.column_energy.mean(where=self.varies)) if self.varies.any() else 0.0,
            float(self.scale.min(where=self.varies, initial=np.inf)),
        )

    @abstractmethod
    def pull(self, residual: Array, rows: Array | None = None, *, likely: Likely | None = None) -> Array:
        """Return the products of all features, or of ``rows``, with a residual: one pass over X.

        ``likely`` tells a design that fetches columns in batches which others to fetch in the same pass.
        """

    def pull_exactly(self, residual: Array) -> Array:
        """Return :meth:`pull` of all features in float64, whatever the dtype of X."""
        if self.dtype == np.float64:
            return self.pull(residual)
        products = np.empty((len(residual), self.n_features))
        step = max(1, BLOCK_ELEMENTS // self.n_samples)
        for start in range(0, self.n_features, step):
            rows = np.arange(start, min(start + step, self.n_features))
            products[:, rows] = residual @ self.take(rows, slice(None)).astype(np.float64, copy=False)
        return products

    @property
    def origin(self) -> Array:
        """Values of the features that are 0 in what :meth:`pull` multiplies: their means, unless X is centred implicitly."""
        return self.mean

    def weighted_sums(self, weights: Array) -> tuple[Array, Array]:
        """Return the sums, and the sums of squares, of what :meth:`pull` multiplies, for lines of weights of the samples.

        In float64, (n_lines, n_features) each. The design itself has no sample weights.
        """
        raise NotImplementedError(f"{type(self).__name__} is shared by no fits")

    @abstractmethod
    def pull_among(self, rows: Array | slice) -> Pull:
        """Return a function like :meth:`pull` for a few features that are needed repeatedly."""

    @abstractmethod
    def push(self, rows: Array, values: Array, *, likely: Likely | None = None) -> Array:
        """Return ``values @ X~[:, rows]'``, the predictions of weights of a few features."""

    @abstractmethod
    def take(self, rows: Array, samples: slice) -> Array:
        """Return ``X~[samples, rows]`` as a dense array."""

    @abstractmethod
    def column(self, row: int, *, likely: Likely | None = None) -> Array:
        """Return one column of X~, in float64."""

    def gram_lines(self, rows: Array) -> Array | None:
        """Return ``X~[:, rows]' X~``, (n_rows, n_features), where zeros of X make that cheaper than :meth:`pull`; else None.

        Of a column with many zeros only the other samples are multiplied.
        """
        return None

    def sample_blocks(self, rows: Array) -> Iterator[tuple[slice, Array]]:
        """Yield the columns of a few features in float64, some samples at a time."""
        step = max(1, BLOCK_ELEMENTS // max(1, len(rows)))
        for start in range(0, self.n_samples, step):
            samples = slice(start, min(start + step, self.n_samples))
            yield samples, self.take(rows, samples).astype(np.float64, copy=False)

    def products(self, residual: Any) -> Any:
        """Return :meth:`pull` of all features on the device of X, for a residual on that device."""
        return self.pull(residual)

    def squared_lengths(self, residual: Array) -> Array:
        """Return the squared norm of the products of each feature with a residual."""
        products = self.pull(residual)
        return np.einsum("ij,ij->j", products, products)

    def squared_lengths_exactly(self, residual: Array) -> Array:
        """Return :meth:`squared_lengths` in float64, whatever the dtype of X."""
        products = self.pull_exactly(residual)
        return np.einsum("ij,ij->j", products, products)

    def long_columns(self, residual: Array, threshold: float) -> tuple[Array, Array]:
        """Return the features whose products with a residual have a norm above ``threshold``, and their squared norms."""
        squares = self.squared_lengths(residual)
        rows = np.flatnonzero(squares > threshold * threshold)
        return rows, squares[rows]

    def pull_norms(self) -> Array:
        """Return the norm of each feature as used by :meth:`pull`."""
        return np.sqrt(self.column_energy)

    def gram_top(self) -> float:
        """Return an upper bound of the largest eigenvalue of ``X~ X~'``."""
        return largest_eigenvalue(self)

    def triangle(self, rows: Array, targets: Array, ridge: float) -> Array:
        """Return the triangle of a QR factorisation of the features ``rows`` with the ridge term, and the targets.

        The samples are read in blocks, so that the working memory is that of the triangle and not that of the columns.
        """
        n_rows = len(rows)
        triangle = np.sqrt(ridge) * np.eye(n_rows if ridge else 0, n_rows + len(targets))
        step = max(n_rows, BLOCK_ELEMENTS // max(1, n_rows))
        for start in range(0, self.n_samples, step):
            block = slice(start, start + step)
            samples = np.hstack([self.take(rows, block), targets[:, block].T])
            triangle = np.linalg.qr(np.vstack([triangle, samples]), mode="r")
        return triangle
