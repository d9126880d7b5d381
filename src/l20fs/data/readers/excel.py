"""Reader of Excel workbooks (.xlsx), based on python-calamine."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from l20fs.data.readers.frames import check_header, contents_of_frame
from l20fs.data.readers.layout import MOST_LINES, find_header
from l20fs.data.readers.mixed import frame_of_columns, without_values
from l20fs.data.readers.table import Contents, DataError, Request, require
from l20fs.data.readers.text import named, without_empty
from l20fs.data.readers.workbook import Cell, choose_sheet, open_workbook, placed_rows


def read_excel(content: bytes, request: Request) -> Contents:
    """Read one sheet of a workbook: ``request.sheet``, or the one that has what is asked for."""
    pandas = require("pandas", "cli", request)
    workbook = open_workbook(content, request)
    sheet = choose_sheet(workbook, request)
    rows = table_rows(*placed_rows(workbook, sheet, request), sheet, request)
    if request.samples_in == "columns":
        rows = [list(row) for row in zip(*rows, strict=True)]
    header, columns = [as_text(cell) for cell in rows[0]], list(zip(*rows[1:], strict=True))
    names = check_header(named(header), request)
    kept = {names[0], request.target, request.groups}
    texts = {name: [as_text(cell) for cell in columns[j]] for j, name in enumerate(names) if name in kept}
    frame, texts = frame_of_columns([_series(column, request, pandas) for column in columns], names, texts, request)
    frame = without_empty(frame, header, request)
    return contents_of_frame(frame, texts, request, has_names=request.samples_in == "columns")


def table_rows(n_above: int, rows: list[list[Cell]], sheet: str, request: Request) -> list[list[Cell]]:
    """Return the rows of a sheet from its header on, without empty ones, and without the empty columns at the end.

    ``n_above`` rows of the sheet are above the given ones.
    """
    filled = [place for place, row in enumerate(rows) if any(not _is_empty(cell) for cell in row)]
    filled = [place for place in filled if place + n_above >= (request.skip_rows or 0)]
    if len(filled) > 1:
        texts = [[as_text(cell) for cell in rows[place]] for place in filled[:MOST_LINES]]
        header, _ = find_header(texts, [place + n_above for place in filled], request)
        if header:
            n_skipped = filled[header] + n_above
            what = "1 row above the header was" if n_skipped == 1 else f"{n_skipped} rows above the header were"
            request.guess("skip_rows", n_skipped, f"{what} skipped, first {next(filter(str.strip, texts[0]))[:40]!r}")
        filled = filled[header:]
    rows = [rows[place] for place in filled]
    n_columns = max((j + 1 for row in rows for j, cell in enumerate(row) if not _is_empty(cell)), default=0)
    if len(rows) < 2 or n_columns < 2:
        raise DataError(f"{request.name}: sheet {sheet!r} holds no table. It needs a header, and rows of numbers.")
    return [row[:n_columns] for row in rows]


def _is_empty(cell: Cell) -> bool:
    return isinstance(cell, str) and not cell.strip()


def _series(cells: tuple[Cell, ...], request: Request, pandas: Any) -> Any:
    """Return a column as numbers, with NaN for empty cells, or as objects if it holds anything else."""
    if all(isinstance(cell, int | float) or cell == "" for cell in cells):
        numbers = np.array([math.nan if cell == "" else cell for cell in cells], dtype=np.float64)
        return pandas.Series(without_values(numbers, request.na))
    return pandas.Series(cells, dtype=object)


def as_text(cell: Cell) -> str:
    """Return a cell as text; a name that Excel converted to a date as year-month-day.

    Examples
    --------
    >>> import datetime
    >>> as_text("TP53"), as_text(44256.0), as_text(0.5), as_text(datetime.date(2021, 3, 1))
    ('TP53', '44256', '0.5', '2021-03-01')
    """
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
