r"""The score of a chosen setting without the optimism of the choice, with a confidence interval.

The best of many cross-validation scores is too high, since it was chosen for being high. Bootstrap bias-corrected
cross-validation (Tsamardinos, Greasidou and Borboudakis 2018) repeats the choice alone: on samples drawn with replacement
from the out-of-fold predictions of all settings, the same rule chooses a setting, which is scored on the samples that were
not drawn. The mean over many draws is the corrected score; no model is fitted again.

The interval of a share such as the accuracy is Wilson's, with an effective number of samples :math:`c (1 - c) / v`, where c
is the corrected score and

.. math:: v = \frac{c (1 - c) + 1.25\, \varphi(\Phi^{-1}(c))^2}{n} + \frac{(u - c)^2}{2}

has three terms: the n tested samples; the models, which differ from one set of training samples to the next (the models of
the folds share most of theirs, so that their scores do not average out; Bates, Hastie and Tibshirani 2024); and the
correction of the uncorrected score u, which is uncertain itself. The factors are from simulations (benchmarks/intervals.py).
For a share that is not a mean (balanced accuracy, F1, AUC), n is what gives its bootstrap variance, at most the number of
samples; with groups, the bootstrap draws whole groups, and a perfect score counts these. Errors (log loss, mean absolute
error, 1 - R²) have a normal interval on the logarithmic scale, with twice the variance of the bootstrap: half of it is for
the models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit
from scipy.stats import rankdata

from l20fs.evaluation.folds import Fold
from l20fs.evaluation.metrics import Metric, Outputs
from l20fs.evaluation.resampling import encode_groups
from l20fs.typing import Array

#: Nominal coverage of intervals, and half the width of a normal one in deviations.
LEVEL = 0.95
Z = float(ndtri(0.5 + LEVEL / 2.0))

#: Numbers of bootstrap samples: for the choice (fewer if there are many predictions), and for a variance.
N_CHOICES, N_DRAWS = 500, 1000

#: Up to so many units of a stratum, how often each was drawn is drawn itself; more are drawn and counted, in a fifth of the
#: time. Published scores of small sets depend on it by a point.
FEW_UNITS = 64

#: Numbers of products of a weight and a prediction, in all choices together and in one block.
MOST_PRODUCTS, BLOCK_PRODUCTS = 10**9, 10**7

#: Variance of the models, on the scale of normal quantiles of a share, relative to 1 / n; of errors, relative to that of
#: the samples.
MODEL_VARIANCE, MODEL_VARIANCE_OF_ERRORS = 1.25, 1.0

#: Variance of the correction, relative to its square.
CORRECTION_VARIANCE = 0.5

#: Called with signed mean scores (n_rows, n_settings), larger is better; returns the index of the chosen setting of each
#: row, see :func:`l20fs.evaluation.choice.choose_each`.
Choose = Callable[[Array], Array]


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


def corrected_score(
    outputs: Outputs,
    metric: Metric,
    folds: Sequence[Fold],
    choose: Choose,
    *,
    groups: Array | None = None,
    sample_weight: Array | None = None,
    seed: int = 0,
) -> Estimate:
    """Return the score of the chosen setting, corrected for the choice among all settings.

    Parameters
    ----------
    outputs : Outputs
        Out-of-fold predictions of all settings.
    metric : Metric
    folds : sequence of Fold
        Only the test samples are used; those that no fold tests do not count.
    choose : callable
        The rule, for example ``partial(choose_each, results, "1se")``. As in the fit, it gets means over the folds.
    groups : array of shape (n_samples,), optional
        Samples of a group are drawn together. Without groups samples are drawn within their class, so that its share is
        that of the data in every draw, as in stratified folds.
    sample_weight : array of shape (n_samples,), optional
    seed : int
    """
    tested = _Tested.of(outputs, metric, folds, groups, sample_weight)
    setting = int(choose(tested.fold_means(metric, np.ones((1, tested.n_rows))))[0])
    uncorrected, variance = (float(each[0]) for each in tested.spread(metric, np.array([setting]), seed))
    pairs = []
    n_choices = int(np.clip(MOST_PRODUCTS // (tested.n_rows * outputs.n_settings), N_CHOICES // 10, N_CHOICES))
    for counts in tested.draws(n_choices, seed):
        chosen = choose(tested.fold_means(metric, counts))
        left = (counts == 0.0) * tested.weights
        for other in np.unique(chosen):
            pairs.append(metric.formula(tested.outputs.of(np.array([setting, other])), left[chosen == other]))
    value = _corrected(metric, uncorrected, np.concatenate(pairs))
    return _interval(metric, value, uncorrected, variance, tested, of_folds=True)


def fixed_scores(
    outputs: Outputs, metric: Metric, *, folds: Sequence[Fold] | None = None, groups: Array | None = None
) -> list[Estimate]:
    """Return the score of every setting, of all predictions together, as if no other setting had been tried.

    Without ``folds`` these are predictions of fresh samples by one model, and the interval is about that model: for the
    accuracy Wilson's. The other parameters are those of :func:`corrected_score`.
    """
    tested = _Tested.of(outputs, metric, folds, groups, None)
    values, variances = tested.spread(metric, np.arange(outputs.n_settings), seed=0)
    return [
        _interval(metric, value, value, variance, tested, of_folds=folds is not None)
        for value, variance in zip(values.tolist(), variances.tolist(), strict=True)
    ]


def fixed_score(
    outputs: Outputs, metric: Metric, setting: int, *, folds: Sequence[Fold] | None = None, groups: Array | None = None
) -> Estimate:
    """Return the score of one setting that was not chosen by it, see :func:`fixed_scores`."""
    return fixed_scores(outputs.of(np.array([setting])), metric, folds=folds, groups=groups)[0]


def corrected_by_folds(scores: Array, choose: Choose) -> Estimate:
    """Return the corrected score by fold scores alone, for a scorer that is no :class:`Metric`.

    For each fold the setting is chosen by the scores of the others (after Tibshirani and Tibshirani 2009). The interval is
    Student's for the mean of as many numbers as there are folds; NaN for one fold, whose score is not corrected.

    Parameters
    ----------
    scores : array of shape (n_folds, n_settings)
        Larger is better.
    choose : callable

    Examples
    --------
    >>> scores = np.array([[0.8, 0.7], [0.7, 0.9], [0.9, 0.8]])
    >>> estimate = corrected_by_folds(scores, lambda means: means.argmax(axis=1))
    >>> round(estimate.value, 3)
    0.733
    """
    n_folds = len(scores)
    if n_folds == 1:
        return Estimate(float(scores[0, choose(scores)[0]]), np.nan, np.nan)
    means = (scores.sum(axis=0) - scores) / (n_folds - 1)
    left = scores[np.arange(n_folds), choose(means)]
    return mean_score(left)


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


class _Tested(NamedTuple):
    """Predictions that count: their folds, weights, and the units that are drawn, with the strata of these."""

    outputs: Outputs
    folds: list[Array]
    weights: Array
    units: Array
    strata: Array

    @classmethod
    def of(
        cls,
        outputs: Outputs,
        metric: Metric,
        folds: Sequence[Fold] | None,
        groups: Array | None,
        sample_weight: Array | None,
    ) -> _Tested:
        n_samples = len(outputs.truth)
        tests = [np.arange(n_samples)] if folds is None else [fold.test for fold in folds]
        rows = np.unique(np.concatenate(tests))
        weights = np.ones(n_samples) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        rows = rows[weights[rows] > 0.0]
        places = [np.searchsorted(rows, np.intersect1d(test, rows)) for test in tests]
        outputs = outputs.part(rows)
        if folds is not None and metric.name == "roc_auc":
            outputs = _ranked(outputs, places)
        names = np.arange(n_samples) if groups is None else encode_groups(groups, n_samples)
        _, first, units = np.unique(names[rows], return_index=True, return_inverse=True)
        is_stratified = groups is None and outputs.n_classes > 0
        strata = outputs.truth[first] if is_stratified else np.zeros(len(first), dtype=np.intp)
        return cls(outputs, [place for place in places if len(place)], weights[rows], units, strata)

    @property
    def n_rows(self) -> int:
        return len(self.weights)

    @property
    def n_units(self) -> int:
        return len(self.strata)

    def draws(self, n_draws: int, seed: int) -> Iterator[Array]:
        """Yield blocks of bootstrap samples, how often each row was drawn, (n_block, n_rows)."""
        random = np.random.default_rng(seed)
        step = max(1, BLOCK_PRODUCTS // self.n_rows)
        sizes = np.unique(self.strata, return_counts=True)[1].tolist()
        places = np.argsort(np.argsort(self.strata, kind="stable"))[self.units]  # of the rows, stratum by stratum
        for start in range(0, n_draws, step):
            n_block = min(step, n_draws - start)
            yield np.concatenate([draw_counts(random, size, n_block) for size in sizes], axis=1, dtype=np.float64)[:, places]

    def fold_means(self, metric: Metric, counts: Array) -> Array:
        """Return the means over the folds of the signed scores under some counts, (n_draws, n_settings).

        A fold counts by how many of its samples were drawn: twice, if all of them were drawn twice.
        """
        total, shares = np.zeros((len(counts), self.outputs.n_settings)), np.zeros((len(counts), 1))
        for rows in self.folds:
            weights = counts[:, rows] * self.weights[rows]
            scores = metric.sign * metric.formula(self.outputs.part(rows), weights)
            share = np.where(np.isfinite(scores), weights.sum(axis=1, keepdims=True) / self.weights[rows].sum(), 0.0)
            total += share * np.where(share > 0.0, scores, 0.0)
            shares = shares + share
        with np.errstate(invalid="ignore"):
            means = total / shares
        return np.where(np.isfinite(means), means, -np.inf)

    def spread(self, metric: Metric, settings: Array, seed: int) -> tuple[Array, Array]:
        """Return the scores of some settings, of all predictions together, and their variances by the bootstrap."""
        outputs = self.outputs.of(settings)
        values = metric.formula(outputs, self.weights[None])[0]
        is_plain = self.n_units == self.n_rows and np.ptp(self.weights) == 0.0
        if metric.name == "accuracy" and is_plain:
            return values, values * (1.0 - values) / self.n_rows
        draws = self.draws(N_DRAWS, seed + 1)
        return values, np.nanvar(
            np.concatenate([metric.formula(outputs, counts * self.weights) for counts in draws]), axis=0
        )


def draw_counts(random: np.random.Generator, n_units: int, n_draws: int) -> Array:
    """Return how often each of so many units was drawn, (n_draws, n_units)."""
    if n_units <= FEW_UNITS:
        return random.multinomial(n_units, np.full(n_units, 1.0 / n_units), n_draws)
    drawn = random.integers(n_units, size=(n_draws, n_units)) + n_units * np.arange(n_draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)


def _ranked(outputs: Outputs, folds: Sequence[Array]) -> Outputs:
    """Return the ranks of probabilities within each fold, from 0 to 1: those of different models are not comparable."""
    assert outputs.probabilities is not None
    ranks = np.empty(outputs.probabilities.shape)
    for rows in folds:
        ranks[rows] = rankdata(outputs.probabilities[rows], axis=0) / (len(rows) + 1)
    return Outputs(outputs.truth, outputs.n_classes, probabilities=ranks)


def _corrected(metric: Metric, uncorrected: float, pairs: Array) -> float:
    """Return the corrected score from those of the setting itself, and of what was chosen, on samples that were not drawn.

    The mean of the former is known: it is the uncorrected score. So few draws are enough for the difference, or the ratio of
    errors, between the two.
    """
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    if not len(pairs):
        return uncorrected
    own, chosen = pairs.mean(axis=0)
    if metric.sign > 0 and metric.is_for_labels:
        return float(np.clip(uncorrected + (chosen - own), 0.0, 1.0))
    if metric.sign > 0:  # 1 - R² is an error
        return float(1.0 - (1.0 - uncorrected) * ((1.0 - chosen) / (1.0 - own) if own < 1.0 else 1.0))
    return float(uncorrected * (chosen / own if own > 0.0 else 1.0))


def _interval(
    metric: Metric, value: float, uncorrected: float, variance: float, tested: _Tested, *, of_folds: bool
) -> Estimate:
    """Return the interval around a value, from the variance of the uncorrected score."""
    if metric.sign > 0 and metric.is_for_labels:
        return _interval_of_share(value, uncorrected, variance, tested, of_folds=of_folds)
    is_complement = metric.sign > 0  # 1 - R² is an error
    error, first = (1.0 - value, 1.0 - uncorrected) if is_complement else (value, uncorrected)
    if not (error > 0.0 and first > 0.0):
        return Estimate(value, value, value)
    variance *= (1.0 + MODEL_VARIANCE_OF_ERRORS * of_folds) / first**2
    half = Z * np.sqrt(variance + CORRECTION_VARIANCE * np.log(error / first) ** 2)
    lower, upper = float(error * np.exp(-half)), float(error * np.exp(half))
    return Estimate(value, 1.0 - upper, 1.0 - lower) if is_complement else Estimate(value, lower, upper)


def _interval_of_share(value: float, uncorrected: float, variance: float, tested: _Tested, *, of_folds: bool) -> Estimate:
    binomial = uncorrected * (1.0 - uncorrected)
    does_vary = binomial > 0.0 and variance > 0.0  # a perfect score does not
    n = min(binomial / variance, tested.n_rows) if does_vary else tested.n_units
    binomial = value * (1.0 - value)
    if binomial > 0.0:
        density = np.exp(-0.5 * ndtri(value) ** 2) / np.sqrt(2.0 * np.pi)
        models = MODEL_VARIANCE * of_folds * density**2
        n = binomial / ((binomial + models) / n + CORRECTION_VARIANCE * (uncorrected - value) ** 2)
    return Estimate(value, *wilson(value * n, n))
