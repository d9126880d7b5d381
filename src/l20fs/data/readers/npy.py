"""Headers of .npy arrays, alone or in a .npz archive: checked against the bytes that are there before anything is read."""

from __future__ import annotations

import math
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from l20fs.data.readers.limits import check_memory, unpacked_size
from l20fs.data.readers.table import DataError, Request
from l20fs.typing import Array

#: Memory of a number, besides its own bytes: in double precision, twice; and of a text, in a list.
MEMORY_PER_NUMBER, MEMORY_PER_TEXT = 16, 100

#: Times the bytes of texts that are held at once: in the file, the array, its check and a list.
COPIES_OF_TEXTS = 3


def check_header(stream: IO[bytes], n_bytes: int, what: str, request: Request, held: int = 0) -> int:
    """Raise an error unless an array of ``n_bytes``, header included, is one of numbers or texts that fits into memory.

    Return the memory that it takes besides what is ``held``.
    """
    magic = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if magic == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    n_values = math.prod(int(size) for size in shape)
    if dtype.kind not in "biufUS" or (not dtype.itemsize and n_values):
        raise DataError(f"{request.name}: {what} is an array of {dtype}. Only plain arrays of numbers and texts are read.")
    stated, found = n_values * dtype.itemsize, n_bytes - stream.tell()
    if stated > found:
        raise DataError(
            f"{request.name}: not a whole file: {what} states the shape {shape}, {stated} bytes, but has {found}. Copy it "
            "again."
        )
    is_text = dtype.kind in "US"
    needed = COPIES_OF_TEXTS * stated + MEMORY_PER_TEXT * n_values if is_text else stated + MEMORY_PER_NUMBER * n_values
    check_memory(held + needed, request)
    return needed


@dataclass(frozen=True)
class Archive(Mapping[str, Array]):
    """Arrays of a .npz archive by name, which are read when they are asked for."""

    entries: zipfile.ZipFile
    request: Request
    packed: int
    #: Memory of the arrays that were read, by name.
    held: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unpacked_size(self.entries, self.packed, self.request)

    def __iter__(self) -> Iterator[str]:
        return (name.removesuffix(".npy") for name in self.entries.namelist())

    def __len__(self) -> int:
        return len(self.entries.namelist())

    def __getitem__(self, name: str) -> Array:
        entry = self.entries.getinfo(f"{name}.npy")
        with self.entries.open(entry) as stream:
            self.held[name] = check_header(stream, entry.file_size, name, self.request, sum(self.held.values()))
        with self.entries.open(entry) as stream:
            array: Any = np.lib.format.read_array(stream, allow_pickle=False)
        if array.dtype.kind == "U" and array.nbytes and not _is_unicode(array):
            raise ValueError(f"{name} holds what is no text")
        return array


def _is_unicode(texts: Array) -> bool:
    """Return whether all characters are within the range of Unicode; NumPy fails on others without naming the array."""
    codes = texts.astype(texts.dtype.newbyteorder("="), order="C", copy=False).reshape(-1).view(np.uint32)
    return not np.any(codes > sys.maxunicode)
