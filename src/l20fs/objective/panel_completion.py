r"""Completion of a panel under rules: whether the units that are chosen so far can still become a panel of a given size.

A *completion* of some units is a chain: the units, a panel of the least size that meets all lower limits, and around it a
panel of the size that is asked for, which meets the upper limits. Where the sets that are counted are disjoint, such as
classes, the cheapest chain has a closed form: the cheapest members up to each lower limit, then the cheapest of the rest.
Where sets overlap, a small integer program finds one (HiGHS).

While units are chosen, one known completion is carried along (:class:`Admission`). A unit may enter if it belongs to it, or
takes the place of one unit in it: so a greedy step never ends where the rules cannot be met.
"""

from __future__ import annotations

import copy
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from l20fs.objective.panel_rules import TOLERANCE, PanelRules
from l20fs.objective.row_penalty import RowPenalty
from l20fs.typing import Array

#: By this share upper limits are lowered if the solver of integer programs met them up to its own tolerance only.
TIGHTER = 1e-5


class Completion(NamedTuple):
    """Units of a chain: a panel of the least size, and one of the largest size up to that asked for, which contains it."""

    least: Array
    whole: Array


def complete(
    rules: PanelRules, may_enter: Array, fixed: Array | list[int], size: int, order: Array | None = None
) -> Completion | None:
    """Return a completion of some units by at most ``size`` in all, as large as possible; None if there is none.

    Parameters
    ----------
    rules : PanelRules
    may_enter : mask of shape (n_units,)
        Units to choose from.
    fixed : array of int
        Units that are selected in any case.
    size : int
        Number of units of the panel.
    order : array of shape (n_units,), optional
        Of least panels of the same size the one with the smallest sum of these numbers counts; by default, the one around
        which the panel is cheapest.

    Examples
    --------
    >>> rules = PanelRules(sp.csr_array([[1.0, 1, 0, 0], [9.0, 2, 3, 1]]), np.array([1.0, 0.0]), np.array([np.inf, 6.0]))
    >>> least, whole = complete(rules, np.ones(4, dtype=bool), [], size=4)
    >>> least.tolist(), sorted(whole.tolist())
    ([1], [1, 2, 3])
    """
    fixed = np.asarray(fixed, dtype=np.intp)
    may_enter = may_enter.copy()
    may_enter[fixed] = False
    if len(fixed) > size or not rules.is_within(fixed):
        return None
    if len(fixed) == size or not may_enter.any():
        return Completion(fixed, fixed) if rules.is_filled(fixed) else None
    parts = _disjoint_parts(rules)
    if parts is None:
        return _by_integer_program(rules, may_enter, fixed, size, order)
    return _in_closed_form(parts, may_enter, fixed, size, order)


def completion_of(penalty: RowPenalty, varies: Array, size: int) -> Completion:
    """Return a completion of the units that a penalty includes, under its rules; ``varies`` masks constant features.

    Raises an error if there is none.
    """
    assert penalty.rules is not None
    found = complete(penalty.rules, penalty.units_to_enter(varies), penalty.included, size)
    if found is None:
        names = ", ".join(penalty.rules.names) or f"{penalty.rules.n_rules} rules"
        raise ValueError(
            f"No panel of at most {size} units meets the rules ({names}). Allow more units, or relax the rules."
        )
    return found


class _Parts(NamedTuple):
    """Disjoint sets of units with limits of their numbers, the last set without any, and what each unit costs."""

    part_of: Array
    lower: Array
    upper: Array
    costs: Array
    budget: float


def _disjoint_parts(rules: PanelRules) -> _Parts | None:
    """Return the sets that the rules count, if they are disjoint and there is at most one budget besides."""
    n_units = rules.weights.shape[1]
    part_of, lower, upper = np.full(n_units, -1), list[float](), list[float]()
    budgets = []
    for rule in range(rules.n_rules):
        span = slice(rules.weights.indptr[rule], rules.weights.indptr[rule + 1])
        members, weights = rules.weights.indices[span], rules.weights.data[span]
        known = np.unique(part_of[members])
        if (weights == 1.0).all() and (known == -1).all():
            part_of[members] = len(lower)
            lower.append(rules.lower[rule])
            upper.append(rules.upper[rule])
        elif (weights == 1.0).all() and len(known) == 1 and np.count_nonzero(part_of == known[0]) == len(members):
            lower[known[0]] = max(lower[known[0]], rules.lower[rule])
            upper[known[0]] = min(upper[known[0]], rules.upper[rule])
        elif rules.lower[rule] <= 0.0:
            budgets.append(rule)
        else:
            return None
    if len(budgets) > 1:
        return None
    costs, budget = np.zeros(n_units), np.inf
    if budgets:
        costs, budget = rules.weights[[budgets[0]]].toarray().ravel(), float(rules.upper[budgets[0]])
    part_of[part_of < 0] = len(lower)
    whole = np.ceil(np.array([*lower, 0.0]) - 1e-9), np.floor(np.array([*upper, np.inf]) + 1e-9)
    return _Parts(part_of, *whole, costs, budget)


def _in_closed_form(parts: _Parts, may_enter: Array, fixed: Array, size: int, order: Array | None) -> Completion | None:
    n_parts = len(parts.lower)
    held = np.bincount(parts.part_of[fixed], minlength=n_parts)
    needed, room = np.maximum(parts.lower - held, 0.0), parts.upper - held
    candidates = np.flatnonzero(may_enter)
    preference = parts.costs if order is None else order
    candidates = candidates[np.lexsort((candidates, preference[candidates], parts.part_of[candidates]))]
    own = parts.part_of[candidates]
    first = np.searchsorted(own, np.arange(n_parts))
    place = np.arange(len(candidates)) - first[own]  # of each candidate within its set
    if (np.bincount(own, minlength=n_parts) < needed).any() or (needed > room).any():
        return None
    is_needed = place < needed[own]
    least = np.concatenate([fixed, candidates[is_needed]])
    rest = candidates[~is_needed & (place < room[own])]
    rest = rest[np.lexsort((rest, preference[rest]))][: max(0, size - len(least))]
    spent = parts.costs[least].sum() + np.concatenate([[0.0], np.cumsum(parts.costs[rest])])
    n_more = int(np.count_nonzero(spent <= parts.budget + TOLERANCE * np.maximum(spent, 1.0))) - 1
    if n_more < 0 or len(least) > size:
        return None
    return Completion(least, np.concatenate([least, rest[:n_more]]))


def _by_integer_program(
    rules: PanelRules, may_enter: Array, fixed: Array, size: int, order: Array | None
) -> Completion | None:
    units = np.concatenate([fixed, np.flatnonzero(may_enter)])
    for tightness in (0.0, TIGHTER):
        found = _solve(rules, units, len(fixed), size, order, tightness)
        if found is None or (rules.is_filled(found.least) and rules.allows(found.whole)):
            return found
    return None


def _solve(
    rules: PanelRules, units: Array, n_fixed: int, size: int, order: Array | None, tightness: float
) -> Completion | None:
    """Find indicators of the least panel and of the whole one: first as many as possible, then the smallest least panel."""
    n_units = len(units)
    weights = rules.weights[:, units].tocsr()
    heaviest = np.maximum(weights.max(axis=1).toarray().ravel(), 1e-300)
    weights = sp.diags_array(1.0 / heaviest) @ weights
    nothing, one = sp.csr_array(weights.shape), sp.eye_array(n_units)
    ones, zeros = np.ones((1, n_units)), np.zeros((1, n_units))
    limits = [
        LinearConstraint(sp.hstack([weights, nothing]), rules.lower / heaviest, np.inf),
        LinearConstraint(sp.hstack([nothing, weights]), -np.inf, rules.upper / heaviest * (1.0 - tightness)),
        LinearConstraint(sp.hstack([one, -one]), -np.inf, 0.0),
    ]
    bounds = Bounds(np.tile(np.arange(n_units) < n_fixed, 2).astype(float), 1.0)

    def solved(objective: Array, smallest: int, largest: int) -> Array | None:
        count = LinearConstraint(np.hstack([zeros, ones]), smallest, largest)
        found = milp(objective, constraints=[*limits, count], bounds=bounds, integrality=1)
        return None if found.x is None else found.x > 0.5

    chosen = solved(np.concatenate([zeros[0], -ones[0]]), 0, size)
    if chosen is None:
        return None
    n_whole = int(chosen[n_units:].sum())
    use = np.asarray(weights.sum(axis=0)).ravel() if order is None else order[units].astype(float)
    use = 0.5 * use / (use.sum() or 1.0)  # below 1 in all: the number of units comes first
    objective = np.concatenate([ones[0], use] if order is None else [ones[0] + use, zeros[0]])
    better = solved(objective, n_whole, n_whole)
    chosen = chosen if better is None else better
    return Completion(units[chosen[:n_units]], units[chosen[n_units:]])


class Admission:
    """Units that may enter, with a completion of those that are selected.

    Parameters
    ----------
    rules : PanelRules
    completion : Completion
        Of the units that are included.

    Examples
    --------
    >>> rules = PanelRules(sp.csr_array([[1.0, 1.0, 0.0, 0.0]]), np.array([1.0]), np.array([np.inf]))
    >>> admission = Admission(rules, complete(rules, np.ones(4, dtype=bool), [], size=2))
    >>> admission.mask([]), admission.mask([1])
    (array([ True,  True, False, False]), array([ True,  True,  True,  True]))
    """

    def __init__(self, rules: PanelRules, completion: Completion) -> None:
        self.rules = rules
        self._least, self._whole = completion.least.tolist(), completion.whole.tolist()
        # The share of the limits that a unit takes, where it is more than one of many.
        shares = rules.weights.multiply((1.0 / np.maximum(rules.upper, 1e-300))[:, None]).tocsr()
        dear = [rule for rule in range(rules.n_rules) if (rules.weights[[rule]].data != 1.0).any()]
        self._costs = np.asarray(shares[np.array(dear, dtype=np.intp)].sum(axis=0)).ravel()

    def copy(self) -> Self:
        """Return an admission that goes its own way from here."""
        return copy.copy(self)

    @property
    def n_whole(self) -> int:
        """Size that stays within reach."""
        return len(self._whole)

    def is_open(self, units: list[int]) -> bool:
        """Return whether any unit may enter beside these, now and later."""
        return not self.rules.is_capped and self.rules.is_filled(units)

    def mask(self, units: list[int]) -> Array:
        """Return a mask of the units that may enter beside those that are selected."""
        if self.is_open(units):
            return np.ones(self.rules.weights.shape[1], dtype=bool)
        fits = self.rules.may_join(units)
        ways = self._ways(units)
        return fits if ways is None else fits & (ways.known | ways.places.any(axis=0))

    def follow(self, unit: int, units: list[int]) -> None:
        """Let a unit enter beside ``units``: the completion takes it in."""
        ways = None if self.is_open(units) else self._ways(units)
        if ways is None or ways.known[unit] or not ways.places[:, unit].any():
            return
        # Of those whose place it may take the dearest goes: the completion stays cheap.
        places = [other for other, is_free in zip(ways.leaving, ways.places[:, unit], strict=True) if is_free]
        if not ways.is_filling:
            self._whole = self._exchanged(self._whole, max(places, key=self._cost_of), unit)
            return
        relieved = dict(
            zip((*ways.leaving, *ways.spares), (*ways.relieved[:, unit], *ways.spare_relieved[:, unit]), strict=True)
        )
        spare = max((other for other in (*places, *ways.spares) if relieved[other]), key=self._cost_of, default=-1)
        left = spare if spare in places else max(places, key=self._cost_of)
        self._least = self._exchanged(self._least, left, unit)
        if unit not in self._whole:
            self._whole = self._exchanged(self._whole, spare, unit)

    @staticmethod
    def _exchanged(units: list[int], left: int, new: int) -> list[int]:
        return [*(unit for unit in units if unit != left), new]

    def _cost_of(self, unit: int) -> float:
        return float(self._costs[unit])

    def _ways(self, units: list[int]) -> _Ways | None:
        """Return how units can enter the completion; None if it holds no other units than those selected."""
        selected, whole, least = set(units), set(self._whole), set(self._least)
        spares = [unit for unit in self._whole if unit not in selected]
        is_filling = not self.rules.is_filled(units)
        if not spares or not selected <= (least if is_filling else whole):
            return None
        n_units = self.rules.weights.shape[1]
        known = np.zeros(n_units, dtype=bool)
        if not is_filling:
            known[self._whole] = True
            relieved = self.rules.relieved(self._whole, spares)
            return _Ways(False, known, spares, relieved, relieved, [], relieved)
        known[self._least] = True
        in_whole = np.zeros(n_units, dtype=bool)
        in_whole[self._whole] = True
        leaving = [unit for unit in self._least if unit not in selected]
        beyond = [unit for unit in spares if unit not in least]
        relieved, spare_relieved = (self.rules.relieved(self._whole, those) for those in (leaving, beyond))
        places = self.rules.refilled(self._least, leaving) & (in_whole | relieved | spare_relieved.any(axis=0))
        return _Ways(True, known, leaving, places, relieved, beyond, spare_relieved)


class _Ways(NamedTuple):
    """Ways into a completion: ``known`` units belong to it, others take ``places`` of those that leave (n_leaving, n_units).

    While lower limits are filled, they take a place in the least panel, and in the whole one that of the same unit where it
    is ``relieved`` by that, or of one of the ``spares`` beyond the least panel.
    """

    is_filling: bool
    known: Array
    leaving: list[int]
    places: Array
    relieved: Array
    spares: list[int]
    spare_relieved: Array
