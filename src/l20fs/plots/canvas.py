"""Axes, colours and labels shared by the displays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from l20fs.text import shorten
from l20fs.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Colours of Okabe and Ito, distinguishable for colour-blind readers, without their yellow, which is too pale for a line.
BLUE, VERMILLION = "#0072B2", "#D55E00"
COLOURS = (BLUE, VERMILLION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GREY, PALE = "#767676", "#C4C4C4"

#: Font size of feature names, in points.
SMALL = 8.0
#: Distance between two lines of small text, in points.
LINE = 1.3 * SMALL
#: Number of names up to which a new figure grows.
MOST_NAMES = 50

#: Names are shown verbatim: a ``$`` does not start a formula.
VERBATIM: dict[str, Any] = {"parse_math": False, "usetex": False}


def axes(ax: Axes | None, *, width: float = 6.4, height: float = 4.8) -> Axes:
    """Return ``ax``, or the axes of a new figure of this size in inches."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError:
        raise ModuleNotFoundError("Plots need matplotlib: pip install 'l20fs[plots]'.") from None
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def height_for(n_names: int) -> float:
    """Return the height in inches of a figure with one name per row, up to a limit."""
    return max(2.0, 1.3 + min(n_names, MOST_NAMES) * LINE / 72.0)


class Extent(NamedTuple):
    """Size of axes in points after the layout of everything drawn so far."""

    width: float
    height: float

    @classmethod
    def of(cls, ax: Axes) -> Extent:
        from matplotlib.figure import Figure

        engine = ax.figure.get_layout_engine()
        if engine is not None and isinstance(ax.figure, Figure):  # a subfigure has no layout of its own
            engine.execute(ax.figure)
        box = ax.get_window_extent()
        points = 72.0 / ax.figure.dpi
        return cls(box.width * points, box.height * points)


def clear_frame(ax: Axes) -> None:
    """Hide the top and the right side of the frame."""
    ax.spines[["top", "right"]].set_visible(False)


def use_log_axis(ax: Axes, low: float, high: float) -> None:
    """Make the x axis logarithmic, with plain numbers as labels, also over a short range."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    ratio = high / low
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(
        MaxNLocator(7, steps=[1, 2, 5, 10]) if ratio < 5.0 else LogLocator(subs=(1.0, 2.0, 5.0) if ratio < 500.0 else (1.0,))
    )
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter("{x:g}")


def label_rows(ax: Axes, names: Array) -> None:
    """Label the rows 0, 1, ... from the top with names; without room for all, every second, third, ... row."""
    step = max(1, math.ceil(len(names) * LINE / Extent.of(ax).height)) if len(names) else 1
    ax.set_yticks(np.arange(len(names))[::step], [shorten(name) for name in names[::step]], fontsize=SMALL, **VERBATIM)
    ax.set_ylim(max(len(names), 1) - 0.5, -0.5)


def say_nothing_selected(ax: Axes) -> None:
    """Write "no features selected" in the middle of the axes."""
    ax.text(0.5, 0.5, "no features selected", transform=ax.transAxes, ha="center", va="center", color=GREY)


def spread(places: Array, gap: float, low: float, high: float) -> Array:
    """Move labels by the least squares needed for them to be ``gap`` apart and between ``low`` and ``high``.

    After subtracting the gaps, this is isotonic regression. The order of ``places`` is kept; if there is no room for all
    gaps, they shrink.

    Examples
    --------
    >>> spread(np.array([0.5, 0.1, 0.5]), 0.2, 0.0, 1.0).round(3).tolist()
    [0.4, 0.1, 0.6]
    """
    if not len(places):
        return places
    gap = min(gap, (high - low) / max(1, len(places) - 1))
    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(len(places))
    moved = np.empty(len(places))
    moved[order] = isotonic_regression(places[order] - steps, y_min=low, y_max=high - steps[-1]) + steps
    return moved


def check_attributes(estimator: Any, needed: tuple[str, ...], display: type, example: str) -> None:
    """Raise an error if an estimator is not fitted or lacks an attribute that the display needs."""
    check_is_fitted(estimator)
    missing = [name for name in needed if not hasattr(estimator, name)]
    if missing:
        raise TypeError(
            f"{display.__name__} needs {missing[0]}, which {type(estimator).__name__} does not have. "
            f"Give a fitted {example}."
        )


def check_length(name: str, values: Any, length: int, of_what: str) -> None:
    """Raise an error if ``values`` does not have one entry for each of ``length`` items."""
    if len(values) != length:
        raise ValueError(f"{name} has {len(values)} entries for {length} {of_what}. Give one for each.")
