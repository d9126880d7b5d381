"""The penalty of a selector: what its include, exclude, penalty_factor and feature_groups mean for the rows of W."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from l20fs.inputs.constraints import FEATURE_CONSTRAINTS, Features, resolve_constraints
from l20fs.objective.least_squares import LeastSquares
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
    constraints = {name: getattr(selector, name) for name in FEATURE_CONSTRAINTS}
    if all(value is None for value in constraints.values()):
        return RowPenalty.plain(len(varies))
    penalty = make_penalty(varies, names, **constraints)
    if not penalty.n_selectable(varies):
        raise ValueError(
            f"All {len(varies)} features are excluded or constant, so there is nothing to select. Exclude fewer."
        )
    return penalty


def warn_of_idle_features(problem: LeastSquares, penalty: RowPenalty, names: Array | None) -> None:
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
