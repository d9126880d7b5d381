"""Tiles of a matrix that fit into the processor cache."""

from __future__ import annotations

from collections.abc import Iterator

#: Elements of one block of a streamed pass: small enough for the cache, large enough to hide the cost of a Python call.
BLOCK_ELEMENTS = 1 << 18

#: A product of two stored values of sparse matrices costs as much as so many with values of a dense vector.
THIN = 8

#: Minimum number of samples of a strip, and maximum number of columns of a block that is not cut along its columns.
LEAST_STRIP, WIDE = 64, 1 << 14


def blocks(n_lines: int, line_length: int) -> list[slice]:
    elements = BLOCK_ELEMENTS
    if n_lines * line_length <= elements:
        elements //= 8  # several steps that reuse cached memory are faster than one that touches new pages
    # At least 16 lines: a narrower strip of a row-major array would load whole cache lines to use a part of them.
    step = max(16, elements // max(1, line_length))
    return [slice(start, min(start + step, n_lines)) for start in range(0, n_lines, step)]


def strips(n_samples: int, width: int) -> Iterator[slice]:
    """Cut the samples of a block so that a copy of a part fits into the processor cache."""
    step = max(LEAST_STRIP, BLOCK_ELEMENTS // max(1, width))
    return (slice(start, min(start + step, n_samples)) for start in range(0, n_samples, step))


def tiles(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
    """Cut a block into strips of samples, and one that is too wide along its columns first."""
    width = shape[1] if shape[1] <= WIDE else BLOCK_ELEMENTS // LEAST_STRIP
    for start in range(0, shape[1], max(1, width)):
        columns = slice(start, min(start + width, shape[1]))
        yield from ((rows, columns) for rows in strips(shape[0], columns.stop - start))
