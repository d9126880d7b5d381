"""Published methods of feature selection: one file, one method, one class, all under the contract of ``BaseSelector``."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

from l20fs.base import BaseSelector
from l20fs.methods.baseline import Baseline
from l20fs.methods.fisher import FisherScore

__all__ = ["Baseline", "FisherScore", "discover"]


def discover() -> dict[str, type[BaseSelector]]:
    """Return every method of this package by name, found by looking into its files.

    Examples
    --------
    >>> "FisherScore" in discover()
    True
    """
    found = {}
    for module in pkgutil.iter_modules(__path__):
        members = vars(import_module(f"{__name__}.{module.name}")).values()
        for member in members:
            is_own = inspect.isclass(member) and member.__module__ == f"{__name__}.{module.name}"
            if is_own and issubclass(member, BaseSelector) and not inspect.isabstract(member):
                found[member.__name__] = member
    return dict(sorted(found.items()))
