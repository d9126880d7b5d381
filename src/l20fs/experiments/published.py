"""Accuracies printed in the paper, and their comparison with ours."""

from __future__ import annotations

from collections.abc import Collection
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import pandas as pd

#: Substituted data sets, with a description: their accuracies are shown, but never compared with the printed ones.
SUBSTITUTES = {"lung": "the same 203 samples with 1543 genes, chosen and scaled otherwise, instead of 3312"}

#: Name of the method of the paper.
PAPER_METHOD = "l2,0-FS"

#: Maximum distance of a reproduced accuracy, in our standard errors, and the rounding of two printed decimals.
N_ERRORS, ROUNDING = 2.0, 0.005

REPRODUCED, ABOVE, BELOW = "reproduced", "above", "below"
SUBSTITUTE = "not comparable (substitute data)"
NOT_PRINTED = "not printed"
ONE_SPLIT = "unknown (one split has no standard error)"


def published() -> pd.DataFrame:
    """Return the accuracies printed in the paper: dataset, classifier, method, n_features, accuracy (in %).

    Examples
    --------
    >>> printed = published()
    >>> len(printed), printed.query("dataset == 'nci' and method == 'l2,0-FS'").accuracy.tolist()
    (128, [74.44, 78.33])
    """
    with files("l20fs.experiments").joinpath("published.csv").open(encoding="utf-8") as stream:
        return pd.read_csv(stream, dtype={"n_features": "Int64"})


def beside_published(table: pd.DataFrame, substitutes: Collection[str] = SUBSTITUTES) -> pd.DataFrame:
    """Return optimistic accuracies beside the printed ones, for every method.

    Parameters
    ----------
    table : DataFrame
        Result of :func:`~l20fs.experiments.outcomes.optimistic`, the only protocol comparable with the paper.
    substitutes : collection of str
        Names of substituted data sets.

    Returns
    -------
    DataFrame
        dataset, classifier, method, accuracy, standard_error, n_features, printed, printed_n_features, difference (ours
        minus printed) and verdict: "reproduced" within two standard errors, "above" or "below" beyond them, or the reason
        why there is none.
    """
    if set(table.protocol) - {"optimistic"}:
        raise ValueError("The printed accuracies are optimistic and table has other ones. Give the result of optimistic().")
    printed = published().rename(columns={"accuracy": "printed", "n_features": "printed_n_features"})
    both = table.merge(printed, how="left", on=["dataset", "classifier", "method"])
    is_substitute = both.dataset.isin(list(substitutes))
    both["difference"] = (both.accuracy - both.printed).mask(is_substitute)
    margin = N_ERRORS * both.standard_error + ROUNDING
    reasons = [
        (is_substitute, SUBSTITUTE),
        (both.printed.isna(), NOT_PRINTED),
        (both.standard_error.isna(), ONE_SPLIT),
        (both.difference > margin, ABOVE),
        (both.difference < -margin, BELOW),
    ]
    both["verdict"] = np.select([condition for condition, _ in reasons], [verdict for _, verdict in reasons], REPRODUCED)
    ours = ["dataset", "classifier", "method", "accuracy", "standard_error", "n_features"]
    return both[[*ours, "printed", "printed_n_features", "difference", "verdict"]]


def comparable(compared: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of :func:`beside_published` that have a verdict."""
    return compared[compared.verdict.isin([REPRODUCED, ABOVE, BELOW])]


def n_printed(method: str, substitutes: Collection[str] = SUBSTITUTES) -> int:
    """Return the number of printed accuracies of a method, on data sets that are not substituted."""
    printed = published()
    return int(((printed.method == method) & ~printed.dataset.isin(list(substitutes))).sum())


def count_verdicts(cells: pd.DataFrame) -> pd.DataFrame:
    """Count the verdicts of each method, with the mean difference from print."""
    groups = cells.groupby("method", sort=False, observed=True)
    counts = groups["verdict"].value_counts().unstack(fill_value=0).reindex(columns=[REPRODUCED, ABOVE, BELOW], fill_value=0)
    counts = counts.reindex(cells.method.unique()).reset_index()
    counts["mean_difference"] = groups["difference"].mean().reindex(counts.method).to_numpy()
    return counts


class FirstPlaces(NamedTuple):
    """Number of data sets on which a method has the highest accuracy, in print and here."""

    n_sets: int
    in_print: int
    here: int


def first_places(cells: pd.DataFrame, method: str) -> FirstPlaces:
    """Count the data sets on which a method is first, among the cells of one classifier."""
    sets = [group for _, group in cells.groupby("dataset", sort=False) if method in set(group.method)]
    return FirstPlaces(
        len(sets),
        sum(_is_first(group, method, "printed") for group in sets),
        sum(_is_first(group, method, "accuracy") for group in sets),
    )


def _is_first(cells: pd.DataFrame, method: str, column: str) -> bool:
    value = cells.loc[cells.method == method, column].iloc[0]
    return bool(value >= cells[column].max() - 1e-9)
