"""Panels that compete: units that are in all of them, units that may be, their prices and the rules for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import linprog

from l20fs.bounds.cuts import Cut, LinearCut, ReducedCosts
from l20fs.bounds.polytope import MISSED, Sides, largest
from l20fs.objective.panel_rules import PanelRules
from l20fs.objective.problem import Problem
from l20fs.objective.row_penalty import RowPenalty
from l20fs.typing import Array

NO_ROWS: Array = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Choice:
    """Panels that compete; a unit is a feature, or a group of features that are selected together.

    Attributes
    ----------
    penalty : RowPenalty
        Units of features, their costs and the rules that a panel must meet.
    forced : array
        Units that are in every panel.
    is_free : mask of shape (n_units,)
        Other units that may be in a panel.
    varies : mask of shape (n_features,)
        Features that vary: the others change no loss.
    price : float
        Price of a unit of cost.

    Examples
    --------
    >>> from l20fs.objective import make_problem
    >>> problem = make_problem(np.eye(3), np.eye(3), ridge=1.0)
    >>> penalty = RowPenalty(np.array([0, 1, 1]), np.array([0.0, 2.0]))
    >>> choice = Choice.of(problem, penalty, price=0.5)
    >>> choice.forced, choice.is_free, choice.prices
    (array([0]), array([False,  True]), array([0., 1.]))
    """

    penalty: RowPenalty
    forced: Array
    is_free: Array
    varies: Array
    price: float = 0.0

    @classmethod
    def of(cls, problem: Problem, penalty: RowPenalty | None = None, price: float = 0.0) -> Choice:
        """Return the panels under a penalty: included units are forced, excluded ones are not free.

        Units without a feature that varies are not free, either, unless the choice is free altogether.
        """
        penalty = RowPenalty.plain(problem.n_features) if penalty is None else penalty
        found = cls(penalty, penalty.included, np.ones(penalty.n_units, dtype=bool), problem.design.varies, price)
        if penalty.is_plain and not price:
            return found
        return replace(found, is_free=found._does_vary & (penalty.costs > 0.0) & (penalty.costs < np.inf))

    @property
    def n_units(self) -> int:
        return len(self.is_free)

    @property
    def n_forced(self) -> int:
        return len(self.forced)

    @cached_property
    def prices(self) -> Array | None:
        """Price of each unit; None if they are free of charge."""
        return self.price * self.penalty.prices if self.price else None

    @cached_property
    def rules(self) -> PanelRules:
        """Rules that a panel must meet."""
        return self.penalty.rules or PanelRules.none(self.n_units)

    @cached_property
    def weights(self) -> Array:
        """Weights of the rules, (n_rules, n_units)."""
        return np.asarray(self.rules.weights.toarray(), dtype=np.float64)

    @cached_property
    def _does_vary(self) -> Array:
        """Mask of the units with a feature that varies."""
        return np.bincount(self.penalty.unit_of, weights=self.varies, minlength=self.n_units) > 0.0

    @property
    def candidates(self) -> Array:
        """Mask of the units that may be in a panel and change its loss."""
        return self.is_free & self._does_vary

    def among_candidates(self) -> Choice:
        """Return the panels of units that change the loss."""
        return replace(self, is_free=self.candidates)

    def features_of(self, is_unit: Array) -> Array:
        """Return the features of the units of a mask, ascending."""
        return np.flatnonzero(is_unit[self.penalty.unit_of])

    def rows_of(self, units: Array) -> tuple[Array, Array]:
        """Return the features of units in their order, as far as they vary, and the position of the unit of each.

        A unit of which no feature varies keeps them all.
        """
        unit_of, position = self.penalty.unit_of, np.empty(self.n_units, dtype=np.intp)
        position[units] = np.arange(len(units))
        rows = self.penalty.rows_of(units)
        rows = rows[self.varies[rows] | ~self._does_vary[unit_of[rows]]]
        return rows, position[unit_of[rows]]

    def price_of(self, units: Array) -> float:
        """Return the sum of the prices of units."""
        return self.price * float(self.penalty.prices[units].sum())

    def sides(self, units: Array, n_chosen: int) -> Sides | None:
        """Return the limits of the shares of some units besides the forced ones; None if a rule cannot be met."""
        prices, given = None if self.prices is None else self.prices[units], self.rules.given(self.forced)
        return Sides.of(n_chosen, self.weights[:, units], given.lower, given.upper, prices)

    def least_size(self) -> int:
        """Return the number of units that a panel has at least, by the rules; one more than there are if none meets them."""
        units = np.flatnonzero(self.candidates)
        if not self.rules.n_rules:
            return self.n_forced
        shares = self._feasible_shares(units, len(units), np.ones(len(units)))
        return self.n_units + 1 if shares is None else self.n_forced + int(np.ceil(shares.sum() - MISSED))

    def feasible_units(self, n_chosen: int, scores: Array) -> Array | None:
        """Return units among which shares meet the rules, of large scores; None if there are none."""
        units = np.flatnonzero(self.candidates)
        shares = self._feasible_shares(units, n_chosen, -scores[units])
        return None if shares is None else units[shares > 0.0]

    def _feasible_shares(self, units: Array, n_chosen: int, costs: Array) -> Array | None:
        """Return the shares of least cost that meet the rules."""
        sides = self.sides(units, n_chosen)
        if sides is None or not len(units):
            return None if sides is None else np.empty(0)
        largest = float(np.abs(costs).max()) or 1.0
        result = linprog(costs / largest, *sides.inequalities(), bounds=(0.0, 1.0))
        return result.x if result.status == 0 else None

    def by_unit(self, cut: Cut) -> Cut:
        """Return a cut with the scores of units, given one with those of features."""
        return cut._replace(scores=np.bincount(self.penalty.unit_of, weights=cut.scores, minlength=self.n_units))

    def reduced_costs(self, multipliers: Array | None = None) -> ReducedCosts:
        """Return the prices of the units, adjusted by the multipliers of the rules: negative ones for lower limits."""
        costs = np.zeros(self.n_units) if self.prices is None else self.prices
        if not self.rules.n_rules or multipliers is None:
            return ReducedCosts(costs, costs, 0.0, 0.0, 0)
        limits = np.select([multipliers > 0.0, multipliers < 0.0], [self.rules.upper, self.rules.lower], 0.0)
        sizes = np.abs(multipliers)
        return ReducedCosts(
            costs + multipliers @ self.weights,
            costs + sizes @ np.abs(self.weights),
            float(multipliers @ limits),
            float(sizes @ np.abs(limits)),
            len(multipliers),
        )

    def cut_with(self, cut: Cut, reduced: ReducedCosts, k: int) -> Cut | LinearCut:
        """Return a cut for these panels; with prices, A is multiplied by a good factor for size k."""
        if self.prices is None:
            return cut.under_rules(reduced) if self.rules.n_rules else cut
        first = cut.with_prices(reduced, 1.0)
        scores = np.where(self.is_free, first.scores, 0.0)
        heavy = np.argsort(scores)[::-1][: k - self.n_forced]
        panel = np.concatenate([self.forced, heavy[scores[heavy] > 0.0]])
        factor = cut.product / (cut.energy + 2.0 * float(cut.scores[panel].sum()))  # the best one for this panel
        second = cut.with_prices(reduced, factor)
        bounds = [each.bound(self.loads_by_size(each.scores, k)[-1]) for each in (first, second)]
        return second if bounds[1] > bounds[0] else first

    def loads_by_size(self, scores: Array, most: int) -> Array:
        """Return the largest sum of the scores of a panel of at most k units, by their number alone, for k = 0 to ``most``.

        Sizes below the number of forced units count as that one.
        """
        heavy = np.sort(largest(scores[self.is_free], most - self.n_forced))[::-1]
        sums = np.cumsum(np.append(scores[self.forced].sum(), heavy))
        return np.asarray(sums[np.clip(np.arange(most + 1) - self.n_forced, 0, len(heavy))])
