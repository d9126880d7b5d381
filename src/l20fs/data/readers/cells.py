"""Cells of tables: numbers with either decimal mark, missing values, limits, percentages, and texts among them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from l20fs.data.readers.table import DataError, Request
from l20fs.text import counted, listed
from l20fs.typing import Array, Decimal

#: Texts that stand for a missing value in every program, in lower case; pandas reads them as such.
MISSING = frozenset(
    ["", "na", "n/a", "nan", "-nan", "null", "none", "<na>", "#n/a", "#n/a n/a", "#na", "1.#ind", "-1.#ind", "1.#qnan"]
)

#: Texts that laboratories and spreadsheets write for a missing value, in lower case.
MISSING_IN_USE = frozenset(
    [
        *("?", "??", "-", "--", "---", ".", "..", "/", "nd", "n.d", "n.d.", "n. d.", "n.a", "n.a.", "n. a.", "nq", "n.q."),
        *("k.a.", "k. a.", "n.v.", "bdl", "lod", "<lod", "loq", "<loq", "missing", "fehlt", "empty", "leer", "unknown"),
        *("unbekannt", "not available", "not detected", "not determined", "not done", "below detection limit"),
        *("#nv", "#div/0!", "#value!", "#wert!", "#ref!", "#bezug!", "#name?", "#num!", "#zahl!", "#null!", "#error!"),
    ]
)
KNOWN_MISSING = MISSING | MISSING_IN_USE

#: Share of numbers among the filled cells from which on a column holds numbers, and its texts are odd cells.
MOSTLY = 0.8

LIMIT = re.compile(r"(?:[<>≤≥]=?|=[<>])\s*(.+)")


def _pattern(mark: str, other: str) -> re.Pattern[str]:
    """Return the pattern of numbers with a decimal mark; the other mark may separate thousands."""
    whole = rf"\d+|[1-9]\d{{0,2}}(?:\{other}\d{{3}})+"
    return re.compile(
        rf"[+-]?(?:(?:(?:{whole})\{mark}?\d*|\{mark}\d+)(?:e[+-]?\d+)?|inf(?:inity)?)", re.IGNORECASE | re.ASCII
    )


NUMBER: dict[Decimal, re.Pattern[str]] = {".": _pattern(".", ","), ",": _pattern(",", ".")}
OTHER: dict[Decimal, Decimal] = {".": ",", ",": "."}
MARKS = {".": "decimal point", ",": "decimal comma"}


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


def as_number(text: str, mark: Decimal = ".") -> float | None:
    """Return the number that a text is, with a decimal mark and perhaps the other mark between thousands, or None.

    Examples
    --------
    >>> as_number("1.5"), as_number("1,234.5"), as_number("1,5"), as_number("1.234,5", ","), as_number("0.123", ",")
    (1.5, 1234.5, None, 1234.5, None)
    """
    text = text.strip().replace("\N{MINUS SIGN}", "-")
    if NUMBER[mark].fullmatch(text) is None:
        return None
    return float(text.replace(OTHER[mark], "").replace(mark, "."))


def is_missing(text: str, request: Request) -> bool:
    """Return whether a text stands for a missing value in every program, or because the user says so."""
    return text.strip().lower() in MISSING or text in request.na or text.strip() in request.na


def is_asked_for(name: str, request: Request) -> bool:
    """Return whether a feature is to be read, by its name."""
    if request.needed is not None:
        return name in request.needed
    is_chosen = request.features is None or any(fnmatchcase(name, pattern) for pattern in request.features)
    return is_chosen and not any(fnmatchcase(name, pattern) for pattern in request.ignore)


def _shows(cell: Any, mark: Decimal) -> bool:
    """Return whether a cell is a number with this decimal mark and none with the other."""
    return isinstance(cell, str) and as_number(cell, OTHER[mark]) is None and as_number(cell, mark) is not None


def _is_doubtful(cell: Any, mark: Decimal) -> bool:
    """Return whether a cell such as 1,234 is a number with either mark, and has only the other one."""
    return isinstance(cell, str) and OTHER[mark] in cell and all(as_number(cell, other) is not None for other in NUMBER)


def likely_mark(rows: Sequence[Sequence[str]], separator: str) -> Decimal:
    """Return the decimal mark that the first cells of a table show.

    Examples
    --------
    >>> likely_mark([["u", "1,5"], ["v", "2"]], ";"), likely_mark([["u", "1,5"], ["v", "2.5"]], ";")
    (',', '.')
    """
    cells = [cell for row in rows[:5] for cell in row[:200]]
    shown = any("," in cell and (_shows(cell, ",") or (separator == ";" and _is_doubtful(cell, "."))) for cell in cells)
    return "," if shown and not any(_shows(cell, ".") for cell in cells) else "."


#: Cells of features by number.
Columns = Mapping[int, Sequence[Any]]


@dataclass
class Conversion:
    """Numbers of the features that hold numbers besides other cells, and what these were."""

    numbers: dict[int, Array] = field(default_factory=dict)
    #: Feature, sample and text of each cell.
    missing: list[tuple[int, int, str]] = field(default_factory=list)
    limits: list[tuple[int, int, str]] = field(default_factory=list)
    percents: list[tuple[int, int, str]] = field(default_factory=list)
    #: Numbers that are text.
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
        columns = self.odd(parsed, mark)
        if request.decimal is None:
            found = self._settle(mark, parsed, columns, request)
            if found != mark:
                mark, parsed = found, self.parse(found)
                columns = self.odd(parsed, mark)
        features = {feature: cells for feature, cells in columns.items() if feature not in self.targets}
        conversion = convert(features, mark, request, self.names)
        self._note(conversion, request)
        return parsed, conversion, mark

    def _settle(self, mark: Decimal, parsed: Any, columns: Columns, request: Request) -> Decimal:
        """Return the decimal mark of all cells, or raise an error if there are two."""
        other = OTHER[mark]
        shown = self._first(columns, lambda cell: _shows(cell, other))
        if shown is not None:
            against = self._first(self.odd(self.parse(other), other), lambda cell: _shows(cell, mark))
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
        doubtful = self._first(columns, lambda cell: _is_doubtful(cell, mark))
        if doubtful is None:
            return mark
        if self.separator == "," or _has_fractions(parsed) or self._first(columns, lambda cell: _shows(cell, mark)):
            request.guess("decimal", mark, f"commas separate thousands, first in {doubtful}")
            return mark
        if self.separator == ";":
            request.guess("decimal", other, f"numbers have a {MARKS[other]}, first {doubtful}")
            return other
        raise DataError(
            f"{request.name}: {doubtful} may have a decimal comma or a comma between thousands. Say which (--decimal , or "
            "--decimal .)."
        )

    def _first(self, columns: Columns, test: Callable[[Any], bool]) -> str | None:
        """Return value and place of the first cell that passes a test, in a feature of numbers or a target."""
        for feature, cells in columns.items():
            place = next((i for i, cell in enumerate(cells) if test(cell)), None)
            if place is not None and (feature in self.targets or are_numbers(cells)):
                return f"{cells[place].strip()!r} in {self.where(feature, place)}"
        return None

    def _note(self, found: Conversion, request: Request) -> None:
        """Keep a note on each kind of odd cells."""
        if found.missing:
            what = "1 text among numbers is" if len(found.missing) == 1 else f"{len(found.missing)} texts among numbers are"
            texts = list(dict.fromkeys(text for *_, text in found.missing))
            request.guess("na", texts, f"{what} read as missing, first {self._places(found.missing)}")
        if found.limits:
            what = "1 limit is" if len(found.limits) == 1 else f"{len(found.limits)} limits are"
            request.guess(None, None, f"{what} read as numbers, first {self._places(found.limits)}")
        if found.percents:
            n_features = len({feature for feature, *_ in found.percents})
            what = f"percent signs of {counted(n_features, 'feature')} are left out"
            request.guess(None, None, f"{what}, first {self._places(found.percents[:1])}")
        if found.texts and not self.separator:
            what = "1 number is" if len(found.texts) == 1 else f"{len(found.texts)} numbers are"
            request.guess(None, None, f"{what} stored as text, first {self._places(found.texts[:1])}")

    def _places(self, cells: Sequence[tuple[int, int, str]]) -> str:
        """Describe the first of some cells, and list the other texts."""
        feature, sample, first = cells[0]
        others = dict.fromkeys(text for *_, text in cells if text != first)
        return f"{first!r} in {self.where(feature, sample)}" + (f" (also {listed(others)})" if others else "")


def mark_of(texts: Sequence[str], request: Request) -> Decimal:
    """Return the decimal mark of numbers to predict that are in a file of their own."""
    if request.task != "regression":
        return "."
    cells = Cells(lambda mark: {}, lambda parsed, mark: {0: texts}, lambda _, place: f"label {place + 1}", targets=[0])
    return cells.read(".", request)[2]


def are_numbers(cells: Sequence[Any]) -> bool:
    """Return whether at least half of the filled cells are numbers with either mark."""
    filled = [cell for cell in cells if not (cell is None or cell != cell or str(cell).strip().lower() in KNOWN_MISSING)]
    n_numbers = sum(
        not isinstance(cell, str) or any(as_number(cell, mark) is not None for mark in NUMBER) for cell in filled
    )
    return 2 * n_numbers >= len(filled)


def _has_fractions(parsed: Any) -> bool:
    """Return whether a parsed table has numbers with decimals."""
    for _, column in parsed.items():
        if column.dtype.kind == "f" and np.any(np.mod(column[np.isfinite(column)], 1.0)):
            return True
        if column.dtype.kind == "O" and any(_shows(cell, ".") for cell in column):
            return True
    return False


def convert(columns: Columns, mark: Decimal, request: Request, names: int | None = None) -> Conversion:
    """Return the numbers of those features in which most filled cells are numbers; others are left as text.

    The feature ``names`` is left as text even if only some of its cells are texts.
    """
    found, known = Conversion(), {}
    for feature, cells in columns.items():
        kinds: list[tuple[Kind, float]] = []
        for cell in cells:
            key = cell if isinstance(cell, str) else None
            if key is None or key not in known:
                known[key] = _read_cell(cell, mark, request)
            kinds.append(known[key])
        counts = Counter(kind for kind, _ in kinds)
        n_filled = len(cells) - counts[Kind.EMPTY] - counts[Kind.MISSING]
        are_percents = counts[Kind.PERCENT] == n_filled
        n_numbers = n_filled - counts[Kind.TEXT] - (0 if are_percents else counts[Kind.PERCENT])
        if not n_numbers or n_numbers < MOSTLY * n_filled or (feature == names and n_numbers < n_filled):
            continue
        _keep(found, feature, cells, kinds, are_percents)
    return found


def _keep(
    found: Conversion, feature: int, cells: Sequence[Any], kinds: list[tuple[Kind, float]], are_percents: bool
) -> None:
    """Keep the numbers of a feature, and its odd cells."""
    lists = {Kind.MISSING: found.missing, Kind.TEXT: found.missing, Kind.LIMIT: found.limits, Kind.NUMBER: found.texts}
    lists[Kind.PERCENT] = found.percents if are_percents else found.missing
    numbers = np.full(len(cells), np.nan)
    for place, (kind, value) in enumerate(kinds):
        if kind in lists and isinstance(cells[place], str):
            lists[kind].append((feature, place, str(cells[place]).strip()))
        if kind in lists and lists[kind] is not found.missing:
            numbers[place] = value
    found.numbers[feature] = numbers


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
