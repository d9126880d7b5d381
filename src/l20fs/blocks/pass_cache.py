"""Passes that were made are not made again: each result in one small file, under a name that says what it is a result of.

A fit is a sequence of passes over the blocks with little work in between. One that was interrupted or killed does this work
again, finds the results of its passes in the folder, and goes on where it was, to the last bit as if nothing had happened.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from l20fs.blocks.passes import Blocks, Combine, Kernel
from l20fs.storage.checkpoint import digest, hash_of, writable_folder
from l20fs.storage.files import write_atomically


@dataclass(frozen=True)
class Noted:
    """A value where the blocks are, and the digest of what it holds."""

    handle: Any
    digest: str


class Journal(Blocks):
    """Blocks of which every pass is noted in a folder.

    Parameters
    ----------
    blocks : Blocks
    folder : path
    probe : callable
        Called with the blocks, returns arrays that are different for data that are: no result of other data is taken.
    """

    def __init__(self, blocks: Blocks, folder: Any, probe: Any) -> None:
        self._blocks = blocks
        self.shape, self.dtype, self.axis, self.edges = blocks.shape, blocks.dtype, blocks.axis, blocks.edges
        self.is_sparse, self.budget, self.name, self.traffic = blocks.is_sparse, blocks.budget, blocks.name, blocks.traffic
        self._folder = writable_folder(folder)
        layout = [blocks.shape, blocks.dtype.str, blocks.axis, blocks.edges.tolist()]
        self._data = hash_of(version("l20fs"), layout, _digest(probe(blocks)))

    def keep(self, value: Any) -> Noted:
        return Noted(self._blocks.keep(value), _digest(value))

    def send(self, value: Any) -> Noted:
        return Noted(self._blocks.send(value), _digest(value))

    def each(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], which: Sequence[int] | None = None) -> list[Any]:
        file = self._file("each", kernel, own, None if which is None else list(which))
        stored = _read(file)
        if stored is None:
            stored = self._blocks.each(kernel, _handles(own), which)
            self._note(file, stored)
        return stored

    def total(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], combine: Combine = add) -> Any:
        file = self._file("total", kernel, own, combine.__name__)
        stored = _read(file)
        if stored is None:
            stored = [self._blocks.total(kernel, _handles(own), combine)]
            self._note(file, stored)
        return stored[0]

    def _note(self, file: Path, results: list[Any]) -> None:
        try:
            _write(file, results)
        except OSError as error:
            raise OSError(
                f"checkpoint={os.fspath(self._folder)!r} cannot be written to ({error.strerror or error}). What is there "
                "stays: make room and fit again, and it goes on where it was."
            ) from error

    def _file(self, what: str, kernel: Kernel, own: Sequence[tuple[Any, ...]], how: Any) -> Path:
        name = hash_of(self._data, what, kernel.__name__, [_digest(arguments) for arguments in own], how)
        return self._folder / f"pass-{name[:32]}.npz"


def _handles(own: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [tuple(value.handle if isinstance(value, Noted) else value for value in arguments) for arguments in own]


def _digest(value: Any) -> str:
    if isinstance(value, Noted):
        return value.digest
    if isinstance(value, list | tuple):
        return hash_of([_digest(part) for part in value])
    return digest(value) if isinstance(value, np.ndarray) else hash_of(value)


def _write(file: Path, results: list[Any]) -> None:
    """Write results, each of them an array or a tuple of arrays, with the name of the file as a seal."""
    arrays: dict[str, Any] = {"seal": np.array(file.stem)}
    for number, result in enumerate(results):
        parts = result if isinstance(result, tuple) else [result]
        arrays |= {f"{number}-{'p' if isinstance(result, tuple) else 'a'}-{i}": part for i, part in enumerate(parts)}
    write_atomically(file, lambda stream: np.savez(stream, **arrays))


def _read(file: Path) -> list[Any] | None:
    """Return what :func:`_write` wrote; None if it is not there, or damaged."""
    try:
        with open(file, "rb") as stream, np.load(stream, allow_pickle=False) as stored:
            if str(stored["seal"]) != file.stem:
                return None
            arrays = {name: stored[name] for name in stored.files if name != "seal"}
    except Exception:  # a damaged archive fails in a dozen ways, in zipfile, zlib, struct and numpy
        return None
    results: dict[int, Any] = {}
    for name, array in arrays.items():
        number, kind, _ = name.split("-")
        results[int(number)] = array if kind == "a" else (*results.get(int(number), ()), array)
    return [results[number] for number in sorted(results)]
