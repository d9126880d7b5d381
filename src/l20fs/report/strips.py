"""Strip plots: the values of a feature in single samples, a line for each class; of a regression, against the target.

Positions across are in thousandths of the width, so that the picture fits any page, and heights are in pixels. The script
draws the same picture of another feature from the same numbers, of which it gets the differences.
"""

from __future__ import annotations

from typing import Any

from l20fs.report import svg
from l20fs.report.content import Content

#: Heights of the dots of a class, one after the other, so that equal values do not hide each other; height of its line.
JITTER = (12, 6, 18, 9, 15, 4, 20, 11)
LINE_HEIGHT = 24
#: Height of the picture of a regression, and room at its ends.
PLOT_HEIGHT, MARGIN = 300, 16
#: Thousandths of the width that stay free at both ends.
FREE = 30


def strip_plots(content: Content) -> dict[str, Any] | None:
    """Return the pictures of the features: heights of the dots, and for each feature its ticks, dots and medians."""
    strips = content.strips
    if strips is None or not content.k_max:
        return None
    is_regression = content.task == "regression"
    y = _axis(strips.targets, PLOT_HEIGHT - MARGIN, MARGIN)
    return {
        "heights": [round(y(target)) for target in strips.targets] if is_regression else list(JITTER),
        "features": [_feature(*pair) for pair in zip(strips.values, strips.medians, strict=True)],
    }


def n_values(content: Content) -> list[int]:
    """Return how many values of each feature are shown, which differ where some are missing."""
    features = content.strips.values if content.strips else []
    return [sum(value is not None for row in rows for value in row) for rows in features]


def for_script(plots: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the pictures with the differences of positions that rise, which take half the room in the packed page.

    Examples
    --------
    >>> for_script({"heights": [1], "features": [{"dots": [[30, 400, 970]], "medians": [[400, "2"]]}]})["features"]
    [{'dots': [[30, 370, 570]], 'medians': [[400, '2']]}]
    >>> for_script({"heights": [1, 2], "features": [{"dots": [[970, None]], "medians": []}]})["features"][0]["dots"]
    [[970, None]]
    """
    if plots is None:
        return None
    features = [
        feature | {"dots": [[b - a for a, b in zip([0, *row], row, strict=False)] for row in feature["dots"]]}
        if feature["medians"]
        else feature
        for feature in plots["features"]
    ]
    return plots | {"features": features}


def target_ticks(content: Content) -> list[tuple[int, str]]:
    """Return heights and texts of the ticks of the target of a regression."""
    assert content.strips is not None
    y = _axis(content.strips.targets, PLOT_HEIGHT - MARGIN, MARGIN)
    return [(round(y(tick)), f"{tick:g}") for tick in svg.ticks(y.low, y.high, 5)]


def _feature(values: list[list[float | None]], medians: list[float | None]) -> dict[str, Any]:
    known = [value for row in values for value in row if value is not None]
    x = _axis([*known, *(median for median in medians if median is not None)], FREE, 1000 - FREE)
    return {
        "ticks": [[round(x(tick)), f"{tick:g}"] for tick in svg.ticks(x.low, x.high, 5)],
        "dots": [[None if value is None else round(x(value)) for value in row] for row in values],
        "medians": [None if median is None else [round(x(median)), f"{median:.4g}"] for median in medians],
    }


def _axis(values: list[float], start: float, end: float) -> svg.Scale:
    return svg.Scale(min(values, default=0.0), max(values, default=0.0), start, end)
