"""Stability of selections over splits, with the parameters chosen in inner folds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from l20fs.evaluation.stability_index import Stability, nogueira
from l20fs.experiments.outcomes import CANDIDATE, CASE, honest_choices


def agreement_of_choices(rows: pd.DataFrame, selections: pd.DataFrame, n_features: int) -> pd.DataFrame:
    """Return the stability of the selections behind the nested accuracies.

    Parameters
    ----------
    rows : DataFrame
        Row table.
    selections : DataFrame
        Result of :func:`~l20fs.experiments.runner.selections`.
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
    """Return the stability for every number of features, with the parameters chosen for each."""
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
