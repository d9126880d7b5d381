"""Pairs of halves: disjoint, fair, stratified, whole groups, and the same in any order of calls."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from l20fs.evaluation.resampling import draw_pair, encode_groups, plan_pairs
from l20fs.inputs.targets import Targets, encode_targets, with_weights


def plan(y, groups=None, fraction=0.5, seed=0, weights=None):
    return plan_pairs(with_weights(encode_targets(np.asarray(y)), weights), groups, fraction, seed)


def halves(pairs, pair):
    return pairs.rows(2 * pair), pairs.rows(2 * pair + 1)


strata = st.lists(st.integers(0, 3), min_size=4, max_size=40).map(lambda labels: np.unique(labels, return_inverse=True)[1])


@given(strata, st.integers(0, 2**32), st.sampled_from([0.5, 0.45, 0.3, 0.2, 0.1]))
def test_halves_are_disjoint_equal_and_have_their_share_of_every_stratum(strata, seed, fraction):
    first, second = draw_pair(strata, fraction, np.random.default_rng(seed))
    assert len(set(first) | set(second)) == len(first) + len(second) <= len(strata)
    assert abs(len(first) - len(second)) <= 1
    n_each = max(1, int(fraction * len(strata) + 1e-9))
    for half in (first, second):
        for stratum, size in enumerate(np.bincount(strata)):
            n_drawn = np.count_nonzero(strata[half] == stratum)
            assert n_drawn >= (size >= 2)
            assert abs(n_drawn - fraction * size) < 2.0, "one unit up or down, after rounding twice"
    for stratum, size in enumerate(np.bincount(strata)):
        n_drawn = np.count_nonzero(strata[np.concatenate([first, second])] == stratum)
        assert n_drawn <= max(2, np.ceil(size * 2 * n_each / len(strata))), "filled up to two, no further"
    if fraction == 0.5:
        assert len(first) + len(second) >= len(strata) - 1, "complementary: an odd one may be left over"
    if np.bincount(strata).min() * n_each >= len(strata):
        assert len(first) == len(second) == n_each, "no stratum had to be filled up"


@given(st.lists(st.integers(1, 10), min_size=1, max_size=4), st.integers(0, 2**32))
def test_even_strata_are_halved_exactly(half_sizes, seed):
    strata = np.repeat(np.arange(len(half_sizes)), 2 * np.array(half_sizes))
    for half in draw_pair(strata, 0.5, np.random.default_rng(seed)):
        assert np.bincount(strata[half]).tolist() == half_sizes


@pytest.mark.parametrize("fraction", [0.5, 0.3])
def test_every_sample_has_the_same_chance_in_either_half(fraction):
    """Odd sizes everywhere: whoever is left over, or fills the larger half, is drawn by lot."""
    strata = np.repeat([0, 1, 2], [7, 5, 3])
    n_draws = 3000
    counts = np.zeros((2, 15))
    random = np.random.default_rng(0)
    for _ in range(n_draws):
        for half, drawn in zip(counts, draw_pair(strata, fraction, random), strict=True):
            half[drawn] += 1
    # Within a stratum all are alike, in both halves.
    for stratum in range(3):
        of_stratum = counts[:, strata == stratum] / n_draws
        expected = of_stratum.mean()
        assert np.all(np.abs(of_stratum - expected) < 4.5 * np.sqrt(expected * (1 - expected) / n_draws))


def test_who_is_left_over_is_drawn_among_all():
    """Of 11 and 4, one is left over: each sample equally often, not each stratum."""
    strata = np.repeat([0, 1], [11, 4])
    random = np.random.default_rng(0)
    is_left = np.array([np.setdiff1d(np.arange(15), np.concatenate(draw_pair(strata, 0.5, random))) for _ in range(1500)])
    assert abs(np.mean(strata[is_left]) - 4 / 15) < 4.5 * np.sqrt(4 / 15 * 11 / 15 / 1500)


def test_no_two_strata_always_go_together():
    """Of four strata of three, each half has two samples of two strata: of any two, by lot."""
    strata = np.repeat([0, 1, 2, 3], 3)
    random = np.random.default_rng(0)
    together = np.zeros(4)
    for _ in range(600):
        larger = np.bincount(strata[draw_pair(strata, 0.5, random)[0]]) == 2
        together += larger == larger[0]
    assert np.all(np.abs(together[1:] / 600 - 1 / 3) < 4.5 * np.sqrt(2 / 9 / 600))


def test_halves_without_labels_are_plain():
    pairs = plan(np.linspace(0.0, 1.0, 11))
    assert pairs.strata.tolist() == [0] * 11
    first, second = halves(pairs, 0)
    assert len(first) == len(second) == 5
    indicators = np.eye(3)[np.arange(12) % 3]
    indicators[0] = 1
    assert plan(indicators).strata.tolist() == [0] * 12
    nothing = Targets(np.empty((9, 0)), None, None)
    assert len(plan_pairs(nothing, None, 0.5, 0).rows(0)) == 4


def test_a_resample_follows_from_seed_and_number_alone():
    y = np.arange(30) % 3
    pairs = plan(y, seed=5)
    backwards = {i: pairs.rows(i) for i in reversed(range(20))}
    for i in range(20):
        np.testing.assert_array_equal(plan(y, seed=5).rows(i), backwards[i])
        assert np.all(np.diff(backwards[i]) > 0)
    different = {tuple(rows) for rows in backwards.values()} | {tuple(plan(y, seed=6).rows(i)) for i in range(20)}
    assert len(different) == 40
    seeds = {pairs.selector_seed(i) for i in range(100)} | {plan(y, seed=6).selector_seed(i) for i in range(100)}
    assert len(seeds) == 200
    assert max(seeds) < 2**31, "what every selector takes"


def test_nothing_global_is_drawn_from():
    np.random.seed(3)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    plan(np.arange(30) % 3).rows(0)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2)), min_size=12, max_size=50), st.integers(0, 100))
def test_groups_are_never_split(samples, seed):
    groups, y = np.array(samples).T
    n_holders = np.array([len(set(groups[y == label])) for label in np.unique(y)])
    if len(n_holders) < 2 or n_holders.min() < 2:
        return
    first, second = halves(plan(y, groups, seed=seed), 0)
    assert not set(groups[first]) & set(groups[second])
    assert set(np.flatnonzero(np.isin(groups, groups[first]))) == set(first)
    n_groups = [len(set(groups[half])) for half in (first, second)]
    assert abs(n_groups[0] - n_groups[1]) <= 1
    rarest = np.unique(y)[n_holders.argmin()]
    assert rarest in y[first]
    assert rarest in y[second]


def test_groups_of_one_class_are_stratified_by_it():
    """Three donors with the rare class, nine with the other: both halves have both, always."""
    groups = np.repeat(np.arange(12), 4)
    y = np.where(groups < 3, "rare", "common")
    for pair in range(30):
        for half in halves(plan(y, groups.astype(str)), pair):
            assert len(set(groups[half][y[half] == "rare"])) in (1, 2)
            assert len(set(groups[half])) == 6


def test_samples_of_weight_zero_are_not_drawn():
    y = np.arange(24) % 2
    weights = np.where(np.arange(24) % 3 == 0, 0.0, 2.0)
    for groups in (None, np.arange(24) // 2):
        pairs = plan(y, groups, weights=weights)
        drawn = np.concatenate(halves(pairs, 0))
        assert sorted(drawn) == np.flatnonzero(weights).tolist()
        assert np.all(np.diff(pairs.rows(0)) > 0)


def test_e6_a_class_with_one_sample_is_in_one_half_of_a_pair():
    y = np.array(["a"] * 5 + ["b"] * 6 + ["alone"])
    with pytest.warns(
        UserWarning, match=r"y has 1 of 3 classes in one sample only: 'alone'\. One half of each pair is with"
    ):
        pairs = plan(y)
    for pair in range(20):
        first, second = halves(pairs, pair)
        assert (11 in first) != (11 in second)
    with pytest.warns(UserWarning, match=r"y has 1 of 3 classes in one group only: 'alone'.* or give more groups"):
        plan(y, np.arange(12) // 2)


def test_e6_e7_halves_with_one_class_are_refused_before_anything_is_drawn():
    with pytest.raises(ValueError, match=r"1 of 2 classes in one sample only: 'b'\. A half without them has fewer than 2"):
        plan(["a", "a", "a", "b"])
    with pytest.raises(ValueError, match=r"2 of 2 classes in one sample only: '0', '1'"):
        plan([0, 1])
    with pytest.raises(ValueError, match=r"Give 2 groups or more of at least 2 classes"):
        plan([0, 1, 0, 1], [7, 7, 8, 9], weights=[1, 1, 1, 0])
    with pytest.raises(ValueError, match=r"7 of 7 classes in one sample only: '0', '1', '2', '3', '4', \.\.\."):
        plan(np.arange(7))


def test_a_class_that_no_weight_counts_is_not_rare():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pairs = plan([0, 0, 1, 1, 2], weights=[1, 1, 1, 1, 0])
    assert 4 not in np.concatenate([pairs.rows(resample) for resample in range(10)])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a"] * 6, r"one group only, .*'a'.*, which cannot be split\. Give 2 groups or more"),
        ([1, 2, 1, 2], "inconsistent numbers of samples"),
        ([1.0, 2.0, np.nan, 1.0, 2.0, 1.0], r"groups has 1 missing values\. Give every sample"),
        ([None, "a", "b", None, "a", "b"], "groups has 2 missing values"),
        (pd.Series(["a", pd.NA, "b", "a", "b", "a"], dtype="string"), "groups has 1 missing values"),
        (np.array([1, "a", 2, "b", 1, "a"], dtype=object), r"cannot be compared .* groups\.astype\(str\)"),
    ],
    ids=["one", "length", "nan", "none", "pandas", "mixed"],
)
def test_groups_that_make_no_sense_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        encode_groups(groups, 6)


def test_groups_of_any_type():
    for groups in (["x", "y", "x"], pd.Series([5, 7, 5]), pd.Categorical(["b", "c", "b"]), np.array([0.5, 1.5, 0.5])):
        assert encode_groups(groups, 3).tolist() == [0, 1, 0]
