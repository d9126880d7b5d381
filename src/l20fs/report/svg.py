"""Line charts as inline SVG, coloured by the style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

#: Number of colours and of dashes for lines in the style sheet.
N_COLOURS, N_DASHES = 6, 3

#: The picture and the part of it inside the axes. The units are CSS pixels where there is room for all of them.
WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 622, 30, 246
#: The same of square pictures, two of which have room side by side.
SQUARE_WIDTH, SQUARE_HEIGHT = 342, 336
SQUARE_LEFT, SQUARE_RIGHT, SQUARE_TOP, SQUARE_BOTTOM = 56, 316, 24, 284


@dataclass(frozen=True)
class Scale:
    """Map from values to positions on an axis.

    Examples
    --------
    >>> Scale(1.0, 100.0, 0.0, 10.0, is_log=True)(10.0)
    5.0
    """

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        transform: Callable[[float], float] = math.log if self.is_log else float
        low, high = transform(self.low), transform(self.high)
        share = (transform(value) - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)


class Line(NamedTuple):
    """Points of a line in order, and the ends of its band if it has one; None in gaps, and where an end is unknown."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    lower: Sequence[float | None] = ()
    upper: Sequence[float | None] = ()


def ticks(low: float, high: float, n: int = 6, *, whole: bool = False) -> list[float]:
    """Return at most n round numbers between low and high.

    Examples
    --------
    >>> ticks(0.0, 1.0), ticks(1, 100, whole=True)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [20.0, 40.0, 60.0, 80.0, 100.0])
    """
    if high <= low:
        return [float(low)]
    power = 10.0 ** math.floor(math.log10((high - low) / n))
    steps = [power * factor for factor in (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)]
    for step in (max(1.0, step) if whole else step for step in steps):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < n:
            break
    return [float(f"{place * step:.12g}") for place in range(first, last + 1)]


def look(place: int) -> str:
    """Return the CSS classes for the colour and the dashes of a line."""
    return f"c{place % N_COLOURS} d{place // N_COLOURS % N_DASHES}"


def swatch(place: int) -> str:
    """Return a legend sample of the line at an index."""
    return (
        '<svg class="swatch" width="28" height="10" aria-hidden="true">'
        f'<line x1="1" y1="5" x2="27" y2="5" class="line {look(place)}"/></svg>'
    )


def score_scale(values: Iterable[float | None], *, percent: bool = True) -> Scale:
    """Return an axis for scores: shares from a round number below all values to 1 or above, numbers from 0 or below.

    Numbers that all lie in the upper half of such an axis get one from a round number below them, on which they differ.

    Examples
    --------
    >>> score_scale([43.7, 46.5], percent=False).low, score_scale([23.0, 47.0], percent=False).low
    (43.0, 0.0)
    """
    known = [value for value in values if value is not None] or [0.0]
    if not percent:
        low, high = min(known), max(known)
        if 0.5 * high < low < high:
            step = 10.0 ** math.floor(math.log10(high - low))
            return Scale(step * math.floor(low / step + 1e-9), high, BOTTOM, TOP)
        return Scale(min(0.0, low), max(0.0, high) or 1.0, BOTTOM, TOP)
    low, high = min(0.9, *known), max(1.0, *known)
    return Scale(math.floor(low * 10.0 + 1e-9) / 10.0, high, BOTTOM, TOP)


def score_chart(
    lines: Sequence[Line],
    *,
    label: str,
    score_name: str,
    chance: float | None,
    by_ratio: bool = False,
    places: Sequence[int] | None = None,
    marks: str = "",
    percent: bool = True,
    chance_name: str = "always the largest class",
) -> str:
    """Draw scores against numbers of features; the first line has a band if its ends are known.

    Parameters
    ----------
    lines : sequence of Line
    label : str
        What the picture shows, for those who do not see it.
    score_name : str
    chance : float or None
        Where a dashed line shows what needs no features.
    by_ratio : bool
        Whether sizes that differ by an equal factor are equally far apart.
    places : sequence of int, optional
        Which colour and dashes each line has; None: 0, 1, ...
    marks : str
        SVG that is drawn above everything else.
    percent : bool
        Whether scores are shares.
    chance_name : str
        What the dashed line is.
    """
    x, y = score_axes(lines, chance, by_ratio, percent=percent)
    body = [_frame(x, y, _size_ticks(lines, x), ticks(y.low, y.high), score_name, percent=percent)]
    if chance is not None:
        height = _f(y(chance))
        body.append(f'<line class="chance" x1="{LEFT}" x2="{RIGHT}" y1="{height}" y2="{height}"/>')
        above = chance > y.low + 0.15 * (y.high - y.low)
        text = _f(y(chance) + (18 if above else -7))
        body.append(f'<text class="note" x="{RIGHT - 4}" y="{text}" text-anchor="end">{escape(chance_name)}</text>')
    if lines:
        body.append(_band(lines[0], x, y))
    for line, place in reversed(list(zip(lines, places or range(len(lines)), strict=True))):  # the first lies on top
        body.append(_polyline(line, x, y, f"line {look(place)}", line.name))
    return _svg("score", label, "".join(body) + marks)


def score_axes(
    lines: Sequence[Line], chance: float | None, by_ratio: bool = False, *, percent: bool = True
) -> tuple[Scale, Scale]:
    """Return the axes of :func:`score_chart`."""
    sizes = [size for line in lines for size in line.x] or [1.0]
    values = [value for line in lines for value in line.y] + [chance]
    for line in lines[:1]:
        values += [*line.lower, *(() if percent else line.upper)]  # of shares the band ends at the top
    return Scale(min(sizes), max(sizes), LEFT, RIGHT, by_ratio), score_scale(values, percent=percent)


def path_chart(lines: Sequence[Line], *, label: str, n_in: int) -> str:
    """Draw row norms against decreasing lambda; the first ``n_in`` lines are highlighted."""
    alphas = list(lines[0].x)
    top = max((value for line in lines for value in line.y if value is not None), default=0.0) or 1.0
    is_log = min(alphas) > 0
    x = Scale(min(alphas), max(alphas), RIGHT, LEFT, is_log)
    y = Scale(0.0, top, BOTTOM, TOP)
    x_ticks = _log_ticks(x.low, x.high) if is_log else ticks(x.low, x.high)
    names = ("size of the weights", "price per feature (λ), falling")
    body = [_frame(x, y, x_ticks, ticks(0.0, top, 5), *names, percent=False)]
    for place in reversed(range(len(lines))):
        kind = f"line path {look(place) if place < N_COLOURS else 'rest'}{'' if place < n_in else ' out'}"
        body.append(_polyline(lines[place], x, y, kind, lines[place].name))
    return _svg("path", label, "".join(body))


def square_chart(
    name: str,
    marks: str,
    *,
    label: str,
    axes: tuple[Scale, Scale],
    names: tuple[str, str],
    percent: bool,
    line: tuple[float, float, float, float] | None,
) -> str:
    """Draw marks between two axes, over a dashed line.

    Parameters
    ----------
    name : str
        The CSS class is ``name-chart``.
    marks : str
        SVG.
    label : str
        What the picture shows, for those who do not see it.
    axes : (Scale, Scale)
        As :func:`square_axes` returns them.
    names : (str, str)
        Names of the axes.
    percent : bool
        Whether both axes have shares.
    line : (float, float, float, float), optional
        Ends (x, y, x, y) of the dashed line.
    """
    x, y = axes
    x_ticks, y_ticks = ticks(x.low, x.high, 5 if percent else 4), ticks(y.low, y.high)
    body = _frame(x, y, x_ticks, y_ticks, names[1], names[0], percent=percent, x_percent=percent)
    if line is not None:
        ends = (_f(x(line[0])), _f(y(line[1])), _f(x(line[2])), _f(y(line[3])))
        body += '<line class="chance" x1="{}" y1="{}" x2="{}" y2="{}"/>'.format(*ends)
    return _svg(f"square {name}", label, body + marks, (SQUARE_WIDTH, SQUARE_HEIGHT))


def square_axes(x_range: tuple[float, float], y_range: tuple[float, float]) -> tuple[Scale, Scale]:
    """Return the axes of :func:`square_chart`."""
    return Scale(*x_range, SQUARE_LEFT, SQUARE_RIGHT), Scale(*y_range, SQUARE_BOTTOM, SQUARE_TOP)


def polyline_points(points: Iterable[tuple[float, float]], axes: tuple[Scale, Scale]) -> str:
    """Return the attribute ``points`` of a polyline."""
    x, y = axes
    return _points((x(a), y(b)) for a, b in points)


def bubbles(points: Iterable[tuple[float, float, float]], axes: tuple[Scale, Scale]) -> str:
    """Return the attribute ``d`` of a path of circles, from points (x, y, radius)."""
    x, y = axes
    parts = []
    for a, b, radius in points:
        r, width = _f(radius), _f(2 * float(_f(radius)))  # two half circles, which meet exactly
        parts.append(f"M{_f(x(a) - radius)} {_f(y(b))}a{r} {r} 0 1 0 {width} 0a{r} {r} 0 1 0 -{width} 0")
    return "".join(parts)


# ----------------------------------------------------------------------------------------------------------------- pieces


def _svg(name: str, label: str, body: str, size: tuple[int, int] = (WIDTH, HEIGHT)) -> str:
    box = f"0 0 {size[0]} {size[1]}"
    return f'<svg class="chart {name}-chart" viewBox="{box}" role="img" aria-label="{escape(label)}">{body}</svg>'


def _frame(
    x: Scale,
    y: Scale,
    x_ticks: Iterable[float],
    y_ticks: Iterable[float],
    y_name: str,
    x_name: str = "number of features",
    *,
    percent: bool = True,
    x_percent: bool = False,
) -> str:
    """Draw axes, ticks and names around the place that the scales map to."""
    left, right, bottom, top = min(x.start, x.end), max(x.start, x.end), y.start, y.end
    parts = [f'<line class="axis" x1="{left}" x2="{right}" y1="{bottom}" y2="{bottom}"/>']
    for value in y_ticks:
        place, text = y(value), _tick(value, percent)
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{_f(place)}" y2="{_f(place)}"/>')
        parts.append(f'<text class="tick" x="{left - 8}" y="{_f(place + 4)}" text-anchor="end">{text}</text>')
    for value in x_ticks:
        place, text = x(value), _tick(value, x_percent)
        parts.append(f'<line class="axis" x1="{_f(place)}" x2="{_f(place)}" y1="{bottom}" y2="{bottom + 5}"/>')
        parts.append(f'<text class="tick" x="{_f(place)}" y="{bottom + 21}" text-anchor="middle">{text}</text>')
    middle = (left + right) // 2
    parts.append(f'<text class="tick" x="{middle}" y="{bottom + 46}" text-anchor="middle">{escape(x_name)}</text>')
    parts.append(f'<text class="tick" x="8" y="{top - 14}">{escape(y_name)}</text>')
    return "".join(parts)


def _tick(value: float, percent: bool) -> str:
    return f"{100 * value:.0f} %" if percent else f"{value:g}"


def _size_ticks(lines: Sequence[Line], x: Scale) -> list[float]:
    if x.is_log:
        return sorted({size for line in lines for size in line.x})
    return sorted({x.low, *(tick for tick in ticks(x.low, x.high, whole=True) if tick - x.low > 0.05 * (x.high - x.low))})


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    step = max(1, len(powers) // 6)
    return [float(f"1e{power}") for power in powers[::step]] if len(powers) >= 2 else ticks(low, high)


def _pieces(line: Line, values: Iterable[tuple[float | None, ...]]) -> Iterable[list[tuple[float, ...]]]:
    """Yield the segments of a line between gaps, as points (x, *values)."""
    piece: list[tuple[float, ...]] = []
    for x, point in zip(line.x, values, strict=True):
        known = [value for value in point if value is not None]
        if len(known) == len(point):
            piece.append((x, *known))
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


def _polyline(line: Line, x: Scale, y: Scale, kind: str, title: str) -> str:
    parts = [f'<g class="{kind}"><title>{escape(title)}</title>']
    for piece in _pieces(line, ((value,) for value in line.y)):
        if len(piece) == 1:
            parts.append(f'<circle cx="{_f(x(piece[0][0]))}" cy="{_f(y(piece[0][1]))}" r="2.5"/>')
        else:
            parts.append(f'<polyline points="{_points((x(a), y(b)) for a, b in piece)}"/>')
    return "".join(parts) + "</g>"


def _band(line: Line, x: Scale, y: Scale) -> str:
    parts = []
    for piece in _pieces(line, zip(line.lower, line.upper, strict=True)) if line.lower else ():
        upper = [(x(a), y(min(high, y.high))) for a, _, high in piece]
        lower = [(x(a), y(low)) for a, low, _ in reversed(piece)]
        parts.append(f'<polygon class="band" points="{_points(upper + lower)}"/>')
    return "".join(parts)


def _points(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{_f(a)},{_f(b)}" for a, b in points)


def _f(value: float) -> str:
    """Format a coordinate to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")
