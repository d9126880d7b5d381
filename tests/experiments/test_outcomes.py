"""Reported accuracies, against loops over exact fractions."""

from __future__ import annotations

from fractions import Fraction
from statistics import median

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import make_rows, random_rows

from l20fs.experiments.outcomes import (
    fit_times,
    honest,
    honest_choices,
    honest_curves,
    optimistic,
    optimistic_curves,
)


def mean(values):
    return sum(values, Fraction(0)) / len(values)


def standard_error(values):
    if len(values) < 2:
        return np.nan
    m = mean(values)
    return float(sum((v - m) ** 2 for v in values) / (len(values) - 1) / len(values)) ** 0.5


def records(rows):
    """Return the rows as dictionaries with exact accuracies."""
    found = rows.to_dict("records")
    for row in found:
        row["exact"] = Fraction(round(row["accuracy"] * row["n_test"]), row["n_test"])
    return found


def cases(found):
    return list(dict.fromkeys((r["dataset"], r["method"], r["classifier"]) for r in found))


def of_case(found, case):
    return [r for r in found if (r["dataset"], r["method"], r["classifier"]) == case]


def place_of_choice(found, method, choice):
    return list(dict.fromkeys(r["choice"] for r in found if r["method"] == method)).index(choice)


def loop_optimistic(rows):
    found = [r for r in records(rows) if pd.isna(r["fold"])]
    report = []
    for case in cases(found):
        values = {}
        for row in of_case(found, case):
            values.setdefault((row["choice"], row["n_features"]), []).append(row["exact"])
        most = max(map(len, values.values()))
        best = None
        for (choice, k), accuracies in values.items():
            if len(accuracies) < most:
                continue
            key = (-mean(accuracies), k, place_of_choice(found, case[1], choice))
            if best is None or key < best[0]:
                best = (key, choice, k, accuracies)
        _, choice, k, accuracies = best
        report.append((*case, 100 * float(mean(accuracies)), 100 * standard_error(accuracies), k, choice, len(accuracies)))
    return report


def loop_honest_choices(rows):
    everything = records(rows)
    found = [r for r in everything if pd.isna(r["fold"])]
    chosen = []
    for case in cases(found):
        trials = of_case(found, case)
        has_choice = len({(r["choice"], r["n_features"]) for r in trials}) > 1
        for split in dict.fromkeys(r["split"] for r in trials):
            candidates = []
            for row in trials:
                if row["split"] != split:
                    continue
                inner = [
                    r["exact"]
                    for r in of_case(everything, case)
                    if not pd.isna(r["fold"]) and all(r[name] == row[name] for name in ("split", "choice", "n_features"))
                ]
                if inner or not has_choice:
                    score = mean(inner) if inner else Fraction(0)
                    place = place_of_choice(everything, case[1], row["choice"])
                    candidates.append((-len(inner), -score, row["n_features"], place, row))
            if candidates:
                chosen.append(min(candidates, key=lambda c: c[:4])[4])
    return chosen


def loop_honest(rows):
    everything, chosen = records(rows), loop_honest_choices(rows)
    report = []
    for case in [case for case in cases(everything) if case in cases(chosen)]:
        picked = of_case(chosen, case)
        accuracies = [r["exact"] for r in picked]
        choices = [r["choice"] for r in picked]
        often = min(choices, key=lambda c: (-choices.count(c), place_of_choice(everything, case[1], c)))
        k = median(r["n_features"] for r in picked)
        report.append((*case, 100 * float(mean(accuracies)), 100 * standard_error(accuracies), k, often, len(accuracies)))
    return report


def assert_same(table, expected, protocol):
    assert list(table.protocol.unique()) in ([], [protocol])
    assert [tuple(row) for row in table[["dataset", "method", "classifier"]].to_numpy()] == [row[:3] for row in expected]
    np.testing.assert_allclose(table.accuracy, [row[3] for row in expected], rtol=0, atol=1e-8)
    np.testing.assert_allclose(table.standard_error, [row[4] for row in expected], rtol=0, atol=1e-8)
    assert table.n_features.tolist() == [row[5] for row in expected]
    assert table.choice.tolist() == [row[6] for row in expected]
    assert table.n_splits.tolist() == [row[7] for row in expected]


@given(random_rows())
def test_optimistic_is_the_loop(rows):
    assert_same(optimistic(rows), loop_optimistic(rows), "optimistic")


@given(random_rows())
def test_honest_is_the_loop(rows):
    assert_same(honest(rows), loop_honest(rows), "honest")
    chosen, expected = honest_choices(rows), loop_honest_choices(rows)
    names = ["dataset", "method", "classifier", "split", "choice", "n_features", "accuracy"]
    assert sorted(map(tuple, chosen[names].to_numpy())) == sorted(tuple(row[name] for name in names) for row in expected)


@settings(max_examples=30)
@given(random_rows(), st.randoms())
def test_the_order_of_splits_and_sizes_changes_nothing(rows, random):
    """Only the order of choices and cases counts; that of everything else is whatever the runner wrote first."""
    mixed = list(rows.index)
    random.shuffle(mixed)
    choices, labels = list(rows.choice.unique()), list(rows.dataset + rows.method + rows.classifier)
    first = {label: place for place, label in reversed(list(enumerate(labels)))}
    mixed.sort(key=lambda i: (first[labels[i]], choices.index(rows.choice[i])))
    ordered = sorted(rows.index, key=lambda i: (first[labels[i]], choices.index(rows.choice[i])))
    for protocol in (optimistic, honest):
        pd.testing.assert_frame_equal(
            protocol(rows.loc[mixed]).drop(columns="choice"), protocol(rows.loc[ordered]).drop(columns="choice")
        )


@given(random_rows())
def test_honest_never_sees_the_accuracy_on_the_test_part(rows):
    """Whatever the trials say, the same is chosen."""
    flipped = rows.assign(accuracy=rows.accuracy.where(rows.fold.notna(), 1.0 - rows.accuracy))
    names = ["dataset", "method", "classifier", "split", "choice", "n_features"]
    pd.testing.assert_frame_equal(honest_choices(rows)[names], honest_choices(flipped)[names])


@given(random_rows(complete=True))
def test_optimistic_is_never_below_any_fixed_choice(rows):
    best = optimistic(rows).set_index(["dataset", "method", "classifier"]).accuracy
    trials = rows[rows.fold.isna()]
    fixed = 100 * trials.groupby(["dataset", "method", "classifier", "choice", "n_features"]).accuracy.mean()
    for case, value in fixed.items():
        assert value <= best[case[:3]] + 1e-9


def test_equal_means_go_to_fewer_features_although_sums_round():
    """0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1 for a computer."""
    rows = make_rows(
        accuracy={(k, s): a for k, by in {20: (0.1, 0.2, 0.3), 40: (0.3, 0.2, 0.1)}.items() for s, a in enumerate(by)}
    )
    assert optimistic(rows).n_features.tolist() == [20]
    assert optimistic(rows.iloc[::-1]).n_features.tolist() == [20]


def test_equal_means_of_inner_folds_go_to_fewer_features_although_sums_round():
    """3/6 + 3/7 + 3/6 is 2/6 + 3/7 + 4/6, but not for a computer."""
    trial = make_rows(accuracy={(20, 0): 0.5, (40, 0): 0.5})
    inner = [
        make_rows(accuracy={(20, 0): few / total, (40, 0): many / total}, fold=fold, n_test=total)
        for fold, (few, many, total) in enumerate([(2, 3, 6), (3, 3, 7), (4, 3, 6)])
    ]
    chosen = honest_choices(pd.concat([trial, *inner], ignore_index=True))
    assert chosen.n_features.tolist() == [20]


@settings(max_examples=20)
@given(random_rows(complete=True))
def test_curves(rows):
    trials = rows[rows.fold.isna()]
    report = optimistic(rows).set_index(["dataset", "method", "classifier"])
    for row in optimistic_curves(rows).itertuples():
        case = (row.dataset, row.method, row.classifier)
        chosen = trials[
            (trials.dataset == row.dataset)
            & (trials.method == row.method)
            & (trials.classifier == row.classifier)
            & (trials.choice == report.choice[case])
            & (trials.n_features == row.n_features)
        ]
        assert row.accuracy == pytest.approx(100 * chosen.accuracy.mean())
        assert row.accuracy <= report.accuracy[case] + 1e-9
    by_size = [honest(rows[rows.n_features == k]) for k in rows.n_features.unique()]
    names = ["dataset", "method", "classifier", "n_features"]
    expected = pd.concat(by_size).set_index(names).sort_index()
    found = honest_curves(rows).set_index(names).sort_index()
    assert found.accuracy.tolist() == expected.accuracy.tolist()
    np.testing.assert_array_equal(found.standard_error, expected.standard_error)


def test_what_has_no_inner_folds_is_left_out_and_what_has_no_choice_is_not():
    both = pd.concat([make_rows(method="RFS"), make_rows(method="Baseline").query("n_features == 20")], ignore_index=True)
    assert honest(both).method.tolist() == ["Baseline"]
    assert set(optimistic(both).method) == {"RFS", "Baseline"}


def test_of_equally_frequent_choices_the_first_of_the_plan_is_shown():
    """In the second set the rows of the second choice come first, and each choice wins one split."""
    parts = [make_rows(dataset="a", choice=choice) for choice in ("{1}", "{2}")]
    for choice, winner in (("{2}", 0), ("{1}", 1)):
        inner = {(20, split): float(split == winner) for split in range(2)}
        parts.append(make_rows(dataset="b", choice=choice, accuracy={(20, 0): 0.5, (20, 1): 0.5}))
        parts.append(make_rows(dataset="b", choice=choice, accuracy=inner, fold=0))
    rows = pd.concat(parts, ignore_index=True)
    assert honest_choices(rows).sort_values("split").choice.tolist() == ["{2}", "{1}"]
    assert honest(rows).choice.tolist() == ["{1}"]


def test_a_fit_is_counted_once():
    rows = pd.concat(
        [make_rows(classifier=c, fit_seconds=s, choice=g) for c in ("knn", "softmax") for g, s in (("{}", 1.0), ("1", 4.0))]
    )
    assert fit_times(rows).to_dict("records") == [
        {"dataset": "srbct", "method": "RFS", "seconds": 2.5, "least": 1.0, "most": 4.0, "n_fits": 6}
    ]


def test_rows_that_cannot_be_trusted_are_refused():
    rows = make_rows()
    with pytest.raises(ValueError, match="no column 'fold'"):
        optimistic(rows.drop(columns="fold"))
    with pytest.raises(ValueError, match=r"6 rows occur twice.*srbct, RFS, knn"):
        honest(pd.concat([rows, rows]))
    for value in (92.5, -0.1, np.nan):
        with pytest.raises(ValueError, match="not a share"):
            optimistic(rows.assign(accuracy=value))
