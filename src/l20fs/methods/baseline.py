"""Baseline: all features, in the order of the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from l20fs.methods._method import About, Method, Scored, Targets


@dataclass(eq=False, repr=False)
class Baseline(Method):
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

    about = About("no selection", "none", "O(1)")
    takes_any_size = True
    needs_labels = False

    n_features_to_select: int | float = 1.0

    def _score_features(self, X: Any, targets: Targets) -> Scored:
        return Scored(scores=np.arange(X.shape[1], 0, -1, dtype=np.float64))
