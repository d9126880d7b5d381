"""Tables with samples in columns: whether a table is one, and its split into values, labels and groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from l20fs.data.readers.frames import is_numeric, leave_out_texts, precision_of, wanted_columns
from l20fs.data.readers.joining import match_names, without_affix
from l20fs.data.readers.selection import matched
from l20fs.data.readers.table import Contents, DataError, Request, UnknownColumnError, find, refuse_repeated, require
from l20fs.typing import Array


def are_samples_in_columns(header: Sequence[str], first: Sequence[str], request: Request) -> bool:
    """Return whether samples are in columns: as said, or as the names of labels and samples show.

    Parameters
    ----------
    header, first : sequence of str
        The first row of the table, and its first column below that.
    request : Request
        What is known: the target, the groups, the samples of the file of labels, and the features of a panel.

    Examples
    --------
    >>> from pathlib import Path
    >>> request = Request(Path("a.csv"), target="type")
    >>> are_samples_in_columns(["gene", "s1", "s2"], ["type", "TP53"], request), request.log.notes
    (True, ["a.csv: 'type' is the name of a row, so samples are in columns (--samples-in columns)."])
    """
    if request.samples_in is not None:
        return request.samples_in == "columns"
    reason, wanted = "", wanted_columns(request)
    if wanted and not set(wanted) & set(header):
        rows = [name for name in wanted if name in first]
        reason = f"{rows[0]!r} is the name of a row" if rows else ""
    elif _are_labelled(header[1:], first, request) and request.labelled_samples.isdisjoint(first):
        reason = f"the samples of {request.labels and request.labels.name} are the names of columns"
    elif request.needed and request.needed.isdisjoint(header) and not request.needed.isdisjoint(first):
        reason = "features that are needed are the names of rows"
    if reason:
        request.guess("samples_in", "columns", f"{reason}, so samples are in columns")
    return bool(reason)


def _are_labelled(names: Sequence[str], rows: Sequence[str], request: Request) -> bool:
    """Return whether half of some names, or of the samples in the file of labels, are the same; or all but an ending."""
    known = request.labelled_samples
    n_known = len(known.intersection(names))
    if not n_known and known and len(without_affix(names, known)) == len(names):
        return not match_names(rows, sorted(known), near=True).rows
    return n_known > 0 and 2 * n_known >= min(len(known), len(names))


def check_rows(first: Sequence[str], request: Request) -> None:
    """Raise an error if the row of the labels or the groups is not named, missing, or there twice."""
    if request.lacks_labels:
        raise UnknownColumnError(
            f"{request.name}: where are the labels? Name their row (--target ROW), or give a file with them (--labels FILE)."
        )
    refuse_repeated([name for name in first if name in (request.table_target, *request.beside)], "row", request)
    for wanted in wanted_columns(request):
        find(wanted, first, "row", request)


def contents_of_rows(
    frame: Any, features: Sequence[str], texts: Mapping[str, Sequence[str]], lines: Sequence[int], request: Request
) -> Contents:
    """Split a table with one feature per row into values, labels and groups; other columns and rows of text are left out.

    Parameters
    ----------
    frame : pandas.DataFrame
        Values, with the names of the samples as names of the columns. Some columns may describe the features instead.
    features : sequence of str
        Name of each row.
    texts : dict
        The rows of labels and groups as verbatim text, which are not in ``frame``.
    lines : sequence of int
        Line of each row in the file.
    request : Request
        Names of the target and the groups.

    Returns
    -------
    Contents
        Features, labels, groups and sample names.
    """
    names = frame.columns.tolist()
    ignored = matched([item for item in request.ignore if not matched([item], features)], names)
    is_text, is_number = _cells(frame, request)
    of_text = is_text.any(axis=1) & ~is_number.any(axis=1)
    describes = is_text[~of_text].sum(axis=0) > is_number[~of_text].sum(axis=0)
    describes &= [name not in request.labelled_samples for name in names]
    is_sample = ~describes & [name not in ignored for name in names]
    of_text |= is_text[:, is_sample].sum(axis=1) > is_number[:, is_sample].sum(axis=1)
    descriptions = [name for name, is_out in zip(names, ~is_sample, strict=True) if is_out]
    left_out = [name for name, is_out in zip(features, of_text, strict=True) if is_out]
    if of_text.all() or not is_sample.any():
        what = "features besides the target. Add rows" if of_text.all() else "samples. Add columns"
        raise DataError(f"{request.name}: no {what} of numbers.")
    leave_out_texts(left_out, request, noun="row", descriptions=descriptions)
    is_kept = ~of_text & [request.needs(name) for name in features]
    _refuse_text(is_text & is_kept[:, None] & is_sample, frame, features, lines, request)
    samples, kept = np.flatnonzero(is_sample).tolist(), np.flatnonzero(is_kept).tolist()
    rows = {name: [row[place] for place in samples] for name, row in texts.items()}
    return Contents(
        X=_values(frame, kept, samples, request),
        feature_names=[features[place] for place in kept],
        sample_names=[names[place] for place in samples],
        y=rows.get(request.table_target or ""),
        beside={name: rows[name] for name in request.beside if name in rows},
        target_name=request.table_target or "",
        others=[*descriptions, *(name for name, is_one in zip(features, is_kept, strict=True) if not is_one)],
        is_turned=True,
    )


def _values(frame: Any, kept: list[int], samples: list[int], request: Request) -> Array:
    """Return the values of some rows in the columns of the samples, with samples in rows."""
    precision = precision_of(frame.iloc[:, samples])
    if all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in frame.dtypes):
        # At once: a step of pandas for each of 100 000 columns takes longer than all else.
        return np.ascontiguousarray(frame.to_numpy().T[np.ix_(samples, kept)], dtype=precision)
    to_numeric = require("pandas", "cli", request).to_numeric
    values = [np.asarray(to_numeric(frame.iloc[kept, place], errors="coerce")) for place in samples]
    return np.stack(values).astype(precision, copy=False)


def _cells(frame: Any, request: Request) -> tuple[Array, Array]:
    """Return which cells hold text and which hold numbers; the others are empty."""
    is_text, is_number = np.zeros(frame.shape, dtype=bool), frame.notna().to_numpy(copy=True)
    to_numeric = require("pandas", "cli", request).to_numeric
    for place, dtype in enumerate(frame.dtypes):
        if not is_numeric(dtype):
            column = frame.iloc[:, place]
            is_filled = is_number[:, place] & [str(cell).strip() != "" for cell in column.tolist()]
            is_number[:, place] = to_numeric(column, errors="coerce").notna()
            is_text[:, place] = is_filled & ~is_number[:, place]
    return is_text, is_number


def _refuse_text(is_text: Array, frame: Any, features: Sequence[str], lines: Sequence[int], request: Request) -> None:
    """Raise an error that names the first cell of text among the values."""
    if is_text.any():
        row, column = (int(place) for place in np.argwhere(is_text)[0])
        raise DataError(
            f"{request.name}: line {lines[row]}, {features[row]!r}, holds text: {str(frame.iloc[row, column])!r} in column "
            f"{frame.columns[column]!r}. Every row must hold numbers, except those of the target and the groups. If its "
            "samples are in rows, say so (--samples-in rows)."
        )
