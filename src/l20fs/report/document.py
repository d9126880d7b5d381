"""Documents in typed blocks: headings, paragraphs, lists and tables, before they are written in some format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Cell:
    """A text, a less important detail, and the rank of the cell in its row: 1 the best, 2 the second, None for others."""

    text: str
    detail: str = ""
    rank: int | None = None


@dataclass(frozen=True)
class Table:
    """A table with a caption: columns are aligned to the right where ``is_number``; the first column names the rows."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_number: tuple[bool, ...]
    kind: Literal["table"] = "table"


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title."""

    text: str
    level: int = 2
    kind: Literal["heading"] = "heading"


@dataclass(frozen=True)
class Paragraph:
    """Sentences, after a ``lead`` in bold."""

    text: str
    lead: str = ""
    kind: Literal["paragraph"] = "paragraph"


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]
    kind: Literal["bullets"] = "bullets"


Block = Heading | Paragraph | Bullets | Table
