"""Cells of tables with one feature per row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from l20fs.data.readers.cells import Cells, Columns
from l20fs.data.readers.frames import is_numeric, make_frame
from l20fs.data.readers.number_texts import are_numbers, plain_numbers
from l20fs.data.readers.selection import is_asked_for, is_ignored
from l20fs.data.readers.table import Request
from l20fs.typing import Array, Decimal

#: Number of the row of the target.
TARGET = -1


@dataclass(frozen=True)
class RowCells:
    """Cells of a table with one feature per row and one sample per column, some columns of which may be descriptions.

    Attributes
    ----------
    parse : callable
        Parses the table with a decimal mark: all columns except those of names.
    names : sequence of str
        Name of each row.
    lines : sequence of int
        Line of each row in the file.
    samples : sequence of str
        Name of each column.
    target : sequence of str or None
        Numbers to predict, as text: they have the same decimal mark.
    separator : str
        Separator of the columns.
    """

    parse: Callable[[Decimal], Any]
    names: Sequence[str]
    lines: Sequence[int]
    samples: Sequence[str]
    target: Sequence[str] | None
    separator: str

    def read(self, first: Decimal, request: Request) -> tuple[Any, Decimal]:
        """Return the table, with odd cells among numbers as numbers or missing, and the decimal mark.

        ``first`` is the decimal mark to try first. Columns of descriptions stay as they are; if there are rows of text, the
        other columns hold texts in these rows and numbers elsewhere.
        """
        cells = Cells(
            self.parse,
            lambda frame, mark: self._odd(frame, mark, request),
            lambda row: is_asked_for(self.names[row], request),
            self._where,
            [TARGET],
            self.separator,
        )
        frame, found, mark = cells.read(first, request)
        kept, numbers, is_odd = _values(frame, mark, request)
        if not is_odd.any():
            return frame, mark
        for row, values in found.numbers.items():
            numbers[row] = values
        texts = [row for row in np.flatnonzero(is_odd.any(axis=1)).tolist() if row not in found.numbers]
        cleaned = numbers.astype(object) if texts else numbers
        cleaned[texts] = frame.iloc[texts].to_numpy(dtype=object)
        columns = {j: cleaned[:, j] if j in kept else frame.iloc[:, j] for j in range(frame.shape[1])}
        return make_frame(columns, request).set_axis(frame.columns, axis=1), mark

    def _odd(self, frame: Any, mark: Decimal, request: Request) -> Columns:
        """Return the cells of those rows that hold anything else than numbers, and the target."""
        kept, _, is_odd = _values(frame, mark, request)
        rows = [row for row in np.flatnonzero(is_odd.any(axis=1)).tolist() if not is_ignored(self.names[row], request)]
        cells = frame.iloc[rows].to_numpy(dtype=object, copy=True)
        cells[:, [j not in kept for j in range(frame.shape[1])]] = None
        found: dict[int, Sequence[Any]] = {} if self.target is None else {TARGET: self.target}
        return found | dict(zip(rows, cells.tolist(), strict=True))

    def _where(self, row: int, sample: int) -> str:
        name = "the target" if row == TARGET else f"row {self.names[row]!r}, line {self.lines[row]}"
        return f"{name}, sample {self.samples[sample]!r}"


def _values(frame: Any, mark: Decimal, request: Request) -> tuple[set[int], Array, Array]:
    """Return which columns hold values, their plain numbers, and which of their other cells are not empty."""
    if all(is_numeric(dtype) for dtype in frame.dtypes):
        return set(range(frame.shape[1])), np.zeros((0, 0)), np.zeros((0, 0), dtype=bool)
    kept = set()
    numbers = np.full(frame.shape, np.nan)
    is_odd = np.zeros(frame.shape, dtype=bool)
    for place, dtype in enumerate(frame.dtypes):
        column = frame.iloc[:, place]
        if is_numeric(dtype):
            kept.add(place)
            numbers[:, place] = column
            continue
        numbers[:, place] = plain_numbers(column.tolist(), mark, request)
        odd = (np.isnan(numbers[:, place]) & column.notna()).to_numpy()
        if 2 * odd.sum() <= len(odd) or are_numbers(column.tolist()[:100]):
            kept.add(place)
            is_odd[:, place] = odd
    return kept, numbers, is_odd
