"""Targets of the samples, groups and covariates: labels as text, or numbers; and what looks wrong about them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from l20fs.tables.numbers import MISSING, MISSING_IN_USE, as_number, shown_mark
from l20fs.tables.table import AS_NUMBER, Contents, Reading
from l20fs.text import MOST, counted, first_of, folded, listed
from l20fs.typing import Array

#: Texts that stand for a missing label, in lower case, as R, pandas and spreadsheets write it.
NO_LABEL = frozenset(["", "na", "n/a", "nan", "<na>", "#n/a", "#nv"])

#: Numbers with more different values than this may be meant as numbers.
FEW_LABELS = 20

#: Maximum number of characters of a label or a group: NumPy stores all of them as wide as the longest one.
MOST_CHARACTERS = 1000

#: What to do about numbers that may be labels.
CHOOSE = "Say which they are: --task regression for numbers, --task classification for labels."

#: A feature is the target itself if so little of it is left within the classes, or beside the line.
LEFT_OVER = 1e-6

#: Fewest features by which two samples can be told to be one.
FEWEST_FEATURES = 10


def leave_out_unlabelled(contents: Contents, what: str, reading: Reading) -> Contents:
    """Return the contents without the samples whose label or number is missing."""
    if contents.y is None:
        return contents
    texts = [text.strip() for text in contents.y]
    _refuse_long(texts, what, contents, reading)
    gone = [place for place, text in enumerate(texts) if _is_no_target(text, reading)]
    n_gone, n_samples = len(gone), len(texts)
    if not gone:
        return contents
    shown = listed(dict.fromkeys(texts[place] for place in gone if texts[place]), empty="")
    have = f"{n_gone} of {n_samples} samples {'has' if n_gone == 1 else 'have'} no {what}"
    said = f"{have}{f' ({shown})' if shown else ''}, {first_of(n_gone)}in {contents.sample(gone[0])}"
    if n_gone == n_samples:
        raise reading.error(f"{said}. Fill them in, or name another column.")
    reading.say(f"{said}; {'it is' if n_gone == 1 else 'they are'} left out")
    gone_too = set(gone)
    return contents.with_samples([place for place in range(n_samples) if place not in gone_too])


def _is_no_target(text: str, reading: Reading) -> bool:
    """Return whether a label or a number is missing; words such as "none" may be classes."""
    known = MISSING | MISSING_IN_USE if reading.task == "regression" else NO_LABEL
    return text in reading.input.na or text.lower() in known


def targets_of(contents: Contents, what: str, reading: Reading) -> Array:
    """Return labels as text, or numbers for a regression, after a check that they are such."""
    if contents.y is None:
        return np.full(contents.X.shape[0], "")
    if reading.task == "regression":
        return _numbers_of(contents.y, what, contents, reading)
    labels = labels_of(contents.y, what, contents, reading)
    if reading.needed is None:
        _refuse_no_classes(labels, what, reading)
    return labels


def labels_of(values: Sequence[str], what: str, contents: Contents, reading: Reading) -> Array:
    """Return labels or groups as text, or raise an error if a sample has none."""
    _refuse_long(values, what, contents, reading)
    texts = np.array(list(values), dtype=str)
    empty = np.flatnonzero(np.char.strip(texts) == "")
    if len(empty):
        have = f"{counted(len(empty), 'sample')} {'has' if len(empty) == 1 else 'have'} no {what}"
        raise reading.error(f"{have}, {first_of(len(empty))}in {contents.sample(int(empty[0]))}. Fill or drop them.")
    return texts


def covariates_of(contents: Contents, reading: Reading) -> dict[str, Array]:
    """Return the columns to adjust for by name: numbers, if some have a fraction or it is said, or labels.

    Examples
    --------
    >>> from pathlib import Path
    >>> contents = Contents(np.eye(4), list("abcd"), about={"batch": list("1122"), "age": ["31", "45.5", "60", "52"]})
    >>> covariates_of(contents, Reading(Path("a.csv"), adjust_for=["batch", "age"]))
    {'batch': array(['1', '1', '2', '2'], dtype='<U1'), 'age': array([31. , 45.5, 60. , 52. ])}
    """
    found = {}
    for given in reading.adjust_for:
        name, is_said = given.removesuffix(AS_NUMBER), given.endswith(AS_NUMBER)
        reading.find(name, list(contents.about))
        values = ["" if text.strip().lower() in NO_LABEL else text for text in contents.about[name]]
        labels, what = labels_of(values, repr(name), contents, reading), f"--adjust-for {name!r}"
        texts = [text.strip() for text in labels.tolist()]
        numbers = [as_number(text, _mark_of(texts, contents, reading)) for text in texts]
        odd = [text for text, number in zip(texts, numbers, strict=True) if number is None or not math.isfinite(number)]
        if is_said and odd:
            shown = listed(dict.fromkeys(odd))
            raise reading.error(f"{what} holds no numbers: {shown}. Correct it, or leave {AS_NUMBER!r} out.")
        if is_said or (not odd and any(number % 1.0 for number in numbers if number is not None)):
            found[name] = np.array(numbers, dtype=np.float64)
            continue
        found[name], n_labels = labels, len(set(texts))
        way_out = "Name another column." if odd else f"If they are numbers, say so: --adjust-for {name}{AS_NUMBER}."
        if n_labels > max(2, len(texts) // 2):
            raise reading.error(f"{what} has {n_labels} labels for {len(texts)} samples. {way_out}")
        if not odd and n_labels > FEW_LABELS:
            reading.say(f"{what} has {n_labels} different numbers, which are taken for labels. {way_out.rstrip('.')}")
    return found


def _mark_of(texts: Sequence[str], contents: Contents, reading: Reading) -> str:
    """Return the decimal mark of numbers to predict: that of the table, or the one that they show."""
    if reading.input.decimal is not None:
        return reading.input.decimal
    return "," if contents.mark == "," and shown_mark(texts) != "." else shown_mark(texts)


def _refuse_long(values: Sequence[str], what: str, contents: Contents, reading: Reading) -> None:
    """Raise an error for a label that is too long."""
    lengths = [len(value) for value in values]
    longest = max(lengths, default=0)
    if longest > MOST_CHARACTERS:
        place = contents.sample(lengths.index(longest))
        raise reading.error(
            f"{what} has {longest} characters in {place}. Labels and groups have at most {MOST_CHARACTERS}; shorten it, or "
            "name another column."
        )


def _numbers_of(values: Sequence[str], what: str, contents: Contents, reading: Reading) -> Array:
    """Return numbers, or raise an error that names the first odd or infinite one."""
    texts = [value.strip() for value in values]
    mark = _mark_of(texts, contents, reading)
    found = [as_number(text, mark) for text in texts]
    odd = [i for i, number in enumerate(found) if number is None]
    if odd:
        shown = listed(dict.fromkeys(texts[i] for i in odd))
        n_odd = "1 value that is no number" if len(odd) == 1 else f"{len(odd)} values that are no numbers"
        raise reading.error(
            f"{what} has {n_odd}: {shown}, first in {contents.sample(odd[0])}. A regression needs numbers with one decimal "
            "mark (--config input.decimal=...); for labels leave --task regression out."
        )
    numbers = np.array(found, dtype=np.float64)
    infinite = np.flatnonzero(~np.isfinite(numbers))
    if len(infinite):
        n_infinite, place = counted(len(infinite), "infinite value"), contents.sample(int(infinite[0]))
        raise reading.error(f"{what} has {n_infinite}, {first_of(len(infinite))}in {place}. Drop them.")
    if not np.ptp(numbers) and reading.needed is None:
        raise reading.error(f"{what} is {numbers[0]:g} in all samples, so there is nothing to predict.")
    return numbers


def _refuse_no_classes(labels: Array, what: str, reading: Reading) -> None:
    """Raise an error if there are too many different labels, or numbers that are hardly labels."""
    distinct, sizes = np.unique(labels, return_counts=True)
    are_numbers = reading.task == "auto" and _are_numbers(distinct)
    if len(distinct) > max(2, len(labels) // 2):
        way_out = f" {CHOOSE}" if are_numbers else ""
        raise reading.error(
            f"column {what} has {len(distinct)} different values in {len(labels)} samples. A target needs a few classes "
            "with "
            f"several samples each.{way_out}"
        )
    if are_numbers and len(distinct) > FEW_LABELS:
        has_fractions = any((as_number(text) or 0.0) % 1.0 for text in distinct.tolist())
        if has_fractions or 2 * np.count_nonzero(sizes <= 2) > len(distinct):
            raise reading.error(f"column {what} has {len(distinct)} different numbers in {len(labels)} samples. {CHOOSE}")
        reading.say(f"{what} has {len(distinct)} different numbers, which are taken for labels. {CHOOSE.rstrip('.')}")


def _are_numbers(distinct: Array) -> bool:
    return all(number is not None and math.isfinite(number) for number in map(as_number, distinct.tolist()))


def say_spelling(labels: Array, groups: Array | None, reading: Reading) -> None:
    """Say which labels, and which groups, differ only in case or blanks."""
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
            reading.say(
                f"{what} differ only in case or blanks: {'; '.join(shown[:MOST])}{more}. They are different {are}; make "
                "them "
                "equal if they are the same"
            )


def say_leaks(X: Any, y: Array, contents: Contents, reading: Reading) -> None:
    """Say which features may be the target under another name: by their name, or since nothing of them is left beside it."""
    places: set[int] = set()
    if len(contents.target) > 2:
        named = re.compile(rf"(?<![^\W_]){re.escape(contents.target)}(?![^\W_])", re.IGNORECASE)
        places = {place for place, name in enumerate(contents.features) if named.search(name)}
    if isinstance(X, np.ndarray) and len(y) >= 4:
        places |= set(_copies(X, y).tolist())
    if places:
        names = [contents.features[place] for place in sorted(places)]
        said = f"{counted(len(names), 'feature')} may be the target under another name: {listed(names)}"
        reading.say(f"{said}. If so, leave it out: --ignore {','.join(names[:MOST])!r}")


def _copies(X: Array, y: Array) -> Array:
    """Return the features that are a function of the classes, or a line in the numbers to predict."""
    if y.dtype.kind == "f":
        kinds, some = np.column_stack([np.ones(len(y)), y - y.mean()]), np.arange(min(len(y), 8))
    else:
        classes, codes = np.unique(y, return_inverse=True)
        if not 2 <= len(classes) <= len(y) // 2:
            return np.zeros(0, dtype=np.intp)
        kinds = np.eye(len(classes))[codes]
        some = np.concatenate([np.flatnonzero(codes == code)[:3] for code in range(len(classes))])
    possible = np.flatnonzero(_left_over(X[some], kinds[some]) <= LEFT_OVER)  # a few samples leave few features to look at
    return possible[_left_over(X[:, possible], kinds) <= LEFT_OVER]


def _left_over(X: Array, kinds: Array) -> Array:
    """Return the share of each feature that is left beside the kinds of samples; 1 of what is constant."""
    basis, triangle = np.linalg.qr(kinds)
    basis = basis[:, np.abs(np.diag(triangle)) > 1e-9]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        centred = X - X[:1]
        centred = centred - centred.mean(axis=0)
        total = np.square(centred).sum(axis=0)
        left = total - np.square(basis.T @ centred).sum(axis=0)
        return np.where(total > 0, left / total, 1.0)


def say_twice(X: Any, contents: Contents, reading: Reading) -> None:
    """Say which samples have the same values: a sample that stands twice is trained and tested at once."""
    if not isinstance(X, np.ndarray) or X.shape[1] < FEWEST_FEATURES:
        return
    first: dict[bytes, int] = {}
    pairs = [(first.setdefault(row.tobytes(), i), i) for i, row in enumerate(X)]
    twice = [(one, other) for one, other in pairs if one != other and np.ptp(X[one])]
    if twice:
        names = contents.samples or [str(i + 1) for i in range(len(X))]
        shown = ", ".join(f"{names[one]!r} and {names[other]!r}" for one, other in twice[:3])
        more = f" and {len(twice) - 3} more" if len(twice) > 3 else ""
        pair = "pair" if len(twice) == 1 else "pairs"
        reading.say(f"{len(twice)} {pair} of samples have the same values: {shown}{more}. Keep one of each, or say --groups")
