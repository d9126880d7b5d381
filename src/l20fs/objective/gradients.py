"""Gradients of the data term, in memory, on a device or in blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from l20fs.design import Design
from l20fs.inputs.devices import Place
from l20fs.objective.prox import is_heavy
from l20fs.objective.row_penalty import RowPenalty
from l20fs.typing import Array

#: Features are returned for a lower threshold than requested, so that the next lambda needs no pass if no weight changes.
LOWERED = 0.9


class Gradient(ABC):
    """Gradient at one point, one column per feature."""

    @abstractmethod
    def at(self, rows: Array) -> Array:
        """Return the gradient of a few features, ascending, (n_targets, n_rows), in float64."""

    @property
    @abstractmethod
    def squared_norms(self) -> Array:
        """Squared norm of the gradient of every feature."""

    def above(self, threshold: float, penalty: RowPenalty | None = None) -> Array:
        """Return a mask of the features whose gradient may exceed ``threshold`` for the cost of their unit.

        The proximal map decides; this mask only excludes rows that cannot survive it, with a margin for rounding errors.
        Features with weights may be missing.
        """
        return may_be_heavy(self.squared_norms, threshold, penalty)

    def touched(self, threshold: float, penalty: RowPenalty, is_active: Array) -> Array:
        """Return the features with weights and those whose gradient may exceed ``threshold``, ascending."""
        return (self.above(threshold, penalty) | is_active).nonzero()[0]

    def largest_outside(self, is_active: Array, penalty: RowPenalty) -> float:
        """Return the largest squared norm per cost of a unit without weights."""
        return float(np.max(penalty.per_cost(np.where(is_active, 0.0, self.squared_norms)), initial=0.0))

    def likely(self) -> Array:
        """Return a number per feature, without a pass over X: the larger, the likelier it gets a weight soon."""
        return self.squared_norms


class HostGradient(Gradient):
    """Gradient in memory.

    Parameters
    ----------
    values : array of shape (n_targets, n_features)
    """

    def __init__(self, values: Array) -> None:
        self.values = values
        self._squares = np.einsum("ij,ij->j", values, values)

    @property
    def squared_norms(self) -> Array:
        return self._squares

    def at(self, rows: Array) -> Array:
        return self.values.take(rows, axis=1).astype(np.float64, copy=False)


class DeviceGradient(Gradient):
    """Gradient on the device of X; a few features are copied to the host.

    ``products`` are without the ridge term, which is that of the features ``rows``.
    """

    def __init__(self, place: Place, products: Any, rows: Array, ridge_term: Array) -> None:
        self._place, self._products, self._rows, self._ridge_term = place, products, rows, ridge_term
        # The features with weights lack their ridge term here; they are always evaluated, hence above every threshold.
        squares = place.xp.sum(products * products, axis=0)
        self._squares = place.replaced(squares, place.send(rows), np.inf) if len(rows) else squares
        self._touched, self._values = np.arange(0), np.empty((0, 0))

    def at(self, rows: Array) -> Array:
        if rows is self._touched:
            values = self._values.copy()
        else:
            values = self._place.fetch(self._place.take(self._products, self._place.send(rows), 1)).astype(np.float64)
        return _add_ridge(values, rows, self._rows, self._ridge_term)

    def touched(self, threshold: float, penalty: RowPenalty, is_active: Array) -> Array:
        if not penalty.is_plain:
            return super().touched(threshold, penalty, is_active)
        xp = self._place.xp
        rows = xp.nonzero(may_be_heavy(self._squares, threshold))[0]
        # Their gradient comes along: it is asked for next.
        values = xp.astype(self._place.take(self._products, rows, 1), xp.float64, copy=False)
        together = self._place.fetch(xp.concat([values, xp.astype(rows, xp.float64)[None, :]]))
        self._touched, self._values = together[-1].astype(np.intp), together[:-1]
        return self._touched

    def largest_outside(self, is_active: Array, penalty: RowPenalty) -> float:
        if not penalty.is_plain:
            return super().largest_outside(is_active, penalty)
        xp = self._place.xp
        return float(xp.max(xp.where(self._squares < np.inf, self._squares, xp.zeros_like(self._squares))))

    @property
    def squared_norms(self) -> Array:
        squares = self._place.fetch(self._squares)
        squares[self._rows] = np.square(self.at(self._rows)).sum(axis=0)
        return squares


class BlockGradient(Gradient):
    """Gradient of features in blocks of columns; a pass returns only the requested ones.

    The residual must not change as long as the gradient is in use.
    """

    def __init__(self, design: Design, residual: Array, rows: Array, ridge_term: Array) -> None:
        self._design, self._residual = design, residual
        self._rows, self._ridge_term = rows, ridge_term
        self._floor = np.inf
        self._found, self._squares = np.arange(0), np.zeros(0)
        self._all: Array | None = None

    def above(self, threshold: float, penalty: RowPenalty | None = None) -> Array:
        if self._all is not None or not (penalty is None or penalty.is_plain):
            return super().above(threshold, penalty)
        if threshold < self._floor:
            self._floor = LOWERED * threshold
            self._found, self._squares = self._design.long_columns(self._residual, self._floor)
        mask = np.zeros(self._design.n_features, dtype=bool)
        mask[self._found[may_be_heavy(self._squares, threshold)]] = True
        return mask

    def at(self, rows: Array) -> Array:
        products = self._design.pull(self._residual, rows, likely=self.likely)
        return _add_ridge(products, rows, self._rows, self._ridge_term)

    @property
    def squared_norms(self) -> Array:
        """Squared norm of the gradient of every feature; takes a pass that returns one number per feature."""
        if self._all is None:
            self._all = self._design.squared_lengths(self._residual)
            if len(self._rows):
                own = self.at(self._rows)
                self._all[self._rows] = np.einsum("ij,ij->j", own, own)
        return self._all

    def likely(self) -> Array:
        if self._all is not None:
            return self._all
        squares = np.zeros(self._design.n_features)
        squares[self._found] = self._squares
        return squares


def _add_ridge(values: Array, rows: Array, own: Array, ridge_term: Array) -> Array:
    """Add the ridge term of the features ``own`` to those of them that are among ``rows``."""
    if len(rows) and len(own):
        places = np.minimum(np.searchsorted(rows, own), len(rows) - 1)
        is_in = rows[places] == own
        values[:, places[is_in]] += ridge_term[:, is_in]
    return values


def may_be_heavy(squared_norms: Array, threshold: float, penalty: RowPenalty | None = None) -> Array:
    """Return a mask of the rows that may survive the threshold, with a margin for rounding errors."""
    lowered = threshold * (1.0 - 1e-6)
    return is_heavy(squared_norms, lowered) if penalty is None else penalty.is_heavy(squared_norms, lowered)
