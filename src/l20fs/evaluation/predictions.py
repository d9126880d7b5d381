"""Cross-validated predictions for every number of features, with the selection inside each fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.design import Part, share_samples
from l20fs.design.large import open_large
from l20fs.evaluation.choice import Setting, tabulate
from l20fs.evaluation.engine import Samples, evaluate
from l20fs.evaluation.folds import Fold
from l20fs.evaluation.judges import OwnPredictions, OwnRule, RefittedRule
from l20fs.evaluation.metrics import Metric, Outputs
from l20fs.evaluation.out_of_fold import OutOfFold, Truth, repeats_of
from l20fs.evaluation.parallel import shared_unless_in_processes
from l20fs.evaluation.preprocessing import Preprocessing
from l20fs.evaluation.target_summary import Classes, TargetSummary, summarise
from l20fs.inputs.devices import is_dask, is_stored
from l20fs.inputs.targets import encode_targets
from l20fs.inputs.validation import refuse_foreign_array
from l20fs.typing import Array


@dataclass(frozen=True, eq=False)
class Predictions:
    """Cross-validated predictions of every sample, for several numbers of features.

    Attributes
    ----------
    targets : Classes or Numbers
        What is to be predicted.
    sizes : list of int
        Numbers of features (of groups, if the selector has any).
    found : OutOfFold
        Of one selector.
    n_features : array of shape (n_folds, n_sizes)
        Number of features selected in each fold.
    """

    targets: TargetSummary
    sizes: list[int]
    found: OutOfFold
    n_features: Array

    def results(self, metric: Metric, *, by_default: bool) -> dict[str, Array]:
        """Return a table like ``L20SelectorCV.cv_results_``; the size is chosen by its errors."""
        scores = self.found.scores(metric)
        errors = self.found.errors() if by_default else self.found.errors_by(metric, scores.mean(axis=1).ravel())
        return tabulate([Setting(0.0, None)], self.sizes, scores, self.n_features[None], errors)

    @property
    def classes(self) -> Array:
        """Labels in sorted order."""
        assert isinstance(self.targets, Classes)
        return self.targets.labels

    @property
    def folds(self) -> Sequence[Fold]:
        """All folds, of one repeat after the other."""
        return self.found.folds

    @property
    def repeats(self) -> list[list[int]]:
        """The folds of each repeat, by number."""
        return repeats_of(self.folds)

    def fold_scores(self, metric: Metric) -> Array:
        """Return the score in each fold, NaN where it is not defined, (n_folds, n_sizes)."""
        return np.asarray(metric.sign * self.found.scores(metric)[0])

    def confusion(self, size: int) -> Array:
        """Return the confusion matrix with ``size`` features: true classes in rows, predicted ones in columns.

        It is the mean over the repeats, in whole samples.
        """
        tested, n_classes = self.found.labels_or_numbers, len(self.classes)
        assert tested.outputs.labels is not None
        counts = np.zeros((n_classes, n_classes))
        np.add.at(counts, (tested.outputs.truth, tested.outputs.labels[:, self.sizes.index(size)]), 1.0)
        return np.array([_whole(row / len(self.repeats)) for row in counts])

    def first(self, metric: Metric) -> Outputs:
        """Return what a metric needs of the first repeat, in the order of the samples."""
        tested = self.found.tested(metric)
        rows = np.flatnonzero(np.isin(tested.folds, self.repeats[0]))
        return tested.outputs.part(rows[np.argsort(tested.samples[rows], kind="stable")])


def _whole(counts: Array) -> Array:
    """Return whole numbers with the same rounded sum: those with the largest fractions are rounded up.

    Examples
    --------
    >>> _whole(np.array([7.25, 0.5, 0.25]))
    array([7, 1, 0])
    """
    whole = np.floor(counts + 1e-9).astype(np.intp)
    n_left = round(float(counts.sum())) - int(whole.sum())
    whole[np.argsort(whole - counts, kind="stable")[:n_left]] += 1
    return whole


def predictions_by_k(
    selector: Any,
    X: Any,
    y: Any,
    sizes: Sequence[int],
    folds: Sequence[Fold],
    *,
    ridge: float | str = "auto",
    nuisances: Array | None = None,
    preprocess: Any = None,
    n_jobs: int | None = None,
    on_fold: Callable[[], object] | None = None,
) -> Predictions:
    """Predict every sample by a selection on the other folds, for several numbers of features.

    Parameters
    ----------
    selector : BaseSelector
        Cloned and fitted for the largest of ``sizes``. The first k of its ranking are the selection of k features.
    X : array, sparse matrix or, for an L20Selector, Dask array, of shape (n_samples, n_features)
        Of a sparse matrix only the columns of selected features are made dense; of blocks only these are held in memory.
    y : array of shape (n_samples,)
        Labels; floating-point numbers are numbers to predict.
    sizes : sequence of int
        Numbers of features, ascending.
    folds : sequence of Fold
    ridge : float or "auto"
        Ridge of the model, ``"auto"`` that of all features of a fold; :class:`L20Selector` has its own.
    nuisances : array of shape (n_samples, n_nuisances), optional
        Encoded columns that an :class:`L20Selector` adjusts for in the training samples.
    preprocess : transformer, optional
        Cloned and fitted to the training samples of each fold, before the selection; X may then have missing values, if it
        is in memory. It must give the same columns in every fold.
    n_jobs : int or None
        Number of folds that are computed in parallel.
    on_fold : callable, optional
        Called after each fold.

    Returns
    -------
    Predictions

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> from l20fs.data import load_srbct
    >>> from l20fs.evaluation.target_summary import summarise
    >>> tumours = load_srbct()
    >>> folds = summarise(tumours.target).folds(n_repeats=1)
    >>> found = predictions_by_k(L20Selector(), tumours.data, tumours.target, range(1, 21), folds)
    >>> int(found.confusion(20).sum())
    63
    """
    targets = summarise(np.asarray(y))
    predictor = _predictor(selector, targets)
    rule = OwnRule() if hasattr(predictor, "_models_on") else RefittedRule(ridge, task=targets.task)
    is_labelled = isinstance(targets, Classes)
    labels = targets.labels[targets.codes] if isinstance(targets, Classes) else targets.truth
    may_share = preprocess is None and predictor._takes_parts
    X = _by_samples(X, may_share=may_share)
    if may_share:
        X = shared_unless_in_processes(X, n_jobs)
    samples = Samples(X, labels, nuisances=nuisances, n_targets=len(targets))
    judges = {"": OwnPredictions(rule, targets.labels if isinstance(targets, Classes) else None)}
    parts = None if preprocess is None else Preprocessing(preprocess).apply_in
    found = []
    with closing(
        evaluate([predictor], samples, folds, sizes, judges, one_ranking=True, n_jobs=n_jobs, parts=parts)
    ) as results:
        for judged in results:
            found.append(judged)
            if on_fold is not None:
                on_fold()
    truth = Truth.of(
        encode_targets(labels, "classification" if is_labelled else "regression"),
        getattr(predictor, "class_weight", "balanced") if is_labelled else None,
    )
    predicted = OutOfFold(truth.values, truth.shares, folds, None, [[judged.by_judge[""] for judged in found]])
    return Predictions(targets, list(sizes), predicted, np.array([judged.n_features for judged in found]))


def _predictor(selector: Any, targets: TargetSummary) -> Any:
    """Return the model of a path, or a selector that has none as it is."""
    if not hasattr(selector, "_as_classifier"):
        return selector
    return (
        selector._as_classifier().set_params(calibration=None) if isinstance(targets, Classes) else selector._as_regressor()
    )


def _by_samples(X: Any, *, may_share: bool) -> Any:
    """Return X in a form that can be indexed by samples; a Dask array only if fits may share it."""
    if isinstance(X, Part):
        return X
    if (is_dask(X) or is_stored(X)) and may_share:
        return share_samples(open_large(X) if is_stored(X) else X)
    refuse_foreign_array(X, "X", "this evaluation")
    return X.tocsr() if sp.issparse(X) else np.asarray(X)
