"""MRMR: greedy selection by maximum relevance and minimum redundancy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from l20fs.inputs.devices import as_numpy
from l20fs.methods._columns import Columns
from l20fs.methods._discretise import discretise, entropies, mutual_information
from l20fs.methods._method import About, Method, Scored, Targets, choice, rules
from l20fs.methods.fisher import class_scatter
from l20fs.objective.prox import order_descending
from l20fs.typing import Array

VARIANTS = ("mid", "miq", "fcq", "fcd")

# Lower bounds on the redundancy in a quotient.
_LEAST_CORRELATION = 1e-3
_LEAST_INFORMATION = 1e-12
# Correlations from here on are those of duplicates.
_COPY = 1.0 - 1e-12
# An infinite F is replaced by this number, so that redundancy still distinguishes such features.
_LARGEST_F = 1e150


@dataclass(eq=False, repr=False, kw_only=True)
class MRMR(Method):
    r"""Select features greedily by maximum relevance and minimum redundancy.

    The first feature has the largest relevance; every further one maximises

    .. math:: \mathrm{rel}_j - \frac{1}{|S|} \sum_{s \in S} \mathrm{red}_{js}
        \quad\text{or}\quad \mathrm{rel}_j \Big/ \frac{1}{|S|} \sum_{s \in S} \mathrm{red}_{js}

    over the features not yet in S; ties go to the lower index.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        Number of features to select, or fraction of all features.
    variant : {"mid", "miq", "fcq", "fcd"}, default="mid"
        ``"mid"`` and ``"miq"``: relevance and redundancy are mutual information of binned features with the class and with
        each other, in bits, combined as difference or quotient. ``"fcq"`` and ``"fcd"``: F statistic and absolute
        correlation of the values, combined as quotient or difference.
    binning : {"width", "quantile", "sigma3", "floor", "mdlp"}, default="width"
        Discretisation for ``"mid"`` and ``"miq"``, see :func:`l20fs.methods._discretise.discretise`. ``"floor"`` keeps
        integers as they are.
    n_bins : int, default=10
        Number of bins for ``binning="width"`` and ``"quantile"``.
    tau : float, default=1.0
        Half width of the middle bin in standard deviations, for ``binning="sigma3"``.
    max_features : int or None, default=None
        Number of features to select greedily; the others follow in the order of the last criterion. None:
        ``n_features_to_select``, but at least 100.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Reversed rank, so that larger is better; ``-inf`` for a constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    step_scores_ : array of shape (n_steps,)
        Value of the criterion at which each feature was selected, in the order of ``ranking_``.
    classes_ : array of shape (n_classes,)
        Class labels in sorted order.

    References
    ----------
    .. [1] H. Peng, F. Long and C. Ding, "Feature selection based on mutual information: criteria of max-dependency,
       max-relevance, and min-redundancy", IEEE Transactions on Pattern Analysis and Machine Intelligence 27 (2005).
    .. [2] C. Ding and H. Peng, "Minimum redundancy feature selection from microarray gene expression data", Journal of
       Bioinformatics and Computational Biology 3 (2005); the variants "fcq" and "fcd".

    Examples
    --------
    The second column repeats the first; the third is less relevant, but not redundant.

    >>> y = np.arange(8)
    >>> X = np.column_stack([y // 2, y // 2, y % 2])
    >>> MRMR(2, binning="floor").fit(X, y).ranking_
    array([1, 3, 2])
    """

    about = About(
        "Peng, Long, Ding, Feature selection based on mutual information: criteria of max-dependency, "
        "max-relevance, and min-redundancy (TPAMI 2005)",
        "filter",
        "O(k N d)",
    )
    takes_any_size = True
    takes_device_arrays = True

    checks = rules(variant=choice(*VARIANTS))

    variant: str = "mid"
    binning: str = "width"
    n_bins: int = 10
    tau: float = 1.0
    max_features: int | None = None

    def _score_features(self, X: Any, targets: Targets) -> Scored:
        n_features = X.shape[1]
        n_steps = self.max_features or max(self._n_wanted(self.n_features_to_select, self.n_features_in_), 100)
        if self.variant in ("mid", "miq"):
            assert targets.codes is not None  # needs_labels
            relevance, redundancy = information_terms(X, targets.codes, self.binning, self.n_bins, self.tau)
        else:
            relevance, redundancy = correlation_terms(X, targets)
        order, self.step_scores_ = greedy_order(relevance, redundancy, CRITERIA[self.variant], min(n_steps, n_features))
        return Scored(scores=np.arange(n_features, 0, -1.0)[np.argsort(order)], order=order)


def greedy_order(
    relevance: Array, redundancy_with: Callable[[int], Array], criterion: Callable[[Array, Array], Array], n_steps: int
) -> tuple[Array, Array]:
    """Select ``n_steps`` features greedily; the others follow in the order of the last criterion.

    Return the order of all features, and the criterion of those that were selected.

    ``redundancy_with(s)`` returns the redundancy of all features with feature s, ``criterion(relevance, mean_redundancy)``
    the value to maximise. A running sum of redundancies is kept, so that a step costs one call.
    """
    is_left = np.ones(len(relevance), dtype=bool)
    total = np.zeros(len(relevance))
    value = relevance
    taken: list[int] = []
    step_scores: list[float] = []
    for n_taken in range(n_steps):
        if n_taken:
            total += redundancy_with(taken[-1])
            value = criterion(relevance, total / n_taken)
        left = np.flatnonzero(is_left)
        best = int(left[first_largest(value[left])])
        is_left[best] = False
        taken.append(best)
        step_scores.append(float(value[best]))
    rest = np.flatnonzero(is_left)
    order = np.concatenate([np.array(taken, dtype=np.intp), rest[order_descending(value[rest])]])
    return order, np.array(step_scores)


def first_largest(values: Array) -> int:
    """Return the lowest index of the largest value; values that differ by rounding error are tied.

    Examples
    --------
    >>> first_largest(np.array([0.3, 0.1 + 0.2, 0.2]))
    0
    """
    top = values.max()
    if not np.isfinite(top):
        return int(np.argmax(values))
    return int(np.argmax(values >= top - 1e-12 * max(1.0, abs(top))))


def information_terms(X: Any, codes: Array, binning: str, n_bins: int, tau: float) -> tuple[Array, Callable[[int], Array]]:
    """Return the mutual information of binned features with the class, and a function that returns that with a feature."""
    binned = discretise(X, binning, n_bins=n_bins, tau=tau, labels=codes)
    own = entropies(binned)

    def information_with(feature: int) -> Array:
        return mutual_information(binned, as_numpy(binned.codes[:, feature]), own=own)

    return mutual_information(binned, codes, own=own), information_with


def correlation_terms(X: Any, targets: Targets) -> tuple[Array, Callable[[int], Array]]:
    """Return the F statistic of every feature, and a function that returns the absolute correlations with a feature.

    Features without relevance get ``-inf`` and come after all others, duplicates included.
    """
    columns = Columns(X).centred()
    columns = columns.divided(columns.peaks())  # both statistics are scale invariant, but squares of huge values overflow
    relevance = f_statistic(columns, targets)
    unit = columns.divided(columns.xp.sqrt(columns.squares()))

    def correlations_with(feature: int) -> Array:
        own = unit.take(np.array([feature])).on_host()
        correlation = np.abs(unit.place.fetch(unit.pull(unit.place.send(own))[:, 0]))
        correlation[correlation >= _COPY] = 1.0
        return np.maximum(correlation, _LEAST_CORRELATION)

    return np.where(relevance > 0.0, relevance, -np.inf), correlations_with


def f_statistic(X: Any, targets: Targets) -> Array:
    """Return the F statistic of a one-way analysis of variance for every feature, 1e150 if it is constant in each class.

    X is an array, or centred :class:`~l20fs.methods._columns.Columns`.
    """
    n_samples, n_classes = targets.Y.shape
    between, total = class_scatter(X, targets)
    within = total - between
    is_pure = within <= total * (n_samples * np.finfo(np.float64).eps)
    ratio = np.divide(between, within, out=np.full_like(between, _LARGEST_F), where=~is_pure)
    return np.where(is_pure, _LARGEST_F, ratio * ((n_samples - n_classes) / (n_classes - 1)))


def difference(relevance: Array, redundancy: Array) -> Array:
    """Return relevance minus redundancy."""
    return relevance - redundancy


def information_quotient(relevance: Array, redundancy: Array) -> Array:
    """Return relevance over redundancy, both in bits."""
    return relevance / (redundancy + _LEAST_INFORMATION)


def correlation_quotient(relevance: Array, redundancy: Array) -> Array:
    """Return relevance over redundancy; 0 for a duplicate of every selected feature."""
    return np.where(redundancy == 1.0, np.minimum(relevance, 0.0), relevance / redundancy)


CRITERIA = {"mid": difference, "miq": information_quotient, "fcq": correlation_quotient, "fcd": difference}
