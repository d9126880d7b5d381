"""Judges of a selection: its linear rule, or any estimator and scorer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor

from l20fs.design import Part, SampleWeights
from l20fs.evaluation.engine import Samples, Selection
from l20fs.evaluation.out_of_fold import Response
from l20fs.inputs.targets import Targets, encode_targets, weights_of_targets
from l20fs.objective.class_scatter import class_scatter
from l20fs.objective.nested_rules import NestedRules, NestedSquares
from l20fs.objective.problem import make_problem
from l20fs.objective.ridge import auto_ridge_for
from l20fs.prediction.calibration import per_class
from l20fs.typing import Array, Task

#: Called with a fitted estimator, X and y, and metadata by name; larger is better.
Scorer = Callable[..., float]

#: Ridge of the weights of folds that stands for none.
LEAST_RIDGE = 1e-12


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
    """Predict the test samples by the linear rules of a path, or of a model on what a method selects.

    ``classes`` are the labels of all samples, of which a fold may lack some; None for numbers, which are predicted with each
    of ``refit_ridges``.
    """

    rule: OwnRule | RefittedRule
    classes: Array | None
    refit_ridges: Sequence[float | None] = (None,)

    def __call__(self, selection: Selection, train: Samples, test: Samples) -> Response:
        if self.classes is None:
            # Without any ridge, dependent columns would be solved size by size.
            ridges = [None if ridge is None else max(ridge, LEAST_RIDGE) for ridge in self.refit_ridges]
            return Response(numbers=np.stack([self.rule.values(selection, train, test, ridge) for ridge in ridges]))
        values = self.rule.values(selection, train, test)
        present = np.searchsorted(self.classes, np.unique(train.y))
        return Response.of_rules(of_all_classes(values, present, len(self.classes)))


@dataclass(frozen=True)
class FittedPredictions:
    """Fit an estimator on the selected columns of the training samples, once per size, and predict the test samples."""

    estimator: Any
    classes: Array | None

    def __call__(self, selection: Selection, train: Samples, test: Samples) -> Response:
        found = [self._predict(np.sort(each), train, test) for each in selection.features]
        labels = np.stack([each[0] for each in found], axis=1)
        if self.classes is None:
            return Response(numbers=labels[None])
        if found[0][1] is None:
            return Response(labels=labels)
        probabilities = np.stack([each[1] for each in found if each[1] is not None], axis=1)
        return Response(labels=labels, values=probabilities, kept=np.arange(len(labels)), kind=found[0][2])

    def _predict(self, columns: Array, train: Samples, test: Samples) -> tuple[Array, Array | None, Any]:
        """Return labels or numbers, and probabilities or scores, if there are any, with their kind."""
        fitted = fit_estimator(self.estimator, train.X[:, columns], train.y, train.fit_params)
        X = test.X[:, columns] if len(columns) else np.zeros((len(test.y), 1))
        if self.classes is None:
            return np.asarray(fitted.predict(X), dtype=np.float64).reshape(len(test.y), -1), None, None
        present, n_classes = np.searchsorted(self.classes, fitted.classes_), len(self.classes)
        labels = np.searchsorted(self.classes, fitted.predict(X)).astype(np.int32)
        if hasattr(fitted, "predict_proba"):
            return labels, _spread(fitted.predict_proba(X), present, n_classes, 0.0), "probabilities"
        if n_classes == len(present) == 2 and hasattr(fitted, "decision_function"):
            return labels, per_class(fitted.decision_function(X)[:, None]), "scores"
        return labels, None, None


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
    """The linear rules of a model that selects features."""

    def values(self, selection: Selection, train: Samples, test: Samples, refit_ridge: float | None = None) -> Array:
        """Return the values of the rules at the test samples, (n_test, n_sizes, n_values)."""
        rules = selection.selector._models_on(selection.n_features, refit_ridge)
        return rules.apply(_as_float64(test.columns(rules.rows)))


@dataclass(frozen=True)
class RefittedRule:
    """Linear rules on the selected columns of a method that has none.

    They are those of an :class:`~l20fs.L20Classifier`, for ``task="regression"`` of an :class:`~l20fs.L20Regressor`.
    ``ridge="auto"`` is the value on all features of the training samples, as for the rule of a path on them.
    """

    ridge: float | str = "auto"
    class_weight: Any = "balanced"
    task: Task = "classification"

    def values(self, selection: Selection, train: Samples, test: Samples, refit_ridge: float | None = None) -> Array:
        """Return the values of the rules at the test samples, (n_test, n_sizes, n_values)."""
        targets = encode_targets(train.y, self.task)
        ridge, found = self.strength_on(train.X), []
        for chain in selection.chains:
            rules = rules_of(train.columns(chain.order), targets, chain.ends, ridge, self.class_weight)
            found.append(rules.apply(_as_float64(test.columns(chain.order))))
        return np.concatenate(found, axis=1)

    def strength_on(self, X: Any) -> float:
        """Return the strength of the ridge term for these training samples."""
        if not isinstance(self.ridge, str):
            return float(self.ridge)
        return auto_ridge_for(X, SampleWeights(X.shape[0], None), for_labels=self.task != "regression")


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
