"""Repetitions of the paper's experiment, each on ten splits of its own.

A printed accuracy is the mean of ten random splits, with parameters chosen for them. So is ours, and two such means differ
by chance: the deviation of many such means is the standard error of a printed accuracy.
"""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd

from l20fs.experiments.outcomes import CASE, optimistic
from l20fs.experiments.published import PAPER_METHOD, SUBSTITUTES, beside_published

#: Number of splits of one experiment of the paper.
N_SPLITS = 10

#: The same method with the other reading of its lambda; both are compared with the printed accuracies.
OTHER_READING = f"{PAPER_METHOD} (lambda first)"


def experiments(rows: pd.DataFrame, n_splits: int = N_SPLITS) -> pd.DataFrame:
    """Report every experiment of ``n_splits`` splits as the paper does: the best choice and number of features for it.

    Returns
    -------
    DataFrame
        As :func:`~l20fs.experiments.outcomes.optimistic`, with the number of the ``experiment``; remaining splits are not
        used.
    """
    numbers = rows.split // n_splits
    n_whole = (rows.split.max() + 1) // n_splits
    found = [optimistic(rows[numbers == number]).assign(experiment=number) for number in range(n_whole)]
    return pd.concat(found, ignore_index=True)


def repeats(rows: pd.DataFrame, n_splits: int = N_SPLITS) -> pd.DataFrame:
    """Summarise experiments: their mean accuracy, the deviation of a single one, the lowest and the highest.

    Returns
    -------
    DataFrame
        dataset, method, classifier, accuracy (the mean), standard_error (of one experiment: the deviation between them),
        lowest, highest, n_features (the median), n_experiments, protocol.

    Examples
    --------
    >>> rows = pd.DataFrame({"dataset": "srbct", "method": "RFS", "choice": "{}", "split": range(4), "fold": None,
    ...     "classifier": "knn", "n_features": 20, "accuracy": [0.8, 0.9, 0.9, 1.0], "n_test": 10, "fit_seconds": 0.1,
    ...     "n_nonzero": None})
    >>> repeats(rows, n_splits=2)[["accuracy", "lowest", "highest"]].values.tolist()
    [[90.0, 85.0, 95.0]]
    """
    groups = experiments(rows, n_splits).groupby(CASE, sort=False, observed=True)
    table = groups["accuracy"].agg(accuracy="mean", standard_error="std", lowest="min", highest="max", n_experiments="count")
    table["n_features"] = groups["n_features"].median()
    return table.reset_index().assign(protocol="optimistic")


def repeats_beside_published(table: pd.DataFrame, substitutes: Collection[str] = SUBSTITUTES) -> pd.DataFrame:
    """Return repeated experiments beside the printed accuracies, for both readings of lambda.

    Returns
    -------
    DataFrame
        As :func:`~l20fs.experiments.published.beside_published`, with lowest and highest. "reproduced" means that the
        printed accuracy is within two standard errors of one experiment.
    """
    found = []
    for method, group in table.groupby("method", sort=False, observed=True):
        printed_as = PAPER_METHOD if method == OTHER_READING else method
        beside = beside_published(group.assign(method=printed_as), substitutes).assign(method=method)
        extremes = group[["dataset", "classifier", "lowest", "highest"]]
        found.append(beside.merge(extremes, on=["dataset", "classifier"]))
    return pd.concat(found, ignore_index=True)
