"""Reader of Excel workbooks (.xlsx), based on python-calamine."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from l20fs.data.readers.columns import frame_of_columns, with_point, without_values
from l20fs.data.readers.frames import check_header, contents_of_frame, make_frame
from l20fs.data.readers.layout import MOST_LINES, find_header, note_skipped
from l20fs.data.readers.repeated import number_features
from l20fs.data.readers.rows import RowCells
from l20fs.data.readers.table import Contents, DataError, Request, require
from l20fs.data.readers.text import named, without_empty
from l20fs.data.readers.turned import are_samples_in_columns, check_rows, contents_of_rows
from l20fs.data.readers.workbook import Cell, choose_sheet, open_workbook, placed_rows


def read_excel(content: bytes, request: Request) -> Contents:
    """Read one sheet of a workbook: ``request.sheet``, or the one that has what is asked for."""
    pandas = require("pandas", "cli", request)
    workbook = open_workbook(content, request)
    sheet = choose_sheet(workbook, request)
    rows = table_rows(*placed_rows(workbook, sheet, request), sheet, request)
    header = [request.asked_name(as_text(cell)) for cell in rows[0]]
    first = [as_text(row[0]) for row in rows[1:]]
    columns = list(zip(*rows[1:], strict=True))
    if are_samples_in_columns(header, first, request):
        return _turned(rows[1:], first, named(header)[1:], request)
    names = check_header(named(header), request)
    kept = {names[0], request.target, *request.beside}
    texts = {name: [as_text(cell) for cell in columns[j]] for j, name in enumerate(names) if name in kept}
    frame, texts = frame_of_columns([_series(column, request, pandas) for column in columns], names, texts, request)
    frame = without_empty(frame, header, request)
    return contents_of_frame(frame, texts, request)


def _turned(rows: list[list[Cell]], first: list[str], samples: list[str], request: Request) -> Contents:
    """Return the contents of a sheet with one feature per row; labels and groups are rows."""
    check_rows(first, request)
    first = number_features(first, request)
    pandas, kept = require("pandas", "cli", request), {request.target, *request.beside}
    texts = {name: [as_text(cell) for cell in row[1:]] for name, row in zip(first, rows, strict=True) if name in kept}
    places = [place for place, name in enumerate(first) if name not in texts]
    columns = zip(*(rows[place][1:] for place in places), strict=True)
    frame = make_frame({j: _series(column, request, pandas) for j, column in enumerate(columns)}, request)
    features, lines = [first[place] for place in places], [place + 2 for place in places]
    target = request.table_target or ""
    predicted = texts.get(target) if request.task == "regression" else None
    frame, mark = RowCells(lambda mark: frame, features, lines, samples, predicted, "").read(".", request)
    if predicted is not None and mark == ",":
        texts[target] = [with_point(text, mark) for text in predicted]
    return contents_of_rows(frame.set_axis(samples[: frame.shape[1]], axis=1), features, texts, lines, request)


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
            note_skipped(n_skipped, "row", next(filter(str.strip, texts[0])), request)
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
