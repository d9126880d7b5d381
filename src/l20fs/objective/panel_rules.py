r"""Linear rules that the units of a panel must meet: quotas, budgets and units that exclude each other.

With z the indicators of the selected units (single features, or groups), every rule is

.. math:: l_r \le \sum_u a_{ru} z_u \le u_r, \qquad a_{ru} \ge 0.

A quota counts the members of a set, a budget adds up costs, and of units that exclude each other at most one is selected.
The solvers and the bounds know nothing else about constraints.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        What each rule is called in messages, such as ``"min_per_class of 'RMS'"`` or ``"budget"``.

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

    def given(self, units: Array | list[int]) -> PanelRules:
        """Return what the rules ask of the other units, where some are selected in any case."""
        totals = self.totals(units)
        return PanelRules(self.weights, np.maximum(self.lower - totals, 0.0), self.upper - totals, self.names)

    def among(self, units: Array) -> PanelRules:
        """Return the rules for some units alone, numbered anew, without those that say nothing about them."""
        weights = self.weights[:, units].tocsr()
        speaks = (np.diff(weights.indptr) > 0) | (self.lower > 0.0) | (self.upper < 0.0)
        kept = np.flatnonzero(speaks)
        names = tuple(self.names[rule] for rule in kept) if self.names else ()
        return PanelRules(weights[kept], self.lower[kept], self.upper[kept], names)
