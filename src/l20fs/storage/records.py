"""Dataclasses from JSON: every value is checked against the type of its field."""

from __future__ import annotations

import json
import sys
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints


class RecordError(ValueError):
    """JSON value that does not fit the type of its field."""


def dump(stored: Any) -> str:
    """Return portable JSON: no NaN, no infinity, no lone surrogates."""
    text = json.dumps(stored, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text.encode()
    return text


def read_value(value: Any, kind: Any, where: str) -> Any:
    """Convert a JSON value to the type of a hint, or raise an error that names its place.

    Examples
    --------
    >>> read_value([["a", 1]], list[tuple[str, int]], "pairs")
    [('a', 1)]
    >>> read_value([["a", "b"]], list[tuple[str, int]], "pairs")
    Traceback (most recent call last):
        ...
    l20fs.storage.records.RecordError: pairs holds 'b', which does not belong there.
    """
    if kind is Any:
        return value
    if is_dataclass(kind):
        return _read_record(value, kind, where)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list and isinstance(value, list):
        return [read_value(item, arguments[0], where) for item in value]
    if origin is dict and isinstance(value, dict):
        return {read_value(name, str, where): read_value(item, arguments[1], where) for name, item in value.items()}
    if origin is tuple and isinstance(value, list):
        parts = arguments[:1] * len(value) if arguments[1:] == (...,) else arguments
        if len(parts) == len(value):
            return tuple(read_value(item, part, where) for item, part in zip(value, parts, strict=True))
    if NoneType in arguments:
        [other] = [part for part in arguments if part is not NoneType]
        return None if value is None else read_value(value, other, where)
    if arguments and all(is_dataclass(part) for part in arguments) and isinstance(value, dict):
        for part in arguments:  # a union of records, told apart by their field ``kind``
            if getattr(part, "kind", None) == value.get("kind"):
                return _read_record(value, part, where)
    if _is_plain(value, kind):
        return value
    raise RecordError(f"{where} holds {_short(value)}, which does not belong there.")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _read_record(value: Any, kind: Any, where: str) -> Any:
    hints = _hints(kind)
    needed = {item.name for item in fields(kind) if item.default is MISSING and item.default_factory is MISSING}
    if not isinstance(value, dict):
        raise RecordError(f"{where} holds {_short(value)}, which is no {kind.__name__}.")
    for fault, names in (("lacks", needed - set(value)), ("does not know", set(value) - set(hints))):
        if names:
            raise RecordError(f"{where} is no {kind.__name__}: it {fault} {_short(min(names))}.")
    return kind(**{name: read_value(item, hints[name], name) for name, item in value.items()})


def _is_plain(value: Any, kind: Any) -> bool:
    if kind is str:
        return isinstance(value, str)
    if kind is bool:
        return isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return get_origin(kind) is Literal and value in get_args(kind)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
