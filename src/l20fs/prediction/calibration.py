r"""Probabilities of classes from the values of a linear rule.

A rule scores the classes. Its scores rank them well, but on the samples of the fit they are overconfident: the rule
has seen the labels. Temperature scaling (Guo et al. 2017) multiplies all scores by one slope t, so that the softmax of
the scores describes samples that the rule has *not* seen. The logarithms of the class shares of the samples stay beside them
in full: scores that say nothing (t = 0) leave the shares. Some samples are harder than others, though, and one slope for all
is overconfident about the hard ones or underconfident about the rest. Hence the probabilities are

.. math:: p = (1 - d)\, \mathrm{softmax}(z) + d\, \mathrm{softmax}(z / 4), \qquad z = t\, (v - \log q) + \log \pi,

of the values v, with the class shares :math:`\pi` of the samples in place of those, q, that the rule decides with: equal
ones where ``class_weight`` is balanced. The second number, the doubt d, is the share of samples whose scores count a
quarter. Slope and doubt minimise the log loss of scores that a cross-validation gives. The rule decides with q: where
classes are of unequal sizes, the class of the largest probability may be another one.

Scores that separate all samples would give an infinite t. As Platt (1999) does, the labels are therefore not believed
entirely: one further sample, whose class is unknown, is added to the n at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from l20fs.typing import Array

#: Samples of unknown class that are added to those at hand.
UNKNOWN_SAMPLES = 1.0

#: One slope is known well enough from so many samples.
MOST_SAMPLES = 2000

#: Slope of values that say nothing about the classes, in units of one over their size: the probabilities are equal but for
#: what tells which one is predicted.
LEAST_SLOPE = 1e-6

#: What scores are multiplied by for the soft part of the probabilities, and the largest share of it, the doubt.
SOFT_FACTOR, MOST_DOUBT = 0.25, 0.9

#: Factors of the slopes without doubt that are tried with it, and the number of rules and samples that decide.
FACTORS = np.geomspace(1.0, 8.0, 13)
MOST_RULES, MOST_DECIDING = 8, 500

#: Probabilities are at least this in a logarithm.
LEAST_PROBABILITY = 1e-100

#: Steps of the search for a slope, the relative change at which it ends, and the change at which that for a doubt ends.
MOST_STEPS, SLOPE_TOLERANCE, DOUBT_TOLERANCE = 100, 1e-10, 1e-9

#: Relative length of a step of Newton's after which a slope is known to :data:`SLOPE_TOLERANCE`.
SHORT_STEP = 1e-6


class Shares(NamedTuple):
    """Shares of the classes among the samples, and those that a rule decides with, (n_classes,) each.

    Examples
    --------
    >>> Shares(np.array([0.75, 0.25]), np.array([0.5, 0.5])).offset(2.0).round(2)
    array([1.1, 0. ])
    """

    of_sample: Array
    of_rule: Array

    @property
    def logs(self) -> tuple[Array, Array]:
        """Their logarithms; of a class without a share, which no rule knows, zero."""
        with np.errstate(divide="ignore"):
            sample, rule = np.log(self.of_sample), np.log(self.of_rule)
        is_known = np.isfinite(sample) & np.isfinite(rule)
        return np.where(is_known, sample, 0.0), np.where(is_known, rule, 0.0)

    def offset(self, slope: float) -> Array:
        """Return what is added to values times a slope, up to a constant."""
        sample, rule = self.logs
        offset = sample - slope * rule
        return offset - offset[-1]


class Calibration(NamedTuple):
    """Calibration of the values of a rule: ``(1 - doubt) softmax(z) + doubt softmax(z / 4)``, z = slope * values + offset.

    The one value of a rule for two classes stands for minus and plus half of it. ``offset`` (n_classes,) is that of
    :class:`Shares`, empty for none.

    Examples
    --------
    >>> Calibration(2.0).probabilities(np.array([[0.0], [1.0]])).round(3)
    array([[0.5  , 0.5  ],
           [0.119, 0.881]])
    >>> Calibration(0.0, 0.0, (1.0, 0.0)).probabilities(np.array([[5.0]])).round(3)
    array([[0.731, 0.269]])
    """

    slope: float
    doubt: float = 0.0
    offset: Sequence[float] | Array = ()

    def probabilities(self, values: Array) -> Array:
        """Return the probability of each class, (n_samples, n_classes)."""
        scores = scaled_scores(self.slope, per_class(values))
        return blurred(scores + np.asarray(self.offset) if len(self.offset) else scores, self.doubt)


def blurred(scores: Array, doubt: float) -> Array:
    """Return probabilities of classes from scores along the last axis, with a share of doubt."""
    sharp = softmax(scores)
    return sharp if doubt == 0.0 else (1.0 - doubt) * sharp + doubt * softmax(SOFT_FACTOR * scores)


def per_class(values: Array) -> Array:
    """Return values with a column per class: the one of a rule for two classes becomes minus and plus half of it."""
    return values * np.array([-0.5, 0.5]) if values.shape[-1] == 1 else values


def scaled_scores(slope: float | Array, scores: Array) -> Array:
    """Return ``slope * scores``, where a class of score minus infinity stays impossible for a slope of zero."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(scores), -np.inf, slope * scores)


def softmax(logits: Array) -> Array:
    """Return the exponentials along the last axis, divided by their sum.

    Examples
    --------
    >>> softmax(np.array([1000.0, 1000.0, -np.inf]))
    array([0.5, 0.5, 0. ])
    """
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def log_of(probabilities: Array) -> Array:
    """Return logarithms of probabilities, minus infinity for zero."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def evenly_spaced(n_samples: int) -> slice:
    """Return the samples of which a slope is computed: at most :data:`MOST_SAMPLES`, evenly spaced."""
    return slice(None, None, -(-n_samples // MOST_SAMPLES) or 1)


class Labelled(NamedTuple):
    """Scores of rules, (n_rules, n_samples, n_classes), that know nothing of the true classes, and these.

    ``scores`` are finite, ``logits`` minus infinity for classes that a rule does not know. ``base`` (n_classes,) is added to
    the logits times the slope. ``belief`` (n_rules, n_samples, n_classes) has the weight of the sample in the true class,
    but for the samples of unknown class.
    """

    scores: Array
    logits: Array
    belief: Array
    base: Array

    @classmethod
    def of(cls, values: Array, codes: Array, weights: Array | None, n_unknown: float, shares: Shares | None) -> Labelled:
        """Arrange values of rules; samples of a class that a rule does not know do not count for it."""
        scores, base = per_class(values), np.zeros(per_class(values[:1, :1]).shape[2])
        if shares is not None:
            base, of_rule = shares.logs
            scores = scores - of_rule
        is_known = np.isfinite(scores)
        is_own = np.arange(scores.shape[2]) == codes[:, None]
        counts = np.ones(len(codes)) if weights is None else weights
        counts = counts * (is_known & is_own).any(axis=2)
        totals = counts.sum(axis=1)[:, None, None]
        doubt = n_unknown / (totals + n_unknown)
        unknown = is_known * np.exp(base)
        belief = counts[:, :, None] * ((1.0 - doubt) * is_own + doubt * unknown / unknown.sum(axis=2, keepdims=True))
        logits = np.where(is_known, scores, -np.inf)
        return cls(np.where(is_known, scores, 0.0), logits - logits.max(axis=2, keepdims=True), belief, base)

    def thinned(self) -> tuple[Array, Labelled]:
        """Return a few of the rules, evenly spaced, and their scores at a few of the samples."""
        n_rules, n_samples = self.scores.shape[:2]
        rules = np.unique(np.linspace(0, n_rules - 1, MOST_RULES).astype(np.intp))
        samples = np.unique(np.linspace(0, n_samples - 1, MOST_DECIDING).astype(np.intp))
        few = [part[np.ix_(rules, samples)] for part in (self.scores, self.logits, self.belief)]
        return rules, Labelled(few[0], few[1], few[2], self.base)


def fit_calibrations(
    values: Array, codes: Array, weights: Array | None = None, shares: Shares | None = None
) -> tuple[Array, float]:
    """Return the slope of each of several rules, and the doubt, which they share.

    The parameters are those of :func:`fit_slopes`. The doubt comes with one factor for all slopes: those without doubt are
    too small beside it. For each of :data:`FACTORS` the log loss is convex in the doubt.

    Examples
    --------
    >>> values = np.tile([[-3.0], [-2.0], [2.0], [3.0]], (10, 1))
    >>> codes = (values[:, 0] > 0.0).astype(int)
    >>> codes[:3] = 1  # of which the rule is confident, and wrong
    >>> slopes, doubt = fit_calibrations(values[None], codes)
    >>> slopes.round(2), fit_slopes(values[None], codes).round(2), round(doubt, 2)
    (array([2.2]), array([1.1]), 0.28)
    """
    sample = Labelled.of(values, codes, weights, UNKNOWN_SAMPLES, shares)
    slopes = _solve(sample)
    rules, few = sample.thinned()
    found, doubt = [], MOST_DOUBT / 2.0
    for factor in FACTORS:
        loss, doubt = _best_doubt(few, factor * slopes[rules], doubt)  # that of the factor before is near
        found.append((loss, factor, doubt))
    _, factor, doubt = min(found)
    return factor * slopes, doubt


def _best_doubt(sample: Labelled, slopes: Array, near: float) -> tuple[float, float]:
    """Return the smallest log loss over all doubts, and the doubt that has it, searched for from a doubt that is near."""
    counted = sample.belief > 0.0
    belief = sample.belief[counted]
    scores = scaled_scores(slopes[:, None, None], sample.logits) + sample.base
    sharp, soft = (softmax(each)[counted] + LEAST_PROBABILITY for each in (scores, SOFT_FACTOR * scores))
    change = soft - sharp

    def derivatives(doubt: float) -> tuple[float, float]:
        ratios = change / (sharp + doubt * change)
        return -float(belief @ ratios), float(belief @ np.square(ratios))

    low, high, doubt = 0.0, MOST_DOUBT, near
    while high - low > DOUBT_TOLERANCE:
        excess, bend = derivatives(doubt)
        if bend == 0.0:  # doubt changes nothing
            doubt = 0.0
            break
        low, high = (low, doubt) if excess > 0.0 else (doubt, high)
        step = min(max(doubt - excess / bend, 0.0), MOST_DOUBT)
        if abs(step - doubt) <= DOUBT_TOLERANCE:
            break
        # A step to an end is taken once: it is the minimum, or a bound.
        is_inside = low < step < high or (step in (0.0, MOST_DOUBT) and low <= step <= high)
        doubt = step if is_inside else (low + high) / 2.0
    return -float(belief @ np.log(sharp + doubt * change)), doubt


def fit_slopes(values: Array, codes: Array, weights: Array | None = None, *, n_unknown: float = UNKNOWN_SAMPLES) -> Array:
    """Return the slope of each of several rules, without doubt.

    Parameters
    ----------
    values : array of shape (n_rules, n_samples, n_values)
        Values of the rules at samples that they have not seen; minus infinity for classes that they do not know.
    codes : array of shape (n_samples,)
        Indices of the true classes. Samples of a class that a rule does not know say nothing about its slope.
    weights : array of shape (n_samples,), optional
        How often each sample counts.
    n_unknown : float
        Number of samples of unknown class that are added to those at hand.

    Returns
    -------
    array of shape (n_rules,)
        Positive; of values that say nothing about the classes next to nothing.

    Examples
    --------
    >>> values = np.array([[[3.0], [1.0], [-2.0], [-1.0]], [[3.0], [-1.0], [2.0], [-3.0]]])
    >>> fit_slopes(values, np.array([1, 1, 0, 0])).round(2)
    array([1.21, 0.21])
    """
    return _solve(Labelled.of(values, codes, weights, n_unknown, None))


def _solve(sample: Labelled) -> Array:
    """Return the slope at which the mean score under the probabilities is that of the true classes.

    The log loss is convex in the slope, and its derivative the difference of the two: Newton's steps are kept in a bracket.
    """
    counts = sample.belief.sum(axis=2)
    aim = (sample.belief * sample.scores).sum(axis=2) / np.where(counts > 0.0, counts, 1.0)
    spread = np.sqrt((counts * np.square(sample.scores).mean(axis=2)).sum(axis=1) / np.maximum(counts.sum(axis=1), 1e-300))
    slope = 1.0 / np.where(spread > 0.0, spread, 1.0)
    # Sums over the classes are many times as fast along the first axis.
    logits, scores = (np.ascontiguousarray(each.transpose(2, 0, 1)) for each in (sample.logits, sample.scores))
    base = sample.base[:, None, None]
    active = np.flatnonzero(_derivatives(LEAST_SLOPE * slope, logits, scores, base, aim, counts)[0] < 0.0)
    found = LEAST_SLOPE * slope
    slope, low, high = slope[active], np.zeros(len(active)), np.full(len(active), np.inf)
    logits, scores, aim, counts = logits[:, active], scores[:, active], aim[active], counts[active]
    for _ in range(MOST_STEPS):
        excess, bend = _derivatives(slope, logits, scores, base, aim, counts)
        low, high = np.where(excess > 0.0, low, slope), np.where(excess > 0.0, slope, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = slope - excess / bend
        # At the solution itself rounding may lead a step out of the bracket.
        is_inside = (step > low) & (step < high) | (np.abs(step - slope) <= SLOPE_TOLERANCE * step)
        new = np.where(is_inside, step, np.where(np.isinf(high), 2.0 * slope, 0.5 * (low + high)))
        # After a short step of Newton's the error is the square of it.
        is_done = np.abs(new - slope) <= np.where(is_inside, SHORT_STEP, SLOPE_TOLERANCE) * new
        slope = new
        found[active] = slope
        if is_done.all():
            break
        if np.count_nonzero(is_done) > len(active) // 4:  # fewer are not worth the copies
            left = np.flatnonzero(~is_done)
            active, slope, low, high = active[left], slope[left], low[left], high[left]
            logits, scores, aim, counts = logits[:, left], scores[:, left], aim[left], counts[left]
    return found


def _derivatives(slope: Array, logits: Array, scores: Array, base: Array, aim: Array, counts: Array) -> tuple[Array, Array]:
    """Return the first two derivatives of the log loss of each rule; the largest of the ``logits`` of a sample is 0.

    ``logits`` and ``scores`` have the classes first, (n_classes, n_rules, n_samples).
    """
    powers = slope[:, None] * logits
    powers += base
    np.exp(powers, out=powers)
    totals = powers.sum(axis=0)
    powers *= scores
    means = powers.sum(axis=0) / totals
    powers *= scores
    variances = powers.sum(axis=0) / totals - np.square(means)
    return ((means - aim) * counts).sum(axis=1), (variances * counts).sum(axis=1)


class Calibrations(NamedTuple):
    """Calibrations of the rules on several numbers of features, ascending; between two of them slopes are interpolated.

    Examples
    --------
    >>> equal = Shares(np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    >>> Calibrations(np.array([1, 3]), np.array([1.0, 4.0]), 0.1, equal).at(2)[:2]
    (2.0, 0.1)
    """

    sizes: Array
    slopes: Array
    doubt: float
    shares: Shares

    @classmethod
    def of_folds(
        cls, sizes: Array, values: Array, codes: Array, gain: float, shares: Shares, weights: Array | None = None
    ) -> Calibrations:
        """Return the calibrations by values of the rules of folds at their test samples, (n_samples, n_sizes, n_values).

        ``gain`` is the number of all samples per sample of a fold's training part: a rule learned from more samples may be
        surer, and the slopes are multiplied by it. benchmarks/results/calibration.md has the measurements.
        """
        chosen = evenly_spaced(len(codes))
        of_rules = values[chosen].astype(np.float64, copy=False).swapaxes(0, 1)
        slopes, doubt = fit_calibrations(of_rules, codes[chosen], None if weights is None else weights[chosen], shares)
        return cls(sizes, gain * slopes, doubt, shares)

    @classmethod
    def unknown(cls, shares: Shares) -> Calibrations:
        """Return those of rules that were not tried on other samples: probabilities of the discriminant analysis."""
        return cls(np.array([1]), np.ones(1), 0.0, shares)

    def at(self, size: int) -> Calibration:
        """Return the calibration of a size."""
        slope = float(np.exp(np.interp(size, self.sizes, np.log(self.slopes))))
        return Calibration(slope, self.doubt, self.shares.offset(slope))


def cross_fitted(values: Array, codes: Array, fold_of: Array, shares: Shares, samples: Array | None = None) -> Array:
    """Return calibrated probabilities of out-of-fold values, each fold by slopes and a doubt from all other folds.

    Parameters
    ----------
    values : array of shape (n_rows, n_rules, n_values)
        Values at each sample by the rules of its fold.
    codes : array of shape (n_rows,)
        Indices of the true classes.
    fold_of : array of shape (n_rows,)
        Fold of each sample.
    shares : Shares
    samples : array of shape (n_rows,), optional
        Index of the sample of each row, where a sample may be in several: it does not calibrate itself.

    Returns
    -------
    array of shape (n_rows, n_rules, n_classes)
        Probabilities.
    """
    scores = per_class(values)
    sample, rule = shares.logs
    found = np.empty(scores.shape)
    for fold in np.unique(fold_of):
        own = fold_of == fold
        is_other = ~own if samples is None else ~np.isin(samples, samples[own])
        others = np.flatnonzero(is_other)
        others = others[evenly_spaced(len(others))]
        slopes, doubt = np.ones(scores.shape[1]), 0.0
        if len(others):
            slopes, doubt = fit_calibrations(values[others].swapaxes(0, 1), codes[others], None, shares)
        found[own] = blurred(scaled_scores(slopes[:, None], scores[own] - rule) + sample, doubt)
    return found
