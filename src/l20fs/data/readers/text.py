"""Reader of CSV and TSV tables, with functions for the other text formats."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from l20fs.data.readers.frames import check_header, contents_of_frame, wanted_columns
from l20fs.data.readers.table import Contents, DataError, Request, first_line, require
from l20fs.data.readers.turned import are_samples_in_columns, check_rows, contents_of_rows

SEPARATORS = ("\t", ",", ";")

#: Memory that reading takes, in bytes per byte of text: the text three times, its fields, and the numbers twice. Measured: 8
#: for numbers of seven characters, and more for shorter ones.
MEMORY_PER_BYTE = 10


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
    numbers: list[int]
    quote: str = '"'

    def without(self, rows: set[int]) -> Lines:
        """Return the table without the given rows."""
        keep = [i for i in range(len(self.texts)) if i not in rows]
        return replace(
            self,
            texts=[self.texts[i] for i in keep],
            first=[self.first[i] for i in keep],
            numbers=[self.numbers[i] for i in keep],
        )

    def fields(self, row: int) -> list[str]:
        """Return the fields of one line."""
        return next(csv.reader(self.texts[row].split("\n"), delimiter=self.separator, quotechar=self.quote))


def read_text(content: bytes, request: Request) -> Contents:
    """Read a CSV or TSV file; the separator is detected in the header.

    If samples are in rows, a first column of text holds their names. If samples are in columns, the first column holds the
    names of features, and labels and groups are rows. Other texts are left out.
    """
    text = decode(content, request)
    lines = text.split("\n")
    if not lines[0].strip():
        raise DataError(f"{request.name}: the first line is empty. It must name the columns.")
    separator = find_separator(lines[0])
    table = split_lines(lines, separator, request)
    is_turned = are_samples_in_columns(table.header, table.first, request)
    return turned_contents(table, request) if is_turned else row_contents(table, request)


def decode(content: bytes, request: Request) -> str:
    """Decode UTF-8 text and normalise line ends, or raise an error that names the line."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{request.name}: not UTF-8 text (byte {error.start}, line {line}). Save it again as UTF-8."
        ) from error
    text = text.replace("\r\n", "\n") if "\r" in text else text
    for character, what in (("\0", "NUL bytes"), ("\r", "carriage returns without a line feed")):
        if character in text:
            line = text.count("\n", 0, text.index(character)) + 1
            raise DataError(f"{request.name}: holds {what}, first in line {line}. Save it again as CSV or TSV.")
    return text


def find_separator(line: str) -> str:
    """Return the separator of columns: a tab if there is one, since names contain commas and semicolons but no tabs."""
    return "\t" if "\t" in line else max(SEPARATORS, key=line.count)


def split_lines(lines: list[str], separator: str, request: Request, first_number: int = 1, quote: str = '"') -> Lines:
    """Split lines into header and table; every line must have as many fields as the header.

    pandas would pad short lines and truncate long ones. Fields are only counted, unless there are quotes.
    """
    found = records(lines, separator, quote, first_number, request)
    _, text, fields = next(found)
    header = text.split(separator) if fields is None else fields
    if len(header) < 2:
        raise DataError(f"{request.name}: one column only. Separate the columns by tab, comma or semicolon.")
    return collect(header, found, separator, quote, request)


def collect(
    header: list[str], records: Iterator[tuple[int, str, list[str] | None]], separator: str, quote: str, request: Request
) -> Lines:
    """Collect the lines below a header, after a check of their numbers of fields."""
    table = Lines(header, separator, [], [], [], quote)
    for number, text, fields in records:
        n_fields = text.count(separator) + 1 if fields is None else len(fields)
        if n_fields != len(header):
            raise DataError(
                f"{request.name}: line {number} has {n_fields} fields. Every line must have {len(header)} fields, as many "
                "as the header."
            )
        table.texts.append(text)
        table.first.append(text.split(separator, 1)[0] if fields is None else fields[0])
        table.numbers.append(number)
    if not table.texts:
        raise DataError(f"{request.name}: a header and no samples. Add lines of numbers.")
    return table


def records(
    lines: list[str], separator: str, quote: str, first_number: int, request: Request
) -> Iterator[tuple[int, str, list[str] | None]]:
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


def parse(table: Lines, text_columns: Sequence[int], request: Request, missing: Sequence[str] = ()) -> Any:
    """Parse all columns into a DataFrame; ``text_columns`` are kept as verbatim text."""
    pandas = require("pandas", "cli", request)
    try:
        frame = pandas.read_csv(
            io.BytesIO("\n".join(table.texts).encode()),
            sep=table.separator,
            header=None,  # the caller sets the names: pandas would rename empty or duplicate ones
            names=range(len(table.header)),
            index_col=False,
            converters=dict.fromkeys(text_columns, str),  # pandas would read a class called NA as missing
            quotechar=table.quote,
            na_values=list(missing),
            low_memory=False,  # faster by half for many columns
        )
    except (pandas.errors.ParserError, pandas.errors.ParserWarning, ValueError, OverflowError) as error:
        raise DataError(f"{request.name}: cannot be read ({first_line(error)}). Save it again as CSV or TSV.") from error
    if len(frame) != len(table.texts):  # an open quote, or a line of blanks
        raise DataError(f"{request.name}: {len(table.texts)} lines, but {len(frame)} rows. Look for open quotes.")
    return frame


def row_contents(table: Lines, request: Request, missing: Sequence[str] = ()) -> Contents:
    """Return the contents of a table with one sample per line."""
    check_header(table.header, request)
    columns = {table.header.index(name): name for name in (*wanted_columns(request), request.groups) if name in table.header}
    frame = parse(table, list(columns), request, missing)
    texts: dict[str, Sequence[str]] = {name: frame[column].tolist() for column, name in columns.items()}
    frame.columns = table.header
    return contents_of_frame(frame, {table.header[0]: table.first, **texts}, request, table.numbers)


def turned_contents(table: Lines, request: Request) -> Contents:
    """Return the contents of a table with one feature per line; labels and groups are rows."""
    rows = sample_rows(table, request)
    return feature_rows(table.without({table.first.index(name) for name in rows}), 1, rows, request)


def sample_rows(table: Lines, request: Request) -> dict[str, list[str]]:
    """Return the fields of the requested rows of labels and groups."""
    check_rows(table.first, request)
    return {
        name: table.fields(table.first.index(name)) for name in (request.table_target, request.groups) if name in table.first
    }


def feature_rows(table: Lines, n_names: int, rows: dict[str, list[str]], request: Request) -> Contents:
    """Return the contents of a table with one feature per line, whose first ``n_names`` columns are annotations.

    ``rows`` are the fields of the labels and the groups.
    """
    if not table.texts:
        raise DataError(f"{request.name}: no features besides the target. Add rows of numbers.")
    frame = parse(table, range(n_names), request).drop(columns=range(n_names))
    frame.columns = table.header[n_names:]
    texts = {name: fields[n_names:] for name, fields in rows.items()}
    return contents_of_rows(frame, table.first, texts, table.numbers, request)
