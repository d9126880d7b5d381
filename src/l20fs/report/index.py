"""The page of ``l20fs reproduce``: the tables, figures and texts of a folder, with links to the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from l20fs.report.document import Block, Bullets, Heading, Paragraph, Table
from l20fs.report.html_page import fill

#: Endings of the files of one exhibit, in the order of the links.
ENDINGS = ("html", "md", "tex", "svg", "png", "csv")
PAGE = "index.html"


@dataclass(frozen=True)
class Exhibit:
    """A table, a figure or a text, and the names of its files, which differ in their endings alone."""

    name: str
    files: tuple[str, ...]
    table: Table | None = None
    text: tuple[Block, ...] = ()


class ShownBlock(NamedTuple):
    """A heading, a list, a table or words, as lines of cells for the template."""

    kind: str
    lines: list[list[str]]


class Card(NamedTuple):
    """An exhibit as the template shows it."""

    name: str
    table: Table | None
    figure: str | None
    text: list[ShownBlock]
    links: list[tuple[str, str]]


def reproduction_page(
    exhibits: Iterable[Exhibit],
    *,
    title: str = "The paper's experiments",
    answer: str = "The paper's experiments, on this machine.",
    sentences: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> str:
    """Return a page of exhibits: tables and texts in full, figures and files by links relative to the page.

    Parameters
    ----------
    exhibits : iterable of Exhibit
        In the order in which they are shown.
    title, answer : str
    sentences, warnings : sequence of str
        What was done; what the reader should beware of.

    Examples
    --------
    >>> "rows.csv" in reproduction_page([Exhibit("rows", ("rows.csv",))])
    True
    """
    return fill(
        "index.html",
        scripts=("sort.js",),
        images="'self' file: data:",  # of a page that was opened from a disk not every browser takes 'self' for its folder
        title=title,
        answer=answer,
        sentences=sentences,
        warnings=warnings,
        exhibits=[_card(exhibit) for exhibit in exhibits],
    )


def write_page(folder: Path, made: Iterable[Exhibit], new: Iterable[str]) -> str:
    """Return the page of a folder: exhibits that were made now in full, and links to its other files.

    ``new`` are the files that will be in the folder beside those that are there.
    """
    known = {exhibit.name: exhibit for exhibit in made}
    by_name: dict[str, list[str]] = {}
    for name, file in _present_files(folder, new).items():
        by_name.setdefault(file.stem, []).append(name)
    return reproduction_page(
        Exhibit(name, tuple(files), known[name].table, known[name].text) if name in known else Exhibit(name, tuple(files))
        for name, files in by_name.items()
    )


def _present_files(folder: Path, new: Iterable[str]) -> dict[str, Path]:
    """Return the files to show by name: texts first, and tables before the rows behind them."""
    all_files = {*folder.iterdir(), *(folder / name for name in new)}
    files = [file for file in all_files if file.suffix[1:] in ENDINGS and file.name[0] != "."]
    files.sort(key=lambda file: (file.stem != "summary", file.suffix == ".csv", file.name))
    return {file.name: file for file in files if file.name != PAGE}


def _card(exhibit: Exhibit) -> Card:
    of_kind = {Path(file).suffix.removeprefix("."): file for file in exhibit.files}
    order = sorted(of_kind, key=lambda kind: ENDINGS.index(kind) if kind in ENDINGS else len(ENDINGS))
    figure = of_kind.get("svg") or of_kind.get("png")
    return Card(
        f"{exhibit.name[:1].upper()}{exhibit.name[1:].replace('-', ' ')}",
        exhibit.table,
        quote(figure) if figure else None,
        [shown for block in exhibit.text for shown in _shown(block)],
        [(of_kind[kind], quote(of_kind[kind])) for kind in order],
    )


def _shown(block: Block) -> Iterator[ShownBlock]:
    match block:
        case Heading(text):
            yield ShownBlock("heading", [[text]])
        case Paragraph(text, lead):
            yield ShownBlock("words", [[(lead + text).strip()]])
        case Bullets(items):
            yield ShownBlock("list", [[item] for item in items])
        case Table(caption, header, rows):
            yield ShownBlock("words", [[caption]])
            lines = [[f"{cell.text} {cell.detail}".strip() for cell in row] for row in rows]
            yield ShownBlock("table", [list(header), *lines])
