"""Small panels that several test files share."""

from __future__ import annotations

import functools

import numpy as np
from samples import make_data

from l20fs import L20Classifier, L20Regressor


@functools.cache
def fitted(n_classes=3, k=4, max_features=6):
    """Return a small panel, the model that it is of, and its data; 0 classes for numbers, -1 for two of them."""
    X, y = make_data(3, n_samples=60, n_features=14, n_classes=max(n_classes, 2))
    if n_classes > 0:
        y = np.array(["ape", "bee", "cat", "dog"])[y]
        model = L20Classifier(k, max_features_to_select=max_features).fit(X, y)
    else:
        y = X[:, [1, 2, 5]] @ np.array([[1.0, 2.0], [-1.0, 0.5], [0.3, 1.0]]) + 0.1 * np.cos(37.0 * X[:, :2])
        y = y[:, 0] if n_classes == 0 else y
        model = L20Regressor(k, max_features_to_select=max_features).fit(X, y)
    return model.to_panel(X, y, n_substitutes=8), model, X, y  # all other features are substitutes


def columns_for(panel, X, k=None):
    """Return the columns of the features ``x0``, ``x1``, ... of a panel."""
    return X[:, [int(name[1:]) for name in panel.features_for(k)]]


def named(X):
    """Return the columns by the names that scikit-learn gives them."""
    return {f"x{j}": X[:, j] for j in range(X.shape[1])}
