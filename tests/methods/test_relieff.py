"""ReliefF, RReliefF and Relief against hand-made sums, slow twins, MATLAB's numbers for iris and another package."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from l20fs.data import load_srbct
from l20fs.methods import _neighbours
from l20fs.methods._columns import Columns
from l20fs.methods._neighbours import ObservedDistances, distances_by_row, nearest, weighted_differences
from l20fs.methods.fisher import FisherScore
from l20fs.methods.relieff import ReliefF, relieff_scores

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


@pytest.mark.parametrize("variant", ["nearest", "feast"])
def test_the_only_sample_of_a_class_counts_its_nearest_miss(variant):
    X, y = np.array([[0.0], [1.0], [4.0]]), ["a", "a", "b"]
    assert scores(X, y, variant) == pytest.approx([((1 - 1 / 16) + (9 - 1) / 16 + 9 / 16) / 3])


def test_every_class_has_one_sample():
    X = np.array([[0.0, 3.0], [1.0, 0.0], [4.0, 1.0]])
    for variant in VARIANTS:
        found = scores(X, [0, 1, 2], variant)
        np.testing.assert_allclose(found, slow(X, np.arange(3), variant, 10), rtol=0, atol=ROUNDING)
        assert (found > 0).all()


@pytest.mark.parametrize("variant", ["relieff", "nearest"])
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_a_duplicate_is_a_hit_at_no_distance(variant, seed):
    """Each sample twice: the hit term is zero, and what remains is the mean difference to the nearest miss."""
    random = np.random.default_rng(seed)
    half, half_y = random.standard_normal((8, 3)), np.arange(8) % 2
    order = random.permutation(16)
    X, y = np.tile(half, (2, 1))[order], np.tile(half_y, 2)[order]
    span = np.ptp(half, axis=0)
    expected = np.zeros(3)
    for i in range(8):
        steps = np.abs(half[half_y != half_y[i]] - half[i])
        if variant == "relieff":
            expected += steps[(steps / span).sum(axis=1).argmin()] / span / 8
        else:
            expected += (steps[(steps**2).sum(axis=1).argmin()] / span) ** 2 / 8
    np.testing.assert_allclose(scores(X, y, variant, 1), expected, rtol=0, atol=ROUNDING)


def test_equal_samples_of_different_classes():
    X, y = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]), [0, 1, 0, 1]
    for variant in ("relieff", "nearest"):  # the miss is at no distance, the hit at the far end
        assert scores(X, y, variant, 1).tolist() == [-1.0, -1.0]
    # For the second and the fourth sample FEAST meets another miss at the far end, as far as the hit but earlier in X.
    assert scores(X, y, "feast").tolist() == [-0.5, -0.5]


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


def peer_scores(X, y):
    skrebate = pytest.importorskip("skrebate", reason="skrebate is not installed")
    return skrebate.ReliefF(n_neighbors=10).fit(X, y).feature_importances_


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


def test_differs_from_skrebate_by_the_weight_of_classes_only():
    X, y = peer_data("three unbalanced classes")
    stored = GOLDEN["scores"]["three unbalanced classes"]
    equal = relieff_scores(X, y, np.full(3, 1 / 3), 10)
    np.testing.assert_allclose(equal, stored, rtol=0, atol=ROUNDING)
    by_share = scores(X, y)
    np.testing.assert_allclose(by_share, reference.relieff(X, y, 10), rtol=0, atol=ROUNDING)
    assert np.abs(by_share - stored).max() > 1e-3


@pytest.mark.parametrize("name", ["iris", *EXACT])
def test_equals_skrebate_live(name):
    X, y = peer_data(name)
    np.testing.assert_allclose(scores(X, y), peer_scores(X, y), rtol=0, atol=TIES if name == "iris" else ROUNDING)


# Invariants -----------------------------------------------------------------------------------------------------------


@given(data=small_data(), seed=st.integers(0, 2**32))
def test_relieff_ignores_the_unit_and_the_zero_of_a_feature(data, seed):
    X, y = data
    random = np.random.default_rng(seed)
    # Powers of two and whole numbers keep ties exact.
    unit = np.ldexp(random.choice([-1.0, 1.0], X.shape[1]), random.integers(-6, 7, X.shape[1]))
    moved = X * unit + random.integers(-50, 50, X.shape[1])
    np.testing.assert_allclose(scores(moved, y), scores(X, y), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("variant", ["nearest", "feast"])
def test_relief_ignores_one_unit_for_all_but_not_one_for_each(variant):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((40, 5)), np.arange(40) % 2
    np.testing.assert_allclose(scores(X * 8.0 - 3.0, y, variant), scores(X, y, variant), rtol=0, atol=1e-9)
    assert not np.allclose(scores(X * [1, 1, 1, 1, 100], y, variant), scores(X, y, variant), atol=1e-3)


@by_variant
@settings(max_examples=40)
@given(data=small_data(), seed=st.integers(0, 2**32))
def test_names_of_classes_and_order_of_features_do_not_matter(variant, data, seed):
    X, y = data
    random = np.random.default_rng(seed)
    expected = scores(X, y, variant, 3)
    np.testing.assert_allclose(scores(X, random.permutation(4)[y], variant, 3), expected, rtol=0, atol=ROUNDING)
    order = random.permutation(X.shape[1])
    np.testing.assert_allclose(scores(X[:, order], y, variant, 3), expected[order], rtol=0, atol=ROUNDING)


@by_variant
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_order_of_samples_does_not_matter_without_ties(variant, seed):
    random = np.random.default_rng(seed)
    X, y = random.standard_normal((18, 4)), np.arange(18) % 3
    order = random.permutation(18)
    np.testing.assert_allclose(scores(X[order], y[order], variant, 3), scores(X, y, variant, 3), rtol=0, atol=ROUNDING)


@by_variant
def test_scores_lie_between_minus_one_and_one(variant):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((30, 40)), np.arange(30) % 3
    X[:, 0] = y == 0
    found = scores(X, y, variant)
    assert (np.abs(found) <= 1.0).all()


@by_variant
def test_more_neighbours_than_samples_means_all(variant):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((20, 4)), np.arange(20) % 2
    assert np.array_equal(scores(X, y, variant, 20), scores(X, y, variant, 10**6))


# What it is for -------------------------------------------------------------------------------------------------------


@by_variant
def test_informative_features_come_before_noise(variant):
    random = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = random.standard_normal((90, 30))
    X[:, 4] += 3.0 * (y == 0)
    X[:, 20] -= 3.0 * (y == 2)
    assert set(ReliefF(2, variant=variant).fit(X, y).get_support(indices=True)) == {4, 20}


@by_variant
def test_sees_features_that_matter_only_together(variant):
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, (300, 6))
    y = X[:, 1] * X[:, 4] > 0
    assert set(ReliefF(2, variant=variant).fit(X, y).get_support(indices=True)) == {1, 4}
    # A score of single features cannot: both means are zero in both classes.
    assert FisherScore(1).fit(X, y).scores_[[1, 4]].max() < 0.05


def test_real_data_with_a_class_smaller_than_k():
    tumours = load_srbct()
    X, y = tumours.data, tumours.target
    selector = ReliefF(10).fit(X, y)
    few = selector.get_support(indices=True)
    np.testing.assert_allclose(selector.scores_[few], slow_on_all(X, y, few, 10), rtol=0, atol=ROUNDING)


def slow_on_all(X, y, columns, k):
    """The scores of a few columns, with neighbours by all columns."""
    scaled = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    total = np.zeros(len(columns))
    for i in range(len(X)):
        distances = np.abs(scaled - scaled[i]).sum(axis=1)
        for label in np.unique(y):
            members = np.flatnonzero((y == label) & (np.arange(len(X)) != i))
            near = members[np.argsort(distances[members])[:k]]
            weight = -1.0 if label == y[i] else np.mean(y == label) / np.mean(y != y[i])
            total += weight * np.abs(scaled[np.ix_(near, columns)] - scaled[i, columns]).mean(axis=0)
    return total / len(X)


# Traps ----------------------------------------------------------------------------------------------------------------


@by_variant
def test_constant_features_change_nothing(variant):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((30, 4)), np.arange(30) % 3
    wider = np.insert(X, 2, 7.0, axis=1)
    found = scores(wider, y, variant)
    assert found[2] == -np.inf
    np.testing.assert_allclose(np.delete(found, 2), scores(X, y, variant), rtol=0, atol=ROUNDING)


@by_variant
@pytest.mark.parametrize("unit", [1e-200, 1e200, 1e308])
def test_numbers_near_the_limits_of_float64(variant, unit):
    random = np.random.default_rng(0)
    X, y = random.uniform(-1, 1, (30, 4)), np.arange(30) % 3
    np.testing.assert_allclose(scores(X * unit, y, variant), scores(X, y, variant), rtol=0, atol=1e-9)


def test_equal_distances_survive_the_rounding_of_a_sum():
    # 0.1 + 0.2 is not 0.3 in float64; the first sample is as far from the second as from the third.
    distances = next(distances_by_row(np.array([[0.0, 0.0], [0.1, 0.2], [0.0, 0.3]]), "cityblock"))[1]
    assert distances[0, 1] == distances[0, 2] == pytest.approx(0.3)
    assert np.isinf(np.diag(distances)).all()


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.data())
def test_nearest_takes_the_later_of_equal_distances(values, data):
    k = data.draw(st.integers(1, len(values)))
    expected = sorted(range(len(values)), key=lambda j: (values[j], -j))[:k]
    found = nearest(np.array([values], dtype=float), k)[0]
    assert np.flatnonzero(found).tolist() == sorted(expected)


@by_variant
def test_blocks_do_not_show(variant, monkeypatch):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((37, 150)), np.arange(37) % 3
    expected = scores(X, y, variant)
    monkeypatch.setattr(_neighbours, "DISTANCES_AT_A_TIME", 37 * 5)
    monkeypatch.setattr(_neighbours, "DIFFERENCES_AT_A_TIME", 1)
    np.testing.assert_allclose(scores(X, y, variant), expected, rtol=0, atol=ROUNDING)


def test_weighted_differences_by_hand():
    random = np.random.default_rng(0)
    X, weights = random.random((9, 4)), random.random((9, 9)) * (random.random((9, 9)) < 0.4)
    expected = sum(weights[i, m] * np.abs(X[i] - X[m]) for i in range(9) for m in range(9))
    np.testing.assert_allclose(weighted_differences(X, sp.csr_array(weights)), expected, rtol=0, atol=ROUNDING)


def test_unit_range_without_overflow():
    scaled = Columns(np.array([[-1.7e308], [0.0], [1.7e308]])).in_unit_range().on_host()
    assert scaled.ravel().tolist() == [0.0, 0.5, 1.0]


@by_variant
def test_memory_grows_with_the_data_not_with_pairs_times_features(variant):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((150, 2000)), np.arange(150) % 3
    tracemalloc.start()
    try:
        scores(X, y, variant)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * X.nbytes  # 150 times X for all pairs at once


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"variant": "relief"}, r"variant='relief' is unknown\. Use 'relieff', 'nearest' or 'feast'"),
        ({"n_neighbors": 0}, r"n_neighbors=0 is not valid\. Use a whole number at least 1"),
        ({"n_neighbors": 2.5}, r"n_neighbors=2\.5 is not valid\. Use a whole number at least 1"),
        ({"n_neighbors": True}, r"n_neighbors=True is not valid"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        ReliefF(**parameters).fit([[0.0], [1.0]], [0, 1])


# Numbers as targets ---------------------------------------------------------------------------------------------------


def test_numbers_by_hand():
    X, y = np.array([[0.0, 1.0], [0.5, 0.0], [1.0, 0.0]]), np.array([10.0, 20.0, 30.0])
    # All are neighbours. Targets are 1/2, 1 and 1/2 apart, feature 0 as well, feature 1 by 1, 1 and 0; each pair twice.
    assert scores_of_numbers(X, y) == pytest.approx([1.5 / 2 - 0.5 / 1, 1.5 / 2 - 0.5 / 1])
    X[:, 1] = [0.0, 1.0, 0.0]  # apart by 1, 0 and 1: 1/2 * 1 + 1 * 0 + 1/2 * 1
    assert scores_of_numbers(X, y) == pytest.approx([0.25, 1.0 / 2 - 1.0 / 1])


def test_two_values_are_two_classes_when_all_are_neighbours():
    """As many of each: the means over misses and over hits, up to the hits, which are one fewer than the misses."""
    random = np.random.default_rng(0)
    X, y = random.standard_normal((12, 5)), np.arange(12) % 2
    np.testing.assert_allclose(scores_of_numbers(X, y, 11), scores(X, y, n_neighbors=11), rtol=0, atol=ROUNDING)


def test_features_that_explain_numbers_jointly_come_before_noise():
    random = np.random.default_rng(0)
    X = random.uniform(-1.0, 1.0, (300, 8))
    y = np.sign(X[:, 1] * X[:, 5]) + 0.1 * random.standard_normal(300)
    assert set(ReliefF(2).fit(X, y).get_support(indices=True)) == {1, 5}


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_the_unit_and_the_zero_of_numbers_do_not_matter(seed):
    random = np.random.default_rng(seed)
    X, y = random.standard_normal((25, 4)), random.standard_normal(25)
    for moved in (-3.0 * y + 7.0, 1e307 * y, 1e-300 * y):
        np.testing.assert_allclose(scores_of_numbers(X, moved), scores_of_numbers(X, y), rtol=0, atol=1e-9)


def test_numbers_whose_neighbours_are_all_equal_have_no_score_of_misses():
    X, y = np.array([[0.0], [0.1], [0.9], [1.0]]), np.array([1.5, 1.5, 2.5, 2.5])
    assert scores_of_numbers(X, y, 1) == pytest.approx([-0.1])


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


def test_missing_values_equal_skrebate_live():
    X, y = peer_data("two classes")
    X[np.random.default_rng(0).random(X.shape) < 0.15] = np.nan
    np.testing.assert_allclose(scores(X, y), peer_scores(X.copy(), y), rtol=0, atol=ROUNDING)


def test_a_feature_that_is_missing_altogether_is_last():
    random = np.random.default_rng(0)
    X, y = random.standard_normal((30, 4)), np.arange(30) % 3
    X[0, 1] = np.nan
    wider = np.insert(X, 2, np.nan, axis=1)
    selector = ReliefF(2).fit(wider, y)
    assert selector.scores_[2] == -np.inf
    np.testing.assert_allclose(np.delete(selector.scores_, 2), scores(X, y), rtol=0, atol=ROUNDING)
    assert selector.transform(wider).shape == (30, 2)


def test_samples_without_a_common_value_are_farthest():
    X = np.array([[0.0, np.nan], [np.nan, 0.0], [1.0, 1.0], [0.5, np.nan]])
    found = ObservedDistances(X, ~np.isnan(X))(slice(0, 4))
    assert found[0].tolist() == [0.0, 4.0, 2.0, 1.0]
    assert np.array_equal(found, found.T)


def test_missing_values_are_refused_where_they_mean_nothing():
    X, y = np.array([[0.0, 1.0], [np.nan, 0.0], [1.0, 0.5]]), [0, 1, 0]
    with pytest.raises(ValueError, match="1 missing values"):
        ReliefF(1, variant="nearest").fit(X, y)
    X[1, 0] = np.inf
    with pytest.raises(ValueError, match=r"1 infinite values \(inf\), first in 'column 0'"):
        ReliefF(1).fit(X, y)
