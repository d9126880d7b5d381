"""Columns of numbers and text, one sample per row: which of them are the labels, the names and the features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from l20fs.data.readers.table import (
    Contents,
    DataError,
    Request,
    UnknownColumnError,
    find,
    refuse_repeated,
)
from l20fs.text import listed

#: Rows for each column, from which on a table seems to have its genes in rows.
TALL = 20

#: The most values that a column may have which is named as one that could be the labels.
FEW_VALUES = 20

TURN_HINT = "If its samples are in columns, say so (--samples-in columns)."


def check_header(header: Sequence[str], request: Request) -> None:
    """Refuse names of columns that cannot be told apart, and a target that is not among them."""
    refuse_repeated(header, "column", request)
    for wanted in wanted_columns(request):
        find(wanted, header, "column", request)


def wanted_columns(request: Request) -> list[str]:
    """Return the columns that must be there: the target, and the groups unless a file of labels may have them."""
    groups = request.groups if request.labels is None else None
    return [name for name in (request.table_target, groups) if name is not None]


def contents_of_frame(
    frame: Any,
    texts: Mapping[str, Sequence[str]],
    request: Request,
    lines: Sequence[int] | None = None,
    has_names: bool = False,
) -> Contents:
    """Turn columns into features, labels and names.

    Parameters
    ----------
    frame : pandas.DataFrame
        All columns, whose names are texts of which no two are alike.
    texts : dict
        The columns as they stand, by name: those of :func:`wanted_columns` and the first column.
    lines : sequence of int, optional
        The line of each row in the file.
    has_names : bool
        Whether the first column is known to hold names.
    """
    columns = frame.columns.tolist()
    wanted = wanted_columns(request)
    if request.labels is None and request.target is None:
        raise UnknownColumnError(_labels_wanted(frame, request))
    groups = request.groups if request.groups in columns else None
    if groups is not None:
        wanted.append(groups)  # also if the labels are in a file of their own
    first = columns[0] if columns and columns[0] not in wanted else None
    samples = None
    if first is not None and (has_names or not first.strip() or not _is_number(frame[first].dtype)):
        samples = list(texts[first])
        wanted.append(first)
    features = frame.drop(columns=wanted)
    _refuse_texts(features, request, _turned(frame))
    return Contents(
        X=features.to_numpy(dtype=_precision(features)),
        feature_names=features.columns.tolist(),
        sample_names=samples,
        y=None if request.table_target is None else texts[request.table_target],
        groups=None if groups is None else texts[groups],
        target_name=request.table_target or "",
        lines=lines,
    )


def looks_turned(n_rows: int, n_columns: int) -> bool:
    """Say whether a table has so many more rows than columns that its genes seem to be in rows."""
    return n_rows > TALL * n_columns


def _turned(frame: Any) -> str:
    return f" {TURN_HINT}" if looks_turned(*frame.shape) else ""


def _labels_wanted(frame: Any, request: Request) -> str:
    """Say that the labels are missing, and which columns could be them."""
    possible = [name for name, dtype in frame.dtypes.items() if not _is_number(dtype) and has_classes(frame[name])]
    if not possible:
        whole = [name for name, dtype in frame.dtypes.items() if dtype.kind in "biu"]
        possible = [name for name in whole[:1000] if has_classes(frame[name])]
    hint = f"Columns that could be the labels: {listed(possible)}." if possible else "No column looks like labels."
    return (
        f"{request.name}: which column has the labels? Name it (--target COLUMN), or give a file with them (--labels FILE). "
        f"{hint}{_turned(frame)}"
    )


def has_classes(column: Any) -> bool:
    """Say whether the values of a column could be classes: a few, which occur twice on average."""
    n_values = column.nunique()
    return 2 <= n_values <= min(FEW_VALUES, len(column) // 2)


def _is_number(dtype: Any) -> bool:
    return dtype.kind in "biuf"


def _precision(features: Any) -> type[np.floating[Any]]:
    return np.float32 if (features.dtypes == np.float32).all() else np.float64


def refuse_row_numbers(contents: Contents, request: Request) -> None:
    """Refuse a first column that counts the samples: sorted by class, it would be the best feature of all."""
    values = contents.X[:, 0]
    if len(values) < 10 or contents.sample_names is not None:  # few numbers may well follow each other by chance
        return
    if np.array_equal(np.sort(values), values.min() + np.arange(len(values))):
        raise DataError(
            f"{request.name}: the first column {contents.feature_names[0]!r} counts the samples from {values.min():g} to "
            f"{values.max():g}, so it is a name and not a feature. Remove it, or leave its heading empty."
        )


def _refuse_texts(features: Any, request: Request, hint: str) -> None:
    texts = [name for name, dtype in features.dtypes.items() if not _is_number(dtype)]
    if texts:
        raise DataError(
            f"{request.name}: {len(texts)} columns hold text, first {listed(texts)}. Encode them as numbers or remove them; "
            f"only the target, the groups, and sample names in the first column, may be text.{hint}"
        )
    if features.shape[1] == 0:
        raise DataError(f"{request.name}: no feature columns besides the target. Add columns of numbers.")
