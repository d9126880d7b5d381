"""Excel workbooks: opened within limits, and the choice of a sheet."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterable
from typing import Any

from l20fs.blocks.memory import format_bytes
from l20fs.data.readers.frames import wanted_columns
from l20fs.data.readers.limits import memory_for, repack
from l20fs.data.readers.number_texts import is_number
from l20fs.data.readers.table import DataError, Request, UnknownColumnError, first_line, require
from l20fs.text import did_you_mean

#: Memory that reading takes, in bytes per byte of the decompressed file, and per cell between the first and the last one.
MEMORY_PER_BYTE, MEMORY_PER_CELL = 8, 40

#: Rows that are looked at in the choice of a sheet.
FIRST_ROWS = 50

#: A row or a cell that is not empty, in the XML of a sheet, and its reference; and the reference as Excel writes it, of an
#: empty cell or not, which is found three times as fast. The time is linear, also for elements of any length.
FILLED = re.compile(rb"<(?:\w+:)?(?:c|row)(\s[^<>]*)(?<!/)>")
REFERENCE = re.compile(rb"""\sr\s*=\s*["']([A-Za-z]*)(\d+)["']""")
USUAL_REFERENCE = re.compile(rb'<(?:c|row) r="([A-Za-z]*)(\d+)"')
ELEMENT = re.compile(rb"<(?:\w+:)?(?:c|row)\s")

Cell = Any
Rows = list[list[Cell]]


def open_workbook(content: bytes, request: Request) -> Any:
    """Open a workbook, after a check of the memory that it takes."""
    calamine = require("python_calamine", "io", request)
    plain = whole(lambda: repack(content, request, MEMORY_PER_BYTE), request)
    whole(lambda: _refuse_stray_cells(plain, request), request)
    return whole(lambda: calamine.CalamineWorkbook.from_filelike(io.BytesIO(plain)), request)


def whole(read: Callable[[], Any], request: Request) -> Any:
    """Return the result of a call, whose errors become one about a damaged file."""
    try:
        return read()
    except (DataError, UnknownColumnError):
        raise
    except Exception as error:  # of zipfile, zlib and calamine, which has errors of its own
        raise DataError(f"{request.name}: not a whole Excel file ({first_line(error)}). Save it again.") from error


def sheet_rows(workbook: Any, sheet: str, request: Request, most: int | None = None) -> Rows:
    """Return the cells of a sheet from the first to the last used one."""
    return placed_rows(workbook, sheet, request, most)[1]


def placed_rows(workbook: Any, sheet: str, request: Request, most: int | None = None) -> tuple[int, Rows]:
    """Return the number of rows above the first used cell of a sheet, and its cells from there on."""

    def read() -> tuple[int, Rows]:
        found = workbook.get_sheet_by_name(sheet)
        return (found.start or (0, 0))[0], found.to_python(skip_empty_area=True, nrows=most)

    return whole(read, request)


def choose_sheet(workbook: Any, request: Request, option: str = "sheet", fits: Callable[[Rows], bool] | None = None) -> str:
    """Return the sheet that ``option`` of the request names, or the one to read.

    If several sheets hold something, that is the first one that fits, or else the first one that looks like a table.

    Parameters
    ----------
    workbook : CalamineWorkbook
        The open workbook.
    request : Request
        File and options.
    option : {"sheet", "labels_sheet"}
        Option that names the sheet.
    fits : callable, optional
        Whether the first rows of a sheet have what is asked for; None: target and groups, or a needed feature.

    Returns
    -------
    str
        Name of the sheet.
    """
    sheets, named = list(workbook.sheet_names), getattr(request, option)
    if not sheets:
        raise DataError(f"{request.name}: a workbook without sheets. Save it again.")
    everything = ", ".join(map(repr, sheets))
    if named is not None:
        if named not in sheets:
            near = did_you_mean(named, sheets)
            near = f"{near} " if near.startswith("Did") else ""
            raise UnknownColumnError(f"{request.name} has no sheet {named!r}. {near}Its sheets: {everything}.")
        return str(named)
    heads = {sheet: _filled(sheet_rows(workbook, sheet, request, FIRST_ROWS)) for sheet in sheets}
    filled = [sheet for sheet in sheets if heads[sheet]]
    if len(filled) < 2:
        return (filled or sheets)[0]
    suits = fits or (lambda rows: has_wanted(rows, request))
    fitting = [sheet for sheet in filled if suits(heads[sheet])]
    chosen = (fitting or [sheet for sheet in filled if looks_like_table(heads[sheet])] or filled)[0]
    why = " has what is asked for and" if fitting else ""
    request.guess(option, chosen, f"its sheets are {everything}; {chosen!r}{why} was read")
    return chosen


def _filled(rows: Rows) -> Rows:
    """Return the rows that are not empty."""
    return [row for row in rows if any(str(cell).strip() for cell in row)]


def has_wanted(rows: Rows, request: Request) -> bool:
    """Return whether a sheet names target and groups, or a needed feature: in a row, or down its first column."""
    places = (row[:1] for row in rows) if request.samples_in == "columns" else rows
    present = {str(cell) for row in places for cell in row}
    wanted = set(wanted_columns(request))
    return (bool(wanted) and wanted <= present) or not present.isdisjoint(request.needed or ())


def looks_like_table(rows: Rows) -> bool:
    """Return whether a sheet has rows of numbers, as a legend has not.

    Examples
    --------
    >>> looks_like_table([["gene", "s1"], ["TP53", 1.5]]), looks_like_table([["Key", "Meaning"], ["T", "tumour"]])
    (True, False)
    """
    cells = [cell for row in rows[1:] for cell in row[1:] if cell != ""]
    n_numbers = sum(isinstance(cell, int | float) or is_number(str(cell)) for cell in cells)
    return bool(cells) and 2 * n_numbers >= len(cells)


def _refuse_stray_cells(plain: bytes, request: Request) -> None:
    """Raise an error if the first and the last cell of a sheet are so far apart that all cells between do not fit.

    The cells between are allocated, and the process would end without a message.
    """
    most = memory_for(request)
    with zipfile.ZipFile(io.BytesIO(plain)) as archive:
        for entry in archive.namelist():
            if not entry.startswith("xl/worksheets/") or most is None:
                continue
            xml = archive.read(entry)
            n_rows, n_columns = _extent(USUAL_REFERENCE.finditer(xml))
            is_usual = xml.count(b'<c r="') + xml.count(b'<row r="') == len(ELEMENT.findall(xml))
            if not is_usual or MEMORY_PER_CELL * n_rows * n_columns > most:
                n_rows, n_columns = _extent(each for one in FILLED.finditer(xml) for each in REFERENCE.finditer(one[1]))
            needed = MEMORY_PER_CELL * n_rows * n_columns
            if needed > most:
                raise DataError(
                    f"{request.name}: a sheet has cells as far as row {n_rows}, column {n_columns}, which would take "
                    f"{format_bytes(needed)} of memory, and {format_bytes(most)} are there. Delete the cells beyond the "
                    "table, or save the sheet as CSV."
                )


def _extent(references: Iterable[re.Match[bytes]]) -> tuple[int, int]:
    """Return the last row and the last column with a cell."""
    columns, rows = {b""}, {b"0"}
    for found in references:
        columns.add(found[1])
        rows.add(found[2])
    return max(map(int, rows)), max(map(_number, columns))


def _number(letters: bytes) -> int:
    """Return the number of a column, 1 for A."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number
