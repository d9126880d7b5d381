"""Passes: sums over blocks in their order."""

from __future__ import annotations

import operator

from hypothesis import given
from hypothesis import strategies as st

from l20fs.blocks.passes import FAN_IN, combine_in_order


@given(st.integers(1, 3 * FAN_IN**2 + 5))
def test_sums_keep_the_order_and_are_those_of_a_tree(n):
    """Strings show the order, brackets the tree: neighbours first, FAN_IN of them at a time."""
    assert combine_in_order((chr(i) for i in range(n)), operator.add) == "".join(map(chr, range(n)))
    parts = [str(i) for i in range(n)]
    bracket = lambda left, right: f"({left}{right})"  # noqa: E731
    while len(parts) > 1:
        groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
        parts = []
        for group in groups:
            total = group[0]
            for part in group[1:]:
                total = bracket(total, part)
            parts.append(total)
    assert combine_in_order((str(i) for i in range(n)), bracket) == parts[0]
