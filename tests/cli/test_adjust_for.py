"""--adjust-for: columns of the table or of the labels, in select, validate and compare."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from cli_samples import read_tsv

from l20fs import L20Classifier
from l20fs.cli import run
from l20fs.cli.load import nuisances_of
from l20fs.data.readers import read_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Samples of three hospitals with different shares of the classes; g0 tells the hospitals, g1 the classes."""
    folder, rng = tmp_path_factory.mktemp("hospitals"), np.random.default_rng(0)
    hospital = np.arange(90) % 3
    y = (rng.random(90) < np.array([0.1, 0.5, 0.9])[hospital]).astype(int)
    X = rng.standard_normal((90, 12)).round(4)
    X[:, 0] += 4.0 * hospital
    X[:, 1] += 1.5 * y
    table = pd.DataFrame(X, columns=[f"g{j}" for j in range(12)], index=[f"s{i}" for i in range(90)])
    about = pd.DataFrame(
        {
            "type": np.array(["normal", "tumour"])[y],
            "hospital": np.array(["north", "south", "west"])[hospital],
            "age": rng.integers(30, 80, 90),
            "bmi": rng.normal(25.0, 3.0, 90).round(1),
        },
        index=table.index,
    )
    table.to_csv(folder / "values.csv")
    about.to_csv(folder / "about.csv")
    about.join(table).to_csv(folder / "table.csv")
    (folder / "genes.txt").write_text("g1\ng5\n")
    return folder


def selected(place):
    return [row["feature"] for row in read_tsv(place / "selection.tsv") if row["rank"] == "1"]


@pytest.mark.parametrize("where", [["table.csv"], ["values.csv", "--labels", "about.csv"]], ids=["table", "labels"])
def test_select_adjusts_everywhere_and_says_so(folder, tmp_path, monkeypatch, capsys, where):
    monkeypatch.chdir(folder)
    common = ["--target", "type", "-k", "2", "--stability", "4"]
    without = ["--ignore", "hospital,age,bmi"] if where[0] == "table.csv" else []
    assert run(["select", *where, *common, *without, "-o", str(tmp_path / "plain")]) == 0
    assert selected(tmp_path / "plain") == ["g0"]
    given = ["--adjust-for", "hospital,age:number,bmi", "--groups", "hospital"]
    assert run(["select", *where, *common, *given, "-o", str(tmp_path / "out")]) == 0
    assert selected(tmp_path / "out") == ["g1"]
    said = json.loads((tmp_path / "out" / "run.json").read_text())
    assert said["arguments"]["adjust_for"] == ["hospital", "age:number", "bmi"]
    assert said["input"]["n_features"] == 12
    page = (tmp_path / "out" / "report.html").read_text().replace("&#39;", "'")
    assert "Differences by 'hospital', 'age' and 'bmi' were taken out of the features and of the target" in page
    capsys.readouterr()
    assert run(["select", *where, *common[:4], *given, "--atlas", "5%", "--json"]) == 0
    atlas = json.loads(capsys.readouterr().out)["atlas"]
    assert "g0" not in atlas["panels"][0]["features"]
    assert "g1" in atlas["panels"][0]["features"]
    panel = json.loads((tmp_path / "out" / "panel.json").read_text())
    assert (panel["provenance"]["adjusted_for"], panel["provenance"]["n_nuisances"]) == (["hospital", "age", "bmi"], 4)


def test_folds_predict_hospitals_that_they_have_not_seen(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    given = ["--target", "type", "--adjust-for", "hospital", "--groups", "hospital", "--ignore", "age,bmi", "-k", "2"]
    assert run(["select", "table.csv", *given, "--class-weight", "none", "-o", str(tmp_path / "out")]) == 0
    samples = read_table("table.csv", "type", groups="hospital", adjust_for=["hospital"], ignore=["age", "bmi"])
    right = 0
    for name in np.unique(samples.groups):
        train = samples.groups != name
        model = L20Classifier(2, max_features_to_select=12, class_weight=None, calibration=None)
        model.fit(samples.X[train], samples.y[train], adjust_for=samples.groups[train])
        right += int((model.predict(samples.X[~train]) == samples.y[~train]).sum())
    scores = {row["n_features"]: float(row["linear"]) for row in read_tsv(tmp_path / "out" / "cv.tsv")}
    assert scores["2"] == pytest.approx(right / 90)


def test_validate_and_compare_adjust(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    common = ["--target", "type", "--adjust-for", "hospital", "--ignore", "age,bmi"]
    assert run(["validate", "genes.txt", "table.csv", "table.csv", *common, "-o", str(tmp_path / "list")]) == 0
    said = json.loads((tmp_path / "list" / "run.json").read_text())
    assert said["arguments"]["adjust_for"] == ["hospital"]
    assert "Differences by &#39;hospital&#39; were taken out" in (tmp_path / "list" / "validation.html").read_text()
    few = ["--methods", "L20Selector,FisherScore", "--splits", "2", "--sizes", "1", "--n-jobs", "1"]
    assert run(["compare", "table.csv", *common, *few, "-o", str(tmp_path / "compared")]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "Adjusted for nuisances (--adjust-for): 'L20Selector'; other methods cannot." in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["select", "table.csv", "--adjust-for", "type"], "--adjust-for 'type' is the target. Name other columns."),
        (["select", "table.csv", "--adjust-for", "hospitl"], "has no column 'hospitl'. Did you mean 'hospital'?"),
        (
            ["select", "table.csv", "--adjust-for", "hospital:number"],
            "'hospital' holds no numbers: 'north', 'south'",
        ),
        (["select", "table.csv", "--adjust-for", "hospital", "--ignore", "hospital"], "names the column of the nuisances"),
        (["select", "table.csv", "--adjust-for", "hospital", "--method", "ReliefF"], "--adjust-for does not go with"),
        (["select", "many.csv", "--adjust-for", "code"], "has 90 labels for 90 samples. If they are numbers, say so"),
        (["select", "gaps.csv", "--adjust-for", "hospital"], "1 sample has no 'hospital', in line 4. Fill or drop them."),
        (["validate", "panel.json", "table.csv", "--adjust-for", "age"], "a panel predicts from its features alone"),
    ],
)
def test_errors_name_the_way_out(folder, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(folder)
    table = pd.read_csv(folder / "table.csv", index_col=0)
    table.assign(code=np.arange(90) ** 2).to_csv(folder / "many.csv")
    table.assign(hospital=["NA" if i == 2 else "north" for i in range(90)]).to_csv(folder / "gaps.csv")
    (folder / "panel.json").write_text("{}")
    assert run([*arguments, "--target", "type"]) != 0
    assert message in re.sub(r"\s+", " ", capsys.readouterr().err)


def test_whole_numbers_are_labels_unless_they_are_said_to_be_numbers(folder):
    few = pd.read_csv(folder / "table.csv", index_col=0).assign(plate=np.arange(90) % 4)
    few.to_csv(folder / "plates.csv")
    given = {"ignore": ["hospital"], "target": "type"}
    as_labels = read_table(folder / "plates.csv", **given, adjust_for=["plate", "age", "bmi"])
    assert [values.dtype.kind for values in as_labels.adjust_for.values()] == ["U", "U", "f"]
    assert any("'age' has" in note and "--adjust-for age:number" in note for note in as_labels.notes)
    as_numbers = read_table(folder / "plates.csv", **given, adjust_for=["plate:number", "age:number", "bmi"])
    assert nuisances_of(as_numbers).shape == (90, 3)
    assert nuisances_of(as_labels).shape[1] > 40
