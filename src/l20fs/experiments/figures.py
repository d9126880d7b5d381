"""The paper's figures: every function takes DataFrames and returns a matplotlib Figure, which :func:`save` writes."""

from __future__ import annotations

import itertools
import json
import math
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator

from l20fs.experiments import statistics
from l20fs.experiments.outcomes import check_rows, fit_times, honest_curves, optimistic_curves
from l20fs.experiments.tables import CLASSIFIER_NAMES, seconds
from l20fs.plots.canvas import COLOURS, GREY, VERBATIM, clear_frame, use_log_axis
from l20fs.storage.files import write_together

BLUE, VERMILLION, GREEN, PINK, ORANGE, SKY = COLOURS
BLACK = "#000000"

#: Inches of one panel; a figure has at most four beside each other.
PANEL_WIDTH, PANEL_HEIGHT, MOST_COLUMNS = 2.9, 2.4, 4

#: So many numbers of features are written below an axis each, if their steps are uneven.
MOST_TICKS = 8

#: A picture spans more than so many orders of magnitude: then its axis is logarithmic.
DECADES = 2.0


class Style(NamedTuple):
    """How a method is drawn, in every figure alike; no two differ in colour alone."""

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
    """Return a style for each method: known ones keep theirs, others get what is left, unused colours first."""
    methods = list(methods)
    used = {STYLES[method].color for method in methods if method in STYLES}
    looks = sorted(zip((*COLOURS, BLACK), "<>phdHX", strict=True), key=lambda look: look[0] in used)
    free = (Style(*look, dashes) for dashes in itertools.cycle(("-", "--", ":")) for look in looks)
    return {method: STYLES.get(method) or next(free) for method in dict.fromkeys(methods)}


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write ``name.svg`` and ``name.png``, both or none, and return where they are."""
    writers = figure_writers(figure, folder, name)
    write_together(writers)
    return list(writers)


def figure_writers(figure: Figure, folder: Path, name: str) -> dict[Path, Callable[[BinaryIO], object]]:
    """Return what writes ``name.svg`` and ``name.png``; the same figure gives the same bytes."""

    def write_svg(stream: Any) -> None:
        with mpl.rc_context({"svg.hashsalt": "l20fs", "svg.fonttype": "path"}):
            figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})

    def write_png(stream: Any) -> None:
        figure.savefig(stream, format="png", dpi=160, metadata={"Software": None})

    return {folder / f"{name}.svg": write_svg, folder / f"{name}.png": write_png}


# -------------------------------------------------------------------------------------------------------------- figures


#: How the curves of each protocol are made and what is said about them.
CURVES = {
    "optimistic": (optimistic_curves, "each method with the parameters that are best on the test part: optimistic"),
    "honest": (honest_curves, "parameters chosen inside the training part for each number of features: honest"),
}


def curves(rows: pd.DataFrame, classifier: str, protocol: str = "optimistic") -> Figure:
    """Draw accuracy against the number of features, one panel per data set and one line per method.

    Parameters
    ----------
    rows : DataFrame
        A row table.
    classifier : str
    protocol : {"optimistic", "honest"}, default="optimistic"
        Whether the parameters of a method are those that are best on the test parts, as in the paper, or chosen for every
        number of features on inner folds.
    """
    if protocol not in CURVES:
        raise ValueError(f"protocol={protocol!r} is unknown. Use {' or '.join(map(repr, CURVES))}.")
    make, words = CURVES[protocol]
    table = _of_classifier(make(rows), classifier)
    styles = styles_of(table.method)
    datasets = list(table.dataset.unique())
    figure, panels = _panels(datasets)
    for dataset, ax in zip(datasets, panels, strict=True):
        here = table[table.dataset == dataset]
        sizes: set[int] = set()
        for method, line in here.groupby("method", sort=False, observed=True):
            if len(line) == 1 and styles[method].marker == "":
                ax.axhline(line.accuracy.iloc[0], **_line(styles[method]), label=method)
            else:
                line = line.sort_values("n_features")
                ax.plot(line.n_features, line.accuracy, **_line(styles[method]), label=method)
                sizes |= set(line.n_features)
        _size_axis(ax, sorted(sizes))
    _finish(figure, panels, "number of features", "accuracy (%)", _legend(styles))
    return _captioned(figure, f"{_name(classifier)}, mean of {_range(table.n_splits)} splits, {words}")


def lambda_sensitivity(rows: pd.DataFrame, classifier: str, parameter: str = "alpha") -> Figure:
    """Draw accuracy as numbers on a map, lambda x number of features, one panel per data set; all share their colours.

    Parameters
    ----------
    rows : DataFrame
        A row table of one method whose ``choice`` names ``parameter``.
    classifier : str
    parameter : str, default="alpha"
    """
    trials = _trials(rows, classifier, parameter)
    means = 100.0 * trials.groupby(["dataset", parameter, "n_features"], sort=False)["accuracy"].mean()
    datasets = list(trials.dataset.unique())
    figure, panels = _panels(datasets, width=1.35 * PANEL_WIDTH, height=1.15 * PANEL_HEIGHT, most_columns=2)
    image = None
    for dataset, ax in zip(datasets, panels, strict=True):
        grid = means[dataset].unstack("n_features").sort_index().sort_index(axis=1)
        image = ax.imshow(
            grid.to_numpy(), cmap="cividis", vmin=means.min(), vmax=max(means.max(), means.min() + 1e-6), aspect="auto"
        )
        for (i, j), value in np.ndenumerate(grid.to_numpy()):
            is_dark = value < (means.min() + means.max()) / 2
            ax.text(j, i, f"{value:.1f}", ha="center", va="center", fontsize=8, color="white" if is_dark else "black")
        ax.set_xticks(range(grid.shape[1]), [f"{k}" for k in grid.columns])
        ax.set_yticks(range(grid.shape[0]), [_power(value) for value in grid.index])
    _label(figure, panels, "number of features", "λ")
    if image is not None:
        figure.colorbar(image, ax=panels, label="accuracy (%)", shrink=0.8)
    return _captioned(figure, f"{_name(classifier)}, accuracy on the test part, mean of {_n_splits(trials)} splits")


def initialisation(rows: pd.DataFrame, classifier: str, n_features: int | None = None) -> Figure:
    """Draw accuracy and number of non-zero rows by kind of starting point; bars: spread over repeated draws.

    Parameters
    ----------
    rows : DataFrame
        A row table whose ``choice`` names ``init`` and, for random ones, ``random_state``. Splits are averaged first: what
        is left is what the starting point changes.
    classifier : str
    n_features : int, optional
        For how many features the accuracy is shown; None: the largest number in the rows.
    """
    trials = _at_size(_trials(rows, classifier, "init", "random_state"), n_features)
    repeats = trials.groupby(["dataset", "init", "random_state"], sort=False, dropna=False)
    values = repeats.agg(accuracy=("accuracy", "mean"), n_nonzero=("n_nonzero", "mean")).astype("float64").reset_index()
    values["accuracy"] *= 100.0
    datasets, kinds = list(values.dataset.unique()), list(values.init.unique())
    figure, top, bottom = _two_rows(datasets)
    for column, dataset in enumerate(datasets):
        for ax, what in ((top[column], "accuracy"), (bottom[column], "n_nonzero")):
            spread = (
                values[values.dataset == dataset]
                .groupby("init", sort=False)[what]
                .agg(["mean", "std", "count"])
                .reindex(kinds)
            )
            ax.errorbar(
                range(len(kinds)), spread["mean"], spread["std"].fillna(0.0), fmt="o", color=BLUE, ms=6, capsize=5, lw=1.5
            )
            for place, (mean, count) in enumerate(zip(spread["mean"], spread["count"].fillna(0), strict=True)):
                note = f"{mean:.1f}" if count <= 1 else f"{mean:.1f}\n({count:.0f} draws)"
                ax.annotate(note, (place, mean), (7, 0), textcoords="offset points", va="center", fontsize=7, color=GREY)
            _give_room(ax, spread["mean"], spread["std"], 100.0 if what == "accuracy" else np.inf)
            ax.set_xticks(range(len(kinds)), kinds, **VERBATIM)
            ax.set_xlim(-0.5, len(kinds) - 0.2)
    _finish(figure, [], "", "", None)
    top[0].set_ylabel("accuracy (%)")
    bottom[0].set_ylabel("non-zero rows")
    caption = f"{_name(classifier)} with {_size_words(trials)}, mean of {_n_splits(trials)} splits"
    return _captioned(figure, f"{caption}; bars: standard deviation over draws")


def convergence(table: pd.DataFrame) -> Figure:
    """Draw the objective against the iteration, each curve relative to its first value, one panel per data set.

    Parameters
    ----------
    table : DataFrame
        dataset, method, iteration, objective. The methods have different objectives, so that only shapes can be compared.
    """
    table = table.sort_values("iteration", kind="stable")
    first = table.groupby(["dataset", "method"])["objective"].transform("first")
    table = table.assign(relative=table.objective / first)
    styles, datasets = styles_of(table.method), list(table.dataset.unique())
    figure, panels = _panels(datasets, width=1.3 * PANEL_WIDTH, height=1.2 * PANEL_HEIGHT)
    for dataset, ax in zip(datasets, panels, strict=True):
        here = table[table.dataset == dataset]
        for method, line in here.groupby("method", sort=False, observed=True):
            every = max(1, len(line) // 12)
            ax.plot(line.iteration, line.relative, **_line(styles[method]), markevery=every, label=method)
        if _spans_decades(here.relative):
            ax.set_yscale("log")
        if _spans_decades(here.iteration[here.iteration > 0]) and here.iteration.min() > 0:
            ax.set_xscale("log")
        else:
            ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    _finish(figure, panels, "iteration", "objective / first value", _legend(styles))
    return _captioned(
        figure, "Objective of each method relative to its own first value; the objectives differ between methods"
    )


def stability(table: pd.DataFrame) -> Figure:
    """Draw how much the selections of the splits agree against the number of features, one panel per classifier.

    Parameters
    ----------
    table : DataFrame
        What :func:`~l20fs.experiments.agreement.agreement_by_size` returns.
    """
    styles = styles_of(table.method[table.stability.notna()])
    classifiers = list(table.classifier.unique())
    figure, panels = _panels([f"parameters chosen for {_name(name)}" for name in classifiers], width=1.3 * PANEL_WIDTH)
    for classifier, ax in zip(classifiers, panels, strict=True):
        here = table[(table.classifier == classifier) & table.stability.notna()]
        for number, (method, line) in enumerate(here.groupby("method", sort=False, observed=True)):
            line = line.sort_values("n_features")
            aside = 1.12 ** ((number + 0.5) / len(styles) - 0.5)  # bars at the same place hide each other
            reach = np.array([line.stability - line.lower, line.upper - line.stability])
            look = _line(styles[method]) | {"elinewidth": 0.7, "capsize": 1.5}
            ax.errorbar(line.n_features.to_numpy() * aside, line.stability.to_numpy(), reach, **look)
        if not len(here):
            ax.text(0.5, 0.5, "all features were selected", transform=ax.transAxes, ha="center", va="center", color=GREY)
            continue
        _size_axis(ax, sorted(here.n_features.unique()))
        ax.set_ylim(min(0.0, float(here.lower.min())), max(1.02, float(here.upper.max())))
    _finish(figure, panels, "number of features", "agreement of the splits", _legend(styles))
    caption = "1: the same features in every split, 0: as by chance (Nogueira's index); bars: 95 % interval"
    return _captioned(figure, caption)


def time(rows: pd.DataFrame) -> Figure:
    """Draw the time of a fit, one panel per data set, with a bar per method and the range over splits and parameters."""
    times = fit_times(rows)
    times = times[times.seconds > 0.0]
    methods, datasets = list(times.method.unique()), list(times.dataset.unique())
    styles = styles_of(methods)
    low, high = 10.0 ** math.floor(math.log10(times.least.min())), times.most.max() * 8.0
    figure, panels = _panels(datasets, height=0.6 + 0.21 * len(methods))
    for dataset, ax in zip(datasets, panels, strict=True):
        here = times[times.dataset == dataset].set_index("method")
        for place, method in enumerate(methods):
            if method not in here.index:
                continue
            row = here.loc[method]
            ax.barh(
                place,
                row.seconds - low,
                left=low,
                height=0.65,
                color=styles[method].color,
                alpha=0.3 if styles[method].color == BLACK else 0.55,
            )
            ax.plot([row.least, row.most], [place, place], color=BLACK, lw=1.0, marker="|", ms=5)
            ax.annotate(seconds(row.seconds), (row.most, place), (5, 0), textcoords="offset points", va="center", fontsize=7)
        ax.set_xscale("log")
        ax.set_xlim(low, high)
        ax.set_ylim(len(methods) - 0.4, -0.6)
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_yticks(range(len(methods)), methods if ax in _leftmost(panels) else [""] * len(methods), **VERBATIM)
    _finish(figure, panels, "seconds for one fit (log)", "", None)
    return _captioned(figure, "Mean time of a fit on the training part; lines: least and most over splits and parameters")


def solvers(rows: pd.DataFrame, classifier: str, parameter: str = "alpha", n_features: int | None = None) -> Figure:
    """Draw accuracy and number of non-zero rows against lambda, a line per solver, two panels per data set.

    Parameters
    ----------
    rows : DataFrame
        A row table with the solvers as methods, whose ``choice`` names ``parameter``.
    classifier : str
    parameter : str, default="alpha"
    n_features : int, optional
        For at most how many features the accuracy is shown; None: the largest number in the rows.
    """
    trials = _at_size(_trials(rows, classifier, parameter), n_features)
    styles, datasets = styles_of(trials.method), list(trials.dataset.unique())
    figure, top, bottom = _two_rows(datasets)
    for column, dataset in enumerate(datasets):
        for method, here in trials[trials.dataset == dataset].groupby("method", sort=False, observed=True):
            aside = 1.06 ** (list(styles).index(method) - (len(styles) - 1) / 2)  # bars at the same place hide each other
            here = here.assign(percent=100.0 * here.accuracy, count=here.n_nonzero.astype("float64"))
            for ax, what in ((top[column], "percent"), (bottom[column], "count")):
                values = here.groupby(parameter)[what].agg(["mean", "sem"])
                look = _line(styles[method]) | {"elinewidth": 0.9, "capsize": 2}
                ax.errorbar(values.index * aside, values["mean"], values["sem"].fillna(0.0), **look)
        bottom[column].set_yscale("symlog", linthresh=1.0)
        bottom[column].set_ylim(bottom=0.0)
        bottom[column].yaxis.set_major_formatter("{x:g}")
        for ax in (top[column], bottom[column]):
            ax.set_xscale("log")
            ax.xaxis.set_minor_locator(NullLocator())
            ax.yaxis.set_minor_formatter(NullFormatter())
    _finish(figure, bottom, "λ", "", _legend(styles))
    top[0].set_ylabel("accuracy (%)")
    bottom[0].set_ylabel("non-zero rows")
    caption = f"{_name(classifier)} with {_size_words(trials)}, mean of {_n_splits(trials)} splits"
    return _captioned(figure, f"{caption}; bars: standard error")


def critical_difference(scores: pd.DataFrame, title: str = "", level: float = statistics.LEVEL) -> Figure:
    """Draw the mean ranks on a line and join methods that Nemenyi's test cannot tell apart.

    Parameters
    ----------
    scores : DataFrame
        Data sets x methods, as :func:`~l20fs.experiments.statistics.score_matrix` returns them.
    title : str
    level : float, default=0.05
    """
    ranks = statistics.mean_ranks(scores).sort_values(kind="stable")
    n_methods, n_sets = len(ranks), len(scores)
    difference = statistics.critical_difference(n_methods, n_sets, level)
    groups = statistics.alike(ranks, difference)
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
    ax.plot([1, 1 + difference], [-1.25, -1.25], color=BLACK, lw=1.5, marker="|", ms=6)
    ax.text(1 + difference + 0.02 * n_methods, -1.25, f"critical difference {difference:.2f}", va="center", fontsize=8)
    for number, group in enumerate(groups):
        place = 0.55 + 0.35 * number
        ax.plot([ranks[group[0]] - 0.04, ranks[group[-1]] + 0.04], [place, place], color=GREY, lw=4.0, solid_capstyle="butt")
    for number, (method, rank) in enumerate(ranks.items()):
        is_left = number < n_left
        place = top + 0.6 * (number if is_left else n_methods - 1 - number)
        end = 1 - 0.04 * n_methods if is_left else n_methods + 0.04 * n_methods
        ax.plot([rank, rank, end], [0, place, place], color=BLACK, lw=0.8)
        text = f"{method}  {rank:.2f}" if is_left else f"{rank:.2f}  {method}"
        ax.text(end, place, f" {text} ", ha="right" if is_left else "left", va="center", fontsize=9, **VERBATIM)
    caption = f"Mean ranks over {n_sets} data sets, 1 is best; joined: not different (Nemenyi, {level:g})"
    return _captioned(figure, f"{title}. {caption}" if title else caption)


# --------------------------------------------------------------------------------------------------- what figures share


def _figure(width: float, height: float) -> Figure:
    """Return a figure that no window and no other figure knows of."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _panels(
    titles: list[str], width: float = PANEL_WIDTH, height: float = PANEL_HEIGHT, most_columns: int = MOST_COLUMNS
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for each title, as even as possible."""
    n_rows = math.ceil(len(titles) / most_columns)
    n_columns = math.ceil(len(titles) / n_rows)
    figure = _figure(max(1.6 * PANEL_WIDTH, width * n_columns), height * n_rows + 0.7)
    grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel().tolist()
    for title, ax in zip(titles, grid, strict=False):
        ax.set_title(title, fontsize=10, **VERBATIM)
    for ax in grid[len(titles) :]:
        ax.remove()
    return figure, grid[: len(titles)]


def _two_rows(titles: list[str]) -> tuple[Figure, list[Axes], list[Axes]]:
    """Return a figure with two panels for each title, one above the other."""
    figure = _figure(max(1.8 * PANEL_WIDTH, 1.15 * PANEL_WIDTH * len(titles)), 2 * PANEL_HEIGHT + 0.7)
    grid = figure.subplots(2, len(titles), squeeze=False, sharex="col")
    for title, ax in zip(titles, grid[0], strict=True):
        ax.set_title(title, fontsize=10, **VERBATIM)
    return figure, list(grid[0]), list(grid[1])


def _finish(figure: Figure, panels: list[Axes], x: str, y: str, legend: list[Any] | None) -> None:
    for ax in figure.axes:
        clear_frame(ax)
        ax.grid(axis="both", color="#E4E4E4", lw=0.6)
        ax.set_axisbelow(True)
    _label(figure, panels, x, y)
    if legend:
        n_beside = _n_beside(figure, legend)
        figure.legend(handles=legend, loc="outside lower center", ncols=n_beside, frameon=False, fontsize=8)
        n_more = max(0, math.ceil(len(legend) / n_beside) - 2)  # a long legend makes the figure higher, not its panels lower
        figure.set_figheight(figure.get_figheight() + 0.18 * n_more)


def _n_beside(figure: Figure, legend: list[Any]) -> int:
    """Return how many entries of a legend fit into a line, each with its sample, all lines about equally long."""
    width = 0.06 * max(len(entry.get_label()) for entry in legend) + 0.6
    n_lines = math.ceil(len(legend) * width / figure.get_figwidth())
    return math.ceil(len(legend) / n_lines)


def _size_axis(ax: Axes, sizes: list[int]) -> None:
    """Make an axis for numbers of features: with even steps as it is, otherwise logarithmic with a tick at each of a few."""
    if len(set(np.diff(sizes))) < 2:
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        return
    use_log_axis(ax, sizes[0], sizes[-1])
    if len(sizes) <= MOST_TICKS:
        ax.set_xticks(sizes)


def _label(figure: Figure, panels: list[Axes], x: str, y: str) -> None:
    """Name the axes once per column and row."""
    lowest = {ax.get_subplotspec().colspan.start: ax for ax in panels}  # type: ignore[union-attr]  # all are in a grid
    for ax in lowest.values():
        ax.set_xlabel(x)
    for ax in _leftmost(panels):
        ax.set_ylabel(y)


def _leftmost(panels: list[Axes]) -> list[Axes]:
    return [ax for ax in panels if ax.get_subplotspec().is_first_col()]  # type: ignore[union-attr]


def _legend(styles: dict[str, Style]) -> list[Any]:
    from matplotlib.lines import Line2D

    return [Line2D([], [], **_line(style), label=method) for method, style in styles.items()]


def _line(style: Style) -> dict[str, Any]:
    size = {"*": 7.0, "o": 4.5}.get(style.marker, 4.0)
    return {**style._asdict(), "markersize": size, "markeredgewidth": 1.0}


def _captioned(figure: Figure, text: str) -> Figure:
    """Write what is shown above the panels, in as many lines as it needs: a letter is some 0.07 inches wide."""
    wrapped = textwrap.fill(text, int(figure.get_figwidth() / 0.073))
    figure.suptitle(wrapped, fontsize=9, color="#333333", **VERBATIM)
    return figure


def _power(value: float) -> str:
    """Return a power of ten as one, any other number as it is."""
    exponent = round(math.log10(value)) if value > 0 else 0
    return f"$10^{{{exponent}}}$" if value > 0 and math.isclose(value, 10.0**exponent) else f"{value:g}"


def _give_room(ax: Axes, means: pd.Series, spread: pd.Series, highest: float) -> None:
    """Show at least a tenth of the value, so that no last digit fills a panel, and hardly more than ``highest``."""
    centre = float(means.mean())
    half = max(0.05 * abs(centre), 1.3 * float((abs(means - centre) + spread.fillna(0.0)).max()), 0.5)
    ax.set_ylim(centre - half, min(centre + half, highest + 0.1 * half))


def _spans_decades(values: pd.Series) -> bool:
    return bool(len(values)) and values.min() > 0 and math.log10(values.max() / values.min()) > DECADES


def _trials(rows: pd.DataFrame, classifier: str, *parameters: str) -> pd.DataFrame:
    """Return the trials of one classifier with columns for parameters in their choice, of which the first must be there."""
    trials = _of_classifier(check_rows(rows)[rows.fold.isna()], classifier)
    choices = [json.loads(choice) for choice in trials.choice]
    for parameter in parameters[:1]:
        if not all(parameter in choice for choice in choices):
            raise ValueError(f"Some rows say nothing about {parameter!r} in their choice. Leave out methods without it.")
    return trials.assign(**{name: [choice.get(name) for choice in choices] for name in parameters})


def _of_classifier(table: pd.DataFrame, classifier: str) -> pd.DataFrame:
    found = table[table.classifier == classifier]
    if not len(found):
        known = ", ".join(table.classifier.unique()) or "none"
        raise ValueError(f"There is nothing about classifier={classifier!r}. The rows have {known}.")
    return found


def _at_size(trials: pd.DataFrame, n_features: int | None) -> pd.DataFrame:
    size = trials.n_features.max() if n_features is None else n_features
    if size not in set(trials.n_features):
        raise ValueError(f"n_features={n_features} is not in the rows. Use one of {sorted(trials.n_features.unique())}.")
    return trials[trials.n_features == size]


def _size_words(trials: pd.DataFrame) -> str:
    """Say how many features there are: 0 stands for as many as have weights."""
    largest = trials.n_features.max()
    return f"at most {largest} features" if largest else "all features that have weights"


def _n_splits(trials: pd.DataFrame) -> str:
    return _range(trials.groupby("dataset")["split"].nunique())


def _range(counts: pd.Series) -> str:
    return f"{counts.min()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"


def _name(classifier: str) -> str:
    return CLASSIFIER_NAMES.get(classifier, classifier)
