"""Figures of the paper, drawn from tables of :mod:`paper.outcomes` and :mod:`paper.effects`."""

from __future__ import annotations

import math
import textwrap
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator

from l20fs.compare.evaluators import TITLES
from l20fs.plots.canvas import COLOURS, GREY, clear_frame
from paper.outcomes import LEVEL, RankTests

BLUE, VERMILLION, GREEN, PINK, ORANGE, SKY = COLOURS
BLACK = "#000000"

#: Size of one subplot in inches.
WIDTH, HEIGHT = 2.9, 2.4


class Style(NamedTuple):
    """Style of a method in all figures; no two differ in colour alone."""

    color: str
    marker: str
    linestyle: str = "-"
    linewidth: float = 1.1


STYLES = {
    "Baseline": Style(GREY, "", "--"),
    "Relief": Style(SKY, "v"),
    "mRMR": Style(ORANGE, "s"),
    "RFS": Style(GREEN, "^"),
    "RLSR": Style(PINK, "D"),
    "RPMFS": Style(BLACK, "x"),
    "ESFS": Style(BLACK, "+", ":"),
    "l2,0-FS": Style(VERMILLION, "o", linewidth=2.0),
    "L20Selector": Style(BLUE, "*", linewidth=2.0),
    "HIHT": Style(GREEN, "s"),
    "HIHT, one lambda": Style(GREEN, "s"),
    "AHIHT": Style(VERMILLION, "o", linewidth=2.0),
    "forward": Style(BLUE, "*", linewidth=2.0),
}


def draw_curves(table: pd.DataFrame, classifier: str, protocol: str) -> Figure:
    """Draw the accuracy against the number of features, one subplot per data set and one line per method."""
    table = table[table.classifier == classifier]
    figure, subplots = _subplots(table.dataset.unique(), n_columns=4)
    for ax, (_, here) in zip(subplots, table.groupby("dataset", sort=False), strict=True):
        for method, line in here.groupby("method", sort=False):
            if len(line) == 1:
                ax.axhline(line.accuracy.iloc[0], **_look(method))
            else:
                ax.plot(*line.sort_values("n_features")[["n_features", "accuracy"]].to_numpy().T, **_look(method))
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    _finish(figure, "number of features", "accuracy (%)", table.method.unique())
    chosen = {
        "optimistic": "each method with the parameters that are best on the test part: optimistic",
        "honest": "parameters chosen inside the training part for each number of features: honest",
    }
    return _caption(figure, f"{TITLES[classifier]}, mean of {table.n_splits.max()} splits, {chosen[protocol]}")


def draw_lambda(table: pd.DataFrame, classifier: str) -> Figure:
    """Draw a map of the accuracy, lambda x number of features, one subplot per data set with a common colour scale."""
    means = table[table.classifier == classifier].set_index(["dataset", "alpha", "n_features"])["accuracy"]
    datasets = means.index.unique("dataset")
    figure, subplots = _subplots(datasets, n_columns=2, width=1.35 * WIDTH, height=1.15 * HEIGHT)
    middle = (means.min() + means.max()) / 2
    for ax, dataset in zip(subplots, datasets, strict=True):
        grid = means[dataset].unstack("n_features")
        image = ax.imshow(grid.to_numpy(), cmap="cividis", vmin=means.min(), vmax=means.max() + 1e-6, aspect="auto")
        for (i, j), value in np.ndenumerate(grid.to_numpy()):
            ax.text(j, i, f"{value:.1f}", ha="center", va="center", fontsize=8, color="white" if value < middle else "black")
        ax.set_xticks(range(grid.shape[1]), [f"{k}" for k in grid.columns])
        ax.set_yticks(range(grid.shape[0]), [f"$10^{{{round(math.log10(value))}}}$" for value in grid.index])
    figure.supxlabel("number of features", fontsize=10)
    figure.supylabel("λ", fontsize=10)
    figure.colorbar(image, ax=subplots, label="accuracy (%)", shrink=0.8)
    return _caption(figure, f"{TITLES[classifier]}, accuracy on the test part, mean over the splits")


def draw_initialisation(table: pd.DataFrame, classifier: str) -> Figure:
    """Draw accuracy and number of non-zero rows by kind of initial weights; bars: deviation over repeated draws."""
    table = table[table.classifier == classifier]
    figure, rows = _two_rows(table.dataset.unique())
    for column, (_, here) in enumerate(table.groupby("dataset", sort=False)):
        for ax, what in zip(rows[:, column], ("accuracy", "n_nonzero"), strict=True):
            means, deviations = here[what].to_numpy(), here[f"{what}_deviation"].fillna(0.0).to_numpy()
            places = range(len(here))
            ax.errorbar(places, means, deviations, fmt="o", color=BLUE, ms=6, capsize=5, lw=1.5)
            for place, mean, n_draws in zip(places, means, here.n_draws, strict=True):
                note = f"{mean:.1f}" if n_draws == 1 else f"{mean:.1f}\n({n_draws} draws)"
                ax.annotate(note, (place, mean), (7, 0), textcoords="offset points", va="center", fontsize=7, color=GREY)
            half = max(0.05 * means.mean(), 1.3 * float((abs(means - means.mean()) + deviations).max()), 0.5)
            ax.set_ylim(means.mean() - half, means.mean() + half)  # else differences in the last digit would fill it
            ax.set_xticks(places, here.init)
            ax.set_xlim(-0.5, len(here) - 0.2)
    _finish(figure, "", "", ())
    caption = f"{TITLES[classifier]} with all features that have weights; bars: standard deviation over draws"
    return _caption(figure, caption)


def draw_solvers(table: pd.DataFrame, classifier: str) -> Figure:
    """Draw accuracy and number of non-zero rows against lambda, a line per solver, two subplots per data set."""
    table = table[table.classifier == classifier]
    methods = list(table.method.unique())
    figure, rows = _two_rows(table.dataset.unique())
    for column, (_, here) in enumerate(table.groupby("dataset", sort=False)):
        for ax, what in zip(rows[:, column], ("accuracy", "n_nonzero"), strict=True):
            for method, line in here.groupby("method", sort=False):
                aside = 1.06 ** (methods.index(method) - (len(methods) - 1) / 2)  # bars at one place hide each other
                ax.errorbar(
                    line.alpha * aside, line[what], line[f"{what}_error"], elinewidth=0.9, capsize=2, **_look(method)
                )
            ax.set_xscale("log")
            ax.xaxis.set_minor_locator(NullLocator())
        rows[1, column].set_yscale("symlog", linthresh=1.0)
        rows[1, column].set_ylim(bottom=0.0)
        rows[1, column].yaxis.set_major_formatter("{x:g}")
        rows[1, column].yaxis.set_minor_formatter(NullFormatter())
        rows[1, column].set_xlabel("λ")
    _finish(figure, "", "", methods)
    return _caption(figure, f"{TITLES[classifier]} with all features that have weights; bars: standard error over splits")


def draw_convergence(traces: pd.DataFrame) -> Figure:
    """Draw the objective against the iteration, each curve relative to its first value, one subplot per data set."""
    figure, subplots = _subplots(traces.dataset.unique(), n_columns=2, width=1.3 * WIDTH, height=1.2 * HEIGHT)
    for ax, (_, here) in zip(subplots, traces.groupby("dataset", sort=False), strict=True):
        for method, line in here.groupby("method", sort=False):
            ax.plot(line.iteration, line.relative, **_look(method), markevery=max(1, len(line) // 12))
        ax.set_yscale("log")
    _finish(figure, "iteration", "objective / first value", traces.method.unique())
    return _caption(
        figure, "Objective of each method relative to its own first value; the objectives differ between methods"
    )


def draw_times(times: pd.DataFrame) -> Figure:
    """Draw the time of a fit, one subplot per data set, with a bar per method and the range over splits."""
    methods = list(times.method.unique())
    low, high = 10.0 ** math.floor(math.log10(times.least.min())), times.most.max() * 8.0
    figure, subplots = _subplots(times.dataset.unique(), n_columns=4, height=0.6 + 0.21 * len(methods))
    for number, (ax, (_, here)) in enumerate(zip(subplots, times.groupby("dataset", sort=False), strict=True)):
        for row in here.itertuples():
            place, color = methods.index(row.method), STYLES[row.method].color
            ax.barh(place, row.seconds - low, left=low, height=0.65, color=color, alpha=0.3 if color == BLACK else 0.55)
            ax.plot([row.least, row.most], [place, place], color=BLACK, lw=1.0, marker="|", ms=5)
            ax.annotate(f"{row.seconds:.2g}", (row.most, place), (5, 0), textcoords="offset points", va="center", fontsize=7)
        ax.set_xscale("log")
        ax.set_xlim(low, high)
        ax.set_ylim(len(methods) - 0.4, -0.6)
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_yticks(range(len(methods)), methods if number % 4 == 0 else [""] * len(methods))
    _finish(figure, "seconds for one fit (log)", "", ())
    return _caption(figure, "Mean time of a fit on the training part; lines: least and most over the splits")


def draw_ranks(tests: RankTests, title: str) -> Figure:
    """Draw the mean ranks on a line, and connect methods that Nemenyi's test does not separate."""
    ranks, groups, n_methods = tests.ranks, tests.alike, len(tests.ranks)
    n_left = (n_methods + 1) // 2
    top = 1.3 + 0.35 * len(groups)
    depth = top + 0.6 * n_left
    figure = _figure(7.0, 0.55 + 0.33 * (depth + 1.6))
    ax = figure.subplots()
    ax.set_axis_off()
    ax.set_xlim(1 - 0.35 * (n_methods - 1), n_methods + 0.35 * (n_methods - 1))
    ax.set_ylim(depth, -1.7)
    ax.plot([1, n_methods], [0, 0], color=BLACK, lw=1.2)
    for rank in range(1, n_methods + 1):
        ax.plot([rank, rank], [0, -0.2], color=BLACK, lw=1.0)
        ax.text(rank, -0.35, f"{rank}", ha="center", va="bottom", fontsize=8)
    end = 1 + tests.difference
    ax.plot([1, end], [-1.25, -1.25], color=BLACK, lw=1.5, marker="|", ms=6)
    ax.text(end + 0.02 * n_methods, -1.25, f"critical difference {tests.difference:.2f}", va="center", fontsize=8)
    for number, group in enumerate(groups):
        place = 0.55 + 0.35 * number
        ends = [ranks[group].min() - 0.04, ranks[group].max() + 0.04]
        ax.plot(ends, [place, place], color=GREY, lw=4.0, solid_capstyle="butt")
    for number, (method, rank) in enumerate(ranks.items()):
        is_left = number < n_left
        place = top + 0.6 * (number if is_left else n_methods - 1 - number)
        end = 1 - 0.04 * n_methods if is_left else n_methods + 0.04 * n_methods
        ax.plot([rank, rank, end], [0, place, place], color=BLACK, lw=0.8)
        text = f" {method}  {rank:.2f} " if is_left else f" {rank:.2f}  {method} "
        ax.text(end, place, text, ha="right" if is_left else "left", va="center", fontsize=9)
    joined = f"Mean ranks over {tests.n_sets} data sets, 1 is best; joined: not different (Nemenyi, {LEVEL:g})"
    return _caption(figure, f"{title}. {joined}")


# ------------------------------------------------------------------------------------------------------------------- parts


def _figure(width: float, height: float) -> Figure:
    """Return a figure that is not registered with pyplot."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _subplots(titles: Any, n_columns: int, width: float = WIDTH, height: float = HEIGHT) -> tuple[Figure, list[Axes]]:
    """Return a figure with a subplot for each title."""
    n_rows = math.ceil(len(titles) / n_columns)
    n_columns = math.ceil(len(titles) / n_rows)
    figure = _figure(max(1.6 * WIDTH, width * n_columns), height * n_rows + 0.7)
    grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel().tolist()
    for title, ax in zip(titles, grid, strict=False):
        ax.set_title(title, fontsize=10)
    for ax in grid[len(titles) :]:
        ax.remove()
    return figure, grid[: len(titles)]


def _two_rows(titles: Any) -> tuple[Figure, Any]:
    """Return a figure with two subplots for each title: accuracy above the number of non-zero rows."""
    figure = _figure(max(1.8 * WIDTH, 1.15 * WIDTH * len(titles)), 2 * HEIGHT + 0.7)
    grid = figure.subplots(2, len(titles), squeeze=False, sharex="col")
    for title, ax in zip(titles, grid[0], strict=True):
        ax.set_title(title, fontsize=10)
    grid[0, 0].set_ylabel("accuracy (%)")
    grid[1, 0].set_ylabel("non-zero rows")
    return figure, grid


def _look(method: Any) -> dict[str, Any]:
    """Return the style of a method as arguments of ``plot``."""
    style = STYLES[method]
    size = {"*": 7.0, "o": 4.5}.get(style.marker, 4.0)
    return {**style._asdict(), "markersize": size, "markeredgewidth": 1.0, "label": method}


def _finish(figure: Figure, x: str, y: str, methods: Any) -> None:
    """Draw grids, label the outer axes, and add a legend of the methods."""
    for ax in figure.axes:
        clear_frame(ax)
        ax.grid(axis="both", color="#E4E4E4", lw=0.6)
        ax.set_axisbelow(True)
        spec = ax.get_subplotspec()
        assert spec is not None, "all axes are in a grid"
        n_columns = spec.get_gridspec().ncols
        if spec.num1 + n_columns >= len(figure.axes):
            ax.set_xlabel(x or ax.get_xlabel())
        if spec.is_first_col():
            ax.set_ylabel(y or ax.get_ylabel())
    if len(methods):
        handles = [Line2D([], [], **_look(method)) for method in methods]
        figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize=8)


def _caption(figure: Figure, text: str) -> Figure:
    """Write the caption above the subplots, wrapped to the width of the figure: a letter is some 0.07 inches wide."""
    figure.suptitle(textwrap.fill(text, int(figure.get_figwidth() / 0.073)), fontsize=9, color="#333333")
    return figure
