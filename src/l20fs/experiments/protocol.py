r"""Protocol of the paper: splits and classifiers.

The paper states two thirds of every class for training, ten repeats, KNN with five neighbours and softmax. The other details
are those of the code that its authors published later: the two thirds are rounded up, ties of KNN go to the first class, and
softmax has no intercept and minimises the mean cross-entropy plus :math:`\tfrac{10^{-4}}2 \|\theta\|^2`.

The paper has labels alone. Where numbers are predicted, the mean of the five nearest neighbours and ridge regression judge.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from l20fs.evaluation.engine import Samples, Selection
from l20fs.evaluation.folds import Fold
from l20fs.evaluation.judges import fit_estimator
from l20fs.evaluation.metrics import METRICS, Metric, Outputs
from l20fs.typing import Array

#: Fraction of every class that is used for training, rounded up.
TRAINING_SHARE = 2 / 3

#: Weight decay of softmax, and the maximum number of steps of its solver.
DECAY, MAX_ITER = 1e-4, 200

#: Strengths of ridge regression, of which leave-one-out predictions inside the training samples choose one.
RIDGES = tuple(10.0**power for power in range(-2, 5))


#: Random choices of whole groups, of which the one that takes the same share of every class is tested.
GROUP_DRAWS = 20


def paper_split(y: Array, number: int, seed: int = 0, groups: Array | None = None) -> Fold:
    """Draw trial ``number``: of every class two thirds, rounded up, for training; of whole groups, if there are any.

    Trial i depends on the labels, the groups, ``seed`` and i only.

    Examples
    --------
    >>> split = paper_split(np.repeat([0, 1], [10, 4]), 0)
    >>> len(split.train), len(split.test)
    (10, 4)
    """
    random = np.random.default_rng([seed, number])
    if groups is not None:
        return _split_groups(y, groups, random)
    is_train = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        members = random.permutation(np.flatnonzero(y == label))
        is_train[members[: int(np.ceil(len(members) * TRAINING_SHARE - 1e-9))]] = True
    return Fold(np.flatnonzero(is_train), np.flatnonzero(~is_train))


def _split_groups(y: Array, groups: Array, random: np.random.Generator) -> Fold:
    """Draw groups for the test part until it has a third of the samples; of some draws the most even one over the classes.

    Samples of a class that is in the test part alone are not tested.
    """
    names, codes = np.unique(groups, return_inverse=True)
    classes = np.unique(y, return_inverse=True)[1]
    sizes, shares, draws = np.bincount(codes), np.bincount(classes), []
    for _ in range(GROUP_DRAWS):
        order = random.permutation(len(names))
        n_tested = int(np.abs(np.cumsum(sizes[order])[:-1] - (1.0 - TRAINING_SHARE) * len(y)).argmin()) + 1
        is_test = np.isin(codes, order[:n_tested])
        unevenness = np.abs(np.bincount(classes[is_test], minlength=len(shares)) / shares - (1.0 - TRAINING_SHARE)).sum()
        draws.append((float(unevenness), is_test))
    is_test = min(draws, key=lambda draw: draw[0])[1]
    return Fold(np.flatnonzero(~is_test), np.flatnonzero(is_test & np.isin(y, y[~is_test])))


def inner_splits(y: Array, n_folds: int, number: int, seed: int = 0, groups: Array | None = None) -> list[Fold]:
    """Split the training samples of a trial into stratified folds, at most as many as the smallest class has samples.

    A class with one sample cannot be in both parts and stays in the training parts: it does not limit the folds. Groups stay
    together: there are at most as many folds as groups, and samples of a class that is in the test part alone are not
    tested.
    """
    if groups is not None:
        splitter = StratifiedGroupKFold(
            min(n_folds, len(np.unique(groups))), shuffle=True, random_state=np.random.RandomState([seed, number])
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
            parts = [Fold(train, test[np.isin(y[test], y[train])]) for train, test in splitter.split(y, y, groups)]
        n_classes = min(2, len(np.unique(y)))
        return [fold for fold in parts if len(fold.test) and len(np.unique(y[fold.train])) >= n_classes]
    _, counts = np.unique(y, return_counts=True)
    shared = counts[counts > 1]
    n_folds = max(2, min(n_folds, int(shared.min()))) if len(shared) else 2
    codes = np.unique(y, return_inverse=True)[1]
    single = np.flatnonzero(counts[codes] == 1)
    others = np.flatnonzero(counts[codes] > 1)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=np.random.RandomState([seed, number]))
    return [
        Fold(np.sort(np.concatenate([others[train], single])), others[test])
        for train, test in folds.split(others, y[others])
    ]


class Softmax(ClassifierMixin, BaseEstimator):
    """Multinomial logistic regression with the settings of the paper.

    No intercept, mean cross-entropy plus half of ``DECAY`` times the squared parameters, L-BFGS with ``MAX_ITER`` steps.
    The authors start from small random numbers; this starts from zero, since the minimum is unique. The parameters are
    linear combinations of the training samples, so that the search has at most as many dimensions per class as samples.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [-1.0, 0.0]])
    >>> Softmax().fit(X, np.array(["a", "a", "b"])).predict(X).tolist()
    ['a', 'a', 'b']
    """

    classes_: Array
    coef_: Array

    def fit(self, X: Array, y: Array) -> Softmax:
        """Fit the parameters."""
        X = np.ascontiguousarray(X)
        self.classes_, codes = np.unique(y, return_inverse=True)
        n_samples, n_classes = len(X), len(self.classes_)
        basis, axes = _reduced(X)
        is_own = np.zeros((n_samples, n_classes))
        is_own[np.arange(n_samples), codes] = 1.0

        def objective(flat: Array) -> tuple[float, Array]:
            theta = flat.reshape(n_classes, -1)
            scores = basis @ theta.T
            total = logsumexp(scores, axis=1, keepdims=True)
            loss = float((total[:, 0] - scores[np.arange(n_samples), codes]).mean()) + 0.5 * DECAY * float(flat @ flat)
            slope = (np.exp(scores - total) - is_own).T @ basis / n_samples + DECAY * theta
            return loss, slope.ravel()

        start = np.zeros(n_classes * basis.shape[1])
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": MAX_ITER, "ftol": 1e-12})
        self.coef_ = found.x.reshape(n_classes, -1) @ axes
        return self

    def predict(self, X: Array) -> Array:
        """Return the label of each sample."""
        return np.asarray(self.classes_[(np.ascontiguousarray(X) @ self.coef_.T).argmax(axis=1)])

    def predict_proba(self, X: Array) -> Array:
        """Return the probability of each class, (n_samples, n_classes)."""
        return np.asarray(softmax(np.ascontiguousarray(X) @ self.coef_.T, axis=1))


def _reduced(X: Array) -> tuple[Array, Array]:
    """Return X as ``basis @ axes`` with orthonormal axes; other directions affect the weight decay only."""
    if X.shape[1] <= len(X):
        return X, np.eye(X.shape[1])
    energies, directions = np.linalg.eigh(X @ X.T)
    kept = energies > 1e-12 * max(energies[-1], np.finfo(np.float64).tiny)
    lengths = np.sqrt(energies[kept])
    return directions[:, kept] * lengths, (directions[:, kept] / lengths).T @ X


#: Classifiers that judge a selection, for a number of training samples. Ties of votes go to the first class in scikit-learn,
#: too.
CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "knn": lambda n_samples: KNeighborsClassifier(min(5, n_samples), algorithm="brute"),
    "softmax": lambda n_samples: Softmax(),
}

#: The same for numbers.
REGRESSORS: dict[str, Callable[[int], Any]] = {
    "knn": lambda n_samples: KNeighborsRegressor(min(5, n_samples), algorithm="brute"),
    "ridge": lambda n_samples: RidgeCV(RIDGES),
}


def judge_by(name: str, n_samples: int, scoring: str = "accuracy") -> Scored:
    """Return the judge that trains a classifier or a regressor on ``n_samples`` samples, and scores it by a metric."""
    metric = METRICS[scoring]
    return Scored((CLASSIFIERS if metric.is_for_labels else REGRESSORS)[name](n_samples), metric)


@dataclass(frozen=True)
class Scored:
    """Fit an estimator on the selected columns of the training samples, best first, and score it by a metric."""

    estimator: Any
    metric: Metric

    def __call__(self, selection: Selection, train: Samples, test: Samples) -> Array:
        return np.array([self.score_on(features, train, test) for features in selection.features])

    def score_on(self, features: Array, train: Samples, test: Samples) -> float:
        """Return the metric with some features."""
        fitted = fit_estimator(self.estimator, train.X[:, features], train.y, {})
        outputs = _outputs(fitted, test.X[:, features], test.y, self.metric.needs)
        return float(self.metric.formula(outputs, np.ones((1, len(test.y))))[0, 0])


def _outputs(fitted: Any, X: Array, y: Array, needs: str) -> Outputs:
    """Return the predictions of a fitted estimator as those of one setting."""
    if needs == "numbers":
        return Outputs(y, 0, numbers=np.asarray(fitted.predict(X), dtype=np.float64)[:, None, None])
    classes = fitted.classes_
    if needs == "probabilities":
        return Outputs(np.searchsorted(classes, y), len(classes), probabilities=fitted.predict_proba(X)[:, None, :])
    names = np.union1d(classes, y)
    return Outputs(np.searchsorted(names, y), len(names), labels=np.searchsorted(names, fitted.predict(X))[:, None])


def majority_share(y: Array, fold: Fold) -> float:
    """Return the test accuracy of predicting the most frequent training class."""
    labels, counts = np.unique(y[fold.train], return_counts=True)
    return float(np.mean(y[fold.test] == labels[counts.argmax()]))
