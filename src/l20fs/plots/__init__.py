"""Plots of fitted estimators as display objects, as in scikit-learn; matplotlib is loaded when one is drawn.

``Display.from_estimator(...)`` reads a fitted estimator and draws. The display keeps the data, so that it can be drawn again
with ``plot(ax=...)``; what was drawn is in attributes that end with ``_``: ``ax_``, ``figure_`` and the artists.
"""

from l20fs.plots.heatmap import SelectionHeatmapDisplay
from l20fs.plots.path import PathDisplay
from l20fs.plots.score_curve import ScoreCurveDisplay
from l20fs.plots.stability import StabilityDisplay

__all__ = ["PathDisplay", "ScoreCurveDisplay", "SelectionHeatmapDisplay", "StabilityDisplay"]
