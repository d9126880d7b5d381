r"""Row penalty with costs per feature or group.

.. math:: \lambda \sum_u c_u \, [\text{some row of unit } u \text{ is non-zero}]

A unit is a single feature, or a group of features that are selected together. One threshold covers all feature constraints:
unit u survives a proximal step if :math:`\|v_u\|^2 > 2 \lambda c_u / L`, so that a unit of cost 0 always survives and one of
infinite cost never does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from l20fs.objective.panel_rules import PanelRules
from l20fs.objective.prox import is_heavy
from l20fs.typing import Array


@dataclass(frozen=True, eq=False)
class RowPenalty:
    """Units of features, and the cost of each unit.

    Attributes
    ----------
    unit_of : array of shape (n_features,)
        Unit of each feature; units are numbered by their lowest feature.
    costs : array of shape (n_units,)
        Cost of each unit; 0 if it is included, infinite if it is excluded.
    rules : PanelRules or None
        Rules that the selected units must meet, if there are any.

    Examples
    --------
    >>> penalty = RowPenalty.of_groups(["a", "b", "a"], factors=[1.0, 0.5, 1.0])
    >>> penalty.unit_of, penalty.costs
    (array([0, 1, 0]), array([2. , 0.5]))
    >>> penalty.is_heavy(np.array([3.0, 0.6, 0.0]), threshold=1.0)
    array([ True,  True,  True])
    """

    unit_of: Array
    costs: Array
    rules: PanelRules | None = None

    @classmethod
    @lru_cache(maxsize=2)  # the fits of a search share it, and what is found out about it
    def plain(cls, n_features: int) -> RowPenalty:
        """Return the penalty of the paper: single features with cost 1."""
        penalty = cls(np.arange(n_features), np.ones(n_features))
        penalty.unit_of.flags.writeable = penalty.costs.flags.writeable = False
        return penalty

    @classmethod
    def of_groups(cls, labels: Any, factors: Any) -> RowPenalty:
        """Group the features with equal labels; a group costs the sum of its factors, unless one of them is 0."""
        _, first, inverse = np.unique(np.asarray(labels), return_index=True, return_inverse=True)
        number = np.empty(len(first), dtype=np.intp)
        number[np.argsort(first)] = np.arange(len(first))
        unit_of = number[inverse]
        costs = np.bincount(unit_of, weights=factors)
        costs[unit_of[np.asarray(factors) == 0.0]] = 0.0
        return cls(unit_of, costs)

    @property
    def n_units(self) -> int:
        return len(self.costs)

    @cached_property
    def has_groups(self) -> bool:
        return self.n_units < len(self.unit_of)

    @cached_property
    def is_plain(self) -> bool:
        """Whether this is the penalty of the paper."""
        return not self.has_groups and self.rules is None and bool((self.costs == 1.0).all())

    @cached_property
    def is_even(self) -> bool:
        """Whether all units that may be selected or not cost 1."""
        return bool(((self.costs == 1.0) | (self.costs == 0.0) | (self.costs == np.inf)).all())

    @cached_property
    def n_allowed(self) -> int:
        """Number of units that are not excluded."""
        return int(np.count_nonzero(self.costs < np.inf))

    @cached_property
    def included(self) -> Array:
        """Units that are always selected."""
        return np.flatnonzero(self.costs == 0.0)

    @cached_property
    def prices(self) -> Array:
        """Costs, with 0 for excluded units."""
        return np.where(self.costs < np.inf, self.costs, 0.0)

    @cached_property
    def members(self) -> list[Array]:
        """Features of each unit, ascending."""
        return np.split(np.argsort(self.unit_of, kind="stable"), np.cumsum(np.bincount(self.unit_of))[:-1])

    def rows_of(self, units: Array) -> Array:
        """Return the features of units, in the order of the units."""
        if not self.has_groups:
            return units
        return np.concatenate([*(self.members[unit] for unit in units), np.empty(0, dtype=np.intp)])

    def may_enter(self, varies: Array) -> Array:
        """Return a mask of the features that may have a weight: varying and not excluded."""
        return varies if self.is_plain else varies & (self.costs < np.inf)[self.unit_of]

    def units_to_enter(self, varies: Array) -> Array:
        """Return a mask of the units that may have a weight."""
        return np.bincount(self.unit_of, weights=self.may_enter(varies), minlength=self.n_units) > 0.0

    def n_selectable(self, varies: Array) -> int:
        """Count the units that may be selected."""
        if self.is_plain:
            return int(np.count_nonzero(varies))
        return len(np.union1d(self.unit_of[self.may_enter(varies)], self.included))

    def size_of(self, rows: Array) -> int:
        """Count the units of ``rows``, and those that are included."""
        if self.is_plain:
            return len(rows)
        return len(np.union1d(self.unit_of[rows], self.included))

    def cost_of(self, rows: Array) -> float:
        """Return the cost of the units of ``rows``."""
        return float(len(rows)) if self.is_plain else float(self.costs[np.unique(self.unit_of[rows])].sum())

    def is_heavy(self, squared_norms: Array, threshold: float, rows: Array | None = None) -> Array:
        """Return a mask of the rows that survive the hard threshold, those of included and of heavy units.

        ``squared_norms`` are those of all features, or of ``rows``, which must hold whole units.
        """
        if self.is_plain:
            return is_heavy(squared_norms, threshold)
        units = self.unit_of if rows is None else self.unit_of[rows]
        totals = np.bincount(units, weights=squared_norms, minlength=self.n_units)
        heavy = (totals > threshold * threshold * self.costs) | (self.costs == 0.0)
        return np.asarray(heavy[units])

    def per_cost(self, squared_norms: Array) -> Array:
        """Return the squared norm of each unit divided by its cost; 0 for included and excluded units."""
        if self.is_plain:
            return squared_norms
        totals = np.bincount(self.unit_of, weights=squared_norms, minlength=self.n_units)
        return self.shared_out(totals)

    def shared_out(self, worth: Array, *, least: float = 0.0, units: Array | slice = slice(None)) -> Array:
        """Divide gains of units by their cost, if they exceed ``least``; 0 for included and excluded units."""
        costs = self.costs[units]
        return np.divide(worth, costs, out=np.zeros(len(costs)), where=(worth > least) & (costs > 0.0))
