"""Tables for people: the same cells as Markdown, LaTeX and HTML."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from l20fs.storage.files import write_together

#: What the classifiers and protocols are called in captions.
CLASSIFIER_NAMES = {"knn": "KNN", "softmax": "softmax"}
PROTOCOL_NAMES = {
    "optimistic": "The paper's protocol, optimistic: parameters and number of features are the best for the test part.",
    "honest": "Honest protocol: parameters and number of features are chosen by cross-validation inside the training part.",
}


#: Rows that a page of LaTeX holds, and letters from which a text is broken into lines.
PAGE_ROWS, LONG_TEXT = 45, 45


@dataclass(frozen=True)
class Cell:
    """A text, something less important below it, and whether it is the best of its row, the second, or neither."""

    text: str
    detail: str = ""
    rank: int | None = None


@dataclass(frozen=True)
class Table:
    """What is shown: columns are aligned to the right where ``is_number``; the first column names the rows."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_number: tuple[bool, ...]


def frame_table(frame: pd.DataFrame, caption: str, names: Mapping[str, str] | None = None, decimals: int = 2) -> Table:
    """Show any DataFrame as it is.

    Parameters
    ----------
    frame : DataFrame
    caption : str
    names : mapping, optional
        What columns are called; others by their own name, with spaces.
    decimals : int, default=2
        Of numbers that are not whole by type.

    Examples
    --------
    >>> print(to_markdown(frame_table(pd.DataFrame({"set": ["nci"], "accuracy": [66.0]}), "One row")), end="")
    One row
    <BLANKLINE>
    | set | accuracy |
    |---|---:|
    | nci | 66.00 |
    """
    names = names or {}
    return Table(
        caption,
        tuple(names.get(name, str(name).replace("_", " ")) for name in frame.columns),
        tuple(tuple(Cell(show(value, decimals)) for value in row) for row in frame.itertuples(index=False, name=None)),
        tuple(pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind) for kind in frame.dtypes),
    )


def accuracy_table(table: pd.DataFrame, classifier: str) -> Table:
    """Lay out reported accuracies as the paper does: data sets x methods, the best in each row and the second marked.

    Of equal accuracies (as they are shown) the one with fewer features is better, as in the paper; equal in both share the
    mark.

    Parameters
    ----------
    table : DataFrame
        What :func:`~l20fs.experiments.outcomes.optimistic` or :func:`~l20fs.experiments.outcomes.honest` returns.
    classifier : str
    """
    shown = table[table.classifier == classifier]
    methods = tuple(shown.method.unique())
    rows = []
    for dataset, group in shown.groupby("dataset", sort=False, observed=True):
        by_method = {row.method: row for row in group.itertuples()}
        ranks = _ranks({name: (-round(row.accuracy, 2), row.n_features) for name, row in by_method.items()})
        rows.append((Cell(str(dataset)), *(_accuracy_cell(by_method.get(name), ranks.get(name)) for name in methods)))
    [protocol] = set(shown.protocol) or {"optimistic"}
    caption = (
        f"Accuracy in % with {CLASSIFIER_NAMES.get(classifier, classifier)}, ± standard error (number of features). "
        f"{PROTOCOL_NAMES[protocol]} Bold: best of its row, underlined: second; of equal ones that with fewer features."
    )
    return Table(caption, ("dataset", *methods), tuple(rows), (False, *(True for _ in methods)))


def times_table(times: pd.DataFrame) -> Table:
    """Lay out what :func:`~l20fs.experiments.outcomes.fit_times` returns: data sets x methods, in seconds."""
    methods = tuple(times.method.unique())
    rows = []
    for dataset, group in times.groupby("dataset", sort=False, observed=True):
        by_method = {row.method: row for row in group.itertuples()}
        cells = [
            Cell(seconds(row.seconds), f"{seconds(row.least)} to {seconds(row.most)}")
            if (row := by_method.get(name))
            else Cell("")
            for name in methods
        ]
        rows.append((Cell(str(dataset)), *cells))
    caption = "Seconds for one fit: mean over splits and parameters, least to most."
    return Table(caption, ("dataset", *methods), tuple(rows), (False, *(True for _ in methods)))


def _accuracy_cell(row: Any, rank: int | None) -> Cell:
    if row is None:
        return Cell("")
    error = "" if math.isnan(row.standard_error) else f"± {row.standard_error:.2f} "
    return Cell(f"{row.accuracy:.2f}", f"{error}({row.n_features:g})", rank)


def _ranks(keys: dict[str, tuple[float, float]]) -> dict[str, int]:
    """Return 1 for the smallest key, 2 for the next; equal ones share it."""
    different = sorted(set(keys.values()))
    return {name: different.index(key) + 1 for name, key in keys.items()}


def show(value: Any, decimals: int = 2) -> str:
    """Return a value as text: nothing for a missing one, small numbers not as zero."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    if value and abs(value) < 0.5 * 10.0**-decimals:
        return f"{value:.1e}"
    return f"{value:.{decimals}f}"


def seconds(value: float) -> str:
    """Return a time with two digits that matter, three from a hundred seconds on.

    Examples
    --------
    >>> [seconds(value) for value in (0.00123, 0.5, 12.34, 345.6)]
    ['0.0012', '0.50', '12', '346']
    """
    decimals = max(0, 1 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{decimals}f}"


# -------------------------------------------------------------------------------------------------------------- formats


def to_markdown(table: Table) -> str:
    """Return a table as Markdown with its caption above it."""
    marks: dict[int | None, str] = {1: "**{}**", 2: "<ins>{}</ins>"}  # GitHub underlines ins and drops u

    def cell(content: Cell) -> str:
        text = marks.get(content.rank, "{}").format(escape_markdown(content.text))
        return f"{text} {escape_markdown(content.detail)}".strip()

    lines = [
        escape_markdown(table.caption),
        "",
        _markdown_row([escape_markdown(name) for name in table.header]),
        f"|{'|'.join('---:' if is_number else '---' for is_number in table.is_number)}|",
        *(_markdown_row([cell(content) for content in row]) for row in table.rows),
    ]
    return "\n".join(lines) + "\n"


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape_markdown(text: str) -> str:
    """Show all signs as they are; a number with a sign is no list, a name with an underline no emphasis."""
    return re.sub(r"([\\`*_\[\]<>|~#$&])", r"\\\1", " ".join(text.split()))


def to_latex(table: Table) -> str:
    r"""Return a table for LaTeX with ``\usepackage{booktabs}``, and ``longtable`` if it has more rows than a page."""
    marks: dict[int | None, str] = {1: r"\textbf{%s}", 2: r"\underline{%s}"}

    def cell(content: Cell) -> str:
        text = marks.get(content.rank, "%s") % _escape_latex(content.text)
        return rf"\shortstack{{{text}\\{{\scriptsize {_escape_latex(content.detail)}}}}}" if content.detail else text

    columns = "".join(_latex_column(number, [row[number].text for row in table.rows], table) for number in _places(table))
    caption = _escape_latex(table.caption)
    header = _latex_row([_escape_latex(name) for name in table.header])
    has_details = any(content.detail for row in table.rows for content in row)
    rows = [_latex_row([cell(content) for content in row]) + (r"\addlinespace" if has_details else "") for row in table.rows]
    look = r"\centering\footnotesize\setlength{\tabcolsep}{3pt}"
    if len(rows) > PAGE_ROWS:
        top = [r"{" + look, rf"\begin{{longtable}}{{{columns}}}", rf"\caption{{{caption}}}\\", r"\toprule", header]
        head = [r"\midrule", r"\endfirsthead", r"\toprule", header, r"\midrule", r"\endhead"]
        lines = [*top, *head, *rows, r"\bottomrule", r"\end{longtable}", r"}"]
    else:
        top = [r"\begin{table*}", look, rf"\caption{{{caption}}}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule", header]
        lines = [*top, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}", r"\end{table*}"]
    return "\n".join(lines) + "\n"


def _places(table: Table) -> range:
    return range(len(table.header))


def _latex_column(number: int, texts: list[str], table: Table) -> str:
    """Return how a column is set: numbers to the right, long texts in lines of their own width."""
    if table.is_number[number]:
        return "r"
    return "p{5cm}" if max(map(len, texts), default=0) > LONG_TEXT else "l"


def _latex_row(cells: list[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "λ": r"$\lambda$",
    "[": "{[}",  # after a line break a bracket would be taken for an option
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))


def to_html(table: Table) -> str:
    """Return a table as an HTML element: row and column headers are marked as such, all text is escaped, no script."""
    marks: dict[int | None, str] = {1: "<strong>{}</strong>", 2: "<u>{}</u>"}

    def cell(content: Cell, is_number: bool, is_first: bool) -> str:
        text = marks.get(content.rank, "{}").format(html.escape(content.text))
        text += f"<br><small>{html.escape(content.detail)}</small>" if content.detail else ""
        if is_first:
            return f'<th scope="row">{text}</th>'
        return f'<td class="number">{text}</td>' if is_number else f"<td>{text}</td>"

    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in table.header)
    lines = ["<table>", f"<caption>{html.escape(table.caption)}</caption>", f"<thead><tr>{head}</tr></thead>", "<tbody>"]
    for row in table.rows:
        cells = (
            cell(content, number, not place)
            for place, (content, number) in enumerate(zip(row, table.is_number, strict=True))
        )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "\n".join([*lines, "</tbody>", "</table>"]) + "\n"


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.4 system-ui, sans-serif; margin: 2rem; }}
div {{ overflow-x: auto; }}
table {{ border-collapse: collapse; border-block: 2px solid; }}
caption {{ text-align: left; max-width: 60rem; padding-block: 0.5rem; }}
thead {{ border-bottom: 1px solid; }}
th, td {{ padding: 0.3rem 0.7rem; text-align: left; white-space: nowrap; }}
th[scope="row"] {{ font-weight: normal; }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
</style>
</head>
<body>
<main>
<div tabindex="0" role="region" aria-label="{title}">
{table}</div>
</main>
</body>
</html>
"""


def to_page(table: Table, title: str) -> str:
    """Return a whole HTML page with one table."""
    return _PAGE.format(title=html.escape(title), table=to_html(table))


def text_writer(text: str) -> Callable[[BinaryIO], object]:
    """Return what writes a text into an open file."""
    content = text.encode()
    return lambda stream: stream.write(content)


def table_writers(folder: Path, name: str, table: Table) -> dict[Path, Callable[[BinaryIO], object]]:
    """Return what writes ``name.md``, ``name.tex`` and ``name.html``."""
    formats: dict[str, Callable[[Table], str]] = {
        "md": to_markdown,
        "tex": to_latex,
        "html": lambda shown: to_page(shown, name),
    }
    return {folder / f"{name}.{ending}": text_writer(make(table)) for ending, make in formats.items()}


def write_table(folder: Path, name: str, table: Table) -> list[Path]:
    """Write ``name.md``, ``name.tex`` and ``name.html``, all or none, and return where they are."""
    writers = table_writers(folder, name, table)
    write_together(writers)
    return list(writers)
