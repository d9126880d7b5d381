"""Columns of cells of different types, as workbooks and Parquet files have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from l20fs.data.readers.cells import Cells, Columns, is_asked_for, is_ignored
from l20fs.data.readers.number_texts import as_number
from l20fs.data.readers.table import Request, require
from l20fs.typing import Decimal


def frame_of_columns(
    columns: Sequence[Any], names: Sequence[str], texts: dict[str, list[str]], request: Request
) -> tuple[Any, dict[str, list[str]]]:
    """Return columns as a DataFrame, with odd cells among numbers as numbers or missing, and the texts of some.

    Parameters
    ----------
    columns : sequence of pandas.Series or ndarray
        Numbers, or objects.
    names : sequence of str
        Name of each column.
    texts : dict
        Columns as text by name, which stay text. Numbers to predict have a decimal point afterwards.
    request : Request
        Decimal mark, and what stands for a missing value.
    """
    frame = require("pandas", "cli", request).DataFrame(dict(enumerate(columns)), copy=False)
    targets = [j for j, name in enumerate(names) if name == request.table_target and request.task == "regression"]

    def odd(frame: Any, mark: Decimal) -> Columns:
        found = [j for j, dtype in enumerate(frame.dtypes) if dtype.kind not in "biuf"]
        asked = [j for j in found if j in targets or (names[j] not in texts and not is_ignored(names[j], request))]
        return {j: frame[j].tolist() for j in asked}

    def is_asked(column: int) -> bool:
        return is_asked_for(names[column], request)

    def where(column: int, sample: int) -> str:
        return f"column {names[column]!r}, sample {sample + 1}"

    _, found, mark = Cells(lambda mark: frame, odd, is_asked, where, targets).read(".", request)
    read = {j: found.numbers.get(j, frame[j]) for j in range(frame.shape[1])}
    frame = require("pandas", "cli", request).DataFrame(read, copy=False).set_axis(list(names), axis=1)
    changed = {names[j]: [with_point(text, mark) for text in texts[names[j]]] for j in targets if mark == ","}
    return frame, {**texts, **changed}


def with_point(text: str, mark: Decimal) -> str:
    """Return a number with a decimal point; other texts, and cells that were numbers, stay as they are."""
    number = as_number(text, mark)
    return text if number is None else repr(number)


def without_values(column: Any, na: Sequence[str]) -> Any:
    """Return a column of numbers without those that stand for a missing value."""
    numbers = [number for number in map(as_number, na) if number is not None]
    return np.where(np.isin(column, numbers), np.nan, column) if numbers else column
