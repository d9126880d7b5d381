"""Folds against scikit-learn's, and what must never happen: groups on both sides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold, StratifiedKFold

from l20fs.evaluation.folds import make_folds, make_stratified_folds, number_of_folds
from l20fs.inputs.targets import OneClassError


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
    message = r"The training part of fold 1 of 2 has one class only, '[ab]'; .* give groups with samples of several classes"
    with pytest.raises(OneClassError, match=message):
        make_stratified_folds(y, np.repeat([0, 1], 10))
    with (
        pytest.warns(UserWarning, match="2 of 2 classes are in one group only"),
        pytest.raises(OneClassError, match=message),
    ):
        make_folds(2, np.zeros((20, 1)), y, np.repeat([0, 1], 10), classify=True)


def test_a_splitter_that_leaves_one_class_is_refused_with_the_fold_and_the_way_out():
    X, y = np.zeros((20, 1)), np.repeat(["a", "b"], 10)
    message = r"The training part of fold 1 of 2 has one class only, 'b'; selection needs 2 or more\. Use cv=2,"
    with pytest.raises(OneClassError, match=message):
        make_folds(KFold(2), X, y, None, classify=True)
    assert len(make_folds(KFold(2), X, np.arange(20.0), None, classify=False)) == 2
    assert len(make_folds(2, X, y, None, classify=True)) == 2
