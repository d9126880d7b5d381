"""The report as one HTML file."""

from __future__ import annotations

from html import escape

from l20fs.report.content import Content


def render(content: Content) -> str:
    """Return the page."""
    return (
        f"<!doctype html><meta charset=utf-8><title>{escape(content.title)}</title><h1>{escape(content.answer)}</h1>"
        f"<pre>{escape(content.selection_tsv(min(content.k, content.k_max)))}</pre>\n"
    )
