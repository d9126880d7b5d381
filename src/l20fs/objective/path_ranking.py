"""Ranking rules of the rows of a path."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from l20fs.objective.row_penalty import RowPenalty
from l20fs.typing import Array

#: Ranking rules of the features, best first; ``SolutionPath.rules`` holds the position in this tuple.
RULES = ("included", "weight", "entry", "path", "gradient", "constant", "excluded")


class Occupied(NamedTuple):
    """Units of all stages: number per stage, indices and norms, stage after stage."""

    counts: Array
    units: Array
    norms: Array

    @classmethod
    def of(cls, n_nonzero: Array, indices: Array, norms: Array, unit_of: Array) -> Occupied:
        """Gather the rows of each stage into units; the norm of a unit is that of its rows together."""
        n_units = int(unit_of.max()) + 1
        if n_units == len(unit_of):
            return cls(n_nonzero, indices, norms)
        stage_of = np.repeat(np.arange(len(n_nonzero)), n_nonzero)
        keys, place = np.unique(stage_of * n_units + unit_of[indices], return_inverse=True)
        stages, units = np.divmod(keys, n_units)
        pooled = np.sqrt(np.bincount(place, weights=norms * norms, minlength=len(keys)))
        return cls(np.bincount(stages, minlength=len(n_nonzero)), units, pooled)

    def last(self) -> tuple[Array, Array]:
        """Return the units of the last stage and their norms."""
        first = len(self.units) - int(self.counts[-1])
        return self.units[first:], self.norms[first:]


def score_rows(occupied: Occupied, closeness: Array, penalty: RowPenalty, varies: Array) -> tuple[Array, Array]:
    """Give every unit its ranking rule and a score that falls along the ranking."""
    counts, units, norms = occupied
    is_varying = varies
    if penalty.has_groups:
        is_varying = np.zeros(penalty.n_units, dtype=bool)
        is_varying[penalty.unit_of[varies]] = True
    is_excluded, is_included = penalty.costs == np.inf, penalty.costs == 0.0
    rules = np.where(is_varying, RULES.index("gradient"), RULES.index("constant")).astype(np.int8)
    rules[is_excluded] = RULES.index("excluded")
    scores = np.where(is_varying & ~is_excluded, closeness / (closeness.max() or 1.0) - 2.0, -np.inf)
    # Written stage by stage, so that the last stage in which a unit is non-zero remains.
    stage_of = np.repeat(np.arange(len(counts)), counts)
    rules[units] = RULES.index("path")
    scores[units] = (stage_of + norms / (norms.max(initial=0.0) * (1.0 + 1e-9) or 1.0)) / len(counts) - 1.0
    last, last_norms = occupied.last()
    rules[last] = RULES.index("weight")
    scores[last] = last_norms
    rules[is_included] = RULES.index("included")
    scores[is_included] = np.maximum(scores[is_included], 0.0)
    lift_included(scores, is_included)
    return rules, scores


def lift_included(scores: Array, is_included: Array) -> None:
    """Rank the included units above all others, in their own order."""
    if is_included.any():
        top = float(scores[~is_included].max(initial=0.0)) or 1.0
        own = scores[is_included]
        scores[is_included] = top * (2.0 + own / (own.max() or 1.0))
