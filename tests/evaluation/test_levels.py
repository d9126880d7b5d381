"""Levels: which classes a feature is high or low in."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from l20fs.data import load_srbct
from l20fs.estimators.feature_values import class_means
from l20fs.evaluation.levels import Level, class_level

MEANS = st.lists(st.integers(-300, 300).map(lambda number: number / 100), min_size=1, max_size=7)


def explained(means, chosen):
    """Share of the variance of the means that is between the chosen classes and the others."""
    means = np.array(means)
    is_in = np.isin(np.arange(len(means)), chosen)
    fitted = np.where(is_in, means[is_in].mean(), means[~is_in].mean())
    return np.var(fitted) / np.var(means)


@given(MEANS)
def test_the_fewest_classes_that_explain_enough_or_the_best_one(means):
    """By brute force over all sets of at most half of the classes, not only the highest and lowest ones."""
    level = class_level(means)
    if 100 * max(means) - 100 * min(means) < 19.5:
        assert level == Level(True, ())
        return
    wanted = []
    for size in range(1, len(means) // 2 + 1):
        shares = {chosen: explained(means, chosen) for chosen in combinations(range(len(means)), size)}
        best = max(shares.values())
        if size == 1 or best >= 0.85 - 1e-12:
            wanted = [chosen for chosen, share in shares.items() if share >= best - 1e-9]
        if best >= 0.85 - 1e-12:
            break
    assert level.classes in wanted
    others = [mean for place, mean in enumerate(means) if place not in level.classes]
    named = [means[place] for place in level.classes]
    assert min(named) >= max(others) if level.is_high else max(named) <= min(others)


def test_levels_of_the_tumours_are_those_of_the_heatmap():
    """All genes: what is called high is the highest mean and above that of all samples, what is called low below."""
    tumours = load_srbct()
    codes = np.unique(tumours.target, return_inverse=True)[1]
    units = [np.array([j]) for j in range(tumours.data.shape[1])]
    for means in class_means(tumours.data, units, codes):
        level = class_level(means)
        if not level.classes:
            assert max(means) - min(means) < 0.22
            continue
        sign = 1.0 if level.is_high else -1.0
        named = [sign * means[place] for place in level.classes]
        assert min(named) >= max(sign * mean for place, mean in enumerate(means) if place not in level.classes) - 0.01
        assert max(named) > 0.0
