"""From cells to a matrix: which way the samples lie, what is a name and what a feature, and repeated features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.tables.cells import clean, mark_of
from l20fs.tables.errors import UnknownColumnError
from l20fs.tables.joining import match_names
from l20fs.tables.memory import is_large
from l20fs.tables.names import PATIENT, matched, near_names, numbered_names
from l20fs.tables.numbers import MISSING, as_number
from l20fs.tables.table import Contents, Reading, Table
from l20fs.text import by_number, counted, listed
from l20fs.typing import Array

#: Ratio of rows to columns above which a table seems to have its genes in rows.
TALL = 20

#: Maximum number of distinct values of a column that is suggested as labels.
FEW_VALUES = 20

TURN_HINT = (
    "Samples seem to be in columns: give the classes with --labels FILE, or say so with --config input.samples_in=columns."
)


def contents_of(table: Table, reading: Reading) -> Contents:
    """Return the matrix, names and columns about the samples that the cells of a file make."""
    _refuse_unknown(table, reading)
    table = oriented(table, reading)
    reading.refuse_repeated([name for name in (table.corner, *table.header) if name in reading.about], "column")
    for name in reading.wanted:
        if name not in (table.corner, *table.header):
            hint = f" {TURN_HINT}" if looks_turned(table) else ""
            try:
                reading.find(name, [*([] if table.is_turned else [table.corner]), *table.header], _noun(table))
            except UnknownColumnError as error:
                raise UnknownColumnError(f"{error}{hint}") from None
    if reading.lacks_labels:
        raise UnknownColumnError(_labels_wanted(table, reading))
    table, samples = _with_names(table, reading)
    table = _named(table, reading)
    in_file = table.header
    table = replace(table, header=numbered(in_file, reading))
    about = {name: table.texts(table.header.index(name)) for name in reading.about if name in table.header}
    if not table.is_turned and table.corner in reading.about:
        about[table.corner] = table.first
    ignored = matched(reading.ignore, table.header)
    mark = mark_of(table.keep([j for j, name in enumerate(table.header) if name not in ignored]), reading)
    table, texts = clean(_candidates(table, reading), mark, reading)
    others = _left_out(table, texts, reading)
    others += [table.corner] if samples is not None and not table.is_turned and table.corner.strip() else []
    kept = [j for j in range(len(table.header)) if j not in set(texts)]
    features = table.keep(kept)
    if not features.header:
        also = f" but text ({listed(table.header)})" if texts else ""
        hint = f" {TURN_HINT}" if looks_turned(table) else ""
        raise reading.error(f"no feature {_noun(table)}s besides the target{also}. Add {_noun(table)}s of numbers.{hint}")
    known = {*about, *others, *features.header}
    others += [name for name in in_file if name not in known]
    contents = Contents(
        np.ascontiguousarray(features.values),
        features.header,
        samples,
        about,
        reading.table_target or "",
        features.lines,
        others,
        table.is_turned,
        table.mark,
    )
    return settled(contents, in_file, reading)


def _noun(table: Table) -> str:
    return "row" if table.is_turned else "column"


def looks_turned(table: Table) -> bool:
    """Return whether a table has so many more rows than columns that its genes seem to be in rows."""
    return not table.is_turned and len(table.first) > TALL * (len(table.header) + 1)


# Orientation


def oriented(table: Table, reading: Reading) -> Table:
    """Return the table with samples in rows: as is said, or as the names of labels, samples and features show."""
    said, reason = reading.input.samples_in, ""
    if table.is_turned:
        return _without_descriptions(table, reading)
    if said is None:
        reason = _reason_to_turn(table, reading)
        if reason:
            reading.say(f"{reason}, so samples are in columns (--config input.samples_in=columns)")
    return _without_descriptions(table.turned(), reading) if reason or said == "columns" else table


def _reason_to_turn(table: Table, reading: Reading) -> str:
    """Return why samples are in columns; nothing if they are in rows."""
    header = [table.corner, *table.header]
    if reading.wanted and not set(reading.wanted) & set(header):
        rows = [name for name in reading.wanted if name in table.first]
        return f"{rows[0]!r} is the name of a row" if rows else ""
    if reading.labelled:
        labelled = sorted(reading.labelled)
        in_columns, in_rows = (
            len(match_names(table.header, labelled, near=True).rows),
            len(reading.labelled & {*table.first}),
        )
        few = min(len(labelled), len(table.header))
        if 2 * in_columns < few:  # only then all names of a long column are looked at
            in_rows = len(match_names(table.first, labelled, near=True).rows)
        is_match = 2 * in_columns >= min(few, 2 * max(1, len(labelled) // 50))
        if in_columns > in_rows and is_match:
            return f"the samples of {reading.labels and reading.labels.name} are the names of columns"
        return ""
    if reading.needed and reading.needed.isdisjoint(header) and not reading.needed.isdisjoint(table.first):
        return "features that are needed are the names of rows"
    return ""


def _without_descriptions(table: Table, reading: Reading) -> Table:
    """Return a turned table without the columns of the file that describe features, or are to be ignored."""
    ignored = matched([item for item in reading.ignore if not matched([item], table.header)], table.first)
    texts = [i for i in table.rows if table.first[i] not in reading.labelled]
    texts = [i for i in texts if table.first[i] not in ignored]
    gone = {*texts, *(i for i, name in enumerate(table.first) if name in ignored)}
    if len(gone) == len(table.first):
        raise reading.error("no samples. Add columns of numbers.")
    if texts and reading.needed is None:
        names = [table.first[i] for i in texts]
        n, are = len(names), by_number(len(names), "is", "are")
        reading.say(f"{counted(n, 'column')} of text {are} left out: {listed(names)} (--ignore)")
    across = table.turned()
    return across.keep([i for i in range(len(table.first)) if i not in gone]).turned() if gone else table


# Names, features and texts


def _with_names(table: Table, reading: Reading) -> tuple[Table, list[str] | None]:
    """Return the table and the names of its samples, or with its first column as a feature, if it holds no names."""
    first, name = table.first, table.corner
    if table.has_names or not name.strip():
        return table, [_sample_name(text, i, table) for i, text in enumerate(first)]
    if name in reading.about:
        return table, None
    is_needed = reading.needed is not None and name in reading.needed
    numbers = [as_number(text) for text in first]
    are_numbers = all(
        number is not None or text.strip().lower() in MISSING for number, text in zip(numbers, first, strict=True)
    )
    if not are_numbers and not is_needed and (reading.labels is not None or 2 * len(set(first)) >= len(first)):
        return table, list(first)
    if are_numbers and len(set(first)) == len(first) and all(text.strip().isdecimal() for text in first):
        is_other = reading.needed is not None and not is_needed
        if is_other or set(first) <= reading.labelled:
            return table, list(first)
        whole = sorted(map(int, first))
        if len(first) >= 10 and reading.needed is None and whole[-1] - whole[0] + 1 == len(first):
            counts = f"the first column {name!r} counts the samples from {whole[0]} to {whole[-1]}"
            if not table.header:
                raise reading.error(f"{counts}, and there is no other feature. Add columns of numbers.")
            reading.say(f"{counts}, so it holds their names and is no feature (--ignore {name})")
            return table, list(first)
    return _with_first_column(table, numbers), None


def _sample_name(text: str, place: int, table: Table) -> str:
    return text if text.strip() or not table.is_turned else f"column {place + 2}"


def _with_first_column(table: Table, numbers: Sequence[float | None]) -> Table:
    """Return the table with its first column among the others."""
    column = np.array([np.nan if number is None else number for number in numbers], dtype=table.values.dtype)
    odd = {(i, 0): table.first[i] for i, number in enumerate(numbers) if number is None and table.first[i].strip()}
    return replace(
        table,
        header=[table.corner, *table.header],
        values=np.column_stack([column, table.values]),
        odd=odd | {(i, j + 1): text for (i, j), text in table.odd.items()},
        columns={j + 1: texts for j, texts in table.columns.items()},
    )


def _named(table: Table, reading: Reading) -> Table:
    """Return the table with a name for each column: those without one are called by their number, or left out if empty."""
    unnamed = [j for j, name in enumerate(table.header) if not name.strip()]
    if not unnamed:
        return table
    has_odd = {j for _, j in table.odd} | {j for j, texts in table.columns.items() if any(map(str.strip, texts))}
    empty = {j for j in unnamed if j not in has_odd and np.isnan(table.values[:, j]).all()}
    names = [name if name.strip() else f"column {j + 2}" for j, name in enumerate(table.header)]
    others = [names[j] for j in unnamed if j not in empty]
    if others and reading.needed is None:
        what = (
            f"{counted(len(others), _noun(table))} {by_number(len(others), 'has no name and is', 'have no names and are')}"
        )
        reading.say(f"{what} called {listed(others)}")
    named = replace(table, header=names)
    return named.keep([j for j in range(len(names)) if j not in empty])


def _candidates(table: Table, reading: Reading) -> Table:
    """Return the table with the columns that may be features."""
    about = {name for name in reading.about if name in table.header}
    ignored = matched(reading.ignore, table.header)
    needed = reading.needed
    kept = [j for j, name in enumerate(table.header) if name not in about and name not in ignored]
    kept = [j for j in kept if needed is None or table.header[j] in needed]
    if not kept and needed is not None:
        turned = not table.is_turned and not needed.isdisjoint(table.first)
        hint = "If its samples are in columns, say so: --config input.samples_in=columns." if turned else ""
        raise no_feature(table.header, reading, hint)
    if not kept and ignored:
        raise reading.error("--ignore leaves no feature. Leave fewer out.")
    return table.keep(kept)


def _refuse_unknown(table: Table, reading: Reading) -> None:
    """Raise an error for an item of ``ignore`` that fits nothing, or that names what is asked for."""
    names = [table.corner, *numbered_names(table.header), *numbered_names(table.first)]
    for item in reading.ignore:
        if item in reading.about:
            raise reading.error(f"--ignore {item!r} names a column that is asked for. Name others only.")
        if reading.needed is None and not matched([item], names):
            what = "no column matches" if "*" in item or "?" in item else "there is no column"
            try:
                reading.find(item, table.header)
            except UnknownColumnError as error:
                hint = str(error).partition(". ")[2]
                raise UnknownColumnError(f"{reading.name}: --ignore: {what} {item!r}. {hint}") from None


def _left_out(table: Table, texts: Sequence[int], reading: Reading) -> list[str]:
    """Say which columns of text are no features; refuse them if they are needed."""
    names = [table.header[j] for j in texts]
    if names and reading.needed is not None:
        raise reading.error(
            f"{counted(len(names), _noun(table))} of text, first {listed(names)}. Encode them as numbers; only the "
            "target, the "
            "groups, and sample names in the first column, may be text."
        )
    if names:
        patients = [name for name in names if PATIENT.fullmatch(name)]
        hint = "" if not patients or reading.groups else f"; if {patients[0]!r} has several samples each, say --groups"
        hint += f" {patients[0]}" if hint else ""
        n, are = len(names), by_number(len(names), "is", "are")
        reading.say(f"{counted(n, _noun(table))} of text {are} left out: {listed(names)} (--ignore){hint}")
    return names


def no_feature(present: Sequence[str], reading: Reading, hint: str = "") -> Exception:
    """Return the error for a table with none of the requested features; substitutes do not count."""
    wanted = sorted((reading.needed or frozenset()) - reading.substitutes)
    hint = hint or near_names(wanted, present).strip()
    return reading.error(
        f"none of the {len(wanted)} features that are needed is there ({listed(wanted)}); it has {listed(present)}. Give a "
        f"table with these names. {hint}".rstrip()
    )


def _labels_wanted(table: Table, reading: Reading) -> str:
    """Return the message for missing labels, with the columns that could hold them."""
    hint = f" {TURN_HINT}" if looks_turned(table) else ""
    if reading.task == "regression":
        return f"{reading.name}: which column has the numbers to predict? Name it (--target COLUMN).{hint}"
    columns = {table.corner: table.first} | {table.header[j]: table.texts(j) for j in _texts_first(table)}
    possible = [name for name, texts in columns.items() if 2 <= len(set(texts)) <= min(FEW_VALUES, len(texts) // 2)]
    which = f"Columns that could be the labels: {listed(possible)}." if possible else "No column looks like labels."
    return (
        f"{reading.name}: which column has the labels? Name it (--target COLUMN), or give a file with them (--labels FILE). "
        f"{which}{hint}"
    )


def _texts_first(table: Table) -> Sequence[int]:
    """Return the columns of text; without any, the first thousand."""
    texts = [j for j, name in enumerate(table.header) if j in table.columns]
    return texts or range(min(1000, len(table.header)))


# Repeated features


def numbered(names: Sequence[str], reading: Reading) -> list[str]:
    """Return the names of features with numbers for repeated ones, unless the setting says otherwise."""
    return numbered_names(names) if reading.input.duplicates == "number" else list(names)


def settled(contents: Contents, in_file: Sequence[str], reading: Reading) -> Contents:
    """Return the contents with one feature of each name, as the setting says; ``in_file`` are all names as they were."""
    rule, names = reading.input.duplicates, contents.features
    counts = Counter(in_file)
    known = set(names)
    repeated = [name for name, count in counts.items() if count > 1 and not known.isdisjoint((name, f"{name}.1"))]
    if not repeated:
        return contents
    if rule == "refuse":
        ways = " Or let it be done: --config input.duplicates=number, mean or first."
        reading.refuse_repeated(names, "feature", ways)
    done = {
        "number": f"they are numbered, as in {repeated[0] + '.1'!r}",
        "mean": "the mean of the features of one name is taken",
        "first": "the first feature of each name is taken",
    }
    what = f"{counted(len(repeated), 'feature name')} {by_number(len(repeated), 'occurs', 'occur')} more than once"
    reading.say(f"{what} ({listed(repeated)}); {done.get(rule)} (--config input.duplicates={rule})")
    if rule == "number":
        return contents
    if is_large(contents.X):
        raise reading.error(f"--config input.duplicates={rule} needs the table in memory, and it does not fit. Use number.")
    places: dict[str, int] = {}
    codes = np.array([places.setdefault(name, len(places)) for name in names])
    firsts = np.unique(codes, return_index=True)[1]
    X = contents.X[:, firsts] if rule == "first" else mean_of_groups(contents.X, codes)
    return replace(contents, X=X, features=list(places))


def chosen(contents: Contents, reading: Reading) -> Contents:
    """Return the contents of a matrix with unique names, and with the features that are wanted only."""
    in_file = contents.features
    names = numbered(in_file, reading)
    ignored = matched(reading.ignore, names)
    for item in reading.ignore:
        if reading.needed is None and not matched([item], names):
            reading.find(item, names, "feature")
    needed = reading.needed
    kept = [j for j, name in enumerate(names) if name not in ignored and (needed is None or name in needed)]
    if not kept:
        raise no_feature(names, reading) if needed is not None else reading.error("--ignore leaves no feature.")
    return settled(replace(contents, features=names).with_features(kept), in_file, reading)


def mean_of_groups(X: Any, codes: Array) -> Any:
    """Return the mean of the columns with one code, over the values that are not missing; one column per code.

    Examples
    --------
    >>> mean_of_groups(np.array([[1.0, 5.0, 3.0], [np.nan, 6.0, 4.0]]), np.array([0, 1, 0]))
    array([[2., 5.],
           [4., 6.]])
    """
    firsts, counts = np.unique(codes, return_index=True, return_counts=True)[1:]
    columns = X.tocsc() if sp.issparse(X) else X
    found = (columns[:, firsts].tolil() if sp.issparse(X) else columns[:, firsts]).copy()
    for code in np.flatnonzero(counts > 1):
        members = columns[:, np.flatnonzero(codes == code)]
        values = members.toarray() if sp.issparse(X) else members
        n_there = (~np.isnan(values)).sum(axis=1)
        mean = np.where(n_there > 0, np.nansum(values, axis=1) / np.maximum(n_there, 1), np.nan)
        found[:, [code]] = mean.astype(values.dtype)[:, None]
    return found.asformat(X.format) if sp.issparse(X) else found
