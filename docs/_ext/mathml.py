"""Formulas as MathML, which browsers draw themselves: the pages load no script for them."""

from __future__ import annotations

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def mathml(latex: str, display: str = "inline") -> str:
    """Return a formula as MathML, with its source as text for those who copy it."""
    return re.sub(r"\s+", " ", convert(latex, display=display))


def visit_math(writer: object, node: nodes.math) -> None:
    """Write a formula in a line."""
    writer.body.append(mathml(node.astext()))  # type: ignore[attr-defined]
    raise nodes.SkipNode


def visit_displaymath(writer: object, node: nodes.math_block) -> None:
    """Write a formula on lines of its own; those between blank lines, or after two backslashes, stand below each other."""
    parts = [part for part in re.split(r"\n\s*\n", node.astext().strip()) if part.strip()]
    html = "".join(mathml(aligned(part), "block") for part in parts)
    writer.body.append(f'<div class="math-block" tabindex="0">{html}</div>')  # type: ignore[attr-defined]
    raise nodes.SkipNode


def aligned(latex: str) -> str:
    """Return a formula of several lines as one with its lines aligned, as Sphinx does for LaTeX."""
    has_lines = r"\\" in latex and r"\begin" not in latex
    return rf"\begin{{align}}{latex}\end{{align}}" if has_lines else latex


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer and choose it."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
