"""Files that users save: whole or not at all, and with the permissions of any new file."""

from __future__ import annotations

import errno
import os
import re

import numpy as np
import pytest
from platforms import needs_posix

from l20fs import L20Classifier, Panel


@pytest.fixture(scope="module")
def panel():
    X, y = np.eye(8), np.arange(8) // 4
    return L20Classifier(1, calibration=None).fit(X, y).to_panel(X, y)


def test_a_full_disk_names_the_file_and_leaves_the_old_one(tmp_path, monkeypatch, panel):
    def fill(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "x").write_text("old")
    monkeypatch.setattr(os, "fsync", fill)
    with pytest.raises(OSError, match=f"^{re.escape(str(tmp_path / 'x'))} cannot be written \\(No space left"):
        panel.save(tmp_path / "x")
    assert (tmp_path / "x").read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("name", ["x" * 200, "é" * 100, "🧬" * 60], ids=["long", "latin", "wide"])
def test_a_new_file_has_its_name_and_the_permissions_of_any_other(tmp_path, panel, name):
    panel.save(tmp_path / name)
    (tmp_path / "other").touch()
    assert (tmp_path / name).stat().st_mode == (tmp_path / "other").stat().st_mode
    assert Panel.load(tmp_path / name) == panel


@needs_posix
def test_a_folder_or_a_pipe_is_not_replaced(tmp_path, panel):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(OSError, match=f"{name}: not a regular file, and only such a file is replaced"):
            panel.save(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]
