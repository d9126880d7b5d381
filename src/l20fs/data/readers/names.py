"""Names that differ in spelling only, and names of genes that a spreadsheet made dates, such as 1-Mar for MARCH1."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from l20fs.data.readers.table import DataError, Request
from l20fs.text import MOST, listed

MONTHS = {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
MONTH = f"(?:{'|'.join(sorted(MONTHS))})[a-z]{{0,6}}"
DATE = re.compile(
    rf"\d{{1,2}}[-/. ]{MONTH}(?:[-/. ]\d{{2,4}})?"  # 1-Mar, 01-Mar-21
    rf"|{MONTH}[-/. ]\d{{1,4}}"  # Mar-01
    r"|\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?"  # 2021-03-01 00:00:00
    r"|\d{1,2}/\d{1,2}/\d{2,4}",
    re.IGNORECASE,
)

#: Serial numbers of days in spreadsheets, from the year 2000 to 2050.
DAYS = range(36526, 55154)


#: Endings of names of files that hold one sample each.
ENDINGS = re.compile(r"(\.(cel|bam|sam|cram|sorted|fastq|fq|txt|csv|tsv|gz|idat|fcs|mzml|raw|h5))+$", re.IGNORECASE)

#: Blanks and punctuation but "+", which tells CD4+ from CD4.
PUNCTUATION = r"(?:[^\w+]|_)+"


#: What no name may hold, since no text that is written can be read back with it: a NUL, or half of a character.
BROKEN = re.compile("[\\0\ud800-\udfff]")


def refuse_broken(names: Iterable[str], what: str, request: Request) -> None:
    """Raise an error for names that no text file can hold."""
    texts = list(names)
    if BROKEN.search("".join(texts)):
        broken = [name for name in texts if BROKEN.search(name)]
        raise DataError(
            f"{request.name}: {listed(broken)} cannot be the name of a {what}: it has a NUL or half of a character. Rename "
            "it, or read the text in its own encoding (--encoding NAME)."
        )


def core(name: str) -> str:
    """Return a name without case, blanks, punctuation, R's X before a digit, and the path and ending of a file.

    Punctuation between digits stays, since it tells 1.1 from 11.

    Examples
    --------
    >>> core("Probe 1"), core("probe_1"), core("X1A"), core("1a"), core("/data/S1.sorted.bam"), core("S1.1")
    ('probe1', 'probe1', '1a', '1a', 's1', 's1-1')
    """
    text = unicodedata.normalize("NFKC", name).strip()
    whole = ENDINGS.sub("", text)
    text = re.split(r"[/\\]", whole)[-1] if whole != text else text
    text = re.sub(r"^x(?=[\W_]*\d)", "", text.casefold())
    parts = re.split(rf"(?<=\d){PUNCTUATION}(?=\d)", text)
    return "-".join(re.sub(PUNCTUATION, "", part) for part in parts)


def date_like(names: Sequence[str]) -> list[str]:
    """Return the names that look like dates.

    A number of five digits may be a date, unless at least half of all names are numbers: these are identifiers.

    Examples
    --------
    >>> date_like(["TP53", "1-Mar", "2-Sep", "44256", "NA", "1-8U"])
    ['1-Mar', '2-Sep', '44256']
    >>> date_like(["44256", "7157", "672"])
    []
    """
    possible = [name for name in names if name[:1].isdigit() or name[:3].lower() in MONTHS]  # a cheap filter for many names
    are_numbered = 2 * sum(name.isdecimal() for name in possible) >= len(names)
    return [name for name in possible if DATE.fullmatch(name) or (not are_numbered and _is_day(name))]


def _is_day(name: str) -> bool:
    return len(name) == 5 and name.isdecimal() and int(name) in DAYS


def note_on_dates(names: Sequence[str]) -> tuple[str, ...]:
    """Return a note for the user about names that look like dates."""
    dates = date_like(names)
    if not dates:
        return ()
    some = "1 feature name looks like a date" if len(dates) == 1 else f"{len(dates)} feature names look like dates"
    return (
        f"{some} ({listed(dates)}). A spreadsheet may have changed gene names such as MARCH1 or SEPT2. They are kept as "
        "they stand.",
    )


def near_names(missing: Sequence[str], present: Iterable[str]) -> str:
    """Return a hint at names that differ only in case, blanks, punctuation or an ending such as ".1"; nothing is guessed.

    Examples
    --------
    >>> near_names(["TP53", "MYC"], ["tp53", "ENSG1"])
    " Names that differ only in case, blanks or endings: 'tp53' for 'TP53'. Rename them, if they are the same."
    >>> near_names(["TP53"], ["MYC"])
    ''
    """
    known = list(present)
    cores = {name: core(re.sub(r"\.\d+$", "", name)) for name in (*missing, *known)}  # R and pandas number repeated names
    by_core = {cores[name]: name for name in reversed(known)}
    near = [f"{by_core[cores[name]]!r} for {name!r}" for name in missing if cores[name] in by_core]
    if not near:
        return ""
    more = f" and {len(near) - MOST} more" if len(near) > MOST else ""
    return (
        f" Names that differ only in case, blanks or endings: {', '.join(near[:MOST])}{more}. Rename them, if they are the "
        "same."
    )


def no_feature(present: Sequence[str], request: Request, hint: str = "") -> DataError:
    """Return the error for a table with none of the requested features."""
    wanted = sorted((request.needed or frozenset()) - request.substitutes)
    hint = hint or near_names(wanted, present).strip()
    return DataError(
        f"{request.name}: none of the {len(wanted)} features that are needed is there ({listed(wanted)}); it has "
        f"{listed(present)}. Give a table with these names. {hint}".rstrip()
    )
