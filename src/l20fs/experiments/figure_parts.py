"""Parts of figures: styles of methods, subplots, axes, captions and files."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterable
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from l20fs.experiments.tables import CLASSIFIER_NAMES
from l20fs.plots.canvas import COLOURS, GREY, VERBATIM, clear_frame, use_log_axis
from l20fs.storage.files import Writer

BLUE, VERMILLION, GREEN, PINK, ORANGE, SKY = COLOURS
BLACK = "#000000"

#: Size of one subplot in inches; a figure has at most four side by side.
SUBPLOT_WIDTH, SUBPLOT_HEIGHT, MOST_COLUMNS = 2.9, 2.4, 4

#: Maximum number of unevenly spaced numbers of features that each get a tick.
MOST_TICKS = 8

#: Orders of magnitude from which on an axis is logarithmic.
DECADES = 2.0


class Style(NamedTuple):
    """Style of a method in all figures; no two differ in colour alone."""

    color: str
    marker: str
    linestyle: str = "-"
    linewidth: float = 1.1


STYLES = {
    "Baseline": Style(GREY, "", "--"),
    "Relief": Style(SKY, "v"),
    "ReliefF": Style(SKY, "v"),
    "mRMR": Style(ORANGE, "s"),
    "RFS": Style(GREEN, "^"),
    "RLSR": Style(PINK, "D"),
    "RPMFS": Style(BLACK, "x"),
    "ESFS": Style(BLACK, "+", ":"),
    "l2,0-FS": Style(VERMILLION, "o", linewidth=2.0),
    "L20Selector": Style(BLUE, "*", linewidth=2.0),
    "HIHT": Style(GREEN, "s"),
    "AHIHT": Style(VERMILLION, "o", linewidth=2.0),
    "forward": Style(BLUE, "*", linewidth=2.0),
}


def styles_of(methods: Iterable[str]) -> dict[str, Style]:
    """Return a style for each method: known ones keep theirs, others get unused ones."""
    methods = list(methods)
    used = {STYLES[method].color for method in methods if method in STYLES}
    looks = sorted(zip((*COLOURS, BLACK), "<>phdHX", strict=True), key=lambda look: look[0] in used)
    free = (Style(*look, dashes) for dashes in itertools.cycle(("-", "--", ":")) for look in looks)
    return {method: STYLES.get(method) or next(free) for method in dict.fromkeys(methods)}


def figure_writers(figure: Figure, name: str) -> dict[str, Writer]:
    """Return functions that write ``name.svg`` and ``name.png``; the same figure gives the same bytes."""

    def write_svg(stream: Any) -> None:
        with mpl.rc_context({"svg.hashsalt": "l20fs", "svg.fonttype": "path"}):
            figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})

    def write_png(stream: Any) -> None:
        figure.savefig(stream, format="png", dpi=160, metadata={"Software": None})

    return {f"{name}.svg": write_svg, f"{name}.png": write_png}


def make_figure(width: float, height: float) -> Figure:
    """Return a figure that is not registered with pyplot."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def make_subplots(
    titles: list[str], width: float = SUBPLOT_WIDTH, height: float = SUBPLOT_HEIGHT, most_columns: int = MOST_COLUMNS
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a subplot for each title, in rows of about equal length."""
    n_rows = math.ceil(len(titles) / most_columns)
    n_columns = math.ceil(len(titles) / n_rows)
    figure = make_figure(max(1.6 * SUBPLOT_WIDTH, width * n_columns), height * n_rows + 0.7)
    grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel().tolist()
    for title, ax in zip(titles, grid, strict=False):
        ax.set_title(title, fontsize=10, **VERBATIM)
    for ax in grid[len(titles) :]:
        ax.remove()
    return figure, grid[: len(titles)]


def make_two_rows(titles: list[str]) -> tuple[Figure, list[Axes], list[Axes]]:
    """Return a figure with two subplots for each title, one above the other."""
    figure = make_figure(max(1.8 * SUBPLOT_WIDTH, 1.15 * SUBPLOT_WIDTH * len(titles)), 2 * SUBPLOT_HEIGHT + 0.7)
    grid = figure.subplots(2, len(titles), squeeze=False, sharex="col")
    for title, ax in zip(titles, grid[0], strict=True):
        ax.set_title(title, fontsize=10, **VERBATIM)
    return figure, list(grid[0]), list(grid[1])


def finish(figure: Figure, subplots: list[Axes], x: str, y: str, legend: list[Any] | None) -> None:
    for ax in figure.axes:
        clear_frame(ax)
        ax.grid(axis="both", color="#E4E4E4", lw=0.6)
        ax.set_axisbelow(True)
    label_axes(figure, subplots, x, y)
    if legend:
        n_beside = _n_beside(figure, legend)
        figure.legend(handles=legend, loc="outside lower center", ncols=n_beside, frameon=False, fontsize=8)
        # A long legend makes the figure higher, not its subplots lower.
        n_more = max(0, math.ceil(len(legend) / n_beside) - 2)
        figure.set_figheight(figure.get_figheight() + 0.18 * n_more)


def _n_beside(figure: Figure, legend: list[Any]) -> int:
    """Return the number of legend entries per line, for lines of equal length."""
    width = 0.06 * max(len(entry.get_label()) for entry in legend) + 0.6
    n_lines = math.ceil(len(legend) * width / figure.get_figwidth())
    return math.ceil(len(legend) / n_lines)


def use_size_axis(ax: Axes, sizes: list[int]) -> None:
    """Set up an axis for numbers of features: linear for even steps, otherwise logarithmic with a tick at each of a few."""
    if len(set(np.diff(sizes))) < 2:
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        return
    use_log_axis(ax, sizes[0], sizes[-1])
    if len(sizes) <= MOST_TICKS:
        ax.set_xticks(sizes)


def label_axes(figure: Figure, subplots: list[Axes], x: str, y: str) -> None:
    """Label the axes once per column and row of subplots."""
    lowest = {ax.get_subplotspec().colspan.start: ax for ax in subplots}  # type: ignore[union-attr]  # all are in a grid
    for ax in lowest.values():
        ax.set_xlabel(x)
    for ax in leftmost(subplots):
        ax.set_ylabel(y)


def leftmost(subplots: list[Axes]) -> list[Axes]:
    return [ax for ax in subplots if ax.get_subplotspec().is_first_col()]  # type: ignore[union-attr]


def legend_of(styles: dict[str, Style]) -> list[Any]:
    from matplotlib.lines import Line2D

    return [Line2D([], [], **line_look(style), label=method) for method, style in styles.items()]


def line_look(style: Style) -> dict[str, Any]:
    size = {"*": 7.0, "o": 4.5}.get(style.marker, 4.0)
    return {**style._asdict(), "markersize": size, "markeredgewidth": 1.0}


def add_caption(figure: Figure, text: str) -> Figure:
    """Write the caption above the subplots, wrapped to the width of the figure: a letter is some 0.07 inches wide."""
    wrapped = textwrap.fill(text, int(figure.get_figwidth() / 0.073))
    figure.suptitle(wrapped, fontsize=9, color="#333333", **VERBATIM)
    return figure


def power_of_ten(value: float) -> str:
    """Format a power of ten as such, any other number unchanged."""
    exponent = round(math.log10(value)) if value > 0 else 0
    return f"$10^{{{exponent}}}$" if value > 0 and math.isclose(value, 10.0**exponent) else f"{value:g}"


def give_room(ax: Axes, means: pd.Series, spread: pd.Series, highest: float) -> None:
    """Set the limits of an axis: a range of at least a tenth of the value, hardly above ``highest``.

    Otherwise differences in the last digit would fill a subplot.
    """
    centre = float(means.mean())
    half = max(0.05 * abs(centre), 1.3 * float((abs(means - centre) + spread.fillna(0.0)).max()), 0.5)
    ax.set_ylim(centre - half, min(centre + half, highest + 0.1 * half))


def spans_decades(values: pd.Series) -> bool:
    return bool(len(values)) and values.min() > 0 and math.log10(values.max() / values.min()) > DECADES


def size_words(trials: pd.DataFrame) -> str:
    """Return the number of features in words; 0 stands for all with weights."""
    largest = trials.n_features.max()
    return f"at most {largest} features" if largest else "all features that have weights"


def range_text(counts: pd.Series) -> str:
    return f"{counts.min()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"


def classifier_name(classifier: str) -> str:
    return CLASSIFIER_NAMES.get(classifier, classifier)
