"""Pictures of a fit, as display objects in the manner of scikit-learn; they need matplotlib, importing them does not.

``Display.from_estimator(...)`` reads a fitted estimator and draws. The object keeps the data, so that it can be drawn again
with ``plot(ax=...)``, and everything drawn is an attribute that ends with ``_``: ``ax_``, ``figure_`` and the artists.
"""

from l20fs.plots.heatmap import SelectionHeatmapDisplay
from l20fs.plots.path import PathDisplay
from l20fs.plots.score_curve import ScoreCurveDisplay
from l20fs.plots.stability import StabilityDisplay

__all__ = ["PathDisplay", "ScoreCurveDisplay", "SelectionHeatmapDisplay", "StabilityDisplay"]
