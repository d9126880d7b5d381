"""Records of a report: what was measured for 1, 2, ... features. A value is None for sizes that were not measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: Largest number of lines in the picture of the path, of points of a ROC curve, and of points in pictures of numbers.
MOST_LINES, MOST_ROC_POINTS, MOST_POINTS = 30, 60, 300
#: Largest number of values of single samples, which keeps the page small: of all features, and of a class.
MOST_STRIP_VALUES, MOST_OF_A_CLASS, MOST_STRIP_CLASSES = 12_000, 60, 100
#: Largest number that pictures show.
LARGEST = 1e100

#: A value and the ends of its 95 % interval.
Estimate = tuple[float, float, float]


@dataclass(frozen=True)
class Curve:
    """Scores for 1, 2, ... features: the score, its standard error, and the ends of its 95 % interval where there is one."""

    name: str
    mean: list[float | None]
    error: list[float | None]
    lower: list[float | None] | None = None
    upper: list[float | None] | None = None

    def interval(self, k: int) -> tuple[float, float] | None:
        """Return the ends of the interval for k features, or None."""
        if self.lower is None or self.upper is None:
            return None
        lower, upper = self.lower[k - 1], self.upper[k - 1]
        return None if lower is None or upper is None else (lower, upper)


@dataclass(frozen=True)
class PathLines:
    """Row norms of the first features along the values of lambda."""

    alphas: list[float]
    norms: list[list[float]]


@dataclass(frozen=True)
class Stability:
    """Frequencies with which the selected features were selected again, and the stability index with its 95 % interval."""

    frequencies: list[float]
    index: float | None
    lower: float | None
    upper: float | None
    n_resamples: int


@dataclass(frozen=True)
class ClassRate:
    """Sensitivity and specificity of a class, None where no sample tells it, and the number of samples of the class."""

    sensitivity: Estimate | None
    specificity: Estimate | None
    n_samples: int


@dataclass(frozen=True)
class Roc:
    """ROC curve of the second of two classes: points (1 - specificity, sensitivity) from (0, 0) to (1, 1), and the area."""

    points: list[tuple[float, float]]
    auc: float
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True)
class Reliability:
    """Probabilities of the predicted classes in bins (mean probability, share that was right, samples), and their scores.

    ``brier`` is the mean squared error of the probabilities, summed over classes; of two classes, that of the second.
    ``intervals`` are the 95 % intervals of the shares.
    """

    bins: list[tuple[float, float, int]]
    brier: float
    log_loss: float
    intervals: list[tuple[float, float]] | None = None


@dataclass(frozen=True)
class Numbers:
    """Numbers of a regression: ``measured[output][i]``, and ``predicted[k - 1][output][i]`` by models without sample i."""

    measured: list[list[float]]
    predicted: list[list[list[float]] | None]


@dataclass(frozen=True)
class Lookup:
    """All features that can be searched for, best first, and those without a rank last.

    ``ranks[i]`` is the rank of the feature ``names[i]``, 0 for none; empty if it is i + 1 for all of them. ``n_ranked`` is
    the last rank. ``entry[i]`` is the lambda at which it came to stay, of the first features, and None for a method without
    a path; the path was followed up to ``n_followed`` features. ``nearest[i]`` is the place among the selected features of
    the one that it correlates with most, -1 for none, and ``correlations[i]`` that correlation; both are empty where they
    are not known.
    """

    names: list[str]
    n_ranked: int
    ranks: list[int]
    entry: list[float | None] | None
    n_followed: int
    nearest: list[int]
    correlations: list[float]


@dataclass(frozen=True)
class Strips:
    """Values of the first features in single samples, for a picture of each, without the names of the samples.

    ``values[i][c]`` are those of feature i in class c in ascending order, so that nobody can tell which values belong to one
    sample, and ``medians[i][c]`` is the median of the whole class. Of a regression ``values[i][0]`` are those of the samples
    with the numbers ``targets``, None for a missing one, and there are no medians. ``unit`` says what the values are, if not
    what was measured.
    """

    values: list[list[list[float | None]]]
    medians: list[list[float | None]]
    targets: list[float]
    unit: str = ""


@dataclass(frozen=True)
class Atlas:
    """Panels that are nearly as good as the best, in sentences, and their features.

    ``core`` are features in all of the panels. ``optional`` are features in some, the most frequent first, with the
    ``shares`` of the panels that contain each, and ``replaced_by``, the features that can take its place with everything
    else kept. There are ``n_more`` others.
    """

    sentences: list[str]
    core: list[str]
    optional: list[str]
    shares: list[float]
    replaced_by: list[list[str]]
    n_more: int = 0


@dataclass(frozen=True)
class PanelNumbers:
    """Numbers with which the page predicts, as in ``panel.json``: of the rules on the first 1, 2, ... features.

    ``weights[k - 1][i][v]`` and ``intercept[k - 1][v]`` give the value v of a sample; two classes have one value, and None
    is the intercept of a class that is never predicted. ``slope[k - 1]``, ``doubt[k - 1]`` and ``offset[k - 1]`` give
    the probabilities (:mod:`l20fs.prediction.calibration`); of a regression they are empty. ``minimum`` and ``maximum`` of
    each feature are those of the training samples after ``transform``. There may be fewer sizes than the page shows.
    """

    weights: list[list[list[float]]]
    intercept: list[list[float | None]]
    slope: list[float]
    doubt: list[float]
    offset: list[list[float]]
    minimum: list[float]
    maximum: list[float]
    transform: Literal["none", "log1p"] = "none"
