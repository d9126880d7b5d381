"""Reader of MATLAB files of version 7.3, which are HDF5 files behind a header of 512 bytes.

Full and sparse matrices of real numbers are read, logical values, and text: ``char`` and cells of it. HDF5 stores matrices
transposed. What leads out of the file (external and soft links, external storage, virtual data sets) is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from l20fs.blocks.hdf5_layout import DataSet, check_data_set, data_sets, member
from l20fs.data.matlab import MatlabError

#: Beginning of the header, and the signature of HDF5 behind it.
HEADER, SIGNATURE, OFFSET = b"MATLAB 7.3", b"\x89HDF\r\n\x1a\n", 512

NUMBERS = ("double", "single", "logical", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))

#: Bytes in memory for a row or column of a sparse matrix, with its name.
PER_NAME = 100


def is_hdf5(content: bytes) -> bool:
    """Return whether a MATLAB file is of version 7.3."""
    return content[: len(HEADER)] == HEADER


@dataclass(frozen=True, eq=False)
class StoredVariable:
    """Variable of an open file, not yet read."""

    name: str
    kind: str
    shape: tuple[int, ...]
    #: Data set or group of h5py, and the file, in which the references of a cell are looked up.
    stored: Any
    file: Any

    @property
    def memory(self) -> int:
        """Bytes of the matrix in memory, as floating-point numbers."""
        if self.kind != "sparse":
            return 8 * max(math.prod(self.shape), math.prod(getattr(self.stored, "chunks", None) or (0,)))
        data = self.stored.get("data")
        return 16 * (0 if data is None else math.prod(data.shape)) + PER_NAME * sum(self.shape)

    def array(self, most_bytes: int) -> NDArray[Any] | sp.csc_array:
        """Read the matrix, or one text per row; a variable of more than ``most_bytes`` is refused."""
        if self.kind == "sparse":
            return self._sparse(most_bytes)
        if self.kind == "char":
            return np.array(_texts(self.stored, most_bytes, self.name))
        if self.kind == "cell":
            return self._cell_texts(most_bytes)
        if self.kind not in NUMBERS:
            hint = "; use cellstr() or double() in MATLAB" if self.kind in ("string", "categorical") else ""
            raise MatlabError(f"{self.name} is a {self.kind}; it must be a matrix of real numbers, or text{hint}")
        if self.stored.attrs.get("MATLAB_empty"):
            raise MatlabError(f"{self.name} is empty")
        return _read(self.stored, most_bytes, self.name, "iuf").T

    def _sparse(self, most_bytes: int) -> sp.csc_array:
        parts = {name: _part(self.stored, name, most_bytes, self.name) for name in ("data", "ir", "jc")}
        values, rows, starts = (np.zeros(0) if part is None else part.reshape(-1) for part in parts.values())
        bounds = starts.astype(np.int64)
        matrix = sp.csc_array((values, rows.astype(np.int64), bounds), shape=self.shape)
        matrix.check_format(full_check=True)
        return matrix

    def _cell_texts(self, most_bytes: int) -> NDArray[Any]:
        """Return the texts of a cell, which may refer to the same long one many times: an array has that length for each."""
        references = _read(self.stored, most_bytes, self.name, "O").T.reshape(-1, order="F")
        texts: list[str] = []
        longest = 0
        for reference in references:
            element = self.file[reference]
            if _kind(element) != "char":
                raise MatlabError(f"{self.name} is a cell that holds {_kind(element)}; its elements must be texts")
            texts.append("".join(_texts(element, most_bytes, self.name)))
            longest = max(longest, len(texts[-1]))
            if 4 * longest * len(references) > most_bytes:
                raise MatlabError(f"{self.name} has texts of {longest} characters, which take more than {most_bytes} bytes")
        return np.array(texts)

    @property
    def missing(self) -> str:
        """Number of chunks that were never written, as a text for the user; empty if all are there."""
        parts = [DataSet(self.stored)] if self.kind in NUMBERS else data_sets(self.stored) if self.kind == "sparse" else []
        found = [f"{part.name!r}: {part.n_missing} of {part.n_chunks} chunks" for part in parts if part.n_missing]
        return ", ".join(found)


def read_stored(file: Any) -> dict[str, StoredVariable]:
    """Return the variables of an open file by name, without reading them."""
    found = {}
    for name in file:
        if name.startswith("#"):  # what cells and objects refer to
            continue
        element = member(file, name)
        kind = _kind(element)
        found[name] = StoredVariable(name, kind, _shape(element, kind), element, file)
    return found


def _kind(element: Any) -> str:
    """Return the class of an element in MATLAB; "sparse" and "complex" for matrices that are."""
    if "MATLAB_sparse" in element.attrs:
        return "sparse"
    stated = element.attrs.get("MATLAB_class", b"struct" if hasattr(element, "keys") else b"double")
    kind = stated.decode("ascii", "replace") if isinstance(stated, bytes) else str(stated)
    if hasattr(element, "keys"):
        return "struct" if kind in (*NUMBERS, "char", "cell") else kind
    return "complex" if kind in NUMBERS and (element.dtype.names or element.dtype.kind == "c") else kind


def _shape(element: Any, kind: str) -> tuple[int, ...]:
    if kind == "sparse":
        n_columns = math.prod(element["jc"].shape) - 1 if "jc" in element else 0
        return int(element.attrs["MATLAB_sparse"]), n_columns
    return () if hasattr(element, "keys") else tuple(reversed(element.shape))


def _part(group: Any, name: str, most_bytes: int, variable: str) -> NDArray[Any] | None:
    """Read a part of a sparse matrix; without any value there are neither data nor rows."""
    if name not in group and name != "jc":
        return None
    return _read(member(group, name), most_bytes, variable, "iuf")


def _texts(element: Any, most_bytes: int, variable: str) -> list[str]:
    """Return the rows of a matrix of characters, which are stored as UTF-16."""
    if element.attrs.get("MATLAB_empty"):
        return [""]
    units = _read(element, most_bytes, variable, "u").T
    if units.ndim != 2:
        raise MatlabError(f"{variable} has texts of {units.ndim} dimensions; it must be a matrix of characters")
    return [row.astype("<u2").tobytes().decode("utf-16-le") for row in units]


def _read(element: Any, most_bytes: int, variable: str, kinds: str) -> NDArray[Any]:
    """Read a data set of at most ``most_bytes`` that is in the file itself."""
    check_data_set(element, may_refer="O" in kinds)
    dtype, sizes = element.dtype, (element.shape, element.chunks or ())
    if dtype.kind not in kinds or (dtype.kind == "O" and not _holds_references(dtype)):
        raise MatlabError(f"{variable} holds {dtype}")
    if any(max(8, dtype.itemsize) * math.prod(size) > most_bytes for size in sizes):
        raise MatlabError(f"{variable} has the shape {element.shape}, which takes more than {most_bytes} bytes")
    DataSet(element).check_chunks(most_bytes // 8)
    return np.asarray(element[()])


def _holds_references(dtype: np.dtype[Any]) -> bool:
    """Return whether elements are references to objects, as in a cell."""
    metadata: Any = dtype.metadata
    return getattr((metadata or {}).get("ref"), "__name__", "") == "Reference"
