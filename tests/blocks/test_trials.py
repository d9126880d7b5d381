"""Trial reading of HDF5 and Parquet files: whole ones pass, those at which the library hangs are refused."""

from __future__ import annotations

import subprocess
import sys

import files
import pytest

from l20fs.blocks import open_large, trials


@pytest.fixture
def damaged(tmp_path):
    """An AnnData file whose texts are in a heap of HDF5 with an object of no size: the library looks for ever behind it."""
    content = bytearray(files.h5ad(tmp_path))
    place = 0
    while (place := content.find(b"GCOL", place + 1)) > 0:
        content[place + 16 : place + 32] = bytes(16)  # number, references and size of the first object
    (tmp_path / "damaged.h5ad").write_bytes(content)
    return tmp_path / "damaged.h5ad"


def test_a_file_at_which_the_library_does_not_end_is_refused(damaged, monkeypatch):
    monkeypatch.setattr(trials, "start_trial", lambda file: limited(file, 1))
    with pytest.raises(ValueError, match="so damaged"):
        open_large(damaged)


def limited(file, seconds):
    """Start a trial with less time."""
    code = "import h5py, sys; from l20fs.blocks.trials import limit_work, read_on_trial\n"
    code += f"limit_work(sys.argv[1], {seconds} + int(__import__('time').process_time())); read_on_trial(sys.argv[1])"
    return subprocess.Popen([sys.executable, "-c", code, str(file)])
