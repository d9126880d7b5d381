"""Plot of the cross-validated score against the number of features."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from l20fs.evaluation.choice import choose
from l20fs.plots.canvas import (
    BLUE,
    COLOURS,
    GREY,
    VERBATIM,
    VERMILLION,
    axes,
    check_attributes,
    check_length,
    clear_frame,
    use_log_axis,
)
from l20fs.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D


#: Ratio of the largest to the smallest step between numbers of features above which the axis is logarithmic.
UNEVEN = 4.0
#: Number of points above which a curve has no markers.
MOST_DOTS = 40


class ScoreCurveDisplay:
    """Plot of the cross-validated score against the number of features.

    Parameters
    ----------
    n_features : array of shape (n_points,)
        Number of features of each point.
    mean : array of shape (n_points,)
        Mean score over the folds.
    error : array of shape (n_points,)
        Standard error of the mean, drawn as a band.
    chosen : float, optional
        Number of features that was chosen.
    ridge : array of shape (n_points,), optional
        Ridge parameter of each point: one curve for each of its values.
    chosen_ridge : float, optional
        Ridge parameter that was chosen, whose curve is drawn with the band. Required if there are several.
    score_name : str, default="score"
        Name of the score, for the label of the axis.

    Attributes
    ----------
    line_ : Line2D
        Curve of the chosen ridge parameter.
    band_ : PolyCollection
        Band of one standard error to each side of it.
    other_lines_ : dict of float to Line2D
        Curves of the other ridge parameters, if they are drawn.
    chosen_ : Line2D or None
        Vertical line at the chosen number of features.
    best_ : Line2D
        Highest score of all ridge parameters.
    ax_ : Axes
        Axes of the plot.
    figure_ : Figure
        Figure of the axes.

    Examples
    --------
    >>> from l20fs.plots import ScoreCurveDisplay
    >>> display = ScoreCurveDisplay(n_features=[1, 2, 5], mean=[0.6, 0.9, 0.91], error=[0.05, 0.03, 0.03], chosen=2)
    >>> display.plot().ax_.get_xlabel()
    'number of features'
    """

    line_: Line2D
    band_: PolyCollection
    other_lines_: dict[float, Line2D]
    chosen_: Line2D | None
    best_: Line2D
    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(
        self,
        *,
        n_features: Any,
        mean: Any,
        error: Any,
        chosen: float | None = None,
        ridge: Any = None,
        chosen_ridge: float | None = None,
        score_name: str = "score",
    ) -> None:
        self.n_features = np.asarray(n_features)
        self.mean = np.asarray(mean, dtype=np.float64)
        self.error = np.asarray(error, dtype=np.float64)
        self.chosen = chosen
        self.ridge = np.zeros(len(self.mean)) if ridge is None else np.asarray(ridge)
        self.chosen_ridge = chosen_ridge if ridge is not None else 0.0
        self.score_name = score_name
        for name in ("mean", "error", "ridge"):
            check_length(name, getattr(self, name), len(self.n_features), "points")
        if self.chosen_ridge is None and len(np.unique(self.ridge)) == 1:
            self.chosen_ridge = self.ridge[0]
        if self.chosen_ridge not in self.ridge:
            raise ValueError(
                f"chosen_ridge={self.chosen_ridge!r} is none of {np.unique(self.ridge).tolist()}. Name one of them."
            )

    @classmethod
    def from_estimator(cls, estimator: Any, *, all_ridges: bool = False, ax: Axes | None = None) -> ScoreCurveDisplay:
        """Draw the scores of a fitted cross-validation.

        Parameters
        ----------
        estimator : L20SelectorCV
            Fitted cross-validation.
        all_ridges : bool, default=False
            Whether to draw the curves of the other ridge parameters as well.
        ax : Axes, optional
            Axes to draw on; None: a new figure.

        Returns
        -------
        ScoreCurveDisplay
            The display, drawn.
        """
        check_attributes(estimator, ("cv_results_", "ridge_"), cls, "L20SelectorCV")
        results = estimator.cv_results_
        return cls(
            n_features=results["n_features"],
            mean=results["mean_test_score"],
            error=results["standard_error"],
            chosen=float(np.count_nonzero(estimator.support_)),
            ridge=results["ridge"],
            chosen_ridge=estimator.ridge_,
            score_name=_score_name(estimator),
        ).plot(ax, all_ridges=all_ridges)

    def plot(self, ax: Axes | None = None, *, all_ridges: bool = False) -> ScoreCurveDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None: a new figure.
        all_ridges : bool, default=False
            Whether to draw the curves of the other ridge parameters as well.

        Returns
        -------
        ScoreCurveDisplay
            The display itself.
        """
        ax = axes(ax)
        self.ax_, self.figure_ = ax, ax.figure
        self.other_lines_ = {}
        if all_ridges:
            self._draw_others(ax)
        places, mean, error = self._curve(self.chosen_ridge)
        marker = "o" if len(places) <= MOST_DOTS else None
        self.line_ = ax.plot(
            places, mean, color=BLUE, marker=marker, ms=3.5, zorder=2.5, label=self._name(self.chosen_ridge)
        )[0]
        self.band_ = ax.fill_between(
            places, mean - error, mean + error, color=BLUE, alpha=0.2, lw=0, label="± standard error"
        )
        self._mark_best(ax)
        self.chosen_ = None
        if self.chosen is not None:
            self.chosen_ = ax.axvline(
                self.chosen, color=VERMILLION, lw=1.2, ls="--", label=f"chosen: {self._text(self.chosen)}"
            )
        self._set_scales(ax)
        ax.legend(fontsize="small", frameon=False)
        return self

    def _mark_best(self, ax: Axes) -> None:
        """Mark the highest score of all ridge parameters."""
        scores = {"error": -self.mean, "skill": np.ones(len(self.mean)), "ridge": self.ridge}
        best = choose({"n_features": self.n_features, "alpha": np.zeros(len(self.mean))} | scores, "best")
        text = f"highest: {self._text(self.n_features[best])}"
        if self.ridge[best] != self.chosen_ridge:
            text += f", ridge {self.ridge[best]:g}"
        self.best_ = ax.plot(self.n_features[best], self.mean[best], "o", mfc="none", mec=GREY, ms=9, label=text)[0]

    def _draw_others(self, ax: Axes) -> None:
        others = [ridge for ridge in np.unique(self.ridge).tolist() if ridge != self.chosen_ridge]
        for ridge, colour in zip(others, itertools.cycle(COLOURS[2:]), strict=False):
            places, mean, _ = self._curve(ridge)
            self.other_lines_[ridge] = ax.plot(places, mean, color=colour, lw=1.0, label=self._name(ridge))[0]

    def _curve(self, ridge: float | None) -> tuple[Array, Array, Array]:
        """Return the points of one ridge parameter, sparsest model first."""
        points = np.flatnonzero(self.ridge == ridge)
        points = points[np.argsort(self.n_features[points], kind="stable")]
        return self.n_features[points], self.mean[points], self.error[points]

    def _name(self, ridge: float | None) -> str:
        if len(np.unique(self.ridge)) == 1:
            return "mean over the folds"
        return f"ridge {ridge:g}{' (chosen)' if ridge == self.chosen_ridge else ''}"

    def _text(self, place: float) -> str:
        return f"{place:g} feature{'s' if place != 1 else ''}"

    def _set_scales(self, ax: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        places = np.unique(self.n_features)
        steps = np.diff(places)
        if len(steps) and places[0] > 0 and steps.max() > UNEVEN * steps.min():
            use_log_axis(ax, places[0], places[-1])
        else:
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("number of features")
        ax.set_ylabel(f"cross-validated {self.score_name}", **VERBATIM)
        clear_frame(ax)


def _score_name(estimator: Any) -> str:
    """Return the name of the score of a cross-validation."""
    scoring = getattr(estimator, "scoring", None)
    if isinstance(scoring, str):
        return scoring.replace("_", " ")
    if scoring is not None:
        return "score"
    return "accuracy" if is_classifier(estimator) else "R²"
