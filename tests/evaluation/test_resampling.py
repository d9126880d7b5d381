"""Pairs of halves: disjoint, fair, stratified, whole groups, and the same in any order of calls."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from l20fs.evaluation.resampling import draw_pair, encode_groups, plan_pairs
from l20fs.inputs.targets import encode_targets, with_weights


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


def test_samples_of_weight_zero_are_not_drawn():
    y = np.arange(24) % 2
    weights = np.where(np.arange(24) % 3 == 0, 0.0, 2.0)
    for groups in (None, np.arange(24) // 2):
        pairs = plan(y, groups, weights=weights)
        drawn = np.concatenate(halves(pairs, 0))
        assert sorted(drawn) == np.flatnonzero(weights).tolist()
        assert np.all(np.diff(pairs.rows(0)) > 0)


def test_e6_e7_halves_with_one_class_are_refused_before_anything_is_drawn():
    with pytest.raises(ValueError, match=r"1 of 2 classes in one sample only: 'b'\. A half without them has fewer than 2"):
        plan(["a", "a", "a", "b"])
    with pytest.raises(ValueError, match=r"2 of 2 classes in one sample only: '0', '1'"):
        plan([0, 1])
    with pytest.raises(ValueError, match=r"Give 2 groups or more of at least 2 classes"):
        plan([0, 1, 0, 1], [7, 7, 8, 9], weights=[1, 1, 1, 0])
    with pytest.raises(ValueError, match=r"7 of 7 classes in one sample only: '0', '1', '2', '3', '4', \.\.\."):
        plan(np.arange(7))


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
