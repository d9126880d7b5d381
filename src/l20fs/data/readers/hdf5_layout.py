"""Layout of HDF5 files, checked before a value is read: nothing leads to another place, and sizes are what they seem."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from l20fs.data.readers.packed import DEFLATE_GROWTH, inflated_size

#: Limits of the objects below an element; tables of AnnData have a few per column.
MOST_OBJECTS, MOST_DEPTH = 10**5, 20

#: Maximum number of chunks; zarr takes a kilobyte or two for each one that it reads, HDF5 up to six.
MOST_CHUNKS, PER_CHUNK = 10**7, 6500

#: Filters of HDF5: deflate, Fletcher's checksum, LZF.
DEFLATE, FLETCHER, LZF = 1, 3, 32000

#: Filters of HDF5 that compress, with the most bytes that one byte can become.
GROWTH = {DEFLATE: DEFLATE_GROWTH, LZF: 100}

#: Filters that keep the size, or are limited by the size of a chunk: shuffle, Fletcher's checksum, n-bit, scale and offset.
KEEP_SIZE = (2, 3, 5, 6)

#: Bytes in memory for a text beside its characters.
PER_TEXT = 100

#: Most texts that are read at once to count their bytes.
TEXTS_AT_ONCE = 4096


#: Attributes with a text that readers ask for, and the most texts that one may have.
TEXT_ATTRIBUTES, MOST_TEXTS = ("encoding-type", "encoding-version", "_index", "h5sparse_format"), 8


class LayoutError(ValueError):
    """Element of a file or store that is not read, for a reason that the message gives."""


def is_hdf5(element: Any) -> bool:
    """Return whether an element is a group or a data set of h5py."""
    return type(element).__module__.partition(".")[0] == "h5py"


def member(group: Any, path: str) -> Any:
    """Return an element of a group, which only hard links lead to; it may be some levels below."""
    where = name_of(group)
    for name in path.split("/"):
        where = f"{where}/{name}".lstrip("/")
        try:
            is_hard = name != "" and type(group.get(name, getlink=True)).__name__ == "HardLink"
        except TypeError:  # a kind of link that h5py does not know
            is_hard = False
        except KeyError:
            raise LayoutError(f"{path!r} is not in {group.name!r}, where it is said to be. Write the file again.") from None
        if not is_hard:
            raise LayoutError(f"{where!r} is a link to another place, which is not followed. Copy the values to it.")
        group = group[name]
    return group


def data_sets(element: Any) -> list[DataSet]:
    """Return all data sets in an element, after a check of each.

    Hard links may lead in circles: every object is visited once.
    """
    found, seen, waiting = [], set(), [(element, 0)]
    while waiting:
        each, depth = waiting.pop()
        address = _address(each)
        if address in seen:
            continue
        seen.add(address)
        check_attributes(each)
        if len(seen) > MOST_OBJECTS or depth > MOST_DEPTH:
            raise LayoutError(f"{name_of(element)!r} has too many elements, or too many levels. Write it again.")
        if hasattr(each, "keys"):
            waiting += [(member(each, name), depth + 1) for name in each]
        elif hasattr(each, "shape"):
            check_data_set(each)
            found.append(DataSet(each))
    return sorted(found, key=lambda data_set: data_set.name)


def check_attributes(element: Any) -> None:
    """Raise an error for attributes with many texts, which may all be the same long one; readers need single texts."""
    for name in TEXT_ATTRIBUTES:
        if name in element.attrs and math.prod(element.attrs.get_id(name).shape) > MOST_TEXTS:
            raise LayoutError(f"the attribute {name!r} of {name_of(element)!r} has more than one value. Write it again.")


def name_of(element: Any) -> str:
    """Return the place of an element in its file."""
    return str(element.name or "").strip("/")


def _address(element: Any) -> tuple[int, int]:
    from h5py import h5o

    info = h5o.get_info(element.id)
    return info.fileno, info.addr


def check_data_set(element: Any) -> None:
    """Raise an error for values in other files, for objects, and for chunks without sense."""
    name = name_of(element)
    if element.external or element.is_virtual:
        raise LayoutError(f"{name!r} has its values in another file, which is not read. Copy them into this one.")
    if _holds_objects(element.dtype):
        raise LayoutError(f"{name!r} holds {element.dtype} values that are neither numbers nor texts. Leave it out.")
    n_chunks = DataSet(element).n_chunks
    if n_chunks > MOST_CHUNKS:
        raise LayoutError(f"{name!r} has {n_chunks} chunks, more than are read. Write it with larger ones.")
    filters = _filters(element) if element.chunks else []
    packed = [place for place, filter_ in enumerate(filters) if filter_ not in KEEP_SIZE]
    if len(packed) > 1:
        raise LayoutError(f"{name!r} is compressed more than once. Write it with one compression.")
    if packed and not set(filters[packed[0] + 1 :]) <= {FLETCHER}:
        raise LayoutError(f"{name!r} has filters after its compression. Write it with that as the last.")


def _holds_objects(dtype: Any) -> bool:
    """Return whether values are references, or sequences of any length that are no texts."""
    from h5py import check_string_dtype

    if dtype.names:
        return any(dtype[name].hasobject for name in dtype.names)
    return dtype.kind == "O" and check_string_dtype(dtype) is None


def _filters(element: Any) -> list[int]:
    properties = element.id.get_create_plist()
    return [properties.get_filter(place)[0] for place in range(properties.get_nfilters())]


@dataclass(frozen=True, eq=False)
class DataSet:
    """Data set of an open file, with the sizes that reading it takes."""

    element: Any
    #: Whether chunks of the fill value need not be written.
    may_omit: ClassVar[bool] = False
    #: Rows of a matrix without any chunk: these are not looked for.
    n_empty_rows: ClassVar[int] = 0

    @property
    def name(self) -> str:
        """Place of the data set in its file."""
        return name_of(self.element)

    @property
    def is_text(self) -> bool:
        """Whether it has texts of any length."""
        return bool(self.element.dtype.kind == "O")

    @property
    def n_chunks(self) -> int:
        """Number of chunks that it should have; a contiguous one has one."""
        shape = self.element.shape or ()
        chunks = self.element.chunks or tuple(max(1, size) for size in shape)
        return math.prod(-(-size // chunk) for size, chunk in zip(shape, chunks, strict=True))

    @property
    def n_missing(self) -> int:
        """Number of chunks that were never written."""
        if self.element.chunks:
            return self.n_chunks - int(self.element.id.get_num_chunks())
        return self.n_chunks if self.element.size and self.element.id.get_storage_size() == 0 else 0

    def memory(self, most: int) -> int:
        """Return the bytes that the values take in memory; texts are counted, up to ``most``."""
        item_size, size = max(8, self.element.dtype.itemsize), math.prod(self.element.shape or ())
        needed = item_size * (size + math.prod(self.element.chunks or (0,))) + PER_CHUNK * (self.n_chunks - 1)
        if not self.is_text or needed > most:
            return needed
        self.check_chunks(most)
        return needed + PER_TEXT * size + 2 * self._text_bytes(most)

    def _text_bytes(self, most: int) -> int:
        """Return the sum of the lengths of texts, of which the same long one may be named many times.

        HDF5 stores the length of each beside its place. Where that is packed in an unusual way, texts are read in pieces,
        none of which can take more than a quarter of ``most``: a text is no longer than the file.
        """
        element = self.element
        if len(element.shape) > 1:
            raise LayoutError(f"{self.name!r} has texts of {len(element.shape)} dimensions. Write a list of them.")
        lengths = _text_lengths(element)
        if lengths is not None:
            return lengths
        total, n_texts = 0, math.prod(element.shape)
        step = max(1, min(TEXTS_AT_ONCE, most // 4 // max(1, element.file.id.get_filesize())))
        for start in range(0, n_texts, step):
            total += sum(map(len, element[start : start + step] if element.shape else [element[()]]))
            if total > most:
                break
        return total

    def check_chunks(self, most: int) -> None:
        """Raise an error for a chunk that grows to more than its size, if it could take more than ``most`` bytes.

        HDF5 decompresses a chunk to its end, whatever the size that the file declares.
        """
        element = self.element
        growth = max((GROWTH.get(each, 0) for each in _filters(element)), default=0) if element.chunks else 0
        if growth == 0:
            return
        declared = element.dtype.itemsize * math.prod(element.chunks) + 64  # with a checksum
        for offset, size in _stored_chunks(element):
            if size * growth <= most:
                continue
            if growth != DEFLATE_GROWTH or size > 2 * declared + 2**16 or _inflated(element, offset, declared) > declared:
                raise LayoutError(
                    f"a chunk of {self.name!r} unpacks to more than the {declared} bytes of a chunk, or may do so. It is "
                    "damaged: write it again."
                )


def _stored_chunks(element: Any) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the offset and the stored size of each chunk."""
    if hasattr(element.id, "chunk_iter"):
        found: list[Any] = []
        element.id.chunk_iter(found.append)
    else:
        found = [element.id.get_chunk_info(place) for place in range(element.id.get_num_chunks())]
    return ((each.chunk_offset, each.size) for each in found)


def _inflated(element: Any, offset: tuple[int, ...], most: int) -> int:
    """Return the size of a decompressed chunk, at most one byte more than ``most``."""
    mask, packed = element.id.read_direct_chunk(offset)
    if mask >> _filters(element).index(DEFLATE) & 1:  # the filter was left out for this chunk
        return len(packed)
    return inflated_size(zlib.decompressobj(), packed, most)


def _text_lengths(element: Any) -> int | None:
    """Return the sum of the lengths of texts as they are stored, each with the place of the text; None if unknown."""
    n_bytes = 8 + element.file.id.get_create_plist().get_sizes()[0]  # length, address, and number in the heap
    filters = _filters(element)
    if not element.chunks:
        place = element.id.get_offset()
        if place is None or element.id.get_storage_size() != n_bytes * element.size:
            return None
        with open(element.file.filename, "rb") as stream:
            stream.seek(place)
            return _sum_of_lengths(stream.read(n_bytes * element.size), n_bytes)
    if any(filter_ not in (DEFLATE, FLETCHER) for filter_ in filters):
        return None
    total, per_chunk = 0, n_bytes * math.prod(element.chunks)
    for offset, _ in _stored_chunks(element):
        mask, packed = element.id.read_direct_chunk(offset)
        is_packed = DEFLATE in filters and not mask >> filters.index(DEFLATE) & 1
        stored = zlib.decompressobj().decompress(packed, per_chunk) if is_packed else packed
        total += _sum_of_lengths(stored[:per_chunk], n_bytes)
    return total


def _sum_of_lengths(stored: bytes, n_bytes: int) -> int:
    entries = np.frombuffer(stored, dtype=[("length", "<u4"), ("place", f"V{n_bytes - 4}")])
    return int(entries["length"].sum(dtype=np.int64))


@dataclass(frozen=True, eq=False)
class FileLayout:
    """Layout of an open file."""

    file: Any

    def below(self, path: str) -> list[DataSet]:
        """Return the data set at a path, or all data sets in the group there."""
        return data_sets(member(self.file, path) if path else self.file)

    def check_path(self, path: str) -> None:
        """Raise an error for a path that leads out of the file."""
        check_attributes(member(self.file, path))
