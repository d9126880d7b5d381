"""Judgement of predictions in new samples: scores with intervals, rates of each class, reliability of probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from l20fs.evaluation.folds import Fold
from l20fs.evaluation.metrics import METRICS, Metric, Outputs
from l20fs.evaluation.quoted_score import Estimate, Z, mean_score, score_of_samples, wilson
from l20fs.prediction.calibration import fit_slopes
from l20fs.typing import Array

#: Metrics that are computed, in this order.
OF_CLASSES = ("accuracy", "balanced_accuracy", "f1_macro", "roc_auc", "log_loss", "brier")
OF_NUMBERS = ("r2", "mae", "rmse")

#: Ranges of probability.
N_BINS = 10

#: The slope of the calibration lies between these, which are as good as none and as certain as can be.
SLOPES = (1e-3, 1e3)


class ClassRates(NamedTuple):
    """Sensitivity and specificity of a class, None where no sample tells it; how many samples were found and expected.

    ``n_expected`` is the sum of the probabilities of the class: the number of its samples, if they are calibrated.
    """

    name: str
    n_samples: int
    n_predicted: int
    n_expected: float | None
    sensitivity: Estimate | None
    specificity: Estimate | None


class Bin(NamedTuple):
    """Samples whose predicted class has a probability in one range: its mean, the share that is right, their number."""

    probability: float
    right: Estimate
    n_samples: int


class Batch(NamedTuple):
    """Main score within one group of samples, None where it is not defined."""

    name: str
    n_samples: int
    score: Estimate | None


@dataclass(frozen=True, eq=False)
class Validation:
    """Judgement of predictions against the truth.

    Attributes
    ----------
    n_samples : int
        Samples that count: those of classes that the panel knows.
    scores : dict of Estimate
        By name of the metric, the main one first; None where it is not defined.
    classes : list of str
        Of a regression, empty.
    confusion : array of shape (n_classes + n_unknown, n_classes)
        Numbers of samples: true classes in rows, those that the panel does not know last; predicted classes in columns.
    rates : list of ClassRates
    unknown : dict of int
        Numbers of samples of the classes that the panel does not know.
    bins : list of Bin
    calibration_error : float or None
        Mean distance of the probability of the predicted class from the share that is right, over the bins.
    calibration_slope : Estimate or None
        The factor of the logarithms of the probabilities that fits the truth best: below 1 they are too certain.
    bias : Estimate or None
        Of a regression, the mean of predicted less measured.
    batches : list of Batch
    """

    n_samples: int
    scores: dict[str, Estimate | None]
    classes: Sequence[str] = ()
    confusion: Array | None = None
    rates: Sequence[ClassRates] = ()
    unknown: dict[str, int] | None = None
    bins: Sequence[Bin] = ()
    calibration_error: float | None = None
    calibration_slope: Estimate | None = None
    bias: Estimate | None = None
    batches: Sequence[Batch] = ()

    @property
    def main(self) -> tuple[str, Estimate | None]:
        """Name and value of the first score."""
        return next(iter(self.scores.items()))


def validate_classes(
    truth: Sequence[str],
    probabilities: Array,
    predicted: Sequence[str],
    classes: Sequence[str],
    batches: Array | None = None,
    folds: Sequence[Fold] | None = None,
) -> Validation:
    """Judge predicted classes.

    Parameters
    ----------
    truth : sequence of str
        True classes; those not among ``classes`` are counted, and left out of the scores.
    probabilities : array of shape (n_samples, n_classes)
    predicted : sequence of str
    classes : sequence of str
        The classes that can be predicted.
    batches : array of shape (n_samples,), optional
        Group of each sample, for the accuracy within each.
    folds : sequence of Fold, optional
        Where the predictions are those of several models: the intervals are wider then. No class may be unknown.

    Returns
    -------
    Validation
        Accuracy first.

    Examples
    --------
    >>> found = validate_classes(["a", "b", "b", "c"], np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]),
    ...     ["a", "b", "a", "a"], ["a", "b"])
    >>> found.n_samples, round(found.scores["accuracy"].value, 3), found.unknown
    (3, 0.667, {'c': 1})
    """
    place = {name: code for code, name in enumerate(classes)}
    others = sorted(set(truth) - set(classes))
    rows = place | {name: len(classes) + code for code, name in enumerate(others)}
    true_codes = np.array([rows[name] for name in truth], dtype=np.intp)
    codes = np.array([place[name] for name in predicted], dtype=np.intp)
    confusion = np.zeros((len(rows), len(classes)), dtype=np.intp)
    np.add.at(confusion, (true_codes, codes), 1)
    known = true_codes < len(classes)
    outputs = Outputs(
        true_codes[known], len(classes), labels=codes[known, None], probabilities=probabilities[known][:, None, :]
    )
    bins = reliability(probabilities[known, codes[known]], (true_codes == codes)[known])
    return Validation(
        n_samples=int(known.sum()),
        scores=_scores(outputs, OF_CLASSES, folds),
        classes=list(classes),
        confusion=confusion,
        rates=class_rates(confusion[: len(classes)], classes, probabilities[known].sum(axis=0)),
        unknown={name: int((true_codes == rows[name]).sum()) for name in others},
        bins=bins,
        calibration_error=_calibration_error(bins),
        calibration_slope=calibration_slope(outputs),
        batches=_batches(outputs, batches, known),
    )


def validate_numbers(
    truth: Array, predicted: Array, batches: Array | None = None, folds: Sequence[Fold] | None = None
) -> Validation:
    """Judge predicted numbers.

    Parameters
    ----------
    truth, predicted : arrays of shape (n_samples,)
    batches : array of shape (n_samples,), optional
        Group of each sample, for R2 within each.
    folds : sequence of Fold, optional
        Where the predictions are those of several models: the intervals are wider then.

    Returns
    -------
    Validation
        R2 first.

    Examples
    --------
    >>> found = validate_numbers(np.array([1.0, 2.0, 3.0]), np.array([1.5, 2.0, 3.0]))
    >>> round(found.scores["r2"].value, 3), round(found.bias.value, 3)
    (0.875, 0.167)
    """
    outputs = Outputs(truth, 0, numbers=predicted[:, None, None])
    return Validation(
        n_samples=len(truth),
        scores=_scores(outputs, OF_NUMBERS, folds),
        bias=mean_score(predicted - truth) if len(truth) > 1 else None,
        batches=_batches(outputs, batches, np.ones(len(truth), dtype=bool)),
    )


def class_rates(confusion: Array, classes: Sequence[str], expected: Array | None = None) -> list[ClassRates]:
    """Return the rates of each class from a confusion matrix with true classes in rows, with Wilson intervals.

    Examples
    --------
    >>> rates = class_rates(np.array([[8, 2], [0, 10]]), ["ill", "well"])
    >>> round(rates[0].sensitivity.value, 3), round(rates[0].specificity.value, 3)
    (0.8, 1.0)
    """
    total = int(confusion.sum())
    found = []
    for code, name in enumerate(classes):
        n_true, n_predicted, n_both = int(confusion[code].sum()), int(confusion[:, code].sum()), int(confusion[code, code])
        n_other = total - n_true
        found.append(
            ClassRates(
                str(name),
                n_true,
                n_predicted,
                None if expected is None else float(expected[code]),
                _share(n_both, n_true),
                _share(n_other - (n_predicted - n_both), n_other),
            )
        )
    return found


def reliability(probabilities: Array, is_right: Array) -> list[Bin]:
    """Group the probabilities of predicted classes into ranges of equal width, and compare with the share that is right.

    Examples
    --------
    >>> [(round(each.probability, 2), each.right.value, each.n_samples) for each in reliability(
    ...     np.array([0.55, 0.58, 0.97]), np.array([True, False, True]))]
    [(0.56, 0.5, 2), (0.97, 1.0, 1)]
    """
    places = np.minimum((probabilities * N_BINS).astype(int), N_BINS - 1)
    found = []
    for place in np.unique(places):
        mask = places == place
        n_right, n = int(is_right[mask].sum()), int(mask.sum())
        found.append(Bin(float(probabilities[mask].mean()), Estimate(n_right / n, *wilson(n_right, n)), n))
    return found


def calibration_slope(outputs: Outputs) -> Estimate | None:
    """Return the factor of the logarithms of the probabilities with the largest likelihood; None if it has no limit.

    Its 95 % interval has the factors that the likelihood ratio test does not reject, found by bisection: the logarithm of
    the likelihood is concave.

    Examples
    --------
    >>> half = np.array([[0.8, 0.2], [0.8, 0.2], [0.8, 0.2]])
    >>> slope = calibration_slope(Outputs(np.array([0, 0, 1]), 2, probabilities=half[:, None, :]))
    >>> [round(end, 3) for end in slope]
    [0.5, 0.001, 2.713]
    """
    assert outputs.probabilities is not None
    logs = np.log(np.clip(outputs.probabilities[:, 0, :], np.finfo(np.float64).tiny, 1.0))
    own = np.take_along_axis(logs, outputs.truth[:, None], axis=1)[:, 0]
    largest = logs.max(axis=1, keepdims=True)

    def likelihood(slope: float) -> float:
        return float((slope * (own - largest[:, 0]) - np.log(np.exp(slope * (logs - largest)).sum(axis=1))).sum())

    if (own >= largest[:, 0]).all():
        return None
    low, high = SLOPES
    best = float(fit_slopes(logs[None], outputs.truth, n_unknown=0.0)[0])
    if not low < best < high:
        return None
    least = likelihood(best) - 0.5 * Z**2
    return Estimate(
        best,
        _bisect(lambda slope: likelihood(slope) < least, low, best),
        _bisect(lambda slope: likelihood(slope) > least, best, high),
    )


def _bisect(is_below: Callable[[float], bool], low: float, high: float) -> float:
    """Return the positive number where a condition ends that holds for lower ones; an end of the range if it never does."""
    while high / low > 1.0 + 1e-12:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return math.sqrt(low * high)


def difference(new: Estimate, promised: Estimate) -> Estimate:
    """Return new less promised with its interval, from the intervals of both (Zou and Donner 2008).

    Examples
    --------
    >>> [round(end, 3) for end in difference(Estimate(0.8, 0.7, 0.87), Estimate(0.9, 0.85, 0.94))]
    [-0.1, -0.208, -0.014]
    """
    value = new.value - promised.value
    return Estimate(
        value,
        value - math.hypot(new.value - new.lower, promised.upper - promised.value),
        value + math.hypot(new.upper - new.value, promised.value - promised.lower),
    )


def _batches(outputs: Outputs, batches: Array | None, is_counted: Array) -> list[Batch]:
    """Return the main score within each group; ``outputs`` are those of the samples that count."""
    metric = METRICS[(OF_CLASSES if outputs.n_classes else OF_NUMBERS)[0]]
    masks = [] if batches is None else [(str(name), (batches == name)[is_counted]) for name in np.unique(batches)]
    return [Batch(name, int(mask.sum()), _score(outputs.part(mask), metric, None)) for name, mask in masks]


def _share(n_right: int, n: int) -> Estimate | None:
    """Return a share with its Wilson interval, None of nothing."""
    return Estimate(n_right / n, *wilson(n_right, n)) if n else None


def _scores(outputs: Outputs, names: Sequence[str], folds: Sequence[Fold] | None) -> dict[str, Estimate | None]:
    """Return the metrics with intervals; None where one is not defined, or has too few samples for an interval."""
    return {name: _score(outputs, METRICS[name], folds) for name in names}


def _score(outputs: Outputs, metric: Metric, folds: Sequence[Fold] | None) -> Estimate | None:
    n = len(outputs.truth)
    if not n or not np.isfinite(metric.formula(outputs, np.ones((1, n)))).all():
        return None
    score = score_of_samples(outputs, metric, folds)
    return score if np.isfinite(score).all() else None


def _calibration_error(bins: Sequence[Bin]) -> float | None:
    n = sum(each.n_samples for each in bins)
    return sum(each.n_samples * abs(each.probability - each.right.value) for each in bins) / n if n else None
