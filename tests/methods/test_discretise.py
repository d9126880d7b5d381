"""States against scikit-learn and a slow twin; entropies and information against closed forms and scikit-learn."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.preprocessing import KBinsDiscretizer

from l20fs.methods._discretise import (
    bin_codes,
    contingency_tables,
    discretise,
    mutual_information,
    symmetrical_uncertainty,
)

seeds = st.integers(0, 2**32 - 1)


def random_codes(seed, n_samples=50, n_features=7, n_states=5):
    return np.random.default_rng(seed).integers(0, n_states, (n_samples, n_features))


def entropy(values):
    return -sum(n / len(values) * math.log2(n / len(values)) for n in Counter(values).values())


def mdlp_cuts(values, labels):
    """The recursion as Fayyad and Irani write it: sets in, the smallest value after each cut out."""
    pairs = sorted(zip(values, labels, strict=True))
    n = len(pairs)
    best = None
    for i in range(1, n):
        if pairs[i][0] > pairs[i - 1][0]:
            left, right = [c for _, c in pairs[:i]], [c for _, c in pairs[i:]]
            after = (len(left) * entropy(left) + len(right) * entropy(right)) / n
            if best is None or after < best[0] - 1e-12:
                best = after, left, right, pairs[i][0]
    if best is None:
        return []
    after, left, right, cut = best
    before = [c for _, c in pairs]
    m, m1, m2 = len(set(before)), len(set(left)), len(set(right))
    delta = math.log2(3**m - 2) - (m * entropy(before) - m1 * entropy(left) - m2 * entropy(right))
    if entropy(before) - after <= (math.log2(n - 1) + delta) / n:
        return []
    low, high = [p for p in pairs if p[0] < cut], [p for p in pairs if p[0] >= cut]
    return sorted([cut, *mdlp_cuts(*zip(*low, strict=True)), *mdlp_cuts(*zip(*high, strict=True))])


# States


@given(seed=seeds, n_bins=st.integers(2, 12))
def test_equal_width_is_that_of_scikit_learn(seed, n_bins):
    X = np.random.default_rng(seed).standard_normal((40, 5))
    expected = KBinsDiscretizer(n_bins, encode="ordinal", strategy="uniform", subsample=None).fit_transform(X)
    assert np.array_equal(discretise(X, "width", n_bins=n_bins).codes, expected)


@given(seed=seeds, n_bins=st.integers(2, 8), n_values=st.sampled_from([2, 5, 1000]))
def test_equal_frequency_counts_what_lies_below(seed, n_bins, n_values):
    X = np.random.default_rng(seed).integers(0, n_values, (40, 3)).astype(float)
    expected = [[sum(X[:, j] < value) * n_bins // 40 for j, value in enumerate(row)] for row in X]
    assert np.array_equal(discretise(X, "quantile", n_bins=n_bins).codes, expected)


def test_equal_frequency_fills_the_states_equally():
    X = np.random.default_rng(0).lognormal(size=(60, 4))
    for codes in discretise(X, "quantile", n_bins=6).codes.T:
        assert np.bincount(codes).tolist() == [10] * 6


@given(seed=seeds, tau=st.sampled_from([0.0, 0.5, 1.0, 2.0]))
def test_three_states_by_their_definition(seed, tau):
    X = np.random.default_rng(seed).standard_normal((30, 4))
    for x, codes in zip(X.T, discretise(X, "sigma3", tau=tau).codes.T, strict=True):
        margin = tau * np.std(x, ddof=1)
        assert codes.tolist() == [0 if v < x.mean() - margin else 2 if v > x.mean() + margin else 1 for v in x]


@given(seed=seeds, n_classes=st.integers(2, 4), n_values=st.sampled_from([4, 10, 10**6]), shift=st.floats(0.0, 3.0))
def test_mdlp_equals_the_readable_twin(seed, n_classes, n_values, shift):
    random = np.random.default_rng(seed)
    labels = random.integers(0, n_classes, 60)
    X = np.round(random.standard_normal((60, 4)) * n_values / 4) + shift * n_values / 4 * np.outer(labels % 3, [1, 0, 2, 0])
    for x, codes in zip(X.T, discretise(X, "mdlp", labels=labels).codes.T, strict=True):
        assert codes.tolist() == np.searchsorted(mdlp_cuts(x, labels), x, side="right").tolist()


@pytest.mark.parametrize(("n_classes", "n_samples"), [(2, 4), (2, 8), (2, 10), (3, 6)])
def test_mdlp_equals_the_readable_twin_for_every_order_of_labels(n_classes, n_samples):
    """Among all orders are those whose gain is close to what a cut costs."""
    n_cut = 0
    for labels in itertools.product(range(n_classes), repeat=n_samples):
        values = np.arange(float(n_samples))
        codes = discretise(values[:, None], "mdlp", labels=np.array(labels)).codes[:, 0]
        assert codes.tolist() == np.searchsorted(mdlp_cuts(values, labels), values, side="right").tolist()
        n_cut += codes.any()
    assert n_samples < 6 or n_cut


def test_mdlp_stands_more_classes_than_a_float_can_raise_three_to():
    labels = np.arange(1400) // 2
    binned = discretise(np.arange(1400.0)[:, None], "mdlp", labels=labels)
    assert binned.n_states[0] >= 1


# Counts and information


@given(seed=seeds)
def test_tables_equal_those_of_scikit_learn(seed):
    codes, other = random_codes(seed), random_codes(seed + 1)[:, 0]
    codes[:5], other[:3] = np.arange(5)[:, None], np.arange(2, 5)
    for table, x in zip(contingency_tables(bin_codes(codes), other), codes.T, strict=True):
        full = np.zeros((5, 5), dtype=int)
        full[np.ix_(np.unique(x), np.unique(other))] = contingency_matrix(x, other)
        assert np.array_equal(table, full[:, : table.shape[1]])


def test_hand_computed_information_of_a_two_by_two_table():
    # Counts 3, 1 / 1, 3: H = 1 bit each, and the joint entropy is that of (3, 1, 1, 3) / 8.
    x, y = np.array([0, 0, 0, 0, 1, 1, 1, 1]), np.array([0, 0, 0, 1, 0, 1, 1, 1])
    joint = 2 * (3 / 8 * math.log2(8 / 3) + 1 / 8 * 3)
    assert mutual_information(bin_codes(x[:, None]), y)[0] == pytest.approx(2 - joint, rel=1e-14)
    assert symmetrical_uncertainty(bin_codes(x[:, None]), y)[0] == pytest.approx(2 - joint, rel=1e-14)


@pytest.mark.filterwarnings("ignore:The number of unique classes is greater than 50%")  # scikit-learn before 1.8
@given(seed=seeds, n_states=st.sampled_from([2, 5, 40]))
def test_information_equals_that_of_scikit_learn(seed, n_states):
    """With 40 states the tables are so empty that the joint states are sorted rather than counted."""
    codes, other = random_codes(seed, n_states=n_states), random_codes(seed + 1, n_states=n_states)[:, 0]
    expected = [mutual_info_score(x, other) / math.log(2) for x in codes.T]
    assert np.allclose(mutual_information(bin_codes(codes), other), expected, rtol=1e-10, atol=1e-13)
