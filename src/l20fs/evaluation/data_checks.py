"""Checks of samples: classes confined to one group, raw counts, features that encode the class."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.inputs.devices import is_dask
from l20fs.typing import Array

#: Fewest features of a table of counts.
FEWEST_COUNTED = 20


def classes_in_one_group(y: Array, groups: Array | None) -> list[str]:
    """Return the classes whose samples all belong to one group: they cannot be distinguished from that group.

    Examples
    --------
    >>> classes_in_one_group(np.array(["a", "a", "b", "b"]), np.array(["u", "u", "u", "v"]))
    ['a']
    """
    if groups is None:
        return []
    return [str(label) for label in np.unique(y) if len(np.unique(groups[y == label])) == 1]


def looks_like_counts(X: Any) -> bool:
    """Return whether all values are integers and a few very large, as counts of reads or molecules are.

    Few features may have different units, such as an age in years and a survival in days.

    Of a matrix in blocks only the first block is checked.

    Examples
    --------
    >>> looks_like_counts(np.array([[0.0, 2.0, 1.0], [0.0, 150.0, 3.0]])), looks_like_counts(np.array([[0.5, 99.0]]))
    (False, False)
    >>> looks_like_counts(np.array([[0.0] * 9 + [150.0]]))
    False
    >>> looks_like_counts(np.array([[0.0] * 19 + [150.0]]))
    True
    """
    if is_dask(X):
        X = X.blocks[0, 0].compute()
    values = X.data if sp.issparse(X) else np.asarray(X)
    if X.shape[1] < FEWEST_COUNTED or not values.size or values.min() < 0.0:
        return False
    mean = float(values.sum(dtype=np.float64)) / (X.shape[0] * X.shape[1])
    # Pixels and scores are integers as well, but their largest is no more than a few times their mean.
    return float(values.max()) >= 10.0 * (mean + 1.0) and np.array_equal(values, np.floor(values))


def separates_classes(values: Array, codes: Array) -> bool:
    """Return whether the ranges of a feature in the classes do not overlap.

    Examples
    --------
    >>> separates_classes(np.array([5.0, 6.0, 1.0, 2.0]), np.array([0, 0, 1, 1]))
    True
    >>> separates_classes(np.array([5.0, 2.0, 1.0, 2.0]), np.array([0, 0, 1, 1]))
    False
    """
    labels = np.unique(codes)
    lows = np.array([values[codes == label].min() for label in labels])
    highs = np.array([values[codes == label].max() for label in labels])
    order = np.argsort(lows, kind="stable")
    return not (highs[order][:-1] >= lows[order][1:]).any()
