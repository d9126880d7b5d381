"""``l20fs validate``: numbers computed by hand and by scikit-learn, lists from elsewhere, pages, faults."""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import replace

import browser
import numpy as np
import pandas as pd
import pytest
from cli_samples import contents, planted, read_tsv, write_table
from khan_samples import tumours
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss, r2_score

from l20fs import Constraints, L20Classifier, L20Regressor, Panel
from l20fs.bounds.certificate import support_loss
from l20fs.cli import run
from l20fs.cli.feature_list import inspect_list, make_model, problem_of
from l20fs.cli.validate_content import comparison
from l20fs.data.readers import Samples
from l20fs.evaluation.corrected_score import Estimate
from l20fs.evaluation.folds import make_stratified_folds
from l20fs.evaluation.validation import validate_classes

FILES = {"validation.tsv", "predictions.tsv", "validation.json", "validation.html", "run.json"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A panel of ten genes and both parts of Khan's samples, with the genes that the panel can use."""
    folder = tmp_path_factory.mktemp("khan")
    train = tumours("train")
    X, y = train.drop(columns="type"), train["type"]
    panel = L20Classifier(10).fit(X, y).to_panel(X, y)
    panel.save(folder / "panel.json")
    kept = ["type", *panel.features, *panel.substitutes]
    train[kept].to_csv(folder / "train.csv")
    blind = tumours("test")[kept]
    blind.insert(1, "site", np.array(["north", "south"])[np.arange(20) % 2])
    blind.to_csv(folder / "cohort.csv")
    (folder / "genes.txt").write_text("\n".join([*panel.features[:5], "", "# a remark", "MYC"]) + "\n")
    return folder


@pytest.fixture(scope="module")
def panel(folder):
    return Panel.load(folder / "panel.json")


@pytest.fixture
def validate(folder, tmp_path):
    """Run the command on files of the folder, and return what validation.json holds."""

    def run_it(*arguments, code=0):
        given = [str(folder / name) if (folder / str(name)).is_file() else str(name) for name in arguments]
        assert run(["validate", *given, "-o", str(tmp_path / "out"), "--force"]) == code
        return json.loads((tmp_path / "out" / "validation.json").read_text()) if code == 0 else None

    return run_it


def test_a_panel_in_a_cohort_has_the_scores_of_scikit_learn(validate, folder, panel, tmp_path):
    found = validate("panel.json", "cohort.csv", "--target", "type", "--groups", "site")
    blind = pd.read_csv(folder / "cohort.csv", index_col=0)
    predicted, probabilities = panel.predict(blind), panel.predict_proba(blind)
    part = found["parts"]["cohort"]
    assert part["scores"]["accuracy"]["value"] == accuracy_score(blind["type"], predicted)
    assert part["scores"]["balanced_accuracy"]["value"] == pytest.approx(balanced_accuracy_score(blind["type"], predicted))
    assert part["scores"]["log_loss"]["value"] == pytest.approx(log_loss(blind["type"], probabilities))
    for each in part["batches"]:
        mask = blind["site"] == each["name"]
        assert each["score"]["value"] == accuracy_score(blind["type"][mask], predicted[mask])
    rows = read_tsv(tmp_path / "out" / "predictions.tsv")
    assert [(row["true"], row["predicted"]) for row in rows] == list(zip(blind["type"], predicted, strict=True))
    assert set(contents(tmp_path / "out")) == FILES
    table = read_tsv(tmp_path / "out" / "validation.tsv")
    accuracy = next(row for row in table if row["name"] == "accuracy")
    assert float(accuracy["value"]) == accuracy_score(blind["type"], predicted)


def test_classes_that_the_panel_does_not_know_are_counted_and_said(validate, folder, capsys):
    blind = pd.read_csv(folder / "cohort.csv", index_col=0)
    blind.loc[blind.index[:3], "type"] = "sarcoma"
    blind.to_csv(folder / "renamed.csv")
    found = validate("panel.json", "renamed.csv", "--target", "type")
    part = found["parts"]["cohort"]
    assert (part["n_samples"], part["unknown"]) == (17, {"sarcoma": 3})
    right = round(part["scores"]["accuracy"]["value"] * 17)
    assert f"Counted as errors, the accuracy is {100 * right / 20:.1f} %" in capsys.readouterr().err
    assert np.sum(part["confusion"]) == 20


def test_labels_may_be_spelled_otherwise_than_the_classes_of_the_panel(validate, folder, capsys):
    expected = validate("panel.json", "cohort.csv", "--target", "type")["parts"]["cohort"]
    blind = pd.read_csv(folder / "cohort.csv", index_col=0)
    blind["type"] = [f"{label.lower()} " if i % 2 else label for i, label in enumerate(blind["type"])]
    blind.to_csv(folder / "spelled.csv")
    capsys.readouterr()
    assert validate("panel.json", "spelled.csv", "--target", "type")["parts"]["cohort"] == expected
    assert "labels stand for the classes of the panel, but for case and blanks: '" in capsys.readouterr().err
    strict = validate("panel.json", "spelled.csv", "--target", "type", "--strict")["parts"]["cohort"]
    assert strict["n_samples"] == 10


def outcome(n_right, n=100):
    truth = ["a"] * n
    predicted = ["a"] * n_right + ["b"] * (n - n_right)
    return validate_classes(truth, np.full((n, 2), 0.5), predicted, ["a", "b"])


@pytest.mark.parametrize(
    ("n_right", "said"),
    [
        (95, "holds as far as 100 samples can tell"),
        (70, "is worse than promised"),
        (100, "is better than promised"),
    ],
)
def test_whether_a_panel_holds_is_decided_by_the_interval_of_the_difference(n_right, said):
    promised = Estimate(0.93, 0.91, 0.95)
    assert said in comparison(outcome(n_right), ("accuracy", promised))
    assert comparison(outcome(n_right), None) is None


def test_samples_without_any_value_are_no_cohort(folder, panel, tmp_path, capsys):
    blind = pd.read_csv(folder / "cohort.csv", index_col=0)
    blind[[*panel.features, *panel.substitutes]] = np.nan
    blind.to_csv(tmp_path / "empty.csv")
    assert run(["validate", str(folder / "panel.json"), str(tmp_path / "empty.csv"), "--target", "type"]) == 3
    assert "no sample has a value of any feature" in capsys.readouterr().err


def test_numbers_are_judged(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((60, 8)), columns=[f"g{j}" for j in range(8)])
    y = 3.0 * X["g2"] - X["g5"] + 0.1 * rng.standard_normal(60)
    model = L20Regressor(2).fit(X[:40], y[:40])
    model.to_panel(X[:40], y[:40], target_names="age").save(tmp_path / "panel.json")
    X[40:].assign(age=y[40:]).to_csv(tmp_path / "new.csv", index=False)
    X[:40].assign(age=y[:40]).to_csv(tmp_path / "train.csv", index=False)
    arguments = ["validate", str(tmp_path / "panel.json"), str(tmp_path / "new.csv"), "--target", "age"]
    assert run([*arguments, "-o", str(tmp_path / "out")]) == 0
    part = json.loads((tmp_path / "out" / "validation.json").read_text())["parts"]["cohort"]
    assert part["scores"]["r2"]["value"] == pytest.approx(r2_score(y[40:], model.predict(X[40:])))
    assert part["bias"]["value"] == pytest.approx(np.mean(model.predict(X[40:]) - y[40:]))
    assert "Predicted against measured" in (tmp_path / "out" / "validation.html").read_text()


# ------------------------------------------------------------------------------------------------------------------ lists


def test_a_list_is_judged_by_weights_from_the_other_folds(validate, folder, panel, capsys):
    found = validate("genes.txt", "train.csv", "--target", "type")
    train = pd.read_csv(folder / "train.csv", index_col=0)
    genes = panel.features[:5]
    samples = Samples(train.drop(columns="type").to_numpy(), train["type"].to_numpy(str), list(train.columns[1:]), "")
    right = 0
    rows = [samples.feature_names.index(gene) for gene in genes]
    for fold in make_stratified_folds(samples.y, seed=0):
        fitted = make_model(samples, rows).fit(samples.X[fold.train], samples.y[fold.train])
        assert sorted(fitted.get_support(indices=True)) == sorted(rows)
        right += int((fitted.predict(samples.X[fold.test]) == samples.y[fold.test]).sum())
    assert found["parts"]["cross-validation"]["scores"]["accuracy"]["value"] == right / 63
    assert "1 name of the list not in train.csv: 'MYC'" in capsys.readouterr().err
    assert {each["name"] for each in found["list"]["members"]} == set(genes)


def test_the_distance_of_a_list_is_bounded_by_all_lists_of_its_size():
    """Brute force over all triples of eight features."""
    X, labels, _ = planted(n_features=8)
    samples = Samples(X, labels, [f"g{j}" for j in range(8)], "")
    problem = problem_of(samples)
    losses = {
        rows: support_loss(problem, np.array(rows)) / problem.null_loss for rows in itertools.combinations(range(8), 3)
    }
    worst = max(losses, key=losses.get)
    report = inspect_list(samples, list(worst))
    best = min(losses.values())
    assert report.loss == pytest.approx(losses[worst])
    assert report.lower_bound <= best * (1.0 + 1e-9)
    assert report.loss_found == pytest.approx(best)
    assert report.distance >= losses[worst] / best - 1.0
    for place, member in enumerate(report.members):
        rest = [row for row in worst if row != worst[place]]
        assert member.loss_without == pytest.approx(support_loss(problem, np.array(rest)) / problem.null_loss)


def test_a_list_with_a_second_table_is_judged_there_as_a_panel_of_it(validate, folder, panel):
    found = validate("genes.txt", "train.csv", "cohort.csv", "--target", "type")
    train, blind = (pd.read_csv(folder / name, index_col=0) for name in ("train.csv", "cohort.csv"))
    X = train.drop(columns="type")
    model = L20Classifier(5, constraints=Constraints(include=panel.features[:5])).fit(X, train["type"])
    expected = model.score(blind[X.columns], blind["type"])
    assert found["parts"]["cohort"]["scores"]["accuracy"]["value"] == expected
    assert set(found["parts"]) == {"cross-validation", "cohort"}
    assert "was promised" in found["answers"][-1]


# ------------------------------------------------------------------------------------------------------- pages and faults


def test_the_page_is_one_file_and_lets_no_name_become_markup(tmp_path):
    X, labels, _ = planted(n_features=5)
    evil = "<img src=x onerror=alert(1)>"
    classes = np.array([evil, "B", "C"])[np.unique(labels, return_inverse=True)[1]]
    frame = pd.DataFrame(X, columns=[evil + str(j) for j in range(5)])
    L20Classifier(3).fit(frame, classes).to_panel(frame, classes).save(tmp_path / "panel.json")
    frame.assign(type=classes, site=np.where(np.arange(len(X)) % 2, evil, "b")).to_csv(tmp_path / f"{evil[1:4]}.csv")
    arguments = ["validate", str(tmp_path / "panel.json"), str(tmp_path / "img.csv"), "--target", "type", "--groups", "site"]
    assert run([*arguments, "-o", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "validation.html").read_text()
    assert "<img" not in page
    assert "default-src &#39;none&#39;" in page
    with browser.chromium() as chromium:
        opened = browser.Opened(chromium.new_context(), tmp_path / "out" / "validation.html")
        assert opened.complaints == []
        assert all(url.startswith("file:") for url in opened.requests)


def test_what_cannot_be_judged_is_refused(folder, tmp_path, capsys):
    (tmp_path / "none.txt").write_text("# nothing\n\n")
    (tmp_path / "other.txt").write_text("TP53\nMYC\n")
    (tmp_path / "broken.json").write_text("{}")
    panel, cohort, genes = (str(folder / name) for name in ("panel.json", "cohort.csv", "genes.txt"))
    target = ["--target", "type"]
    faults = [
        (2, "which column has the labels?", [panel, cohort]),
        (2, "has no column 'typ'", [panel, cohort, "--target", "typ"]),
        (3, "no sample has a class that the panel knows", [panel, cohort, "--target", "site"]),
        (2, "a panel is judged on one table", [panel, cohort, cohort, *target]),
        (2, "a panel knows whether it takes logarithms", [panel, cohort, *target, "--log"]),
        (2, "a list is judged as a whole", [genes, cohort, *target, "-k", "3"]),
        (2, "--open needs a folder", [panel, cohort, *target, "--open"]),
        (3, "This is no panel", [str(tmp_path / "broken.json"), cohort, *target]),
        (3, "no names. Give one feature per line", [str(tmp_path / "none.txt"), str(folder / "train.csv"), *target]),
        (3, "none of its 2 names", [str(tmp_path / "other.txt"), str(folder / "train.csv"), *target]),
    ]
    for code, message, arguments in faults:
        assert run(["validate", *arguments]) == code, arguments
        assert message in capsys.readouterr().err.replace("\n", " ")


def test_the_training_table_itself_is_recognised(folder, panel, tmp_path, validate, capsys):
    digest = hashlib.sha256((folder / "train.csv").read_bytes()).hexdigest()
    replace(panel, data_sha256=digest).save(folder / "known.json")
    found = validate("known.json", "train.csv", "--target", "type")
    assert "the one that the panel was made from" in found["warnings"][0]
    assert len(found["answers"]) == 1  # nothing is compared


def test_a_list_for_numbers_is_judged(tmp_path):
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.standard_normal((50, 6)), columns=[f"g{j}" for j in range(6)])
    X.assign(age=X["g1"] + 0.1 * rng.standard_normal(50)).to_csv(tmp_path / "train.csv", index=False)
    (tmp_path / "list.txt").write_text("g1\ng2\n")
    arguments = ["validate", str(tmp_path / "list.txt"), str(tmp_path / "train.csv"), "--target", "age"]
    assert run([*arguments, "--task", "regression", "-o", str(tmp_path / "out")]) == 0
    found = json.loads((tmp_path / "out" / "validation.json").read_text())
    assert found["parts"]["cross-validation"]["scores"]["r2"]["value"] > 0.9
    assert found["list"]["found"][0] == "g1"


def test_select_promises_what_validate_compares(tmp_path):
    X, labels, _ = planted(n_features=8)
    table = write_table(tmp_path / "train.tsv", X[:40], labels[:40])
    other = write_table(tmp_path / "cohort.tsv", X[40:], labels[40:])
    assert run(["select", table, "--target", "type", "--auto", "best", "-o", str(tmp_path / "results")]) == 0
    assert run(["validate", str(tmp_path / "results"), other, "--target", "type", "-o", str(tmp_path / "out")]) == 0
    found = json.loads((tmp_path / "out" / "validation.json").read_text())
    assert "was promised" in found["answers"][1]
