"""Checks of labelled samples: class sizes, classes confined to one group, raw counts, features that encode the class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.blocks import FileBlocks, extents
from l20fs.typing import Array

#: A class with fewer samples is rare: one of five folds has none of it in its test part.
FEWEST_OF_A_CLASS = 5
#: A class is dominant if it is the largest and has at least this many times the samples of the smallest one.
IMBALANCE = 5.0


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of the samples.

    Attributes
    ----------
    labels : array of shape (n_classes,)
        Labels in sorted order.
    codes : array of shape (n_samples,)
        Index of the label of each sample.
    sizes : list of int
        Number of samples of each class.

    Examples
    --------
    >>> classes = Classes.of(np.array(["b", "a", "b"]))
    >>> classes.names, classes.sizes, round(classes.largest_share, 3)
    (['a', 'b'], [1, 2], 0.667)
    >>> classes.rare(), classes.smallest, classes.dominant()
    ([('a', 1), ('b', 2)], ('a', 1), None)
    """

    labels: Array
    codes: Array
    sizes: list[int]

    @classmethod
    def of(cls, y: Array) -> Classes:
        """Count the classes of some labels."""
        labels, codes, sizes = np.unique(y, return_inverse=True, return_counts=True)
        return cls(labels, codes, sizes.tolist())

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def names(self) -> list[str]:
        """Labels as text."""
        return [str(label) for label in self.labels]

    @property
    def largest_share(self) -> float:
        """Fraction of samples in the largest class: the accuracy of always predicting it."""
        return max(self.sizes) / sum(self.sizes)

    @property
    def smallest(self) -> tuple[str, int]:
        """First of the smallest classes, and its size."""
        size = min(self.sizes)
        return self.names[self.sizes.index(size)], size

    def rare(self, fewest: int = FEWEST_OF_A_CLASS) -> list[tuple[str, int]]:
        """Return the classes with fewer samples, and their sizes."""
        return [(name, size) for name, size in zip(self.names, self.sizes, strict=True) if size < fewest]

    def dominant(self, ratio: float = IMBALANCE) -> tuple[str, float] | None:
        """Return the largest class and its fraction of the samples if it is at least ``ratio`` times the smallest one."""
        largest = max(self.sizes)
        return None if largest < ratio * min(self.sizes) else (self.names[self.sizes.index(largest)], self.largest_share)


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
    if isinstance(X, FileBlocks):
        X = X.load(extents(X)[0])
    values = X.data if sp.issparse(X) else np.asarray(X)
    if not values.size or values.min() < 0.0:
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


def largest_error_share(n_samples: int) -> float:
    """Return the upper end of the 95 % interval of an error rate when no error was observed (rule of three).

    Examples
    --------
    >>> largest_error_share(60)
    0.05
    """
    return 3 / n_samples
