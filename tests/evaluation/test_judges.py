"""Judges against plain loops and scikit-learn."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference import vote
from samples import make_data
from sklearn.neighbors import KNeighborsClassifier

from l20fs.evaluation.judges import nearest_neighbours


@given(st.integers(0, 2**32 - 1))
def test_neighbours_vote_as_in_a_plain_loop_whatever_ties_there_are(seed):
    rng = np.random.default_rng(seed)
    n_train, n_test, n_columns = rng.integers(1, 12), rng.integers(1, 5), rng.integers(1, 5)
    train, test = (
        rng.integers(0, 3, (n_train, n_columns)).astype(float),
        rng.integers(0, 3, (n_test, n_columns)).astype(float),
    )
    codes = rng.integers(0, 3, n_train)
    ends = np.sort(rng.integers(1, n_columns + 1, 3))
    found = nearest_neighbours(train, codes, test, ends, 3)
    for column, end in enumerate(ends):
        assert found[:, column].tolist() == [vote(train[:, :end], codes, sample[:end]) for sample in test]


def test_neighbours_are_those_of_scikit_learn():
    X, y = make_data(n_samples=200)
    found = nearest_neighbours(X[:150], y[:150], X[150:], np.array([1, 4, 12]), 3)
    for column, end in enumerate([1, 4, 12]):
        expected = KNeighborsClassifier(5).fit(X[:150, :end], y[:150]).predict(X[150:, :end])
        np.testing.assert_array_equal(found[:, column], expected)


def test_blocks_of_test_samples_change_nothing(monkeypatch):
    X, y = make_data(n_samples=60)
    expected = nearest_neighbours(X[:40], y[:40], X[40:], np.array([2, 5]), 3)
    monkeypatch.setattr("l20fs.evaluation.judges.BLOCK_ELEMENTS", 130)
    np.testing.assert_array_equal(nearest_neighbours(X[:40], y[:40], X[40:], np.array([2, 5]), 3), expected)


def test_without_a_feature_the_most_common_class_wins():
    codes = np.array([1, 2, 0, 2, 2, 1, 0, 1, 1, 1])
    assert nearest_neighbours(np.zeros((10, 0)), codes, np.zeros((2, 0)), np.array([0]), 3).tolist() == [[1], [1]]
