"""Trial reading of HDF5 and Parquet files: whole ones pass, those at which the library hangs are refused."""

from __future__ import annotations

import subprocess
import sys

import files
import numpy as np
import pytest
from platforms import needs_posix

from l20fs.data.readers import DataError, read_table, trials


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
    with pytest.raises(DataError, match=r"damaged.h5ad: so damaged that the library"):
        read_table(damaged, "type")


def limited(file, seconds):
    """Start a trial with less time."""
    code = "import h5py, sys; from l20fs.data.readers.trials import limit_work, read_on_trial\n"
    code += f"limit_work(sys.argv[1], {seconds} + int(__import__('time').process_time())); read_on_trial(sys.argv[1])"
    return subprocess.Popen([sys.executable, "-c", code, str(file)])


@needs_posix
def test_parquet_files_are_tried_too(tmp_path, monkeypatch):
    """Arrow ends the process at some damaged descriptions of columns; here the trial ends in the same way."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"type": ["u", "v"] * 4, "a": np.arange(8.0)}), file)
    tried = trials.start_trial(file)
    assert tried.wait() == 0
    trials.finish_trial(tried, file)
    assert read_table(file, "type").X.shape == (8, 1)
    aborting = [sys.executable, "-c", "import os, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.abort()"]
    monkeypatch.setattr(trials, "start_trial", lambda file: subprocess.Popen(aborting))
    with pytest.raises(DataError, match=r"a\.parquet: so damaged that the library which reads it crashes"):
        read_table(file, "type")
