r"""Linear rules that the units of a panel must meet: quotas, budgets and units that exclude each other.

With z the indicators of the selected units (single features, or groups), every rule is

.. math:: l_r \le \sum_u a_{ru} z_u \le u_r, \qquad a_{ru} \ge 0.

A quota counts the members of a set, a budget adds up costs, and of units that exclude each other at most one is selected.
The solvers and the bounds know nothing else about constraints.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from l20fs.typing import Array

#: Sums of costs are compared with limits up to this share: 0.1 + 0.2 is within a budget of 0.3.
TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class PanelRules:
    """Rules for the selected units.

    Attributes
    ----------
    weights : sparse array of shape (n_rules, n_units)
        What each unit adds to the sum of a rule, at least 0.
    lower, upper : arrays of shape (n_rules,)
        Limits of the sums: 0 and infinity where there is none. A lower limit holds for a whole panel, an upper one also for
        every part of it.
    names : tuple of str
        What each rule is called in messages, such as ``"min_per_class of class 'RMS'"`` or ``"budget"``.
    size : int or None
        A panel of so many units must stay within reach of every part of it that a solver chooses; None: as many as the path
        runs to.

    Examples
    --------
    >>> rules = PanelRules(sp.csr_array([[1.0, 1.0, 0.0], [5.0, 2.0, 1.0]]), np.array([1.0, 0.0]), np.array([np.inf, 6.0]))
    >>> rules.allows([0, 2]), rules.allows([2]), rules.allows([0, 1])
    (True, False, False)
    >>> rules.given([0]).upper
    array([inf,  1.])
    """

    weights: sp.csr_array
    lower: Array
    upper: Array
    names: tuple[str, ...] = ()
    size: int | None = None

    @classmethod
    def none(cls, n_units: int) -> PanelRules:
        """Return the rules of a free choice."""
        return cls(sp.csr_array((0, n_units)), np.empty(0), np.empty(0))

    @property
    def n_rules(self) -> int:
        return len(self.lower)

    def totals(self, units: Array | list[int]) -> Array:
        """Return the sum of each rule for some units."""
        return np.asarray(self.weights[:, np.asarray(units, dtype=np.intp)].sum(axis=1), dtype=np.float64).ravel()

    def allows(self, units: Array | list[int]) -> bool:
        """Return whether a whole panel meets all rules."""
        return not len(self.broken(units))

    def broken(self, units: Array | list[int]) -> Array:
        """Return the numbers of the rules that a panel does not meet."""
        totals = self.totals(units)
        slack = TOLERANCE * np.maximum(totals, 1.0)
        return np.flatnonzero((totals < self.lower - slack) | (totals > self.upper + slack))

    def is_filled(self, units: Array | list[int]) -> bool:
        """Return whether units meet the lower limits."""
        totals = self.totals(units)
        return bool((totals >= self.lower - TOLERANCE * np.maximum(totals, 1.0)).all())

    def is_within(self, units: Array | list[int]) -> bool:
        """Return whether units keep the upper limits."""
        totals = self.totals(units)
        return bool((totals <= self.upper + TOLERANCE * np.maximum(totals, 1.0)).all())

    @property
    def is_capped(self) -> bool:
        """Whether there are upper limits."""
        return bool((self.upper < np.inf).any())

    def may_join(self, units: Array | list[int]) -> Array:
        """Return a mask of the units that fit beside some others under the upper limits.

        Examples
        --------
        >>> rules = PanelRules(sp.csr_array([[5.0, 2.0, 1.0]]), np.array([0.0]), np.array([6.0]))
        >>> rules.may_join([0])
        array([False, False,  True])
        """
        mask = np.ones(self.weights.shape[1], dtype=bool)
        mask[self._excess(units)[1]] = False
        return mask

    def fit_in_turn(self, units: Array | list[int], others: Array) -> Array:
        """Return a mask of the others that fit under the upper limits, beside some units and those before them that do.

        Examples
        --------
        >>> rules = PanelRules(sp.csr_array([[5.0, 2.0, 1.0, 3.0]]), np.array([0.0]), np.array([6.0]))
        >>> rules.fit_in_turn([1], np.array([0, 3, 2]))
        array([False,  True,  True])
        """
        mask = np.ones(len(others), dtype=bool)
        if not self.is_capped:
            return mask
        totals, columns = self.totals(units), self.weights.tocsc()
        for place, unit in enumerate(others):
            span = slice(columns.indptr[unit], columns.indptr[unit + 1])
            rules = columns.indices[span]
            sums = totals[rules] + columns.data[span]
            mask[place] = (sums <= self.upper[rules] + TOLERANCE * np.maximum(sums, 1.0)).all()
            if mask[place]:
                totals[rules] = sums
        return mask

    def exchanges(self, units: Array | list[int], leaving: Array | list[int]) -> Array:
        """Return a mask of the exchanges after which a panel meets all rules, (n_leaving, n_units).

        Examples
        --------
        >>> rules = PanelRules(sp.csr_array([[1, 1, 0], [5, 2, 1.0]]), np.array([1.0, 0.0]), np.array([np.inf, 6.0]))
        >>> rules.exchanges([0, 2], leaving=[0, 2])[:, 1]
        array([ True, False])
        """
        return self.relieved(units, leaving) & self.refilled(units, leaving)

    def relieved(self, units: Array | list[int], leaving: Array | list[int]) -> Array:
        """Return a mask of the exchanges after which the upper limits hold, (n_leaving, n_units)."""
        rule_of, unit_of, sums = self._excess(units)
        mask = np.ones((len(leaving), self.weights.shape[1]), dtype=bool)
        slack = self.upper[rule_of] + TOLERANCE * np.maximum(sums, 1.0)
        for line, parts in zip(mask, self._columns(leaving), strict=True):
            line[unit_of[sums - parts[rule_of] > slack]] = False
        return mask

    def refilled(self, units: Array | list[int], leaving: Array | list[int]) -> Array:
        """Return a mask of the exchanges after which the lower limits hold, (n_leaving, n_units)."""
        totals = self.totals(units)
        mask = np.ones((len(leaving), self.weights.shape[1]), dtype=bool)
        for line, parts in zip(mask, self._columns(leaving), strict=True):
            missing = self.lower - (totals - parts) - TOLERANCE * np.maximum(totals, 1.0)
            for rule in np.flatnonzero(missing > 0.0):
                span = slice(self.weights.indptr[rule], self.weights.indptr[rule + 1])
                fills = np.zeros(len(line), dtype=bool)
                fills[self.weights.indices[span]] = self.weights.data[span] >= missing[rule]
                line &= fills
        return mask

    def _columns(self, units: Array | list[int]) -> Array:
        """Return what some units add to each rule, (n_given, n_rules)."""
        return self.weights[:, np.asarray(units, dtype=np.intp)].toarray().T

    def _excess(self, units: Array | list[int]) -> tuple[Array, Array, Array]:
        """Return the rule, the unit and the sum wherever one unit more would exceed an upper limit."""
        totals = self.totals(units)
        rule_of = np.repeat(np.arange(self.n_rules), np.diff(self.weights.indptr))
        sums = totals[rule_of] + self.weights.data
        over = np.flatnonzero(sums > self.upper[rule_of] + TOLERANCE * np.maximum(sums, 1.0))
        return rule_of[over], self.weights.indices[over], sums[over]

    def given(self, units: Array | list[int]) -> PanelRules:
        """Return what the rules ask of the other units, where some are selected in any case."""
        totals = self.totals(units)
        return PanelRules(self.weights, np.maximum(self.lower - totals, 0.0), self.upper - totals, self.names, self.size)

    def among(self, units: Array) -> PanelRules:
        """Return the rules for some units alone, numbered anew, without those that say nothing about them."""
        weights = self.weights[:, units].tocsr()
        speaks = (np.diff(weights.indptr) > 0) | (self.lower > 0.0) | (self.upper < 0.0)
        return replace(self, weights=weights).some(np.flatnonzero(speaks))

    def some(self, rules: Array) -> PanelRules:
        """Return some of the rules."""
        names = tuple(self.names[rule] for rule in rules) if self.names else ()
        return PanelRules(self.weights[rules].tocsr(), self.lower[rules], self.upper[rules], names, self.size)
