"""Reader of Excel workbooks (.xlsx), based on python-calamine."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import Any

import numpy as np

from l20fs.data.readers.frames import check_header, contents_of_frame
from l20fs.data.readers.limits import repack
from l20fs.data.readers.table import Contents, DataError, Request, find, first_line, require
from l20fs.data.readers.turned import are_samples_in_columns, check_rows, contents_of_rows

#: Memory that reading takes, in bytes per byte of the decompressed file.
MEMORY_PER_BYTE = 8

Cell = Any


def read_excel(content: bytes, request: Request) -> Contents:
    """Read one sheet of a workbook: the first one, or ``request.sheet``."""
    calamine = require("python_calamine", "io", request)
    pandas = require("pandas", "cli", request)
    try:
        workbook = calamine.CalamineWorkbook.from_filelike(io.BytesIO(repack(content, request, MEMORY_PER_BYTE)))
        sheets = workbook.sheet_names
        sheet = sheets[0] if request.sheet is None else sheets[find(request.sheet, sheets, "sheet", request)]
        rows = workbook.get_sheet_by_name(sheet).to_python(skip_empty_area=True)
    except ValueError:
        raise
    except Exception as error:  # of zipfile, zlib and calamine, which has errors of its own
        raise DataError(f"{request.name}: not a whole Excel file ({first_line(error)}). Save it again.") from error
    rows = [row for row in rows if any(cell != "" for cell in row)]
    if len(rows) < 2 or len(rows[0]) < 2:
        raise DataError(f"{request.name}: sheet {sheet!r} holds no table. It needs a header, and rows of numbers.")
    header, first = [as_text(cell) for cell in rows[0]], [as_text(row[0]) for row in rows[1:]]
    kept = {request.target, request.groups}
    if are_samples_in_columns(header, first, request):
        check_rows(first, request)
        texts = {
            name: [as_text(cell) for cell in row[1:]] for name, row in zip(first, rows[1:], strict=True) if name in kept
        }
        places = [place for place, name in enumerate(first) if name not in texts]
        frame = _frame([rows[place + 1][1:] for place in places], header[1:], pandas)
        found = contents_of_rows(frame, [first[place] for place in places], texts, [place + 2 for place in places], request)
    else:
        check_header(header, request)
        texts = {name: [as_text(row[j]) for row in rows[1:]] for j, name in enumerate(header) if name in kept or not j}
        found = contents_of_frame(_frame(rows[1:], header, pandas), texts, request)
    many = f"{request.name} has {len(sheets)} sheets; {sheet!r} was read."
    return replace(found, notes=(many,) if len(sheets) > 1 and request.sheet is None else ())


def _frame(rows: list[list[Cell]], header: list[str], pandas: Any) -> Any:
    frame = pandas.DataFrame({j: _series(column, pandas) for j, column in enumerate(zip(*rows, strict=True))}, copy=False)
    frame.columns = header[: frame.shape[1]]
    return frame


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
