"""The penalty of a selector: what its feature constraints and constraints on panels mean for the rows of W."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.inputs.constraints import FEATURE_CONSTRAINTS, Features, resolve_constraints
from l20fs.inputs.panel_constraints import Constraints
from l20fs.inputs.targets import Targets
from l20fs.objective.panel_rules import PanelRules
from l20fs.objective.problem import Problem
from l20fs.objective.row_penalty import RowPenalty
from l20fs.typing import Array


def make_penalty(varies: Array, names: Array | None = None, **constraints: Any) -> RowPenalty:
    """Return the penalty of features under constraints; see :func:`~l20fs.inputs.constraints.resolve_constraints`.

    Examples
    --------
    >>> varies, names = np.ones(4, dtype=bool), np.array(["age", "red", "green", "blue"])
    >>> make_penalty(varies, names, include=["age"], feature_groups={"colour": ["red", "green", "blue"]})
    RowPenalty(unit_of=array([0, 1, 1, 1]), costs=array([0., 3.]), rules=None)
    """
    return RowPenalty.of_groups(*resolve_constraints(varies, names, **constraints))


def penalty_of(selector: Any, varies: Array, names: Array | None) -> RowPenalty:
    """Return the penalty that the parameters of a selector ask for, under which something may be selected."""
    constraints = _feature_constraints(selector)
    if not constraints:
        return RowPenalty.plain(len(varies))
    penalty = make_penalty(varies, names, **constraints)
    if not penalty.n_selectable(varies):
        raise ValueError(
            f"All {len(varies)} features are excluded or constant, so there is nothing to select. Exclude fewer."
        )
    return penalty


def _feature_constraints(selector: Any) -> dict[str, Any]:
    """Return the feature constraints of a selector by name; none if all of them are None."""
    constraints = {name: getattr(selector, name) for name in FEATURE_CONSTRAINTS}
    return {} if all(value is None for value in constraints.values()) else constraints


def panel_penalty(selector: Any, problem: Problem, targets: Targets, names: Array | None) -> RowPenalty:
    """Return the penalty that the parameters of a selector ask for, with the rules of its ``constraints``."""
    constraints = selector.constraints
    if not _feature_constraints(selector) and (constraints is None or constraints.are_empty):
        return RowPenalty.plain(problem.n_features)
    penalty = penalty_of(selector, problem.design.varies, names)
    if constraints is None or constraints.are_empty:
        return penalty
    rules = rules_of(constraints, penalty, problem, targets, names)
    return replace(penalty, rules=rules) if rules.n_rules else penalty


def rules_of(
    constraints: Constraints, penalty: RowPenalty, problem: Problem, targets: Targets, names: Array | None
) -> PanelRules:
    """Return the rules that constraints set for the units of a penalty."""
    features = Features(problem.n_features, names)
    class_of = highest_class(problem, targets) if constraints.need_classes else None
    limits = constraints.limits(features, targets.classes, class_of)
    if not limits:  # no sets, or no classes are named
        return PanelRules.none(penalty.n_units)
    places = np.repeat(np.arange(len(limits)), [len(limit.features) for limit in limits])
    rows, values = (np.concatenate([limit[part] for limit in limits]) for part in (1, 2))
    units = penalty.unit_of[rows]
    weights = sp.coo_array((values, (places, units)), shape=(len(limits), penalty.n_units)).tocsr()
    weights.eliminate_zeros()
    lower, upper = (np.array([limit[part] for limit in limits]) for part in (3, 4))
    return PanelRules(weights, lower, upper, tuple(limit.name for limit in limits))


def highest_class(problem: Problem, targets: Targets) -> Array:
    """Return the index of the class in which the mean of each feature is highest, the first of several; takes a pass.

    Examples
    --------
    >>> from l20fs.inputs.targets import encode_targets
    >>> from l20fs.objective import make_problem
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
