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
import logging
import os
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np

from l20fs.storage.files import write_atomically
from l20fs.storage.hashing import describe, digest, hash_of
from l20fs.storage.regular_files import NotAFileError, open_regular

LOGGER = logging.getLogger("l20fs")

#: Stands for a result whose file is there but is not what was written under its key.
DAMAGED = object()

#: Largest JSON file that is read, unless a caller knows better: the order of a million features has 8 MB.
MOST_BYTES = 2**26

#: A JSON file: the seal, then the value.
HEAD, TAIL = b'{"seal": "%s", "value": ', b"}"

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
        self._is_told = False

    def key(self, label: str, *causes: Any) -> Key:
        """Return the key of a result; slashes in the label make subfolders."""
        return Key(label, hash_of(self._causes, describe(causes, label)))

    def file(self, key: Key) -> Path:
        """Return the file of a result."""
        return self.folder / f"{key.label}-{key.hash[:SHORT]}{self.suffix}"

    def load(self, key: Key, *, max_bytes: int | None = None) -> Any:
        """Return a result; None if it is missing, damaged, or in a file of more than ``max_bytes``.

        The first damaged one is told to the log of this package.
        """
        return self.load_all([key], max_bytes=max_bytes)[0]

    def load_all(self, keys: Iterable[Key], *, max_bytes: int | None = None) -> list[Any]:
        """Return several results, each as :meth:`load` does; how many are damaged is told in one line."""
        found = [self._load(key, max_bytes) for key in keys]
        n_damaged = sum(each is DAMAGED for each in found)
        if n_damaged and not self._is_told:
            self._is_told = True
            said = "A stored result was" if n_damaged == 1 else f"{n_damaged} stored results were"
            LOGGER.warning("%s damaged and %s computed again.", said, "is" if n_damaged == 1 else "are")
        return [None if each is DAMAGED else each for each in found]

    def _load(self, key: Key, max_bytes: int | None) -> Any:
        file = self.file(key)
        if max_bytes is None and self.suffix == ".json":
            max_bytes = MOST_BYTES
        if not os.path.lexists(file):
            return None
        try:
            with open_regular(file) as stream:
                size = os.fstat(stream.fileno()).st_size
                if max_bytes is not None and size > max_bytes:
                    return DAMAGED
                return _read_json(stream, key) if self.suffix == ".json" else _read_npz(stream, size, key)
        except Exception:  # a damaged file fails in a dozen ways, in json, zipfile, zlib, struct and numpy
            return DAMAGED

    def save(self, key: Key, value: Any) -> None:
        """Store a result atomically."""
        file = self.file(key)
        write = _write_json if self.suffix == ".json" else _write_npz
        try:
            self._make_folder(file.parent)
            write_atomically(file, lambda stream: write(stream, key, value))
        except NotAFileError:
            raise
        except OSError as error:
            raise OSError(
                f"{file} cannot be written to ({error}). The results so far are kept: free disk space and run it "
                "again to resume."
            ) from error

    def _make_folder(self, place: Path) -> None:
        """Create the folder of a result. The store itself may be a link, but no link is followed in it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        folder = self.folder
        for name in place.relative_to(self.folder).parts:
            folder = folder / name
            folder.mkdir(exist_ok=True)
            if folder.is_symlink():
                raise NotAFileError(
                    f"{folder}: a symbolic link, where a folder is needed. Remove it, or name another place."
                )


def _seal(key: Key, content: Any) -> str:
    return hash_of(key.hash, content)


def _write_json(stream: BinaryIO, key: Key, value: Any) -> None:
    content = json.dumps(value)
    stream.write(HEAD % _seal(key, content).encode() + content.encode() + TAIL)


def _read_json(stream: BinaryIO, key: Key) -> Any:
    """Return the value of a file that is sealed under a key; nothing is parsed before the seal is verified."""
    text = stream.read()
    head = HEAD % (b"0" * 64)
    content = text[len(head) : -len(TAIL)].decode()
    if text != HEAD % _seal(key, content).encode() + content.encode() + TAIL:
        raise ValueError("The seal is that of another result.")
    return json.loads(content)


def _write_npz(stream: BinaryIO, key: Key, value: dict[str, Any]) -> None:
    np.savez(stream, seal=np.array(_seal(key, _digests(value))), **value)


def _read_npz(stream: BinaryIO, size: int, key: Key) -> dict[str, Any]:
    with np.load(stream, allow_pickle=False) as stored:
        # Archives of this store are not compressed: a file that grows when it is unpacked was not written here.
        if sum(member.file_size for member in stored.zip.infolist()) > size:
            raise ValueError("The archive is compressed.")
        arrays = {name: stored[name] for name in stored.files}
    seal = str(arrays.pop("seal"))
    if seal != _seal(key, _digests(arrays)):
        raise ValueError("The seal is that of another result.")
    return arrays


def _digests(arrays: dict[str, Any]) -> dict[str, str]:
    return {name: digest(array) for name, array in arrays.items()}
