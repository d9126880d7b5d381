"""Hostile files and commands, made by scripts and never stored: one module per kind of file.

Each function below writes its files into an empty folder and returns the arguments of ``l20fs``; the decorator says what
must happen. ``test_attacks.py`` runs them all.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

#: One line of an error: what the library behind a format says of a damage is not ours.
HELD = r"^error: [^\n]+$"


@dataclass(frozen=True)
class Attack:
    """Attack, with the exit code and the text on stderr (a regular expression) that it must end with.

    With a ``cap`` in bytes the command gets ``--max-memory``, and its peak memory must stay below 1.5 times the cap plus
    what the interpreter takes. A file called ``canary`` in the folder must never appear: it is what executed code writes.
    """

    name: str
    make: Callable[[Path], list[str]]
    says: str
    code: int = 3
    cap: int | None = None


ATTACKS: dict[str, list[Attack]] = {}


def attack(
    says: str, *, code: int = 3, cap: int | None = None
) -> Callable[[Callable[[Path], list[str]]], Callable[[Path], list[str]]]:
    """Register a function that makes the files of an attack and returns the command."""

    def register(make: Callable[[Path], list[str]]) -> Callable[[Path], list[str]]:
        module = make.__module__.rpartition(".")[2]
        ATTACKS.setdefault(module, []).append(Attack(make.__name__, make, says, code, cap))
        return make

    return register


def modules() -> list[str]:
    """Return the names of the modules with attacks."""
    return sorted(
        file.stem
        for file in Path(__file__).parent.glob("[a-z]*.py")
        if file.stem != "runner" and not file.stem.startswith("test")
    )


def attacks_of(module: str) -> list[Attack]:
    """Return the attacks of a module."""
    importlib.import_module(f"attacks.{module}")
    return ATTACKS[module]
