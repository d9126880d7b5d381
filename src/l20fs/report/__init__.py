"""HTML pages: the report of a selection, a comparison of methods, the validation of a panel."""

from l20fs.report.comparison import comparison_page
from l20fs.report.content import Content
from l20fs.report.measures import (
    Atlas,
    ClassRate,
    Curve,
    Lookup,
    Numbers,
    PanelNumbers,
    PathLines,
    Reliability,
    Roc,
    Stability,
    Strips,
)
from l20fs.report.page import render

__all__ = [
    "Atlas",
    "ClassRate",
    "Content",
    "Curve",
    "Lookup",
    "Numbers",
    "PanelNumbers",
    "PathLines",
    "Reliability",
    "Roc",
    "Stability",
    "Strips",
    "comparison_page",
    "render",
]
