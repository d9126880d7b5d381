"""InformationGain: mutual information of single binned features with the class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from l20fs.methods._discretise import discretise, entropies, mutual_information, symmetrical_uncertainty
from l20fs.methods._method import About, Method, Scored, Targets, choice, rules
from l20fs.typing import Array

CRITERIA = ("gain", "ratio", "su")


@dataclass(eq=False, repr=False, kw_only=True)
class InformationGain(Method):
    r"""Rank features by their mutual information with the class, in bits.

    .. math:: IG_j = H(y) - H(y \mid b_j) = I(b_j; y)

    where b_j is the binned feature. The gain ratio divides by H(b_j), so that features do not score high merely because
    they have many bins; the symmetrical uncertainty is 2 IG_j / (H(y) + H(b_j)).

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        Number of features to select, or fraction of all features.
    criterion : {"gain", "ratio", "su"}, default="gain"
        Information gain, gain ratio or symmetrical uncertainty.
    binning : {"width", "quantile", "sigma3", "floor", "mdlp"}, default="mdlp"
        Discretisation of the features, see :func:`l20fs.methods._discretise.discretise`. A feature that ``"mdlp"``
        does not cut scores 0.
    n_bins : int, default=10
        Number of bins for ``binning="width"`` and ``"quantile"``.
    tau : float, default=1.0
        Half width of the middle bin in standard deviations, for ``binning="sigma3"``.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Value of ``criterion``; ``-inf`` for a constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    classes_ : array of shape (n_classes,)
        Class labels in sorted order.

    References
    ----------
    .. [1] J. R. Quinlan, "Induction of decision trees", Machine Learning 1 (1986).
    .. [2] U. M. Fayyad and K. B. Irani, "Multi-interval discretization of continuous-valued attributes for classification
       learning", IJCAI (1993); the binning "mdlp".

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]
    >>> InformationGain(1, binning="width", n_bins=2).fit(X, ["a", "a", "b", "b"]).scores_
    array([1.        , 0.31127812])
    """

    about = About("Quinlan, Induction of decision trees (1986)", "filter", "O(N d log N)")
    takes_any_size = True

    checks = rules(criterion=choice(*CRITERIA))

    criterion: str = "gain"
    binning: str = "mdlp"
    n_bins: int = 10
    tau: float = 1.0

    def _score_features(self, X: Array, targets: Targets) -> Scored:
        assert targets.codes is not None  # needs_labels
        binned = discretise(X, self.binning, n_bins=self.n_bins, tau=self.tau, labels=targets.codes)
        own = entropies(binned)
        if self.criterion == "su":
            return Scored(scores=symmetrical_uncertainty(binned, targets.codes, own=own))
        gain = mutual_information(binned, targets.codes, own=own)
        if self.criterion == "ratio":
            return Scored(scores=np.divide(gain, own, out=np.zeros_like(gain), where=own > 0.0))
        return Scored(scores=gain)
