"""Files as laboratories have them: the first command of a newcomer ends in a page, or in one line that says what to do."""

from __future__ import annotations

import numpy as np
import pytest
from lab_files import ALL, EVERYDAY, FRAME, GENES

from l20fs.cli import run
from l20fs.cli.samples import load_samples
from l20fs.cli.select import select

READING = ("target", "labels", "groups", "adjust_for", "ignore", "task", "log1p")


def name_of(case):
    return case.name


def read(arguments):
    """Return the samples that a command reads."""
    given = select.make_context("select", arguments[1:]).params
    return load_samples(given["data"], given["config"][0], **{name: given[name] for name in READING})


@pytest.mark.parametrize("case", ALL, ids=name_of)
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


@pytest.mark.parametrize("case", EVERYDAY, ids=name_of)
def test_values(case, tmp_path):
    case.write(tmp_path / case.name)
    samples = read(case.arguments(tmp_path))
    expected = FRAME.to_numpy() if case.values is None else case.values()
    read_as = samples.X_before if np.isnan(expected).any() else samples.X
    np.testing.assert_allclose(read_as, expected, rtol=1e-12)
    assert np.isfinite(samples.X).all()


def test_genes_are_named(tmp_path):
    case = next(case for case in EVERYDAY if case.name == "write-table.txt")
    case.write(tmp_path / case.name)
    samples = read(case.arguments(tmp_path))
    assert samples.feature_names == GENES
    assert samples.sample_names == FRAME.index.tolist()
