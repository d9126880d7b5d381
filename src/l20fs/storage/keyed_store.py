"""Keyed store of results, one file with a checksum per result.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> store = KeyedStore(folder.name, {"X": np.eye(3), "ridge": 0.1})
>>> key = store.key("resample-00012", 12)
>>> store.save(key, {"order": [2, 0], "size": 1})
>>> store.load(key)
{'order': [2, 0], 'size': 1}
>>> other = KeyedStore(folder.name, {"X": np.eye(3), "ridge": 0.2})
>>> other.load(other.key("resample-00012", 12)) is None
True
>>> folder.cleanup()
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np

from l20fs.storage.files import write_atomically
from l20fs.storage.hashing import describe, digest, hash_of
from l20fs.storage.regular_files import open_regular

#: Characters of the hash in the name of a file; the checksum inside covers the whole hash.
SHORT = 32


class Key(NamedTuple):
    """Key of a result: a readable label, and a hash of everything that it depends on."""

    label: str
    hash: str


class KeyedStore:
    """Folder with one file per result.

    The key of a result is a hash of everything that it depends on, with the version of this package, so that a result of
    other data or another configuration is never returned. The content has a checksum: a file that is damaged, truncated or
    not written under this key counts as missing. Files are written atomically, and nothing in them is executed.

    Parameters
    ----------
    folder : path
        Created with the first result, if necessary.
    causes : mapping, optional
        Inputs of all results in the store, see :func:`~l20fs.storage.hashing.describe`.
    suffix : {".json", ".npz"}
        Format of the values: JSON values, or a dictionary of arrays.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        causes: Mapping[str, Any] | None = None,
        *,
        suffix: Literal[".json", ".npz"] = ".json",
    ) -> None:
        self.folder = Path(folder)
        self.suffix = suffix
        self._causes = hash_of(version("l20fs"), describe(dict(causes or {}), "causes"))

    def key(self, label: str, *causes: Any) -> Key:
        """Return the key of a result; slashes in the label make subfolders."""
        return Key(label, hash_of(self._causes, describe(causes, label)))

    def file(self, key: Key) -> Path:
        """Return the file of a result."""
        return self.folder / f"{key.label}-{key.hash[:SHORT]}{self.suffix}"

    def load(self, key: Key, *, max_bytes: int | None = None) -> Any:
        """Return a result; None if it is missing, damaged, or in a file of more than ``max_bytes``."""
        try:
            with open_regular(self.file(key)) as stream:
                size = os.fstat(stream.fileno()).st_size
                if max_bytes is not None and size > max_bytes:
                    return None
                seal, value = _read_json(stream) if self.suffix == ".json" else _read_npz(stream, size)
            return value if seal == _seal(key, value, self.suffix) else None
        except Exception:  # a damaged file fails in a dozen ways, in json, zipfile, zlib, struct and numpy
            return None

    def save(self, key: Key, value: Any) -> None:
        """Store a result atomically."""
        seal, file = _seal(key, value, self.suffix), self.file(key)
        write = _write_json if self.suffix == ".json" else _write_npz
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, lambda stream: write(stream, seal, value))
        except OSError as error:
            raise OSError(
                f"{os.fspath(self.folder)!r} cannot be written to ({error.strerror or error}). The results so far are "
                "kept: free disk space and run it again to resume."
            ) from error


def _seal(key: Key, value: Any, suffix: str) -> str:
    # Dumping once more what was loaded gives the same text, in the same order.
    content = json.dumps(value) if suffix == ".json" else {name: digest(array) for name, array in value.items()}
    return hash_of(key.hash, content)


def _write_json(stream: BinaryIO, seal: str, value: Any) -> None:
    stream.write(json.dumps({"seal": seal, "value": value}).encode())


def _read_json(stream: BinaryIO) -> tuple[str, Any]:
    stored = json.loads(stream.read())
    return stored["seal"], stored["value"]


def _write_npz(stream: BinaryIO, seal: str, value: dict[str, Any]) -> None:
    np.savez(stream, seal=np.array(seal), **value)


def _read_npz(stream: BinaryIO, size: int) -> tuple[str, dict[str, Any]]:
    with np.load(stream, allow_pickle=False) as stored:
        # Archives of this store are not compressed: a file that grows when it is unpacked was not written here.
        if sum(member.file_size for member in stored.zip.infolist()) > size:
            raise ValueError("The archive is compressed.")
        arrays = {name: stored[name] for name in stored.files}
    return str(arrays.pop("seal")), arrays
