"""Bad arguments, bad data and bad places end in one line and an exit code, and lose nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_samples import contents, start

import l20fs
from l20fs.cli import run

T = "{table}"
OWN = ("select", T, "--target", "type")

#: Arguments, exit code, and words that the line about it has.
REFUSED = [
    (["selekt"], 2, "Did you mean 'select'?"),
    (["select"], 2, "Missing argument 'DATA'"),
    (["select", "nowhere.csv"], 2, "'nowhere.csv' is no file. Give a table of samples, or demo"),
    (["select", "demo", "--target", "type"], 2, "The built-in set has its own classes"),
    (["select", T], 2, "type"),
    (["select", T, "--target", "tpye"], 2, "Did you mean 'type'?"),
    ([*OWN, "-k", "0"], 2, "Use auto or best or a whole number from 1 on."),
    ([*OWN, "-k", "1e3"], 2, "'1e3' is not valid"),
    ([*OWN, "-k", "13"], 3, "there are 12 features only"),
    ([*OWN, "--scoring", "acuracy"], 2, "Use one of accuracy, balanced_accuracy"),
    ([*OWN, "--scoring", "r2"], 3, ""),
    ([*OWN, "--stability", "1"], 2, "--stability"),
    ([*OWN, "--task", "clustering"], 2, "--task"),
    ([*OWN, "--include", "@none.txt"], 2, "cannot be read"),
    ([*OWN, "--include", ","], 2, "names nothing"),
    ([*OWN, "--include", "TP53"], 3, "TP53"),
    ([*OWN, "--log1p"], 3, "the table has negative values"),
    ([*OWN, "--config", "model.sovler=swap"], 2, "model.solver"),
    ([*OWN, "--config", "model.ridge=-1"], 2, "ridge='-1' is not valid"),
    ([*OWN, "--config", "search.seed=x"], 2, "seed='x' is not valid"),
    ([*OWN, "--config", "none.toml"], 2, "cannot be read"),
    ([*OWN, "--config", T], 2, "not a TOML file of settings"),
    ([*OWN, "--config", "constraints.costs={table}"], 2, "constraints.costs: the table has none of its features"),
    ([*OWN, "--config", "constraints.min_per_class=9"], 3, ""),
    (["predict", "nowhere", T], 2, "does not exist"),
    (["predict", ".", T], 2, "has no panel.json. Make one with"),
    (["predict", T, T], 3, ""),
    (["validate", "{results}", T, "--target", "tpye"], 2, "Did you mean 'type'?"),
    (["compare", T, "--target", "type", "--methods", "RSF"], 2, "The closest name is 'RFS'."),
    (["compare", T, "--target", "type", "--sizes", "2,x"], 2, "'x' is not valid"),
    (["compare", T, "--target", "type", "--sizes", "99"], 3, "99 is above the 12 features"),
]


@pytest.mark.parametrize(("arguments", "code", "words"), REFUSED, ids=[" ".join(each[0]) for each in REFUSED])
def test_one_line_and_an_exit_code(arguments, code, words, table, results, tmp_path, capsys):
    assert run([word.format(table=table, results=results) for word in arguments]) == code
    shown = capsys.readouterr()
    lines = [line for line in shown.err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert words in lines[0]
    assert contents(tmp_path) == {}


def test_earlier_results_are_overwritten_only_by_force(table, tmp_path, capsys):
    given = ["select", table, "--target", "type", "-k"]
    assert run([*given, "2"]) == 0
    (tmp_path / "l20fs-results/mine.txt").write_text("mine")
    before = contents(tmp_path)
    assert run([*given, "3"]) == 2
    assert re.search(
        r"l20fs-results has results of \d\d \w+ \d\d:\d\d\. Add --force to overwrite them\.", capsys.readouterr().err
    )
    assert contents(tmp_path) == before
    assert run([*given, "3", "--force"]) == 0
    after = contents(tmp_path)
    assert after.keys() == before.keys()
    assert after["l20fs-results/mine.txt"] == b"mine"
    assert after["l20fs-results/features.tsv"] != before["l20fs-results/features.tsv"]


@pytest.mark.parametrize("out", ["file", "file/below"])
def test_a_file_in_the_place_of_the_folder(out, table, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert run(["select", table, "--target", "type", "-k", "2", "-o", out]) == 1
    assert contents(tmp_path) == {"file": b"mine"}


@pytest.mark.parametrize("command", ["select", "predict", "validate", "compare"])
def test_a_folder_in_the_place_of_a_result(command, table, results, tmp_path):
    name = {"select": "report.html", "predict": "out.tsv", "validate": "validation.tsv", "compare": "comparison.html"}[
        command
    ]
    (tmp_path / "out" / name).mkdir(parents=True)
    arguments = {
        "select": [table, "--target", "type", "-o", "out"],
        "predict": [str(results), table, "-o", "out/out.tsv"],
        "validate": [str(results), table, "--target", "type", "-o", "out"],
        "compare": [table, "--target", "type", "-o", "out"],
    }[command]
    assert run([command, *arguments, *([] if command == "compare" else ["--force"])]) == 1
    assert contents(tmp_path) == {}


@pytest.mark.skipif(os.name != "posix", reason="a full device is a matter of POSIX")
def test_a_full_disk_leaves_earlier_results(table, tmp_path, monkeypatch, capsys):
    given = ["select", table, "--target", "type", "-k"]
    assert run([*given, "2"]) == 0
    before = contents(tmp_path)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert run([*given, "3", "--force"]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert contents(tmp_path) == before


@pytest.mark.skipif(os.name != "posix", reason="signals are a matter of POSIX")
def test_an_interrupted_run_writes_nothing(table, tmp_path):
    command = [sys.executable, "-m", "l20fs", "select", table, "--target", "type", "--stability", "50000"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
    )
    process.stderr.read(1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"interrupted." in said
    assert contents(tmp_path) == {}


def test_output_that_nobody_reads_is_no_error(table, results):
    command = f"{sys.executable} -m l20fs predict {results} {table} | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sample\tpredicted")
    assert "Traceback" not in done.stderr


def test_any_locale_name_and_home(table, tmp_path):
    """Hostile names in a plain locale: they are escaped, and the files have them as they are."""
    text = Path(table).read_text(encoding="utf-8").replace("g0\t", "gén\u202e\x1b[31m\t", 1)
    file = tmp_path / "Käse und Brot.tsv"
    file.write_text(text, encoding="utf-8")
    environment = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "HOME": "/nowhere", "PYTHONCOERCECLOCALE": "0"}
    done = start("select", str(file), "--target", "type", "-k", "12", environment=environment)
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout + done.stderr
    assert "gén\u202e" in (tmp_path / "l20fs-results/features.tsv").read_text(encoding="utf-8")


def test_an_unexpected_error_asks_for_a_report(table, monkeypatch, capsys):
    monkeypatch.setattr(l20fs.L20SelectorCV, "fit", lambda *_, **__: {}["lost"])
    monkeypatch.delenv("L20FS_DEBUG", raising=False)
    assert run(["select", table, "--target", "type"]) == 1
    assert "unexpected KeyError: 'lost'. Report it" in capsys.readouterr().err
    monkeypatch.setenv("L20FS_DEBUG", "1")
    with pytest.raises(KeyError, match="lost"):
        run(["select", table, "--target", "type"])
