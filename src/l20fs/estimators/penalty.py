"""Constraints of a selector as its row penalty, and the sizes of the panels that they allow."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from l20fs.inputs.constraints import Constraints
from l20fs.inputs.names import Features
from l20fs.inputs.targets import Targets
from l20fs.objective.panel_completion import Completion, complete
from l20fs.objective.panel_rules import PanelRules
from l20fs.objective.problem import Problem, make_problem
from l20fs.objective.row_penalty import RowPenalty
from l20fs.typing import Array


def feature_penalty(constraints: Constraints | None, varies: Array, names: Array | None = None) -> RowPenalty:
    """Return the penalty of features under constraints, without the limits of panels.

    Examples
    --------
    >>> varies, names = np.ones(4, dtype=bool), np.array(["age", "red", "green", "blue"])
    >>> feature_penalty(Constraints(include=["age"], groups={"colour": ["red", "green", "blue"]}), varies, names)
    RowPenalty(unit_of=array([0, 1, 1, 1]), costs=array([0., 3.]), rules=None)
    """
    if constraints is None:
        return RowPenalty.plain(len(varies))
    features = Features(len(varies), names)
    penalty = RowPenalty.of_groups(*constraints.by_index(features).units(varies, features))
    if not penalty.n_selectable(varies):
        raise ValueError(
            f"All {len(varies)} features are excluded or constant, so there is nothing to select. Exclude fewer."
        )
    return RowPenalty.plain(len(varies)) if penalty.is_plain else penalty


def panel_penalty(
    constraints: Constraints | None, problem: Problem, targets: Targets, names: Array | None = None
) -> RowPenalty:
    """Return the penalty of features under constraints, with the limits of panels as its rules."""
    penalty = feature_penalty(constraints, problem.design.varies, names)
    if constraints is None or not constraints.limit_panels:
        return penalty
    class_of = highest_class(problem, targets) if constraints.need_classes else None
    n_features = problem.n_features
    limits = constraints.by_index(Features(n_features, names)).limits(n_features, targets.classes, class_of)
    if not limits:  # no sets, or no classes are named
        return penalty
    places = np.repeat(np.arange(len(limits)), [len(limit.features) for limit in limits])
    rows, values = (np.concatenate([limit[part] for limit in limits]) for part in (1, 2))
    units = penalty.unit_of[rows]
    weights = sp.coo_array((values, (places, units)), shape=(len(limits), penalty.n_units)).tocsr()
    weights.eliminate_zeros()
    lower, upper = (np.array([limit[part] for limit in limits]) for part in (3, 4))
    return replace(penalty, rules=PanelRules(weights, lower, upper, tuple(limit.name for limit in limits)))


def highest_class(problem: Problem, targets: Targets) -> Array:
    """Return the index of the class in which the mean of each feature is highest, the first of several; takes a pass.

    Examples
    --------
    >>> from l20fs.inputs.targets import encode_targets
    >>> targets = encode_targets(np.array(["a", "a", "b", "b"]))
    >>> X = np.array([[1, 0, 3.0], [2, 1, 0], [1, 5, 3], [1, 5, 0]])
    >>> highest_class(make_problem(X, targets.Y), targets)
    array([0, 1, 0])
    """
    if targets.codes is None or targets.classes is None:
        raise ValueError(
            "min_per_class and max_per_class need one class label per sample, and y holds numbers or several columns. Give "
            "sets of features, or no limits per class."
        )
    # The products with one-hot labels are sums of the deviations of a feature within a class.
    sums = problem.design.pull(problem.targets).astype(np.float64, copy=False)
    sizes = np.bincount(targets.codes, weights=targets.sample_weight, minlength=len(targets.classes)) * problem.y_scale
    means = np.full(sums.shape, -np.inf)
    np.divide(sums, sizes[:, None], out=means, where=sizes[:, None] > 0.0)
    largest = np.abs(means, out=np.zeros_like(means), where=np.isfinite(means)).max(axis=0)
    return np.asarray((means >= means.max(axis=0) - problem.tie * largest).argmax(axis=0))


def warn_of_idle_features(problem: Problem, penalty: RowPenalty, names: Array | None) -> None:
    """Warn of included features that do not change the fit."""
    if penalty.is_plain:
        return
    features = Features(problem.n_features, names)
    rows = np.flatnonzero(penalty.costs[penalty.unit_of] == 0.0)
    # Within a group it is only natural that features depend on each other: one-hot columns add up to 1.
    is_single = (np.bincount(penalty.unit_of) == 1)[penalty.unit_of[rows]]
    varying = np.concatenate([rows[~is_single], rows[is_single]])
    varying = varying[problem.design.varies[varying]]
    constant = rows[~problem.design.varies[rows]]
    dependent = np.intersect1d(problem.dependent(varying), rows[is_single])
    for idle, what in ((constant, "constant"), (dependent, "copies or combinations of other included features")):
        if len(idle):
            listed = ", ".join(features.called(int(row)) for row in idle[:5])
            warnings.warn(
                f"{len(idle)} of the included features are {what}, first {listed}. They are selected as requested but do "
                "not change the fit.",
                UserWarning,
                stacklevel=4,  # the caller of fit
            )


class SizeRange(NamedTuple):
    """Least and largest number of units of a panel."""

    least: int
    most: int


def size_range(penalty: RowPenalty, varies: Array) -> SizeRange:
    """Return the sizes of panels under a penalty; an error names the limits that cannot be met.

    Without rules they go from the included units to all that are not excluded.

    Examples
    --------
    >>> rules = PanelRules(sp.csr_array([[1.0, 1.0, 0.0]]), np.array([1.0]), np.array([1.0]), ("min_per_class of 'a'",))
    >>> size_range(replace(RowPenalty.plain(3), rules=rules), np.ones(3, dtype=bool))
    SizeRange(least=1, most=2)
    """
    if penalty.rules is None:
        return SizeRange(len(penalty.included), penalty.n_allowed)
    found = _completed(penalty, varies, penalty.n_units)
    if found is None:
        binding = _binding(penalty, lambda rules: _completed(replace(penalty, rules=rules), varies, penalty.n_units) is None)
        what = f" and the {len(penalty.included)} included features" if len(penalty.included) else ""
        raise ValueError(f"{binding}{what}: no panel of any size meets all of this. Relax the constraints.")
    low, high = len(penalty.included), len(found.least)
    while low < high:  # the least panel within the largest one may not be the least of all
        middle = (low + high) // 2
        is_enough = _completed(penalty, varies, middle) is not None
        low, high = (low, middle) if is_enough else (middle + 1, high)
    return SizeRange(high, len(found.whole))


def refuse_size(penalty: RowPenalty, varies: Array, size: int) -> None:
    """Refuse a number of units of which no panel meets the rules."""

    def fails(rules: PanelRules) -> bool:
        found = _completed(replace(penalty, rules=rules), varies, size)
        return found is None or len(found.whole) < size

    assert penalty.rules is not None
    if fails(penalty.rules):
        least, most = size_range(penalty, varies)
        raise ValueError(
            f"n_features_to_select={size}: no panel of this size meets {_binding(penalty, fails)}; panels that do have "
            f"{least} to {most} features. Ask for another number, or relax the constraints."
        )


def _completed(penalty: RowPenalty, varies: Array, size: int) -> Completion | None:
    assert penalty.rules is not None
    return complete(penalty.rules, penalty.units_to_enter(varies), penalty.included, size)


def _binding(penalty: RowPenalty, fails: Callable[[PanelRules], bool]) -> str:
    """Name the kinds of rules that fail together, none of which can be left out, with their limits if these are equal."""
    rules = penalty.rules
    assert rules is not None
    kinds = np.array([name.partition(" of ")[0].partition("[")[0] for name in rules.names])
    kept = list(dict.fromkeys(kinds.tolist()))
    for kind in list(kept):
        if fails(rules.some(np.flatnonzero(np.isin(kinds, kept) & (kinds != kind)))):
            kept.remove(kind)
    texts = []
    for kind in kept:
        own = kinds == kind
        limits = np.unique(np.where(rules.lower > 0.0, rules.lower, rules.upper)[own])
        texts.append(f"{kind}={limits[0]:g}" if len(limits) == 1 and kind != "exclusive" else kind)
    return " and ".join(texts)


def possible_sizes(selector: Any, X: Any, targets: Targets, names: Array | None) -> tuple[int, SizeRange]:
    """Return the number of units of a selector's features, and the sizes of panels that its constraints allow."""
    varies = np.ones(X.shape[1], dtype=bool)
    constraints = selector.constraints
    penalty = feature_penalty(constraints, varies, names)
    if constraints is not None and constraints.limit_panels:
        selector._check_all_parameters()
        problem = make_problem(X, targets.Y, sample_weight=targets.sample_weight, fit_intercept=selector.fit_intercept)
        penalty, varies = panel_penalty(constraints, problem, targets, names), problem.design.varies
    return penalty.n_units, size_range(penalty, varies)
