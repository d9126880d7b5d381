"""Columns that are no features, on the command line: what is said, and what reaches the page and the stored run."""

from __future__ import annotations

import html
import json

import numpy as np
import pandas as pd
import pytest

from l20fs.cli import run

TYPES = np.array(["Ewing", "NB"])[np.arange(24) % 2]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A table with two batches, as text and as numbers, a text, and an age."""
    values = np.round(np.random.default_rng(0).standard_normal((24, 6)), 3)
    values[:, 0] += np.arange(24) % 2
    types = TYPES.astype(object)
    types[[3, 5]] = "NB "
    frame = pd.DataFrame(values, columns=[f"GENE{j}" for j in range(6)])
    frame = frame.assign(Batch=np.array(["x", "y"])[np.arange(24) // 12], age=np.arange(24) + 30.5, type=types)
    place = tmp_path_factory.mktemp("columns") / "a.csv"
    frame.to_csv(place, index=False)
    return place


def test_what_the_readers_say_is_on_the_page_and_in_the_run(file, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(["select", str(file), "--target", "type", "-k", "2", "-o", str(out)]) == 0
    said = capsys.readouterr().err
    stored, page = json.loads((out / "run.json").read_text()), html.unescape((out / "report.html").read_text())
    for text in (
        "a.csv: 1 column of text is left out: 'Batch' (--ignore).",
        "a.csv: labels differ only in case or blanks: 'NB' (10), 'NB ' (2). They are different classes",
        "a.csv: 1 column looks like metadata, not features: 'age'. If so, leave it out: --ignore age",
    ):
        assert text in said
        assert text in page
    assert stored["input"]["notes"][0] == "a.csv: 1 column of text is left out: 'Batch' (--ignore)."


def test_a_column_that_was_left_out_may_be_excluded_and_not_included(file, capsys):
    options = ["select", str(file), "--target", "type", "-k", "2", "--json"]
    assert run([*options, "--exclude", "Batch,age"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert run([*options, "--exclude", "Batch,age", "--ignore", "B*,age"]) == 0
    assert set(json.loads(capsys.readouterr().out)["selected"]) == set(found["selected"])
    assert run([*options, "--include", "Batch"]) == 2
    assert "--include 'Batch': this column was left out: it holds text" in capsys.readouterr().err
    assert run([*options, "--include", "age", "--ignore", "age"]) == 2
    assert "--include 'age': this column was left out" in capsys.readouterr().err
    assert run([*options, "--exclude", "Batches"]) == 2
    assert "--exclude names 'Batches', which the table does not have" in capsys.readouterr().err
    assert run([*options, "--ignore", "bath"]) == 2
    assert "--ignore: there is no column 'bath'. Did you mean 'Batch'?" in capsys.readouterr().err


def test_few_groups_are_told_before_the_work(file, tmp_path, capsys):
    out = tmp_path / "out"
    assert (
        run(["select", str(file), "--target", "type", "--groups", "Batch", "--ignore", "age", "-k", "2", "-o", str(out)])
        == 0
    )
    said = capsys.readouterr().err
    warning = "2 folds instead of 5: there are 2 groups only. The score rests on 2 groups;"
    assert said.count(warning) == 1
    assert said.index(warning) < said.index("Only 24 samples")
    assert warning in (out / "report.html").read_text()
