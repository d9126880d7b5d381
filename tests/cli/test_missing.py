"""Missing values and repeated names from the command line: whatever is learned to prepare values is learned in each fold."""

from __future__ import annotations

import html
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.metrics import accuracy_score, log_loss
from sklearn.pipeline import make_pipeline

from l20fs import Constraints, L20Classifier
from l20fs.cli import run
from l20fs.cli.feature_list import cross_validate
from l20fs.compare.methods import Method
from l20fs.compare.runner import Dataset, Settings
from l20fs.compare.runner import run as run_comparison
from l20fs.data.readers import read_table
from l20fs.evaluation.choice import choose
from l20fs.evaluation.folds import make_stratified_folds
from l20fs.evaluation.predictions import nested_scores, predictions_by_k

N_SAMPLES, N_FEATURES = 45, 12
LABELS = np.repeat(["a", "b", "c"], N_SAMPLES // 3)
IMPUTERS = {"median": SimpleImputer(strategy="median", keep_empty_features=True), "knn": KNNImputer()}


def gappy(seed=0):
    """Return a table of three classes, one informative feature each, with many gaps and two features called g3."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_SAMPLES, N_FEATURES))
    X[np.arange(N_SAMPLES), np.repeat([0, 1, 2], N_SAMPLES // 3)] += 2.0
    frame = pd.DataFrame(X.round(3), columns=[f"g{j}" for j in range(N_FEATURES)])
    return frame.mask(rng.random(frame.shape) < 0.15)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("gaps") / "gaps.csv"
    gappy().assign(type=LABELS).to_csv(file, index=False)
    return file


def slow_twin(X, y, folds, imputer, k):
    """Predict each fold by a pipeline that was fitted to the others, with k features."""
    predicted = np.empty(len(y), dtype=object)
    for train, test in folds:
        pipeline = make_pipeline(clone(imputer), L20Classifier(k, calibration=None))
        predicted[test] = pipeline.fit(X[train], y[train]).predict(X[test])
    return predicted


@pytest.mark.parametrize("rule", ["median", "knn"])
def test_scores_of_select_are_those_of_a_pipeline_in_each_fold(file, tmp_path, rule, capsys):
    command = ["select", file, "--target", "type", "-k", "3", "--missing", rule, "-o", tmp_path / "out"]
    assert run(list(map(str, command))) == 0
    X, folds = gappy().to_numpy(), make_stratified_folds(LABELS, seed=0)
    predicted = slow_twin(X, LABELS, folds, IMPUTERS[rule], 3)
    scores = pd.read_csv(tmp_path / "out" / "cv.tsv", sep="\t").set_index("n_features")["linear"]
    assert scores[3] == pytest.approx(accuracy_score(LABELS, predicted))
    page = html.unescape((tmp_path / "out" / "report.html").read_text())
    n_missing, n_features = int(np.isnan(X).sum()), int(np.isnan(X).any(axis=0).sum())
    assert f"{n_missing} values of {n_features} features are missing" in page
    assert "3 of the 3 selected features had missing values: 'g" in page
    stored = json.loads((tmp_path / "out" / "run.json").read_text())["input"]
    assert stored["missing"] == {"values": n_missing, "features": n_features}
    # The panel was made from filled values, and predicts samples with gaps.
    capsys.readouterr()
    assert run(["predict", str(tmp_path / "out"), str(file), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["predictions"]) == N_SAMPLES


def folds_and_table(file, **options):
    table = read_table(file, "type", **options)
    return table, make_stratified_folds(table.y, seed=0)


@pytest.mark.parametrize("rule", ["median", "knn"])
def test_nested_folds_fit_in_the_inner_ones(file, rule):
    table, folds = folds_and_table(file, missing=rule)
    options = {"judges": ["linear"], "preprocess": table.preprocess}
    model, sizes, y = L20Classifier(), [1, 3], table.y
    outer = predictions_by_k(model, table.X_before, y, sizes, folds, **options)
    for place, k in enumerate(sizes):
        expected = slow_twin(table.X_before, y, folds, IMPUTERS[rule], k)
        assert outer.classes[outer.predicted["linear"][:, place]].tolist() == expected.tolist()
    nested = nested_scores(model, table.X_before, y, outer, "best", preprocess=table.preprocess)
    for fold, chosen in zip(folds, nested.sizes, strict=True):
        X, inner_y = table.X_before[fold.train], y[fold.train]
        inner_folds = make_stratified_folds(inner_y, seed=0)
        filled = predictions_by_k(model, X, inner_y, sizes, inner_folds, **options)
        for place, k in enumerate(sizes):
            expected = slow_twin(X, inner_y, inner_folds, IMPUTERS[rule], k)
            assert filled.classes[filled.predicted["linear"][:, place]].tolist() == expected.tolist()
        assert chosen == sizes[choose(filled.results(), "best")]


@pytest.mark.parametrize("rule", ["median", "knn"])
def test_test_samples_do_not_change_what_is_learned(file, rule):
    """With wild values in the samples of one fold, the predictions of every other sample of that fold stay the same."""
    table, folds = folds_and_table(file, missing=rule)
    fold, wild = folds[0], table.X_before.copy()
    changed = fold.test[0]
    wild[changed] = 1e6
    before, after = (
        predictions_by_k(L20Classifier(), X, table.y, [1, 2, 3], [fold], preprocess=table.preprocess).values
        for X in (table.X_before, wild)
    )
    others = fold.test[1:]
    np.testing.assert_array_equal(before[others], after[others])
    assert not np.array_equal(before[changed], after[changed])


def test_a_list_is_validated_with_gaps_filled_in_each_fold(file, tmp_path):
    table, folds = folds_and_table(file)
    found = cross_validate(table, [0, 1, 2], folds)
    probabilities = np.zeros((N_SAMPLES, 3))
    for train, test in folds:
        pipeline = make_pipeline(IMPUTERS["median"], L20Classifier(3, constraints=Constraints(include=[0, 1, 2])))
        probabilities[test] = pipeline.fit(table.X_before[train], LABELS[train]).predict_proba(table.X_before[test])
    assert found.scores["log_loss"].value == pytest.approx(log_loss(LABELS, probabilities))
    (tmp_path / "list.txt").write_text("g0\ng1\n")
    command = ["validate", tmp_path / "list.txt", file, "--target", "type", "-o", tmp_path / "out"]
    assert run(list(map(str, command))) == 0
    stored = json.loads((tmp_path / "out" / "validation.json").read_text())
    assert any("are filled in by the median of the training samples" in text for text in stored["warnings"])


@pytest.mark.parametrize("rule", ["median", "knn"])
def test_every_split_of_a_comparison_fills_in_by_its_training_samples(file, rule):
    table = read_table(file, "type", missing=rule)
    data = Dataset("gaps", table.X, table.y, "classification", table.unprepared)
    settings = Settings((Method("Fisher score", "FisherScore"),), (2, 5), ("knn",), 1, 3, "zscore")
    found = run_comparison(settings, data)
    for fold in (None, 0, 1, 2):
        train = (data.split(0, 0) if fold is None else data.inner_folds(0, 3, 0)[fold]).train
        imputer = clone(IMPUTERS[rule]).fit(table.X_before[train])
        expected = run_comparison(settings, Dataset("gaps", imputer.transform(table.X_before), table.y))
        one, two = (rows[rows.fold.isna() if fold is None else rows.fold == fold] for rows in (expected, found))
        assert one.accuracy.tolist() == two.accuracy.tolist()
        assert [each.tolist() for each in one.selected] == [each.tolist() for each in two.selected]


def test_logarithms_are_taken_before_gaps_are_filled_in(tmp_path):
    counts = np.exp(gappy().to_numpy()).round(2)
    pd.DataFrame(counts, columns=gappy().columns).assign(type=LABELS).to_csv(tmp_path / "a.csv", index=False)
    command = ["select", tmp_path / "a.csv", "--target", "type", "-k", "2", "--log", "-o", tmp_path / "out"]
    assert run(list(map(str, command))) == 0
    folds = make_stratified_folds(LABELS, seed=0)
    expected = slow_twin(np.log1p(counts), LABELS, folds, IMPUTERS["median"], 2)
    scores = pd.read_csv(tmp_path / "out" / "cv.tsv", sep="\t").set_index("n_features")["linear"]
    assert scores[2] == pytest.approx(accuracy_score(LABELS, expected))
