"""Tables of samples: any file becomes one matrix with names, by one cleaning; binary files pass one gate.

What is decided without being told is a list of sentences, :attr:`Samples.notes`. Nothing is ever unpickled.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from l20fs.tables.errors import DataError, MissingPackageError, UnknownColumnError

if TYPE_CHECKING:
    from l20fs.tables.read import read_table
    from l20fs.tables.table import Samples

__all__ = ["DataError", "MissingPackageError", "Samples", "UnknownColumnError", "read_table"]

#: Names that are loaded when they are used, with the numerical libraries: settings are needed before that.
_MODULES = {"Samples": "table", "read_table": "read"}


def __getattr__(name: str) -> Any:
    """Load a public name when it is used."""
    if name in _MODULES:
        return getattr(import_module(f"l20fs.tables.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
