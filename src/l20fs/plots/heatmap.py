"""Heatmap of the selected features by class."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from l20fs.design import make_design
from l20fs.estimators.selection_table import feature_names, without_names
from l20fs.evaluation.preprocessing import values_of
from l20fs.inputs.targets import encode_targets
from l20fs.inputs.validation import validate_input
from l20fs.plots.canvas import (
    LINE,
    SMALL,
    VERBATIM,
    Extent,
    axes,
    check_attributes,
    check_length,
    height_for,
    label_rows,
    say_nothing_selected,
)
from l20fs.text import shorten
from l20fs.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.image import AxesImage


class SelectionHeatmapDisplay:
    """Heatmap of the mean z-score of the selected features in each class.

    Red is above the mean of all samples, blue is below.

    Parameters
    ----------
    means : array of shape (n_shown, n_classes)
        Mean z-score of each feature in each class.
    names : array of shape (n_shown,)
        Feature names.
    classes : array of shape (n_classes,)
        Class labels.
    sizes : array of shape (n_classes,)
        Number of samples of each class.

    Attributes
    ----------
    image_ : AxesImage
        The heatmap.
    colorbar_ : Colorbar
        Its colour bar.
    ax_ : Axes
        Axes of the plot.
    figure_ : Figure
        Figure of the axes.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> from l20fs.data import load_srbct
    >>> from l20fs.plots import SelectionHeatmapDisplay
    >>> tumours = load_srbct()
    >>> selector = L20Selector(10).fit(tumours.data, tumours.target)
    >>> display = SelectionHeatmapDisplay.from_estimator(selector, tumours.data, tumours.target)
    >>> display.means.shape
    (10, 4)
    """

    image_: AxesImage
    colorbar_: Colorbar
    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, *, means: Array, names: Array, classes: Array, sizes: Array) -> None:
        self.means = np.asarray(means, dtype=np.float64)
        self.names = np.asarray(names, dtype=object)
        self.classes = np.asarray(classes)
        self.sizes = np.asarray(sizes)
        check_length("means", self.means, len(self.names), "names")
        check_length("sizes", self.sizes, len(self.classes), "classes")

    @classmethod
    def from_estimator(cls, selector: Any, X: Any, y: Any, *, ax: Axes | None = None) -> SelectionHeatmapDisplay:
        """Draw the selected features of a fitted selector, grouped by the class in which they are highest.

        Parameters
        ----------
        selector : L20Selector, or any selector of scikit-learn
            Fitted selector.
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
            Samples with the features of the fit, over which the z-scores are computed.
        y : array of shape (n_samples,)
            One class label per sample.
        ax : Axes, optional
            Axes to draw on; None: a new figure.

        Returns
        -------
        SelectionHeatmapDisplay
            The display, drawn.
        """
        check_attributes(selector, ("get_support",), cls, "selector, such as L20Selector")
        names, chosen = feature_names(selector), selector.get_support(indices=True)
        steps = getattr(selector, "preprocess_", None)
        if steps is not None:  # of L20SelectorCV, whose features are the columns that they give
            selector, X = without_names(selector.model_), values_of(steps.transform(X), steps)
        X, y = validate_input(
            selector, X, y, supervised=True, accept_sparse=True, dtypes=[np.float64, np.float32], reset=False
        )
        targets = encode_targets(y)
        if targets.classes is None or targets.codes is None:
            raise ValueError(f"{cls.__name__} needs one class label per sample; y holds numbers or several columns.")
        sizes = targets.Y.sum(axis=0)
        means = np.zeros((0, len(sizes)))
        if len(chosen):
            # Class mean minus overall mean, which is 0: contrasts sum to 0, as products with a centred design require.
            contrasts = (targets.Y / sizes - 1.0 / len(targets.Y)).T
            means = make_design(X[:, chosen], "zscore").pull(contrasts).T
        highest = means.argmax(axis=1)
        order = np.lexsort((-means[np.arange(len(means)), highest], highest))
        return cls(
            means=means[order],
            names=names[chosen[order]],
            classes=targets.classes,
            sizes=sizes.astype(int),
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> SelectionHeatmapDisplay:
        """Draw the display.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; None: a new figure, tall enough for up to 50 names.

        Returns
        -------
        SelectionHeatmapDisplay
            The display itself.
        """
        longest = max(len(label) for label in self._class_names())
        width = 3.0 + len(self.classes) * max(0.4, 0.08 * longest)
        # Class names that are too long for their columns are rotated and need extra height.
        ax = axes(ax, width=min(12.0, max(4.8, width)), height=height_for(len(self.names)) + 0.08 * longest)
        self.ax_, self.figure_ = ax, ax.figure
        limit = float(np.abs(self.means).max(initial=0.0)) or 1.0
        self.image_ = ax.imshow(
            self.means, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest", extent=self._extent()
        )
        self.colorbar_ = ax.figure.colorbar(self.image_, ax=ax, label="mean z-score", pad=0.02)
        self._label_classes(ax)
        label_rows(ax, self.names)
        if not len(self.names):
            say_nothing_selected(ax)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        return self

    def _extent(self) -> tuple[float, float, float, float]:
        """Return left, right, bottom and top: one unit per cell, and one row if there are no features."""
        return -0.5, len(self.classes) - 0.5, max(1, len(self.names)) - 0.5, -0.5

    def _class_names(self) -> list[str]:
        return [shorten(label, 18) for label in self.classes]

    def _label_classes(self, ax: Axes) -> None:
        """Label the columns with classes and their sizes: rotated, or only some of them, if there is no room."""
        room = Extent.of(ax).width / len(self.classes)
        step = max(1, math.ceil(LINE / room))
        names = self._class_names()
        widest = max(len(name) for name in names) * 0.65 * SMALL
        is_upright = widest > room
        texts = [f"{name} ({n})" if is_upright else f"{name}\n({n})" for name, n in zip(names, self.sizes, strict=True)]
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        ax.set_xticks(
            np.arange(len(texts))[::step],
            texts[::step],
            fontsize=SMALL,
            rotation=90 if is_upright else 0,
            **VERBATIM,
        )
        ax.set_xlabel("class (number of samples)")
