"""Comparison of methods on one data set: against a slow loop, refused, and in sentences."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from reference import paper_accuracy
from rows import as_rows, make_rows, read_rows
from samples import make_data
from scipy.stats import t as student
from scipy.stats import ttest_rel

from l20fs import L20Selector
from l20fs.cli import run as run_cli
from l20fs.data.readers import DataError
from l20fs.evaluation.engine import select
from l20fs.evaluation.stability_index import nogueira
from l20fs.experiments import cells
from l20fs.experiments import compare as module
from l20fs.experiments.candidates import DEFAULT_METHODS, choose_variants, split_names
from l20fs.experiments.cells import Dataset, inner_folds
from l20fs.experiments.compare import compare, comparison_plan, remarks
from l20fs.experiments.plan import PlanError, load_plan, parse_plan
from l20fs.experiments.protocol import paper_split
from l20fs.experiments.runner import compute_all, run, selections_of
from l20fs.experiments.statistics import corrected_t_test, holm, paired_tests
from l20fs.experiments.verdict import describe_scaling, verdict
from l20fs.methods import ESFS, FisherScore, discover
from l20fs.report.formats import write_markdown

FILES = {
    "rows.csv",
    "report.html",
    *(f"comparison.{ending}" for ending in ("csv", "md", "tex", "html")),
    "stability.csv",
    "summary.md",
}


def toy(seed=0, **shape):
    X, y = make_data(seed, **shape)
    return Dataset("toy", 1.0 + X * 10.0 ** np.arange(-2, 4).repeat(2)[: X.shape[1]], np.array(["a", "b", "c"])[y])


def small_plan(data, methods=("FisherScore", "L20Selector"), **options):
    options = {"sizes": [2, 5], "n_splits": 3} | options
    return replace(comparison_plan(data, choose_variants(methods), **options), inner_folds=2)


# ------------------------------------------------------------------------------------------------------------- reference


def slow_honest(data, make, choices, sizes, n_splits, n_folds, classifier, fixed=None):
    """Choose on inner folds and test, split by split, as it is explained to users; return accuracies, sizes and sets."""

    def select(train, choice, size):
        centre, spread = data.X[train].mean(axis=0), data.X[train].std(axis=0)
        X = (data.X - centre) / spread
        selector = make(max(sizes), **choice)
        if "max_features" in selector.get_params():
            selector.set_params(max_features=max(sizes))
        order = np.argsort(selector.fit(X[train], data.y[train]).ranking_, kind="stable")
        return X, order[:size]

    found = []
    for number in range(n_splits):
        trial = paper_split(data.y, number)
        best = None
        for choice, size in itertools.product(choices, [fixed] if fixed else sizes):
            scores = []
            for fold in inner_folds(data.y, number, n_folds, 0):
                assert not set(fold.train) & set(fold.test)
                assert not {*fold.train, *fold.test} & set(trial.test)
                X, columns = select(fold.train, choice, size)
                scores.append(paper_accuracy(classifier, X, data.y, fold, columns))
            key = (-round(np.mean(scores), 10), size, choices.index(choice))
            if best is None or key < best[0]:
                best = key, choice, size
        X, columns = select(trial.train, *best[1:])
        found.append((paper_accuracy(classifier, X, data.y, trial, columns), best[2], set(columns.tolist())))
    return found


def files_of(plan, data):
    """Return the files of a comparison, to be read."""
    return {name: io.StringIO(text) for name, text in compare(plan, data).files.items()}


def members(sets, n_features):
    return [[j in selected for j in range(n_features)] for selected in sets]


@pytest.mark.parametrize("classifier", ["knn", "softmax"])
def test_accuracy_size_and_stability_are_those_of_a_slow_loop(classifier):
    data = toy()
    plan = small_plan(data)
    files = files_of(plan, data)
    assert set(files) == FILES
    table = pd.read_csv(files["comparison.csv"]).set_index(["classifier", "method"])
    rows = read_rows(files["rows.csv"])
    trials = rows[rows.fold.isna()].drop_duplicates(["method", "choice", "split"])
    times = {method: np.mean(trials.fit_seconds[trials.method == method]) for method in plan.labels}
    by_size = pd.read_csv(files["stability.csv"]).set_index(["classifier", "method", "n_features"])
    ridges = [{"ridge": value} for value in ("auto", 1.0, 10.0)]
    unscaled = partial(L20Selector, scale="none")
    for method, make, choices in (("FisherScore", FisherScore, [{}]), ("L20Selector", unscaled, ridges)):
        given = (data, make, choices, [2, 5], 3, 2, classifier)
        scores, sizes, sets = zip(*slow_honest(*given), strict=True)
        row = table.loc[classifier, method]
        assert row.accuracy == pytest.approx(100.0 * np.mean(scores))
        assert row.standard_error == pytest.approx(100.0 * np.std(scores, ddof=1) / np.sqrt(3))
        assert row.n_features == np.median(sizes)
        assert row.seconds == pytest.approx(times[method])
        wanted = nogueira(members(sets, 12))
        found = row[["stability", "stability_lower", "stability_upper"]].tolist()
        assert found == pytest.approx([wanted.index, wanted.lower, wanted.upper])
        for size in (2, 5):
            sets = [selected for _, _, selected in slow_honest(*given, fixed=size)]
            assert by_size.loc[classifier, method, size].stability == pytest.approx(nogueira(members(sets, 12)).index)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_method_that_solves_for_one_size_is_judged_by_what_it_selects_for_it():
    data = Dataset("toy", *make_data(3))
    plan = small_plan(data, ["ESFS"], sizes=[2, 3, 5], scale="none")
    found = selections_of(compute_all(plan, [data]))
    n_other = 0
    for row in found.itertuples():
        train = paper_split(data.y, row.split).train
        selector = ESFS(row.n_features).fit(data.X[train], data.y[train])
        assert sorted(row.selected) == np.flatnonzero(selector.support_).tolist()
        largest = found[(found.split == row.split) & (found.n_features == 5)].selected.iloc[0]
        n_other += set(row.selected) != set(largest[: row.n_features])
    assert n_other, "the first of a larger selection are others: otherwise this test says nothing"


@given(seed=st.integers(0, 2**16), powers=st.lists(st.integers(-8, 8), min_size=12, max_size=12))
@settings(max_examples=2)
def test_units_do_not_matter_unless_asked_for(seed, powers):
    data = toy(seed)
    other = Dataset("toy", data.X * 2.0 ** np.array(powers), data.y)
    plan = small_plan(data, ["LFS", "FisherScore"], n_splits=2, scale="zscore")
    one, two = (run(plan, [each]) for each in (data, other))
    assert one.accuracy.tolist() == two.accuracy.tolist()


def test_on_noise_every_method_is_right_by_chance():
    """Two equal classes, 25 tests in each of two splits: 80 % is three deviations of a single split away from chance."""
    rng = np.random.default_rng(0)
    data = Dataset("noise", rng.standard_normal((75, 200)), rng.permutation(np.arange(75) % 2))
    plan = comparison_plan(data, choose_variants(["all"]), sizes=[20], n_splits=2)
    table = pd.read_csv(files_of(replace(plan, inner_folds=2), data)["comparison.csv"])
    assert set(table.method) == set(plan.labels) >= {"mRMR", "l2,0-FS", "SVMRFE"}
    assert table.accuracy.between(20.0, 80.0).all()


def write_tsv(file, data):
    """Write a data set as a table with the labels in the column ``type``."""
    names = ["type", *(f"g{j}" for j in range(data.X.shape[1]))]
    lines = [[label, *map(repr, row)] for label, row in zip(data.y.tolist(), data.X.tolist(), strict=True)]
    file.write_text("".join("\t".join(line) + "\n" for line in [names, *lines]), encoding="utf-8")
    return str(file)


def test_dask_computes_the_same_rows():
    distributed = pytest.importorskip("distributed", reason="the Dask backend of joblib needs distributed")
    data = toy()
    plan = small_plan(data)
    alone = run(plan, [data]).drop(columns="fit_seconds")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        parallel_config(backend="dask"),
    ):
        spread = run(plan, [data]).drop(columns="fit_seconds")
    pd.testing.assert_frame_equal(alone, spread)


# -------------------------------------------------------------------------------------------------------------- the plan


def test_grids_are_those_of_the_paper_where_it_has_them():
    found = {}
    for variant in choose_variants(["all"]):
        found.setdefault(variant.label, []).append(dict(variant.choice))
    accuracy_plan = load_plan("accuracy")
    for label in ("RFS", "RLSR", "l2,0-FS"):
        assert found[label] == [variant.choice for variant in accuracy_plan.variants if variant.label == label]
    assert found["L20Selector"] == [{"ridge": "auto"}, {"ridge": 1.0}, {"ridge": 10.0}]
    supervised = {name for name, method in discover().items() if method.about.supervised}
    methods = {variant.method for variant in choose_variants(["all"])}
    assert methods == supervised | {"L20Selector"}
    assert "UDFS" not in methods


def test_names_in_any_case_each_once_and_with_a_comma():
    assert split_names("RFS,L2,0-fs, l2,0-FS ,mrmr,,") == ["RFS", "L2,0-fs", "l2,0-FS", "mrmr"]
    labels = [variant.label for variant in choose_variants(["mrmr", "MRMR", "relieff", "UDFS"])]
    assert labels == ["mRMR", "ReliefF", "UDFS"]
    with pytest.raises(PlanError, match=r"'Relief' is unknown. The closest name is 'ReliefF'"):
        choose_variants(["Relief"])
    assert {variant.label for variant in choose_variants(DEFAULT_METHODS)} == set(DEFAULT_METHODS)


def test_sizes_are_those_that_the_data_have():
    variants = choose_variants(["FisherScore"])
    assert comparison_plan(toy(), variants).sizes == (5, 10)
    assert comparison_plan(Dataset("toy", toy().X[:, :3], toy().y), variants).sizes == (3,)
    assert comparison_plan(toy(), variants, sizes=[7, 2, 7]).sizes == (2, 7)


def test_a_plan_says_how_features_are_scaled():
    text = 'datasets = ["a"]\nsizes = [5]\nscale = "{}"\n[[methods]]\nmethod = "RFS"'
    assert parse_plan(text.format("zscore")).scale == "zscore"
    with pytest.raises(PlanError, match=r"line 3: scale='max'. Use 'auto' or 'moderated' or 'zscore' or 'none'"):
        parse_plan(text.format("max"))
    assert load_plan("accuracy").scale is None, "the paper's methods get the values as they are"


@pytest.mark.parametrize("scale", ["auto", "moderated", "zscore", "none"])
def test_every_method_gets_the_same_values(monkeypatch, scale):
    """Scaled by the training samples alone, and by no method once more."""
    seen = []

    def note(selector, train, sizes, **options):
        seen.append((selector, train.X))
        return select(selector, train, sizes, **options)

    monkeypatch.setattr(cells, "select", note)
    data = Dataset("toy", *make_data(3))
    plan = small_plan(data, ["FisherScore", "L20Selector", "SVMRFE", "l2,0-FS"], scale=scale, n_splits=1)
    train = paper_split(data.y, 0, plan.seed).train
    deviations = data.X[train].std(axis=0)
    divisors = {"zscore": deviations, "none": np.ones(12)}.get(scale, deviations + np.median(deviations))
    centre = 0.0 if scale == "none" else data.X[train].mean(axis=0)
    for cell in cells.cells_of(plan, data):
        if cell.fold is None:
            cells.compute(cell, data)
    assert len({type(selector).__name__ for selector, _ in seen}) == 3
    for selector, X in seen:
        np.testing.assert_allclose(X, ((data.X - centre) / divisors)[train], rtol=1e-9, atol=1e-12)
        assert selector.get_params().get("scale", "none") == "none"


def test_the_verdict_names_the_scaling_and_its_reason():
    data, other = Dataset("toy", *make_data(3)), toy()
    asked = {"none": "taken as it is ('none'), as asked for", "zscore": "divided by its deviation ('zscore'), as asked for"}
    for scale, said in asked.items():
        assert said in describe_scaling(small_plan(data, scale=scale), data)
    assert re.search("share a unit do, .*'moderated'.* of the training samples", describe_scaling(small_plan(data), data))
    assert re.search("as in different units, .*'zscore'", describe_scaling(small_plan(data), other))


def labelled(**counts):
    y = np.array([label for label, count in counts.items() for _ in range(count)])
    return Dataset("rare", np.random.default_rng(0).standard_normal((len(y), 6)), y)


@pytest.mark.parametrize("counts", [{"a": 30}, {"a": 30, "b": 2}, {"a": 2, "b": 2}, {"a": 30, "b": 1, "c": 2}])
def test_labels_of_which_fewer_than_two_classes_are_tested_are_refused(counts):
    data = labelled(**counts)
    assert len({*data.y[paper_split(data.y, 0).test]}) < 2
    with pytest.raises(
        DataError, match="two classes or more" if len(counts) == 1 else "At least two classes need 3 or more"
    ):
        comparison_plan(data, choose_variants(["FisherScore"]))


def test_rare_classes_are_remarked_on_and_do_not_stop_the_run():
    data = labelled(a=12, b=9, lonely=1, **{"p_a_ir<": 2})
    plan = comparison_plan(data, choose_variants(DEFAULT_METHODS), sizes=[2], n_splits=2)
    found = list(remarks(data, plan))
    assert "classes 'lonely' (1) and 'p_a_ir<' (2)" in found[0]
    assert found[1].startswith("2 inner folds instead of 5: class 'p_a_ir<' has 2 training samples only")
    text = compare(plan, data).files["summary.md"]
    assert all(remark.replace("_", r"\_").replace("<", r"\<") in text for remark in found)
    assert not list(remarks(toy(), comparison_plan(toy(), choose_variants(["RFS"]))))


def test_a_method_that_cannot_be_fitted_is_named(monkeypatch):
    def fit(self, X, y=None):
        raise ValueError("Nothing varies.")

    monkeypatch.setattr(FisherScore, "fit", fit)
    with pytest.raises(ValueError, match=r"FisherScore, split 0: Nothing varies. Leave the method out"):
        compare(small_plan(toy(), ["FisherScore"]), toy())


# ------------------------------------------------------------------------------------------------------------ statistics


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


def test_every_pair_counts():
    rng = np.random.default_rng(0)
    scores = pd.DataFrame(rng.random((6, 4)), columns=list("abcd"))
    tests = paired_tests(scores, 0.4)
    assert len(tests) == 6
    assert (tests.difference >= 0).all()
    assert tests.p_holm.tolist() == pytest.approx(holm(tests.p_value.to_numpy()).tolist())
    row = tests.iloc[0]
    difference = scores[row.method] - scores[row.against]
    assert row.difference == pytest.approx(difference.mean())
    assert (row.better, row.equal, row.worse) == ((difference > 0).sum(), 0, (difference < 0).sum())


# ----------------------------------------------------------------------------------------------------------------- groups


@given(st.integers(0, 2**16), st.integers(3, 9), st.booleans())
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
        again = data.split(number, seed)
        assert split.train.tolist() == again.train.tolist()


def test_groups_on_the_command_line(tmp_path, capsys):
    """Samples show their donor and nothing of the class: with donors in both parts the neighbours know it nevertheless."""
    rng = np.random.default_rng(0)
    donors = np.arange(108) // 9
    X = rng.standard_normal((12, 4))[donors] + 0.01 * rng.standard_normal((108, 4))
    y = np.array(["a", "b"])[donors % 2]
    file = write_tsv(tmp_path / "apart.tsv", Dataset("donors", X, y))
    header, *lines = (tmp_path / "apart.tsv").read_text().splitlines()
    lines = [f"d{donor}\t{line}" for donor, line in zip(donors, lines, strict=True)]
    (tmp_path / "together.tsv").write_text("\n".join([f"donor\t{header}", *lines]) + "\n")
    options = ["--target=type", "--methods=FisherScore", "--sizes=4", "--splits=4", "--n-jobs=1", "--json", "-o"]
    found = {}
    for name, more in (("apart", []), ("together", ["--groups=donor"])):
        assert run_cli(["compare", file.replace("apart", name), *more, *options, str(tmp_path / name)]) == 0
        found[name] = json.loads(capsys.readouterr().out)
    knn = {name: each["methods"][0]["accuracy"] for name, each in found.items()}
    assert knn["apart"] == 100.0
    assert knn["together"] < 85.0
    assert "12 groups stay together" in (tmp_path / "together" / "summary.md").read_text()
    assert found["together"]["answer"] in (tmp_path / "together" / "report.html").read_text().replace(
        "\N{NO-BREAK SPACE}", " "
    )


@pytest.mark.parametrize(("groups", "message"), [([0, 1], "2 groups"), ([0, 1, 2], "confined to groups")])
def test_groups_that_cannot_be_split_are_refused(groups, message):
    codes = np.repeat(groups, 12)
    data = Dataset("toy", np.zeros((len(codes), 2)), (codes > 0).astype(int), groups=codes)
    with pytest.raises(DataError, match=message):
        comparison_plan(data, choose_variants(["FisherScore"]), sizes=[1])


# ----------------------------------------------------------------------------------------------------- words and pictures


def report(**accuracies):
    """Return the words about methods that have these accuracies in the splits."""
    n_splits = len(next(iter(accuracies.values())))
    parts = [
        make_rows({(5, split): value for split, value in enumerate(values)}, method=method, dataset="toy", n_test=20)
        for method, values in accuracies.items()
    ]
    rows = as_rows(pd.concat(parts).to_dict("records"))
    chosen = pd.DataFrame([(name, split, "{}", 5, [0, 1]) for name in accuracies for split in range(n_splits)])
    chosen.columns = ["method", "split", "choice", "n_features", "selected"]
    frame = module.comparison_frame(rows, chosen.assign(dataset="toy"), 12)
    plan = comparison_plan(toy(), choose_variants(["FisherScore"]), n_splits=n_splits)
    return write_markdown(verdict(rows, frame, replace(plan, classifiers=("knn",)), toy(), [], ["RFS"]))


def test_words_tell_what_may_be_chance():
    text = report(good=[0.9, 0.95, 0.85, 0.9], close=[0.9, 0.85, 0.9, 0.9], bad=[0.3, 0.4, 0.25, 0.35])
    assert (
        "No method is clearly best: good has the highest mean accuracy (90.00 ± 2.04 % with 5 features, judged by KNN), but "
        "close cannot be told apart from it (corrected resampled t-test with Holm's correction, level 0.05)." in text
    )
    assert "good (5 features) has the highest accuracy, 90.00 ± 2.04 %. The next is close, 1.25 points below." in text
    assert "Hardly by chance (p below 0.05): good is better than bad." in text
    assert "May be chance (p of 0.05 or more): that good is better than close." in text
    assert "a plain t-test would be too sure" in text
    assert "that use labels: RFS." in text


def test_what_one_pair_alone_would_show_may_be_chance_among_many():
    bad = [0.8, 0.7, 0.75, 0.6, 0.65, 0.75]
    text = report(good=[0.9] * 6, bad=bad)
    assert "Hardly by chance (p below 0.05): good is better than bad." in text
    assert (
        "good is best: its mean accuracy (90.00 % with 5 features, judged by KNN) is better than that of the other" in text
    )
    text = report(good=[0.9] * 6, close=[0.9, 0.85, 0.9, 0.85, 0.9, 0.9], bad=bad)
    assert "May be chance (p of 0.05 or more): that good is better than close and bad." in text


def test_words_about_equals_and_about_a_constant_difference():
    text = report(one=[0.9, 0.8, 0.85], two=[0.8, 0.9, 0.85], three=[0.8, 0.7, 0.75])
    assert "one (5 features) and two (5 features) share the highest accuracy, 85.00 %. The next is three" in text
    assert "Not known: one is better than three by the same number in every split" in text
    assert "is better than two" not in text
    assert "No method is clearly best: one and two share the highest mean accuracy (85.00" in text
    assert "but three cannot be told apart from them" in text, "a difference that no test judges is not clear"
    alone = report(one=[0.9, 0.8, 0.85])
    assert "chance" not in alone
    assert "one: accuracy 85.00 ± 2.89 % with 5 features, judged by KNN." in alone
    names = {f"m{number}": np.roll([0.9, 0.8, 0.7, 0.85], number) for number in range(4)}
    many = report(best=[0.95, 0.9, 0.9, 0.8], **names)
    assert "but m0, m1 and 2 more cannot be told apart from it" in many


def test_the_share_of_the_largest_class_is_what_naming_it_always_gives():
    data = labelled(a=20, b=10)
    plan = comparison_plan(data, choose_variants(["FisherScore"]), sizes=[2], n_splits=2)
    right = np.mean([np.mean(data.y[paper_split(data.y, number).test] == "a") for number in range(2)])
    rows = make_rows({(2, split): 0.5 for split in range(2)}, method="FisherScore")
    chosen = pd.DataFrame({"dataset": "srbct", "method": "FisherScore", "split": [0, 1], "choice": "{}", "n_features": 2})
    frame = module.comparison_frame(rows, chosen.assign(selected=[[0, 1], [0, 1]]), 6)
    text = write_markdown(verdict(rows, frame, replace(plan, classifiers=("knn",)), data, [], []))
    assert f"right for {100 * right:.2f} % of the test samples" in text


# ---------------------------------------------------------------------------------------------------------- command line


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_tsv(tmp_path_factory.mktemp("data") / "toy.tsv", toy())


def test_stdout_shows_what_the_files_say(table, tmp_path, capsys):
    arguments = ["compare", table, "--target", "type", "-o", str(tmp_path), "--methods", "Baseline,RFS,mRMR"]
    assert run_cli([*arguments, "--sizes", "2,5", "--splits", "2", "--n-jobs", "1"]) == 0
    shown = capsys.readouterr()
    lines = [line.split() for line in shown.out.splitlines()]
    frame = pd.read_csv(tmp_path / "comparison.csv")
    written = (tmp_path / "comparison.md").read_text()
    assert [line[0] for line in lines if line and line[0] in {"Baseline", "RFS", "mRMR"}] == frame.method.tolist()
    for row in frame.itertuples():
        accuracy_text = f"{row.accuracy:.2f} ± {row.standard_error:.2f}"
        assert any(line[:1] == [row.method] and accuracy_text in " ".join(line) for line in lines)
        assert f"| {row.method} | {accuracy_text} |" in re.sub(r"[*]{2}|</?ins>", "", written)
    with open(tmp_path / "rows.csv", newline="", encoding="utf-8") as stream:
        assert {row["method"] for row in csv.DictReader(stream)} == {"Baseline", "RFS", "mRMR"}
    assert "Results are in" in shown.err
    assert frame[frame.method == "Baseline"].stability.isna().all()
    assert {file.name for file in tmp_path.iterdir()} == FILES | {"run.json"}
    assert run_cli(arguments) == 2
    assert "Use --force to replace them" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--methods", "RSF"], 2, "--methods: the method 'RSF' is unknown. The closest name is 'RFS'."),
        (["--methods", ","], 2, "--methods ',' names none"),
        (["--target", "tipe"], 2, "has no column 'tipe'. Did you mean 'type'?"),
        (["--sizes", "5,13"], 3, "13 is above the 12 features of the data. Use smaller sizes"),
        (["--sizes", "5,ten"], 2, "--sizes: 'ten' is not a number of features. Use whole numbers from 1"),
        (["--sizes", "0"], 2, "--sizes: '0' is not a number of features"),
        (["--sizes", ""], 2, "--sizes: '' is not a number of features"),
        (["--splits", "1"], 2, "1 is not in the range 2<=x<=10000"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_requests_are_refused_before_anything_is_computed(
    table, tmp_path, capsys, monkeypatch, arguments, code, message
):
    monkeypatch.setattr(module, "compute_all", lambda *_, **__: pytest.fail("it was computed"))
    given = ["compare", table, "--target", "type", "-o", str(tmp_path / "out"), *arguments]
    assert run_cli(given) == code
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_bad_data_are_refused_before_anything_is_computed(table, tmp_path, capsys):
    out = tmp_path / "out"
    out.write_text("keep me")
    assert run_cli(["compare", table, "--target", "type", "-o", str(out)]) == 1
    assert "is no folder. Name another folder." in capsys.readouterr().err
    assert out.read_text() == "keep me"
    one = write_tsv(tmp_path / "one.tsv", labelled(a=9))
    assert run_cli(["compare", one, "--target", "type", "-o", str(tmp_path / "new")]) == 3
    assert "All samples are of class 'a'. A comparison needs two classes or more." in capsys.readouterr().err
    rare = write_tsv(tmp_path / "rare.tsv", labelled(a=9, b=1))
    assert run_cli(["compare", rare, "--target", "type", "-o", str(tmp_path / "new")]) == 3
    assert "Samples per class: 'a' 9 and 'b' 1. At least two classes need 3 or more" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert run_cli(["compare", table, "--target", "type"]) == 2
    assert run_cli(["compare", "srbct", "--target", "type", "-o", str(tmp_path / "new")]) == 2


def test_help_has_examples(capsys):
    assert run_cli(["compare", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "l20fs compare srbct -o out" in shown
    assert "--methods" in shown
