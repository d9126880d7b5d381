"""Runs that are interrupted or terminated: nothing is written, earlier results stay, and the exit codes."""

from __future__ import annotations

import signal
import sys

import pytest
from cli_samples import contents, planted, write_table

from l20fs import cli
from l20fs.cli import run, select_pipeline
from l20fs.cli.interruption import Terminated, interruptible


@pytest.mark.parametrize(("number", "code", "word"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")])
def test_an_interrupted_run_ends_with_its_code_and_the_earlier_results(tmp_path, monkeypatch, capsys, number, code, word):
    X, labels, _ = planted(n_features=8)
    arguments = ["select", write_table(tmp_path / "table.tsv", X, labels), "--target=type", "-o", str(tmp_path / "out")]
    assert run([*arguments, "-k", "3"]) == 0
    before = contents(tmp_path)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let programs in the background ignore it
    monkeypatch.setattr(select_pipeline, "predictions_by_k", lambda *_, **__: signal.raise_signal(getattr(signal, number)))
    monkeypatch.setattr(sys, "argv", ["l20fs", *arguments, "-k", "2", "--force"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    signal.signal(signal.SIGINT, handler)
    assert end.value.code == code
    assert f"{word}." in capsys.readouterr().err
    assert contents(tmp_path) == before


def test_the_signal_has_its_old_meaning_afterwards():
    before = signal.getsignal(signal.SIGTERM)
    with interruptible(), pytest.raises(Terminated):
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before
