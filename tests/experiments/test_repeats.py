"""The paper's experiment made many times: each one on splits of its own, with choices of its own."""

from __future__ import annotations

import statistics

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import as_rows, make_rows

from l20fs.experiments.plan import load_plan
from l20fs.experiments.repeats import OTHER_READING, experiments, repeats, repeats_beside_published
from l20fs.experiments.summary import summary as summary_blocks
from l20fs.report.formats import write_markdown


@given(
    st.lists(st.lists(st.integers(0, 10), min_size=6, max_size=6), min_size=2, max_size=2),
    st.integers(1, 3),
)
def test_each_experiment_chooses_for_its_own_splits(counts, size):
    sizes = (20, 40)
    values = {(k, split): counts[i][split] / 10 for i, k in enumerate(sizes) for split in range(6)}
    table = repeats(make_rows(values), n_splits=size)
    best = [
        max(statistics.fmean(100 * values[k, split] for split in range(start, start + size)) for k in sizes)
        for start in range(0, 6 - size + 1, size)
    ]
    [row] = table.itertuples()
    assert row.accuracy == pytest.approx(statistics.fmean(best))
    assert row.standard_error == pytest.approx(statistics.stdev(best), abs=1e-9)
    assert (row.lowest, row.highest) == (pytest.approx(min(best)), pytest.approx(max(best)))
    assert row.n_experiments == len(best)


def summary(*given, **named):
    return write_markdown(summary_blocks(*given, **named))


def test_splits_that_are_left_over_make_no_experiment():
    found = experiments(make_rows({(20, split): 0.5 for split in range(7)}), n_splits=3)
    assert found.experiment.tolist() == [0, 1]
    assert found.n_splits.tolist() == [3, 3]


def rows_around(method, accuracy, dataset="prostate", deviation=1.0):
    """Return twenty splits, ten at each side of an accuracy in %, so that two experiments have the given deviation."""
    half = deviation / 2**0.5 / 100
    values = {(20, split): accuracy / 100 + (half if split < 10 else -half) for split in range(20)}
    return make_rows(values, method=method, dataset=dataset)


@pytest.mark.parametrize(
    ("difference", "verdict"), [(-1.9, "reproduced"), (-2.1, "below"), (1.9, "reproduced"), (2.1, "above")]
)
@pytest.mark.parametrize("method", ["l2,0-FS", OTHER_READING])
def test_print_is_judged_by_the_deviation_between_experiments(method, difference, verdict):
    [row] = repeats_beside_published(repeats(rows_around(method, 93.94 + difference))).itertuples()
    assert (row.method, row.printed, row.verdict) == (method, 93.94, verdict)
    assert row.standard_error == pytest.approx(1.0)


def test_the_summary_says_which_are_missed_and_what_all_features_give():
    rows = as_rows(
        pd.concat(
            [
                rows_around("l2,0-FS", 60.0, "nci"),
                rows_around("Baseline", 61.0, "nci"),
                rows_around("l2,0-FS", 94.0),
                rows_around(OTHER_READING, 74.0, "nci"),
            ]
        )
    )
    text = summary(rows, repeated=repeats_beside_published(repeats(rows)))
    assert "1 of 2 printed accuracies are within two standard errors" in text
    assert (
        "- nci, KNN: 60.00 ± 1.00, the highest 60.71; printed 74.44. With all features 61.00 ± 1.00, printed 73.89" in text
    )
    assert "the gap is there before any selection" in text
    assert "1 of 1 printed accuracies are within two standard errors of one experiment, or below ours." in text
    assert "The same experiment ten times" not in summary(rows)


def test_the_plan_has_both_readings_and_a_hundred_splits():
    plan = load_plan("repeats")
    assert plan.n_splits == 100
    readings = {variant.label: variant for variant in plan.variants}
    assert readings["l2,0-FS"].params["alpha_start"] == 0.4
    begins = [v.params["alpha_start"] for v in plan.variants if v.label == OTHER_READING]
    assert begins == [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]
    assert {v.params["alpha"] for v in plan.variants if v.label == OTHER_READING} == {1e-5}
