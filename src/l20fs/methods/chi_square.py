"""ChiSquare: test of independence between single binned features and the class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, gammaln

from l20fs.inputs.devices import Place
from l20fs.inputs.validation import check_flag
from l20fs.methods._columns import Columns
from l20fs.methods._discretise import Binned, blocks, contingency_tables, discretise
from l20fs.methods._method import About, Method, Scored, Targets, choice, rules
from l20fs.typing import Array


@dataclass(eq=False, repr=False, kw_only=True)
class ChiSquare(Method):
    r"""Rank features by Pearson's test of independence between their bins and the classes.

    .. math:: \chi^2_j = \sum_{b, c} \frac{(O_{bc} - E_{bc})^2}{E_{bc}}, \quad
        E_{bc} = \frac{1}{N} \sum_{c'} O_{bc'} \sum_{b'} O_{b'c}

    where :math:`O_{bc}` counts the samples of class c in bin b. Empty bins are left out.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        Number of features to select, or fraction of all features.
    counts : bool, default=False
        Whether X holds counts, such as words in texts. Their sums by class are then tested without binning, as in
        ``sklearn.feature_selection.chi2``; X must not be negative, and ``rank_by`` has no effect, since all features have
        the same degrees of freedom.
    binning : {"width", "quantile", "sigma3", "floor", "mdlp"}, default="width"
        Discretisation of the features, see :func:`l20fs.methods._discretise.discretise`.
    n_bins : int, default=10
        Number of bins for ``binning="width"`` and ``"quantile"``.
    tau : float, default=1.0
        Half width of the middle bin in standard deviations, for ``binning="sigma3"``.
    rank_by : {"auto", "statistic", "p_value"}, default="auto"
        Score: the statistic, or minus the decimal logarithm of its p-value, which is comparable between features with
        different numbers of bins. ``"auto"``: the p-value for the binnings ``"floor"`` and ``"mdlp"``, whose numbers of bins
        differ, and the statistic otherwise.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        The statistic, or minus the decimal logarithm of its p-value; ``-inf`` for a constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    classes_ : array of shape (n_classes,)
        Class labels in sorted order.

    References
    ----------
    .. [1] K. Pearson, "On the criterion that a given system of deviations from the probable in the case of a correlated
       system of variables is such that it can be reasonably supposed to have arisen from random sampling", Philosophical
       Magazine 50 (1900).
    .. [2] H. Liu and R. Setiono, "Chi2: feature selection and discretization of numeric attributes", Proceedings of the 7th
       IEEE International Conference on Tools with Artificial Intelligence (1995).

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]
    >>> ChiSquare(1, n_bins=2).fit(X, ["a", "a", "b", "b"]).scores_
    array([4.        , 1.33333333])
    """

    about = About(
        "Pearson (1900); Liu, Setiono, Chi2: feature selection and discretization of numeric attributes (1995)",
        "filter",
        "O(N d)",
    )
    takes_any_size = True
    takes_device_arrays = True

    checks = rules(counts=check_flag, rank_by=choice("auto", "statistic", "p_value"))

    counts: bool = False
    binning: str = "width"
    n_bins: int = 10
    tau: float = 1.0
    rank_by: str = "auto"

    def _score_features(self, X: Any, targets: Targets) -> Scored:
        assert targets.codes is not None  # needs_labels
        if self.counts:
            refuse_negative(X)
            return Scored(scores=chi_square_of_counts(X, targets.Y))
        binned = discretise(X, self.binning, n_bins=self.n_bins, tau=self.tau, labels=targets.codes)
        statistic, freedom = chi_square(binned, targets.codes)
        if self.rank_by == "p_value" or (self.rank_by == "auto" and self.binning in ("floor", "mdlp")):
            return Scored(scores=0.0 - log10_p_value(statistic, freedom))
        return Scored(scores=statistic)


def refuse_negative(X: Any) -> None:
    """Raise an error if X holds negative values, which cannot be counts."""
    xp = Place(X).xp
    lowest = float(xp.min(X))
    if lowest < 0.0:
        n_negative = int(xp.count_nonzero(X < 0.0))
        raise ValueError(
            f"X has {n_negative} negative values, the lowest {lowest:g}, but counts=True needs counts or frequencies. "
            "Use counts=False, which bins any numbers."
        )


def chi_square_of_counts(X: Any, one_hot: Array) -> Array:
    """Return the statistic of the sums of every feature by class, on the host.

    Examples
    --------
    >>> chi_square_of_counts(np.array([[3.0, 1.0], [1.0, 1.0]]), np.eye(2))
    array([1., 0.])
    """
    columns = Columns(X)
    sums = columns.place.fetch(columns.pull(columns.place.send(one_hot)))
    expected = sums.sum(axis=1, keepdims=True) * one_hot.mean(axis=0)
    return np.sum((sums - expected) ** 2 / expected, axis=1)


def chi_square(binned: Binned, other: Array) -> tuple[Array, Array]:
    """Return the statistic of every feature against another variable, and its degrees of freedom.

    Empty bins are left out of both.

    Examples
    --------
    >>> from l20fs.methods._discretise import bin_codes
    >>> chi_square(bin_codes(np.array([[0, 0], [0, 2], [1, 0], [1, 2]])), np.array([0, 0, 1, 1]))
    (array([4., 0.]), array([1, 1]))
    """
    n_samples, n_features = binned.codes.shape
    labels, other = np.unique(other, return_inverse=True)
    place, share = Place(binned.codes), np.bincount(other) / n_samples
    xp, sent = place.xp, place.send(share)
    statistic, freedom = np.empty(n_features), np.empty(n_features, dtype=np.intp)
    size = max(n_samples, int(binned.n_states.max()) * len(labels))
    for block in blocks(n_features, size, is_host=place.is_host):
        tables = contingency_tables(Binned(binned.codes[:, block], binned.n_states[block]), other)
        row = xp.sum(tables, axis=2)
        # A sum over the classes, and then over the bins; in an empty bin it is zero.
        excess = (tables - row[:, :, None] * sent) ** 2 @ (1.0 / sent)
        statistic[block] = place.fetch(xp.sum(excess / xp.where(row > 0, row, xp.ones_like(row)), axis=1))
        freedom[block] = (np.count_nonzero(place.fetch(row), axis=1) - 1) * (len(labels) - 1)
    return statistic, freedom


def log10_p_value(statistic: Array, freedom: Array) -> Array:
    """Return the decimal logarithm of the p-value, also where the p-value itself underflows.

    With no degree of freedom the statistic is 0 and the p-value 1.

    Examples
    --------
    >>> log10_p_value(np.array([2.0, 2e5, 0.0]), np.array([2, 2, 0])) * np.log(10.0)
    array([-1.e+00, -1.e+05,  0.e+00])
    """
    chance = chdtrc(np.maximum(freedom, 1), statistic)
    is_tiny = chance < 1e-290
    log_chance = np.log(np.where(is_tiny, 1.0, chance))
    log_chance[is_tiny] = _log_far_tail(freedom[is_tiny] / 2.0, statistic[is_tiny] / 2.0)
    return log_chance / np.log(10.0)


def _log_far_tail(shape: Array, x: Array) -> Array:
    """Return the logarithm of the regularised upper incomplete gamma function by its continued fraction (x >> shape)."""
    fraction = np.zeros_like(x)
    for i in range(200, 0, -1):
        fraction = i * (i - shape) / (x + 2 * i + 1 - shape - fraction)
    return shape * np.log(x) - x - gammaln(shape) - np.log(x + 1 - shape - fraction)
