"""Numbers of the panels of 1, 2, ... features of one fit: members, weights, substitutes, norms.

A *unit* is what is selected at once: a feature, or a group of features. Its *head* is its feature of the lowest index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from l20fs.design import equality_tolerance
from l20fs.estimators.base import BaseSelector
from l20fs.estimators.selection_table import NearestMembers, likeness, worthwhile_correlation
from l20fs.estimators.selector import L20Selector
from l20fs.objective.path_ranking import RULES
from l20fs.objective.prox import order_descending
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


def unit_norms(path: SolutionPath, units: Sequence[Array]) -> list[float]:
    """Return the norm of the weights of each unit at the last stage of a path."""
    norms = np.zeros(path.n_features)
    norms[path.coef_rows] = path.stage_norms(-1)
    return [float(np.linalg.norm(norms[members])) for members in units]


def panel_weights(path: SolutionPath, heads: Array, k: int) -> Array:
    """Return the least-squares weights, (k, n_classes), on exactly the best k features, with all that every panel has."""
    # What is included or required is there for every k, and weighs in whether it is shown or not.
    return path.refit(max(k, path.least_size)).coef[:, heads[:k]].T


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


def substitutes_for_every_k(
    X: Any, heads: Array, n: int, *, exclude: Any = (), nearest: NearestMembers | None = None
) -> list[list[Substitute]]:
    """Return for each feature all that are among its best ``n`` substitutes outside a panel of k features, for any k.

    Features whose correlation is not worth it (:func:`~l20fs.estimators.selection_table.worthwhile_correlation`) are none.

    Parameters
    ----------
    X : matrix of shape (n_samples, n_features)
    heads : array of int
        Ranked features, best first; those of rank k + 1, k + 2, ... could replace members of a panel of k.
    n : int
    exclude : array of int
        Features that must not be offered.
    nearest : NearestMembers, optional
        Takes the correlations with all features.
    """
    outside, within = likeness(X, heads, n, exclude=exclude, nearest=nearest)
    rank_of = {int(feature): place + 1 for place, feature in enumerate(heads)}
    least = worthwhile_correlation(*X.shape)
    found = []
    for place, feature in enumerate(heads):
        others = outside.feature == feature
        candidates = np.concatenate([outside.substitute[others], heads[place + 1 :]])
        correlations = np.concatenate([outside.correlation[others], within[place, place + 1 :]])
        with_worth = np.abs(correlations) >= least  # False of a constant feature, whose correlations are NaN
        found.append(_ever_among_best(candidates[with_worth], correlations[with_worth], rank_of, n))
    return found


def _ever_among_best(candidates: Array, correlations: Array, rank_of: dict[int, int], n: int) -> list[Substitute]:
    """Keep the candidates that are among the best ``n`` which are not selected, for any k.

    One of rank r is not selected up to k = r - 1. There the fewest others compete with it: those without a rank, or of a
    higher rank. If ``n`` of these come before it, it is never among the best.
    """
    by_index = np.argsort(candidates, kind="stable")
    order = by_index[order_descending(np.abs(correlations[by_index]), rtol=equality_tolerance(np.dtype(np.float64)))]
    seen: list[float] = []
    kept = []
    for place in order:
        feature = int(candidates[place])
        rank = rank_of.get(feature, 0)
        n_before = sum(other > (rank or math.inf) or other == math.inf for other in seen)
        seen.append(rank or math.inf)
        if n_before < n:
            kept.append(Substitute(feature, float(correlations[place]), rank))
    return kept


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
