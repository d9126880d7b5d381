"""ReliefF, RReliefF and Relief: differences of features between near samples whose targets differ, or do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp

from l20fs.methods._columns import Columns, squared_column_norms
from l20fs.methods._method import About, Method, Scored, Targets, choice, rules
from l20fs.methods._neighbours import distances_by_row, mean_differences, nearest, observed, weighted_differences
from l20fs.typing import Array, Task

Variant = Literal["relieff", "nearest", "feast"]
#: Maps distances and same-class masks, both (n_rows, n_samples), to the hit and the miss of each row.
Search = Callable[[Array, Array], tuple[Array, Array]]


@dataclass(eq=False, repr=False, kw_only=True)
class ReliefF(Method):
    r"""Rank features by their differences to near misses less their differences to near hits.

    With every feature scaled to the range 0 to 1, Manhattan distances, the k nearest neighbours :math:`M_{ic}` of sample i
    in class c (without i itself) and the class shares :math:`\pi_c`,

    .. math:: w_j = \frac1N \sum_i \Big[ \sum_{c \ne y_i} \frac{\pi_c}{1 - \pi_{y_i}}
              \operatorname*{mean}_{m \in M_{ic}} |x_{ij} - x_{mj}|
              - \operatorname*{mean}_{h \in M_{i y_i}} |x_{ij} - x_{hj}| \Big]

    A hit is a neighbour of the same class, a miss one of another class. A class with fewer than k neighbours contributes
    those it has; the only sample of a class has no hits. Neighbours are found in all features together, so that features
    that are informative only jointly score high, as long as noise features do not dominate the distances.

    Of numbers as targets the score is that of RReliefF [3]_: with the k nearest neighbours m of each sample i, and
    :math:`\tau_{im} = |y_i - y_m| / (\max y - \min y)`,

    .. math:: w_j = \frac{\sum \tau_{im} |x_{ij} - x_{mj}|}{\sum \tau_{im}}
              - \frac{\sum (1 - \tau_{im}) |x_{ij} - x_{mj}|}{\sum (1 - \tau_{im})}

    Missing values (NaN) are left out: a distance is the mean over the features that both samples have, and the means and
    sums of feature j are over the neighbours with a value of it, of samples that have one too.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        Number of features to select, or fraction of all features.
    variant : {"relieff", "nearest", "feast"}, default="relieff"
        ``"relieff"`` is the formula above. ``"nearest"`` is the original Relief: one nearest hit and one nearest miss (of
        any other class) by Euclidean distance on the unscaled X, and squared differences of scaled features. ``"feast"`` is
        Relief as in the FEAST toolbox, which visits samples by increasing distance until it has met both a hit and a miss
        and uses the last of each: where several hits precede the first miss, the farthest of them, and likewise for misses.
        Only ``"relieff"`` takes numbers as targets and missing values.
    n_neighbors : int, default=10
        Number of neighbours per class, or in all where the targets are numbers: k in the formula (``variant="relieff"``).
    task : {"auto", "classification", "regression"}, default="auto"
        What y holds: labels, or numbers. ``"auto"``: numbers if it has fractions, else labels; with a warning if it takes
        numbers for labels and most of these classes have one or two samples.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Weight :math:`w_j`; ``-inf`` for a feature that is constant, or missing altogether.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    classes_ : array of shape (n_classes,)
        Class labels in sorted order, if y holds labels.

    References
    ----------
    .. [1] I. Kononenko, "Estimating attributes: analysis and extensions of RELIEF", European Conference on Machine Learning
       (1994).
    .. [2] K. Kira and L. A. Rendell, "A practical approach to feature selection", International Conference on Machine
       Learning (1992); the variant "nearest".
    .. [3] M. Robnik-Šikonja and I. Kononenko, "Theoretical and empirical analysis of ReliefF and RReliefF", Machine Learning
       53 (2003).

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]
    >>> ReliefF(1).fit(X, ["a", "a", "b", "b"]).get_support(indices=True)
    array([0])
    >>> ReliefF(1, n_neighbors=2).fit(X, [0.1, 0.2, 4.9, 5.3]).get_support(indices=True)
    array([0])
    """

    about = About(
        "Kononenko, Estimating attributes: analysis and extensions of RELIEF (1994); "
        "Kira and Rendell, A practical approach to feature selection (1992); "
        "Robnik-Sikonja and Kononenko, Theoretical and empirical analysis of ReliefF and RReliefF (2003)",
        "filter",
        "O(N^2 d)",
    )
    takes_any_size = True
    takes_device_arrays = True

    checks = rules(variant=choice(*get_args(Variant)))

    variant: Variant = "relieff"
    n_neighbors: int = 10
    task: Task = "auto"

    @property
    def takes_numbers(self) -> bool:  # type: ignore[override]
        """Whether y may hold numbers: not for the variants of Relief, which is about classes."""
        return self.variant == "relieff"

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        """Whether X may have missing values: not for the variants of Relief, whose distances need all values."""
        return self.variant == "relieff"

    def _score_features(self, X: Any, targets: Targets) -> Scored:
        if targets.codes is None:
            return Scored(scores=rrelieff_scores(X, targets.Y[:, 0], int(self.n_neighbors)))
        codes = targets.codes
        if self.variant == "relieff":
            return Scored(scores=relieff_scores(X, codes, targets.Y.mean(axis=0), int(self.n_neighbors)))
        search = find_nearest if self.variant == "nearest" else walk_like_feast
        return Scored(scores=relief_scores(X, codes, search))


def relieff_scores(X: Any, codes: Array, priors: Array, n_neighbors: int) -> Array:
    """Compute the ReliefF scores.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Data.
    codes : array of shape (n_samples,)
        Class of each sample, from 0 to n_classes - 1.
    priors : array of shape (n_classes,)
        Weight of each class among the misses; their sum is 1.
    n_neighbors : int
        Number of neighbours per class.

    Returns
    -------
    array of shape (n_features,)
        Scores.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0]])
    >>> relieff_scores(X, np.array([0, 0, 1, 1]), np.array([0.5, 0.5]), n_neighbors=1)
    array([ 1., -1.])
    """
    scaled = Columns(X).in_unit_range()
    blocks = [
        sp.csr_array(weigh_neighbours(distances, rows, codes, priors, n_neighbors))
        for rows, distances in distances_by_row(scaled, "cityblock")
    ]
    weights = sp.vstack(blocks, format="csr")
    if observed(scaled) is None:
        return weighted_differences(scaled, weights) / len(codes)
    return mean_differences(scaled.on_host(), weights, codes) / len(codes)


def rrelieff_scores(X: Any, y: Array, n_neighbors: int) -> Array:
    """Compute the RReliefF scores, for numbers as targets.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Data.
    y : array of shape (n_samples,)
        Targets, of which two differ.
    n_neighbors : int
        Number of neighbours.

    Returns
    -------
    array of shape (n_features,)
        Scores. Where no neighbours differ in their targets, or all do as much as two can, the term about them is 0.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0]])
    >>> rrelieff_scores(X, np.array([0.0, 0.0, 1.0, 1.0]), n_neighbors=3)
    array([ 1. , -0.5])
    """
    scaled, goals = Columns(X).in_unit_range(), Columns(y[:, None]).in_unit_range().on_host()[:, 0]
    k = min(n_neighbors, len(y) - 1)
    blocks = [sp.csr_array(nearest(distances, k).astype(float)) for _, distances in distances_by_row(scaled, "cityblock")]
    near = sp.vstack(blocks, format="csr")
    apart = near.copy()
    apart.data = np.abs(goals[near.nonzero()[0]] - goals[near.indices])
    of_both, of_all = weighted_differences(scaled, apart), weighted_differences(scaled, near)
    n_apart, n_pairs = (count_pairs(weights, observed(scaled)) for weights in (apart, near))
    return _shares(of_both, n_apart) - _shares(of_all - of_both, n_pairs - n_apart)


def count_pairs(weights: sp.csr_array, is_seen: Array | None) -> Any:
    """Return the sum of the weights of all pairs; per feature, of those that have a value of it, where some are missing."""
    if is_seen is None:
        return np.float64(weights.sum())
    return (is_seen * (weights @ is_seen.astype(np.float64))).sum(axis=0)


def _shares(values: Array, totals: Any) -> Array:
    return np.divide(values, totals, out=np.zeros_like(values), where=totals > 0.0)


def relief_scores(X: Any, codes: Array, search: Search) -> Array:
    """Compute the Relief scores from one hit and one miss per sample, which ``search`` finds.

    The only sample of a class has no hit.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0]])
    >>> relief_scores(X, np.array([0, 0, 1, 1]), find_nearest)
    array([ 1., -1.])
    """
    raw = Columns(X)
    if raw.place.is_host:
        # Squares of huge or tiny values leave the range of float64; scaling by a power of two is exact.
        raw = Columns(np.ldexp(X, -np.frexp(np.abs(X).max())[1]))
    hits, misses = np.empty(len(codes), dtype=np.intp), np.empty(len(codes), dtype=np.intp)
    for rows, distances in distances_by_row(raw, "euclidean"):
        hits[rows], misses[rows] = search(distances, codes[rows, None] == codes)
    scaled, has_hit = Columns(X).in_unit_range(), np.flatnonzero(np.bincount(codes)[codes] > 1)
    to_miss, of_hits, to_hit = (scaled.place.send(rows) for rows in (misses, has_hit, hits[has_hit]))
    take, found = scaled.xp.take, []
    for _, part in scaled.parts():
        of_miss = squared_column_norms(part - take(part, to_miss, axis=0))
        found.append(of_miss - squared_column_norms(take(part, of_hits, axis=0) - take(part, to_hit, axis=0)))
    return scaled.place.fetch(scaled.joined(found)) / len(codes)


def weigh_neighbours(distances: Array, rows: Array, codes: Array, priors: Array, n_neighbors: int) -> Array:
    """Return the weight of each pair in the ReliefF sum: negative for near hits, positive for near misses, else 0.

    ``rows`` are the samples of the rows of ``distances``, which has shape (n_rows, n_samples).
    """
    weights = np.zeros_like(distances)
    for label, prior in enumerate(priors):
        members = np.flatnonzero(codes == label)
        is_own = codes[rows] == label
        own, other = np.flatnonzero(is_own), np.flatnonzero(~is_own)
        n_hits, n_misses = min(n_neighbors, len(members) - 1), min(n_neighbors, len(members))
        if n_hits:
            weights[np.ix_(own, members)] = nearest(distances[np.ix_(own, members)], n_hits) / -n_hits
        share = prior / (1.0 - priors[codes[rows[other]]])
        is_near = nearest(distances[np.ix_(other, members)], n_misses)
        weights[np.ix_(other, members)] = is_near * (share / n_misses)[:, None]
    return weights


def find_nearest(distances: Array, is_same: Array) -> tuple[Array, Array]:
    """Return the nearest hit and the nearest miss of each row; ties go to the lower index.

    Examples
    --------
    >>> find_nearest(np.array([[np.inf, 3.0, 1.0, 2.0]]), np.array([[True, True, True, False]]))
    (array([2]), array([3]))
    """
    hits = np.where(is_same, distances, np.inf).argmin(axis=1)
    return hits, np.where(is_same, np.inf, distances).argmin(axis=1)


def walk_like_feast(distances: Array, is_same: Array) -> tuple[Array, Array]:
    """Visit samples by increasing distance until both a hit and a miss are met, and return the last of each.

    These two are adjacent in the order of distance: the search stops where the class first changes. A row without a hit
    gets its nearest miss.

    Examples
    --------
    >>> walk_like_feast(np.array([[np.inf, 3.0, 1.0, 2.0, 4.0]]), np.array([[True, False, True, True, False]]))
    (array([3]), array([1]))
    """
    order = np.argsort(distances, axis=1, kind="stable")[:, :-1]  # the last is the sample itself, infinitely far
    is_hit = np.take_along_axis(is_same, order, axis=1)
    stop = (is_hit != is_hit[:, :1]).argmax(axis=1)  # 0 where the class never changes
    at = np.arange(len(order))
    last, before = order[at, stop], order[at, np.maximum(stop - 1, 0)]
    ends_with_hit = is_hit[at, stop]
    return np.where(ends_with_hit, last, before), np.where(ends_with_hit, before, last)
