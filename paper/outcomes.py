"""Accuracies under the paper's optimistic protocol, beside the printed ones, and over repeated experiments.

All functions take rows of :func:`paper.plans.run_plan` or tables made of them; accuracies of tables are in %. The honest
protocol is that of :func:`l20fs.compare.outcomes.honest`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, studentized_range

from l20fs.compare.outcomes import CANDIDATE, CASE, DIGITS, first_of_best, summarise, with_order
from l20fs.compare.outcomes import curves as honest_curves
from l20fs.evaluation.metrics import METRICS
from paper.plans import LAMBDA_FIRST, OURS

#: Substituted data sets, with a description: their accuracies are shown, but never compared with the printed ones.
SUBSTITUTES = {"lung": "the same 203 samples with 1543 genes, chosen and scaled otherwise, instead of 3312"}

#: Largest distance of a reproduced accuracy in our standard errors, and the rounding of two printed decimals.
N_ERRORS, ROUNDING = 2.0, 0.005

REPRODUCED, ABOVE, BELOW = "reproduced", "above", "below"
NOT_COMPARABLE, NOT_PRINTED = "not comparable (substitute data)", "not printed"

#: Number of splits of one experiment of the paper.
N_SPLITS = 10

#: Level of the rank tests.
LEVEL = 0.05


def optimistic(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the best mean accuracy on the test parts, as the paper does, with choices made on them.

    Returns
    -------
    DataFrame
        dataset, method, classifier, choice, n_features, accuracy and standard_error over the splits, n_splits. Ties go to
        fewer features, then to the first choice. Choices with missing splits are left out: a maximum over fewer splits is
        not comparable.

    Examples
    --------
    >>> rows = pd.DataFrame({"dataset": "srbct", "method": "RFS", "choice": "{}", "split": [0, 0, 1, 1], "fold": None,
    ...     "classifier": "knn", "n_features": [20, 40, 20, 40], "accuracy": [0.8, 0.9, 0.8, 1.0]})
    >>> optimistic(rows)[["accuracy", "standard_error", "n_features"]].values.tolist()
    [[95.0, 5.0, 40.0]]
    """
    candidates = summarise(with_order(rows[rows.fold.isna()]), [*CASE, *CANDIDATE, "order"])
    best = first_of_best(candidates, CASE, "accuracy", "n_splits", METRICS["accuracy"])
    return rows[CASE].drop_duplicates().merge(best.drop(columns="order"), on=CASE).astype({"n_features": "float64"})


def optimistic_curves(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean accuracy for every number of features, each method with the choice of its best mean."""
    trials = rows[rows.fold.isna()].merge(optimistic(rows)[[*CASE, "choice"]], on=[*CASE, "choice"])
    return summarise(trials, [*CASE, "n_features"])


#: Curves under each protocol.
CURVES = {"optimistic": optimistic_curves, "honest": honest_curves}


def optimism(best: pd.DataFrame, fair: pd.DataFrame) -> pd.DataFrame:
    """Return method, mean accuracy under both protocols, mean and largest difference, and the number of cells."""
    both = best.merge(fair, on=[*CASE, "n_splits"], suffixes=("_best", "_fair"))
    both["optimism"] = both.accuracy_best - both.accuracy_fair
    columns = {
        "optimistic": ("accuracy_best", "mean"),
        "honest": ("accuracy_fair", "mean"),
        "difference": ("optimism", "mean"),
        "largest": ("optimism", "max"),
        "cells": ("optimism", "count"),
    }
    return both.groupby("method", sort=False).agg(**columns).reset_index()


# ------------------------------------------------------------------------------------------------------ printed accuracies


def published() -> pd.DataFrame:
    """Return the accuracies printed in the paper: dataset, classifier, method, n_features, accuracy.

    Examples
    --------
    >>> printed = published()
    >>> len(printed), printed.query("dataset == 'nci' and method == 'l2,0-FS'").accuracy.tolist()
    (128, [74.44, 78.33])
    """
    return pd.read_csv(Path(__file__).with_name("published.csv"), dtype={"n_features": "Int64"})


def beside_published(table: pd.DataFrame) -> pd.DataFrame:
    """Return optimistic accuracies beside the printed ones.

    Returns
    -------
    DataFrame
        The columns of the table, printed, printed_n_features, difference (ours minus printed) and verdict: "reproduced"
        within two standard errors, "above" or "below" beyond them, or the reason why there is none.
    """
    printed = published().rename(columns={"accuracy": "printed", "n_features": "printed_n_features"})
    both = table.merge(printed, how="left", on=["dataset", "classifier", "method"])
    is_substitute = both.dataset.isin(SUBSTITUTES)
    both["difference"] = (both.accuracy - both.printed).mask(is_substitute)
    margin = N_ERRORS * both.standard_error + ROUNDING
    reasons = {
        NOT_COMPARABLE: is_substitute,
        NOT_PRINTED: both.printed.isna(),
        ABOVE: both.difference > margin,
        BELOW: both.difference < -margin,
    }
    both["verdict"] = np.select(list(reasons.values()), list(reasons), REPRODUCED)
    return both


def comparable(compared: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of :func:`beside_published` that have a verdict."""
    return compared[compared.verdict.isin([REPRODUCED, ABOVE, BELOW])]


def count_verdicts(cells: pd.DataFrame) -> pd.DataFrame:
    """Count the verdicts of each method, with the mean difference from print."""
    counts = pd.crosstab(cells.method, cells.verdict).reindex(cells.method.unique())
    counts = counts.reindex(columns=[REPRODUCED, ABOVE, BELOW], fill_value=0)
    return counts.assign(mean_difference=cells.groupby("method")["difference"].mean()).reset_index()


def count_first_places(cells: pd.DataFrame, method: str = OURS) -> dict[str, int]:
    """Count the data sets of one classifier on which a method has the highest accuracy: all sets, in print, and here."""
    own = cells[cells.method == method].set_index("dataset")
    highest = cells.groupby("dataset")[["printed", "accuracy"]].max().loc[own.index]
    is_first = own[["printed", "accuracy"]] >= highest - 10.0**-DIGITS
    return {"sets": len(own), "in_print": int(is_first.printed.sum()), "here": int(is_first.accuracy.sum())}


# ------------------------------------------------------------------------------------------------------------- repetitions


def repeated(rows: pd.DataFrame, n_splits: int = N_SPLITS) -> pd.DataFrame:
    """Summarise experiments of ``n_splits`` splits each, reported as the paper reports one.

    A printed accuracy is the mean of ten random splits, with parameters chosen for them. The deviation of many such means is
    its standard error.

    Returns
    -------
    DataFrame
        dataset, method, classifier, accuracy (the mean), standard_error (the deviation between the experiments), lowest,
        highest, n_experiments, n_features (the median); splits that fill no experiment are not used.
    """
    number = rows.split // n_splits
    found = [optimistic(rows[number == each]) for each in range((rows.split.max() + 1) // n_splits)]
    groups = pd.concat(found, ignore_index=True).groupby(CASE, sort=False)
    table = groups["accuracy"].agg(accuracy="mean", standard_error="std", lowest="min", highest="max", n_experiments="count")
    return table.assign(n_features=groups["n_features"].median()).reset_index()


def repeated_beside_published(rows: pd.DataFrame) -> pd.DataFrame:
    """Return repeated experiments beside the printed accuracies; both readings of lambda are those of the paper's method.

    "reproduced" means that the printed accuracy is within two standard errors of one experiment.
    """
    table = repeated(rows)
    beside = beside_published(table.assign(method=table.method.replace(LAMBDA_FIRST, OURS)))
    return beside.assign(method=table.method)


# -------------------------------------------------------------------------------------------------------------- rank tests


class RankTests(NamedTuple):
    """Tests of several methods over several data sets, as Demsar (2006) recommends them.

    Attributes
    ----------
    ranks : Series
        Mean ranks, the best first; ties share the mean of their ranks.
    n_sets : int
    statistic, p_value : float
        Friedman's test of whether all methods are alike.
    difference : float
        Critical difference of mean ranks (Nemenyi).
    """

    ranks: pd.Series
    n_sets: int
    statistic: float
    p_value: float
    difference: float

    @classmethod
    def of(cls, table: pd.DataFrame, classifier: str) -> RankTests:
        """Compare the methods of a table of accuracies on the data sets that have a value for each of them."""
        scores = table[table.classifier == classifier].pivot(index="dataset", columns="method", values="accuracy").dropna()
        n_sets, n_methods = scores.shape
        statistic, p_value = friedmanchisquare(*scores.round(DIGITS).to_numpy().T)
        quantile = studentized_range.ppf(1.0 - LEVEL, n_methods, np.inf) / math.sqrt(2.0)
        difference = quantile * math.sqrt(n_methods * (n_methods + 1) / (6.0 * n_sets))
        ranks = scores.round(DIGITS).rank(axis=1, ascending=False).mean().sort_values(kind="stable")
        return cls(ranks, n_sets, float(statistic), float(p_value), float(difference))

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Pairs (better, worse) that Nemenyi's test separates; none unless Friedman's test finds a difference."""
        if not self.p_value < LEVEL:
            return []
        far = self.difference
        return [(a, b) for a in self.ranks.index for b in self.ranks.index if self.ranks[b] - self.ranks[a] >= far]

    @property
    def alike(self) -> list[list[str]]:
        """Largest groups of two or more methods whose ranks differ by less than the critical difference."""
        groups: list[list[str]] = []
        for first in self.ranks:
            is_near = (self.ranks >= first) & (self.ranks < first + self.difference)
            group = self.ranks.index[is_near].tolist()
            if len(group) > 1 and not any(set(group) <= set(other) for other in groups):
                groups.append(group)
        return groups
