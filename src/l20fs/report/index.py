"""The page of ``l20fs reproduce``: the tables and figures of a folder, with links to the files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from l20fs.report.html_page import fill
from l20fs.storage.files import write_atomically

#: In which order the files of one exhibit are named.
ENDINGS = ("html", "md", "tex", "svg", "png", "csv")


class Cell(NamedTuple):
    """A text, something less important below it, and whether it is the best of its row (1), the second, or neither."""

    text: str
    detail: str
    rank: int | None


class StoredTable(NamedTuple):
    """What an HTML file of :func:`l20fs.experiments.tables.write_table` says."""

    caption: str
    header: list[str]
    rows: list[list[Cell]]
    is_number: list[bool]


class Block(NamedTuple):
    """A piece of a text: a heading, a list, a table or a paragraph, as lines of cells or words."""

    kind: str
    lines: list[list[str]]


class Exhibit(NamedTuple):
    """All files of one name."""

    name: str
    table: StoredTable | None
    figure: str | None
    text: list[Block]
    links: list[tuple[str, str]]


def reproduction_page(
    files: Iterable[Path],
    folder: Path,
    *,
    title: str = "The paper's experiments",
    answer: str = "The paper's experiments, on this machine.",
    sentences: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> str:
    """Return a page that shows what is in a folder: tables and words as they are, figures and files by relative links.

    Parameters
    ----------
    files : iterable of Path
        What was made, inside ``folder``, in the order in which it is shown. Files of one name belong together.
    folder : Path
        Where the page will be.
    title, answer : str
    sentences, warnings : sequence of str
        What was done; what the reader should beware of.

    Examples
    --------
    >>> "rows.csv" in reproduction_page([Path("out/rows.csv")], Path("out"))
    True
    """
    by_name: dict[str, list[Path]] = {}
    for file in files:
        by_name.setdefault(file.stem, []).append(file)
    return fill(
        "index.html",
        scripts=("sort.js",),
        images="'self' file: data:",  # of a page that was opened from a disk not every browser takes 'self' for its folder
        title=title,
        answer=answer,
        sentences=sentences,
        warnings=warnings,
        exhibits=[_exhibit(name, members, folder) for name, members in by_name.items()],
    )


def write_reproduction_page(folder: Path) -> Path:
    """Write ``index.html``, which shows all tables, figures and words in a folder, and return where it is.

    It is made from what is there, so that exhibits of earlier calls stay in it.
    """
    page = folder / "index.html"
    shown = [file for file in folder.iterdir() if file.suffix[1:] in ENDINGS and file != page and file.name[0] != "."]
    # What is said in words comes first, and tables come before the rows behind them.
    shown.sort(key=lambda file: (file.stem != "summary", file.suffix == ".csv", file.name))
    text = reproduction_page(shown, folder)
    write_atomically(page, lambda stream: stream.write(text.encode()))
    return page


def _exhibit(name: str, members: list[Path], folder: Path) -> Exhibit:
    of_kind = {file.suffix.removeprefix("."): file for file in members}
    links = {kind: quote(file.relative_to(folder).as_posix()) for kind, file in of_kind.items()}
    table = read_table(_text(of_kind["html"])) if "html" in of_kind else None
    has_words = "md" in of_kind and table is None
    text = read_words(_text(of_kind["md"])) if has_words else []
    order = sorted(links, key=lambda kind: ENDINGS.index(kind) if kind in ENDINGS else len(ENDINGS))
    return Exhibit(
        f"{name[:1].upper()}{name[1:].replace('-', ' ')}",
        table,
        links.get("svg") or links.get("png"),
        text,
        [(of_kind[kind].name, links[kind]) for kind in order],
    )


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def read_table(page: str) -> StoredTable | None:
    """Read a table back from a page of :func:`l20fs.experiments.tables.to_page`: its texts, never its markup.

    None if the page has no table of that kind.
    """
    reader = _TableReader()
    reader.feed(page)
    reader.close()
    if not reader.header or any(len(row) != len(reader.header) for row in reader.rows):
        return None
    return StoredTable(reader.caption, reader.header, reader.rows, reader.is_number)


class _TableReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.caption, self.header, self.is_number = "", list[str](), list[bool]()
        self.rows: list[list[Cell]] = []
        self._place = ""
        self._text, self._detail = "", ""
        self._rank: int | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("caption", "th", "td"):
            self._place, self._text, self._detail, self._rank = tag, "", "", None
            if tag != "caption" and len(self.rows) == 1:
                self.is_number.append(("class", "number") in attrs)
        elif tag == "tr" and self.header:
            self.rows.append([])
        elif tag == "small":
            self._place = "small"
        elif tag in ("strong", "u"):
            self._rank = 1 if tag == "strong" else 2

    def handle_endtag(self, tag: str) -> None:
        if tag == "caption":
            self.caption = self._text
        elif tag in ("th", "td") and self.rows:
            self.rows[-1].append(Cell(self._text, self._detail, self._rank))
        elif tag == "th":
            self.header.append(self._text)
        if tag in ("caption", "th", "td"):
            self._place = ""

    def handle_data(self, data: str) -> None:
        if self._place == "small":
            self._detail += data
        elif self._place:
            self._text += data


def read_words(text: str) -> list[Block]:
    r"""Read the little Markdown that our own texts are written in; everything else stays as it is, as words.

    Examples
    --------
    >>> for block in read_words("# Title\n\nWords\\_here\n\n- one\n- two\n"):
    ...     print(block.kind, block.lines)
    heading [['Title']]
    words [['Words_here']]
    list [['one'], ['two']]
    """
    return [_block(part.splitlines()) for part in re.split(r"\n\s*\n", text.strip()) if part.strip()]


def _block(lines: list[str]) -> Block:
    if lines[0].startswith("#"):
        return Block("heading", [[_plain(lines[0].lstrip("#"))]])
    if all(line.startswith("- ") for line in lines):
        return Block("list", [[_plain(line[2:])] for line in lines])
    if len(lines) >= 2 and all(line.startswith("|") for line in lines):
        cells = [re.split(r"(?<!\\)\|", line.strip()[1:-1]) for line in (lines[0], *lines[2:])]
        return Block("table", [[_plain(cell) for cell in row] for row in cells])
    return Block("words", [[_plain(" ".join(lines))]])


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", re.sub(r"(?<!\\)\*\*|</?ins>", "", text)).strip()
