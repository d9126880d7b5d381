"""The page of ``l20fs compare``: a table of methods and the curves of their scores."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from l20fs.evaluation.metrics import Metric, metric_of
from l20fs.report.figures import Axis, Chart, Line, score_axis
from l20fs.report.page import fill
from l20fs.text import number_with_error

if TYPE_CHECKING:
    import pandas as pd

#: Names of the models that are fitted to the selected features.
MODELS = {"knn": "nearest neighbours", "softmax": "logistic regression", "ridge": "ridge regression"}


def comparison_page(
    comparison: pd.DataFrame,
    curves: pd.DataFrame,
    *,
    title: str,
    answer: str,
    n_splits: int,
    notes: Sequence[str] = (),
    **about: Any,
) -> str:
    """Return the page of a comparison as one HTML file.

    Parameters
    ----------
    comparison : DataFrame
        One row per method and classifier: ``method``, ``classifier``, ``accuracy`` and ``standard_error`` (in %), or another
        metric under its name, ``p_value`` (against the best of the classifier), ``n_features``, ``parameters``,
        ``stability`` with ``stability_lower`` and ``stability_upper``, ``seconds``. What is not known is NaN.
    curves : DataFrame
        One row per method, classifier and size: ``method``, ``classifier``, ``n_features`` and the metric.
    title : str
        The file or the data set.
    answer : str
        The result in one sentence.
    n_splits : int
        Number of random splits.
    notes : sequence of str
        What was decided on the way, and warnings.
    **about
        ``n_samples``, ``n_features``, ``has_groups`` and ``chance`` of the samples.

    Returns
    -------
    str
        HTML.
    """
    metric = metric_of(comparison.columns)
    header = [("Method", False), ("Model", False), (metric.heading, True), ("p", True), ("Features", True)]
    header += [("Stability", True), ("Seconds per fit", True), ("Parameters", False)]
    charts = [_chart(part, str(name), metric) for name, part in curves.groupby("classifier", sort=False)]
    return fill(
        "comparison.html",
        scripts=("table.js", "figures.js"),
        title=title,
        answer=answer,
        n_splits=n_splits,
        metric=metric,
        header=header,
        rows=[_cells(row, metric) for row in comparison.to_dict("records")],
        charts=charts,
        notes=notes,
        about=about,
    )


def _cells(row: Any, metric: Metric) -> list[str]:
    """Return the texts of a method."""
    error = row["standard_error"]
    score = number_with_error(row[metric.name], error) + (" %" if metric.is_share else "")
    stability = _number(row["stability"])
    if math.isfinite(row["stability_lower"]):
        stability += f" ({row['stability_lower']:.2f} to {row['stability_upper']:.2f})"
    settings = json.loads(row["parameters"]) if isinstance(row.get("parameters"), str) else {}
    return [
        str(row["method"]),
        MODELS.get(row["classifier"], str(row["classifier"])),
        "" if math.isnan(row[metric.name]) else score,
        _number(row["p_value"]),
        _number(row["n_features"]),
        stability,
        _number(row["seconds"]),
        ", ".join(f"{name}={value}" for name, value in settings.items()),
    ]


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2g}" if abs(value) < 10 else f"{value:.0f}"


def _chart(curves: pd.DataFrame, model: str, metric: Metric) -> tuple[str, Chart, list[str]]:
    """Return the name of a model, the curves of all methods with it, and their names."""
    factor = 0.01 if metric.is_share else 1.0
    lines = [
        Line(str(name), part["n_features"].tolist(), (factor * part[metric.name]).tolist())
        for name, part in curves.groupby("method", sort=False)
    ]
    x = Axis(float(curves["n_features"].min()), float(curves["n_features"].max()), 62.0, 700.0, "number of features")
    values = [value for line in lines for value in line.y]
    y = score_axis(values, is_share=metric.is_share, name=metric.title)
    title = f"{metric.heading} of each method for each number of features"
    return MODELS.get(model, model), Chart(title, x, y, lines), [line.name for line in lines]
