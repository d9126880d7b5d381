"""Honest accuracy for every number of features: the selection is repeated in every fold, on its training samples only."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from l20fs.blocks import as_blocks, comes_in_blocks
from l20fs.design import BLOCK_ELEMENTS
from l20fs.estimators.base import BaseSelector
from l20fs.estimators.models import ClassScatter, L20Classifier, Rule
from l20fs.estimators.selector import RIDGE_FOR_LABELS, L20Selector
from l20fs.evaluation.cross_validation import Fold, Scores, Setting, SizeRule, choose, tabulate
from l20fs.evaluation.parallel import results_of
from l20fs.evaluation.resampling import encode_groups
from l20fs.inputs.validation import Targets, encode_targets, forget_absent_classes, refuse_foreign_array, weights_of_targets
from l20fs.objective.least_squares import LeastSquares
from l20fs.typing import Array

N_FOLDS = 5
N_NEIGHBOURS = 5

#: Who predicts: the path's own linear rule, and a vote of the nearest neighbours. The first one counts.
JUDGES = ("linear", "KNN-5")


@dataclass(frozen=True, eq=False)
class Predictions:
    """What was predicted for every sample while it was not in the training set, for several numbers of features.

    Attributes
    ----------
    classes : array of shape (n_classes,)
        The labels in sorted order.
    codes : array of shape (n_samples,)
        The position of the true label of each sample among them.
    sizes : list of int
        The numbers of features (of groups, where the selector has any).
    folds : list of Fold
    predicted : dict of arrays of shape (n_samples, n_sizes)
        Of each judge, the positions of the predicted labels; -1 for a sample that no fold tests.
    n_features : array of shape (n_folds, n_sizes)
        How many features were selected in each fold.
    """

    classes: Array
    codes: Array
    sizes: list[int]
    folds: list[Fold]
    predicted: dict[str, Array]
    n_features: Array

    def accuracy(self, judge: str = JUDGES[0]) -> Array:
        """Return the share of test samples that are right, (n_folds, n_sizes)."""
        is_right = self.predicted[judge] == self.codes[:, None]
        return np.array([is_right[fold.test].mean(axis=0) for fold in self.folds])

    def results(self, judge: str = JUDGES[0]) -> dict[str, Array]:
        """Return means, standard errors and the rest as in ``L20SelectorCV.cv_results_``, one entry per size."""
        scores = [Scores(*found, 0.0) for found in zip(self.accuracy(judge), self.n_features, strict=True)]
        return tabulate([Setting(None, None)], self.sizes, scores, len(self.folds))

    def confusion(self, size: int, judge: str = JUDGES[0]) -> Array:
        """Return how many samples of each class (rows) were taken for which class (columns) with ``size`` features."""
        predicted = self.predicted[judge][:, self.sizes.index(size)]
        tested = predicted >= 0
        counts = np.zeros((len(self.classes), len(self.classes)), dtype=np.intp)
        np.add.at(counts, (self.codes[tested], predicted[tested]), 1)
        return counts


def predictions_by_k(
    selector: BaseSelector,
    X: Any,
    y: Any,
    sizes: Sequence[int],
    folds: Sequence[Fold],
    *,
    judges: Sequence[str] = JUDGES,
    ridge: float = RIDGE_FOR_LABELS,
    n_jobs: int | None = None,
    on_fold: Callable[[], object] | None = None,
) -> Predictions:
    """Predict every sample from a selection that has not seen it, for several numbers of features, one selection per fold.

    Parameters
    ----------
    selector : BaseSelector
        It is cloned, and selects as many features as the largest of ``sizes``. The best k of that ranking are the
        selection of k features.
    X : array, sparse matrix, FileBlocks or stored array of shape (n_samples, n_features)
        Of a sparse matrix only the columns of selected features are made dense, and of blocks only these are kept.
    y : array of shape (n_samples,)
        Labels.
    sizes : sequence of int
        The numbers of features, ascending.
    folds : sequence of Fold
        Made by :func:`make_stratified_folds`, for example.
    judges : sequence of {"linear", "KNN-5"}
        ``"linear"``: :class:`L20Classifier` on the selected features, for :class:`L20Selector` the model of its own path.
        ``"KNN-5"``: a vote of the five nearest training samples; the one of the lower index is nearer where two are equally
        near, and the class that comes first wins a tie.
    ridge : float
        That of the linear judge; :class:`L20Selector` has its own.
    n_jobs : int or None
        How many folds are computed at the same time.
    on_fold : callable, optional
        Called after each fold.

    Returns
    -------
    Predictions

    Examples
    --------
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
    X = _by_samples(X)
    predicted = {judge: np.full((len(codes), len(sizes)), -1, dtype=np.intp) for judge in judges}
    n_features = []
    work = _FoldWork(selector, X, classes[codes], classes, list(sizes), tuple(judges), float(ridge))
    with closing(results_of(work, [(fold,) for fold in folds], n_jobs)) as results:
        for fold, (answers, counts) in zip(folds, results, strict=True):
            for judge, answer in answers.items():
                predicted[judge][fold.test] = answer
            n_features.append(counts)
            if on_fold is not None:
                on_fold()
    return Predictions(classes, codes, list(sizes), list(folds), predicted, np.array(n_features))


class Nested(NamedTuple):
    """The accuracy of a choice that was made anew in each fold, and the number of features that was chosen there."""

    accuracies: Array
    sizes: list[int]


def nested_accuracy(
    selector: BaseSelector,
    X: Any,
    y: Any,
    outer: Predictions,
    rule: SizeRule,
    *,
    groups: Array | None = None,
    seed: int = 0,
    ridge: float = RIDGE_FOR_LABELS,
    n_jobs: int | None = None,
    on_fold: Callable[[], object] | None = None,
) -> Nested:
    """Repeat the choice of the number of features inside the training samples of each fold of ``outer``.

    The outer folds have their predictions for every size already; what is left is to choose one of them without a look at
    the test samples.
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


def number_of_folds(y: Any, groups: Any = None) -> int:
    """Return how many folds there can be, five at most: every class needs a sample in each, and so do groups.

    Examples
    --------
    >>> number_of_folds(["a"] * 9 + ["b"] * 3)
    3
    """
    limits = [N_FOLDS, int(np.unique(np.asarray(y), return_counts=True)[1].min())]
    if groups is not None:
        limits.append(len(np.unique(np.asarray(groups))))
    return min(limits)


def make_stratified_folds(y: Any, groups: Any = None, *, seed: int = 0) -> list[Fold]:
    """Split the samples into :func:`number_of_folds` parts with all classes in each; samples of a group stay together."""
    y = np.asarray(y)
    n_splits = number_of_folds(y, groups)
    if n_splits < 2:
        raise ValueError("Cross-validation needs 2 samples of every class, and 2 groups where there are any. Give more.")
    samples = np.zeros((len(y), 1))
    if groups is None:
        splits = StratifiedKFold(n_splits, shuffle=True, random_state=seed).split(samples, y)
    else:
        codes = encode_groups(groups, len(y))
        splits = StratifiedGroupKFold(n_splits, shuffle=True, random_state=seed).split(samples, y, codes)
    folds = [Fold(train, test) for train, test in splits if len(test)]
    for fold in folds:
        known = np.unique(y[fold.train])
        if len(known) < 2:
            raise ValueError(
                f"A fold that leaves out some groups trains on class {str(known[0])!r} alone, so nothing can be told apart. "
                "Give groups that hold samples of several classes, or no groups."
            )
    return folds


class _Panel(NamedTuple):
    """What a fold found: features, best first, how many of them each size has, and the linear rules."""

    order: Array
    ends: Array
    rules: Iterator[Rule]
    classes: Array


@dataclass(frozen=True)
class _FoldWork:
    """Select on the training samples of a fold and predict its test samples, for every size."""

    selector: BaseSelector
    X: Any
    y: Array
    classes: Array
    sizes: list[int]
    judges: tuple[str, ...]
    ridge: float

    def __call__(self, fold: Fold) -> tuple[dict[str, Array], Array]:
        X_train, y_train = self.X[fold.train], self.y[fold.train]
        is_own = isinstance(self.selector, L20Selector)
        panel = self._panel_of_path(X_train, y_train) if is_own else self._panel_of_ranking(X_train, y_train)
        test = dense_columns(self.X[fold.test], panel.order).astype(np.float64, copy=False)
        answers = {}
        if "linear" in self.judges:
            own = np.stack([_decide(test, rule) for rule in panel.rules], axis=1)
            answers["linear"] = np.searchsorted(self.classes, panel.classes)[own]
        if "KNN-5" in self.judges:
            codes = np.searchsorted(self.classes, y_train)
            train = dense_columns(X_train, panel.order)
            answers["KNN-5"] = nearest_neighbours(train, codes, test, panel.ends, len(self.classes))
        return answers, panel.ends

    def _panel_of_path(self, X: Any, y: Array) -> _Panel:
        largest = self.sizes[-1]
        changes = {"callback": None, "verbose": 0, "certify": False, "max_features": largest}
        model = L20Classifier(**clone(self.selector).get_params(deep=False) | changes)
        forget_absent_classes(model, y)
        _fit_quietly(model.set_params(n_features_to_select=largest), X, y)
        rules = [model.set_params(n_features_to_select=size)._rule() for size in self.sizes]
        ends = np.array([len(rule.rows) for rule in rules])
        return _Panel(model.path_.order[: ends.max()], ends, iter(rules), model.classes_)

    def _panel_of_ranking(self, X: Any, y: Array) -> _Panel:
        fitted = clone(self.selector).set_params(n_features_to_select=min(self.sizes[-1], X.shape[1]))
        _fit_quietly(fitted, X, y)
        n_usable = int(np.isfinite(fitted.scores_).sum())
        ends = np.minimum(self.sizes, n_usable)
        order = np.argsort(fitted.ranking_, kind="stable")[: ends.max()]
        targets = encode_targets(y)
        assert targets.classes is not None
        return _Panel(order, ends, ranked_rules(dense_columns(X, order), targets, ends, self.ridge), targets.classes)


def _by_samples(X: Any) -> Any:
    """Return X as something of which samples can be taken."""
    refuse_foreign_array(X, "X", "this evaluation")
    if comes_in_blocks(X) and not isinstance(X, np.memmap):
        return as_blocks(X)
    return X.tocsr() if sp.issparse(X) else np.asarray(X)


def _fit_quietly(selector: BaseSelector, X: Any, y: Array) -> None:
    """Fit without a word about features that do not vary in a part of the samples: nobody asked for so many there."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="n_features_to_select=", category=UserWarning)
        selector.fit(X, y)


def dense_columns(X: Any, columns: Array) -> Array:
    """Return some columns as a dense array."""
    chosen = X[:, columns]
    return np.asarray(chosen.toarray() if sp.issparse(chosen) else chosen)


def _decide(panel: Array, rule: Rule) -> Array:
    return np.asarray((panel[:, : len(rule.rows)] @ rule.weights + rule.intercept).argmax(axis=1))


def ranked_rules(X: Array, targets: Targets, ends: Array, ridge: float) -> Iterator[Rule]:
    """Yield the rule of an :class:`L20Classifier` that is given the first columns of X, for several numbers of them.

    One triangle serves all numbers; every feature has deviation 1, so that the ridge term is the same for all, too.
    """
    class_weight = L20Classifier().class_weight
    problem = LeastSquares(
        X, targets.Y, ridge=ridge, scale="zscore", target_weights=weights_of_targets(targets, class_weight)
    )
    rows = np.arange(X.shape[1])
    triangle, right_sides = problem.factor(rows)
    scatter = ClassScatter.of(problem, rows, targets, class_weight)
    for end in ends:
        values = np.linalg.lstsq(triangle[:, :end], right_sides, rcond=None)[0]
        weights, intercept = scatter.discriminant(values / problem.y_scale)
        weights = weights / problem.design.scale[:end, None]
        yield Rule(rows[:end], weights, intercept - problem.design.mean[:end] @ weights)


def nearest_neighbours(train: Array, codes: Array, test: Array, ends: Array, n_classes: int) -> Array:
    """Classify by the nearest training samples on the first ``ends[0]``, ``ends[1]``, ... columns, (n_test, n_sizes).

    Squared distances grow column by column, so that all numbers of columns cost as much as the largest.
    """
    membership = np.eye(n_classes)[codes]
    answers = np.empty((len(test), len(ends)), dtype=np.intp)
    step = max(1, BLOCK_ELEMENTS // len(train))
    for start in range(0, len(test), step):
        block = test[start : start + step].astype(np.float64)
        distances, done = np.zeros((len(block), len(train))), 0
        for place, end in enumerate(ends):
            for column in range(done, end):
                difference = block[:, column, None] - train[:, column]
                distances += difference * difference
            done = end
            # Without any feature all training samples are equally near, and the most common class wins.
            is_near = _are_nearest(distances, N_NEIGHBOURS if end else len(train))
            answers[start : start + step, place] = (is_near @ membership).argmax(axis=1)
    return answers


def _are_nearest(distances: Array, n: int) -> Array:
    """Mark the ``n`` smallest in each row, those of the lower index where some are equal."""
    n = min(n, distances.shape[1])
    limit = np.partition(distances, n - 1, axis=1)[:, n - 1, None]
    is_below, is_at = distances < limit, distances == limit
    n_missing = n - is_below.sum(axis=1, keepdims=True)
    return (is_below | (is_at & (is_at.cumsum(axis=1) <= n_missing))).astype(np.float64)
