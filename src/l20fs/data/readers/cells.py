"""Cells of tables: numbers with either decimal mark, missing values, limits, percentages, and texts among them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from l20fs.data.readers.number_texts import (
    MARKS,
    MISSING_IN_USE,
    OTHER,
    are_numbers,
    as_number,
    is_doubtful,
    is_missing,
    plain_numbers,
    shows,
)
from l20fs.data.readers.table import DataError, Request
from l20fs.text import by_number, counted, first_of, listed
from l20fs.typing import Array, Decimal

#: Share of numbers among the filled cells from which on a column holds numbers, and its texts are odd cells.
MOSTLY = 0.8

LIMIT = re.compile(r"(?:[<>≤≥]=?|=[<>])\s*(.+)")


class Kind(Enum):
    """Content of a cell."""

    NUMBER = "number"
    #: An empty cell, or one with a text that always means so.
    EMPTY = "empty"
    #: A text that usually stands for a missing value.
    MISSING = "missing"
    LIMIT = "limit"
    PERCENT = "percent"
    TEXT = "text"


#: Cells of features by number.
Columns = Mapping[int, Sequence[Any]]


@dataclass(frozen=True)
class Feature:
    """Cells of a feature: the plain numbers among them, and the places of all others."""

    cells: Sequence[Any]
    numbers: Array
    others: list[int]


def features_of(columns: Columns, mark: Decimal, request: Request) -> dict[int, Feature]:
    """Return features with their plain numbers for a decimal mark."""
    numbers = plain_numbers([cell for cells in columns.values() for cell in cells], mark, request)
    parts = np.split(numbers, np.cumsum([len(cells) for cells in columns.values()])[:-1]) if columns else []
    return {
        feature: Feature(cells, part, np.flatnonzero(np.isnan(part)).tolist())
        for (feature, cells), part in zip(columns.items(), parts, strict=True)
    }


Features = Mapping[int, Feature]


@dataclass
class Conversion:
    """Numbers of the features that hold numbers besides other cells, and what these were."""

    numbers: dict[int, Array] = field(default_factory=dict)
    #: Feature, sample and text of each cell.
    missing: list[tuple[int, int, str]] = field(default_factory=list)
    limits: list[tuple[int, int, str]] = field(default_factory=list)
    percents: list[tuple[int, int, str]] = field(default_factory=list)
    #: Numbers that are text, in a table where other numbers are none.
    texts: list[tuple[int, int, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Cells:
    """Cells of a table that are no plain numbers.

    Attributes
    ----------
    parse : callable
        Parses the table with a decimal mark.
    odd : callable
        Returns the cells of those features of a table, parsed with a mark, that hold anything else than numbers.
    where : callable
        Describes the place of a cell, given its feature and sample.
    targets : collection of int
        The features that are numbers to predict, as text: they have the same decimal mark, and stay text.
    separator : str
        Separator of the columns in a text, or an empty text.
    names : int or None
        The feature that could be the names of the samples instead.
    """

    parse: Callable[[Decimal], Any]
    odd: Callable[[Any, Decimal], Columns]
    where: Callable[[int, int], str]
    targets: Collection[int] = ()
    separator: str = ""
    names: int | None = None

    def read(self, first: Decimal, request: Request) -> tuple[Any, Conversion, Decimal]:
        """Return the parsed table, the numbers of features with odd cells, and the decimal mark of the table.

        ``first`` is the decimal mark to try first, unless ``request.decimal`` says which it is.
        """
        mark = request.decimal or first
        parsed = self.parse(mark)
        features = features_of(self.odd(parsed, mark), mark, request)
        if request.decimal is None:
            found = self._settle(mark, parsed, features, request)
            if found != mark:
                mark, parsed = found, self.parse(found)
                features = features_of(self.odd(parsed, mark), mark, request)
        values = {number: feature for number, feature in features.items() if number not in self.targets}
        conversion = convert(values, mark, request, self.names, has_types=not self.separator)
        self._note(conversion, request)
        return parsed, conversion, mark

    def _settle(self, mark: Decimal, parsed: Any, features: Features, request: Request) -> Decimal:
        """Return the decimal mark of all cells, or raise an error if there are two."""
        other = OTHER[mark]
        shown = self._first(features, lambda cell: shows(cell, other))
        if shown is not None:
            swapped = features_of(self.odd(self.parse(other), other), other, request)
            against = self._first(swapped, lambda cell: shows(cell, mark))
            if against is not None:
                raise DataError(
                    f"{request.name}: {shown} and {against} have different decimal marks. Correct one of them, or say which "
                    "mark it is (--decimal . or --decimal ,)."
                )
            request.guess("decimal", other, f"numbers have a {MARKS[other]}, first {shown}")
            return other
        if mark == ",":
            request.guess("decimal", mark, "numbers have a decimal comma")
            return mark
        doubtful = self._first(features, lambda cell: is_doubtful(cell, mark))
        if doubtful is None:
            return mark
        if self.separator == "," or _has_fractions(parsed) or self._first(features, lambda cell: shows(cell, mark)):
            request.guess("decimal", mark, f"commas separate thousands, first in {doubtful}")
            return mark
        if self.separator == ";":
            request.guess("decimal", other, f"numbers have a {MARKS[other]}, first {doubtful}")
            return other
        raise DataError(
            f"{request.name}: {doubtful} may have a decimal comma or a comma between thousands. Say which (--decimal , or "
            "--decimal .)."
        )

    def _first(self, features: Features, test: Callable[[Any], bool]) -> str | None:
        """Return value and place of the first cell that is no plain number and passes a test, in a feature of numbers."""
        for number, feature in features.items():
            place = next((i for i in feature.others if test(feature.cells[i])), None)
            if place is not None and (number in self.targets or are_numbers(feature.cells)):
                return f"{feature.cells[place].strip()!r} in {self.where(number, place)}"
        return None

    def _note(self, found: Conversion, request: Request) -> None:
        """Keep a note on each kind of odd cells."""
        if found.missing:
            n_texts = len(found.missing)
            what = f"{counted(n_texts, 'text')} among numbers {by_number(n_texts, 'is', 'are')}"
            texts = list(dict.fromkeys(text for *_, text in found.missing))
            request.guess("na", texts, f"{what} read as missing, {self._places(found.missing)}")
        if found.limits:
            n_limits = len(found.limits)
            what = f"{counted(n_limits, 'limit')} {by_number(n_limits, 'is read as a number', 'are read as numbers')}"
            request.guess(None, None, f"{what}, {self._places(found.limits)}")
        if found.percents:
            n_features = len({feature for feature, *_ in found.percents})
            what = f"percent signs of {counted(n_features, 'feature')} are left out"
            request.guess(None, None, f"{what}, {self._places(found.percents, others=False)}")
        if found.texts:
            what = f"{counted(len(found.texts), 'number')} {by_number(len(found.texts), 'is', 'are')}"
            request.guess(None, None, f"{what} stored as text, {self._places(found.texts, others=False)}")

    def _places(self, cells: Sequence[tuple[int, int, str]], *, others: bool = True) -> str:
        """Describe the first of some cells, and list the other texts."""
        feature, sample, first = cells[0]
        texts = dict.fromkeys(text for *_, text in cells if text != first) if others else {}
        also = f" (also {listed(texts)})" if texts else ""
        return f"{first_of(len(cells))}{first!r} in {self.where(feature, sample)}{also}"


def mark_of(texts: Sequence[str], request: Request) -> Decimal:
    """Return the decimal mark of numbers to predict that are in a file of their own."""
    if request.task != "regression":
        return "."
    cells = Cells(lambda mark: {}, lambda parsed, mark: {0: texts}, lambda _, place: f"label {place + 1}", targets=[0])
    return cells.read(".", request)[2]


def _has_fractions(parsed: Any) -> bool:
    """Return whether a parsed table has numbers with decimals."""
    for _, column in parsed.items():
        if column.dtype.kind == "f" and np.any(np.mod(column[np.isfinite(column)], 1.0)):
            return True
        if column.dtype.kind == "O" and any(shows(cell, ".") for cell in column):
            return True
    return False


def convert(
    features: Features, mark: Decimal, request: Request, names: int | None = None, *, has_types: bool = False
) -> Conversion:
    """Return the numbers of those features in which most filled cells are numbers; others are left as text.

    Parameters
    ----------
    features : mapping
        Features by number.
    mark : {".", ","}
        Decimal mark.
    request : Request
        What stands for a missing value.
    names : int, optional
        The feature that is left as text if any of its cells is a text.
    has_types : bool, default=False
        Whether numbers as text are odd, since other cells are numbers.

    Returns
    -------
    Conversion
        Numbers by feature, and the odd cells.
    """
    found = Conversion()
    for number, feature in features.items():
        cells = feature.cells
        others = [(place, *_read_cell(cells[place], mark, request)) for place in feature.others]
        counts = Counter(kind for _, kind, _ in others)
        n_filled = len(cells) - counts[Kind.EMPTY] - counts[Kind.MISSING]
        are_percents = counts[Kind.PERCENT] == n_filled
        n_numbers = n_filled - counts[Kind.TEXT] - (0 if are_percents else counts[Kind.PERCENT])
        if not n_numbers or n_numbers < MOSTLY * n_filled or (number == names and n_numbers < n_filled):
            continue
        found.numbers[number] = values = feature.numbers.copy()
        texts = np.flatnonzero(~np.isnan(values)).tolist() if has_types else []
        found.texts += [(number, place, cells[place].strip()) for place in texts]
        kept = {Kind.NUMBER: [], Kind.LIMIT: found.limits, Kind.PERCENT: found.percents if are_percents else found.missing}
        for place, kind, value in others:
            if kind is not Kind.EMPTY:
                kept.get(kind, found.missing).append((number, place, str(cells[place]).strip()))
            values[place] = np.nan if kind is Kind.PERCENT and not are_percents else value
    return found


def _read_cell(cell: Any, mark: Decimal, request: Request) -> tuple[Kind, float]:
    """Return the kind of a cell and its number, or NaN."""
    nan = float("nan")
    if not isinstance(cell, str):
        if cell is None or cell != cell:
            return Kind.EMPTY, nan
        is_real = isinstance(cell, int | float | np.integer | np.floating) and not isinstance(cell, bool)
        return (Kind.NUMBER, float(cell)) if is_real else (Kind.TEXT, nan)
    if is_missing(cell, request):
        return Kind.EMPTY, nan
    text = cell.strip()
    if text.lower() in MISSING_IN_USE:
        return Kind.MISSING, nan
    number = as_number(text, mark)
    if number is not None:
        return Kind.NUMBER, number
    limit = LIMIT.fullmatch(text)
    inner, kind = (limit[1], Kind.LIMIT) if limit else (text.removesuffix("%"), Kind.PERCENT)
    number = as_number(inner, mark)
    return (Kind.TEXT, nan) if number is None else (kind, number)
