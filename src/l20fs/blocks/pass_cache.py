"""Cache of passes over blocks, with which an interrupted fit is resumed without repeating finished passes.

A fit is a sequence of passes with little work in between. Called again with the same folder, it repeats this work, reads the
results of its passes from the files, and returns the same result to the last bit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.blocks.passes import Blocks, Combine, Kernel, add_up
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

    def total(self, kernel: Kernel, own: Sequence[tuple[Any, ...]], combine: Combine = add_up) -> Any:
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
    return hash_of(describe(_named(value), "an argument of a pass"))


def _named(value: Any) -> Any:
    """Return a value with the names of the functions and types in it, instead of these."""
    if isinstance(value, list | tuple):
        return [_named(part) for part in value]
    if isinstance(value, np.dtype):
        return value.str
    return value.__name__ if callable(value) else value


def _pack(results: list[Any]) -> dict[str, Array]:
    """Name the arrays of results by their positions; tuples, sparse matrices and None are laid out beside them.

    Examples
    --------
    >>> list(_pack([np.ones(2), (np.ones(3), None)]))
    ['layout', '0', '1']
    """
    arrays: list[Array] = []

    def lay_out(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, tuple):
            return [lay_out(part) for part in value]
        if sp.issparse(value):
            value = value if value.format in ("csr", "csc") else value.tocsr()
            return {value.format: list(value.shape), "parts": [lay_out(part) for part in _parts(value)]}
        arrays.append(np.asarray(value))
        return len(arrays) - 1

    layout = json.dumps([lay_out(result) for result in results])
    return {"layout": np.array(layout), **{str(number): array for number, array in enumerate(arrays)}}


def _unpack(arrays: dict[str, Array]) -> list[Any]:
    """Return the results packed by :func:`_pack`."""

    def build(layout: Any) -> Any:
        if layout is None:
            return None
        if isinstance(layout, int):
            return arrays[str(layout)]
        if isinstance(layout, list):
            return tuple(build(part) for part in layout)
        kind = sp.csr_array if "csr" in layout else sp.csc_array
        data, indices, indptr = (build(part) for part in layout["parts"])
        return kind((data, indices, indptr), shape=tuple(layout["csr" if "csr" in layout else "csc"]))

    return [build(layout) for layout in json.loads(str(arrays["layout"]))]


def _parts(matrix: Any) -> tuple[Array, Array, Array]:
    return matrix.data, matrix.indices, matrix.indptr
