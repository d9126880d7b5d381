"""Standard input and pipes through the commands: the same results as from a file, and nothing left."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from contextlib import contextmanager

import h5py
import numpy as np
import pytest
from cli_samples import contents, planted, with_lonely, write_table
from platforms import needs_permissions, needs_posix

from l20fs.cli import incoming, run
from l20fs.cli.parameter_types import Names

pytestmark = needs_posix


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Folder with a table, its values without labels, its labels, and a table with folds."""
    folder = tmp_path_factory.mktemp("data")
    X, labels, _ = planted(n_features=6)
    write_table(folder / "table.tsv", X, with_lonely(labels))
    write_table(folder / "whole.tsv", X, labels)
    lines = (folder / "table.tsv").read_text().splitlines()
    (folder / "values.tsv").write_text("".join(line.partition("\t")[2] + "\n" for line in lines))
    (folder / "labels.txt").write_text("".join(line.partition("\t")[0] + "\n" for line in lines[1:]))
    return folder


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Nothing is left in the temporary folder after any test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@contextmanager
def open_pipe(content):
    """Yield the name that a shell gives for ``<( ... )``: of an unnamed pipe that holds something."""
    out, into = os.pipe()
    os.write(into, content)
    os.close(into)
    try:
        yield f"/dev/fd/{out}"
    finally:
        os.close(out)


@contextmanager
def standard_input(file):
    """Let a writer send a file into standard input; one that is not read to the end is told so."""
    out, into = os.pipe()
    before = os.dup(0)
    os.dup2(out, 0)
    os.close(out)

    def write():
        try:
            with open(into, "wb") as stream:
                stream.write(file.read_bytes())
        except BrokenPipeError:
            pass

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)
        writer.join()


def select(table, folder, *more):
    return run(["select", str(table), "-k", "2", "-o", str(folder), *map(str, more)])


def test_standard_input_is_read_as_a_file(data, tmp_path):
    assert select(data / "table.tsv", tmp_path / "file", "--target", "type") == 0
    with standard_input(data / "table.tsv"):
        assert select("-", tmp_path / "stream", "--target", "type") == 0
    of_file, of_stream = contents(tmp_path / "file"), contents(tmp_path / "stream")
    assert of_file["selection.tsv"] == of_stream["selection.tsv"]
    runs = [json.loads(each["run.json"]) for each in (of_file, of_stream)]
    assert runs[0]["input"] == runs[1]["input"]
    assert runs[1]["arguments"]["data"] == "-"
    assert b"standard input" in of_stream["report.html"]


def test_data_and_labels_come_from_different_streams(data, tmp_path):
    with open_pipe((data / "labels.txt").read_bytes()) as labels, standard_input(data / "values.tsv"):
        assert select("/dev/stdin", tmp_path / "out", "--labels", labels) == 0
    assert json.loads((tmp_path / "out" / "run.json").read_text())["arguments"]["labels"] == labels
    with standard_input(data / "labels.txt"):
        assert select(data / "values.tsv", tmp_path / "other", "--labels", "-") == 0
    assert contents(tmp_path / "out")["selection.tsv"] == contents(tmp_path / "other")["selection.tsv"]


def test_lists_panels_and_tables_come_from_pipes(data, tmp_path, capsys):
    with open_pipe(b"g5\ng4\n") as names:
        assert select(data / "table.tsv", tmp_path / "out", "--target", "type", "--include", f"@{names}") == 0
    assert {"g4", "g5"} <= set((tmp_path / "out" / "selection.tsv").read_text().split())
    with open_pipe((tmp_path / "out" / "panel.json").read_bytes()) as panel, standard_input(data / "values.tsv"):
        assert run(["predict", panel, "-"]) == 0
    assert "standard input: 60 samples" in capsys.readouterr().err
    with open_pipe(b"g1\ng2\n") as names, standard_input(data / "whole.tsv"):
        assert run(["validate", names, "-", "--target", "type", "-o", str(tmp_path / "validation")]) == 0
    assert json.loads((tmp_path / "validation" / "run.json").read_text())["arguments"]["panel"] == names


def test_an_endless_stream_ends_at_the_memory_limit(tmp_path, capsys):
    (tmp_path / "y.txt").write_bytes(b"y\n" * 2**21)
    with standard_input(tmp_path / "y.txt"):
        assert run(["select", "-", "--target", "type", "--max-memory", "3M"]) == 3
    assert "error: standard input: more than 3.0 MiB came" in capsys.readouterr().err


def test_a_terminal_is_refused_at_once(capsys):
    terminal, ours = os.openpty()
    before = os.dup(0)
    os.dup2(ours, 0)
    try:
        assert run(["select", "-", "--target", "type"]) == 2
    finally:
        os.dup2(before, 0)
        for each in (terminal, ours, before):
            os.close(each)
    assert "Standard input (-) is a terminal" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["interrupted", "terminated"])
def test_an_interrupt_while_a_stream_is_read_leaves_nothing(monkeypatch, capsys, word):
    from l20fs.cli.interruption import Terminated

    def stop(*given):
        raise KeyboardInterrupt if word == "interrupted" else Terminated

    monkeypatch.setattr(incoming, "_copy", stop)
    with open_pipe(b"a,b\n") as name:
        assert run(["select", name, "--target", "type"]) == (130 if word == "interrupted" else 143)
    assert f"{word}." in capsys.readouterr().err


@needs_permissions
def test_a_file_that_may_not_be_read_is_named(tmp_path, capsys):
    (tmp_path / "table.csv").touch(mode=0o200)
    assert run(["select", str(tmp_path / "table.csv"), "--target", "type"]) == 1
    [said] = capsys.readouterr().err.strip().splitlines()
    assert said == f"error: Permission denied: {tmp_path / 'table.csv'}"


def test_long_lists_of_names_are_no_file_names():
    names = [f"gene{i}" for i in range(500)]
    assert Names().convert(",".join(names), None, None) == names


def test_h5ad_through_a_pipe(tmp_path, capsys):
    with h5py.File(tmp_path / "x.h5ad", "w") as stored:
        stored["X"] = np.eye(3)
    with standard_input(tmp_path / "x.h5ad"):
        assert run(["select", "-", "--target", "type"]) == 3
    assert "standard input: holds 'X', but is neither an AnnData file" in capsys.readouterr().err
