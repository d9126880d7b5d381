"""Files that change while they are read: what was read is what was hashed, or nothing is read."""

from __future__ import annotations

import gzip
import hashlib
import os
from functools import partial

import files
import pytest
from platforms import needs_linux, needs_posix

from l20fs.blocks.file_guard import ChangedFileError
from l20fs.data import readers
from l20fs.data.readers import DataError, detect, digest, read_table
from l20fs.data.readers.digest import Digest, read_file
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
    read = digest.open_regular

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

    monkeypatch.setattr(digest, "open_regular", lambda file: Torn(read(file)))
    with pytest.raises(ChangedFileError, match=r"table\.csv " + MESSAGE):
        read_file(Request(table))


def test_a_file_that_is_only_touched_is_read(table, monkeypatch):
    def touch():
        os.utime(table)
        table.chmod(0o600)
        os.link(table, table.with_suffix(".link"))

    after(monkeypatch, digest, "check_memory", touch)
    assert read_table(table, "type").X.shape == (4, 2)


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    return folder, files.lay_out(folder)


@pytest.mark.parametrize("kind", [detect.PARQUET, detect.H5AD, detect.TENX], ids=lambda kind: kind.name)
@pytest.mark.parametrize("is_same", [True, False])
def test_files_that_libraries_read_are_hashed_again_after_a_change(laid_out, monkeypatch, kind, is_same):
    folder, options = laid_out
    name = next(name for name in options if detect.named_kind(folder / name) == kind)
    file, reader = folder / name, readers.OF_FILE[kind]
    content = file.read_bytes()
    other = content if is_same else content[:-1] + bytes([content[-1] ^ 1])

    def read(request):
        found = reader(request)
        overwrite(file, other)
        return found

    monkeypatch.setitem(readers.OF_FILE, kind, read)
    if is_same:
        assert read_table(file, **options[name]).sha256
        return
    with pytest.raises(ChangedFileError, match=f"{name} {MESSAGE}"):
        read_table(file, **options[name])
    overwrite(file, content)


def test_labels_that_change_are_refused_by_their_name(table, monkeypatch):
    table.write_bytes(b"a,b\n1,2\n3,4\n5,6\n7,8\n")
    labels = table.with_name("labels.txt")
    labels.write_text("u\nu\nv\nv\n")
    after(monkeypatch, readers, "add_labels", lambda: overwrite(labels, b"v\nv\nu\nu\n"))
    with pytest.raises(ChangedFileError, match=r"labels\.txt " + MESSAGE):
        read_table(table, labels=labels)


def test_labels_that_vanish_are_refused_by_their_name(table, monkeypatch):
    table.write_bytes(b"a,b\n1,2\n3,4\n5,6\n7,8\n")
    labels = table.with_name("labels.txt")
    labels.write_text("u\nu\nv\nv\n")
    after(monkeypatch, readers, "add_labels", labels.unlink)
    monkeypatch.setattr(Digest, "_run", lambda *given: None)
    with pytest.raises(ChangedFileError, match=r"labels\.txt " + MESSAGE):
        read_table(table, labels=labels)


def test_a_hash_of_table_and_labels_is_that_of_both(table):
    table.write_bytes(b"a,b\n1,2\n3,4\n5,6\n7,8\n")
    labels = table.with_name("labels.txt")
    labels.write_text("u\nu\nv\nv\n")
    both = table.read_bytes() + labels.read_bytes()
    assert read_table(table, labels=labels).sha256 == hashlib.sha256(both).hexdigest()


ODD = [pytest.param("a\tb\n.csv", marks=needs_posix), pytest.param("\udcff.csv", marks=needs_linux)]


@pytest.mark.parametrize("name", ["naïve table.csv", "-", "x" * 200 + ".csv", *ODD])
def test_files_may_have_odd_names(tmp_path, name):
    (tmp_path / name).write_bytes(BEFORE)
    assert read_table(tmp_path / name, "type").X.shape == (4, 2)


@needs_posix
def test_what_is_no_file_is_refused(tmp_path, table):
    os.mkfifo(tmp_path / "pipe")
    table.write_bytes(b"a,b\n1,2\n3,4\n5,6\n7,8\n")
    for file, labels in ((tmp_path / "pipe", None), (table, tmp_path / "pipe")):
        with pytest.raises(DataError, match="pipe: a pipe, where a regular file is needed"):
            read_table(file, labels=labels)
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "nothing.csv", "type")


def test_more_than_a_file_states_is_not_read(table, monkeypatch):
    """Files of /proc state no size; an endless one would fill the memory."""
    monkeypatch.setattr(digest.Stamp, "of", classmethod(lambda cls, status: cls(0, 0, 0, 0, ())))
    assert read_file(Request(table)) == BEFORE
    monkeypatch.setattr(digest, "UNSTATED", 10)
    with pytest.raises(ChangedFileError):
        read_file(Request(table))
