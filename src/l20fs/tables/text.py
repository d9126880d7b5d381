"""Texts as tables: encoding, separator, titles and header, and the numbers in the lines below."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, compress
from statistics import median

import numpy as np

from l20fs.tables import memory
from l20fs.tables.errors import first_line
from l20fs.tables.numbers import MISSING, MISSING_IN_USE, is_number_like, shown_mark, shows
from l20fs.tables.table import Reading, Table
from l20fs.text import by_number, counted
from l20fs.typing import Array

#: Encodings by the marks with which files begin; UTF-32 before UTF-16, whose mark is the beginning of its own.
MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)

#: The encoding of Windows in Western Europe and America, which is assumed where a text is not UTF-8.
ASSUMED = "cp1252"

#: Characters that no table holds: controls, except tabs and line ends.
CONTROL = re.compile(r"[\0-\x08\x0e-\x1f]")

#: In the order in which they are preferred, if as many lines have the same number of fields.
SEPARATORS = ("\t", ";", ",", "|")

#: Lines by which the layout is decided, fewer of long ones; columns by which a line of numbers is recognised.
MOST_LINES, MOST_LONG, LONG, MOST_COLUMNS = 30, 5, 10_000, 200

#: Beginnings of comments, and of what the Gene Expression Omnibus writes above and below a table.
COMMENTS, END_OF_SERIES = ("#", "!"), "!series_matrix_table_end"

#: A field of a text that is separated by blanks.
BLANK_SEPARATED = re.compile(r'"(?:[^"]|"")*"|\S+')

#: Memory that reading takes: per byte, line and cell. A packed file may grow so much, whatever its size, or so many times.
PER_BYTE, PER_LINE, PER_CELL, FREE_BYTES, MOST_GROWTH = 5, 300, 24, 2**30, 200

#: Cells that are converted at once, and that are looked at to tell texts from numbers.
CELLS_AT_ONCE, MOST_SAMPLED = 50_000, 100_000

#: A line: its number in the file, its text, and its fields if it has quotes.
Record = tuple[int, str, list[str] | None]


# Bytes to lines


def unpacked(content: bytes, reading: Reading) -> bytes:
    """Return content without the compression of gzip, piece by piece: a bomb is refused before it has grown."""
    if content[:2] != b"\x1f\x8b":
        return content
    pieces, size, most = [], 0, max(FREE_BYTES, MOST_GROWTH * len(content))
    limit = memory.limit(reading)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            while piece := stream.read(2**20):
                pieces.append(piece)
                size += len(piece)
                if size > most or (limit is not None and PER_BYTE * size > limit):
                    allowed = min(most, limit or most)
                    raise reading.error(
                        f"needs about {memory.format_bytes(PER_BYTE * size)} of memory and more, from "
                        f"{memory.format_bytes(len(content))} in gzip; {memory.format_bytes(allowed)} are allowed. "
                        "Unpack it "
                        "yourself if you trust it, or use a larger machine."
                    )
    except (OSError, EOFError, zlib.error) as error:
        raise reading.error(f"damaged gzip file ({first_line(error)}). Copy it again.") from error
    return b"".join(pieces)


def wide_encoding(head: bytes) -> str | None:
    """Return UTF-16 or UTF-32 if a file begins with its mark, or if every other byte is NUL, as in UTF-16 without one.

    Examples
    --------
    >>> wide_encoding("type,a".encode("utf-16")), wide_encoding("type,a".encode("utf-16-be")), wide_encoding(b"type,a")
    ('utf-16', 'utf-16-be', None)
    """
    marked = _marked(head)
    if marked is not None or len(head) < 8:
        return None if marked == "utf-8-sig" else marked
    low, high = head[:4096:2], head[1:4096:2]
    for encoding, zeros, letters in (("utf-16-le", high, low), ("utf-16-be", low, high)):
        if 10 * zeros.count(0) >= 9 * len(zeros) and not letters.count(0):
            return encoding
    return None


def _marked(head: bytes) -> str | None:
    return next((encoding for mark, encoding in MARKS if head.startswith(mark)), None)


def decode(content: bytes, reading: Reading) -> str:
    """Return a text with line feeds, or raise an error that names the line that cannot be read."""
    head = content[: 2**18]  # how many lines and cells there are is estimated from the beginning
    share = len(content) / max(1, len(head))
    n_cells = share * max(head.count(each.encode()) for each in SEPARATORS)
    n_lines = share * max(head.count(b"\n"), head.count(b"\r"))
    memory.check(int(PER_BYTE * len(content) + PER_LINE * n_lines + PER_CELL * n_cells), reading)
    text = _decoded(content, reading)
    if "\r" in text:
        text = text.replace("\r\r\n", "\n").replace("\r\n", "\n")
        text = text if "\n" in text else text.replace("\r", "\n")  # as on Macintosh until 2001
    for character, what in (("\0", "NUL bytes"), ("\r", "carriage returns without a line feed")):
        if character in text:
            line = text.count("\n", 0, text.index(character)) + 1
            raise reading.error(f"holds {what}, first in line {line}. Save it again as CSV or TSV.")
    return text


def _decoded(content: bytes, reading: Reading) -> str:
    """Return a text in the encoding that is said, or that the bytes show."""
    said = reading.input.encoding
    encoding = said or wide_encoding(content[:4096])
    try:
        text = content.decode(encoding or "utf-8-sig").removeprefix("\ufeff")
        if encoding is not None and said is None and _marked(content) is None:
            reading.say(f"every other byte is NUL, so it was read as {encoding.upper()}")
        return text
    except UnicodeDecodeError as error:
        n_above = content.count(b"\n", 0, error.start)
        where = f"byte {error.start}, line {n_above + 1}"
    except (LookupError, ValueError) as error:
        raise reading.error(f"{said!r} is no encoding of text ({first_line(error)}). Use utf-8 or cp1252, say.") from error
    way_out = "Save it again as UTF-8, or name its encoding: --config input.encoding=NAME."
    if encoding is not None:
        raise reading.error(f"not {encoding} text ({where}). {way_out}")
    try:
        text = content.decode(ASSUMED)
    except UnicodeDecodeError:
        text = "\0"
    if CONTROL.search(text):
        raise reading.error(f"not UTF-8 text ({where}), nor that of Windows. {way_out}")
    reading.say(f"not UTF-8 text ({where}), so it was read as that of Windows, {ASSUMED} (--config input.encoding=NAME)")
    return text


@contextmanager
def long_fields() -> Iterator[None]:
    """Let the csv module take fields of any length, which Python limits to 131 072 characters."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def records(lines: Sequence[str], separator: str, reading: Reading, number: int = 1, quote: str = '"') -> Iterator[Record]:
    """Yield number and text of each line that is not empty, and its fields if it has quotes; a field may have line "
    "breaks."""
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
                with long_fields():
                    fields = next(csv.reader(chain([line + "\n"], following()), delimiter=separator, quotechar=quote))
            except csv.Error as error:
                raise reading.error(f"line {start + number} cannot be read ({error}). Save it again as CSV.") from error
            yield start + number, "\n".join(lines[start:position]), fields
        elif line:
            yield start + number, line, None


# Lines to a header


@dataclass(frozen=True)
class Layout:
    """Lines of a table from its header on, and how they are separated."""

    lines: Sequence[str]
    separator: str
    #: Number of the header in the file, counted from 1.
    number: int
    #: Whether the header lacks the name of the first column, as in R.
    is_short: bool


def find_layout(lines: list[str], reading: Reading) -> Layout:
    """Return the layout of a table; what is skipped above the header is said."""
    for place in range(len(lines) - 1, max(len(lines) - MOST_LINES, 0), -1):
        if lines[place].startswith(END_OF_SERIES):
            lines = lines[:place]
            break
    first = next((place for place in range(_n_comments(lines), len(lines)) if lines[place].strip()), None)
    if first is None:
        raise reading.error("the file is empty. It needs a header, and lines of numbers.")
    separator = find_separator(lines[first:], reading)
    if separator == " ":
        lines = lines[:first] + ["\t".join(BLANK_SEPARATED.findall(line)) for line in lines[first:]]
        separator = "\t"
    found = [record for record in records(_head(lines[first:]), separator, reading, first) if record[1].strip()]
    every = [(number, text.split(separator) if fields is None else fields) for number, text, fields in found]
    rows = [(number, row) for number, row in every if any(map(str.strip, row))] or every
    place, is_short = find_header([row for _, row in rows], [number for number, _ in rows], reading)
    n_above = rows[place][0]
    above = [line for line in lines[:n_above] if line.strip()]
    if above:
        say_skipped(n_above, "line", above[0], reading)
    if is_short:
        reading.say("the header is one field short, as R writes it, so the first column holds names")
    return Layout(lines[n_above:], separator, n_above + 1, is_short)


def say_skipped(number: int, what: str, first: str, reading: Reading) -> None:
    """Say that lines or rows above the header were skipped; ``first`` is the text of the first one."""
    skipped = f"{counted(number, what)} above the header {by_number(number, 'was', 'were')} skipped"
    reading.say(f"{skipped}, first {first.strip()[:40]!r}")


def _n_comments(lines: Sequence[str]) -> int:
    """Return the number of comments above the header; one may itself be the header, as in tables of QIIME."""
    place = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith(COMMENTS)), len(lines))
    above = next((i for i in range(place - 1, -1, -1) if lines[i].strip()), None)
    if above is None or lines[above].startswith("!") or place == len(lines):
        return place
    names, *rows = (re.split(r"[\t;,|]", lines[i]) for i in (above, *range(place, min(len(lines), place + 5))))
    has_numbers = any(is_number_like(field) for row in rows for field in row[1:])
    return above if len(names) == len(rows[0]) > 1 and has_numbers else place


def find_separator(lines: Sequence[str], reading: Reading, with_blanks: bool = True) -> str:
    """Return the separator by which most of the first lines have the same number of fields: at least two.

    Runs of blanks separate where nothing else does; without any, there is one column, and the separator is a comma.
    """
    head = _head(lines)
    alike = {separator: _n_alike(_n_fields(head, separator, reading)) for separator in SEPARATORS}
    best = max(SEPARATORS, key=lambda separator: alike[separator])
    if with_blanks:
        blanks = _n_alike([len(BLANK_SEPARATED.findall(line)) for line in head if line.strip()])
        n_lines = sum(bool(line.strip()) for line in head)
        is_better = blanks[0] == n_lines > alike[best][0] and blanks[1] >= alike[best][1]  # such as 1,5 2,5
        if is_better or 2 * alike[best][0] < n_lines < 2 * blanks[0]:
            return " "
    return best if alike[best][0] else ","


def _head(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines by which the layout is decided."""
    n_long = np.cumsum([len(line) > LONG for line in lines[:MOST_LINES]])
    return lines[: int(np.count_nonzero(n_long <= MOST_LONG))]


def _n_fields(head: Sequence[str], separator: str, reading: Reading) -> list[int]:
    """Return the number of fields of each line that is not empty; none if they cannot be read with this separator."""
    try:
        return [
            text.count(separator) + 1 if fields is None else len(fields)
            for _, text, fields in records(head, separator, reading)
            if text.strip(f"{separator} ")
        ]
    except ValueError:
        return []


def _n_alike(counts: Sequence[int]) -> tuple[int, int]:
    """Return how many lines have the most frequent number of fields, which is at least two, and that number."""
    frequency = Counter(count for count in counts if count > 1)
    return max(((n_lines, count) for count, n_lines in frequency.items()), default=(0, 0))


def find_header(rows: Sequence[Sequence[str]], numbers: Sequence[int], reading: Reading) -> tuple[int, bool]:
    """Return the place of the header among the first rows of a table, and whether it lacks the name of the first column.

    Titles above it have fewer fields than the rows of the table, or fewer that are filled. ``numbers`` are those of the rows
    in the file, counted from 0.
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
    place = next((i for i, is_row in enumerate(is_table) if is_row), 0)
    above = place - 1
    if n_fields > 2 and above >= 0 and len(rows[above]) == n_fields - 1:
        is_of_labels = rows[place][0] in reading.about and len(set(rows[place])) < len(rows[place])
        if is_of_labels or _is_data(rows, place):
            return above, True
    _refuse_shifted(rows, place, numbers, reading)
    if place and _is_data(rows, place):
        if len(rows[above]) == n_fields:
            return above, False
        raise reading.error(
            f"line {numbers[place] + 1} is the first with {n_fields} fields, as most lines have, but holds numbers and no "
            "names. Correct the header above it."
        )
    return place, False


def _refuse_shifted(rows: Sequence[Sequence[str]], place: int, numbers: Sequence[int], reading: Reading) -> None:
    """Raise an error if the last column has values and no name, and the first one has names and texts below: R's header?"""
    header, below = rows[place], [row for row in rows[place + 1 :] if len(row) == len(rows[place])]
    is_named = len(header) > 2 and n_last_empty(header) == 1 and all(map(str.strip, header[:-1]))
    if not is_named or header[0] == reading.table_target or 2 * sum(bool(row[-1].strip()) for row in below) <= len(below):
        return
    names = [row[0] for row in below if not is_number_like(row[0])]
    if 2 * len(names) > len(below) and 2 * len(set(names)) > len(names):
        raise reading.error(
            f"the last column has values, but no name in line {numbers[place] + 1}: either that name is missing, or that of "
            "the first column, as in tables of R. Add the one that is missing."
        )


def _is_data(rows: Sequence[Sequence[str]], place: int) -> bool:
    """Return whether a row has numbers where the rows below it have some, and so is no header."""
    row, below = rows[place][:MOST_COLUMNS], rows[place + 1 : place + 6]
    columns: Sequence[int] = range(1, len(row))
    if below:
        are_numbers = [[is_number_like(field) for field in other[: len(row)]] for other in below]
        columns = [j for j in range(len(row)) if 2 * sum(j < len(other) and other[j] for other in are_numbers) >= len(below)]
    return len(columns) > 0 and 2 * sum(is_number_like(row[j]) for j in columns) >= len(columns)


def n_last_empty(fields: Sequence[str]) -> int:
    """Return the number of empty fields at the end."""
    return next((place for place, field in enumerate(reversed(fields)) if field.strip()), len(fields))


# Lines to cells


def read_text(content: bytes, reading: Reading) -> Table:
    """Return the cells of a CSV or TSV file."""
    lines = decode(content, reading).split("\n")
    del content  # as large as the lines
    layout = find_layout(lines, reading)
    del lines
    return table_of(layout, reading)


def table_of(layout: Layout, reading: Reading, n_described: int = 0, n_about: int = 0) -> Table:
    """Return the cells of a table, of which ``n_described`` columns and ``n_about`` rows at the beginning are "
    "annotations."""
    found = records(layout.lines, layout.separator, reading, layout.number)
    number, text, fields = next(found, (0, "", None))
    names = text.split(layout.separator) if fields is None else fields
    header = [
        *([""] if layout.is_short else []),
        *(name.strip() if name.strip() in reading.about else name for name in names),
    ]
    if len(header) < 2:
        raise reading.error(
            f"one column only, in line {number}. Separate the columns by tab, comma or semicolon, and have no lines "
            "above the "
            "header."
        )
    return Lines(header, layout.separator, found, reading).table(n_described, n_about, has_names=layout.is_short)


class Lines:
    """Lines below a header, each of which has as many fields as the header."""

    def __init__(
        self, header: list[str], separator: str, found: Iterator[Record], reading: Reading, quote: str = '"'
    ) -> None:
        self.separator, self.reading, self.quote = separator, reading, quote
        self.records: list[Record] = []
        n_named = len(header) - n_last_empty(header)
        blanks = f"{separator} "
        for number, text, fields in found:
            if not (text.strip(blanks) if fields is None else any(field.strip() for field in fields)):
                continue
            n_fields = text.count(separator) + 1 if fields is None else len(fields)
            if n_fields != len(header):
                _, text, fields = self._fitted(number, text, fields, n_fields, n_named, len(header))
            self.records.append((number, text, fields))
        if not self.records:
            raise reading.error("a header and no samples. Add lines of numbers.")
        self.header = header

    def _fitted(self, number: int, text: str, fields: list[str] | None, n: int, n_named: int, n_header: int) -> Record:
        """Return text and fields of a line that has as many as the header, if only empty ones are missing or left over."""
        cells = text.split(self.separator) if fields is None else fields
        if not (n_named <= n < n_header or (n > n_header and not any(cells[n_header:]))):
            raise self.reading.error(
                f"line {number} has {n} fields. Every line must have {n_header} fields, as many as the header."
            )
        cells = (cells + [""] * n_header)[:n_header]
        return number, self.separator.join(cells), None if fields is None else cells

    def fields(self, row: int) -> list[str]:
        """Return the fields of one line."""
        _, text, fields = self.records[row]
        return text.split(self.separator) if fields is None else fields

    def table(self, n_described: int = 0, n_about: int = 0, *, has_names: bool = False) -> Table:
        """Return the cells as a table: numbers, and the texts of all that are none."""
        reading, names = self.reading, self.header
        first = [text.split(self.separator, 1)[0] if fields is None else fields[0] for _, text, fields in self.records]
        rows = {} if set(reading.wanted) <= set(names) and reading.wanted else dict(self._wanted_rows(first))
        sample = [self.fields(row) for row in self._sampled(n_about) if row not in rows]
        sample = [row for row in sample if any(map(is_number_like, row[1:]))] or sample or [[""] * len(names)]
        last = self._n_unused(sample)
        is_plain = np.array([[_is_plain(cell) for cell in row] for row in sample])
        odd = np.flatnonzero(~is_plain.all(axis=0)).tolist()
        texts = [j for j in range(1, len(names)) if self._is_asked(j, n_described)]
        texts = sorted({*texts, *(j for j in odd if j and self._is_text([row[j] for row in sample]))})
        about = set(range(n_about)) | rows.keys()
        mark = reading.input.decimal or shown_mark(row[j] for row in sample for j in odd if j not in texts)
        plain = [
            cell for row, are in zip(sample, is_plain, strict=True) for cell in compress(row[1:], are[1:]) if "." in cell
        ]
        has_points = any(shows(cell, ".") for cell in plain)
        mark = "." if has_points and reading.input.decimal is None else mark
        parsed = Numbers(self, texts, about, mark)
        if plain and not has_points and mark == "." and reading.input.decimal is None and self.separator != ",":
            self._refuse_thousands(parsed.values, plain[0])
        kept = range(1, len(names) - last)
        table = Table(
            names[0],
            names[1:],
            first,
            parsed.values,
            parsed.odd,
            {j - 1: parsed.texts[j] for j in texts},
            {row: fields[1:] for row, fields in rows.items()},
            [number for number, _, _ in self.records],
            self.separator,
            mark,
            has_names=has_names,
        )
        gone = [row for row in range(n_about) if row not in rows]
        table = table.keep([j - 1 for j in kept if not (j <= n_described and names[j] not in reading.about)])
        return table if not gone else table.turned().keep([i for i in range(len(first)) if i not in gone]).turned()

    def _refuse_thousands(self, values: Array, cell: str) -> None:
        """Raise an error if all points may be between thousands, and whole numbers beside them make that likely."""
        fractions = np.abs(values[np.mod(values, 1.0) > 0.0])
        are_groups = (
            len(fractions) > 0 and fractions.min() >= 1.0 and np.allclose(fractions * 1000, np.rint(fractions * 1000))
        )
        if are_groups and np.any(np.mod(values, 1.0) == 0.0):
            raise self.reading.error(
                f"{cell.strip()!r} may have a decimal point or a point between thousands. Say which: --config "
                "input.decimal=. or --config input.decimal=,"
            )

    def _wanted_rows(self, first: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows that are asked for by name, if samples may be in columns."""
        for row, name in enumerate(first):
            if name.strip() in self.reading.about:
                yield row, self.fields(row)

    def _sampled(self, n_about: int) -> Sequence[int]:
        """Return the rows by which columns of text and the decimal mark are found: the first ones and some others."""
        n_rows = len(self.records)
        most = max(3, min(MOST_LINES, MOST_SAMPLED // len(self.header)))
        first = range(n_about, min(n_rows, n_about + most))
        return first if len(first) + n_about == n_rows else [*first, *range(n_about + most, n_rows, -(-n_rows // most))]

    def _n_unused(self, sample: Sequence[Sequence[str]]) -> int:
        """Return the number of columns at the end that have neither a name nor values."""
        n_last = min([n_last_empty(self.header), *map(n_last_empty, sample)])
        if n_last:
            n_last = min(n_last, *(n_last_empty(self.fields(row)) for row in range(len(self.records))))
        return n_last

    def _is_asked(self, column: int, n_described: int) -> bool:
        """Return whether a column is read as texts whatever it holds: asked for, or an annotation."""
        return self.reading.verbatim or column <= n_described or self.header[column] in self.reading.about

    @staticmethod
    def _is_text(cells: Sequence[str]) -> bool:
        """Return whether most of the filled cells of a column are texts."""
        filled = [cell for cell in cells if cell.strip().lower() not in MISSING | MISSING_IN_USE]
        return len(filled) > 0 and 2 * sum(not is_number_like(cell) for cell in filled) > len(filled)


def _is_plain(cell: str) -> bool:
    """Return whether a cell is a number with a decimal point, or without one."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


class Numbers:
    """Numbers in lines: whole blocks are converted at once, and only lines with other cells are looked at one by one."""

    def __init__(self, lines: Lines, texts: Sequence[int], about: set[int], mark: str) -> None:
        self.separator, self.mark = lines.separator, mark
        self.n_columns = len(lines.header) - 1
        among = set(texts)
        self.numeric = [j for j in range(1, len(lines.header)) if j not in among]
        self.texts: dict[int, list[str]] = {j: [] for j in texts}
        self.values = np.empty((len(lines.records), self.n_columns))
        self.values[sorted(about)] = self.values[:, np.array(texts, dtype=np.intp) - 1] = np.nan
        self.odd: dict[tuple[int, int], str] = {}
        self._has_gaps = False
        self._cut = self._cutter(len(lines.header), texts)
        self._columns = np.array(self.numeric, dtype=np.intp) - 1
        self._is_plain = len(self.numeric) == self.n_columns
        n_at_once = max(1, CELLS_AT_ONCE // max(1, len(self.numeric)))
        waiting: list[tuple[int, str]] = []
        for row, (_, text, fields) in enumerate(lines.records):
            cells = self._cells(row, text, fields)
            if row in about or not self.numeric:
                continue
            if isinstance(cells, list):
                self._read_cells(row, cells)
                continue
            waiting.append((row, cells))
            if len(waiting) == n_at_once:
                self._read(waiting)
                waiting = []
        self._read(waiting)

    def _cutter(self, n_fields: int, texts: Sequence[int]) -> tuple[int, int] | None:
        """Return the number of text columns at the beginning and at the end; None if there are others between."""
        among = set(texts)
        left = next((j for j in range(1, n_fields) if j not in among), n_fields)
        right = next((j for j in range(n_fields) if n_fields - 1 - j not in among), n_fields)
        return (left, right) if left - 1 + right >= len(texts) else None

    def _cells(self, row: int, text: str, fields: list[str] | None) -> str | list[str]:
        """Keep the texts of a line, and return its other cells: joined, or as a list if they cannot be joined."""
        if fields is None and self._cut is not None:
            left, right = self._cut
            parts = text.split(self.separator, left)
            rest = parts[left] if left < len(parts) else ""
            ends = rest.rsplit(self.separator, right) if right and self.numeric else [rest]
            for j, cell in zip(self.texts, [*parts[1:left], *ends[1:]], strict=True):
                self.texts[j].append(cell)
            return ends[0]
        every = text.split(self.separator) if fields is None else fields
        for j in self.texts:
            self.texts[j].append(every[j])
        cells = [every[j] for j in self.numeric]
        joined = self.separator.join(cells)
        return joined if joined.count(self.separator) + 1 == len(cells) and "\n" not in joined else cells

    def _read(self, waiting: Sequence[tuple[int, str]]) -> None:
        """Convert some lines; those that cannot be converted together are taken one by one."""
        if not waiting:
            return
        found = self._converted([text for _, text in waiting])
        if found is not None:
            rows = [row for row, _ in waiting]
            if self._is_plain:
                self.values[rows] = found
            else:
                self.values[np.ix_(np.array(rows), self._columns)] = found
        elif len(waiting) > 1:
            for each in waiting:
                self._read([each])
        else:
            row, text = waiting[0]
            self._read_cells(row, text.split(self.separator))

    def _converted(self, texts: list[str]) -> Array | None:
        """Return the numbers of lines, None if one of them has a cell that is neither a number nor empty."""
        if self.mark == ",":
            if any("." in text for text in texts):
                return None
            texts = [text.replace(",", ".") for text in texts]
        for has_gaps in [True] if self._has_gaps else [False, True]:
            some = [_with_nan(text, self.separator) for text in texts] if has_gaps else texts
            if len(self.numeric) == 1 and not all(map(str.strip, some)):  # a blank line would be skipped
                continue
            try:
                found = np.loadtxt(some, delimiter=self.separator, comments=None, ndmin=2)
            except ValueError:
                continue
            if found.shape == (len(texts), len(self.numeric)):
                self._has_gaps = has_gaps
                return found
        return None

    def _read_cells(self, row: int, cells: Sequence[str]) -> None:
        """Convert the cells of a line, and keep the texts of those that are no plain numbers."""
        self.values[row] = np.nan
        for j, cell in zip(self.numeric, cells, strict=True):
            plain = cell.replace(",", ".") if self.mark == "," and "." not in cell else cell
            try:
                if "_" in plain or not plain.isascii() or (self.mark == "," and "." in cell):
                    raise ValueError
                self.values[row, j - 1] = float(plain)
            except ValueError:
                if cell.strip():
                    self.odd[row, j - 1] = cell


def _with_nan(text: str, separator: str) -> str:
    """Return a line in which empty cells, and those that hold NA, are NaN."""
    text = f"{separator}{text}{separator}"
    for word in (f"{separator}{separator}", f"{separator}NA{separator}"):
        for _ in range(2):  # neighbours share a separator
            text = text.replace(word, f"{separator}nan{separator}")
    return text[1:-1]


def as_rows(content: bytes, reading: Reading) -> list[tuple[int, list[str]]]:
    """Return the fields of all lines of a small table, with the numbers of the lines."""
    lines = decode(content, reading).split("\n")
    separator = find_separator(lines, reading, with_blanks=False)  # a label may contain a blank
    return [
        (n, text.split(separator) if fields is None else fields) for n, text, fields in records(lines, separator, reading)
    ]
