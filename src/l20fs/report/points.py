"""Pictures of a regression: predicted against measured numbers, and residuals against predicted ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from l20fs.report import svg
from l20fs.report.measures import Numbers

#: Most targets that have pictures.
MOST_TARGETS = 6
#: A picture shows no more than this share of the measured range on each side of it; what is beyond lies on the edge.
BEYOND = 0.5


@dataclass(frozen=True)
class Place:
    """Linear map from two numbers to a point of a square picture, and to its edge from beyond."""

    x: svg.Scale
    y: svg.Scale

    @property
    def numbers(self) -> tuple[float, ...]:
        """Offset and factor of x and of y, and the edges, by which the script draws the same points."""
        edges = (svg.SQUARE_LEFT, svg.SQUARE_RIGHT, svg.SQUARE_TOP, svg.SQUARE_BOTTOM)
        return (*_linear(self.x), *_linear(self.y), *edges)

    def path(self, xs: Sequence[float], ys: Sequence[float]) -> str:
        """Return the attribute ``d`` of a path of dots."""
        x0, x1, y0, y1, left, right, top, bottom = self.numbers
        return "".join(
            f"M{min(max(x0 + a * x1, left), right):.1f} {min(max(y0 + b * y1, top), bottom):.1f}h0"
            for a, b in zip(xs, ys, strict=True)
        )


@dataclass(frozen=True)
class TargetPictures:
    """The two pictures of a target."""

    name: str
    predicted: str
    residuals: str


def target_pictures(numbers: Numbers, targets: Sequence[str], k: int) -> list[TargetPictures]:
    """Draw the first targets for k features; the axes are the same for every k."""
    found = []
    for place, name in enumerate(targets[:MOST_TARGETS]):
        measured = numbers.measured[place]
        of_all = [panel[place] for panel in numbers.predicted if panel is not None]
        at_k = numbers.predicted[k - 1] if k else None
        predicted = None if at_k is None else at_k[place]
        span, wrong = _spans(measured, of_all)
        found.append(
            TargetPictures(
                name,
                _picture(f"predicted-{place}", Place(*svg.square_axes(span, span)), (measured, predicted), name),
                _picture(f"residuals-{place}", Place(*svg.square_axes(span, wrong)), (predicted, measured), name),
            )
        )
    return found


def _picture(name: str, place: Place, values: tuple[Sequence[float] | None, Sequence[float] | None], target: str) -> str:
    """Draw predicted against measured numbers, or measured less predicted ones against predicted ones."""
    first, second = values
    is_residual = name.startswith("residuals")
    path = ""
    if first is not None and second is not None:
        path = place.path(first, [b - a for a, b in zip(first, second, strict=True)] if is_residual else second)
    low, high = place.x.low, place.x.high
    marks = f'<path id="{name}" class="dots" data-place="{" ".join(map(repr, place.numbers))}" d="{path}"/>'
    return svg.square_chart(
        name.split("-")[0],
        marks,
        label=f"{'Measured less predicted' if is_residual else 'Predicted against measured'} {target}",
        axes=(place.x, place.y),
        names=("predicted", "measured \N{MINUS SIGN} predicted") if is_residual else ("measured", "predicted"),
        percent=False,
        line=(low, 0.0, high, 0.0) if is_residual else (low, low, high, high),
    )


def _spans(measured: list[float], predicted: list[list[float]]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the range of measured and predicted numbers, and that of residuals around 0."""
    low, high = min(measured, default=0.0), max(measured, default=1.0)
    width = (high - low) or 1.0
    lowest = max(low - BEYOND * width, min((min(values, default=low) for values in predicted), default=low))
    highest = min(high + BEYOND * width, max((max(values, default=high) for values in predicted), default=high))
    wrong = [abs(a - b) for values in predicted for a, b in zip(measured, values, strict=True)]
    far = min(width, max(wrong, default=width)) or width
    margin = 0.04 * width
    return (min(low, lowest) - margin, max(high, highest) + margin), (-1.05 * far, 1.05 * far)


def _linear(scale: svg.Scale) -> tuple[float, float]:
    factor = (scale.end - scale.start) / (scale.high - scale.low)
    return scale.start - scale.low * factor, factor
