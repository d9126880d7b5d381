"""Errors of tables, each of one line that names the value, the rule and the way out."""

from __future__ import annotations


class DataError(ValueError):
    """Unusable data; the message says what to change."""


class UnknownColumnError(ValueError):
    """Missing column, sheet, layer or variable: not in the file, or required but not named."""


class MissingPackageError(DataError):
    """Missing package that is required to read a format."""


class SettingError(ValueError):
    """Unknown key or unusable value of a setting."""


def first_line(error: BaseException) -> str:
    """Return the first line of the message of an exception, shortened."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
