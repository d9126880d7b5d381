from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.feature_selection import f_classif

from l20fs.inputs.targets import encode_targets
from l20fs.methods import FisherScore
from l20fs.methods.fisher import class_scatter


@given(seed=st.integers(0, 2**32 - 1))
def test_scatter_matches_its_definition(seed):
    random = np.random.default_rng(seed)
    X, y = random.standard_normal((20, 6)) + 5.0, random.permutation(np.arange(20) % 3)
    between, total = class_scatter(X, encode_targets(y))
    expected_between = sum(np.sum(y == c) * (X[y == c].mean(axis=0) - X.mean(axis=0)) ** 2 for c in range(3))
    assert np.allclose(between, expected_between)
    assert np.allclose(total, np.sum((X - X.mean(axis=0)) ** 2, axis=0))


def test_ratio_is_the_f_statistic_without_its_degrees_of_freedom():
    X, y = load_iris(return_X_y=True)
    scores = FisherScore(2).fit(X, y).scores_
    assert scores == pytest.approx(f_classif(X, y)[0] * 2 / 147)


def test_a_feature_that_is_pure_within_classes_comes_first_and_stays_finite():
    random = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = np.column_stack([random.standard_normal(30), 0.1 * y, 3.0 * y + 0.01 * random.standard_normal(30)])
    selector = FisherScore(1).fit(X, y)
    assert selector.ranking_.tolist() == [3, 1, 2]
    assert np.isfinite(selector.scores_).all()


def test_shifting_and_scaling_a_feature_changes_nothing():
    X, y = load_iris(return_X_y=True)
    scores = FisherScore(2).fit(X, y).scores_
    assert FisherScore(2).fit(X * np.array([1, 10, 0.1, 1e5]) + 1e3, y).scores_ == pytest.approx(scores, rel=1e-6)
