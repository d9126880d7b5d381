"""Statistical comparison of methods: tests of all of them, and of pairs.

The tests are those that Demsar (2006) recommends for several classifiers over several data sets. All take a *score matrix*:
a DataFrame with a row per data set and a column per method; larger is better.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata, studentized_range, t, wilcoxon

from l20fs.evaluation.metrics import metric_of
from l20fs.experiments.friedman import Friedman, check_size, friedman, mean_ranks
from l20fs.experiments.outcomes import DIGITS

#: Level of all tests.
LEVEL = 0.05


def score_matrix(table: pd.DataFrame, classifier: str) -> pd.DataFrame:
    """Arrange accuracies as data sets x methods, with the sets that have a value for every method.

    Examples
    --------
    >>> table = pd.DataFrame({"dataset": ["a", "a", "b"], "method": ["m", "n", "m"], "accuracy": [1.0, 2.0, 3.0]})
    >>> table["classifier"] = "knn"
    >>> score_matrix(table, "knn").to_dict("index")
    {'a': {'m': 1.0, 'n': 2.0}}
    """
    shown = table[table.classifier == classifier]
    matrix = shown.pivot(index="dataset", columns="method", values="accuracy")
    return matrix.reindex(index=shown.dataset.unique(), columns=shown.method.unique()).dropna()


def wilcoxon_holm(scores: pd.DataFrame, against: str | None = None) -> pd.DataFrame:
    """Compare one method with each of the others by signed ranks, with Holm-corrected p-values.

    Parameters
    ----------
    scores : DataFrame
        Data sets x methods.
    against : str, optional
        Method that the others are compared with; None: the one with the best mean rank, the first of them on a tie.

    Returns
    -------
    DataFrame
        method, against, better, equal and worse (numbers of sets), median_difference (method minus against), p_value
        (two-sided), p_holm, least_p_holm (the smallest possible p_holm, of a method that wins on all sets: with few sets and
        many methods it is above any level, so that nothing can be significant).
    """
    n_sets, n_methods = check_size(scores)
    if against is None:
        against = str(mean_ranks(scores).idxmin())
    if against not in scores:
        raise ValueError(f"against={against!r} is not a method. Use one of {', '.join(map(str, scores.columns))}.")
    found = []
    for method in scores.columns.drop(against):
        difference = (scores[method] - scores[against]).round(DIGITS).to_numpy()
        found.append(
            {
                "method": method,
                "against": against,
                "better": int((difference > 0).sum()),
                "equal": int((difference == 0).sum()),
                "worse": int((difference < 0).sum()),
                "median_difference": float(np.median(difference)),
                "p_value": signed_rank_test(difference),
            }
        )
    table = pd.DataFrame(found)
    table["p_holm"] = holm(table.p_value.to_numpy())
    table["least_p_holm"] = min(1.0, (n_methods - 1) * 2.0 ** (1 - n_sets))
    return table


def signed_rank_test(difference: np.ndarray) -> float:
    """Return Wilcoxon's two-sided p-value, exact also with ties; differences of zero are left out.

    Without ties this is SciPy's. With ties SciPy's exact distribution is that of ranks without ties; here all sums of signed
    ranks are counted: under the null hypothesis both signs are equally likely, and doubled ranks are integers.

    Examples
    --------
    >>> signed_rank_test(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    0.0625
    """
    difference = difference[difference != 0]
    if not len(difference):
        return 1.0
    if len(np.unique(np.abs(difference))) == len(difference):
        return float(wilcoxon(difference, method="exact").pvalue)
    doubled = np.rint(2 * rankdata(np.abs(difference))).astype(int)
    positive = int(doubled[difference > 0].sum())
    share = np.ones(1)  # fraction of the sign patterns, by the sum of doubled positive ranks
    for rank in doubled:
        share = (np.pad(share, (0, rank)) + np.pad(share, (rank, 0))) / 2
    return min(1.0, 2.0 * float(min(share[: positive + 1].sum(), share[positive:].sum())))


def holm(p_values: np.ndarray) -> np.ndarray:
    """Return p-values corrected for multiple testing by Holm's method.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    corrected = np.empty(len(p_values))
    steps = p_values[order] * np.arange(len(p_values), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return corrected


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


def paired_tests(scores: pd.DataFrame, test_share: float) -> pd.DataFrame:
    """Compare all pairs of methods over the splits of one data set, with Holm's correction for the number of pairs.

    All pairs count, even if only those with the best method are used, since the best one is chosen by the same scores.

    Parameters
    ----------
    scores : DataFrame
        Splits x methods.
    test_share : float
        Number of test samples per training sample.

    Returns
    -------
    DataFrame
        method, against (the one with the lower mean, the second on a tie), difference of the means, better, equal and worse
        (numbers of splits), p_value, p_holm.

    Examples
    --------
    >>> tests = paired_tests(pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [2.0, 4.0, 5.0]}), 0.5)
    >>> tests[["method", "against", "better"]].values.tolist()
    [['b', 'a', 3]]
    """
    found = []
    for first, second in itertools.combinations(scores.columns, 2):
        difference = (scores[first] - scores[second]).round(DIGITS).to_numpy()
        mean = round(float((scores[first] - scores[second]).mean()), DIGITS)
        if mean < 0:
            first, second, difference, mean = second, first, -difference, -mean
        found.append(
            {
                "method": first,
                "against": second,
                "difference": mean,
                "better": int((difference > 0).sum()),
                "equal": int((difference == 0).sum()),
                "worse": int((difference < 0).sum()),
                "p_value": corrected_t_test(difference, test_share),
            }
        )
    columns = ["method", "against", "difference", "better", "equal", "worse", "p_value"]
    table = pd.DataFrame(found, columns=columns)
    return table.assign(p_holm=holm(table.p_value.to_numpy(dtype="float64")))


def tests_of_best(methods: Sequence[str], chosen: pd.DataFrame, n_samples: int) -> pd.DataFrame:
    """Compare the best method of one data set with each of the others, over the splits.

    Parameters
    ----------
    methods : sequence of str
        Methods, the best first.
    chosen : DataFrame
        Result of :func:`~l20fs.experiments.outcomes.honest_choices` for one classifier.
    n_samples : int

    Returns
    -------
    DataFrame
        Rows of :func:`paired_tests` for the first method; empty if there is no other one. Differences are in points of
        shares, and positive if the first method is better.
    """
    methods = list(methods)
    if len(methods) < 2:
        return pd.DataFrame()
    metric = metric_of(chosen)
    unit = metric.sign * (100.0 if metric.is_share else 1.0)
    scores = unit * chosen.pivot(index="split", columns="method", values=metric.name)[methods].dropna()
    n_test = float(chosen.n_test.mean())  # splits of whole groups differ in size
    tests = paired_tests(scores, n_test / (n_samples - n_test))
    return tests[tests.method == methods[0]]  # in the order of the table, so that the best is never second


def critical_difference(n_methods: int, n_sets: int, level: float = LEVEL) -> float:
    r"""Return the critical difference of mean ranks by Nemenyi's test: :math:`q \sqrt{k(k+1) / 6N}`.

    q is the quantile of the studentised range for infinitely many degrees of freedom, divided by the square root of two.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)  # the example of Demsar (2006)
    1.25
    """
    q = studentized_range.ppf(1.0 - level, n_methods, np.inf) / math.sqrt(2.0)
    return float(q * math.sqrt(n_methods * (n_methods + 1) / (6.0 * n_sets)))


def different_pairs(scores: pd.DataFrame, level: float = LEVEL) -> list[tuple[str, str]]:
    """Return the pairs (better, worse) that Nemenyi's test separates; none unless the Friedman test is significant.

    Examples
    --------
    >>> scores = pd.DataFrame({"a": range(9, 18), "b": range(9), "c": [4.0] * 9})
    >>> different_pairs(scores)
    [('a', 'b'), ('a', 'c')]
    """
    test = friedman(scores)
    if test.p_value >= level:
        return []
    difference = critical_difference(test.n_methods, test.n_sets, level)
    ranks = mean_ranks(scores)
    return [(str(a), str(b)) for a in ranks.index for b in ranks.index if ranks[b] - ranks[a] >= difference]


def alike(ranks: pd.Series, difference: float) -> list[list[str]]:
    """Return the largest groups of methods whose ranks differ by less than ``difference``, best first.

    A single method is not a group.

    Examples
    --------
    >>> alike(pd.Series({"a": 1.0, "b": 3.5, "c": 2.0}), 1.6)
    [['a', 'c'], ['c', 'b']]
    """
    ordered = ranks.sort_values(kind="stable")
    groups: list[list[str]] = []
    end = 0
    for start in range(len(ordered)):
        stop = int((ordered.to_numpy() < ordered.iloc[start] + difference).sum())
        if stop > end and stop - start > 1:
            groups.append([str(name) for name in ordered.index[start:stop]])
        end = max(end, stop)
    return groups


class RankTests(NamedTuple):
    """All tests of a score matrix.

    Attributes
    ----------
    ranks : Series
        Mean ranks, the best first.
    friedman : Friedman
    is_different : bool
        Whether Friedman's test finds any difference.
    difference : float
        Critical difference of mean ranks (Nemenyi).
    pairs : list of (str, str)
        Pairs (better, worse) that differ by Nemenyi's test.
    alike : list of lists of str
        Largest groups of methods of which no two differ.
    against_best : DataFrame
        Result of :func:`wilcoxon_holm` for the first method.
    level : float
    """

    ranks: pd.Series
    friedman: Friedman
    is_different: bool
    difference: float
    pairs: list[tuple[str, str]]
    alike: list[list[str]]
    against_best: pd.DataFrame
    level: float


def rank_tests(scores: pd.DataFrame, level: float = LEVEL) -> RankTests:
    """Compare all methods over data sets."""
    ranks = mean_ranks(scores).sort_values(kind="stable")
    test = friedman(scores)
    difference = critical_difference(test.n_methods, test.n_sets, level)
    return RankTests(
        ranks,
        test,
        test.p_value < level,
        difference,
        different_pairs(scores, level),
        alike(ranks, difference),
        wilcoxon_holm(scores),
        level,
    )
