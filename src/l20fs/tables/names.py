"""Names of features and samples: patterns, repeated ones, near spellings, dates that were genes, and metadata."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence
from fnmatch import translate
from typing import Any

import numpy as np

from l20fs.tables.table import Reading
from l20fs.text import MOST, by_number, counted, listed
from l20fs.typing import Array

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

#: Words that are metadata on their own, and words that may stand beside one of these.
METADATA = re.compile(
    r"age|sex|gender|bmi|weight|height|(?:batch|plate|lane|day|replicate)\d*|run|well|row|column|rin|site|center|centre|date|"
    r"days|year|years|month|months|time|survival|status|id|number|no|nr|index|barcode"
)
BESIDE = re.compile(
    r"sample|patient|subject|donor|case|person|participant|mouse|animal|cell|array|chip|slide|library|sequencing|scan|study|"
    r"hospital|clinic|collection|extraction|sampling|surgery|diagnosis|onset|birth|death|event|overall|disease|progression|"
    r"recurrence|free|follow|up|last|vital|body|mass|tissue|at|of|in|to|weeks|hours|h|y|yrs|kg|cm|os|pfs|dfs|code|group|"
    r"category|num|technical|biological"
)

#: Genes of the worm, such as age-1 and sex-1, and of the fly; nitric oxide; columns without a name.
EXCEPTIONS = re.compile(r"[a-z]{3,4}-\d+|run|NO|column \d+")
WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")

#: Names of columns that look like those of patients.
PATIENT = re.compile(
    r"\W*(patient|donor|subject|participant|individual|person|mouse|animal)s?([\W_]*(id|nr|no|number))?\W*", re.I
)

#: Fewest features and samples that show which values are unusual, the largest share of unusual ones, and most codes.
FEWEST, FEW_WHOLE, MOST_CODES = 10, 0.1, 10
#: Most names that are shown with the option, and letters of a name.
MOST_SHOWN, MOST_LETTERS = 20, 60


def matched(patterns: Iterable[str], names: Sequence[str]) -> set[str]:
    """Return the names that equal a pattern or, where none does, match it: ``*`` is any text, ``?`` any character.

    Examples
    --------
    >>> sorted(matched(["batch", "p?ate", "q*"], ["batch", "batch2", "plate", "q*", "q1"]))
    ['batch', 'plate', 'q*']
    """
    known, found = set(names), set()
    for pattern in patterns:
        if pattern in known:
            found.add(pattern)
        elif "*" in pattern or "?" in pattern:
            expression = re.compile(translate(pattern.replace("[", "[[]")))  # brackets are no sets here
            found |= {name for name in known if expression.match(name)}
    return found


def numbered_names(names: Sequence[str]) -> list[str]:
    """Return unique names: repeated ones get numbers, as in pandas and R, that no other name has.

    Examples
    --------
    >>> numbered_names(["TP53", "MYC", "TP53", "TP53"])
    ['TP53', 'MYC', 'TP53.1', 'TP53.2']
    >>> numbered_names(["TP53", "TP53", "TP53.1"])
    ['TP53', 'TP53.2', 'TP53.1']
    """
    taken = set(names)
    if len(taken) == len(names):
        return list(names)
    found, last = [], dict.fromkeys(taken, -1)
    for name in names:
        number, unique = last[name] + 1, name
        while number and (unique := f"{name}.{number}") in taken:
            number += 1
        last[name] = number
        taken.add(unique)
        found.append(unique)
    return found


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
    shown = ", ".join(near[:MOST])
    return f" Names that differ only in case, blanks or endings: {shown}{more}. Rename them, if they are the same."


def refuse_broken(names: Iterable[str], what: str, reading: Reading) -> None:
    """Raise an error for names that no text file can hold."""
    texts = list(names)
    if BROKEN.search("".join(texts)):
        broken = [name for name in texts if BROKEN.search(name)]
        raise reading.error(
            f"{listed(broken)} cannot be the name of a {what}: it has a NUL or half of a character. Rename it, or read the "
            "text in its own encoding."
        )


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


def say_dates(names: Sequence[str], reading: Reading) -> None:
    """Say which names look like dates."""
    if dates := date_like(names):
        some = f"{counted(len(dates), 'feature name')} {by_number(len(dates), 'looks like a date', 'look like dates')}"
        reading.say(
            f"{some} ({listed(dates)}): a spreadsheet may have changed genes such as MARCH1 or SEPT2; they are kept as "
            "they are"
        )


def say_metadata(X: Any, names: Sequence[str], reading: Reading) -> None:
    """Say which features look like metadata of the samples, such as an age or a batch, by name or by values."""
    places = {place for place, name in enumerate(names) if named_like_metadata(name)}
    if len(places) > max(MOST_SHOWN, len(names) / 2):  # a series of days or of pixels
        return
    places |= set(coded_columns(X)) if isinstance(X, np.ndarray) else set()
    found = [names[place] for place in sorted(places)]
    if not found:
        return
    some, them = ("1 column looks", "it") if len(found) == 1 else (f"{len(found)} columns look", "them")
    option = shlex.quote(",".join(found[:MOST_SHOWN]))
    reading.say(f"{some} like metadata, not features: {listed(found)}. If so, leave {them} out: --ignore {option}")


def named_like_metadata(name: str) -> bool:
    """Return whether all words of a name are those of metadata.

    Examples
    --------
    >>> [named_like_metadata(name) for name in ("Age (years)", "patientID", "batch_2", "time.to.event", "SEX")]
    [True, True, True, True, True]
    >>> [named_like_metadata(name) for name in ("AGER", "IDS", "RIN2", "age-1", "RunLengthNonUniformity", "1007_s_at")]
    [False, False, False, False, False, False]
    """
    if len(name) > MOST_LETTERS or EXCEPTIONS.fullmatch(name):
        return False
    words = [word.lower() for word in WORD.findall(name) if not word.isdecimal()]
    are_metadata = [METADATA.fullmatch(word) is not None for word in words]
    return any(are_metadata) and all(
        is_one or BESIDE.fullmatch(word) for word, is_one in zip(words, are_metadata, strict=True)
    )


def coded_columns(X: Array) -> list[int]:
    """Return the first and last columns of few different whole numbers, where nearly all others are not whole.

    Such columns in the middle of a table may be features: logarithms of small counts are often whole.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((12, 20))
    >>> X[:, 19] = [1, 2] * 6
    >>> coded_columns(X)
    [19]
    """
    n_samples, n_features = X.shape
    if n_samples < FEWEST or n_features < FEWEST:
        return []
    possible = np.arange(n_features)
    for start in range(0, n_samples, 16):  # the first few leave few columns to look at
        some = X[start : start + 16, possible]
        possible = possible[np.all((some == np.rint(some)) | np.isnan(some), axis=0)]
    if len(possible) > FEW_WHOLE * n_features:
        return []
    whole = set(possible.tolist())
    n_first = next(place for place in range(n_features) if place not in whole)
    n_last = next(place for place in range(n_features) if n_features - 1 - place not in whole)
    at_the_ends = [*range(n_first), *range(n_features - n_last, n_features)]
    return [place for place in at_the_ends if 2 <= len(np.unique(X[~np.isnan(X[:, place]), place])) <= MOST_CODES]
