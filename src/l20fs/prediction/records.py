"""Dataclasses from JSON: every value is checked against the type of its field."""

from __future__ import annotations

import sys
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints


class RecordError(ValueError):
    """JSON value that does not fit the type of its field."""


def read_value(value: Any, kind: Any, where: str) -> Any:
    """Convert a JSON value to the type of a hint, or raise an error that names its place.

    Examples
    --------
    >>> read_value({"a": [1]}, dict[str, list[int] | None], "sizes")
    {'a': [1]}
    >>> read_value([1, "b"], list[int], "sizes")
    Traceback (most recent call last):
        ...
    l20fs.prediction.records.RecordError: sizes holds 'b', which does not belong there.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _read_record(value, kind, where)
    if origin is list and isinstance(value, list):
        return [read_value(item, arguments[0], where) for item in value]
    if origin is dict and isinstance(value, dict):
        return {name: read_value(item, arguments[1], where) for name, item in value.items()}
    if NoneType in arguments:
        return None if value is None else read_value(value, arguments[0], where)
    if kind is Any or _is_plain(value, kind):
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
    if kind is float:
        return type(value) in (int, float) and abs(value) <= sys.float_info.max
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    return type(value) is kind


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
