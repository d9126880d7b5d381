"""Samples of a table and rows of a file of labels, matched by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from l20fs.data.readers.names import core
from l20fs.data.readers.table import DataError, Request
from l20fs.text import abbreviated, listed


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


def without_affix(samples: Collection[str], names: Collection[str]) -> dict[str, str]:
    """Return the sample of each name if all names of one side have a beginning or an ending more than those of the other.

    Examples
    --------
    >>> without_affix(["treated1", "untreated1"], ["untreated1fb", "treated1fb"])
    {'treated1fb': 'treated1', 'untreated1fb': 'untreated1'}
    >>> without_affix(["GSM1_A", "GSM1_B"], ["A", "B"])
    {'A': 'GSM1_A', 'B': 'GSM1_B'}
    >>> without_affix(["A1", "B1"], ["A1x", "B1y"])
    {}
    """
    for short, long in ((samples, names), (names, samples)):
        first, known = next(iter(short), ""), set(long)
        for other in sorted(known) if first and 2 <= len(short) else ():
            start, found, end = other.partition(first)
            if found and bool(start) != bool(end) and all(f"{start}{name}{end}" in known for name in short):
                pairs = [(f"{start}{name}{end}", name) for name in short]
                return dict(pairs) if short is samples else {name: whole for whole, name in pairs}
    return {}


def match_names(samples: Sequence[str], names: Sequence[str], *, near: bool) -> Match:
    """Match samples and rows of the same name; with ``near`` also those whose :func:`core` is the same and unique in both.

    If none is the same with ``near``, names match that have one beginning or ending more on one side than on the other.

    Examples
    --------
    >>> match_names(["Probe 1", "B", "C"], ["B", "probe_1", "D"], near=True)
    Match(rows={1: 0, 0: 1}, near=[('Probe 1', 'probe_1')], missing=['C'], extra=['D'])
    """
    first_row: dict[str, int] = {}
    for row, name in enumerate(names):
        first_row.setdefault(name, row)
    rows = {i: first_row[name] for i, name in enumerate(samples) if name in first_row}
    close: list[tuple[str, str]] = []
    if near and len(rows) < len(samples):
        known = set(samples)
        n_samples, n_names = (Counter(core(name) for name in some) for some in (known, first_row))
        by_core = {core(name): name for name in first_row}
        for i, sample in enumerate(samples):
            key = core(sample)
            if i not in rows and key and n_samples[key] == n_names[key] == 1:
                rows[i] = first_row[by_core[key]]
                close.append((sample, by_core[key]))
        for name, sample in ({} if rows else without_affix(dict.fromkeys(samples), first_row)).items():
            rows[list(samples).index(sample)] = first_row[name]
            close.append((sample, name))
    used = set(rows.values())
    return Match(
        rows,
        close,
        missing=[name for i, name in enumerate(samples) if i not in rows],
        extra=[name for name, row in first_row.items() if row not in used and name.strip()],
    )


def join(samples: Sequence[str], names: Sequence[str], request: Request, asked: Request, hint: str = "") -> dict[int, int]:
    """Return the row of each sample that is used, by the rule ``request.join``.

    Without a rule all samples are used if all names are the same on both sides, else those that match, unless they are less
    than half of the samples.
    """
    nearly = match_names(samples, names, near=True)
    match = nearly if request.join in (None, "near") else match_names(samples, names, near=False)
    if not (match.near or match.missing or match.extra):
        return match.rows
    is_refused = (request.join is None and 2 * len(match.rows) < len(samples)) or not match.rows
    if is_refused or request.join == "exact":
        raise DataError(_refusal(match, nearly, samples, request, asked, hint))
    if request.join is None:
        asked.guess("join", "near" if match.near else "inner", _summary(match, samples, request))
    elif match.missing or match.extra:
        asked.note(f"{_summary(match, samples, request)}.")
    return match.rows


def _summary(match: Match, samples: Sequence[str], request: Request) -> str:
    """Return the sentence that says which samples are used, with the first names of both sides."""
    n_missing, n_extra = len(match.missing), len(match.extra)
    parts = []
    if match.near:
        parts.append(
            f"{len(match.near)} of {len(samples)} names differ from those of {request.name} in case, punctuation or endings "
            f"only ({_pairs(match)}) and are matched"
        )
    if n_missing:
        have = "has" if n_missing == 1 else "have"
        parts.append(
            f"{n_missing} of {len(samples)} samples of {request.name} {have} no label ({abbreviated(match.missing)})"
        )
    if n_extra:
        some = "1 label" if n_extra == 1 else f"{n_extra} labels"
        have = "" if n_missing else "has " if n_extra == 1 else "have "
        where = "" if n_missing else f" in {request.name}"
        parts.append(f"{some} {have}no sample{where} ({abbreviated(match.extra)})")
    used = f": the {len(match.rows)} in both are used" if n_missing or n_extra else ""
    return " and ".join(parts) + used


def _refusal(match: Match, nearly: Match, samples: Sequence[str], request: Request, asked: Request, hint: str) -> str:
    """Return the message for names that do not match, with names of both sides and the ways out."""
    missing = f"no label for {len(match.missing)} of {len(samples)} samples of {request.name} ({listed(match.missing)})"
    extra = f"{len(match.extra)} labels for samples that are not in {request.name} ({listed(match.extra)})"
    found = " and ".join(text for text, some in ((missing, match.missing), (extra, match.extra)) if some)
    near = f"match also names such as {_pairs(nearly)} (--join near)" if nearly.near and not match.near else ""
    inner = "use those in both (--join inner)" if match.rows and request.join != "inner" else ""
    ways = ", or ".join(way for way in ("make the names the same", near, inner) if way)
    return f"{asked.name}: {found}. {ways[0].upper()}{ways[1:]}.{hint}"


def _pairs(match: Match) -> str:
    """Return the first matched names that differ, of the table and of the labels."""
    shown = ", ".join(f"{sample!r} / {name!r}" for sample, name in match.near[:3])
    return shown + (", ..." if len(match.near) > 3 else "")
