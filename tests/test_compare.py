"""Comparison of methods on one data set: against slow loops with scikit-learn, refused, and in words."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from samples import make_data
from scipy.stats import t as student
from scipy.stats import ttest_rel
from sklearn import metrics as sk
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from l20fs import L20Selector
from l20fs.compare.evaluators import CLASSIFIERS, REGRESSORS, Softmax
from l20fs.compare.methods import DEFAULT_METHODS, TUNED, choose_methods
from l20fs.compare.outcomes import compare_with_best, corrected_t_test, holm, stability
from l20fs.compare.runner import Dataset, make_settings, run
from l20fs.compare.splits import inner_folds, random_split
from l20fs.compare.summary import comparison_curves, comparison_table, find_answer, remarks
from l20fs.evaluation.metrics import METRICS
from l20fs.evaluation.stability_index import nogueira
from l20fs.methods import ESFS, RFS, Baseline, FisherScore, discover
from l20fs.tables import DataError

RIDGES = [{"ridge": value} for value in ("auto", 1.0, 10.0)]
GAMMAS = [{"gamma": 10.0**power} for power in range(-5, 6, 2)]


def toy(seed=0):
    """Three classes, and features in units of their own."""
    X, y = make_data(seed)
    return Dataset("toy", 1.0 + X * 10.0 ** np.arange(-2, 4).repeat(2), np.array(["a", "b", "c"])[y])


def labelled(**counts):
    y = np.repeat(list(counts), list(counts.values()))
    return Dataset("rare", np.random.default_rng(0).standard_normal((len(y), 6)), y)


def diabetes():
    """Scikit-learn's diabetes patients, whose targets are whole numbers."""
    X, y = load_diabetes(return_X_y=True, scaled=False)
    return Dataset("diabetes", X[:90], y[:90], "regression")


def small(data, methods=("FisherScore", "L20Selector"), **options):
    options = {"sizes": (2, 5), "n_splits": 2, "inner_folds": 2, "scale": "zscore"} | options
    return make_settings(data, choose_methods(methods, for_labels=data.has_labels), **options)


# ------------------------------------------------------------------------------------------------------------ slow loops


def brier(truth, shares):
    total = np.square(shares - (truth[:, None] == np.unique(truth))).sum(axis=1).mean()
    return total / 2.0 if shares.shape[1] == 2 else total


SCORES = {
    "accuracy": lambda truth, labels, shares: sk.accuracy_score(truth, labels),
    "balanced_accuracy": lambda truth, labels, shares: sk.balanced_accuracy_score(truth, labels),
    "f1_macro": lambda truth, labels, shares: sk.f1_score(truth, labels, average="macro"),
    "roc_auc": lambda truth, labels, shares: sk.roc_auc_score(truth, shares, multi_class="ovr"),
    "log_loss": lambda truth, labels, shares: sk.log_loss(truth, shares),
    "brier": lambda truth, labels, shares: brier(truth, shares),
    "r2": lambda truth, found: sk.r2_score(truth, found),
    "mae": lambda truth, found: sk.mean_absolute_error(truth, found),
    "rmse": lambda truth, found: sk.root_mean_squared_error(truth, found),
}


def slow_score(metric, name, X, y, fold, columns):
    """Train one model on some columns, and score it by scikit-learn."""
    is_for_labels = METRICS[metric].is_for_labels
    model = {
        "knn": KNeighborsClassifier(5) if is_for_labels else KNeighborsRegressor(5),
        "softmax": Softmax(),
        "ridge": RidgeCV([0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4]),
    }[name].fit(X[np.ix_(fold.train, columns)], y[fold.train])
    test = X[np.ix_(fold.test, columns)]
    return SCORES[metric](y[fold.test], model.predict(test), *([model.predict_proba(test)] if is_for_labels else []))


def slow_comparison(data, metric, name, make, choices, sizes=(2, 5)):
    """Choose on inner folds and test, split by split, as it is explained to users; return scores, sizes and selections."""

    def evaluate(fold, choice, size):
        X = (data.X - data.X[fold.train].mean(axis=0)) / data.X[fold.train].std(axis=0)
        targets = data.y[fold.train]
        if not data.has_labels:
            targets = (targets - targets.mean()) / targets.std()  # fractions, which no method takes for labels
        order = np.argsort(make(5, **choice).fit(X[fold.train], targets).ranking_, kind="stable")[:size]
        return slow_score(metric, name, X, data.y, fold, order), order

    for number in range(2):
        trial = random_split(data.strata, number)
        folds = inner_folds(data.strata, trial.train, 2, number)
        for fold in folds:
            assert not set(fold.train) & set(fold.test)
            assert not {*fold.train, *fold.test} & set(trial.test)
        rivals = []
        for place, (choice, size) in enumerate(itertools.product(choices, sizes)):
            score = np.mean([evaluate(fold, choice, size)[0] for fold in folds])
            rivals.append((-METRICS[metric].sign * round(score, 10), size, place, choice))
        _, size, _, choice = min(rivals)
        score, order = evaluate(trial, choice, size)
        yield score, size, order


def own(k, **choice):
    return L20Selector(k, scale="none", max_features_to_select=k, **choice)


def check_against_loop(data, rows, metric, name, method, make, choices):
    scores, sizes, sets = zip(*slow_comparison(data, metric, name, make, choices), strict=True)
    unit = 100.0 if METRICS[metric].is_share else 1.0
    row = comparison_table(rows, data).set_index(["classifier", "method"]).loc[name, method]
    assert row[metric] == pytest.approx(unit * np.mean(scores))
    assert row.standard_error == pytest.approx(unit * np.std(scores, ddof=1) / np.sqrt(2))
    assert row.n_features == np.median(sizes)
    members = [[j in order for j in range(data.X.shape[1])] for order in sets]
    wanted = nogueira(members)
    assert row[["stability", "stability_lower", "stability_upper"]].tolist() == pytest.approx(
        [wanted.index, wanted.lower, wanted.upper]
    )
    for size in (2, 5):
        [*found] = slow_comparison(data, metric, name, make, choices, (size,))
        curve = comparison_curves(rows, data).set_index(["classifier", "method", "n_features"]).loc[name, method, size]
        assert curve[metric] == pytest.approx(unit * np.mean([score for score, _, _ in found]))
        members = [[j in order for j in range(data.X.shape[1])] for _, _, order in found]
        assert curve.stability == pytest.approx(nogueira(members).index)


@pytest.mark.parametrize("metric", [name for name, metric in METRICS.items() if metric.is_for_labels])
def test_labels_are_scored_as_by_a_slow_loop(metric):
    data = toy()
    rows = run(small(data, scoring=metric), data)
    for name in CLASSIFIERS:
        check_against_loop(data, rows, metric, name, "FisherScore", FisherScore, [{}])
        check_against_loop(data, rows, metric, name, "L20Selector", own, RIDGES)


@pytest.mark.parametrize("metric", [name for name, metric in METRICS.items() if not metric.is_for_labels])
def test_numbers_are_scored_as_by_a_slow_loop(metric):
    data = diabetes()
    rows = run(small(data, ["L20Selector", "RFS"], scoring=metric), data)
    for name in REGRESSORS:
        check_against_loop(data, rows, metric, name, "L20Selector", own, RIDGES)
    check_against_loop(data, rows, metric, "ridge", "RFS", RFS, GAMMAS)


def test_probabilities_of_softmax_are_those_of_logistic_regression():
    X, y = make_data(1)
    reference = LogisticRegression(fit_intercept=False, C=1 / (60 * 1e-4), max_iter=5000, tol=1e-10).fit(X[:, :3], y)
    # Both minimise the same function; they stop at a slope of about 1e-4.
    ours = Softmax().fit(X[:, :3], y).predict_proba(X[:, :3])
    np.testing.assert_allclose(ours, reference.predict_proba(X[:, :3]), atol=0.01)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_method_that_solves_for_one_size_is_judged_by_what_it_selects_for_it():
    data, n_other = Dataset("toy", *make_data(3)), 0
    rows = run(small(data, ["ESFS"], sizes=[2, 3, 5], scale="none"), data)
    for row in rows[rows.fold.isna()].itertuples():
        train = random_split(data.y, row.split).train
        support = ESFS(row.n_features).fit(data.X[train], data.y[train]).support_
        assert sorted(row.selected) == np.flatnonzero(support).tolist()
        largest = rows[(rows.split == row.split) & rows.fold.isna() & (rows.n_features == 5)].selected.iloc[0]
        n_other += set(row.selected) != set(largest[: row.n_features])
    assert n_other, "the first of a larger selection are others: otherwise this test says nothing"


@pytest.mark.parametrize("scale", ["auto", "moderated", "zscore", "none"])
def test_every_method_gets_the_same_values_scaled_by_the_training_samples(scale):
    data = Dataset("toy", *make_data(3))
    methods = ("FisherScore", "L20Selector", "SVMRFE", "l2,0-FS")
    given = run(small(data, methods, scale=scale, n_splits=1, inner_folds=0), data)
    train = data.split(0, 0).train
    deviations = data.X[train].std(axis=0)
    divisors = {"zscore": deviations, "none": np.ones(12)}.get(scale, deviations + np.median(deviations))
    centre = 0.0 if scale == "none" else data.X[train].mean(axis=0)  # softmax has no intercept
    scaled = data._replace(X=(data.X - centre) / divisors)
    expected = run(small(scaled, methods, scale="none", n_splits=1, inner_folds=0), scaled)
    assert given.accuracy.tolist() == expected.accuracy.tolist()
    assert [each.tolist() for each in given.selected] == [each.tolist() for each in expected.selected]


def test_on_noise_every_method_is_right_by_chance():
    """Two equal classes, 25 tests in each of two splits: 80 % is three deviations of a single split away from chance."""
    rng = np.random.default_rng(0)
    data = Dataset("noise", rng.standard_normal((75, 200)), rng.permutation(np.arange(75) % 2))
    table = comparison_table(run(small(data, ["all"], sizes=[20]), data), data)
    assert {"mRMR", "l2,0-FS", "SVMRFE", "Baseline"} <= set(table.method)
    assert table.accuracy.between(20.0, 80.0).all()


def test_dask_computes_the_same_rows():
    distributed = pytest.importorskip("distributed", reason="the Dask backend of joblib needs distributed")
    data = toy()
    alone = run(small(data), data).drop(columns=["fit_seconds", "selected"])
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        parallel_config(backend="dask"),
    ):
        spread = run(small(data), data).drop(columns=["fit_seconds", "selected"])
    pd.testing.assert_frame_equal(alone, spread)


# --------------------------------------------------------------------------------------------------- methods and settings


def test_all_methods_that_use_the_targets_are_known_and_each_is_named_once():
    methods = choose_methods(["all"])
    supervised = {name for name, method in discover().items() if method.about.supervised}
    assert {method.name for method in methods} == supervised | {"L20Selector"}
    assert [method.label for method in choose_methods(["mrmr", "MRMR", "relieff", "UDFS"])] == ["mRMR", "ReliefF", "UDFS"]
    assert {method.label for method in choose_methods()} == set(DEFAULT_METHODS)
    paper = next(method for method in TUNED if method.label == "l2,0-FS")
    assert [choice["solver__alpha_min"] for choice in paper.choices] == [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]
    with pytest.raises(ValueError, match=r"'Relief' is unknown. The closest name is 'ReliefF'"):
        choose_methods(["Relief"])
    with pytest.raises(ValueError, match="the method FisherScore needs class labels, and the target holds numbers"):
        choose_methods(["FisherScore"], for_labels=False)


def test_sizes_are_those_that_the_data_have():
    methods = choose_methods(["FisherScore"])
    assert make_settings(toy(), methods).sizes == (5, 10)
    assert make_settings(toy()._replace(X=toy().X[:, :3]), methods).sizes == (3,)
    assert make_settings(toy(), methods, sizes=[7, 2, 7]).sizes == (2, 7)
    assert make_settings(labelled(a=50, b=9), methods).scoring == "balanced_accuracy"


@pytest.mark.parametrize("counts", [{"a": 30}, {"a": 30, "b": 2}, {"a": 2, "b": 2}, {"a": 30, "b": 1, "c": 2}])
def test_labels_of_which_fewer_than_two_classes_are_tested_are_refused(counts):
    data = labelled(**counts)
    assert len({*data.y[random_split(data.y, 0).test]}) < 2
    with pytest.raises(DataError, match="At least two classes need 3 or more"):
        make_settings(data, choose_methods(["FisherScore"]))


def test_few_numbers_are_refused():
    with pytest.raises(DataError, match="There are 14 samples"):
        small(diabetes()._replace(X=np.ones((14, 5)), y=np.arange(14.0)), ["L20Selector"])


def test_rare_classes_are_remarked_on_and_do_not_stop_the_run():
    data = labelled(a=12, b=9, lonely=1, **{"p<": 2})
    plan = make_settings(data, choose_methods(["FisherScore"]), sizes=[2], n_splits=2)
    assert "classes 'lonely' (1) and 'p<' (2)" in next(remarks(data, plan))
    assert len(comparison_table(run(plan, data), data)) == 2
    assert not list(remarks(toy(), small(toy())))


def test_a_method_that_cannot_be_fitted_is_named(monkeypatch):
    def fit(self, X, y=None):
        raise ValueError("Nothing varies.")

    monkeypatch.setattr(Baseline, "fit", fit)
    with pytest.raises(ValueError, match=r"Baseline, split 0: Nothing varies. Leave the method out"):
        run(small(toy(), ["Baseline"]), toy())


# ------------------------------------------------------------------------------------------------------- groups and tests


@given(st.integers(0, 2**16), st.integers(4, 9), st.booleans())
@settings(max_examples=15)
def test_no_group_is_both_learned_from_and_tested(seed, n_groups, has_labels):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.arange(45) % n_groups).astype(str)
    y = rng.permutation(np.arange(45) % 3)
    data = Dataset("toy", np.zeros((45, 2)), y, "classification" if has_labels else "regression", groups=groups)
    for number in range(3):
        split = data.split(number, seed)
        assert not set(groups[split.train]) & set(groups[split.test])
        assert 0.15 < len(split.test) / 45 < 0.52, "about a third, as far as whole groups allow"
        for fold in data.inner_folds(number, 5, seed):
            assert not set(groups[fold.train]) & set(groups[fold.test])
            assert {*fold.train, *fold.test} <= set(split.train)
            assert set(data.strata[fold.test]) <= set(data.strata[fold.train])
        assert split.train.tolist() == data.split(number, seed).train.tolist()


@pytest.mark.parametrize(("groups", "message"), [([0, 1], "2 groups"), ([0, 1, 2], "confined to groups")])
def test_groups_that_cannot_be_split_are_refused(groups, message):
    codes = np.repeat(groups, 12)
    data = Dataset("toy", np.zeros((len(codes), 2)), (codes > 0).astype(int), groups=codes)
    with pytest.raises(DataError, match=message):
        run(small(data, ["FisherScore"], sizes=[1]), data)


@given(st.lists(st.integers(-5, 5), min_size=3, max_size=12).filter(lambda values: len(set(values)) > 1))
def test_without_overlap_it_is_the_plain_t_test_and_with_it_less_sure(values):
    difference = np.array(values) / 7.0
    plain = ttest_rel(difference, np.zeros(len(values))).pvalue
    assert corrected_t_test(difference, 0.0) == pytest.approx(plain, abs=1e-8)
    corrected = corrected_t_test(difference, 0.5)
    statistic = difference.mean() / np.sqrt((1 / len(values) + 0.5) * difference.var(ddof=1))
    assert corrected == pytest.approx(2 * student.sf(abs(statistic), len(values) - 1), abs=1e-8)
    assert corrected >= plain - 1e-8


def test_what_no_test_can_say():
    assert corrected_t_test(np.zeros(4), 0.5) == 1.0
    assert np.isnan(corrected_t_test(np.full(4, 100 / 19), 0.5))


def chosen(**scores):
    """Return the chosen trials of methods with these accuracies in the splits, 20 test samples each."""
    parts = [pd.DataFrame({"method": name, "split": range(len(each)), "accuracy": each}) for name, each in scores.items()]
    return pd.concat(parts).assign(n_test=20)


def test_the_best_is_compared_with_a_correction_for_all_pairs():
    scores = {name: np.random.default_rng(place).random(6) for place, name in enumerate("abcd")}
    found = compare_with_best(list("bacd"), chosen(**scores), 60)
    pairs = list(itertools.combinations("bacd", 2))
    p_values = holm([corrected_t_test(100 * (scores[one] - scores[two]), 0.5) for one, two in pairs])
    assert found.method.tolist() == list("acd")
    assert found.p_value.tolist() == pytest.approx(p_values[:3].tolist())
    assert found.below_best.tolist() == pytest.approx([100 * (scores["b"] - scores[name]).mean() for name in "acd"])
    assert len(compare_with_best(["a"], chosen(a=scores["a"]), 60)) == 0


def answer(**scores):
    rows = chosen(**scores).assign(dataset="toy", choice="{}", fold=None, classifier="knn", n_features=5, fit_seconds=0.1)
    rows = rows.assign(selected=[np.array([0, 1])] * len(rows)).astype({"fold": "Int64"})
    return find_answer(comparison_table(rows, toy()))


def test_the_answer_tells_what_may_be_chance():
    text = answer(good=[0.9, 0.95, 0.85, 0.9], close=[0.9, 0.85, 0.9, 0.9], bad=[0.3, 0.4, 0.25, 0.35])
    assert text == (
        "No method is clearly best: good has the highest mean accuracy (90.00 ± 2.04 % with 5 features, judged by KNN), but "
        "close cannot be told apart from it (corrected resampled t-test with Holm's correction, level 0.05)."
    )
    bad = [0.8, 0.7, 0.75, 0.6, 0.65, 0.75]
    assert answer(good=[0.9] * 6, bad=bad).startswith("good is best: its mean accuracy (90.00 % with 5 features, judged by")
    among_many = answer(good=[0.9] * 6, close=[0.9, 0.85, 0.9, 0.85, 0.9, 0.9], bad=bad)
    assert "close and bad cannot be told apart" in among_many, "one pair of three"
    assert answer(one=[0.9, 0.8, 0.85]) == "one: accuracy 85.00 ± 2.89 % with 5 features, judged by KNN."
    assert "two cannot be told apart" in answer(one=[0.9, 0.8], two=[0.8, 0.7]), "no test judges the same difference"
    many = {f"m{number}": np.roll([0.9, 0.8, 0.7, 0.85], number) for number in range(4)}
    assert "but m0, m1 and 2 more cannot be told apart from it" in answer(best=[0.95, 0.9, 0.9, 0.8], **many)


def test_the_stability_of_all_features_is_unknown():
    table = chosen(a=[1.0, 1.0]).assign(dataset="toy", classifier="knn", selected=[np.arange(3), np.arange(3)])
    assert stability(table, 3).stability.isna().all()
