"""Tiles of a matrix that stay in the cache of the processor."""

from __future__ import annotations

from collections.abc import Iterator

#: Elements that one block of a streamed pass may hold: small enough for the cache, large against a Python call.
BLOCK_ELEMENTS = 1 << 18


#: Samples of a strip at least, and columns of a block at most that is not cut along them, too.
LEAST_STRIP, WIDE = 64, 1 << 14


def blocks(n_lines: int, line_length: int) -> list[slice]:
    elements = BLOCK_ELEMENTS
    if n_lines * line_length <= elements:
        elements //= 8  # a few rounds through memory that stays warm, rather than one through fresh pages
    # At least 16 lines: a narrower strip of a row-major array would drag in whole cache lines to use a part of them.
    step = max(16, elements // max(1, line_length))
    return [slice(start, min(start + step, n_lines)) for start in range(0, n_lines, step)]


def strips(n_samples: int, width: int) -> Iterator[slice]:
    """Cut the samples of a block so that a copy of a part stays close to the processor; few enough to be worth a call."""
    step = max(LEAST_STRIP, BLOCK_ELEMENTS // max(1, width))
    return (slice(start, min(start + step, n_samples)) for start in range(0, n_samples, step))


def tiles(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
    """Cut a block into strips of its samples, and one that is too wide for that along its columns before."""
    width = shape[1] if shape[1] <= WIDE else BLOCK_ELEMENTS // LEAST_STRIP
    for start in range(0, shape[1], max(1, width)):
        columns = slice(start, min(start + width, shape[1]))
        yield from ((rows, columns) for rows in strips(shape[0], columns.stop - start))
