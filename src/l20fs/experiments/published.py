"""The accuracies that the paper prints, and ours beside them."""

from __future__ import annotations

from collections.abc import Collection
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import pandas as pd

#: Sets of which a substitute is used, and what it is: its numbers are shown, but never set against the printed ones.
SUBSTITUTES = {"lung": "the same 203 samples with 1543 genes, chosen and scaled otherwise, instead of 3312"}

#: The name of the method of the paper.
PAPER_METHOD = "l2,0-FS"

#: Largest distance of a reproduced accuracy, in our standard errors, and the rounding of two printed decimals.
N_ERRORS, ROUNDING = 2.0, 0.005

REPRODUCED, ABOVE, BELOW = "reproduced", "above", "below"
SUBSTITUTE = "not comparable (substitute data)"
NOT_PRINTED = "not printed"
ONE_SPLIT = "unknown (one split has no standard error)"


def published() -> pd.DataFrame:
    """Return what the paper prints: dataset, classifier, method, n_features, accuracy (in %).

    Examples
    --------
    >>> printed = published()
    >>> len(printed), printed.query("dataset == 'nci' and method == 'l2,0-FS'").accuracy.tolist()
    (128, [74.44, 78.33])
    """
    with files("l20fs.experiments").joinpath("published.csv").open(encoding="utf-8") as stream:
        return pd.read_csv(stream, dtype={"n_features": "Int64"})


def beside_published(table: pd.DataFrame, substitutes: Collection[str] = SUBSTITUTES) -> pd.DataFrame:
    """Set optimistic accuracies beside the printed ones, for every method.

    Parameters
    ----------
    table : DataFrame
        What :func:`~l20fs.experiments.outcomes.optimistic` returns. Only its numbers were found as the paper's were.
    substitutes : collection of str
        The sets that are not the paper's.

    Returns
    -------
    DataFrame
        dataset, classifier, method, accuracy, standard_error, n_features, printed, printed_n_features, difference (ours
        minus printed) and verdict: "reproduced" within two standard errors, "above" or "below" beyond them, or why there is
        none.
    """
    if set(table.protocol) - {"optimistic"}:
        raise ValueError("The paper's numbers are optimistic. Set only optimistic ones beside them.")
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
    """Return how many accuracies of a method the paper prints, on data sets that are not substituted."""
    printed = published()
    return int(((printed.method == method) & ~printed.dataset.isin(list(substitutes))).sum())


def count_verdicts(cells: pd.DataFrame) -> pd.DataFrame:
    """Return for each method how many cells have each verdict, and the mean difference from print."""
    groups = cells.groupby("method", sort=False, observed=True)
    counts = groups["verdict"].value_counts().unstack(fill_value=0).reindex(columns=[REPRODUCED, ABOVE, BELOW], fill_value=0)
    counts = counts.reindex(cells.method.unique()).reset_index()
    counts["mean_difference"] = groups["difference"].mean().reindex(counts.method).to_numpy()
    return counts


class FirstPlaces(NamedTuple):
    """On how many data sets a method has the highest accuracy, alone or with others, in print and here."""

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
