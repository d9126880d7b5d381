"""Limits of decompressed size and of memory."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from dataclasses import replace

import numpy as np

from l20fs.data.readers.memory import LEAST_LIMIT, available_memory
from l20fs.data.readers.table import DataError, Request, first_line
from l20fs.text import format_bytes

#: A compressed file may grow to this many bytes, whatever its size...
FREE_BYTES = 2**30

#: ...or to this many times its size. Tables of numbers grow 3 to 20 times, a decompression bomb 1000 times.
MOST_GROWTH = 200

#: Less memory than this is not asked for: to find out what is free takes as long as reading a small table.
ALWAYS_FREE = 2**24

#: Maximum number of features of a file without feature names.
MOST_UNNAMED = 10**7

#: What to do about a file that needs too much memory.
LESS_MEMORY = "Remove features that hardly vary, keep it sparse (h5ad, .mtx), or use a larger machine."

CHUNK = 2**20

#: Ways of compression in archives that NumPy and Excel write. Others grow a thousand times as much.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

#: Memory that reading a text takes: per byte, whatever it holds; per line; and per cell. Measured: numbers take half as much
#: per cell, texts that are all different 1.5 times as much. Which they are is not known before they are read.
MEMORY_PER_BYTE, MEMORY_PER_LINE, MEMORY_PER_CELL = 3, 150, 60

#: Memory of a fit relative to that of reading the matrix: folds of cross-validation copy most of it.
WORK = 2


def most_unpacked(packed: int) -> int:
    """Return the maximum decompressed size of a file with ``packed`` bytes."""
    return max(FREE_BYTES, MOST_GROWTH * packed)


def refuse_bomb(packed: int, unpacked: int, request: Request) -> None:
    """Raise an error for a decompression bomb, a file that grows out of proportion."""
    most = most_unpacked(packed)
    if unpacked > most:
        raise DataError(
            f"{request.name}: {format_bytes(packed)} that unpack to more than {format_bytes(most)}. That is no table of "
            "numbers, or a damaged one. If you trust it, unpack it yourself."
        )


def memory_for(request: Request) -> int | None:
    """Return the memory limit in bytes, if it is known."""
    return available_memory() if request.max_memory is None else request.max_memory


def stays_in_file(needed: int, request: Request) -> bool:
    """Return whether a matrix is to be read in blocks, because a fit needs more memory than is allowed.

    ``needed`` is the memory for reading it, as in :func:`check_memory`.
    """
    most = memory_for(request)
    if not request.in_blocks or most is None or WORK * needed <= most:
        return False
    least = LEAST_LIMIT + request.in_use
    if most < least and needed > most:
        raise DataError(
            f"{request.name}: work on it takes about {format_bytes(WORK * needed)} of memory. In blocks "
            f"{format_bytes(least)} would do, but {format_bytes(most)} are "
            f"{'free' if request.max_memory is None else 'allowed'}. Allow more."
        )
    return most >= least


def check_memory(needed: int, request: Request) -> None:
    """Raise an error if reading needs more memory than ``max_memory``, or than is available.

    ``needed`` is an estimate from the size of the file or from its header.
    """
    if request.max_memory is None and needed < ALWAYS_FREE:
        return
    most = memory_for(request)
    if most is not None and needed > most:
        which = "are free" if request.max_memory is None else "are allowed"
        raise DataError(
            f"{request.name}: needs about {format_bytes(needed)} of memory, but {format_bytes(most)} {which}. {LESS_MEMORY}"
        )


def not_enough_memory(error: MemoryError, request: Request) -> DataError:
    """Return the error for a file for which there was not enough memory after all."""
    reason = f" ({first_line(error)})" if str(error) else ""
    return DataError(f"{request.name}: needs more memory than there is{reason}. {LESS_MEMORY}")


def check_text(content: bytes, request: Request) -> None:
    """Raise an error if decoding a text and splitting it into lines needs more memory than is allowed."""
    n_lines = max(content.count(b"\n"), content.count(b"\r"))
    # One character beyond U+00FF makes Python store every one in two bytes, and one beyond U+FFFF in four.
    widest = int(np.frombuffer(content, np.uint8).max(initial=0))
    width = 4 if widest >= 0xF0 else 2 if widest > 0xC3 else 1
    check_memory((1 + 2 * width) * len(content) + MEMORY_PER_LINE * n_lines, request)


def check_cells(n_bytes: int, n_lines: int, n_cells: int, request: Request) -> None:
    """Raise an error if parsing the cells of a text needs more memory than is allowed."""
    check_memory(MEMORY_PER_BYTE * n_bytes + MEMORY_PER_LINE * n_lines + MEMORY_PER_CELL * n_cells, request)


def unpack_gzip(packed: bytes, request: Request, memory_per_byte: int) -> bytes:
    """Decompress a gzip file piece by piece, and stop as soon as it exceeds a limit."""
    pieces: list[bytes] = []
    per_byte = max(2, memory_per_byte)  # the pieces, and all of them joined
    limited = replace(request, max_memory=memory_for(request))  # what is free now, before the pieces are there
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
            while piece := stream.read(CHUNK):
                pieces.append(piece)
                refuse_bomb(len(packed), len(pieces) * CHUNK, request)
                check_memory(per_byte * (len(pieces) - 1) * CHUNK, limited)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{request.name}: damaged gzip file ({first_line(error)}). Copy it again.") from error
    return b"".join(pieces)


def unpacked_size(archive: zipfile.ZipFile, packed: int, request: Request) -> int:
    """Return the decompressed size that an archive declares, after a check; entries are not read beyond it."""
    for entry in archive.infolist():
        if entry.compress_type not in METHODS:
            raise DataError(
                f"{request.name}: {entry.filename[:60]!r} in it is compressed in an unusual way, which may hide its size. "
                "Save it again with the program that wrote it."
            )
    total = sum(entry.file_size for entry in archive.infolist())
    refuse_bomb(packed, total, request)
    return total


def repack(content: bytes, request: Request, memory_per_byte: int) -> bytes:
    """Return an uncompressed archive with the same entries.

    The next reader then cannot receive more bytes than the entries declare; an entry that holds more fails its checksum.
    """
    stored = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as packed, zipfile.ZipFile(stored, "w", zipfile.ZIP_STORED) as plain:
        check_memory(memory_per_byte * unpacked_size(packed, len(content), request), request)
        for entry in packed.infolist():
            if not entry.is_dir():
                plain.writestr(entry.filename, packed.read(entry))
    return stored.getvalue()
