"""Tests over data sets: against SciPy, a worked example, tables of quantiles, all orders and all sign patterns."""

from __future__ import annotations

import itertools
import math
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from l20fs.experiments import friedman as friedman_test
from l20fs.experiments import statistics
from l20fs.experiments.friedman import drawn_p_value, exact_p_value, friedman, mean_ranks
from l20fs.experiments.statistics import (
    alike,
    critical_difference,
    different_pairs,
    holm,
    rank_tests,
    score_matrix,
    signed_rank_test,
    wilcoxon_holm,
)

# Areas under the curve of four variants of C4.5 on 14 data sets: table 6 of Demsar (2006).
DEMSAR = pd.DataFrame(
    {
        "C4.5": [0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661, 0.583, 0.775, 1.0, 0.940, 0.619, 0.972, 0.957],
        "C4.5+m": [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668, 0.583, 0.838, 1.0, 0.962, 0.666, 0.981, 0.978],
        "C4.5+cf": [0.771, 0.590, 0.968, 0.654, 0.886, 0.916, 0.609, 0.563, 0.866, 1.0, 0.965, 0.614, 0.975, 0.946],
        "C4.5+m+cf": [0.798, 0.569, 0.967, 0.657, 0.898, 0.931, 0.685, 0.625, 0.875, 1.0, 0.962, 0.669, 0.975, 0.970],
    }
)


def matrices(least_methods=2):
    """Return score matrices with many ties."""
    shapes = st.tuples(st.integers(2, 7), st.integers(least_methods, 5))
    return shapes.flatmap(
        lambda shape: st.lists(
            st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.1 + 0.2, 55.5]), min_size=shape[1], max_size=shape[1]),
            min_size=shape[0],
            max_size=shape[0],
        ).map(lambda values: pd.DataFrame(values, columns=list("abcde")[: shape[1]]))
    )


def test_the_worked_example():
    """In print two entries of row 13 are equal (0.975), but their ranks are 2 and 3: the table is rounded."""
    assert mean_ranks(DEMSAR).round(3).tolist() == [3.143, 2.0, 2.929, 1.929]
    unrounded = DEMSAR.copy()
    unrounded.loc[12, "C4.5+cf"] += 1e-5
    ranks = mean_ranks(unrounded)
    assert ranks.round(3).tolist() == [3.143, 2.0, 2.893, 1.964], "the ranks in print"
    without_ties = 12 * 14 / (4 * 5) * (np.sum(ranks**2) - 4 * 5**2 / 4)
    assert without_ties == pytest.approx(9.28, abs=0.005), "the statistic in print does not allow for ties"
    assert friedman(unrounded).statistic > without_ties, "ours does, as SciPy's"
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert critical_difference(4, 14, level=0.1) == pytest.approx(1.12, abs=0.005)


def test_quantiles_of_the_published_table():
    """Table 5a of Demsar (2006), at 0.05."""
    for n_methods, q in zip(range(2, 11), [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164], strict=True):
        found = critical_difference(n_methods, 1) / np.sqrt(n_methods * (n_methods + 1) / 6)
        assert found == pytest.approx(q, abs=0.001)


@given(matrices(least_methods=3))
def test_the_statistic_is_that_of_scipy(scores):
    rounded = scores.round(statistics.DIGITS)
    found = friedman(scores)
    assert (found.n_sets, found.n_methods) == scores.shape
    if all(len(set(row)) == 1 for row in rounded.to_numpy()):
        assert (found.statistic, found.p_value) == (0.0, 1.0), "nothing differs; SciPy gives NaN"
        return
    expected = scipy.stats.friedmanchisquare(*rounded.to_numpy().T)
    assert found.statistic == pytest.approx(expected.statistic, abs=1e-8)


@given(matrices())
def test_mean_ranks_are_those_of_scipy(scores):
    ranks = [scipy.stats.rankdata(-row) for row in scores.round(statistics.DIGITS).to_numpy()]
    assert mean_ranks(scores).tolist() == pytest.approx(np.mean(ranks, axis=0))


def all_orders(ranks):
    """Return the p-value by every order within every set, one by one."""
    observed = np.square(ranks.sum(axis=0)).sum()
    orders = itertools.product(*(itertools.permutations(row) for row in ranks.tolist()))
    return np.mean([np.square(np.sum(order, axis=0)).sum() >= observed for order in orders])


@given(st.sampled_from([(2, 2), (5, 2), (2, 3), (4, 3), (2, 4), (3, 4)]), st.data())
@settings(max_examples=30)
def test_the_exact_p_value_against_all_orders(shape, data):
    row = st.lists(st.integers(0, 3), min_size=shape[1], max_size=shape[1])
    values = data.draw(st.lists(row, min_size=2, max_size=shape[0]))
    scores = pd.DataFrame(values, dtype=float)
    found = friedman(scores)
    assert found.is_exact
    assert found.p_value == pytest.approx(
        all_orders(np.array([2 * scipy.stats.rankdata(-row) for row in scores.to_numpy()]))
    )


def test_two_methods_are_tested_by_their_signs():
    """With two methods Friedman's test is the sign test, two-sided."""
    for n_better in range(8):
        scores = pd.DataFrame({"a": [1.0] * n_better + [0.0] * (7 - n_better), "b": [0.5] * 7})
        expected = scipy.stats.binomtest(n_better, 7).pvalue
        assert friedman(scores).p_value == pytest.approx(expected)


def test_more_sets_than_can_be_counted_are_drawn_and_many_agree_with_chi_square(monkeypatch):
    random = np.random.default_rng(0)
    scores = pd.DataFrame(random.random((200, 6)) + 0.03 * np.arange(6))
    found = friedman(scores)
    assert not found.is_exact
    assert found.p_value == friedman(scores).p_value, "the seed is fixed"
    # The standard error of 19 999 draws is at most 0.0035; chi-square is that close for 200 sets.
    assert found.p_value == pytest.approx(scipy.stats.chi2.sf(found.statistic, 5), abs=0.015)
    ranks = np.array([2 * random.permutation(4) for _ in range(5)])
    exact = exact_p_value(ranks)
    assert drawn_p_value(ranks) == pytest.approx(exact, abs=0.015)
    assert drawn_p_value(np.tile(np.arange(9), (8, 1))) == 1 / 20_000, "never zero"
    monkeypatch.setattr(friedman_test, "MOST_COUNTED", 100)
    assert exact_p_value(ranks) is None
    assert exact_p_value(np.tile(np.arange(9), (2, 1))) is None, "9! orders are too many"


def test_where_all_sets_agree_the_p_value_is_the_chance_of_that():
    for n_sets, n_methods in ((2, 3), (3, 3), (2, 4), (2, 5)):
        scores = pd.DataFrame(np.tile(np.arange(n_methods), (n_sets, 1)), columns=list("abcde")[:n_methods])
        chance = 1.0 / math.factorial(n_methods) ** (n_sets - 1)
        found = friedman(scores)
        assert found.statistic == pytest.approx(n_sets * (n_methods - 1))
        assert found.p_value == pytest.approx(chance)
        assert rank_tests(scores).is_different == (chance < 0.05)


@pytest.mark.parametrize("n_sets", [2, 3, 4])
@pytest.mark.parametrize("n_methods", [2, 3, 4, 9])
def test_equal_methods_are_rarely_called_different(n_sets, n_methods):
    """Of 300 comparisons of scores that differ by chance alone 5 % may be significant, and some more by chance."""
    random = np.random.default_rng([n_sets, n_methods])
    with patch.object(friedman_test, "N_DRAWN", 499):
        found = [friedman(pd.DataFrame(random.integers(0, 8, (n_sets, n_methods)))).p_value <= 0.05 for _ in range(300)]
    assert sum(found) <= scipy.stats.binom.ppf(0.999, 300, 0.05)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=8))
def test_signed_ranks_against_all_sign_patterns(values):
    difference = np.array(values, dtype=float)
    different = difference[difference != 0]
    ranks = scipy.stats.rankdata(np.abs(different))
    center = ranks.sum() / 2
    observed = abs(ranks[different > 0].sum() - center)
    sums = [sum(r for r, s in zip(ranks, signs, strict=True) if s) for signs in itertools.product([0, 1], repeat=len(ranks))]
    expected = np.mean([abs(value - center) >= observed - 1e-9 for value in sums])
    assert signed_rank_test(difference) == pytest.approx(expected)


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=30, unique_by=abs).filter(lambda values: 0 not in values))
def test_signed_ranks_without_ties_are_those_of_scipy_and_of_counting(values):
    difference = np.array(values, dtype=float)
    found = signed_rank_test(difference)
    assert found == pytest.approx(scipy.stats.wilcoxon(difference, method="exact").pvalue)
    assert signed_rank_test(np.append(difference, [0.0, 0.0])) == found, "zeros are left out"
    share = np.ones(1)
    for rank in range(1, len(values) + 1):
        share = (np.pad(share, (0, rank)) + np.pad(share, (rank, 0))) / 2
    positive = int(scipy.stats.rankdata(np.abs(difference))[difference > 0].sum())
    assert found == pytest.approx(min(1.0, 2 * min(share[: positive + 1].sum(), share[positive:].sum())))


def test_signed_ranks_with_ties_are_not_those_of_scipys_exact_distribution():
    """SciPy counts the sums of 1 to n, which ties do not have. By permutations, up to 13 sets, it counts the same as we."""
    difference = np.array([1.0, 1.0, 1.0, 1.0, -1.0, 2.0, 2.0, -2.0])
    found = signed_rank_test(difference)
    assert found != pytest.approx(scipy.stats.wilcoxon(difference, method="exact").pvalue, abs=1e-3)
    permuted = scipy.stats.wilcoxon(difference, method=scipy.stats.PermutationMethod()).pvalue
    assert found == pytest.approx(permuted)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_holm_against_its_definition(values):
    """A hypothesis is rejected at a level if it and all with smaller p-values pass their step."""
    p = np.array(values)
    corrected = holm(p)
    order = np.argsort(p, kind="stable")
    for level in (0.01, 0.05, 0.2, 0.7):
        rejected = set()
        for step, place in enumerate(order):
            if p[place] * (len(p) - step) > level:
                break
            rejected.add(place)
        assert {i for i in range(len(p)) if corrected[i] <= level} == rejected
    assert (corrected >= p).all()
    assert (corrected <= 1).all()


@given(matrices())
def test_pairs_against_the_best_or_a_named_method(scores):
    best = mean_ranks(scores).idxmin()
    for against in (None, *scores.columns):
        table = wilcoxon_holm(scores, against)
        assert set(table.against) == {against or best}
        assert table.method.tolist() == [name for name in scores if name != (against or best)]
        for row in table.itertuples():
            difference = (scores[row.method] - scores[row.against]).round(9)
            assert (row.better, row.equal, row.worse) == tuple((np.sign(difference) == sign).sum() for sign in (1, 0, -1))
            assert row.median_difference == pytest.approx(difference.median(), abs=1e-9)
            assert row.p_value == pytest.approx(signed_rank_test(difference.to_numpy()))
        assert table.p_holm.tolist() == holm(table.p_value.to_numpy()).tolist()
        assert (table.p_holm.min() >= table.least_p_holm - 1e-12).all()


def test_with_few_sets_nothing_can_be_significant():
    scores = pd.DataFrame(np.arange(8.0)[:, None] + np.arange(9.0), columns=list("abcdefghi"))
    table = wilcoxon_holm(scores, "i")
    assert table.p_holm.tolist() == pytest.approx([0.0625] * 8)
    assert table.least_p_holm.tolist() == pytest.approx([0.0625] * 8)


@given(st.lists(st.integers(2, 18), min_size=1, max_size=7), st.integers(1, 12))
def test_groups_are_the_largest_sets_without_a_difference(values, difference):
    ranks = pd.Series([value / 2 for value in values], index=[f"m{i}" for i in range(len(values))])
    limit = difference / 2 + 0.1
    names = list(ranks.index)
    fitting = [
        set(group)
        for size in range(2, len(names) + 1)
        for group in itertools.combinations(names, size)
        if max(ranks[list(group)]) - min(ranks[list(group)]) < limit
    ]
    expected = [group for group in fitting if not any(group < other for other in fitting)]
    found = alike(ranks, limit)
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))
    for group in found:
        assert ranks[group].is_monotonic_increasing


def test_methods_exactly_the_difference_apart_differ():
    assert alike(pd.Series({"a": 1.0, "b": 2.0}), 1.0) == []
    assert alike(pd.Series({"a": 1.0, "b": 2.0}), 1.0 + 1e-9) == [["a", "b"]]


def test_pairs_are_compared_only_after_a_difference_was_found():
    clear = pd.DataFrame(np.arange(10.0)[:, None] + [3.0, 2.0, 1.0, 0.0], columns=list("abcd"))
    assert different_pairs(clear) == [("a", "c"), ("a", "d"), ("b", "d")]
    assert different_pairs(DEMSAR) == []
    nothing_found = friedman(clear)._replace(p_value=0.06)
    with patch.object(statistics, "friedman", return_value=nothing_found):
        assert different_pairs(clear) == []


def test_a_set_without_a_value_for_every_method_is_left_out():
    table = pd.DataFrame(
        [
            ("z", "m", "knn", 1.0),
            ("z", "a", "knn", 2.0),
            ("b", "m", "knn", 3.0),
            ("c", "m", "knn", 4.0),
            ("c", "a", "knn", 5.0),
        ]
        + [("c", "only", "softmax", 5.0)],
        columns=["dataset", "method", "classifier", "accuracy"],
    )
    scores = score_matrix(table, "knn")
    assert scores.index.tolist() == ["z", "c"]
    assert scores.columns.tolist() == ["m", "a"]
    assert scores.to_numpy().tolist() == [[1.0, 2.0], [4.0, 5.0]]


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="1 data sets and 4 methods"):
        friedman(DEMSAR.iloc[:1])
    with pytest.raises(ValueError, match="14 data sets and 1 methods"):
        wilcoxon_holm(DEMSAR[["C4.5"]])
    with pytest.raises(ValueError, match=r"against='C5.0' is not a method. Use one of C4.5, "):
        wilcoxon_holm(DEMSAR, "C5.0")
