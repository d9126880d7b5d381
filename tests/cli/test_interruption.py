"""Runs that are interrupted or terminated: what is kept, how it goes on, and the exit codes."""

from __future__ import annotations

import re
import shlex
import signal
import sys

import pytest
from cli_samples import planted, write_table

from l20fs import cli
from l20fs.cli import interruption, run
from l20fs.cli.interruption import Terminated, interruptible
from l20fs.storage import keyed_store


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    X, labels, _ = planted(n_features=8)
    return write_table(tmp_path_factory.mktemp("data") / "my table.tsv", X, labels)


@pytest.fixture
def stopped(monkeypatch):
    """Return a function that runs the program until so many results are stored, and then sends it a signal."""
    write = keyed_store.write_atomically
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let programs in the background ignore it

    def start(arguments, number, n_kept):
        n_left = n_kept

        def write_and_stop(*given):
            nonlocal n_left
            write(*given)
            n_left -= 1
            if not n_left:
                signal.raise_signal(number)

        with monkeypatch.context() as patch:
            patch.setattr(keyed_store, "write_atomically", write_and_stop)
            patch.setattr(sys, "argv", ["l20fs", *arguments])
            with pytest.raises(SystemExit) as end:
                cli.main()
        return end.value.code

    yield start
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("number", "n_kept", "code", "kept"),
    [(signal.SIGINT, 3, 130, "interrupted: 3 folds kept in"), (signal.SIGTERM, 4, 143, "terminated: 4 folds kept in")],
)
def test_a_selection_says_what_is_kept_and_how_it_goes_on(tmp_path, table, stopped, capsys, number, n_kept, code, kept):
    folder = tmp_path / "out"
    arguments = ["select", table, "--target=type", "-k", "3", "--stability", "6", "-o", str(folder)]
    assert stopped(arguments, number, n_kept) == code
    said = capsys.readouterr().err
    assert f"{kept} {folder}/. Go on with: l20fs select " in said
    command = shlex.split(said.partition("Go on with: ")[2])
    assert command == ["l20fs", *arguments, "--resume"]
    assert stopped(command[1:], number, 1) == code
    again = shlex.split(capsys.readouterr().err.partition("Go on with: ")[2])
    assert again == command, "the option is given once"
    assert run(again[1:]) == 0
    assert (folder / "report.html").exists()


def test_a_run_that_was_to_replace_another_goes_on(tmp_path, table, stopped, capsys):
    folder = str(tmp_path / "out")
    assert run(["select", table, "--target=type", "-k", "3", "-o", folder]) == 0
    arguments = ["select", table, "--target=type", "-k", "2", "-o", folder, "--force"]
    assert stopped(arguments, signal.SIGINT, 2) == 130
    command = shlex.split(capsys.readouterr().err.partition("Go on with: ")[2])
    assert command[1:] == [*arguments, "--resume"]
    assert run(command[1:]) == 0
    assert len((tmp_path / "out" / "selection.tsv").read_text().splitlines()) == 3


def test_nothing_is_kept_without_a_folder_or_before_the_first_fold(tmp_path, table, monkeypatch, capsys):
    def interrupt(*given, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr("l20fs.cli.load.read_table", interrupt)
    assert run(["select", table, "--target=type"]) == 130
    assert "interrupted: nothing was kept." in capsys.readouterr().err
    arguments = ["select", table, "--target=type", "-o", str(tmp_path / "out")]
    assert run(arguments) == 130
    assert f"nothing was kept yet. Begin again with: {shlex.join(['l20fs', *arguments])}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_comparison_goes_on_with_the_same_command(tmp_path, table, stopped, capsys):
    arguments = ["compare", table, "--target=type", "--methods=FisherScore", "--sizes=2", "--splits=2", "--n-jobs=1"]
    arguments += ["-o", str(tmp_path / "out")]
    assert stopped(arguments, signal.SIGTERM, 4) == 143
    said = capsys.readouterr().err
    n_kept = int(re.search(r": (\d+) of 12 fits of 'comparison' kept in", said)[1])
    assert n_kept in (3, 4)  # the fourth is stored, but perhaps not yet counted
    assert shlex.split(said.partition("Go on with: ")[2]) == ["l20fs", *arguments]


def test_the_signal_has_its_old_meaning_afterwards():
    before = signal.getsignal(signal.SIGTERM)
    with interruptible(), pytest.raises(Terminated):
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize(
    ("typed", "called", "words"),
    [
        ("python -m l20fs select x", "/site/l20fs/__main__.py", "python -m l20fs"),
        (".venv/bin/python -m l20fs.cli select x", "/site/l20fs/cli/__main__.py", ".venv/bin/python -m l20fs.cli"),
        ("/venv/bin/python .venv/bin/l20fs select x", ".venv/bin/l20fs", ".venv/bin/l20fs"),
        ("/venv/bin/python /on/path/l20fs select x", "/on/path/l20fs", "l20fs"),
        ("python -m pytest select x", "/site/pytest/__main__.py", "l20fs"),
    ],
)
def test_the_command_is_called_as_it_was(monkeypatch, typed, called, words):
    monkeypatch.setattr(sys, "orig_argv", typed.split())
    monkeypatch.setattr(sys, "argv", [called, "select", "x"])
    monkeypatch.setattr(interruption.shutil, "which", lambda name: "/on/path/l20fs")
    assert interruption.program() == words.split()
