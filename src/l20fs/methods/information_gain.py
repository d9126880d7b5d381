"""InformationGain: how many bits each binned feature tells about the class."""

from __future__ import annotations

import numpy as np

from l20fs.estimators.base import About
from l20fs.estimators.scoring import Scored, ScoringSelector
from l20fs.inputs.targets import Targets
from l20fs.inputs.validation import check_choice
from l20fs.methods._discretise import check_binning, discretise, entropies, mutual_information, symmetrical_uncertainty
from l20fs.typing import Array

CRITERIA = ("gain", "ratio", "su")


class InformationGain(ScoringSelector):
    r"""Rank features by what each one's states say about the class, in bits.

    .. math:: IG_j = H(y) - H(y \mid b_j) = I(b_j; y)

    where b_j is the binned feature. The gain ratio divides by H(b_j), which keeps features with many states from winning by
    their number alone; the symmetrical uncertainty is 2 IG_j / (H(y) + H(b_j)).

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        A number or a share of all features.
    criterion : {"gain", "ratio", "su"}, default="gain"
        Information gain, gain ratio or symmetrical uncertainty.
    binning : {"width", "quantile", "sigma3", "floor", "mdlp"}, default="mdlp"
        How numbers become states, see :func:`l20fs.methods._discretise.discretise`. A feature that "mdlp" does not cut
        scores 0.
    n_bins : int, default=10
        States of the binnings "width" and "quantile".
    tau : float, default=1.0
        Standard deviations of the binning "sigma3".

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]
    >>> InformationGain(1, binning="width", n_bins=2).fit(X, ["a", "a", "b", "b"]).scores_
    array([1.        , 0.31127812])
    """

    about = About(reference="Quinlan, Induction of decision trees (1986)", kind="filter", cost="O(N d log N)")

    def __init__(
        self,
        n_features_to_select: int | float = 20,
        *,
        criterion: str = "gain",
        binning: str = "mdlp",
        n_bins: int = 10,
        tau: float = 1.0,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.criterion = criterion
        self.binning = binning
        self.n_bins = n_bins
        self.tau = tau

    def _check_parameters(self) -> None:
        check_choice("criterion", self.criterion, CRITERIA)
        check_binning(self.binning, self.n_bins, self.tau)

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
