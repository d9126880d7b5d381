"""Labels from a second file, matched by sample names or in the order of the lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from l20fs.tables.errors import UnknownColumnError
from l20fs.tables.joining import join
from l20fs.tables.names import PATIENT, core
from l20fs.tables.shape import TURN_HINT
from l20fs.tables.table import Contents, Reading
from l20fs.tables.text import MOST_LINES, find_header
from l20fs.text import by_number, counted, listed

Rows = list[list[str]]
#: Rows with their numbers in the file, counted from 1.
Numbered = list[tuple[int, list[str]]]


def labelled_samples(rows: Numbered) -> frozenset[str]:
    """Return what may be names of samples: all cells of columns without repeated ones, if there are several columns."""
    width = max((len(row) for _, row in rows), default=0)
    columns = [[row[j] for _, row in rows if j < len(row)] for j in range(width if width > 1 else 0)]
    return frozenset(name for column in columns if len(set(column)) == len(column) for name in column if name.strip())


def labelled(contents: Contents, numbered: Numbered, reading: Reading) -> Contents:
    """Return the contents with what the rows of the file of labels say, without samples that have none."""
    assert reading.labels is not None
    asked = replace(reading, file=reading.labels)  # from here on messages name the file of labels
    rows = _tidied(numbered, set(contents.samples or ()), asked)
    samples, n_samples = contents.samples, contents.X.shape[0]
    names = _name_column(rows, samples, asked) if samples is not None and len(rows[0]) > 1 else None
    header, body = _without_header(rows, names, samples, n_samples, asked)
    column = _label_column(header, body, names, asked)
    elsewhere = [name for name in reading.beside if name not in contents.about]
    beside = {name: asked.find(name, header or []) for name in elsewhere}
    if names is None:
        if len(body) != n_samples:
            raise asked.error(f"{len(body)} labels, but {n_samples} samples. Give one label per sample.")
        if len(rows[0]) > 1:
            asked.say(f"{reading.name} has no sample names, so the labels are taken in the order of the lines")
        order = list(range(n_samples))
    else:
        assert samples is not None
        reading.refuse_repeated(samples, "sample")
        if names:
            asked.say(f"the sample names are in column {repr(header[names]) if header else f'number {names + 1}'}")
        place = join(samples, [row[names] for row in body], reading, asked, _turn_hint(rows, contents))
        contents = contents.with_samples(sorted(place))
        order = [place[i] for i in sorted(place)]
        _refuse_conflicts(body, order, names, [column, *beside.values()], asked)
        _suggest_groups(header, body, order, asked)
    target = header[column] if header else ""
    found = {name: [body[i][j] for i in order] for name, j in {target: column, **beside}.items()}
    about = {name: texts for name, texts in contents.about.items() if name not in found}
    return replace(contents, about=about | found, target=target, lines=())


def _tidied(numbered: Numbered, samples: set[str], asked: Reading) -> Rows:
    """Return rows of the same length, without titles above them, empty ones, and empty columns at the right."""
    numbered = [(number, row) for number, row in numbered if len(row) == 1 or any(map(str.strip, row))]
    if not any(map(str.strip, (field for _, row in numbered for field in row))):
        raise asked.error("the file is empty. Give one label per sample.")
    head = numbered[:MOST_LINES]
    place, is_short = find_header([row for _, row in head], [number - 1 for number, _ in head], asked)
    first = next((i for i, (_, row) in enumerate(head) if not samples.isdisjoint(row)), place)  # no title names a sample
    place = min(place, first)
    if place and place == first and len(head[place - 1][1]) == len(head[place][1]) - 1:
        place, is_short = place - 1, True
    if place:
        skipped = f"{counted(place, 'line')} above the table {by_number(place, 'was', 'were')} skipped"
        asked.say(f"{skipped}, first {next(filter(None, head[0][1]), '')[:40]!r}")
    rows = [(number, ["", *row] if is_short and i == 0 else row) for i, (number, row) in enumerate(numbered[place:])]
    n_fields = len(rows[0][1])
    for i, (number, row) in enumerate(rows):
        if len(row) != n_fields:
            if any(map(str.strip, row[n_fields:])) or len(row) < n_fields:
                raise asked.error(f"line {number} has {len(row)} fields. Every line must have {n_fields} fields.")
            rows[i] = (number, row[:n_fields])
    n_filled = max(1 + j for _, row in rows for j, field in enumerate(row) if field.strip())
    return [row[:n_filled] for _, row in rows]


def _name_column(rows: Rows, samples: Sequence[str], asked: Reading) -> int:
    """Return the column that holds most names of samples, if only nearly; the first one if there are several."""
    columns = [set(column) for column in zip(*rows, strict=True)]
    known = set(samples)
    counts = [len(known & column) for column in columns]
    if not any(counts):
        known = {core(name) for name in known}
        counts = [len(known & {core(name) for name in column} - {""}) for column in columns]
    if asked.target in rows[0]:
        counts[rows[0].index(asked.target)] = 0
    return counts.index(max(counts))


def _without_header(
    rows: Rows, names: int | None, samples: Sequence[str] | None, n_samples: int, asked: Reading
) -> tuple[list[str] | None, Rows]:
    """Split off the header, if there is one, according to the names or the number of the samples."""
    if any(name in rows[0] for name in (asked.target, *asked.beside) if name is not None):
        return rows[0], rows[1:]
    if asked.target is not None and len(rows[0]) > 1:
        asked.find(asked.target, rows[0])
    if names is None:
        has_header = len(rows) == n_samples + 1
    else:
        first, known = rows[0][names], samples or []
        has_header = first not in known and core(first) not in {core(name) for name in known}
    return (rows[0], rows[1:]) if has_header else (None, rows)


def _label_column(header: list[str] | None, body: Rows, names: int | None, asked: Reading) -> int:
    n_columns = len(body[0]) if body else len(header or [])
    if asked.target is not None and header is not None:
        return asked.find(asked.target, header)
    others = [j for j in range(n_columns) if j != (names or 0)]
    if len(others) > 1:
        named = listed(header[j] for j in others) if header else f"{n_columns} of them"
        raise UnknownColumnError(f"{asked.name}: which column has the labels? Name it (--target COLUMN): {named}.")
    return others[0] if others else 0


def _refuse_conflicts(rows: Rows, used: Sequence[int], names: int, columns: Sequence[int], asked: Reading) -> None:
    """Raise an error for samples with several rows that do not agree."""
    said: dict[str, set[tuple[str, ...]]] = {rows[i][names]: set() for i in used}
    for row in rows:
        if row[names] in said:
            said[row[names]].add(tuple(row[column] for column in columns))
    torn = [name for name, values in said.items() if len(values) > 1]
    if torn:
        values = listed(sorted(" ".join(value) for value in said[torn[0]]))
        raise asked.error(
            f"{len(torn)} sample names occur more than once with different labels: {listed(torn)}; {torn[0]!r} has "
            f"{values}. "
            "Keep one line for each sample."
        )


def _suggest_groups(header: Sequence[str] | None, rows: Rows, order: Sequence[int], asked: Reading) -> None:
    """Suggest to keep the samples of a patient together, if a column looks like that of patients."""
    if asked.groups is None and header is not None:
        say_groups({name: [rows[i][j] for i in order] for j, name in enumerate(header) if PATIENT.fullmatch(name)}, asked)


def say_groups(columns: Mapping[str, Sequence[str]], reading: Reading) -> None:
    """Suggest ``groups`` for the first column in which patients have several samples."""
    for name, texts in columns.items():
        n_patients = len(set(texts))
        if 1 < n_patients < len(texts):
            reading.say(
                f"column {name!r} has {n_patients} different values in {len(texts)} samples: if these are patients, "
                "keep the "
                f"samples of each together: --groups {name!r}"
            )
            return


def _turn_hint(rows: Rows, contents: Contents) -> str:
    """Return a hint if the file of labels names features of the table."""
    cells = {cell for row in rows for cell in row}
    if cells.isdisjoint(contents.features):
        return ""
    return " If its samples are in rows, say so: --config input.samples_in=rows." if contents.is_turned else f" {TURN_HINT}"
