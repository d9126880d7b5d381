"""Summaries of targets: classes or numbers, which say how their samples are split, scored and guessed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from l20fs.evaluation.folds import N_REPEATS, Fold, make_folds, number_of_folds
from l20fs.evaluation.metrics import IMBALANCE, METRICS, Metric, Outputs
from l20fs.typing import Array

#: A class with fewer samples is rare: one of five folds has none of it in its test part.
FEWEST_OF_A_CLASS = 5


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
    >>> classes.chance(METRICS["roc_auc"]), classes.metric.name
    (0.5, 'accuracy')
    """

    task: ClassVar[Literal["classification"]] = "classification"

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

    @property
    def truth(self) -> Array:
        """Index of the label of each sample, which is to be predicted."""
        return self.codes

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

    @property
    def metric(self) -> Metric:
        """Metric by default: accuracy, of uneven classes balanced accuracy.

        The models count all classes alike (``class_weight="balanced"``). Accuracy would punish them for that where one class
        dominates, and praise a model that knows no other.
        """
        return METRICS["accuracy" if self.dominant() is None else "balanced_accuracy"]

    def chance(self, metric: Metric) -> float:
        """Return the score without any features: always the largest class, or the frequencies as probabilities."""
        n, shares = len(self.codes), np.array(self.sizes) / sum(self.sizes)
        labels = np.full((n, 1), int(np.argmax(self.sizes)))
        outputs = Outputs(self.codes, len(self), labels, np.broadcast_to(shares, (n, 1, len(self))))
        return _score(metric, outputs)

    def n_folds(self, groups: Any = None) -> int:
        """Return the number of folds of a cross-validation; less than 2 if there can be none."""
        return number_of_folds(self.codes, groups)

    def folds(self, groups: Any = None, *, seed: int = 0, n_repeats: int = N_REPEATS) -> list[Fold]:
        """Split the samples into parts with all classes in each."""
        y = self.labels[self.codes]
        return make_folds(None, np.zeros((len(y), 1)), y, groups, classify=True, n_repeats=n_repeats, seed=seed)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers to predict.

    Examples
    --------
    >>> numbers = Numbers(np.array([1.0, 2.0, 4.0]))
    >>> len(numbers), numbers.metric.name, numbers.chance(numbers.metric)
    (1, 'r2', 0.0)
    """

    task: ClassVar[Literal["regression"]] = "regression"

    truth: Array

    def __len__(self) -> int:
        return 1

    @property
    def metric(self) -> Metric:
        """Metric by default."""
        return METRICS["r2"]

    def chance(self, metric: Metric) -> float:
        """Return the score without any features: always the mean."""
        return _score(metric, Outputs(self.truth, 0, numbers=np.full((len(self.truth), 1, 1), self.truth.mean())))

    def n_folds(self, groups: Any = None) -> int:
        """Return the number of folds of a cross-validation; less than 2 if there can be none."""
        return number_of_folds(self.truth, groups, classify=False)

    def folds(self, groups: Any = None, *, seed: int = 0, n_repeats: int = N_REPEATS) -> list[Fold]:
        """Split the samples into random parts."""
        X = np.zeros((len(self.truth), 1))
        return make_folds(None, X, self.truth, groups, classify=False, n_repeats=n_repeats, seed=seed)


#: Either kind of target.
TargetSummary = Classes | Numbers


def summarise(y: Array) -> TargetSummary:
    """Return the classes of labels, or the numbers of an array of floating-point numbers."""
    return Numbers(y) if y.dtype.kind == "f" else Classes.of(y)


def _score(metric: Metric, outputs: Outputs) -> float:
    return float(metric.formula(outputs, np.ones((1, len(outputs.truth))))[0, 0]) + 0.0
