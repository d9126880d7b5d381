"""Robust regression on given columns: medians, linear programs, the slow twin, and a duality gap that holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import robust_loss, robust_minimum, robust_unit
from scipy.optimize import linprog

from l20fs.solvers.robust_regression import TOLERANCE, RobustRegression, Span

SEEDS = st.integers(0, 2**32 - 1)
DELTA = 1e-6


def draw(seed, kind, n_targets, n_samples=24, n_features=3):
    """Targets with outliers, met exactly by most samples, of repeated samples, or labels most of which are equal."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_samples, n_features))
    Y = X @ random.standard_normal((n_features, n_targets)) + 0.3 * random.standard_normal((n_samples, n_targets))
    if kind == "exact":
        Y = X @ random.standard_normal((n_features, n_targets))
    if kind == "labels":
        Y = (random.random((n_samples, n_targets)) < 0.2).astype(float)
        Y[0] = 1.0
    else:
        wild = random.random(n_samples) < 0.2
        Y[wild] += 20.0 * random.standard_cauchy((np.count_nonzero(wild), n_targets))
    if kind == "repeated":
        drawn = random.integers(0, n_samples // 2, n_samples)
        X, Y = X[drawn], Y[drawn]
    return X, Y, random.choice([0.01, 0.5, 1.0, 3.0], n_samples)


def minimise(X, Y, mu, sample_weight, delta=DELTA):
    """Return the fit, and the loss of its weights by the formula."""
    root, unit = np.sqrt(sample_weight), robust_unit(Y, sample_weight)
    regression = RobustRegression(root[:, None] * Y, root, unit, delta * unit)
    span = Span.free(root[:, None] / np.linalg.norm(root)).extended(np.arange(X.shape[1]), root[:, None] * X, mu)
    fit = regression.minimise(span)
    W = fit.span.weights(fit.coordinates)
    columns = X[:, fit.span.rows]
    b = ((root[:, None] * (span.upper @ fit.coordinates)).sum(axis=0) - sample_weight @ columns @ W) / sample_weight.sum()
    return fit, robust_loss(columns, Y, W, b, mu, sample_weight), rounding(Y, sample_weight, delta)


def rounding(Y, sample_weight, delta=DELTA):
    """How much the loss that is rounded off near zero may be above the sum of lengths."""
    return 0.5 * delta * robust_unit(Y, sample_weight) ** 2 * sample_weight.sum()


@given(seed=SEEDS, kind=st.sampled_from(["wild", "labels", "repeated"]))
def test_without_columns_one_target_has_its_weighted_median(seed, kind):
    X, Y, sample_weight = draw(seed, kind, 1)
    fit, loss, slack = minimise(X[:, :0], Y, 0.0, sample_weight)
    order = np.argsort(Y[:, 0])
    median = Y[order[np.searchsorted(np.cumsum(sample_weight[order]), 0.5 * sample_weight.sum())]]
    best = robust_loss(X[:, :0], Y, np.zeros((0, 1)), median, 0.0, sample_weight)
    assert fit.converged
    assert best * (1 - 1e-12) <= loss <= best * (1 + TOLERANCE) + slack


@given(seed=SEEDS, kind=st.sampled_from(["wild", "exact", "labels", "repeated"]))
@settings(max_examples=50)
def test_one_target_without_ridge_is_a_linear_program(seed, kind):
    X, Y, sample_weight = draw(seed, kind, 1)
    fit, loss, slack = minimise(X, Y, 0.0, sample_weight)
    n, d = X.shape
    costs = robust_unit(Y, sample_weight) * np.concatenate([np.zeros(d + 1), sample_weight, sample_weight])
    signed = np.hstack([np.ones((n, 1)), X, np.eye(n), -np.eye(n)])
    best = linprog(costs, A_eq=signed, b_eq=Y[:, 0], bounds=[(None, None)] * (d + 1) + [(0, None)] * (2 * n)).fun
    assert fit.converged
    assert best - 1e-6 * slack / DELTA <= loss <= best * (1 + 1e-6) + slack  # the program ends at a tolerance of its own


@pytest.mark.parametrize("mu", [0.0, 0.5, 50.0])
@given(seed=SEEDS, kind=st.sampled_from(["wild", "exact", "labels", "repeated"]), n_targets=st.integers(1, 4))
@settings(max_examples=10)
def test_nothing_is_lower_and_the_gap_holds(mu, seed, kind, n_targets):
    X, Y, sample_weight = draw(seed, kind, n_targets)
    fit, loss, slack = minimise(X, Y, mu, sample_weight)
    slow = robust_minimum(X, Y, range(X.shape[1]), mu, sample_weight)
    assert fit.converged
    assert loss <= fit.value * (1 + 1e-12)
    assert fit.value <= slow * (1 + TOLERANCE) + slack
    assert fit.bound <= slow + slack


@pytest.mark.parametrize("mu", [0.0, 0.5, 50.0])
@given(seed=SEEDS, kind=st.sampled_from(["wild", "exact", "labels", "repeated"]), n_targets=st.integers(1, 4))
@settings(max_examples=10)
def test_bounds_of_many_spans_hold(mu, seed, kind, n_targets):
    """For spans of several sizes; all that are not of exact targets are close after a few steps."""
    X, Y, sample_weight = draw(seed, kind, n_targets)
    root, unit = np.sqrt(sample_weight), robust_unit(Y, sample_weight)
    regression = RobustRegression(root[:, None] * Y, root, unit, DELTA * unit)
    free, columns = Span.free(root[:, None] / np.linalg.norm(root)), root[:, None] * X
    spans = [free, *(free.extended(np.arange(size), columns[:, :size], mu) for size in (1, 3))]
    values = np.array([regression.minimise(span).value for span in spans])
    lengths = np.tile(regression.lengths(regression.targets), (3, 1))
    bounds = regression.bounds(spans, lengths, cutoffs=np.full(3, np.inf))
    assert (bounds <= values * (1 + 1e-9)).all()
    assert kind == "exact" or (bounds >= 0.5 * values).all()
    early = regression.bounds(spans, lengths, cutoffs=np.zeros(3))
    assert (early <= bounds).all()
