"""Numbers as texts: decimal marks, marks between thousands, limits, percentages, and texts for missing ones."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Texts that stand for a missing value in every program, in lower case.
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

#: Maximum number of characters of a number, blanks around it included: a longer text is not even looked at.
MOST_DIGITS = 1000

#: Anything that may be meant as a number: with either mark, as a limit, or in percent. Each blank has one place only, so
#: that the time for very long cells is linear.
NUMBER_LIKE = re.compile(r"\s*[<>≤≥]?[+-]?[.,]?\d[\d.,]*(?:[eE][+-]?\d+)?(?:\s*%)?\s*", re.ASCII)

LIMIT = re.compile(r"(?:[<>≤≥]=?|=[<>])\s*(.+)")

OTHER = {".": ",", ",": "."}

#: Minus signs and en dashes, which word processors make of hyphens.
DASHES = str.maketrans("\N{MINUS SIGN}\N{EN DASH}", "--")


def _pattern(mark: str, other: str) -> re.Pattern[str]:
    """Return the pattern of numbers with a decimal mark; the other mark may separate thousands, but not beside a power."""
    grouped = rf"[1-9]\d{{0,2}}(?:\{other}\d{{3}})+(?:\{mark}\d*)?"
    plain = rf"(?:\d+(?:\{mark}\d*)?|\{mark}\d+)(?:e[+-]?\d+)?"
    return re.compile(rf"[+-]?(?:{grouped}|{plain}|inf(?:inity)?)", re.IGNORECASE | re.ASCII)


NUMBER = {".": _pattern(".", ","), ",": _pattern(",", ".")}


def as_number(text: str, mark: str = ".") -> float | None:
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
    """Return whether a text is a number with either decimal mark."""
    return any(as_number(text, mark) is not None for mark in NUMBER)


def is_number_like(text: str) -> bool:
    """Return whether a text looks like a number, with any decimal mark, sign of a limit or percent sign."""
    return len(text) <= MOST_DIGITS and NUMBER_LIKE.fullmatch(text.translate(DASHES)) is not None


def shows(text: str, mark: str) -> bool:
    """Return whether a text is a number with this decimal mark and none with the other.

    Examples
    --------
    >>> shows("1,5", ","), shows("1.5", ","), shows("1,234", ","), shows("1.234,5", ",")
    (True, False, False, True)
    """
    if mark not in text and text.count(OTHER[mark]) < 2:  # to be quick
        return False
    return as_number(text, OTHER[mark]) is None and as_number(text, mark) is not None


def shown_mark(cells: Iterable[str]) -> str:
    """Return the decimal mark that some cells show: a comma if one has it and none has a point."""
    has_comma = False
    for cell in cells:
        if shows(cell, "."):
            return "."
        has_comma = has_comma or ("," in cell and shows(cell, ","))
    return "," if has_comma else "."
