"""Slopes against a search by SciPy, their limits, and probabilities that agree with decisions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize_scalar, root_scalar
from scipy.special import log_softmax

from l20fs.prediction.calibration import (
    Calibration,
    Shares,
    cross_fitted,
    fit_calibrations,
    fit_slopes,
    per_class,
)
from l20fs.prediction.linear_rule import decide


def sample_values(n_values, *, n_rules=4, n_samples=40, seed=0):
    """Return values of rules, from one that says nothing to one that separates the classes, and the classes."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, max(2, n_values), n_samples)
    truth = 2.0 * codes[:, None] - 1.0 if n_values == 1 else np.eye(n_values)[codes]
    noise = random.normal(size=(n_rules, n_samples, n_values)) * random.uniform(0.1, 20.0, (n_rules, 1, 1))
    return noise + np.arange(n_rules)[:, None, None] * truth * np.abs(noise).mean(axis=(1, 2), keepdims=True), codes


def slow_slope(scores, codes, weights, n_unknown):
    """Return the slope that SciPy finds: n_unknown further samples of unknown class, spread over those at hand."""
    total = weights.sum()
    doubt = n_unknown / (total + n_unknown)
    aims = np.full(scores.shape, doubt / scores.shape[1])
    aims[np.arange(len(codes)), codes] += 1.0 - doubt

    def loss(log_slope):
        return -float(weights @ (aims * log_softmax(np.exp(log_slope) * scores, axis=1)).sum(axis=1))

    def derivative(slope):
        return float(weights @ ((np.exp(log_softmax(slope * scores, axis=1)) - aims) * scores).sum(axis=1))

    near = np.exp(minimize_scalar(loss, bounds=(-20.0, 8.0), method="bounded", options={"xatol": 1e-9}).x)
    # A search by values of the loss finds half of the digits.
    return root_scalar(derivative, bracket=(near * (1.0 - 1e-4), near * (1.0 + 1e-4)), xtol=1e-14 * near, rtol=1e-13).root


@pytest.mark.parametrize("n_values", [1, 3, 6])
@pytest.mark.parametrize("n_unknown", [1.0, 5.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_slopes_are_those_of_a_slow_search(n_values, n_unknown, weighted):
    values, codes = sample_values(n_values)
    weights = np.random.default_rng(1).uniform(0.0, 3.0, len(codes)) if weighted else None
    found = fit_slopes(values, codes, weights, n_unknown=n_unknown)
    for rule, slope in enumerate(found):
        if slope < 1e-5:  # said to be useless
            assert rule == 0
            continue
        counts = np.ones(len(codes)) if weights is None else weights
        expected = slow_slope(per_class(values[rule]), codes, counts, n_unknown)
        assert slope == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n_values", [1, 4])
def test_largest_probability_is_that_of_the_decision(n_values):
    values, _ = sample_values(n_values)
    for slope, doubt in itertools.product((1e-3, 1.0, 50.0), (0.0, 0.4)):
        probabilities = Calibration(slope, doubt).probabilities(values[0])
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        np.testing.assert_array_equal(probabilities.argmax(axis=1), decide(values[0]))


def test_cross_fitted_probabilities_of_a_fold_do_not_depend_on_its_labels():
    values, codes = sample_values(3)
    values, fold_of = values.swapaxes(0, 1), np.arange(len(codes)) % 4
    shares = Shares(np.array([0.5, 0.3, 0.2]), np.full(3, 1 / 3))
    found = cross_fitted(values, codes, fold_of, shares)
    changed = np.where(fold_of == 2, (codes + 1) % 3, codes)
    np.testing.assert_array_equal(cross_fitted(values, changed, fold_of, shares)[fold_of == 2], found[fold_of == 2])
    slopes, doubt = fit_calibrations(values[fold_of != 2].swapaxes(0, 1), codes[fold_of != 2], None, shares)
    for rule, slope in enumerate(slopes):
        expected = Calibration(slope, doubt, shares.offset(slope)).probabilities(values[fold_of == 2, rule])
        np.testing.assert_allclose(found[fold_of == 2, rule], expected)


@pytest.mark.parametrize("n_values", [1, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_doubt_is_that_of_a_slow_search(n_values, weighted):
    values, codes = sample_values(n_values, n_rules=2, n_samples=120, seed=3)
    values[:, :12] *= -4.0  # samples about which the rules are sure, and wrong
    weights = np.random.default_rng(1).integers(1, 3, len(codes)).astype(float) if weighted else np.ones(len(codes))
    slopes, doubt = fit_calibrations(values, codes, weights)

    def loss(factor, share):
        total = 0.0
        for rule, slope in zip(values, fit_slopes(values, codes, weights), strict=True):
            logs = np.log(Calibration(factor * slope, share).probabilities(rule))
            own = logs[np.arange(len(codes)), codes]
            unknown = 1.0 / (weights.sum() + 1.0)
            total -= weights @ ((1.0 - unknown) * own + unknown * logs.mean(axis=1))
        return total

    factors, shares = np.geomspace(1.0, 8.0, 13), np.linspace(0.0, 0.9, 61)
    best = min((loss(factor, share), factor, share) for factor in factors for share in shares)
    assert 0.0 < doubt < 0.9
    np.testing.assert_allclose(slopes, best[1] * fit_slopes(values, codes, weights), rtol=1e-9)
    assert abs(doubt - best[2]) <= 0.015  # the step of the slow search
