"""Size of the sheets of a workbook, from their XML: python-calamine allocates all cells between the first and the last one,
and ends the process without a message if it cannot.
"""

from __future__ import annotations

import io
import re
import zipfile
from xml.parsers import expat

import numpy as np

from l20fs.data.readers.limits import check_memory, memory_for
from l20fs.data.readers.table import DataError, Request
from l20fs.text import format_bytes

#: Memory of a cell between the first and the last one, in bytes, and per byte of its text.
MEMORY_PER_CELL, MEMORY_PER_LETTER = 40, 2

#: Entries of binary and OpenDocument workbooks, which python-calamine would read as such, without the checks below.
OTHER_WORKBOOKS = ("xl/workbook.bin", "content.xml")

#: Reference of a row or of a cell as Excel writes it; every row or cell, however it is written; and every attribute r.
USUAL = re.compile(rb'<(?:c|row) r="([A-Za-z]*)(\d+)"')
ELEMENT = re.compile(rb"[<:](?:c|row)[\s/>]")
ATTRIBUTE = re.compile(rb"\sr\s*=")

#: Cell of a shared text, and the end of a shared text; both are searched for in linear time, whatever there is.
SHARED = re.compile(rb't="s"[^<>]{0,200}>\s{0,200}<v>(\d+)</v>')
END_OF_TEXT = re.compile(rb"</(?:\w+:)?si>|<(?:\w+:)?si\s*/>")
PIECE = 2**20


def check_sheets(plain: bytes, request: Request) -> None:
    """Raise an error if a sheet of an uncompressed workbook needs more memory than is allowed."""
    most = memory_for(request)
    with zipfile.ZipFile(io.BytesIO(plain)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
        if not {name.lower() for name in entries}.isdisjoint(OTHER_WORKBOOKS):
            raise DataError(f"{request.name}: a workbook of another kind than .xlsx. Save it as .xlsx or CSV.")
        texts = b"".join(xml for xml in entries.values() if b"si>" in xml)
        for xml in entries.values():
            if b"sheetData" not in xml or most is None:  # a sheet may have any name
                continue
            n_rows, n_columns = extent(xml, most)
            needed = MEMORY_PER_CELL * n_rows * n_columns
            if needed > most:
                raise DataError(
                    f"{request.name}: a sheet has cells as far as row {n_rows}, column {n_columns}, which would take "
                    f"{format_bytes(needed)} of memory, and {format_bytes(most)} are there. Delete the cells beyond the "
                    "table, or save the sheet as CSV."
                )
            check_memory(needed + MEMORY_PER_LETTER * count_letters(xml, texts, most), request)


def extent(xml: bytes, most: int) -> tuple[int, int]:
    """Return the last row and the last column with a cell, by a fast search if that is as Excel writes it and small.

    Examples
    --------
    >>> extent(b'<sheetData><row r="1"><c r="A1"><v>1</v></c><c r="AB1"><v>1</v></c></row></sheetData>', 10**6)
    (1, 28)
    >>> extent(b"<sheetData><row/><row><c/><c><v>1</v></c></row></sheetData>", 10**6)
    (2, 2)
    """
    n_rows = n_elements = n_attributes = n_found = start = 0
    letters = {b""}
    while start < len(xml):
        end = xml.find(b"<", start + PIECE) % (len(xml) + 1)  # between two elements, or at the end
        found = USUAL.findall(xml, start, end)
        n_found += len(found)
        n_elements += len(ELEMENT.findall(xml, start, end))
        n_attributes += len(ATTRIBUTE.findall(xml, start, end))
        letters.update({column for column, _ in found})
        n_rows = max(n_rows, max((int(row) for row in {row for _, row in found}), default=0))
        start = end
    n_columns = max(map(_number, letters))
    if n_found == n_elements == n_attributes and MEMORY_PER_CELL * n_rows * n_columns <= most:
        return n_rows, n_columns
    return _Extent().of(xml)


class _Extent:
    """Last row and last column with a cell that is not empty, as an XML parser finds them; references may be missing."""

    def __init__(self) -> None:
        self.row = self.column = self.row_of_cell = self.n_rows = self.n_columns = 0
        self.is_in_cell = False

    def of(self, xml: bytes) -> tuple[int, int]:
        parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.StartDoctypeDeclHandler = self._refuse
        try:
            parser.Parse(xml, True)
        except expat.ExpatError as error:
            raise ValueError(f"XML: {error}") from error
        return self.n_rows, self.n_columns

    def _refuse(self, *_: object) -> None:
        raise ValueError("a sheet with a document type")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        reference = re.fullmatch(r"([A-Za-z]*)(\d+)", attributes.get("r", ""))
        if name == "row":
            self.row, self.column = int(reference[2]) if reference else self.row + 1, 0
        elif name == "c":
            self.is_in_cell = True
            self.column = _number(reference[1].encode()) if reference else self.column + 1
            self.row_of_cell = int(reference[2]) if reference else self.row
        elif self.is_in_cell:  # a value, a text or a formula
            self.n_rows = max(self.n_rows, self.row, self.row_of_cell)
            self.n_columns = max(self.n_columns, self.column)

    def _end(self, name: str) -> None:
        self.is_in_cell = self.is_in_cell and name.rpartition(":")[2] != "c"


def count_letters(xml: bytes, texts: bytes, most: int) -> int:
    """Return the number of bytes of all cells with a shared text, which is copied for each of them."""
    n_cells = xml.count(b't="s"') + xml.count(b"t='s'")
    if n_cells * len(texts) * MEMORY_PER_LETTER <= most:
        return 0
    lengths = np.append(np.diff([found.end() for found in END_OF_TEXT.finditer(texts)], prepend=0), 0)
    used = np.array([int(place) for place in SHARED.findall(xml)], dtype=np.int64)
    used = used[used < len(lengths)]
    return int(lengths[used].sum()) + (n_cells - min(n_cells, len(used))) * int(lengths.max())


def _number(letters: bytes) -> int:
    """Return the number of a column, 1 for A."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number
