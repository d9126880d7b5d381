"""Honest accuracy: the selection is repeated inside every fold, on its training samples only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from l20fs.base import BaseSelector

Array = NDArray[Any]


def default_classifiers(n_samples: int) -> dict[str, ClassifierMixin]:
    """Return the paper's two kinds of classifier: nearest neighbours, and a linear one with a softmax."""
    return {
        "KNN-5": KNeighborsClassifier(min(5, n_samples)),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    }


def accuracy_by_k(
    selector: BaseSelector,
    X: Array,
    y: Array,
    ks: Sequence[int],
    *,
    n_splits: int = 5,
    random_state: int = 0,
    on_fold: Callable[[], object] | None = None,
) -> dict[str, Array]:
    """Cross-validate classifiers on the best k features for several k, with one selection per fold.

    Returns
    -------
    dict
        For each classifier the accuracies, an array of shape (n_splits, len(ks)).
    """
    folds = list(StratifiedKFold(n_splits, shuffle=True, random_state=random_state).split(X, y))
    n_train = min(len(train) for train, _ in folds)
    scores: dict[str, Array] = {name: np.empty((n_splits, len(ks))) for name in default_classifiers(n_train)}
    for number, (train, test) in enumerate(folds):
        fitted = clone(selector).set_params(n_features_to_select=max(ks)).fit(X[train], y[train])
        for column, k in enumerate(ks):
            chosen = fitted.set_params(n_features_to_select=k).support_
            for name, classifier in default_classifiers(n_train).items():
                if not chosen.any():  # the chosen alpha leaves nothing in this fold
                    classifier = DummyClassifier()
                classifier.fit(X[train][:, chosen], y[train])
                scores[name][number, column] = classifier.score(X[test][:, chosen], y[test])
        if on_fold is not None:
            on_fold()
    return scores
