"""Samples of a table and rows of a file of labels, matched by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from l20fs.tables.names import core
from l20fs.tables.table import Reading
from l20fs.text import abbreviated, listed

#: Share of the samples below which a join is no join, and the beginning that is preferred among several.
LEAST_SHARE, PREFERRED = 0.02, "LFQ intensity "


@dataclass(frozen=True)
class Match:
    """Rows of the samples that were found, and what was not found."""

    #: Row of each sample that has one.
    rows: dict[int, int]
    #: Samples and rows that were matched although their names differ.
    near: list[tuple[str, str]]
    #: Names of samples without a row, and of rows without a sample.
    missing: list[str]
    extra: list[str]
    #: Beginning and ending that all names of one side have more; others that would do as well.
    affix: tuple[str, str] = ("", "")
    affixes: Sequence[tuple[str, str]] = ()


def match_names(samples: Sequence[str], names: Sequence[str], *, near: bool) -> Match:
    """Match samples and rows of the same name; with ``near`` also those whose :func:`core` is the same and unique in both.

    If none is the same with ``near``, names match that have one beginning or ending more on one side than on the other.

    Examples
    --------
    >>> match_names(["Probe 1", "B", "C"], ["B", "probe_1", "D"], near=True).rows
    {1: 0, 0: 1}
    >>> match_names(["LFQ a", "LFQ b", "id"], ["a", "b"], near=True).rows
    {0: 0, 1: 1}
    """
    first_row: dict[str, int] = {}
    for row, name in enumerate(names):
        first_row.setdefault(name, row)
    rows = {i: first_row[name] for i, name in enumerate(samples) if name in first_row}
    close: list[tuple[str, str]] = []
    affixes: list[tuple[str, str]] = []
    if near and len(rows) < len(samples):
        known = dict.fromkeys(samples)
        left = {name: core(name) for name in known}
        right = {name: core(name) for name in first_row}
        n_left, n_right = Counter(left.values()), Counter(right.values())
        by_core = {key: name for name, key in right.items()}
        for i, sample in enumerate(samples):
            key = left[sample]
            if i not in rows and key and n_left[key] == n_right[key] == 1:
                rows[i] = first_row[by_core[key]]
                close.append((sample, by_core[key]))
        if not rows:
            affixes = common_affixes(list(known), list(first_row))
            for name, sample in _joined(affixes, list(known), list(first_row)):
                rows[samples.index(sample)] = first_row[name]
                close.append((sample, name))
    used = set(rows.values())
    missing = [name for i, name in enumerate(samples) if i not in rows]
    extra = [name for name, row in first_row.items() if row not in used and name.strip()]
    return Match(rows, close, missing, extra, affixes[0] if affixes else ("", ""), affixes)


def common_affixes(samples: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return beginnings and endings that most names of one side have more than those of the other, the preferred one first.

    Examples
    --------
    >>> common_affixes(["treated1", "untreated1"], ["untreated1fb", "treated1fb"])
    [('', 'fb')]
    >>> common_affixes(["A1", "B1"], ["A1x", "B1y"])
    []
    """
    best: list[tuple[str, str]] = []
    most = 1
    for short, long in ((names, samples), (samples, names)):
        known = set(long)
        tried: set[tuple[str, str]] = set()
        for name in islice(filter(str.strip, short), 3):
            for other in long:
                start, found, end = other.partition(name)
                if not found or bool(start) == bool(end) or (start, end) in tried:
                    continue
                tried.add((start, end))
                n_found = sum(f"{start}{each}{end}" in known for each in short)
                if 2 * n_found < len(short) or n_found < most:
                    continue
                best = [*(best if n_found == most else []), (start, end)]
                most = max(most, n_found)
    return sorted(dict.fromkeys(best if most > 1 else []), key=lambda affix: affix[0] != PREFERRED)


def _joined(affixes: Sequence[tuple[str, str]], samples: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of a name and a sample that differ by the first affix."""
    if not affixes:
        return []
    start, end = affixes[0]
    in_names, in_samples = set(names), set(samples)
    pairs = [(name, f"{start}{name}{end}") for name in names if f"{start}{name}{end}" in in_samples]
    return pairs or [(f"{start}{sample}{end}", sample) for sample in samples if f"{start}{sample}{end}" in in_names]


def join(samples: Sequence[str], names: Sequence[str], reading: Reading, asked: Reading, hint: str = "") -> dict[int, int]:
    """Return the row of each sample that is used, by the setting ``join``.

    Without it all samples are used if all names are the same on both sides, else those that match, unless they are so few,
    or bare numbers, that the match may be an accident.
    """
    rule = reading.input.join
    nearly = match_names(samples, names, near=True)
    match = nearly if rule in (None, "near") else match_names(samples, names, near=False)
    if len(match.affixes) > 1 and match.affix[0] != PREFERRED:
        shown = listed(f"{start}*{end}" for start, end in match.affixes)
        raise asked.error(
            f"its names are those of several kinds of columns of {reading.name}: {shown}. Leave all but one kind out: "
            f"--ignore {match.affixes[0][0] + '*'!r}"
        )
    if not (match.near or match.missing or match.extra):
        return match.rows
    n_found, n_samples = len(match.rows), len(samples)
    are_few = n_found < LEAST_SHARE * min(n_samples, len(set(names))) or _are_counts(samples)
    if not n_found or rule == "exact" or (rule is None and are_few):
        raise asked.error(_refusal(match, nearly, samples, reading, rule, hint))
    few = "only " if 2 * n_found < n_samples else ""
    option = "" if rule else f" (--config input.join={'near' if match.near else 'inner'})"
    asked.say(f"{_summary(match, samples, reading, few)}{option}")
    return match.rows


def _are_counts(names: Sequence[str]) -> bool:
    """Return whether names are bare numbers that count the samples."""
    if not all(name.strip().isdecimal() for name in names):
        return False
    numbers = sorted(map(int, names))
    return numbers[0] in (0, 1) and numbers[-1] - numbers[0] + 1 == len(numbers)


def _summary(match: Match, samples: Sequence[str], reading: Reading, few: str) -> str:
    """Return the sentence that says which samples are used, with the first names of both sides."""
    n_missing, n_extra = len(match.missing), len(match.extra)
    parts = []
    if match.near:
        how = f"but for {''.join(match.affix)!r}" if any(match.affix) else "in case, punctuation or endings only"
        parts.append(
            f"{len(match.near)} of {len(samples)} names differ from those of {reading.name} {how} ({_pairs(match)}) and are "
            "matched"
        )
    if n_missing:
        have = "has" if n_missing == 1 else "have"
        parts.append(
            f"{n_missing} of {len(samples)} samples of {reading.name} {have} no label ({abbreviated(match.missing)})"
        )
    if n_extra:
        some = "1 label" if n_extra == 1 else f"{n_extra} labels"
        have = "" if n_missing else "has " if n_extra == 1 else "have "
        where = "" if n_missing else f" in {reading.name}"
        parts.append(f"{some} {have}no sample{where} ({abbreviated(match.extra)})")
    used = f": {few}the {len(match.rows)} in both are used" if n_missing or n_extra else ""
    return " and ".join(parts) + used


def _refusal(match: Match, nearly: Match, samples: Sequence[str], reading: Reading, rule: str | None, hint: str) -> str:
    """Return the message for names that do not match, with names of both sides and the ways out."""
    missing = f"no label for {len(match.missing)} of {len(samples)} samples of {reading.name} ({listed(match.missing)})"
    extra = f"{len(match.extra)} labels for samples that are not in {reading.name} ({listed(match.extra)})"
    found = " and ".join(text for text, some in ((missing, match.missing), (extra, match.extra)) if some)
    if match.rows and rule is None:
        are = "bare numbers that count the samples" if _are_counts(samples) else "too few to be no accident"
        found += f"; the {len(match.rows)} names in both are {are}"
    near = f"match also names such as {_pairs(nearly)} (--config input.join=near)" if nearly.near and not match.near else ""
    inner = "use those in both (--config input.join=inner)" if match.rows and rule != "inner" else ""
    ways = ", or ".join(way for way in ("make the names the same", near, inner) if way)
    return f"{found}. {ways[0].upper()}{ways[1:]}.{hint}"


def _pairs(match: Match) -> str:
    """Return the first matched names that differ, of the table and of the labels."""
    shown = ", ".join(f"{sample!r} / {name!r}" for sample, name in match.near[:3])
    return shown + (", ..." if len(match.near) > 3 else "")
