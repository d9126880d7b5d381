"""Targets of the samples: labels as text, or numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from l20fs.data.readers.limits import check_memory
from l20fs.data.readers.number_texts import KNOWN_MISSING, MARKS, as_number, is_missing
from l20fs.data.readers.table import AS_NUMBER, Contents, DataError, Request, find
from l20fs.text import MOST, counted, first_of, folded, listed
from l20fs.typing import Array

#: Texts that stand for a missing label, in lower case, as R, pandas and spreadsheets write it.
NO_LABEL = frozenset(["", "na", "n/a", "nan", "<na>", "#n/a", "#nv"])

#: Numbers with more different values than this may be meant as numbers.
FEW_LABELS = 20

#: Maximum number of characters of a label or a group, and memory per character of the longest one and sample: NumPy stores
#: all of them as wide as that, and they are copied and sorted.
MOST_CHARACTERS, MEMORY_PER_CHARACTER = 1000, 16

#: What to do about numbers that may be labels.
CHOOSE = "Say which they are: --task regression for numbers, --task classification for labels."


def targets_of(texts: Sequence[str], what: str, contents: Contents, request: Request, turn_hint: str) -> Array:
    """Return labels as text, or numbers for a regression, after a check that they are such."""
    if request.task == "regression":
        return numbers_of(texts, what, contents, request)
    labels = labels_of(texts, what, contents, request)
    if request.needed is None:
        _refuse_no_classes(labels, what, request, turn_hint)
    return labels


def leave_out_unlabelled(contents: Contents, what: str, request: Request) -> Contents:
    """Return the contents without the samples whose label or number is missing."""
    if contents.y is None:
        return contents
    texts = [str(value).strip() for value in contents.y]
    _refuse_long(texts, what, contents, request)
    gone = [place for place, text in enumerate(texts) if _is_no_target(text, request)]
    n_gone, n_samples = len(gone), len(texts)
    if not gone:
        return contents
    shown = listed(dict.fromkeys(texts[place] for place in gone if texts[place]), empty="")
    have = f"{n_gone} of {n_samples} samples {'has' if n_gone == 1 else 'have'} no {what}"
    said = f"{have}{f' ({shown})' if shown else ''}, {first_of(n_gone)}in {_places(gone, contents)}"
    if n_gone == n_samples:
        raise DataError(f"{request.name}: {said}. Fill them in, or name another column.")
    request.guess(None, None, f"{said}; {'it is' if n_gone == 1 else 'they are'} left out")
    gone_too = set(gone)
    return contents.with_samples([place for place in range(n_samples) if place not in gone_too])


def _is_no_target(text: str, request: Request) -> bool:
    """Return whether a label or a number is missing; words such as "none" may be classes, under --strict also NA."""
    if request.task == "regression":
        return is_missing(text, request) or text.lower() in KNOWN_MISSING
    return text in request.na or (not text if request.strict else text.lower() in NO_LABEL)


def labels_of(values: Sequence[str], what: str, contents: Contents, request: Request) -> Array:
    """Return labels or groups as text, or raise an error if a sample has none."""
    longest = _refuse_long(values, what, contents, request)
    check_memory(MEMORY_PER_CHARACTER * longest * len(values), request)
    texts = np.array(list(values), dtype=str)
    _refuse_missing(np.flatnonzero(np.char.strip(texts) == ""), what, contents, request)
    return texts


def nuisances_of(contents: Contents, request: Request) -> dict[str, Array]:
    """Return the columns to adjust for by name: numbers, if some have a fraction or it is said, or labels.

    Examples
    --------
    >>> from pathlib import Path
    >>> contents = Contents(np.eye(4), list("abcd"), beside={"batch": list("1122"), "age": ["31", "45.5", "60", "52"]})
    >>> nuisances_of(contents, Request(Path("a.csv"), adjust_for=["batch", "age"]))
    {'batch': array(['1', '1', '2', '2'], dtype='<U1'), 'age': array([31. , 45.5, 60. , 52. ])}
    """
    found = {}
    for given in request.adjust_for:
        name = given.removesuffix(AS_NUMBER)
        find(name, list(contents.beside), "column", request)
        labels, what = labels_of(contents.beside[name], repr(name), contents, request), f"--adjust-for {name!r}"
        texts = [text.strip() for text in labels.tolist()]
        _refuse_missing(np.flatnonzero([text.lower() in NO_LABEL for text in texts]), repr(name), contents, request)
        numbers = [as_number(text, contents.decimal) for text in texts]
        odd = [text for text, number in zip(texts, numbers, strict=True) if number is None or not math.isfinite(number)]
        if given.endswith(AS_NUMBER) and odd:
            shown = listed(dict.fromkeys(odd))
            raise DataError(f"{request.name}: {what} holds no numbers: {shown}. Correct it, or leave {AS_NUMBER!r} out.")
        has_fractions = not odd and any(number % 1.0 for number in numbers if number is not None)
        if given.endswith(AS_NUMBER) or has_fractions:
            found[name] = np.array(numbers, dtype=np.float64)
            continue
        found[name], n_labels = labels, len(set(texts))
        way_out = f"If they are numbers, say so: --adjust-for {name}{AS_NUMBER}." if not odd else "Name another column."
        if n_labels > max(2, len(texts) // 2):
            raise DataError(f"{request.name}: {what} has {n_labels} labels for {len(texts)} samples. {way_out}")
        if not odd and n_labels > FEW_LABELS:
            request.note(f"{what} has {n_labels} different numbers, which are taken for labels. {way_out}")
    return found


def _refuse_long(values: Sequence[str], what: str, contents: Contents, request: Request) -> int:
    """Raise an error for a label that is too long; return the length of the longest one."""
    lengths = [len(value) for value in values]
    longest = max(lengths, default=0)
    if longest > MOST_CHARACTERS:
        place = _places([lengths.index(longest)], contents)
        raise DataError(
            f"{request.name}: {what} has {longest} characters in {place}. Labels and groups have at most {MOST_CHARACTERS}; "
            "shorten it, or name another column."
        )
    return longest


def numbers_of(values: Sequence[str], what: str, contents: Contents, request: Request) -> Array:
    """Return numbers, or raise an error that names the first missing, odd or infinite one."""
    texts = [value.strip() for value in values]
    are_missing = [is_missing(text, request) or text.lower() in KNOWN_MISSING for text in texts]
    _refuse_missing(np.flatnonzero(are_missing), what, contents, request)
    found = [as_number(text, contents.decimal) for text in texts]
    odd = [i for i, number in enumerate(found) if number is None]
    if odd:
        shown = listed(dict.fromkeys(texts[i] for i in odd))
        n_odd = "1 value that is no number" if len(odd) == 1 else f"{len(odd)} values that are no numbers"
        raise DataError(
            f"{request.name}: {what} has {n_odd}: {shown}, first in {_places(odd, contents)}. A regression needs numbers, "
            f"with a {MARKS[contents.decimal]} (--decimal); for labels leave --task regression out."
        )
    numbers = np.array(found, dtype=np.float64)
    infinite = np.flatnonzero(~np.isfinite(numbers))
    if len(infinite):
        raise DataError(
            f"{request.name}: {what} has {counted(len(infinite), 'infinite value')}, first in "
            f"{_places(infinite, contents)}. Drop them."
        )
    if not np.ptp(numbers) and request.needed is None:
        raise DataError(f"{request.name}: {what} is {numbers[0]:g} in all samples, so there is nothing to predict.")
    return numbers


def _refuse_missing(samples: Sequence[int] | Array, what: str, contents: Contents, request: Request) -> None:
    if len(samples):
        places = _places(samples, contents)
        have = f"{counted(len(samples), 'sample')} {'has' if len(samples) == 1 else 'have'} no {what}"
        raise DataError(f"{request.name}: {have}, {first_of(len(samples))}in {places}. Fill or drop them.")


def note_on_numbers(labels: Array, what: str, request: Request) -> tuple[str, ...]:
    """Return a note for the user if labels are many whole numbers."""
    if request.task != "auto" or labels.dtype.kind != "U":
        return ()
    distinct = np.unique(labels)
    if len(distinct) <= FEW_LABELS or not _are_numbers(distinct):
        return ()
    return (f"{request.name}: {what} has {len(distinct)} different numbers, which are taken for labels. {CHOOSE}",)


def note_on_spelling(labels: Array, groups: Array | None, request: Request) -> tuple[str, ...]:
    """Return notes for the user about labels, and about groups, that differ only in case or blanks.

    Examples
    --------
    >>> from pathlib import Path
    >>> note_on_spelling(np.array(["NB", "NB ", "nb", "EWS", "NB"]), None, Request(Path("a.csv")))[0][:72]
    "a.csv: labels differ only in case or blanks: 'NB' (2), 'NB ' (1), 'nb' ("
    """
    notes = []
    for values, what, are in ((labels, "labels", "classes"), (groups, "groups", "groups")):
        if values is None or values.dtype.kind != "U":
            continue
        distinct, sizes = np.unique(values, return_counts=True)
        alike: dict[str, list[str]] = {}
        for text, size in zip(distinct.tolist(), sizes.tolist(), strict=True):
            alike.setdefault(folded(text), []).append(f"{text!r} ({size})")
        shown = [", ".join(some) for some in alike.values() if len(some) > 1]
        if shown:
            more = f" and {len(shown) - MOST} more" if len(shown) > MOST else ""
            notes.append(
                f"{request.name}: {what} differ only in case or blanks: {'; '.join(shown[:MOST])}{more}. They are different "
                f"{are}; make them equal if they are the same."
            )
    return tuple(notes)


def _refuse_no_classes(labels: Array, what: str, request: Request, turn_hint: str) -> None:
    """Raise an error if there are too many different labels, or numbers that are hardly labels."""
    distinct, sizes = np.unique(labels, return_counts=True)
    are_numbers = request.task == "auto" and _are_numbers(distinct)
    if len(distinct) > max(2, len(labels) // 2):
        way_out = f" {CHOOSE}" if are_numbers else ""
        raise DataError(
            f"{request.name}: column {what} has {len(distinct)} different values in {len(labels)} samples. A target needs a "
            f"few classes with several samples each.{way_out}{turn_hint}"
        )
    if are_numbers and len(distinct) > FEW_LABELS:
        has_fractions = any((as_number(text) or 0.0) % 1.0 for text in distinct.tolist())
        if has_fractions or 2 * np.count_nonzero(sizes <= 2) > len(distinct):
            raise DataError(
                f"{request.name}: column {what} has {len(distinct)} different numbers in {len(labels)} samples. {CHOOSE}"
            )


def _are_numbers(distinct: Array) -> bool:
    return all(number is not None and math.isfinite(number) for number in map(as_number, distinct.tolist()))


def _places(samples: Sequence[int] | Array, contents: Contents) -> str:
    """Return the lines of some samples in the file, or the number of the first one."""
    if contents.lines:
        return "line " + ", ".join(str(contents.lines[i]) for i in samples[:5])
    return f"sample {samples[0] + 1}"
