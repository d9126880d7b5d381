"""HTML pages: the report of a selection, a comparison of methods, and the reproduction of the paper."""

from l20fs.report.comparison import comparison_page
from l20fs.report.content import Content
from l20fs.report.index import Exhibit, reproduction_page
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
    "Exhibit",
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
    "reproduction_page",
]
