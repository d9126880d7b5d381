"""Encodings and line ends of text files."""

from __future__ import annotations

import re

from l20fs.data.readers.limits import check_text
from l20fs.data.readers.table import DataError, Request, first_line

#: Encodings by the marks with which files begin; UTF-32 before UTF-16, whose mark is the beginning of its own.
MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)

#: The encoding of Windows in Western Europe and America, which is assumed where text is not UTF-8.
ASSUMED = "cp1252"

#: Bytes at the beginning of a file by which UTF-16 without a mark is recognised, and their least number.
HEAD, LEAST_HEAD = 4096, 8

#: Characters that no table holds: controls, except tabs and line ends.
CONTROL = re.compile(r"[\0-\x08\x0e-\x1f]")


def wide_encoding(head: bytes) -> str | None:
    """Return UTF-16 or UTF-32 if a file begins with its mark, or if every other byte is NUL, as in UTF-16 without one.

    Examples
    --------
    >>> wide_encoding("type,a".encode("utf-16")), wide_encoding("type,a".encode("utf-16-be")), wide_encoding(b"type,a")
    ('utf-16', 'utf-16-be', None)
    """
    marked = _marked_encoding(head)
    if marked is not None:
        return None if marked == "utf-8-sig" else marked
    head = head[:HEAD]
    low, high = head[::2], head[1::2]
    if len(head) < LEAST_HEAD:
        return None
    for encoding, zeros, letters in (("utf-16-le", high, low), ("utf-16-be", low, high)):
        if 10 * zeros.count(0) >= 9 * len(zeros) and not letters.count(0):
            return encoding
    return None


def _marked_encoding(head: bytes) -> str | None:
    return next((encoding for mark, encoding in MARKS if head.startswith(mark)), None)


def is_unicode(content: bytes) -> bool:
    """Return whether a text is UTF-8 or UTF-16."""
    try:
        content.decode(wide_encoding(content[:HEAD]) or "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def decode(content: bytes, request: Request) -> str:
    """Decode text and normalise line ends, or raise an error that names the line.

    Without ``request.encoding``, a file is UTF-8 or UTF-16, or else taken for Windows-1252.
    """
    check_text(content, request)
    text = _forced(content, request) if request.encoding is not None else _detected(content, request)
    if "\r" in text:
        text = text.replace("\r\r\n", "\n").replace("\r\n", "\n")
        text = text if "\n" in text else text.replace("\r", "\n")  # as on Macintosh until 2001
    for character, what in (("\0", "NUL bytes"), ("\r", "carriage returns without a line feed")):
        if character in text:
            line = text.count("\n", 0, text.index(character)) + 1
            raise DataError(f"{request.name}: holds {what}, first in line {line}. Save it again as CSV or TSV.")
    return text


def _forced(content: bytes, request: Request) -> str:
    """Decode text in the encoding that was asked for."""
    encoding = str(request.encoding)
    try:
        return content.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise _wrong(content, encoding, error, request) from error
    except (LookupError, ValueError) as error:
        raise DataError(
            f"{request.name}: {encoding!r} is no encoding of text ({first_line(error)}). Use utf-8, utf-16 or cp1252, "
            "for example (--encoding NAME)."
        ) from error


def _detected(content: bytes, request: Request) -> str:
    """Decode text in the encoding that its bytes show."""
    encoding = wide_encoding(content[:HEAD])
    try:
        text = content.decode(encoding or "utf-8-sig")
    except UnicodeDecodeError as error:
        if encoding is not None:
            raise _wrong(content, encoding, error, request) from error
        return _assumed(content, error, request)
    if encoding is not None and _marked_encoding(content) is None:
        request.guess("encoding", encoding, f"every other byte is NUL, so it was read as {encoding.upper()}")
    return text


def _assumed(content: bytes, reason: UnicodeDecodeError, request: Request) -> str:
    """Decode text that is not UTF-8 as Windows-1252, unless it has characters that no table has."""
    line = content.count(b"\n", 0, reason.start) + 1
    where = f"byte {reason.start}, line {line}"
    try:
        text = content.decode(ASSUMED)
    except UnicodeDecodeError:
        text = "\0"
    if CONTROL.search(text):
        raise DataError(
            f"{request.name}: not UTF-8 text ({where}), nor that of Windows. Save it again as UTF-8, or name its encoding "
            "(--encoding NAME)."
        ) from reason
    request.guess("encoding", ASSUMED, f"not UTF-8 text ({where}), so it was read as that of Windows")
    return text


def _wrong(content: bytes, encoding: str, error: UnicodeDecodeError, request: Request) -> DataError:
    line = content.count(b"\n", 0, error.start) + 1
    return DataError(
        f"{request.name}: not {encoding} text (byte {error.start}, line {line}). Save it again as UTF-8, or name its "
        "encoding (--encoding NAME)."
    )
