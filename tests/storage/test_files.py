"""Writing of files: whole, with the user's permissions, over regular files only, and nothing left behind."""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
import threading

import pytest
from platforms import needs_linux, needs_posix

from l20fs.storage.files import write_atomically
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
    with pytest.raises(OSError, match=f"^{re.escape(str(tmp_path / 'x'))} cannot be written \\(No space left"):
        write_atomically(tmp_path / "x", fill)
    assert (tmp_path / "x").read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_names_of_any_length_and_alphabet(tmp_path):
    for name in ("x" * 200, "é" * 100, "🧬" * 60):
        write_atomically(tmp_path / name, write(b"x"))
        assert (tmp_path / name).read_bytes() == b"x"
