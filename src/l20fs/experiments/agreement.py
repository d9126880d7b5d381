"""Agreement of the selections of the splits, with the parameters that the inner folds of each split chose."""

from __future__ import annotations

import numpy as np
import pandas as pd

from l20fs.evaluation.stability_index import Stability, nogueira
from l20fs.experiments.outcomes import CANDIDATE, CASE, honest_choices


def agreement_of_choices(rows: pd.DataFrame, selections: pd.DataFrame, n_features: int) -> pd.DataFrame:
    """Return the agreement of the very selections behind the honest accuracies: parameters and size are chosen.

    Parameters
    ----------
    rows : DataFrame
        A row table.
    selections : DataFrame
        What :func:`~l20fs.experiments.runner.selections` returns.
    n_features : int
        Number of features that could be selected.

    Returns
    -------
    DataFrame
        dataset, method, classifier, stability, lower and upper end of its 95 % interval; missing where all features are
        selected, since any two such selections agree.
    """
    return _agreement(honest_choices(rows), selections, n_features, CASE)


def agreement_by_size(rows: pd.DataFrame, selections: pd.DataFrame, n_features: int) -> pd.DataFrame:
    """Return the same for every number of features, with the parameters chosen for each of them."""
    return _agreement(honest_choices(rows, fixed=("n_features",)), selections, n_features, [*CASE, "n_features"])


def _agreement(chosen: pd.DataFrame, selections: pd.DataFrame, n_features: int, by: list[str]) -> pd.DataFrame:
    keys = ["dataset", "method", "split", *CANDIDATE]
    found = chosen.merge(selections, on=keys, validate="many_to_one")
    measured = {group: _index(list(sets), n_features) for group, sets in found.groupby(by, sort=False)["selected"]}
    names = pd.DataFrame(list(measured), columns=by)
    values = [(each.index, each.lower, each.upper) for each in measured.values()]
    return names.join(pd.DataFrame(values, columns=["stability", "lower", "upper"]))


def _index(sets: list[list[int]], n_features: int) -> Stability:
    members = np.zeros((len(sets), n_features), dtype=bool)
    for row, features in enumerate(sets):
        members[row, features] = True
    return nogueira(members)
