"""Layout of a table in a text: separator of the columns, lines above the header, header of R."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from l20fs.data.readers.limits import check_memory
from l20fs.data.readers.lines import n_last_empty, records
from l20fs.data.readers.number_texts import is_number
from l20fs.data.readers.table import DataError, Request
from l20fs.text import by_number, counted

#: In the order in which they are preferred, if as many lines have the same number of fields. Names and numbers contain
#: commas more often than semicolons, and hardly ever tabs.
SEPARATORS = ("\t", ";", ",", "|")

#: Lines by which the layout is decided; long ones, of more than so many characters, are fewer.
MOST_LINES, MOST_LONG, LONG = 30, 5, 10_000

#: Memory of a field of one of these lines, as a text of its own, while the layout is looked for.
MEMORY_PER_FIELD = 120

#: Columns by which a line of numbers is recognised.
MOST_COLUMNS = 200

#: Beginnings of comments, and of what the Gene Expression Omnibus writes above and below a table.
COMMENTS = ("#", "!")
END_OF_SERIES = "!series_matrix_table_end"

#: A field of a text that is separated by blanks.
BLANK_SEPARATED = re.compile(r'"(?:[^"]|"")*"|\S+')

Row = Sequence[str]


@dataclass(frozen=True)
class Layout:
    """Lines of a table from its header on, and how they are separated."""

    lines: list[str]
    separator: str
    #: Number of the header in the file, counted from 1.
    first_number: int
    #: Whether the header lacks the name of the first column, as in R.
    is_short: bool


def find_layout(lines: list[str], request: Request) -> Layout:
    """Return the layout of a table; what is skipped above the header is noted."""
    lines = _without_end(lines)
    n_above = request.skip_rows if request.skip_rows is not None else _n_comments(lines)
    first = next((place for place in range(n_above, len(lines)) if lines[place].strip()), None)
    if first is None:
        said = f" below line {request.skip_rows} (--skip-rows {request.skip_rows})" if request.skip_rows else ""
        raise DataError(f"{request.name}: the file is empty{said}. It needs a header, and lines of numbers.")
    head = _head(lines[first:])
    check_memory(MEMORY_PER_FIELD * sum(max(map(line.count, (*SEPARATORS, " "))) for line in head), request)
    separator = find_separator(lines[first:], request)
    if separator == " ":
        lines = lines[:first] + ["\t".join(BLANK_SEPARATED.findall(line)) for line in lines[first:]]
        separator = "\t"
    numbers, rows = _sample(lines[first:], separator, request, first)
    place, is_short = find_header(rows, numbers, request)
    n_skipped = numbers[place]
    above = [line for line in lines[:n_skipped] if line.strip()]
    if request.skip_rows is None and above:
        note_skipped(n_skipped, "line", above[0], request)
    if is_short:
        request.note("the header is one field short, as R writes it, so the first column holds names.")
    return Layout(lines[n_skipped:], separator, n_skipped + 1, is_short)


def note_skipped(number: int, what: str, first: str, request: Request) -> None:
    """Keep a note on lines or rows above the header; ``first`` is the text of the first one."""
    skipped = f"{counted(number, what)} above the header {by_number(number, 'was', 'were')} skipped"
    request.guess("skip_rows", number, f"{skipped}, first {first.strip()[:40]!r}")


def _without_end(lines: list[str]) -> list[str]:
    """Return the lines of a series of the Gene Expression Omnibus without the end mark of its table."""
    for place in range(len(lines) - 1, max(len(lines) - MOST_LINES, 0), -1):
        if lines[place].startswith(END_OF_SERIES):
            return lines[:place]
    return lines


def _n_comments(lines: list[str]) -> int:
    """Return the number of comments above the header; a comment may itself be the header, if it has the same fields."""
    place = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith(COMMENTS)), len(lines))
    above = next((i for i in range(place - 1, -1, -1) if lines[i].strip()), None)
    if above is None or lines[above].startswith("!") or place == len(lines):
        return place
    names, values = ([*re.split(r"[\t;,|]", lines[i])] for i in (above, place))
    return above if len(names) == len(values) > 1 and any(map(is_number, values)) else place


def find_separator(lines: list[str], request: Request, with_blanks: bool = True) -> str:
    """Return the separator by which most of the first lines have the same number of fields: at least two.

    Runs of blanks separate where nothing else does; without any, there is one column, and the separator is a comma.
    """
    head = _head(lines)
    n_alike = {separator: _n_alike(_counts(head, separator, request)) for separator in SEPARATORS}
    best = max(SEPARATORS, key=lambda separator: n_alike[separator])
    if with_blanks:
        blanks = _n_alike([len(BLANK_SEPARATED.findall(line)) for line in head if line.strip()])
        n_lines = sum(bool(line.strip()) for line in head)
        is_better = blanks[0] == n_lines > n_alike[best][0] and blanks[1] >= n_alike[best][1]  # such as 1,5 2,5
        if is_better or 2 * n_alike[best][0] < n_lines < 2 * blanks[0]:
            return " "
    return best if n_alike[best][0] else ","


def _head(lines: list[str]) -> list[str]:
    """Return the lines by which the layout is decided."""
    n_long = np.cumsum([len(line) > LONG for line in lines[:MOST_LINES]])
    return lines[: int(np.count_nonzero(n_long <= MOST_LONG))]


def _counts(head: list[str], separator: str, request: Request) -> list[int]:
    """Return the number of fields of each line that is not empty."""
    try:
        return [
            text.count(separator) + 1 if fields is None else len(fields)
            for _, text, fields in records(head, separator, '"', 1, request)
            if text.strip(f"{separator} ")
        ]
    except DataError:  # a line that cannot be read with this separator
        return []


def _n_alike(counts: list[int]) -> tuple[int, int]:
    """Return how many lines have the most frequent number of fields, which is at least two, and that number."""
    frequency = Counter(count for count in counts if count > 1)
    return max(((n_lines, count) for count, n_lines in frequency.items()), default=(0, 0))


def _sample(lines: list[str], separator: str, request: Request, start: int) -> tuple[list[int], list[Row]]:
    """Return the place in the file and the fields of the first lines that are not empty."""
    found = records(_head(lines), separator, '"', start, request)
    every = [(number, text.split(separator) if fields is None else fields) for number, text, fields in found if text.strip()]
    rows = [(number, row) for number, row in every if any(map(str.strip, row))] or every
    return [number for number, _ in rows], [row for _, row in rows]


def find_header(rows: Sequence[Row], numbers: Sequence[int], request: Request) -> tuple[int, bool]:
    """Return the place of the header among the first rows of a table, and whether it lacks the name of the first column.

    Titles above it have fewer fields than the rows of the table, or fewer that are filled.

    Parameters
    ----------
    rows : sequence of sequences of str
        Fields of the first rows that are not empty.
    numbers : sequence of int
        Number of each row in the file, counted from 0.
    request : Request
        ``skip_rows``: the header is the first of the rows.

    Examples
    --------
    >>> from pathlib import Path
    >>> request = Request(Path("a.csv"))
    >>> find_header([["Made in March"], ["type", "a"], ["u", "1"]], [0, 1, 2], request)
    (1, False)
    >>> find_header([["type", "a"], ["s1", "u", "1"], ["s2", "v", "2"]], [0, 1, 2], request)
    (0, True)
    """
    width = max(len(row) - n_last_empty(row) for row in rows)
    rows = [row[:width] for row in rows]
    n_fields = _n_alike([len(row) for row in rows])[1]
    filled = [sum(map(bool, map(str.strip, row))) for row in rows]
    usual = median([n for n, row in zip(filled, rows, strict=True) if len(row) == n_fields] or [0])
    is_table = [
        len(row) >= n_fields and 2 * n >= usual and not (n == 1 and n_fields > 2 and row[0].strip())
        for row, n in zip(rows, filled, strict=True)
    ]
    place = 0 if request.skip_rows is not None else next((i for i, is_row in enumerate(is_table) if is_row), 0)
    body = place + (len(rows[place]) == n_fields - 1)  # of a header that lacks a name, if it is said where it is
    above = body - 1
    is_short = n_fields > 2 and 0 <= above and len(rows[above]) == n_fields - 1
    if is_short and (_is_data(rows, body) or _are_labels(rows[body], request)):
        return above, True
    _refuse_shifted(rows, place, numbers, request)
    if place and _is_data(rows, place):
        if len(rows[place - 1]) == n_fields:
            return place - 1, False
        raise DataError(
            f"{request.name}: line {numbers[place] + 1} is the first with {n_fields} fields, as most lines have, but holds "
            "numbers and no names. Correct the header above it, or say how many lines are above the header (--skip-rows N)."
        )
    return place, False


def _refuse_shifted(rows: Sequence[Row], place: int, numbers: Sequence[int], request: Request) -> None:
    """Raise an error if the last column has values and no name, and the first one has names and texts below: R's header?"""
    header, below = rows[place], [row for row in rows[place + 1 :] if len(row) == len(rows[place])]
    is_named = len(header) > 2 and n_last_empty(header) == 1 and all(map(str.strip, header[:-1]))
    if not is_named or header[0] == request.table_target or 2 * sum(bool(row[-1].strip()) for row in below) <= len(below):
        return
    names = [row[0] for row in below if not is_number(row[0])]
    if 2 * len(names) > len(below) and 2 * len(set(names)) > len(names):
        raise DataError(
            f"{request.name}: the last column has values, but no name in line {numbers[place] + 1}: either that name is "
            "missing, or that of the first column, as in tables of R. Add the one that is missing."
        )


def _are_labels(row: Row, request: Request) -> bool:
    """Return whether a row is that of labels or groups in a table with samples in columns, and so is no header."""
    return row[0] in (request.table_target, *request.beside) and len(set(row)) < len(row)


def _is_data(rows: Sequence[Row], place: int) -> bool:
    """Return whether a row has numbers where the rows below it have some, and so is no header."""
    if place >= len(rows):
        return False
    row, below = rows[place][:MOST_COLUMNS], rows[place + 1 : place + 6]
    columns: Sequence[int] = range(1, len(row))
    if below:
        are_numbers = [[is_number(field) for field in other[: len(row)]] for other in below]
        columns = [j for j in range(len(row)) if 2 * sum(j < len(other) and other[j] for other in are_numbers) >= len(below)]
    return len(columns) > 0 and 2 * sum(is_number(row[j]) for j in columns) >= len(columns)
