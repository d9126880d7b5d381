"""What happens by default: the ridge, the scaling and the weights of classes, against their formulas written out here."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from acceptance import doors

PLAIN = {"class_weight": None, "fit_intercept": True, "ranking": "entry"}
CONTAINERS = {"dense": np.asarray, "CSR": sp.csr_array, "float32": np.float32}


def draw(seed, n_samples, n_features, targets):
    """Features of unlike deviations, one of them constant, some of which explain the targets; and their columns Y."""
    random = np.random.default_rng(seed)
    X = random.exponential(size=(n_samples, n_features)) * random.uniform(0.5, 5.0, n_features)
    X[random.random(X.shape) < 0.2] = 0.0
    X[:, 1] = 2.0
    signal = X[:, :6] @ random.standard_normal(6) + random.standard_normal(n_samples)
    y = np.digitize(signal, np.quantile(signal, [0.2, 0.85]))
    return (X, signal, signal[:, None]) if targets == "numbers" else (X, y, np.eye(3)[y])


def auto_ridge(n_varying, n_samples, targets):
    per_sample = n_varying / n_samples
    share = per_sample / (per_sample + 10.0)
    return min(0.1, share) if targets == "numbers" else 3.0 * share


def balanced(Y, weights=1.0):
    sizes = (Y.T * weights).sum(axis=1)
    return sizes.sum() / (len(sizes) * sizes)


def expect(fitted, X, Y, k, *, rule, ridge, weights=None, of_targets=1.0, rtol=1e-8):
    """Check a fit against forward selection by ridge regression in closed form: mu is ``ridge`` times the mean energy."""
    weights = np.ones(len(X)) if weights is None else weights
    mean, y_mean = (np.average(part, axis=0, weights=weights) for part in (X, Y))
    varies, deviation = np.ptp(X, axis=0) > 0.0, np.sqrt(np.average(np.square(X - mean), axis=0, weights=weights))
    added = {"none": 1.0 - deviation, "zscore": ~varies, "moderated": np.median(deviation[varies])}
    divisor, root = deviation + added[rule], np.sqrt(weights)[:, None]
    A, B = root * (X - mean) / divisor, root * (Y - y_mean) * np.sqrt(of_targets)
    mu = ridge * np.square(A[:, varies]).sum(axis=0).mean()

    def solve(rows):
        W = np.linalg.solve(A[:, rows].T @ A[:, rows] + mu * np.eye(len(rows)), A[:, rows].T @ B)
        return 0.5 * np.square(A[:, rows] @ W - B).sum() + 0.5 * mu * np.square(W).sum(), W

    order, coef = [], np.zeros((Y.shape[1], X.shape[1]))
    while len(order) < k:
        order.append(min(np.setdiff1d(np.flatnonzero(varies), order), key=lambda j: solve([*order, j])[0]))
    loss, W = solve(order)
    coef[:, order] = (W / np.sqrt(of_targets)).T / divisor[order]
    found, intercept, found_loss = fitted.refit(k)
    assert fitted.order[:k].tolist() == order
    assert found_loss == pytest.approx(loss, rel=rtol)
    np.testing.assert_allclose(found, coef, rtol=1e-5, atol=1e-5 * np.abs(coef).max())
    np.testing.assert_allclose(intercept, y_mean - coef @ mean, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("targets", ["labels", "numbers"])
@pytest.mark.parametrize(("n_samples", "n_features"), [(200, 8), (40, 41), (24, 300)])
def test_automatic_ridge(n_samples, n_features, targets):
    X, y, Y = draw(n_features, n_samples, n_features, targets)
    for weights in (None, np.random.default_rng(0).integers(1, 5, n_samples).astype(float)):
        ridge = auto_ridge(n_features - 1, n_samples if weights is None else weights.sum(), targets)
        fitted = doors.fit(X, y, 4, sample_weight=weights, scale="none", ridge="auto", **PLAIN)
        assert fitted.ridge == pytest.approx(ridge, rel=1e-9)
        expect(fitted, X, Y, 4, rule="none", ridge=ridge, weights=weights)


@pytest.mark.parametrize("rule", ["moderated", "zscore", "none"])
@pytest.mark.parametrize("container", CONTAINERS)
def test_scaling_is_division(container, rule):
    X, y, Y = draw(1, 60, 12, "labels")
    X = np.asarray(X, dtype=np.float32).astype(float)
    for weights in (None, np.random.default_rng(1).uniform(0.5, 2.0, 60)):
        fitted = doors.fit(CONTAINERS[container](X), y, 4, sample_weight=weights, scale=rule, ridge=0.3, **PLAIN)
        assert fitted.scale == rule
        expect(fitted, X, Y, 4, rule=rule, ridge=0.3, weights=weights, rtol=1e-5 if container == "float32" else 1e-8)


@pytest.mark.parametrize(
    ("n_features", "ratio", "lean", "rule"),
    [
        (12, 51.0, 0.0, "zscore"),  # the deviations are not comparable, smallest and largest of a few features
        (41, 49.0, 0.5, "moderated"),
        (41, 51.0, 0.5, "zscore"),  # nor the 5th and the 95th percentile of many
        (41, 49.0, -0.3, "moderated"),
        (41, 49.0, -0.33, "zscore"),  # features that vary more explain less, by more than two standard errors
        (401, 49.0, -0.11, "zscore"),
    ],
)
def test_automatic_scaling(n_features, ratio, lean, rule):
    """``lean`` is the correlation of the logarithm of a feature's deviation with the share of the targets it explains."""
    random, n_beyond = np.random.default_rng(0), (n_features - 1) // 20
    within = np.geomspace(1.0, ratio, n_features - 2 * n_beyond)
    deviation = np.concatenate([np.full(n_beyond, 1e-3), within, np.full(n_beyond, 1e5)])
    basis = np.linalg.qr(np.column_stack([np.ones(n_features), np.log(deviation), random.uniform(size=n_features)]))[0]
    lean_on = np.array([0.0, lean * np.sign(basis[-1, 1]), np.sqrt(1.0 - lean**2)])
    share = 0.3 + 0.08 * np.sqrt(n_features) * basis @ lean_on
    y = np.repeat([0, 1], [20, 31])
    basis = np.linalg.qr(np.column_stack([np.ones(51), y, random.standard_normal((51, 49))]))[0]
    noise = basis[:, 2:] @ random.standard_normal((49, n_features))
    X = np.sqrt(share) * basis[:, [1]] + np.sqrt(1.0 - share) * noise / np.linalg.norm(noise, axis=0)
    fitted = doors.fit(deviation * X, y, 4, scale="auto", ridge=0.3, **PLAIN)
    assert fitted.scale == rule
    expect(fitted, deviation * X, np.eye(2)[y], 4, rule=rule, ridge=0.3)


def test_balanced_classes_weigh_the_same():
    X, y, Y = draw(3, 90, 15, "labels")
    for weights in (None, np.random.default_rng(2).integers(1, 4, 90).astype(float)):
        of_classes = balanced(Y, 1.0 if weights is None else weights)
        for class_weight in ("balanced", dict(enumerate(of_classes))):
            options = PLAIN | {"scale": "zscore", "class_weight": class_weight, "ridge": 0.3}
            fitted = doors.fit(X, y, 5, sample_weight=weights, **options)
            expect(fitted, X, Y, 5, rule="zscore", ridge=0.3, weights=weights, of_targets=of_classes)


@pytest.mark.parametrize(("model", "targets"), [("selector", "labels"), ("selector", "numbers"), ("classifier", "labels")])
def test_nothing_given(model, targets):
    """Forward selection of 20 features, with all of the above."""
    X, y, Y = draw(4, 70, 50, targets)
    fitted = doors.fit_by_default(X, y, model=model)
    assert len(fitted.support()) == 20
    of_targets = balanced(Y) if targets == "labels" else 1.0
    expect(fitted, X, Y, 20, rule="moderated", ridge=auto_ridge(49, 70, targets), of_targets=of_targets)
