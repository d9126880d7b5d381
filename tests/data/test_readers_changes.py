"""Files that change while they are read: what was read is what was hashed, or nothing is read."""

from __future__ import annotations

import gzip
import hashlib
import os
from functools import partial

import pytest
from platforms import needs_posix

from l20fs.data import readers
from l20fs.data.readers import DataError, digest, read_table
from l20fs.data.readers.digest import read_file
from l20fs.data.readers.file_guard import ChangedFileError
from l20fs.data.readers.table import Request

BEFORE, AFTER = (f"type,a,b\nu,1,2\nu,3,4\nv,{x},6\nv,7,8\n".encode() for x in (5, 9))
MESSAGE = r"was changed while it was read. Wait until it is complete and start again."


@pytest.fixture
def table(tmp_path):
    (tmp_path / "table.csv").write_bytes(BEFORE)
    return tmp_path / "table.csv"


def overwrite(file, content):
    """Write into a file in place and restore its time, as rsync -t and cp -p do."""
    before = file.stat()
    with open(file, "r+b") as stream:
        stream.write(content)
        stream.truncate()
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def after(monkeypatch, owner, name, change):
    """Let something happen after a function was called."""
    function = getattr(owner, name)

    def call(*given, **more):
        found = function(*given, **more)
        change()
        return found

    monkeypatch.setattr(owner, name, call)


@pytest.mark.parametrize("pack", [bytes, partial(gzip.compress, mtime=0)])
def test_what_is_in_memory_is_hashed_and_not_the_file(table, monkeypatch, pack):
    table.write_bytes(pack(BEFORE))
    after(monkeypatch, readers, "read_file", lambda: overwrite(table, pack(AFTER)))
    found = read_table(table, "type")
    assert found.sha256 == hashlib.sha256(pack(BEFORE)).hexdigest()
    assert found.X[2, 0] == 5.0


@pytest.mark.parametrize("content", [AFTER, AFTER + b"v,9,9\n", AFTER[:-6]])
def test_a_file_that_changes_between_two_reads_of_it_is_refused(table, monkeypatch, content):
    """The size, the time of modification and the number of the file may all be those before."""
    read = digest.open_file

    class Torn:
        """Stream of a file that is overwritten right after it was read."""

        def __init__(self, stream):
            self.stream = stream

        def __enter__(self):
            return self

        def __exit__(self, *given):
            self.stream.close()

        def __getattr__(self, name):
            return getattr(self.stream, name)

        def read(self, size):
            found = self.stream.read(size)
            overwrite(table, content)
            return found

    monkeypatch.setattr(digest, "open_file", lambda request: Torn(read(request)))
    with pytest.raises(ChangedFileError, match=r"table\.csv " + MESSAGE):
        read_file(Request(table))


def test_labels_that_change_are_refused_by_their_name(table, monkeypatch):
    table.write_bytes(b"a,b\n1,2\n3,4\n5,6\n7,8\n")
    labels = table.with_name("labels.txt")
    labels.write_text("u\nu\nv\nv\n")
    after(monkeypatch, readers, "add_labels", lambda: overwrite(labels, b"v\nv\nu\nu\n"))
    with pytest.raises(ChangedFileError, match=r"labels\.txt " + MESSAGE):
        read_table(table, labels=labels)


@needs_posix
def test_what_is_no_file_is_refused(tmp_path, table):
    os.mkfifo(tmp_path / "pipe")
    table.write_bytes(b"a,b\n1,2\n3,4\n5,6\n7,8\n")
    for file, labels in ((tmp_path / "pipe", None), (table, tmp_path / "pipe")):
        with pytest.raises(DataError, match="pipe: not a regular file"):
            read_table(file, labels=labels)
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "nothing.csv", "type")
