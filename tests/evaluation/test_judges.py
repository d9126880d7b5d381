"""Judges against plain loops and scikit-learn."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference import vote
from samples import make_data
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

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
    found = nearest_neighbours(train, np.eye(3)[codes], test, ends).argmax(axis=2)
    for column, end in enumerate(ends):
        assert found[:, column].tolist() == [vote(train[:, :end], codes, sample[:end]) for sample in test]


def test_neighbours_are_those_of_scikit_learn():
    X, y = make_data(n_samples=200)
    found = nearest_neighbours(X[:150], np.eye(3)[y[:150]], X[150:], np.array([1, 4, 12])).argmax(axis=2)
    for column, end in enumerate([1, 4, 12]):
        expected = KNeighborsClassifier(5).fit(X[:150, :end], y[:150]).predict(X[150:, :end])
        np.testing.assert_array_equal(found[:, column], expected)


def test_means_of_neighbours_are_those_of_scikit_learn():
    X, _ = make_data(n_samples=200)
    Y = np.random.default_rng(0).standard_normal((200, 2))
    found = nearest_neighbours(X[:150], Y[:150], X[150:], np.array([1, 4, 12]))
    for place, end in enumerate([1, 4, 12]):
        expected = KNeighborsRegressor(5).fit(X[:150, :end], Y[:150]).predict(X[150:, :end])
        np.testing.assert_allclose(found[:, place], expected)
