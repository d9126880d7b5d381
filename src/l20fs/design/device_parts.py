"""Designs of some of the samples of an X on a device that several fits share.

As in memory (:mod:`l20fs.design.parts`) one base design of all samples multiplies the lines of all fits at once. All that is
as long as X has features stays on the device; lines over the samples of a part are spread over all samples there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from l20fs.design.adjustment import SMALL_SHARE
from l20fs.design.base import Design, Likely
from l20fs.design.device import PART_ELEMENTS, DeviceDesign, Lengths
from l20fs.design.meeting import computed_once
from l20fs.design.parts import Part, SharedSamples
from l20fs.design.sample_weights import SampleWeights
from l20fs.inputs.devices import Place, working_dtype
from l20fs.typing import Array, Scale


class SharedDeviceMatrix(SharedSamples):
    """Shared array on a device."""

    at_once = 3  # while one waits for the device, another one may go on

    def __init__(self, X: Any) -> None:
        super().__init__(X)
        self.place, self.dtype = Place(X), working_dtype(X)

    @property
    def memory(self) -> int:
        free = self.place.free_memory()
        return super().memory if free is None else free

    def together(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        # torch loads its solvers when one is first called, and fails if two threads do so at a time.
        self.place.xp.linalg.qr(self.place.send(np.ones((1, 1))))
        return super().together([partial(self._call_there, call) for call in calls])

    def _call_there(self, call: Callable[[], Any]) -> Any:
        with self.place.chosen():
            return call()

    def _make_base(self, fit_intercept: bool) -> Any:
        return DeviceDesign(self.X, "zscore", SampleWeights(self.shape[0], fit_intercept=fit_intercept))

    def design(self, part: Part, scale: Scale | Array, sample_weights: SampleWeights) -> Design:
        is_plain = part.is_whole and sample_weights.values is None and sample_weights.basis is None
        if is_plain and self.base(sample_weights.fit_intercept).values is self.X:
            return DeviceDesign(self.X, scale, sample_weights)  # without a copy of X
        return DevicePartDesign(part, scale, sample_weights)

    def values(self, rows: Array, columns: Array | None) -> Any:
        place = self.place
        chosen = self.X if columns is None else place.take(self.X, place.send(columns), 1)
        return place.fetch(place.take(chosen, place.send(rows)))


class DeviceProduct(NamedTuple):
    """Ask for ``lines @ B`` on the device, of lines over all samples."""

    base: Any
    lines: Any

    @staticmethod
    def answer(requests: list[DeviceProduct]) -> list[Any]:
        """Return the products of all lines, stacked in one."""
        base = requests[0].base
        if len(requests) == 1:
            return [base.products(requests[0].lines)]
        products = base.products(base.place.xp.concat([request.lines for request in requests]))
        ends = np.cumsum([request.lines.shape[0] for request in requests]).tolist()
        return [products[start:end, :] for start, end in zip([0, *ends], ends, strict=False)]


class PartMoments(NamedTuple):
    """Ask for the moments of the features on the device, weighted by a vector over all samples."""

    base: Any
    weights: Array

    @staticmethod
    def answer(requests: list[PartMoments]) -> list[Any]:
        """Return the moments for all weights, from one pass, with their :class:`Lengths`."""
        base = requests[0].base
        found = base.measure_parts(np.stack([request.weights for request in requests]))
        lengths = Lengths.of(base.place, found[:, 1, :])
        return [(found[number, :, :], lengths[number]) for number in range(len(requests))]


class DevicePartDesign(DeviceDesign):
    """Design of some samples of an X on a device, by the base design of all of them.

    X~ is ``root (B - shift') / scale`` of these samples, less what nuisances explain, where B is what the base keeps of X.
    """

    def __init__(self, part: Part, scale: Scale | Array, sample_weights: SampleWeights) -> None:
        base = part.shared.base(sample_weights.fit_intercept)
        self._part, self._whole, self.sample_weights, self.place = part, base, sample_weights, base.place
        self.n_samples, self.n_features = part.shape
        self.is_temporary = not part.is_whole
        self.n_stored, self.dtype, self.array_dtype = 0, base.dtype, base.array_dtype
        self._weights = None if sample_weights.values is None else self.place.send(sample_weights.values)
        self._root = None if sample_weights.root is None else self.place.send(sample_weights.root)
        self._rows = self.place.send(part.rows)
        # Where the samples of X are in a line over those of the part; behind its end for those of others.
        places = np.full(base.n_samples, self.n_samples)
        places[part.rows] = np.arange(self.n_samples)
        self._places = self.place.send(places)
        self._unit, self._basis = float(np.sqrt(sample_weights.total)), None
        shift, length, norms, lengths = self._moments()
        explained: Any = 0.0
        if sample_weights.basis is not None:
            self._basis = self.place.send(sample_weights.basis)
            before, length = length, self._adjusted(length)
            lengths = Lengths.of(self.place, length[None, :])[0]
            explained = self.place.xp.square(before) - self.place.xp.square(length)
        inverse = self._scale_there(scale, length, norms, explained, lengths)
        self._units = self.place.xp.stack([shift, inverse])
        self._factor = self.place.xp.astype(base.columns.scale * inverse, self.array_dtype)

    def _moments(self) -> tuple[Any, Any, Any, Lengths]:
        """Return the means less the origin, the norms of the centred columns, and those of the base; set the means."""
        base, weights, place = self._whole, self.sample_weights, self.place
        spread = np.zeros(base.n_samples)
        spread[self._part.rows] = 1.0 if weights.values is None else weights.values
        found, lengths = self._part.shared.meeting.ask(PartMoments(base, spread))
        self._refuse_overflow(lengths.largest)
        self._mean = base.centre + found[0, :]
        if not lengths.n_unknown:
            return found[0, :], found[1, :], found[2, :], lengths
        shift, length, norms = place.fetch(found)
        mean, unclear = place.fetch(self._mean), np.flatnonzero(length < 0.0)
        origin, offset, length[unclear] = self._measure_exactly(self._part.shared.X, unclear)
        self._refuse_overflow(float(length.max()))
        mean[unclear] = origin + offset
        shift[unclear] = (origin - base.origin[unclear]) + offset
        self._mean, found = place.send(mean), place.send(np.stack([shift, length, norms]))
        return found[0, :], found[1, :], found[2, :], Lengths.of(place, found[1:2, :])[0]

    @property
    def origin(self) -> Array:
        return self.mean

    def _columns(self, X: Any, features: Any) -> Any:
        return self.place.take(self.place.take(X, features, 1), self._rows)

    def _adjusted(self, before: Any) -> Any:
        """Return the norms of the columns without what nuisances explain; none varies of which nothing is left."""
        xp, place = self.place.xp, self.place
        shares = xp.astype(self._products(self._basis), xp.float64) * self._whole.columns.scale
        squares, nothing = xp.square(before) - xp.sum(xp.square(shares), axis=0), xp.zeros_like(before)
        length = xp.sqrt(xp.where(squares > 0.0, squares, nothing))
        small = np.flatnonzero(place.fetch((before > 0.0) & (squares <= SMALL_SHARE * xp.square(before))))
        if len(small):
            length_here, step = place.fetch(length).copy(), max(1, PART_ELEMENTS // self._whole.n_samples)
            for start in range(0, len(small), step):
                block = small[start : start + step]
                chosen = place.send(block)
                columns = xp.astype(self._columns(self._part.shared.X, chosen), xp.float64)
                left = self._finish(columns.T, place.take(self._mean, chosen))
                length_here[block] = place.fetch(xp.linalg.vector_norm(left, axis=1))
            length = place.send(length_here)
        return xp.where(length > self._least_left(before), length, nothing)

    def _finish(self, lines: Any, shift: Any) -> Any:
        """Centre the columns of some features, given as lines, and apply weights and nuisances."""
        lines = lines - shift[:, None]
        if self._root is not None:
            lines = lines * self.place.xp.astype(self._root, lines.dtype, copy=False)
        if self._basis is None:
            return lines
        basis = self.place.xp.astype(self._basis, lines.dtype, copy=False)
        for _ in range(2):  # once more, for what rounding has left
            lines = lines - (lines @ basis.T) @ basis
        return lines

    def _products(self, residual: Any) -> Any:
        """Return the products of B with lines over the samples of the part."""
        xp = self.place.xp
        lines = xp.astype(residual, self.array_dtype, copy=False)
        if self._root is not None:
            lines = lines * xp.astype(self._root, self.array_dtype)
        nothing = xp.zeros((lines.shape[0], 1), dtype=self.array_dtype, device=self.place.device)
        spread = self.place.take(xp.concat([lines, nothing], axis=1), self._places, 1)
        return self._part.shared.meeting.ask(DeviceProduct(self._whole, spread))

    def products(self, residual: Any) -> Any:
        # With an intercept a residual, times the root weights, sums to zero, and it is orthogonal to the nuisances.
        products = self._products(residual)
        products *= self._factor
        return products

    def lines(self, rows: Any, dtype: Any) -> Any:
        xp = self.place.xp
        columns = xp.astype(self._columns(self._whole.values, rows), dtype, copy=False)
        units = xp.astype(self.place.take(self._units, rows, 1), dtype, copy=False)
        return self._finish(columns.T, units[0, :]) * units[1, :][:, None]

    def _exact_products(self, residual: Array) -> Iterator[Any]:
        xp, place, sent = self.place.xp, self.place, self.place.send(residual)
        step = max(1, PART_ELEMENTS // self._whole.n_samples)
        for start in range(0, self.n_features, step):
            rows = place.send(np.arange(start, min(start + step, self.n_features)))
            yield sent @ self.lines(rows, xp.float64).T

    def push(self, rows: Array, values: Array, *, likely: Likely | None = None) -> Array:
        image: Any = 0.0
        step = max(64, PART_ELEMENTS // self._whole.n_samples)
        for start in range(0, max(1, len(rows)), step):
            part = self.place.send(values[:, start : start + step], self.array_dtype)
            image = image + part @ self.lines(self.place.send(rows[start : start + step]), self.array_dtype)
        # The sum is then zero to the last digit, on which products rely.
        return self.sample_weights.centred(self.place.fetch(image))

    @computed_once
    def max_sample_energy(self) -> float:  # takes a pass over X, hence only on demand
        """Largest ``min(1, w_i) ||x_i||^2``."""
        xp, place, energy = self.place.xp, self.place, np.zeros(self.n_samples)
        step = max(1, PART_ELEMENTS // self._whole.n_samples)
        for start in range(0, self.n_features, step):
            rows = np.arange(start, min(start + step, self.n_features))
            energy += place.fetch(xp.sum(xp.square(self.lines(place.send(rows), xp.float64)), axis=0))
        if self.sample_weights.values is not None:
            energy /= np.maximum(self.sample_weights.values, 1.0)
        return float(energy.max())
