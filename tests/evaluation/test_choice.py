"""Limits of a search for the number of features."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from l20fs.evaluation.choice import LAST_LIMIT, Setting, choose, is_at_limit, search_limits, search_sizes, tabulate


@pytest.mark.parametrize("limit", [1, 7, 99, 100, 101, 150, 200, 201, 400, 777, 800])
def test_sizes_grow_by_at_most_a_fiftieth_and_end_at_the_limit(limit):
    sizes = search_sizes(limit)
    assert sizes[:100] == list(range(1, min(limit, 100) + 1))
    assert sizes[-1] == limit
    steps = np.diff(sizes)
    assert (steps >= 1).all()
    assert (steps <= np.maximum(1, np.array(sizes[:-1]) / 50)).all()


@pytest.mark.parametrize("n_units", [1, 30, 100, 130, 5000])
def test_limits_double_up_to_all_features_or_the_last(n_units):
    limits = search_limits(n_units)
    assert limits[0] == min(100, n_units)
    assert limits[-1] == min(n_units, LAST_LIMIT)
    assert all(small < large <= 2 * small for small, large in itertools.pairwise(limits))


def table(means, error, n_features=None):
    """Return the results of 1, 2, ... features with given means and one standard error, from two folds."""
    means = np.asarray(means)
    scores = np.stack([means - error, means + error])[None]
    sizes = range(1, len(means) + 1)
    n_features = np.array([sizes if n_features is None else n_features] * 2)[None]
    return tabulate([Setting(1.0, None)], sizes, scores, n_features)


def test_scores_that_rise_to_the_end_are_at_the_limit_by_both_rules():
    results = table(np.linspace(0.1, 0.9, 40), 0.05)
    assert all(is_at_limit(results, choose(results, rule)) for rule in ("best", "1se"))


def test_level_scores_are_not():
    rising = np.minimum(0.9, np.linspace(0.5, 2.0, 40))
    results = table(rising + np.linspace(0.0, 0.01, 40), 0.05)  # the best is the last, by a fifth of a standard error
    assert is_at_limit(results, choose(results, "best"))
    assert not is_at_limit(results, choose(results, "1se")), "which chooses in the first half"


def test_a_maximum_inside_is_not():
    results = table(-((np.arange(40) - 30.0) ** 2), 0.1)
    assert not any(is_at_limit(results, choose(results, rule)) for rule in ("best", "1se"))


def test_no_more_features_that_vary_are_no_limit():
    sizes = np.arange(1, 41)
    results = table(np.linspace(0.1, 0.9, 40), 0.05, np.minimum(sizes, 39))
    assert not is_at_limit(results, choose(results, "best"))
