"""The one cleaning: cells that are no plain numbers become numbers or gaps, column by column, or the column is no "
"feature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum

import numpy as np

from l20fs.tables.numbers import (
    LIMIT,
    MISSING,
    MISSING_IN_USE,
    MOST_DIGITS,
    NUMBER,
    OTHER,
    as_number,
    shows,
)
from l20fs.tables.table import Reading, Table, number_text
from l20fs.text import by_number, counted, first_of, listed

#: Share of numbers among the filled cells from which on a column holds numbers, and its texts are odd cells.
MOSTLY = 0.8

MARKS = {".": "decimal point", ",": "decimal comma"}
Cell = tuple[int, int]


class Kind(Enum):
    """Content of a cell that is no plain number."""

    NUMBER = "number"
    #: A text that means a missing value in every program.
    EMPTY = "empty"
    #: A text that usually stands for a missing value.
    MISSING = "missing"
    LIMIT = "limit"
    PERCENT = "percent"
    TEXT = "text"


def clean(table: Table, mark: str, reading: Reading) -> tuple[Table, list[int]]:
    """Return a table with numbers and gaps instead of odd cells, and the columns that hold texts.

    A column holds numbers if at least four fifths of its filled cells are some; its texts become missing, which is said.
    """
    table = _without_na(table, reading)
    odd = {place: text for place, text in table.odd.items() if not _is_empty(text, reading)}
    found = {place: _read(text, mark) for place, text in odd.items()}
    by_column: dict[int, list[Cell]] = {}
    for place in found:
        by_column.setdefault(place[1], []).append(place)
    values = table.values.copy() if odd and not table.values.flags.writeable else table.values
    said: dict[Kind, list[Cell]] = {kind: [] for kind in Kind}
    texts = set(table.columns)
    for j, places in by_column.items():
        kinds = Counter(found[place][0] for place in places)
        n_filled = int(np.count_nonzero(~np.isnan(values[:, j]))) + len(places)
        are_percents = kinds[Kind.PERCENT] == n_filled
        n_numbers = n_filled - kinds[Kind.TEXT] - (0 if are_percents else kinds[Kind.PERCENT])
        if n_numbers == kinds[Kind.MISSING] or n_numbers < MOSTLY * n_filled:
            texts.add(j)
            continue
        for place in sorted(places):
            kind, number = found[place]
            is_gap = kind in (Kind.MISSING, Kind.TEXT) or (kind is Kind.PERCENT and not are_percents)
            values[place] = np.nan if is_gap else number
            said[Kind.MISSING if is_gap else kind].append(place)
    _say(said, table, reading)
    if not reading.input.decimal and mark == ",":
        first = next((place for place in sorted(odd, key=lambda at: at[::-1]) if shows(odd[place], ",")), None)
        where = "" if first is None else f", first {odd[first].strip()!r} in {table.where(*first)}"
        reading.say(f"numbers have a decimal comma{where} (--config input.decimal=,)")
    return replace(table, values=values, odd=odd, mark=mark), sorted(texts)


def _without_na(table: Table, reading: Reading) -> Table:
    """Return a table in which the numbers that stand for missing values are missing."""
    numbers = [number for number in map(as_number, reading.input.na) if number is not None]
    if not numbers:
        return table
    return replace(table, values=np.where(np.isin(table.values, numbers), np.nan, table.values))


def _is_empty(text: str, reading: Reading) -> bool:
    """Return whether a text stands for a missing value in every program, or because it is said."""
    if reading.input.na and (text in reading.input.na or text.strip() in reading.input.na):
        return True
    return len(text) <= MOST_DIGITS and text.strip().lower() in MISSING


def _read(text: str, mark: str) -> tuple[Kind, float]:
    """Return the kind of a cell, and its number or NaN."""
    nan = float("nan")
    if len(text) > MOST_DIGITS:
        return Kind.TEXT, nan
    text = text.strip()
    if text.lower() in MISSING_IN_USE:
        return Kind.MISSING, nan
    number = as_number(text, mark)
    if number is not None:
        return Kind.NUMBER, number
    limit = LIMIT.fullmatch(text)
    inner, kind = (limit[1], Kind.LIMIT) if limit else (text.removesuffix("%"), Kind.PERCENT)
    number = as_number(inner, mark)
    return (Kind.TEXT, nan) if number is None else (kind, number)


def mark_of(table: Table, reading: Reading) -> str:
    """Return the decimal mark of all cells, or raise an error if there are two, or if it may be either."""
    odd = {place: text for place, text in table.odd.items() if not _is_empty(text, reading)}
    if reading.input.decimal is not None:
        return reading.input.decimal
    if not odd:
        return table.mark
    columns = Counter(j for _, j in odd)
    are_texts = {j for j, n in columns.items() if 2 * n > table.values.shape[0] and not _mostly_numbers(j, odd)}
    cells = {place: text for place, text in odd.items() if place[1] not in are_texts}
    points = next((place for place, text in cells.items() if shows(text, ".")), None)
    commas = next((place for place, text in cells.items() if shows(text, ",")), None)
    if table.mark == ",":
        if points is not None:
            raise reading.error(_two_marks(table, table.where(*points), cells[points], "one with a decimal comma"))
        return ","
    either = next((place for place, text in cells.items() if _is_doubtful(text)), None)
    is_told = bool(table.separator) and (commas is not None or either is not None)  # cells of a workbook are numbers
    fraction = _first_fraction(table, are_texts) if is_told else None
    if commas is not None:
        if points is not None or fraction is not None:
            other = points or fraction
            assert other is not None
            text = cells.get(other) or number_text(table.values[other])
            beside = f"{cells[commas].strip()!r} in {table.where(*commas)}"
            raise reading.error(_two_marks(table, table.where(*other), text, beside))
        return ","
    has_whole = any(_has_whole(table, j) for j in {j for (_, j), text in cells.items() if _is_doubtful(text)})
    if either is None or points is not None or fraction is not None or (table.separator == "," and has_whole):
        if either is not None:
            shown = f"{cells[either].strip()!r} in {table.where(*either)}"
            reading.say(f"commas separate thousands, first in {shown} (--config input.decimal=.)")
        return "."
    if table.separator == ";" and not has_whole:
        return ","
    raise reading.error(
        f"{cells[either].strip()!r} in {table.where(*either)} may have a decimal comma or a comma between thousands. Say "
        "which: --config input.decimal=, or --config input.decimal=."
    )


def _mostly_numbers(column: int, odd: dict[Cell, str]) -> bool:
    """Return whether at least half of the odd cells of a column are numbers with either mark."""
    texts = [text for (_, j), text in odd.items() if j == column][:100]
    return 2 * sum(any(as_number(text, mark) is not None for mark in NUMBER) for text in texts) >= len(texts)


def _first_fraction(table: Table, but: set[int]) -> Cell | None:
    """Return the place of the first number with a decimal point, None if all are whole."""
    is_fraction = np.mod(table.values, 1.0) > 0.0
    is_fraction[:, sorted(but)] = False
    found = np.argwhere(is_fraction)
    return (int(found[0][0]), int(found[0][1])) if len(found) else None


def _has_whole(table: Table, column: int) -> bool:
    """Return whether a column has whole numbers other than 0, beside which 1,234 is hardly a decimal."""
    values = table.values[:, column]
    return bool(np.any((values != 0.0) & ~np.isnan(values)))


def _is_doubtful(text: str) -> bool:
    """Return whether a text such as 1,234 is a number with either mark, and has only a comma."""
    return len(text) <= MOST_DIGITS and "," in text and all(as_number(text, mark) is not None for mark in OTHER)


def _two_marks(table: Table, where: str, text: str, other: str) -> str:
    return (
        f"{text.strip()!r} in {where} and {other} have different decimal marks. Correct one of them, or say which mark "
        "it is: "
        "--config input.decimal=, or --config input.decimal=."
    )


def _say(said: dict[Kind, list[Cell]], table: Table, reading: Reading) -> None:
    """Say what odd cells were taken for, by kind."""
    if missing := said[Kind.MISSING]:
        n = len(missing)
        text = f"{counted(n, 'text')} among numbers {by_number(n, 'is', 'are')} read as missing, {_places(missing, table)}"
        reading.say(f"{text} (--config input.na=...)")
    if limits := said[Kind.LIMIT]:
        what = f"{counted(len(limits), 'limit')} {by_number(len(limits), 'is read as a number', 'are read as numbers')}"
        reading.say(f"{what}, {_places(limits, table)}")
    if percents := said[Kind.PERCENT]:
        n_columns = len({column for _, column in percents})
        reading.say(f"percent signs of {counted(n_columns, 'feature')} are left out, {_places(percents[:1], table)}")
    if (numbers := said[Kind.NUMBER]) and not table.separator:
        reading.say(
            f"{counted(len(numbers), 'number')} {by_number(len(numbers), 'is', 'are')} stored as text, "
            f"{first_of(len(numbers))}{_places(numbers[:1], table)}"
        )


def _places(cells: Sequence[Cell], table: Table) -> str:
    """Describe the first of some cells, and list the other texts."""
    first = min(cells)
    text = table.odd[first].strip()
    others = dict.fromkeys(table.odd[place].strip() for place in cells)
    also = f" (also {listed(other for other in others if other != text)})" if len(others) > 1 else ""
    return f"{first_of(len(cells))}{text!r} in {table.where(*first)}{also}"
