"""Pieces of sentences: lists of names, closest names, counts, percentages, intervals, names cut short."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

#: Names that a message shows at most.
MOST = 5

#: Binary units of amounts of memory.
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def joined(names: Sequence[str], word: str = "and") -> str:
    """Join names as in a sentence.

    Examples
    --------
    >>> joined(["RFS", "mRMR", "ReliefF"]), joined(["RFS", "mRMR"], "or"), joined(["RFS"])
    ('RFS, mRMR and ReliefF', 'RFS or mRMR', 'RFS')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def quoted(names: Sequence[str], word: str = "and") -> str:
    """Join the first five names in quotes, as in a sentence.

    Examples
    --------
    >>> quoted(["zscore", "centre", "none"], "or")
    "'zscore', 'centre' or 'none'"
    """
    return joined([repr(name) for name in names[:MOST]], word)


def listed(names: Iterable[Any], empty: str = "nothing") -> str:
    """List the first five names in quotes, and count the others; ``empty`` stands for no names.

    Examples
    --------
    >>> listed("abc"), listed("abcdefgh"), listed([])
    ("'a', 'b', 'c'", "'a', 'b', 'c', 'd', 'e' and 3 more", 'nothing')
    """
    texts = [repr(str(name)) for name in names]
    more = f" and {len(texts) - MOST} more" if len(texts) > MOST else ""
    return ", ".join(texts[:MOST]) + more if texts else empty


def abbreviated(names: Sequence[Any]) -> str:
    """List the first five names in quotes, and dots for the others.

    Examples
    --------
    >>> abbreviated("abc"), abbreviated("abcdefgh")
    ("'a', 'b', 'c'", "'a', 'b', 'c', 'd', 'e', ...")
    """
    return ", ".join(repr(str(name)) for name in names[:MOST]) + (", ..." if len(names) > MOST else "")


def closest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most like ``name``, however different.

    Examples
    --------
    >>> closest("Relief", ["RFS", "mRMR", "ReliefF"])
    'ReliefF'
    """
    return get_close_matches(name, list(known), n=1, cutoff=0.0)[0]


def closest_hint(name: str, known: Iterable[str]) -> str:
    """Write the sentence that names the closest known name.

    Examples
    --------
    >>> closest_hint("Relief", ["RFS", "mRMR", "ReliefF"])
    "The closest name is 'ReliefF'."
    """
    return f"The closest name is {closest(name, known)!r}."


def did_you_mean(name: Any, known: Iterable[Any], empty: str = "nothing") -> str:
    """Ask for up to three known names like ``name``, or list the known names if there are none.

    Examples
    --------
    >>> did_you_mean("tpye", ["type", "donor"]), did_you_mean("y", ["type", "donor"])
    ("Did you mean 'type'?", "It has 'type', 'donor'.")
    """
    names = list(dict.fromkeys(str(other) for other in known))
    near = get_close_matches(str(name), names, n=3)
    return f"Did you mean {' or '.join(map(repr, near))}?" if near else f"It has {listed(names, empty)}."


def counted(number: int, noun: str) -> str:
    """Write a number with its noun.

    Examples
    --------
    >>> counted(1, "feature"), counted(2308, "feature"), counted(2, "class")
    ('1 feature', '2308 features', '2 classes')
    """
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number} {noun}{ending}"


def by_number(number: int, one: str, many: str) -> str:
    """Return the word for one thing, or that for any other number of them.

    Examples
    --------
    >>> by_number(1, "is", "are"), by_number(3, "is", "are")
    ('is', 'are')
    """
    return one if number == 1 else many


def folded(text: str) -> str:
    """Return a text without case and blanks of any kind, by which two spellings of a label are compared.

    Examples
    --------
    >>> folded("Type 1 ") == folded("TYPE1")
    True
    """
    return "".join(unicodedata.normalize("NFKC", text).split()).casefold()


def first_of(number: int) -> str:
    """Return the word before the place of the first of some things; nothing if there is one.

    Examples
    --------
    >>> f"1 gap, {first_of(1)}in line 3", f"2 gaps, {first_of(2)}in line 3"
    ('1 gap, in line 3', '2 gaps, first in line 3')
    """
    return "" if number == 1 else "first "


def printable(text: str, most: int | None = None) -> str:
    r"""Escape what a terminal would obey, or show otherwise than it is; cut a long text short.

    Examples
    --------
    >>> printable("a\x1b[31m\u202eb\n"), printable("abcdef", 3)
    ('a\\x1b[31m\\u202eb\\n', 'abc…')
    """
    shown = text if most is None or len(text) <= most else f"{text[:most]}…"
    if shown.isprintable():
        return shown
    kept = "\xa0\u202f"  # blanks that do not break lines
    return "".join(x if x.isprintable() or x in kept else x.encode("unicode_escape").decode() for x in shown)


def small_percent(share: float) -> str:
    """Write a share that may be small as a percentage, with two digits.

    Examples
    --------
    >>> small_percent(0.001), small_percent(0.000312), small_percent(0.0213), small_percent(0.25)
    ('0.1 %', '0.031 %', '2.1 %', '25 %')
    >>> small_percent(5.0)
    '500 %'
    """
    return f"{100.0 * share:.2g} %" if share < 0.1 else f"{100.0 * share:.0f} %"


def with_interval(value: float, lower: float, upper: float, *, is_share: bool) -> str:
    """Write a number, or a share in percent, and the ends of its interval, with the digits that its width allows.

    Examples
    --------
    >>> with_interval(1.0, 0.943, 1.0, is_share=True), with_interval(0.9412, 0.9365, 0.9457, is_share=True)
    ('100 % (94 to 100 %)', '94.1 % (93.7 to 94.6 %)')
    >>> with_interval(0.5512, 0.38, 0.68, is_share=False), with_interval(1234.5, 1100.0, 1390.0, is_share=False)
    ('0.55 (0.38 to 0.68)', '1234 (1100 to 1390)')
    """
    factor, unit = (100.0, " %") if is_share else (1.0, "")
    width = factor * (upper - lower)
    if is_share:
        digits = 0 if width >= 2.0 else 1 if width >= 0.2 else 2
    else:
        digits = min(6, max(0, 1 + math.ceil(-math.log10(width)))) if 0.0 < width < math.inf else 3
    shown, low, high = (f"{factor * part:z.{digits}f}" for part in (value, lower, upper))
    return f"{shown}{unit} ({low} to {high}{unit})"


def number_with_error(value: float, error: float) -> str:
    """Write a number and its standard error, the error with two digits; 0 or NaN stands for an unknown error.

    Examples
    --------
    >>> number_with_error(0.46631, 0.0108), number_with_error(148.41, 13.6), number_with_error(47.0912, 0.0)
    ('0.466 ± 0.011', '148 ± 14', '47.09')
    """
    if not error > 0.0:
        return f"{value:.4g}"
    decimals = min(6, max(0, 1 - math.floor(math.log10(error))))
    return f"{value:.{decimals}f} ± {error:.{decimals}f}"


def p_text(value: float) -> str:
    """Write a p-value with the digits that matter.

    Examples
    --------
    >>> p_text(0.0421), p_text(1e-7)
    ('p = 0.042', 'p < 0.001')
    """
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def shorten(name: object, limit: int = 28) -> str:
    """Return a name on one line, with an ellipsis in the middle if it is long.

    Examples
    --------
    >>> shorten("ENSG00000141510_TP53_tumour_protein", limit=16)
    'ENSG0000…protein'
    """
    first, middle, last = parted(name, limit)
    return f"{first}…{last}" if middle else first


def parted(name: object, limit: int = 28) -> tuple[str, str, str]:
    """Return a name on one line in three parts: its start, what :func:`shorten` leaves out, and its end.

    Examples
    --------
    >>> parted("ENSG00000141510_TP53", limit=9), parted("TP53", limit=9)
    (('ENSG', '00000141510_', 'TP53'), ('TP53', '', ''))
    """
    text = " ".join(str(name).split())
    if len(text) <= limit:
        return text, "", ""
    n_last = (limit - 1) // 2
    n_first = limit - 1 - n_last
    return text[:n_first], text[n_first:-n_last], text[-n_last:]


def format_bytes(size: float) -> str:
    """Format a number of bytes with a binary unit.

    Examples
    --------
    >>> format_bytes(3_000_000_000), format_bytes(10)
    ('2.8 GiB', '10 bytes')
    >>> format_bytes(10**400)  # as damaged files state
    'more than 8 EiB'
    """
    if size >= 2**63:
        return "more than 8 EiB"
    for unit, letter in ((2**40, "T"), (2**30, "G"), (2**20, "M"), (2**10, "K")):
        if size >= unit:
            return f"{size / unit:.1f} {letter}iB"
    return f"{size:.0f} bytes"
