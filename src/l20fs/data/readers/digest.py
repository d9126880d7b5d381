"""Content of the files that are read, and its hash: what is hashed is what was read, or the reading is refused."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from threading import Thread

from l20fs.data.readers.file_guard import Stamp, changed_file, hash_files
from l20fs.data.readers.limits import check_memory
from l20fs.data.readers.table import DataError, Request

#: Bytes that a file may have beyond the size that the system states, as files of /proc do.
UNSTATED = 2**20

#: Files of fewer bytes are hashed before they are read, and not meanwhile.
SMALL = 2**24


def open_file(request: Request) -> BufferedReader:
    """Open the file of a request, or raise an error if it is no regular file."""
    file = request.file
    if file.exists() and not file.is_file():
        raise DataError(f"{file}: not a regular file. Save it to a file first.")
    return open(file, "rb")


def read_file(request: Request, memory_per_byte: int = 1) -> bytes:
    """Return the content of the file of a request, which did not change meanwhile, after a check of the memory for it."""
    with open_file(request) as stream:
        before = Stamp.of(os.fstat(stream.fileno()))
        check_memory(memory_per_byte * before.size, request)
        most = max(before.size, UNSTATED)
        content = stream.read(most + 1) or b""
        after = Stamp.of(os.fstat(stream.fileno()))
        if len(content) > most:
            raise changed_file(request.name)
        if after != before or before.is_young:
            stream.seek(0)
            if hashlib.file_digest(stream, "sha256").digest() != hashlib.sha256(content).digest():
                raise changed_file(request.name)
    return content


class Digest:
    """SHA-256 of what is read, computed in a thread meanwhile: of content in memory, or of files that a library opens.

    Hashing takes as long as loading a sparse matrix. The thread is a daemon: after an error nothing waits for it.

    Parameters
    ----------
    table : bytes, or sequence of paths
        Content, or the files, in this order.
    request : Request
        Names the table and the file of labels, whose content follows.
    """

    def __init__(self, table: bytes | Sequence[Path], request: Request) -> None:
        self._request = request
        self._files = [] if isinstance(table, bytes) else list(table)
        self._before = self._stamps()
        labels = b"" if request.labels is None else read_file(replace(request, file=request.labels))
        self._of_labels = hashlib.sha256(labels).digest()
        self._of_table, self._of_all = "", ""
        self._error: OSError | None = None
        self._is_of_before = False
        self._is_young = any(stamp.is_young for stamp in self._before)
        self._thread = Thread(target=self._run, args=(table if isinstance(table, bytes) else b"", labels), daemon=True)
        self._thread.start()
        if self._files and (self._is_young or sum(stamp.size for stamp in self._before) < SMALL):
            self._thread.join()

    def result(self) -> str:
        """Return the hash as text, or raise an error if a file changed since; the times say whether to hash it again."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        try:
            now = self._stamps()
            if now == self._before and not self._is_young:
                return self._of_all
            labels = self._request.labels
            if labels is not None and hash_files([labels]).digest() != self._of_labels:
                raise changed_file(labels.name)
            if self._files and not self._is_same(now):
                raise changed_file(self._request.name)
        except OSError as error:  # removed
            raise changed_file(Path(error.filename or self._request.name).name) from error
        return self._of_all

    @property
    def of_table(self) -> str:
        """Hash of the table alone, without the labels."""
        self._thread.join()
        return self._of_table

    def _is_same(self, now: list[Stamp]) -> bool:
        # A change during the hashing may have come before or after what it changed was read: no hash can tell.
        pairs = zip(self._before, now, strict=True)
        is_known = self._is_of_before or all(before.has_same_content(after) for before, after in pairs)
        return is_known and hash_files(self._files).hexdigest() == self._of_table

    def _run(self, content: bytes, labels: bytes) -> None:
        try:
            found = hash_files(self._files, content)
            self._of_table = found.hexdigest()
            found.update(labels)
            self._of_all = found.hexdigest()
            self._is_of_before = self._stamps() == self._before
        except OSError as error:
            self._error = error

    def _stamps(self) -> list[Stamp]:
        labels = [] if self._request.labels is None else [self._request.labels]
        return [Stamp.of(os.stat(file)) for file in (*self._files, *labels)]
