"""Tables as sheets of a workbook whose cells have types: a name stays text, whatever it looks like."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import pandas as pd

#: Limits of Excel: rows of a sheet, letters of a cell and of the name of a sheet.
MOST_ROWS, MOST_LETTERS, MOST_OF_NAME = 1_048_575, 32_767, 31


def write_workbook(stream: BinaryIO, sheets: Mapping[str, pd.DataFrame]) -> None:
    """Write tables as sheets, without their index."""
    from xlsxwriter import Workbook

    with Workbook(stream, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}) as book:
        book.set_properties({"created": datetime(2000, 1, 1)})  # the same results give the same bytes
        bold = book.add_format({"bold": True})
        for name, frame in sheets.items():
            sheet = book.add_worksheet(name[:MOST_OF_NAME])
            sheet.freeze_panes(1, 1)
            for column, heading in enumerate(map(str, frame.columns)):
                values = frame.iloc[:MOST_ROWS, column].tolist()
                sheet.write_string(0, column, heading[:MOST_LETTERS], bold)
                for row, value in enumerate(values, 1):
                    _write(sheet, row, column, value)
                widest = max([len(heading), *(len(str(value)) for value in values[:50])])
                sheet.set_column(column, column, min(50, widest + 2))


def _write(sheet: Any, row: int, column: int, value: Any) -> None:
    """Write a number as a number, and all else as text; nothing for a missing value."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if math.isfinite(value):
            sheet.write_number(row, column, value)
    elif value is not None:
        sheet.write_string(row, column, str(value)[:MOST_LETTERS])
