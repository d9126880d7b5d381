"""Allowed shares of units: their number, linear rules and prices; and the limits that shares can miss."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from l20fs.typing import Array

#: A limit is met if it is missed by no more than this, in units of the largest weight of the rule, or of the least unit.
MISSED, LEAST_UNIT = 1e-6, 1e-3


class Sides(NamedTuple):
    """Limits ``weights @ z <= limits``, or equalities where ``is_rigid``: of the sum of the shares, and of rules.

    ``prices`` are those of the units, at least 0. Multipliers of the sides times ``factors`` are those of the rules with the
    numbers ``rules``, of ``n_rules``.
    """

    n_chosen: int
    prices: Array
    weights: Array
    limits: Array
    is_rigid: Array
    rules: Array
    factors: Array
    n_rules: int

    @classmethod
    def of(cls, n_chosen: int, weights: Array, lower: Array, upper: Array, prices: Array | None = None) -> Self | None:
        """Return the limits of units beside the forced ones; None if a rule cannot be met on its own.

        Parameters
        ----------
        n_chosen : int
            Largest sum of the shares.
        weights : array of shape (n_rules, n_units)
            Rules for these units alone: the contribution of the forced ones is already taken off the limits.
        lower, upper : arrays of shape (n_rules,)
            Limits of the rules, infinite where there is none.
        prices : array of shape (n_units,), optional
        """
        n_units = weights.shape[1]
        n_chosen = min(n_chosen, n_units)
        sizes = np.abs(weights).max(axis=1, initial=LEAST_UNIT)
        ascending, slack = np.sort(weights, axis=1), MISSED * sizes
        most = np.maximum(ascending[:, n_units - n_chosen :], 0.0).sum(axis=1)
        least = np.minimum(ascending[:, :n_chosen], 0.0).sum(axis=1)
        if np.any(most < lower - slack) or np.any(least > upper + slack):
            return None
        is_equal = (upper - lower <= slack) & (most > least)
        above, below = np.flatnonzero((most > upper) | is_equal), np.flatnonzero((least < lower) & ~is_equal)
        rules = np.concatenate([above, below])
        factors = np.repeat([1.0, -1.0], [len(above), len(below)]) / sizes[rules]
        limits = factors * np.concatenate([upper[above], lower[below]])
        is_free = prices is None and not len(rules)
        return cls(
            n_chosen,
            np.zeros(n_units) if prices is None else prices,
            np.vstack([np.ones(n_units), factors[:, None] * weights[rules]]),
            np.append(float(n_chosen), limits),
            np.concatenate([[is_free], is_equal[above], np.zeros(len(below), dtype=bool)]),
            rules,
            factors,
            len(lower),
        )

    @property
    def is_free(self) -> bool:
        """Whether only the number of units is limited, so that the shares sum to it."""
        return bool(self.is_rigid[0])

    def inequalities(self) -> tuple[Array, Array]:
        """Return all limits as ``weights @ z <= limits``, with what counts as met."""
        rigid = np.append(False, self.is_rigid[1:])  # the number of units is an upper limit in any case
        limits = np.concatenate([self.limits, -self.limits[rigid]]) + MISSED
        return np.vstack([self.weights, -self.weights[rigid]]), limits


def largest(scores: Array, n: int) -> Array:
    """Return the ``n`` largest scores in any order, or all of them, with 0 for negative ones.

    Examples
    --------
    >>> np.sort(largest(np.array([3.0, -1.0, 2.0, 5.0]), 2)), largest(np.array([3.0, -1.0, 2.0]), 5)
    (array([3., 5.]), array([3., 0., 2.]))
    """
    first = len(scores) - n
    return np.maximum(np.partition(scores, first)[first:] if 0 < n < len(scores) else scores[: max(n, 0)], 0.0)


def top_sums(values: Array, counts: Array) -> tuple[Array, Array, Array]:
    """Return the sum of the ``counts`` largest positive values of each row, the last of them and the next, at least 0.

    Examples
    --------
    >>> top_sums(np.array([[3.0, 1.0, 2.0], [5.0, -1.0, -np.inf]]), np.array([2, 2]))
    (array([5., 5.]), array([2., 0.]), array([1., 0.]))
    """
    most = min(int(counts.max()) + 1, values.shape[1])
    negative = -values if most == values.shape[1] else np.partition(-values, most - 1, axis=1)[:, :most]
    highest = np.pad(np.maximum(-np.sort(negative, axis=1), 0.0), ((0, 0), (1, 1)))
    node, place = np.arange(len(values)), np.minimum(counts, most)
    return np.cumsum(highest, axis=1)[node, place], highest[node, place], highest[node, place + 1]
