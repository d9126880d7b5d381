"""Plot of selection frequencies over resamples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from l20fs.estimators.selection_table import feature_names
from l20fs.plots.canvas import (
    BLUE,
    GREY,
    PALE,
    VERMILLION,
    axes,
    check_attributes,
    check_length,
    clear_frame,
    height_for,
    label_rows,
    say_nothing_selected,
)
from l20fs.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D


class StabilityDisplay:
    """Bar chart of selection frequencies over resamples, the most frequent feature on top.

    Parameters
    ----------
    frequencies : array of shape (n_shown,)
        Selection frequencies, from 0 to 1, in the order in which they are drawn from the top.
    names : array of shape (n_shown,)
        Feature names.
    selected : array of bool of shape (n_shown,), optional
        Mask of the bars to colour; None: all.
    threshold : float, optional
        Frequency from which on a feature is selected, drawn as a line.
    errors : array of shape (n_shown,), optional
        Standard errors of the frequencies, drawn as error bars.
    n_resamples : int, optional
        Number of resamples.
    stability : float, optional
        Stability index of the whole selection, written below the axis.
    interval : pair of floats, optional
        Confidence interval of the index.

    Attributes
    ----------
    bars_ : BarContainer
        The bars, with the error bars in ``bars_.errorbar``.
    threshold_line_ : Line2D or None
        Vertical line at the threshold.
    ax_ : Axes
        Axes of the plot.
    figure_ : Figure
        Figure of the axes.

    Examples
    --------
    >>> from l20fs.plots import StabilityDisplay
    >>> display = StabilityDisplay(frequencies=[0.9, 0.2], names=["g1", "g2"], threshold=0.6).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['g1', 'g2']
    """

    bars_: BarContainer
    threshold_line_: Line2D | None
    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(
        self,
        *,
        frequencies: Any,
        names: Any,
        selected: Any = None,
        threshold: float | None = None,
        errors: Any = None,
        n_resamples: int | None = None,
        stability: float | None = None,
        interval: tuple[float, float] | None = None,
    ) -> None:
        self.frequencies = np.asarray(frequencies, dtype=np.float64)
        self.names = np.asarray(names, dtype=object)
        self.selected = np.ones(len(self.names), dtype=bool) if selected is None else np.asarray(selected, dtype=bool)
        self.threshold = threshold
        self.errors = None if errors is None else np.asarray(errors, dtype=np.float64)
        self.n_resamples = n_resamples
        self.stability = stability
        self.interval = interval
        check_length("names", self.names, len(self.frequencies), "frequencies")
        check_length("selected", self.selected, len(self.frequencies), "frequencies")
        if self.errors is not None:
            check_length("errors", self.errors, len(self.frequencies), "frequencies")

    @classmethod
    def from_estimator(cls, estimator: Any, *, max_features: int = 30, ax: Axes | None = None) -> StabilityDisplay:
        """Draw the most frequent features of a fitted stability selection.

        Parameters
        ----------
        estimator : StabilitySelector
            Fitted stability selection.
        max_features : int, default=30
            Maximum number of bars: the best features of ``ranking_`` that were selected at least once.
        ax : Axes, optional
            Axes to draw on; None: a new figure.

        Returns
        -------
        StabilityDisplay
            The display, drawn.
        """
        check_attributes(estimator, ("frequencies_", "standard_errors_"), cls, "StabilitySelector")
        frequencies = np.asarray(estimator.frequencies_)
        ranked = np.argsort(estimator.ranking_, kind="stable")
        shown = ranked[frequencies[ranked] > 0.0][:max_features]
        return cls(
            frequencies=frequencies[shown],
            names=feature_names(estimator)[shown],
            selected=np.asarray(estimator.support_)[shown],
            threshold=estimator.threshold if estimator.n_features_to_select is None else None,
            errors=estimator.standard_errors_[shown],
            n_resamples=len(estimator.sizes_),
            stability=estimator.stability_,
            interval=estimator.stability_interval_,
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> StabilityDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None: a new figure, tall enough for up to 50 names.

        Returns
        -------
        StabilityDisplay
            The display itself.
        """
        ax = axes(ax, height=height_for(len(self.names)))
        self.ax_, self.figure_ = ax, ax.figure
        colours = [BLUE if is_selected else PALE for is_selected in self.selected]
        places = np.arange(len(self.names))
        self.bars_ = ax.barh(
            places, self.frequencies, height=0.7, color=colours, xerr=self._whiskers(), ecolor=GREY, error_kw={"lw": 0.8}
        )
        self.threshold_line_ = None
        if self.threshold is not None:
            self.threshold_line_ = ax.axvline(self.threshold, color=VERMILLION, lw=1.2, ls="--")
            ax.annotate(
                f"threshold {self.threshold:g}",
                (self.threshold, 1.0),
                xycoords=ax.get_xaxis_transform(),
                xytext=(0, 2),
                textcoords="offset points",
                color=VERMILLION,
                fontsize="small",
                ha="center",
                va="bottom",
            )
        label_rows(ax, self.names)
        if not len(self.names):
            say_nothing_selected(ax)
        ax.set_xlim(0.0, 1.0)
        ax.set_xlabel(self._caption())
        clear_frame(ax)
        return self

    def _whiskers(self) -> Array | None:
        """Return the error bars to the left and to the right of each bar, clipped to 0 and 1."""
        if self.errors is None or np.isnan(self.errors).any():  # no standard errors from a single pair of resamples
            return None
        return np.minimum(self.errors, [self.frequencies, 1.0 - self.frequencies])

    def _caption(self) -> str:
        resamples = "resamples" if self.n_resamples is None else f"{self.n_resamples} resamples"
        caption = f"share of {resamples} in which the feature is selected"
        if self.bars_.errorbar is not None:
            caption += " (± standard error)"
        if self.stability is not None:
            interval = "" if self.interval is None else f" ({self.interval[0]:.2f} to {self.interval[1]:.2f})"
            caption += f"\nstability index of the selection: {self.stability:.2f}{interval}"
        return caption
