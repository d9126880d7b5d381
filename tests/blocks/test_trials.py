"""Trial reading of HDF5 and Parquet files: whole ones pass, those at which the library hangs are refused."""

from __future__ import annotations

import subprocess
import sys

import files
import h5py
import numpy as np
import pytest
from platforms import needs_posix

from l20fs.blocks import open_large, trials
from l20fs.data.readers import DataError, read_table


@pytest.fixture
def damaged(tmp_path):
    """An AnnData file whose texts are in a heap of HDF5 with an object of no size: the library looks for ever behind it."""
    content = bytearray(files.h5ad(tmp_path))
    place = 0
    while (place := content.find(b"GCOL", place + 1)) > 0:
        content[place + 16 : place + 32] = bytes(16)  # number, references and size of the first object
    (tmp_path / "damaged.h5ad").write_bytes(content)
    return tmp_path / "damaged.h5ad"


def test_whole_files_pass(tmp_path):
    (tmp_path / "a.h5ad").write_bytes(files.h5ad(tmp_path))
    with h5py.File(tmp_path / "b.h5", "w") as stored:
        stored.create_dataset("large", shape=(2**21, 2), chunks=(2**10, 2), dtype="f8")  # not read, since it is large
        stored.create_dataset("texts", data=["a"] * 70_000, dtype=h5py.string_dtype())
        stored["out"], stored["away"] = h5py.SoftLink("/nowhere"), h5py.ExternalLink("other.h5", "X")
        stored["itself"] = stored["/"]
    for name in ("a.h5ad", "b.h5"):
        tried = trials.start_trial(tmp_path / name)
        assert tried.wait() == 0
        trials.finish_trial(tried, tmp_path / name)


def test_texts_in_one_large_chunk_are_unpacked_once(tmp_path, monkeypatch):
    with h5py.File(tmp_path / "a.h5", "w") as stored:  # as R packages write them, without a size of chunks
        stored.create_dataset("texts", (2**17,), h5py.string_dtype(), chunks=(2**17,), compression="gzip")[:] = "AAACCTGAG-1"
    opened = []
    monkeypatch.setattr(h5py, "File", lambda *given, **options: opened.append(options) or real(*given, **options))
    real = h5py._hl.files.File
    trials.read_on_trial(tmp_path / "a.h5")
    assert opened[0]["rdcc_nbytes"] >= trials.SMALL  # the largest chunk that is read


def test_a_file_is_tried_once_until_it_changes(tmp_path):
    file = tmp_path / "a.h5ad"
    file.write_bytes(files.h5ad(tmp_path))
    trials.finish_trial(trials.start_trial(file), file)
    assert trials.start_trial(file) is None
    file.write_bytes(file.read_bytes() + b"\0")
    trial = trials.start_trial(file)
    assert trial is not None
    trials.finish_trial(trial, file)


def test_what_is_merely_no_file_is_left_to_the_reader(tmp_path):
    (tmp_path / "a.h5ad").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(50))
    trials.finish_trial(trials.start_trial(tmp_path / "a.h5ad"), tmp_path / "a.h5ad")
    with pytest.raises(DataError, match="not a whole h5ad file"):
        read_table(tmp_path / "a.h5ad", "type")


def test_a_file_at_which_the_library_does_not_end_is_refused(damaged, monkeypatch):
    monkeypatch.setattr(trials, "start_trial", lambda file: limited(file, 1))
    with pytest.raises(DataError, match=r"damaged.h5ad: so damaged that the library"):
        read_table(damaged, "type")
    with pytest.raises(ValueError, match="so damaged"):
        open_large(damaged)


def limited(file, seconds):
    """Start a trial with less time."""
    code = "import h5py, sys; from l20fs.blocks.trials import limit_work, read_on_trial\n"
    code += f"limit_work(sys.argv[1], {seconds} + int(__import__('time').process_time())); read_on_trial(sys.argv[1])"
    return subprocess.Popen([sys.executable, "-c", code, str(file)])


def test_an_interpreter_that_cannot_be_started_is_no_obstacle(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    assert trials.start_trial("a.h5ad") is None
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert trials.start_trial("a.h5ad") is None
    trials.finish_trial(None, "a.h5ad")


def test_allocations_beyond_the_limit_end_the_trial(tmp_path, monkeypatch):
    with h5py.File(tmp_path / "a.h5", "w") as stored:
        stored["x"] = np.zeros(3)

    def fail(element):
        raise RuntimeError("memory allocation failed for chunk")

    monkeypatch.setattr(trials, "_read_values", fail)
    with pytest.raises(SystemExit):
        trials.read_on_trial(tmp_path / "a.h5")


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
