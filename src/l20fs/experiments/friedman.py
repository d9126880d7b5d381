"""Friedman's test of several methods over several data sets, with its exact distribution for few sets.

The usual approximations, by chi-square or by the F distribution of Iman and Davenport, hold for many sets. With two or three
sets the second finds differences where there are none: if all sets have the same order it gives p = 0, though two sets with
three methods agree in a sixth of all cases. Given the ranks in each set, all their orders are equally likely under the null
hypothesis, so that the p-value can be counted. It is the same for all of these statistics, which rise with each other.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from l20fs.experiments.outcomes import DIGITS

#: Methods, and sums of ranks, up to which an exact p-value is counted; otherwise so many orders are drawn.
MOST_METHODS, MOST_COUNTED, N_DRAWN = 8, 300_000, 19_999


def mean_ranks(scores: pd.DataFrame) -> pd.Series:
    """Return the mean rank of each method: 1 is the best, ties share the mean of their ranks.

    Examples
    --------
    >>> mean_ranks(pd.DataFrame({"a": [3.0, 2.0], "b": [3.0, 1.0]})).to_dict()
    {'a': 1.25, 'b': 1.75}
    """
    return pd.Series(_doubled_ranks(scores).mean(axis=0) / 2.0, index=scores.columns)


class Friedman(NamedTuple):
    """Friedman's test: ``p_value`` is counted from all orders if ``is_exact``, else from random ones."""

    statistic: float
    p_value: float
    is_exact: bool
    n_sets: int
    n_methods: int


def friedman(scores: pd.DataFrame) -> Friedman:
    r"""Test whether all methods are equal.

    :math:`\chi^2 = (k - 1) \sum_j (R_j - \bar R)^2 / \sum_{ij} (r_{ij} - \bar r)^2` with the ranks :math:`r_{ij}` of k
    methods and their sums :math:`R_j`. With ties, too, this is the statistic of SciPy, which refuses two methods and gives
    NaN where all are equal.

    Parameters
    ----------
    scores : DataFrame
        Data sets x methods; larger is better.

    Returns
    -------
    Friedman
        The statistic and its p-value.

    Examples
    --------
    >>> test = friedman(pd.DataFrame({"a": [3.0, 2.0, 5.0], "b": [2.0, 1.0, 3.0], "c": [1.0, 0.0, 4.0]}))
    >>> round(test.statistic, 4), round(test.p_value, 4)
    (4.6667, 0.1944)
    """
    n_sets, n_methods = check_size(scores)
    ranks = _doubled_ranks(scores)
    sums, mean = ranks.sum(axis=0), n_methods + 1
    spread = float(np.square(ranks - mean).sum())
    statistic = (n_methods - 1) * float(np.square(sums - n_sets * mean).sum()) / spread if spread else 0.0
    counted = exact_p_value(ranks)
    p_value = drawn_p_value(ranks) if counted is None else counted
    return Friedman(statistic, p_value, counted is not None, n_sets, n_methods)


def exact_p_value(ranks: np.ndarray) -> float | None:
    """Return the share of all orders within the sets whose rank sums are spread as much; None if there are too many orders.

    Which method has which sum does not matter to the spread: the sums are kept sorted, and those that coincide are counted
    together.

    Parameters
    ----------
    ranks : array of int, (n_sets, n_methods)
        Ranks, or twice the ranks, so that shared ones are whole.

    Examples
    --------
    >>> exact_p_value(np.array([[1, 2, 3], [1, 2, 3]]))  # two sets that agree
    0.16666666666666666
    """
    n_methods = ranks.shape[1]
    base = int(ranks.max(axis=1).sum()) + 1  # above every sum, so that sums can be the digits of a number
    if n_methods > MOST_METHODS or base**n_methods >= 2**62:
        return None
    places = base ** np.arange(n_methods, dtype=np.int64)
    sums, n_counted = np.sort(ranks[:1], axis=1), 0
    shares: np.ndarray = np.ones(1)
    for row in ranks[1:]:
        orders = np.array(sorted(set(itertools.permutations(row.tolist()))))
        n_counted += len(sums) * len(orders)
        if n_counted > MOST_COUNTED:
            return None
        keys = np.sort((sums[:, None] + orders).reshape(-1, n_methods), axis=1) @ places
        keys, position = np.unique(keys, return_inverse=True)
        shares = np.bincount(position, np.repeat(shares / len(orders), len(orders)))
        sums = keys[:, None] // places % base
    is_spread = np.square(sums).sum(axis=1) >= np.square(ranks.sum(axis=0)).sum()
    return min(1.0, float(shares[is_spread].sum()))


def drawn_p_value(ranks: np.ndarray) -> float:
    """Return the p-value by random orders within the sets, :math:`(b + 1) / (m + 1)` if b of m are spread as much.

    Examples
    --------
    >>> abs(drawn_p_value(np.array([[1, 2, 3], [1, 2, 3]])) - 1 / 6) < 0.01
    True
    """
    random = np.random.default_rng(0)
    sums = sum(random.permuted(np.tile(row, (N_DRAWN, 1)), axis=1) for row in ranks)
    n_spread = int(np.count_nonzero(np.square(sums).sum(axis=1) >= np.square(ranks.sum(axis=0)).sum()))
    return (n_spread + 1) / (N_DRAWN + 1)


def check_size(scores: pd.DataFrame) -> tuple[int, int]:
    """Return the numbers of data sets and methods, or raise an error if they are too few to compare."""
    n_sets, n_methods = scores.shape
    if n_sets < 2 or n_methods < 2:
        raise ValueError(f"{n_sets} data sets and {n_methods} methods cannot be compared. Give two or more of each.")
    return n_sets, n_methods


def _doubled_ranks(scores: pd.DataFrame) -> np.ndarray:
    """Return twice the ranks of the methods in every set, whole numbers; scores that differ by rounding errors are tied."""
    rounded = -np.round(scores.to_numpy(dtype=np.float64), DIGITS)
    return np.rint(2.0 * rankdata(rounded, axis=1)).astype(np.int64)
