"""Ranking rules of the rows of a path."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from l20fs.objective.panel_completion import Admission, complete
from l20fs.objective.panel_rules import PanelRules
from l20fs.objective.row_penalty import RowPenalty
from l20fs.typing import Array

#: Ranking rules of the features; ``SolutionPath.rules``, which is stored in files, holds the position in this tuple. All but
#: the last are in the order of the ranking; ``"required"`` comes after ``"included"``.
RULES = ("included", "weight", "entry", "path", "gradient", "constant", "excluded", "required")


def count_units(unit_of: Array) -> int:
    """Return the number of units, which are numbered by their lowest feature.

    Examples
    --------
    >>> count_units(np.array([0, 1, 2])), count_units(np.array([0, 1, 0]))
    (3, 2)
    """
    last = len(unit_of) - 1
    return last + 1 if unit_of[-1] == last else int(unit_of.max()) + 1


class Occupied(NamedTuple):
    """Units of all stages: number per stage, indices and norms, stage after stage."""

    counts: Array
    units: Array
    norms: Array

    @classmethod
    def of(cls, n_nonzero: Array, indices: Array, norms: Array, unit_of: Array) -> Occupied:
        """Gather the rows of each stage into units; the norm of a unit is that of its rows together."""
        n_units = count_units(unit_of)
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

    def scores(self) -> Array:
        """Return a score from -1 to 0 for each unit of each stage; that of the last stage in which it is counts."""
        stage_of = np.repeat(np.arange(len(self.counts)), self.counts)
        return (stage_of + self.norms / (self.norms.max(initial=0.0) * (1.0 + 1e-9) or 1.0)) / len(self.counts) - 1.0


def score_rows(occupied: Occupied, closeness: Array, varies: Array, penalty: RowPenalty) -> tuple[Array, Array]:
    """Give every unit its ranking rule and a score that falls along the ranking."""
    is_varying = varies
    if penalty.has_groups:
        is_varying = np.zeros(penalty.n_units, dtype=bool)
        is_varying[penalty.unit_of[varies]] = True
    scores = scores_off_path(closeness, is_varying)
    rules = np.where(np.isfinite(scores), RULES.index("gradient"), RULES.index("constant")).astype(np.int8)
    if not penalty.is_plain:
        is_excluded = penalty.costs == np.inf
        rules[is_excluded], scores[is_excluded] = RULES.index("excluded"), -np.inf
    rules[occupied.units], scores[occupied.units] = RULES.index("path"), occupied.scores()  # the last one stays
    last, last_norms = occupied.last()
    rules[last], scores[last] = RULES.index("weight"), last_norms
    if len(penalty.included):
        is_included = penalty.costs == 0.0
        rules[is_included] = RULES.index("included")
        scores[is_included] = np.maximum(scores[is_included], 0.0)
        lift(scores, is_included)
    return rules, scores


def scores_off_path(closeness: Array, varies: Array) -> Array:
    """Score the units that were never selected, from -2 to -1 and below all others.

    Examples
    --------
    >>> scores_off_path(np.array([2.0, 4.0, 0.0]), np.array([True, True, False]))
    array([-1.5, -1. , -inf])
    """
    return np.where(varies, closeness / (closeness.max() or 1.0) - 2.0, -np.inf)


def lift(scores: Array, is_first: Array) -> None:
    """Rank some units above all others, in their own order."""
    if is_first.any():
        top = float(scores[~is_first].max(initial=0.0)) or 1.0
        own = scores[is_first]
        scores[is_first] = top * (2.0 + own / (own.max() or 1.0))


def split_by_rules(order: Array, n_last: int, included: Array, rules: PanelRules, size: int) -> tuple[Array, Array]:
    """Return the units that a panel needs for the lower limits, and those that do not fit beside the ones before them.

    With the needed units first and without those that do not fit, the first k units of the ranking meet the rules for every
    k from the number of needed units on.

    Parameters
    ----------
    order : array of int
        Units that may be selected and are not included, best first.
    n_last : int
        How many of them are those of the last stage.
    included : array of int
    rules : PanelRules
    size : int
        Number of units that a panel shall be able to have.
    """
    ranks = np.full(rules.weights.shape[1], len(order))
    ranks[order] = np.arange(len(order))
    may_enter = ranks < len(order)
    # The last stage may be in the way of a panel of ``size`` units: it lacks units that bring nothing, even if lower limits
    # ask for them, and at a given lambda it may be larger, with no panel of that size in it. Then its last units give way.
    for n_kept in range(n_last, -1, -1):
        panel = np.concatenate([included, order[:n_kept]])
        found = complete(rules, may_enter, panel, max(size, len(panel)))
        if found is None or len(found.whole) < size:
            continue
        within = np.zeros_like(may_enter)
        within[found.least] = True
        required = complete(rules, may_enter & within, included, len(found.least), order=ranks)
        assert required is not None, "the least panel is one"
        if len(required.least) <= size:
            break
    assert found is not None, "the included units have a completion"
    assert required is not None
    admission, chosen, rest = Admission(rules, found), found.least.tolist(), order[~within[order]]
    barred = [rest[:0]]
    while rules.is_capped and len(chosen) < admission.n_whole:
        n_skipped = int(admission.mask(chosen)[rest].argmax())
        admission.follow(int(rest[n_skipped]), chosen)
        chosen.append(int(rest[n_skipped]))
        barred.append(rest[:n_skipped])
        rest = rest[n_skipped + 1 :]
    barred.append(rest[~rules.fit_in_turn(chosen, rest)])
    return np.setdiff1d(required.least, included), np.concatenate(barred)
