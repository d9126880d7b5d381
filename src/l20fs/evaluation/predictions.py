"""Cross-validated predictions for every number of features, with the selection inside each fold."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from l20fs.blocks import as_blocks, comes_in_blocks
from l20fs.evaluation.choice import Setting, SizeRule, choose, tabulate
from l20fs.evaluation.engine import Judge, Samples, evaluate
from l20fs.evaluation.folds import Fold, make_stratified_folds
from l20fs.evaluation.judges import NearestNeighbours, OwnRule, RefittedRule
from l20fs.inputs.validation import refuse_foreign_array
from l20fs.typing import Array

#: Judges: the linear rule of the path, and a vote of the nearest neighbours. The first one is the default.
JUDGES = ("linear", "KNN-5")


@dataclass(frozen=True, eq=False)
class Predictions:
    """Cross-validated predictions of every sample, for several numbers of features.

    Attributes
    ----------
    classes : array of shape (n_classes,)
        Labels in sorted order.
    codes : array of shape (n_samples,)
        Index of the true label of each sample.
    sizes : list of int
        Numbers of features (of groups, if the selector has any).
    folds : list of Fold
    predicted : dict of arrays of shape (n_samples, n_sizes)
        Indices of the predicted labels by judge; -1 for a sample that no fold tests.
    n_features : array of shape (n_folds, n_sizes)
        Number of features selected in each fold.
    """

    classes: Array
    codes: Array
    sizes: list[int]
    folds: list[Fold]
    predicted: dict[str, Array]
    n_features: Array

    def accuracy(self, judge: str = JUDGES[0]) -> Array:
        """Return the fraction of correct predictions, (n_folds, n_sizes)."""
        is_right = self.predicted[judge] == self.codes[:, None]
        return np.array([is_right[fold.test].mean(axis=0) for fold in self.folds])

    def results(self, judge: str = JUDGES[0]) -> dict[str, Array]:
        """Return a table like ``L20SelectorCV.cv_results_``, one entry per size."""
        return tabulate([Setting(0.0, None)], self.sizes, self.accuracy(judge)[None], self.n_features[None])

    def up_to(self, largest: int) -> Predictions:
        """Return the predictions with at most ``largest`` features; with the fewest, if these are more."""
        n = max(1, bisect_right(self.sizes, largest))
        predicted = {judge: codes[:, :n] for judge, codes in self.predicted.items()}
        return replace(self, sizes=self.sizes[:n], predicted=predicted, n_features=self.n_features[:, :n])

    def confusion(self, size: int, judge: str = JUDGES[0]) -> Array:
        """Return the confusion matrix with ``size`` features: true classes in rows, predicted ones in columns."""
        predicted = self.predicted[judge][:, self.sizes.index(size)]
        tested = predicted >= 0
        counts = np.zeros((len(self.classes), len(self.classes)), dtype=np.intp)
        np.add.at(counts, (self.codes[tested], predicted[tested]), 1)
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
    n_jobs: int | None = None,
    on_fold: Callable[[], object] | None = None,
) -> Predictions:
    """Predict every sample by a selection on the other folds, for several numbers of features.

    Parameters
    ----------
    selector : BaseSelector
        Cloned and fitted for the largest of ``sizes``. The first k of its ranking are the selection of k features.
    X : array, sparse matrix, FileBlocks or stored array of shape (n_samples, n_features)
        Of a sparse matrix only the columns of selected features are made dense; of blocks only these are held in memory.
    y : array of shape (n_samples,)
        Labels.
    sizes : sequence of int
        Numbers of features, ascending.
    folds : sequence of Fold
        For example those of :func:`~l20fs.evaluation.folds.make_stratified_folds`.
    judges : sequence of {"linear", "KNN-5"}
        ``"linear"``: :class:`L20Classifier` on the z-scores of the selected features, for :class:`L20Selector` the model of
        its own path.
        ``"KNN-5"``: a vote of the five nearest training samples; ties between samples go to the lower index, ties between
        classes to the first class.
    ridge : float or "auto"
        Ridge of the linear judge, ``"auto"`` that of all features of a fold; :class:`L20Selector` has its own.
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
    >>> tumours = load_srbct()
    >>> folds = make_stratified_folds(tumours.target, seed=0)
    >>> found = predictions_by_k(L20Selector(), tumours.data, tumours.target, range(1, 21), folds)
    >>> found.accuracy("linear").shape
    (5, 20)
    >>> int(found.confusion(20).sum())
    63
    """
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    predictor = selector.as_classifier().set_params(calibration=None) if hasattr(selector, "as_classifier") else selector
    known: dict[str, Judge] = {
        "linear": OwnRule() if hasattr(predictor, "model_for") else RefittedRule(ridge),
        "KNN-5": NearestNeighbours(),
    }
    samples = Samples(_by_samples(X), classes[codes])
    chosen = {judge: known[judge] for judge in judges}
    predicted = {judge: np.full((len(codes), len(sizes)), -1, dtype=np.intp) for judge in judges}
    n_features = []
    with closing(evaluate([predictor], samples, folds, sizes, chosen, one_ranking=True, n_jobs=n_jobs)) as results:
        for fold, judged in zip(folds, results, strict=True):
            for judge, labels in judged.by_judge.items():
                predicted[judge][fold.test] = np.searchsorted(classes, labels)
            n_features.append(judged.n_features)
            if on_fold is not None:
                on_fold()
    return Predictions(classes, codes, list(sizes), list(folds), predicted, np.array(n_features))


class Nested(NamedTuple):
    """Accuracy of a nested cross-validation, and the numbers of features chosen in its folds."""

    accuracies: Array
    sizes: list[int]


def nested_accuracy(
    selector: Any,
    X: Any,
    y: Any,
    outer: Predictions,
    rule: SizeRule,
    *,
    groups: Array | None = None,
    seed: int = 0,
    ridge: float | str = "auto",
    n_jobs: int | None = None,
    on_fold: Callable[[], object] | None = None,
) -> Nested:
    """Repeat the choice of the number of features inside the training samples of each fold of ``outer``.

    The predictions of the outer folds for every size are given; this chooses one size per fold without using its test
    samples.
    """
    y = np.asarray(y)
    X = _by_samples(X)
    accuracies, sizes = [], []
    for fold, accuracy in zip(outer.folds, outer.accuracy(), strict=True):
        own_groups = None if groups is None else np.asarray(groups)[fold.train]
        inner_folds = make_stratified_folds(y[fold.train], own_groups, seed=seed)
        inner = predictions_by_k(
            selector, X[fold.train], y[fold.train], outer.sizes, inner_folds, judges=JUDGES[:1], ridge=ridge, n_jobs=n_jobs
        )
        index = choose(inner.results(), rule)
        accuracies.append(accuracy[index])
        sizes.append(outer.sizes[index])
        if on_fold is not None:
            on_fold()
    return Nested(np.array(accuracies), sizes)


def _by_samples(X: Any) -> Any:
    """Return X in a form that can be indexed by samples."""
    refuse_foreign_array(X, "X", "this evaluation")
    if comes_in_blocks(X) and not isinstance(X, np.memmap):
        return as_blocks(X)
    return X.tocsr() if sp.issparse(X) else np.asarray(X)
