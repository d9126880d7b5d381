"""Links that show the name of a file, ``[panels.md](panels.md)``, show the title of the page on the site."""

from __future__ import annotations

import re

from sphinx.application import Sphinx

NAMED = re.compile(r"\[(?:docs/)?([\w/]+\.md)\]\(([\w/.]*\1(?:#[\w-]+)?)\)")


def with_titles(text: str) -> str:
    """Return a page without the texts of such links; MyST then takes the title.

    Examples
    --------
    >>> with_titles("see [panels.md](panels.md), [here](panels.md) and [a.md](../a.md#b)")
    'see [](panels.md), [here](panels.md) and [](../a.md#b)'
    """
    return NAMED.sub(r"[](\2)", text)


def on_read(app: Sphinx, name: str, source: list[str]) -> None:
    """Change a page before it is parsed."""
    source[0] = with_titles(source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the change."""
    app.connect("source-read", on_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
