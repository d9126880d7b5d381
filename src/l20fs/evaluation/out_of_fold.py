"""Predictions of the test samples of all folds, by every selector and size of a search, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from l20fs.evaluation.choice import Errors
from l20fs.evaluation.folds import Fold
from l20fs.evaluation.metrics import METRICS, Metric, Outputs, squared_errors
from l20fs.evaluation.quoted_score import Estimate, quoted_score
from l20fs.inputs.targets import Targets, weights_of_targets
from l20fs.prediction.calibration import Shares, cross_fitted
from l20fs.prediction.linear_rule import decide
from l20fs.typing import Array

#: Of how many test samples of a fold, evenly spaced, probabilities are computed, if the values of all are more numbers.
N_KEPT, MOST_VALUES = 1000, 2**20

#: Numbers that are predicted with several ridges of the weights, of all folds together; beyond, one ridge is tried.
MOST_PREDICTED = 2**25


class Response(NamedTuple):
    """Predictions of the test samples of one fold by every size of a selector.

    ``labels`` (n_test, n_sizes) are indices of classes; ``numbers`` (n_ridges, n_test, n_sizes, n_outputs) those predicted
    with each ridge of the weights. ``values`` (n_kept, n_sizes, n_columns) are those of linear rules at the test samples
    ``kept``, or what ``kind`` says: probabilities of an estimator that has its own, or scores that order the samples.
    """

    labels: Array | None = None
    numbers: Array | None = None
    values: Array | None = None
    kept: Array | None = None
    kind: Literal["rules", "probabilities", "scores"] = "rules"

    @classmethod
    def of_rules(cls, values: Array) -> Response:
        """Return the response of linear rules that score classes, with as many of their values as is sensible."""
        n_test = len(values)
        is_small = values.size <= MOST_VALUES or n_test <= N_KEPT
        kept = np.arange(n_test) if is_small else np.linspace(0, n_test - 1, N_KEPT).astype(np.intp)
        return cls(labels=decide(values).astype(np.int32), values=values[kept], kept=kept)


class Truth(NamedTuple):
    """Indices of the true classes, (n_samples,), with their shares; or true numbers, (n_samples, n_outputs), and None."""

    values: Array
    shares: Shares | None

    @classmethod
    def of(cls, targets: Targets, class_weight: Any = None) -> Truth:
        """Return what targets stand for, with the shares that a rule with such weights decides with."""
        if targets.codes is None:
            return cls(targets.Y, None)
        sizes = targets.Y.sum(axis=0) if targets.sample_weight is None else targets.sample_weight @ targets.Y
        weights = weights_of_targets(targets, class_weight)
        decided = sizes if weights is None else sizes * weights
        return cls(targets.codes, Shares(sizes / sizes.sum(), decided / decided.sum()))


class Tested(NamedTuple):
    """Predictions with the sample, the fold and the weight of each row."""

    outputs: Outputs
    samples: Array
    folds: Array
    weights: Array

    def fold_scores(self, metric: Metric, n_folds: int) -> Array:
        """Return the signed score of each fold, (n_folds, n_settings); larger is better."""
        masks = self.weights * (self.folds == np.arange(n_folds)[:, None])
        parts = [np.flatnonzero(mask) for mask in masks]
        scores = [metric.formula(self.outputs.part(rows), self.weights[None, rows])[0] for rows in parts]
        return metric.sign * np.array(scores)


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Predictions of the test samples of all folds.

    Attributes
    ----------
    truth : array of shape (n_samples,) or (n_samples, n_outputs)
        Indices of the true classes, or true numbers.
    shares : Shares or None
        Of the classes; None for numbers.
    folds : list of Fold
    weights : array of shape (n_samples,), optional
    responses : list of list of Response
        By selector and fold.
    """

    truth: Array
    shares: Shares | None
    folds: Sequence[Fold]
    weights: Array | None
    responses: list[list[Response]]

    @property
    def n_classes(self) -> int:
        return 0 if self.shares is None else len(self.shares.of_sample)

    @property
    def has_rules(self) -> bool:
        """Whether linear rules score the classes."""
        first = self.responses[0][0]
        return first.values is not None and first.kind == "rules"

    @property
    def has_errors(self) -> bool:
        """Whether there are numbers, or probabilities of classes, of which :meth:`errors` are known."""
        first = self.responses[0][0]
        return not self.n_classes or (first.values is not None and first.kind != "scores")

    @cached_property
    def best_ridges(self) -> Array:
        """Place of the ridge of the weights that predicts numbers with the lowest error, (n_selectors, n_sizes)."""
        return np.array([self._errors_by_ridge(responses).argmin(axis=0) for responses in self.responses])

    def _errors_by_ridge(self, responses: Sequence[Response]) -> Array:
        """Return the squared errors with each ridge, of all outputs in units of their variance, (n_ridges, n_sizes)."""
        truth = self.truth.reshape(len(self.truth), -1)
        spread = np.square(truth - truth.mean(axis=0)).sum(axis=0)
        total = np.zeros(())
        for fold, response in zip(self.folds, responses, strict=True):
            assert response.numbers is not None
            squares = np.square(response.numbers - truth[fold.test][:, None, :])
            weights = np.ones(len(fold.test)) if self.weights is None else self.weights[fold.test]
            total = total + np.einsum("n,mnso->mso", weights, squares)
        return np.asarray((total / np.where(spread > 0.0, spread, 1.0)).mean(axis=2))

    @cached_property
    def labels_or_numbers(self) -> Tested:
        """The labels or numbers of all test samples; settings are the sizes of the first selector, then of the next."""
        every, parts = [np.arange(len(fold.test)) for fold in self.folds], []
        if self.n_classes:
            for responses in self.responses:
                parts.append(np.concatenate([each.labels for each in responses if each.labels is not None]))
            return self._tested(every, labels=np.concatenate(parts, axis=1))
        for responses, ridges in zip(self.responses, self.best_ridges, strict=True):
            chosen = [each.numbers[ridges, :, np.arange(len(ridges))] for each in responses if each.numbers is not None]
            parts.append(np.concatenate([numbers.swapaxes(0, 1) for numbers in chosen]))
        return self._tested(every, numbers=np.concatenate(parts, axis=1))

    @cached_property
    def probabilities(self) -> Tested:
        """Probabilities of the classes; those of rules are calibrated by folds that do not test the sample."""
        assert self.shares is not None
        values = [self.values_of(selector)[0] for selector in range(len(self.responses))]
        parts = [self._cross_fitted(each) for each in values] if self.has_rules else values
        return self._tested(self._kept, probabilities=np.concatenate(parts, axis=1))

    @property
    def _kept(self) -> list[Array]:
        return [each.kept for each in self.responses[0] if each.kept is not None]

    def values_of(self, selector: int) -> tuple[Array, Array]:
        """Return the values of one selector at test samples, (n_rows, n_sizes, n_columns), and the sample of each row."""
        values = [each.values for each in self.responses[selector] if each.values is not None]
        return np.concatenate(values), self._tested(self._kept).samples

    def _cross_fitted(self, values: Array) -> Array:
        """Return calibrated probabilities, each repeat of the folds by itself."""
        assert self.shares is not None
        rows = self._tested(self._kept)
        found = []
        for numbers in repeats_of(self.folds):
            own = np.isin(rows.folds, numbers)
            found.append(
                cross_fitted(values[own], self.truth[rows.samples[own]], rows.folds[own], self.shares, rows.samples[own])
            )
        return np.concatenate(found)  # repeats are runs of folds

    def _tested(self, kept: Sequence[Array], **outputs: Array) -> Tested:
        samples = np.concatenate([fold.test[own] for fold, own in zip(self.folds, kept, strict=True)])
        folds = np.repeat(np.arange(len(self.folds)), [len(own) for own in kept])
        weights = np.ones(len(samples)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)[samples]
        return Tested(Outputs(self.truth[samples], self.n_classes, **outputs), samples, folds, weights)

    def tested(self, metric: Metric) -> Tested:
        """Return what a metric needs."""
        return self.probabilities if metric.needs == "probabilities" else self.labels_or_numbers

    def scores(self, metric: Metric) -> Array:
        """Return the signed score of each fold, (n_selectors, n_folds, n_sizes); larger is better."""
        scores = self.tested(metric).fold_scores(metric, len(self.folds))
        return scores.reshape(len(self.folds), len(self.responses), -1).swapaxes(0, 1)

    def errors(self) -> Errors:
        """Return the error of every setting over samples and repeats: Brier's of classes, 1 - R² of numbers."""
        if self.shares is not None:
            tested = self.probabilities
            found = np.average(squared_errors(tested.outputs), axis=0, weights=tested.weights)
            return Errors(np.asarray(found), 1.0 - float(np.square(self.shares.of_sample).sum()))
        tested = self.labels_or_numbers
        return Errors(1.0 - METRICS["r2"].formula(tested.outputs, tested.weights[None])[0], 1.0)

    def errors_by(self, metric: Metric, means: Array) -> Errors:
        """Return the distances of mean scores to the perfect one, and that of guessing."""
        tested = self.tested(metric)
        outputs, n_rows = tested.outputs, len(tested.samples)
        if self.shares is None:
            guess = Outputs(
                outputs.truth, 0, numbers=np.tile(self.truth.reshape(len(self.truth), -1).mean(axis=0), (n_rows, 1, 1))
            )
        else:
            shares = self.shares.of_sample
            labels = np.full((n_rows, 1), shares.argmax())
            guess = Outputs(outputs.truth, len(shares), labels, np.tile(shares, (n_rows, 1, 1)))
        score = metric.sign * metric.formula(guess, tested.weights[None])[0, 0]
        return Errors.of_scores(means, 1.0 if metric.sign > 0 else 0.0, float(score))

    def quote(self, metric: Metric, setting: int, groups: Array | None = None) -> Estimate:
        """Return the score of one setting over samples and repeats with its interval; larger is better."""
        found = quoted_score(self.tested(metric), metric, np.array([setting]), groups)
        return found[0].times(metric.sign)


def repeats_of(folds: Sequence[Fold]) -> list[list[int]]:
    """Return runs of folds that test no sample twice, by number; all in one, where a fold would be alone.

    Examples
    --------
    >>> halves = [Fold(np.arange(2), np.arange(2, 4)), Fold(np.arange(2, 4), np.arange(2))]
    >>> repeats_of(2 * halves)
    [[0, 1], [2, 3]]
    """
    runs: list[list[int]] = []
    seen: set[int] = set()
    for number, fold in enumerate(folds):
        test = set(fold.test.tolist())
        if not runs or seen & test:
            runs.append([])
            seen = set()
        runs[-1].append(number)
        seen |= test
    return runs if min(map(len, runs)) > 1 else [list(range(len(folds)))]
