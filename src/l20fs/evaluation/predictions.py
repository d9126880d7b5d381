"""Cross-validated predictions for every number of features, with the selection inside each fold."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from l20fs.blocks import as_blocks, comes_in_blocks, is_dask
from l20fs.design import Part, share_samples
from l20fs.evaluation.choice import Setting, SizeRule, choose, tabulate
from l20fs.evaluation.engine import Judge, Samples, evaluate
from l20fs.evaluation.folds import Fold
from l20fs.evaluation.judges import Decided, NearestNeighbours, OwnRule, RefittedRule, of_all_classes
from l20fs.evaluation.metrics import METRICS, Metric, Outputs
from l20fs.evaluation.parallel import shared_unless_in_processes
from l20fs.evaluation.preprocessing import Preprocessing
from l20fs.evaluation.target_summary import Classes, TargetSummary, summarise
from l20fs.inputs.validation import refuse_foreign_array
from l20fs.objective.nested_rules import MANY_VALUES
from l20fs.prediction.calibration import cross_fitted
from l20fs.prediction.linear_rule import decide
from l20fs.typing import Array

#: Judges: the linear rule of the path, and the nearest neighbours. The first one is the default.
JUDGES = ("linear", "KNN-5")

#: Values of the linear judge above this number are not kept.
TOO_MANY_VALUES = 2**27


@dataclass(frozen=True, eq=False)
class Predictions:
    """Cross-validated predictions of every sample, for several numbers of features.

    Attributes
    ----------
    targets : Classes or Numbers
        What is to be predicted.
    sizes : list of int
        Numbers of features (of groups, if the selector has any).
    folds : list of Fold
    predicted : dict of arrays of shape (n_samples, n_sizes)
        Indices of the predicted labels by judge, -1 for a sample that no fold tests; or predicted numbers, 0 for such one.
    n_features : array of shape (n_folds, n_sizes)
        Number of features selected in each fold.
    values : array of shape (n_samples, n_sizes, n_values), optional
        Values of the linear rules, which score the classes; None for numbers, and if there were too many.
    """

    targets: TargetSummary
    sizes: list[int]
    folds: list[Fold]
    predicted: dict[str, Array]
    n_features: Array
    values: Array | None = None

    @property
    def classes(self) -> Array:
        """Labels in sorted order."""
        assert isinstance(self.targets, Classes)
        return self.targets.labels

    @cached_property
    def fold_weights(self) -> Array:
        """Mask of the test samples of each fold, (n_folds, n_samples)."""
        masks = np.zeros((len(self.folds), len(self.targets.truth)))
        for mask, fold in zip(masks, self.folds, strict=True):
            mask[fold.test] = 1.0
        return masks

    @cached_property
    def probabilities(self) -> Array | None:
        """Probabilities of the classes by the linear judge, (n_samples, n_sizes, n_classes), if its values are known.

        The calibration of a fold comes from the values in all other folds.
        """
        if self.values is None:
            return None
        is_tested = self.fold_weights.any(axis=0)
        fold_of = self.fold_weights.argmax(axis=0)[is_tested]
        found = np.zeros((*self.values.shape[:2], len(self.targets)), dtype=self.values.dtype)
        found[is_tested] = cross_fitted(self.values[is_tested], self.targets.truth[is_tested], fold_of)
        return found

    def judges_for(self, metric: Metric) -> list[str]:
        """Return the judges whose predictions a metric can score: probabilities are those of the linear one."""
        if metric.needs != "probabilities":
            return list(self.predicted)
        return [] if self.values is None else [JUDGES[0]]

    def outputs(self, judge: str, metric: Metric) -> Outputs:
        """Return what a metric needs of a judge's predictions."""
        truth, predicted = self.targets.truth, self.predicted[judge]
        if not isinstance(self.targets, Classes):
            return Outputs(truth, 0, numbers=predicted[:, :, None])
        probabilities = self.probabilities if metric.needs == "probabilities" else None
        return Outputs(truth, len(self.targets), predicted, probabilities)

    def fold_scores(self, judge: str = JUDGES[0], metric: Metric | None = None) -> Array:
        """Return the score in each fold, NaN where it is not defined, (n_folds, n_sizes)."""
        metric = self._metric(metric)
        return metric.formula(self.outputs(judge, metric), self.fold_weights)

    def accuracy(self, judge: str = JUDGES[0]) -> Array:
        """Return the fraction of correct predictions, (n_folds, n_sizes)."""
        return self.fold_scores(judge, METRICS["accuracy"])

    def results(self, judge: str = JUDGES[0], metric: Metric | None = None) -> dict[str, Array]:
        """Return a table like ``L20SelectorCV.cv_results_``, one entry per size; losses are negative, as in scikit-learn.

        Folds in which the metric is not defined, since a class is missing there, do not count.
        """
        metric = self._metric(metric)
        scores, n_features = metric.sign * self.fold_scores(judge, metric), self.n_features
        is_defined = ~np.isnan(scores).any(axis=1)
        if not is_defined.all():
            if is_defined.any():
                scores, n_features = scores[is_defined], n_features[is_defined]
            else:
                weights = self.fold_weights.max(axis=0)[None]
                scores = metric.sign * metric.formula(self.outputs(judge, metric), weights)
                n_features = np.asarray(n_features.mean(axis=0, keepdims=True))
        return tabulate([Setting(0.0, None)], self.sizes, scores[None], n_features[None])

    def _metric(self, metric: Metric | None) -> Metric:
        """Return a metric, by default accuracy or R²."""
        if metric is not None:
            return metric
        return METRICS["accuracy"] if isinstance(self.targets, Classes) else METRICS["r2"]

    def up_to(self, largest: int) -> Predictions:
        """Return the predictions with at most ``largest`` features; with the fewest, if these are more."""
        n = max(1, bisect_right(self.sizes, largest))
        predicted = {judge: found[:, :n] for judge, found in self.predicted.items()}
        values = None if self.values is None else self.values[:, :n]
        part = replace(self, sizes=self.sizes[:n], predicted=predicted, n_features=self.n_features[:, :n], values=values)
        if values is not None and "probabilities" in vars(self):
            vars(part)["probabilities"] = vars(self)["probabilities"][:, :n]  # no second calibration
        return part

    def confusion(self, size: int, judge: str = JUDGES[0]) -> Array:
        """Return the confusion matrix with ``size`` features: true classes in rows, predicted ones in columns."""
        predicted, codes = self.predicted[judge][:, self.sizes.index(size)], self.targets.truth
        tested = predicted >= 0
        counts = np.zeros((len(self.classes), len(self.classes)), dtype=np.intp)
        np.add.at(counts, (codes[tested], predicted[tested]), 1)
        return counts


def predictions_by_k(
    selector: Any,
    X: Any,
    y: Any,
    sizes: Sequence[int],
    folds: Sequence[Fold],
    *,
    judges: Sequence[str] = JUDGES,
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
    X : array, sparse matrix, FileBlocks, stored array or, for an L20Selector, Dask array, of shape (n_samples, n_features)
        Of a sparse matrix only the columns of selected features are made dense; of blocks only these are held in memory.
    y : array of shape (n_samples,)
        Labels; floating-point numbers are numbers to predict.
    sizes : sequence of int
        Numbers of features, ascending.
    folds : sequence of Fold
        For example those of :func:`~l20fs.evaluation.folds.make_stratified_folds`.
    judges : sequence of {"linear", "KNN-5"}
        ``"linear"``: :class:`L20Classifier` or :class:`L20Regressor` on the z-scores of the selected features, for
        :class:`L20Selector` the model of its own path.
        ``"KNN-5"``: a vote, or the mean, of the five nearest training samples, each feature divided by its deviation there;
        ties between samples go to the lower index, ties between classes to the first class.
    ridge : float or "auto"
        Ridge of the linear judge, ``"auto"`` that of all features of a fold; :class:`L20Selector` has its own.
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
    >>> from l20fs.evaluation.folds import make_stratified_folds
    >>> tumours = load_srbct()
    >>> folds = make_stratified_folds(tumours.target, seed=0)
    >>> found = predictions_by_k(L20Selector(), tumours.data, tumours.target, range(1, 21), folds)
    >>> found.accuracy("linear").shape
    (5, 20)
    >>> int(found.confusion(20).sum())
    63
    """
    targets = summarise(np.asarray(y))
    predictor = _predictor(selector, targets)
    linear = OwnRule() if hasattr(predictor, "_models_on") else RefittedRule(ridge, task=targets.task)
    known: dict[str, Judge] = {"linear": linear, "KNN-5": NearestNeighbours(targets.task)}
    labels = targets.labels[targets.codes] if isinstance(targets, Classes) else targets.truth
    may_share = preprocess is None and predictor._takes_parts
    X = _by_samples(X, may_share=may_share)
    if may_share:
        X = shared_unless_in_processes(X, n_jobs)
    samples = Samples(X, labels, nuisances=nuisances, n_targets=len(targets))
    collected = _Collected(targets, len(sizes), judges)
    if isinstance(targets, Classes) and collected.values is None:
        known["linear"] = Decided(linear, targets.labels)
    chosen = {judge: known[judge] for judge in judges}
    n_features = []
    parts = None if preprocess is None else Preprocessing(preprocess).apply_in
    with closing(
        evaluate([predictor], samples, folds, sizes, chosen, one_ranking=True, n_jobs=n_jobs, parts=parts)
    ) as results:
        for fold, judged in zip(folds, results, strict=True):
            for judge, values in judged.by_judge.items():
                collected.add(judge, fold, values)
            n_features.append(judged.n_features)
            if on_fold is not None:
                on_fold()
    return Predictions(targets, list(sizes), list(folds), collected.predicted, np.array(n_features), collected.values)


class _Collected:
    """Predictions that are put together fold by fold."""

    def __init__(self, targets: TargetSummary, n_sizes: int, judges: Sequence[str]) -> None:
        self.targets = targets
        shape = (len(targets.truth), n_sizes)
        is_labels = isinstance(targets, Classes)
        self.predicted = {judge: np.full(shape, -1, np.int32) if is_labels else np.zeros(shape) for judge in judges}
        n_values = 1 if len(targets) == 2 else len(targets)
        n_all = shape[0] * n_sizes * n_values
        is_kept = is_labels and JUDGES[0] in judges and n_all <= TOO_MANY_VALUES
        self.values = np.zeros((*shape, n_values), np.float32 if n_all > MANY_VALUES else np.float64) if is_kept else None

    def add(self, judge: str, fold: Fold, values: Array) -> None:
        """Take values of a judge at test samples of a fold, (n_test, n_sizes, n_values), or labels, (n_test, n_sizes)."""
        if values.ndim == 2:
            self.predicted[judge][fold.test] = values
            return
        if not isinstance(self.targets, Classes):
            self.predicted[judge][fold.test] = values[:, :, 0]
            return
        values = of_all_classes(values, np.unique(self.targets.codes[fold.train]), len(self.targets))
        self.predicted[judge][fold.test] = decide(values)
        if judge == JUDGES[0] and self.values is not None:
            self.values[fold.test] = values


def _predictor(selector: Any, targets: TargetSummary) -> Any:
    """Return the model of a path, or a selector that has none as it is."""
    if not hasattr(selector, "_as_classifier"):
        return selector
    return (
        selector._as_classifier().set_params(calibration=None) if isinstance(targets, Classes) else selector._as_regressor()
    )


class Nested(NamedTuple):
    """Predictions with the number of features chosen inside each fold, and the numbers chosen.

    ``outputs`` has one setting, ``scores`` (n_folds,) are those of the folds.
    """

    outputs: Outputs
    scores: Array
    sizes: list[int]


def nested_scores(
    selector: Any,
    X: Any,
    y: Any,
    outer: Predictions,
    rule: SizeRule,
    metric: Metric | None = None,
    *,
    groups: Array | None = None,
    seed: int = 0,
    ridge: float | str = "auto",
    nuisances: Array | None = None,
    preprocess: Any = None,
    n_jobs: int | None = None,
    on_fold: Callable[[], object] | None = None,
) -> Nested:
    """Repeat the choice of the number of features inside the training samples of each fold of ``outer``.

    The predictions of the outer folds for every size are given; this chooses one size per fold without using its test
    samples. ``preprocess`` is fitted in the inner folds, too.
    """
    y = np.asarray(y)
    X = _by_samples(X, may_share=preprocess is None and selector._takes_parts)
    metric = outer._metric(metric)
    chosen = []
    for fold in outer.folds:
        own_groups = None if groups is None else np.asarray(groups)[fold.train]
        inner_folds = summarise(y[fold.train]).folds(own_groups, seed=seed)
        inner = predictions_by_k(
            selector,
            X[fold.train],
            y[fold.train],
            outer.sizes,
            inner_folds,
            judges=JUDGES[:1],
            ridge=ridge,
            nuisances=None if nuisances is None else nuisances[fold.train],
            preprocess=preprocess,
            n_jobs=n_jobs,
        )
        chosen.append(choose(inner.results(metric=metric), rule))
        if on_fold is not None:
            on_fold()
    scores = outer.fold_scores(metric=metric)[np.arange(len(chosen)), chosen]
    outputs = outer.outputs(JUDGES[0], metric)
    places = np.array(chosen)[outer.fold_weights.argmax(axis=0)][:, None]  # the size at which each sample is predicted
    return Nested(_at(outputs, places), scores, [outer.sizes[place] for place in chosen])


def _at(outputs: Outputs, places: Array) -> Outputs:
    """Return the predictions of each sample by a setting of its own, (n_samples, 1)."""
    labels = None if outputs.labels is None else np.take_along_axis(outputs.labels, places, axis=1)
    probabilities, numbers = (
        None if each is None else np.take_along_axis(each, places[:, :, None], axis=1)
        for each in (outputs.probabilities, outputs.numbers)
    )
    return Outputs(outputs.truth, outputs.n_classes, labels, probabilities, numbers)


def _by_samples(X: Any, *, may_share: bool) -> Any:
    """Return X in a form that can be indexed by samples; a Dask array only if fits may share it."""
    if isinstance(X, Part):
        return X
    if is_dask(X) and may_share:
        return share_samples(as_blocks(X))
    refuse_foreign_array(X, "X", "this evaluation")
    if comes_in_blocks(X) and not isinstance(X, np.memmap):
        return as_blocks(X)
    return X.tocsr() if sp.issparse(X) else np.asarray(X)
