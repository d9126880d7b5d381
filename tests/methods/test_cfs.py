"""CFS against a slow search, the merit from scratch, and all subsets of a few features."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from l20fs.data import make_planted
from l20fs.methods._discretise import discretise
from l20fs.methods.cfs import CFS, best_first

seeds = st.integers(0, 2**32 - 1)


def entropy(*variables):
    counts = np.unique(np.column_stack(variables), axis=0, return_counts=True)[1]
    return -sum(n / counts.sum() * math.log2(n / counts.sum()) for n in counts)


def su(x, z):
    both = entropy(x) + entropy(z)
    return 2 * (both - entropy(x, z)) / both if both else 0.0


def uncertainties(codes, y):
    d = codes.shape[1]
    relevance = np.array([su(codes[:, j], y) for j in range(d)])
    return relevance, np.array([[su(codes[:, i], codes[:, j]) for i in range(d)] for j in range(d)])


def merit(subset, relevance, redundancy):
    """Hall's formula: k mean(r_cf) / sqrt(k + k (k - 1) mean(r_ff))."""
    if not subset:
        return 0.0
    pairs = [redundancy[i][j] for i, j in itertools.combinations(subset, 2)]
    return sum(relevance[j] for j in subset) / math.sqrt(len(subset) + 2 * sum(pairs))


def slow_best_first(relevance, redundancy, max_stale):
    """All subsets that have been met in one sorted list, each merit from scratch."""
    waiting, met = [()], {frozenset()}
    best, n_stale = (), 0
    while waiting and n_stale < max_stale:
        subset = max(waiting, key=lambda s: merit(s, relevance, redundancy))
        waiting.remove(subset)
        children = [(*subset, j) for j in range(len(relevance)) if j not in subset]
        fresh = [child for child in children if frozenset(child) not in met]
        met |= {frozenset(child) for child in fresh}
        waiting += fresh
        top = max(children, key=lambda s: merit(s, relevance, redundancy), default=subset)
        if merit(top, relevance, redundancy) > merit(best, relevance, redundancy) + 1e-12:
            best, n_stale = top, 0
        else:
            n_stale += 1
    return best


def some_data(seed, n_features=7):
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(60) % 3)
    X = random.standard_normal((60, n_features)) + np.outer(y, random.uniform(0, 1.5, n_features))
    X[:, 3] = X[:, 1] + 0.3 * random.standard_normal(60)
    return X, y


@pytest.mark.parametrize("max_stale", [1, 5])
@settings(max_examples=15)
@given(seed=seeds)
def test_search_equals_the_slow_one(max_stale, seed):
    X, y = some_data(seed)
    codes = discretise(X, "width", n_bins=4).codes
    relevance, redundancy = uncertainties(codes, y)
    selector = CFS(None, binning="width", n_bins=4, max_stale=max_stale).fit(X, y)
    expected = slow_best_first(relevance, redundancy, max_stale)
    assert selector.merit_ == pytest.approx(merit(expected, relevance, redundancy), rel=1e-10)
    assert set(selector.get_support(indices=True)) == set(expected)


@given(seed=seeds)
def test_a_search_without_end_finds_the_best_of_all_subsets(seed):
    random = np.random.default_rng(seed)
    relevance, redundancy = random.random(5), random.random((5, 5))
    redundancy = (redundancy + redundancy.T) / 2
    best = best_first(relevance, lambda j: redundancy[j], max_stale=1000)
    subsets = (s for k in range(6) for s in itertools.combinations(range(5), k))
    assert best.merit == pytest.approx(max(merit(s, relevance, redundancy) for s in subsets))


def test_none_takes_the_subset_and_a_number_overrules_it():
    X, y = some_data(2)
    selector = CFS(None).fit(X, y)
    assert selector.support_.sum() == selector.n_subset_ > 0
    assert selector.set_params(n_features_to_select=6).support_.sum() == 6


def test_without_any_information_the_subset_is_empty():
    X, y, _ = make_planted(30, 5, 1, 2)
    y = np.random.default_rng(0).permutation(y)
    selector = CFS(2).fit(X, y)
    assert (selector.n_subset_, selector.merit_) == (0, 0.0)
    assert selector.ranking_.tolist() == [1, 2, 3, 4, 5]
    assert selector.set_params(n_features_to_select=None).support_.sum() == 0
