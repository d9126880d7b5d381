"""Labels from a separate file, matched by sample names or in the order of the lines."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from l20fs.data.readers import detect
from l20fs.data.readers.cells import mark_of
from l20fs.data.readers.digest import read_file
from l20fs.data.readers.encoding import decode, is_unicode
from l20fs.data.readers.excel import as_text
from l20fs.data.readers.frames import TURN_HINT
from l20fs.data.readers.joining import join
from l20fs.data.readers.layout import MOST_LINES, SEPARATORS, find_header, find_separator
from l20fs.data.readers.limits import MEMORY_PER_BYTE, check_memory, unpack_gzip
from l20fs.data.readers.names import core
from l20fs.data.readers.parquet import parquet_rows
from l20fs.data.readers.table import Contents, DataError, ReadingLog, Request, UnknownColumnError, find
from l20fs.data.readers.workbook import choose_sheet, open_workbook, sheet_rows
from l20fs.text import by_number, counted, listed

Rows = list[list[str]]
#: Rows with their numbers in the file, counted from 1.
Numbered = list[tuple[int, list[str]]]


#: Memory that reading takes, in bytes per cell, and as much per line: each is a text of its own, in several lists.
MEMORY_PER_CELL = 180


@dataclass(frozen=True)
class LabelFile:
    """Fields of a file of labels; ``header`` is None if there is none."""

    header: list[str] | None
    rows: Rows


def add_labels(contents: Contents, request: Request) -> Contents:
    """Return the contents with the labels, and the groups if there are any, of the file ``request.labels``."""
    assert request.labels is not None
    asked = replace(request, file=request.labels, skip_rows=None)  # from here on messages name the file of labels
    return match_labels(read_rows(set(contents.sample_names or ()), asked), contents, request, asked)


def samples_in_labels(request: Request) -> frozenset[str]:
    """Return what may be names of samples in the file of labels: all cells of columns without repeated ones.

    There are none if it has labels only, or cannot be read, which is an error where the labels are needed.
    """
    assert request.labels is not None
    asked = replace(request, file=request.labels, skip_rows=None, log=ReadingLog(), strict=False)
    try:
        columns = list(zip(*read_rows(set(), asked), strict=True))
    except (DataError, UnknownColumnError):
        return frozenset()
    return frozenset(name for column in columns if len(columns) > 1 and len(set(column)) == len(column) for name in column)


def read_rows(samples: set[str], asked: Request) -> Rows:
    """Return the rows of a CSV, TSV, Excel or Parquet file as texts, all of the same length."""
    detect.refuse_unsafe(asked.file)
    kind = detect.detect(asked)
    if asked.file.is_dir() or not (kind.is_text or kind in (detect.EXCEL, detect.PARQUET)):
        raise DataError(f"{asked.name}: labels are read from CSV, TSV, Excel or Parquet files. Save them as one of these.")
    if asked.labels_sheet is not None and kind != detect.EXCEL:
        raise DataError(f"{asked.name}: labels_sheet {asked.labels_sheet!r} is for Excel files. Leave it out.")
    if kind == detect.PARQUET:
        return tidied(list(enumerate(parquet_rows(asked), 1)), samples, asked)
    content = read_file(asked, MEMORY_PER_BYTE)
    if kind == detect.EXCEL:
        return tidied(list(enumerate(_workbook_rows(content, samples, asked), 1)), samples, asked)
    content = unpack_gzip(content, asked, MEMORY_PER_BYTE) if content[:2] == detect.GZIP else content
    return text_rows(content, samples, asked)


def _workbook_rows(content: bytes, samples: set[str], asked: Request) -> Rows:
    """Return the rows of the sheet that is named, or has the target, or has the samples."""
    workbook = open_workbook(content, asked)

    def fits(rows: list[list[object]]) -> bool:
        cells = {as_text(cell) for row in rows for cell in row}
        return asked.target in cells if asked.target is not None else not samples.isdisjoint(cells)

    chosen = choose_sheet(workbook, asked, "labels_sheet", fits)
    return [[as_text(cell) for cell in row] for row in sheet_rows(workbook, chosen, asked)]


def text_rows(content: bytes, samples: set[str], asked: Request) -> Rows:
    """Return the fields of a CSV or TSV file; every line must have as many as the first one."""
    n_lines, n_separators = content.count(b"\n"), max(content.count(each.encode()) for each in SEPARATORS)
    check_memory(MEMORY_PER_BYTE * len(content) + MEMORY_PER_CELL * (2 * n_lines + n_separators), asked)
    asked = replace(asked, encoding=None) if is_unicode(content) else asked
    lines = decode(content, asked).split("\n")
    # A single label may contain a blank but no separator: without one, there is one column.
    separator = find_separator(lines, asked, with_blanks=False)
    try:
        return tidied([(i + 1, row) for i, row in enumerate(csv.reader(lines, delimiter=separator)) if row], samples, asked)
    except csv.Error as error:
        raise DataError(f"{asked.name}: cannot be read ({error}). Save it again as CSV or TSV.") from error


def tidied(numbered: Numbered, samples: set[str], asked: Request) -> Rows:
    """Return rows of the same length, without titles above them, empty ones, and empty columns at the right."""
    numbered = [(number, row) for number, row in numbered if len(row) == 1 or any(field.strip() for field in row)]
    if not any(field.strip() for _, row in numbered for field in row):
        raise DataError(f"{asked.name}: the file is empty. Give one label per sample.")
    numbered = _without_titles(numbered, samples, asked)
    n_fields = len(numbered[0][1])
    for number, row in numbered:
        if len(row) != n_fields:
            raise DataError(f"{asked.name}: line {number} has {len(row)} fields. Every line must have {n_fields} fields.")
    n_filled = max(1 + j for _, row in numbered for j, field in enumerate(row) if field.strip())
    return [row[:n_filled] for _, row in numbered]


def _without_titles(numbered: Numbered, samples: set[str], asked: Request) -> Numbered:
    """Return the rows from the header on, or from the first one of the table; R's header gets the name that it lacks."""
    head = numbered[:MOST_LINES]
    place, is_short = find_header([row for _, row in head], [number - 1 for number, _ in head], asked)
    first = next((i for i, (_, row) in enumerate(head) if not samples.isdisjoint(row)), place)  # no title names a sample
    place = min(place, first)
    if place and place == first and len(head[place - 1][1]) == len(head[place][1]) - 1:
        place, is_short = place - 1, True
    if place:
        skipped = f"{counted(place, 'line')} above the table {by_number(place, 'was', 'were')} skipped"
        asked.guess(None, None, f"{skipped}, first {next(filter(None, head[0][1]))[:40]!r}")
    number, row = numbered[place]
    return [(number, ["", *row] if is_short else row), *numbered[place + 1 :]]


def match_labels(rows: Rows, contents: Contents, request: Request, asked: Request) -> Contents:
    """Return the contents with the labels in ``rows``, of the file that ``asked`` names, and without unlabelled samples."""
    if contents.sample_names is None and len(rows[0]) > 1:
        contents = _named_by_first_feature(rows, contents, request, asked)
    samples, n_samples = contents.sample_names, contents.X.shape[0]
    names = _name_column(rows, samples, asked) if samples is not None and len(rows[0]) > 1 else None
    found = _without_header(rows, names, samples, n_samples, asked)
    column = _label_column(found, names, asked)
    elsewhere = [name for name in request.beside if name not in contents.beside]
    beside = {name: find(name, found.header or [], "column", asked) for name in elsewhere}
    target_name = found.header[column] if found.header else ""
    if names is None:
        _refuse_other_number(found, n_samples, asked)
        if len(rows[0]) > 1:
            asked.guess(None, None, f"{request.name} has no sample names, so the labels are taken in the order of the lines")
        labelled, order = contents, list(range(n_samples))
    else:
        assert samples is not None
        if names:
            where = repr(found.header[names]) if found.header else f"number {names + 1}"
            asked.guess(None, None, f"the sample names are in column {where}")
        place = join(samples, [row[names] for row in found.rows], request, asked, _turn_hint(rows, contents, request))
        kept = sorted(place)
        labelled, order = contents.with_samples(kept), [place[i] for i in kept]
        _refuse_conflicts(found.rows, order, names, [column, *beside.values()], asked)
    labels = [found.rows[i][column] for i in order]
    return replace(
        labelled,
        y=labels,
        decimal=mark_of(labels, asked),
        beside={**labelled.beside, **{name: [found.rows[i][place] for i in order] for name, place in beside.items()}},
        target_name=target_name,
    )


def _named_by_first_feature(rows: Rows, contents: Contents, request: Request, asked: Request) -> Contents:
    """Return the contents with the first feature as sample names, if it holds the numbers that name the samples."""
    X = contents.X
    if not isinstance(X, np.ndarray) or X.shape[1] < 2 or not np.isfinite(X[:, 0]).all() or (X[:, 0] % 1).any():
        return contents
    names = [str(int(value)) for value in X[:, 0]]
    if len(set(names)) < len(names) or not any(set(names) <= set(column) for column in zip(*rows, strict=True)):
        return contents
    first = contents.feature_names[0]
    request.guess(None, None, f"the first column {first!r} holds the sample names of {asked.name}, so it is no feature")
    return replace(contents, X=X[:, 1:], feature_names=contents.feature_names[1:], sample_names=names)


def _name_column(rows: Rows, samples: Sequence[str], asked: Request) -> int:
    """Return the column that holds most names of samples, if only nearly; the first one if there are several."""
    columns = [set(column) for column in zip(*rows, strict=True)]
    known = set(samples)
    counts = [len(known & column) for column in columns]
    if not any(counts):
        known = {core(name) for name in known}
        counts = [len(known & {core(name) for name in column} - {""}) for column in columns]
    if asked.target in rows[0]:
        counts[rows[0].index(asked.target)] = 0
    return counts.index(max(counts))


def _without_header(
    rows: Rows, names: int | None, samples: Sequence[str] | None, n_samples: int, asked: Request
) -> LabelFile:
    """Split off the header, if there is one, according to the names or the number of the samples."""
    if any(name in rows[0] for name in (asked.target, *asked.beside) if name is not None):
        return LabelFile(rows[0], rows[1:])
    if asked.target is not None and len(rows[0]) > 1:
        find(asked.target, rows[0], "column", asked)
    if names is None:
        has_header = len(rows) == n_samples + 1
    else:
        first, known = rows[0][names], samples or []
        has_header = first not in known and core(first) not in {core(name) for name in known}
    return LabelFile(rows[0], rows[1:]) if has_header else LabelFile(None, rows)


def _label_column(found: LabelFile, names: int | None, asked: Request) -> int:
    n_columns = len(found.rows[0]) if found.rows else len(found.header or [])
    if asked.target is not None and found.header is not None:
        return find(asked.target, found.header, "column", asked)
    others = [j for j in range(n_columns) if j != (names or 0)]
    if len(others) > 1:
        named = listed(found.header[j] for j in others) if found.header else f"{n_columns} of them"
        raise UnknownColumnError(f"{asked.name}: which column has the labels? Name it (--target COLUMN): {named}.")
    return others[0] if others else 0


def _refuse_other_number(found: LabelFile, n_samples: int, asked: Request) -> None:
    if len(found.rows) != n_samples:
        raise DataError(f"{asked.name}: {len(found.rows)} labels, but {n_samples} samples. Give one label per sample.")


def _refuse_conflicts(rows: Rows, used: Sequence[int], names: int, columns: list[int], asked: Request) -> None:
    """Raise an error for samples with several rows that do not agree."""
    said: dict[str, set[tuple[str, ...]]] = {rows[i][names]: set() for i in used}
    for row in rows:
        if row[names] in said:
            said[row[names]].add(tuple(row[column] for column in columns))
    torn = [name for name, values in said.items() if len(values) > 1]
    if torn:
        values = listed(sorted(" ".join(value) for value in said[torn[0]]))
        raise DataError(
            f"{asked.name}: {len(torn)} sample names occur more than once with different labels: {listed(torn)}; "
            f"{torn[0]!r} has {values}. Keep one line for each sample."
        )


def _turn_hint(rows: Rows, contents: Contents, request: Request) -> str:
    """Return a hint if the file of labels names features of the table."""
    cells = {cell for row in rows for cell in row}
    if cells.isdisjoint(contents.feature_names):
        return ""
    return " If its samples are in rows, leave --samples-in out." if request.samples_in == "columns" else f" {TURN_HINT}"
