"""Figures of the paper, drawn from computed numbers."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator

from l20fs.evaluation.metrics import metric_of
from l20fs.experiments.effects import select_classifier
from l20fs.experiments.figure_parts import (
    BLACK,
    BLUE,
    SUBPLOT_HEIGHT,
    SUBPLOT_WIDTH,
    add_caption,
    classifier_name,
    finish,
    give_room,
    label_axes,
    leftmost,
    legend_of,
    line_look,
    make_figure,
    make_subplots,
    make_two_rows,
    power_of_ten,
    range_text,
    size_words,
    spans_decades,
    styles_of,
    use_size_axis,
)
from l20fs.experiments.statistics import RankTests
from l20fs.experiments.tables import seconds
from l20fs.plots.canvas import GREY, VERBATIM

#: Captions for the curves of each protocol.
PROTOCOLS = {
    "optimistic": "each method with the parameters that are best on the test part: optimistic",
    "honest": "parameters chosen inside the training part for each number of features: honest",
}


def curves(table: pd.DataFrame, classifier: str) -> Figure:
    """Draw the score against the number of features, one subplot per data set and one line per method.

    Parameters
    ----------
    table : DataFrame
        Result of :func:`~l20fs.experiments.outcomes.curves`.
    classifier : str
    """
    table, metric = select_classifier(table, classifier), metric_of(table)
    [protocol] = table.protocol.unique()
    styles = styles_of(table.method)
    datasets = list(table.dataset.unique())
    figure, subplots = make_subplots(datasets)
    for dataset, ax in zip(datasets, subplots, strict=True):
        here = table[table.dataset == dataset]
        sizes: set[int] = set()
        for method, line in here.groupby("method", sort=False, observed=True):
            if len(line) == 1 and styles[method].marker == "":
                ax.axhline(line[metric.name].iloc[0], **line_look(styles[method]), label=method)
            else:
                line = line.sort_values("n_features")
                ax.plot(line.n_features, line[metric.name], **line_look(styles[method]), label=method)
                sizes |= set(line.n_features)
        use_size_axis(ax, sorted(sizes))
    finish(figure, subplots, "number of features", metric.title_with_unit, legend_of(styles))
    return add_caption(
        figure, f"{classifier_name(classifier)}, mean of {range_text(table.n_splits)} splits, {PROTOCOLS[protocol]}"
    )


def lambda_sensitivity(table: pd.DataFrame, classifier: str) -> Figure:
    """Draw a heat map of the accuracy, lambda x number of features, one subplot per data set with a common colour scale.

    Parameters
    ----------
    table : DataFrame
        Result of :func:`~l20fs.experiments.effects.accuracy_by_alpha`.
    classifier : str
    """
    means = table.set_index(["dataset", "alpha", "n_features"])["accuracy"]
    datasets = list(table.dataset.unique())
    figure, subplots = make_subplots(datasets, width=1.35 * SUBPLOT_WIDTH, height=1.15 * SUBPLOT_HEIGHT, most_columns=2)
    image = None
    for dataset, ax in zip(datasets, subplots, strict=True):
        grid = means[dataset].unstack("n_features").sort_index().sort_index(axis=1)
        image = ax.imshow(
            grid.to_numpy(), cmap="cividis", vmin=means.min(), vmax=max(means.max(), means.min() + 1e-6), aspect="auto"
        )
        for (i, j), value in np.ndenumerate(grid.to_numpy()):
            is_dark = value < (means.min() + means.max()) / 2
            ax.text(j, i, f"{value:.1f}", ha="center", va="center", fontsize=8, color="white" if is_dark else "black")
        ax.set_xticks(range(grid.shape[1]), [f"{k}" for k in grid.columns])
        ax.set_yticks(range(grid.shape[0]), [power_of_ten(value) for value in grid.index])
    label_axes(figure, subplots, "number of features", "λ")
    if image is not None:
        figure.colorbar(image, ax=subplots, label="accuracy (%)", shrink=0.8)
    caption = f"{classifier_name(classifier)}, accuracy on the test part, mean of {range_text(table.n_splits)} splits"
    return add_caption(figure, caption)


def initialisation(table: pd.DataFrame, classifier: str) -> Figure:
    """Draw accuracy and number of non-zero rows by kind of initial weights; bars: deviation over repeated draws.

    Parameters
    ----------
    table : DataFrame
        Result of :func:`~l20fs.experiments.effects.spread_by_start`.
    classifier : str
    """
    datasets, kinds = list(table.dataset.unique()), list(table.init.unique())
    figure, top, bottom = make_two_rows(datasets)
    for column, dataset in enumerate(datasets):
        here = table[table.dataset == dataset].set_index("init").reindex(kinds)
        for ax, what in ((top[column], "accuracy"), (bottom[column], "n_nonzero")):
            means, deviations = here[what], here[f"{what}_deviation"]
            ax.errorbar(range(len(kinds)), means, deviations.fillna(0.0), fmt="o", color=BLUE, ms=6, capsize=5, lw=1.5)
            for place, (mean, count) in enumerate(zip(means, here.n_draws.fillna(0), strict=True)):
                note = f"{mean:.1f}" if count <= 1 else f"{mean:.1f}\n({count:.0f} draws)"
                ax.annotate(note, (place, mean), (7, 0), textcoords="offset points", va="center", fontsize=7, color=GREY)
            give_room(ax, means, deviations, 100.0 if what == "accuracy" else np.inf)
            ax.set_xticks(range(len(kinds)), kinds, **VERBATIM)
            ax.set_xlim(-0.5, len(kinds) - 0.2)
    finish(figure, [], "", "", None)
    top[0].set_ylabel("accuracy (%)")
    bottom[0].set_ylabel("non-zero rows")
    caption = f"{classifier_name(classifier)} with {size_words(table)}, mean of {range_text(table.n_splits)} splits"
    return add_caption(figure, f"{caption}; bars: standard deviation over draws")


def convergence(table: pd.DataFrame) -> Figure:
    """Draw the objective against the iteration, each curve relative to its first value, one subplot per data set.

    Parameters
    ----------
    table : DataFrame
        Result of :func:`~l20fs.experiments.effects.relative_objectives`.
    """
    styles, datasets = styles_of(table.method), list(table.dataset.unique())
    figure, subplots = make_subplots(datasets, width=1.3 * SUBPLOT_WIDTH, height=1.2 * SUBPLOT_HEIGHT)
    for dataset, ax in zip(datasets, subplots, strict=True):
        here = table[table.dataset == dataset]
        for method, line in here.groupby("method", sort=False, observed=True):
            every = max(1, len(line) // 12)
            ax.plot(line.iteration, line.relative, **line_look(styles[method]), markevery=every, label=method)
        if spans_decades(here.relative):
            ax.set_yscale("log")
        if spans_decades(here.iteration[here.iteration > 0]) and here.iteration.min() > 0:
            ax.set_xscale("log")
        else:
            ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    finish(figure, subplots, "iteration", "objective / first value", legend_of(styles))
    return add_caption(
        figure, "Objective of each method relative to its own first value; the objectives differ between methods"
    )


def time(times: pd.DataFrame) -> Figure:
    """Draw the time of a fit, one subplot per data set, with a bar per method and the range over splits and parameters.

    Parameters
    ----------
    times : DataFrame
        Result of :func:`~l20fs.experiments.outcomes.fit_times`.
    """
    times = times[times.seconds > 0.0]
    methods, datasets = list(times.method.unique()), list(times.dataset.unique())
    styles = styles_of(methods)
    low, high = 10.0 ** math.floor(math.log10(times.least.min())), times.most.max() * 8.0
    figure, subplots = make_subplots(datasets, height=0.6 + 0.21 * len(methods))
    for dataset, ax in zip(datasets, subplots, strict=True):
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
        ax.set_yticks(range(len(methods)), methods if ax in leftmost(subplots) else [""] * len(methods), **VERBATIM)
    finish(figure, subplots, "seconds for one fit (log)", "", None)
    return add_caption(figure, "Mean time of a fit on the training part; lines: least and most over splits and parameters")


def solvers(table: pd.DataFrame, classifier: str) -> Figure:
    """Draw accuracy and number of non-zero rows against lambda, a line per solver, two subplots per data set.

    Parameters
    ----------
    table : DataFrame
        Result of :func:`~l20fs.experiments.effects.means_by_solver`.
    classifier : str
    """
    styles, datasets = styles_of(table.method), list(table.dataset.unique())
    figure, top, bottom = make_two_rows(datasets)
    for column, dataset in enumerate(datasets):
        for method, here in table[table.dataset == dataset].groupby("method", sort=False, observed=True):
            aside = 1.06 ** (list(styles).index(method) - (len(styles) - 1) / 2)  # bars at the same place hide each other
            here = here.sort_values("alpha").set_index("alpha")
            for ax, what in ((top[column], "accuracy"), (bottom[column], "n_nonzero")):
                look = line_look(styles[method]) | {"elinewidth": 0.9, "capsize": 2}
                ax.errorbar(here.index * aside, here[what], here[f"{what}_error"].fillna(0.0), **look)
        bottom[column].set_yscale("symlog", linthresh=1.0)
        bottom[column].set_ylim(bottom=0.0)
        bottom[column].yaxis.set_major_formatter("{x:g}")
        for ax in (top[column], bottom[column]):
            ax.set_xscale("log")
            ax.xaxis.set_minor_locator(NullLocator())
            ax.yaxis.set_minor_formatter(NullFormatter())
    finish(figure, bottom, "λ", "", legend_of(styles))
    top[0].set_ylabel("accuracy (%)")
    bottom[0].set_ylabel("non-zero rows")
    caption = f"{classifier_name(classifier)} with {size_words(table)}, mean of {range_text(table.n_splits)} splits"
    return add_caption(figure, f"{caption}; bars: standard error")


def critical_difference(tests: RankTests, title: str = "") -> Figure:
    """Draw the mean ranks on a line and connect methods that Nemenyi's test does not separate.

    Parameters
    ----------
    tests : RankTests
    title : str
    """
    ranks, difference, groups = tests.ranks, tests.difference, tests.alike
    n_methods, n_sets, level = len(ranks), tests.friedman.n_sets, tests.level
    n_left = (n_methods + 1) // 2
    top = 1.3 + 0.35 * len(groups)
    depth = top + 0.6 * n_left
    figure = make_figure(7.0, 0.55 + 0.33 * (depth + 1.6))
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
    return add_caption(figure, f"{title}. {caption}" if title else caption)
