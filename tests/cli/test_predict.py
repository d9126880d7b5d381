"""``l20fs predict`` and ``l20fs validate`` say what the panel says, and what scikit-learn says of it."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from cli_samples import planted, write
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from l20fs import Panel
from l20fs.cli import run


@pytest.fixture
def cohort(tmp_path):
    frame = planted(seed=1)
    return frame, write(frame, tmp_path / "cohort.tsv")


def scores(folder):
    table = pd.read_csv(folder / "validation.tsv", sep="\t")
    return table[table["what"] == "score"].set_index("name")["value"]


def test_predictions_go_to_standard_output_or_a_file(results, cohort, tmp_path, capsys):
    frame, file = cohort
    assert run(["predict", str(results), file]) == 0
    shown = pd.read_csv(io.StringIO(capsys.readouterr().out), sep="\t", keep_default_na=False)
    assert run(["predict", str(results / "panel.json"), file, "-o", "out.tsv"]) == 0
    written = pd.read_csv("out.tsv", sep="\t", keep_default_na=False)
    pd.testing.assert_frame_equal(shown, written)
    panel = Panel.load(results / "panel.json")
    assert shown["predicted"].tolist() == panel.predict(frame).tolist()
    chances = shown[[f"probability_{name}" for name in panel.classes]]
    np.testing.assert_allclose(chances, panel.predict_proba(frame), rtol=1e-8)
    assert run(["predict", str(results), file, "-o", "out.tsv"]) == 2
    assert "Add --force to overwrite out.tsv." in capsys.readouterr().err
    assert run(["predict", str(results), file, "-o", "out.tsv", "--force", "-k", "1"]) == 0
    assert pd.read_csv("out.tsv", sep="\t")["predicted"].tolist() == panel.predict(frame, k=1).tolist()


def test_missing_features_are_replaced_and_samples_outside_are_flagged(results, tmp_path, capsys):
    panel = Panel.load(results / "panel.json")
    frame = planted(seed=2).drop(columns=[panel.features[0], "type"])
    frame.loc[0, panel.features[1]] = 1e6
    assert run(["predict", str(results), write(frame, tmp_path / "new.tsv")]) == 0
    shown = capsys.readouterr()
    assert f"1 feature missing in all samples and replaced: {panel.features[0]} by " in shown.err
    found = pd.read_csv(io.StringIO(shown.out), sep="\t", keep_default_na=False)
    assert found["outside"].iloc[0]
    assert found["predicted"].isin(panel.classes).all()


def test_validation_is_scikit_learns(results, cohort, tmp_path, capsys):
    frame, file = cohort
    assert run(["validate", str(results), file, "--target", "type"]) == 0
    panel = Panel.load(results / "panel.json")
    found, chances = scores(tmp_path / "l20fs-validation"), panel.predict_proba(frame)
    assert found["accuracy"] == pytest.approx(accuracy_score(frame["type"], panel.predict(frame)))
    assert found["roc_auc"] == pytest.approx(roc_auc_score(frame["type"], chances, multi_class="ovr"))
    assert found["log_loss"] == pytest.approx(log_loss(frame["type"], chances))
    page = (tmp_path / "l20fs-validation/validation.html").read_text(encoding="utf-8")
    assert "60 new samples" in page
    assert "The selection estimated" in page
    assert f"accuracy {100 * found['accuracy']:.0f} %" in capsys.readouterr().out


def test_labels_in_another_spelling_and_groups(results, tmp_path):
    frame = planted(seed=1).assign(hospital=np.repeat(["north", "south"], 30))
    frame["type"] = frame["type"].str.upper() + " "
    file = write(frame, tmp_path / "cohort.tsv")
    assert run(["validate", str(results), file, "--target", "type", "--groups", "hospital"]) == 0
    table = pd.read_csv("l20fs-validation/validation.tsv", sep="\t")
    assert table[table["what"] == "group"]["name"].tolist() == ["north", "south"]
    assert scores(tmp_path / "l20fs-validation")["accuracy"] > 0.5


def test_the_training_table_is_recognised_and_unknown_classes_are_named(results, table, tmp_path, capsys):
    assert run(["validate", str(results), table, "--target", "type"]) == 0
    assert "the scores are too good" in capsys.readouterr().out
    frame = planted(seed=1)
    frame.loc[:4, "type"] = "upwards"
    assert run(["validate", str(results), write(frame, tmp_path / "c.tsv"), "--target", "type", "-o", "other"]) == 0
    assert "upwards" in (tmp_path / "other/validation.html").read_text(encoding="utf-8")
    assert (
        run(["validate", str(results), write(frame.assign(type="up"), tmp_path / "d.tsv"), "--target", "type", "-o", "x"])
        == 3
    )
    assert "no sample has a class that the panel knows" in capsys.readouterr().err


def test_a_published_list_becomes_a_panel_that_is_evaluated(table, cohort, tmp_path):
    (tmp_path / "list.txt").write_text("g1\ng2\ng9\n")
    assert run(["select", table, "--target", "type", "--include", "@list.txt", "-k", "3", "-o", "listed"]) == 0
    assert set(Panel.load("listed/panel.json").features_for()) == {"g1", "g2", "g9"}
    assert run(["validate", "listed", cohort[1], "--target", "type"]) == 0


def test_numbers(tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.standard_normal((80, 6)), columns=list("abcdef"))
    frame["age"] = 3 * frame["b"] + 0.1 * random.standard_normal(80)
    first, second = write(frame[:50], tmp_path / "a.tsv"), write(frame[50:], tmp_path / "b.tsv")
    assert run(["select", first, "--target", "age", "--task", "regression", "-k", "1"]) == 0
    assert run(["validate", "l20fs-results", second, "--target", "age"]) == 0
    assert scores(tmp_path / "l20fs-validation")["r2"] > 0.98
    assert "measured" in (tmp_path / "l20fs-validation/validation.html").read_text(encoding="utf-8")
