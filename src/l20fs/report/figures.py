"""Numbers of the figures: axes, points and shades; templates draw them as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from l20fs.typing import Array

#: Colours on each side of the middle, and the z-score that has the last one.
N_SHADES, FULL_SHADE = 5, 2.0


@dataclass(frozen=True)
class Axis:
    """Map from values to pixels, with the name of the axis and its ticks.

    Examples
    --------
    >>> axis = Axis(0.0, 1.0, 200.0, 0.0)
    >>> axis(0.25), axis.ticks
    (150.0, [(0.0, '0'), (0.2, '0.2'), (0.4, '0.4'), (0.6, '0.6'), (0.8, '0.8'), (1.0, '1')])
    """

    low: float
    high: float
    start: float
    end: float
    name: str = ""
    is_share: bool = False
    n_ticks: int = 6

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(self.start + min(max(share, 0.0), 1.0) * (self.end - self.start), 1)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Round numbers on the axis, with their texts."""
        values = round_numbers(self.low, self.high, self.n_ticks)
        return [(value, f"{100.0 * value:g} %" if self.is_share else f"{value:g}") for value in values]


def round_numbers(low: float, high: float, n: int = 6) -> list[float]:
    """Return at most n round numbers between low and high.

    Examples
    --------
    >>> round_numbers(0.0, 1.0), round_numbers(1, 100)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [20.0, 40.0, 60.0, 80.0, 100.0])
    """
    if not high > low:
        return [float(low)]
    power = 10.0 ** math.floor(math.log10((high - low) / n))
    for factor in (1.0, 2.0, 5.0, 10.0, 20.0, 50.0):
        step = power * factor
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < n:
            break
    return [float(f"{place * step:.12g}") for place in range(first, last + 1)]


class Line(NamedTuple):
    """Points of a line, NaN where there is none, with the ends of its band if it has one."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    lower: Sequence[float] = ()
    upper: Sequence[float] = ()


@dataclass(frozen=True)
class Chart:
    """Lines or points on two axes; ``guide`` is a horizontal line, as of guessing, and ``identity`` the diagonal."""

    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line] = ()
    dots: Sequence[tuple[float, float]] = ()
    bars: Sequence[tuple[float, float, float]] = ()
    guide: tuple[float, str] | None = None
    identity: bool = False
    shapes: list[Any] = field(default_factory=list)

    @property
    def width(self) -> float:
        """Width of the picture."""
        return self.x.end + 18

    @property
    def height(self) -> float:
        """Height of the picture."""
        return self.y.start + 46

    def points(self, x: Sequence[float], y: Sequence[float]) -> str:
        """Return known points for the attribute of a line."""
        known = [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(b)]
        return " ".join(f"{self.x(a):g},{self.y(b):g}" for a, b in known)

    def band(self, line: Line) -> str:
        """Return the outline of the band of a line."""
        upper = self.points(line.x, line.upper)
        lower = self.points(line.x, line.lower).split()
        return " ".join([upper, *reversed(lower)])


def score_axis(values: Iterable[float], *, is_share: bool, name: str, height: float = 230.0) -> Axis:
    """Return an axis for scores: of shares up to 1, from a round number below all of them."""
    known = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(known), max(known)
    if is_share:
        low, high = math.floor(min(low, 0.9) * 10.0 + 1e-9) / 10.0, max(high, 1.0)
    elif low > 0.0 and low < 0.5 * high:
        low = 0.0
    return Axis(low, high if high > low else low + 1.0, height, 24.0, name, is_share)


def square_chart(title: str, names: tuple[str, str], dots: Sequence[tuple[float, float]], **further: Any) -> Chart:
    """Return a chart of points whose axes are the same, as of predicted and measured numbers."""
    is_share = further.pop("is_share", False)
    values = [value for dot in dots for value in dot]
    low, high = (0.0, 1.0) if is_share or not values else (min(values), max(values))
    x, y = Axis(low, high, 62.0, 330.0, names[0], is_share, 5), Axis(low, high, 290.0, 24.0, names[1], is_share, 5)
    return Chart(title, x, y, dots=dots, identity=True, **further)


def shade(z: float) -> int:
    """Return the colour of a z-score, from -5 to 5."""
    return 0 if math.isnan(z) else max(-N_SHADES, min(N_SHADES, round(z * N_SHADES / FULL_SHADE)))


def evenly(values: Array, most: int) -> Array:
    """Return at most so many of some values, evenly spaced, the first and the last among them."""
    if len(values) <= most:
        return values
    return values[np.linspace(0, len(values) - 1, most).round().astype(int)]


class Strip(NamedTuple):
    """Values of a feature: per class the path of its dots and the place of its median, and ticks of the axis below."""

    rows: list[tuple[str, float | None]]
    ticks: list[tuple[float, str]]


#: Left and right end of the values of a strip, the height of a class, and how far dots are apart upwards.
STRIP_LEFT, STRIP_RIGHT, STRIP_ROW, JITTER = 96.0, 286.0, 18, (0, 4, -4, 2, -2)


def strip(values: Array, codes: Array, n_classes: int, most: int) -> Strip:
    """Return the dots of a feature by class; values are sorted, so that none can be traced to its sample."""
    known = np.isfinite(values)
    low, high = (float(values[known].min()), float(values[known].max())) if known.any() else (0.0, 1.0)
    axis = Axis(low, high, STRIP_LEFT, STRIP_RIGHT, n_ticks=4)
    rows: list[tuple[str, float | None]] = []
    for code in range(n_classes):
        part = np.sort(values[known & (codes == code)])
        middle = 14 + STRIP_ROW * code
        marks = [f"M{axis(value):g} {middle + JITTER[i % len(JITTER)]}h0" for i, value in enumerate(evenly(part, most))]
        rows.append(("".join(marks), axis(float(np.median(part))) if len(part) else None))
    return Strip(rows, [(axis(value), text) for value, text in axis.ticks])
