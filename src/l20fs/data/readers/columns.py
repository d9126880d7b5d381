"""Cells of tables with one feature per column."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from l20fs.data.readers.cells import Cells, Columns
from l20fs.data.readers.frames import is_numeric, make_frame
from l20fs.data.readers.number_texts import as_number
from l20fs.data.readers.selection import is_asked_for, is_ignored
from l20fs.data.readers.table import Request
from l20fs.typing import Decimal


def read_columns(
    parse: Callable[[Decimal], Any],
    names: Sequence[str],
    texts: Collection[int],
    where: Callable[[int, int], str],
    request: Request,
    *,
    first: Decimal = ".",
    separator: str = "",
    sample_names: int | None = None,
) -> tuple[Any, Decimal]:
    """Return all columns, with odd cells among numbers as numbers or missing, and the decimal mark.

    Parameters
    ----------
    parse : callable
        Parses the table with a decimal mark into a DataFrame with numbered columns.
    names : sequence of str
        Name of each column.
    texts : collection of int
        Columns that stay text: labels, groups, names of samples.
    where : callable
        Describes the place of a cell, given its column and row.
    request : Request
        Decimal mark, and what stands for a missing value.
    first, separator, sample_names
        The mark to try first, and as in :class:`~l20fs.data.readers.cells.Cells` ``separator`` and ``names``.
    """
    targets = [j for j in texts if names[j] == request.table_target and request.task == "regression"]

    def odd(frame: Any, mark: Decimal) -> Columns:
        others = [j for j, dtype in enumerate(frame.dtypes) if not is_numeric(dtype)]
        kept = [j for j in others if j in targets or (j not in texts and not is_ignored(names[j], request))]
        return {j: frame[j].to_numpy() for j in kept}

    def is_asked(column: int) -> bool:
        return is_asked_for(names[column], request)

    frame, found, mark = Cells(parse, odd, is_asked, where, targets, separator, sample_names).read(first, request)
    if found.numbers:
        columns = {j: found.numbers[j] if j in found.numbers else frame[j] for j in frame.columns}
        frame = make_frame(columns, request)
    return frame, mark


def frame_of_columns(
    columns: Sequence[Any], names: Sequence[str], texts: dict[str, list[str]], request: Request
) -> tuple[Any, dict[str, list[str]]]:
    """Return columns of a workbook or a Parquet file as a DataFrame, read as :func:`read_columns` does, and the texts.

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
    frame = make_frame(dict(enumerate(columns)), request)
    kept = [j for j, name in enumerate(names) if name in texts]
    frame, mark = read_columns(
        lambda mark: frame, names, kept, lambda column, row: f"column {names[column]!r}, sample {row + 1}", request
    )
    if mark == "," and request.task == "regression" and request.table_target in texts:
        target = request.table_target
        texts = texts | {target: [with_point(text, mark) for text in texts[target]]}
    return frame.set_axis(list(names), axis=1), texts


def with_point(text: str, mark: Decimal) -> str:
    """Return a number with a decimal point; other texts, and cells that were numbers, stay as they are."""
    number = as_number(text, mark)
    return text if number is None else repr(number)


def without_values(column: Any, na: Sequence[str]) -> Any:
    """Return a column of numbers without those that stand for a missing value."""
    numbers = [number for number in map(as_number, na) if number is not None]
    return np.where(np.isin(column, numbers), np.nan, column) if numbers else column
