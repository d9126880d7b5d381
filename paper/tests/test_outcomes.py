"""Accuracies under both protocols against loops over exact fractions; printed accuracies; tests over data sets."""

from __future__ import annotations

import csv
import statistics
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from conftest import DATA
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare, rankdata

from l20fs.compare.outcomes import choose, honest
from paper import outcomes
from paper.plans import LAMBDA_FIRST, OURS, PLANS

#: Sizes of the test parts.
TEST_SIZES = {"brain": 12, "breast3": 31, "leukemia": 12, "lung": 66, "lymphoma": 20, "nci": 18, "prostate": 33, "srbct": 19}

#: Areas under the curve of four variants of C4.5 on 14 data sets: table 6 of Demsar (2006), where two are rounded to a tie.
DEMSAR = {
    "C4.5": [0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661, 0.583, 0.775, 1.0, 0.940, 0.619, 0.972, 0.957],
    "C4.5+m": [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668, 0.583, 0.838, 1.0, 0.962, 0.666, 0.981, 0.978],
    "C4.5+cf": [0.771, 0.590, 0.968, 0.654, 0.886, 0.916, 0.609, 0.563, 0.866, 1.0, 0.965, 0.614, 0.97501, 0.946],
    "C4.5+m+cf": [0.798, 0.569, 0.967, 0.657, 0.898, 0.931, 0.685, 0.625, 0.875, 1.0, 0.962, 0.669, 0.975, 0.970],
}


def make_rows(accuracy, **values):
    """Return trials of one method; ``accuracy`` by (n_features, split)."""
    common = {"dataset": "srbct", "method": "RFS", "choice": "{}", "fold": None, "classifier": "knn"} | values
    rows = [common | {"n_features": k, "split": split, "accuracy": value} for (k, split), value in accuracy.items()]
    return pd.DataFrame(rows).astype({"fold": "Int64"})


@st.composite
def random_rows(draw):
    """Return rows of two methods with gaps, in eighths, so that ties are common."""
    sizes = draw(st.lists(st.sampled_from([20, 40, 60, 5]), min_size=1, max_size=3, unique=True))
    n_splits, n_folds = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    seed, rows = draw(st.randoms(use_true_random=False)), []
    for dataset in draw(st.lists(st.sampled_from("bac"), min_size=1, max_size=2, unique=True)):
        for method, choices in {"RFS": ["{2}", "{1}", "{3}"], "Baseline": ["{}"]}.items():
            for choice in draw(st.permutations(choices)):
                for split in range(n_splits):
                    for fold in [None, *range(0 if method == "Baseline" else n_folds)]:
                        for k in [1000] if method == "Baseline" else sizes:
                            if seed.random() < 0.9:
                                accuracy = {(k, split): seed.randint(6, 8) / 8}
                                rows.append(make_rows(accuracy, dataset=dataset, method=method, choice=choice, fold=fold))
    return pd.concat(rows, ignore_index=True) if rows else make_rows({(20, 0): 0.5})


def records(rows):
    return [
        row | {"accuracy": Fraction(row["accuracy"]), "is_trial": pd.isna(row["fold"])} for row in rows.to_dict("records")
    ]


def place_of(rows, row):
    """Return the place of a choice among those of its method, by their first row."""
    return list(dict.fromkeys(each["choice"] for each in rows if each["method"] == row["method"])).index(row["choice"])


def groups_of(rows, *names):
    found = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def mean(rows):
    return sum(row["accuracy"] for row in rows) / len(rows)


def loop_optimistic(rows):
    """Return the accuracy, the size and the choice that are best on the test parts, by data set and method."""
    trials, found = [row for row in records(rows) if row["is_trial"]], {}
    for case, own in groups_of(trials, "dataset", "method").items():
        candidates = groups_of(own, "choice", "n_features").values()
        most = max(map(len, candidates))
        whole = [each for each in candidates if len(each) == most]
        best = min(whole, key=lambda each: (-mean(each), each[0]["n_features"], place_of(trials, each[0])))
        found[case] = (100 * float(mean(best)), best[0]["n_features"], best[0]["choice"])
    return found


def loop_honest(rows):
    """Return the trials with the choices that are best on inner folds, by data set, method and split."""
    everything, found = records(rows), {}
    trials = [row for row in everything if row["is_trial"]]
    inner = groups_of(
        [row for row in everything if not row["is_trial"]], "dataset", "method", "split", "choice", "n_features"
    )
    rivals = groups_of(trials, "dataset", "method")
    for case, own in groups_of(trials, "dataset", "method", "split").items():
        candidates = []
        for row in own:
            folds = inner.get((*case, row["choice"], row["n_features"]), [])
            if folds or len({(each["choice"], each["n_features"]) for each in rivals[case[:2]]}) == 1:
                score = mean(folds) if folds else 0
                candidates.append(((-len(folds), -score, row["n_features"], place_of(everything, row)), row))
        if candidates:
            found[case] = min(candidates, key=lambda each: each[0])[1]
    return found


@given(random_rows().filter(lambda rows: rows.fold.isna().any()))
def test_optimistic_is_the_loop(rows):
    table, expected = outcomes.optimistic(rows), loop_optimistic(rows)
    assert {(row.dataset, row.method): (row.n_features, row.choice) for row in table.itertuples()} == {
        case: found[1:] for case, found in expected.items()
    }
    assert table.accuracy.tolist() == pytest.approx([expected[row.dataset, row.method][0] for row in table.itertuples()])
    for row in outcomes.optimistic_curves(rows).itertuples():
        _, _, choice = expected[row.dataset, row.method]
        own = rows[(rows.dataset == row.dataset) & (rows.method == row.method) & rows.fold.isna() & (rows.choice == choice)]
        assert row.accuracy == pytest.approx(100 * own.accuracy[own.n_features == row.n_features].mean())


@given(random_rows().filter(lambda rows: rows.fold.isna().any()))
def test_honest_is_the_loop(rows):
    chosen, expected = choose(rows), loop_honest(rows)
    assert {(row.dataset, row.method, row.split): (row.choice, row.n_features) for row in chosen.itertuples()} == {
        case: (row["choice"], row["n_features"]) for case, row in expected.items()
    }
    for row in honest(rows).itertuples():
        own = [each for case, each in expected.items() if case[:2] == (row.dataset, row.method)]
        assert row.accuracy == pytest.approx(100 * float(mean(own)))
        assert row.n_features == statistics.median(each["n_features"] for each in own)
    flipped = rows.assign(accuracy=rows.accuracy.where(rows.fold.notna(), 1.0 - rows.accuracy))
    names = ["dataset", "method", "split", "choice", "n_features"]
    pd.testing.assert_frame_equal(choose(flipped)[names], chosen[names]), "whatever the trials say, the same is chosen"


def test_equal_means_go_to_fewer_features_although_sums_round():
    """0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1 for a computer."""
    values = {20: (0.1, 0.2, 0.3), 40: (0.3, 0.2, 0.1)}
    rows = make_rows({(k, split): value for k, by in values.items() for split, value in enumerate(by)})
    assert outcomes.optimistic(rows).n_features.tolist() == [20]
    assert outcomes.optimistic(rows.iloc[::-1]).n_features.tolist() == [20]


# ------------------------------------------------------------------------------------------------------- printed accuracies


def test_printed_accuracies_are_all_there_and_whole_counts():
    """All but three are a count of right answers in ten trials; those three are misprints of the paper, not of ours."""
    printed, accuracy = outcomes.published(), PLANS["accuracy"]
    assert len(printed) == 8 * 8 * 2
    assert not printed.duplicated(["dataset", "classifier", "method"]).any()
    assert set(printed.method) == {method.label for method in accuracy.settings.methods} - {"L20Selector"}
    assert set(printed.dataset) == set(accuracy.datasets) == set(TEST_SIZES)
    assert printed.n_features.isna().tolist() == (printed.method == "Baseline").tolist()
    totals = 10 * printed.dataset.map(TEST_SIZES)
    is_odd = (100 * (printed.accuracy * totals / 100).round() / totals - printed.accuracy).abs() > 0.0051
    odd = [*printed[is_odd][["dataset", "classifier", "method"]].itertuples(index=False, name=None)]
    assert odd == [("breast3", "knn", "Relief"), ("lung", "knn", "RFS"), ("brain", "softmax", "ESFS")]


def test_printed_accuracies_are_those_of_the_record():
    file = DATA / "paper_accuracy.csv"
    if not file.exists():
        pytest.skip(f"{file.name} is not here")
    with file.open() as stream:
        recorded = [
            (row["dataset"], row["classifier"], row["n_features"], float(row["accuracy"])) for row in csv.DictReader(stream)
        ]
    ours = outcomes.published().astype({"n_features": "str"}).replace({"n_features": {"<NA>": ""}})
    assert [*ours[["dataset", "classifier", "n_features", "accuracy"]].itertuples(index=False, name=None)] == recorded


def around(method, accuracy, dataset="prostate"):
    """Return twenty splits, ten on each side of an accuracy in %: two experiments have the deviation 1."""
    half = 0.5**0.5 / 100
    return make_rows(
        {(20, i): accuracy / 100 + (half if i < 10 else -half) for i in range(20)}, method=method, dataset=dataset
    )


@pytest.mark.parametrize("method", [OURS, LAMBDA_FIRST])
@pytest.mark.parametrize(
    ("difference", "verdict"), [(-1.9, "reproduced"), (-2.1, "below"), (1.9, "reproduced"), (2.1, "above")]
)
def test_print_is_judged_by_two_standard_errors(method, difference, verdict):
    [row] = outcomes.repeated_beside_published(around(method, 93.94 + difference)).itertuples()
    assert (row.method, row.printed, row.verdict) == (method, 93.94, verdict)
    assert row.standard_error == pytest.approx(1.0)


def test_substitutes_and_what_is_not_printed_have_no_verdict():
    rows = pd.concat(
        [around(OURS, 99.0, "lung"), around("L20Selector", 99.0), around(OURS, 60.0, "nci"), around("RFS", 99.0, "nci")]
    )
    beside = outcomes.beside_published(outcomes.optimistic(rows))
    assert beside.verdict.tolist() == [outcomes.NOT_COMPARABLE, outcomes.NOT_PRINTED, "below", "above"]
    cells = outcomes.comparable(beside)
    counts = outcomes.count_verdicts(cells).set_index("method")
    assert counts.loc[OURS, ["reproduced", "above", "below"]].tolist() == [0, 0, 1]
    assert counts.mean_difference[OURS] == pytest.approx(60.0 - 74.44)
    assert outcomes.count_first_places(cells) == {"sets": 1, "in_print": 1, "here": 0}
    assert outcomes.count_first_places(cells, "RFS") == {"sets": 1, "in_print": 0, "here": 1}


@given(st.lists(st.lists(st.integers(0, 10), min_size=7, max_size=7), min_size=2, max_size=2), st.integers(1, 3))
def test_each_experiment_chooses_for_its_own_splits(counts, n_splits):
    values = {(k, split): counts[place][split] / 10 for place, k in enumerate((20, 40)) for split in range(7)}
    [row] = outcomes.repeated(make_rows(values), n_splits).itertuples()
    starts = range(0, 7 - n_splits + 1, n_splits)
    best = [
        max(statistics.fmean(100 * values[k, i] for i in range(start, start + n_splits)) for k in (20, 40))
        for start in starts
    ]
    assert row.accuracy == pytest.approx(statistics.fmean(best))
    assert row.standard_error == pytest.approx(statistics.stdev(best), abs=1e-9)
    assert (row.lowest, row.highest, row.n_experiments) == (pytest.approx(min(best)), pytest.approx(max(best)), len(best))


def test_optimism_is_what_choosing_on_the_test_part_adds():
    best = pd.DataFrame(
        {"dataset": ["a", "b"], "method": "RFS", "classifier": "knn", "accuracy": [90.0, 80.0], "n_splits": 2}
    )
    [row] = outcomes.optimism(best, best.assign(accuracy=[89.0, 77.0])).itertuples()
    assert (row.optimistic, row.honest, row.difference, row.largest, row.cells) == (85.0, 83.0, 2.0, 3.0, 2)


# --------------------------------------------------------------------------------------------------------------- rank tests


def as_table(scores):
    return pd.concat(
        pd.DataFrame({"dataset": range(len(values)), "method": method, "accuracy": values, "classifier": "knn"})
        for method, values in scores.items()
    )


def test_the_worked_example():
    tests = outcomes.RankTests.of(as_table(DEMSAR), "knn")
    assert tests.ranks.round(3).to_dict() == {"C4.5+m+cf": 1.964, "C4.5+m": 2.0, "C4.5+cf": 2.893, "C4.5": 3.143}
    assert tests.difference == pytest.approx(1.25, abs=0.005)
    assert tests.statistic == pytest.approx(friedmanchisquare(*DEMSAR.values()).statistic)
    assert tests.statistic > 9.28, "the statistic in print does not allow for ties"


def test_quantiles_of_the_published_table():
    """Table 5a of Demsar (2006), at 0.05."""
    for n_methods, quantile in {3: 2.343, 4: 2.569, 6: 2.850, 10: 3.164}.items():
        scores = {f"m{place}": np.random.default_rng(place).random(5) for place in range(n_methods)}
        found = outcomes.RankTests.of(as_table(scores), "knn").difference / np.sqrt(n_methods * (n_methods + 1) / 30)
        assert found == pytest.approx(quantile, abs=0.001)


@given(st.lists(st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.1 + 0.2]), min_size=4, max_size=4), min_size=2, max_size=7))
@settings(max_examples=50)
def test_ranks_pairs_and_groups_of_any_scores(values):
    scores = pd.DataFrame(values, columns=list("abcd"))
    if all(len(set(row)) == 1 for row in scores.round(10).to_numpy()):
        return  # nothing differs: SciPy has no statistic
    tests = outcomes.RankTests.of(as_table(scores), "knn")
    expected = np.mean([rankdata(-row) for row in scores.round(10).to_numpy()], axis=0)
    assert tests.ranks[list("abcd")].tolist() == pytest.approx(expected)
    ranks, far = tests.ranks, tests.difference
    is_significant = tests.p_value < 0.05
    assert set(tests.pairs) == {(a, b) for a in "abcd" for b in "abcd" if is_significant and ranks[b] - ranks[a] >= far}
    together = {frozenset(group) for group in tests.alike}
    for a, b in (("a", "b"), ("a", "d"), ("c", "d")):
        assert any({a, b} <= group for group in together) == (abs(ranks[a] - ranks[b]) < far)
