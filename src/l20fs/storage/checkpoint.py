"""Results of long work, kept in one small file each, under a name that says what they are results of."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from l20fs.storage.files import write_atomically
from l20fs.typing import Array

#: Parameters that say how a result is reached or told, not what it is.
WITHOUT_EFFECT = frozenset({"callback", "verbose", "n_jobs", "checkpoint", "max_memory"})

#: Bytes that are hashed at a time, so that no copy of the data is made.
BLOCK = 2**24


class Picked(NamedTuple):
    """What a resample found: the best features, best first, of which the selector takes the first ``size``."""

    order: Array
    size: int


@dataclass(frozen=True)
class Checkpoint:
    """A folder with one file per resample.

    The name of a file is a hash of all that its content depends on, so that a result of other data or of another
    configuration is never taken; and the content is sealed with a hash of its own, so that a damaged one is not either.
    """

    folder: Path
    fingerprint: str
    n_features: int

    def load(self, resample: int) -> Picked | None:
        """Return what was stored for a resample; None if nothing was, or if it is damaged."""
        try:
            if os.path.getsize(self._file(resample)) > 16 * self.n_features + 1000:
                return None
            stored = json.loads(self._file(resample).read_bytes())
            picked = Picked(np.array(stored["order"], dtype=np.int32), int(stored["size"]))
            is_whole = stored["seal"] == self._seal(resample, picked)
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None
        return picked if is_whole else None

    def save(self, resample: int, picked: Picked) -> None:
        """Store what a resample found, whole or not at all."""
        content = {"order": picked.order.tolist(), "size": picked.size, "seal": self._seal(resample, picked)}
        write_atomically(self._file(resample), lambda stream: stream.write(json.dumps(content).encode()))

    def _file(self, resample: int) -> Path:
        return self.folder / f"resample-{resample:05d}-{hash_of(self.fingerprint, resample)[:32]}.json"

    def _seal(self, resample: int, picked: Picked) -> str:
        return hash_of(self.fingerprint, resample, picked.order.tolist(), picked.size)


def open_checkpoint(folder: str | os.PathLike[str], n_features: int, **causes: Any) -> Checkpoint:
    """Make sure that ``folder`` can be written to, and name what its files will depend on."""
    return Checkpoint(writable_folder(folder), hash_of(version("l20fs"), describe(causes, "checkpoint")), n_features)


def writable_folder(folder: str | os.PathLike[str]) -> Path:
    """Return a folder that can be written to, made if it is not there."""
    if not isinstance(folder, str | os.PathLike) or not os.fspath(folder):
        raise TypeError(f"checkpoint={folder!r} is not a folder. Give the path of one, or None.")
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise OSError(
            f"checkpoint={os.fspath(folder)!r} cannot be written to ({reason}). Give a folder that can."
        ) from error
    return path


def describe(value: Any, name: str) -> Any:
    """Return what JSON can tell of a parameter or of data, different for whatever differs.

    Examples
    --------
    >>> describe({"ridge": np.float64(0.5), "ks": (1, 2)}, "settings")
    {'ridge': 0.5, 'ks': [1, 2]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [describe(part, f"{name}[{i}]") for i, part in enumerate(value)]
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: describe(part, key) for key, part in value.items()}
        return [[describe(key, name), describe(part, f"{name}[{key!r}]")] for key, part in value.items()]
    if isinstance(value, np.ndarray) or sp.issparse(value):
        return {"digest": digest(value)}
    if hasattr(value, "get_params") and not isinstance(value, type):
        parameters = {key: part for key, part in value.get_params(deep=False).items() if key not in WITHOUT_EFFECT}
        return [f"{type(value).__module__}.{type(value).__qualname__}", describe(parameters, name)]
    raise TypeError(
        f"{name} is a {type(value).__name__}, of which a checkpoint cannot tell whether it is the same in a later run. "
        "Use a number, a word, an array or an estimator there, or no checkpoint."
    )


def digest(data: Any) -> str:
    """Return a hash of an array or a sparse matrix: of its type, its shape and every value.

    Examples
    --------
    >>> digest(np.eye(2)) == digest(np.asfortranarray(np.eye(2))), digest(np.eye(2)) == digest(np.eye(2, dtype=int))
    (True, False)
    """
    if sp.issparse(data):
        parts = [data.data, data.indices, data.indptr]
        return hash_of(data.format, data.shape, [digest(part) for part in parts])
    if data.dtype == object:
        return hash_of("object", [f"{type(cell).__name__} {cell}" for cell in data.flat])
    state = hashlib.sha256(f"{data.dtype.str} {data.shape}".encode())
    rows = np.atleast_1d(data)
    n_rows = max(1, BLOCK * len(rows) // max(1, rows.nbytes))
    for start in range(0, len(rows), n_rows):
        state.update(rows[start : start + n_rows].tobytes())
    return state.hexdigest()


def hash_of(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
