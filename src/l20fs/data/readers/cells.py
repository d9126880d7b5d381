"""Cells of tables: numbers with either decimal mark, missing values, limits, percentages, and texts among them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import Any

import numpy as np

from l20fs.data.readers.number_texts import (
    MARKS,
    MISSING_IN_USE,
    MOST_DIGITS,
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

#: Cells that are converted at once: a call for each column would take longer, one for all of them much memory.
CELLS_AT_ONCE = 100_000

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
    """Cells of a feature, and the plain numbers among them."""

    cells: Sequence[Any]
    numbers: Array

    @property
    def others(self) -> list[int]:
        """Places of the cells that are no plain numbers; a list that is not kept, since it takes more than the numbers."""
        return np.flatnonzero(np.isnan(self.numbers)).tolist()


def features_of(columns: Columns, mark: Decimal, request: Request) -> dict[int, Feature]:
    """Return features with their plain numbers for a decimal mark."""
    found: dict[int, Feature] = {}
    n_cells = max((len(cells) for cells in columns.values()), default=1)
    for some in batched(columns, max(1, CELLS_AT_ONCE // max(n_cells, 1))):
        numbers = plain_numbers([cell for feature in some for cell in columns[feature]], mark, request)
        parts = np.split(numbers, np.cumsum([len(columns[feature]) for feature in some])[:-1])
        found |= {feature: Feature(columns[feature], part) for feature, part in zip(some, parts, strict=True)}
    return found


def batched(items: Iterable[int], size: int) -> Iterator[list[int]]:
    """Yield lists of up to ``size`` items, as itertools does from Python 3.12 on."""
    left = iter(items)
    while some := list(islice(left, size)):
        yield some


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
        Returns the cells of those features of a table, parsed with a mark, that hold anything else than numbers. All but
        those to ignore show which mark it is, so that a panel is read as the whole table was.
    is_asked : callable
        Whether a feature is to be read.
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
    is_asked: Callable[[int], bool]
    where: Callable[[int, int], str]
    targets: Collection[int] = ()
    separator: str = ""
    names: int | None = None

    def read(self, first: Decimal, request: Request) -> tuple[Any, Conversion, Decimal]:
        """Return the parsed table, the numbers of features with odd cells, and the decimal mark of the table.

        ``first`` is the decimal mark to try first, unless ``request.decimal`` says which it is.
        """
        mark = request.decimal or first
        parsed, features = self._parsed(mark, request)
        signs = None if request.decimal is not None else self._signs(mark, parsed, features, request)
        if signs is not None:
            del parsed, features  # before the table is parsed again
            other = OTHER[mark]
            parsed, features = self._parsed(other, request)
            if self._settle(mark, signs, features, request) == other:
                mark = other
            else:
                del parsed, features
                parsed, features = self._parsed(mark, request)
        values = {
            number: feature for number, feature in features.items() if number not in self.targets and self.is_asked(number)
        }
        conversion = convert(values, mark, request, self.names, has_types=not self.separator)
        self._note(conversion, request)
        return parsed, conversion, mark

    def _parsed(self, mark: Decimal, request: Request) -> tuple[Any, dict[int, Feature]]:
        """Return the table parsed with a decimal mark, and its features that hold anything else than numbers."""
        parsed = self.parse(mark)
        return parsed, features_of(self.odd(parsed, mark), mark, request)

    def _signs(
        self, mark: Decimal, parsed: Any, features: Features, request: Request
    ) -> tuple[str | None, str | None, bool] | None:
        """Return what speaks for the other decimal mark, None if nothing does.

        That is the first cell that shows it, the first one that may have either, and whether whole numbers stand beside
        such cells. ``mark`` is a comma only if the first cells show it.
        """
        shown = self._first(features, lambda cell: shows(cell, OTHER[mark]))
        doubtful = None if mark == "," else self._first(features, lambda cell: is_doubtful(cell, mark))
        if shown is None and doubtful is None:
            if mark == ",":
                request.guess("decimal", mark, "numbers have a decimal comma")
            elif self.separator not in ("", ",") and _may_have_thousands(parsed):
                self._refuse_thousands(request)
            return None
        return shown, doubtful, shown is None and any(_has_whole(feature, mark) for feature in features.values())

    def _settle(
        self, mark: Decimal, signs: tuple[str | None, str | None, bool], swapped: Features, request: Request
    ) -> Decimal:
        """Return the decimal mark of all cells, or raise an error if there are two, or if it may be either.

        ``swapped`` are the features of the table as parsed with the other mark.
        """
        other = OTHER[mark]
        shown, doubtful, has_whole = signs
        against = self._first(swapped, lambda cell: shows(cell, mark))
        if shown is not None and against is not None:
            raise DataError(
                f"{request.name}: {shown} and {against} have different decimal marks. Correct one of them, or say which "
                "mark it is (--decimal . or --decimal ,)."
            )
        if shown is not None:
            request.guess("decimal", other, f"numbers have a {MARKS[other]}, first {shown}")
            return other
        assert doubtful is not None
        also = self._first(swapped, lambda cell: is_doubtful(cell, other))
        if against is not None or (also is None and has_whole and self.separator == ","):
            request.guess("decimal", mark, f"commas separate thousands, first in {doubtful}")
            return mark
        if also is None and not has_whole and self.separator == ";":
            request.guess("decimal", other, f"numbers have a {MARKS[other]}, first {doubtful}")
            return other
        raise DataError(
            f"{request.name}: {doubtful} may have a decimal comma or a comma between thousands"
            f"{f', and {also} a point' if also else ''}. Say which (--decimal , or --decimal .)."
        )

    def _refuse_thousands(self, request: Request) -> None:
        """Raise an error if all points may be between thousands, and whole numbers beside them make that likely."""
        features = features_of(self.odd(self.parse(","), ","), ",", request)
        beside = {number: feature for number, feature in features.items() if _has_whole(feature, ",")}
        doubtful = self._first(beside, lambda cell: is_doubtful(cell, ","))
        if doubtful is not None and self._first(features, lambda cell: shows(cell, ".")) is None:
            raise DataError(
                f"{request.name}: {doubtful} may have a decimal point or a point between thousands. Say which (--decimal . "
                "or --decimal ,)."
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
    cells = Cells(
        lambda mark: {},
        lambda parsed, mark: {0: texts},
        lambda _: True,
        lambda _, place: f"label {place + 1}",
        targets=[0],
    )
    return cells.read(".", request)[2]


def _has_whole(feature: Feature, mark: Decimal) -> bool:
    """Return whether whole numbers other than 0 stand beside cells such as 1,234, which then hardly are decimals."""
    numbers = feature.numbers[np.isfinite(feature.numbers)]
    is_plain = bool(np.any(numbers)) and not np.any(np.mod(numbers, 1.0))
    return is_plain and any(is_doubtful(cell, mark) for cell in feature.cells)


def _may_have_thousands(parsed: Any) -> bool:
    """Return whether a table has numbers with decimals, of which all have up to three and are at least 1, and whole ones."""
    has_decimals = has_whole = False
    for _, column in parsed.items():
        if column.dtype.kind != "f":
            has_whole |= column.dtype.kind in "iu"
            continue
        values = np.abs(column.to_numpy()[np.isfinite(column)])
        decimals = values[np.mod(values, 1.0) != 0.0]
        if np.any(decimals < 1.0) or np.any(np.abs(decimals * 1000 - np.round(decimals * 1000)) > 1e-6 * decimals):
            return False
        has_decimals |= len(decimals) > 0
        has_whole |= len(decimals) < len(values)
    return has_decimals and has_whole


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
    if len(cell) > MOST_DIGITS:
        return Kind.TEXT, nan
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
