"""Comparison by other metrics than accuracy, and of numbers: against a slow loop with scikit-learn, in words and files."""

from __future__ import annotations

import io
import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from samples import make_data
from scipy.special import softmax
from sklearn import metrics as sk
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import scale

from l20fs import L20Selector
from l20fs.cli import run as run_cli
from l20fs.data.readers import DataError
from l20fs.evaluation.engine import Samples
from l20fs.evaluation.metrics import METRICS
from l20fs.experiments.candidates import choose_variants
from l20fs.experiments.cells import Dataset, fit_to_numbers, inner_folds
from l20fs.experiments.compare import compare, comparison_frame, comparison_plan, remarks
from l20fs.experiments.plan import PlanError
from l20fs.experiments.protocol import CLASSIFIERS, REGRESSORS, Softmax, paper_split
from l20fs.experiments.runner import compute_all, rows_of, run, selections_of
from l20fs.experiments.verdict import verdict
from l20fs.methods import L21, RFS, RPMFS, Baseline, FisherScore
from l20fs.report.formats import write_markdown

LABEL_METRICS = [name for name, metric in METRICS.items() if metric.is_for_labels]
NUMBER_METRICS = [name for name, metric in METRICS.items() if not metric.is_for_labels]


def uneven(n_classes=3):
    """Return samples of classes with 36, 15 and 6 members, or of the first and the last."""
    X, y = make_data(2, n_samples=120)
    sizes = {0: 36, 1: 15, 2: 6} if n_classes == 3 else {0: 36, 2: 6}
    kept = np.sort(np.concatenate([np.flatnonzero(y == label)[:size] for label, size in sizes.items()]))
    return Dataset("uneven", X[kept], np.array(["a", "b", "c"])[y[kept]])


def numbers(n_samples=90):
    """Return some of scikit-learn's diabetes patients, whose targets are whole numbers."""
    X, y = load_diabetes(return_X_y=True, scaled=False)
    return Dataset("diabetes", X[:n_samples], y[:n_samples], "regression")


def small_plan(data, methods, **options):
    variants = choose_variants(methods, for_labels=data.has_labels)
    options = {"sizes": [2, 5], "n_splits": 2, "scale": "zscore"} | options
    return replace(comparison_plan(data, variants, **options), inner_folds=2)


# ------------------------------------------------------------------------------------------------------------- reference


def area(truth, labels, shares):
    return (
        sk.roc_auc_score(truth, shares[:, 1]) if shares.shape[1] == 2 else sk.roc_auc_score(truth, shares, multi_class="ovr")
    )


def squared_error(truth, labels, shares):
    total = np.square(shares - (truth[:, None] == np.unique(truth))).sum(axis=1).mean()
    return total / 2.0 if shares.shape[1] == 2 else total


SCORES = {
    "accuracy": lambda truth, labels, shares: sk.accuracy_score(truth, labels),
    "balanced_accuracy": lambda truth, labels, shares: sk.balanced_accuracy_score(truth, labels),
    "f1_macro": lambda truth, labels, shares: sk.f1_score(truth, labels, average="macro"),
    "roc_auc": area,
    "log_loss": lambda truth, labels, shares: sk.log_loss(truth, shares),
    "brier": squared_error,
    "r2": lambda truth, found: sk.r2_score(truth, found),
    "mae": lambda truth, found: sk.mean_absolute_error(truth, found),
    "rmse": lambda truth, found: sk.root_mean_squared_error(truth, found),
}


def slow_score(metric, judge, X, y, fold, columns):
    """Fit one model on some columns and score it by scikit-learn."""
    models = {
        "knn": KNeighborsClassifier(5) if METRICS[metric].is_for_labels else KNeighborsRegressor(5),
        "softmax": Softmax(),
        "ridge": RidgeCV([0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4]),
    }
    model = models[judge].fit(X[fold.train][:, columns], y[fold.train])
    test, truth = X[fold.test][:, columns], y[fold.test]
    predicted = [model.predict(test)]
    if METRICS[metric].is_for_labels:
        predicted.append(model.predict_proba(test))
    return SCORES[metric](truth, *predicted)


def slow_honest(data, metric, judge, make, choices, sizes=(2, 5), n_splits=2, n_folds=2):
    """Choose on inner folds and test, split by split, as it is explained to users; return scores and sizes."""

    def score(fold, choice, size):
        X = (data.X - data.X[fold.train].mean(axis=0)) / data.X[fold.train].std(axis=0)
        targets = data.y[fold.train]
        if not data.has_labels:
            targets = (targets - targets.mean()) / targets.std()  # fractions, which no method takes for labels
        order = np.argsort(make(max(sizes), **choice).fit(X[fold.train], targets).ranking_, kind="stable")
        return slow_score(metric, judge, X, data.y, fold, order[:size])

    found = []
    for number in range(n_splits):
        rivals = []
        for place, (choice, size) in enumerate(itertools.product(choices, sizes)):
            inner = np.mean([score(fold, choice, size) for fold in inner_folds(data.strata, number, n_folds, 0)])
            rivals.append((-METRICS[metric].sign * round(inner, 10), size, place, choice))
        _, size, _, choice = min(rivals)
        found.append((score(paper_split(data.strata, number), choice, size), size))
    return zip(*found, strict=True)


def own(k, **choice):
    return L20Selector(k, scale="none", max_features=k, **choice)


def results(plan, data):
    found = compute_all(plan, [data])
    frame = comparison_frame(rows_of(found, plan.scoring), selections_of(found), data.X.shape[1])
    return frame.set_index(["classifier", "method"])


def check_against_loop(table, data, metric, judge, method, make, choices):
    scores, sizes = slow_honest(data, metric, judge, make, choices)
    unit = 100.0 if METRICS[metric].is_share else 1.0
    row = table.loc[judge, method]
    assert row[metric] == pytest.approx(unit * np.mean(scores))
    assert row.standard_error == pytest.approx(unit * np.std(scores, ddof=1) / np.sqrt(2))
    assert row.n_features == np.median(sizes)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_metric_of_labels_is_that_of_a_slow_loop(n_classes):
    data = uneven(n_classes)
    for metric in LABEL_METRICS:
        table = results(small_plan(data, ["FisherScore", "L20Selector"], scoring=metric), data)
        for judge in CLASSIFIERS:
            check_against_loop(table, data, metric, judge, "FisherScore", FisherScore, [{}])
    check_against_loop(table, data, metric, "knn", "L20Selector", own, [{"ridge": value} for value in ("auto", 1.0, 10.0)])


def test_every_metric_of_numbers_is_that_of_a_slow_loop():
    """The targets are whole numbers, and no method takes them for labels."""
    data = numbers()
    assert np.array_equal(data.y, np.round(data.y))
    for metric in NUMBER_METRICS:
        table = results(small_plan(data, ["L20Selector", "RFS"], scoring=metric), data)
        for judge in REGRESSORS:
            ridges = [{"ridge": value} for value in ("auto", 1.0, 10.0)]
            check_against_loop(table, data, metric, judge, "L20Selector", own, ridges)
    gammas = [{"gamma": 10.0**power} for power in range(-5, 6, 2)]
    check_against_loop(table, data, metric, "ridge", "RFS", RFS, gammas)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", [RFS, L21, RPMFS, L20Selector])
def test_numbers_that_are_whole_in_units_of_their_deviation_are_no_labels(method):
    """With the deviation 1 they stay -2, 0 and 2."""
    y = np.repeat([-2.0, 0.0, 2.0], [3, 18, 3])
    assert y.std() == 1.0
    selector = method(2)
    fit_to_numbers(selector, Samples(scale(numbers(24).X), y))
    assert not hasattr(selector, "classes_")


def test_probabilities_of_softmax_are_those_of_logistic_regression():
    X, y = make_data(1)
    X = X[:, :3]
    reference = LogisticRegression(fit_intercept=False, C=1 / (60 * 1e-4), max_iter=5000, tol=1e-10).fit(X, y)
    ours = Softmax().fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), softmax(X @ ours.coef_.T, axis=1))
    # Both minimise the same function; they stop at a slope of about 1e-4.
    np.testing.assert_allclose(ours.predict_proba(X), reference.predict_proba(X), atol=0.01)


@pytest.mark.filterwarnings("ignore:The number of unique classes is greater than 50%")  # scikit-learn before 1.8
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_baseline_takes_any_targets(task):
    X, y = numbers()[1:3]
    selector = Baseline()
    selector.task = task
    assert selector.fit(X, y).support_.all()
    assert hasattr(selector, "classes_") == (task == "classification")


# ------------------------------------------------------------------------------------------------- plans, cells and rows


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (uneven(), "balanced_accuracy"),
        (Dataset("even", *make_data(2)), "accuracy"),
        (numbers(), "r2"),
    ],
    ids=["uneven", "even", "numbers"],
)
def test_the_default_goes_by_the_targets(data, found):
    plan = comparison_plan(data, choose_variants(for_labels=data.has_labels))
    assert plan.scoring == plan.metric.name == found
    assert plan.classifiers == tuple(CLASSIFIERS if data.has_labels else REGRESSORS)


def test_classes_that_are_never_tested_have_no_part_in_the_area():
    data = uneven(2)
    X = np.vstack([data.X, [data.X[0]]])
    data = Dataset("rare", X, np.append(data.y, "rare"))
    plan = small_plan(data, ["FisherScore"], scoring="roc_auc")
    assert run(plan, [data]).roc_auc.between(0.0, 1.0).all()
    assert any("Never tested" in remark for remark in remarks(data, plan))


def test_numbers_are_split_at_random_with_all_samples_once():
    data = numbers()
    split = paper_split(data.strata, 0)
    assert len(split.train) == 60
    folds = inner_folds(data.strata, 0, 5, 0)
    assert [len(fold.test) for fold in folds] == [12] * 5
    assert sorted(np.concatenate([fold.test for fold in folds])) == split.train.tolist()
    assert not list(remarks(data, comparison_plan(data, choose_variants(for_labels=False))))


# ----------------------------------------------------------------------------------------------------- words and pictures


@pytest.mark.parametrize("metric", ["mae", "log_loss", "r2"])
def test_the_best_follows_the_sign_and_nothing_speaks_of_accuracy(metric):
    data = uneven(2) if METRICS[metric].is_for_labels else numbers()
    methods = ["Baseline", "L20Selector", "RFS"]
    plan = small_plan(data, methods, scoring=metric)
    found = compare(plan, data)
    table, files = found.table, found.files
    frame, title, sign = pd.read_csv(io.StringIO(files["comparison.csv"])), METRICS[metric].title, METRICS[metric].sign
    for judge, group in frame.groupby("classifier", sort=False):
        ordered = group.sort_values(metric, ascending=sign < 0, kind="stable")
        assert ordered[metric].tolist() == group[metric].tolist(), judge
    assert [row[2].rank for row in table.rows[:3]] == [1, 2, 3]
    assert table.header[:3] == ("classifier" if data.has_labels else "regressor", "method", title)
    word = "highest" if sign > 0 else "lowest"
    summary, page = files["summary.md"], files["report.html"]
    best = frame.method[0]
    assert f"{best} ({frame.n_features[0]:g} features) has the {word} {title}, " in summary
    assert f"has the {word} {title}" in page
    assert f"Without any feature, by the same prediction for all samples, the {title} would be " in summary
    written = summary + page + table.caption + files["comparison.md"]
    assert "ccuracy" not in written
    assert ("classes" in summary) == data.has_labels


def test_words_tell_the_error_of_the_mean_and_what_is_gained():
    """Less error is a gain, so that the best method never loses on average."""
    data = numbers()
    plan = small_plan(data, ["Baseline", "L20Selector", "RFS"], scoring="rmse", sizes=[1, 2])
    found = compute_all(plan, [data])
    rows = rows_of(found, "rmse")
    frame = comparison_frame(rows, selections_of(found), data.X.shape[1])
    text = write_markdown(verdict(rows, frame, plan, data, [], []))
    assert f"would be {data.y.std():.4g}." in text
    here = frame[frame.classifier == "ridge"]
    for row in here.iloc[1:].itertuples():
        assert f"| {row.method} | {row.rmse - here.rmse.iloc[0]:.3f} |" in text.split("## ridge")[1]


# ---------------------------------------------------------------------------------------------------------- command line


def write_csv(file, data):
    frame = pd.DataFrame(data.X, columns=[f"g{j}" for j in range(data.X.shape[1])])
    frame.assign(target=data.y).to_csv(file, index=False)
    return str(file)


def test_numbers_on_the_command_line(tmp_path, capsys):
    table = write_csv(tmp_path / "diabetes.csv", numbers(40))
    arguments = ["compare", table, "--target=target", "--task=regression", "--splits=2", "--sizes=2,5", "--n-jobs=1"]
    assert run_cli([*arguments, "-o", str(tmp_path / "out"), "--scoring", "neg_mean_absolute_error"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "mean absolute error" in shown
    frame = pd.read_csv(tmp_path / "out" / "comparison.csv")
    assert set(frame.method) == {"Baseline", "L20Selector", "RFS", "L21"}
    assert set(frame.classifier) == set(REGRESSORS)
    assert "score-chart" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scoring", "rocauc"], "'rocauc' is unknown. Use auto, or one of accuracy, balanced_accuracy"),
        (["--scoring", "r2"], "--scoring r2 is for numbers. Use one of accuracy, balanced_accuracy"),
        (["--task", "regression", "--scoring", "accuracy"], "--scoring accuracy is for labels. Use one of r2, mae, rmse"),
        (
            ["--task", "regression", "--methods", "RFS,mRMR"],
            "--methods: the method mRMR needs class labels, and the target holds numbers. Use Baseline, L20Selector, "
            "l2,0-FS, RFS, L21, RPMFS, ReliefF and SVMRFE.",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_the_table_is_read(tmp_path, capsys, arguments, message):
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    assert run_cli(["compare", str(empty), "--target", "x", "-o", str(tmp_path / "out"), *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_unsupervised_methods_may_be_named():
    assert [variant.label for variant in choose_variants(["UDFS"], for_labels=False)] == ["UDFS"]
    with pytest.raises(PlanError, match="the method LFS needs class labels"):
        choose_variants(["LFS"], for_labels=False)


def test_too_few_numbers_are_refused():
    variants = choose_variants(for_labels=False)
    with pytest.raises(ValueError, match="scoring='accuracy' does not go with a regression"):
        comparison_plan(numbers(), variants, scoring="accuracy")
    with pytest.raises(DataError, match=r"There are 14 samples. A comparison by numbers needs 15"):
        comparison_plan(numbers(14), variants)
    two = numbers(20)
    with pytest.raises(DataError, match=r"The target has 2 different numbers. A regression needs 3 or more"):
        comparison_plan(two._replace(y=np.arange(20.0) % 2), variants)
