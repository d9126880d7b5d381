"""Plot of row norms along the regularisation path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from l20fs.estimators.selection_table import feature_names
from l20fs.objective.solution_path import SolutionPath
from l20fs.plots.canvas import (
    COLOURS,
    GREY,
    LINE,
    PALE,
    SMALL,
    VERBATIM,
    Extent,
    axes,
    check_attributes,
    check_length,
    clear_frame,
    height_for,
    say_nothing_selected,
    spread,
    use_log_axis,
)
from l20fs.text import shorten
from l20fs.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D
    from matplotlib.text import Text


class PathDisplay:
    """Plot of row norms against lambda, one line per feature.

    A line starts with a dot where its feature enters, and ends where it leaves.

    Parameters
    ----------
    alphas : array of shape (n_stages,)
        Values of lambda, largest first.
    norms : array of shape (n_lines, n_stages)
        Norm of the weights of each feature, 0 where it is not in the model; best feature first.
    names : array of shape (n_lines,)
        Feature names.
    selected : array of bool of shape (n_lines,)
        Mask of the lines to colour and name; the others are grey.

    Attributes
    ----------
    lines_ : list of Line2D
        One line per row of ``norms``.
    labels_ : list of Text
        Names of the selected lines, as many as there is room for.
    leaders_ : LineCollection
        Connections from the ends of these lines to their names.
    ax_ : Axes
        Axes of the plot.
    figure_ : Figure
        Figure of the axes.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> from l20fs.data import load_srbct
    >>> from l20fs.plots import PathDisplay
    >>> tumours = load_srbct()
    >>> selector = L20Selector(10).fit(tumours.data, tumours.target)
    >>> display = PathDisplay.from_path(selector.path_, tumours.feature_names)
    >>> len(display.labels_)
    10
    """

    lines_: list[Line2D]
    labels_: list[Text]
    leaders_: LineCollection
    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, *, alphas: Array, norms: Array, names: Array, selected: Array) -> None:
        self.alphas = np.asarray(alphas, dtype=np.float64)
        self.norms = np.asarray(norms, dtype=np.float64)
        self.names = np.asarray(names, dtype=object)
        self.selected = np.asarray(selected, dtype=bool)
        check_length("names", self.names, len(self.norms), "rows of norms")
        check_length("selected", self.selected, len(self.norms), "rows of norms")
        check_length("alphas", self.alphas, self.norms.shape[1], "columns of norms")

    @classmethod
    def from_estimator(cls, selector: Any, *, ax: Axes | None = None) -> PathDisplay:
        """Draw the path of a fitted selector that has ``path_``, such as L20Selector.

        A feature that is selected by its rank alone, without a non-zero row at any lambda, has no line.

        Parameters
        ----------
        selector : L20Selector
            Fitted selector.
        ax : Axes, optional
            Axes to draw on; None: a new figure.

        Returns
        -------
        PathDisplay
            The display, drawn.
        """
        check_attributes(selector, ("path_", "support_"), cls, "L20Selector")
        return cls.from_path(selector.path_, feature_names(selector), selected=selector.support_, ax=ax)

    @classmethod
    def from_path(
        cls, path: SolutionPath, names: Any = None, *, selected: Array | None = None, ax: Axes | None = None
    ) -> PathDisplay:
        """Draw a path.

        Parameters
        ----------
        path : SolutionPath
            Path to draw.
        names : array of shape (n_features,), optional
            Feature names; None: ``x0``, ``x1``, and so on.
        selected : array of bool of shape (n_features,), optional
            Mask of the features to colour and name; None: those of the last lambda.
        ax : Axes, optional
            Axes to draw on; None: a new figure.

        Returns
        -------
        PathDisplay
            The display, drawn.
        """
        names = np.array([f"x{j}" for j in range(path.n_features)]) if names is None else np.asarray(names)
        selected = path.is_nonzero if selected is None else np.asarray(selected)
        check_length("names", names, path.n_features, "features of the path")
        check_length("selected", selected, path.n_features, "features of the path")
        is_drawn = np.zeros(path.n_features, dtype=bool)
        is_drawn[path.indices] = True
        shown = path.order[is_drawn[path.order]]
        line_of = np.empty(path.n_features, dtype=np.intp)
        line_of[shown] = np.arange(len(shown))
        norms = np.zeros((len(shown), len(path.alphas)))
        norms[line_of[path.indices], np.repeat(np.arange(len(path.alphas)), path.n_nonzero)] = path.norms
        return cls(alphas=path.alphas, norms=norms, names=names[shown], selected=selected[shown]).plot(ax)

    def plot(self, ax: Axes | None = None) -> PathDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None: a new figure, tall enough for up to 50 names.

        Returns
        -------
        PathDisplay
            The display itself.
        """
        ax = axes(ax, height=max(4.8, height_for(int(self.selected.sum()))))
        self.ax_, self.figure_ = ax, ax.figure
        colours = self._colours()
        is_in = self.norms > 0.0
        enters = is_in & ~np.hstack([np.zeros((len(is_in), 1), dtype=bool), is_in[:, :-1]])
        # No line where a feature is not in the model: lines along zero would overlap.
        heights = np.where(is_in, self.norms, np.nan)
        self.lines_ = []
        for line, is_selected in enumerate(self.selected):
            style: dict[str, Any] = {"lw": 1.4, "zorder": 2.5} if is_selected else {"lw": 0.7, "zorder": 2.0}
            dots = np.flatnonzero(enters[line]).tolist()
            self.lines_ += ax.plot(self.alphas, heights[line], color=colours[line], marker=".", markevery=dots, **style)
        self._set_scales(ax)
        self._label_ends(ax, colours)
        if not len(self.lines_):
            say_nothing_selected(ax)
        return self

    def _ends(self, lines: Array) -> Array:
        """Return the last stage of each line."""
        return self.norms.shape[1] - 1 - (self.norms[lines, ::-1] > 0.0).argmax(axis=1)

    def _colours(self) -> list[str]:
        """Return the colours of the lines, in turn by height at their ends so that neighbours differ."""
        colours = [PALE] * len(self.norms)
        selected = np.flatnonzero(self.selected)
        heights = self.norms[selected, self._ends(selected)]
        for place, line in enumerate(selected[np.argsort(-heights, kind="stable")]):
            colours[line] = COLOURS[place % len(COLOURS)]
        return colours

    def _set_scales(self, ax: Axes) -> None:
        first, last = float(self.alphas[0]), float(self.alphas[-1])
        margin = max(1.2, first / last) ** 0.03
        use_log_axis(ax, last, first)
        ax.set_xlim(first * margin, last / margin)
        ax.set_ylim(ax.get_ylim())
        ax.set_xlabel("λ, the price of a feature (falling)")
        ax.set_ylabel("norm of the weights")
        clear_frame(ax)

    def _label_ends(self, ax: Axes, colours: list[str]) -> None:
        """Write the names of the best selected lines beside their ends, as many as there is room for."""
        from matplotlib.collections import LineCollection

        selected = np.flatnonzero(self.selected)
        gap = LINE / Extent.of(ax).height
        n_places = max(1, int(1.0 / gap))
        is_short = len(selected) > n_places
        named = selected[: n_places - 1] if is_short else selected
        ends = self._ends(named)
        tips = np.column_stack([self.alphas[ends], self.norms[named, ends]])
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
        places = spread((tips[:, 1] - low) / (high - low), gap, gap if is_short else 0.0, 1.0)
        style: dict[str, Any] = {"transform": ax.transAxes, "fontsize": SMALL, "va": "center"}
        self.labels_ = [
            ax.text(1.06, place, shorten(self.names[line], 20), color=colours[line], **style, **VERBATIM)
            for line, place in zip(named, places, strict=True)
        ]
        if is_short:
            ax.text(1.06, 0.0, f"… and {len(selected) - len(named)} more", color=GREY, **style)
        # Data units on a logarithmic axis: 5 % of its length beyond its end.
        beside = np.column_stack([np.full(len(named), right * (right / left) ** 0.05), low + places * (high - low)])
        self.leaders_ = LineCollection(
            list(np.stack([tips, beside], axis=1)), colors=[colours[line] for line in named], linewidths=0.5, clip_on=False
        )
        self.leaders_.set_in_layout(False)
        ax.add_collection(self.leaders_, autolim=False)
