"""Detection of file formats, by content first and by name where the content is ambiguous."""

from __future__ import annotations

import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from l20fs.data.readers.digest import open_file
from l20fs.data.readers.encoding import wide_encoding
from l20fs.data.readers.svmlight import is_svmlight
from l20fs.data.readers.table import DataError, Request, first_line
from l20fs.text import listed

GZIP = b"\x1f\x8b"
HEAD = 2**16


@dataclass(frozen=True)
class Kind:
    """File format: its name, its file extensions, and the options that it supports.

    ``has_columns``: features are columns with a header, among which there may be other columns.
    """

    name: str
    endings: tuple[str, ...]
    is_text: bool = False
    has_columns: bool = False
    can_turn: bool = False
    can_be_gzipped: bool = True


TEXT = Kind("CSV", (".csv", ".tsv", ".txt", ".tab"), is_text=True, has_columns=True, can_turn=True)
GCT = Kind("GCT", (".gct",), is_text=True, can_turn=True)
ARFF = Kind("ARFF", (".arff",), is_text=True, has_columns=True)
SVMLIGHT = Kind("svmlight", (".svm", ".svmlight", ".libsvm"), is_text=True)
TENX = Kind("10x", (".mtx",), is_text=True, can_turn=True)
EXCEL = Kind("Excel", (".xlsx",), has_columns=True, can_turn=True)
NPY = Kind("npy", (".npy",), can_turn=True)
NPZ = Kind("npz", (".npz",), can_turn=True)
MAT = Kind("MATLAB", (".mat",), can_turn=True)
PARQUET = Kind("Parquet", (".parquet", ".pq"), has_columns=True, can_turn=True, can_be_gzipped=False)
H5AD = Kind("h5ad", (".h5ad",), can_be_gzipped=False)
ZARR = Kind("zarr", (".zarr",), can_be_gzipped=False)
KINDS = (TEXT, GCT, ARFF, SVMLIGHT, TENX, EXCEL, NPY, NPZ, MAT, PARQUET, H5AD, ZARR)

#: Files that identify the folder of a zarr store.
ZARR_METADATA = ("zarr.json", ".zgroup", ".zarray")

#: Extensions of files that can run code when they are read.
UNSAFE = (".pkl", ".pickle", ".joblib", ".rds", ".rda", ".rdata", ".dill")

#: First bytes of refused formats, their description, and the way out.
REFUSED = (
    (re.compile(rb"\x80[\x02-\x05]"), "a pickle, which can run code when it is read", "Export a CSV"),
    (
        re.compile(rb"RD[AX][23]\n|X\n\0\0\0[\x02\x03]"),
        "an R object, which can run code when it is read",
        "Use write.csv in R",
    ),
    (re.compile(rb"\xd0\xcf\x11\xe0"), "an old Excel file (.xls)", "Save it as .xlsx or CSV"),
    (
        re.compile(rb"BZh[1-9]1AY|\xfd7zXZ|\x28\xb5\x2f\xfd|7z\xbc\xaf"),
        "compressed by another program than gzip",
        "Unpack it",
    ),
    (re.compile(rb"%PDF"), "a PDF", "Export a CSV"),
)

#: First bytes of supported formats.
BEGINNINGS = (
    (re.compile(rb"\x89HDF\r\n\x1a\n"), H5AD),
    (re.compile(rb"\x93NUMPY"), NPY),
    (re.compile(rb"PAR1"), PARQUET),
    (re.compile(rb"MATLAB [57]|(?s:.{126}(?:IM|MI))"), MAT),
    (re.compile(rb"#1\.\d+[ \t]*\r?\n"), GCT),
    (re.compile(rb"%%MatrixMarket", re.IGNORECASE), TENX),
    (re.compile(rb"\s*(?:%[^\n]*\n\s*)*@relation\b", re.IGNORECASE), ARFF),
)


def refuse_unsafe(file: Path) -> None:
    """Raise an error for files that can run code when they are read, by name, without opening them."""
    ending = Path(file.name.lower().removesuffix(".gz")).suffix
    if ending in UNSAFE:
        raise DataError(f"{file.name}: {file.suffix} files can run code when they are read and are refused. Export a CSV.")


def detect(request: Request) -> Kind:
    """Return the format of a file or folder."""
    if request.file.is_dir():
        return ZARR if any((request.file / name).is_file() for name in ZARR_METADATA) else TENX
    with open_file(request) as stream:
        head = stream.read(HEAD)
    is_gzipped = head[:2] == GZIP
    kind = _kind(_unpacked_head(head, request) if is_gzipped else head, request, is_gzipped)
    if is_gzipped and not kind.can_be_gzipped:
        raise DataError(f"{request.name}: a gzipped {kind.name} file. Unpack it first: gunzip {request.name}")
    return kind


def named_kind(file: Path) -> Kind | None:
    """Return the format that the name of a file suggests."""
    name = file.name.lower().removesuffix(".gz")
    return next((kind for kind in KINDS if name.endswith(kind.endings)), None)


def note_on_name(kind: Kind, request: Request) -> tuple[str, ...]:
    """Return a note for the user if the name suggests another format than the content."""
    promised = named_kind(request.file)
    if request.file.is_dir() or promised is None or promised == kind:
        return ()
    return (f"{request.name} is named like {promised.name}, but is {kind.name}. It was read as {kind.name}.",)


def _kind(head: bytes, request: Request, is_gzipped: bool) -> Kind:
    head = head.removeprefix(b"\xef\xbb\xbf")
    for pattern, what, way_out in REFUSED:
        if pattern.match(head):
            raise DataError(f"{request.name}: it is {what}, and is refused. {way_out}.")
    if head[:2] == b"PK":
        return _zip_kind(request, is_gzipped)
    for pattern, kind in BEGINNINGS:
        if pattern.match(head):
            return kind
    encoding = wide_encoding(head)
    if encoding is not None:
        text = head.decode(encoding, errors="ignore").encode(errors="ignore")
        return next((kind for pattern, kind in BEGINNINGS if kind.is_text and pattern.match(text)), TEXT)
    if is_svmlight(head):
        return SVMLIGHT
    promised = named_kind(request.file)
    if promised is not None and not promised.is_text and not _is_text(head):
        raise DataError(f"{request.name}: does not begin as {promised.name} files do, so it is damaged. Copy it again.")
    return TEXT


def _zip_kind(request: Request, is_gzipped: bool) -> Kind:
    if is_gzipped:
        raise DataError(f"{request.name}: a gzipped zip file. Unpack it first: gunzip {request.name}")
    try:
        with open_file(request) as stream, zipfile.ZipFile(stream) as archive:
            names = archive.namelist()
    except (OSError, DataError):
        raise
    except Exception as error:  # a damaged archive fails in many ways
        raise DataError(f"{request.name}: a damaged zip file ({first_line(error)}). Copy it again.") from error
    if any(name.startswith("xl/") for name in names):
        return EXCEL
    if names and all(name.endswith(".npy") for name in names):
        return NPZ
    if "content.xml" in names and "mimetype" in names:  # a cell may be repeated there without any limit
        raise DataError(
            f"{request.name}: it is an OpenDocument spreadsheet (.ods), and is refused. Save it as .xlsx or CSV."
        )
    raise DataError(f"{request.name}: a zip file with {listed(names)}. Unpack it, and name the table in it.")


def _unpacked_head(head: bytes, request: Request) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD)
    except zlib.error as error:
        raise DataError(f"{request.name}: damaged gzip file ({error}). Copy it again.") from error


def _is_text(head: bytes) -> bool:
    try:
        head[:HEAD].decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(head) - 4  # truncated within a character
    return b"\0" not in head
