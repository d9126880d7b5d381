"""Reader of ARFF, the format of Weka."""

from __future__ import annotations

import re
from dataclasses import replace

from l20fs.data.readers.encoding import decode
from l20fs.data.readers.lines import collect, records
from l20fs.data.readers.table import Contents, DataError, Request
from l20fs.data.readers.text import row_contents

ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(.*)""", re.IGNORECASE)


def read_arff(content: bytes, request: Request) -> Contents:
    """Read an ARFF file; without a target, it is the last nominal attribute, for a regression the last numeric one."""
    lines = decode(content, request).split("\n")
    attributes, start = _attributes(lines, request)
    if request.lacks_labels:
        is_nominal = request.task != "regression"
        possible = [name for name, kind in attributes if kind.startswith("{") == is_nominal]
        request = replace(request, target=possible[-1] if possible else None)
    body = ["" if line.lstrip().startswith("%") else line.strip() for line in lines[start:]]
    if any(line.startswith("{") for line in body[:100]):
        raise DataError(
            f"{request.name}: sparse ARFF is not read. Convert it with Weka's SparseToNonSparse filter, or to CSV."
        )
    quote = "'" if any("'" in line for line in body) else '"'
    found = records(body, ",", quote, start + 1, request)
    table = collect([name for name, _ in attributes], found, ",", quote, request)
    return row_contents(table, request, missing=["?"])


def _attributes(lines: list[str], request: Request) -> tuple[list[tuple[str, str]], int]:
    """Return name and type of each attribute, and the index of the first line of data."""
    attributes: list[tuple[str, str]] = []
    for number, line in enumerate(lines, 1):
        word = line.strip().lower()
        if word.startswith("@data"):
            return attributes, number
        if word.startswith("@attribute"):
            found = ATTRIBUTE.match(line.strip())
            if found is None:
                raise DataError(f"{request.name}: line {number} is no attribute: {line[:40]!r}. Write @attribute NAME TYPE.")
            name, kind = found.groups()
            attributes.append((_unquoted(name), kind))
    raise DataError(f"{request.name}: has no line @data. Copy the file again.")


def _unquoted(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if name[:1] in "'\"" and len(name) > 1 else name
