"""Hash of the files that are read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from threading import Thread


class Digest:
    """SHA-256 of the concatenation of files, computed in a thread while they are read.

    Hashing takes as long as loading a sparse matrix. The thread is a daemon: after an error nothing waits for it.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._hash = hashlib.sha256()
        self._error: OSError | None = None
        self._thread = Thread(target=self._run, args=(files,), daemon=True)
        self._thread.start()

    def _run(self, files: Sequence[Path]) -> None:
        try:
            for file in files:
                with open(file, "rb", buffering=0) as stream:
                    hashlib.file_digest(stream, lambda: self._hash)
        except OSError as error:
            self._error = error

    def result(self) -> str:
        """Return the hash as text."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._hash.hexdigest()
