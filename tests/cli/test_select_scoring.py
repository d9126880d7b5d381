"""``l20fs select`` with other metrics, with uneven classes, and with numbers as targets."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from cli_samples import RESULTS, contents, page_data, read_tsv, write_table
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_predict

from l20fs import L20Regressor, L20Selector, L20SelectorCV, StabilitySelector
from l20fs.cli import run
from l20fs.evaluation.target_summary import summarise
from l20fs.text import with_interval


def summary_of(capsys, *arguments):
    """Run select and return what --json prints."""
    assert run(["select", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments, code=2):
    assert run(["select", *map(str, arguments)]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    return " ".join(printed.err.split())


def interval(score):
    return [score[name] for name in ("value", "lower", "upper")]


# ------------------------------------------------------------------------------------------------------- other metrics


def two_classes(n_first=40, n_second=30, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(["ill", "well"], [n_first, n_second]))
    X = rng.standard_normal((len(y), 10))
    X[:, :3] += 0.8 * (y == "ill")[:, None]
    return X, y


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("scoring") / "two.tsv", *two_classes())


@pytest.mark.parametrize("name", ["roc_auc", "neg_log_loss", "f1_macro", "balanced_accuracy", "brier"])
def test_the_number_is_chosen_by_the_metric(table, capsys, name, tmp_path):
    options = ["--target", "type", "--scoring", name, "-o", tmp_path / "out"]
    found = summary_of(capsys, table, *options, "--auto", "best")
    metric = found["scoring"]
    assert metric == name.removeprefix("neg_")
    sign = -1 if metric in ("log_loss", "brier") else 1
    rows = found["cv"]
    assert found["k"] == 1 + np.argmax([round(sign * row["linear_fold_mean"], 9) for row in rows])  # ties to the smaller
    assert all(row["linear_lower"] <= row["linear"] <= row["linear_upper"] for row in rows)
    assert ("KNN-5" in rows[0]) == (metric in ("f1_macro", "balanced_accuracy"))
    score = found["score"]
    assert (score["metric"], score["is_corrected"]) == (metric, True)
    assert with_interval(*interval(score), is_share=sign > 0) in found["answer"]
    assert sign * score["value"] <= sign * rows[found["k"] - 1]["linear"] + 0.01
    assert read_tsv(tmp_path / "out" / "cv.tsv")[0]["metric"] == metric


def test_the_auc_is_that_of_the_selector_with_cross_validation(table, capsys):
    X, y = two_classes()
    found = summary_of(capsys, table, "--target", "type", "--scoring", "roc_auc", "--auto", "best")
    cv = L20SelectorCV("best", sizes=range(1, 11), cv=summarise(y).folds(), scoring="roc_auc", ridges=None).fit(X, y)
    # The calibration of each fold keeps the order of its samples, and so the area.
    means = [row["linear_fold_mean"] for row in found["cv"]]
    np.testing.assert_allclose(means, cv.cv_results_["mean_test_score"], atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scoring", "r2"], "--scoring r2 is for numbers. Use one of accuracy, balanced_accuracy"),
        (["--scoring", "accuracy", "--task", "regression"], "--scoring accuracy is for labels. Use one of r2, mae, rmse"),
        (["--scoring", "roc"], "'roc' is unknown. Use auto, or one of accuracy"),
        (["--task", "ranking"], "'ranking' is not one of"),
        (["--task", "regression", "--class-weight", "none"], "--class-weight is for labels"),
    ],
)
def test_what_does_not_belong_together_is_refused_before_the_file_is_read(tmp_path, capsys, options, message):
    (tmp_path / "no.table").write_text("")
    assert message in refused(capsys, tmp_path / "no.table", "--target", "type", *options)


@pytest.mark.parametrize(("n_second", "metric"), [(13, "accuracy"), (12, "balanced_accuracy")])
def test_uneven_classes_are_scored_class_by_class(tmp_path, capsys, n_second, metric):
    file = write_table(tmp_path / "a.tsv", *two_classes(60, n_second))
    found = summary_of(capsys, file, "--target", "type", "-k", "3")
    assert found["scoring"] == metric
    is_balanced = metric == "balanced_accuracy"
    assert ("Balanced accuracy counts every class alike, since 'ill' alone is 83.3 %" in found["answer"]) == is_balanced
    assert not any("Look at the errors class by class" in text for text in found["warnings"])
    asked = summary_of(capsys, file, "--target", "type", "-k", "3", "--scoring", "accuracy")
    assert asked["scoring"] == "accuracy"
    assert any("Look at the errors class by class" in text for text in asked["warnings"]) == is_balanced


def test_no_score_is_ever_without_doubt(tmp_path, capsys):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], [60, 10])
    X = rng.standard_normal((70, 8))
    X[:, 0] += 50.0 * (y == "a")
    file = write_table(tmp_path / "a.tsv", X, y)
    for scoring in ("accuracy", "balanced_accuracy", "f1_macro", "roc_auc"):
        found = summary_of(capsys, file, "--target", "type", "-k", "1", "--scoring", scoring)
        assert found["score"]["value"] == 1.0
        assert found["score"]["lower"] < 0.96, scoring
        assert "±" not in found["answer"]
        assert "to 100 %)" in found["answer"]


# --------------------------------------------------------------------------------------------------- numbers as targets


@pytest.fixture(scope="module")
def diabetes(tmp_path_factory):
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    file = tmp_path_factory.mktemp("diabetes") / "diabetes.csv"
    X.assign(progression=y).to_csv(file, index=False)
    return file, X.to_numpy(), y.to_numpy()


def test_a_regression_from_the_table_to_the_page(diabetes, tmp_path, capsys):
    file, X, y = diabetes
    output = tmp_path / "out"
    options = ["--target", "progression", "--task", "regression", "-k", "5", "-o", output]
    found = summary_of(capsys, file, *options)
    folds = KFold(5, shuffle=True, random_state=0)
    for row in found["cv"]:
        model = L20Regressor(row["n_features"], max_features_to_select=10)
        predicted = cross_val_predict(model, X, y, cv=folds)
        assert row["linear"] == pytest.approx(r2_score(y, predicted))
        mean = np.mean([r2_score(y[test], predicted[test]) for _, test in folds.split(X)])
        assert row["linear_fold_mean"] == pytest.approx(mean)
    assert contents(output).keys() == RESULTS
    model = L20Regressor(5, max_features_to_select=10).fit(X, y)
    names = load_diabetes().feature_names
    assert found["selected"] == [names[j] for j in model.path_.support(5)]
    assert found["answer"].startswith("5 of 10 features predict 'progression': R² 0.4")
    assert with_interval(*interval(found["score"]), is_share=False) in found["answer"]
    assert found["input"]["target"] == {"minimum": 25.0, "maximum": 346.0, "mean": pytest.approx(y.mean())}
    page = page_data(output)
    assert (page["task"], page["targets"], page["classes"]) == ("regression", ["progression"], [])
    predicted = cross_val_predict(model, X, y, cv=folds)
    shown = slice(None, None, 2)  # 221 of 442 points
    np.testing.assert_allclose(page["numbers"]["measured"][0], y[shown], rtol=1e-5)
    np.testing.assert_allclose(page["numbers"]["predicted"][4][0], predicted[shown], rtol=1e-5)
    header = (output / "selection.tsv").read_text().splitlines()[0].split("\t")
    assert header[-1] == "coef_progression"
    levels = dict(zip(page["features"], page["columns"]["level"], strict=True))
    for name, level in levels.items():
        falls = np.corrcoef(X[:, names.index(name)], y)[0, 1] < 0.0
        assert level == f"{'falls' if falls else 'rises'} with progression"
    assert len(set(levels.values())) == 2, "otherwise this test says nothing"
    weights = [float(row["coef_progression"]) for row in read_tsv(output / "selection.tsv")]
    np.testing.assert_allclose(weights, model.coef_[model.path_.support(5)], rtol=1e-3)


def test_a_regression_on_the_terminal(diabetes, capsys):
    file, _, _ = diabetes
    assert run(["select", str(file), "--target", "progression", "--task", "regression", "-k", "5"]) == 0
    printed = capsys.readouterr()
    assert "442 samples, 10 features, numbers to predict" in printed.err
    text = " ".join(printed.out.split())
    assert "R² (95 % interval): 5-fold cross-validation, selection inside each fold" in text
    assert "Always the mean: 0" in text
    assert "rises with progression" in text


@pytest.mark.parametrize("rule", ["best", "1se"])
def test_a_regression_chooses_as_the_selector_with_cross_validation_does(diabetes, capsys, rule):
    file, X, y = diabetes
    options = ["--target", "progression", "--task", "regression", "--scoring", "mae", "--nested"]
    found = summary_of(capsys, file, *options, "--auto", rule)
    folds = summarise(y).folds()
    cv = L20SelectorCV(
        rule, sizes=range(1, 11), cv=folds, scoring="neg_mean_absolute_error", selector=L20Selector(task="regression")
    ).fit(X, y)
    assert found["k"] == cv.n_features_
    assert found["cv"][found["k"] - 1]["linear_fold_mean"] == pytest.approx(-cv.best_score_)
    assert found["score"]["lower"] < found["score"]["value"] < found["score"]["upper"]
    assert f"mean absolute error {with_interval(*interval(found['score']), is_share=False)}" in found["answer"]
    assert found["nested"]["value"] == pytest.approx(np.mean(found["nested"]["folds"]), rel=0.01)


def test_groups_and_stability_of_a_regression(diabetes, tmp_path, capsys):
    _, X, y = diabetes
    X, y, donors = X[:80], y[:80], [f"d{i % 8}" for i in range(80)]
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(10)]).assign(y=y, donor=donors)
    frame.to_csv(tmp_path / "a.csv", index=False)
    options = ["--target", "y", "--task", "regression", "--groups", "donor", "-k", "3", "--stability", "6"]
    found = summary_of(capsys, tmp_path / "a.csv", *options)
    assert "cross-validation by group" in found["protocol"]
    stable = StabilitySelector(L20Selector(3, max_features_to_select=10, task="regression"), n_resamples=6, random_state=0)
    assert found["stability"]["index"] == pytest.approx(stable.fit(X, y, groups=donors).stability_)


def test_methods_that_need_labels_are_refused_and_others_work(diabetes, capsys):
    file, _, _ = diabetes
    options = ["--target", "progression", "--task", "regression", "-k", "3", "--method"]
    message = refused(capsys, file, *options, "FisherScore")
    assert "--method FisherScore needs class labels" in message
    assert "RFS" in message.partition("Use one of")[2]
    assert len(summary_of(capsys, file, *options, "RFS")["selected"]) == 3


@pytest.mark.parametrize("method", ["RFS", "L21", "RPMFS", "ReliefF", "SVMRFE"])
def test_whole_numbers_are_numbers_for_every_method(tmp_path, capsys, method):
    """Reference: the same numbers plus a half, which nothing takes for labels; the intercept takes the half."""
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 12))
    y = np.rint(3.0 * X[:, 0] - 2.0 * X[:, 1] + 50.0)
    found = []
    for shift in (0.0, 0.5):
        file = tmp_path / f"a{shift}.csv"
        pd.DataFrame(X, columns=[f"g{j}" for j in range(12)]).assign(y=y + shift).to_csv(file, index=False)
        options = ["--target", "y", "--task", "regression", "-k", "2", "--method", method, "--stability", "4"]
        found.append(summary_of(capsys, file, *options))
    whole, half = found
    assert set(whole["selected"]) == {"g0", "g1"}
    assert whole["selected"] == half["selected"]
    assert whole["scores"] == pytest.approx(half["scores"], rel=1e-4)
    assert [row["linear"] for row in whole["cv"]] == pytest.approx([row["linear"] for row in half["cv"]], abs=1e-6)
    assert whole["stability"]["frequencies"] == half["stability"]["frequencies"]


def test_numbers_are_not_taken_for_classes_without_a_word(diabetes, capsys):
    file, _, _ = diabetes
    message = refused(capsys, file, "--target", "progression", code=3)
    assert "214 different numbers in 442 samples" in message
    assert "--task regression" in message


def test_labels_are_no_numbers(table, capsys):
    message = refused(capsys, table, "--target", "type", "--task", "regression", code=3)
    assert "'type' has 70 values that are no numbers: 'ill', 'well', first in line 2" in message
    assert "--task regression: the built-in srbct has labels" in refused(capsys, "srbct", "--task", "regression")


def test_few_numbers_have_no_cross_validation_and_a_copy_of_the_target_is_told_of(tmp_path, capsys):
    frame = pd.DataFrame({"y": [1.0, 2.5, 7.0], "a": [2.0, 5.0, 14.0], "b": [1.0, 0.0, 1.5]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    found = summary_of(capsys, tmp_path / "a.csv", "--target", "y", "--task", "regression", "-k", "1")
    assert "how well is not known" in found["answer"]
    assert any("No cross-validation: there are 3 samples only" in text for text in found["warnings"])
    assert any("follows exactly from the feature 'a'" in text for text in found["warnings"])
    message = refused(capsys, tmp_path / "a.csv", "--target", "y", "--task", "regression", "--auto", "1se", code=3)
    assert "--auto 1se needs cross-validation" in message
