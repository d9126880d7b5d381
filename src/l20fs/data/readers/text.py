"""Reader of CSV and TSV tables, with functions for the other text formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from l20fs.data.readers.columns import read_columns
from l20fs.data.readers.encoding import decode
from l20fs.data.readers.frames import check_header, contents_of_frame, wanted_columns
from l20fs.data.readers.layout import find_layout
from l20fs.data.readers.lines import Lines, split_lines
from l20fs.data.readers.number_texts import likely_mark
from l20fs.data.readers.repeated import number_features
from l20fs.data.readers.rows import RowCells
from l20fs.data.readers.table import Contents, DataError, Request, first_line, require
from l20fs.data.readers.turned import are_samples_in_columns, check_rows, contents_of_rows
from l20fs.text import listed
from l20fs.typing import Decimal


def read_text(content: bytes, request: Request) -> Contents:
    """Read a CSV or TSV file; its encoding, separator, header and decimal mark are detected.

    If samples are in rows, a first column of text holds their names. If samples are in columns, the first column holds the
    names of features, and labels and groups are rows. Other texts are left out.
    """
    lines = decode(content, request).split("\n")
    del content  # each of these may be as large as the file
    layout = find_layout(lines, request)
    table = split_lines(layout.lines, layout.separator, request, layout.first_number, layout.is_short)
    del lines, layout
    is_turned = are_samples_in_columns(table.header, table.first, request)
    return turned_contents(table, request) if is_turned else row_contents(table, request)


def parse(
    table: Lines, text_columns: Sequence[int], request: Request, missing: Sequence[str] = (), mark: Decimal = "."
) -> Any:
    """Parse all columns into a DataFrame; ``text_columns`` are kept as verbatim text."""
    pandas = require("pandas", "cli", request)
    try:
        frame = pandas.read_csv(
            TextStream(table.texts),
            sep=table.separator,
            header=None,  # the caller sets the names: pandas would rename empty or duplicate ones
            names=range(len(table.header)),
            index_col=False,
            converters=dict.fromkeys(text_columns, _hidden),
            quotechar=table.quote,
            na_values=[*missing, *request.na],
            decimal=mark,
            low_memory=False,  # faster by half for many columns
        )
    except (pandas.errors.ParserError, pandas.errors.ParserWarning, ValueError, OverflowError) as error:
        raise DataError(f"{request.name}: cannot be read ({first_line(error)}). Save it again as CSV or TSV.") from error
    if len(frame) != len(table.texts):  # an open quote, or a line of blanks
        raise DataError(f"{request.name}: {len(table.texts)} lines, but {len(frame)} rows. Look for open quotes.")
    for column in text_columns:
        frame.isetitem(column, pandas.Series([text for (text,) in frame[column]], dtype=object))
    return frame


def _hidden(text: str) -> tuple[str]:
    """Return a text in a tuple; pandas would read a class called NA as missing, from 3 on even what a converter returns."""
    return (text,)


@dataclass
class TextStream:
    """Lines as a file for pandas, which reads it piece by piece: no copy of all lines is made."""

    lines: Sequence[str]
    place: int = 0

    def read(self, size: int = -1) -> str:
        """Return the next lines, of about ``size`` characters in all."""
        start, length = self.place, 0
        while self.place < len(self.lines) and (length < size or size < 0):
            length += len(self.lines[self.place]) + 1
            self.place += 1
        return "".join(f"{line}\n" for line in self.lines[start : self.place])

    def __iter__(self) -> Iterator[str]:
        """Yield all lines; pandas takes only what can do so for a file."""
        return iter(self.lines)


def row_contents(table: Lines, request: Request, missing: Sequence[str] = ()) -> Contents:
    """Return the contents of a table with one sample per line."""
    header = check_header(named(table.header), request)
    columns = {header.index(name): name for name in (*wanted_columns(request), *request.beside) if name in header}
    labels = set(request.beside) if request.task == "regression" else set(columns.values())
    frame, mark = read_columns(
        lambda mark: parse(table, list(columns), request, missing, mark),
        header,
        columns,
        lambda column, row: f"column {header[column]!r}, line {table.numbers[row]}",
        request,
        first=_first_mark(table, [name not in labels for name in header]),
        separator=table.separator,
        sample_names=0,
    )
    texts: dict[str, Sequence[str]] = {name: frame[column].tolist() for column, name in columns.items()}
    frame.columns = header
    frame = without_empty(frame, table.header, request)
    contents = contents_of_frame(frame, {header[0]: table.first, **texts}, request, table.numbers)
    return replace(contents, decimal=mark)


def named(header: Sequence[str]) -> list[str]:
    """Return a header in which columns without a name, except the first one, are called by their number.

    Examples
    --------
    >>> named(["", "TP53", " "])
    ['', 'TP53', 'column 3']
    """
    return [f"column {place + 1}" if place and not name.strip() else name for place, name in enumerate(header)]


def without_empty(frame: Any, header: Sequence[str], request: Request) -> Any:
    """Return a table without the columns that have neither names nor values; a note says which others have no names."""
    unnamed = [place for place, name in enumerate(header) if place and not name.strip()]
    empty = {place for place in unnamed if frame.iloc[:, place].isna().all()}
    others = [frame.columns[place] for place in unnamed if place not in empty]
    note_unnamed([] if request.needed is not None else others, request)
    return frame.drop(columns=frame.columns[sorted(empty)]) if empty else frame


def note_unnamed(names: Sequence[str], request: Request) -> None:
    """Keep a note on columns that have no names in the file."""
    if names:
        what = "1 column has no name and is" if len(names) == 1 else f"{len(names)} columns have no names and are"
        request.guess(None, None, f"{what} called {listed(names)}")


def _first_mark(table: Lines, is_value: Sequence[bool]) -> Decimal:
    """Return the decimal mark that the first lines show, in their columns of values."""
    first = [row for row, text in enumerate(table.texts[:5]) if table.separator != "," or table.quote in text]
    rows = [[cell for cell, is_one in zip(table.fields(row), is_value, strict=False) if is_one] for row in first]
    return likely_mark(rows)


def turned_contents(table: Lines, request: Request) -> Contents:
    """Return the contents of a table with one feature per line; labels and groups are rows."""
    rows = sample_rows(table, request)
    return feature_rows(table.without({table.first.index(name) for name in rows}), 1, rows, request)


def sample_rows(table: Lines, request: Request) -> dict[str, list[str]]:
    """Return the fields of the requested rows of labels and groups."""
    check_rows(table.first, request)
    return {
        name: table.fields(table.first.index(name))
        for name in (request.table_target, *request.beside)
        if name is not None and name in table.first
    }


def feature_rows(table: Lines, n_names: int, rows: dict[str, list[str]], request: Request) -> Contents:
    """Return the contents of a table with one feature per line, whose first ``n_names`` columns are annotations.

    ``rows`` are the fields of the labels and the groups. Numbers to predict have the decimal mark of the table.
    """
    if not table.texts:
        raise DataError(f"{request.name}: no features besides the target. Add rows of numbers.")
    features, samples = number_features(table.first, request), named(table.header)[n_names:]
    note_unnamed([name for name, given in zip(samples, table.header[n_names:], strict=True) if name != given], request)
    texts = {name: fields[n_names:] for name, fields in rows.items()}
    cells = RowCells(
        lambda mark: parse(table, range(n_names), request, mark=mark).drop(columns=range(n_names)),
        features,
        table.numbers,
        samples,
        texts.get(request.table_target or "") if request.task == "regression" else None,
        table.separator,
    )
    is_value = [j >= n_names for j in range(len(table.header))]
    frame, mark = cells.read(_first_mark(table, is_value), request)
    contents = contents_of_rows(frame.set_axis(samples, axis=1), features, texts, table.numbers, request)
    return replace(contents, decimal=mark)
