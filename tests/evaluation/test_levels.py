"""Levels: which classes a feature is high or low in."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from l20fs.data import load_srbct
from l20fs.estimators.feature_values import class_means
from l20fs.evaluation.levels import Level, class_level, trend

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


@given(MEANS, st.randoms())
def test_the_order_of_the_classes_does_not_matter(means, random):
    """Nor do shifts and rescaling, but for small differences."""
    order = list(range(len(means)))
    random.shuffle(order)
    level, other = class_level(means), class_level([means[place] for place in order])
    if (
        level.classes
        and len(set(means)) == len(means)
        and len({abs(2 * mean - max(means) - min(means)) for mean in means}) > 2
    ):
        assert sorted(order[place] for place in other.classes) == list(level.classes) or explained(
            means, [order[place] for place in other.classes]
        ) == pytest.approx(explained(means, level.classes))
    if level.classes:
        assert class_level([2.0 * mean + 3.0 for mean in means]) == level


def test_two_classes_have_one_in_which_it_is_high():
    assert class_level([-0.03, 1.9]) == Level(True, (1,))
    assert class_level([0.2, -1.9]) == Level(True, (0,))
    assert class_level([0.1, -0.09]) == Level(True, ()), "a small effect"
    assert class_level([0.1, -0.1]) == Level(True, (0,))
    assert class_level([]) == class_level([1.0]) == Level(True, ())


def test_classes_of_one_or_two_samples_are_left_out():
    assert class_level([3.0, 0.1, -1.0, 0.2], [2, 9, 9, 3]) == Level(False, (2,))
    assert class_level([3.0, 0.1, -1.0, 0.2], [3, 9, 9, 3]) == Level(True, (0,))
    assert class_level([3.0, 0.1, -1.0], [1, 9, 2]) == Level(True, (0,)), "one class alone tells nothing"


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


def test_texts():
    names = ["EWS", "NB", "BL", "RMS"]
    assert Level(True, (3,)).text(names) == "high in RMS"
    assert Level(False, (1,)).text(names) == "low in NB"
    assert Level(True, (0, 3)).text(names) == "high in EWS, RMS"
    assert Level(True, ()).text(names) == ""
    assert trend(-1.0, "age at diagnosis") == "falls with age at diagnosis"
