"""ReliefF and Relief: differences of features between nearest neighbours of different classes and of one class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from l20fs.estimators.base import About
from l20fs.estimators.scoring import Scored, ScoringSelector
from l20fs.inputs.devices import Place
from l20fs.inputs.targets import Targets
from l20fs.inputs.validation import check_choice, check_number
from l20fs.methods import _columns
from l20fs.methods._columns import Columns, as_columns, squared_column_norms
from l20fs.typing import Array

Variant = Literal["relieff", "nearest", "feast"]
#: Maps distances and same-class masks, both (n_rows, n_samples), to the hit and the miss of each row.
Search = Callable[[Array, Array], tuple[Array, Array]]

#: Distances held in memory at a time: 32 MB of float64.
DISTANCES_AT_A_TIME = 2**22
#: Differences held in memory at a time: 1 MB, which fits into the cache of a processor.
DIFFERENCES_AT_A_TIME = 2**17
#: Distances that agree to this many bits, 12 decimal digits, are tied.
DISTANCE_BITS = 40


class ReliefF(ScoringSelector):
    r"""Rank features by their differences to near misses less their differences to near hits.

    With every feature scaled to the range 0 to 1, Manhattan distances, the k nearest neighbours :math:`M_{ic}` of sample i
    in class c (without i itself) and the class shares :math:`\pi_c`,

    .. math:: w_j = \frac1N \sum_i \Big[ \sum_{c \ne y_i} \frac{\pi_c}{1 - \pi_{y_i}}
              \operatorname*{mean}_{m \in M_{ic}} |x_{ij} - x_{mj}|
              - \operatorname*{mean}_{h \in M_{i y_i}} |x_{ij} - x_{hj}| \Big]

    A hit is a neighbour of the same class, a miss one of another class. A class with fewer than k neighbours contributes
    those it has; the only sample of a class has no hits. Neighbours are found in all features together, so that features
    that are informative only jointly score high, as long as noise features do not dominate the distances.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        Number of features to select, or fraction of all features.
    variant : {"relieff", "nearest", "feast"}, default="relieff"
        ``"relieff"`` is the formula above. ``"nearest"`` is the original Relief: one nearest hit and one nearest miss (of
        any other class) by Euclidean distance on the unscaled X, and squared differences of scaled features. ``"feast"`` is
        Relief as in the FEAST toolbox, which visits samples by increasing distance until it has met both a hit and a miss
        and uses the last of each: where several hits precede the first miss, the farthest of them, and likewise for misses.
    n_neighbors : int, default=10
        Number of neighbours per class, k in the formula (``variant="relieff"``).

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Weight :math:`w_j`; ``-inf`` for a constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    classes_ : array of shape (n_classes,)
        Class labels in sorted order.

    References
    ----------
    .. [1] I. Kononenko, "Estimating attributes: analysis and extensions of RELIEF", European Conference on Machine Learning
       (1994).
    .. [2] K. Kira and L. A. Rendell, "A practical approach to feature selection", International Conference on Machine
       Learning (1992); the variant "nearest".

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]
    >>> ReliefF(1).fit(X, ["a", "a", "b", "b"]).get_support(indices=True)
    array([0])
    """

    about = About(
        reference="Kononenko, Estimating attributes: analysis and extensions of RELIEF (1994); "
        "Kira and Rendell, A practical approach to feature selection (1992)",
        kind="filter",
        cost="O(N^2 d)",
    )
    takes_any_size = True
    takes_device_arrays = True

    def __init__(
        self, n_features_to_select: int | float = 20, *, variant: Variant = "relieff", n_neighbors: int = 10
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.variant = variant
        self.n_neighbors = n_neighbors

    def _check_parameters(self) -> None:
        check_choice("variant", self.variant, ("relieff", "nearest", "feast"))
        check_number("n_neighbors", self.n_neighbors, minimum=1, strict=False, whole=True)

    def _score_features(self, X: Any, targets: Targets) -> Scored:
        codes = targets.Y.argmax(axis=1)
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
    return weighted_differences(scaled, sp.vstack(blocks, format="csr")) / len(codes)


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


def distances_by_row(X: Any, metric: str) -> Iterator[tuple[Array, Array]]:
    """Yield blocks of sample indices with their distances to all samples; the distance to itself is infinite.

    Distances are rounded to ``DISTANCE_BITS``, so that rounding errors do not decide between equal distances.
    """
    columns = as_columns(X)
    n_samples = columns.shape[0]
    n_rows = max(1, DISTANCES_AT_A_TIME // n_samples)
    for start in range(0, n_samples, n_rows):
        mantissa, exponent = np.frexp(distances_from(columns, slice(start, min(start + n_rows, n_samples)), metric))
        np.rint(np.ldexp(mantissa, DISTANCE_BITS, out=mantissa), out=mantissa)
        distances = np.ldexp(mantissa, exponent - DISTANCE_BITS, out=mantissa)
        rows = np.arange(start, start + len(distances))
        distances[rows - start, rows] = np.inf
        yield rows, distances


def distances_from(columns: Columns, rows: slice, metric: str) -> Array:
    """Return the distances of some samples to all samples, on the host."""
    if columns.place.is_host:
        ((_, X),) = columns.parts()
        return cdist(X[rows], X, metric)
    xp, total = columns.xp, 0.0
    for _, part in columns.parts():
        # Differences of several samples at once where features are few; the Gram matrix would lose digits.
        step, blocks = max(1, _columns.PART_ELEMENTS // max(1, part.shape[0] * part.shape[1])), []
        for start in range(rows.start, rows.stop, step):
            differences = part[start : min(start + step, rows.stop), None, :] - part[None, :, :]
            blocks.append(xp.sum(xp.abs(differences) if metric == "cityblock" else differences * differences, axis=2))
        total = total + xp.concat(blocks, axis=0)
    return columns.place.fetch(total if metric == "cityblock" else xp.sqrt(total))


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


def nearest(distances: Array, k: int) -> Array:
    """Return a mask of the k smallest distances of each row; ties go to the higher index.

    Examples
    --------
    >>> nearest(np.array([[1.0, 2.0, 0.0, 2.0, 2.0]]), 3)
    array([[ True, False,  True, False,  True]])
    """
    kth = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    is_closer, is_tied = distances < kth, distances == kth
    n_open = k - is_closer.sum(axis=1, keepdims=True)
    n_tied_from_here = np.cumsum(is_tied[:, ::-1], axis=1)[:, ::-1]
    return is_closer | (is_tied & (n_tied_from_here <= n_open))


def weighted_differences(X: Any, weights: sp.csr_array) -> Array:
    """Return the sum of ``weights[i, m] * |X[i] - X[m]|`` over all pairs, for every feature, on the host.

    Examples
    --------
    >>> weighted_differences(np.array([[0.0, 5.0], [2.0, 2.0]]), sp.csr_array([[0.0, 10.0], [1.0, 0.0]]))
    array([22., 33.])
    """
    # The difference is symmetric and most neighbours are mutual, so adding both weights halves the work.
    pairs = sp.triu(weights + weights.T, k=1, format="csr")
    most = max(1, int(np.diff(pairs.indptr).max()))
    columns = as_columns(X)
    return columns.place.fetch(
        columns.joined(
            [sum_differences(strip, pairs) for _, strip in columns.strips(width=max(64, DIFFERENCES_AT_A_TIME // most))]
        )
    )


def sum_differences(strip: Any, pairs: sp.csr_array) -> Any:
    """Return the weighted sum of the differences of all pairs, for each column of a strip of X, where it is."""
    place = Place(strip)
    total = place.xp.zeros_like(strip[0, :])
    if place.is_host:  # sample by sample, in the cache of a processor
        for i, (begin, end) in enumerate(zip(pairs.indptr[:-1], pairs.indptr[1:], strict=True)):
            differences = strip[pairs.indices[begin:end]]
            differences -= strip[i]
            np.abs(differences, out=differences)
            total += pairs.data[begin:end] @ differences
        return total
    listed, step = pairs.tocoo(), max(1, _columns.PART_ELEMENTS // strip.shape[1])
    for start in range(0, listed.nnz, step):
        first, second, shares = (place.send(of[start : start + step]) for of in (listed.row, listed.col, listed.data))
        ends = (place.xp.take(strip, samples, axis=0) for samples in (first, second))
        total = total + shares @ place.xp.abs(next(ends) - next(ends))
    return total


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
