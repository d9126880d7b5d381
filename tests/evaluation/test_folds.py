"""Folds against scikit-learn's, and what must never happen: groups on both sides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold

from l20fs.evaluation.folds import make_stratified_folds, number_of_folds


def test_folds_are_those_of_scikit_learn_and_follow_the_seed():
    y = np.array(["a", "b", "c"])[np.random.default_rng(0).integers(0, 3, 60)]
    for seed in (0, 1):
        expected = StratifiedKFold(5, shuffle=True, random_state=seed).split(np.zeros((60, 1)), y)
        for fold, (train, test) in zip(make_stratified_folds(y, seed=seed), expected, strict=True):
            np.testing.assert_array_equal(fold.train, train)
            np.testing.assert_array_equal(fold.test, test)
    assert any(
        (one.test != other.test).any()
        for one, other in zip(make_stratified_folds(y, seed=0), make_stratified_folds(y, seed=1), strict=True)
    )


@given(st.integers(0, 2**32 - 1))
def test_groups_are_never_on_both_sides(seed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 8, 80)
    y = rng.permutation(np.repeat(["a", "b"], 40))
    folds = make_stratified_folds(y, groups, seed=1)
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(80))


def test_rare_classes_and_few_groups_mean_fewer_folds():
    assert number_of_folds(["a"] * 50 + ["b"] * 7) == 5
    assert number_of_folds(["a"] * 50 + ["b"] * 3) == 3
    assert number_of_folds(["a"] * 50 + ["b"]) == 1
    assert number_of_folds(["a", "b"] * 20, np.arange(40) % 4) == 4
    with pytest.raises(ValueError, match="2 samples of every class"):
        make_stratified_folds(["a"] * 5 + ["b"])


def test_groups_that_leave_one_class_are_refused():
    y = np.repeat(["a", "b"], 10)
    with pytest.raises(ValueError, match="A fold has training samples of class"):
        make_stratified_folds(y, np.repeat([0, 1], 10))
