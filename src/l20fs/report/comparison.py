"""The page of ``l20fs compare``: a table of methods and the curves of their scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from l20fs.evaluation.metrics import Metric, metric_of
from l20fs.report import svg
from l20fs.report.frames import estimate_text, unbroken
from l20fs.report.html_page import fill
from l20fs.text import number_with_error

if TYPE_CHECKING:
    import pandas as pd

#: Columns of the table before and after that of the metric: name in the DataFrame, and name on the page.
FIRST = {"method": "Method", "classifier": "Judged by"}
LAST = {"p_value": "p", "n_features": "Features", "stability": "Stability index", "seconds": "Seconds"}

#: Names of classifiers on the page.
CLASSIFIERS = {"knn": "KNN", "softmax": "softmax", "ridge": "ridge"}


class Cell(NamedTuple):
    """A text, its sort key, and a less important detail."""

    shown: str
    key: str
    detail: str = ""


class Chart(NamedTuple):
    """Curves of one classifier."""

    classifier: str
    picture: str
    methods: list[str]


def comparison_page(
    comparison: pd.DataFrame,
    curves: pd.DataFrame,
    *,
    title: str,
    answer: str,
    n_splits: int,
    sentences: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> str:
    """Return the page of a comparison as one HTML file.

    Parameters
    ----------
    comparison : DataFrame
        One row per method and classifier: ``method``, ``classifier``, ``accuracy`` and ``standard_error`` (in %),
        ``p_value`` (against the best of the classifier), ``n_features``, ``stability``, ``stability_lower``,
        ``stability_upper``, ``seconds``. What is not known is NaN. Instead of ``accuracy`` there may be any other metric,
        under its name.
    curves : DataFrame
        One row per method, classifier and size: ``method``, ``classifier``, ``n_features``, ``accuracy`` (or the other
        metric), ``standard_error``.
    title : str
        The file or the data set.
    answer : str
        The result in one sentence.
    n_splits : int
        Number of random splits.
    sentences, warnings : sequence of str
        What is special of these data; what the reader should beware of.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"method": "RFS", "classifier": "knn", "accuracy": 90.0, "standard_error": 1.0, "n_features": 20}
    >>> rest = {"p_value": float("nan"), "stability": 0.5, "stability_lower": 0.4, "stability_upper": 0.6, "seconds": 0.1}
    >>> page = comparison_page(pd.DataFrame([row | rest]), pd.DataFrame([row]), title="toy", answer="RFS: 90 %", n_splits=2)
    >>> "90.0\\N{NO-BREAK SPACE}%" in page
    True
    """
    metric = metric_of(comparison.columns)
    header = FIRST | {metric.name: metric.heading} | LAST
    missing = [name for name in (*header, "standard_error") if name not in comparison.columns]
    if missing:
        raise ValueError(f"The comparison has no column {missing[0]!r}. It needs {', '.join(header)} and standard_error.")
    methods = list(dict.fromkeys([*comparison["method"], *curves["method"]]))
    return fill(
        "comparison.html",
        scripts=("sort.js",),
        title=title,
        answer=answer,
        n_splits=n_splits,
        metric=metric,
        sentences=sentences,
        warnings=warnings,
        header=list(header.values()),
        rows=[_cells(row, metric) for row in comparison.to_dict("records")],
        charts=[_chart(part, str(name), methods, metric) for name, part in curves.groupby("classifier", sort=False)],
        place_of=methods.index,
        swatch=svg.swatch,
        n_methods=comparison["method"].nunique(),
    )


def _score(row: Any, metric: Metric) -> str:
    mean, error = row[metric.name], row["standard_error"]
    if math.isnan(mean):
        return ""
    if metric.is_share:
        return estimate_text(mean / 100, None, None if math.isnan(error) else error / 100, "percent")
    return unbroken(number_with_error(mean, error))


def _cells(row: dict[str, Any], metric: Metric) -> list[Cell]:
    limits = [row.get(f"stability_{end}", math.nan) for end in ("lower", "upper")]
    # Few splits that agree equally well prove no certainty.
    interval = f"{limits[0]:.2f} to {limits[1]:.2f}" if limits[1] - limits[0] >= 0.005 else ""
    return [
        Cell(str(row["method"]), str(row["method"])),
        Cell(CLASSIFIERS[row["classifier"]], row["classifier"]),
        Cell(_score(row, metric), _key(row[metric.name])),
        Cell(short_number(row["p_value"]), _key(row["p_value"])),
        Cell(short_number(row["n_features"]), _key(row["n_features"])),
        Cell("" if math.isnan(row["stability"]) else f"{row['stability']:.2f}", _key(row["stability"]), interval),
        Cell(short_number(row["seconds"]), _key(row["seconds"])),
    ]


def _key(value: float) -> str:
    return "" if math.isnan(value) else repr(float(value))


def short_number(value: float) -> str:
    """Write a number with two significant digits, integers and large ones without a point; nothing for NaN.

    Examples
    --------
    >>> [short_number(value) for value in (0.01234, 2.0, 345.6, float("nan"))]
    ['0.012', '2', '346', '']
    """
    if math.isnan(value):
        return ""
    return f"{value:.0f}" if value == round(value) or abs(value) >= 100 else f"{value:.2g}"


def _chart(curves: pd.DataFrame, classifier: str, methods: list[str], metric: Metric) -> Chart:
    """Draw the curves of a classifier; a method looks the same in every chart."""
    shown = [name for name in methods if name in set(curves["method"])]
    lines = []
    for name in shown:
        part = curves[curves["method"] == name].sort_values("n_features")
        unit = 100 if metric.is_share else 1
        scores = [None if math.isnan(value) else value / unit for value in part[metric.name]]
        lines.append(svg.Line(name, part["n_features"].tolist(), scores))
    picture = svg.score_chart(
        lines,
        label=f"{metric.heading} of each method against the number of features, judged by {CLASSIFIERS[classifier]}",
        score_name=metric.title,
        chance=None,
        percent=metric.is_share,
        by_ratio=True,
        places=[methods.index(name) for name in shown],
    )
    return Chart(CLASSIFIERS[classifier], picture, shown)
