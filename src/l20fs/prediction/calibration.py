r"""Probabilities of classes from the values of a linear rule.

A rule scores the classes. Its scores rank them well, but on the samples of the fit they are far too sure of themselves: the
rule has seen the labels. Temperature scaling (Guo et al. 2017) multiplies all scores by one slope t, so that
:math:`p = \mathrm{softmax}(t \cdot \text{scores})` describes samples that the rule has *not* seen: t minimises the log
loss of scores that a cross-validation, or leaving out one sample, gives. The class of the largest probability is the one
that the rule predicts, whatever t is.

Scores that separate all samples would give an infinite t. As Platt (1999) does, the labels are therefore not believed
entirely: one further sample, whose class is unknown, is added to the n at hand; five, where the features were selected with
the labels of the samples that are left out (docs/probabilities.md has the measurements).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from l20fs.typing import Array

#: Samples of unknown class that are added to those at hand, and the same if the features were selected with their labels.
UNKNOWN_SAMPLES, UNKNOWN_IF_SELECTED = 1.0, 5.0

#: One slope is known well enough from so many samples.
MOST_SAMPLES = 2000

#: Slope of values that say nothing about the classes, in units of one over their size: the probabilities are equal but for
#: what tells which one is predicted.
LEAST_SLOPE = 1e-6

#: Steps of the search for a slope, and the relative change at which it ends.
MOST_STEPS, SLOPE_TOLERANCE = 100, 1e-10


class Calibration(NamedTuple):
    """Calibration of the values of a rule: the probabilities are ``softmax(slope * values + offset)``.

    ``offset`` (n_classes,) has the logarithms of what the frequency of each class is multiplied by. The one value of a rule
    for two classes stands for minus and plus half of it.

    Examples
    --------
    >>> calibration = Calibration(2.0, np.zeros(2))
    >>> calibration.probabilities(np.array([[0.0], [1.0]])).round(3)
    array([[0.5  , 0.5  ],
           [0.119, 0.881]])
    """

    slope: float
    offset: Array

    def probabilities(self, values: Array) -> Array:
        """Return the probability of each class, (n_samples, n_classes)."""
        return softmax(scaled_scores(self.slope, per_class(values)) + self.offset)


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


def fit_slopes(values: Array, codes: Array, weights: Array | None = None, *, n_unknown: float = UNKNOWN_SAMPLES) -> Array:
    """Return the slope of each of several rules.

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
    scores = per_class(values)
    counts = np.ones(len(codes)) if weights is None else weights
    is_known = np.isfinite(scores)
    scores = np.where(is_known, scores, 0.0)
    truth = np.take_along_axis(scores, np.broadcast_to(codes[None, :, None], (*scores.shape[:2], 1)), axis=2)[:, :, 0]
    counts = counts * np.take_along_axis(is_known, codes[None, :, None], axis=2)[:, :, 0]
    totals = counts.sum(axis=1, keepdims=True)
    doubt = n_unknown / (totals + n_unknown)
    aim = (1.0 - doubt) * truth + doubt * scores.sum(axis=2) / is_known.sum(axis=2)
    logits = np.where(is_known, scores, -np.inf)
    return _solve(logits - logits.max(axis=2, keepdims=True), scores, aim, counts)


def _solve(logits: Array, scores: Array, aim: Array, counts: Array) -> Array:
    """Return the slope at which the mean score under the probabilities is that of ``aim``, by Newton's steps in a bracket.

    The log loss is convex in the slope, and its derivative the difference of the two.
    """
    low, high = np.zeros(len(scores)), np.full(len(scores), np.inf)
    spread = np.sqrt((counts * np.square(scores).mean(axis=2)).sum(axis=1) / np.maximum(counts.sum(axis=1), 1e-300))
    slope = 1.0 / np.where(spread > 0.0, spread, 1.0)
    is_useless = _derivatives(LEAST_SLOPE * slope, logits, scores, aim, counts)[0] >= 0.0
    slope[is_useless] *= LEAST_SLOPE
    active = np.flatnonzero(~is_useless)
    for _ in range(MOST_STEPS):
        if not len(active):
            break
        excess, bend = _derivatives(slope[active], logits[active], scores[active], aim[active], counts[active])
        is_above = excess > 0.0
        high[active[is_above]], low[active[~is_above]] = slope[active[is_above]], slope[active[~is_above]]
        with np.errstate(divide="ignore", invalid="ignore"):
            step = slope[active] - excess / bend
        # At the solution itself rounding may lead a step out of the bracket.
        inside = (step > low[active]) & (step < high[active]) | (np.abs(step - slope[active]) <= SLOPE_TOLERANCE * step)
        middle = np.where(np.isinf(high[active]), 2.0 * slope[active], 0.5 * (low[active] + high[active]))
        new = np.where(inside, step, middle)
        is_done = np.abs(new - slope[active]) <= SLOPE_TOLERANCE * new
        slope[active] = new
        active = active[~is_done]
    return slope


def _derivatives(slope: Array, logits: Array, scores: Array, aim: Array, counts: Array) -> tuple[Array, Array]:
    """Return the first two derivatives of the log loss of each rule; the largest of the ``logits`` of a sample is 0."""
    powers = slope[:, None, None] * logits
    np.exp(powers, out=powers)
    totals = powers.sum(axis=2)
    means = np.einsum("rnc,rnc->rn", powers, scores) / totals
    variances = np.einsum("rnc,rnc,rnc->rn", powers, scores, scores) / totals - np.square(means)
    return ((means - aim) * counts).sum(axis=1), (variances * counts).sum(axis=1)


class Slopes(NamedTuple):
    """Slopes of the rules on several numbers of features, ascending; between two of them they are interpolated.

    Examples
    --------
    >>> Slopes(np.array([1, 3]), np.array([1.0, 4.0])).at(2)
    2.0
    """

    sizes: Array
    values: Array

    @classmethod
    def of_folds(cls, sizes: Array, values: Array, codes: Array, gain: float, weights: Array | None = None) -> Slopes:
        """Return the slopes by values of the rules of folds at their test samples, (n_samples, n_sizes, n_values).

        ``gain`` is the number of all samples per sample of a fold's training part: a rule learned from more samples may be
        surer, and the slopes are multiplied by it. docs/probabilities.md has the measurements.
        """
        chosen = evenly_spaced(len(codes))
        of_rules = values[chosen].astype(np.float64, copy=False).swapaxes(0, 1)
        return cls(sizes, gain * fit_slopes(of_rules, codes[chosen], None if weights is None else weights[chosen]))

    def at(self, size: int) -> float:
        """Return the slope of a size."""
        return float(np.exp(np.interp(size, self.sizes, np.log(self.values))))

    def calibration(self, size: int, n_classes: int) -> Calibration:
        """Return the calibration of a size."""
        return Calibration(self.at(size), np.zeros(n_classes))


def cross_fitted(values: Array, codes: Array, fold_of: Array) -> Array:
    """Return calibrated probabilities of out-of-fold values, each fold by a slope from all other folds.

    Parameters
    ----------
    values : array of shape (n_samples, n_rules, n_values)
        Values at each sample by the rules of its fold.
    codes : array of shape (n_samples,)
        Indices of the true classes.
    fold_of : array of shape (n_samples,)
        Fold of each sample.

    Returns
    -------
    array of shape (n_samples, n_rules, n_classes)
        Probabilities.
    """
    scores = per_class(values)
    found = np.empty(scores.shape)
    for fold in np.unique(fold_of):
        own = fold_of == fold
        others = np.flatnonzero(~own)
        others = others[evenly_spaced(len(others))]
        slopes = fit_slopes(values[others].swapaxes(0, 1), codes[others])
        found[own] = softmax(scaled_scores(slopes[:, None], scores[own]))
    return found
