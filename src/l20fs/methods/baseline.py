"""Baseline: all features, as they come."""

from __future__ import annotations

from typing import Any

import numpy as np

from l20fs.estimators.base import About
from l20fs.estimators.scoring import Scored, ScoringSelector
from l20fs.inputs.targets import Targets


class Baseline(ScoringSelector):
    """Keep all features: what a selection is measured against.

    Parameters
    ----------
    n_features_to_select : int or float, default=1.0
        A number or a share; the first columns of X are taken. All of them by default.

    Examples
    --------
    >>> Baseline().fit([[1.0, 2.0], [3.0, 5.0]], ["a", "b"]).support_
    array([ True,  True])
    """

    about = About(reference="no selection", kind="none", cost="O(1)")

    def __init__(self, n_features_to_select: int | float = 1.0) -> None:
        self.n_features_to_select = n_features_to_select

    def _score_features(self, X: Any, targets: Targets) -> Scored:
        return Scored(scores=np.arange(X.shape[1], 0, -1, dtype=np.float64))
