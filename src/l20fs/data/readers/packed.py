"""Sizes of compressed chunks, found before they are decompressed as a whole."""

from __future__ import annotations

import zlib
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

#: Most bytes that one byte of a deflate stream can become.
DEFLATE_GROWTH = 1032

#: Maximum size of a block in a zstd frame.
ZSTD_BLOCK = 2**17


def inflated_size(unpacker: Any, packed: bytes, most: int) -> int:
    """Return the number of bytes that a stream decompresses to, at most one more than ``most``; errors end it."""
    total, piece = 0, 2**18
    try:
        while packed and not unpacker.eof and total <= most:
            got = len(unpacker.decompress(packed, min(piece, most + 1 - total)))
            total, packed = total + got, unpacker.unconsumed_tail
            if got == 0:
                break
    except zlib.error:  # told by the one who reads it
        pass
    return total


def unpacked_size(compressor: str, file: Path, start: int, size: int, limit: int) -> int:
    """Return the size of a decompressed chunk, or one that it cannot exceed; of a stream at most ``limit`` + 1."""
    with open(file, "rb") as stream:
        stream.seek(start)
        packed = stream.read(min(size, 32))
        if compressor in ("blosc", "lz4"):  # the size is declared, and no more is written
            return int.from_bytes(packed[4:8] if compressor == "blosc" else packed[:4], "little")
        if compressor == "zstd" and (declared := _zstd_declared(packed)):
            return declared
        packed += stream.read(size - len(packed))
    if compressor == "zstd":
        return _zstd_blocks(packed)
    total = 0
    while packed and total <= limit:  # a gzip file may have several members
        unpacker = zlib.decompressobj(31 if compressor == "gzip" else 15)
        total += inflated_size(unpacker, packed, limit - total)
        packed = unpacker.unused_data
    return total


def stated_texts(compressor: str, packed: bytes) -> int:
    """Return the number of texts that a chunk of them begins with, for which zarr allocates memory; 0 if it is damaged."""
    for content in (packed, packed[:-4]):  # a checksum may follow
        with suppress(Exception):  # of numcodecs, whose errors are of many kinds
            if compressor:
                content = import_module("numcodecs.registry").get_codec({"id": compressor}).decode(content)
            return int.from_bytes(bytes(content[:4]), "little")
    return 0


def _zstd_sizes(packed: bytes) -> tuple[int, int]:
    """Return the place and the number of bytes of the size that a zstd frame declares, 0 if it declares none."""
    flags = packed[4] if len(packed) > 4 else 0
    is_single = flags >> 5 & 1
    return 5 + (1 - is_single) + (0, 1, 2, 4)[flags & 3], (is_single, 2, 4, 8)[flags >> 6]


def _zstd_declared(packed: bytes) -> int:
    """Return the size that a zstd frame declares, 0 if it declares none."""
    place, n_bytes = _zstd_sizes(packed)
    return int.from_bytes(packed[place : place + n_bytes], "little") + (256 if n_bytes == 2 else 0)


def _zstd_blocks(packed: bytes) -> int:
    """Return the most bytes that the blocks of a zstd frame can have."""
    total, is_last, place = 0, False, sum(_zstd_sizes(packed))
    while not is_last and place + 3 <= len(packed):
        block = int.from_bytes(packed[place : place + 3], "little")
        is_last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
        total += ZSTD_BLOCK if kind == 2 else size
        place += 3 + (1 if kind == 1 else size)
    return total
