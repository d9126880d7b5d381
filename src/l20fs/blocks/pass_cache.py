"""Cache of passes over blocks, with which an interrupted fit is resumed without repeating finished passes.

A fit is a sequence of passes with little work in between. Called again with the same folder, it repeats this work, reads the
results of its passes from the files, and returns the same result to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import add
from typing import Any

import numpy as np

from l20fs.blocks.passes import Blocks, Combine, Kernel
from l20fs.storage.files import writable_folder
from l20fs.storage.hashing import describe, hash_of
from l20fs.storage.keyed_store import Key, KeyedStore
from l20fs.typing import Array


@dataclass(frozen=True)
class Keyed:
    """Value that was sent to the blocks, with its hash for the key of a pass."""

    handle: Any
    hash: str


class PassCache(Blocks):
    """Blocks that store the result of every pass in a folder.

    Parameters
    ----------
    blocks : Blocks
    folder : path
        Folder of the results, the ``checkpoint`` of an estimator.
    probe : callable
        Called with the blocks; returns arrays that identify their data, so that results of other data are never used.
    """

    def __init__(self, blocks: Blocks, folder: Any, probe: Callable[[Blocks], list[Array]]) -> None:
        self._blocks = blocks
        self.shape, self.dtype, self.axis, self.edges = blocks.shape, blocks.dtype, blocks.axis, blocks.edges
        self.is_sparse, self.budget, self.name, self.traffic = blocks.is_sparse, blocks.budget, blocks.name, blocks.traffic
        writable = writable_folder(folder, "checkpoint")
        layout = [blocks.shape, blocks.dtype.str, blocks.axis, blocks.edges]
        self._store = KeyedStore(writable, {"layout": layout, "data": probe(blocks)}, suffix=".npz")

    def keep(self, value: Any) -> Keyed:
        return Keyed(self._blocks.keep(value), _hash(value))

    def send(self, value: Any) -> Keyed:
        return Keyed(self._blocks.send(value), _hash(value))

    def each(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], which: Sequence[int] | None = None) -> list[Any]:
        key = self._key("each", kernel, own, None if which is None else list(which))
        stored = self._store.load(key)
        if stored is not None:
            return _unpack(stored)
        results = self._blocks.each(kernel, _handles(own), which)
        self._store.save(key, _pack(results))
        return results

    def total(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], combine: Combine = add) -> Any:
        key = self._key("total", kernel, own, combine.__name__)
        stored = self._store.load(key)
        if stored is not None:
            return _unpack(stored)[0]
        result = self._blocks.total(kernel, _handles(own), combine)
        self._store.save(key, _pack([result]))
        return result

    def _key(self, method: str, kernel: Kernel, own: Sequence[tuple[Any, ...]], how: Any) -> Key:
        hashes = [[value.hash if isinstance(value, Keyed) else _hash(value) for value in arguments] for arguments in own]
        return self._store.key("pass", method, kernel.__name__, hashes, how)


def _handles(own: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [tuple(value.handle if isinstance(value, Keyed) else value for value in arguments) for arguments in own]


def _hash(value: Any) -> str:
    return hash_of(describe(value, "an argument of a pass"))


def _pack(results: list[Any]) -> dict[str, Array]:
    """Name the arrays of results, each an array or a tuple of arrays, by their positions.

    Examples
    --------
    >>> list(_pack([np.ones(2), (np.ones(3), np.ones(4))]))
    ['0', '1.0', '1.1']
    """
    arrays: dict[str, Array] = {}
    for number, result in enumerate(results):
        if isinstance(result, tuple):
            arrays |= {f"{number}.{place}": np.asarray(part) for place, part in enumerate(result)}
        else:
            arrays[str(number)] = np.asarray(result)
    return arrays


def _unpack(arrays: dict[str, Array]) -> list[Any]:
    """Return the results packed by :func:`_pack`."""
    results: dict[str, Any] = {}
    for name, array in arrays.items():
        number, _, place = name.partition(".")
        results[number] = (*results.get(number, ()), array) if place else array
    return list(results.values())
