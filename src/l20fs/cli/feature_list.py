"""Judgement of a given list of features on labelled samples: cross-validation, redundancy, distance to the best list."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from l20fs import Constraints, L20Classifier, L20Regressor
from l20fs.bounds.certificate import certify_size, support_loss
from l20fs.cli.load import nuisances_of
from l20fs.data.readers import Samples
from l20fs.evaluation.engine import Samples as Parted
from l20fs.evaluation.engine import dense_columns
from l20fs.evaluation.folds import Fold
from l20fs.evaluation.preprocessing import Preprocessing
from l20fs.evaluation.validation import Validation, validate_classes, validate_numbers
from l20fs.inputs.targets import encode_targets, weights_of_targets
from l20fs.objective import make_problem
from l20fs.objective.problem import Problem
from l20fs.objective.ridge import ridge_on
from l20fs.typing import Array

#: Pairs of features that are shown, and the correlation from which a pair is called alike.
MOST_PAIRS, ALIKE = 20, 0.8


class Pair(NamedTuple):
    """Two features and their correlation."""

    first: str
    second: str
    correlation: float


class Member(NamedTuple):
    """A feature of the list: its variance inflation, None where it is not defined, and the loss without the feature."""

    name: str
    inflation: float | None
    loss_without: float


@dataclass(frozen=True)
class ListReport:
    """Redundancy of a list, and its distance to the best possible one; losses are shares of the loss without features.

    Attributes
    ----------
    members : list of Member
    pairs : list of Pair
        The most correlated first.
    loss : float
        Of least squares, with the ridge term, on exactly this list.
    lower_bound : float
        No list of that size has a lower loss.
    loss_found : float
        Of the list of that size that l20fs finds.
    found : list of str
        That list, best first.
    """

    members: list[Member]
    pairs: list[Pair]
    loss: float
    lower_bound: float
    loss_found: float
    found: list[str]

    @property
    def distance(self) -> float:
        """Largest possible distance of the loss to the best possible one, as a share of the latter; infinite above zero."""
        return self.loss / self.lower_bound - 1.0 if self.lower_bound > 0.0 else np.inf


def make_model(samples: Samples, rows: list[int]) -> Any:
    """Return the unfitted model on exactly these features: no selection, weights only."""
    kind = L20Classifier if samples.task == "classification" else L20Regressor
    return kind(len(rows), constraints=Constraints(include=rows))


def cross_validate(samples: Samples, rows: list[int], folds: list[Fold]) -> Validation:
    """Judge the list by predictions of every sample by weights from the other folds."""
    X = samples.X_before
    every = Parted(X.tocsr() if hasattr(X, "tocsr") else X, samples.y, nuisances=nuisances_of(samples))
    parts_of = partial(Preprocessing(samples.preprocess).apply_in, every)
    model, y = make_model(samples, rows), samples.y
    if samples.task == "regression":
        numbers = np.empty(len(y))
        for fold in folds:
            train, test, _ = parts_of(fold)
            numbers[fold.test] = clone(model).fit(train.X, train.y, adjust_for=train.nuisances).predict(test.X)
        return validate_numbers(y, numbers, samples.groups, folds)
    classes = np.unique(y)
    probabilities, predicted = np.zeros((len(y), len(classes))), np.empty(len(y), dtype=object)
    for fold in folds:
        train, test, _ = parts_of(fold)
        fitted = clone(model).fit(train.X, train.y, adjust_for=train.nuisances)
        probabilities[np.ix_(fold.test, np.searchsorted(classes, fitted.classes_))] = fitted.predict_proba(test.X)
        predicted[fold.test] = fitted.predict(test.X)
    return validate_classes(y.tolist(), probabilities, predicted.tolist(), classes.tolist(), samples.groups, folds)


def inspect_list(samples: Samples, rows: list[int]) -> ListReport:
    """Measure how redundant a list is, and how far its loss is from that of the best list of the same size."""
    names = [samples.feature_names[row] for row in rows]
    problem = problem_of(samples)
    whole = problem.null_loss or 1.0
    loss = support_loss(problem, np.array(rows))
    model = make_model(samples, rows).set_params(constraints=None)
    model.fit(samples.X, samples.y, adjust_for=nuisances_of(samples))
    best = model.path_.support(len(rows))
    loss_found = min(support_loss(problem, best), loss)
    bound = certify_size(problem, len(rows), loss_found).lower_bound
    columns = dense_columns(samples.X, np.array(rows)).astype(np.float64)
    correlations = correlation_matrix(columns)
    without = [
        support_loss(problem, np.array(rows[:place] + rows[place + 1 :], dtype=np.intp)) for place in range(len(rows))
    ]
    inflation = variance_inflation(columns)
    return ListReport(
        members=[Member(*parts) for parts in zip(names, inflation, [each / whole for each in without], strict=True)],
        pairs=pairs_of(correlations, names),
        loss=loss / whole,
        lower_bound=bound / whole,
        loss_found=loss_found / whole,
        found=[samples.feature_names[row] for row in best],
    )


def problem_of(samples: Samples) -> Problem:
    """Return the least-squares problem that L20Selector solves with its defaults."""
    defaults = L20Classifier().get_params()
    targets = encode_targets(samples.y, samples.task)
    return make_problem(
        samples.X,
        targets.Y,
        ridge=partial(ridge_on, defaults["ridge"], targets),
        scale=defaults["scale"],
        target_weights=weights_of_targets(targets, defaults["class_weight"]),
        nuisances=nuisances_of(samples),
    )


def correlation_matrix(columns: Array) -> Array:
    """Return the correlations of columns; those of a constant one are 0."""
    centred = columns - columns.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    centred /= np.where(norms > 0.0, norms, 1.0)
    return np.asarray(centred.T @ centred)


def pairs_of(correlations: Array, names: list[str]) -> list[Pair]:
    """Return the pairs with the largest absolute correlation.

    Examples
    --------
    >>> pairs_of(np.array([[1.0, -0.9], [-0.9, 1.0]]), ["a", "b"])
    [Pair(first='a', second='b', correlation=-0.9)]
    """
    first, second = np.triu_indices(len(names), k=1)
    values = correlations[first, second]
    order = np.argsort(-np.abs(values), kind="stable")[:MOST_PAIRS]
    return [Pair(names[first[place]], names[second[place]], float(values[place])) for place in order]


def variance_inflation(columns: Array) -> list[float | None]:
    """Return 1 / (1 - R2) of each column on the others, infinite if they determine it; None with too few samples.

    Examples
    --------
    >>> variance_inflation(np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]))
    [1.0, 1.0]
    """
    n_samples, n_columns = columns.shape
    if n_samples - 1 <= n_columns:
        return [None] * n_columns
    centred = columns - columns.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    found: list[float | None] = []
    for place in range(n_columns):
        others = np.delete(centred / np.where(norms > 0.0, norms, 1.0), place, axis=1)
        own = centred[:, place] / norms[place] if norms[place] > 0.0 else centred[:, place]
        left = own - others @ np.linalg.lstsq(others, own, rcond=None)[0] if others.shape[1] else own
        rest = float(left @ left)
        found.append(None if not norms[place] else round(1.0 / rest, 12) if rest > 1e-12 else np.inf)
    return found
