"""Read a table of samples from a file: numbers, labels and names, or a clear refusal."""

from __future__ import annotations

import csv
import difflib
import gzip
import hashlib
import io
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SEPARATORS = ("\t", ",", ";")


class DataError(ValueError):
    """The data cannot be used as they are; the message says what to change."""


class UnknownColumnError(ValueError):
    """The target column is not in the file."""


@dataclass(frozen=True)
class Table:
    """Samples with labels and names."""

    X: NDArray[Any]
    y: NDArray[Any]
    feature_names: list[str]
    sha256: str


def read_table(file: Path, target: str) -> Table:
    """Read a CSV or TSV file, gzipped or not, with one sample per row and a header.

    The separator is found in the header. A first column of text is taken as sample names; every other column besides the
    target must hold numbers.
    """
    if file.suffix.lower() in (".pkl", ".pickle", ".joblib", ".rds"):
        raise DataError(f"{file.name}: {file.suffix} files can run code when they are read and are refused. Export a CSV.")
    content = file.read_bytes()
    text = _decode(content, file)
    header, separator = _read_header(text, file)
    if target not in header:
        near = difflib.get_close_matches(target, header, n=3)
        hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"The file begins with {header[:5]}."
        raise UnknownColumnError(f"{file.name} has no column {target!r}. {hint}")
    labels, samples = _read_texts(text, separator, header, target, file)
    frame = _parse(text, separator, header, file).drop(columns=target)
    _check_labels(labels, target, file)
    first = frame.columns[0] if len(frame.columns) else None
    has_names = first is not None and header[0] == first and (not first.strip() or not _is_number_column(frame[first]))
    if has_names:
        repeated = [name for name, count in Counter(samples).items() if count > 1][:5]
        if repeated:
            raise DataError(f"{file.name}: sample names occur more than once: {repeated}. Make them unique.")
        frame = frame.drop(columns=first)
    elif first is not None:
        _refuse_row_numbers(frame[first], file)
    _check_numbers(frame, file)
    return Table(
        X=frame.to_numpy(dtype=np.float64),
        y=labels,
        feature_names=[str(name) for name in frame.columns],
        sha256=hashlib.sha256(content).hexdigest(),
    )


def _decode(content: bytes, file: Path) -> str:
    try:
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        text = content.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{file.name}: damaged gzip file ({error}). Copy it again.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{file.name}: not UTF-8 text (byte {error.start}). Save it again as UTF-8.") from error
    if "\0" in text:
        raise DataError(f"{file.name}: holds NUL bytes, so it is not a text table. Export it as CSV or TSV.")
    return text


def _read_header(text: str, file: Path) -> tuple[list[str], str]:
    line = text.split("\n", 1)[0].rstrip("\r")
    if not line.strip():
        raise DataError(f"{file.name}: the first line is empty. It must name the columns.")
    # A tab is hardly ever part of a name; commas and semicolons are.
    separator = "\t" if "\t" in line else max(SEPARATORS, key=line.count)
    try:
        header = next(csv.reader([line], delimiter=separator))
    except csv.Error as error:
        raise DataError(f"{file.name}: the first line cannot be read ({error}). Save it again as CSV or TSV.") from error
    if len(header) < 2:
        raise DataError(f"{file.name}: one column only. Separate the columns by tab, comma or semicolon.")
    seen: set[str] = set()
    repeated = [name for name in header if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    if repeated:
        raise DataError(f"{file.name}: column names occur more than once: {repeated[:5]}. Make them unique.")
    return header, separator


def _read_texts(text: str, separator: str, header: list[str], target: str, file: Path) -> tuple[NDArray[Any], list[str]]:
    """Return the labels and the first column as they stand; every line must have all fields.

    pandas takes NA for missing, fills short lines and cuts long ones.
    """
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    column = header.index(target)
    labels, first = [], []
    try:
        next(rows)
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise DataError(
                    f"{file.name}: line {rows.line_num} has {len(row)} fields. Every line must have {len(header)} fields, "
                    "as many as the header."
                )
            labels.append(row[column])
            first.append(row[0])
    except csv.Error as error:
        raise DataError(f"{file.name}: line {rows.line_num} cannot be read ({error}). Save it again as CSV.") from error
    if not labels:
        raise DataError(f"{file.name}: a header and no samples.")
    return np.array(labels), first


def _parse(text: str, separator: str, header: list[str], file: Path) -> Any:
    import pandas as pd

    try:
        return pd.read_csv(
            io.StringIO(text),
            sep=separator,
            header=0,
            names=header,  # verbatim: pandas would rename an empty or repeated name
            index_col=False,
            on_bad_lines="error",
        )
    except (pd.errors.ParserError, pd.errors.ParserWarning, ValueError) as error:
        raise DataError(f"{file.name}: {str(error).strip()}. Every line must have {len(header)} fields.") from error


def _check_labels(labels: NDArray[Any], target: str, file: Path) -> None:
    empty = np.flatnonzero(np.char.strip(labels) == "")
    if len(empty):
        lines = ", ".join(str(i + 2) for i in empty[:5])
        raise DataError(f"{file.name}: {len(empty)} samples have no {target!r}, first in line {lines}. Fill or drop them.")
    n_classes = len(np.unique(labels))
    if n_classes > max(2, len(labels) // 2):
        raise DataError(
            f"{file.name}: column {target!r} has {n_classes} different values in {len(labels)} samples. A target needs a "
            "few classes with several samples each."
        )


def _is_number_column(column: Any) -> bool:
    return column.dtype.kind in "biuf"


def _refuse_row_numbers(column: Any, file: Path) -> None:
    """Refuse a first column that counts the samples: sorted by class, it would be the best feature of all."""
    values = column.to_numpy()
    if len(values) < 10 or values.dtype.kind not in "iu":  # few numbers may well follow each other by chance
        return
    if np.array_equal(np.sort(values), values.min() + np.arange(len(values))):
        raise DataError(
            f"{file.name}: the first column {column.name!r} counts the samples from {values.min()} to {values.max()}, so it "
            "is a name and not a feature. Remove it, or leave its heading empty."
        )


def _check_numbers(frame: Any, file: Path) -> None:
    texts = [str(name) for name in frame.columns if not _is_number_column(frame[name])]
    if texts:
        shown = ", ".join(map(repr, texts[:5]))
        raise DataError(
            f"{file.name}: {len(texts)} columns hold text, first {shown}. Encode them as numbers or remove them; only the "
            "target, and sample names in the first column, may be text."
        )
    if frame.shape[1] == 0:
        raise DataError(f"{file.name}: no feature columns besides the target.")
    missing = frame.isna().to_numpy()
    if missing.any():
        line, column = np.argwhere(missing)[0]
        raise DataError(
            f"{file.name}: {int(missing.sum())} missing values, first in column {str(frame.columns[column])!r}, line "
            f"{line + 2}. Fill them in or remove the columns or samples."
        )
