"""The page of ``l20fs compare``: a table of methods and their accuracy curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from l20fs.report import svg
from l20fs.report.html_page import fill
from l20fs.report.page import with_error

if TYPE_CHECKING:
    import pandas as pd

#: Columns of the table: name in the DataFrame, and name on the page.
COLUMNS = {
    "method": "Method",
    "classifier": "Judged by",
    "accuracy": "Accuracy",
    "n_features": "Features",
    "stability": "Stability",
    "seconds": "Seconds",
}


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
    sentences: Sequence[str] = (),
    warnings: Sequence[str] = (),
    answer: str | None = None,
) -> str:
    """Return the page of a comparison as one HTML file.

    Parameters
    ----------
    comparison : DataFrame
        One row per method and classifier: ``method``, ``classifier``, ``accuracy`` and ``standard_error`` (in %),
        ``n_features``, ``stability``, ``stability_lower``, ``stability_upper``, ``seconds``. What is not known is NaN.
    curves : DataFrame
        One row per method, classifier and size: ``method``, ``classifier``, ``n_features``, ``accuracy``,
        ``standard_error``.
    title : str
        The file or the data set.
    sentences, warnings : sequence of str
        What was done; what the reader should beware of.
    answer : str, optional
        The result in one sentence; None: which method is highest.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"method": "RFS", "classifier": "knn", "accuracy": 90.0, "standard_error": 1.0, "n_features": 20}
    >>> rest = {"stability": 0.5, "stability_lower": 0.4, "stability_upper": 0.6, "seconds": 0.1}
    >>> page = comparison_page(pd.DataFrame([row | rest]), pd.DataFrame([row]), title="toy")
    >>> "90.0\\N{NO-BREAK SPACE}%" in page
    True
    """
    missing = [name for name in (*COLUMNS, "standard_error") if name not in comparison.columns]
    if missing:
        raise ValueError(f"The comparison has no column {missing[0]!r}. It needs {', '.join(COLUMNS)} and standard_error.")
    methods = list(dict.fromkeys([*comparison["method"], *curves["method"]]))
    return fill(
        "comparison.html",
        scripts=("sort.js",),
        title=title,
        answer=answer or _highest(comparison),
        sentences=sentences,
        warnings=warnings,
        header=list(COLUMNS.values()),
        rows=[_cells(row) for row in comparison.to_dict("records")],
        charts=[_chart(part, str(name), methods) for name, part in curves.groupby("classifier", sort=False)],
        place_of=methods.index,
        swatch=svg.swatch,
        n_methods=comparison["method"].nunique(),
    )


def _highest(comparison: pd.DataFrame) -> str:
    known = comparison.dropna(subset=["accuracy"])
    if known.empty:
        return "No method has a result yet."
    best = known.loc[known["accuracy"].idxmax()]
    return (
        f"{best['method']} has the highest accuracy: {_accuracy(best)} with {_number(best['n_features'])} features "
        f"(judged by {best['classifier']})."
    )


def _accuracy(row: Any) -> str:
    mean, error = row["accuracy"] / 100, row["standard_error"] / 100
    return "" if math.isnan(mean) else with_error(mean, None if math.isnan(error) else error)


def _cells(row: dict[str, Any]) -> list[Cell]:
    limits = [row.get(f"stability_{end}", math.nan) for end in ("lower", "upper")]
    interval = "" if any(math.isnan(limit) for limit in limits) else f"{limits[0]:.2f} to {limits[1]:.2f}"
    return [
        Cell(str(row["method"]), str(row["method"])),
        Cell(str(row["classifier"]), str(row["classifier"])),
        Cell(_accuracy(row), _key(row["accuracy"])),
        Cell(_number(row["n_features"]), _key(row["n_features"])),
        Cell("" if math.isnan(row["stability"]) else f"{row['stability']:.2f}", _key(row["stability"]), interval),
        Cell(_number(row["seconds"]), _key(row["seconds"])),
    ]


def _key(value: float) -> str:
    return "" if math.isnan(value) else repr(float(value))


def _number(value: float) -> str:
    """Format a number with two significant digits after the first, integers and large ones without a point."""
    if math.isnan(value):
        return ""
    return f"{value:.0f}" if value == round(value) or abs(value) >= 100 else f"{value:.3g}"


def _chart(curves: pd.DataFrame, classifier: str, methods: list[str]) -> Chart:
    """Draw the curves of a classifier; a method looks the same in every chart."""
    shown = [name for name in methods if name in set(curves["method"])]
    lines = []
    for name in shown:
        part = curves[curves["method"] == name].sort_values("n_features")
        scores = [None if math.isnan(value) else value / 100 for value in part["accuracy"]]
        lines.append(svg.Line(name, part["n_features"].tolist(), scores))
    picture = svg.score_chart(
        lines,
        label=f"Accuracy of each method against the number of features, judged by {classifier}",
        score_name="accuracy",
        chance=None,
        by_ratio=True,
        places=[methods.index(name) for name in shown],
    )
    return Chart(classifier, picture, shown)
