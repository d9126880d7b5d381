"""What the selected features are like in each class."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from l20fs.design import make_design
from l20fs.estimators.selection_table import feature_names
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
    """Mean z-score of the selected features in each class: red is above the mean of all samples, blue is below.

    Parameters
    ----------
    means : array of shape (n_shown, n_classes)
    names : array of shape (n_shown,)
    classes : array of shape (n_classes,)
    sizes : array of shape (n_classes,)
        Numbers of samples.

    Attributes
    ----------
    image_ : AxesImage
    colorbar_ : Colorbar
    ax_ : Axes
    figure_ : Figure

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
        """Draw the features that a fitted selector selects, each beside those that are highest in the same class.

        Parameters
        ----------
        selector : L20Selector, or any selector of scikit-learn
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
            With the features of the fit; the z-scores are those of these samples.
        y : array of shape (n_samples,)
            One class label per sample.
        ax : Axes, optional
            Where to draw; None: a new figure.
        """
        check_attributes(selector, ("get_support",), cls, "selector, such as L20Selector")
        X, y = validate_input(
            selector, X, y, supervised=True, accept_sparse=True, dtypes=[np.float64, np.float32], reset=False
        )
        targets = encode_targets(y)
        if targets.classes is None or targets.codes is None:
            raise ValueError(f"{cls.__name__} needs one class label per sample; y holds numbers or several columns.")
        sizes = targets.Y.sum(axis=0)
        chosen = selector.get_support(indices=True)
        means = np.zeros((0, len(sizes)))
        if len(chosen):
            # Class mean minus mean of all, which is 0: in this form the weights add up to 0, as products need it.
            contrasts = (targets.Y / sizes - 1.0 / len(targets.Y)).T
            means = make_design(X[:, chosen], "zscore").pull(contrasts).T
        highest = means.argmax(axis=1)
        order = np.lexsort((-means[np.arange(len(means)), highest], highest))
        return cls(
            means=means[order],
            names=feature_names(selector)[chosen[order]],
            classes=targets.classes,
            sizes=sizes.astype(int),
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> SelectionHeatmapDisplay:
        """Draw on ``ax``, or on a new figure that is tall enough for up to 50 names."""
        longest = max(len(label) for label in self._class_names())
        width = 3.0 + len(self.classes) * max(0.4, 0.08 * longest)
        # Class names that are too long to lie side by side are written upright and take from the height.
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
        """Return left, right, bottom and top: one unit per cell, and not nothing where there are none."""
        return -0.5, len(self.classes) - 0.5, max(1, len(self.names)) - 0.5, -0.5

    def _class_names(self) -> list[str]:
        return [shorten(label, 18) for label in self.classes]

    def _label_classes(self, ax: Axes) -> None:
        """Write the classes with their sizes above the columns, upright where there is no room, and not all of 100."""
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
