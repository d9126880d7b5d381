"""The page of ``l20fs validate``: an answer, and sections of tables, a picture or a confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from l20fs.report.document import Table
from l20fs.report.html_page import fill
from l20fs.report.page import MANY_CLASSES, count_level, unbroken

#: Rows of a table that the page shows.
MOST_ROWS = 200


class Confusion(NamedTuple):
    """Numbers of samples: true classes in rows, of which the last may be unknown to the panel, predicted ones in columns."""

    truth: Sequence[str]
    predicted: Sequence[str]
    counts: Sequence[Sequence[int]]


class Section(NamedTuple):
    """A part of the page: a heading, what the reader should know, and what is shown."""

    heading: str
    hint: str = ""
    tables: tuple[Table, ...] = ()
    picture: str | None = None
    confusion: Confusion | None = None


def validation_page(
    sections: Sequence[Section],
    *,
    title: str,
    answer: str,
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
        facts=facts,
        sections=sections,
        sentences=sentences,
        warnings=warnings,
        count_level=count_level,
        many=MANY_CLASSES,
        most=MOST_ROWS,
    )
