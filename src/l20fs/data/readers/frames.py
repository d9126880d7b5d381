"""Assignment of table columns to labels, groups, sample names and features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from l20fs.data.readers.repeated import WAYS_OUT, number_features
from l20fs.data.readers.table import (
    Contents,
    DataError,
    Request,
    UnknownColumnError,
    find,
    refuse_repeated,
)
from l20fs.text import counted, listed

#: Ratio of rows to columns above which a table seems to have its genes in rows.
TALL = 20

#: Maximum number of distinct values of a column that is suggested as labels.
FEW_VALUES = 20

TURN_HINT = "If its samples are in columns, say so (--samples-in columns)."


def check_header(header: Sequence[str], request: Request) -> list[str]:
    """Return the names of the columns, numbered where features are repeated; those of labels and groups must be unique."""
    refuse_repeated([name for name in header if name in (request.table_target, request.groups)], "column", request)
    for wanted in wanted_columns(request):
        find(wanted, header, "column", request)
    if request.duplicates_rule == "refuse":
        refuse_repeated([name for name in header if request.needs(name) or name == header[0]], "column", request, WAYS_OUT)
    return number_features(header, request)


def wanted_columns(request: Request) -> list[str]:
    """Return the required columns: the target, and the groups unless there is a file of labels."""
    groups = request.groups if request.labels is None else None
    return [name for name in (request.table_target, groups) if name is not None]


def contents_of_frame(
    frame: Any,
    texts: Mapping[str, Sequence[str]],
    request: Request,
    lines: Sequence[int] | None = None,
    has_names: bool = False,
) -> Contents:
    """Split a table into features, labels, groups and sample names.

    Parameters
    ----------
    frame : pandas.DataFrame
        All columns, with unique names.
    texts : dict
        Columns as verbatim text by name: those of :func:`wanted_columns` and the first column.
    request : Request
        Names of the target and the groups.
    lines : sequence of int, optional
        Line of each row in the file.
    has_names : bool, default=False
        Whether the first column is known to hold sample names.

    Returns
    -------
    Contents
        Features, labels, groups and sample names.
    """
    columns = frame.columns.tolist()
    wanted = wanted_columns(request)
    if request.lacks_labels:
        raise UnknownColumnError(_labels_wanted(frame, request))
    groups = request.groups if request.groups in columns else None
    if groups is not None:
        wanted.append(groups)  # also if the labels are in a separate file
    first = columns[0] if columns and columns[0] not in wanted else None
    samples = None
    if first is not None and (has_names or _are_names(first, frame[first], request)):
        samples = list(texts[first])
        refuse_repeated([first, *(name for name in request.numbered.values() if name == first)], "column", request)
        wanted.append(first)
    chosen = [name not in wanted and request.needs(name) for name in columns]
    features = frame.loc[:, chosen]
    _refuse_texts(features, request, _turned(frame))
    return Contents(
        X=features.to_numpy(dtype=_precision(features)),
        feature_names=features.columns.tolist(),
        sample_names=samples,
        y=None if request.table_target is None else texts[request.table_target],
        groups=None if groups is None else texts[groups],
        target_name=request.table_target or "",
        lines=lines,
        others=[name for name, is_chosen in zip(columns, chosen, strict=True) if not is_chosen and name not in wanted],
    )


def _are_names(name: str, column: Any, request: Request) -> bool:
    """Return whether the first column holds the names of the samples; whole numbers, if it is no requested feature."""
    if not name.strip() or not _is_number(column.dtype):
        return True
    is_other = request.needed is not None and name not in request.needed
    return is_other and column.dtype.kind in "iu" and bool(column.is_unique)


def looks_turned(n_rows: int, n_columns: int) -> bool:
    """Return whether a table has so many more rows than columns that its genes seem to be in rows."""
    return n_rows > TALL * n_columns


def _turned(frame: Any) -> str:
    return f" {TURN_HINT}" if looks_turned(*frame.shape) else ""


def _labels_wanted(frame: Any, request: Request) -> str:
    """Return the message for missing labels, with the columns that could hold them."""
    if request.task == "regression":
        return f"{request.name}: which column has the numbers to predict? Name it (--target COLUMN).{_turned(frame)}"
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
    """Return whether a column could hold classes: few distinct values that occur at least twice on average."""
    n_values = column.nunique()
    return 2 <= n_values <= min(FEW_VALUES, len(column) // 2)


def _is_number(dtype: Any) -> bool:
    return dtype.kind in "biuf"


def _precision(features: Any) -> type[np.floating[Any]]:
    return np.float32 if (features.dtypes == np.float32).all() else np.float64


def refuse_row_numbers(contents: Contents, request: Request) -> None:
    """Raise an error if the first column counts the samples: sorted by class, it would be the best feature."""
    values = contents.X[:, 0]
    if len(values) < 10 or contents.sample_names is not None:  # a few numbers may be consecutive by chance
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
            f"{request.name}: {counted(len(texts), 'column')} of text, first {listed(texts)}. Encode them as numbers or "
            f"remove them; only the target, the groups, and sample names in the first column, may be text.{hint}"
        )
    if features.shape[1] == 0 and request.needed is None:
        raise DataError(f"{request.name}: no feature columns besides the target. Add columns of numbers.")
