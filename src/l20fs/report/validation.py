"""The page of ``l20fs validate``: an answer, and sections of tables, a picture or a confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from l20fs.report import svg
from l20fs.report.confusion import MANY_CLASSES, MOST_CLASSES, confused_pairs, in_words, pair_rows
from l20fs.report.html_page import fill
from l20fs.report.page import count_level, unbroken

#: Rows of a table that the page shows.
MOST_ROWS = 200


class Table(NamedTuple):
    """Rows of texts under names of columns, which are aligned to the right where ``is_number``; the first names the rows."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_number: tuple[bool, ...]
    caption: str = ""


class Confusion(NamedTuple):
    """Numbers of samples: true classes in rows, of which the last may be unknown to the panel, predicted ones in columns."""

    truth: Sequence[str]
    predicted: Sequence[str]
    counts: Sequence[Sequence[int]]

    @property
    def words(self) -> list[list[str]]:
        """The most frequent confusions, in texts and names in turn."""
        return in_words(confused_pairs(self.counts), self.truth, self.predicted)

    @property
    def rows(self) -> list[list[Any]]:
        """Rows of the most frequent confusions, where there are too many classes for a matrix; else none."""
        return pair_rows(confused_pairs(self.counts), self.truth) if len(self.predicted) > MOST_CLASSES else []


class Section(NamedTuple):
    """A part of the page: a heading, what the reader should know, and what is shown."""

    heading: str
    hint: str = ""
    tables: tuple[Table, ...] = ()
    picture: str | None = None
    confusion: Confusion | None = None


class Point(NamedTuple):
    """A point of a picture, its text, and the ends of a vertical bar through it where there is one."""

    x: float
    y: float
    title: str = ""
    ends: tuple[float, float] | None = None


def point_chart(
    points: Sequence[Point], *, label: str, names: tuple[str, str], span: tuple[float, float], percent: bool = False
) -> str:
    """Draw points in a square of values, with a dashed line where both are equal.

    Examples
    --------
    >>> picture = point_chart([Point(0.5, 0.6, "<b>")], label="toy", names=("x", "y"), span=(0.0, 1.0))
    >>> picture.count("<circle"), "<b>" in picture
    (1, False)
    """
    x, y = svg.square_axes(span, span)
    marks = []
    for point in points:
        if point.ends is not None:
            low, high = (f"{y(end):.1f}" for end in point.ends)
            marks.append(f'<line x1="{x(point.x):.1f}" x2="{x(point.x):.1f}" y1="{low}" y2="{high}"/>')
        title = f"<title>{escape(point.title)}</title>" if point.title else ""
        marks.append(f'<circle cx="{x(point.x):.1f}" cy="{y(point.y):.1f}" r="3.5">{title}</circle>')
    return svg.square_chart(
        "points",
        f'<g class="line c0">{"".join(marks)}</g>',
        label=label,
        axes=(x, y),
        names=names,
        percent=percent,
        line=(span[0], span[0], span[1], span[1]),
    )


def validation_page(
    sections: Sequence[Section],
    *,
    title: str,
    answer: str,
    further: Sequence[str] = (),
    facts: Sequence[tuple[str, str]] = (),
    sentences: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> str:
    """Return the page of a validation as one HTML file.

    Parameters
    ----------
    sections : sequence of Section
    title : str
        The panel and the samples.
    answer : str
        The result in one sentence.
    further : sequence of str
        Sentences below it.
    facts : sequence of (str, str)
        Names and values below the answer.
    sentences, warnings : sequence of str
        What was done and what it does not mean; what the reader should beware of.

    Examples
    --------
    >>> page = validation_page([Section("Scores", "<b>")], title="toy", answer="It holds.")
    >>> "It holds." in page, "<b>" in page
    (True, False)
    """
    return fill(
        "validation.html",
        scripts=("sort.js",),
        title=title,
        answer=unbroken(answer),
        further=[unbroken(text) for text in further],
        facts=facts,
        sections=sections,
        sentences=sentences,
        warnings=warnings,
        count_level=count_level,
        many=MANY_CLASSES,
        most=MOST_ROWS,
    )
