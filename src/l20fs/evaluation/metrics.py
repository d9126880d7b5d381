"""Metrics of predictions, for many settings and many weightings of the samples at once.

A weighting is a row of weights: the test samples of a fold have weight 1 and all others 0; a bootstrap sample counts how
often each was drawn. So the scores of all folds, or of a thousand bootstrap samples, are a few matrix products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from l20fs.text import closest_hint
from l20fs.typing import Array

#: Probabilities are at least this in a logarithm, as in scikit-learn for float64.
LEAST_PROBABILITY = float(np.finfo(np.float64).eps)

#: A difference of sums that is smaller than this, relative to them, is a rounding error.
ROUNDING = 1e-13

#: A class is dominant if it is the largest and has at least this many times the samples of the smallest one.
IMBALANCE = 5.0


@dataclass(frozen=True, eq=False)
class Outputs:
    """Predictions of every sample by several settings; what was not computed is None.

    Attributes
    ----------
    truth : array of shape (n_samples,), or (n_samples, n_outputs) of numbers
        Indices of the true classes, or true numbers.
    n_classes : int
        0 for numbers.
    labels : array of shape (n_samples, n_settings)
        Indices of the predicted classes.
    probabilities : array of shape (n_samples, n_settings, n_classes)
    numbers : array of shape (n_samples, n_settings, n_outputs)
        Predicted numbers.
    """

    truth: Array
    n_classes: int
    labels: Array | None = None
    probabilities: Array | None = None
    numbers: Array | None = None

    def part(self, rows: Array) -> Outputs:
        """Return the predictions of some samples."""
        fields = (self.labels, self.probabilities, self.numbers)
        return Outputs(self.truth[rows], self.n_classes, *(None if each is None else each[rows] for each in fields))

    def of(self, settings: Array) -> Outputs:
        """Return the predictions by some settings."""
        fields = (self.labels, self.probabilities, self.numbers)
        return Outputs(self.truth, self.n_classes, *(None if each is None else each[:, settings] for each in fields))

    @property
    def n_settings(self) -> int:
        """Number of settings."""
        return next(each.shape[1] for each in (self.labels, self.probabilities, self.numbers) if each is not None)

    @property
    def members(self) -> Iterator[Array]:
        """Masks of the samples of each class."""
        return (self.truth == code for code in range(self.n_classes))


@dataclass(frozen=True)
class Metric:
    """A metric: its name as in ``--scoring``, the words for it, and its formula.

    ``formula(outputs, weights)`` returns an array of shape (n_weightings, n_settings) from weights of shape (n_weightings,
    n_samples), NaN where it is not defined. ``needs`` names the attribute of :class:`Outputs` that it reads. A share is
    shown in percent. ``sign`` is -1 where less is better.
    """

    name: str
    title: str
    needs: Literal["labels", "probabilities", "numbers"]
    formula: Callable[[Outputs, Array], Array]
    is_share: bool = True
    sign: int = 1
    aliases: tuple[str, ...] = ()

    @property
    def is_for_labels(self) -> bool:
        """Whether classes are predicted, not numbers."""
        return self.needs != "numbers"

    @property
    def heading(self) -> str:
        """The title at the beginning of a line."""
        return self.title[:1].upper() + self.title[1:]


def accuracy(outputs: Outputs, weights: Array) -> Array:
    """Return the share of correct predictions."""
    return weighted_mean(_is_right(outputs), weights)


def balanced_accuracy(outputs: Outputs, weights: Array) -> Array:
    """Return the mean over the classes of the share of correct predictions; classes without weight do not count."""
    is_right = _is_right(outputs)
    shares = [weighted_mean(is_right[mask], weights[:, mask]) for mask in outputs.members]
    return _mean_of_defined(np.stack(shares))


def f1_macro(outputs: Outputs, weights: Array) -> Array:
    """Return the mean over the classes of the harmonic mean of precision and recall."""
    assert outputs.labels is not None
    found = []
    for code, mask in enumerate(outputs.members):
        is_predicted = (outputs.labels == code).astype(np.float64)
        n_true, n_predicted = weights[:, mask].sum(axis=1, keepdims=True), weights @ is_predicted
        total = n_true + n_predicted
        both = weights[:, mask] @ is_predicted[mask]
        with np.errstate(invalid="ignore"):
            found.append(2.0 * both / total)  # NaN for a class that neither is there nor is predicted
    return _mean_of_defined(np.stack(found))


def roc_auc(outputs: Outputs, weights: Array) -> Array:
    """Return the area under the ROC curve, for more than two classes the mean over each against the rest.

    Classes without weight do not count, as in :func:`balanced_accuracy`.
    """
    assert outputs.probabilities is not None
    codes = [1] if outputs.n_classes == 2 else range(outputs.n_classes)
    areas = [
        [
            area_under_curve(outputs.truth == code, outputs.probabilities[:, setting, code], weights)
            for setting in range(outputs.probabilities.shape[1])
        ]
        for code in codes
    ]
    return _mean_of_defined(np.array(areas)).T


def area_under_curve(is_positive: Array, scores: Array, weights: Array) -> Array:
    """Return the probability that a positive sample scores higher than a negative one, (n_weightings,); ties count half.

    Examples
    --------
    >>> area_under_curve(np.array([True, False, True, False]), np.array([0.9, 0.8, 0.8, 0.1]), np.ones((1, 4)))
    array([0.875])
    """
    order = np.argsort(scores, kind="stable")
    sorted_scores = scores[order]
    starts = np.flatnonzero(np.append(True, sorted_scores[1:] != sorted_scores[:-1]))  # of the runs of equal scores
    in_order = np.ascontiguousarray(weights.T)[order]
    positive, negative = (
        np.add.reduceat(in_order * mask[order][:, None], starts, axis=0) for mask in (is_positive, ~is_positive)
    )
    below = negative.cumsum(axis=0) - 0.5 * negative
    with np.errstate(invalid="ignore"):
        return np.asarray((positive * below).sum(axis=0) / (positive.sum(axis=0) * negative.sum(axis=0)))


def log_loss(outputs: Outputs, weights: Array) -> Array:
    """Return the mean of minus the logarithm of the probability of the true class."""
    return weighted_mean(-np.log(np.clip(_of_truth(outputs), LEAST_PROBABILITY, 1.0)), weights)


def brier(outputs: Outputs, weights: Array) -> Array:
    """Return the mean squared error of the probabilities, summed over classes; of two classes, that of the second."""
    total = squared_errors(outputs)
    return weighted_mean(total / 2.0 if outputs.n_classes == 2 else total, weights)


def squared_errors(outputs: Outputs) -> Array:
    """Return the squared errors of the probabilities, summed over classes, (n_samples, n_settings)."""
    assert outputs.probabilities is not None
    is_truth = np.eye(outputs.n_classes)[outputs.truth][:, None, :]
    return np.asarray(np.square(outputs.probabilities - is_truth).sum(axis=2))


def r2(outputs: Outputs, weights: Array) -> Array:
    """Return the share of the variance that is explained, the mean over outputs; NaN for one sample."""
    truth = _truth_2d(outputs)
    truth = truth - truth.mean(axis=0)  # so that squares of large numbers do not cancel
    squares = weights @ np.square(truth)
    total = squares - weights.sum(axis=1, keepdims=True) * np.square(weighted_mean(truth, weights))
    residual = np.stack([weights @ errors for errors in np.square(_errors(outputs)).transpose(2, 0, 1)], axis=2)
    does_vary = (total > ROUNDING * squares)[:, None, :]
    # As in scikit-learn: of equal numbers all is explained or nothing, and one number says nothing.
    shares = np.where(does_vary, 1.0 - residual / np.where(does_vary, total[:, None, :], 1.0), residual == 0.0)
    is_one = np.count_nonzero(weights, axis=1) < 2
    return np.where(is_one[:, None], np.nan, shares.mean(axis=2))


def mae(outputs: Outputs, weights: Array) -> Array:
    """Return the mean absolute error."""
    return weighted_mean(np.abs(_errors(outputs)).mean(axis=2), weights)


def rmse(outputs: Outputs, weights: Array) -> Array:
    """Return the root of the mean squared error, the mean over outputs."""
    squares = np.square(_errors(outputs)).transpose(2, 0, 1)
    return np.mean([np.sqrt(weighted_mean(each, weights)) for each in squares], axis=0)


#: All metrics by name; the first of each kind is the default.
METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy", "labels", accuracy),
        Metric("balanced_accuracy", "balanced accuracy", "labels", balanced_accuracy),
        Metric("f1_macro", "macro F1", "labels", f1_macro),
        Metric("roc_auc", "AUC", "probabilities", roc_auc, aliases=("roc_auc_ovr",)),
        Metric("log_loss", "log loss", "probabilities", log_loss, False, -1, ("neg_log_loss",)),
        Metric("brier", "Brier score", "probabilities", brier, False, -1, ("neg_brier_score",)),
        Metric("r2", "R²", "numbers", r2, False),
        Metric("mae", "mean absolute error", "numbers", mae, False, -1, ("neg_mean_absolute_error",)),
        Metric("rmse", "root mean squared error", "numbers", rmse, False, -1, ("neg_root_mean_squared_error",)),
    )
}


def find_metric(name: str) -> Metric:
    """Return a metric by its name, or by that of scikit-learn.

    Examples
    --------
    >>> find_metric("neg_log_loss").name
    'log_loss'
    """
    for metric in METRICS.values():
        if name == metric.name or name in metric.aliases:
            return metric
    raise ValueError(f"The metric {name!r} is unknown. {closest_hint(name, list(METRICS))}")


def metric_of(columns: Iterable[str]) -> Metric:
    """Return the metric whose name is among the columns of a table; accuracy if there is none.

    Examples
    --------
    >>> metric_of(["method", "log_loss", "seconds"]).title
    'log loss'
    """
    return next((METRICS[name] for name in columns if name in METRICS), METRICS["accuracy"])


def weighted_mean(values: Array, weights: Array) -> Array:
    """Return the mean of each column of values under each weighting, (n_weightings, n_settings); NaN without weight."""
    with np.errstate(invalid="ignore"):
        return np.asarray(weights @ values / weights.sum(axis=1, keepdims=True))


def _mean_of_defined(values: Array) -> Array:
    """Return the mean along the first axis of what is not NaN."""
    is_defined = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(is_defined, values, 0.0).sum(axis=0) / is_defined.sum(axis=0))


def _is_right(outputs: Outputs) -> Array:
    assert outputs.labels is not None
    return (outputs.labels == outputs.truth[:, None]).astype(np.float64)


def _of_truth(outputs: Outputs) -> Array:
    """Return the probabilities of the true classes, (n_samples, n_settings)."""
    assert outputs.probabilities is not None
    return np.asarray(np.take_along_axis(outputs.probabilities, outputs.truth[:, None, None], axis=2)[:, :, 0])


def _truth_2d(outputs: Outputs) -> Array:
    return outputs.truth[:, None] if outputs.truth.ndim == 1 else outputs.truth


def _errors(outputs: Outputs) -> Array:
    """Return predicted less true numbers, (n_samples, n_settings, n_outputs)."""
    assert outputs.numbers is not None
    return np.asarray(outputs.numbers - _truth_2d(outputs)[:, None, :])
