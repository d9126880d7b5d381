"""Panels that compete: units that are in all of them, units that may be, their prices and the rules for them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog

from l20fs.bounds.cuts import Cut, LinearCut, ReducedCosts
from l20fs.bounds.polytope import MISSED, Polytope, heaviest
from l20fs.bounds.shares import Point
from l20fs.design.meeting import computed_once
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.panel_rules import PanelRules
from l20fs.objective.row_penalty import RowPenalty
from l20fs.typing import Array

NO_ROWS: Array = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Choice:
    """Panels that compete; a unit is a feature, or a group of features that are selected together.

    Attributes
    ----------
    unit_of : array of shape (n_features,) or None
        Unit of each feature; None if each feature is one.
    forced : array
        Units that are in every panel.
    is_free : mask of shape (n_units,)
        Other units that may be in a panel.
    varies : mask of shape (n_features,)
        Features that vary: the others change no loss.
    prices : array of shape (n_units,) or None
        Price of each unit; None if they are free of charge.
    rules : PanelRules or None
        Rules that a panel must meet.
    weights : array of shape (n_rules, n_units) or None
        Their weights, dense.

    Examples
    --------
    >>> problem = LeastSquares(np.eye(3), np.eye(3), ridge=1.0)
    >>> penalty = RowPenalty(np.array([0, 1, 1]), np.array([0.0, 2.0]))
    >>> choice = Choice.of(problem, penalty, price=0.5)
    >>> choice.forced, choice.is_free, choice.prices
    (array([0]), array([False,  True]), array([0., 1.]))
    """

    unit_of: Array | None
    forced: Array
    is_free: Array
    varies: Array
    prices: Array | None = None
    rules: PanelRules | None = None
    weights: Array | None = None

    @classmethod
    def of(cls, problem: LeastSquares, penalty: RowPenalty | None = None, price: float = 0.0) -> Choice:
        """Return the panels under a penalty: included units are forced, excluded ones are not free.

        Units without a feature that varies are not free, either, unless the choice is free altogether.
        """
        varies = problem.design.varies
        penalty = RowPenalty.plain(problem.n_features) if penalty is None else penalty
        if penalty.is_plain and not price:
            return cls(None, NO_ROWS, np.ones(problem.n_features, dtype=bool), varies)
        rules = penalty.rules if penalty.rules is not None and penalty.rules.n_rules else None
        does_vary = np.bincount(penalty.unit_of, weights=varies, minlength=penalty.n_units) > 0.0
        return cls(
            penalty.unit_of if penalty.has_groups else None,
            penalty.included,
            does_vary & (penalty.costs > 0.0) & (penalty.costs < np.inf),
            varies,
            price * penalty.prices if price else None,
            rules,
            None if rules is None else np.asarray(rules.weights.toarray(), dtype=np.float64),
        )

    @property
    def n_units(self) -> int:
        return len(self.is_free)

    @property
    def n_forced(self) -> int:
        return len(self.forced)

    @computed_once
    def candidates(self) -> Array:
        """Mask of the units that may be in a panel and change its loss."""
        if self.unit_of is None:
            return self.is_free & self.varies
        return self.is_free & (np.bincount(self.unit_of, weights=self.varies, minlength=self.n_units) > 0.0)

    @computed_once
    def _members(self) -> list[Array]:
        """Features of each unit that vary, or the first one."""
        assert self.unit_of is not None
        order = np.argsort(self.unit_of, kind="stable")
        all_members = np.split(order, np.cumsum(np.bincount(self.unit_of, minlength=self.n_units))[:-1])
        return [rows[self.varies[rows]] if self.varies[rows].any() else rows[:1] for rows in all_members]

    def narrowed(self, forced: Array, is_free: Array | None) -> Choice:
        """Return the panels that contain more units, and of the others only some that are free."""
        narrower = replace(
            self,
            forced=np.concatenate([self.forced, np.setdiff1d(forced, self.forced)]).astype(np.intp),
            is_free=self.is_free.copy() if is_free is None else self.is_free & is_free,
        )
        narrower.is_free[narrower.forced] = False
        return narrower

    def features_of(self, is_unit: Array) -> Array:
        """Return the features of the units of a mask, ascending."""
        return np.flatnonzero(is_unit if self.unit_of is None else is_unit[self.unit_of])

    def rows_of(self, units: Array) -> tuple[Array, Array | None]:
        """Return the features of units in their order, and the position of the unit of each."""
        if self.unit_of is None:
            return units, None
        members = [self._members[unit] for unit in units]
        rows = np.concatenate([NO_ROWS, *members])
        return rows, np.repeat(np.arange(len(units)), [len(rows) for rows in members])

    def price_of(self, units: Array) -> float:
        """Return the sum of the prices of units."""
        return 0.0 if self.prices is None else float(self.prices[units].sum())

    def polytope(self, units: Array, n_chosen: int) -> Polytope:
        """Return the allowed shares of some units besides the forced ones."""
        prices = None if self.prices is None else self.prices[units]
        if self.rules is None or self.weights is None:
            return Polytope(n_chosen, prices=prices)
        given = self.rules.given(self.forced)
        return Polytope(n_chosen, self.weights[:, units], given.lower, given.upper, prices)

    def least_size(self) -> int:
        """Return the number of units that a panel has at least, by the rules; one more than there are if none meets them."""
        units = np.flatnonzero(self.candidates)
        if self.polytope(units, len(units)).weights is None:
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
        sides = self.polytope(units, n_chosen).sides(len(units))
        if sides is None or not len(units):
            return None if sides is None else np.empty(0)
        largest = float(np.abs(costs).max()) or 1.0
        result = linprog(costs / largest, *sides.inequalities(), bounds=(0.0, 1.0))
        return result.x if result.status == 0 else None

    def by_unit(self, cut: Cut) -> Cut:
        """Return a cut with the scores of units, given one with those of features."""
        return cut if self.unit_of is None else cut.by_unit(self.unit_of, self.n_units)

    def reduced_costs(self, point: Point | None = None) -> ReducedCosts:
        """Return the prices of the units, adjusted by the multipliers of the rules of a point."""
        costs = np.zeros(self.n_units) if self.prices is None else self.prices
        if self.rules is None or self.weights is None or point is None:
            return ReducedCosts(costs, costs, 0.0, 0.0, 0)
        above, below = point.above, point.below
        upper = np.where(above > 0.0, self.rules.upper, 0.0)
        lower = np.where(below > 0.0, self.rules.lower, 0.0)
        return ReducedCosts(
            costs + (above - below) @ self.weights,
            costs + (above + below) @ np.abs(self.weights),
            float(above @ upper - below @ lower),
            float(above @ np.abs(upper) + below @ np.abs(lower)),
            len(above),
        )

    def cut_with(self, cut: Cut, reduced: ReducedCosts, k: int) -> Cut | LinearCut:
        """Return a cut for these panels; with prices, A is multiplied by a good factor for size k."""
        if self.prices is None:
            return cut if self.weights is None else cut.under_rules(reduced)
        first = cut.with_prices(reduced, 1.0)
        scores = np.where(self.is_free, first.scores, 0.0)
        heavy = np.argsort(scores)[::-1][: k - self.n_forced]
        panel = np.concatenate([self.forced, heavy[scores[heavy] > 0.0]])
        factor = cut.product / (cut.energy + 2.0 * float(cut.scores[panel].sum()))  # the best one for this panel
        second = cut.with_prices(reduced, factor)
        bounds = [each.bound(self.load(each.scores, k)) for each in (first, second)]
        return second if bounds[1] > bounds[0] else first

    def load(self, scores: Array, k: int) -> float:
        """Return the largest sum of the scores of a panel of at most k units, by the number of units alone."""
        return float(scores[self.forced].sum()) + heaviest(scores[self.is_free], k - self.n_forced)

    def loads_by_size(self, scores: Array, most: int) -> Array:
        """Return :meth:`load` for every k from 0 to ``most``; sizes below the number of forced units count as that one."""
        heavy, n_chosen = scores[self.is_free], most - self.n_forced
        if n_chosen < len(heavy):
            heavy = np.partition(heavy, len(heavy) - n_chosen - 1)[len(heavy) - n_chosen :]
        loads = np.full(most + 1, float(scores[self.forced].sum()))
        sums = np.cumsum(np.maximum(np.sort(heavy)[::-1], 0.0))
        loads[self.n_forced + 1 : self.n_forced + 1 + len(sums)] += sums
        loads[self.n_forced + 1 + len(sums) :] += sums[-1] if len(sums) else 0.0
        return loads
