"""Records of reports from JSON."""

from __future__ import annotations

from typing import Any

from l20fs.storage import records
from l20fs.storage.records import dump

__all__ = ["ReportError", "dump", "read_value"]


class ReportError(ValueError):
    """Unreadable or inconsistent report file."""


def read_value(value: Any, kind: Any, where: str) -> Any:
    """Convert a JSON value to the type of a hint, as :func:`l20fs.storage.records.read_value`, or raise a ReportError.

    Examples
    --------
    >>> read_value(["a"], list[int], "sizes")
    Traceback (most recent call last):
        ...
    l20fs.report.records.ReportError: sizes holds 'a', which does not belong there. Make the report again.
    """
    try:
        return records.read_value(value, kind, where)
    except records.RecordError as error:
        raise ReportError(f"{error} Make the report again.") from None
