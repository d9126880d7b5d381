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

from l20fs import L20Selector
from l20fs.cli import run
from l20fs.storage.files import claimed

STABLE = RESULTS | {"stability.tsv"}


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


@needs_posix
def test_c1_a_kill_at_any_moment_leaves_whole_sets_and_the_rerun_gives_the_same_bytes():
    tests = Path(__file__).parents[1]
    paths = os.pathsep.join([str(tests), *(path for path in sys.path if path)])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(tests / "kills.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "12 kills, 0 faults\n", done.stdout + done.stderr[-2000:]


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
    assert without_cells(results) == before


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
    assert without_cells(results) == before


def test_c2_the_folder_of_a_failed_run_goes_and_those_that_were_there_stay(tmp_path, table, monkeypatch):
    (tmp_path / "mine").mkdir()
    fail_from(monkeypatch, "replace", 1, OSError(errno.ENOSPC, "full"))
    assert run(["select", table, "--target", "type", "-o", str(tmp_path / "mine" / "new" / "deep")]) == 1
    assert list((tmp_path / "mine").iterdir()) == []


def test_c3_a_second_run_into_a_folder_is_refused(results, table, capsys):
    before = contents(results)
    arguments = ["select", table, "--target", "type", "-k", "2", "-o", str(results), "--force"]
    with claimed(results):
        assert run(arguments) == 1
    printed = capsys.readouterr()
    assert "another run is writing" in printed.err
    assert printed.out == ""
    assert contents(results) == before
    assert run(arguments) == 0


@needs_posix
def test_c3_the_claim_ends_with_its_process(tmp_path):
    folder = tmp_path / "out"
    code = (
        "import os, signal, sys; from pathlib import Path; from l20fs.storage.files import claimed\n"
        "with claimed(Path(sys.argv[1])): os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(folder)], check=False).returncode == -9
    with claimed(folder):
        pass


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


def without_cells(folder):
    """Everything but what is kept for a run that is resumed: the folds, the resamples, and whose they are."""
    kept = ("stability/", "folds/", ".run.json")
    return {name: content for name, content in contents(folder).items() if not name.startswith(kept)}


def interrupted(monkeypatch, arguments, n_cells):
    """Run until so many folds and resamples are stored, of which the folds are the first five."""
    with monkeypatch.context() as patch:
        fail_from(patch, "replace", n_cells + 2, KeyboardInterrupt())  # the first is that of .run.json
        assert run(arguments) == 130


@pytest.mark.parametrize("change", [["--ridge", "1"], ["--seed", "5"], ["-k", "2"], ["--scale", "none"]])
def test_c5_a_changed_configuration_never_mixes(tmp_path, table, monkeypatch, change):
    arguments = ["select", table, "--target", "type", "-k", "3", "--stability", "6"]
    interrupted(monkeypatch, [*arguments, "-o", str(tmp_path / "out")], 8)
    assert len(contents(tmp_path / "out")) == 9
    assert run([*arguments, *change, "-o", str(tmp_path / "out"), "--resume"]) == 0
    assert run([*arguments, *change, "-o", str(tmp_path / "fresh")]) == 0
    assert without_cells(tmp_path / "out") == without_cells(tmp_path / "fresh")


def test_c5_changed_data_never_mix(tmp_path, table, monkeypatch):
    X, labels, _ = planted(n_features=8, random_state=1)
    file = tmp_path / "table.tsv"
    shutil.copy(table, file)
    arguments = ["select", str(file), "--target", "type", "-k", "3", "--stability", "6"]
    interrupted(monkeypatch, [*arguments, "-o", str(tmp_path / "out")], 8)
    write_table(file, X, labels)
    assert run([*arguments, "-o", str(tmp_path / "out"), "--resume"]) == 0
    assert run([*arguments, "-o", str(tmp_path / "fresh")]) == 0
    assert without_cells(tmp_path / "out") == without_cells(tmp_path / "fresh")


def test_c5_results_of_another_run_are_not_resumed(results, table, capsys):
    before = contents(results)
    arguments = ["select", table, "--target", "type", "-o", str(results), "--resume"]
    assert run([*arguments, "-k", "2"]) == 2
    assert "another run (other arguments)" in capsys.readouterr().err
    assert contents(results) == before
    assert run([*arguments, "-k", "3"]) == 0
    assert contents(results) == before
    (results / "run.json").write_text("{")
    assert run([*arguments, "-k", "3"]) == 2


def test_an_unfinished_run_is_not_overlooked(tmp_path, table, monkeypatch, capsys):
    arguments = ["select", table, "--target", "type", "-k", "3", "--stability", "6", "-o", str(tmp_path / "out")]
    interrupted(monkeypatch, arguments, 2)
    assert run(arguments) == 2
    assert "--resume to go on" in capsys.readouterr().err
    assert run([*arguments, "--force"]) == 0
    assert without_cells(tmp_path / "out").keys() == STABLE


@pytest.mark.parametrize("n_kept", [3, 9, 33])
def test_a_resumed_run_computes_only_what_is_missing(tmp_path, table, monkeypatch, n_kept):
    """Five folds, five times five inner ones and six resamples."""
    arguments = ["select", table, "--target", "type", "--auto", "best", "--nested", "--stability", "6"]
    arguments += ["-o", str(tmp_path / "out")]
    interrupted(monkeypatch, arguments, n_kept)
    cells = {file: file.stat().st_mtime_ns for file in (tmp_path / "out").glob("*/*")}
    assert len(cells) == n_kept
    n_fits, fit = [], L20Selector.fit
    monkeypatch.setattr(L20Selector, "fit", lambda self, *given, **named: n_fits.append(1) or fit(self, *given, **named))
    assert run([*arguments, "--resume"]) == 0
    assert len(n_fits) == 1 + 5 + 25 + 6 - n_kept
    assert len(list((tmp_path / "out" / "stability").iterdir())) == 6
    assert not (tmp_path / "out" / "folds").exists()
    assert run([*arguments[:-1], str(tmp_path / "whole")]) == 0
    assert without_cells(tmp_path / "out") == without_cells(tmp_path / "whole")


def test_a_finished_run_is_not_repeated(results, table, monkeypatch, capsys):
    before = {file: file.stat().st_mtime_ns for file in results.iterdir()}
    arguments = ["select", table, "--target", "type", "-k", "3", "-o", str(results), "--resume"]
    with monkeypatch.context() as patch:
        patch.setattr(L20Selector, "fit", lambda *given, **named: pytest.fail("there was nothing to do"))
        assert run(arguments) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"Nothing to do: the run in {results}/ is finished.\nLook at {results / 'report.html'}" in printed.err
    assert {file: file.stat().st_mtime_ns for file in results.iterdir()} == before
    (results / "cv.tsv").unlink()
    assert run(arguments) == 0
    assert {file.name for file in results.iterdir()} == {file.name for file in before}


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
