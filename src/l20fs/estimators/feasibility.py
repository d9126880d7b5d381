"""Sizes of the panels that constraints allow, and the constraint that cannot be met where there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np

from l20fs.estimators.penalty import panel_penalty, penalty_of
from l20fs.inputs.constraints import Features
from l20fs.inputs.targets import Targets
from l20fs.objective import make_problem
from l20fs.objective.panel_completion import complete
from l20fs.objective.panel_rules import PanelRules
from l20fs.objective.row_penalty import RowPenalty
from l20fs.text import counted
from l20fs.typing import Array


class SizeRange(NamedTuple):
    """Least and largest number of units of a panel."""

    least: int
    most: int


def size_range(penalty: RowPenalty, varies: Array, names: Array | None = None) -> SizeRange:
    """Return the sizes of panels under a penalty; an error names the constraint that cannot be met.

    Without rules they go from the included units to all that are not excluded.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> rules = PanelRules(sp.csr_array([[1.0, 1.0, 0.0]]), np.array([1.0]), np.array([1.0]), ("min_per_class of 'a'",))
    >>> size_range(replace(RowPenalty.plain(3), rules=rules), np.ones(3, dtype=bool))
    SizeRange(least=1, most=2)
    """
    if penalty.rules is None:
        return SizeRange(len(penalty.included), int(np.count_nonzero(penalty.costs < np.inf)))
    return _Wishes(penalty, varies, names).sizes()


def refuse_size(penalty: RowPenalty, varies: Array, size: int, names: Array | None = None) -> None:
    """Refuse a number of units of which no panel meets the rules."""
    _Wishes(penalty, varies, names).check(size)


def possible_sizes(selector: Any, X: Any, targets: Targets, names: Array | None) -> tuple[int, SizeRange]:
    """Return the number of units of a selector's features, and the sizes of panels that its constraints allow."""
    varies = np.ones(X.shape[1], dtype=bool)
    penalty = penalty_of(selector, varies, names)
    if selector.constraints is not None:
        selector.check_parameters()
        problem = make_problem(X, targets.Y, sample_weight=targets.sample_weight, fit_intercept=selector.fit_intercept)
        penalty, varies = panel_penalty(selector, problem, targets, names), problem.design.varies
    return penalty.n_units, size_range(penalty, varies, names)


class _Wishes:
    """Rules, and what may be selected under them."""

    def __init__(self, penalty: RowPenalty, varies: Array, names: Array | None) -> None:
        assert penalty.rules is not None
        self.penalty, self.rules, self.names = penalty, penalty.rules, names
        self.may_enter, self.included = penalty.units_to_enter(varies), penalty.included

    def sizes(self) -> SizeRange:
        found = complete(self.rules, self.may_enter, self.included, self.penalty.n_units)
        if found is None:
            self._refuse()
        low, high = len(self.included), len(found.least)
        while low < high:  # the least panel within the largest one may not be the least of all
            middle = (low + high) // 2
            is_enough = complete(self.rules, self.may_enter, self.included, middle) is not None
            low, high = (low, middle) if is_enough else (middle + 1, high)
        return SizeRange(high, len(found.whole))

    def check(self, size: int) -> None:
        found = complete(self.rules, self.may_enter, self.included, size)
        if found is not None and len(found.whole) == size:
            return
        least, most = self.sizes()
        if size < least:
            raise ValueError(
                f"{self._said(self._binding(lambda rules: self._least(rules) > size))}: this needs at least {least} "
                f"features; n_features_to_select={size}. Ask for more features, or relax the constraint."
            )
        self._refuse_large(size, most)

    def _refuse_large(self, size: int, most: int) -> NoReturn:
        binding = self._binding(lambda rules: not self._reaches(rules, size))
        budget = self.rules.names.index("budget") if "budget" in self.rules.names else -1
        if set(binding) == {budget}:
            costs = self.rules.weights[[budget]].toarray().ravel()
            cheapest = np.sort(costs[self._free()])[: size - len(self.included)].sum() + costs[self.included].sum()
            raise ValueError(
                f"budget={self.rules.upper[budget]:g}: the cheapest {size} features cost {cheapest:g}, and "
                f"n_features_to_select={size}. Raise the budget, or ask for at most {most} features."
            )
        raise ValueError(
            f"{self._said(binding)}: this leaves no room for {size} features; n_features_to_select={size}. Ask for "
            f"{f'at most {most}' if size > most else 'another number of'} features, or relax the constraint."
        )

    def _refuse(self) -> NoReturn:
        """Name the constraint that no panel can meet, or several that cannot be met together."""
        rules, features = self.rules, Features(len(self.penalty.unit_of), self.names)
        totals = rules.totals(self.included)
        for rule in np.flatnonzero(totals > rules.upper * (1.0 + 1e-9)):
            name, limit = rules.names[rule], rules.upper[rule]
            if name == "budget":
                raise ValueError(
                    f"budget={limit:g}: the included features cost {totals[rule]:g}. Raise the budget, or include fewer."
                )
            here = self.included[rules.weights[[rule]].toarray().ravel()[self.included] > 0.0]
            called = ", ".join(features.called(int(self.penalty.members[unit][0])) for unit in here[:5])
            raise ValueError(
                f"{name} allows {limit:g}, but {totals[rule]:g} of the included features belong to it: {called}. Include "
                "fewer, or relax the constraint."
            )
        available = rules.totals(np.union1d(self._free(), self.included))
        for rule in np.flatnonzero(available < rules.lower):
            kind, _, owner = rules.names[rule].partition(" of ")
            raise ValueError(
                f"{kind}={rules.lower[rule]:g}: only {int(available[rule])} of the features that may be selected belong to "
                f"{owner}. Ask for fewer of them, or exclude fewer."
            )
        together = self._said(self._binding(lambda rules: not self._reaches(rules, None)))
        raise ValueError(f"{together}: no panel meets all of this. Relax one of them.")

    def _free(self) -> Array:
        """Return the units that may be selected or not."""
        return np.setdiff1d(np.flatnonzero(self.may_enter), self.included)

    def _least(self, rules: PanelRules) -> float:
        found = complete(rules, self.may_enter, self.included, self.penalty.n_units)
        return np.inf if found is None else len(found.least)

    def _reaches(self, rules: PanelRules, size: int | None) -> bool:
        found = complete(rules, self.may_enter, self.included, self.penalty.n_units if size is None else size)
        return found is not None and (size is None or len(found.whole) == size)

    def _binding(self, fails: Callable[[PanelRules], bool]) -> list[int]:
        """Return rules that fail together, and of which none can be left out: kind by kind."""
        kinds = [name.partition(" of ")[0].partition("[")[0] for name in self.rules.names]
        kept = list(dict.fromkeys(kinds))
        for kind in list(kept):
            others = [rule for rule, own in enumerate(kinds) if own in kept and own != kind]
            if fails(self._some(np.array(others, dtype=np.intp))):
                kept.remove(kind)
        return [rule for rule, own in enumerate(kinds) if own in kept]

    def _some(self, kept: Array) -> PanelRules:
        rules = self.rules
        names = tuple(rules.names[rule] for rule in kept)
        return replace(
            rules, weights=rules.weights[kept].tocsr(), lower=rules.lower[kept], upper=rules.upper[kept], names=names
        )

    def _said(self, binding: list[int]) -> str:
        """Name the kinds of some rules, with their limits where these are all the same."""
        limits: dict[str, set[float]] = {}
        for rule in binding:
            kind = self.rules.names[rule].partition(" of ")[0].partition("[")[0]
            limit = self.rules.lower[rule] if self.rules.lower[rule] > 0.0 else self.rules.upper[rule]
            limits.setdefault(kind, set()).add(float(limit))
        texts = []
        for kind, values in limits.items():
            value = f"={min(values):g}" if len(values) == 1 and kind != "exclusive" else ""
            owners = [name.split(" ")[2] for name in self.rules.names if name.startswith(f"{kind} of ")]
            texts.append(kind + value + (f" with {counted(len(owners), owners[0])}" if owners else ""))
        return " and ".join(texts)
