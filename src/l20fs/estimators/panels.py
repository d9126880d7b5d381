"""Numbers of the panels of 1, 2, ... features of one fit: members, weights, substitutes, norms.

A *unit* is what is selected at once: a feature, or a group of features. Its *head* is its feature of the lowest index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from l20fs.estimators.base import BaseSelector
from l20fs.estimators.selector import L20Selector
from l20fs.objective.path_ranking import RULES
from l20fs.objective.solution_path import SolutionPath
from l20fs.typing import Array

#: A page or file with a weight for each of k features, each class and each k has about this many of them at most.
MOST_WEIGHTS = 40_000
MOST_FEATURES = 100


def largest_k(n_classes: int) -> int:
    """Return the number of features that a page or a file can hold with the weights of every k.

    Examples
    --------
    >>> largest_k(4), largest_k(8), largest_k(100)
    (100, 100, 28)
    """
    return min(MOST_FEATURES, math.isqrt(2 * MOST_WEIGHTS // n_classes))


def ranked_units(selector: BaseSelector) -> list[Array]:
    """Return the features, or groups of features, that can be selected, best first.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0, 5.0], [1.0, 1.0, 4.0], [2.0, 1.0, 6.0], [3.0, 1.0, 5.0]])
    >>> [unit.tolist() for unit in ranked_units(L20Selector(1).fit(X, [0, 0, 1, 1]))]
    [[0], [2]]
    """
    usable = np.flatnonzero(np.isfinite(selector.scores_))
    if isinstance(selector, L20Selector) and selector._ends_at_lambda and not _adds_features(selector.path_):
        usable = np.flatnonzero(selector.path_.is_selected)
    order = usable[np.argsort(selector.ranking_[usable], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(selector.ranking_[order])) + 1) if len(order) else []


def _adds_features(path: SolutionPath) -> bool:
    """Whether the last stage selects more than the included features: then the ranking continues after them."""
    return int(path.sizes[-1]) > path.n_included


def heads_of(units: Sequence[Array]) -> Array:
    """Return the lowest feature of each unit."""
    return np.array([members[0] for members in units], dtype=np.intp)


def failure_costs(path: SolutionPath, units: Sequence[Array]) -> Array:
    """Return by what share the loss of a panel rises without each of its units, NaN where the path cannot be refitted.

    As in :func:`panel_weights`, what is included or required is always there.
    """
    k = max(len(units), path.least_size)
    if not units or k > path.largest_refit:
        return np.full(len(units), np.nan)
    costs = np.empty(path.n_features)
    costs[path.support(k)] = path.failure_costs(k)
    return costs[heads_of(units)]


class Substitute(NamedTuple):
    """A feature that could replace another one, their correlation, and its own rank, 0 if it has none."""

    feature: int
    correlation: float
    rank: int


def excluded_features(path: SolutionPath | None) -> Array:
    """Return the indices of the features that a user excluded."""
    return np.empty(0, dtype=np.intp) if path is None else np.flatnonzero(path.rules == RULES.index("excluded"))


def norms_along_path(path: SolutionPath, heads: Array, most_stages: int) -> tuple[Array, Array]:
    """Return values of lambda spread evenly over the path, and the norms of some features there, (n_features, n_stages)."""
    n_stages = len(path.alphas)
    stages = np.unique(np.linspace(0, n_stages - 1, min(n_stages, most_stages)).round().astype(int))
    column = np.full(path.n_features, -1)
    column[heads] = np.arange(len(heads))
    norms = np.zeros((len(heads), len(stages)))
    for place, stage in enumerate(stages.tolist()):
        rows = column[path.stage_rows(stage)]
        norms[rows[rows >= 0], place] = path.stage_norms(stage)[rows >= 0]
    return path.alphas[stages], norms
