"""Random damages of files: bytes flipped, parts cut, doubled and exchanged, numbers at the end of their range."""

from __future__ import annotations

import gzip
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from random import Random

#: Most bytes that are flipped at once.
MOST_FLIPS = 64

#: Numbers as text and in binary that are hard on parsers, and pieces of text that mean something to one of them.
TEXTS = [b"0", b"-1", b"1e999", b"-1e308", b"5e-324", b"nan", b"inf", b"2147483648", b"4294967295", b"9223372036854775807"]
TEXTS += [b"9" * 30, b"1" * 400, b"0x10", b"1_000", b"", b"1e-400", b"null", b"true", b"[]", b"{}", b'"x"']
NUMBERS = [
    0,
    1,
    255,
    256,
    2**15 - 1,
    2**16 - 1,
    2**16,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
]
PIECES = [
    b'"',
    b"'",
    b"\n",
    b"\r",
    b"\t",
    b",",
    b";",
    b"|",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"{",
    b"[",
    b"%",
    b"#",
    b"@data\n",
]
PIECES += [
    b"\xed\xa0\x80",
    b"\xe2\x80\xa8",
    b"\x1b[2J",
    b"<",
    b">",
    b"&amp;",
    b"\\",
    b" " * 50,
    b"," * 50,
    b'"' * 51,
    b"\n" * 50,
]

DIGITS = re.compile(rb"-?\d+(?:\.\d+)?")


def flip(content: bytearray, chance: Random) -> int:
    """Change up to 64 bytes, and return how many."""
    number = min(2 ** chance.randrange(7), MOST_FLIPS)
    for _ in range(number if content else 0):
        place = chance.randrange(len(content))
        content[place] ^= chance.choice([1 << chance.randrange(8), chance.randrange(1, 256), content[place] ^ 255 or 255])
    return number if content else 0


def cut(content: bytearray, chance: Random) -> int:
    start, end = _part(content, chance)
    del content[start : len(content) if chance.random() < 0.3 else end]
    return 0


def double(content: bytearray, chance: Random) -> int:
    start, end = _part(content, chance)
    content[start:start] = content[start:end] * chance.choice([1, 1, 2, 20])
    return 0


def splice(content: bytearray, chance: Random) -> int:
    """Overwrite a part by another one, or move it."""
    (start, end), place = _part(content, chance), chance.randrange(len(content) + 1)
    content[place : place + (end - start) * chance.randrange(2)] = content[start:end]
    return 0


def insert(content: bytearray, chance: Random) -> int:
    place = chance.randrange(len(content) + 1)
    content[place:place] = chance.choice(PIECES)
    return 0


def replace_number(content: bytearray, chance: Random) -> int:
    """Put a number at the end of its range: in the place of one as text, or into two to eight bytes."""
    found = list(DIGITS.finditer(bytes(content))) if chance.random() < 0.7 else []
    if found:
        chosen = chance.choice(found)
        content[chosen.start() : chosen.end()] = chance.choice(TEXTS)
    elif len(content) > 8:
        size = chance.choice([2, 4, 8])
        place = chance.randrange(len(content) - size) // size * size
        packed = struct.pack("<Q", chance.choice(NUMBERS))[:size]
        content[place : place + size] = packed if chance.random() < 0.7 else packed[::-1]
    return 0


def _part(content: bytearray, chance: Random) -> tuple[int, int]:
    """Return the bounds of a random part, of any order of magnitude."""
    start = chance.randrange(len(content) + 1)
    return start, min(len(content), start + int(2 ** (chance.random() * 12)))


DAMAGES: list[Callable[[bytearray, Random], int]] = [
    flip,
    flip,
    flip,
    flip,
    cut,
    double,
    splice,
    insert,
    replace_number,
    replace_number,
]


def damage(content: bytes, chance: Random, *, only_flips: bool = False) -> tuple[bytes, int]:
    """Return damaged content and the number of flipped bytes; what is packed is damaged inside every other time."""
    packed = _packed(content) if chance.random() < 0.5 else None
    if packed is not None:
        inner, pack = packed(content, chance)
        damaged, n_flips = damage(inner, chance, only_flips=only_flips)
        return pack(damaged), n_flips
    mutable, n_flips = bytearray(content), 0
    for _ in range(1 if only_flips else chance.choice([1, 1, 2, 4])):
        n_flips += (flip if only_flips else chance.choice(DAMAGES))(mutable, chance)
    return bytes(mutable), n_flips


Opened = tuple[bytes, Callable[[bytes], bytes]]


def _packed(content: bytes) -> Callable[[bytes, Random], Opened] | None:
    """Return how to unpack a part of what is compressed."""
    if content[:2] == b"\x1f\x8b":
        return _open_gzip
    if content[:4] == b"PK\x03\x04":
        return _open_zip
    if content[126:130] == b"IM\x0f\0":  # MATLAB, with a compressed variable first
        return _open_mat
    return None


def _open_gzip(content: bytes, chance: Random) -> Opened:
    return gzip.decompress(content), lambda damaged: gzip.compress(damaged, 1, mtime=0)


def _open_zip(content: bytes, chance: Random) -> Opened:
    """Return an entry, and a function that packs all of them with right checksums."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    chosen, method = chance.choice(sorted(entries)), chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])

    def pack(damaged: bytes) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", method) as archive:
            for name, entry in (entries | {chosen: damaged}).items():
                archive.writestr(zipfile.ZipInfo(name), entry, method)
        return stream.getvalue()

    return entries[chosen], pack


def _open_mat(content: bytes, chance: Random) -> Opened:
    (size,) = struct.unpack("<I", content[132:136])
    head, rest = content[:128], content[136 + size :]

    def pack(damaged: bytes) -> bytes:
        packed = zlib.compress(damaged)
        return head + struct.pack("<II", 15, len(packed)) + packed + rest

    return zlib.decompress(content[136 : 136 + size]), pack
