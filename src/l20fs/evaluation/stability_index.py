"""Stability of selections, and error bounds of stability selection."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

Bound = Literal["worst_case", "unimodal"]

#: Half the width of a 95 % interval, in standard deviations.
Z_95 = 1.959963984540054


class Stability(NamedTuple):
    """Stability of several selections: 1 if all are equal, about 0 for random ones.

    ``variance`` is that of ``index``; ``lower`` and ``upper`` are the ends of a 95 % interval.
    """

    index: float  # type: ignore[assignment]  # the field hides tuple.index, which is not needed here
    variance: float
    lower: float
    upper: float


def nogueira(Z: Any) -> Stability:
    """Compute the stability of selections, corrected for chance (Nogueira et al.).

    The estimate of Nogueira, Sechidis and Brown, *On the stability of feature selection algorithms* (2018), with its
    asymptotic interval, which assumes independent selections. The sizes of the selections may differ.

    Parameters
    ----------
    Z : array or sparse matrix of shape (n_selections, n_features)
        True or 1 where a selection holds a feature.

    Returns
    -------
    Stability
        All NaN if every selection is empty or has all features (or there are none): any selections of that size agree, so
        that agreement beyond chance is not defined.

    Examples
    --------
    >>> nogueira([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]]).index.__round__(3)
    0.333
    """
    members = _members(Z)
    n_selections, n_features = members.shape
    if n_selections < 2:
        raise ValueError(f"Z has {n_selections} selection. Give 2 or more.")
    sizes = members.sum(axis=1)
    share = sizes.mean() / max(1, n_features)
    spread = share * (1.0 - share)  # variance of a randomly selected feature, the unit of the index
    if spread == 0.0:
        return Stability(math.nan, math.nan, math.nan, math.nan)
    frequencies = members.sum(axis=0) / n_selections
    index = 1.0 - (frequencies * (1.0 - frequencies)).mean() * n_selections / (n_selections - 1) / spread
    # The contribution of each selection to the index, without terms that are equal for all: they cancel below.
    shares = sizes / n_features
    overlap = members @ frequencies / n_features
    parts = (overlap - shares * share + index * (shares * share - shares / 2)) / spread
    variance = 4.0 / n_selections**2 * float(((parts - parts.mean()) ** 2).sum())
    reach = Z_95 * math.sqrt(variance)
    return Stability(float(index), variance, float(index - reach), float(index + reach))


def _members(Z: Any) -> sp.csr_array:
    """Return the 0/1 matrix Z of selections; sparse, since a selection has few of many features."""
    members = sp.csr_array(Z if sp.issparse(Z) else np.atleast_2d(np.asarray(Z)))
    members.sum_duplicates()
    members.eliminate_zeros()
    odd = members.data[members.data != 1]
    if odd.size:
        raise ValueError(f"Z holds {odd[0]:g}. Give True or 1 for a selected feature, False or 0 for any other.")
    return members.astype(np.int64)


def expected_false(n_selected: float, n_features: int, threshold: float, n_pairs: int, kind: Bound = "worst_case") -> float:
    """Bound the expected number of falsely selected features of complementary pairs.

    Shah and Samworth, *Variable selection with error control: another look at stability selection* (2013), theorems 1
    and 2. A feature counts as falsely selected if one resample selects it with probability at most theta =
    ``n_selected / n_features``, as a random selection does. If both halves of a pair have the same distribution, both select
    such a feature with probability at most theta^2; and a feature in a fraction tau of all halves is in both halves of at
    least a fraction t = 2 tau - 1 of the pairs. By Markov's inequality the probability of this is at most theta^2 / t, and
    the sum over all features at most ``n_selected`` theta / t. Only fractions t that ``n_pairs`` pairs can have count.

    Parameters
    ----------
    n_selected : float
        Mean number of features that one resample selects.
    n_features : int
        Number of all features.
    threshold : float
        tau, above 1/2: the fraction of the resamples from which on a feature counts as selected.
    n_pairs : int
        Number of pairs, half the number of resamples.
    kind : {"worst_case", "unimodal"}
        ``"worst_case"`` assumes nothing else. ``"unimodal"`` assumes that for each such feature the number of pairs with
        both halves has a unimodal distribution, which makes the bound two to four times smaller; needs theta <= 1/sqrt(3)
        and a threshold that is not too close to 1/2.

    Examples
    --------
    >>> expected_false(20, 2000, 0.6, 50).__round__(2)
    1.0
    >>> expected_false(20, 2000, 0.6, 50, "unimodal").__round__(2)
    0.53
    """
    if not 0.5 < threshold <= 1.0:
        raise ValueError(f"threshold={threshold!r} has no error bound. Use a number above 0.5 and up to 1.0.")
    n_both = smallest_count(threshold, 2 * n_pairs) - n_pairs
    both = n_both / n_pairs
    theta = n_selected / max(1, n_features)
    if kind == "worst_case":
        return n_selected * theta / both
    lowest = min(theta**2, 0.5 / n_pairs + 0.75 * theta**2)
    if theta > 1 / math.sqrt(3) or n_both < 2 or both / 2 <= lowest:
        raise ValueError(
            f"The unimodal bound does not hold for threshold={threshold!r} with {n_selected:g} of {n_features} features "
            f"per resample and {n_pairs} pairs. Use a higher threshold, fewer features or kind='worst_case'."
        )
    if 2 * n_both <= n_pairs:
        return n_selected * theta / (2.0 * both - 1.0 / n_pairs)
    return n_selected * theta * 2.0 * (1.0 - both + 1.0 / n_pairs) / (1.0 + 1.0 / n_pairs)


def smallest_count(threshold: float, n: int) -> int:
    """Return the smallest number c with c / n >= threshold, as floating-point numbers compare.

    Examples
    --------
    >>> smallest_count(0.55, 100), 0.55 * 100
    (55, 55.00000000000001)
    """
    count = math.ceil(threshold * n)
    return count - 1 if count and (count - 1) / n >= threshold else count
