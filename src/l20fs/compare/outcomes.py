"""Scores of methods with every choice made on inner folds, from rows of :func:`~l20fs.compare.runner.run`.

Shares are in % in all but the rows. Data sets, methods and classifiers keep the order of their first rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import t

from l20fs.evaluation.metrics import Metric, metric_of
from l20fs.evaluation.stability_index import nogueira

#: Columns that identify a reported score, and columns that are chosen for it.
CASE = ["dataset", "method", "classifier"]
CANDIDATE = ["choice", "n_features"]

#: Means that agree in this many digits are tied: sums of the same numbers in another order differ in the last digits.
DIGITS = 10


def choose(rows: pd.DataFrame, fixed: Sequence[str] = ()) -> pd.DataFrame:
    """Return the trial of every split with the setting and size that have the best mean score over its inner folds.

    Ties go to fewer features, then to the first setting. Methods without a choice are used unchanged; splits without inner
    folds are left out, since a choice there would use the test samples. What is ``fixed`` is not chosen: with
    ``["n_features"]`` a choice is made for every number of features.
    """
    rows, metric, group = with_order(rows), metric_of(rows), [*CASE, *fixed]
    trials, inner = rows[rows.fold.isna()], rows[rows.fold.notna()]
    keys = [*CASE, "split", *CANDIDATE]
    means = inner.groupby(keys, sort=False)[metric.name].agg(inner="mean", n_folds="count").reset_index()
    candidates = trials.merge(means, how="left", on=keys)
    rivals = (candidates.choice + candidates.n_features.astype(str)).groupby([candidates[name] for name in group])
    candidates = candidates[candidates.inner.notna() | (rivals.transform("nunique") == 1)]
    return first_of_best(candidates, [*group, "split"], "inner", "n_folds", metric)


def summarise(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return mean score and standard error of each group, shares in %, and the number of splits behind them."""
    metric = metric_of(table)
    unit = 100.0 if metric.is_share else 1.0
    columns = {metric.name: "mean", "standard_error": "sem", "n_splits": "count"}
    found = table.groupby(list(by), sort=False)[metric.name].agg(**columns).reset_index()
    return found.assign(**{name: (unit * found[name]).round(DIGITS) for name in (metric.name, "standard_error")})


def honest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the score of every method with all choices made on inner folds.

    Returns
    -------
    DataFrame
        dataset, method, classifier, the score and its standard_error over the splits, n_splits, n_features (the median of
        the chosen numbers), choice (the most frequent one, the first of them on a tie).
    """
    chosen = choose(rows).sort_values("order", kind="stable")
    groups = chosen.groupby(CASE, sort=False)
    choices = groups["choice"].agg(lambda values: values.value_counts(sort=False).idxmax())
    others = groups["n_features"].median().astype("float64").to_frame().assign(choice=choices).reset_index()
    table = summarise(chosen, CASE).merge(others, on=CASE)
    return rows[CASE].drop_duplicates().merge(table, on=CASE)


def curves(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the score for every number of features, with the setting chosen on inner folds for each of them."""
    return summarise(choose(rows, fixed=["n_features"]), [*CASE, "n_features"])


def stability(chosen: pd.DataFrame, n_features: int, by: Sequence[str] = CASE) -> pd.DataFrame:
    """Return the stability index of the selections of each group with its 95 % interval; NaN for all features."""
    found = []
    for group, sets in chosen.groupby(list(by), sort=False)["selected"]:
        members = np.zeros((len(sets), n_features), dtype=bool)
        for row, features in zip(members, sets, strict=True):
            row[features] = True
        each = nogueira(members)
        found.append((*group, each.index, each.lower, each.upper))
    return pd.DataFrame(found, columns=[*by, "stability", "stability_lower", "stability_upper"])


def with_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Number the settings of each method in the order of their first row."""
    return rows.assign(order=pd.factorize(pd.MultiIndex.from_frame(rows[["method", "choice"]]))[0])


def first_of_best(candidates: pd.DataFrame, group: Sequence[str], score: str, support: str, metric: Metric) -> pd.DataFrame:
    """Return the row with the best score of each group; ties go to fewer features, then to the first setting.

    Only rows with the largest ``support`` in their group are compared.
    """
    ranked = candidates.assign(
        _support=-candidates[support].fillna(0), _score=-metric.sign * candidates[score].round(DIGITS)
    )
    ranked = ranked.sort_values(["_support", "_score", "n_features", "order"], kind="stable")
    first = ranked.drop_duplicates(list(group)).sort_index()
    return first.drop(columns=["_support", "_score"]).reset_index(drop=True)


# ----------------------------------------------------------------------------------------------------------------- tests


def corrected_t_test(difference: np.ndarray, test_share: float) -> float:
    r"""Return the two-sided p-value of paired differences over random splits of the same samples.

    Training parts overlap, so that the differences are not independent, and the plain t-test is anti-conservative. The
    correction of Nadeau and Bengio, *Inference for the generalization error* (2003), is
    :math:`t = \bar d / \sqrt{(1/J + n_{test}/n_{train})\, s^2}` with J - 1 degrees of freedom.

    Parameters
    ----------
    difference : array of shape (n_splits,)
    test_share : float
        Number of test samples per training sample.

    Returns
    -------
    float
        1 if nothing differs; NaN if the difference is the same in every split, since its variance is then unknown.

    Examples
    --------
    >>> round(corrected_t_test(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 0.5), 3)
    0.086
    """
    difference = np.round(difference, DIGITS)
    n_splits = len(difference)
    if not difference.any():
        return 1.0
    spread = float(difference.std(ddof=1))
    if spread < 10.0**-DIGITS:
        return math.nan
    statistic = float(difference.mean()) / (spread * math.sqrt(1.0 / n_splits + test_share))
    return 2.0 * float(t.sf(abs(statistic), n_splits - 1))


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Return p-values corrected for multiple testing by Holm's method.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(np.take(p_values, order) * np.arange(len(p_values), 0, -1)))
    return corrected


def compare_with_best(methods: Sequence[str], chosen: pd.DataFrame, n_samples: int) -> pd.DataFrame:
    """Compare the first method, the best, with each of the others over the splits.

    The p-values have Holm's correction for all pairs of methods, since the best one is chosen by the same scores.

    Parameters
    ----------
    methods : sequence of str
        Methods, the best first.
    chosen : DataFrame
        Result of :func:`choose` for one data set and classifier.
    n_samples : int

    Returns
    -------
    DataFrame
        method, below_best (the difference of the means, in points of shares: positive if the best is better), p_value; a
        row for each of the others.
    """
    metric = metric_of(chosen)
    unit = metric.sign * (100.0 if metric.is_share else 1.0)
    scores = unit * chosen.pivot(index="split", columns="method", values=metric.name)[list(methods)].dropna()
    n_test = float(chosen.n_test.mean())  # splits of whole groups differ in size
    differences = [(scores[a] - scores[b]).to_numpy() for a, b in itertools.combinations(methods, 2)]
    p_values = holm([corrected_t_test(each, n_test / (n_samples - n_test)) for each in differences])
    n_others = len(methods) - 1  # the pairs of the first come first
    below_best = [round(float(each.mean()), DIGITS) for each in differences[:n_others]]
    return pd.DataFrame({"method": list(methods[1:]), "below_best": below_best, "p_value": p_values[:n_others]})
