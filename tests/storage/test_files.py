"""Writing of files: whole, with the user's permissions, over regular files only, and nothing left behind."""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
import subprocess
import sys
import threading

import pytest
from platforms import needs_linux, needs_posix

from l20fs.storage import files
from l20fs.storage.files import PART, check_writable, claimed, stage, sweep, write_atomically
from l20fs.storage.regular_files import NotAFileError


def write(content):
    return lambda stream: stream.write(content)


def test_permissions_are_those_of_a_new_file_and_the_umask_is_left_alone(tmp_path, monkeypatch):
    """The umask belongs to the whole process: another thread would make a file that everybody may write to."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask was changed"))
    modes = set()

    def create(number):
        for each in range(20):
            file = tmp_path / f"{number}-{each}"
            (write_atomically(file, write(b"x")) if number % 2 else file.write_bytes(b"x"))
            modes.add(stat.S_IMODE(file.stat().st_mode))

    threads = [threading.Thread(target=create, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(modes) == 1
    assert len(os.listdir(tmp_path)) == 80


OF_POSIX = [pytest.param(kind, marks=needs_posix) for kind in ("link", "dangling link", "pipe", "socket")]


@pytest.mark.parametrize("kind", ["folder", *OF_POSIX])
def test_only_a_regular_file_is_replaced(tmp_path, monkeypatch, kind):
    file, other = tmp_path / "x", tmp_path / "other"
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            monkeypatch.chdir(tmp_path)  # a socket may have no long name
            made.bind(file.name)
    else:
        file.symlink_to(other)
        if kind == "link":
            other.write_text("mine")
    before = os.lstat(file)
    with pytest.raises(NotAFileError, match=r"x: a .*, and only a regular file is replaced"):
        write_atomically(file, write(b"x"))
    assert os.lstat(file) == before
    assert other.exists() == (kind == "link")
    assert {each.name for each in tmp_path.iterdir()} <= {"x", "other"}


@needs_linux
def test_a_device_is_not_replaced():
    with pytest.raises(NotAFileError, match="/dev/full: a device"):
        write_atomically("/dev/full", write(b"x"))


def test_a_full_disk_names_the_file_and_leaves_the_old_one(tmp_path):
    def fill(stream):
        stream.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "x").write_text("old")
    with pytest.raises(OSError, match=f"^{re.escape(str(tmp_path / 'x'))} cannot be written \\(No space left") as caught:
        write_atomically(tmp_path / "x", fill)
    assert caught.value.errno == errno.ENOSPC
    assert (tmp_path / "x").read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


@needs_posix
def test_what_a_killed_run_left_is_swept_and_what_is_alive_or_mine_is_not(tmp_path):
    code = "import os, signal, sys; from pathlib import Path; from l20fs.storage.files import stage\n"
    code += "stage(Path(sys.argv[1]), lambda s: s.write(b'x')); os.kill(os.getpid(), signal.SIGKILL)"
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "dead")], check=False).returncode == -9
    (left,) = os.listdir(tmp_path)
    assert PART.fullmatch(left)
    alive = stage(tmp_path / "alive", write(b"y"))
    mine = [".mine.part", "x.0123456789abcdef.part", ".x.0123.part", ".tmpabcd.0123456789ABCDEF.part"]
    for name in mine:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".link.0123456789abcdef.part").symlink_to("mine")
    sweep(tmp_path)
    assert set(os.listdir(tmp_path)) == {alive.part.name, *mine, ".link.0123456789abcdef.part"}
    alive.put()
    assert (tmp_path / "alive").read_bytes() == b"y"
    sweep(tmp_path / "nothing")


@needs_posix
def test_a_part_that_was_swept_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    lock, n_locks = files.fcntl.flock, []

    def flock(descriptor, how):
        n_locks.append(how)
        if len(n_locks) == 1:
            sweep(tmp_path)
        lock(descriptor, how)

    monkeypatch.setattr(files.fcntl, "flock", flock)
    write_atomically(tmp_path / "x", write(b"x"))
    assert os.listdir(tmp_path) == ["x"]


def test_names_of_any_length_and_alphabet(tmp_path):
    for name in ("x" * 200, "é" * 100, "🧬" * 60):
        write_atomically(tmp_path / name, write(b"x"))
        assert (tmp_path / name).read_bytes() == b"x"


@pytest.mark.parametrize("call", ["write", "fsync", "little room"])
def test_a_folder_without_room_is_told_before_the_work(tmp_path, monkeypatch, call):
    class Full:
        def __enter__(self):
            return self

        def __exit__(self, *given):
            return False

        def fileno(self):
            return -1

        def flush(self):
            pass

        def write(self, content):
            if call == "write" or (call == "little room" and len(content) > 2**18):
                raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    def fsync(descriptor):
        if call == "fsync":
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(files.tempfile, "TemporaryFile", lambda dir: Full())
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match=r"cannot be written to \(Disk quota exceeded\)\. Name another folder"):
        check_writable(tmp_path / "new")


@pytest.mark.parametrize("there", [True, False])
def test_without_fcntl_a_folder_is_locked_by_filelock(tmp_path, monkeypatch, there):
    """As on Windows; the lock file is not in the folder, and a folder that is left empty by an error is removed."""
    pytest.importorskip("filelock")
    monkeypatch.setattr(files, "fcntl", None)
    folder = tmp_path / "out"
    if there:
        folder.mkdir()
    with claimed(folder):
        assert list(tmp_path.rglob("*")) == [folder]
        with pytest.raises(BlockingIOError, match="out: another run is writing into this folder"), claimed(folder):
            pass
        with claimed(tmp_path / "other"):
            pass
    with pytest.raises(KeyError), claimed(folder):
        raise KeyError
    assert folder.exists()
    with pytest.raises(KeyError), claimed(folder / "new"):
        raise KeyError
    assert not (folder / "new").exists()
    monkeypatch.setitem(sys.modules, "filelock", None)
    with claimed(folder), claimed(folder):  # no lock is better than no results
        pass
