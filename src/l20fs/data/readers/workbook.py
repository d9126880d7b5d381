"""Excel workbooks: opened within limits, and the choice of a sheet."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from l20fs.data.readers.frames import wanted_columns
from l20fs.data.readers.limits import repack
from l20fs.data.readers.number_texts import is_number
from l20fs.data.readers.sheet_size import check_sheets
from l20fs.data.readers.table import DataError, Request, UnknownColumnError, first_line, require
from l20fs.text import did_you_mean

#: Memory that reading takes, in bytes per byte of the decompressed file.
MEMORY_PER_BYTE = 8

#: Rows that are looked at in the choice of a sheet.
FIRST_ROWS = 50

Cell = Any
Rows = list[list[Cell]]


def open_workbook(content: bytes, request: Request) -> Any:
    """Open a workbook, after a check of the memory that it takes."""
    calamine = require("python_calamine", "io", request)
    plain = whole(lambda: repack(content, request, MEMORY_PER_BYTE), request)
    whole(lambda: check_sheets(plain, request), request)
    return whole(lambda: calamine.CalamineWorkbook.from_filelike(io.BytesIO(plain)), request)


def whole(read: Callable[[], Any], request: Request) -> Any:
    """Return the result of a call, whose errors become one about a damaged file."""
    try:
        return read()
    except (DataError, UnknownColumnError, MemoryError):
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
