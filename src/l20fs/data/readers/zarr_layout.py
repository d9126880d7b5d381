"""Layout of zarr stores in folders, checked before one is opened: links, codecs, types, sizes and missing chunks."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from l20fs.data.readers.hdf5_layout import MOST_CHUNKS, PER_TEXT, LayoutError
from l20fs.data.readers.packed import DEFLATE_GROWTH, stated_texts, unpacked_size

#: Files with metadata, and the most bytes that one may have.
METADATA, MOST_METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"), 2**23

#: Codecs that compress; an array has at most one of them.
COMPRESSORS = ("blosc", "zstd", "gzip", "zlib", "lz4")

#: Codecs that turn texts into bytes.
OF_TEXT = ("vlen-utf8", "vlen-bytes")

#: All other codecs and filters that are known, and that run nothing.
PLAIN = (
    *("bytes", "endian", "transpose", "sharding_indexed", "shuffle", "delta", "bitround", "fixedscaleoffset", "quantize"),
    *("packbits", "crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"),
)
CODECS = (*COMPRESSORS, *OF_TEXT, *PLAIN)

#: Types of numbers and of texts of a fixed length in the second format, and of numbers in filters.
FIXED, NUMBER = re.compile(r"[<>|=]?[biufcSUVmM]\d*(\[\w+\])?"), re.compile(r"[<>|=]?[biuf]\d+|(u?int|float)\d+")

#: Bytes of a value by its type in the third format; others are texts of any length, or have their length beside them.
ITEM = re.compile(r"(?:bool|u?int|float|complex|r)(\d*)")

#: Chunks that zarr reads at the same time, and bytes that it takes for each chunk of a selection.
AT_ONCE, PER_CHUNK = 10, 2000


@dataclass(frozen=True, eq=False)
class StoredArray:
    """Array of a store, as its metadata describe it."""

    name: str
    folder: Path
    shape: tuple[int, ...]
    #: Shape of what is in a file, and of what is decompressed at once: less, if chunks are in shards.
    files: tuple[int, ...]
    chunks: tuple[int, ...]
    item_size: int
    is_text: bool
    codecs: tuple[str, ...]
    #: Whether chunks of the fill value need not be written.
    may_omit: ClassVar[bool] = True

    @property
    def n_chunks(self) -> int:
        """Number of chunks, that of whole shards where there are some."""
        return math.prod(-(-size // chunk) for size, chunk in zip(self.shape, self.files, strict=True))

    @property
    def n_inner(self) -> int:
        """Number of chunks in a file, more than one if it is a shard."""
        return math.prod(-(-outer // inner) for outer, inner in zip(self.files, self.chunks, strict=True))

    @property
    def n_missing(self) -> int:
        """Number of chunks without a file, which have the fill value."""
        return self.n_chunks - len(self.stored)

    @property
    def missing(self) -> Iterator[tuple[int, ...]]:
        """Places of the chunks without a file, in the grid of chunks."""
        grid = (range(-(-size // chunk)) for size, chunk in zip(self.shape, self.files, strict=True))
        return (place for place in itertools.product(*grid) if place not in self.stored)

    @property
    def n_empty_rows(self) -> int:
        """Number of rows of a matrix of which no chunk has a file; 0 for other arrays."""
        if len(self.shape) != 2 or not self.n_missing:
            return 0
        n_rows, length = self.shape[0], self.files[0]
        return n_rows - sum(min(length, n_rows - row * length) for row in {row for row, _ in self.stored})

    @cached_property
    def stored(self) -> dict[tuple[int, ...], Path]:
        """Files of the chunks that are there, by their places in the grid of chunks."""
        found = {}
        for file in _files_below(self.folder, len(self.shape) + 1):
            key = str(file.relative_to(self.folder)).replace(os.sep, "/").removeprefix("c").lstrip("/.")
            places = re.split(r"[/.]", key) if key else []
            is_key = all(place.isdecimal() for place in places) and len(places) in (
                (len(self.shape),) if self.shape else (0, 1)
            )
            if is_key and all(int(a) * b < n for a, b, n in zip(places, self.files, self.shape, strict=False)):
                found[tuple(map(int, places[: len(self.shape)]))] = file
        return found

    def memory(self, most: int) -> int:
        """Return the bytes that the values take in memory; ``most`` are allowed for one chunk."""
        size, n_chunks = math.prod(self.shape), self.n_chunks * self.n_inner
        needed = self.item_size * (size + min(AT_ONCE, n_chunks) * math.prod(self.chunks)) + PER_CHUNK * (n_chunks - 1)
        if needed > most or not self.is_text:
            return needed
        return needed + PER_TEXT * size + 4 * self._unpacked(most // 4)

    def check_chunks(self, most: int) -> None:
        """Raise an error for a chunk that grows to more than its size, if it could take more than ``most`` bytes."""
        if not self.is_text:
            self._unpacked(most)

    def _unpacked(self, most: int) -> int:
        """Return the sum of the sizes of all chunks, decompressed; a chunk of numbers has one size only."""
        declared, total = self.item_size * math.prod(self.chunks) + 2**10, 0
        codec = next((codec for codec in self.codecs if codec in COMPRESSORS), "")
        limit = most if self.is_text else max(declared, min(most, 2 * declared))
        for file, start, size in self._pieces():
            if not self.is_text and (codec == "" or (codec in ("gzip", "zlib") and size * DEFLATE_GROWTH <= most)):
                total += size
                continue
            unpacked = unpacked_size(codec, file, start, size, limit) if codec else size
            if unpacked > limit and not self.is_text:
                raise LayoutError(
                    f"a chunk of {self.name!r} unpacks to more than the {declared} bytes of a chunk. It is damaged: write "
                    "it again."
                )
            total += unpacked
            if self.is_text and total > most:
                break
            if self.is_text:
                self._check_number(codec, file, start, size)
        return total

    def _check_number(self, codec: str, file: Path, start: int, size: int) -> None:
        """Raise an error for a chunk that states more texts than a chunk has."""
        with open(file, "rb") as stream:
            stream.seek(start)
            n_texts = stated_texts(codec, stream.read(size))
        if n_texts > math.prod(self.chunks):
            raise LayoutError(
                f"a chunk of {self.name!r} states {n_texts} texts, and a chunk has {math.prod(self.chunks)}. Copy it again."
            )

    def _pieces(self) -> Iterator[tuple[Path, int, int]]:
        """Yield the file, the offset and the size of every compressed chunk."""
        for file in self.stored.values():
            size = file.stat().st_size
            if self.files == self.chunks:
                yield file, 0, size
                continue
            n_bytes = 16 * self.n_inner + 4  # an offset and a size for each, and a checksum
            if n_bytes > size:
                raise LayoutError(f"a shard of {self.name!r} is cut off. Copy it again.")
            with open(file, "rb") as stream:
                stream.seek(-n_bytes, os.SEEK_END)
                index = stream.read(n_bytes - 4)
            for place in range(0, len(index), 16):
                start, length = (int.from_bytes(index[place + at : place + at + 8], "little") for at in (0, 8))
                if start + length <= size:
                    yield file, start, length


@dataclass(frozen=True, eq=False)
class StoreLayout:
    """All arrays of a store by their real folders, after a check of each."""

    root: Path
    arrays: dict[str, StoredArray]

    def below(self, path: str) -> list[StoredArray]:
        """Return the array at a path, or all arrays in the group there."""
        found, seen, waiting = [], set[str](), [os.path.realpath(self.root / path)]
        while waiting:
            folder = waiting.pop()
            if folder in seen:
                continue
            seen.add(folder)
            if folder in self.arrays:
                found.append(self.arrays[folder])
            elif os.path.isdir(folder):
                waiting += [os.path.realpath(entry.path) for entry in os.scandir(folder) if entry.is_dir()]
        return sorted(found, key=lambda array: array.name)

    def check_path(self, path: str) -> None:
        """Do nothing: all links of the store stay in it."""


def check_store(store: str | os.PathLike[str]) -> StoreLayout:
    """Check every file of a store, without opening one by zarr: nothing outside of it is read, and no codec runs code."""
    root = Path(os.path.realpath(store))
    arrays: dict[str, StoredArray] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            _check_file(Path(folder, name), root)
        place = Path(folder)
        where = "" if place == root else place.relative_to(root).as_posix()
        for name in METADATA[::-1]:  # the third format last, since it counts where both are there
            if name in files:
                array = _check_metadata(_read_metadata(place / name, root), name, where, place)
                arrays |= {} if array is None else {str(place): array}
    return StoreLayout(root, arrays)


def _check_file(file: Path, root: Path) -> None:
    """Raise an error for links that leave the store, and for anything but files and folders."""
    name = file.relative_to(root).as_posix()
    if file.is_symlink():
        target = Path(os.path.realpath(file))
        if not target.is_relative_to(root):
            raise LayoutError(
                f"{name!r} is a link that leads out of the store, which is not followed. Copy what it leads to."
            )
        if not target.exists():
            return
    mode = file.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise LayoutError(f"{name!r} is no regular file, and is not read. Remove it.")


def _read_metadata(file: Path, root: Path) -> Any:
    name = file.relative_to(root).as_posix()
    try:
        with open(file, "rb") as stream:
            content = stream.read(MOST_METADATA + 1)
        if len(content) > MOST_METADATA:
            raise ValueError(f"more than {MOST_METADATA} bytes")
        return json.loads(content)
    except RecursionError:
        raise LayoutError(f"the metadata {name!r} are nested too deep. Write the store again.") from None
    except (OSError, ValueError) as error:
        raise LayoutError(f"the metadata {name!r} cannot be read ({str(error)[:100].rstrip('.')}). Copy it again.") from None


def _check_metadata(metadata: Any, name: str, where: str, folder: Path) -> StoredArray | None:
    """Check the metadata of a node, with those of other nodes that are kept in it, and return its array if it is one."""
    try:
        for path, file, each in _consolidated(metadata, name):
            _check_metadata(each, file, f"{where}/{path}".strip("/"), folder)
        if name == ".zarray":
            return _checked_sizes(_second_format(metadata, where, folder))
        if name == "zarr.json" and metadata.get("node_type") == "array":
            return _checked_sizes(_third_format(metadata, where, folder))
    except LayoutError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise LayoutError(f"the metadata {name!r} of {where!r} are damaged. Copy them again.") from None
    return None


def _consolidated(metadata: Any, name: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the path, the file and the metadata of nodes that are kept in those of another."""
    if name == ".zmetadata":
        for path, each in metadata["metadata"].items():
            folder, _, file = str(path).rpartition("/")
            yield folder, file, each
    elif name == "zarr.json":
        for path, each in ((metadata.get("consolidated_metadata") or {}).get("metadata") or {}).items():
            yield path, name, each


def _checked_sizes(array: StoredArray) -> StoredArray:
    """Return an array, or raise an error if its chunks make no sense."""
    sizes = (array.shape, array.files, array.chunks)
    if len({len(size) for size in sizes}) != 1 or min((*array.files, *array.chunks), default=1) < 1:
        raise LayoutError(f"{array.name!r} has the shape {array.shape} in chunks of {array.files}. Copy it again.")
    n_chunks = array.n_chunks * array.n_inner
    if n_chunks > MOST_CHUNKS:
        raise LayoutError(f"{array.name!r} has {n_chunks} chunks, more than are read. Write it with larger ones.")
    return array


def _second_format(metadata: dict[str, Any], where: str, folder: Path) -> StoredArray:
    filters, compressor = metadata.get("filters") or [], metadata.get("compressor")
    codecs = [(str(each["id"]), each) for each in (*filters, *([] if compressor is None else [compressor]))]
    names = _check_codecs(codecs, where)
    dtype = metadata["dtype"]
    is_text = dtype == "|O"
    if is_text != any(name in OF_TEXT for name in names) or (not is_text and not _is_fixed(dtype)):
        raise LayoutError(f"{where!r} holds Python objects, which are not read. Write numbers or texts (vlen-utf8).")
    shape, chunks = (tuple(int(size) for size in metadata[key]) for key in ("shape", "chunks"))
    return StoredArray(where, folder, shape, chunks, chunks, _item_size(dtype), is_text, names)


def _is_fixed(dtype: Any) -> bool:
    """Return whether a type of the second format has no objects; types of several fields are lists."""
    if isinstance(dtype, list):
        return all(_is_fixed(field[1]) for field in dtype)
    return isinstance(dtype, str) and FIXED.fullmatch(dtype) is not None


def _item_size(dtype: Any) -> int:
    """Return the bytes of a value in memory, at least 8."""
    found = re.search(r"\d+", dtype) if isinstance(dtype, str) else None
    n_bytes = int(found[0]) if found is not None else 0
    return max(8, n_bytes * (4 if isinstance(dtype, str) and "U" in dtype else 1))


def _third_format(metadata: dict[str, Any], where: str, folder: Path) -> StoredArray:
    if metadata.get("storage_transformers"):
        raise LayoutError(f"{where!r} has storage transformers, which are not read. Write the store without them.")
    grid, dtype = metadata["chunk_grid"], metadata["data_type"]
    if grid["name"] != "regular":
        raise LayoutError(f"{where!r} has a chunk grid {grid['name']!r}; only regular ones are read. Write it again.")
    shape, files = (tuple(map(int, sizes)) for sizes in (metadata["shape"], grid["configuration"]["chunk_shape"]))
    codecs, chunks = _named(metadata["codecs"]), files
    names = _check_codecs(codecs, where)
    for name, options in codecs:
        if name == "sharding_indexed":
            chunks = tuple(map(int, options["chunk_shape"]))
            inner = _check_codecs(_named(options["codecs"]), where)
            index = _check_codecs(_named(options["index_codecs"]), where)
            if (
                index != ("bytes", "crc32c")
                or names != (name,)
                or name in inner
                or options.get("index_location", "end") != "end"
            ):
                raise LayoutError(f"{where!r} has shards of an unusual kind, which are not read. Write it again.")
            names = inner
    if isinstance(dtype, dict):
        dtype, size = dtype["name"], (dtype.get("configuration") or {}).get("length_bytes", 8)
        return StoredArray(where, folder, shape, files, chunks, max(8, int(size)), False, names)
    found = ITEM.fullmatch(str(dtype))
    is_text = any(name in OF_TEXT for name in names)
    size = 8 if found is None else max(8, int(found[1] or 8) // 8)
    return StoredArray(where, folder, shape, files, chunks, size, is_text, names)


def _named(codecs: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return the names and options of codecs of the third format; those of numcodecs have a prefix."""
    pairs = [(each, {}) if isinstance(each, str) else (each["name"], each.get("configuration") or {}) for each in codecs]
    return [(str(name).removeprefix("numcodecs."), options) for name, options in pairs]


def _check_codecs(codecs: list[tuple[str, dict[str, Any]]], where: str) -> tuple[str, ...]:
    """Return the names of codecs that are known to be harmless, and raise an error for all others."""
    names = tuple(name for name, _ in codecs)
    for name, options in codecs:
        if name not in CODECS:
            raise LayoutError(
                f"{where!r} has the codec {name!r}, which is not read: unknown codecs may run code. Write it with one of "
                f"{', '.join(COMPRESSORS)}."
            )
        types = [options.get(key) for key in ("dtype", "astype", "encode_dtype", "decode_dtype")]
        if any(each is not None and not NUMBER.fullmatch(str(each)) for each in types):
            raise LayoutError(f"{where!r} has the codec {name!r} for a type that is no number. Write the store again.")
    packed = [place for place, name in enumerate(names) if name in COMPRESSORS]
    if len(packed) > 1:
        raise LayoutError(f"{where!r} is compressed more than once. Write it with one compression.")
    if packed and not set(names[packed[0] + 1 :]) <= {"crc32c", "fletcher32"}:
        raise LayoutError(f"{where!r} has codecs after its compression {names[packed[0]]!r}. Write it with that one last.")
    return names


def describe_missing(arrays: Sequence[Any]) -> str:
    """Return a clause about the chunks of arrays that are not there, and what that may mean; empty if all are there."""
    lacking = [array for array in arrays if array.n_missing]
    if not lacking:
        return ""
    counts = ", ".join(f"{array.name!r}: {array.n_missing} of {array.n_chunks}".removeprefix("'': ") for array in lacking)
    n_empty = sum(array.n_empty_rows for array in lacking)
    empty = f", in {n_empty} rows of the matrix all of them" if n_empty else ""
    may_omit = any(array.may_omit for array in lacking)
    doubt = (
        " (zarr leaves out chunks of this value, but a store that was not copied whole looks the same)" if may_omit else ""
    )
    return f"{counts} chunks are not there and count as the fill value{empty}{doubt}"


def refuse_lost_chunks(arrays: list[Any], matrix: Any) -> None:
    """Raise an error for a sparse matrix without chunks that zarr cannot have left out.

    It leaves out chunks of zeros. A chunk of the columns of values is one only if each row has at most one value in it, in
    the first column; the ends of the rows end with the number of values.
    """
    lacking = {array.name.rpartition("/")[2]: array for array in arrays if array.may_omit and array.n_missing}
    if not hasattr(matrix, "keys") or not lacking.keys() & {"indices", "indptr"}:
        return
    ends = np.asarray(matrix["indptr"][:], dtype=np.int64)
    if "indptr" in lacking and ends[-1] != matrix["indices"].shape[0]:
        raise _lost(lacking["indptr"])
    if "indices" in lacking:
        [length] = lacking["indices"].files
        for (place,) in lacking["indices"].missing:
            if np.diff(np.clip(ends, place * length, (place + 1) * length)).max(initial=0) > 1:
                raise _lost(lacking["indices"])


def _lost(array: StoredArray) -> LayoutError:
    return LayoutError(
        f"{array.n_missing} of {array.n_chunks} chunks of {array.name!r} are lost: zarr leaves out chunks of zeros only, "
        "and these cannot be. Copy the store again."
    )


def _files_below(folder: Path, depth: int) -> Iterator[Path]:
    """Yield the files in a folder and up to so many levels below; links stay in the store, and circles end."""
    for entry in os.scandir(folder):
        if entry.is_dir():
            yield from _files_below(Path(entry.path), depth - 1) if depth > 0 else ()
        elif entry.is_file() and not entry.name.startswith(".") and entry.name != "zarr.json":
            yield Path(entry.path)


def open_store(layout: StoreLayout) -> Any:
    """Open a store that was checked; copies of its metadata at the root are not used."""
    import zarr

    if str(layout.root) in layout.arrays:
        return zarr.open_array(layout.root, mode="r")
    return zarr.open_group(layout.root, mode="r", use_consolidated=False)
