"""Documents and tables as Markdown, LaTeX and HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from l20fs.report.document import Block, Bullets, Cell, Heading, Paragraph, Table

#: Rows that a page of LaTeX holds, and letters from which a text is broken into lines.
PAGE_ROWS, LONG_TEXT = 45, 45


def to_markdown(table: Table) -> str:
    """Return a table as Markdown with its caption above it.

    Examples
    --------
    >>> table = Table("One row", ("set", "accuracy"), ((Cell("nci"), Cell("66.00", rank=1)),), (False, True))
    >>> print(to_markdown(table), end="")
    One row
    <BLANKLINE>
    | set | accuracy |
    |---|---:|
    | nci | **66.00** |
    """
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
    """Keep Markdown from reading a text as markup, and write it in one line."""
    return re.sub(r"([\\`*_\[\]<>|~#$&])", r"\\\1", " ".join(text.split()))


def _escape_prose(text: str) -> str:
    """Escape sentences, but for "<" before a space, as in "p < 0.05", which opens no tag."""
    return re.sub(r"([\\`*_\[\]>|~#$&]|<(?! ))", r"\\\1", text)


def write_markdown(blocks: Iterable[Block]) -> str:
    """Return a document as Markdown.

    Examples
    --------
    >>> print(write_markdown([Heading("Result"), Paragraph(" p < 0.05", lead="RFS_1."), Bullets(("one", "two"))]), end="")
    ## Result
    <BLANKLINE>
    **RFS\\_1.** p < 0.05
    <BLANKLINE>
    - one
    - two
    """
    return "\n\n".join(_markdown_block(block) for block in blocks) + "\n"


def _markdown_block(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {_escape_prose(text)}"
        case Paragraph(text, lead):
            return (f"**{_escape_prose(lead)}**" if lead else "") + _escape_prose(text)
        case Bullets(items):
            return "\n".join(f"- {_escape_prose(item)}" for item in items)
        case Table():
            return to_markdown(block).rstrip()


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


def table_files(name: str, table: Table) -> dict[str, str]:
    """Return a table as ``name.md``, ``name.tex`` and ``name.html``."""
    return {f"{name}.md": to_markdown(table), f"{name}.tex": to_latex(table), f"{name}.html": to_page(table, name)}
