"""Formats of files: how each begins, and one function for each, which ends in cells or in a matrix with names.

The content decides on the format; the name counts where the content may be several things.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.tables import gate, memory, text
from l20fs.tables.errors import DataError, UnknownColumnError, first_line
from l20fs.tables.numbers import MISSING, MISSING_IN_USE, is_number_like
from l20fs.tables.table import Contents, Reading, Table, number_text
from l20fs.text import listed
from l20fs.typing import Array

GZIP, HEAD = b"\x1f\x8b", 2**16

#: Extensions of files that can run code when they are read.
UNSAFE = (".pkl", ".pickle", ".joblib", ".rds", ".rda", ".rdata", ".dill")

#: Files that identify the folder of a zarr store, and those of a folder of 10x Genomics.
ZARR_METADATA = ("zarr.json", ".zgroup", ".zarray")
MATRIX, FEATURES, BARCODES = ("matrix.mtx",), ("features.tsv", "genes.tsv"), ("barcodes.tsv",)

#: First bytes of what is no table, its name, and the way to one.
REFUSED = (
    (rb"\x80[\x02-\x05]", "a pickle, which can run code when it is read", "Export a CSV"),
    (rb"RD[AX][23]\n|X\n\0\0\0[\x02\x03]", "an R object, which can run code when it is read", "Use write.csv in R"),
    (rb"\xd0\xcf\x11\xe0", "an old Excel file (.xls)", "Save it as .xlsx or CSV"),
    (rb"BZh[1-9]1AY|\xfd7zXZ|\x28\xb5\x2f\xfd|7z\xbc\xaf", "compressed by another program than gzip", "Unpack it"),
    (rb"%PDF", "a PDF", "Export the table behind it as CSV"),
    (rb"\$FL[23]", "an SPSS file", "In SPSS: File, Save As, CSV; in Python: pandas.read_spss(FILE).to_csv(...)"),
    (
        rb"<stata_dta>|[\x69-\x73][\x01\x02]\x01\x00",
        "a Stata file",
        "In Stata: export delimited; in Python: pandas.read_stata(FILE).to_csv(...)",
    ),
    (
        rb"\0{12}\xc2\xea\x81\x60|HEADER RECORD\*{7}L",
        "a SAS file",
        "In SAS: proc export; in Python: pandas.read_sas(FILE).to_csv(...)",
    ),
    (rb"FCS[23]\.\d", "a file of a flow cytometer (FCS)", "Export one line per sample, such as medians, as CSV"),
    (rb"\x89PNG|\xff\xd8\xff|GIF8[79]a|II\*\0|MM\0\*", "an image", "Export the table behind it as CSV"),
    (
        rb'\s*\{[^}]{0,400}"(?:format|format_url)"\s*:\s*"[^"]*[Bb]iolog',
        "a BIOM file",
        "biom convert --to-tsv makes a table",
    ),
    (rb"ARROW1", "a Feather file", "In Python: pandas.read_feather(FILE).to_parquet(...)"),
    (rb"SQLite format 3", "a database", "Export a table of it as CSV"),
)

#: Pattern of a line of svmlight.
SVMLIGHT_LINE = re.compile(rb"\s*[-+0-9.eE]+(?:\s+qid:\d+)?(?:\s+\d+:[-+0-9.eE]+)+\s*(?:#.*)?")
ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(.*)""", re.IGNORECASE)

#: Most features without names, and how many there may be, or for each value: one wrong digit makes millions.
MOST_UNNAMED, FREE_FEATURES, MOST_PER_VALUE = 10**7, 2**20, 100


@dataclass(frozen=True)
class Format:
    """Format of files, with what the table of the docs says about it."""

    name: str
    endings: tuple[str, ...]
    read: Callable[[Reading], Table | Contents]
    is_text: bool
    #: Where labels may be besides a file of their own, and where samples may lie.
    labels: str
    samples: str = "rows"
    packages: str = ""


# One function per format


def read_csv(reading: Reading) -> Table:
    """Read CSV, TSV or any other separator."""
    return text.read_text(content_of(reading), reading)


def read_gct(reading: Reading) -> Table:
    """Read GCT 1.2 or 1.3: genes in rows, with columns about them; 1.3 has rows about the samples, too."""
    lines = text.decode(content_of(reading), reading).split("\n")
    version = lines[0].strip()
    n_sizes = {"#1.2": 2, "#1.3": 4}.get(version)
    if n_sizes is None:
        raise reading.error(f"GCT version {version[:20]!r}. Versions 1.2 and 1.3 are read.")
    line = lines[1] if len(lines) > 1 else ""
    sizes = [int(field) for field in line.split() if re.fullmatch(r"[0-9]{1,9}", field)][:n_sizes]
    if len(sizes) < n_sizes:
        raise reading.error(f"line 2 is {line[:40]!r}. In GCT {version[1:]} it has {n_sizes} numbers.")
    n_genes, n_samples, n_described, n_about = [*sizes, 1, 0][:4] if n_sizes == 2 else sizes
    if len(lines) < 3 or not lines[2].strip():
        raise reading.error("line 3 is empty. In a GCT file it has the names of the samples.")
    n_fields = lines[2].count("\t") + 1
    if n_fields - 1 - n_described != n_samples:
        raise reading.error(f"line 2 states {n_samples} sample columns, but there are {max(0, n_fields - 1 - n_described)}.")
    table = text.table_of(text.Layout(lines[2:], "\t", 3, False), reading, n_described, n_about)
    n_found = len(table.first) - sum(name in reading.about for name in table.first[:n_about])
    if n_found != n_genes:
        raise reading.error(
            f"line 2 states {n_genes} gene rows, but there are {n_found}. Correct it, or copy the file again."
        )
    return table.turned()


def read_arff(reading: Reading) -> Table:
    """Read ARFF; without a target, it is the last nominal attribute, for a regression the last numeric one."""
    lines = text.decode(content_of(reading), reading).split("\n")
    attributes: list[tuple[str, str]] = []
    for start, line in enumerate(lines, 1):
        word = line.strip()[:10].lower()
        if word.startswith("@data"):
            break
        if word == "@attribute":
            found = ATTRIBUTE.match(line.strip())
            if found is None:
                raise reading.error(f"line {start} is no attribute: {line[:40]!r}. Write @attribute NAME TYPE.")
            name, kind = found.groups()
            quoted = name[:1] in "'\"" and len(name) > 1
            attributes.append((re.sub(r"\\(.)", r"\1", name[1:-1]) if quoted else name, kind))
    else:
        raise reading.error("has no line @data. Copy the file again.")
    body = ["" if line.lstrip().startswith("%") else line.strip() for line in lines[start:]]
    if any(line.startswith("{") for line in body[:100]):
        raise reading.error("sparse ARFF is not read. Convert it by Weka's SparseToNonSparse, or to CSV.")
    quote = "'" if any("'" in line for line in body) else '"'
    names = [name for name, _ in attributes]
    rows = text.records(body, ",", reading, start + 1, quote)
    return replace(text.Lines(names, ",", rows, reading, quote).table(), corner=names[0])


def arff_target(reading: Reading) -> str | None:
    """Return the name of the attribute that is the target by custom."""
    found = ATTRIBUTE.findall(text.decode(content_of(reading), replace(reading, notes=[])).replace("\n", "\n "))
    is_nominal = reading.task != "regression"
    names = [name.strip("'\"") for name, kind in found if kind.lstrip().startswith("{") == is_nominal]
    return names[-1] if names else None


def read_svmlight(reading: Reading) -> Contents:
    """Read a sparse matrix with labels; features are numbered."""
    import io

    from sklearn.datasets import load_svmlight_file

    content = content_of(reading)
    memory.check(len(content) + 100 * content.count(b"\n") + 24 * content.count(b":"), reading)
    try:
        X, labels = load_svmlight_file(io.BytesIO(content), zero_based="auto")
    except MemoryError:
        raise
    except Exception as error:  # the parser says what it met: ValueError, OverflowError, UnicodeDecodeError...
        raise reading.error(f"not a whole svmlight file ({first_line(error)}). Copy it again.") from error
    about = {} if reading.labels is not None else {"label": [number_text(label) for label in labels.tolist()]}
    X = sp.csr_array(X)
    return Contents(X, unnamed(X, reading), None, about, "label" if about else "")


def read_excel(reading: Reading) -> Table:
    """Read the sheet that is named, or has what is asked for."""
    sheet, wanted = reading.input.sheet, reading.wanted
    if reading.verbatim:
        sheet, wanted = reading.input.labels_sheet, [reading.target] if reading.target else []
    reply, arrays = gate.parse(
        "Excel", reading.file, reading, sheet=sheet, wanted=wanted, any_of=sorted(reading.needed or ())
    )
    if len(reply["sheets"]) > 1 and sheet is None:
        key = "labels_sheet" if reading.verbatim else "sheet"
        every = ", ".join(map(repr, reply["sheets"]))
        reading.say(f"its sheets are {every}; {reply['sheet']!r} was read (--config input.{key}={reply['sheet']!r})")
    values, odd = arrays["values"], odd_cells(arrays["places"], reply["texts"])
    filled = np.flatnonzero(~np.isnan(values).all(axis=1) | np.isin(np.arange(len(values)), [i for i, _ in odd]))
    rows = [row_texts(values, odd, int(i)) for i in filled[: text.MOST_LINES]]
    if len(rows) < 2:
        raise reading.error(f"sheet {reply['sheet']!r} holds no table. It needs a header, and rows of numbers.")
    place, _ = text.find_header(rows, [int(i) + reply["above"] for i in filled], reading)
    if place:
        text.say_skipped(int(filled[place]) + reply["above"], "row", next(filter(str.strip, rows[0])), reading)
    header = [name.strip() if name.strip() in reading.about else name for name in rows[place]]
    body = filled[place + 1 :]
    row_of = {int(i): new for new, i in enumerate(body)}
    odd = {(row_of[i], j): cell for (i, j), cell in odd.items() if i in row_of and cell.strip()}
    n_columns = 1 + max([j for j, name in enumerate(header) if name.strip()] + [j for _, j in odd], default=0)
    values = values[body, : max(n_columns, 1 + int(np.flatnonzero(~np.isnan(values).all(axis=0)).max(initial=0)))]
    lines = [int(i) + reply["above"] + 1 for i in body]
    return table_of_cells(header[: values.shape[1]], values, odd, reading, lines)


def read_parquet(reading: Reading) -> Table:
    """Read the columns of a Parquet file; an index of pandas holds the names of the samples."""
    reply, arrays = gate.parse("Parquet", reading.file, reading)
    header, order, values = reply["header"], reply["order"], arrays["columns"]
    odd = odd_cells(arrays["places"], reply["texts"])
    if order[0] != 0:  # the index of pandas stands last, and comes first
        new = {j: place for place, j in enumerate(order)}
        header, values = [header[j] for j in order], values[order]
        odd = {(i, new[j]): cell for (i, j), cell in odd.items()}
    return table_of_cells(header, values.T, odd, reading, (), has_names=reply["has_index"])


def read_arrays(reading: Reading) -> Contents:
    """Read .npz or .mat: values and labels with names by custom."""
    kind = "npz" if _head(reading)[:2] == b"PK" else "MATLAB"
    reply, arrays = gate.parse(kind, reading.file, reading, target=reading.target, **asked_about(reading))
    if reply.get("no_labels") and asked_about(reading)["expects_labels"]:
        raise reading.error("a sparse .npz file has no labels. Give a file with them (--labels FILE).")
    return placed(matrix_contents(reply, arrays, reading), reading)


def read_npy(reading: Reading) -> Contents:
    """Read the matrix of a .npy file, which has no labels and no names."""
    if asked_about(reading)["expects_labels"]:
        raise reading.error("a .npy file has no labels. Give a file with them (--labels FILE).")
    most = memory.limit(reading)
    if most is not None and 4 * reading.file.stat().st_size > most:
        shape = np.load(reading.file, mmap_mode="r", allow_pickle=False).shape
        if len(shape) == 2 and reading.input.samples_in != "columns":
            X = memory.open_in_place(reading, shape)
            return Contents(X, [f"feature{j + 1}" for j in range(shape[1])])
    reply, arrays = gate.parse("npy", reading.file, reading)
    return placed(matrix_contents(reply, arrays, reading), reading)


def read_tenx(reading: Reading) -> Contents:
    """Read a folder of 10x Genomics, or its matrix.mtx, beside which the names of genes and cells are."""
    if asked_about(reading)["expects_labels"]:
        raise UnknownColumnError(f"{reading.name}: a 10x matrix has no labels. Give a file with them (--labels FILE).")
    files = tenx_files(reading.file)
    for role, names in (("matrix", MATRIX), ("features", FEATURES)):
        if role not in files:
            raise reading.error(
                f"there is no {' or '.join(names)} (.gz too). 10x Genomics writes it beside the others; copy the whole "
                "folder."
            )
    links = [file.name for file in files.values() if file.is_symlink() and file != reading.file]
    if links:
        raise reading.error(f"{links[0]!r} is a link. Links in a folder are not followed; copy the file itself.")
    beside = {role: str(files[role]) if role in files else None for role in ("features", "barcodes")}
    reply, arrays = gate.parse("10x", files["matrix"], reading, **beside)
    return matrix_contents(reply, arrays, reading)


def tenx_files(place: Path) -> dict[str, Path]:
    """Return the matrix and the files of names that belong to it, by role; in GEO their names have the same prefix."""
    folder, prefix = (place, "") if place.is_dir() else (place.parent, place.name.rpartition("matrix.mtx")[0])
    found = {} if place.is_dir() else {"matrix": place}
    for role, names in (("matrix", MATRIX), ("features", FEATURES), ("barcodes", BARCODES)):
        files = (folder / f"{prefix}{name}{ending}" for name in names for ending in ("", ".gz"))
        present = next((file for file in files if file.is_file() or file.is_symlink()), None)
        if present is not None:
            found.setdefault(role, present)
    return found


def read_anndata(reading: Reading) -> Contents:
    """Read an h5ad file, a zarr store, or a .h5 file of 10x Genomics."""
    kind = "zarr" if reading.file.is_dir() else "HDF5"
    asked = {"layer": reading.input.layer, "suggest": reading.lacks_labels, "may_stay": True, "about": reading.about}
    reply, arrays = gate.parse(kind, reading.file, reading, **asked)
    if "columns" in reply:
        if reading.lacks_labels:
            few = f" Columns that could be the labels: {listed(reply['suggested'])}."
            what = "numbers to predict" if reading.task == "regression" else "labels"
            few = "" if reading.task == "regression" else few
            raise UnknownColumnError(f"{reading.name}: which column of obs has the {what}? Name it (--target COLUMN).{few}")
        for name in reading.wanted:
            reading.find(name, reply["columns"], "column of obs")
    elif asked_about(reading)["expects_labels"]:
        raise UnknownColumnError(f"{reading.name}: it has no labels. Give a file with them (--labels FILE).")
    return matrix_contents(reply, arrays, reading)


# From plain arrays to cells and matrices


def content_of(reading: Reading) -> bytes:
    """Return the content of a text file, unpacked."""
    memory.check(text.PER_BYTE * reading.file.stat().st_size, reading)
    return text.unpacked(reading.file.read_bytes(), reading)


def asked_about(reading: Reading) -> dict[str, Any]:
    """Return whether the labels have to be in the file itself, and which columns about the samples are asked for."""
    expects = reading.labels is None and (reading.need_labels or reading.target is not None)
    return {"expects_labels": expects, "about": reading.beside}


def odd_cells(places: Array, texts: Sequence[str]) -> dict[tuple[int, int], str]:
    """Return texts by their places."""
    return dict(zip(map(tuple, places.tolist()), texts, strict=True))


def row_texts(values: Array, odd: dict[tuple[int, int], str], row: int) -> list[str]:
    """Return a row of cells as texts."""
    return [odd.get((row, j)) or number_text(value) for j, value in enumerate(values[row].tolist())]


def table_of_cells(
    header: Sequence[str],
    values: Array,
    odd: dict[tuple[int, int], str],
    reading: Reading,
    lines: Sequence[int],
    *,
    has_names: bool = False,
) -> Table:
    """Return numbers and odd cells as a table, with whole rows and columns as texts where these are asked for."""
    first = [odd.get((i, 0)) or number_text(value) for i, value in enumerate(values[:, 0].tolist())]
    cells = {(i, j - 1): text for (i, j), text in odd.items() if j}
    table = Table(header[0], list(header[1:]), first, values[:, 1:], cells, lines=lines, has_names=has_names)
    asked = [j for j, name in enumerate(table.header) if reading.verbatim or name in reading.about]
    columns = {j: table.texts(j) for j in asked}
    rows = (
        {}
        if set(reading.wanted) <= set(header) and reading.wanted
        else {i: row_texts(table.values, cells, i) for i, name in enumerate(first) if name.strip() in reading.about}
    )
    for j in _text_columns(table, cells):
        columns.setdefault(j, table.texts(j))
    left = {(i, j): text for (i, j), text in cells.items() if j not in columns and i not in rows}
    values = table.values
    if asked or rows:
        values = values.copy()
        values[:, asked], values[list(rows)] = np.nan, np.nan
    return replace(table, values=values, odd=left, columns=columns, rows=rows)


def _text_columns(table: Table, cells: dict[tuple[int, int], str]) -> list[int]:
    """Return the columns in which more than half of the filled cells are texts that are no numbers."""
    texts: dict[int, int] = {}
    for (_, j), cell in cells.items():
        texts[j] = texts.get(j, 0) + (not is_number_like(cell) and cell.strip().lower() not in MISSING | MISSING_IN_USE)
    n_numbers = (~np.isnan(table.values)).sum(axis=0)
    n_odd: dict[int, int] = {}
    for _, j in cells:
        n_odd[j] = n_odd.get(j, 0) + 1
    return [j for j, n in texts.items() if 2 * n > n_odd[j] + n_numbers[j]]


def matrix_contents(reply: dict[str, Any], arrays: dict[str, Array], reading: Reading) -> Contents:
    """Return the matrix of a reply of the gate, after a check that it is one, with its names."""
    shape = tuple(reply["shape"]) if "shape" in reply else arrays["X"].shape
    if len(shape) != 2 or 0 in shape:
        raise reading.error(f"the values have the shape {shape}. They must be a matrix with one sample per row.")
    if reply.get("large"):
        key = {} if reply.get("features") is None else {"key": _key(reading)}
        X: Any = memory.open_in_place(reading, shape, **key)
    elif "X" in arrays:
        X = arrays["X"]
    else:
        X = _sparse(reply["format"], arrays, shape, reading)
    features = reply.get("features") or unnamed(X, reading)
    if reading.input.duplicates == "number" and "identifiers" in reply:
        features = _identified(features, reply["identifiers"], reading)
    samples, about = reply.get("samples"), reply.get("about", {})
    target = reply.get("target") or reading.table_target or ""
    if not memory.is_large(X) and X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    return Contents(X, features, samples, about, target if target in about else "")


def _key(reading: Reading) -> str:
    return "X" if reading.input.layer is None else f"layers/{reading.input.layer}"


def _sparse(kind: str, arrays: dict[str, Array], shape: tuple[int, ...], reading: Reading) -> Any:
    """Return a sparse matrix, after a check of its indices."""
    make = {"csr": sp.csr_array, "csc": sp.csc_array}.get(kind)
    if make is None:
        raise reading.error(f"a sparse matrix of the format {kind!r}. Save it as CSR or CSC.")
    try:
        X = make((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
        X.check_format(full_check=True)
    except ValueError as error:
        raise reading.error(f"its sparse matrix is damaged ({first_line(error)}). Copy it again.") from error
    return X


def _identified(symbols: Sequence[str], identifiers: Sequence[str], reading: Reading) -> list[str]:
    """Return gene symbols, of which those that occur more than once have their identifiers."""
    counts: dict[str, int] = {}
    for symbol in symbols:
        counts[symbol] = counts.get(symbol, 0) + 1
    repeated = sorted(symbol for symbol, count in counts.items() if count > 1)
    if not repeated or list(identifiers) == list(symbols):
        return list(symbols)
    reading.say(f"{len(repeated)} gene symbols occur more than once ({listed(repeated)}); their identifiers were added")
    pairs = zip(symbols, identifiers, strict=True)
    return [f"{symbol} ({identifier})" if counts[symbol] > 1 else symbol for symbol, identifier in pairs]


def unnamed(X: Any, reading: Reading) -> list[str]:
    """Return default names of features without names, after a check that there are not more of them than is sensible."""
    n_features = X.shape[1]
    n_values = X.nnz if sp.issparse(X) else X.shape[0] * n_features
    if n_features > MOST_UNNAMED or n_features > max(FREE_FEATURES, MOST_PER_VALUE * n_values):
        raise reading.error(
            f"states {n_features} features, but has {n_values} values. Number the features without gaps, or give them names."
        )
    return [f"feature{j + 1}" for j in range(n_features)]


def placed(contents: Contents, reading: Reading) -> Contents:
    """Return a matrix without names with samples in rows: as is said, or as the number of labels shows."""
    n_rows, n_columns = contents.X.shape
    n_labels = None if contents.y is None else len(contents.y)
    said = reading.input.samples_in
    is_turned = said == "columns"
    if said is None and n_labels == n_columns != n_rows:
        reading.say(f"there are as many labels as columns ({n_labels}), so samples are in columns")
        is_turned = True
    if is_turned:
        names = contents.features if len(contents.features) == n_rows else unnamed(contents.X.T, reading)
        contents = replace(contents, X=contents.X.T, features=names, is_turned=True)
    n_samples, n_features = contents.X.shape
    for what, names_of, n in (("features", contents.features, n_features), ("samples", contents.samples, n_samples)):
        if names_of is not None and len(names_of) != n:
            raise reading.error(f"{n} {what}, but {len(names_of)} names of {what}. Give one for each.")
    for name, values in contents.about.items():
        if len(values) != n_samples:
            raise reading.error(f"{n_samples} samples, but {name} has {len(values)} values. Give one for each.")
    return contents


FORMATS = {
    each.name: each
    for each in (
        Format("CSV", (".csv", ".tsv", ".txt", ".tab"), read_csv, True, "a column, or a row", "rows or columns"),
        Format("Excel", (".xlsx",), read_excel, False, "a column, or a row", "rows or columns", "io"),
        Format("Parquet", (".parquet", ".pq"), read_parquet, False, "a column", "rows or columns", "io"),
        Format("h5ad", (".h5ad",), read_anndata, False, "a column of obs", "rows", "h5ad"),
        Format("zarr", (".zarr",), read_anndata, False, "a column of obs", "rows", "zarr"),
        Format("10x", (".mtx", ".h5"), read_tenx, False, "", "columns", ""),
        Format("GCT", (".gct",), read_gct, True, "in 1.3, a row", "columns"),
        Format("ARFF", (".arff",), read_arff, True, "the last nominal attribute, or one you name"),
        Format("svmlight", (".svm", ".svmlight", ".libsvm"), read_svmlight, True, "the number that begins a line"),
        Format("npy", (".npy",), read_npy, False, "", "rows or columns"),
        Format("npz", (".npz",), read_arrays, False, "the array y, gnd or labels, or one you name", "rows or columns"),
        Format("MATLAB", (".mat",), read_arrays, False, "the variable Y, gnd or labels, or one you name", "rows or columns"),
    )
}


# Detection


def detect(reading: Reading) -> Format:
    """Return the format of a file or folder; what is no table is refused by its name."""
    file = reading.file
    if Path(file.name.lower().removesuffix(".gz")).suffix in UNSAFE:
        raise reading.error(f"{file.suffix} files can run code when they are read and are refused. Export a CSV.")
    if file.is_dir():
        return FORMATS["zarr" if any((file / name).is_file() for name in ZARR_METADATA) else "10x"]
    if file.exists() and not file.is_file():
        raise DataError(f"{file}: not a regular file. Save it to a file first.")
    head = _head(reading)
    if head[:2] != GZIP:
        return _of_head(head, reading)
    try:
        found = _of_head(zlib.decompressobj(wbits=31).decompress(head, HEAD), reading)
    except zlib.error as error:
        raise reading.error(f"damaged gzip file ({error}). Copy it again.") from error
    if not found.is_text and found.name != "10x":
        raise reading.error(f"a gzipped {found.name} file. Unpack it first: gunzip {reading.name}")
    return found


def say_name(found: Format, reading: Reading) -> None:
    """Say that the name of a file suggests another format than its content."""
    promised = _promised(reading)
    if not reading.file.is_dir() and promised not in (None, found):
        assert promised is not None
        if {promised.name, found.name} != {"10x", "h5ad"}:
            reading.say(f"it is named like {promised.name}, but is {found.name}, and was read as such")


def _promised(reading: Reading) -> Format | None:
    name = reading.name.lower().removesuffix(".gz")
    return next((each for each in FORMATS.values() if name.endswith(each.endings)), None)


def _head(reading: Reading) -> bytes:
    with open(reading.file, "rb") as stream:
        return stream.read(HEAD)


def _of_head(head: bytes, reading: Reading) -> Format:
    head = head.removeprefix(b"\xef\xbb\xbf")
    for pattern, what, way_out in REFUSED:
        if re.match(pattern, head):
            raise reading.error(f"it is {what}, and is refused. {way_out}.")
    if head[:2] == b"PK":
        return _of_zip(reading)
    if head.startswith(b"MATLAB 7.3"):
        raise reading.error("a MATLAB 7.3 file (HDF5). Save it with -v7, or as CSV.")
    encoding = text.wide_encoding(head)
    shown = head if encoding is None else head.decode(encoding, errors="ignore").encode(errors="ignore")
    promised = _promised(reading)
    for pattern, name in (
        (rb"\x89HDF\r\n\x1a\n", "h5ad"),
        (rb"\x93NUMPY", "npy"),
        (rb"PAR1", "Parquet"),
        (rb"MATLAB [57]|(?s:.{126}(?:IM|MI))", "MATLAB"),
        (rb"#1\.\d+[ \t]*\r?\n", "GCT"),
        (rb"(?i)%%MatrixMarket", "10x"),
        (rb"(?i)\s*(?:%[^\n]*\n\s*)*@relation\b", "ARFF"),
    ):
        if re.match(pattern, shown):
            return FORMATS[name]
    if promised is FORMATS["ARFF"] and shown.lstrip()[:1] in (b"%", b"@"):  # long comments
        return promised
    if _is_svmlight(shown):
        return FORMATS["svmlight"]
    if promised is not None and not promised.is_text and b"\0" in head:
        raise reading.error(f"does not begin as {promised.name} files do, so it is damaged. Copy it again.")
    return FORMATS["CSV"]


def _is_svmlight(head: bytes) -> bool:
    """Return whether the first line that is not a comment has the svmlight format, as far as it is seen."""
    lines = (line for line in head.split(b"\n") if line.strip() and not line.lstrip().startswith(b"#"))
    line = next(lines, b"").rstrip(b"\r")
    if len(head) >= HEAD and head.endswith(line):  # cut within a line
        line = line.rpartition(b" ")[0]
    return SVMLIGHT_LINE.fullmatch(line) is not None


def _of_zip(reading: Reading) -> Format:
    try:
        with zipfile.ZipFile(reading.file) as archive:
            names = archive.namelist()
    except OSError:
        raise
    except Exception as error:  # a damaged archive fails in many ways
        raise reading.error(f"a damaged zip file ({first_line(error)}). Copy it again.") from error
    if any(name.startswith("xl/") for name in names):
        return FORMATS["Excel"]
    if names and all(name.endswith(".npy") for name in names):
        return FORMATS["npz"]
    if "content.xml" in names and "mimetype" in names:
        raise reading.error("it is an OpenDocument spreadsheet (.ods), and is refused. Save it as .xlsx or CSV.")
    raise reading.error(f"a zip file with {listed(names)}. Unpack it, and name the table in it.")


# Files of labels


def label_rows(asked: Reading) -> list[tuple[int, list[str]]]:
    """Return the rows of a file of labels as texts, with their numbers in the file."""
    found = detect(asked)
    if found.name not in ("CSV", "Excel", "Parquet") and not found.is_text:
        raise asked.error("labels are read from CSV, TSV, Excel or Parquet files. Save them as one of these.")
    if asked.input.labels_sheet is not None and found.name != "Excel":
        raise asked.error(f"input.labels_sheet={asked.input.labels_sheet!r} is for Excel files. Leave it out.")
    if found.is_text:
        content = content_of(asked)
        is_known = asked.input.encoding is not None and not _is_unicode(content)
        settings = asked.input if is_known else replace(asked.input, encoding=None)
        return text.as_rows(content, replace(asked, input=settings))
    table = found.read(asked)
    assert isinstance(table, Table)
    columns = [table.first, *(table.texts(j) for j in range(len(table.header)))]
    rows = [[table.corner, *table.header], *(list(row) for row in zip(*columns, strict=True))]
    return list(zip([1, *(table.lines or range(2, len(rows) + 1))], rows, strict=True))


def _is_unicode(content: bytes) -> bool:
    try:
        content.decode(text.wide_encoding(content[:4096]) or "utf-8")
    except UnicodeDecodeError:
        return False
    return True
