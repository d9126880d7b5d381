"""Reader of MATLAB files, versions 5 to 7.2: full matrices of real numbers, and text.

SciPy reads such files as well, but a damaged byte can crash the interpreter. This reader is limited to what data sets need
and checks every size against the bytes of the file.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: NumPy types of the numeric element types, and encodings of those that may hold characters.
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
CHARACTERS = {2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16"}
INT32, MATRIX, COMPRESSED = 5, 14, 15

KINDS = {1: "cell", 2: "struct", 3: "object", 4: "char", 5: "sparse", 6: "double", 7: "single"} | dict(
    enumerate(("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"), 8)
)
IS_COMPLEX = 0x800

#: Stands for a missing element.
NOTHING = (0, memoryview(b""))

#: Number of leading bytes that contain the name of a variable.
HEAD = 2**16


class MatlabError(ValueError):
    """Damaged or unsupported MATLAB file."""


@dataclass(frozen=True, eq=False)
class Variable:
    """Variable of a file, not yet read."""

    name: str
    kind: str
    shape: tuple[int, ...]
    #: The stored bytes, and "<" or ">" for their byte order.
    stored: memoryview
    is_compressed: bool
    order: str

    @property
    def memory(self) -> int:
        """Bytes of the matrix in memory, as floating-point numbers."""
        return 8 * math.prod(map(abs, self.shape))

    def array(self, most_bytes: int) -> NDArray[Any]:
        """Read the matrix, or one text per row; at most ``most_bytes`` are decompressed."""
        if self.kind in ("cell", "struct", "object", "sparse", "complex"):
            raise MatlabError(f"{self.name} is a {self.kind}; it must be a full matrix of real numbers")
        most_bytes = min(most_bytes, self.memory + HEAD)  # no number takes more than eight bytes
        content = _unpack(self.stored, most_bytes) if self.is_compressed else self.stored
        kind, data = next(islice(_elements(content, self.order), 3, None), NOTHING)
        values = _characters(kind, data, self.order) if self.kind == "char" else _numbers(kind, data, self.order)
        if not values.size or min(self.shape) < 0 or values.size != math.prod(self.shape):
            raise MatlabError(f"{self.name} has the shape {self.shape}, but {values.size} values")
        matrix = values.reshape(self.shape, order="F")
        if self.kind != "char":
            return matrix
        return np.array([row.tobytes().decode("utf-32-le") for row in matrix.reshape(self.shape[0], -1)])


def read_variables(content: bytes) -> dict[str, Variable]:
    """Return the variables of a file by name, without reading them."""
    order = {b"IM": "<", b"MI": ">"}.get(content[126:128])
    if order is None:
        raise MatlabError("it does not begin as MATLAB files of version 5 to 7.2 do")
    (version,) = struct.unpack(order + "H", content[124:126])
    if version != 0x0100:
        raise MatlabError(f"its version is {hex(version)}; save it again in MATLAB with '-v7'")
    found = [_variable(kind, stored, order) for kind, stored in _elements(memoryview(content)[128:], order)]
    return {variable.name: variable for variable in found if variable is not None and variable.name}


def _variable(kind: int, stored: memoryview, order: str) -> Variable | None:
    """Read the header of a variable; None for unsupported elements such as MATLAB objects."""
    is_compressed = kind == COMPRESSED
    if not is_compressed and kind != MATRIX:
        return None
    parts = _elements(_unpack_head(stored) if is_compressed else stored, order)
    (flags,) = struct.unpack(order + "I", next(parts, NOTHING)[1][:4])
    if flags & 0xFF not in KINDS:
        return None
    (shape_kind, sizes), (_, name) = next(parts, NOTHING), next(parts, NOTHING)
    if shape_kind != INT32:
        raise MatlabError("a variable is damaged")
    shape = tuple(_numbers(shape_kind, sizes, order).tolist())
    stated = "complex" if flags & IS_COMPLEX else KINDS[flags & 0xFF]
    return Variable(bytes(name).decode("latin-1"), stated, shape, stored, is_compressed, order)


def _unpack(stored: memoryview, most_bytes: int) -> memoryview:
    """Decompress a matrix and return its elements, without the eight bytes of its tag."""
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(stored, most_bytes)
    if not unpacker.eof:
        raise MatlabError(f"a variable is cut off, or larger than the {most_bytes} bytes that are read")
    return memoryview(content)[8:]


def _unpack_head(stored: memoryview) -> memoryview:
    return memoryview(zlib.decompressobj().decompress(stored, HEAD))[8:]


def _elements(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Yield the type and the bytes of each element."""
    place = 0
    while place < len(data):
        (word,) = struct.unpack(order + "I", data[place : place + 4])
        kind, size = word & 0xFFFF, word >> 16
        if size:  # small elements of up to four bytes share a word with their type
            start, end = place + 4, place + 8
        else:
            (size,) = struct.unpack(order + "I", data[place + 4 : place + 8])
            start, end = place + 8, len(data)
        if start + size > min(end, len(data)):
            raise MatlabError("an element is cut off")
        yield kind, data[start : start + size]
        # All elements but compressed ones are padded to eight bytes.
        place = start + size + (0 if kind == COMPRESSED else -(start + size - place) % 8)


def _numbers(kind: int, data: memoryview, order: str) -> NDArray[Any]:
    if kind not in NUMBERS:
        raise MatlabError(f"numbers are of the unknown kind {kind}")
    return np.frombuffer(data, dtype=order + NUMBERS[kind])


def _characters(kind: int, data: memoryview, order: str) -> NDArray[Any]:
    """Return the code points of a text."""
    if kind not in CHARACTERS:
        raise MatlabError(f"characters are of the unknown kind {kind}")
    text = bytes(data).decode(CHARACTERS[kind].replace("utf-16", "utf-16-le" if order == "<" else "utf-16-be"))
    return np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
