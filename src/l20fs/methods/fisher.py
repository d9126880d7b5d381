"""FisherScore: ratio of between-class to within-class scatter of single features."""

from __future__ import annotations

from typing import Any

import numpy as np

from l20fs.methods._columns import Columns, squared_column_norms
from l20fs.methods._method import About, Method, Scored, Targets
from l20fs.typing import Array


class FisherScore(Method):
    r"""Rank features by the ratio of between-class to within-class scatter.

    .. math:: F_j = \frac{\sum_c n_c (m_{cj} - m_j)^2}{\sum_c \sum_{i \in c} (x_{ij} - m_{cj})^2}

    The ranking is that of the F statistic of a one-way analysis of variance. A feature that is constant within every class
    but differs between classes has an infinite ratio; its score is the largest finite number.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        Number of features to select, or fraction of all features.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Fisher ratio; ``-inf`` for a constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    classes_ : array of shape (n_classes,)
        Class labels in sorted order.

    References
    ----------
    .. [1] R. A. Fisher, "The use of multiple measurements in taxonomic problems", Annals of Eugenics 7 (1936).

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]
    >>> FisherScore(1).fit(X, ["a", "a", "b", "b"]).get_support(indices=True)
    array([0])
    """

    about = About(
        "Fisher, The use of multiple measurements in taxonomic problems (1936)",
        "filter",
        "O(N d)",
    )
    takes_device_arrays = True

    def _score_features(self, X: Any, targets: Targets) -> Scored:
        between, total = class_scatter(X, targets)
        within = total - between
        # A within-class scatter within rounding error counts as zero.
        is_pure = within <= total * (len(targets.Y) * np.finfo(np.float64).eps)
        ratio = np.divide(between, within, out=np.full_like(between, np.finfo(np.float64).max), where=~is_pure)
        return Scored(scores=ratio)


def class_scatter(X: Any, targets: Targets) -> tuple[Array, Array]:
    """Return the between-class and the total scatter of every feature, the diagonals of S_b and S_t, on the host.

    X is an array, or centred :class:`~l20fs.methods._columns.Columns`.
    """
    sizes = targets.Y.sum(axis=0)
    columns = X if isinstance(X, Columns) else Columns(X).centred()
    membership = columns.place.send((targets.Y / np.sqrt(sizes)).T)
    between = [squared_column_norms(membership @ part) for _, part in columns.parts()]
    return columns.place.fetch(columns.joined(between)), columns.place.fetch(columns.squares())
