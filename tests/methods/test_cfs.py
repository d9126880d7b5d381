"""CFS against a slow search, the merit from scratch, and all subsets of a few features."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from l20fs.data import make_planted
from l20fs.methods._discretise import bin_codes, discretise, symmetrical_uncertainty
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


@settings(max_examples=30)
@given(seed=seeds)
def test_merit_is_that_of_the_returned_subset(seed):
    X, y = some_data(seed)
    selector = CFS(None).fit(X, y)
    subset = np.argsort(selector.ranking_)[: selector.n_subset_].tolist()
    expected = merit(subset, *uncertainties(discretise(X, "mdlp", labels=y).codes, y))
    assert selector.merit_ == pytest.approx(expected, rel=1e-10, abs=1e-12)


@settings(max_examples=30)
@given(seed=seeds)
def test_each_added_feature_raises_the_merit_of_a_greedy_search_to_a_local_best(seed):
    X, y = some_data(seed)
    relevance, redundancy = uncertainties(discretise(X, "width", n_bins=4).codes, y)
    selector = CFS(None, binning="width", n_bins=4, max_stale=1).fit(X, y)
    order = np.argsort(selector.ranking_)[: selector.n_subset_].tolist()
    merits = [merit(order[:k], relevance, redundancy) for k in range(len(order) + 1)]
    assert np.all(np.diff(merits) > 0)
    further = [merit([*order, j], relevance, redundancy) for j in range(7) if j not in order]
    assert max(further, default=0.0) <= merits[-1] + 1e-10


@given(seed=seeds)
def test_a_search_without_end_finds_the_best_of_all_subsets(seed):
    random = np.random.default_rng(seed)
    relevance, redundancy = random.random(5), random.random((5, 5))
    redundancy = (redundancy + redundancy.T) / 2
    best = best_first(relevance, lambda j: redundancy[j], max_stale=1000)
    subsets = (s for k in range(6) for s in itertools.combinations(range(5), k))
    assert best.merit == pytest.approx(max(merit(s, relevance, redundancy) for s in subsets))


def test_patience_finds_what_greed_does_not():
    """Feature 0 is the best one alone, but 1 and 2 together are better than any set with it."""
    relevance = np.array([0.62, 0.6, 0.6, 0.0])
    redundancy = np.array([[1.0, 1.0, 1.0, 0], [1.0, 1.0, 0, 0], [1.0, 0, 1.0, 0], [0, 0, 0, 1.0]])
    assert best_first(relevance, lambda j: redundancy[j], max_stale=1).features == (0,)
    assert best_first(relevance, lambda j: redundancy[j], max_stale=5).features == (1, 2)


@settings(max_examples=20)
@given(seed=seeds)
def test_a_copy_is_never_added_while_the_merit_falls(seed):
    """A copy of one feature leaves its merit as it is; one of several may raise theirs: the copied gets more weight."""
    X, y = some_data(seed)
    doubled = np.column_stack([X, X])
    values = uncertainties(discretise(doubled, "mdlp", labels=y).codes, y)
    greedy = CFS(None, max_stale=1).fit(doubled, y)
    order = np.argsort(greedy.ranking_)[: greedy.n_subset_].tolist()
    assert np.all(np.diff([merit(order[:k], *values) for k in range(len(order) + 1)]) > 0)
    assert len({j % 7 for j in order[:2]}) == len(order[:2])
    alone = CFS(None).fit(X[:, [1, 1, 1]], y)
    assert alone.get_support(indices=True).tolist() == [0] * alone.n_subset_


def test_the_rest_follows_by_relevance():
    X, y = some_data(1, n_features=12)
    selector = CFS(3).fit(X, y)
    order = np.argsort(selector.ranking_)
    assert 0 < selector.n_subset_ < 12
    relevance = symmetrical_uncertainty(discretise(X, "mdlp", labels=y), y)
    assert np.all(np.diff(relevance[order[selector.n_subset_ :]]) <= 1e-12)


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


def test_columns_of_redundancies_are_computed_once():
    codes = np.random.default_rng(0).integers(0, 3, (50, 10))
    binned, y = bin_codes(codes), np.arange(50) % 2
    calls = []

    def redundancy_with(j):
        calls.append(j)
        return symmetrical_uncertainty(binned, codes[:, j])

    best_first(symmetrical_uncertainty(binned, y), redundancy_with, max_stale=30)
    assert len(calls) == len(set(calls)) > 1


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match=r"max_stale=0 is not valid\. Use a whole number at least 1"):
        CFS(max_stale=0).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="binning='equal' is unknown"):
        CFS(binning="equal").fit([[0.0], [1.0]], [0, 1])
