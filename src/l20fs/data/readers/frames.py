"""Assignment of table columns to labels, groups, sample names and features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from l20fs.data.readers.repeated import WAYS_OUT, number_features
from l20fs.data.readers.selection import matched
from l20fs.data.readers.table import (
    Contents,
    DataError,
    Request,
    UnknownColumnError,
    find,
    refuse_repeated,
    require,
)
from l20fs.text import counted, joined, listed

#: Ratio of rows to columns above which a table seems to have its genes in rows.
TALL = 20

#: Maximum number of distinct values of a column that is suggested as labels.
FEW_VALUES = 20

TURN_HINT = "If its samples are in columns, say so (--samples-in columns)."


def check_header(header: Sequence[str], request: Request) -> list[str]:
    """Return the names of the columns, numbered where features are repeated; those of labels and groups must be unique."""
    refuse_repeated([name for name in header if name in (request.table_target, *request.beside)], "column", request)
    for wanted in wanted_columns(request):
        find(wanted, header, "column", request)
    if request.duplicates_rule == "refuse":
        refuse_repeated([name for name in header if request.needs(name) or name == header[0]], "column", request, WAYS_OUT)
    return number_features(header, request)


def wanted_columns(request: Request) -> list[str]:
    """Return the required columns: the target, and the groups and nuisances unless there is a file of labels."""
    beside = request.beside if request.labels is None else []
    return [name for name in (request.table_target, *beside) if name is not None]


def contents_of_frame(
    frame: Any,
    texts: Mapping[str, Sequence[str]],
    request: Request,
    lines: Sequence[int] | None = None,
    has_names: bool = False,
) -> Contents:
    """Split a table with one sample per row into features, labels, groups and sample names; other texts are left out.

    Parameters
    ----------
    frame : pandas.DataFrame
        All columns.
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
    beside = [name for name in request.beside if name in columns]
    wanted += beside  # also if the labels are in a separate file
    first = columns[0] if columns and columns[0] not in (*wanted, *request.ignore) else None
    samples = None
    if first is not None and (has_names or _are_names(first, frame.iloc[:, 0], request)):
        samples = list(texts[first])
        refuse_repeated([first, *(name for name in request.numbered.values() if name == first)], "column", request)
        wanted.append(first)
    others = [name not in wanted and not request.needs(name) for name in columns]
    is_asked = np.array([name not in wanted for name in columns], dtype=bool) & ~np.array(others, dtype=bool)
    is_text = np.array([not is_numeric(dtype) for dtype in frame.dtypes], dtype=bool)
    left_out = frame.columns[is_asked & is_text].tolist()
    leave_out_texts(left_out, request, hint=_turned(frame))
    features = frame.loc[:, is_asked & ~is_text]  # once: pandas takes each of 100 000 columns by itself
    if features.shape[1] == 0 and request.needed is None:
        also = f" but text ({listed(left_out)})" if left_out else ""
        raise DataError(
            f"{request.name}: no feature columns besides the target{also}. Add columns of numbers.{_turned(frame)}"
        )
    return Contents(
        X=features.to_numpy(dtype=precision_of(features)),
        feature_names=features.columns.tolist(),
        sample_names=samples,
        y=None if request.table_target is None else texts[request.table_target],
        beside={name: texts[name] for name in beside},
        target_name=request.table_target or "",
        lines=lines,
        others=[*(name for name, is_other in zip(columns, others, strict=True) if is_other), *left_out],
    )


def _are_names(name: str, column: Any, request: Request) -> bool:
    """Return whether the first column holds the names of the samples; whole numbers, if it is no requested feature.

    A text that most samples share with others, such as a species, is no name, unless labels are matched by it.
    """
    if not name.strip() or (request.labels is not None and not is_numeric(column.dtype)):
        return True
    if not is_numeric(column.dtype):
        return 2 * int(column.nunique()) >= len(column)
    is_other = request.needed is not None and name not in request.needed
    return is_other and column.dtype.kind in "iu" and bool(column.is_unique)


def leave_out_texts(
    texts: Sequence[str], request: Request, *, noun: str = "column", descriptions: Sequence[str] = (), hint: str = ""
) -> None:
    """Say that columns or rows of text are no features, and that columns are descriptions of them.

    A feature of text that is needed is refused.
    """
    needed = [name for name in texts if request.needed is not None and request.needs(name)]
    if needed:
        raise DataError(
            f"{request.name}: {counted(len(needed), noun)} of text, first {listed(needed)}. Encode them as numbers; only "
            f"the target, the groups, and sample names in the first column, may be text.{hint}"
        )
    is_said = request.needed is not None or request.features is not None
    found = [("column", descriptions), (noun, () if is_said else texts)]
    ignored = matched(request.ignore, [*texts, *descriptions])
    left_out = {what: [name for name in names if name not in ignored] for what, names in found}
    names = [name for some in left_out.values() for name in some]
    if names:
        counts = joined([counted(len(some), what) for what, some in left_out.items() if some])
        request.guess("ignore", names, f"{counts} of text {'is' if len(names) == 1 else 'are'} left out: {listed(names)}")


def looks_turned(n_rows: int, n_columns: int) -> bool:
    """Return whether a table has so many more rows than columns that its genes seem to be in rows."""
    return n_rows > TALL * n_columns


def _turned(frame: Any) -> str:
    return f" {TURN_HINT}" if looks_turned(*frame.shape) else ""


def _labels_wanted(frame: Any, request: Request) -> str:
    """Return the message for missing labels, with the columns that could hold them."""
    if request.task == "regression":
        return f"{request.name}: which column has the numbers to predict? Name it (--target COLUMN).{_turned(frame)}"
    possible = [name for name, dtype in frame.dtypes.items() if not is_numeric(dtype) and has_classes(frame[name])]
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


def make_frame(columns: Mapping[int, Any], request: Request) -> Any:
    """Return a DataFrame of columns by number, with texts as objects.

    The type that pandas has for text from 3 on would hold a copy for each cell, also of a long text that all cells share.
    """
    pandas = require("pandas", "cli", request)
    kept = {j: values if is_numeric(values.dtype) else pandas.Series(values, dtype=object) for j, values in columns.items()}
    return pandas.DataFrame(kept, copy=False)


def is_numeric(dtype: Any) -> bool:
    return dtype.kind in "biuf"


def precision_of(features: Any) -> type[np.floating[Any]]:
    return np.float32 if (features.dtypes == np.float32).all() else np.float64


def take_row_numbers(contents: Contents, request: Request) -> Contents:
    """Return the contents with a first column that counts the samples as their names.

    Sorted by class, it would be the best feature. It remains one if the features are given.
    """
    values, name = contents.X[:, 0], contents.feature_names[0]
    if len(values) < 10 or contents.sample_names is not None or request.features is not None:
        return contents  # a few numbers may be consecutive by chance
    if not np.array_equal(np.sort(values), values.min() + np.arange(len(values))) or not float(values.min()).is_integer():
        return contents
    counts = f"the first column {name!r} counts the samples from {values.min():g} to {values.max():g}"
    if len(contents.feature_names) == 1:
        raise DataError(f"{request.name}: {counts}, and there is no other feature. Add columns of numbers.")
    if not matched(request.ignore, [name]):
        before = request.log.choices.get(request.name, {}).get("ignore", [])
        request.guess("ignore", [*before, name], f"{counts}, so it holds their names and is no feature")
    named = contents.with_features(range(1, len(contents.feature_names)))
    return replace(named, sample_names=[str(int(value)) for value in values])
