"""Reader of GCT 1.2 and 1.3, the format of GenePattern: genes in rows, samples in columns."""

from __future__ import annotations

import re

from l20fs.data.readers.encoding import decode
from l20fs.data.readers.lines import split_lines
from l20fs.data.readers.table import Contents, DataError, Request
from l20fs.data.readers.text import feature_rows, sample_rows

VERSIONS = ("#1.2", "#1.3")

#: Number of rows or columns, with at most nine digits.
SIZE = re.compile(r"[0-9]{1,9}")


def read_gct(content: bytes, request: Request) -> Contents:
    """Read a GCT file; the first column holds the names of the genes, the second one, descriptions, is ignored.

    Version 1.3 has columns of gene annotations and rows of sample annotations; the latter include target and groups.
    """
    lines = decode(content, request).split("\n")
    version = lines[0].strip()
    if version not in VERSIONS:
        raise DataError(f"{request.name}: GCT version {version[:20]!r}. Versions 1.2 and 1.3 are read.")
    n_genes, n_samples, n_described, n_about = _sizes(lines[1] if len(lines) > 1 else "", version, request)
    if len(lines) < 3 or not lines[2].strip():
        raise DataError(f"{request.name}: line 3 is empty. In a GCT file it has the names of the samples.")
    table = split_lines(lines[2:], "\t", request, first_number=3)
    _check_size(len(table.header) - 1 - n_described, n_samples, "sample columns", request)
    _check_size(len(table.texts) - n_about, n_genes, "gene rows", request)
    about, genes = (table.without(set(rows)) for rows in (range(n_about, len(table.texts)), range(n_about)))
    return feature_rows(genes, 1 + n_described, sample_rows(about, request), request)


def _sizes(line: str, version: str, request: Request) -> tuple[int, int, int, int]:
    """Return the numbers of genes, samples, columns of gene annotations and rows of sample annotations."""
    fields = line.split("\t") if "\t" in line else line.split()
    wanted = 2 if version == "#1.2" else 4
    sizes = [int(field) for field in fields if SIZE.fullmatch(field.strip())]
    if len(sizes) < wanted or len(fields) < wanted:
        raise DataError(f"{request.name}: line 2 is {line[:40]!r}. In GCT {version[1:]} it has {wanted} numbers.")
    return (sizes[0], sizes[1], 1, 0) if wanted == 2 else (sizes[0], sizes[1], sizes[2], sizes[3])


def _check_size(found: int, expected: int, what: str, request: Request) -> None:
    if found != expected:
        raise DataError(
            f"{request.name}: line 2 states {expected} {what}, but there are {max(found, 0)}. Correct line 2, or copy the "
            "file again."
        )
