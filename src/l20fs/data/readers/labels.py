"""Labels from a separate file, matched by sample names or in the order of the lines."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace

from l20fs.data.readers.frames import TURN_HINT
from l20fs.data.readers.limits import unpack_gzip
from l20fs.data.readers.table import (
    Contents,
    DataError,
    ReadingLog,
    Request,
    UnknownColumnError,
    find,
    refuse_repeated,
)
from l20fs.data.readers.text import MEMORY_PER_BYTE, decode, find_separator
from l20fs.text import listed

GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class LabelFile:
    """Fields of a file of labels; ``header`` is None if there is none."""

    header: list[str] | None
    rows: list[list[str]]


def add_labels(contents: Contents, request: Request) -> Contents:
    """Return the contents with the labels, and the groups if there are any, of the file ``request.labels``."""
    assert request.labels is not None
    asked = replace(request, file=request.labels)  # from here on messages name the file of labels
    content = asked.file.read_bytes()
    content = unpack_gzip(content, asked, MEMORY_PER_BYTE) if content[:2] == GZIP else content
    return match_labels(content, contents, request, asked)


def samples_in_labels(request: Request) -> frozenset[str]:
    """Return the names in the first column of the file of labels; none if it has labels only, or cannot be read."""
    assert request.labels is not None
    asked = replace(request, file=request.labels, log=ReadingLog(), strict=False)
    try:
        content = asked.file.read_bytes()
        rows = _split_rows(unpack_gzip(content, asked, MEMORY_PER_BYTE) if content[:2] == GZIP else content, asked)
    except DataError:  # to be raised where the labels are needed
        return frozenset()
    return frozenset(row[0] for row in rows if len(row) > 1)


def match_labels(content: bytes, contents: Contents, request: Request, asked: Request) -> Contents:
    """Match the labels in ``content``, the content of the file that ``asked`` names, to the samples."""
    n_samples = contents.X.shape[0]
    rows = _split_rows(content, asked)
    found = _without_header(rows, contents.sample_names, n_samples, asked)
    column = _label_column(found, asked)
    notes: tuple[str, ...] = ()
    if len(rows[0]) == 1 or contents.sample_names is None:
        order: Sequence[int] = range(n_samples)
        if len(rows[0]) > 1:
            notes = (
                f"{request.name} has no sample names, so the labels of {asked.name} are taken in the order of its lines.",
            )
        if len(found.rows) != n_samples:
            raise DataError(f"{asked.name}: {len(found.rows)} labels, but {n_samples} samples. Give one label per sample.")
    else:
        order = _by_name(contents, [row[0] for row in found.rows], request, asked)
    groups = contents.groups
    if request.groups is not None and groups is None:
        place = find(request.groups, found.header or [], "column", asked)
        groups = [found.rows[i][place] for i in order]
    return replace(
        contents,
        y=[found.rows[i][column] for i in order],
        groups=groups,
        target_name=found.header[column] if found.header else "",
        notes=(*contents.notes, *notes),
    )


def _split_rows(content: bytes, asked: Request) -> list[list[str]]:
    lines = decode(content, asked).split("\n")
    separator = find_separator(lines[0])
    # A single label may contain a blank but no separator: without one in the first line, there is one column.
    try:
        numbered = [(i + 1, row) for i, row in enumerate(csv.reader(lines, delimiter=separator)) if row]
    except csv.Error as error:
        raise DataError(f"{asked.name}: cannot be read ({error}). Save it again as CSV or TSV.") from error
    if not numbered:
        raise DataError(f"{asked.name}: the file is empty. Give one label per sample.")
    n_fields = len(numbered[0][1])
    for number, row in numbered:
        if len(row) != n_fields:
            raise DataError(f"{asked.name}: line {number} has {len(row)} fields. Every line must have {n_fields} fields.")
    return [row for _, row in numbered]


def _without_header(rows: list[list[str]], samples: list[str] | None, n_samples: int, asked: Request) -> LabelFile:
    """Split off the header, if there is one, according to the names or the number of the samples."""
    if any(name in rows[0] for name in (asked.target, asked.groups) if name is not None):
        return LabelFile(rows[0], rows[1:])
    if asked.target is not None and len(rows[0]) > 1:
        find(asked.target, rows[0], "column", asked)
    by_name = len(rows[0]) > 1 and samples is not None
    has_header = rows[0][0] not in (samples or []) if by_name else len(rows) == n_samples + 1
    return LabelFile(rows[0], rows[1:]) if has_header else LabelFile(None, rows)


def _label_column(found: LabelFile, asked: Request) -> int:
    n_columns = len(found.rows[0]) if found.rows else len(found.header or [])
    if asked.target is not None and found.header is not None:
        return find(asked.target, found.header, "column", asked)
    if n_columns > 2:
        named = listed(found.header[1:]) if found.header else f"{n_columns} of them"
        raise UnknownColumnError(f"{asked.name}: which column has the labels? Name it (--target COLUMN): {named}.")
    return n_columns - 1


def _by_name(contents: Contents, names: list[str], request: Request, asked: Request) -> list[int]:
    """Return the row of each sample; samples and rows must match one to one."""
    refuse_repeated(names, "sample", asked)
    samples = contents.sample_names or []
    place = {name: i for i, name in enumerate(names)}
    missing, known = [name for name in samples if name not in place], set(samples)
    hint = f" {TURN_HINT}" if set(names) & set(contents.feature_names) else ""
    if missing:
        raise DataError(
            f"{asked.name}: no label for {len(missing)} of {len(samples)} samples of {request.name}: {listed(missing)}. Add "
            f"them, or remove these samples.{hint}"
        )
    extra = [name for name in names if name not in known]
    if extra:
        raise DataError(
            f"{asked.name}: {len(extra)} labels for samples that are not in {request.name}: {listed(extra)}. Remove "
            f"them.{hint}"
        )
    return [place[name] for name in samples]
