"""What can go wrong with the command line and the files it writes: the lines C1 to C8 of the list of faults."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_samples import RESULTS, contents, page_data, planted, read_tsv, start, with_lonely, write_table
from platforms import needs_posix

from l20fs.cli import run


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    X, labels, _ = planted(n_features=8)
    return write_table(tmp_path_factory.mktemp("data") / "table.tsv", X, labels)


@pytest.fixture(scope="module")
def first_results(tmp_path_factory, table):
    folder = tmp_path_factory.mktemp("first") / "out"
    assert run(["select", table, "--target", "type", "-k", "3", "-o", str(folder)]) == 0
    return folder


@pytest.fixture
def results(tmp_path, first_results):
    return Path(shutil.copytree(first_results, tmp_path / "results"))


KILLED = """
import os, signal, sys
from l20fs.cli import run
os.replace = lambda *given: os.kill(os.getpid(), signal.SIGKILL)
run(sys.argv[1:])
"""


@needs_posix
def test_c1_a_run_that_is_killed_while_it_writes_leaves_the_earlier_results(results, table):
    before = contents(results)
    arguments = ["select", table, "--target", "type", "-k", "2", "-o", str(results), "--force"]
    assert subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False).returncode == -9
    assert {name: content for name, content in contents(results).items() if name[0] != "."} == before
    assert run(arguments) == 0
    assert contents(results).keys() == before.keys(), "what the killed run left is gone"


def fail_from(monkeypatch, name, call, error):
    """Let ``os.<name>`` raise ``error`` from its ``call``-th call on."""
    original, n_calls = getattr(os, name), 0

    def failing(*arguments):
        nonlocal n_calls
        n_calls += 1
        if n_calls >= call:
            raise error
        return original(*arguments)

    monkeypatch.setattr(os, name, failing)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), 1, "No space left"),
        (OSError(errno.EROFS, os.strerror(errno.EROFS)), 1, "Read-only file system"),
        (PermissionError(errno.EACCES, os.strerror(errno.EACCES)), 1, "Permission denied"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
@pytest.mark.parametrize(("name", "call"), [("replace", 1), ("fsync", 1), ("fsync", 3)])
def test_c2_a_failed_write_leaves_the_old_results(monkeypatch, results, table, capsys, name, call, error, code, message):
    before = contents(results)
    fail_from(monkeypatch, name, call, error)
    assert run(["select", table, "--target", "type", "-k", "2", "-o", str(results), "--force"]) == code
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""
    assert contents(results) == before


@needs_posix
def test_c2_a_full_disk(results, table):
    """A limit on the size of files stands for a disk that is full: the system refuses the rest of a write."""
    import resource

    before = contents(results)
    done = start(
        *("select", table, "--target", "type", "-k", "2", "-o", str(results), "--force"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)),
    )
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert b"error: " in done.stderr
    assert done.stdout == b""
    assert contents(results) == before


@pytest.mark.parametrize("name", ["../../etc/x", "a/b", "a\0b", "x" * 300, "srbct/../x", ""])
def test_c4_odd_names_of_data_write_nothing(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    assert run(["select", name, "--target", "type", "-o", "out"]) == 2
    assert "neither a file nor a built-in data set" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_c4_names_in_the_data_write_nothing_elsewhere(tmp_path):
    X, labels, _ = planted(n_features=4)
    labels = with_lonely(np.where(labels == "left", "../../x", labels))
    names = ["../../etc/x", "/etc/passwd", "a/b", "x" * 300]
    file = write_table(tmp_path / "table.tsv", X, labels, names)
    assert run(["select", file, "--target", "type", "-o", str(tmp_path / "deep" / "out")]) == 0
    assert contents(tmp_path).keys() == {"table.tsv", *(f"deep/out/{name}" for name in RESULTS)}


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_c6_stdout_that_nobody_reads(results, table, options):
    reading, writing = os.pipe()
    os.close(reading)
    folder = results.parent / "unread"
    try:
        done = start("select", table, "--target", "type", "-k", "3", "-o", str(folder), *options, stdout=writing)
    finally:
        os.close(writing)
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    assert done.returncode == 0
    assert contents(folder) == contents(results)


@pytest.mark.parametrize(
    "environment",
    [
        {"LANG": "C", "LC_ALL": "C", "NO_COLOR": "1"},
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "20", "HOME": ""},
    ],
)
def test_c6_poor_terminals_and_utf8_in_names(tmp_path, environment):
    X, labels, informative = planted()
    names = [f"g{j}" for j in range(X.shape[1])]
    names[informative[0]] = "gène"
    folder = tmp_path / "mes données ☃"
    folder.mkdir()
    file = write_table(folder / "tumeurs épithéliales.tsv", X, with_lonely(labels), names)
    Path(file).write_text(Path(file).read_text(encoding="utf-8").replace("type", "catégorie", 1), encoding="utf-8")
    options = ["--target", "catégorie", "-k", "11", "--include", "gène", "-o", str(folder / "out")]
    done = start("select", file, *options, environment=environment)
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    assert b"60 samples" in done.stderr
    assert "gène" in [row["feature"] for row in read_tsv(folder / "out" / "selection.tsv")]
    assert page_data(folder / "out")["title"] == "tumeurs épithéliales.tsv"
    stored = json.loads((folder / "out" / "run.json").read_text(encoding="utf-8"))["arguments"]
    assert (stored["data"], stored["target"]) == (file, "catégorie")


def test_c7_a_formula_is_written_as_it_is(tmp_path):
    X, labels, informative = planted()
    names = [f"g{j}" for j in range(X.shape[1])]
    names[informative[0]] = "=cmd|'/c calc'!A1"
    file = write_table(tmp_path / "table.tsv", X, with_lonely(labels), names)
    assert run(["select", file, "--target", "type", "-k", "12", "-o", str(tmp_path / "out")]) == 0
    assert "\n=cmd|'/c calc'!A1\t" in (tmp_path / "out" / "selection.tsv").read_text()


def test_c8_no_home_and_no_network(tmp_path, table, monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", "USERPROFILE"):
        monkeypatch.delenv(name, raising=False)

    def refuse(*arguments, **named):
        raise AssertionError("nobody asked for a download")

    monkeypatch.setattr(socket, "socket", refuse)
    assert run(["select", table, "--target", "type", "-k", "3", "-o", str(tmp_path / "out")]) == 0
    assert contents(tmp_path / "out").keys() == RESULTS
