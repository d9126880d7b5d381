"""Rules for panels and their completion, against brute force over all subsets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from l20fs.objective.panel_completion import complete, completion_of
from l20fs.objective.panel_rules import PanelRules
from l20fs.objective.row_penalty import RowPenalty

SEEDS = st.integers(0, 2**32 - 1)
KINDS = ("disjoint", "overlapping")


def draw_rules(random, n_units, kind):
    """Quotas of disjoint sets with a budget, or of sets that overlap."""
    lines, lower, upper = [], [], []
    owner = random.integers(0, 3, n_units)
    for each in range(2):
        members = owner == each if kind == "disjoint" else random.random(n_units) < 0.5
        least = int(random.integers(0, 3))
        lines.append(members.astype(float))
        lower.append(least)
        upper.append(max(least, random.integers(1, 4)) if random.random() < 0.5 else np.inf)
    if random.random() < 0.6:
        lines.append(random.integers(0, 8, n_units) / 10.0)  # 0.1 + 0.2 is within 0.3
        lower.append(0.0)
        upper.append(random.integers(3, 20) / 10.0)
    return PanelRules(sp.csr_array(np.array(lines)), np.array(lower, dtype=float), np.array(upper, dtype=float))


def panels(rules, candidates, fixed, size):
    """All panels of a size that meet the rules."""
    chosen = combinations(candidates, size - len(fixed)) if size >= len(fixed) else []
    return [(*fixed, *more) for more in chosen if rules.allows([*fixed, *more])]


@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS)
@settings(max_examples=30)
def test_a_completion_is_found_exactly_if_brute_force_finds_one(kind, seed):
    random = np.random.default_rng(seed)
    n_units = int(random.integers(3, 9))
    rules, may_enter = draw_rules(random, n_units, kind), random.random(n_units) < 0.8
    fixed = [int(unit) for unit in random.permutation(n_units)[: random.integers(0, 3)]]
    candidates = [unit for unit in np.flatnonzero(may_enter).tolist() if unit not in fixed]
    sizes = [size for size in range(n_units + 1) if panels(rules, candidates, fixed, size)]
    for size in (random.integers(1, n_units + 1), n_units):
        found = complete(rules, may_enter, fixed, int(size))
        possible = [each for each in sizes if each <= size]
        assert (found is not None) == bool(possible)
        if found is None:
            continue
        assert len(found.whole) == max(possible)
        assert rules.allows(found.whole)
        assert rules.is_filled(found.least)
        assert set(fixed) <= set(found.least) <= set(found.whole) <= {*fixed, *candidates}
        # No smaller part of a panel of this size meets the lower limits.
        smaller = {
            len(part)
            for panel in panels(rules, candidates, fixed, len(found.whole))
            for n in range(len(fixed), len(found.least))
            for part in combinations(panel, n)
            if set(fixed) <= set(part) and rules.is_filled(part)
        }
        assert not smaller


def test_rules_that_no_panel_meets_are_named():
    rules = PanelRules(sp.csr_array([[1.0, 1.0, 0.0]]), np.array([2.0]), np.array([np.inf]), ("min_per_class of class 'a'",))
    penalty = RowPenalty(np.arange(3), np.ones(3), rules)
    assert completion_of(penalty, np.ones(3, dtype=bool), 3).least.tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"No panel of at most 1 units meets the rules \(min_per_class of class 'a'\)"):
        completion_of(penalty, np.ones(3, dtype=bool), 1)
