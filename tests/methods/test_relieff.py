"""ReliefF, RReliefF and Relief against hand-made sums, slow twins, MATLAB's numbers for iris and another package."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from l20fs.methods.relieff import ReliefF

GOLDEN = json.loads((Path(__file__).parent / "golden" / "relieff.json").read_text())
VARIANTS = ("relieff", "nearest", "feast")
by_variant = pytest.mark.parametrize("variant", VARIANTS)

# MATLAB's relieff(meas, species, 10), in the four digits it prints. Which of two equally near samples it takes is not said.
IRIS_MATLAB = [0.1399, 0.1226, 0.3590, 0.3754]
TIES = 3e-4
# Sums of a few hundred differences of numbers up to 1, in another order.
ROUNDING = 1e-12


def scores(X, y, variant="relieff", n_neighbors=10):
    return ReliefF(1, variant=variant, n_neighbors=n_neighbors, task="classification").fit(X, y).scores_


def scores_of_numbers(X, y, n_neighbors=10):
    return ReliefF(1, n_neighbors=n_neighbors, task="regression").fit(X, y).scores_


# Slow twins -----------------------------------------------------------------------------------------------------------


def slow_relief(X, y, variant):
    """Relief by its text: the nearest hit and miss, or the last ones of a walk that ends when both have been met."""
    n_samples, n_features = X.shape
    span = X.max(axis=0) - X.min(axis=0)
    total = np.zeros(n_features)
    for i in range(n_samples):
        others = sorted((m for m in range(n_samples) if m != i), key=lambda m: (round(((X[i] - X[m]) ** 2).sum(), 9), m))
        hit = miss = None
        for m in others:
            if y[m] == y[i] and (variant == "feast" or hit is None):
                hit = m
            elif y[m] != y[i] and (variant == "feast" or miss is None):
                miss = m
            if hit is not None and miss is not None:
                break
        if hit is None:  # a walk without an end: the nearest of all others, which are misses
            miss = others[0]
        else:
            total -= ((X[i] - X[hit]) / span) ** 2
        total += ((X[i] - X[miss]) / span) ** 2
    return total / n_samples


def slow(X, y, variant, k):
    return reference.relieff(X, y, k) if variant == "relieff" else slow_relief(X, y, variant)


@st.composite
def small_data(draw):
    """Small whole numbers, so that equal distances and equal samples abound; 2 to 4 classes of any size from 1."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_samples, n_features = draw(st.integers(4, 16)), draw(st.integers(1, 5))
    X = random.integers(0, draw(st.integers(2, 9)), (n_samples, n_features)).astype(float)
    X[0], X[1] = 0.0, 8.0  # no feature is constant, and scaling to the unit range is exact
    n_classes = draw(st.integers(2, 4))
    y = random.permutation(np.concatenate([np.arange(n_classes), random.integers(0, n_classes, n_samples - n_classes)]))
    return X, y


@by_variant
@given(data=small_data(), k=st.integers(1, 12))
def test_equals_the_slow_twin(variant, data, k):
    X, y = data
    np.testing.assert_allclose(scores(X, y, variant, k), slow(X, y, variant, k), rtol=0, atol=ROUNDING)


@by_variant
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_equals_the_slow_twin_on_continuous_data(variant, seed):
    random = np.random.default_rng(seed)
    X, y = random.standard_normal((20, 6)) * [1, 1, 1, 10, 0.1, 1], np.arange(20) % 3
    np.testing.assert_allclose(scores(X, y, variant, 3), slow(X, y, variant, 3), rtol=0, atol=ROUNDING)


@given(data=small_data(), k=st.integers(1, 12), seed=st.integers(0, 2**32))
def test_numbers_equal_the_slow_twin(data, k, seed):
    X, _ = data
    y = np.random.default_rng(seed).integers(0, 5, len(X)).astype(float)
    y[:2] = [0.0, 4.0]
    np.testing.assert_allclose(scores_of_numbers(X, y, k), reference.rrelieff(X, y, k), rtol=0, atol=ROUNDING)


@st.composite
def incomplete_data(draw):
    """Multiples of 1/8, with which distances are exact, some of them missing; every feature has its two extremes."""
    X, y = draw(small_data())
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = X / 8.0
    X[2:][random.random(X[2:].shape) < draw(st.sampled_from([0.1, 0.5, 0.9]))] = np.nan
    return X, y


@given(data=incomplete_data(), k=st.integers(1, 12))
def test_missing_values_equal_the_slow_twin(data, k):
    X, y = data
    np.testing.assert_allclose(scores(X, y, n_neighbors=k), reference.relieff(X, y, k), rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(scores_of_numbers(X, y, k), reference.rrelieff(X, y, k), rtol=0, atol=ROUNDING)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_numbers_and_missing_values_of_continuous_data_equal_the_slow_twins(seed):
    random = np.random.default_rng(seed)
    X, labels, y = random.standard_normal((20, 6)) * [1, 1, 1, 10, 0.1, 1], np.arange(20) % 3, random.standard_normal(20)
    np.testing.assert_allclose(scores_of_numbers(X, y, 3), reference.rrelieff(X, y, 3), rtol=0, atol=ROUNDING)
    X[random.random(X.shape) < 0.2] = np.nan
    np.testing.assert_allclose(scores(X, labels, n_neighbors=3), reference.relieff(X, labels, 3), rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(scores_of_numbers(X, y, 3), reference.rrelieff(X, y, 3), rtol=0, atol=ROUNDING)


# Sums by hand ---------------------------------------------------------------------------------------------------------


def test_relieff_by_hand_with_a_class_of_one_sample():
    X, y = np.array([[0.0], [1.0], [4.0]]), ["a", "a", "b"]
    # Scaled 0, 1/4, 1. First: 1 - 1/4. Second: 3/4 - 1/4. Third has no hit: 3/4, or with both misses the mean of 1 and 3/4.
    assert scores(X, y, n_neighbors=1) == pytest.approx([(0.75 + 0.5 + 0.75) / 3])
    assert scores(X, y, n_neighbors=10) == pytest.approx([(0.75 + 0.5 + 0.875) / 3])


def test_relieff_weighs_other_classes_by_their_shares():
    X, y = np.array([[0.0], [0.0], [0.0], [1.0], [10.0]]), [0, 0, 0, 1, 2]
    # Shares 3/5, 1/5, 1/5. Class 0 sees both others with 1/2; class 1 and 2 see class 0 with 3/4, each other with 1/4.
    expected = (3 * (0.1 / 2 + 1.0 / 2) + (0.1 * 3 / 4 + 0.9 / 4) + (1.0 * 3 / 4 + 0.9 / 4)) / 5
    assert scores(X, y) == pytest.approx([expected])


def test_nearest_and_feast_by_hand():
    X, y = np.array([[0.0], [1.0], [3.0], [7.0], [8.0]]), [0, 0, 0, 1, 1]
    # Hits of the five samples, then misses; FEAST goes on to the last hit before the first miss.
    hits = {"nearest": [1, 1, 2, 1, 1], "feast": [3, 2, 3, 1, 1]}
    misses = [7, 6, 4, 4, 5]
    for variant, steps in hits.items():
        expected = sum((miss / 8) ** 2 - (hit / 8) ** 2 for hit, miss in zip(steps, misses, strict=True)) / 5
        assert scores(X, y, variant) == pytest.approx([expected])


def test_feast_takes_the_last_of_several_misses_too():
    X, y = np.array([[0.0], [1.0], [3.0], [7.0], [8.0]]), [0, 1, 1, 0, 1]
    # The first sample meets misses at 1 and 3 before its hit at 7, the fourth misses at 1, 4 and 6 before its hit at 7.
    hits, misses = [7, 2, 2, 7, 5], [3, 1, 3, 6, 1]
    expected = sum((miss / 8) ** 2 - (hit / 8) ** 2 for hit, miss in zip(hits, misses, strict=True)) / 5
    assert scores(X, y, "feast") == pytest.approx([expected])


# MATLAB and another package -------------------------------------------------------------------------------------------


def peer_data(name):
    """Data sets on which skrebate means the same as we do: more than 10 values per feature, 10 or more samples per class."""
    if name == "iris":
        return load_iris(return_X_y=True)
    n_samples, n_features, shares, seed = {
        "two classes": (50, 12, [0.4, 0.6], 1),
        "five balanced classes": (100, 15, [0.2] * 5, 2),
        "three unbalanced classes": (80, 10, [0.5, 0.3, 0.2], 3),
    }[name]
    random = np.random.default_rng(seed)
    y = random.permutation(np.repeat(np.arange(len(shares)), np.rint(np.multiply(shares, n_samples)).astype(int)))
    X = random.standard_normal((n_samples, n_features)) * np.logspace(-2, 2, n_features)
    X[:, 0] += 0.02 * y
    X[:, 3] *= 1 + y
    return X, y


EXACT = ("two classes", "five balanced classes")


def test_iris_gives_the_numbers_of_matlab():
    X, y = load_iris(return_X_y=True)
    found = scores(X, y)
    np.testing.assert_allclose(found, IRIS_MATLAB, rtol=0, atol=TIES)
    assert found.round(4).tolist() == IRIS_MATLAB, "of equally near samples the later one, as MATLAB's digits suggest"


def test_iris_against_stored_scores_of_skrebate():
    np.testing.assert_allclose(scores(*peer_data("iris")), GOLDEN["scores"]["iris"], rtol=0, atol=TIES)


@pytest.mark.parametrize("name", EXACT)
def test_equals_stored_scores_of_skrebate(name):
    np.testing.assert_allclose(scores(*peer_data(name)), GOLDEN["scores"][name], rtol=0, atol=ROUNDING)


# Invariants -----------------------------------------------------------------------------------------------------------


# What it is for -------------------------------------------------------------------------------------------------------


# Traps ----------------------------------------------------------------------------------------------------------------


# Numbers as targets ---------------------------------------------------------------------------------------------------


def test_numbers_by_hand():
    X, y = np.array([[0.0, 1.0], [0.5, 0.0], [1.0, 0.0]]), np.array([10.0, 20.0, 30.0])
    # All are neighbours. Targets are 1/2, 1 and 1/2 apart, feature 0 as well, feature 1 by 1, 1 and 0; each pair twice.
    assert scores_of_numbers(X, y) == pytest.approx([1.5 / 2 - 0.5 / 1, 1.5 / 2 - 0.5 / 1])
    X[:, 1] = [0.0, 1.0, 0.0]  # apart by 1, 0 and 1: 1/2 * 1 + 1 * 0 + 1/2 * 1
    assert scores_of_numbers(X, y) == pytest.approx([0.25, 1.0 / 2 - 1.0 / 1])


def test_what_y_holds_is_said_or_seen():
    X, y = np.random.default_rng(0).standard_normal((20, 3)), np.arange(20)
    assert not hasattr(ReliefF(1).fit(X, y / 3.0), "classes_")
    assert not hasattr(ReliefF(1, task="regression").fit(X, y), "classes_")
    assert len(ReliefF(1, task="classification").fit(X, y / 3.0).classes_) == 20
    with pytest.warns(UserWarning, match="taken for 20 class labels"):
        ReliefF(1).fit(X, y)
    with pytest.raises(ValueError, match="needs one class label or number per sample; y has several columns"):
        ReliefF(1).fit(X, np.column_stack([y, y]) / 3.0)
    with pytest.raises(ValueError, match="Unknown label type"):
        ReliefF(1, variant="nearest").fit(X, y / 3.0)
    with pytest.raises(ValueError, match="task='numbers' is unknown"):
        ReliefF(1, task="numbers").fit(X, y)


# Missing values -------------------------------------------------------------------------------------------------------


def test_missing_values_by_hand():
    X, y = np.array([[0.0, 0.0], [1.0, np.nan], [np.nan, 1.0], [1.0, 0.5]]), ["a", "a", "b", "b"]
    # Feature 0: (1 - 1) for the first, whose miss with a value is the last; (0 - 1) for the second; nothing for the third,
    # which has no value; for the last the mean of its misses, of 1 and 0, and no hit. Feature 1 likewise.
    expected = [((1 - 1) + (0 - 1) + 0 + 0.5) / 4, ((1 + 0.5) / 2 + 0 + (1 - 0.5) + (0.5 - 0.5)) / 4]
    assert scores(X, y) == pytest.approx(expected)


def test_missing_values_are_refused_where_they_mean_nothing():
    X, y = np.array([[0.0, 1.0], [np.nan, 0.0], [1.0, 0.5]]), [0, 1, 0]
    with pytest.raises(ValueError, match="1 missing values"):
        ReliefF(1, variant="nearest").fit(X, y)
    X[1, 0] = np.inf
    with pytest.raises(ValueError, match=r"1 infinite values \(inf\), first in 'column 0'"):
        ReliefF(1).fit(X, y)
