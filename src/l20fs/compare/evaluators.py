r"""Estimators that show what a selection is worth: trained on the selected features, and scored on the test samples.

The paper has KNN with five neighbours and softmax. The other details are those of the code that its authors published later:
ties of KNN go to the first class, and softmax has no intercept and minimises the mean cross-entropy plus
:math:`\tfrac{10^{-4}}2 \|\theta\|^2`. The paper has labels alone; numbers are predicted by the mean of the five nearest
neighbours and by ridge regression.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import RidgeCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from l20fs.evaluation.engine import Samples
from l20fs.evaluation.judges import fit_estimator
from l20fs.evaluation.metrics import Metric, Outputs
from l20fs.typing import Array

#: Weight decay of softmax, and the maximum number of steps of its solver.
DECAY, MAX_ITER = 1e-4, 200

#: Strengths of ridge regression, of which leave-one-out predictions inside the training samples choose one.
RIDGES = tuple(10.0**power for power in range(-2, 5))


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


#: Titles of the estimators by name: of those for labels, and of those for numbers.
CLASSIFIERS = {"knn": "KNN", "softmax": "softmax"}
REGRESSORS = {"knn": "KNN", "ridge": "ridge"}
TITLES = CLASSIFIERS | REGRESSORS


def make_estimator(name: str, n_samples: int, *, for_labels: bool) -> BaseEstimator:
    """Return an estimator by its name; ties of votes go to the first class in scikit-learn, too."""
    if name == "knn":
        kind = KNeighborsClassifier if for_labels else KNeighborsRegressor
        return kind(min(5, n_samples), algorithm="brute")
    return Softmax() if for_labels else RidgeCV(RIDGES)


def score(name: str, metric: Metric, features: Array, train: Samples, test: Samples) -> float:
    """Return the metric of an estimator that was trained on some columns, in their order, of the training samples."""
    estimator = make_estimator(name, len(train.y), for_labels=metric.is_for_labels)
    fitted, X = fit_estimator(estimator, train.X[:, features], train.y, {}), test.X[:, features]
    if metric.needs == "numbers":
        outputs = Outputs(test.y, 0, numbers=np.asarray(fitted.predict(X), dtype=np.float64)[:, None, None])
    else:
        codes, n_classes = np.searchsorted(fitted.classes_, test.y), len(fitted.classes_)
        if metric.needs == "labels":
            outputs = Outputs(codes, n_classes, labels=np.searchsorted(fitted.classes_, fitted.predict(X))[:, None])
        else:
            outputs = Outputs(codes, n_classes, probabilities=fitted.predict_proba(X)[:, None, :])
    return float(metric.formula(outputs, np.ones((1, len(test.y))))[0, 0])
