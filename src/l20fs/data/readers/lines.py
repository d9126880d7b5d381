"""Lines of text tables and their fields."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from l20fs.data.readers.limits import check_cells
from l20fs.data.readers.table import DataError, Request

#: Number and text of a line, and its fields if it has quotes.
Record = tuple[int, str, list[str] | None]


@dataclass(frozen=True)
class Lines:
    """Header and lines of a table; every line has as many fields as the header."""

    header: list[str]
    separator: str
    #: Verbatim lines; a quoted field with a line break spans several lines of the file.
    texts: list[str]
    #: First field of each line.
    first: list[str]
    #: Line number in the file, counted from 1.
    numbers: Sequence[int]
    quote: str = '"'

    def without(self, rows: set[int]) -> Lines:
        """Return the table without the given rows."""
        keep = [i for i in range(len(self.texts)) if i not in rows]
        return replace(
            self,
            texts=[self.texts[i] for i in keep],
            first=[self.first[i] for i in keep],
            numbers=array("q", (self.numbers[i] for i in keep)),
        )

    def fields(self, row: int) -> list[str]:
        """Return the fields of one line."""
        return next(csv.reader(self.texts[row].split("\n"), delimiter=self.separator, quotechar=self.quote))


def records(lines: list[str], separator: str, quote: str, first_number: int, request: Request) -> Iterator[Record]:
    """Yield number and text of each line that is not empty, and its fields if it has quotes."""
    position = 0

    def following() -> Iterator[str]:
        nonlocal position
        while position < len(lines):
            position += 1
            yield lines[position - 1] + "\n"

    while position < len(lines):
        start, position = position, position + 1
        line = lines[start]
        if quote in line:
            try:
                # A quoted field may continue in the next lines.
                fields = next(csv.reader(chain([line + "\n"], following()), delimiter=separator, quotechar=quote))
            except csv.Error as error:
                raise DataError(
                    f"{request.name}: line {start + first_number} cannot be read ({error}). Save it again as CSV."
                ) from error
            yield start + first_number, "\n".join(lines[start:position]), fields
        elif line:
            yield start + first_number, line, None


def split_lines(lines: list[str], separator: str, request: Request, first_number: int = 1, is_short: bool = False) -> Lines:
    """Split lines into header and table; every line must have as many fields as the header.

    ``is_short``: the header lacks the name of the first column, as R writes it.
    """
    found = records(lines, separator, '"', first_number, request)
    _, text, fields = next(found, (0, "", None))
    names = text.split(separator) if fields is None else fields
    header = [*([""] if is_short else []), *map(request.asked_name, names)]
    if len(header) < 2:
        raise DataError(
            f"{request.name}: one column only. Separate the columns by tab, comma or semicolon; if there are lines above "
            "the header, say how many (--skip-rows N)."
        )
    return collect(header, found, separator, '"', request)


def collect(header: list[str], records: Iterator[Record], separator: str, quote: str, request: Request) -> Lines:
    """Collect the lines below a header, after a check of their numbers of fields; empty ones are left out.

    pandas would pad short lines and truncate long ones. Fields are only counted, unless there are quotes.
    """
    numbers = array("q")
    table = Lines(header, separator, [], [], numbers, quote)
    n_named = len(header) - n_last_empty(header)
    blanks = f"{separator} "
    for number, text, fields in records:
        if not (text.strip(blanks) if fields is None else any(field.strip() for field in fields)):
            continue
        n_fields = text.count(separator) + 1 if fields is None else len(fields)
        if n_fields != len(header):
            text = _fit(text, number, n_fields, n_named, table, request)
        table.texts.append(text)
        table.first.append(text.split(separator, 1)[0] if fields is None else fields[0])
        numbers.append(number)
    if not table.texts:
        raise DataError(f"{request.name}: a header and no samples. Add lines of numbers.")
    check_cells(sum(map(len, table.texts)), len(table.texts), len(table.texts) * len(header), request)
    return _without_last_empty(table, len(header) - n_named)


def n_last_empty(fields: Sequence[str]) -> int:
    """Return the number of empty fields at the end."""
    return next((place for place, field in enumerate(reversed(fields)) if field.strip()), len(fields))


def _fit(text: str, number: int, n_fields: int, n_named: int, table: Lines, request: Request) -> str:
    """Return a line with as many fields as the header, if only empty ones are missing or left over."""
    n_more = n_fields - len(table.header)
    if n_more > 0 and text.endswith(table.separator * n_more):
        return text[: -n_more * len(table.separator)]
    if n_named <= n_fields < len(table.header):
        return text + table.separator * -n_more
    raise DataError(
        f"{request.name}: line {number} has {n_fields} fields. Every line must have {len(table.header)} fields, as many "
        "as the header."
    )


def _without_last_empty(table: Lines, n_last: int) -> Lines:
    """Return the table without those of its last ``n_last`` columns, which have no names, that are empty in all lines."""
    texts = table.texts
    for text in texts:
        if not n_last:
            return table
        n_last = _end_of_fields(text, n_last, table)[0]
    return replace(
        table,
        header=table.header[: len(table.header) - n_last],
        texts=[text[: _end_of_fields(text, n_last, table)[1]] for text in texts],
    )


def _end_of_fields(text: str, most: int, table: Lines) -> tuple[int, int]:
    """Return how many of the last fields of a line are empty, also in quotes, up to ``most``; and where the others end."""
    end, empty = len(text), 2 * table.quote
    for number in range(most):
        start = end - len(empty) if text.endswith(empty, 0, end) else end
        if not text.endswith(table.separator, 0, start):
            return number, end
        end = start - len(table.separator)
    return most, end
