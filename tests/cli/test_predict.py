"""``l20fs predict``: the numbers of the estimator, missing features, samples that are unlike those in training, faults."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from cli_samples import contents, planted, read_tsv
from khan_samples import n_errors, tumours

from l20fs import L20Classifier, L20Regressor, Panel
from l20fs.cli import run
from l20fs.prediction.new_samples import predict_samples


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("select") / "results"
    assert run(["select", "srbct", "-o", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def panel(results):
    return Panel.load(results / "panel.json")


@pytest.fixture(scope="module")
def blind(panel):
    """The blind samples, with the type, what the panel can use, and a few other genes."""
    frame = tumours("test")
    others = [name for name in frame.columns[1:] if name not in {*panel.features, *panel.substitutes}][:5]
    return frame[["type", *sorted([*panel.features, *panel.substitutes, *others])]]


@pytest.fixture
def predicted(tmp_path, results):
    """Write a table, predict it, and return the rows of predictions.tsv."""

    def predict(frame, *options, panel=results):
        frame.to_csv(tmp_path / "new.csv")
        assert run(["predict", str(panel), str(tmp_path / "new.csv"), "-o", str(tmp_path / "out"), "--force", *options]) == 0
        return read_tsv(tmp_path / "out" / "predictions.tsv")

    return predict


def test_blind_samples_are_predicted_as_the_estimator_does(predicted, panel):
    train, blind = tumours("train"), tumours("test")
    model = L20Classifier(panel.k).fit(train.drop(columns="type"), train["type"])
    rows = predicted(blind)
    genes = blind.drop(columns="type")
    assert [row["predicted"] for row in rows] == model.predict(genes).tolist()
    assert [row["sample"] for row in rows] == blind.index.tolist()
    probabilities = [[float(row[f"probability_{name}"]) for name in panel.classes] for row in rows]
    np.testing.assert_allclose(probabilities, panel.predict_proba(genes), rtol=1e-9, atol=1e-15)
    assert n_errors([row["predicted"] for row in rows], blind["type"]) == 0


@pytest.mark.parametrize("k", [3, 20, 40])
def test_another_number_of_features_is_used(predicted, blind, panel, k):
    rows = predicted(blind, "-k", str(k))
    assert [row["predicted"] for row in rows] == panel.predict(blind, k=k).tolist()


def test_missing_genes_cost_less_with_substitutes_than_with_zeros(predicted, blind, panel):
    """The table lacks each gene of the panel in turn; a gene that is replaced by zero keeps its weight."""
    truth, with_substitutes, with_zeros = blind["type"], 0, 0
    for gene in panel.features_for():
        found = predict_samples(panel, blind.drop(columns=["type", gene]))
        assert list(found.replaced) == [gene]
        with_substitutes += n_errors(found.predicted, truth)
        with_zeros += n_errors(panel.predict(blind.assign(**{gene: 0.0})), truth)
    assert with_substitutes <= with_zeros
    rows = predicted(blind.drop(columns=gene))  # the last one, by the command
    assert [row["predicted"] for row in rows] == found.predicted.tolist()
    assert [row["outside"] for row in rows] == found.remarks
    assert all(f"missing: {gene}, predicted with {found.replaced[gene]} instead" in row["outside"] for row in rows)


def test_a_gap_in_one_sample_changes_that_sample_alone(predicted, blind, panel):
    gene, sample = panel.features[0], blind.index[4]
    whole, gappy = blind.copy(), blind.copy()
    gappy.loc[sample, gene] = np.nan
    before, after = predicted(whole), predicted(gappy)
    differing = [row["sample"] for row, other in zip(before, after, strict=True) if row != other]
    assert differing == [sample]
    remark = after[4]["outside"]
    assert f"missing: {gene}, predicted with " in remark
    other = remark.split("predicted with ")[1].split(" instead")[0]
    adapted = panel.adapted(set(blind.columns) - {gene})
    assert adapted.replaced == {gene: other}
    probabilities = [float(after[4][f"probability_{name}"]) for name in panel.classes]
    np.testing.assert_allclose(probabilities, adapted.predict_proba(blind.loc[[sample]])[0], rtol=1e-9, atol=1e-15)


def test_a_sample_without_any_value_is_not_predicted(predicted, blind, panel, capsys, results, tmp_path):
    empty = blind.copy()
    empty.loc[blind.index[0], [*panel.features, *panel.substitutes]] = np.nan
    rows = predicted(empty)
    assert (rows[0]["predicted"], rows[0]["probability_BL"]) == ("", "")
    assert rows[0]["outside"].startswith("not predicted")
    assert rows[1]["predicted"] == "EWS"
    capsys.readouterr()
    assert run(["predict", str(results), str(tmp_path / "new.csv"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["predictions"][0]["probability_BL"] is None


def test_shifted_values_are_flagged_and_plain_ones_are_not(predicted, blind, capsys):
    train = tumours("train")
    assert sum(bool(row["outside"]) for row in predicted(train)) <= 3  # one of a hundred is far
    shifted = train.drop(columns="type") + 10.0
    rows = predicted(shifted)
    assert all("far from all classes" in row["outside"] and "(training " in row["outside"] for row in rows)
    assert "63 of 63 samples lie outside" in capsys.readouterr().err


def test_other_columns_order_and_orientation_do_not_matter(predicted, tmp_path, results, blind):
    rows = predicted(blind)
    assert predicted(blind.iloc[:, ::-1].assign(batch="A", note="x,y")) == rows
    blind.T.to_csv(tmp_path / "turned.csv")
    out = tmp_path / "turned"
    arguments = ["predict", str(results), str(tmp_path / "turned.csv"), "--samples-in", "columns", "-o", str(out)]
    assert run(arguments) == 0
    assert read_tsv(out / "predictions.tsv") == rows


def test_one_sample_and_no_names(predicted, blind, tmp_path, results, capsys):
    rows = predicted(blind.iloc[[2]])
    assert [(row["sample"], row["predicted"]) for row in rows] == [("test2", "RMS")]
    blind.iloc[:2].drop(columns="type").to_csv(tmp_path / "plain.csv", index=False)
    assert run(["predict", str(results), str(tmp_path / "plain.csv"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [row["sample"] for row in shown["predictions"]] == ["1", "2"]


def test_numbers_are_predicted_from_raw_counts(tmp_path):
    rng = np.random.default_rng(0)
    counts = pd.DataFrame(rng.poisson(50, (40, 6)).astype(float), columns=[f"g{j}" for j in range(6)])
    X = np.log1p(counts)
    y = (2.0 * X["g1"] - X["g4"]).to_numpy()
    model = L20Regressor(2).fit(X, y)
    model.to_panel(X, y, transform="log1p", target_names="age").save(tmp_path / "panel.json")
    ends = f"(training {counts['g1'].min():.4g} to {counts['g1'].max():.4g})"
    counts.iloc[0, 1] = 5000.0
    counts.to_csv(tmp_path / "new.csv", index=False)
    assert run(["predict", str(tmp_path / "panel.json"), str(tmp_path / "new.csv"), "-o", str(tmp_path / "out")]) == 0
    rows = read_tsv(tmp_path / "out" / "predictions.tsv")
    assert list(rows[0]) == ["sample", "predicted", "outside"]
    np.testing.assert_allclose([float(row["predicted"]) for row in rows], model.predict(np.log1p(counts)), rtol=1e-9)
    assert rows[0]["outside"].startswith(f"1 value outside the training range: g1 5000 {ends}")


def test_labels_that_are_numbers_are_predicted_and_validated(tmp_path):
    X, labels, _ = planted(n_features=5)
    frame = pd.DataFrame(X, columns=list("abcde"))
    codes = np.unique(labels, return_inverse=True)[1] + 1
    panel = L20Classifier(3).fit(frame, codes).to_panel(frame, codes)
    panel.save(tmp_path / "panel.json")
    frame.assign(stage=codes).to_csv(tmp_path / "new.csv", index=False)
    arguments = [str(tmp_path / "panel.json"), str(tmp_path / "new.csv")]
    assert run(["predict", *arguments, "-o", str(tmp_path / "out")]) == 0
    rows = read_tsv(tmp_path / "out" / "predictions.tsv")
    assert [row["predicted"] for row in rows] == panel.predict(frame).astype(str).tolist()
    assert run(["validate", *arguments, "--target", "stage", "-o", str(tmp_path / "validation")]) == 0
    scores = json.loads((tmp_path / "validation" / "validation.json").read_text())["parts"]["cohort"]["scores"]
    assert scores["accuracy"]["value"] == np.mean(panel.predict(frame) == codes)


def test_names_in_any_language_and_with_markup(tmp_path):
    X, labels, _ = planted(n_features=5)
    names = ["=SUM(A1)", "<b>x</b>", "ген", "a;b", "[red]g"]
    classes = np.array(["<script>", "B", "[bold]C"])[np.unique(labels, return_inverse=True)[1]]
    frame = pd.DataFrame(X, columns=names, index=[f"=cmd{i}" for i in range(len(X))])
    L20Classifier(3).fit(frame, classes).to_panel(frame, classes).save(tmp_path / "panel.json")
    frame.to_csv(tmp_path / "new.csv")
    assert run(["predict", str(tmp_path / "panel.json"), str(tmp_path / "new.csv")]) == 0
    assert run(["predict", str(tmp_path / "panel.json"), str(tmp_path / "new.csv"), "-o", str(tmp_path / "out")]) == 0
    rows = read_tsv(tmp_path / "out" / "predictions.tsv")
    assert {"probability_<script>", "probability_[bold]C"} <= set(rows[0])
    assert rows[0]["sample"] == "=cmd0"


# ----------------------------------------------------------------------------------------------------------------- faults


@pytest.fixture
def new(tmp_path, blind):
    blind.to_csv(tmp_path / "new.csv")
    return tmp_path / "new.csv"


def refused(capsys, code, message, *arguments):
    assert run(["predict", *map(str, arguments)]) == code
    error = capsys.readouterr().err
    assert message in error.replace("\n", " ")
    assert "Traceback" not in error


def test_tables_that_cannot_be_predicted_are_refused(capsys, results, tmp_path, blind, panel):
    faults = {
        "header.csv": (blind.iloc[:0], "a header and no samples"),
        "other.csv": (blind[["type"]].assign(tp53=1.0), f"none of the {len(panel.features_for())} features that are needed"),
        "case.csv": (blind.rename(columns=str.upper), "for 'gene"),
        "text.csv": (blind.assign(**{panel.features[0]: "high"}), "1 column of text"),
        "infinite.csv": (blind.assign(**{panel.features[0]: np.inf}), "infinite values"),
    }
    for name, (frame, message) in faults.items():
        frame.to_csv(tmp_path / name)
        refused(capsys, 3, message, results, tmp_path / name)


def test_panels_that_cannot_be_used_are_refused(capsys, tmp_path, results, new):
    text = (results / "panel.json").read_text()
    faults = {
        "hash.json": (text.replace('"gene', '"gone', 1), "its sha256 is not that of its content"),
        "table.json": ("sample,gene\n1,2\n", "This is no panel"),
        "empty.json": ("", "This is no panel"),
        "list.json": ("[1, 2]", "This is no panel"),
    }
    for name, (content, message) in faults.items():
        (tmp_path / name).write_text(content)
        refused(capsys, 3, message, tmp_path / name, new)
    refused(capsys, 2, "has no panel.json", tmp_path, new)
    refused(capsys, 2, "does not exist", tmp_path / "nothing.json", new)
    refused(capsys, 2, "is no file", results, tmp_path / "nothing.csv")
    refused(capsys, 3, "k=4000 is not valid", results, new, "-k", 4000)


def test_results_are_not_overwritten_unless_asked(capsys, tmp_path, results, new):
    out = tmp_path / "out"
    assert run(["predict", str(results), str(new), "-o", str(out)]) == 0
    assert set(contents(out)) == {"predictions.tsv", "run.json"}
    before = contents(out)
    refused(capsys, 2, "holds results already", results, new, "-o", out)
    refused(capsys, 2, "holds results already (run.json)", results, new, "-o", results)
    assert run(["predict", str(results), str(new), "-o", str(out), "--force"]) == 0
    assert contents(out) == before
    stored = json.loads((out / "run.json").read_text())
    assert stored["panel"]["sha256"] == Panel.load(results / "panel.json").sha256
    assert len(stored["input"]["sha256"]) == 64


def test_values_that_overflow_are_an_error(blind, panel, tmp_path, capsys, results):
    frame = blind.head(3).copy()
    frame.loc[frame.index[1], panel.features[:20]] = 1.7e308
    frame.to_csv(tmp_path / "new.csv")
    assert run(["predict", str(results), str(tmp_path / "new.csv"), "-o", str(tmp_path / "out")]) == 3
    assert "error: Sample 1 has values that are too large" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
