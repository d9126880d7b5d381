"""Baseline: all features, in the order of the columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from l20fs.estimators.base import About
from l20fs.estimators.scoring import Scored, ScoringSelector
from l20fs.inputs.targets import Targets


class Baseline(ScoringSelector):
    """Keep all features, as a reference for every selection.

    Parameters
    ----------
    n_features_to_select : int or float, default=1.0
        Number of features, or fraction of all features; the first columns of X are taken.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Falls from the first column to the last; ``-inf`` for a constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    classes_ : array of shape (n_classes,)
        Class labels in sorted order, if y holds labels.

    Examples
    --------
    >>> Baseline().fit([[1.0, 2.0], [3.0, 5.0]], ["a", "b"]).support_
    array([ True,  True])
    """

    about = About(reference="no selection", kind="none", cost="O(1)")
    _takes_any_size = True
    _needs_labels = False

    def __init__(self, n_features_to_select: int | float = 1.0) -> None:
        self.n_features_to_select = n_features_to_select

    def _score_features(self, X: Any, targets: Targets) -> Scored:
        return Scored(scores=np.arange(X.shape[1], 0, -1, dtype=np.float64))
