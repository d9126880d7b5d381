"""HTML pages: the report of a selection, a comparison of methods, and the reproduction of the paper."""

from l20fs.report.comparison import comparison_page
from l20fs.report.content import Content, Curve, PathLines, Stability
from l20fs.report.index import Exhibit, reproduction_page, write_reproduction_page
from l20fs.report.page import render
from l20fs.report.records import ReportError

__all__ = [
    "Content",
    "Curve",
    "Exhibit",
    "PathLines",
    "ReportError",
    "Stability",
    "comparison_page",
    "render",
    "reproduction_page",
    "write_reproduction_page",
]
