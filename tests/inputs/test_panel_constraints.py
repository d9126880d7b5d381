"""Constraints on panels: the object, what it refuses, and what it means for features."""

from __future__ import annotations

import numpy as np
import pytest

from l20fs import Constraints
from l20fs.inputs.constraints import Features

NAMES = np.array(["TP53", "MYC", "KRAS", "EGFR"])
WISHES = {
    "min_per_class": {"NB": 2},
    "max_per_class": 3,
    "budget": 7.5,
    "costs": np.array([1.0, 2.0, 0.5, 0.0]),
    "exclusive": [["TP53", "MYC"]],
}


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"min_per_class": -1}, "min_per_class=-1 is not valid"),
        ({"min_per_class": 1.5}, "min_per_class=1.5 is not valid"),
        ({"max_per_class": {"NB": True}}, "max_per_class=True is not valid"),
        ({"budget": 0}, "budget=0 is not valid"),
        ({"costs": [1.0]}, "costs without a budget limit nothing. Give a budget too, or penalty_factor=costs"),
        ({"sets": {"a": [0]}}, "sets without min_per_class or max_per_class"),
        ({"sets": [[0]], "min_per_class": 1}, r"sets=\[\[0\]\] is no dict"),
        ({"exclusive": ["TP53", "MYC"]}, "is no list of lists"),
        ({"exclusive": {"a": ["TP53"]}}, "is no list of lists"),
    ],
)
def test_nonsense_is_refused(wishes, message):
    with pytest.raises(ValueError, match=message):
        Constraints(**wishes).check()


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"exclusive": [["TP53", "MYK"]]}, r"exclusive\[0\] names 'MYK', which X does not have. The closest name is 'MYC'."),
        ({"sets": {"a": [9]}, "min_per_class": 1}, r"sets\['a'\] has the index 9"),
        (
            {"sets": {"a": [1]}, "min_per_class": {"b": 1}},
            "min_per_class names 'b', which is no set. The closest name is 'a'.",
        ),
        ({"min_per_class": {"NBL": 1}}, "min_per_class names 'NBL', which is no class. The closest name is 'NB'."),
        ({"budget": 3, "costs": {"MYC": -1}}, "costs=-1 of 'MYC' is not valid. Use a finite number of at least 0."),
        ({"budget": 3, "costs": [1.0, np.nan, 1.0, 1.0]}, "costs=nan of 'MYC' is not valid"),
        ({"budget": 3, "costs": [1.0]}, "costs has 1 costs for 4 features"),
    ],
)
def test_unknown_names_and_numbers_are_refused(wishes, message):
    with pytest.raises(ValueError, match=message):
        Constraints(**wishes).limits(Features(4, NAMES), np.array(["NB", "RMS"]), np.array([0, 0, 1, 1]))


def test_limits_of_classes_sets_budget_and_exclusive_features():
    limits = Constraints(**WISHES).limits(Features(4, NAMES), np.array(["NB", "RMS"]), np.array([0, 0, 1, -1]))
    assert [(limit.name, limit.features.tolist(), limit.lower, limit.upper) for limit in limits] == [
        ("min_per_class of class 'NB'", [0, 1], 2.0, np.inf),
        ("max_per_class of class 'NB'", [0, 1], 0.0, 3.0),
        ("max_per_class of class 'RMS'", [2], 0.0, 3.0),
        ("budget", [0, 1, 2, 3], 0.0, 7.5),
        ("exclusive[0]", [0, 1], 0.0, 1.0),
    ]
    np.testing.assert_array_equal(limits[3].weights, WISHES["costs"])
    pools = Constraints(sets={"A": ["MYC", 0], "B": []}, max_per_class={"A": 1}, budget=2)
    limits = pools.limits(Features(4, NAMES))
    assert [(limit.name, limit.features.tolist()) for limit in limits] == [
        ("max_per_class of set 'A'", [1, 0]),
        ("budget", [0, 1, 2, 3]),
    ]
    np.testing.assert_array_equal(limits[1].weights, np.ones(4))


def test_names_become_indices_and_move_with_the_columns():
    constraints = Constraints(
        budget=5, costs={"MYC": 2.0}, exclusive=[["TP53", "EGFR"]], sets={"A": ["KRAS", "TP53"]}, min_per_class=1
    )
    by_index = constraints.by_index(Features(4, NAMES))
    expected = {"costs": np.array([1.0, 2.0, 1.0, 1.0]), "exclusive": [[0, 3]], "sets": {"A": [2, 0]}}
    assert by_index == Constraints(budget=5, min_per_class=1, **expected)
    moved = by_index.placed(np.array([3, -1, 1, 2]))
    expected = {"costs": np.array([1.0, 1.0, 2.0, 1.0]), "exclusive": [[0]], "sets": {"A": [3]}}
    assert moved == Constraints(budget=5, min_per_class=1, **expected)
