"""Small data sets and comparisons that several test files share."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pandas as pd
import scipy.sparse as sp

from l20fs.solvers import SOLVERS as SOLVERS_BY_NAME

CONTAINERS = [np.asarray, sp.csr_array]


REPLACING = ["forward", "swap"]
HOMOTOPIES = ["ahiht", "hiht"]
SOLVERS = REPLACING + HOMOTOPIES


def make_solver(name, **options):
    """Return a solver by name, with those of the options that it has."""
    solver = SOLVERS_BY_NAME[name]()
    return solver.set_params(**{option: value for option, value in options.items() if option in solver.get_params()})


INFORMATIVE = [2, 5, 9]


def make_data(seed=0, n_samples=60, n_features=12, n_classes=3):
    """Gaussian features of which INFORMATIVE have another mean in each class."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_samples) % n_classes)
    X = rng.standard_normal((n_samples, n_features))
    X[:, INFORMATIVE] += 1.5 * np.eye(n_classes)[y] @ rng.standard_normal((n_classes, len(INFORMATIVE)))
    return X, y


def make_frame(seed=0):
    X, y = make_data(seed)
    return pd.DataFrame(X, columns=[f"g{j}" for j in range(X.shape[1])]), y


def assert_same_fit(fitted, expected):
    for name in ("scores_", "ranking_", "support_", "coef_", "intercept_", "classes_"):
        np.testing.assert_array_equal(getattr(fitted, name), getattr(expected, name), err_msg=name)
    for field in fields(expected.path_):
        np.testing.assert_array_equal(getattr(fitted.path_, field.name), getattr(expected.path_, field.name))


def make_many_classes(n_classes=50, n_per_class=3, n_samples=8, n_noise=100, seed=0):
    """Return X, y and the features that are higher in one class than in all others, a few for each class."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), n_samples)
    informative = np.arange(n_classes * n_per_class)
    X = rng.standard_normal((len(y), len(informative) + n_noise))
    X[:, informative] += 4.0 * (informative // n_per_class == y[:, None])
    return X, y, informative


def contents(folder):
    """Return the bytes of the files in a folder by name."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
