"""CFS: the subset whose features agree with the class and not with each other."""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from l20fs.estimators.base import About
from l20fs.estimators.scoring import Scored, ScoringSelector
from l20fs.inputs.targets import Targets
from l20fs.inputs.validation import check_number
from l20fs.methods._discretise import check_binning, discretise, entropies, symmetrical_uncertainty
from l20fs.objective.prox import order_descending
from l20fs.typing import Array, Size

# A merit that differs by less than rounding is no improvement.
_LEAST_GAIN = 1e-12


class CFS(ScoringSelector):
    r"""Search the subset of largest merit.

    .. math:: \mathrm{merit}(S) = \sum_{j \in S} SU(j, y) \Big/ \sqrt{|S| + 2 \sum_{i < j \in S} SU(i, j)}

    with the symmetrical uncertainty SU of binned features. The search goes forward from the empty set, best first: the most
    promising subset found so far is extended by every further feature, until ``max_stale`` extensions in a row have brought
    nothing better. The features of the best subset come first, in the order in which they were added, then the others
    by SU(j, y).

    Parameters
    ----------
    n_features_to_select : int, float or None, default=20
        A number or a share of all features; None takes the best subset as it is.
    binning : {"width", "quantile", "sigma3", "floor", "mdlp"}, default="mdlp"
        How numbers become states, see :func:`l20fs.methods._discretise.discretise`.
    n_bins : int, default=10
        States of the binnings "width" and "quantile".
    tau : float, default=1.0
        Standard deviations of the binning "sigma3".
    max_stale : int, default=5
        How many extensions in a row may bring nothing before the search ends; 1 is a greedy forward search.

    Attributes
    ----------
    merit_ : float
        Merit of the best subset.
    n_subset_ : int
        Its size; 0 if no feature says anything about the class.

    Examples
    --------
    >>> X = [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 1, 1], [1, 1, 0], [1, 1, 1]]
    >>> cfs = CFS(None, binning="floor").fit(X, ["a", "a", "a", "b", "b", "b"])
    >>> cfs.get_support(indices=True), cfs.merit_
    (array([0]), 1.0)
    """

    allows_none = True
    about = About(
        reference="Hall, Correlation-based feature selection for machine learning (1999)",
        kind="filter",
        cost="O(k N d)",
    )

    n_subset_: int

    def __init__(
        self,
        n_features_to_select: int | float | None = 20,
        *,
        binning: str = "mdlp",
        n_bins: int = 10,
        tau: float = 1.0,
        max_stale: int = 5,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.binning = binning
        self.n_bins = n_bins
        self.tau = tau
        self.max_stale = max_stale

    def _check_parameters(self) -> None:
        check_binning(self.binning, self.n_bins, self.tau)
        check_number("max_stale", self.max_stale, minimum=1, strict=False, whole=True)

    def _score_features(self, X: Array, targets: Targets) -> Scored:
        assert targets.codes is not None  # needs_labels
        binned = discretise(X, self.binning, n_bins=self.n_bins, tau=self.tau, labels=targets.codes)
        own = entropies(binned)
        relevance = symmetrical_uncertainty(binned, targets.codes, own=own)
        best = best_first(
            relevance, lambda j: symmetrical_uncertainty(binned, binned.codes[:, j], own=own), max_stale=self.max_stale
        )
        self.merit_ = best.merit
        self.n_subset_ = len(best.features)
        by_relevance = order_descending(relevance)
        rest = by_relevance[~np.isin(by_relevance, best.features)]
        order = np.concatenate([np.array(best.features, dtype=np.intp), rest])
        return Scored(scores=np.arange(len(order), 0, -1.0)[np.argsort(order)], order=order)

    def _n_wanted(self, k: Size, n_features: int) -> int:
        return self.n_subset_ if k is None else super()._n_wanted(k, n_features)


class Subset(NamedTuple):
    """Features in the order in which they were added, and the sums that their merit is made of.

    ``relevance`` is the sum over the features, ``redundancy`` that over their pairs, and ``redundancy_with`` the sum of
    their redundancies with every feature there is: with these a further feature costs no more than an addition.
    """

    features: tuple[int, ...]
    relevance: float
    redundancy: float
    redundancy_with: Array

    @property
    def merit(self) -> float:
        """0 for the empty set."""
        return float(merit_of(max(len(self.features), 1), self.relevance, self.redundancy))


class Extensions(NamedTuple):
    """A subset, the features that it may be extended by, best first, and the merits that this would give."""

    subset: Subset
    features: Array
    merits: Array


def merit_of(n: int, relevance: Any, redundancy: Any) -> Any:
    """Return the merit of ``n`` features from the sums of their relevances and of the redundancies of their pairs.

    Examples
    --------
    >>> merit_of(2, relevance=0.5 + 0.5, redundancy=1.0)  # a copy adds nothing
    np.float64(0.5)
    """
    return relevance / np.sqrt(n + 2.0 * redundancy)


def best_first(relevance: Array, redundancy_with: Callable[[int], Array], *, max_stale: int) -> Subset:
    """Find a subset of large merit.

    ``redundancy_with(j)`` gives the redundancy of all features with feature j; it is called once for each feature that
    enters a subset which is looked at.
    """
    column_of = functools.cache(redundancy_with)
    best = Subset((), 0.0, 0.0, np.zeros(len(relevance)))
    frontier = Frontier()
    subset: Subset | None = best
    n_stale = 0
    while subset is not None and n_stale < max_stale:
        extensions = extend(subset, relevance)
        frontier.add(extensions)
        n_stale += 1
        if len(extensions.merits) and extensions.merits[0] > best.merit + _LEAST_GAIN:
            best = add_feature(subset, int(extensions.features[0]), relevance, column_of)
            n_stale = 0
        following = frontier.pop()
        subset = None if following is None else add_feature(*following, relevance, column_of)
    return best


def extend(subset: Subset, relevance: Array) -> Extensions:
    """Weigh a subset's extensions by each of the other features."""
    merits = merit_of(len(subset.features) + 1, subset.relevance + relevance, subset.redundancy + subset.redundancy_with)
    merits[list(subset.features)] = -np.inf
    order = order_descending(merits)[: len(merits) - len(subset.features)]
    return Extensions(subset, order, merits[order])


def add_feature(subset: Subset, feature: int, relevance: Array, column_of: Callable[[int], Array]) -> Subset:
    """Extend a subset by one feature."""
    return Subset(
        (*subset.features, feature),
        subset.relevance + float(relevance[feature]),
        subset.redundancy + float(subset.redundancy_with[feature]),
        subset.redundancy_with + column_of(feature),
    )


class Frontier:
    """The subsets that wait to be looked at, each one once, whatever the order in which its features were added."""

    def __init__(self) -> None:
        self._lists: list[Extensions] = []
        self._heads: list[tuple[float, int, int]] = []
        self._seen: set[frozenset[int]] = set()

    def add(self, extensions: Extensions) -> None:
        """Take in a list of extensions; only its best one enters the heap until that is taken."""
        self._lists.append(extensions)
        self._push(len(self._lists) - 1, 0)

    def pop(self) -> tuple[Subset, int] | None:
        """Return the subset and the further feature that promise the most; None if all have been looked at."""
        while self._heads:
            _, number, place = heapq.heappop(self._heads)
            self._push(number, place + 1)
            subset, feature = self._lists[number].subset, int(self._lists[number].features[place])
            extended = frozenset((*subset.features, feature))
            if extended not in self._seen:
                self._seen.add(extended)
                return subset, feature
        return None

    def _push(self, number: int, place: int) -> None:
        if place < len(self._lists[number].merits):
            heapq.heappush(self._heads, (-float(self._lists[number].merits[place]), number, place))
