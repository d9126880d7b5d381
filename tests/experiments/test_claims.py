"""Claims about the paper's figures: computed from the rows."""

from __future__ import annotations

import json

import pandas as pd
from rows import as_rows

from l20fs.experiments.claims import about_convergence, about_initialisation, about_lambda, about_solvers, about_time, claims
from l20fs.experiments.summary import summary
from l20fs.report.formats import write_markdown


def rows_of(cells, **common):
    """Return trials of two splits; a cell is (choice, accuracy in %, changes)."""
    values = {"dataset": "brain", "method": "l2,0-FS", "classifier": "knn", "n_features": 30, "n_test": 10}
    values |= {"fit_seconds": 1.0, "n_nonzero": 10, "fold": None} | common
    return as_rows(
        [
            values | {"choice": json.dumps(choice), "split": split, "accuracy": (accuracy + sign) / 100} | changes
            for choice, accuracy, changes in cells
            for split, sign in enumerate((-1.0, 1.0))
        ]
    )


def test_lambda_is_compared_within_each_number_of_features():
    rows = rows_of(
        [
            ({"alpha": 1e-3}, 80, {}),
            ({"alpha": 1e-2}, 82, {}),
            ({"alpha": 1e-1}, 70, {}),
            ({"alpha": 1e-3}, 90, {"n_features": 60}),
            ({"alpha": 1e-2}, 96, {"n_features": 60}),
            ({"alpha": 1e-1}, 75, {"n_features": 60}),
        ]
    )
    [told] = about_lambda(rows)
    assert "changes by 4.0 points (median over the numbers of features, at most 6.0)" in told
    assert "at 1e-1 it is 14.5 points lower" in told


def test_starting_points_are_compared_by_the_mean_over_draws():
    cells = [({"init": "zeros"}, 80, {"n_nonzero": 100})]
    cells += [({"init": "gaussian", "random_state": i}, 80 + 3 * i, {"n_nonzero": 110 + 20 * i}) for i in range(2)]
    [told] = about_initialisation(rows_of(cells))
    assert told == "brain, KNN: 1.50 points between the kinds; 100 to 120 rows are not zero."


def test_convergence_counts_iterations():
    traces = pd.DataFrame(
        {"dataset": "leukemia", "method": "RPMFS", "iteration": [0, 1, 2, 3], "objective": [100.0, 50.0, 0.5, 0.0]}
    )
    [told] = about_convergence(traces)
    assert told.endswith("RPMFS 2 of 3.")


def test_time_compares_methods_that_were_run_everywhere():
    cells = [({}, 80, {"method": method, "fit_seconds": time}) for method, time in (("HIHT", 6.0), ("AHIHT", 2.0))]
    elsewhere = [(choice, accuracy, changes | {"dataset": "nci"}) for choice, accuracy, changes in cells]
    listed, ratio = about_time(rows_of([*cells, *elsewhere, ({}, 80, {"method": "RFS", "fit_seconds": 0.1})]))
    assert listed == "Mean over 2 data sets: AHIHT 2.0 s, HIHT 6.0 s."
    assert ratio == "HIHT takes 3.0 times as long as AHIHT."


def test_solvers_are_compared_below_a_tenth():
    found = {
        "AHIHT": {1e-3: (80, 500), 1e-2: (82, 300), 1e-1: (10, 1)},
        "HIHT": {1e-3: (78, 100), 1e-2: (70, 400), 1e-1: (99, 9)},
        "forward": {1e-3: (85, 50), 1e-2: (85, 30), 1e-1: (0, 1)},
    }
    cells = [
        ({"alpha": alpha}, accuracy, {"method": method, "n_nonzero": rows})
        for method, values in found.items()
        for alpha, (accuracy, rows) in values.items()
    ]
    [told] = about_solvers(rows_of([(c, min(99, max(1, a)), changes) for c, a, changes in cells]))
    assert "of 2 cases (data set and lambda) HIHT has fewer rows in 1, AHIHT is more accurate in 2, by 7.0 points" in told
    assert "changes by 2.0 points (AHIHT) and 8.0 (HIHT)" in told
    assert "Forward selection has 40 rows (AHIHT 400, HIHT 250; medians) and is 4.0 points more accurate than AHIHT." in told


def test_only_what_was_run_is_spoken_of():
    rows = rows_of([({"alpha": 1e-3}, 80, {}), ({"alpha": 1e-2}, 81, {})])
    assert list(claims({})) == []
    claim, seen = claims({"lambda": rows})
    assert claim.lead == "Lambda."
    assert "1e-1 it is" not in seen.items[0]
    assert "What the paper reads from its figures" not in write_markdown(summary(rows, others={"accuracy": rows}))
    text = write_markdown(summary(rows, others={"accuracy": rows, "lambda": rows}))
    assert "**Lambda.** The paper sees almost no fluctuation" in text
    assert f"- {seen.items[0]}" in text
