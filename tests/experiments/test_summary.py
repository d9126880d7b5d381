"""The summary says what the rows say, and nothing else."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from rows import as_rows

from l20fs.experiments.plan import parse_plan
from l20fs.experiments.published import published
from l20fs.experiments.summary import summary as summary_blocks
from l20fs.report.formats import write_markdown


def summary(*given, **named):
    return write_markdown(summary_blocks(*given, **named))


def rows_of(accuracies, n_splits=10, inner=True):
    """Return rows where each (dataset, method, classifier) reaches the given % with 20 features, 5 points less with 40.

    A pair gives both. Inner folds prefer 40 features, so that the honest accuracy is the second one. The first of ten splits
    is three points worse and the others a third of a point better: the standard error is a third of a point.
    """
    rows = []
    for (dataset, method, classifier), accuracy in accuracies.items():
        best, fair = accuracy if isinstance(accuracy, tuple) else (accuracy, accuracy - 5.0)
        has_choice = method != "Baseline"
        for split in range(n_splits):
            for fold in [None, 0] if inner and has_choice else [None]:
                for k in (20, 40) if has_choice else (1000,):
                    value = (fair if k == 40 else best) + (1 / 3 if split else -3.0)
                    value = value / 100 if fold is None else k / 100
                    values = {"dataset": dataset, "method": method, "classifier": classifier, "choice": "{}", "split": split}
                    values |= {"fold": fold, "n_features": k, "accuracy": value, "n_test": 10, "fit_seconds": 1.0}
                    rows.append(values | {"n_nonzero": None})
    return as_rows(rows)


def section(text, title):
    return re.search(rf"## {re.escape(title)}\n\n(.*?)(?=\n\n## |\n\Z)", text, re.S)[1]


def printed(**changes):
    """Return what the paper prints, 0.4 points less so that no accuracy is above 100, with some cells changed."""
    table = {(r.dataset, r.method, r.classifier): r.accuracy - 0.4 for r in published().itertuples()}
    for key, value in changes.items():
        dataset, classifier = key.split("_")
        table[dataset, "l2,0-FS", classifier] = value
    return table


OWN = "The paper's own method"


def test_everything_reproduced():
    text = summary(rows_of(printed()))
    own = section(text, OWN)
    assert "14 cells" in own
    assert (
        "14 of them can be compared, 14 are reproduced: 14 within two standard errors of the printed accuracy, 0 above"
        in own
    )
    assert "Below" not in text
    assert section(text, "What was not run") == "Everything was run."
    assert "lung is a substitute" in section(text, "The data")


def test_misses_are_listed_with_their_numbers():
    accuracies = printed(nci_knn=70.0, brain_knn=95.0, lung_knn=10.0, srbct_softmax=97.0)
    accuracies["nci", "Baseline", "knn"] = 66.0
    own = section(summary(rows_of(accuracies)), OWN)
    assert (
        "14 of them can be compared, 12 are reproduced: 11 within two standard errors of the printed accuracy, 1 above"
        in own
    )
    misses = [line for line in own.splitlines() if line.startswith("- ")]
    assert misses == [
        "- nci, KNN: 70.00 ± 0.33 with 20 features; printed 74.44 with 60; difference -4.44. With all features, where "
        "nothing is selected: 66.00 ± 0.33, printed 73.89, so that the gap is there before any selection.",
        "- srbct, softmax: 97.00 ± 0.33 with 20 features; printed 100.00 with 80; difference -3.00. With all features, "
        "where nothing is selected: 99.07 ± 0.33, printed 99.47.",
    ]


def test_the_exact_set_is_set_against_print():
    text = summary(rows_of(printed()), substitutes={})
    assert "16 of them can be compared, 16 are reproduced" in section(text, OWN)
    assert section(text, "The data") == "No data set is a substitute."


def test_all_methods_are_counted():
    accuracies = {key: value for key, value in printed().items() if key[0] in ("nci", "lung", "brain")}
    accuracies["nci", "Relief", "knn"] = 10.0
    accuracies["brain", "Relief", "knn"] = 90.0
    text = section(summary(rows_of(accuracies)), "All methods beside the printed accuracies")
    relief = next(line for line in text.splitlines() if line.startswith("| Relief"))
    mean = (2 * -0.4 + (10.0 - 73.33) + (90.0 - 85.0)) / 4
    assert relief == f"| Relief | 2 | 1 | 1 | {mean:.2f} |"
    assert (
        "KNN: of the methods above, l2,0-FS has the highest accuracy, alone or with others, on 2 of 2 data sets in print "
        "and on 1 here" in text
    )
    assert (
        "softmax: of the methods above, l2,0-FS has the highest accuracy, alone or with others, on 2 of 2 data sets in "
        "print and on 2 here" in text
    )


def test_optimism_is_the_difference_of_the_protocols():
    text = section(summary(rows_of(printed())), "How optimistic is the paper's protocol?")
    rows = {line.split("|")[1].strip(): [v.strip() for v in line.split("|")[2:-1]] for line in text.splitlines()[4:]}
    assert rows["Baseline"][2:] == ["0.00", "0.00", "16"]
    assert rows["RFS"][2:] == ["5.00", "5.00", "16"]
    mean = np.mean([value for key, value in printed().items() if key[1] == "RFS"])
    assert float(rows["RFS"][0]) == pytest.approx(mean, abs=0.006)


def test_optimism_is_unknown_without_the_honest_protocol():
    text = summary(rows_of({key: 80.0 for key in printed() if key[1] != "Baseline"}, inner=False))
    assert "not run, so that it is not known" in section(text, "How optimistic is the paper's protocol?")
    assert "- Not run (honest): brain, breast3, leukemia, lung, lymphoma, nci, prostate and srbct (all methods)." in text


def ordered(names, sets, step=1.0):
    return {(d, m, "knn"): 80.0 + i % 2 - step * place for i, d in enumerate(sets) for place, m in enumerate(names)}


def test_clear_differences_are_named_under_both_protocols():
    text = section(
        summary(rows_of(ordered(["l2,0-FS", "RFS", "mRMR"], [f"s{i}" for i in range(12)]))), "Is one method better?"
    )
    assert "Mean ranks over 12 data sets (1 is best): l2,0-FS 1.00, RFS 2.00, mRMR 3.00." in text
    assert "p < 0.001: not all methods are alike at 0.05" in text
    assert "l2,0-FS is better than RFS and mRMR; RFS is better than mRMR" in text
    assert "Wilcoxon with Holm's correction, against l2,0-FS, the first: different from RFS and mRMR." in text
    both = "l2,0-FS is better than RFS, l2,0-FS is better than mRMR and RFS is better than mRMR"
    assert f"KNN, significant under both protocols (Nemenyi): {both}." in text


def test_a_difference_under_one_protocol_is_not_one_under_both():
    sets = [f"s{i}" for i in range(12)]
    accuracies = {
        (d, m, "knn"): (80.0 - 3 * place, 60.0) for d in sets for place, m in enumerate(["l2,0-FS", "RFS", "mRMR"])
    }
    text = section(summary(rows_of(accuracies)), "Is one method better?")
    assert "l2,0-FS is better than RFS and mRMR" in text
    assert "KNN, significant under both protocols (Nemenyi): nothing." in text


def test_optimism_compares_the_same_splits_only():
    rows = rows_of({("srbct", "RFS", "knn"): 90.0, ("nci", "RFS", "knn"): 70.0})
    partly = rows[~((rows.dataset == "nci") & rows.fold.notna() & (rows.split > 4))]
    text = section(summary(partly), "How optimistic is the paper's protocol?")
    assert text.splitlines()[-1] == "| RFS | 90.00 | 85.00 | 5.00 | 5.00 | 1 |"


def test_what_no_test_could_find_is_said():
    text = section(summary(rows_of(ordered(["l2,0-FS", "RFS", "mRMR"], "abcde"))), "Is one method better?")
    assert (
        "with 5 data sets and 3 methods nothing can be found, since even a method that wins on every set would have "
        "p = 0.125" in text
    )


def test_equal_methods_are_not_told_apart():
    text = section(summary(rows_of(ordered(["l2,0-FS", "RFS", "mRMR"], "abcdefgh", step=0.0))), "Is one method better?")
    assert "the methods cannot be told apart at 0.05" in text
    assert "Wilcoxon" not in text
    assert "KNN, significant under both protocols (Nemenyi): nothing." in text
    assert "is better than" not in text


def test_one_data_set_is_not_tested():
    text = section(summary(rows_of(ordered(["l2,0-FS", "RFS"], ["srbct"]))), "Is one method better?")
    assert "**KNN, optimistic.** Not tested: 1 data set with a value for each of 2 methods." in text


def test_what_was_not_run():
    accuracies = printed()
    for key in list(accuracies):
        if key[0] == "nci" or key[1] == "ESFS" or key == ("brain", "RFS", "knn"):
            del accuracies[key]
    text = section(summary(rows_of(accuracies, n_splits=4)), "What was not run")
    missing = "nci (all methods); ESFS (all data sets); RFS on brain with KNN."
    assert text.splitlines() == [
        f"- Not run (optimistic): {missing}",
        "- Fewer than 10 splits (optimistic): 97 cells, the fewest 4.",
        f"- Not run (honest): {missing}",
        "- Fewer than 10 splits (honest): 97 cells, the fewest 4.",
    ]


def test_a_plan_says_what_was_to_be_run():
    methods = '[[methods]]\nmethod = "RFS"\n[[methods]]\nmethod = "MRMR"'
    plan = parse_plan(f'datasets = ["srbct"]\nsizes = [20, 40]\nn_splits = 4\nclassifiers = ["knn"]\n{methods}')
    text = section(summary(rows_of({("srbct", "RFS", "knn"): 90.0}, n_splits=4), plan), "What was not run")
    assert text.splitlines() == [
        "- Not run (optimistic): MRMR (all data sets).",
        "- Not run (honest): MRMR (all data sets).",
    ]


def test_one_split_gives_no_verdict():
    own = section(summary(rows_of(printed(), n_splits=1)), OWN)
    assert "0 of them can be compared, 0 are reproduced" in own


def test_the_same_rows_give_the_same_text():
    rows = rows_of(printed())
    assert summary(rows) == summary(rows.copy())
    assert not re.search(r"\bnan\b", summary(rows))


def test_rows_of_other_data_claim_nothing_about_the_paper():
    text = summary(rows_of({("mine", "RFS", "knn"): 90.0, ("yours", "RFS", "knn"): 80.0}))
    assert "0 of them can be compared" in section(text, OWN)
    assert "There is no cell that could be set against a printed accuracy." in text


def test_the_frame_is_not_changed():
    rows = rows_of(printed())
    before = rows.copy()
    summary(rows)
    pd.testing.assert_frame_equal(rows, before)
