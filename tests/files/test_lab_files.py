"""Files as laboratories have them: the first command of a newcomer ends in a page, or in one line that says what to do."""

from __future__ import annotations

import html
import json
from pathlib import Path

import numpy as np
import pytest
from lab_files import ALL, EVERYDAY, FRAME, GENES

from l20fs.cli import run
from l20fs.tables import read_table


def read(case, folder):
    """Read the table that a command reads, with the same options."""
    case.write(folder / case.name)
    words = iter(case.arguments(folder)[2:])
    options = {}
    for name, value in zip(words, words, strict=True):
        name, value = (
            value.removeprefix("input.").split("=", 1) if name == "--config" else (name[2:].replace("-", "_"), value)
        )
        options[name] = value.split(",") if name in ("na", "ignore") else value
    return read_table(folder / case.name, options.pop("target", None), **options)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_first_command(case, tmp_path, capsys):
    case.write(tmp_path / case.name)
    before, output = set(tmp_path.iterdir()), tmp_path / "results"
    code = run([*case.arguments(tmp_path), "-k", "3", "-o", str(output)])
    said = capsys.readouterr().err
    assert code == case.exit_code, said
    assert not [part for part in case.says if part not in said], said
    if case.exit_code:
        assert set(tmp_path.iterdir()) == before, "nothing is half-written"
        assert len([line for line in said.splitlines() if line.lower().startswith("error")]) == 1, said
        return
    assert (output / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    page = (output / "report.html").read_text(encoding="utf-8")
    assert all(part in html.unescape(page) for part in case.says), "what is decided is on the page, too"


@pytest.mark.parametrize("case", EVERYDAY, ids=lambda case: case.name)
def test_values(case, tmp_path):
    samples = read(case, tmp_path)
    expected = FRAME.to_numpy() if case.values is None else case.values()
    read_as = samples.X_before if np.isnan(expected).any() else samples.X
    np.testing.assert_allclose(read_as, expected, rtol=1e-12)
    assert np.isfinite(samples.X).all()


def test_genes_and_samples_are_named(tmp_path):
    samples = read(next(case for case in EVERYDAY if case.name == "write-table.txt"), tmp_path)
    assert samples.feature_names == GENES
    assert samples.sample_names == FRAME.index.tolist()


def test_a_command_shows_its_settings_file(tmp_path, capsys):
    case = next(case for case in EVERYDAY if case.name == "decimal-comma.csv")
    case.write(tmp_path / case.name)
    Path(tmp_path / "run.toml").write_text('[input]\ndecimal = ","\n[search]\nseed = 7\n[model]\nscale = "zscore"\n')
    words = ["select", str(tmp_path / case.name), "--target", "type", "-k", "2", "-o", str(tmp_path / "out")]
    assert run([*words, "--config", str(tmp_path / "run.toml"), "--config", "input.na=x,y"]) == 0
    given = json.loads((tmp_path / "out" / "panel.json").read_text(encoding="utf-8"))["provenance"]["settings"]
    assert given == {"input.decimal": ",", "input.na": ["x", "y"], "model.scale": "zscore", "search.seed": 7}
    capsys.readouterr()
    for item, words_of in (
        ("input.decimals=,", ["input.decimal"]),
        ("input.decimal=;", ["'.' or ','"]),
        ("run.n_jobs=0", ["n_jobs", "at least 1"]),
        ("search.seed=1.5", ["seed", "whole number"]),
        (str(tmp_path / "no.toml"), ["no.toml", "cannot be read"]),
    ):
        assert run([*words, "--force", "--config", item]) == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert all(word in said for word in words_of), said
