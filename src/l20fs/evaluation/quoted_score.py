r"""Scores with confidence intervals: of predictions out of fold, or of new samples by one model.

The score of a cross-validation is that of all predictions together, the repeats included. It is not corrected for the choice
of the number of features, which is decided by another measure: the models of the folds learn from fewer samples than the
final one, and a correction by the bootstrap is further from the truth (benchmarks/intervals.py).

The interval of a share such as the accuracy is Wilson's, with an effective number of samples :math:`c (1 - c) / v`, where c
is the score and

.. math:: v = \frac{c (1 - c) + 0.75\, \varphi(\Phi^{-1}(c))^2}{n}

has two terms: the n tested samples, and the models, which differ from one set of training samples to the next (the models of
the folds share most of theirs, so that their scores do not average out; Bates, Hastie and Tibshirani 2024). For a share that
is not a mean (balanced accuracy, F1, AUC), or of groups, n is what gives its bootstrap variance, at most the number of
samples. Errors (log loss, mean absolute error, 1 - R²) have a normal interval on the logarithmic scale, with twice the
variance of the bootstrap: half of it is for the models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit
from scipy.stats import rankdata

from l20fs.evaluation.folds import Fold
from l20fs.evaluation.metrics import Metric, Outputs
from l20fs.evaluation.resampling import encode_groups
from l20fs.typing import Array

if TYPE_CHECKING:
    from l20fs.evaluation.out_of_fold import Tested

#: Nominal coverage of intervals, and half the width of a normal one in deviations.
LEVEL = 0.95
Z = float(ndtri(0.5 + LEVEL / 2.0))

#: Number of bootstrap samples for a variance, and of products of a weight and a prediction in one block of them.
N_DRAWS, BLOCK_PRODUCTS = 1000, 10**7

#: Variance of the models, on the scale of normal quantiles of a share, relative to 1 / n; of errors, relative to that of
#: the samples.
MODEL_VARIANCE, MODEL_VARIANCE_OF_ERRORS = 0.75, 1.0


class Estimate(NamedTuple):
    """Score with the bounds of its confidence interval, in units of the metric.

    Examples
    --------
    >>> Estimate(0.3, 0.2, 0.4).times(-1)
    Estimate(value=-0.3, lower=-0.4, upper=-0.2)
    """

    value: float
    lower: float
    upper: float

    def times(self, sign: int) -> Estimate:
        """Return the estimate with the sign of a scorer, for which larger is better."""
        return self if sign > 0 else Estimate(-self.value, -self.upper, -self.lower)


def quoted_score(tested: Tested, metric: Metric, settings: Array, groups: Array | None = None) -> list[Estimate]:
    """Return the score of each of some settings, of predictions out of fold, with its interval.

    Parameters
    ----------
    tested : Tested
        A sample may have several rows, one for each repeat of the folds.
    metric : Metric
    settings : array of int
    groups : array of shape (n_samples,), optional
        Samples of a group are drawn together. Without groups samples are drawn within their class, so that its share is that
        of the data in every draw, as in stratified folds.
    """
    used = np.flatnonzero(tested.weights > 0.0)
    outputs, folds, samples = tested.outputs.of(settings).part(used), tested.folds[used], tested.samples[used]
    if metric.name == "roc_auc":
        outputs = _ranked(outputs, folds)
    units = None if groups is None else encode_groups(groups, len(groups))[samples]
    return _estimates(outputs, metric, samples, units, tested.weights[used], of_folds=True)


def score_of_samples(outputs: Outputs, metric: Metric, folds: Sequence[Fold] | None = None) -> Estimate:
    """Return the score of samples that were predicted once: by one model, or by those of ``folds``.

    Without folds the interval is about that model: for the accuracy Wilson's.
    """
    n = len(outputs.truth)
    if folds is not None and metric.name == "roc_auc":
        number = np.zeros(n, dtype=np.intp)
        for place, fold in enumerate(folds):
            number[fold.test] = place
        outputs = _ranked(outputs, number)
    return _estimates(outputs, metric, np.arange(n), None, np.ones(n), of_folds=folds is not None)[0]


def _estimates(
    outputs: Outputs, metric: Metric, samples: Array, groups: Array | None, weights: Array, *, of_folds: bool
) -> list[Estimate]:
    values = metric.formula(outputs, weights[None])[0]
    n_samples = len(np.unique(samples))
    _, first, units = np.unique(samples if groups is None else groups, return_index=True, return_inverse=True)
    if metric.name == "accuracy" and groups is None and np.ptp(weights) == 0.0:
        variances = values * (1.0 - values) / n_samples
    else:
        is_stratified = outputs.n_classes > 0 and groups is None
        strata = outputs.truth[first] if is_stratified else np.zeros(len(first), dtype=np.intp)
        draws = [metric.formula(outputs, counts[:, units] * weights) for counts in _draws(strata, len(units))]
        variances = np.nanvar(np.concatenate(draws), axis=0)
    if not (metric.sign > 0 and metric.is_for_labels):
        return [_of_error(metric, *each, of_folds) for each in zip(values.tolist(), variances.tolist(), strict=True)]
    return [
        _of_share(value, variance, n_samples, len(first), of_folds)
        for value, variance in zip(values.tolist(), variances.tolist(), strict=True)
    ]


def mean_score(values: Array) -> Estimate:
    """Return the mean of two or more numbers with the interval of Student's t."""
    n, value = len(values), float(values.mean())
    half = float(stdtrit(n - 1, 0.5 + LEVEL / 2.0) * values.std(ddof=1) / np.sqrt(n))
    return Estimate(value, value - half, value + half)


def wilson(n_right: float, n: float) -> tuple[float, float]:
    """Return Wilson's confidence interval of a share, from ``n_right`` of ``n``, which may be fractions.

    Examples
    --------
    >>> [round(bound, 3) for bound in wilson(63, 63)]
    [0.943, 1.0]
    """
    share = n_right / n
    centre = share + Z * Z / (2.0 * n)
    half = Z * np.sqrt(share * (1.0 - share) / n + (Z / (2.0 * n)) ** 2)
    scale = 1.0 + Z * Z / n
    return float(max(0.0, (centre - half) / scale)), float(min(1.0, (centre + half) / scale))


def _draws(strata: Array, n_rows: int) -> Iterator[Array]:
    """Yield blocks of bootstrap samples, how often each unit was drawn, (n_block, n_units), within each stratum."""
    random = np.random.default_rng(0)
    step = max(1, BLOCK_PRODUCTS // n_rows)
    sizes = np.unique(strata, return_counts=True)[1].tolist()
    places = np.argsort(np.argsort(strata, kind="stable"))  # of the units, stratum by stratum
    for start in range(0, N_DRAWS, step):
        n_block = min(step, N_DRAWS - start)
        counts = [random.multinomial(size, np.full(size, 1.0 / size), n_block) for size in sizes]
        yield np.concatenate(counts, axis=1, dtype=np.float64)[:, places]


def _ranked(outputs: Outputs, folds: Array) -> Outputs:
    """Return the ranks of probabilities within each fold, from 0 to 1: those of different models are not comparable."""
    assert outputs.probabilities is not None
    ranks = np.empty(outputs.probabilities.shape)
    for fold in np.unique(folds):
        rows = folds == fold
        ranks[rows] = rankdata(outputs.probabilities[rows], axis=0) / (rows.sum() + 1)
    return Outputs(outputs.truth, outputs.n_classes, probabilities=ranks)


def _of_error(metric: Metric, value: float, variance: float, of_folds: bool) -> Estimate:
    """Return the interval of an error on the logarithmic scale."""
    is_complement = metric.sign > 0  # 1 - R² is an error
    error = 1.0 - value if is_complement else value
    if not error > 0.0:
        return Estimate(value, value, value)
    half = Z * np.sqrt(variance * (1.0 + MODEL_VARIANCE_OF_ERRORS * of_folds)) / error
    lower, upper = float(error * np.exp(-half)), float(error * np.exp(half))
    return Estimate(value, 1.0 - upper, 1.0 - lower) if is_complement else Estimate(value, lower, upper)


def _of_share(value: float, variance: float, n_samples: int, n_units: int, of_folds: bool) -> Estimate:
    binomial = value * (1.0 - value)
    does_vary = binomial > 0.0 and variance > 0.0  # a perfect score does not
    n = min(binomial / variance, n_samples) if does_vary else n_units
    if binomial > 0.0:
        density = np.exp(-0.5 * ndtri(value) ** 2) / np.sqrt(2.0 * np.pi)
        n *= binomial / (binomial + MODEL_VARIANCE * of_folds * density**2)
    return Estimate(value, *wilson(value * n, n))
