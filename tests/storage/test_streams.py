"""Pipes and standard input: read once and whole, waited for while somebody writes, and never left behind."""

from __future__ import annotations

import errno
import io
import os
import socket
import tempfile
import threading
from contextlib import contextmanager

import pytest
from pipe_samples import open_pipe
from platforms import needs_posix

from l20fs.storage import streams
from l20fs.storage.regular_files import LargeFileError, NotAFileError, open_regular, read_regular
from l20fs.storage.streams import copied, is_stream, pieces_of, read_once, sweep, title_of

pytestmark = needs_posix


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    return tmp_path / "temporary"


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "table.csv")
    return tmp_path / "table.csv"


@contextmanager
def written(pipe, *pieces):
    """Write pieces into a named pipe, one after the other."""

    def write():
        with open(pipe, "wb", buffering=0) as stream:
            for piece in pieces:
                stream.write(piece)

    writer = threading.Thread(target=write)
    writer.start()
    yield
    writer.join()


def unlimited(head):
    return None


def test_a_pipe_becomes_a_file_of_its_name_that_is_removed(pipe, folder):
    content = os.urandom(300_000)  # several times what a pipe holds
    with written(pipe, content[:7], content[7:]), copied(pipe, unlimited) as file:
        assert file.name == "table.csv"
        assert file.read_bytes() == content
        assert file.parent.stat().st_mode & 0o077 == 0
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("stop", [ValueError, KeyboardInterrupt])
def test_the_copy_is_removed_after_errors_and_interrupts(folder, stop):
    def read(name):
        with copied(name, unlimited) as file:
            assert file.read_bytes() == b"a,b\n"
            raise stop

    with open_pipe(b"a,b\n") as name, pytest.raises(stop):
        read(name)
    assert list(folder.iterdir()) == []


def test_an_interrupt_ends_the_wait_for_a_writer(pipe, folder, monkeypatch):
    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(streams, "_wait", interrupt)
    writer = os.open(pipe, os.O_RDWR)  # somebody who writes nothing
    with pytest.raises(KeyboardInterrupt), copied(pipe, unlimited):
        pass
    os.close(writer)
    assert list(folder.iterdir()) == []


def test_a_slow_writer_is_waited_for(pipe, monkeypatch):
    """Once somebody has a pipe open, nothing limits how slowly it writes."""
    out, wait, pauses = os.open(pipe, os.O_RDWR | os.O_NONBLOCK), streams._wait, []

    def write_late(descriptor):
        pauses.append(descriptor)
        if len(pauses) == 3:
            os.write(out, b"late")
            os.close(out)
        elif len(pauses) > 3:
            wait(descriptor)

    monkeypatch.setattr(streams, "_wait", write_late)
    monkeypatch.setattr(streams, "PATIENCE", 1e-9)
    assert b"".join(pieces_of(pipe)) == b"late"


def test_a_pipe_without_a_writer_is_refused(pipe, folder, monkeypatch):
    monkeypatch.setattr(streams, "PATIENCE", 0.05)
    for read in (lambda: read_once(pipe, 100), lambda: copied(pipe, unlimited).__enter__()):
        with pytest.raises(NotAFileError, match=r"table\.csv: a pipe that nobody writes to"):
            read()
    assert list(folder.iterdir()) == []


def test_empty_streams_are_empty():
    with open_pipe(b"") as name:
        assert read_once(name, 100) == b""


def test_names_of_streams():
    with open_pipe(b"x") as name:
        assert is_stream(name)
        assert title_of(name) == f"pipe {name.rpartition('/')[2]}"
    assert is_stream("-")
    for other in ("/dev/zero", __file__, "not there", "a\0b", "x" * 5000):
        assert not is_stream(other)


def test_a_connected_socket_is_a_stream_and_a_named_one_is_not(tmp_path):
    ours, theirs = socket.socketpair()  # the standard input of programs that other languages start
    with ours, theirs:
        theirs.sendall(b"a,b\n")
        theirs.shutdown(socket.SHUT_WR)
        assert read_once(f"/dev/fd/{ours.fileno()}", 100) == b"a,b\n"


def test_streams_end_at_their_limit(folder):
    with open_pipe(b"x" * 5000) as name, pytest.raises(LargeFileError, match="more than 1000 bytes came"):
        read_once(name, 1000)
    heads = []

    def limit(head):
        heads.append(head)
        return 1000

    with open_pipe(b"x" * 5000) as name, pytest.raises(LargeFileError), copied(name, limit):
        pass
    assert heads == [b"x" * streams.HEAD]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("fault", ["little room", "full"])
def test_a_full_disk_is_told_with_the_folder(folder, monkeypatch, fault):
    class FullFile(io.RawIOBase):
        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

    if fault == "full":
        monkeypatch.setattr(streams, "open", lambda *given, **more: FullFile(), raising=False)
    else:
        monkeypatch.setattr(streams, "SHARE_OF_DISK", 0.0)
    with open_pipe(b"abc") as name, pytest.raises(OSError, match="has no room for it") as caught, copied(name, unlimited):
        pass
    assert str(folder) in str(caught.value)
    assert "TMPDIR" in str(caught.value)
    assert list(folder.iterdir()) == []


def test_copies_of_killed_processes_are_removed(folder):
    old, used, young, foreign = (folder / name for name in ("l20fs-input-a", "l20fs-input-b", "l20fs-input-c", "other"))
    for place in (old, used, young, foreign):
        place.mkdir()
        (place / "table.csv").write_text("secret")
        os.utime(place, (1, 1))
    os.utime(young)
    with streams._locked(str(used)):
        sweep()
    assert not old.exists()
    assert used.exists()
    assert young.exists()
    assert foreign.exists()


def test_regular_files_only(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        before = os.getcwd()
        os.chdir(tmp_path)
        try:
            server.bind("socket")
        finally:
            os.chdir(before)
    for name, kind in (("pipe", "a pipe"), ("socket", "a socket"), (".", "a folder"), ("/dev/full", "a device")):
        with pytest.raises(NotAFileError, match=f": {kind}, where a regular file is needed"):
            open_regular(tmp_path / name)
    assert read_regular(tmp_path / "file", 5) == b"12345"
    with pytest.raises(LargeFileError):
        read_regular(tmp_path / "file", 4)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "nothing")
