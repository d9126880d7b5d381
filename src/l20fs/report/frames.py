"""Parts of the page that follow the slider: texts, attributes and rows of tables for every k, which the script swaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from l20fs.report import confusion, svg
from l20fs.report.content import Content
from l20fs.report.measures import Curve, Reliability, Roc
from l20fs.text import counted, percent, with_interval

#: For each element, by its id, and each of its attributes: the values for 0, 1, ... features. ``text`` is what is in it,
#: ``items`` are those of a list, in parts that are texts and names in turn, ``rows`` those of a table: a name, then texts,
#: names ``{"name": ...}`` and shares with their intervals ``{"bar": ...}``.
Frames = dict[str, dict[str, list[Any]]]

#: Axes of shares against shares.
SHARES = svg.square_axes((0.0, 1.0), (0.0, 1.0))
#: Radius of the circle of all samples, and of the smallest.
LARGEST_CIRCLE, SMALLEST_CIRCLE = 14.0, 3.0
#: Smaller errors of shares would be written as 0.0 %, and are left out.
LEAST_ERROR = 0.0005


def make_frames(content: Content) -> Frames:
    """Return all that depends on k, but for the table of features, the confusion matrix and the points of numbers."""
    sizes = range(content.k_max + 1)
    frames: Frames = {
        "k-score": {"text": [score_text(content, k) for k in sizes]},
        "k-range": {"aria-valuetext": [value_text(content, k) for k in sizes]},
    }
    if content.curves:
        frames |= _marker("marker", content.curves[0], _score_axes(content))
    for place, curve in enumerate(content.further):
        frames |= _marker(f"further-{place}", curve, _further_axes(curve))
        texts = [_estimate_at(curve, k, "number") or "not measured" for k in sizes]
        frames[f"further-{place}-text"] = {"text": texts}

    def each(entries: list[Any] | None, convert: Callable[[Any], Any], default: Any) -> list[Any]:
        """Convert the entries of 0, 1, ... features, with a default for those that are None."""
        return [default, *(default if entry is None else convert(entry) for entry in entries or ())]

    if content.rates is not None:
        rows = each(content.rates, lambda rates: confusion.rate_rows(rates, content.classes), [])
        frames["rates-rows"] = {"rows": _unbroken_rows(rows)}
    frames |= _confusion_frames(content)
    if content.roc is not None:
        lines = each(content.roc, lambda roc: svg.polyline_points(roc.points, SHARES), "")
        frames["roc-line"] = {"points": lines}
        frames["roc-area"] = {"text": each(content.roc, _area_text, "not measured")}
    if content.reliability is not None:
        lines = each(content.reliability, lambda found: svg.polyline_points([(a, b) for a, b, _ in found.bins], SHARES), "")
        frames["reliability-line"] = {"points": lines}
        frames["reliability-dots"] = {"d": each(content.reliability, _circles, "")}
        frames["reliability-rows"] = {"rows": each(content.reliability, _bin_rows, [])}
        frames["brier"] = {"text": each(content.reliability, lambda found: f"{found.brier:.3f}", "not measured")}
        frames["log-loss"] = {"text": each(content.reliability, lambda found: f"{found.log_loss:.3f}", "not measured")}
    return frames


# ------------------------------------------------------------------------------------------------------------------ texts


def estimate_text(value: float, interval: tuple[float, float] | None, error: float | None, score_format: str) -> str:
    """Write a score with its interval, or else its standard error, with non-breaking spaces.

    Examples
    --------
    >>> estimate_text(1.0, (0.943, 1.0), None, "percent").replace("\\N{NO-BREAK SPACE}", " ")
    '100 % (94 to 100 %)'
    >>> estimate_text(1.0, None, 0.0, "percent").replace("\\N{NO-BREAK SPACE}", " ")
    '100.0 %'
    """
    is_share = score_format == "percent"
    if interval is not None:
        return unbroken(with_interval(value, *interval, is_share=is_share))
    text = percent(value) if is_share else f"{value:.3g}"
    if error and (not is_share or error >= LEAST_ERROR):
        text += f" ± {percent(error) if is_share else f'{error:.2g}'}"
    return unbroken(text)


def unbroken(text: str) -> str:
    """Put non-breaking spaces between a number, its unit and its error."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%").replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def score_text(content: Content, k: int) -> str:
    """Write the score of k features by every curve."""
    texts = [(curve.name, _estimate_at(curve, k, content.score_format)) for curve in content.curves]
    return ", ".join(f"{name} {text}" for name, text in texts if text)


def value_text(content: Content, k: int) -> str:
    """Write the value of the slider for screen readers."""
    text = _estimate_at(content.curves[0], k, content.score_format) if content.curves else ""
    return f"{counted(k, 'feature')}, {text} {content.score_name}" if text else counted(k, "feature")


def _estimate_at(curve: Curve, k: int, score_format: str) -> str:
    mean = curve.mean[k - 1] if k else None
    return "" if mean is None else estimate_text(mean, curve.interval(k), curve.error[k - 1], score_format)


def _confusion_frames(content: Content) -> Frames:
    """Return what is said about mixed-up classes, and the list of confusions where there is no matrix."""
    if content.confusion is None and content.confused is None:
        return {}
    classes, sizes = content.classes, range(1, content.k_max + 1)
    items: list[list[confusion.Parts]] = [[]]
    for k in sizes:
        pairs = content.confusions(k)
        rates = content.rates[k - 1] if content.rates is not None else None
        told = [] if pairs is None else confusion.in_words(pairs, classes, classes)
        items.append(told + confusion.least_recognised(rates or [], classes))
    frames: Frames = {"confused-items": {"items": [[list(map(unbroken, parts)) for parts in told] for told in items]}}
    if content.confusion is None:
        rows = [[], *(confusion.pair_rows(content.confusions(k) or [], classes) for k in sizes)]
        frames["confused-rows"] = {"rows": _unbroken_rows(rows)}
    return frames


def _unbroken_rows(frames: list[list[list[Any]]]) -> list[list[list[Any]]]:
    """Put non-breaking spaces into the texts of rows, but for the names in front."""
    return [
        [[row[0], *(unbroken(cell) if isinstance(cell, str) else cell for cell in row[1:])] for row in rows]
        for rows in frames
    ]


def _bin_rows(found: Reliability) -> list[list[str]]:
    ends: Sequence[tuple[float, float] | None] = found.intervals or [None] * len(found.bins)
    return [
        [unbroken(percent(mean)), estimate_text(share, interval, None, "percent"), str(size)]
        for (mean, share, size), interval in zip(found.bins, ends, strict=True)
    ]


def _area_text(roc: Roc) -> str:
    interval = None if roc.lower is None or roc.upper is None else (roc.lower, roc.upper)
    return estimate_text(roc.auc, interval, None, "percent")


# --------------------------------------------------------------------------------------------------------------- pictures


def score_chart(content: Content) -> str | None:
    """Draw the score curves, the ring at the selected k, and the marker that follows the slider."""
    if not content.curves or not content.k_max:
        return None
    axes = _score_axes(content)
    return svg.score_chart(
        _lines(content.curves),
        label=f"{content.score_name} against the number of features",
        score_name=content.score_name,
        chance=content.chance,
        marks=_marks("marker", content, content.curves[0], axes),
        percent=content.score_format == "percent",
        chance_name=content.chance_name,
    )


def further_charts(content: Content) -> list[str]:
    """Draw the curves of other metrics."""
    if not content.k_max:
        return []
    return [
        svg.score_chart(
            _lines([curve]),
            label=f"{curve.name} against the number of features",
            score_name=curve.name,
            chance=None,
            marks=_marks(f"further-{place}", content, curve, _further_axes(curve)),
            percent=False,
        )
        for place, curve in enumerate(content.further)
    ]


def roc_chart(content: Content, frames: Frames) -> str | None:
    """Draw the ROC curve of the selected k."""
    if content.roc is None or not content.k_max:
        return None
    points = frames["roc-line"]["points"][content.shown]
    return svg.square_chart(
        "roc",
        f'<polyline id="roc-line" class="line c0" points="{points}"/>',
        label="ROC curve: sensitivity against 1 - specificity",
        axes=SHARES,
        names=("1 \N{MINUS SIGN} specificity", "sensitivity"),
        percent=True,
        line=(0.0, 0.0, 1.0, 1.0),
    )


def reliability_chart(content: Content, frames: Frames) -> str | None:
    """Draw the reliability curve of the selected k; the area of a circle is the number of samples."""
    if content.reliability is None or not content.k_max:
        return None
    points, circles = (
        frames[f"reliability-{name}"][key][content.shown] for name, key in (("line", "points"), ("dots", "d"))
    )
    return svg.square_chart(
        "reliability",
        f'<polyline id="reliability-line" class="line c0" points="{points}"/>'
        f'<path id="reliability-dots" class="bubbles" d="{circles}"/>',
        label="Reliability curve: share of right predictions against their probability",
        axes=SHARES,
        names=("probability given", "share that was right"),
        percent=True,
        line=(0.0, 0.0, 1.0, 1.0),
    )


def path_chart(content: Content) -> str | None:
    """Draw the size of the weights along the path."""
    path = content.path
    if path is None or len(path.alphas) < 2 or not path.norms:
        return None
    lines = [svg.Line(name, path.alphas, norms) for name, norms in zip(content.features, path.norms, strict=False)]
    return svg.path_chart(lines, label="size of the weights of each feature as the price falls", n_in=content.shown)


def _circles(found: Reliability) -> str:
    total = sum(size for _, _, size in found.bins)
    points = [(a, b, max(SMALLEST_CIRCLE, LARGEST_CIRCLE * math.sqrt(size / total))) for a, b, size in found.bins]
    return svg.bubbles(points, SHARES)


def _lines(curves: list[Curve]) -> list[svg.Line]:
    return [svg.Line(curve.name, range(1, len(curve.mean) + 1), curve.mean, *_band(curve)) for curve in curves]


def _band(curve: Curve) -> tuple[list[float | None], list[float | None]]:
    """Return the ends of the intervals, or those of one standard error up and down."""
    if curve.lower is not None and curve.upper is not None:
        return curve.lower, curve.upper
    pairs = list(zip(curve.mean, curve.error, strict=True))
    lower = [None if mean is None or error is None else mean - error for mean, error in pairs]
    return lower, [None if mean is None or error is None else mean + error for mean, error in pairs]


def _score_axes(content: Content) -> tuple[svg.Scale, svg.Scale]:
    return svg.score_axes(_lines(content.curves), content.chance, percent=content.score_format == "percent")


def _further_axes(curve: Curve) -> tuple[svg.Scale, svg.Scale]:
    return svg.score_axes(_lines([curve]), None, percent=False)


def _marker(name: str, curve: Curve, axes: tuple[svg.Scale, svg.Scale]) -> Frames:
    """Return where the marker of a curve stands for 0, 1, ... features, hidden where there is no score."""
    x, y = axes
    means = [None, *curve.mean]
    return {
        name: {
            "visibility": ["hidden" if mean is None else "visible" for mean in means],
            "transform": [f"translate({x(max(k, 1)):.1f} 0)" for k in range(len(means))],
        },
        f"{name}-dot": {"cy": [f"{svg.BOTTOM if mean is None else y(mean):.1f}" for mean in means]},
    }


def _marks(name: str, content: Content, curve: Curve, axes: tuple[svg.Scale, svg.Scale]) -> str:
    """Draw the ring at the selected k, and the marker; by the two numbers with it a click into the picture finds k."""
    x, y = axes
    k = content.shown
    mean = curve.mean[k - 1] if k else None
    ring = "" if mean is None else f'<circle class="chosen" cx="{x(k):.1f}" cy="{y(mean):.1f}" r="9"/>'
    step = x(2) - x(1) if content.k_max > 1 else 0.0
    frame = {
        part: {key: values[k] for key, values in of_part.items()} for part, of_part in _marker(name, curve, axes).items()
    }
    return (
        f'{ring}<g id="{name}" class="marker" data-first="{x(1):.3f}" data-step="{step:.5f}" '
        f'visibility="{frame[name]["visibility"]}" transform="{frame[name]["transform"]}">'
        f'<line y1="{svg.TOP}" y2="{svg.BOTTOM}"/>'
        f'<circle id="{name}-dot" cy="{frame[f"{name}-dot"]["cy"]}" r="5"/></g>'
    )
