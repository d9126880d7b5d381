"""Judges of a selection: linear rule, nearest neighbours, or any estimator and scorer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor

from l20fs.design import BLOCK_ELEMENTS, Part, SampleWeights
from l20fs.evaluation.engine import Chain, Samples, Selection
from l20fs.evaluation.out_of_fold import Response
from l20fs.inputs.targets import Targets, encode_targets, weights_of_targets
from l20fs.objective.class_scatter import class_scatter
from l20fs.objective.nested_rules import NestedRules, NestedSquares
from l20fs.objective.problem import make_problem
from l20fs.objective.ridge import auto_ridge_for
from l20fs.prediction.calibration import per_class
from l20fs.prediction.linear_rule import decide
from l20fs.typing import Array, Task

#: Called with a fitted estimator, X and y, and metadata by name; larger is better.
Scorer = Callable[..., float]

N_NEIGHBOURS = 5


# ----------------------------------------------------------------------------------------------------------------- scores


@dataclass(frozen=True)
class OwnModel:
    """Score a selector by its own predictions."""

    scorer: Scorer

    def __call__(self, selection: Selection, train: Samples, test: Samples) -> Array:
        X = test.X.stored() if isinstance(test.X, Part) else test.X
        models = (selection.selector.at(size) for size in selection.sizes)
        return _per_size([score(self.scorer, model, X, test.y, test.score_params) for model in models])


@dataclass(frozen=True)
class FittedEstimator:
    """Fit an estimator on the selected columns of the training samples, once per size, and score it.

    The columns are in the order of X, as ``transform`` returns them.
    """

    estimator: Any
    scorer: Scorer

    def __call__(self, selection: Selection, train: Samples, test: Samples) -> Array:
        return _per_size([self.score_on(features, train, test) for features in selection.features])

    def score_on(self, features: Array, train: Samples, test: Samples) -> float:
        """Return the score of the estimator with some features."""
        columns = np.sort(features)
        fitted = fit_estimator(self.estimator, train.X[:, columns], train.y, train.fit_params)
        return score(self.scorer, fitted, test.X[:, columns], test.y, test.score_params)


@dataclass(frozen=True)
class OwnPredictions:
    """Predict what a metric needs by the linear rules of a classifier or a regressor that selects features.

    ``classes`` are the labels of all samples, of which a fold may lack some; None for numbers.
    """

    needs: str
    classes: Array | None

    def __call__(self, selection: Selection, train: Samples, test: Samples) -> Response:
        values = OwnRule()(selection, train, test)
        if self.classes is None:
            return Response.of_rules(values, values)
        values = of_all_classes(values, np.searchsorted(self.classes, selection.selector.classes_), len(self.classes))
        return Response.of_rules(decide(values).astype(np.int32) if self.needs == "labels" else per_class(values), values)


@dataclass(frozen=True)
class FittedPredictions:
    """Fit an estimator on the selected columns of the training samples, once per size, and predict what a metric needs."""

    estimator: Any
    needs: str
    classes: Array | None

    def __call__(self, selection: Selection, train: Samples, test: Samples) -> Response:
        return Response(np.stack([self._predict(np.sort(each), train, test) for each in selection.features], axis=1))

    def _predict(self, columns: Array, train: Samples, test: Samples) -> Array:
        fitted = fit_estimator(self.estimator, train.X[:, columns], train.y, train.fit_params)
        X = test.X[:, columns] if len(columns) else np.zeros((len(test.y), 1))
        if self.classes is None:
            return np.asarray(fitted.predict(X), dtype=np.float64).reshape(len(test.y), -1)
        if self.needs == "labels":
            return np.searchsorted(self.classes, fitted.predict(X)).astype(np.int32)
        if hasattr(fitted, "predict_proba"):
            return _spread(fitted.predict_proba(X), np.searchsorted(self.classes, fitted.classes_), len(self.classes), 0.0)
        return np.asarray(per_class(fitted.decision_function(X)[:, None]))


def of_all_classes(values: Array, present: Array, n_classes: int) -> Array:
    """Return values of rules that know some classes, by index; the others, if there are any, are never predicted."""
    return values if len(present) == n_classes else _spread(per_class(values), present, n_classes, -np.inf)


def _spread(columns: Array, present: Array, n_classes: int, missing: float) -> Array:
    """Return a last axis with all classes, of which some are present."""
    full = np.full((*columns.shape[:-1], n_classes), missing)
    full[..., present] = columns
    return full


def _per_size(scores: list[float]) -> Array:
    return np.array(scores, dtype=np.float64)


def fit_estimator(estimator: Any, X: Any, y: Array, params: Mapping[str, Any]) -> Any:
    """Fit a copy of an estimator; a dummy estimator if there are no features."""
    if X.shape[1]:
        return clone(estimator).fit(X, y, **params)
    dummy = DummyClassifier() if is_classifier(estimator) else DummyRegressor()
    return dummy.fit(np.zeros((len(y), 1)), y)


def score(scorer: Scorer, fitted: Any, X: Any, y: Array, params: Mapping[str, Any]) -> float:
    """Score a fitted estimator, or raise an error for a missing method."""
    try:
        return scorer(fitted, X, y, **params)
    except AttributeError as error:
        raise ValueError(
            f"scoring needs a method that {type(fitted).__name__} does not have ({error}). Use another scoring, or an "
            "estimator with that method, for example CalibratedClassifierCV(LinearSVC()) for probabilities."
        ) from error


# ------------------------------------------------------------------------------------------------------------ predictions


@dataclass(frozen=True)
class OwnRule:
    """Return the values of the linear rules of a model that selects features, (n_test, n_sizes, n_values)."""

    def __call__(self, selection: Selection, train: Samples, test: Samples) -> Array:
        return _applied(self.rules(selection, train), test)

    def rules(self, selection: Selection, train: Samples) -> list[tuple[NestedRules, Array]]:
        """Return the rules for all sizes, and the features of the columns that they apply to."""
        rules = selection.selector._models_on(selection.n_features)
        return [(rules, rules.rows)]


@dataclass(frozen=True)
class RefittedRule:
    """Return the values of linear rules on the selected columns, (n_test, n_sizes, n_values).

    The rules are those of an :class:`~l20fs.L20Classifier`, for ``task="regression"`` of an :class:`~l20fs.L20Regressor`.
    ``ridge="auto"`` is the value on all features of the training samples, as for the rule of a path on them.
    """

    ridge: float | str = "auto"
    class_weight: Any = "balanced"
    task: Task = "classification"

    def __call__(self, selection: Selection, train: Samples, test: Samples) -> Array:
        return _applied(self.rules(selection, train), test)

    def rules(self, selection: Selection, train: Samples) -> list[tuple[NestedRules, Array]]:
        """Return the rules for all sizes, and the features of the columns that they apply to."""
        targets = encode_targets(train.y, self.task)
        ridge = self.strength_on(train.X)
        return [
            (rules_of(train.columns(chain.order), targets, chain.ends, ridge, self.class_weight), chain.order)
            for chain in selection.chains
        ]

    def strength_on(self, X: Any) -> float:
        """Return the strength of the ridge term for these training samples."""
        if not isinstance(self.ridge, str):
            return float(self.ridge)
        return auto_ridge_for(X, SampleWeights(X.shape[0], None), for_labels=self.task != "regression")


def _applied(rules: list[tuple[NestedRules, Array]], test: Samples) -> Array:
    return np.concatenate([own.apply(_as_float64(test.columns(order))) for own, order in rules], axis=1)


@dataclass(frozen=True)
class Decided:
    """Return the indices of the labels that linear rules decide for, (n_test, n_sizes), where their values are too many.

    ``classes`` are the labels of all samples, of which a fold may lack some.
    """

    judge: OwnRule | RefittedRule
    classes: Array

    def __call__(self, selection: Selection, train: Samples, test: Samples) -> Array:
        present = np.searchsorted(self.classes, np.unique(train.y)).astype(np.int32)
        rules = self.judge.rules(selection, train)
        return present[np.concatenate([own.labels(_as_float64(test.columns(order))) for own, order in rules], axis=1)]


def _as_float64(columns: Array) -> Array:
    return columns.astype(np.float64, copy=False)


def rules_of(X: Array, targets: Targets, ends: Array, ridge: float, class_weight: Any) -> NestedRules:
    """Return the rules of a model on the first columns of X, for several numbers of columns.

    For numbers they are those of an :class:`~l20fs.L20Regressor`. Every feature has deviation 1, so that the ridge term is
    the same for all.
    """
    problem = make_problem(
        X, targets.Y, ridge=ridge, scale="zscore", target_weights=weights_of_targets(targets, class_weight)
    )
    rows = np.arange(X.shape[1])
    triangle, right_sides = problem.factor(rows)
    scatter = None if targets.classes is None else class_scatter(problem, rows, targets, class_weight)
    squares = NestedSquares.of(triangle, right_sides / problem.y_scale, ends)
    return NestedRules(rows, squares, problem.design.mean, problem.design.scale, problem.y_mean, scatter)


@dataclass(frozen=True)
class NearestNeighbours:
    """Return the mean of the five nearest training samples, (n_test, n_sizes, n_values).

    That is the share of each class, or the mean of the numbers for ``task="regression"``. Each feature is divided by its
    deviation in the training samples; ties between samples go to the lower index.
    """

    task: Task = "classification"

    def __call__(self, selection: Selection, train: Samples, test: Samples) -> Array:
        targets = encode_targets(train.y, self.task).Y
        means = [self._means(chain, train, targets, test) for chain in selection.chains]
        return np.concatenate(means, axis=1)

    @staticmethod
    def _means(chain: Chain, train: Samples, targets: Array, test: Samples) -> Array:
        known, new = (_as_float64(samples.columns(chain.order)) for samples in (train, test))
        scale = known.std(axis=0)
        scale[scale <= 1e-12 * np.abs(known).max(axis=0, initial=0.0)] = 1.0  # a constant feature stays as it is
        return nearest_neighbours(known / scale, targets, new / scale, chain.ends)


def nearest_neighbours(train: Array, targets: Array, test: Array, ends: Array) -> Array:
    """Return the mean targets of the nearest training samples on the first ``ends[0]``, ``ends[1]``, ... columns.

    Squared distances are summed column by column, so that all sizes together cost as much as the largest.

    Parameters
    ----------
    train, test : arrays of shape (n_train, n_columns) and (n_test, n_columns)
    targets : array of shape (n_train, n_values)
    ends : array of int of shape (n_sizes,)
        Numbers of columns, ascending.

    Returns
    -------
    array of shape (n_test, n_sizes, n_values)
        Means.
    """
    means = np.empty((len(test), len(ends), targets.shape[1]))
    step = max(1, BLOCK_ELEMENTS // len(train))
    for start in range(0, len(test), step):
        block = test[start : start + step].astype(np.float64)
        distances, done = np.zeros((len(block), len(train))), 0
        for place, end in enumerate(ends):
            for column in range(done, end):
                difference = block[:, column, None] - train[:, column]
                distances += difference * difference
            done = end
            # Without features all training samples are equally near.
            n_near = min(N_NEIGHBOURS if end else len(train), len(train))
            means[start : start + step, place] = _are_nearest(distances, n_near) @ targets / n_near
    return means


def _are_nearest(distances: Array, n: int) -> Array:
    """Return a mask of the ``n`` smallest values of each row; ties go to the lower index."""
    limit = np.partition(distances, n - 1, axis=1)[:, n - 1, None]
    is_below, is_at = distances < limit, distances == limit
    n_missing = n - is_below.sum(axis=1, keepdims=True)
    return (is_below | (is_at & (is_at.cumsum(axis=1) <= n_missing))).astype(np.float64)
