"""Predictions of the test samples of all folds, by every selector and size of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from l20fs.evaluation.corrected_score import Choose, Estimate, corrected_score
from l20fs.evaluation.folds import Fold
from l20fs.evaluation.metrics import Metric, Outputs
from l20fs.prediction.calibration import cross_fitted
from l20fs.typing import Array

#: Of how many test samples of a fold, evenly spaced, the values of linear rules are kept, if those of all are more numbers.
N_KEPT, MOST_VALUES = 1000, 2**20


class Response(NamedTuple):
    """Predictions of the test samples of one fold by every size of a selector.

    ``needed`` is what the metric needs: indices of classes (n_test, n_sizes), or probabilities or numbers (n_test, n_sizes,
    n_columns); where it needs probabilities, linear rules give scores of the classes. ``values`` (n_kept, n_sizes, n_values)
    are those of the linear rules at the test samples ``kept``, None if there are no rules.
    """

    needed: Array
    values: Array | None = None
    kept: Array | None = None

    @classmethod
    def of_rules(cls, needed: Array, values: Array) -> Response:
        """Return the response of linear rules, with as many of their values as is sensible."""
        n_test = len(values)
        is_small = values.size <= MOST_VALUES or n_test <= N_KEPT
        kept = np.arange(n_test) if is_small else np.linspace(0, n_test - 1, N_KEPT).astype(np.intp)
        return cls(needed, values[kept], kept)


class FoldValues(NamedTuple):
    """Values of linear rules at test samples, (n_kept, n_sizes, n_values), with the sample and the fold of each row.

    Two classes have one value, of the second against the first; more have one each, -inf for one that the training samples
    of the fold do not have.
    """

    values: Array
    samples: Array
    folds: Array


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Predictions of the test samples of all folds.

    Attributes
    ----------
    outputs : Outputs
        A row per test sample, fold by fold; a sample that several folds test has several. Settings are the sizes of the
        first selector, then those of the next.
    samples : array of shape (n_rows,)
        Index of the sample of each row.
    folds : list of Fold
        ``test`` are rows.
    weights : array of shape (n_rows,), optional
        Weights of the samples in scores.
    responses : list of list of Response
        By selector and fold.
    """

    outputs: Outputs
    samples: Array
    folds: list[Fold]
    weights: Array | None
    responses: list[list[Response]]

    @classmethod
    def of(
        cls, responses: Sequence[Response], truth: Outputs, needs: str, folds: Sequence[Fold], weights: Array | None
    ) -> OutOfFold:
        """Arrange the responses of the folds of the first selector, then those of the next.

        ``truth`` has the true classes or numbers of all samples, ``needs`` the name of what was predicted. Values of linear
        rules are turned into probabilities by the other folds (:func:`~l20fs.prediction.calibration.cross_fitted`).
        """
        samples = np.concatenate([fold.test for fold in folds])
        ends = np.cumsum([len(fold.test) for fold in folds])
        by_selector = [list(responses[start : start + len(folds)]) for start in range(0, len(responses), len(folds))]
        needed = np.concatenate([np.concatenate([each.needed for each in part]) for part in by_selector], axis=1)
        if needs == "probabilities" and responses[0].values is not None:
            needed = cross_fitted(needed, truth.truth[samples], np.repeat(np.arange(len(folds)), np.diff(ends, prepend=0)))
        return cls(
            Outputs(truth.truth[samples], truth.n_classes, **{needs: needed}),
            samples,
            [Fold(np.empty(0, dtype=np.intp), rows) for rows in np.split(np.arange(len(samples)), ends[:-1])],
            None if weights is None else weights[samples],
            by_selector,
        )

    def scores(self, metric: Metric) -> Array:
        """Return the signed score of each fold, (n_selectors, n_folds, n_sizes); larger is better."""
        weights = np.ones(len(self.samples)) if self.weights is None else self.weights
        scores = [metric.formula(self.outputs.part(fold.test), weights[None, fold.test])[0] for fold in self.folds]
        return metric.sign * np.reshape(scores, (len(scores), len(self.responses), -1)).swapaxes(0, 1)

    def corrected_score(self, metric: Metric, choose: Choose, groups: Array | None) -> Estimate:
        """Return the score of the choice, see :mod:`l20fs.evaluation.corrected_score`; larger is better."""
        if groups is not None:
            groups = np.asarray(groups)[self.samples]
        elif len(np.unique(self.samples)) < len(self.samples):
            groups = self.samples  # of repeated folds all predictions of a sample are drawn together
        found = corrected_score(self.outputs, metric, self.folds, choose, groups=groups, sample_weight=self.weights)
        return found.times(metric.sign)

    def values_of(self, selector: int) -> FoldValues | None:
        """Return the values of the rules of one selector, by its number."""
        rows, values, numbers = [], [], []
        for number, (fold, response) in enumerate(zip(self.folds, self.responses[selector], strict=True)):
            if response.values is None:
                return None
            rows.append(fold.test[response.kept])
            values.append(response.values)
            numbers.append(np.full(len(response.values), number))
        return FoldValues(np.concatenate(values), self.samples[np.concatenate(rows)], np.concatenate(numbers))
