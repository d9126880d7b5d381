"""Samples outside the training data: missing features, values out of range, distances, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from panel_samples import columns_for, fitted, named

from l20fs import L20Classifier
from l20fs.prediction.training_check import QUANTILE


def distances(columns, centres, spread):
    return np.array([min(np.mean(((row - centre) / spread) ** 2) for centre in centres) for row in columns])


def slow_limit(columns, codes):
    """Leave each sample out of the mean of its class, one by one."""
    within = np.zeros(columns.shape[1])
    for code in np.unique(codes):
        own = columns[codes == code]
        within += ((own - own.mean(axis=0)) ** 2).sum(axis=0) / len(columns)
    found = []
    for i, row in enumerate(columns):
        others = (codes == codes[i]) & (np.arange(len(columns)) != i)
        found.append(np.mean((row - columns[others].mean(axis=0)) ** 2 / within))
    return np.quantile(found, QUANTILE), np.sqrt(within)


@pytest.mark.parametrize("kind", [2, 3, 0])
@pytest.mark.parametrize("k", [1, 4, 6])
def test_distances_and_their_limit(kind, k):
    panel, _, X, y = fitted(kind)
    codes = np.unique(y, return_inverse=True)[1] if kind else np.zeros(len(y), dtype=int)
    columns = columns_for(panel, X, k)
    limit, spread = slow_limit(columns, codes)
    found = panel.check(columns, k)
    np.testing.assert_allclose(found.limit, limit, rtol=1e-9)
    centres = [columns[codes == code].mean(axis=0) for code in np.unique(codes)]
    np.testing.assert_allclose(found.distance, distances(columns, centres, spread), rtol=1e-9)
    assert found.is_far.mean() <= 0.05
    assert not any(found.missing)
    assert not any(found.outside)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_sample_weights_count_samples(fit_intercept):
    _, _, X, y = fitted(3)
    X = X + 2.0
    counts = np.arange(len(y)) % 3
    model = L20Classifier(3, fit_intercept=fit_intercept).fit(X, y, counts)
    panel = model.to_panel(X, y, counts, n_substitutes=0)
    rows = np.repeat(np.arange(len(y)), counts)
    many = L20Classifier(3, fit_intercept=fit_intercept).fit(X[rows], y[rows])
    many = many.to_panel(X[rows], y[rows], n_substitutes=0)
    np.testing.assert_allclose(panel.check(named(X)).distance, many.check(named(X)).distance, rtol=1e-9)
    np.testing.assert_allclose(panel.columns.mean, many.columns.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(panel.columns.deviation, many.columns.deviation, rtol=1e-9)
    assert panel.columns.minimum == many.columns.minimum


def test_values_beyond_a_tenth_of_the_range_are_named():
    panel, _, X, _ = fitted(3)
    columns = columns_for(panel, X)[:4].copy()
    low, high = np.array(panel.columns.minimum[0]), np.array(panel.columns.maximum[0])
    columns[0, 0], columns[1, 0] = high + 0.099 * (high - low), high + 0.101 * (high - low)
    columns[2, 0] = low - 0.101 * (high - low)
    found = panel.check(columns)
    name = panel.features[0]
    assert found.outside == [[], [(name, columns[1, 0])], [(name, columns[2, 0])], []]
    assert found.is_unusual[[1, 2]].all()
    assert found.notes()[1].startswith(f"1 value outside the training range: {name} {columns[1, 0]:.4g} (training ")


def test_missing_features_are_named_and_left_out_of_the_distance():
    panel, _, X, _ = fitted(3)
    first, second = panel.features[:2]
    table = {name: values[:3].copy() for name, values in named(X).items() if name != first}
    table[second][1] = np.nan
    found = panel.check(table)
    assert found.missing == [[first], [first, second], [first]]
    assert np.isfinite(found.distance).all()
    far = {name: values + 100.0 for name, values in table.items()}
    found = panel.check(far)
    assert found.is_far.all()
    assert all(note.endswith("far from all classes") for note in found.notes())
    gone = {name: np.full(3, np.nan) for name in panel.features}
    assert np.isnan(panel.check(gone).distance).all()
    assert not panel.check(gone).is_far.any()


def test_logarithms_are_compared_and_raw_values_named():
    _, _, X, y = fitted(3)
    logs = X - X.min()
    panel = L20Classifier(3).fit(logs, y).to_panel(logs, y, transform="log1p")
    raw = columns_for(panel, np.expm1(logs))
    assert not any(panel.check(raw).outside)
    raw[0, 0] = 1e6
    assert panel.check(raw).outside[0] == [(panel.features[0], 1e6)]
