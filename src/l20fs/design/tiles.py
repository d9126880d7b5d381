"""Passes in blocks that stay in the cache."""

from __future__ import annotations

import numpy as np

from l20fs.typing import Array

#: Elements that one block of a streamed pass may hold: small enough for the cache, large against a Python call.
BLOCK_ELEMENTS = 1 << 18


def blocks(n_lines: int, line_length: int) -> list[slice]:
    elements = BLOCK_ELEMENTS
    if n_lines * line_length <= elements:
        elements //= 8  # a few rounds through memory that stays warm, rather than one through fresh pages
    # At least 16 lines: a narrower strip of a row-major array would drag in whole cache lines to use a part of them.
    step = max(16, elements // max(1, line_length))
    return [slice(start, min(start + step, n_lines)) for start in range(0, n_lines, step)]


def segment_sums(values: Array, starts: Array, counts: Array) -> Array:
    """Sum ``values`` over consecutive segments, some of which may be empty."""
    return _reduce_segments(np.add, values, starts, counts)


def segment_peaks(values: Array, starts: Array, counts: Array) -> Array:
    """Return the largest of ``values``, none of which is negative, in each of consecutive segments; 0 in an empty one."""
    return _reduce_segments(np.maximum, values, starts, counts)


def _reduce_segments(operation: np.ufunc, values: Array, starts: Array, counts: Array) -> Array:
    result = np.zeros(len(starts))
    # reduceat gives an empty segment one value of its neighbour: it must see the filled ones alone, which touch.
    is_filled = counts > 0
    if is_filled.any():
        result[is_filled] = operation.reduceat(values, starts[is_filled])
    return result
