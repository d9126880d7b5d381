"""Constraints on panels on the command line: options, files, sentences and errors of one line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_samples import page_data, planted, read_tsv, with_lonely, write_table

from l20fs.cli import run

COSTS = "feature\tcost\ng0\t3\nnobody\t7\n"


@pytest.fixture
def table(tmp_path):
    X, labels, _ = planted()
    return write_table(tmp_path / "t.tsv", X, with_lonely(labels)), X


def write(tmp_path, text):
    file = tmp_path / "given.txt"
    file.write_text(text)
    return str(file)


def test_select_says_the_constraints_and_meets_them(table, tmp_path, capsys):
    file, X = table
    out = tmp_path / "out"
    costs = write(tmp_path, COSTS)
    arguments = ["--target", "type", "--max-per-class", "2", "--budget", "7", "--costs", costs, "-o", str(out)]
    assert run(["select", file, *arguments]) == 0
    said = "at most 2 features of each class, costs of at most 7 together"
    messages = capsys.readouterr()
    assert f"Every panel meets the constraints: {said}." in " ".join(messages.out.split())
    assert "--costs: 1 of 2 features is not in the table, and is left out." in messages.err
    stored = json.loads((out / "run.json").read_text())
    assert stored["constraints"] == said
    assert stored["arguments"]["costs"] == {"g0": 3.0, "nobody": 7.0}
    assert said in (out / "report.html").read_text()
    chosen = [row["feature"] for row in read_tsv(out / "selection.tsv")]
    labels = with_lonely(planted()[1])
    means = np.array([X[labels == label].mean(axis=0) for label in np.unique(labels)])
    owner = means.argmax(axis=0)[[int(name[1:]) for name in chosen]]
    assert np.bincount(owner).max() <= 2
    assert 1 < len(chosen) + 2 * ("g0" in chosen) <= 7  # of twenty by default as many as there can be


@pytest.mark.parametrize(
    ("option", "text", "expected"),
    [
        ("--sets", "A\tg0\nA\tg1\nB\tg2\n", {"g0", "g1"}),
        ("--sets", "A\thttp://of\tg0\tg1\tnobody\nB\tna\tg2\n", {"g0", "g1"}),
        ("--sets", "A,g0\nB,g2\n", {"g0"}),
        ("--exclusive", "g0,g1,g2,g3,g4\n", None),
    ],
)
def test_sets_and_exclusive_features_are_read(table, tmp_path, capsys, option, text, expected):
    given = write(tmp_path, text)
    extra = [] if expected is None else ["--min-per-class", "1"]
    assert run(["select", table[0], "--target", "type", "-k", "3", option, given, *extra, "--json"]) == 0
    selected = set(json.loads(capsys.readouterr().out)["selected"])
    if expected is None:
        assert len(selected & {"g0", "g1", "g2", "g3", "g4"}) < 2
    else:
        assert expected & selected
        assert "g2" in selected


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("--costs", "g0\t3\ng1\tdear\n", "'dear', the cost of 'g1', is no number."),
        ("--costs", "g0\n", "line 1 has one column, 'g0'. Give a feature, a tab and its cost in each line."),
        ("--sets", "", "is empty. Give a set, a tab and a feature"),
        ("--costs", "g0\tdear\n", "'dear', the cost of 'g0', is no number."),
        ("--costs", "g0\t2,5\ng1\t3\n", "'2,5', the cost of 'g0', is no number."),
        ("--costs", "g0\t-1\n", "'-1', the cost of 'g0', is not finite and at least 0."),
        ("--costs", "g0\tnan\n", "'nan', the cost of 'g0', is not finite and at least 0."),
        ("--costs", "g0\t2\ng0\t3\n", "names 'g0' twice. Give each feature once."),
        ("--costs", COSTS, "--costs without --budget, or --atlas of l20fs select, has no effect."),
        ("--sets", "A\tTP53\nA\tMYC\n", "none of its features is in the table. It has 'TP53', 'MYC', the table 'g0', 'g1'"),
        ("--sets", "A\tg0\n", "sets without min_per_class or max_per_class limit nothing."),
        ("--exclusive", "g0\tg99\n", "--exclusive names 'g99', which the table does not have."),
    ],
)
def test_files_without_sense_are_refused(table, tmp_path, capsys, option, text, message):
    assert run(["select", table[0], "--target", "type", option, write(tmp_path, text)]) == 2
    assert message in capsys.readouterr().err


def test_page_begins_with_the_least_panel(table, tmp_path):
    given, out = write(tmp_path, "A\tg0\nA\tg1\nB\tg2\nC\tg5\n"), tmp_path / "out"
    wishes = ["-k", "5", "--min-per-class", "1", "--sets", given]
    assert run(["select", table[0], "--target", "type", *wishes, "-o", str(out)]) == 0
    assert 'id="k-range" min="3"' in (out / "report.html").read_text()
    costs = page_data(out)["failure_costs"]
    assert costs[0][0] == costs[2][0]  # what is required is always there


def test_what_cannot_be_met_is_told_in_one_line(table, capsys):
    assert run(["select", table[0], "--target", "type", "-k", "5", "--min-per-class", "4"]) != 0
    assert "error: --min-per-class 4" in capsys.readouterr().err.splitlines()[-1]
    assert run(["select", table[0], "--target", "type", "--min-per-class", "1", "--method", "ahiht"]) == 2
    assert "--min-per-class does not go with --method ahiht." in capsys.readouterr().err
    assert run(["select", table[0], "--target", "type", "--method", "RFS", "--budget", "4"]) == 2
    assert "--budget does not go with --method RFS" in capsys.readouterr().err
