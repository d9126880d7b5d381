"""Reader of 10x Genomics matrices: matrix.mtx, features.tsv (or genes.tsv) and barcodes.tsv, gzipped or not."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.data.readers.digest import read_file
from l20fs.data.readers.encoding import decode
from l20fs.data.readers.limits import MEMORY_PER_BYTE, check_memory, unpack_gzip
from l20fs.data.readers.table import Contents, DataError, Request, first_line, require
from l20fs.text import listed
from l20fs.typing import Array

MATRIX, FEATURES, BARCODES = ("matrix.mtx",), ("features.tsv", "genes.tsv"), ("barcodes.tsv",)
GZIP = b"\x1f\x8b"

#: Memory of one entry in bytes: two indices and a value, unsorted and sorted.
BYTES_PER_ENTRY = 64

#: Memory of a row or a column in bytes: where it begins, twice, and its name.
BYTES_PER_LINE = 64

#: Memory of a line of names in bytes, and of each field in it.
MEMORY_PER_NAME = 150


def tenx_files(place: Path) -> list[Path]:
    """Return the existing files among the matrix, the names of genes and the names of cells.

    ``place`` is a folder, or the matrix itself, whose name may have a prefix before ``matrix.mtx``, as in GEO; the other
    files have the same prefix.
    """
    folder, prefix = (place, "") if place.is_dir() else (place.parent, place.name.rpartition("matrix.mtx")[0])
    matrix = _present(folder, prefix, MATRIX) if place.is_dir() else place
    return [file for file in (matrix, _present(folder, prefix, FEATURES), _present(folder, prefix, BARCODES)) if file]


def _present(folder: Path, prefix: str, names: tuple[str, ...]) -> Path | None:
    files = (folder / f"{prefix}{name}{ending}" for name in names for ending in ("", ".gz"))
    return next((file for file in files if file.is_file()), None)


def read_tenx(request: Request) -> Contents:
    """Read a sparse matrix with genes in rows and cells in columns, with the names of both."""
    files = {_role(file): file for file in tenx_files(request.file)}
    for role, names in (("matrix", MATRIX), ("features", FEATURES)):
        if role not in files:
            raise DataError(
                f"{request.name}: there is no {' or '.join(names)} (.gz too). 10x Genomics writes it beside the others; "
                "copy the whole folder."
            )
    of_matrix = replace(request, file=files["matrix"])
    X = parse_matrix_market(_content(of_matrix), of_matrix)
    genes, notes = _gene_names(_lines(replace(request, file=files["features"])), request)
    cells = (
        [line.split("\t")[0] for line in _lines(replace(request, file=files["barcodes"]))] if "barcodes" in files else None
    )
    for role, found, stated in (("features", genes, X.shape[1]), ("barcodes", cells, X.shape[0])):
        if found is not None and len(found) != stated:
            raise DataError(
                f"{request.name}: {files['matrix'].name} states {stated} {role}, but {files[role].name} has {len(found)} "
                "lines. Take files that belong together."
            )
    return Contents(X=X, feature_names=genes, sample_names=cells, notes=notes, is_turned=True)


def _role(file: Path) -> str:
    name = file.name.removesuffix(".gz")
    return "barcodes" if name.endswith(BARCODES) else "features" if name.endswith(FEATURES) else "matrix"


def _content(request: Request) -> bytes:
    content = read_file(request, MEMORY_PER_BYTE)
    return unpack_gzip(content, request, MEMORY_PER_BYTE) if content[:2] == GZIP else content


def _lines(request: Request) -> list[str]:
    content = _content(request)
    check_memory(MEMORY_PER_BYTE * len(content) + MEMORY_PER_NAME * (content.count(b"\n") + content.count(b"\t")), request)
    return decode(content, request).rstrip("\n").split("\n")


def _gene_names(lines: list[str], request: Request) -> tuple[list[str], tuple[str, ...]]:
    """Return the gene symbols of the second column; without a rule for duplicates, these get their identifiers."""
    fields = [line.split("\t") for line in lines]
    symbols = [row[1] if len(row) > 1 else row[0] for row in fields]
    repeated = {name for name, count in Counter(symbols).items() if count > 1}
    names = [f"{symbol} ({row[0]})" if symbol in repeated else symbol for symbol, row in zip(symbols, fields, strict=True)]
    if not repeated or request.duplicates is not None or all(len(row) < 2 for row in fields):
        return symbols, ()
    return names, (
        f"{len(repeated)} gene symbols occur more than once ({listed(sorted(repeated))}); their identifiers were added.",
    )


def parse_matrix_market(content: bytes, request: Request) -> sp.csr_array:
    """Read a sparse Matrix Market file and return its transpose.

    The header is checked against the content: SciPy trusts any declared number of entries.
    """
    shape, n_entries, start = _header(content, request)
    n_lines = content.count(b"\n", start) + (not content.endswith(b"\n"))
    if n_lines < n_entries:
        raise DataError(f"{request.name}: states {n_entries} entries, but has {n_lines} lines of them. Copy the file again.")
    check_memory(n_entries * BYTES_PER_ENTRY + len(content) + BYTES_PER_LINE * sum(shape), request)
    rows, columns, values = _entries(content[start:], n_entries, request)
    for what, found, most in (("row", rows, shape[0]), ("column", columns, shape[1])):
        if len(found) and (found.min() < 1 or found.max() > most):
            raise DataError(
                f"{request.name}: states {most} {what}s, but has an entry in {what} "
                f"{found.min() if found.min() < 1 else found.max()}. Copy the file again."
            )
    X = sp.coo_array((values, (columns - 1, rows - 1)), shape=shape[::-1]).tocsr()
    if X.nnz != n_entries:
        raise DataError(f"{request.name}: {n_entries - X.nnz} entries stand for the same value. Write each value once.")
    return X


def _header(content: bytes, request: Request) -> tuple[tuple[int, int], int, int]:
    """Return the shape, the number of entries and the offset of the first one."""
    end = content.find(b"\n")
    words = content[: max(end, 0)].decode("latin-1").lower().split()
    kind = ("%%matrixmarket", "matrix", "coordinate")
    if tuple(words[:3]) != kind or len(words) != 5 or words[3] not in ("real", "integer") or words[4] != "general":
        raise DataError(
            f"{request.name}: begins with {' '.join(words)[:60]!r}. Only sparse general matrices of numbers are read: "
            "%%MatrixMarket matrix coordinate real general."
        )
    start = end + 1
    while content[start : start + 1] in (b"%", b"\n", b"\r"):
        start = content.find(b"\n", start) + 1 or len(content)
    end = content.find(b"\n", start)
    sizes = content[start : end if end >= 0 else len(content)].split()
    if len(sizes) != 3 or not all(size.isdigit() and len(size) < 10 for size in sizes) or int(sizes[0]) * int(sizes[1]) == 0:
        raise DataError(f"{request.name}: {sizes[:4]} are no numbers of rows, columns and entries. Copy the file again.")
    n_rows, n_columns, n_entries = map(int, sizes)
    return (n_rows, n_columns), n_entries, end + 1 if end >= 0 else len(content)


def _entries(body: bytes, n_entries: int, request: Request) -> tuple[Array, Array, Array]:
    pandas: Any = require("pandas", "cli", request)
    if not n_entries:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    try:
        frame = pandas.read_csv(
            io.BytesIO(body),
            sep=r"\s+",
            header=None,
            names=range(3),
            index_col=False,
            comment="%",
            low_memory=False,
            dtype={0: np.int64, 1: np.int64, 2: np.float64},
        )
    except (pandas.errors.ParserError, pandas.errors.ParserWarning, ValueError, OverflowError) as error:
        raise DataError(
            f"{request.name}: not a list of row, column and value ({first_line(error)}). Copy it again."
        ) from error
    if len(frame) != n_entries:
        raise DataError(f"{request.name}: states {n_entries} entries, but has {len(frame)}. Copy the file again.")
    if frame[2].isna().any():  # a line without a value, or NaN
        raise DataError(f"{request.name}: {int(frame[2].isna().sum())} entries have no value. Copy the file again.")
    return frame[0].to_numpy(), frame[1].to_numpy(), frame[2].to_numpy()
