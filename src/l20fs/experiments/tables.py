"""Tables of results as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from l20fs.evaluation.metrics import Metric
from l20fs.report.delimited import write_frame
from l20fs.report.document import Cell, Table
from l20fs.text import number_with_error

#: Names of classifiers and protocols in captions.
CLASSIFIER_NAMES = {"knn": "KNN", "softmax": "softmax", "ridge": "ridge"}
PROTOCOL_NAMES = {
    "optimistic": "The paper's protocol, optimistic: parameters and number of features are the best for the test part.",
    "honest": "Honest protocol: parameters and number of features are chosen by cross-validation inside the training part.",
}
#: Smaller errors would be written as 0.00, and are left out.
LEAST_ERROR = 0.005


def frame_table(frame: pd.DataFrame, caption: str, names: Mapping[str, str] | None = None, decimals: int = 2) -> Table:
    """Format a DataFrame, without changes of its order.

    Parameters
    ----------
    frame : DataFrame
    caption : str
    names : mapping, optional
        Titles of columns; others get their own name, with spaces.
    decimals : int, default=2
        Decimals of floating-point numbers.

    Examples
    --------
    >>> table = frame_table(pd.DataFrame({"set": ["nci"], "accuracy": [66.0]}), "One row")
    >>> table.header, [cell.text for cell in table.rows[0]], table.is_number
    (('set', 'accuracy'), ['nci', '66.00'], (False, True))
    """
    names = names or {}
    return Table(
        caption,
        tuple(names.get(name, str(name).replace("_", " ")) for name in frame.columns),
        tuple(tuple(Cell(show(value, decimals)) for value in row) for row in frame.itertuples(index=False, name=None)),
        tuple(pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind) for kind in frame.dtypes),
    )


def accuracy_table(table: pd.DataFrame, classifier: str) -> Table:
    """Format accuracies as in the paper: data sets x methods, the best two of each row marked.

    Of equal accuracies (as displayed) the one with fewer features is better, as in the paper; ties in both share the mark.

    Parameters
    ----------
    table : DataFrame
        Result of :func:`~l20fs.experiments.outcomes.optimistic` or :func:`~l20fs.experiments.outcomes.honest`.
    classifier : str
    """
    shown = table[table.classifier == classifier]
    methods = tuple(shown.method.unique())
    rows = []
    for dataset, group in shown.groupby("dataset", sort=False, observed=True):
        by_method = {row.method: row for row in group.itertuples()}
        ranks = _ranks({name: (-round(row.accuracy, 2), row.n_features) for name, row in by_method.items()})
        rows.append((Cell(str(dataset)), *(_accuracy_cell(by_method.get(name), ranks.get(name)) for name in methods)))
    [protocol] = set(shown.protocol) or {"optimistic"}
    caption = (
        f"Accuracy in % with {CLASSIFIER_NAMES.get(classifier, classifier)}, ± standard error (number of features). "
        f"{PROTOCOL_NAMES[protocol]} Bold: best of its row, underlined: second; of equal ones that with fewer features."
    )
    return Table(caption, ("dataset", *methods), tuple(rows), (False, *(True for _ in methods)))


def times_table(times: pd.DataFrame) -> Table:
    """Format :func:`~l20fs.experiments.outcomes.fit_times` as data sets x methods, in seconds."""
    methods = tuple(times.method.unique())
    rows = []
    for dataset, group in times.groupby("dataset", sort=False, observed=True):
        by_method = {row.method: row for row in group.itertuples()}
        cells = [
            Cell(seconds(row.seconds), f"{seconds(row.least)} to {seconds(row.most)}")
            if (row := by_method.get(name))
            else Cell("")
            for name in methods
        ]
        rows.append((Cell(str(dataset)), *cells))
    caption = "Seconds for one fit: mean over splits and parameters, least to most."
    return Table(caption, ("dataset", *methods), tuple(rows), (False, *(True for _ in methods)))


def _accuracy_cell(row: Any, rank: int | None) -> Cell:
    if row is None:
        return Cell("")
    error = f"± {row.standard_error:.2f} " if row.standard_error >= LEAST_ERROR else ""
    return Cell(f"{row.accuracy:.2f}", f"{error}({row.n_features:g})", rank)


def _ranks(keys: dict[str, tuple[float, float]]) -> dict[str, int]:
    """Return 1 for the smallest key, 2 for the next; ties share a rank."""
    different = sorted(set(keys.values()))
    return {name: different.index(key) + 1 for name, key in keys.items()}


def show(value: Any, decimals: int = 2) -> str:
    """Format a value; empty if it is missing, and never 0 for small numbers."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    if value and abs(value) < 0.5 * 10.0**-decimals:
        return f"{value:.1e}"
    return f"{value:.{decimals}f}"


def score_text(value: float, metric: Metric, digits: int = 4) -> str:
    """Format a score: percents with two decimals, others with a few digits.

    Examples
    --------
    >>> from l20fs.evaluation.metrics import METRICS
    >>> score_text(97.5, METRICS["accuracy"]), score_text(43.2109, METRICS["mae"]), score_text(0.0123, METRICS["mae"], 2)
    ('97.50', '43.21', '0.012')
    """
    return f"{value:.2f}" if metric.is_share else f"{value:.{digits}g}"


def score_with_error(score: float, error: float, metric: Metric) -> str:
    """Format a score and its standard error; without one if it is zero, since splits that agree prove no certainty.

    Examples
    --------
    >>> from l20fs.evaluation.metrics import METRICS
    >>> score_with_error(97.5, 1.25, METRICS["accuracy"]), score_with_error(43.2109, 0.5, METRICS["mae"])
    ('97.50 ± 1.25', '43.21 ± 0.50')
    >>> score_with_error(100.0, 0.0, METRICS["accuracy"])
    '100.00'
    """
    if not metric.is_share:
        return number_with_error(score, error)
    return f"{score:.2f} ± {error:.2f}" if error >= LEAST_ERROR else f"{score:.2f}"


def seconds(value: float) -> str:
    """Format a time with two significant digits, three from a hundred seconds on.

    Examples
    --------
    >>> [seconds(value) for value in (0.00123, 0.5, 12.34, 345.6)]
    ['0.0012', '0.50', '12', '346']
    """
    decimals = max(0, 1 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{decimals}f}"


def write_csv(frame: pd.DataFrame) -> str:
    """Return a frame as CSV."""
    return write_frame(frame, ",", "")
