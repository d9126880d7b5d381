"""Tables as delimited text: every name is read back as it was, whatever signs it has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def write_rows(rows: Iterable[Iterable[str]], separator: str = "\t") -> str:
    r"""Return rows of texts as lines, quoted as the csv module does: only where a text has signs that separate.

    Examples
    --------
    >>> write_rows([["feature", "rank"], ["a\tb", "1"], ['5" long', "2"]])
    'feature\trank\n"a\tb"\t1\n"5"" long"\t2\n'
    """
    # The csv module of older versions leaves a carriage return without quotes, and then takes it for the end of a line.
    to_quote = re.compile(rf'["\r\n{re.escape(separator)}]')
    lines = []
    for row in rows:
        cells = [_quoted(text) if to_quote.search(text) else text for text in row]
        lines.append(separator.join(cells) if cells != [""] else '""')
    return "".join(f"{line}\n" for line in lines)


def write_frame(frame: pd.DataFrame, separator: str = "\t", float_format: str = ".10g") -> str:
    r"""Return a frame, without its index, as lines; a missing value is an empty cell.

    Examples
    --------
    >>> import pandas as pd
    >>> write_frame(pd.DataFrame({"name": ["a,b", None], "score": [0.1, 2.0]}), ",", "")
    'name,score\n"a,b",0.1\n,2.0\n'
    """
    columns = [_texts(frame.iloc[:, place], float_format) for place in range(frame.shape[1])]
    return write_rows([map(str, frame.columns), *zip(*columns, strict=True)], separator)


def join_names(names: Iterable[str]) -> str:
    """Join names in one cell, by a comma and a blank; a name is quoted where it could be taken for two.

    ``next(csv.reader([cell], skipinitialspace=True))`` parts them again.

    Examples
    --------
    >>> print(join_names(["TP53", "a, b", '5" long', ""]))
    TP53, "a, b", "5"" long", ""
    """
    return ", ".join(name if name and not re.search(r'[",\r\n]|^ ', name) else _quoted(name) for name in names)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _texts(column: pd.Series, float_format: str) -> list[str]:
    write: Callable[[object], str] = (lambda value: format(value, float_format)) if column.dtype.kind == "f" else str
    return ["" if gap else write(value) for value, gap in zip(column.tolist(), column.isna(), strict=True)]
