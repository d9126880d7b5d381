"""CFS: subset search by correlation with the class and redundancy within the subset."""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from l20fs.methods._discretise import discretise, entropies, symmetrical_uncertainty
from l20fs.methods._method import COUNT, About, Method, Scored, Targets, rules
from l20fs.objective.prox import order_descending
from l20fs.typing import Array, Size

# A merit that differs by less than rounding is no improvement.
_LEAST_GAIN = 1e-12


@dataclass(eq=False, repr=False)
class CFS(Method):
    r"""Search for the subset of features with the largest correlation-based merit.

    .. math:: \mathrm{merit}(S) = \sum_{j \in S} SU(j, y) \Big/ \sqrt{|S| + 2 \sum_{i < j \in S} SU(i, j)}

    with the symmetrical uncertainty SU of binned features. Best-first search goes forward from the empty set: the subset of
    largest merit that has not been expanded is extended by every other feature, until ``max_stale`` expansions in a row
    have not improved the merit. The features of the best subset are ranked first, in the order in which they were added,
    then the others by SU(j, y).

    Parameters
    ----------
    n_features_to_select : int, float or None, default=20
        Number of features to select, or fraction of all features; None selects the best subset.
    binning : {"width", "quantile", "sigma3", "floor", "mdlp"}, default="mdlp"
        Discretisation of the features, see :func:`l20fs.methods._discretise.discretise`.
    n_bins : int, default=10
        Number of bins for ``binning="width"`` and ``"quantile"``.
    tau : float, default=1.0
        Half width of the middle bin in standard deviations, for ``binning="sigma3"``.
    max_stale : int, default=5
        Number of consecutive expansions without improvement after which the search ends; 1 is greedy forward selection.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Reversed rank, so that larger is better; ``-inf`` for a constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    merit_ : float
        Merit of the best subset.
    n_subset_ : int
        Size of the best subset; 0 if no feature is informative about the class.
    classes_ : array of shape (n_classes,)
        Class labels in sorted order.

    References
    ----------
    .. [1] M. A. Hall, "Correlation-based feature selection for machine learning", PhD thesis, University of Waikato (1999).

    Examples
    --------
    >>> X = [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 1, 1], [1, 1, 0], [1, 1, 1]]
    >>> cfs = CFS(None, binning="floor").fit(X, ["a", "a", "a", "b", "b", "b"])
    >>> cfs.get_support(indices=True), cfs.merit_
    (array([0]), 1.0)
    """

    allows_none = True
    about = About(
        "Hall, Correlation-based feature selection for machine learning (1999)",
        "filter",
        "O(k N d)",
    )
    takes_any_size = True

    checks = rules(max_stale=COUNT)

    n_features_to_select: int | float | None = 20  # type: ignore[assignment]  # None is the best subset
    _: KW_ONLY
    binning: str = "mdlp"
    n_bins: int = 10
    tau: float = 1.0
    max_stale: int = 5

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
    """Features in the order in which they were added, with the running sums that make up their merit.

    ``relevance`` is summed over the features, ``redundancy`` over their pairs; ``redundancy_with`` is the sum of their
    redundancies with each of all features. With these sums, adding a feature is one vector addition.
    """

    features: tuple[int, ...]
    relevance: float
    redundancy: float
    redundancy_with: Array

    @property
    def merit(self) -> float:
        """Merit of the subset; 0 if it is empty."""
        return float(merit_of(max(len(self.features), 1), self.relevance, self.redundancy))


def merit_of(n: int, relevance: Any, redundancy: Any) -> Any:
    """Compute the merit of ``n`` features from their summed relevances and their summed pairwise redundancies.

    Examples
    --------
    >>> merit_of(2, relevance=0.5 + 0.5, redundancy=1.0)  # a copy adds nothing
    np.float64(0.5)
    """
    return relevance / np.sqrt(n + 2.0 * redundancy)


def best_first(relevance: Array, redundancy_with: Callable[[int], Array], *, max_stale: int) -> Subset:
    """Search for a subset of large merit, best first.

    ``redundancy_with(j)`` returns the redundancy of all features with feature j; it is called once for each feature that
    enters an expanded subset.
    """
    column_of = functools.cache(redundancy_with)
    best = Subset((), 0.0, 0.0, np.zeros(len(relevance)))
    frontier = Frontier()
    subset: Subset | None = best
    n_stale = 0
    while subset is not None and n_stale < max_stale:
        features, merits = extensions(subset, relevance)
        frontier.add(subset, features, merits)
        n_stale += 1
        if len(merits) and merits[0] > best.merit + _LEAST_GAIN:
            best = add_feature(subset, int(features[0]), relevance, column_of)
            n_stale = 0
        following = frontier.pop()
        subset = None if following is None else add_feature(*following, relevance, column_of)
    return best


def extensions(subset: Subset, relevance: Array) -> tuple[Array, Array]:
    """Return the other features, best first, and the merits of the subset extended by each of them."""
    merits = merit_of(len(subset.features) + 1, subset.relevance + relevance, subset.redundancy + subset.redundancy_with)
    merits[list(subset.features)] = -np.inf
    order = order_descending(merits)[: len(merits) - len(subset.features)]
    return order, merits[order]


def add_feature(subset: Subset, feature: int, relevance: Array, column_of: Callable[[int], Array]) -> Subset:
    """Return a subset extended by one feature."""
    return Subset(
        (*subset.features, feature),
        subset.relevance + float(relevance[feature]),
        subset.redundancy + float(subset.redundancy_with[feature]),
        subset.redundancy_with + column_of(feature),
    )


class Frontier:
    """Priority queue of subsets to expand, each set of features at most once."""

    def __init__(self) -> None:
        #: The best extension of each subset that is left: minus its merit, a number, the others, the subset.
        self._heads: list[tuple[float, int, Iterator[tuple[float, int]], Subset, int]] = []
        self._seen: set[frozenset[int]] = set()
        self._numbers = count()

    def add(self, subset: Subset, features: Array, merits: Array) -> None:
        """Add the extensions of a subset, best first."""
        self._push(next(self._numbers), zip(merits.tolist(), features.tolist(), strict=True), subset)

    def pop(self) -> tuple[Subset, int] | None:
        """Remove and return the subset and the feature to add with the largest merit; None if the queue is empty."""
        while self._heads:
            _, number, others, subset, feature = heapq.heappop(self._heads)
            self._push(number, others, subset)
            extended = frozenset((*subset.features, feature))
            if extended not in self._seen:
                self._seen.add(extended)
                return subset, feature
        return None

    def _push(self, number: int, others: Iterator[tuple[float, int]], subset: Subset) -> None:
        for merit, feature in others:
            heapq.heappush(self._heads, (-merit, number, others, subset, feature))
            return
