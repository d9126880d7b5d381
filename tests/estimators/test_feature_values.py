"""Values of features in the samples, which the report shows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from l20fs.estimators.feature_values import class_means, levels, target_correlations, unit_values
from l20fs.inputs.targets import encode_targets, numeric_targets

SINGLE = [np.array([j]) for j in range(5)]


def test_class_means_are_mean_z_scores_also_far_from_zero():
    y = np.array([0, 0, 0, 1, 1, 1])
    X = np.column_stack([1e13 + 2.0 * y, np.full(6, 0.1), [0.0, 1.0, 2.0, 4.0, 5.0, 6.0]])
    scores = (X[:, 2] - X[:, 2].mean()) / X[:, 2].std()
    units = [np.array([0]), np.array([1]), np.array([2]), np.array([0, 2])]
    for container in (np.asarray, sp.csr_array):
        far, constant, plain, group = class_means(container(X), units, y)
        np.testing.assert_allclose(far, [-1.0, 1.0], rtol=1e-12)
        assert constant == [0.0, 0.0]
        np.testing.assert_allclose(plain, [scores[:3].mean(), scores[3:].mean()], rtol=1e-12)
        np.testing.assert_allclose(group, np.mean([far, plain], axis=0), rtol=1e-12)


def test_missing_values_are_left_out():
    """As pandas does, feature by feature."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(3, 2, (40, 5)), np.arange(40) % 3
    numbers = rng.normal(size=40)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[y == 1, 3] = np.nan
    X[:, 4] = np.nan
    means, related = class_means(X, SINGLE, y), target_correlations(X, SINGLE, numbers)
    for j in range(4):
        known = ~np.isnan(X[:, j])
        z = (X[:, j] - np.nanmean(X[:, j])) / np.nanstd(X[:, j])
        expected = [np.mean(z[known & (y == c)]) if (known & (y == c)).any() else 0.0 for c in range(3)]
        np.testing.assert_allclose(means[j], expected, rtol=1e-10)
        assert related[j] == pytest.approx(np.corrcoef(X[known, j], numbers[known])[0, 1])
    assert means[4] == [0.0] * 3
    assert related[4] == 0.0


def test_values_are_those_of_the_samples_or_z_scores():
    X = np.random.default_rng(0).normal(3, 2, (20, 5))
    for j, values in enumerate(unit_values(sp.csc_array(X), SINGLE, standardised=False)):
        assert values.tolist() == X[:, j].tolist()
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    found = next(iter(unit_values(X, [np.array([1, 3])])))
    np.testing.assert_allclose(found, z[:, [1, 3]].mean(axis=1))


def test_levels_of_classes_numbers_and_several_targets():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[np.arange(30) % 3]
    X = rng.normal(0, 0.1, (30, 3)) + np.column_stack([y == "b", -1.0 * (y == "c"), np.arange(30) % 3])
    assert levels(X, SINGLE[:2], encode_targets(y), ["a", "b", "c"]) == ["high in b", "low in c"]
    numbers = np.column_stack([X[:, 0], -X[:, 2]])
    assert levels(X, [SINGLE[0], SINGLE[2]], numeric_targets(numbers), ["p", "q"]) == ["rises with p", "falls with q"]
    assert levels(X, [], encode_targets(y), ["a", "b", "c"]) == levels(X, [], numeric_targets(numbers), ["p", "q"]) == []
