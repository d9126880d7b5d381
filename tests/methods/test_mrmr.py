"""MRMR against a slow twin, hand-made cases and the orders of two other packages."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.feature_selection import f_classif
from sklearn.metrics import mutual_info_score

from l20fs.data import load_srbct, make_planted
from l20fs.inputs.targets import encode_targets
from l20fs.methods.mrmr import MRMR, VARIANTS, f_statistic

GOLDEN = json.loads((Path(__file__).parent / "golden" / "mrmr.json").read_text())
seeds = st.integers(0, 2**32 - 1)


def order_of(selector):
    return np.argsort(selector.ranking_).tolist()


def bits(x, z):
    return mutual_info_score(x, z) / np.log(2.0)


def slow_mrmr(X, y, k, variant):
    """Every relevance and every redundancy anew in each step; X holds states for mid and miq."""
    d = X.shape[1]
    if variant in ("mid", "miq"):
        relevance = [bits(X[:, j], y) for j in range(d)]
        redundancy = [[bits(X[:, i], X[:, j]) for i in range(d)] for j in range(d)]
    else:
        relevance = f_classif(X, y)[0]
        redundancy = np.maximum(np.abs(np.corrcoef(X.T)), 0.001)
    chosen, values = [], []
    for _ in range(k):
        best, best_value = None, -np.inf
        for j in range(d):
            if j in chosen:
                continue
            mean = sum(redundancy[j][s] for s in chosen) / max(len(chosen), 1)
            if not chosen:
                value = relevance[j]
            elif variant in ("mid", "fcd"):
                value = relevance[j] - mean
            elif variant == "miq":
                value = relevance[j] / (mean + 1e-12)
            else:
                value = relevance[j] / mean
            if value > best_value + 1e-10 * max(1.0, abs(value)):
                best, best_value = j, value
        chosen.append(best)
        values.append(best_value)
    return chosen, values


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=12)
@given(seed=seeds)
def test_order_and_step_scores_equal_the_slow_twin(variant, seed):
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(90) % 3)
    X = random.standard_normal((90, 8)) + np.outer(y == 1, random.uniform(0, 2, 8))
    X[:, 5] += X[:, 2]
    if variant in ("mid", "miq"):
        X = np.floor(X)
    selector = MRMR(4, variant=variant, binning="floor", max_features=6).fit(X, y)
    chosen, values = slow_mrmr(X, y, 6, variant)
    assert order_of(selector)[:6] == chosen
    assert np.allclose(selector.step_scores_, values, rtol=1e-7, atol=1e-12)


def golden_data(name):
    if name == "srbct":
        bunch = load_srbct()
        return bunch.data, bunch.target
    if name == "digits":
        digits = load_digits()
        X = digits.data[:400]
        return X[:, np.ptp(X, axis=0) > 0], digits.target[:400]
    X, y, _ = make_planted(63, 300, 10, 4)
    return X, y


@pytest.mark.parametrize("name", ["srbct", "planted"])
def test_quotient_of_correlations_orders_like_mrmr_selection(name):
    expected = GOLDEN["fcq"][name]
    X, y = golden_data(name)
    selector = MRMR(len(expected), variant="fcq").fit(X, y)
    assert order_of(selector)[: len(expected)] == expected


@pytest.mark.parametrize("name", ["digits", "planted"])
def test_difference_of_information_orders_like_scikit_feature(name):
    expected = GOLDEN["mid"][name]
    X, y = golden_data(name)
    selector = MRMR(len(expected), variant="mid", binning="floor").fit(X if name == "digits" else 2 * X, y)
    assert order_of(selector)[: len(expected)] == expected


# What the criterion is for


def test_difference_of_correlations_by_hand():
    y = np.array([0, 0, 1, 1])
    X = np.array([[0.0, 0.0], [2.0, 1.0], [10.0, 1.0], [12.0, 2.0]])
    selector = MRMR(2, variant="fcd").fit(X, y)
    # F = 100 / 2 and 1 / 0.5; the correlation is 12 / sqrt(104 * 2).
    assert order_of(selector) == [0, 1]
    assert np.allclose(selector.step_scores_, [50.0, 2.0 - 12.0 / np.sqrt(208.0)])


# Numbers of steps


# Numerical traps


@given(seed=seeds, offset=st.sampled_from([0.0, 1e6]))
def test_f_statistic_equals_that_of_scikit_learn(seed, offset):
    X, y, _ = make_planted(40, 6, 3, 3, random_state=seed)
    assert np.allclose(f_statistic(X + offset, encode_targets(y)), f_classif(X, y)[0], rtol=1e-7)
