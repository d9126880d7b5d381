"""What ``l20fs select`` prints and writes is what the library finds on the same table."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from cli_samples import RESULTS, planted, write

from l20fs import L20SelectorCV, Panel, StabilitySelector, inspection
from l20fs.cli import run
from l20fs.data import load_srbct


def read_tsv(file):
    return pd.read_csv(file, sep="\t", keep_default_na=False)


def read_sheets(file):
    return pd.read_excel(file, sheet_name=None, keep_default_na=False)


def test_five_lines_and_four_files(table, tmp_path, capsys):
    assert run(["select", table, "--target", "type", "-k", "3"]) == 0
    shown = capsys.readouterr()
    assert {file.name for file in (tmp_path / "l20fs-results").iterdir()} == RESULTS
    assert "60 samples, 12 features, 3 classes (left 20, mid 20, right 20)" in shown.err
    lines = shown.out.splitlines()
    assert lines[0].startswith("3 of 12 features: accuracy ")
    assert "the largest class alone: 33 %" in lines[0]
    assert lines[1].split(", ") == read_tsv("l20fs-results/features.tsv")["feature"].tolist()
    assert lines[2].startswith("Report: l20fs-results/report.html")
    assert len(lines) + len(shown.err.splitlines()) <= 5


def test_results_are_those_of_the_search(table, results):
    frame = planted()
    X, y = frame.drop(columns="type"), frame["type"]
    search = L20SelectorCV(3).fit(X, y)
    found = read_tsv(results / "features.tsv")
    assert found["feature"].tolist() == search.get_feature_names_out()[np.argsort(search.ranking_[search.support_])].tolist()
    assert list(found)[:4] == ["feature", "rank", "score", "direction"]
    assert {"direction", "correlated_features", "coef_left", "coef_mid", "coef_right"} <= set(found)
    panel = Panel.load(results / "panel.json")
    assert panel.predict(X).tolist() == search.predict(X).tolist()
    score = panel.provenance["score"]
    assert score["value"] == pytest.approx(search.corrected_score_)
    assert [score["lower"], score["upper"]] == pytest.approx(search.corrected_interval_)
    sheets = read_sheets(results / "results.xlsx")
    assert {"features", "scores", "ranking", "confusion", "run"} <= set(sheets)
    assert sheets["features"]["feature"].tolist() == found["feature"].tolist()
    assert sheets["scores"]["accuracy"].iloc[2] == pytest.approx(score["value"])
    assert sheets["ranking"].shape[0] == 12
    np.testing.assert_allclose(sheets["confusion"].iloc[:, 1:].sum(axis=1), 1.0)


def test_the_demo_has_two_names(tmp_path):
    options = ["-k", "5", "--config", "search.max_features=10"]
    assert run(["select", "demo", *options, "-o", "a"]) == run(["select", "srbct", *options, "-o", "b"]) == 0
    assert (tmp_path / "a/features.tsv").read_bytes() == (tmp_path / "b/features.tsv").read_bytes()
    tumours = load_srbct()
    assert set(Panel.load("a/panel.json").classes) == set(tumours.target)


def test_a_run_is_repeated_from_its_panel(table, tmp_path):
    given = ["--target", "type", "-k", "2", "--exclude", "g0", "--config", "model.ridge=3"]
    assert run(["select", table, *given, "-o", "a"]) == 0
    assert run(["select", table, "--config", "a/panel.json", "-o", "b"]) == 0
    assert run(["select", table, "--config", "a/panel.json", "-k", "4", "-o", "c"]) == 0
    assert (tmp_path / "a/panel.json").read_bytes() == (tmp_path / "b/panel.json").read_bytes()
    assert (tmp_path / "a/features.tsv").read_bytes() == (tmp_path / "b/features.tsv").read_bytes()
    assert len(read_tsv("c/features.tsv")) == 4, "an option counts more"


def test_settings_come_from_files_and_words_and_words_count_more(table, tmp_path):
    (tmp_path / "own.toml").write_text("[model]\nridge = 5.0\nsolver = 'swap'\n")
    assert run(["select", table, "--target", "type", "-k", "2", "--config", "own.toml", "--config", "model.ridge=7"]) == 0
    stored = json.loads((tmp_path / "l20fs-results/panel.json").read_text())["provenance"]["settings"]
    assert stored == {"model.ridge": 7.0, "model.solver": "swap"}


def test_include_exclude_and_names_from_a_file(table, tmp_path):
    (tmp_path / "names.txt").write_text("g7\ng8\n")
    assert run(["select", table, "--target", "type", "-k", "4", "--include", "@names.txt", "--exclude", "g0,g1"]) == 0
    found = read_tsv("l20fs-results/features.tsv")["feature"].tolist()
    assert set(found[:2]) == {"g7", "g8"}
    assert not {"g0", "g1"} & set(found)


def test_constraints_from_files(table, tmp_path):
    (tmp_path / "groups.tsv").write_text("".join(f"g{j}\tpathway{j // 4}\n" for j in range(12)))
    (tmp_path / "costs.csv").write_text("feature,cost\ng0,100\nother,3\n")
    given = ["select", table, "--target", "type"]
    assert run([*given, "-k", "1", "--config", "constraints.groups=groups.tsv", "-o", "a"]) == 0
    found = read_tsv("a/features.tsv")["feature"]
    assert len({int(name[1:]) // 4 for name in found}) == 1
    assert len(found) == 4
    limits = ["--config", "constraints.costs=costs.csv", "--config", "constraints.budget=50"]
    assert run([*given, "-k", "3", *limits, "-o", "b"]) == 0
    assert "g0" not in set(read_tsv("b/features.tsv")["feature"])


def test_stability_and_alternatives(table, tmp_path, capsys):
    given = ["select", table, "--target", "type", "-k", "2", "--stability", "10", "--alternatives"]
    assert run([*given, "--config", "model.ridge=10"]) == 0
    frame = planted()
    X, y = frame.drop(columns="type"), frame["type"]
    search = L20SelectorCV(2, selector=L20SelectorCV()._template.set_params(ridge=10.0)).fit(X, y)
    expected = StabilitySelector(search.selector.set_params(n_features_to_select=2), n_resamples=10, random_state=0).fit(
        X, y
    )
    found = read_tsv("l20fs-results/features.tsv")
    names = list(X.columns)
    assert found["stability"].tolist() == [expected.frequencies_[names.index(name)] for name in found["feature"]]
    panels = inspection.near_optimal_panels(search.model_, X, y, 2)
    assert f"{panels.n_panels} near-optimal panels" in capsys.readouterr().out
    assert len(read_sheets("l20fs-results/results.xlsx")["alternatives"]) == len(panels.panels)


def test_numbers_to_predict(tmp_path, capsys):
    random = np.random.default_rng(0)
    X = random.standard_normal((60, 8))
    frame = pd.DataFrame(X, columns=[f"m{j}" for j in range(8)]).assign(age=(40 + 10 * X[:, 2] + X[:, 5]).round(3))
    file = write(frame, tmp_path / "ages.tsv")
    assert run(["select", file, "--target", "age", "--task", "regression", "-k", "2"]) == 0
    shown = capsys.readouterr()
    assert "2 of 8 features: R²" in shown.out
    assert read_tsv("l20fs-results/features.tsv")["feature"].tolist() == ["m2", "m5"]


def test_counts_are_logged_and_panels_know_it(tmp_path):
    frame = planted()
    genes = frame.columns.drop("type")
    counts = frame.assign(**{name: np.round(np.exp(frame[name])) for name in genes})
    assert run(["select", write(counts, tmp_path / "counts.tsv"), "--target", "type", "-k", "3", "--log1p"]) == 0
    assert Panel.load("l20fs-results/panel.json").transform == "log1p"


def test_gaps_are_filled_and_the_share_of_them_is_said(tmp_path):
    frame = planted()
    frame.loc[::7, "g0"] = np.nan
    file = write(frame, tmp_path / "gaps.tsv")
    assert run(["select", file, "--target", "type", "-k", "3", "--config", "input.missing=median"]) == 0
    assert Panel.load("l20fs-results/panel.json").features_for()


def test_standard_input_is_a_table(table, tmp_path):
    import subprocess
    import sys

    command = [sys.executable, "-m", "l20fs", "select", "-", "--target", "type", "-k", "3", "-o", "piped"]
    with open(table, "rb") as stream:
        done = subprocess.run(command, stdin=stream, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert run(["select", table, "--target", "type", "-k", "3", "-o", "named"]) == 0
    assert (tmp_path / "piped/features.tsv").read_bytes() == (tmp_path / "named/features.tsv").read_bytes()


def test_names_stay_text_in_the_workbook(tmp_path):
    """Excel would compute the first, turn the next two into a date and a number, and follow the last."""
    frame = planted(4).rename(columns={"g0": "=1+1", "g1": "SEPT2", "g2": "1E5", "g3": "http://example.org"})
    assert run(["select", write(frame, tmp_path / "names.tsv"), "--target", "type", "-k", "4"]) == 0
    sheet = read_sheets("l20fs-results/results.xlsx")["features"]
    assert set(sheet["feature"]) == {"=1+1", "SEPT2", "1E5", "http://example.org"}
    with zipfile.ZipFile("l20fs-results/results.xlsx") as book:
        text = "".join(book.read(name).decode() for name in book.namelist() if name.endswith(".xml"))
    assert "<f>" not in text
    assert "hyperlink" not in text


def test_the_same_run_writes_the_same_bytes(table, tmp_path):
    for name in ("a", "b"):
        assert run(["select", table, "--target", "type", "-k", "3", "--stability", "4", "-o", name]) == 0
    for name in RESULTS:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_noise_is_called_noise_in_the_first_line(tmp_path, capsys):
    random = np.random.default_rng(3)
    frame = pd.DataFrame(random.standard_normal((40, 30))).add_prefix("g").assign(type=np.repeat(["a", "b"], 20))
    assert run(["select", write(frame, tmp_path / "noise.tsv"), "--target", "type"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "Nothing predicts better than guessing."
