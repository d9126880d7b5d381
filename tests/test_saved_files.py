"""Files that users save: whole or not at all, and with the permissions of any new file."""

from __future__ import annotations

import errno
import os
import re

import numpy as np
import pytest
from platforms import needs_posix

from l20fs import L20Selector, SolutionPath


@pytest.fixture(scope="module")
def path():
    return L20Selector(1).fit(np.eye(4), [0, 0, 1, 1]).path_


def test_a_full_disk_names_the_file_and_leaves_the_old_one(tmp_path, monkeypatch, path):
    def fill(stream, **_):
        stream.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "x").write_text("old")
    monkeypatch.setattr(np, "savez_compressed", fill)
    with pytest.raises(OSError, match=f"^{re.escape(str(tmp_path / 'x'))} cannot be written \\(No space left"):
        path.save(tmp_path / "x")
    assert (tmp_path / "x").read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("name", ["x" * 200, "é" * 100, "🧬" * 60], ids=["long", "latin", "wide"])
def test_a_new_file_has_its_name_and_the_permissions_of_any_other(tmp_path, path, name):
    path.save(tmp_path / name)
    (tmp_path / "other").touch()
    assert (tmp_path / name).stat().st_mode == (tmp_path / "other").stat().st_mode
    np.testing.assert_array_equal(SolutionPath.load(tmp_path / name).losses, path.losses)


@needs_posix
def test_a_folder_or_a_pipe_is_not_replaced(tmp_path, path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(OSError, match=f"{name}: not a regular file, and only such a file is replaced"):
            path.save(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]
