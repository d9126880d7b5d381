"""Numbers as text: decimal marks, marks between thousands, and texts for missing ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from l20fs.data.readers.table import Request, require
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

#: Maximum number of characters of a number, blanks around it included: a longer text is not even looked at.
MOST_DIGITS = 1000

#: Anything that may be meant as a number: with either mark, as a limit, or in percent. Each blank has one place only, so
#: that the time for very long cells is linear.
NUMBER_LIKE = re.compile(r"\s*[<>]?[+-]?[.,]?\d[\d.,]*(?:[eE][+-]?\d+)?(?:\s*%)?\s*", re.ASCII)


def _pattern(mark: str, other: str) -> re.Pattern[str]:
    """Return the pattern of numbers with a decimal mark; the other mark may separate thousands, but not beside a power."""
    grouped = rf"[1-9]\d{{0,2}}(?:\{other}\d{{3}})+(?:\{mark}\d*)?"
    plain = rf"(?:\d+(?:\{mark}\d*)?|\{mark}\d+)(?:e[+-]?\d+)?"
    return re.compile(rf"[+-]?(?:{grouped}|{plain}|inf(?:inity)?)", re.IGNORECASE | re.ASCII)


NUMBER: dict[Decimal, re.Pattern[str]] = {".": _pattern(".", ","), ",": _pattern(",", ".")}
OTHER: dict[Decimal, Decimal] = {".": ",", ",": "."}
#: Minus signs and en dashes, which word processors make of hyphens.
DASHES = str.maketrans("\N{MINUS SIGN}\N{EN DASH}", "--")
MARKS = {".": "decimal point", ",": "decimal comma"}


def as_number(text: str, mark: Decimal = ".") -> float | None:
    """Return the number that a text is, with a decimal mark and perhaps the other mark between thousands, or None.

    Examples
    --------
    >>> as_number("1.5"), as_number("1,234.5"), as_number("1,5"), as_number("1.234,5", ","), as_number("0.123", ",")
    (1.5, 1234.5, None, 1234.5, None)
    >>> as_number("1,2345"), as_number("1,234e5")
    (None, None)
    """
    if len(text) > MOST_DIGITS:
        return None
    text = text.strip().translate(DASHES)
    if NUMBER[mark].fullmatch(text) is None:
        return None
    return float(text.replace(OTHER[mark], "").replace(mark, "."))


def is_number(text: str) -> bool:
    """Return whether a text looks like a number, with any decimal mark, sign of a limit or percent sign."""
    return len(text) <= MOST_DIGITS and NUMBER_LIKE.fullmatch(text) is not None


def is_missing(text: str, request: Request) -> bool:
    """Return whether a text stands for a missing value in every program, or because the user says so."""
    if len(text) > MOST_DIGITS:
        return text in request.na
    return text.strip().lower() in MISSING or text in request.na or text.strip() in request.na


def shows(cell: Any, mark: Decimal) -> bool:
    """Return whether a cell is a number with this decimal mark and none with the other."""
    if not isinstance(cell, str) or len(cell) > MOST_DIGITS:
        return False
    if mark not in cell and cell.count(OTHER[mark]) < 2:  # to be quick
        return False
    return as_number(cell, OTHER[mark]) is None and as_number(cell, mark) is not None


def is_doubtful(cell: Any, mark: Decimal) -> bool:
    """Return whether a cell such as 1,234 is a number with either mark, and has only the other one."""
    if not isinstance(cell, str) or len(cell) > MOST_DIGITS:
        return False
    return OTHER[mark] in cell and all(as_number(cell, other) is not None for other in NUMBER)


def likely_mark(rows: Sequence[Sequence[str]]) -> Decimal:
    """Return the decimal mark that the first cells of a table show.

    Examples
    --------
    >>> likely_mark([["u", "1,5"], ["v", "2"]]), likely_mark([["u", "1,5"], ["v", "2.5"]])
    (',', '.')
    """
    cells = [cell for row in rows[:5] for cell in row[:200]]
    shown = any(shows(cell, ",") for cell in cells)
    return "," if shown and not any(shows(cell, ".") for cell in cells) else "."


def are_numbers(cells: Sequence[Any]) -> bool:
    """Return whether at least half of the filled cells are numbers with either mark."""
    filled = [cell for cell in cells if not (cell is None or cell != cell or _is_known_missing(str(cell)))]
    n_numbers = sum(
        not isinstance(cell, str) or any(as_number(cell, mark) is not None for mark in NUMBER) for cell in filled
    )
    return 2 * n_numbers >= len(filled)


def _is_known_missing(text: str) -> bool:
    return len(text) <= MOST_DIGITS and text.strip().lower() in KNOWN_MISSING


def plain_numbers(cells: Sequence[Any], mark: Decimal, request: Request) -> Array:
    """Return the numbers that cells of text are, without marks between thousands, and NaN for all others."""
    pandas = require("pandas", "cli", request)
    texts = [
        cell if isinstance(cell, str) and len(cell) <= MOST_DIGITS and cell not in request.na else None for cell in cells
    ]
    if mark == ",":
        texts = [None if text is None or "." in text else text.replace(",", ".") for text in texts]
    return np.array(pandas.to_numeric(pandas.Series(texts, dtype=object), errors="coerce"), dtype=np.float64)
