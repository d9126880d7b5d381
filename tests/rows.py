"""Row tables as an experiment leaves them, made by hand and by chance."""

from __future__ import annotations

import pandas as pd
from hypothesis import strategies as st

from l20fs.experiments.outcomes import COLUMNS


def make_rows(accuracy=None, **values):
    """Return trials of one method; ``accuracy`` by (n_features, split)."""
    accuracy = accuracy or {(k, split): 0.8 for k in (20, 40) for split in range(3)}
    common = {
        "dataset": "srbct",
        "method": "RFS",
        "choice": "{}",
        "fold": None,
        "classifier": "knn",
        "n_test": 10,
        "fit_seconds": 0.1,
        "n_nonzero": None,
    } | values
    rows = [common | {"n_features": k, "split": split, "accuracy": value} for (k, split), value in accuracy.items()]
    return as_rows(rows)


def as_rows(rows):
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype({"fold": "Int64", "n_nonzero": "Int64"})


@st.composite
def random_rows(draw, complete=False):
    """Return any row table: few different accuracies, so that ties are common, and unless ``complete`` with gaps.

    The choices have another order in every data set; that of the first counts.
    """
    rows = []
    sizes = draw(st.lists(st.sampled_from([20, 40, 60, 5]), min_size=1, max_size=3, unique=True))
    classifiers = draw(st.sampled_from([["knn"], ["softmax", "knn"]]))
    n_splits, n_folds = draw(st.integers(1, 3)), draw(st.integers(0 if not complete else 1, 3))
    for dataset in draw(st.lists(st.sampled_from(["b", "a", "c"]), min_size=1, max_size=2, unique=True)):
        n_test = draw(st.lists(st.integers(1, 6), min_size=n_folds + 1, max_size=n_folds + 1))
        for method, choices in {"RFS": ["{2}", "{1}", "{3}"], "Baseline": ["{}"]}.items():
            for choice in draw(st.permutations(choices)):
                for split in range(n_splits):
                    for fold in [None, *range(0 if method == "Baseline" else n_folds)]:
                        for k in [1000] if method == "Baseline" else sizes:
                            for classifier in classifiers:
                                total = n_test[0 if fold is None else fold + 1]
                                rows.append(
                                    {
                                        "dataset": dataset,
                                        "method": method,
                                        "choice": choice,
                                        "split": split,
                                        "fold": fold,
                                        "classifier": classifier,
                                        "n_features": k,
                                        "n_test": total,
                                        "fit_seconds": 0.5,
                                        "n_nonzero": None,
                                    }
                                )
    seed = draw(st.randoms(use_true_random=False))
    for row in rows:
        row["accuracy"] = seed.randint(max(0, row["n_test"] - 2), row["n_test"]) / row["n_test"]
    if not complete and draw(st.booleans()):
        rows = [row for row in rows if (row["fold"] is None and seed.random() < 0.9) or seed.random() < 0.8] or rows
    return as_rows(rows)


def read_rows(file):
    """Read the rows.csv of a comparison."""
    return pd.read_csv(file, dtype={"fold": "Int64", "n_nonzero": "Int64"})
