"""Reader of Excel workbooks (.xlsx), based on python-calamine."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from l20fs.data.readers.frames import check_header, contents_of_frame
from l20fs.data.readers.table import Contents, DataError, Request, require
from l20fs.data.readers.workbook import Cell, choose_sheet, open_workbook, sheet_rows


def read_excel(content: bytes, request: Request) -> Contents:
    """Read one sheet of a workbook: ``request.sheet``, or the one that has what is asked for."""
    pandas = require("pandas", "cli", request)
    workbook = open_workbook(content, request)
    sheet = choose_sheet(workbook, request)
    rows = sheet_rows(workbook, sheet, request)
    if len(rows) < 2 or len(rows[0]) < 2:
        raise DataError(f"{request.name}: sheet {sheet!r} holds no table. It needs a header, and rows of numbers.")
    if request.samples_in == "columns":
        rows = [list(row) for row in zip(*rows, strict=True)]
    header, columns = [as_text(cell) for cell in rows[0]], list(zip(*rows[1:], strict=True))
    check_header(header, request)
    frame = pandas.DataFrame({j: _series(column, pandas) for j, column in enumerate(columns)}, copy=False)
    frame.columns = header
    kept = {header[0], request.target, request.groups}
    texts = {name: [as_text(cell) for cell in columns[j]] for j, name in enumerate(header) if name in kept}
    return contents_of_frame(frame, texts, request, has_names=request.samples_in == "columns")


def _series(cells: tuple[Cell, ...], pandas: Any) -> Any:
    """Return a column as numbers, with NaN for empty cells, or as objects if it holds anything else."""
    if all(isinstance(cell, int | float) or cell == "" for cell in cells):
        return pandas.Series([math.nan if cell == "" else cell for cell in cells], dtype=np.float64)
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
